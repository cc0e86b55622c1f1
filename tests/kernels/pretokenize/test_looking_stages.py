"""Stages that look around, or read on from every place: the kernel cuts where the plain search finds matches, in linear
time, and nothing outside of a piece says anything."""

import random
from itertools import pairwise

import numpy as np
import pytest
from amounts import amount
from drawn_looks import drawn_look, drawn_looked_at

from jittok.common.pipeline.patterns import PatternError, check_pattern, compiled, explicit
from jittok.common.pipeline.steps import ISOLATED, Cut, Pattern
from jittok.kernels.jit import JIT, U8, frozen, kernel
from jittok.kernels.memory import PAD, window
from jittok.kernels.pretokenize import lookaround_dfa, matcher
from jittok.kernels.pretokenize.compile import splitter_of_stages
from jittok.kernels.pretokenize.splitters import lookaround_stage
from jittok.kernels.pretokenize.splitters.general import (
    LOOKAROUND,
    Splitter,
    SplitWork,
    make_split_work,
    open_split,
    open_splitter,
    split_text,
)

PATTERNS = amount(60, 25, 8)
REAL = {
    "SuperBPE": (r"\p{N}+", r"(?=(\d{3})+(?!\d))"),
    "digits from the right": (r"\d{1,3}(?=(?:\d{3})*\b)",),
    "numbers from the right": (r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))",),
    "Tiny Aya": (r"\d{1,3}(?=(?:\d{3})*\b)", r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
    "DeepSeek": (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"\s+$", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}+"),
    "camel case": (r"(?<=[a-z])(?=[A-Z])",),
    "each digit": (r"(?<=\d)(?=\d)",),
    "tags": (r"<[^>]*>",),
    "words": (r"\b\w+\b",),
    "lines": (r"^\s+|\w+$|\s+\z",),
    "reads on": (r"a*b", r"(?:ab)*c|a|b"),
    "powers": ("|".join(rf"\s{{{2**k}}}(?!\S)" for k in range(5, 1, -1)) + r"|\s{1,2}(?!\S)|\s{1}|[\s\S]*x",),
}


@kernel
def split_all(splitter: Splitter, text: U8, size: int, work: SplitWork) -> int:
    return split_text(open_splitter(splitter), window(text), 0, size, open_split(work), False)


def stages_of(patterns):
    return tuple(Cut(Pattern(pattern), ISOLATED) for pattern in patterns)


def cuts(splitter, text, filling=0):
    """Where pieces begin, in bytes, and the end."""
    raw = text.encode()
    data = frozen(np.frombuffer(raw + bytes([filling]) * PAD, np.uint8), np.uint8)
    work = make_split_work(len(raw), splitter)
    for array in work:
        array.view(np.uint8)[:] = filling
    assert split_all(splitter, data, len(raw), work) == len(raw)
    bits = np.unpackbits(work.cuts.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits[: len(raw) + 1]).tolist()


def plain(patterns, text):
    """The same by the plain search, each pattern on each piece of the one before as on a text of its own."""
    borders = {0, len(text)}
    for pattern in patterns:
        search, places = compiled(Pattern(pattern)), sorted(borders)
        for start, stop in pairwise(places):
            for match in search.finditer(text[start:stop]):
                borders |= {start + place for place in match.span()}
    before = np.cumsum([0, *(len(c.encode()) for c in text)])
    return sorted({int(before[place]) for place in borders})


def known(pattern):
    try:
        check_pattern(Pattern(pattern), empty=True)
    except PatternError:
        return False
    return True


@pytest.mark.parametrize("name", REAL)
def test_patterns_of_models_are_cut_by_kernels_where_the_plain_search_finds_them(name):
    patterns, draw = REAL[name], random.Random(name)
    splitter = splitter_of_stages(stages_of(patterns))
    assert splitter is not None
    assert LOOKAROUND in splitter.kinds.tolist()
    parts = [*"1aBéx中<>,. \n\t", "12", "123", "1234567", "ab", "aB", "cD", "<b>", "  ", "\n\n", "\r\n"]
    for k in range(amount(120, 50, 12)):
        text = "".join(draw.choices(parts, k=draw.randrange(4 + k)))
        assert cuts(splitter, text, k % 256) == plain(patterns, text), text


def test_drawn_patterns_are_cut_where_the_plain_search_finds_them():
    draw, looking = random.Random(6), 0
    for _ in range(PATTERNS):
        patterns = [each for each in (drawn_look(draw) for _ in range(draw.choice([1, 1, 2, 3]))) if known(each)]
        splitter = splitter_of_stages(stages_of(patterns))
        if splitter is None:
            continue
        looking += LOOKAROUND in splitter.kinds.tolist()
        for _ in range(12):
            text = drawn_looked_at(draw)
            assert cuts(splitter, text, draw.randrange(256)) == plain(patterns, text), (patterns, text)
    assert looking > PATTERNS // 2


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"a(?:[ab]*c)?|[ab]*d", "aaabaadbb"),  # what is read in vain begins after a match, in the state of that place
        (r"[ab]+(?:[abc]*d)?|c[abc]*e|c", "daaccbe"),
        ("|".join(f"{c}[0-9{c}]*x" for c in "abcdefghijk"), "".join(f"{a}1{b}1x" for a in "aceik" for b in "aceik")),
    ],
)
def test_what_is_remembered_of_one_search_does_not_end_another(pattern, text):
    assert cuts(splitter_of_stages(stages_of((pattern,))), text) == plain((pattern,), text)


def test_a_machine_has_no_more_of_anything_than_there_is_room_for(monkeypatch):
    found = matcher.lookaround_of(explicit(r"(?<=ab)(?=(?!cd)[a-z]e)|(?:fg)*h"))
    machine = lookaround_dfa._machine(found)
    looks, states = len(found.looks), len(machine.parts[-1].remembered)
    assert (looks, states > 0) == (3, True)
    sizes = {
        "BYTE": looks, "MOST_BITS": looks + states, "MOST_CLASSES": machine.width - 1, "MOST_INNER": 1,
        "MOST_STATES": max(part.rows.shape[0] for part in machine.parts[:-1]),
    }  # fmt: skip
    for module, name, size in [
        *((lookaround_dfa, *each) for each in sizes.items()),
        (matcher, "MOST_REMEMBERED", states),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, size)
            lookaround_dfa._machine(found)
            patch.setattr(module, name, size - 1)
            with pytest.raises(ValueError, match=r"\d"):
                lookaround_dfa._machine(found)


@pytest.mark.skipif(JIT, reason="counts what plain Python reads")
@pytest.mark.parametrize(("pattern", "unit"), [(r"a*b", "a"), (r"(?:ab)*c|a|b", "ab"), (r"(?<!x)a+(?=b)", "a")])
def test_the_search_reads_each_character_a_few_times(pattern, unit, monkeypatch):
    read, entry = 0, lookaround_stage._entry

    def counted(*args):
        nonlocal read
        read += 1
        return entry(*args)

    monkeypatch.setattr(lookaround_stage, "_entry", counted)
    splitter, text = splitter_of_stages(stages_of((pattern,))), unit * (300 // len(unit))
    cuts(splitter, text)
    assert 0 < read < 6 * len(text)
