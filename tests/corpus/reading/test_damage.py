"""Files that were cut, changed or removed are a CorpusError that names them, whenever it happens; never a crash."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

from jittok.corpus import sequences
from jittok.corpus.reading import files
from jittok.errors import CorpusError

IDS = {"npy": ".ids.npy", "nanogpt": ".bin", "megatron": ".bin", "datatrove": ".ds", "arrow": ".arrow"}


@pytest.fixture
def copied(corpora, tmp_path):
    shutil.copytree(corpora["short"][0], tmp_path / "out")
    return tmp_path / "out"


def file_of(folder, form):
    return next(path for path in sorted((folder / form).iterdir()) if path.name.endswith(IDS[form]))


def everything(found):
    return [found[k] for k in range(len(found))]


@pytest.mark.parametrize("form", [*IDS, "olmo", "parquet"])
def test_a_file_of_another_size_is_refused(copied, form):
    ending = IDS.get(form, ".npy" if form == "olmo" else ".parquet")
    path = next(path for path in sorted((copied / form).iterdir()) if path.name.endswith(ending))
    os.truncate(path, path.stat().st_size - 2)
    with pytest.raises(CorpusError, match=r"bytes, expected \d+, as the manifest says") as caught:
        everything(sequences(copied, 8, format=form))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("form", IDS)
def test_a_file_that_is_cut_while_it_is_open_is_refused(copied, form):
    found = sequences(copied, 8, format=form)
    found[0]
    path = file_of(copied, form)
    os.truncate(path, 140)
    with pytest.raises(CorpusError, match="the file has been cut") as caught:
        everything(found)
    assert str(path) in str(caught.value)


def test_offsets_that_are_cut_or_fall_are_refused(copied, monkeypatch):
    monkeypatch.setattr(files, "KEPT_OFFSETS", 0)
    path = copied / "npy" / "00000.offsets.npy"
    before = path.read_bytes()
    found = sequences(copied, 8)
    found[0]
    os.truncate(path, 140)
    with pytest.raises(CorpusError, match=r"00000\.offsets\.npy: found its end after byte \d+"):
        everything(found)
    offsets = np.frombuffer(before[128:], "<i8").copy()
    offsets[3] = offsets[-1] + 1
    path.write_bytes(before[:128] + offsets.tobytes())
    with pytest.raises(CorpusError, match=r"00000\.offsets\.npy: found places of documents that fall or lie outside"):
        sequences(copied, 8)[0]


@pytest.mark.parametrize("pack", ["split", "best"])
def test_offsets_beyond_the_ids_are_refused(copied, pack):
    path = copied / "npy" / "00000.offsets.npy"
    raw = path.read_bytes()
    offsets = np.frombuffer(raw[128:], "<i8").copy()
    offsets[-1] += 1
    path.write_bytes(raw[:128] + offsets.tobytes())
    with pytest.raises(CorpusError, match=r"00000\.offsets\.npy: found places of documents that fall or lie outside"):
        sequences(copied, 8, pack=pack, pad_id=0)[0]


def test_a_removed_file_is_refused(copied):
    file_of(copied, "npy").unlink()
    with pytest.raises(CorpusError, match="found no such file, expected a shard that the manifest lists"):
        sequences(copied, 8)[0]


@pytest.mark.parametrize("targets", [False, True])
@pytest.mark.parametrize("pack", ["split", "best"])
def test_an_id_outside_the_vocabulary_is_refused_with_its_place(copied, targets, pack):
    path = file_of(copied, "npy")
    raw = bytearray(path.read_bytes())
    raw[128 + 2 * 37 : 128 + 2 * 38] = np.uint16(50257).tobytes()
    path.write_bytes(raw)
    found = sequences(copied, 8, pack=pack, pad_id=0, targets=targets)
    with pytest.raises(CorpusError, match=r"00000\.ids\.npy, id 37: found id 50257, expected an id below 50257"):
        everything(found)


def test_an_id_of_32_bits_outside_the_vocabulary_is_refused(copied):
    path = file_of(copied, "arrow")
    found = sequences(copied, 8, format="arrow")
    ids = found._source.tokens.parts[0].ids
    raw = bytearray(path.read_bytes())
    for bad in (50257, 0xFFFFFFFF):
        raw[ids.at + 4 * 5 : ids.at + 4 * 6] = np.uint32(bad).tobytes()
        path.write_bytes(raw)
        with pytest.raises(CorpusError, match=rf"00000\.arrow, id 5: found id {bad}"):
            everything(sequences(copied, 8, format="arrow"))


def test_a_change_of_equal_size_is_found_by_digests(copied):
    path = file_of(copied, "npy")
    raw = bytearray(path.read_bytes())
    raw[130] ^= 1
    path.write_bytes(raw)
    sequences(copied, 8)[0]
    with pytest.raises(CorpusError, match=r"found SHA-256 [0-9a-f]{64}, expected [0-9a-f]{64}, as the manifest says"):
        sequences(copied, 8, check="sha256")[0]


def test_digests_of_right_files_are_right(copied):
    assert sequences(copied, 8, check="sha256", shuffle="sequences")[:].ids.size


def test_an_unfinished_corpus_is_refused(copied):
    (copied / "manifest.json").unlink()
    with pytest.raises(CorpusError, match="found no such file, expected the manifest of a finished corpus"):
        sequences(copied, 8)


def test_corpora_of_two_vocabularies_are_refused(corpora, tmp_path):
    import jittok

    from .conftest import compiled

    other, _ = compiled(tmp_path / "t5", jittok.bundled("t5"), ["a b c d e f g"] * 5, formats=("npy",))
    for given in ([corpora["short"][0], other], {corpora["short"][0]: 1, other: 1}):
        with pytest.raises(CorpusError, match=r"found vocabulary [0-9a-f]{12}, expected [0-9a-f]{12}, that of "):
            sequences(given, 4, shuffle="sequences")
