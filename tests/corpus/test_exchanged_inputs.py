"""What the manifest says of an input is said of the bytes that were read: no other file takes its place meanwhile."""

from __future__ import annotations

import os
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jittok.corpus import compile_corpus
from jittok.corpus.inputs import finding
from jittok.corpus.options import Options
from jittok.errors import CorpusError

TEXTS = {"a": ["one two three", "four"], "b": ["six two three", "five"]}


def written(folder, kind, texts):
    """A file of two documents; those of a and b have the same size."""
    folder.mkdir()
    path = folder / f"input.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"text": texts}), path, compression="none")
    elif kind == "arrow":
        with pa.ipc.new_file(path, pa.schema([("text", pa.string())])) as file:
            file.write_batch(pa.record_batch({"text": texts}))
    elif kind == "jsonl":
        path.write_text("".join(f'{{"text": "{text}"}}\n' for text in texts), "utf-8")
    else:
        path.write_text("\n".join(texts), "utf-8")
    return path


@pytest.mark.parametrize("opening", [1, 2])
@pytest.mark.parametrize("kind", ["txt", "jsonl", "parquet", "arrow"])
def test_a_file_that_is_another_one_while_it_is_read_and_back_before_it_is_hashed_is_no_input(
    kind, opening, tok, tmp_path, monkeypatch
):
    """The folder of the input is a link that somebody else points elsewhere for a moment."""
    for name, texts in TEXTS.items():
        written(tmp_path / name, kind, texts)
    first, other = (tmp_path / name / f"input.{kind}" for name in "ab")
    assert first.stat().st_size == other.stat().st_size
    link, count = tmp_path / "now", 0
    link.symlink_to("a")
    original = finding.Source.same

    def exchanged(source, file):
        """As if the path had led to the other file when it was opened."""
        nonlocal count
        count += 1
        if count == opening:
            file.close()
            there = other.open("rb")
            return original(source, there)
        return original(source, file)

    monkeypatch.setattr(finding.Source, "same", exchanged)
    with pytest.raises(CorpusError, match="when reading began"):
        compile_corpus([str(link / f"input.{kind}")], tok, str(tmp_path / "out"), threads=1)
    assert count >= opening


def test_each_way_of_opening_an_input_asks_whether_it_is_the_file_that_was_found(tmp_path):
    """A link that leads elsewhere between looking for files and opening them."""
    from jittok.corpus.ranges import tables

    for name, texts in TEXTS.items():
        written(tmp_path / name, "parquet", texts)
    link = tmp_path / "now"
    link.symlink_to("a")
    (found,), _ = finding.find_sources([str(link / "input.parquet")], Options())
    times = found.stamp.split()
    for opened in (found.open, lambda: tables._opened(found)):
        with opened() as file:
            assert file.read(4) == b"PAR1"
        link.unlink()
        link.symlink_to("b")
        with pytest.raises(CorpusError, match="changed"), opened():
            pass
        with pytest.raises(CorpusError, match="changed"):
            found.check_unchanged()
        link.unlink()
        link.symlink_to("a")
    os.utime(tmp_path / "a/input.parquet", ns=(0, int(times[0])))  # its times of change stay, its inode does not
    (again,), _ = finding.find_sources([str(link / "input.parquet")], Options())
    for changed in (replace(again, stamp="0 0"), replace(again, size=1), replace(again, inode=again.inode + 1)):
        with pytest.raises(CorpusError):
            changed.open()
