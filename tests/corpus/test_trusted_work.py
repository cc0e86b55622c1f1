"""What was left by an earlier call is believed only where no one else can have written it, and inputs must stay."""

import os
import re
from pathlib import Path

import pytest

import jittok
from jittok.cli import main
from jittok.common.display.progress import Progress
from jittok.corpus import compile_corpus
from jittok.corpus.inputs.finding import find_sources
from jittok.corpus.options import Options
from jittok.errors import CorpusError
from jittok.train.counting.count import How
from jittok.train.counting.counts import BEGINNING, Counts
from jittok.train.counting.files import count_files

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="a system without users")


@pytest.fixture
def text(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "a.txt").write_text("one text and another text\n" * 100)
    return folder / "a.txt"


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o1777])
def test_a_work_folder_that_others_may_write_to_is_refused(text, tmp_path, mode):
    work = tmp_path / "work"
    work.mkdir()
    work.chmod(mode)
    said = re.escape(f"{work}: found a folder that may be written by others (mode {mode:o})")
    with pytest.raises(CorpusError, match=said):
        count_files([text], How(), work=work)
    assert list(work.iterdir()) == []
    work.chmod(0o755)
    assert count_files([text], How(), work=work).documents == 1
    out = tmp_path / "out"
    (out / ".jittok").mkdir(parents=True)
    (out / ".jittok").chmod(mode)
    with pytest.raises(CorpusError, match="found a folder that may be written by others"):
        compile_corpus([text], jittok.bundled("gpt-2"), out)
    (out / ".jittok").chmod(0o700)
    assert compile_corpus([text], jittok.bundled("gpt-2"), out).documents == 1


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root gives folders away")
def test_a_work_folder_of_another_user_is_refused(text, tmp_path):
    for work in (tmp_path / "work", tmp_path / "out" / ".jittok"):
        work.mkdir(parents=True)
        os.chown(work, 65534, -1)
    with pytest.raises(CorpusError, match="work: found a folder that belongs to user 65534"):
        count_files([text], How(), work=tmp_path / "work")
    with pytest.raises(CorpusError, match="jittok: found a folder that belongs to user 65534"):
        compile_corpus([text], jittok.bundled("gpt-2"), tmp_path / "out")


def test_a_work_folder_as_open_as_the_folder_around_it_is_believed(text, tmp_path):
    """A team's folder, or a shared drive where all files have one mode; not below a sticky folder such as /tmp."""
    shared = tmp_path / "shared"
    for folder in (shared, shared / "work", shared / "out", shared / "out" / ".jittok"):
        folder.mkdir()
        folder.chmod(0o777)
    assert count_files([text], How(), work=shared / "work").documents == 1
    assert compile_corpus([text], jittok.bundled("gpt-2"), shared / "out").documents == 1
    shared.chmod(0o1777)
    with pytest.raises(CorpusError, match="found a folder that may be written by others"):
        count_files([text], How(), work=shared / "work")


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root gives folders away")
def test_a_work_folder_whose_owner_has_the_folder_around_it_is_believed(text, tmp_path):
    """Of a drive that gives all of root's files to one user, as NFS does."""
    shared = tmp_path / "shared"
    for folder in (shared, shared / "work"):
        folder.mkdir()
        os.chown(folder, 65534, -1)
    assert count_files([text], How(), work=shared / "work").documents == 1


def test_a_new_work_folder_is_nobody_elses_whatever_the_umask(text, tmp_path):
    before = os.umask(0)
    try:
        for _ in range(2):
            count_files([text], How(), work=tmp_path / "deep" / "work")
    finally:
        os.umask(before)
    assert (tmp_path / "deep" / "work").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("with_work", [False, True])
def test_an_input_that_changes_while_words_are_counted_is_an_error(text, tmp_path, with_work):
    other = text.with_name("b.txt")
    other.write_text("the last file")

    def change(_: Progress) -> None:
        text.write_text("something else\n" * 100)

    with pytest.raises(CorpusError, match=r"a\.txt: found 1500 bytes, changed .*, expected 2600 bytes"):
        count_files([text, other], How(), work=tmp_path / "work" if with_work else None, progress=change)


def test_inputs_that_change_between_the_two_readings_of_superbpe_are_an_error(text, tmp_path, monkeypatch, capsys):
    from jittok.cli import train

    counted = train.counted_words

    def then_changed(options, stretches=None):
        found = counted(options, stretches)
        if stretches is None:
            text.write_text("other words\n" * 300)
        return found

    monkeypatch.setattr(train, "counted_words", then_changed)
    out = tmp_path / "a.json"
    arguments = ["train", str(text), "--size", "290", "--superbpe", "270", "--pre", "gpt-2", "--out", str(out)]
    assert main(arguments) == 2
    assert "a.txt: found 3600 bytes" in capsys.readouterr().err
    assert not out.exists()


def test_a_glob_leaves_out_what_an_earlier_call_has_written(text):
    out = text.parent / "x"
    tok = jittok.bundled("gpt-2")
    pattern = str(text.parent / "**")
    first = compile_corpus([pattern], tok, out)
    again = compile_corpus([pattern], tok, out)
    assert (first.documents, again.documents, again.resumed) == (1, 1, 1)
    assert (first.left_out, again.left_out) == ((), (out.as_posix(),))
    sources, left_out = find_sources([str(text.parent / "*" / "*" / "*")], Options(kind="txt"))
    assert [Path(source.path).parent.name for source in sources] == ["arrow"]
    assert left_out == []


@pytest.mark.parametrize("arguments", [[], ["--dry-run"]])
def test_an_output_that_cannot_be_is_told_by_a_dry_run_too(text, tmp_path, capsys, arguments):
    (tmp_path / "file").write_text("")
    for out, found in (("file", "a file"), ("data", "'a.txt'")):
        assert main(["corpus", str(text), "--vocab", "gpt-2", "--out", str(tmp_path / out), *arguments]) == 2
        told = capsys.readouterr()
        assert f"{tmp_path / out}: found {found}" in told.err
        assert told.out == ""


@pytest.mark.parametrize("row", ["1_000", "+5", "007", "1,000", "-1", "9" * 20, "\u0661\u0662", "1.0"])
def test_ids_are_decimal_digits(tmp_path, capsys, row):
    (tmp_path / "ids.txt").write_text(f"15496 11, 995\n{row}\n")
    assert main(["decode", "--vocab", "gpt-2", str(tmp_path / "ids.txt")]) == 2
    told = capsys.readouterr()
    assert "line 2: found" in told.err
    assert "expected token ids" in told.err


def test_a_line_of_counted_words_has_an_end(tmp_path, monkeypatch):
    class Endless:
        """As /dev/zero."""

        def __init__(self, start: bytes) -> None:
            self.start, self.given = start, 0

        def __enter__(self) -> "Endless":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def readline(self, size: int) -> bytes:
            assert 0 < size <= 1 << 30
            self.given += 1
            assert self.given < 4, "nobody reads on"
            line, self.start = (self.start + b"a" * size)[:size], b""
            return line

        def __iter__(self) -> "Endless":
            raise AssertionError("a line without a limit")

    monkeypatch.setattr("jittok.train.counting.counts.MAX_DOCUMENT_BYTES", 1 << 20)
    for start, found in ((b"\0", "line 1: found b'"), (b"12\t", "a line of .* bytes or more"), (b"#", "a line of")):
        monkeypatch.setattr(Path, "open", lambda _, __, start=start: Endless(start))
        with pytest.raises(CorpusError, match=found):
            Counts.load(tmp_path / "words")


@pytest.mark.parametrize("count", ["1_000", " 5", "+5", "-1", "5 ", "\u0662", ""])
def test_counts_of_words_are_decimal_digits(tmp_path, count):
    (tmp_path / "words").write_text(f"7\ta\n{count}\tb\n")
    with pytest.raises(CorpusError, match="line 2: found"):
        Counts.load(tmp_path / "words")


def test_a_long_word_is_read_whole(tmp_path):
    words = {b"a" * (BEGINNING - 3): 1, b"b" * (BEGINNING + 1): 2, b"c" * (3 * BEGINNING): 3, b"d": 4}
    Counts.of(words).save(tmp_path / "words")
    assert Counts.load(tmp_path / "words").to_dict() == words


def test_an_input_under_two_names_of_its_folder_is_the_same(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("data")
    (text.parent / "copy.txt").symlink_to("a.txt")
    names = ["data/a.txt", "./data/a.txt", str(text), "link/a.txt", "data/../data/a.txt", "data/*a.txt"]
    for name in names[1:]:
        with pytest.raises(CorpusError, match="the same input twice"):
            find_sources([names[0], name], Options())
        with pytest.raises(CorpusError, match="the same input twice"):
            count_files([name, names[0]], How())
    sources, _ = find_sources(["data"], Options())
    assert [source.path for source in sources] == ["data/a.txt", "data/copy.txt"]
