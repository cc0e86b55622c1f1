"""The one pass of `special` against llama.cpp's procedure, token by token."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.kernels.fragments import NEED, OUT_OF_CAPACITY, OUT_OF_WORK
from jittok.kernels.jit import JIT
from jittok.kernels.special import tables
from jittok.kernels.special.partition import cut_documents, make_work
from jittok.kernels.special.tables import CONTROL, LSTRIP, RSTRIP, UNKNOWN, compile_special

USER_DEFINED = 16
BLANKS = b" \t\n\v\f\r"
Cut = list[int | bytes]


def literally(vocab: Any, text: bytes, parse_special: bool) -> Cut:
    """llama.cpp's tokenizer_st_partition: each token is searched in all that is still text."""
    buffer: Cut = [text] if text else []
    for i in vocab.special_tokens.tolist():
        attribute, token = int(vocab.attributes[i]), vocab.tokens[i]
        if attribute & (CONTROL | UNKNOWN) and not parse_special:
            continue
        after: Cut = []
        for fragment in buffer:
            if isinstance(fragment, int):
                after.append(fragment)
                continue
            rest = fragment
            while (at := rest.find(token)) >= 0:
                left, rest = rest[:at], rest[at + len(token) :]
                left = left.rstrip(BLANKS) if attribute & LSTRIP else left
                rest = rest.lstrip(BLANKS) if attribute & RSTRIP else rest
                after += [left, i] if left else [i]
            after += [rest] if rest else []
        buffer = after
    return buffer


def cut(tables: tables.SpecialTokens, texts: list[bytes], before: int = -1, after: int = -1) -> list[Cut]:
    """Fragments by the kernel, which starts with hardly any memory."""
    data, offsets = np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)])
    offsets.flags.writeable = False
    work, room, report = make_work(1), 1, np.zeros(4, np.int64)
    while True:  # each round has more memory than the one before
        starts, stops, tokens = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32)
        ends = np.empty(len(texts), np.int64)
        code = cut_documents(
            tables,
            work,
            data,
            offsets[:-1],
            offsets[1:],
            0,
            len(texts),
            before,
            after,
            starts,
            stops,
            tokens,
            ends,
            report,
        )
        if code == OUT_OF_CAPACITY:
            assert report[NEED] > room
            room = int(report[NEED])
        elif code == OUT_OF_WORK:
            assert report[NEED] > work.keys.size
            work = make_work(int(report[NEED]))
        else:
            assert code == (ends[-1] if len(texts) else 0)
            break
    rows, at = [], 0
    for end in ends.tolist():
        rows.append(
            [int(tokens[k]) if tokens[k] >= 0 else data[starts[k] : stops[k]].tobytes() for k in range(at, end)]
        )
        at = end
    return rows


ALPHABETS = st.sampled_from([b"ab", b"ab ", b"a \n", b"abc <>", b" "])
KINDS = st.sampled_from([USER_DEFINED, CONTROL, UNKNOWN])
STRIPS = st.sampled_from([0, 0, LSTRIP, RSTRIP, LSTRIP | RSTRIP])


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[bytes], list[int], list[bytes]]:
    letter = draw(ALPHABETS)
    letters = st.sampled_from([bytes([b]) for b in letter])
    tokens = draw(
        st.lists(st.lists(letters, min_size=1, max_size=6).map(b"".join), min_size=1, max_size=12, unique=True)
    )
    attributes = [draw(KINDS) | draw(STRIPS) for _ in tokens]
    texts = draw(st.lists(st.lists(letters | st.sampled_from(tokens), max_size=25).map(b"".join), max_size=4))
    return tokens, attributes, texts


@given(problems(), st.booleans())
@example(([b"ab", b"bcd"], [16, 16], [b"abcd"]), False)
@example(([b" ", b"  a"], [16, 16 | LSTRIP], [b"x    a   a "]), False)
@example(([b"a ", b"a"], [16 | RSTRIP, 16], [b"a    a  aa  "]), False)
@example(([b"<s>"], [CONTROL], [b"a<s>b", b"", b"<s>", b"<s"]), True)
@example(([b"<s>"], [CONTROL], [b"a<s>b" * 40]), True)  # nothing begins inside of another: blocks tell that
@example(([b"dxyzw", b"abcd", b"ab"], [16, 16, 16], [b"abcdxyzw"]), False)  # abcd is not free, abc is no token
def test_one_pass_cuts_as_token_after_token(
    vocab_of: Callable[..., Any], problem: tuple[list[bytes], list[int], list[bytes]], parse_special: bool
) -> None:
    tokens, attributes, texts = problem
    vocab = vocab_of(tokens, attributes)
    assert cut(compile_special(vocab, parse_special), texts) == [
        literally(vocab, text, parse_special) for text in texts
    ]


def test_what_is_stripped_is_what_c_calls_space(vocab_of: Callable[..., Any]) -> None:
    tables = compile_special(vocab_of([b"<t>"], [USER_DEFINED | LSTRIP | RSTRIP]), False)
    for byte in range(256):
        each = bytes([byte])
        rest = b"" if each in BLANKS else each
        left = [b"ab" + rest] if rest else [b"ab"]
        assert cut(tables, [b"ab" + each + b"<t>" + each + b"ab"]) == [[*left, 0, rest + b"ab"]], each


def test_longest_first_over_the_whole_text_is_not_leftmost_longest(vocab_of: Callable[..., Any]) -> None:
    vocab = vocab_of([b"ab", b"bcd"], [USER_DEFINED] * 2)
    assert cut(compile_special(vocab, False), [b"abcd"]) == [[b"a", 1]]


def test_control_tokens_are_text_unless_parsed(vocab_of: Callable[..., Any]) -> None:
    vocab = vocab_of([b"<s>", b"<t>", b"<u>", b"<both>"], [CONTROL, USER_DEFINED, UNKNOWN, CONTROL | USER_DEFINED])
    text = b"x<s><t><u><both>"
    assert cut(compile_special(vocab, False), [text]) == [[b"x<s>", 1, b"<u><both>"]]
    assert cut(compile_special(vocab, True), [text]) == [[b"x", 0, 1, 2, 3]]


def test_a_frame_stands_around_each_document_also_around_empty_ones(vocab_of: Callable[..., Any]) -> None:
    tables = compile_special(vocab_of([b"<t>"], [USER_DEFINED]), False)
    assert cut(tables, [b"a<t>", b"", b"b"], 7, 8) == [[7, b"a", 0, 8], [7, 8], [7, b"b", 8]]
    assert cut(tables, [b"", b""]) == [[], []]
    assert cut(tables, []) == []


@pytest.mark.parametrize("character", [b" ", b"\n"])
def test_a_long_run_under_thirty_overlapping_tokens_is_cut_at_once(
    vocab_of: Callable[..., Any], character: bytes
) -> None:
    vocab = vocab_of([character * n for n in range(2, 32)], [USER_DEFINED] * 30)
    size = 31 * 200 + 5
    (row,) = cut(compile_special(vocab, False), [character * size])
    assert row == [29] * 200 + [3]


def test_a_long_run_that_another_token_reaches_into_takes_no_longer(vocab_of: Callable[..., Any]) -> None:
    """The run is part of a cluster then, and each of its places begins a token."""
    vocab = vocab_of([b"\r\n", *(b"\n" * n for n in (2, 3, 4, 8))], [USER_DEFINED] * 5)
    tables, size = compile_special(vocab, False), 400_000 if JIT else 4_000
    cut(tables, [b"\r\n"])  # may compile
    began = time.process_time()
    (row,) = cut(tables, [b"\r" + b"\n" * size])
    assert row == [b"\r", *[4] * (size // 8)]  # the longest first
    assert time.process_time() - began < 5  # a look at the whole run from each place would take 20 s


def test_tokens_that_win_from_right_to_left_go_through_the_heap(vocab_of: Callable[..., Any]) -> None:
    vocab = vocab_of([b"aab", b"aa", b"ba"], [USER_DEFINED] * 3)
    text = b"aab" * 100 + b"aaaba" * 100
    assert cut(compile_special(vocab, False), [text]) == [literally(vocab, text, False)]


@st.composite
def run_problems(draw: st.DrawFn) -> tuple[list[bytes], list[bytes]]:
    """Tokens that are runs of one character, as Gemma's, with and without others that reach into a run."""
    runs = [byte * size for byte in (b" ", b"\n") for size in draw(st.sets(st.integers(1, 9), max_size=6))]
    others = draw(st.lists(st.sampled_from([b"<", b"<\n", b"<  ", b"\n<", b"\n ", b"x \n"]), max_size=3, unique=True))
    parts = st.sampled_from([b" ", b"\n", b"<", b"x"])
    text = st.lists(st.tuples(parts, st.integers(1, 20)).map(lambda pair: pair[0] * pair[1]), max_size=12)
    return runs + others, draw(st.lists(text.map(b"".join), min_size=1, max_size=3))


@given(run_problems())
def test_runs_are_cut_as_token_after_token(
    vocab_of: Callable[..., Any], problem: tuple[list[bytes], list[bytes]]
) -> None:
    tokens, texts = problem
    vocab = vocab_of(tokens, [USER_DEFINED] * len(tokens))
    # texts of 65 bytes and more go through the search by blocks
    padded = [text + b"y" * 70 for text in texts]
    assert cut(compile_special(vocab, False), texts + padded) == [
        literally(vocab, text, False) for text in texts + padded
    ]


@pytest.mark.parametrize("behind", [b"", b"b", b"bc\n", b"b" * 70])
def test_a_run_ends_where_another_byte_stands_however_few_bytes_follow(
    vocab_of: Callable[..., Any], behind: bytes
) -> None:
    vocab = vocab_of([b"\n\n", b"\n\n\n"], [USER_DEFINED] * 2)
    text = b"a\n\n" + behind
    assert cut(compile_special(vocab, False), [text]) == [[b"a", 0, *([behind] if behind else [])]]
