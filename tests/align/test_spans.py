"""Spans are those of the plain reference and keep the rules of alignment, for every type, vocabulary and text."""

from functools import cache

import numpy as np
import pytest
from amounts import amount
from cases import Case
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made_up import MADE_UP, made_up_tokenizer
from span_rules import broken_rule
from texts import Texts
from vocabs import KINDS, drawn_vocab
from write_gguf import vocab_file

from jittok.align import by_lengths
from jittok.align.conversions import character_spans
from jittok.errors import EncodingFailed, JittokError
from jittok.kernels.jit import JIT, U8, frozen, kernel
from jittok.kernels.memory import window
from jittok.reference.tokenize import align as literal
from jittok.tokenizer import Tokenizer
from jittok.vocab import bundled_names, bundled_vocab, read_vocab

REAL = bundled_names() if JIT else []
"""Without the compiler they take minutes."""
RULES = [(False, False), (False, True), (True, False), (True, True)]
EXAMPLES = max(amount(6, 4, 1), settings.default.max_examples // 16) if JIT else 1
"""What make fuzz has more of. Without the compiler each takes half a second."""
BEFORE, SLACK = b"\xff" * 3, b"\x80" * 8
"""What is around a text and is none of it."""


@kernel
def well_formed(data: U8, start: int, stop: int) -> bool:
    return by_lengths.is_well_formed(window(data), start, stop)


@cache
def case(name):
    if name in bundled_names():
        return Case(name, bundled_vocab(name))
    tok = made_up_tokenizer(name)
    return Case(name, tok.vocab, tok)


def spans(tok, text, **rules):
    return [(i, j) for i, j in tok.align(text, **rules).spans.tolist()]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=EXAMPLES)
@given(number=st.integers(0, 1 << 30))
@example(number=1108)  # spm: a token of a character that ends too early and the first byte of a space
def test_drawn_vocabularies_align_as_the_reference_does_and_keep_the_rules(kind, number):
    try:
        drawn = Case(f"{kind} {number}", read_vocab(drawn_vocab(kind, number)))
    except JittokError:
        return  # drawn so that loading refuses it; the next test counts these
    texts = Texts(number, drawn.vocab)
    for add, parse in RULES:
        text = texts.one()
        assert drawn.differs(text, add, parse) is None, (text, add, parse)


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_vocabularies_load(kind):
    for number in range(amount(4, 4, 1)):
        assert len(Tokenizer(read_vocab(drawn_vocab(kind, number))).vocab)


@pytest.mark.parametrize("name", [*REAL, *MADE_UP[:: amount(1, 1, 3)]])
def test_the_vocabularies_at_hand_align_as_the_reference_does_and_keep_the_rules(name):
    found, texts = case(name), Texts(len(name), case(name).vocab)
    for number in range(EXAMPLES + 1):
        text, (add, parse) = texts.one(), RULES[number % 4]
        assert found.differs(text, add, parse) is None, (text, add, parse)


@pytest.mark.skipif(not JIT, reason="real vocabularies take minutes without the compiler")
@pytest.mark.parametrize("session", ["t5", "bert", "llama2", "llama3"])
def test_spans_of_the_walkthroughs(session, walkthroughs, named):
    tok = named(walkthroughs[session]["vocab"])
    for row in walkthroughs[session]["align"]:
        text = row["text"].encode().replace(rb"\xff", b"\xff")
        found = tok.align(text, add_special=row["add_special"], parse_special=row["parse_special"])
        assert (found.ids.tolist(), found.spans.tolist()) == (row["ids"], row["spans"]), row


def test_a_broken_rule_is_told():
    vocab, rules = bundled_vocab("gpt-2"), {"add_special": False, "parse_special": False}
    (ids, right), text = literal(vocab, b"two words"), b"two words"
    assert right == [(0, 3), (3, 9)]
    assert broken_rule(vocab, text, ids, right, **rules) is None
    for wrong, told in {
        ((0, 3),): "2 ids have 1 spans",
        ((0, 3), (3, 10)): "span 1, 3 .. 10, is not one of the text",
        ((0, 3), (4, 9)): "stands for b'words', which is not its text",
        ((0, 4), (4, 9)): "stands for b'two ', which is not its text",
        ((0, 3), (3, 8)): "byte 8 belongs to no token",
        ((0, 4), (2, 9)): "spans 0 and 1 share 2 .. 4",
        ((3, 9), (0, 3)): "span 1 begins or ends before",
    }.items():
        assert told in broken_rule(vocab, text, ids, wrong, **rules)


def test_plamo_2_leaves_a_space_as_it_is_beside_a_bad_byte(made_up):
    assert spans(made_up("syn-plamo2"), b" \x8f") == [(0, 1), (1, 2), (1, 2), (1, 2)]


def test_an_unknown_token_for_a_part_of_the_space_in_front_stands_for_nothing(vocab_of):
    tokens = [b"<unk>", b"<0xE2>", b"<0x96>", b"a"]
    tok = Tokenizer(vocab_of(tokens, [1, 32, 32, 4], unk_id=0, add_space_prefix=True))
    found = tok.align(b">a", errors="replace")
    assert (found.ids.tolist(), found.spans.tolist()) == (
        [1, 2, 0, 0, 3],
        [[0, 0], [0, 0], [0, 0], [0, 1], [1, 2]],
    )


def test_a_replaced_text_is_aligned_too(made_up):
    tok = made_up("syn-spm-nobytes")
    with pytest.raises(EncodingFailed, match="offset 1"):
        tok.align("a\U0001f600")
    found = tok.align("a\U0001f600b", errors="replace")
    assert found.spans.tolist()[-5:] == [[1, 2], [2, 3], [3, 4], [4, 5], [5, 6]]
    assert {int(token) for token in found.ids[-5:-1]} == {tok.unk_id}


WHOLE = [b"", b"abcdefgh", "é".encode(), "ß中😀".encode(), b"\xf4\x8f\xbf\xbf", b"\xed\xa0\x80"]
BAD = [b"\xc0\x80", b"\xff", b"\x80", b"\xf4\x90\x80\x80", b"\xe2\x96", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf", b"\xc3("]
parts = st.sampled_from([*WHOLE, *BAD]) | st.text(max_size=3).map(str.encode) | st.binary(max_size=2)


@given(st.lists(parts, max_size=12).map(b"".join) | st.lists(parts | st.sampled_from(WHOLE), min_size=30).map(b"".join))
@example(b"a" * 63 + "é".encode() + b"a" * 64)
@example(b"a" * 62 + "中".encode() + b"\xed\xa0\x80" * 40)
@example(b"a" * 61 + b"\xf4\x90\x80\x80" + b"a" * 64)
@example("中".encode() * 40 + b"\xe0\x80\x80" + b"a" * 64)
@example("é".encode() * 40 + b"\x80" + b"a" * 64)
def test_well_formedness_is_told_of_the_stretch_alone(text):
    data = frozen(np.frombuffer(BEFORE + text + SLACK, np.uint8), np.uint8)
    try:
        right = text.decode("utf-8", "surrogatepass") is not None
    except UnicodeDecodeError:
        right = False
    assert well_formed(data, len(BEFORE), len(BEFORE) + len(text)) == right


@pytest.mark.skipif(not JIT, reason="real vocabularies take minutes without the compiler")
@pytest.mark.parametrize("name", bundled_names())
@pytest.mark.parametrize("unit", [b"a", b" ", b"\xff", "é".encode(), b"a b ", "\u3000".encode(), "\u0301".encode()])
def test_long_texts_keep_the_rules(name, unit):
    tok, rules = case(name).tok, {"add_special": True, "parse_special": False}
    text = unit * (amount(6000, 3000, 100) // len(unit))
    found = tok.align(text, **rules)
    assert broken_rule(tok.vocab, text, found.ids.tolist(), found.spans.tolist(), **rules) is None


@pytest.mark.parametrize("space", [b"\n", b" "])
def test_many_newlines_are_characters_where_nothing_makes_them_spaces(space):
    tokens = ["<pad>", "</s>", "<unk>", "\u2581", "b", "c"]
    flags = {"add_space_prefix": False, "remove_extra_whitespaces": True, "unknown_token_id": 2}
    vocab = read_vocab(vocab_file("t5", tokens, scores=[0, 0, 0, -1, -1, -1], token_type=[3, 3, 2, 1, 1, 1], **flags))
    for count in (1, 31, 32, 33, 64, 65, 200):
        for letter in (b"b", b"x"):
            text = space * count + letter * 32 + space * count + letter * 70
            ids, wanted = literal(vocab, text)
            found = Tokenizer(vocab).align(text, add_special=False)
            assert (found.ids.tolist(), spans(Tokenizer(vocab), text, add_special=False)) == (ids, wanted), count


def test_spans_that_fall_are_counted_in_characters():
    """A file's normalizer may put what it writes after what follows."""
    data, one = np.frombuffer("é中a😀b".encode() + bytes(16), np.uint8), np.array([0])
    spans = np.array([[5, 6], [0, 5], [6, 11], [2, 5], [0, 2]])
    found = character_spans(data, one, one + 11, np.array([0, 5]), spans)
    assert found.tolist() == [[2, 3], [0, 2], [3, 5], [1, 2], [0, 1]]
