"""Pieces and joined rows against llama.cpp's rules, written out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.decode.pieces import HIDDEN, build_pieces, byte_piece, marked_piece
from jittok.decode.rows import BAD_ID, DecodeFrame, Decoder, clean_spaces, join_rows
from jittok.decode.slices import parts_of, text_of
from jittok.decode.stream import StreamDecoder
from jittok.errors import InvalidToken
from jittok.kernels.inputs import to_ids
from jittok.tokenizer import Tokenizer

UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 2, 4, 8, 16, 32


def pieces(vocab: Any) -> list[bytes]:
    made = build_pieces(vocab)
    return [made.blob[i:j].tobytes() for i, j in zip(made.offsets, made.offsets[1:], strict=False)]


def test_pieces_of_spm_by_attribute(vocab_of: Callable[..., Any]) -> None:
    texts = ["▁a▁b", "▁s", "▁u", "▁x", "<0x41>", "▁gone", "▁bare", "<0xZZ>"]
    attributes = [NORMAL, CONTROL, USER_DEFINED, UNKNOWN, BYTE, UNUSED, 0, BYTE]
    vocab = vocab_of([text.encode() for text in texts], attributes)
    want = [b" a b", "▁s".encode(), "▁u".encode(), "▁x".encode(), b"A", b"", b"", b"\0"]
    assert pieces(vocab) == want
    assert (build_pieces(vocab).facts & HIDDEN != 0).tolist() == [False, True, False, True, *[False] * 4]


def test_pieces_of_byte_level_bpe(vocab_of: Callable[..., Any]) -> None:
    texts = ["Ġa", "Ċ", "Ã©", "Ġ<s>", "x☃y", "ab"]
    vocab = vocab_of(
        [text.encode() for text in texts],
        [NORMAL, NORMAL, NORMAL, CONTROL, NORMAL, NORMAL],
        "bpe",
        escape_whitespaces=False,
    )
    snow = "x☃y".encode()
    marked = b"x[UNK_BYTE_0xe29883" + snow + b"]y"
    assert pieces(vocab) == [b" a", b"\n", "é".encode(), "Ġ<s>".encode(), marked, b"ab"]
    assert pieces(vocab_of([b"\xe2\x96\x81a"], [NORMAL], "bpe", escape_whitespaces=True)) == [b" a"]


def test_pieces_of_the_types_without_attributes(vocab_of: Callable[..., Any]) -> None:
    assert pieces(vocab_of([rb"\n\x41\\", b"plain"], [NORMAL, CONTROL], "rwkv")) == [b"\nA\\", b"plain"]
    assert pieces(vocab_of([b"<0x41>", b"<0x4>", b"\xe2\x96\x81a"], [BYTE, BYTE, NORMAL], "plamo2")) == [
        b"A", b"<0x4>", b"\xe2\x96\x81a",
    ]  # fmt: skip
    assert pieces(vocab_of([b"x"] * 17, None, "test"))[-1] == b"10"
    assert pieces(vocab_of([], None)) == []


@pytest.mark.parametrize(
    ("text", "piece"),
    [(b"<0x0A>", b"\n"), (b"<0xfF>", b"\xff"), (b"<0x-1>", b"\xff"), (b"abcC", b"\x0c"), (b"<0x>", b"\0")],
)
def test_a_byte_token_is_what_strtol_reads(text: bytes, piece: bytes) -> None:
    assert byte_piece(text, strict=False) == piece


def test_marked_pieces_decode_permissively() -> None:
    assert marked_piece(b"\xc0\xa1", shortest=False) == b"!"
    assert marked_piece(b"\xc0\xa1") == 2 * b"[UNK_BYTE_0xefbfbd\xc0\xa1]"
    assert marked_piece(b"a\xff") == b"a[UNK_BYTE_0xefbfbda\xff]"
    assert marked_piece(b"\xed\xa0\x80") == b"[UNK_BYTE_0xeda080\xed\xa0\x80]"


def literally_cleaned(text: bytearray) -> bytes:
    """llama.cpp's three loops, each compacting in place."""
    space, quote = ord(" "), ord("'")
    total, n = min(1, len(text)), len(text)
    for i in range(1, n):
        x = text[i]
        total -= text[i - 1] == space and x in b"?!.,"
        text[total] = x
        total += 1
    n, total, i = total, min(1, total), 1
    while i < n:
        x = text[i]
        if x == quote and i + 1 < n and text[i - 1] == space == text[i + 1]:
            total -= 1
            i += 1
            text[i] = 0
        text[total] = x
        total += 1
        i += 1
    n, total = total, min(1, total)
    for i in range(1, n):
        x = text[i]
        if text[i - 1] == space and x == quote and i + 1 < n:
            total -= text[i + 1] in b"sm" or bytes(text[i + 1 : min(i + 3, n)]) in (b"re", b"ve")
        text[total] = x
        total += 1
    return bytes(text[:total])


CLEANABLE = st.lists(st.sampled_from([bytes([b]) for b in b"  '' .,?!smrevtdx\xc3"]), max_size=30).map(b"".join)


STRETCHES = st.lists(CLEANABLE | st.integers(20, 70).map(lambda size: b"x" * size), max_size=8).map(b"".join)


@given(CLEANABLE | STRETCHES)
@example(b" ' ' ")
@example(b"  ' re")
@example(b" .")
@example(b"a 're 's 't , ' .")
def test_cleaning_is_the_three_passes(text: bytes) -> None:
    ours = np.frombuffer(text, np.uint8).copy()
    assert ours[: clean_spaces(ours)].tobytes() == literally_cleaned(bytearray(text))


@pytest.mark.parametrize("after", [b"s", b"m", b"re", b"ve"])
def test_a_space_goes_in_front_of_a_contraction(after: bytes) -> None:
    for behind in (b"", b" x", b"x"):
        text = np.frombuffer(b"I '" + after + behind, np.uint8).copy()
        assert text[: clean_spaces(text)].tobytes() == b"I'" + after + behind


@pytest.mark.parametrize("after", [b"", b"d", b"t", b"ll", b"r", b"v", b"rs", b"vs", b"n", b"l", b"S", b"M", b"RE"])
def test_a_space_stays_in_front_of_another_apostrophe(after: bytes) -> None:
    text = np.frombuffer(b"I '" + after, np.uint8).copy()
    assert text[: clean_spaces(text)].tobytes() == b"I '" + after


@pytest.mark.parametrize("mover", [b"?", b"!", b".", b",", b"'s"])
def test_a_space_goes_also_where_another_token_begins_behind_it(vocab_of: Callable[..., Any], mover: bytes) -> None:
    tok = Tokenizer(vocab_of([b"a ", mover, b"b", b" "], [USER_DEFINED] * 4, clean_spaces=True))
    assert tok.decode_bytes([0, 1]) == b"a" + mover
    assert tok.decode_bytes([2, 3, 1, 2]) == b"b" + mover + b"b"
    whole = Tokenizer(vocab_of([b"x " + mover, b"y"], [USER_DEFINED] * 2, clean_spaces=True))
    assert whole.decode_bytes([0]) == b"x" + mover  # before all others as well
    assert whole.decode_bytes([1, 0]) == b"yx" + mover
    assert tok.decode_batch([[0, 1], [1, 0], [0, 2]]) == ["a" + mover.decode(), mover.decode() + "a ", "a b"]
    plain = Tokenizer(vocab_of([b"a ", mover], [USER_DEFINED] * 2, clean_spaces=False))
    assert plain.decode_bytes([0, 1]) == b"a " + mover


def test_the_id_0_may_be_either_end(vocab_of: Callable[..., Any]) -> None:
    for ids, left in (({"bos_id": 0, "eos_id": 1}, [1, 2, 0]), ({"bos_id": 1, "eos_id": 0}, [0, 2, 1])):
        vocab = vocab_of([b"<0>", b"<1>", b"a"], [CONTROL, CONTROL, USER_DEFINED], add_bos=True, add_eos=True, **ids)
        tok, row = Tokenizer(vocab), [ids["bos_id"], 2, ids["eos_id"]]
        assert tok.decode_bytes(row, remove_special=True, unparse_special=True) == b"a"
        whole = b"".join([b"<0>", b"<1>", b"a"][token] for token in left)
        assert tok.decode_bytes(left, remove_special=True, unparse_special=True) == whole


@pytest.mark.parametrize("add_bos", [False, True])
@pytest.mark.parametrize("add_eos", [False, True])
def test_only_a_frame_that_the_vocabulary_adds_is_removed(
    vocab_of: Callable[..., Any], add_bos: bool, add_eos: bool
) -> None:
    vocab = vocab_of([b"<s>", b"</s>", b"a"], [CONTROL, CONTROL, USER_DEFINED], bos_id=0, eos_id=1)
    tok = Tokenizer(vocab._replace(add_bos=add_bos, add_eos=add_eos))
    text = tok.decode_bytes([0, 2, 1], remove_special=True, unparse_special=True)
    assert text == b"<s>" * (not add_bos) + b"a" + b"</s>" * (not add_eos)
    assert tok.decode_bytes([0, 2, 1], unparse_special=True) == b"<s>a</s>"
    assert tok.decode_bytes([0, 0, 2, 1, 1], remove_special=True, unparse_special=True) == (
        b"<s>" * (2 - add_bos) + b"a" + b"</s>" * (2 - add_eos)  # one of them, not all
    )


@st.composite
def decodings(draw: st.DrawFn) -> tuple[list[bytes], list[bool], DecodeFrame, list[list[int]]]:
    texts = draw(st.lists(CLEANABLE.map(lambda t: t[:4]) | st.just("é☃".encode()[:4]), min_size=1, max_size=6))
    hidden = [draw(st.booleans()) for _ in texts]
    token = st.integers(0, len(texts) - 1)
    frame = DecodeFrame(*(draw(each) for each in (st.booleans().map(int), token | st.just(-1), token | st.just(-1))),
                  *(draw(st.booleans().map(int)) for _ in range(2)))  # fmt: skip
    if draw(st.booleans()):
        texts[0] *= 7  # longer than the words of a piece
    return texts, hidden, frame, draw(st.lists(st.lists(token, max_size=12), max_size=3))


def literally_joined(texts: list[bytes], hidden: list[bool], frame: DecodeFrame, ids: list[int]) -> bytes:
    strip = frame.strip
    if ids and ids[0] == frame.bos:
        strip, ids = 0, ids[1:]
    if ids and ids[-1] == frame.eos:
        ids = ids[:-1]
    out = bytearray()
    for i in ids:
        piece = b"" if hidden[i] and not frame.special else texts[i]
        out += piece[1:] if strip and piece[:1] == b" " else piece
        strip = 0
    return literally_cleaned(out) if frame.clean else bytes(out)


@given(decodings())
def test_rows_are_joined_and_streamed_as_the_rules_say(
    vocab_of: Callable[..., Any], problem: tuple[list[bytes], list[bool], DecodeFrame, list[list[int]]]
) -> None:
    texts, hidden, frame, rows = problem
    made = build_pieces(vocab_of(texts, [CONTROL if each else USER_DEFINED for each in hidden]))
    ids, offsets = to_ids([i for row in rows for i in row], len(texts)), np.cumsum([0, *map(len, rows)])
    offsets.flags.writeable = False
    room, ends, report = 0, np.zeros(len(rows), np.int64), np.zeros(1, np.int64)
    while (code := join_rows(made, frame, ids, offsets, out := np.empty(room, np.uint8), ends, report)) == -1:
        assert report[0] > room
        room = int(report[0])
    starts = [0, *ends[:-1].tolist()]
    want = [literally_joined(texts, hidden, frame, row) for row in rows]
    assert [out[i:j].tobytes() for i, j in zip(starts, ends.tolist(), strict=False)] == want
    assert code == sum(map(len, want))

    def piece(i: int) -> bytes:
        return b"" if hidden[i] and not frame.special else texts[i]

    stream = StreamDecoder(piece, frame, "replace")
    for row, text in zip(rows, want, strict=True):
        assert "".join([*map(stream.push, row), stream.finish()]) == text.decode("utf-8", "replace")
        for at_once in (1, 2, 5):
            if len(row) > at_once:
                slices = parts_of(Decoder(None, made), to_ids(row, len(texts)), frame, at_once)  # type: ignore[arg-type]
                assert text_of(slices, "replace") == text.decode("utf-8", "replace")


def test_a_stream_gives_whole_characters_as_soon_as_they_are_there(spm: Tokenizer) -> None:
    stream = spm.stream_decoder()
    ids = [4 + b for b in "é☃!".encode()]
    assert [stream.push(i) for i in ids] == ["", "é", "", "", "☃", "!"]
    assert stream.push(4 + 0xE2) == ""
    assert stream.finish() == "\ufffd"
    with pytest.raises(InvalidToken, match="token -1"):
        stream.push(-1)
    assert stream.push(4 + 65) == "A"


def test_a_word_is_not_held_back_by_cleaning(vocab_of: Callable[..., Any]) -> None:
    vocab = vocab_of([b"Hello", b" wor", b"ld", b" ", b"."], [USER_DEFINED] * 5, clean_spaces=True)
    stream = Tokenizer(vocab).stream_decoder()
    assert [stream.push(i) for i in (0, 1, 2, 3, 4)] == ["Hello", " wor", "ld", "", "."]
    assert stream.finish() == ""


@pytest.mark.parametrize("ids", [[300, 1], (300, 1), np.array([300, 1]), np.array([300, 1], np.uint16), iter([300, 1])])
def test_ids_of_any_integer_kind(ids: Any) -> None:
    made = to_ids(ids, 400)
    assert made.tolist() == [300, 1]
    assert made.dtype == np.int32
    assert not made.flags.writeable


@pytest.mark.parametrize(("mask", "left"), [([0, 1, 0], [300, 2]), (False, [300, 1, 2]), (True, [])])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_masked_ids_are_left_out(dtype: Any, mask: Any, left: list[int]) -> None:
    assert to_ids(np.ma.array([300, 1, 2], dtype, mask=mask), 400).tolist() == left


@pytest.mark.parametrize("wrong", [-1, 400, 2**31, -(2**40), 2**63, 2**70])
def test_an_id_outside_is_named(wrong: int, spm: Tokenizer) -> None:
    with pytest.raises(InvalidToken, match=f"token {wrong}: expected 0 <= id < {spm.vocab_size}") as caught:
        spm.decode_bytes([5, wrong])
    assert caught.value.token == wrong
    assert isinstance(caught.value, IndexError)
    with pytest.raises(InvalidToken, match=f"token {wrong}"):
        spm.token_to_piece(wrong)


def test_the_first_id_outside_is_that_behind_the_last(spm: Tokenizer) -> None:
    size = spm.vocab_size
    assert spm.decode_bytes([size - 1]) == spm.token_to_piece(size - 1)
    for ids in ([size], [5, size], [size, 5]):
        with pytest.raises(InvalidToken, match=f"token {size}: expected 0 <= id < {size}"):
            spm.decode_bytes(ids)
        with pytest.raises(InvalidToken, match=f"token {size}"):
            spm.decode_batch([[5], ids])
    out, report = np.empty(100, np.uint8), np.zeros(1, np.int64)
    ids, offsets = to_ids([5, size - 1], size), np.array([0, 2])
    offsets.flags.writeable = False
    made = build_pieces(spm.vocab)
    assert join_rows(made, DecodeFrame(0, -1, -1, 0, 0), ids, offsets, out, np.zeros(1, np.int64), report) >= 0
    ids = to_ids([5, size], size + 1)
    assert join_rows(made, DecodeFrame(0, -1, -1, 0, 0), ids, offsets, out, np.zeros(1, np.int64), report) == BAD_ID
    assert report[0] == 1


@pytest.mark.parametrize("wrong", [[1.5], ["a"], [None], [[1]], [True], "12", 5.0])
def test_what_is_no_id_is_a_type_error(wrong: Any, spm: Tokenizer) -> None:
    with pytest.raises(TypeError):
        spm.decode_bytes(wrong)
