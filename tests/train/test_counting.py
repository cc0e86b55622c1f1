"""Counting words: every splitter, threads, memory, orders, weights, documents that are no text."""

from __future__ import annotations

import json
import lzma
import random
import threading
from collections import Counter as Tally
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amounts import amount
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jittok.corpus.options import Options as Reading
from jittok.errors import CorpusError, UnsupportedVocab
from jittok.kernels.fragments import PAD
from jittok.kernels.inputs import Documents, documents
from jittok.kernels.jit import JIT, kernel
from jittok.reference.train import bpe as train_bpe
from jittok.train import count_files
from jittok.train.counting import count as counting
from jittok.train.counting import files
from jittok.train.counting.count import How, count
from jittok.train.counting.counter import Counter
from jittok.train.counting.counts import Counts, of_table, to_text
from jittok.train.counting.lines import lines_of
from jittok.train.counting.runs import check_run, slices_of, write_run
from jittok.train.counting.splitters import cutter_of

PRES = ("gpt-2", "smollm", "llama-bpe", "qwen2", "gpt-4o", "deepseek-v3", "bloom")
LETTERS = "ab zé日\u3000\n\r\t'sT12.,\u00a0"


def plainly(texts: list[bytes], pre: str) -> dict[str, int]:
    return dict(train_bpe.count_words(texts, pre))


def counted(texts: Any, **how: Any) -> dict[str, int]:
    return {to_text(word): n for word, n in count(texts, **how).items()}


@given(st.lists(st.text(st.sampled_from(LETTERS), max_size=60), max_size=6), st.sampled_from(PRES))
@settings(max_examples=max(4, settings.default.max_examples // 5))
@example(["a" * 15, "a" * 16, "a" * 17, " " * 40, "é" * 8, "a" * 15 + " b"], "gpt-2")
def test_words_and_counts_are_those_of_the_reference(texts: list[str], pre: str) -> None:
    assert counted(texts, pre=pre, threads=1) == plainly([text.encode() for text in texts], pre)


@given(st.lists(st.binary(max_size=30), max_size=4), st.sampled_from(PRES[:4]))
@settings(max_examples=max(4, settings.default.max_examples // 5))
@example([b"ab\xff cd", b"\xe6\x97", b"\xc0\x80 a"], "qwen2")
def test_bytes_that_are_no_text_are_counted_as_encoding_reads_them(texts: list[bytes], pre: str) -> None:
    assert counted(texts, pre=pre, threads=1) == plainly(texts, pre)


@pytest.mark.parametrize("pre", ["gpt-2", "qwen2", "deepseek-v3"])
def test_texts_longer_than_a_chunk_are_cut_alike(pre: str) -> None:
    size = 40_000 if JIT else 6_000
    chosen = random.Random(7)
    texts = ["".join(chosen.choices(LETTERS, k=size)), "x" * size + " y" * 9, "no end" * 3]
    assert counted(texts, pre=pre, threads=1) == plainly([text.encode() for text in texts], pre)


def test_words_of_any_length_are_told_apart() -> None:
    words = (
        ["a" * n for n in range(1, 70)] + ["a" * n + "b" for n in range(1, 70)] + ["b" + "a" * n for n in range(1, 70)]
    )
    texts = [" ".join(words)] * 3
    found = counted(texts, pre="gpt-2", threads=1)
    assert found == {"a": 3, **{"Ġ" + word: 3 for word in words[1:]}}


def test_neither_threads_nor_memory_nor_order_change_a_count() -> None:
    chosen = random.Random(3)
    texts = [" ".join(f"{chosen.getrandbits(18):x}" for _ in range(30)) for _ in range(1500 if JIT else 30)]
    plain = counted(texts, threads=1)
    assert counted(texts, threads=3) == plain
    shuffled = texts[:]
    chosen.shuffle(shuffled)
    assert counted(iter(shuffled), threads=2, memory=1 << 20) == plain
    counter = Counter(cutter_of("qwen2"))
    found = count(texts, threads=1)
    counter.add_words(found.words, found.starts, found.counts)
    assert {to_text(word): n for word, n in of_table(counter.table).items()} == plain


def test_a_run_holds_the_table_it_was_written_from_and_a_damaged_one_is_seen(tmp_path: Path) -> None:
    texts = [" ".join(f"word{k}" * (k % 4 + 1) for k in range(300))]
    counter = Counter(cutter_of("gpt-2"))
    counts = count(texts, pre="gpt-2", threads=1)
    counter.add_words(counts.words, counts.starts, counts.counts)
    path = tmp_path / "a.words"
    crc = write_run(path, counter.table)
    back = Counter(cutter_of("gpt-2"))
    for listed in slices_of([path, path]):
        for words in listed:
            back.add_words(*words)
    assert {word: 2 * n for word, n in counts.to_dict().items()} == of_table(back.table).to_dict()
    back.clear()
    for listed in slices_of([path]):
        back.add_words(*next(listed))
    assert of_table(back.table).to_dict() == counts.to_dict()
    assert check_run(path, crc)
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    assert not check_run(path, crc)
    assert not check_run(tmp_path / "none", crc)


def test_a_word_counts_once_a_document_when_documents_are_counted() -> None:
    long = "x" * 30
    texts = ["spam spam spam " * 50 + long + " " + long, "ham " + long, "ham"]
    found = counted(texts, by="documents", threads=1, pre="gpt-2")
    assert found["Ġspam"] == 1
    assert found["ham"] == 2
    assert found["Ġ" + long] == 2
    assert counted(texts, by="documents", threads=3, memory=1 << 20, pre="gpt-2") == found


def test_weights_multiply_what_a_document_counts() -> None:
    found = count(["a a", "a b"], weights=[2.5, 1], pre="gpt-2", threads=1)
    sums = {word: n / found.unit for word, n in found.items()}
    assert sums == {b"a": 3.5, b" a": 2.5, b" b": 1.0}
    with pytest.raises(CorpusError, match="numbers from 0"):
        count(["a"], weights=[-1])
    for threads in (1, 2):  # one weight is one too many, or too few
        for texts in (["a", "b", "c"], iter(["a", "b", "c"])):
            with pytest.raises(CorpusError, match="one a document"):
                count(texts, weights=[1, 2, 3, 4], threads=threads)
        with pytest.raises(CorpusError, match="one a document"):
            count(["a", "b", "c"], weights=[1, 2], threads=threads)


def test_special_texts_are_cut_out_first_the_longest_first() -> None:
    special = ["<s>", "<s>x"]
    assert counted(["ab<s>cd<s>xcd", "<s>"], pre="gpt-2", special=tuple(special), threads=1) == {"ab": 1, "cd": 2}


def test_a_pattern_of_ones_own_cuts_words() -> None:
    found = count(["one two, three", "two"], pre_regex=r"\p{L}+", threads=1)
    assert found.to_dict() == {b"one": 1, b" ": 1, b"two": 2, b", ": 1, b"three": 1}
    assert found.pre == r"regex:\p{L}+"
    with pytest.raises(UnsupportedVocab, match="a regular expression"):
        count(["a"], pre_regex="(")


def test_a_sample_depends_on_the_texts_alone() -> None:
    texts = [f"document number {k}" for k in range(400)]
    some = counted(texts, sample=0.25, seed=7, threads=1)
    assert 40 < some["document"] < 160
    assert counted(texts[::-1], sample=0.25, seed=7, threads=2) == some
    assert counted(texts, sample=0.25, seed=8, threads=1) != some


def test_counts_are_a_file_that_adds_up(tmp_path: Path) -> None:
    one, two = count(["a b c\n", "é"], threads=1), count(["b b"], threads=1)
    one.save(tmp_path / "one.words")
    two.save(tmp_path / "two.words")
    both = Counts.load(tmp_path / "one.words") + Counts.load(tmp_path / "two.words")
    assert both.to_dict() == count(["a b c\n", "é", "b b"], threads=1).to_dict()
    assert (both.documents, both.pre) == (3, "qwen2")
    both.save(tmp_path / "both.words")
    (two + one).save(tmp_path / "swapped.words")
    assert (tmp_path / "both.words").read_bytes() == (tmp_path / "swapped.words").read_bytes()
    with pytest.raises(CorpusError, match="words cut as the others: 'qwen2'"):
        _ = one + count(["a"], pre="gpt-2", threads=1)


@pytest.mark.parametrize("line", ["a", "1 a", "x\ta", "1\t日", "-1\ta", "1\ta\tb"])
def test_a_line_that_is_no_count_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "words.tsv"
    path.write_text(f"3\tab\n{line}\n", encoding="utf-8")
    with pytest.raises(CorpusError, match=r"words.tsv, line 2: found .* expected a count, a tab and a word"):
        Counts.load(path)


def test_files_of_all_kinds_give_the_counts_of_their_texts(tmp_path: Path) -> None:
    texts = [f"text {k} of many, {'x' * (k % 40)}" for k in range(50)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts[:20]))
    with lzma.open(tmp_path / "b.jsonl.xz", "wt") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts[20:40])
    for k, text in enumerate(texts[40:]):
        (tmp_path / f"c{k}.txt").write_text(text)
    plain = count(texts, threads=1).to_dict()
    found = count_files([tmp_path], How(threads=2))
    assert found.to_dict() == plain
    assert (found.documents, found.text_bytes) == (50, sum(len(text) for text in texts))
    names = [tmp_path / "b.jsonl.xz", *sorted(tmp_path.glob("c*"), reverse=True), tmp_path / "a.jsonl"]
    assert count_files(names, How(threads=1, memory=1 << 20)).to_dict() == plain
    heavy = count_files([tmp_path], How(threads=1), weights={"*.jsonl": 3})
    part = count(texts[:20], threads=1)
    twice = (part + part).to_dict()
    assert {w: n // heavy.unit for w, n in heavy.items()} == dict(Tally(plain) + Tally(twice))
    with pytest.raises(CorpusError, match="patterns that match an input"):
        count_files([tmp_path], How(), weights={"*.html": 3})


def test_a_file_of_any_name_is_text_and_bad_documents_are_named(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("some text")
    assert count_files([tmp_path / "README.md"], How(threads=1)).documents == 1
    (tmp_path / "bad.jsonl").write_text('{"text": "a"}\n{"text": 1}\n')
    with pytest.raises(CorpusError, match=r"bad.jsonl, line 2: found int in 'text'"):
        count_files([tmp_path / "bad.jsonl"], How(threads=1))
    with pytest.raises(CorpusError, match="the same input twice"):
        count_files([tmp_path / "README.md", tmp_path / "README.md"], How(threads=1))


def test_large_numbers_of_documents_keep_their_weights_exact() -> None:
    found = count(["a"] * 1000, weights=np.full(1000, 0.001), pre="gpt-2", threads=2)
    assert found.to_dict() == {b"a": 66 * 1000}


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
@pytest.mark.parametrize("how", [How(pre="gpt-2"), How(pre="bloom"), How(runs="[^ ]+", lines=1000)], ids=repr)
def test_no_thread_compiles_what_counts(how: How, monkeypatch: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"word{k} and{k * k} more\n" for k in range(20_000)))
    count_files([tmp_path / "a.txt"], how=replace(how, threads=2))  # all are there now
    entries = {each: each.entry for each in kernel.registry}
    asked = set()

    def ready(own: Any) -> Any:
        asked.add((threading.get_ident() != threading.main_thread().ident, own.python.__name__))
        return entries[own]

    monkeypatch.setattr(kernel, "ready", ready)
    for each in entries:
        if each.python.__module__.startswith("jittok.train."):
            monkeypatch.setattr(each, "entry", None)
    count_files([tmp_path / "a.txt"], how=replace(how, threads=2))
    in_threads = {name for thread, name in asked if thread}
    assert len(in_threads) > 1
    assert in_threads <= {name for thread, name in asked if not thread}


def test_there_may_be_more_runs_than_files_that_a_process_may_open(tmp_path: Path, monkeypatch: Any) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(counting, "EMPTY_BYTES", 0)  # each text becomes a run
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    for k in range(amount(40, 30, 8)):
        (tmp_path / f"{k}.txt").write_text(f"word{k % 7} of many")
    opened = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 64
    monkeypatch.setattr(files, "LEAST_RANGE", 1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 20, limits[1]))
    try:
        found = count_files([tmp_path], How(threads=1, memory=1 << 20), Reading(range_bytes=1))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert found.to_dict() == count_files([tmp_path], How(threads=1)).to_dict()


@pytest.mark.parametrize("by", ["occurrences", "documents"])
def test_documents_that_count_nothing_take_no_room(by: str) -> None:
    texts = ["ab ab", "".join(f" w{k}" for k in range(3_000)), "ab", ""]
    found = count(texts, weights=[1, 0, 2, 0], pre="gpt-2", by=by, threads=1, special=["w2"])
    assert {word: n / found.unit for word, n in found.to_dict().items()} == ({b"ab": 3.0, b" ab": 1.0})
    assert found.documents == 4
    counter = Counter(cutter_of("gpt-2"))
    for in_place in (False, True):
        counter.add(next(documents(texts[1:2], in_place=in_place, wide=in_place)), np.zeros(1, np.int64))
    assert not counter.table.used.any()


def test_lines_of_some_documents_are_looked_for_in_these_alone() -> None:
    text = b"one\ntwo \n\nthree\r\n" * 4000
    data = np.frombuffer(text + bytes(PAD), np.uint8)
    starts = np.arange(0, len(text), 17)
    some = Documents(data, starts[100:102], starts[100:102] + 17)
    found = lines_of(some, None, 4192)
    assert found.docs.data.size <= 34 + PAD
    lines = [bytes(found.docs.data[i:j]) for i, j in zip(found.docs.starts, found.docs.stops, strict=True)]
    assert lines == [b"one", b"two", b"three"] * 2
    assert lines_of(Documents(data, starts[:0], starts[:0]), None, 4192).number == 0
