"""An .arrow file is believed in nothing: what cannot be right is a CorpusError with its place, never foreign memory."""

import numpy as np
import pytest

import jittok
from jittok.corpus import compile_corpus
from jittok.corpus.options import Options
from jittok.errors import CorpusError, JittokError

pa = pytest.importorskip("pyarrow")
pytest.importorskip("filelock", reason="needs the extra corpus")


@pytest.fixture(scope="module")
def small():
    return jittok.bundled("gpt-2")


def written(path, array, stream=False):
    batch = pa.record_batch([pa.array(range(len(array))), array], names=["n", "text"])
    with (
        pa.OSFile(str(path), "wb") as file,
        (pa.ipc.new_stream if stream else pa.ipc.new_file)(file, batch.schema) as writer,
    ):
        writer.write_batch(batch)
    return path


def lying(kind, dtype, offsets, size=260):
    buffers = [None, pa.py_buffer(np.array(offsets, dtype)), pa.py_buffer(b"x" * size)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("offsets", [[0, 200_000, 20], [0, -(10**9), 20], [0, 200, 20, 260], [0, 5, 2**31 - 1]])
@pytest.mark.parametrize(("kind", "dtype"), [(pa.string(), np.int32), (pa.large_binary(), np.int64)])
def test_offsets_that_lie_are_told_with_file_and_row(tmp_path, small, kind, dtype, offsets, stream):
    good = written(tmp_path / "good.arrow", lying(kind, dtype, [0, 20, 30, 260][: len(offsets)]), stream).read_bytes()
    right, wrong = (np.array(each, dtype).tobytes() for each in ([0, 20, 30, 260][: len(offsets)], offsets))
    assert good.count(right) == 1
    path = tmp_path / "wrong.arrow"
    path.write_bytes(good.replace(right, wrong))
    with pytest.raises(CorpusError, match=r"wrong\.arrow.*row"):
        compile_corpus([path], small, tmp_path / "out", threads=1)


def test_an_arrow_file_cut_anywhere_or_with_other_bytes_is_right_or_an_error(tmp_path, small):
    texts = ["a text", None, "", "of rows " * 9]
    for kind in (pa.string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        content = written(tmp_path / "a.arrow", pa.array(texts).cast(kind)).read_bytes()
        draw = np.random.default_rng(7)
        path, told = tmp_path / "b.arrow", 0
        for turn in range(44):
            if turn < 20:
                new = content[: len(content) * turn // 20]
            else:
                bits = bytearray(content)
                for place in draw.integers(0, len(bits), 3):
                    bits[place] ^= 1 << int(draw.integers(8))
                new = bytes(bits)
            path.write_bytes(new)
            try:
                compile_corpus([path], small, tmp_path / f"{turn}-{kind}", Options(on_error="replace"), threads=1)
            except JittokError:
                told += 1
        assert told >= 19


def test_a_file_that_is_cut_while_it_is_read_is_an_error(tmp_path, small, monkeypatch):
    from jittok.corpus.ranges import tables

    path, real = written(tmp_path / "a.arrow", pa.array(["some text of words"] * 400_000)), tables._ipc_reader

    def cut(file, source, options):
        found = real(file, source, options)
        with path.open("r+b") as again:
            again.truncate(4096)
        return found

    monkeypatch.setattr(tables, "_ipc_reader", cut)
    with pytest.raises(CorpusError, match=r"a\.arrow"):
        compile_corpus([path], small, tmp_path / "out", threads=1, check_space=False)
