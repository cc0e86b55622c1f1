"""Arguments of training: kernels follow nothing that was not checked, and nothing is taken for what it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jittok
from jittok.errors import CorpusError
from jittok.train import Counts, How, count
from jittok.train.counting.counter import Counter

WORDS = np.frombuffer(b"hello", np.uint8)
TEXTS = ["hello world", "foo"]


@pytest.mark.parametrize(
    ("starts", "counts"),
    [([0, 1 << 40], [1]), ([-(1 << 40), 5], [1]), ([0, 4, 2, 5], [1, 1, 1]), ([0, 5], [1] * 999), ([0, 5], [-1]),
     ([0, 2, 5], [1 << 61, 1 << 61]), ([0, 5], [1.5]), ([0, 2.5], [1]), ([], [])],
)  # fmt: skip
def test_counts_are_checked_before_a_kernel_follows_them(starts: list[int], counts: list[int]) -> None:
    with pytest.raises((ValueError, TypeError), match="found"):
        Counts(WORDS, np.array(starts), np.array(counts))


def test_counts_are_in_memory_that_nobody_else_can_change() -> None:
    arrays = np.frombuffer(bytearray(b"hello"), np.uint8), np.array([0, 5]), np.array([7])
    made = Counts(*arrays)
    arrays[0][:], arrays[1][1], arrays[2][0] = 0, 1 << 40, -1
    assert made.to_dict() == {b"hello": 7}
    with pytest.raises(ValueError, match="read-only"):
        made.starts[1] = 1 << 40
    with pytest.raises(ValueError, match="read-only"):
        count(TEXTS, threads=1).starts[1] = 1 << 40


def test_plain_lists_and_other_integers_are_counts_too() -> None:
    made = Counts(WORDS.tolist(), np.array([0, 2, 5], ">i4"), [1, 2])  # type: ignore[arg-type]
    assert made.to_dict() == {b"he": 1, b"llo": 2}
    assert (made + made).to_dict() == {b"he": 2, b"llo": 4}


@pytest.mark.parametrize(
    "options",
    [{"size": None}, {"size": 1 << 40}, {"size": 1 << 70}, {"min_frequency": None}, {"min_frequency": 1 << 70},
     {"max_token_length": 1 << 70}, {"special": b"ab"}, {"special": 5}, {"special": None}, {"special": [b"x"]},
     {"special": [""]}, {"special": ["\ud800"]}, {"memory": float("nan")}, {"memory": "1M"}, {"sample": "1"},
     {"sample": None}, {"seed": 1.5}, {"seed": "1"}, {"pre": None}, {"pre": 5}, {"pre_regex": 5}, {"pre_regex": b"a"},
     {"weights": ["a", "b"]}, {"weights": np.ma.array([1, 1], mask=[0, 1])}, {"weights": {0: 1, 1: 1}}],
)  # fmt: skip
def test_an_option_of_the_wrong_kind_is_an_error_in_words(options: dict[str, Any]) -> None:
    with pytest.raises(CorpusError, match=f"{next(iter(options))}: found"):
        jittok.train(TEXTS, **{"size": 260, **options})


@pytest.mark.parametrize(
    ("call", "says"),
    [(lambda: jittok.train(words=5), "words: found int, expected Counts"),
     (lambda: jittok.train(words=[("a", 1)]), "words: found list, expected Counts"),
     (lambda: How(like="x"), "like: found 'x'"),
     (lambda: Counts.of({"a": 2.5}), "counts: found dtype float64"),  # type: ignore[dict-item]
     (lambda: jittok.train(words=Counts.of({"ab": 9}), size=257).cut(256.5), "size: found 256.5")],  # type: ignore[arg-type]
)  # fmt: skip
def test_what_is_no_such_thing_is_told(call: Callable[[], Any], says: str) -> None:
    with pytest.raises((TypeError, CorpusError), match=says):
        call()


def test_a_trained_file_is_not_written_to_a_folder_that_is_named_like_a_store(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:" / "b").mkdir(parents=True)
    made = jittok.train(words=Counts.of({"ab": 9}), size=257)
    with pytest.raises(CorpusError, match="a local path"):
        made.save("s3://b/x.gguf")
    made.save(bytes(tmp_path / "x.tiktoken"))
    assert (tmp_path / "x.tiktoken").stat().st_size


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", ["ragged", "numpy", "arrow"])
def test_texts_that_another_may_write_to_are_copied_before_kernels_read_them(
    kind: str, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jittok.train.counting.count.STRETCH_BYTES", 1 << 10)
    memory = np.frombuffer(bytearray(b"some word" * 1000), np.uint8)
    offsets = np.arange(0, memory.size + 1, 9)
    texts: Any = jittok.Ragged(memory, offsets) if kind == "ragged" else memory.view("S9")
    if kind == "arrow":
        pa = pytest.importorskip("pyarrow")
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(memory)]
        texts = pa.Array.from_buffers(pa.binary(), 1000, buffers)
    seen, add = [], Counter.add

    def watched(self: Counter, docs: Any, *others: Any, **named: Any) -> None:
        seen.append((docs.starts.size, np.shares_memory(docs.data, memory)))
        add(self, docs, *others, **named)

    monkeypatch.setattr(Counter, "add", watched)
    weights = np.arange(1000) / 100
    found = count(texts, weights, threads=threads)
    assert sum(number for number, _ in seen) >= 1000
    assert not any(shared for _, shared in seen)
    assert found.to_dict() == count([b"some word"] * 1000, weights, threads=1).to_dict()
