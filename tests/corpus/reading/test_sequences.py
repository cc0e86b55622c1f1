"""Sequences are those of the plain reference, whatever the format, the packing and the order."""

from __future__ import annotations

import pickle
import threading
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jittok.corpus
from jittok.corpus import sequences
from jittok.corpus.reading import files, packing, parts, rows
from jittok.errors import CorpusError
from jittok.reference.corpus import sequences as plain

PAD = 50256


def pieces_of(
    documents, length, *, pack="split", overlap=0, pad=False, shuffle=None, seed=0, more=0, name="", window=16384
):
    """The pieces of each sequence, by the reference."""
    lengths = [len(ids) for ids in documents]
    drawn = None
    if shuffle == "documents":
        full = [k for k, size in enumerate(lengths) if size]
        drawn = [full[k] for k in plain.order(len(full), seed, f"{name}documents")]
    if pack == "split":
        return plain.split(lengths, length + more, overlap + more, pad, drawn)
    return plain.whole(lengths, length, drawn) if pack == "whole" else plain.best(lengths, length, drawn, window)


def laid_out(documents, pieces, length, across):
    """ids, segments, positions, targets of a sequence."""
    ids = [token for row, first, count in pieces for token in documents[row][first : first + count]]
    segments = [k for k, piece in enumerate(pieces, 1) for _ in range(piece[2])]
    positions = [k for piece in pieces for k in range(piece[2])]
    ends = {*accumulate(piece[2] for piece in pieces)}
    targets = [ids[k + 1] if k + 1 < len(ids) and (across or k + 1 not in ends) else -100 for k in range(len(ids))]
    missing = length - len(ids)
    padded = (ids + [PAD] * missing, segments + [0] * missing, positions + [0] * missing, targets + [-100] * missing)
    return tuple(row[:length] for row in padded)


def expected(documents, length, *, shuffle=None, seed=0, pack="split", targets=False, name="", **how):
    """Every sequence of the first epoch."""
    more = int(targets and pack == "split")
    found = pieces_of(documents, length, pack=pack, shuffle=shuffle, seed=seed, more=more, name=name, **how)
    rows = [laid_out(documents, pieces, length, pack == "split") for pieces in found]
    if shuffle:
        rows = [rows[k] for k in plain.order(len(rows), seed, f"{name}sequences")] if rows else []
    return [row[: 4 if targets else 3] for row in rows]


def lists(found):
    return [tuple(array.tolist() for array in row) for row in found]


@st.composite
def questions(draw):
    pack = draw(st.sampled_from(["split", "whole", "best"]))
    length = draw(st.integers(1, 40))
    overlap = draw(st.integers(0, length - 1)) if pack == "split" else 0
    pad = draw(st.booleans()) or pack != "split"
    return {
        "length": length, "overlap": overlap, "pack": pack, "pad": pad, "targets": draw(st.booleans()),
        "shuffle": draw(st.sampled_from([None, "sequences", "documents"])), "seed": draw(st.integers(0, 3)),
    }  # fmt: skip


@given(
    question=questions(), corpus=st.sampled_from(["short", "long", "tiny"]), window=st.sampled_from([3, 50, 16384]),
    format=st.sampled_from(["npy", "nanogpt", "llmc", "megatron", "datatrove", "olmo", "arrow", "parquet"]),
    at_once=st.sampled_from([7, 1000]), kept=st.sampled_from([0, 1500, 1 << 25]), stride=st.sampled_from([1, 2, 128]),
)  # fmt: skip
def test_sequences_are_those_of_the_reference(corpora, question, corpus, format, window, at_once, kept, stride):
    folder, documents = corpora[corpus]
    how = {key: value for key, value in question.items() if key != "pad"}
    if format == "parquet":
        how["shuffle"] = question["shuffle"] = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "WINDOW", window)
        patch.setattr(packing, "AT_ONCE", at_once)
        patch.setattr(rows, "AT_ONCE", at_once)
        patch.setattr(parts, "STRIDE", stride)
        patch.setattr(files, "KEPT_OFFSETS", kept)
        found = sequences(folder, **how, pad_id=PAD if question["pad"] else None, format=format)
        want = expected(documents, **{**question, "window": window})
        assert len(found) == len(want)
        assert lists(found) == want
        if want:
            assert [array.tolist() for array in found[:]] == [[*each] for each in zip(*want, strict=True)]


def test_a_later_epoch_has_the_same_sequences_in_another_order(corpora):
    folder, documents = corpora["short"]
    found = sequences(folder, 16, shuffle="sequences", seed=4)
    first, second = lists(found), lists(found.epoch(1))
    assert sorted(first) == sorted(second)
    assert first != second
    plain_rows = expected(documents, 16)
    assert second == [plain_rows[k] for k in plain.order(len(plain_rows), 4, "sequences", 1)]
    assert lists(sequences(folder, 16, shuffle="sequences", seed=5)) != first


@pytest.mark.parametrize("shuffle", [None, "documents"])
def test_ids_that_occur_in_the_last_sequence_are_not_padded_again(corpora, shuffle):
    folder, documents = corpora["short"]
    total = sum(map(len, documents))
    overlap = total % 5
    length = overlap + 5  # so the last one is full
    found = sequences(folder, length, overlap=overlap, pad_id=PAD, shuffle=shuffle)
    assert len(found) == (total - overlap) // (length - overlap)
    assert lists(found) == expected(documents, length, overlap=overlap, pad=True, shuffle=shuffle)


def test_several_corpora_are_one(corpora):
    (short, some), (long, more) = corpora["short"], corpora["long"]
    assert lists(sequences([short, long, short], 24)) == expected(some + more + some, 24)


def test_a_mix_has_the_shares_of_its_weights_and_repeats_nothing_within_an_epoch_of_a_corpus(corpora):
    (short, some), (long, more) = corpora["short"], corpora["long"]
    mix = sequences({short: 3, long: 1}, 16, shuffle="sequences", seed=2)
    of = [
        [expected(some, 16)[k][0] for k in range(len(expected(some, 16)))],
        [expected(more, 16)[k][0] for k in range(len(expected(more, 16)))],
    ]
    count = len(of[0]) + len(of[1])
    assert len(mix) == count
    shares = [round(count * 3 / 4), count - round(count * 3 / 4)]
    streams = [[], []]
    for epoch in range(4):
        rows = [mix.epoch(epoch)[k].ids.tolist() for k in range(count)]
        places = plain.order(count, 2, "mix", epoch)
        own = [[None] * share for share in shares]
        for row, place in zip(rows, places, strict=True):
            k = int(place >= shares[0])
            own[k][place - k * shares[0]] = row
        for k, part in enumerate(own):
            streams[k] += part
    for k, stream in enumerate(streams):
        size = len(of[k])
        want = [of[k][n] for e in range(len(stream) // size + 1) for n in plain.order(size, 2, f"{k}/sequences", e)]
        assert stream == want[: len(stream)]


def test_cu_seqlens_are_where_segments_begin(corpora):
    folder, _ = corpora["short"]
    batch = sequences(folder, 32, pack="best", pad_id=PAD)[:4]
    segments = batch.segments
    want = [k for k in range(segments.size) if k % 32 == 0 or segments.flat[k] != segments.flat[k - 1]]
    assert batch.cu_seqlens.tolist() == [*want, segments.size]
    assert batch.cu_seqlens.dtype == np.int32


def test_arrays_are_the_callers_own(corpora):
    found = sequences(corpora["short"][0], 8, targets=True)
    first = found[0]
    assert [array.dtype for array in first] == ["int32", "int32", "int32", "int64"]
    for array in first:
        array[:] = 0
    assert lists([found[0]]) == expected(corpora["short"][1], 8, targets=True)[:1]


def test_numbers_count_from_the_end_and_others_are_refused(corpora):
    found = sequences(corpora["short"][0], 8)
    count = len(found)
    assert lists([found[-1]]) == lists([found[count - 1]])
    for bad in (count, -count - 1):
        with pytest.raises(IndexError, match=rf"sequence {bad}: expected -{count} <= sequence < {count}"):
            found[bad]
        with pytest.raises(IndexError, match=f"sequence {bad}"):
            found.batch([0, bad])
    assert found.batch([]).ids.shape == (0, 8)
    assert lists(found.__getitems__([3, 1])) == lists([found[3], found[1]])


def test_a_pickle_is_small_and_reads_the_same(corpora):
    for shuffle in (None, "documents"):
        found = sequences(corpora["short"][0], 8, shuffle=shuffle)
        found[0]
        packed = pickle.dumps(found)
        assert len(packed) < 40_000
        assert lists(pickle.loads(packed)) == lists(found)


def test_a_table_may_be_in_a_file(corpora, monkeypatch):
    monkeypatch.setattr(packing, "IN_MEMORY", 100)
    folder, documents = corpora["short"]
    found = sequences(folder, 16, pack="best", pad_id=PAD)
    assert found._source.packing.pieces._file is not None
    assert lists(found) == expected(documents, 16, pack="best")
    assert lists(pickle.loads(pickle.dumps(found))) == lists(found)


def test_threads_may_share_it(corpora):
    found = sequences(corpora["short"][0], 8, shuffle="sequences")
    want, wrong = lists(found), []

    def read(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            some = rng.integers(0, len(found), 5).tolist()
            if lists(found.__getitems__(some)) != [want[k] for k in some]:
                wrong.append(some)

    threads = [threading.Thread(target=read, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_few_files_are_open_at_once(corpora, monkeypatch):
    monkeypatch.setattr(files, "OPEN_FILES", 2)
    folder, documents = corpora["short"]
    found = sequences(folder, 16, shuffle="sequences")
    assert lists(found) == expected(documents, 16, shuffle="sequences")
    assert len(found._source.tokens.parts) > 2
    assert len(found._source.tokens.parts[0].files.order) <= 2


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ({"length": 0}, "length=0"),
        ({"length": 4, "overlap": 4}, "overlap=4"),
        ({"length": 4, "pack": "tight"}, "'tight'"),
        ({"length": 4, "pack": "best"}, "pad_id=None"),
        ({"length": 4, "pack": "whole", "pad_id": 0, "overlap": 1}, "overlap=1"),
        ({"length": 4, "shuffle": "all"}, "'all'"),
        ({"length": 4, "check": "md5"}, "'md5'"),
        ({"length": 4, "pad_id": 1 << 31}, "int32"),
    ],
)
def test_impossible_arguments_say_what_was_found(corpora, how, found):
    with pytest.raises(ValueError, match=found):
        sequences(corpora["short"][0], **how)


def test_impossible_mixes_say_what_was_found(corpora):
    short, long = corpora["short"][0], corpora["long"][0]
    with pytest.raises(ValueError, match="found none"):
        sequences([], 4)
    with pytest.raises(ValueError, match="shuffle=None"):
        sequences({short: 1, long: 2}, 4)
    with pytest.raises(ValueError, match=r"weights: found \[1.0, 0.0\]"):
        sequences({short: 1, long: 0}, 4, shuffle="sequences")
    with pytest.raises(CorpusError, match="found no sequence"):
        sequences({short: 1, corpora["tiny"][0]: 1}, 400, shuffle="sequences")


def test_parquet_is_not_shuffled(corpora):
    with pytest.raises(CorpusError, match="found format parquet, shuffle='sequences', expected another format"):
        sequences(corpora["short"][0], 4, shuffle="sequences", format="parquet")


def test_other_formats_are_named(corpora):
    with pytest.raises(CorpusError, match="expected tables, or one of these"):
        sequences(corpora["short"][0], 4, format="tables")


def test_an_open_corpus_is_read_in_its_format(corpora):
    folder, documents = corpora["short"]
    opened = jittok.corpus.open(folder, format="megatron")
    found = sequences(opened, 8)
    assert found._source.tokens.parts[0].unit == 2
    assert lists(found) == expected(documents, 8)
