"""Files of counted words, and folders from which counting continues: what they say is proven."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jittok.corpus.options import Options as Reading
from jittok.errors import CorpusError
from jittok.train import count_files
from jittok.train.counting import counts, files, runs
from jittok.train.counting.count import How, count
from jittok.train.counting.counts import Counts
from jittok.train.counting.files import finished
from jittok.train.counting.ledger import Ledger


def test_counting_goes_on_from_what_a_work_folder_holds(tmp_path: Path, monkeypatch: Any) -> None:
    from jittok.train.counting import files

    data, work = tmp_path / "data", tmp_path / "work"
    data.mkdir()
    texts = [f"file {k} " + f"w{k % 7} " * 50 for k in range(12)]
    for k, text in enumerate(texts):
        (data / f"{k:02d}.jsonl").write_text(json.dumps({"text": text}) + "\n")
    plain = count(texts, threads=1).to_dict()
    monkeypatch.setattr("jittok.corpus.ranges.units.GROUP_FILES", 1)  # a range a file
    monkeypatch.setattr(files, "KEEP_EVERY", 100)
    read = files.read_texts
    seen: list[Any] = []

    def dies(raw: Any, kind: str, reading: Any, **more: Any) -> Any:
        seen.append(raw.key)
        if len(seen) == 7:
            raise KeyboardInterrupt
        return read(raw, kind, reading, **more)

    monkeypatch.setattr(files, "read_texts", dies)
    with pytest.raises(KeyboardInterrupt):
        count_files([data], How(threads=1), work=work)
    kept = len(list(work.glob("run-*.words")))
    assert kept >= 4
    again: list[Any] = []
    monkeypatch.setattr(
        files, "read_texts", lambda raw, kind, *more, **named: again.append(raw.key) or read(raw, kind, *more, **named)
    )
    found = count_files([data], How(threads=1), work=work)
    assert found.to_dict() == plain
    assert found.documents == 12
    assert len(again) < 12
    next(iter(work.glob("run-*.words"))).write_bytes(b"damaged")
    assert count_files([data], How(threads=1), work=work).to_dict() == plain
    for other in (How(threads=1, pre="gpt-2"), How(threads=1, lines=9)):
        with pytest.raises(CorpusError, match="counts of other inputs or options"):
            count_files([data], other, work=work)
    finished(work)
    assert not work.exists()


def test_a_run_of_the_ledger_is_not_written_over_after_a_kill(tmp_path: Path, monkeypatch: Any) -> None:
    """Several threads write runs at once. A kill may leave later ones in the ledger, and earlier ones not."""
    data, work = tmp_path / "data.txt", tmp_path / "work"
    data.write_text("\n".join(f"word{k} and {k % 7}" for k in range(400)))
    reading = Reading(range_bytes=500, lines=True)
    how = How(threads=1)
    plain = count_files([data], how, reading).to_dict()
    monkeypatch.setattr(files, "KEEP_EVERY", 0)
    count_files([data], how, reading, work=work)
    ledger = work / "ledger.jsonl"
    plan, *runs = ledger.read_bytes().splitlines(keepends=True)
    assert len(runs) > 6
    ledger.write_bytes(plan + runs[0] + runs[4] + runs[5])
    found = count_files([data], how, reading, work=work)
    assert found.to_dict() == plain


def test_a_work_folder_is_one_process_and_what_it_holds_is_not_believed(tmp_path: Path) -> None:
    data, work, how = tmp_path / "data.txt", tmp_path / "work", How(threads=1)
    data.write_text("some words and awordthatislongerthanfifteenbytes " * 9)
    plain = count_files([data], how, work=work).to_dict()
    name = work / files.LEDGER
    ledger = Ledger(name)
    assert ledger.hold()
    with pytest.raises(CorpusError, match="another process"):
        count_files([data], how, work=work)
    ledger.close()
    assert count_files([data], how, work=work).to_dict() == plain
    (run,) = work.glob("run-*.words")
    raw, head = run.read_bytes(), 24 + 16 * 64
    at = raw.index(len(" awordthatislongerthanfifteenbytes").to_bytes(8, "little"), head)
    lines = name.read_bytes().splitlines(keepends=True)
    for wrong in (b"\xff" * 8, (1 << 40).to_bytes(8, "little"), (1).to_bytes(8, "little"), bytes(8)):
        for place in (at, at - 8):  # its length; its count, as it is alone in its slice
            if place == at - 8 and wrong not in (b"\xff" * 8, bytes(8)):
                continue
            run.write_bytes(raw[:place] + wrong + raw[place + 8 :])
            forged(name, lines, crc=zlib.crc32(b"".join([run.read_bytes()[head:], raw[24:head]])))
            with pytest.raises(CorpusError, match="words that do not fill the slice"):
                count_files([data], how, work=work)
    run.write_bytes(raw)
    wrong_facts: list[dict[str, Any]] = [
        {"run": "../data.txt"}, {"run": 5}, {"run": "run-x.words"}, {"ranges": 5}, {"documents": None},
        {"documents": -1}, {"bytes": float("inf")}, {"crc": None},
    ]  # fmt: skip
    for fact in wrong_facts:
        forged(name, lines, **fact)
        with pytest.raises(CorpusError, match=r"jittok wrote|jittok did not write"):
            count_files([data], how, work=work)
    forged(name, lines)
    count_files([data], how, work=work)
    sizes = np.frombuffer(raw[24:head], np.int64).copy()
    sizes[0] = 1 << 62  # more bytes than there are
    run.write_bytes(raw[:24] + sizes.tobytes() + raw[head:])
    with pytest.raises(CorpusError, match="as in its header"):
        list(runs.slices_of([run]))
    with pytest.raises(CorpusError, match="a slice that is cut off"):
        runs._read_slice(run, len(raw) - 5, 1, 0)
    wraps = [1, (1 << 63) - 1, (1 << 63) - 1, 8]  # their sums pass int64, and end at the size of the words
    run.write_bytes(np.array([[1] * 4, wraps], np.int64).tobytes() + bytes(7))
    with pytest.raises(CorpusError, match="words that do not fill the slice"):
        runs._read_slice(run, 0, 4, 7)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_run_is_not_read_through_a_link_or_waited_for(tmp_path: Path) -> None:
    data, work, how = tmp_path / "data.txt", tmp_path / "work", How(threads=1)
    data.write_text("some words")
    plain = count_files([data], how, work=work).to_dict()
    (run,) = work.glob("run-*.words")
    run.rename(tmp_path / "elsewhere")
    for plant in (lambda: run.symlink_to(tmp_path / "elsewhere"), lambda: os.mkfifo(run)):
        plant()
        assert not runs.check_run(run, json.loads((work / files.LEDGER).read_bytes().splitlines()[1][9:])["crc"])
        run.unlink()
    assert count_files([data], how, work=work).to_dict() == plain


def forged(name: Path, lines: list[bytes], **facts: Any) -> None:
    """A ledger whose last line says something else."""
    name.write_bytes(b"".join(lines[:-1]))
    ledger = Ledger(name)
    ledger.add({**json.loads(lines[-1].split(b" ", 1)[1]), **facts})
    ledger.close()


def test_a_run_is_not_written_through_a_link(tmp_path: Path) -> None:
    data, work, victim = tmp_path / "data.txt", tmp_path / "work", tmp_path / "victim"
    data.write_text("some words")
    victim.write_text("mine")
    work.mkdir()
    (work / "run-000000.words").symlink_to(victim)
    assert count_files([data], How(threads=1), work=work).total == 2
    assert victim.read_text() == "mine"


WRONG_HEADERS = (
    '{"foo": 1}', "[1]", "5", '{"pre": 5}', '{"unit": 0}', '{"unit": true}', '{"special": 7}', '{"special": [7]}',
    '{"documents": -1}', '{"last": "\u65e5"}', "nonsense", "[" * 100_000,
)  # fmt: skip


@pytest.mark.parametrize("header", WRONG_HEADERS)
def test_a_first_line_that_nothing_wrote_is_told(header: str, tmp_path: Path) -> None:
    path = tmp_path / "a.words"
    path.write_text(f"#jittok words 1 {header}\n3\tab\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"line 1: .*Counts\.save"):
        Counts.load(path)


def test_more_occurrences_than_can_be_summed_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.words"
    path.write_text(f"{(1 << 62) - 1}\tab\n{(1 << 62) - 1}\tb\n")
    with pytest.raises(CorpusError, match="occurrences"):
        Counts.load(path)
    many = Counts.of({"a": (1 << 62) - 1})
    with pytest.raises(CorpusError, match="occurrences"):
        many + many
    with pytest.raises(CorpusError, match="occurrences"):
        Counts.of({"a": 1 << 50}) + Counts.of({"a": 1}, unit=counts.UNIT)


@pytest.mark.parametrize("name", ["ledger.jsonl", "run-of-mine.words", "notes.txt", "run-1.words", ".hidden"])
def test_a_work_folder_with_something_of_another_stays_as_it_is(name: str, tmp_path: Path) -> None:
    data, work = tmp_path / "a.txt", tmp_path / "work"
    data.write_text("some words")
    work.mkdir()
    for content in ("what somebody has written", '{"plan": "of a journey"}', "12345678 {"):
        if name != "ledger.jsonl" and content != "what somebody has written":
            continue
        (work / name).write_text(content)
        if content == "12345678 {":  # the first line of a call that was killed
            assert count_files([data], How(threads=1), work=work).to_dict()
            continue
        with pytest.raises(CorpusError, match="an empty folder, or one that jittok train began"):
            count_files([data], How(threads=1), work=work)
        assert (work / name).read_text() == content


def test_what_others_have_put_into_a_work_folder_meanwhile_stays(tmp_path: Path) -> None:
    data, work = tmp_path / "a.txt", tmp_path / "work"
    data.write_text("some words")
    count_files([data], How(threads=1), work=work)
    (work / "run-of-mine.words").write_text("mine")
    finished(work)
    assert [path.name for path in work.iterdir()] == ["run-of-mine.words"]
