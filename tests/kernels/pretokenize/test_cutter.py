"""A cutter cuts in one pass where a matcher, started again at each of its ends, finds matches and gaps."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from patterns import LETTERS, first_match, patterns

from jittok.kernels.pretokenize import cutter as construction
from jittok.kernels.pretokenize.automaton import compile_pattern
from jittok.kernels.pretokenize.compile import splitter_of
from jittok.kernels.pretokenize.cutter import ASK, HERE, NOTED, PREVIOUS, REMEMBER, build_cutter
from jittok.kernels.pretokenize.definition import pre_type, pre_types
from jittok.kernels.pretokenize.splitters.cutter_stage import ACTION_BITS, COLUMNS, ROW_BITS
from jittok.kernels.pretokenize.splitters.general import CUTTER, MATCHER
from jittok.kernels.pretokenize.tables import _pair_table

GPT2 = rb"'s| ?a+| ?1+| ?[^\sa1]+|\s+(?!\S)|\s+"
LLAMA3 = rb"[^\na1]?a+|1{1,3}| ?[^\sa1]+\n*|\s*\n+|\s+(?!\S)|\s+"


def built(pattern):
    """(automaton, cutter or None)."""
    try:
        automaton = compile_pattern(pattern, 256)
    except ValueError:
        return None, None
    return automaton, build_cutter(automaton.transitions.reshape(-1, automaton.width))


def columns_of(automaton, text, before):
    """The columns that the characters are read by, and the end of the text; before: places that are cuts already."""
    classes = [int(automaton.classes[np.searchsorted(automaton.starts, byte, "right") - 1]) for byte in text]
    return [2 * c + (i in before or i == 0) for i, c in enumerate(classes)] + [1]


def cut(cutter, columns):
    """The cuts, by the table alone."""
    row, noted, cuts = 0, None, set()
    for i, column in enumerate(columns):
        actions = int(cutter.actions[row, column])
        assert actions & ASK == 0
        if actions & HERE:
            cuts.add(i)
        if actions & PREVIOUS:
            cuts.add(i - 1)
        if actions & NOTED:
            cuts.add(noted)
        if actions & REMEMBER:
            noted = i - 1
        row = cutter.next_row[row, column]
    return cuts


def expected(automaton, text, before):
    """Matches and gaps of each piece that the cuts before leave."""
    cuts = {0, len(text), *before}
    borders = sorted(cuts)
    for begin, end in itertools.pairwise(borders):
        at = begin
        while at < end:
            match = first_match(automaton, list(text[:end]), at)
            if match is None:
                at += 1
            else:
                cuts |= {at, match}
                at = match
    return cuts


@given(
    patterns,
    st.lists(st.sampled_from(LETTERS), min_size=1, max_size=16).map(bytes),
    st.sets(st.integers(1, 15), max_size=2),
)
@example(GPT2, b"  a's   1\n\n  'a ", set())
@example(LLAMA3, b"\n\n    a  \n   ''\n\n 1111a", set())
@example(rb" ?[^ '\n]+", b"'' ab\n  a'", {3})
@example(rb"a1b| ?ab", b"a1 ab a1b", set())
def test_drawn_patterns_are_cut_where_matches_begin_and_end(pattern, text, before):
    automaton, cutter = built(pattern)
    assume(cutter is not None)
    before = {i for i in before if i < len(text)}
    columns = columns_of(automaton, text, before)
    cuts = cut(cutter, columns)
    assert cuts == expected(automaton, text, before)
    for i in range(1, len(text)):
        if cutter.sure[columns[i - 1] // 2, columns[i] // 2]:
            assert i in cuts


def test_the_common_patterns_have_cutters_and_sure_cuts():
    for pattern in (GPT2, LLAMA3):
        automaton, cutter = built(pattern)
        a, space = (columns_of(automaton, b"a ", ())[i] // 2 for i in (0, 1))
        assert cutter.sure[a, space]
        assert not cutter.sure[space, a]


def test_every_pre_type_is_cut_without_reading_anything_twice():
    """Each has one stage at least that cuts in one pass, and none with many beginnings is left to a matcher."""
    for pre in pre_types():
        assert (splitter_of(pre.patterns).kinds >= CUTTER).any(), pre.name


def test_what_would_have_to_ask_has_no_cutter():
    _, cutter = built(rb"a{4}(?!\S)|a{2}(?!\S)|a|[^a]")
    assert cutter is None


def test_a_pattern_of_too_many_configurations_has_no_cutter(monkeypatch):
    monkeypatch.setattr(construction, "MOST_CONFIGURATIONS", 5)
    assert built(LLAMA3)[1] is None


@pytest.mark.parametrize("number", [pre.number for pre in pre_types()])
def test_tables_lead_only_to_rows_of_their_own_stage(number):
    splitter = splitter_of(pre_type(number).patterns)
    for cutters in (False, True):
        table = splitter.cutters if cutters else splitter.tables
        stages = [k for k, kind in enumerate(splitter.kinds.tolist()) if kind == (CUTTER if cutters else MATCHER)]
        begins = splitter.tables_at[stages].tolist()
        for k, begin, end in zip(stages, begins, [*begins, table.size][1:], strict=True):
            if cutters:
                shift, width = 2 * ACTION_BITS - ROW_BITS, int(splitter.widths[k])
                read, pitch = width * width, -(-width * width >> ROW_BITS) << ROW_BITS
                assert splitter.columns[COLUMNS * k :][:COLUMNS].max() + 1 < width
            else:
                shift, read, pitch = ACTION_BITS, splitter.width, splitter.width
            places = table[begin:end].reshape(-1, pitch)[:, :read] >> shift  # the rest fills rows up
            if cutters:
                places &= -1 << ROW_BITS
            assert (places >= begin).all()
            assert (places + read <= end).all()
            assert ((places - begin) % pitch == 0).all()


def test_a_step_of_two_columns_is_two_steps():
    """The table of pairs against the cutter that it was made of, all rows and all columns."""
    _, cutter = built(LLAMA3)
    table, columns = _pair_table(cutter)
    width = 2 * (int(columns.max()) + 1)
    of = [2 * int(columns[c >> 1]) + (c & 1) for c in range(cutter.next_row.shape[1])]
    for row, a, b in itertools.product(range(len(table)), range(len(of)), range(len(of))):
        middle = cutter.next_row[row, a]
        entry = table[row, of[a] * width + of[b]]
        assert entry >> 2 * ACTION_BITS == cutter.next_row[middle, b]
        assert entry & 0xFF == cutter.actions[row, a]
        assert entry >> ACTION_BITS & 0xFF == cutter.actions[middle, b]
