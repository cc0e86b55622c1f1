"""The search for special tokens in texts of which a part is literal, against the references of both rules."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.common.pipeline.pipeline import AddedToken
from jittok.encode.literal import counts_of
from jittok.errors import MixedToken
from jittok.kernels.fragments import MIXED_TOKEN, NEED, OFFSET, OUT_OF_CAPACITY, OUT_OF_WORK
from jittok.kernels.special import tables
from jittok.kernels.special.leftmost import cut_leftmost
from jittok.kernels.special.partition import cut_documents, make_work
from jittok.kernels.special.search import MIXED_FAILS, MIXED_IS_TEXT
from jittok.kernels.special.tables import GUARDED, LSTRIP, RSTRIP, STRIPS_LEFT, STRIPS_RIGHT, build_special
from jittok.kernels.special.user_defined_pieces import cut_user_defined
from jittok.reference.special import Literal, Search, partition

USER_DEFINED = 16
Cut = list[tuple[int | None, int, int]]
Run = Callable[..., int]


def cut_by_kernel(run: Run, text: bytes, marked: list[int], mixed_is_text: bool) -> Cut | str:
    """Fragments of one text by a kernel that starts with hardly any memory; "mixed" if it says so.

    run(work, data, starts, stops, out_starts, out_stops, out_tokens, ends, report) -> a code
    """
    data, starts, stops = np.frombuffer(text, np.uint8), np.zeros(1, np.int64), np.array([len(text)])
    for array in (starts, stops):
        array.flags.writeable = False
    size, long, room, report = 1, 0, 1, np.zeros(4, np.int64)
    while True:
        work = make_work(size, long)._replace(
            literal=counts_of(np.array(marked, bool)), mixed=MIXED_IS_TEXT if mixed_is_text else MIXED_FAILS
        )
        out: list[Any] = [np.empty(room, kind) for kind in (np.int64, np.int64, np.int32)]
        code = run(work, data, starts, stops, *out, np.empty(1, np.int64), report)
        if code == OUT_OF_CAPACITY:
            room = int(report[NEED])
        elif code == OUT_OF_WORK:
            size, long = max(size, int(report[NEED])), int(report[NEED])
        elif code == MIXED_TOKEN:
            assert sum(marked[int(report[OFFSET]) :]) > 0
            return "mixed"
        else:
            columns = (each[:code].tolist() for each in out)
            return [(None if t < 0 else t, a, b) for a, b, t in zip(*columns, strict=True)]


def or_mixed(run: Callable[[], Any]) -> Cut | str:
    try:
        return [tuple(each) for each in run()]
    except MixedToken:
        return "mixed"


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[bytes], list[int], bytes, list[int]]:
    """(tokens, their flags, a text, 1 where it is literal)."""
    letters = st.sampled_from([bytes([b]) for b in draw(st.sampled_from([b"ab", b"ab ", b"a \n", b"abc <>", b"a"]))])
    texts = st.lists(letters, min_size=1, max_size=6).map(b"".join)
    tokens = draw(st.lists(texts, min_size=1, max_size=10, unique=True))
    flags = [draw(st.sampled_from([0, 0, 0, LSTRIP, RSTRIP, LSTRIP | RSTRIP])) for _ in tokens]
    parts = draw(st.lists(letters | st.sampled_from(tokens), max_size=20))
    marked = [bit for part in parts for bit in [draw(st.integers(0, 1))] * len(part)]
    return tokens, flags, b"".join(parts), marked


def guarded_of(tokens: list[bytes], every: bool) -> frozenset[int]:
    return frozenset(range(len(tokens)) if every else range(0, len(tokens), 2))


LONG = b"ab" * 200, b"ab" * 150, b"ab" * 140


@given(problems(), st.booleans(), st.booleans())
@example(([b"<s>"], [0], b"a<s>b<s>", [0] * 5 + [1] * 3), True, False)
@example(([b"ab", b"bcd"], [0, 0], b"abcd", [1, 1, 1, 0]), True, False)
@example(([b"ab", b"bcd"], [0, 0], b"abcd", [1, 1, 1, 1]), False, False)
@example(([b"aaaa", b"aa", b"a"], [0, 0, 0], b"aaaaaaa", [0, 0, 1, 1, 1, 1, 0]), False, True)
@example(([*LONG], [0, 0, 0], b"ab" * 290, [1] * 560 + [0] * 20), True, True)
@example(([*LONG], [0, 0, 0], b"ab" * 290, [1] * 560 + [0] * 20), False, True)
def test_token_by_token_no_guarded_token_is_literal(
    vocab_of: Callable[..., Any], problem: tuple[list[bytes], list[int], bytes, list[int]], every: bool, as_text: bool
) -> None:
    tokens, flags, text, marked = problem
    vocab, guarded = vocab_of(tokens, [USER_DEFINED | each for each in flags]), guarded_of(tokens, every)
    special = build_special(vocab, vocab.special_tokens, guarded)

    def run(work: Any, data: Any, starts: Any, stops: Any, *out: Any) -> int:
        return int(cut_documents(special, work, data, starts, stops, 0, 1, -1, -1, *out))

    literal = Literal(bytes(marked), guarded, as_text)
    expected = or_mixed(lambda: partition(vocab, text, True, literal=literal))
    assert cut_by_kernel(run, text, marked, as_text) == expected


@given(problems(), st.booleans(), st.booleans())
@example(([b"abcd", b"ab", b"c"], [0, 0, 0], b"abcdabcd", [1] * 4 + [0] * 4), False, False)
@example(([b"ab", b"abc"], [0, 0], b"abcab", [1, 1, 0, 1, 1]), True, False)
@example(([*LONG], [0, 0, 0], b"ab" * 290, [1] * 560 + [0] * 20), False, True)
def test_leftmost_longest_no_guarded_token_is_literal(
    problem: tuple[list[bytes], list[int], bytes, list[int]], every: bool, as_text: bool
) -> None:
    tokens, flags, text, marked = problem
    guarded = guarded_of(tokens, every)
    search = Search(
        [
            (token.decode(), AddedToken(token.decode(), k, True, False, bool(f & LSTRIP), bool(f & RSTRIP), False))
            for k, (token, f) in enumerate(zip(tokens, flags, strict=True))
        ]
    )
    literal = Literal(bytes(marked), guarded, as_text)
    expected = or_mixed(lambda: search.cut(text.decode(), True, literal.admits))
    found = cut_by_kernel(leftmost(tokens, flags, guarded), text, marked, as_text)
    if found != "mixed" and expected != "mixed":  # white space between two tokens may belong to either
        assert [part for part in found if part[0] is None] == [part for part in expected if part[0] is None]
        assert [part[0] for part in found] == [part[0] for part in expected]  # type: ignore[union-attr]
    else:
        assert found == expected


def leftmost(tokens: list[bytes], flags: list[int], guarded: frozenset[int]) -> Run:
    special, none = tables_for(tokens, flags, guarded), tables_for([], [], guarded)
    empty = np.zeros(0, np.int32)
    empty.flags.writeable = False

    def run(work: Any, data: Any, starts: Any, stops: Any, *out: Any) -> int:
        return int(cut_leftmost(special, none, work, data, starts, stops, 0, 1, empty, empty, *out))

    return run


def tables_for(tokens: list[bytes], flags: list[int], guarded: frozenset[int]) -> tables.SpecialTokens:
    order = sorted(range(len(tokens)), key=lambda k: -len(tokens[k]))
    strips = [
        (STRIPS_LEFT if flags[k] & LSTRIP else 0)
        | (STRIPS_RIGHT if flags[k] & RSTRIP else 0)
        | (GUARDED if k in guarded else 0)
        for k in order
    ]
    return tables.tables_of([tokens[k] for k in order], np.array(order, np.int32), np.array(strips, np.uint8))


@given(problems(), st.booleans(), st.booleans())
def test_user_defined_pieces_are_guarded_by_the_same_rule(
    problem: tuple[list[bytes], list[int], bytes, list[int]], every: bool, as_text: bool
) -> None:
    tokens, _, text, marked = problem
    guarded, flags = guarded_of(tokens, every), [0] * len(tokens)
    special = tables_for(tokens, flags, guarded)
    empty = np.zeros(0, np.int32)
    empty.flags.writeable = False

    def run(work: Any, data: Any, starts: Any, stops: Any, *out: Any) -> int:
        return int(cut_user_defined(special, empty, work, data, starts, stops, 0, 1, empty, empty, *out))

    expected = cut_by_kernel(leftmost(tokens, flags, guarded), text, marked, as_text)
    assert cut_by_kernel(run, text, marked, as_text) == expected


@pytest.mark.parametrize("number", [1, 2])
def test_a_long_literal_run_takes_no_longer_than_its_bytes(vocab_of: Callable[..., Any], number: int) -> None:
    tokens = [b"a" * size for size in range(1, 60)]
    vocab = vocab_of(tokens, [USER_DEFINED] * len(tokens))
    special = build_special(vocab, vocab.special_tokens, frozenset(range(len(tokens))))
    text = b"a" * (40_000 * number)

    def run(work: Any, data: Any, starts: Any, stops: Any, *out: Any) -> int:
        return int(cut_documents(special, work, data, starts, stops, 0, 1, -1, -1, *out))

    assert cut_by_kernel(run, text, [1] * len(text), False) == [(None, 0, len(text))]
