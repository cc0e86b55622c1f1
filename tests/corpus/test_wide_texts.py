"""Text in UTF-16 without a mark is UTF-8 with a NUL at every second place: no corpus is made of it by accident."""

import pytest

import jittok
from jittok.corpus import Options, compile_corpus
from jittok.corpus.inputs.kinds import is_wide
from jittok.corpus.shards.readback import open as opened
from jittok.errors import CorpusError

TEXT = "Hello, world\r\nsecond line\r\n"


@pytest.fixture(scope="module")
def tok():
    return jittok.bundled("gpt-2")


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").mkdir()
    for name, encoding in (("a", "utf-8"), ("b", "utf-16-le"), ("c", "utf-8")):
        (tmp_path / "data" / f"{name}.txt").write_bytes(TEXT.encode(encoding))
    return tmp_path / "data"


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_what_looks_wide(encoding):
    assert is_wide(TEXT.encode(encoding))
    assert is_wide(("x" * 100_000).encode(encoding))
    assert not is_wide("ab".encode("utf-16-le"))
    assert not is_wide(TEXT.encode())
    assert not is_wide(b"a\0b\0" + TEXT.encode())
    assert not is_wide(b"\0" * 10)
    assert not is_wide(b"")


@pytest.mark.parametrize("lines", [False, True])
def test_it_is_an_error_that_names_the_file(data, tmp_path, tok, lines):
    with pytest.raises(CorpusError, match=r"b\.txt, line 1: found text in UTF-16 or UTF-32 .* expected UTF-8"):
        compile_corpus([data], tok, tmp_path / "out", Options(lines=lines))
    found = compile_corpus([data], tok, tmp_path / "out", Options(lines=lines, on_error="skip"))
    assert (found.documents, found.bad_documents) == ((4, 3) if lines else (2, 1))


@pytest.mark.parametrize("options", [Options(on_error="replace"), Options(kind="txt")])
def test_whoever_says_so_gets_it_as_it_is(data, tmp_path, tok, options):
    found = compile_corpus([data], tok, tmp_path / "out", options)
    assert (found.documents, found.bad_documents) == (3, 0)
    assert opened(tmp_path / "out", tok)[1].tolist() == tok.encode(TEXT.encode("utf-16-le")).tolist()
