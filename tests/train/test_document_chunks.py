"""Long documents are read and counted in pieces, with the counts of the whole."""

from __future__ import annotations

import gzip
import io
import random
import threading
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jittok.corpus.options import Options as Reading
from jittok.corpus.ranges.cutting import Limit
from jittok.errors import CorpusError
from jittok.kernels.inputs import documents
from jittok.kernels.jit import JIT
from jittok.train import count_files
from jittok.train.counting import counter, splitters
from jittok.train.counting.count import CountRun, How, count
from jittok.train.counting.counter import Counter
from jittok.train.counting.splitters import DocumentChunks, cutter_of

PRES = ("gpt-2", "qwen2", "deepseek-v3", "bloom", "laguna")
LETTERS = "aab  zé日\n\r'sT12.,"


def text_of(size: int, seed: int = 7, letters: str = LETTERS) -> str:
    return "".join(random.Random(seed).choices(letters, k=size))


def pieces_of(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for module in (splitters, counter):
        monkeypatch.setattr(module, "CHUNK_BYTES", size)


@pytest.mark.parametrize("pre", PRES)
@pytest.mark.parametrize("by", ["occurrences", "documents"])
def test_a_long_document_counts_as_its_words_do(pre: str, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text_of(9_000 if JIT else 2_000), "short", text_of(1_000, 8, "日本語"), text_of(1_500, 9)]
    whole = count(texts, pre=pre, threads=1, by=by)
    pieces_of(monkeypatch, 256)
    raw = np.frombuffer(texts[0].encode(), np.uint8)
    assert len(DocumentChunks(cutter_of(pre)).positions(raw, raw.size)) > 3, "it is cut"
    for given in (texts, [text.encode() for text in texts], iter(texts)):
        found = count(given, pre=pre, threads=1, by=by)
        assert found.to_dict() == whole.to_dict()
        assert found.documents == 4


def test_counting_ends_where_it_is_when_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces_of(monkeypatch, 256)
    stop = threading.Event()
    one = Counter(cutter_of("gpt-2"), stop=stop)
    docs = next(documents([text_of(2_000)], False, True))
    one.add(docs)
    stop.set()
    with pytest.raises(CancelledError):
        one.add(docs)
    tally = CountRun(How(threads=1))
    asked: list[Any] = []

    def interrupted() -> None:
        with tally.pool() as pool:
            asked.extend(pool.submit(tally.stop.wait, 60) for _ in range(3))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    tally.close()
    assert all(future.cancelled() or future.result() for future in asked)


def test_a_special_text_is_never_cut() -> None:
    raw = ("abcd efgh " * 60 + "<a b>").encode() * 4
    cut = DocumentChunks(cutter_of("gpt-2"), ["<a b>", "h a"])
    assert cut.first(np.frombuffer(raw, np.uint8), 100, len(raw)) > 0
    assert not cut.table[ord("a") << 8 | ord(" ")]
    assert not cut.table[ord("h") << 8 | ord(" ")]
    assert cut.table[ord("d") << 8 | ord(" ")]


@pytest.mark.parametrize("step", [64, 100, 1 << 20])
def test_pieces_of_a_stream_are_the_stream(step: int) -> None:
    raw = text_of(3_000).encode() + "日".encode() * 400 + text_of(1_000).encode()
    cut = DocumentChunks(cutter_of("qwen2"))
    found = list(cut.read(io.BytesIO(raw).read, step, Limit("a.txt", 1 << 30)))
    assert b"".join(piece for _, piece in found) == raw
    assert [at for at, _ in found] == np.cumsum([0, *(len(piece) for _, piece in found[:-1])]).tolist()
    assert (len(found) > 20) == (step < 1 << 20)
    assert [piece for _, piece in cut.read(io.BytesIO(b"").read, step, Limit("a.txt", 1))] == [b""]
    with pytest.raises(CorpusError, match="expected up to 5893 bytes"):
        list(cut.read(io.BytesIO(raw).read, step, Limit("a.txt", len(raw) - 1)))


def files_of(folder: Path, text: str) -> list[Path]:
    (folder / "a.txt").write_text("a short one")
    (folder / "b.txt").write_bytes(text.encode())
    (folder / "c.txt.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "d.txt").write_text("another short one")
    return sorted(folder.glob("*.txt*"))


@pytest.mark.parametrize("how", [{"pre": "qwen2"}, {"pre": "bloom", "special": ("é日", "12")}, {"lines": 200}])
def test_files_longer_than_a_range_give_the_counts_of_their_documents(tmp_path: Path, how: dict[str, Any]) -> None:
    text = text_of(4_000)
    found = count_files(files_of(tmp_path, text), How(threads=2, **how), Reading(range_bytes=300))
    whole = count_files(sorted(tmp_path.glob("*.txt*")), How(threads=2, **how), Reading(range_bytes=1 << 20))
    assert found.to_dict() == whole.to_dict()
    assert found.last == whole.last
    assert (found.text_bytes, found.documents) == (whole.text_bytes, whole.documents)
    if "lines" not in how:
        assert found.documents == 4


def test_a_byte_that_is_no_text_is_told_with_its_place_in_the_file_or_leaves_all_of_it_out(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    raw = text_of(3_000).encode()
    cut = raw.index(b"ab", 2_500)
    path.write_bytes(raw[:cut] + b"\xff" + raw[cut:])
    how = How(threads=1)
    with pytest.raises(CorpusError, match=f"a.txt, line 1: found byte 0xff at offset {cut}"):
        count_files([path], how, Reading(range_bytes=300))
    for on_error in ("skip", "replace"):
        found = count_files([path], how, Reading(range_bytes=300, on_error=on_error))
        whole = count_files([path], how, Reading(range_bytes=1 << 20, on_error=on_error))
        assert found.to_dict() == whole.to_dict()
        assert bool(len(found)) == (on_error == "replace")


def test_the_most_bytes_of_a_document_hold_for_one_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(text_of(3_000))
    with pytest.raises(CorpusError, match="up to 2000 bytes"):
        count_files([path], How(threads=1), Reading(range_bytes=300, max_document_bytes=2_000))
