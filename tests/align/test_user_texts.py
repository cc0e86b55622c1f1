"""User-defined texts that overlap each other, and characters that become something else outside of them."""

from __future__ import annotations

import random

import pytest
from charsmap import build_charsmap
from hypothesis import example, given, settings
from hypothesis import strategies as st
from write_gguf import U8, Of, vocab_file

from jittok.common.unicode.characters import SPACE_MARK
from jittok.kernels.jit import JIT
from jittok.reference.tokenize import align
from jittok.tokenizer import Tokenizer
from jittok.vocab import Vocab, read_vocab

LETTERS = ["a", "b", "e", "é", "è", "\u0301", " ", "\n", "A"]
BECOMES = {
    "A": "a", "é": "e", "e\u0301": "é", "a\u0301": "á", " \u0301": "x", "\n": " ", "b\u0301": "", "è": "ee",
}  # fmt: skip
PIECES = ["a", "b", "e", "é", "\u0301", SPACE_MARK, "x", "á", "ab", SPACE_MARK + "a", SPACE_MARK + "e"]


def vocab_with(user: set[str], more: dict[str, float], becomes: dict[str, str], **flags: bool) -> Vocab:
    """Type "ugm": user-defined texts, other tokens and their scores, and the charsmap."""
    more = {text: score for text, score in sorted(more.items()) if text not in user}
    tokens = [b"<pad>", b"</s>", b"<unk>", *(text.encode() for text in (*sorted(user), *more))]
    types = [3, 3, 2] + [4] * len(user) + [1] * len(more)
    scores = [0.0] * (3 + len(user)) + [*more.values()]
    pairs = {key.encode(): value.encode() for key, value in becomes.items()}
    charsmap = Of(U8, [*build_charsmap(pairs)]) if pairs else None
    file = vocab_file("t5", tokens, scores=scores, token_type=types, precompiled_charsmap=charsmap, **flags)
    return read_vocab(file)


def assert_aligned(vocab: Vocab, text: str) -> None:
    found, (ids, spans) = (
        Tokenizer(vocab).align(text),
        align(vocab, text.encode(), add_special=False, parse_special=False),
    )
    assert (found.ids.tolist(), [*map(tuple, found.spans.tolist())]) == (list(ids), [*map(tuple, spans)]), text


@pytest.mark.parametrize("merge", [False, True])
def test_where_a_text_begins_depends_on_the_one_in_front(merge):
    """In "a é" the space passes with the a before it, so it begins nothing, and é becomes ee (as many bytes)."""
    tokens = {"a": -1, "b": -1, "e": -1, SPACE_MARK: -2, SPACE_MARK + "e": -1, SPACE_MARK + "a": -1}
    vocab = vocab_with({"a b", " éb"}, tokens, {"é": "ee"}, remove_extra_whitespaces=merge)
    for text in ("a é", "a éa é", "b a é" + 40 * "a é", " éa", "b éb a"):
        assert_aligned(vocab, text)


@settings(max_examples=max(10, settings.default.max_examples // 8) if JIT else 6)
@given(number=st.integers(0, 1 << 30))
@example(number=1)
def test_texts_that_share_parts_with_user_defined_ones(number):
    rng = random.Random(number)
    word = "".join(rng.choices(LETTERS, k=rng.randint(3, 7)))

    def part() -> str:
        begin = rng.randrange(len(word))
        return word[begin : begin + rng.randint(1, 4)]

    user = {part() + rng.choice([*LETTERS, "Q"]) for _ in range(rng.randint(2, 5))}
    becomes = {key: value for key, value in BECOMES.items() if rng.random() < 0.6}
    flags = {name: rng.random() < 0.6 for name in ("remove_extra_whitespaces", "add_space_prefix")}
    tokens = [SPACE_MARK, "a", "b", "e", *("".join(rng.choices(PIECES, k=rng.randint(1, 3))) for _ in range(40))]
    vocab = vocab_with(user, {text: -9 * rng.random() for text in tokens}, becomes, **flags)
    for _ in range(8):
        text = "".join(rng.choice([word, part(), rng.choice(LETTERS)]) for _ in range(rng.randint(1, 6)))
        assert_aligned(vocab, text)
        assert_aligned(vocab, text + 40 * "ab" + text + 30 * "b e" + text)
