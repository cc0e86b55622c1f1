"""`Tokenizer.encode` with literal spans: all vocabulary types, both rules, offsets of str and of bytes."""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jittok
from jittok.encode.literal import literal_counts
from jittok.errors import MixedToken
from jittok.tokenizer import Tokenizer

NAMES = "gpt-2", "mistral", "t5", "bert"


def byte_level(added: list[dict[str, Any]], **more: Any) -> Tokenizer:
    """A small tokenizer.json of bytes."""
    from jittok.common.unicode.tables import CHARACTER_OF_BYTE

    vocab = {chr(c): k for k, c in enumerate(CHARACTER_OF_BYTE)}
    file = {
        "version": "1.0", "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": vocab, "merges": [], "unk_token": None, "fuse_unk": False,
                  "byte_fallback": False, "dropout": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None},
        **more,
    }  # fmt: skip
    return jittok.load(json.dumps(file).encode())


def added(token: int, content: str, **flags: bool) -> dict[str, Any]:
    usual = {"special": True, "normalized": False, "lstrip": False, "rstrip": False, "single_word": False}
    return {"id": token, "content": content, **usual, **flags}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_literal_has_the_ids_of_text(bundled: Callable[[str], Tokenizer], name: str) -> None:
    tok = bundled(name)
    mark = next(tok.id_to_token(each).decode() for each in sorted(tok.special_ids) if tok.attributes[each] & 8)
    text = f"one {mark} two {mark}"
    parsed, plain = (tok.encode(text, parse_special=parse).tolist() for parse in (True, False))
    assert tok.encode(text, parse_special=True, literal=[]).tolist() == parsed
    assert tok.encode(text, parse_special=True, literal=[(0, len(text))]).tolist() == plain
    half = tok.encode(text, parse_special=True, literal=[(4, 4 + len(mark))])
    assert half.tolist() == [*tok.encode(f"one {mark} two ").tolist(), tok.token_to_id(mark)]
    with pytest.raises(MixedToken, match=re.escape(f"byte 4: found {mark!r}")):
        tok.encode(text, parse_special=True, literal=[(0, 5)])


def test_offsets_are_characters_of_a_str_and_bytes_of_bytes(bundled: Callable[[str], Tokenizer]) -> None:
    tok, text = bundled("gpt-2"), "é𝄞<|endoftext|>ü<|endoftext|>"
    first = tok.encode(text, parse_special=True, literal=[(2, 15)]).tolist()
    assert first == [*tok.encode("é𝄞<|endoftext|>ü").tolist(), 50256]
    assert tok.encode(text.encode(), parse_special=True, literal=[(6, 19)]).tolist() == first
    assert tok.encode(text, parse_special=True, literal=np.array([[10, 15], [2, 12]], np.uint16)).tolist() == first


@pytest.mark.parametrize(
    ("literal", "words"),
    [
        ([(0, 5)], "span 0: found .0, 5., expected 0 <= start <= stop <= 4 .characters of the text"),
        ([(0, 1), (3, 2)], "span 1: found .3, 2."),
        ([(-1, 2)], "span 0"),
        ([1, 2], "shape"),
        ([(0.5, 1.0)], "float64"),
        ([(0, 1, 2)], "shape"),
    ],
)
def test_spans_that_are_not_of_the_text_are_refused(
    bundled: Callable[[str], Tokenizer], literal: Any, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        bundled("gpt-2").encode("text", parse_special=True, literal=literal)


def test_without_parse_special_nothing_is_left_to_say(bundled: Callable[[str], Tokenizer]) -> None:
    with pytest.raises(ValueError, match="literal: needs parse_special=True"):
        bundled("gpt-2").encode("text", literal=[(0, 1)])


def test_a_files_shorter_token_is_tried_where_a_longer_one_is_literal() -> None:
    tok = byte_level([added(256, "<a>"), added(257, "<a>b"), added(258, "<a", special=False)])
    text = "<a>b"
    assert tok.encode(text, parse_special=True).tolist() == [257]
    plain = tok.encode(">b").tolist()
    assert tok.encode(text, parse_special=True, literal=[(0, 4)]).tolist() == [258, *plain]
    assert tok.encode("x<a>b", parse_special=True, literal=[(0, 1)]).tolist() == [*tok.encode("x").tolist(), 257]


def test_tokens_of_normalized_text_are_guarded_by_the_text_that_they_came_from() -> None:
    tok = byte_level([added(256, "<A>", normalized=True)], normalizer={"type": "Lowercase"})
    assert tok.encode("<A>é<a>", parse_special=True).tolist()[0] == 256
    ids = tok.encode("<A>é<a>", parse_special=True, literal=[(0, 3)])
    assert ids.tolist() == [*tok.encode("<a>é").tolist(), 256]
    with pytest.raises(MixedToken):
        tok.encode("<A>é<a>", parse_special=True, literal=[(5, 7)])


@given(st.text("ab<|> éſ", max_size=12), st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=5))
def test_counts_say_which_bytes_are_literal(text: str, pairs: list[tuple[int, int]]) -> None:
    spans = [(min(pair), max(pair)) for pair in pairs if max(pair) <= len(text)]
    raw = text.encode()
    marked = [any(start <= k < stop for start, stop in spans) for k, c in enumerate(text) for _ in c.encode()]
    assert np.diff(literal_counts(spans, text, raw)).tolist() == marked
