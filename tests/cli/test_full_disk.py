"""A disk that takes no more: the error names the output, and what no one continues from does not stay half-written."""

from contextlib import contextmanager

import pytest

from jittok.cli import main

resource = pytest.importorskip("resource")


@contextmanager
def small_files():
    """No file may be longer than 64 KB: the system says so where a disk would say that it is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "a.txt"
    letters = "abcdefghijklmnopqrstuvwxyz"
    path.write_text(" ".join("".join(letters[k // 26**i % 26] for i in range(5)) for k in range(30_000)))
    return path


def test_encode_names_its_output_and_leaves_nothing(text, tmp_path, capsys):
    with small_files():
        assert main(["encode", "--vocab", "gpt-2", str(text), "-o", str(tmp_path / "ids")]) == 2
    assert capsys.readouterr().err == f"jittok encode: {tmp_path / 'ids'}: File too large\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_corpus_names_its_output_and_goes_on(text, tmp_path, capsys):
    arguments = ["corpus", "--vocab", "gpt-2", str(text), "--out", str(tmp_path / "out"), "--no-space-check"]
    with small_files():
        assert main(arguments) == 2
    assert capsys.readouterr().err == f"jittok corpus: {tmp_path / 'out'}: File too large\n"
    assert main(arguments) == 0


def test_train_names_its_work_folder_and_goes_on(text, tmp_path, capsys):
    arguments = ["train", str(text), "--size", "300", "--out", str(tmp_path / "a.json"), "--work", str(tmp_path / "w")]
    with small_files():
        assert main(arguments) == 2
    assert capsys.readouterr().err == f"jittok train: {tmp_path / 'w'}: File too large\n"
    assert not (tmp_path / "a.json").exists()
    assert main(arguments) == 0
