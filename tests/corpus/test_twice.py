"""No document comes twice: not under two spellings of a name, and not as the cached result beside a saved dataset."""

from __future__ import annotations

import pytest

from jittok.corpus import Options, compile_corpus
from jittok.corpus.inputs.finding import find_sources
from jittok.errors import CorpusError

pa = pytest.importorskip("pyarrow")
pytest.importorskip("filelock")
fsspec = pytest.importorskip("fsspec")


@pytest.mark.parametrize("start", ["file://", "local://", "FILE://"])
def test_a_path_and_its_url_are_one_input(tmp_path, tok, start):
    path = tmp_path / "a b%20.txt"
    path.write_text("x")
    for two in ([path, f"{start}{path}"], [f"{start}{path}", tmp_path], [f"{start}{tmp_path}/*.txt", str(path)]):
        with pytest.raises(CorpusError, match="the same input twice"):
            find_sources(two, Options())
    assert compile_corpus([f"{start}{tmp_path}"], tok, tmp_path / "out").documents == 1


def test_two_spellings_of_a_url_are_one_input():
    fsspec.filesystem("memory").pipe("/twice/a.txt", b"x")
    with pytest.raises(CorpusError, match="the same input twice"):
        find_sources(["memory://twice/a.txt", "memory:///twice/a.txt"], Options())


@pytest.mark.parametrize("beside", ["state.json", "dataset_info.json"])
def test_cached_results_beside_a_saved_dataset_are_left_out(tmp_path, beside):
    folder = tmp_path / "saved" / "train"
    folder.mkdir(parents=True)
    cached = [folder / name for name in ("cache-0123456789abcdef.arrow", "cache-ab_00000_of_00002.arrow")]
    for path in (folder / "data-00000-of-00001.arrow", *cached):
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, pa.schema([("text", pa.string())])) as writer:
            writer.write_table(pa.table({"text": ["a"]}))
    (folder / beside).write_text('{\n  "_format": null\n}')
    for given in (tmp_path / "saved", folder, folder / "*.arrow", tmp_path / "**" / "*.arrow"):
        sources, left_out = find_sources([given], Options())
        assert [source.path for source in sources] == [str(folder / "data-00000-of-00001.arrow")]
        assert set(map(str, cached)) <= set(left_out)
    assert len(find_sources(cached, Options())[0]) == 2  # who names them wants them
    (folder / beside).unlink()
    assert len(find_sources([folder], Options())[0]) == 3
