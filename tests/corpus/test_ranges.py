"""Every document belongs to exactly one range, and which one depends on its place alone."""

from __future__ import annotations

import hashlib
import io
import os
import platform
import subprocess
import sys
from itertools import pairwise
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jittok.corpus.inputs.sources import Source
from jittok.corpus.options import Options
from jittok.corpus.ranges import cutting
from jittok.corpus.ranges.cutting import Limit, cut_lines, cut_separated, interval
from jittok.corpus.ranges.units import Unit, read_unit, units

texts = st.lists(st.binary(max_size=12).map(lambda raw: raw.replace(b"\n", b"")), max_size=20)
steps = st.integers(1, 30)


def limit(most=1 << 30):
    return Limit("name", most, "line")


def chopped(data, size):
    """A reader that never gives more than `size` bytes at once."""
    file = io.BytesIO(data)
    return lambda count: file.read(min(count, size))


@given(lines=texts, ending=st.booleans(), step=steps, size=st.integers(1, 40))
def test_lines_of_a_stream_belong_to_the_range_they_begin_in(lines, ending, step, size):
    data = b"\n".join(lines) + (b"\n" if ending else b"")
    blocks = list(cut_lines(chopped(data, size), step, limit()))
    assert b"".join(block for _, block in blocks) == data
    at = 0
    for number, block in blocks:
        assert at // step == number
        starts = [at, *(at + k + 1 for k in range(len(block) - 1) if block[k] == ord("\n"))]
        assert {start // step for start in starts} == {number}
        at += len(block)


@given(lines=texts, ending=st.booleans(), step=steps)
def test_intervals_of_a_file_are_the_ranges_of_a_stream(lines, ending, step):
    data = b"\n".join(lines) + (b"\n" if ending else b"")
    found = [
        (k, interval(io.BytesIO(data), i, min(i + step, len(data)), limit()))
        for k, i in enumerate(range(0, len(data), step))
    ]
    assert [pair for pair in found if pair[1]] == list(cut_lines(chopped(data, 1 << 20), step, limit()))


@given(lines=texts, ending=st.booleans(), step=steps, size=st.integers(1, 8))
def test_intervals_say_where_they_begin_and_their_bytes_are_hashed_once(lines, ending, step, size):
    data, at = b"\n".join(lines) + (b"\n" if ending else b""), 0
    with patch.multiple(cutting, LINE_ENDS_WITHIN=size, LINE_END_BYTES=2 * size):
        for start in range(0, len(data), step):
            stop, digest = min(start + step, len(data)), hashlib.sha256()
            begin, block = cutting.interval_at(io.BytesIO(data), start, stop, limit(), digest)
            assert digest.digest() == hashlib.sha256(data[start:stop]).digest()
            assert data[begin : begin + len(block)] == block
            assert begin == (at if block else stop)
            at += len(block)
    assert at == len(data)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is told to glibc")
def test_memory_of_ranges_is_kept_for_the_next_ones():
    code = """if True:
        import resource
        from jittok.corpus.ranges.encoder import keep_freed_memory
        keep_freed_memory()
        for _ in range(4):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            blocks = [b"x" * size for size in (8 << 20, 9 << 20, 10 << 20)]
            del blocks
            print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC")}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=kept).stdout
    assert int(out.split()[-1]) < 100  # of 6,912 pages


@given(
    data=st.lists(st.sampled_from([b"a", b"bc", b"\n", b"|", b"||"]), max_size=40).map(b"".join),
    separator=st.sampled_from([b"|", b"||", b"\n\n", b"|\n"]),
    step=steps,
    size=st.integers(1, 40),
)
def test_separated_documents_are_those_of_split(data, separator, step, size):
    found = list(cut_separated(chopped(data, size), step, separator, limit()))
    expected = data.split(separator)
    if not expected[-1]:
        expected.pop()
    assert [text for _, block in found for text in block] == expected
    at, numbers = 0, []
    for text in expected:
        numbers.append(at // step)
        at += len(text) + len(separator)
    assert [number for number, block in found for _ in block] == numbers


@given(
    lengths=st.lists(st.one_of(st.none(), st.integers(0, 20)), max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=4),
    step=steps,
)
def test_rows_belong_to_the_range_their_text_begins_in_whatever_the_batches(lengths, cuts, step):
    pa = pytest.importorskip("pyarrow")
    from jittok.corpus.ranges.tables import cut_rows

    rows = [None if length is None else chr(97 + i % 26) * length for i, length in enumerate(lengths)]
    places = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    batches = [pa.array(rows[i:j], pa.string()) for i, j in pairwise(places)]
    at, expected = 0, {}
    for row in rows:
        expected.setdefault(at // step, []).append(row)
        at += len(row or "")
    assert {number: array.to_pylist() for number, array, _ in cut_rows(batches, step)} == expected


def test_small_files_share_a_range_and_large_ones_do_not(tmp_path):
    sizes = [3, 3, 3, 10, 0, 1, 20]
    sources = []
    for i, size in enumerate(sizes):
        path = tmp_path / f"{i}.txt"
        path.write_bytes(b"x" * size)
        sources.append(Source(str(path), size, "", "txt", ""))
    options = Options(range_bytes=8)
    found = list(units(sources, options))
    assert [(unit.source, unit.last) for unit in found] == [(0, 2), (3, 3), (4, 6)]
    raws = [raw for unit in found for raw in read_unit(unit, sources, options)]
    assert [len(piece.payload) for raw in raws for piece in raw.payload] == sizes
    assert list(units(sources, options, first=3)) == found[1:]
    assert not list(read_unit(found[0], sources, options, first=1))


def test_a_line_over_many_intervals_leaves_those_empty(tmp_path):
    path = tmp_path / "long.txt"
    path.write_bytes(b"a\n" + b"b" * 100 + b"\nc\n")
    source = Source(str(path), path.stat().st_size, "", "lines", "")
    found = [
        raw.payload for unit in units([source], Options(range_bytes=10)) for raw in read_unit(unit, [source], Options())
    ]
    assert [block for block in found if block] == [b"a\n" + b"b" * 100 + b"\n", b"c\n"]
    assert isinstance(next(units([source], Options(range_bytes=10))), Unit)
