"""Which units the inputs are cut into."""

from jittok.corpus.inputs.sources import Source
from jittok.corpus.options import Options
from jittok.corpus.ranges import units as ranges
from jittok.corpus.ranges.units import Unit, units

STEP = 100


def source(kind, size, packing=""):
    return Source(f"{kind}{size}", size, "", kind, packing)


def test_only_lines_that_can_be_read_from_anywhere_are_cut():
    options = Options(range_bytes=STEP)
    for kind in ("lines", "jsonl"):
        assert list(units([source(kind, 250)], options)) == [
            Unit(0, 0, 0, 0, 100), Unit(0, 1, 0, 100, 200), Unit(0, 2, 0, 200, 250),
        ]  # fmt: skip
    for whole in (source("lines", 250, "gz"), source("jsonl", None), source("separated", 250), source("arrow", 250)):
        assert list(units([whole], options)) == [Unit(0, 0, 0, 0, 0)]


def test_whole_files_are_gathered_until_a_range_is_full(monkeypatch):
    options = Options(range_bytes=STEP)
    small = [source("txt", 40) for _ in range(7)]
    assert [(u.source, u.last) for u in units(small, options)] == [(0, 2), (3, 5), (6, 6)]
    assert [(u.source, u.last) for u in units(small[:2], options)] == [(0, 1)]
    mixed = [*small[:2], source("arrow", 5), source("jsonl", 99), source("jsonl", 100, "gz"), small[0]]
    assert [(u.source, u.last) for u in units(mixed, options)] == [(0, 3), (4, 4), (5, 5)]
    before = Options(range_bytes=STEP, cuts=1)  # corpora that were begun when only .txt was gathered
    assert [(u.source, u.last) for u in units(mixed, before)] == [(0, 1), (2, 2), (3, 3), (4, 4), (5, 5)]
    monkeypatch.setattr(ranges, "GROUP_FILES", 2)
    assert [(u.source, u.last) for u in units(small[:5], options)] == [(0, 1), (2, 3), (4, 4)]
