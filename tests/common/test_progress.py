"""Progress: one line of a terminal, one display of a notebook, a line a minute of a log, a function."""

from __future__ import annotations

import io
import multiprocessing
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import jittok
from jittok.common.display import progress
from jittok.common.display.progress import Bar, Calling, Line, Log, Notebook, Progress, Shown, bar, shown
from jittok.train.counting.count import How
from jittok.train.counting.files import count_files
from jittok.train.spm import train_spm
from jittok.train.superbpe import train_superbpe
from jittok.train.surgery import extend
from jittok.train.unigram import train_unigram
from jittok.train.wordpiece import train_wordpiece

LINES = ["the quick brown fox", "jumps over the lazy dog", "again the fox, again the dog"] * 20
HALF = Progress("train", 50, 100, "merges", 2.0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_numbers_follow_from_counts() -> None:
    assert (HALF.share, HALF.rate, HALF.seconds_left) == (0.5, 25.0, 2.0)
    assert HALF.line() == " 50 %  50 of 100 merges  25 merges/s  2 s left"
    later = Progress("corpus", 80, 100, "bytes", 2.0, documents=7, tokens=30, text_bytes=60, before=(60, 40, 10))
    assert (later.rate, later.bytes_per_second, later.tokens_per_second, later.seconds_left) == (10, 10, 10, 2)
    assert later.line() == " 80 %  7 documents  30 tokens  0.0 MB/s  0.00 M tokens/s  2 s left"
    assert later.line(21) == " 80 %  30 tokens"
    assert Progress("x", 3, None, "documents", 0.0).line() == "3 documents"
    assert Progress("x", 0, 0, "documents", 0.0).share is None


def test_a_terminal_has_one_line_that_is_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(progress, "columns", lambda _: 30)
    with Line(stream, patience=0) as line:
        line(HALF)
        line(HALF)  # a moment later: not drawn
    assert stream.getvalue() == f"\r{HALF.line(29)}\r{' ' * len(HALF.line(29))}\r"


def test_short_work_shows_nothing() -> None:
    stream = Terminal()
    with Line(stream) as line:
        line(HALF)
    assert stream.getvalue() == ""


def test_a_log_has_lines_that_say_whose_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY_LOG", 0.0)
    stream = io.StringIO()
    with Log(stream) as log:
        log(HALF)
    assert stream.getvalue() == f"jittok train: {HALF.line()}\n"


def test_a_notebook_updates_one_display_and_keeps_its_last_state(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    class Handle:
        def update(self, picture: str) -> None:
            drawn.append(picture)

    def display(picture: str, display_id: bool) -> Handle:  # noqa: ARG001  IPython's
        drawn.append(picture)
        return Handle()

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=SimpleNamespace(HTML=str, display=display)))
    with Notebook(patience=0) as notebook:
        notebook(HALF)
        notebook(Progress("train", 100, 100, "merges", 4.0))
    assert [("aria-valuenow" in each, "100 of 100" in each) for each in drawn] == [(True, False), (True, True)]
    assert "<" not in bar(Progress("<b>", 1, None, "x", 1)).replace("<div", "").replace("</div>", "").replace(
        "<b>", "!"
    )


def test_where_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(shown(False)) is type(shown(None)) is Shown
    assert type(shown("auto", Terminal())) is type(shown(True, Terminal())) is Line
    assert type(shown("auto", io.StringIO())) is Log
    assert type(shown(print)) is Calling
    with monkeypatch.context() as quiet:
        quiet.setenv("JITTOK_PROGRESS", "off")
        assert type(shown("auto", Terminal())) is Shown
        assert type(shown(True, Terminal())) is Line
    monkeypatch.setattr(sys, "stderr", None)
    assert type(shown(True)) is Shown
    for wrong in ("yes", 1, 0.5, []):
        with pytest.raises(TypeError, match="progress: found"):
            shown(wrong)  # type: ignore[arg-type]
    monkeypatch.setattr(multiprocessing, "parent_process", object)
    monkeypatch.setattr("multiprocessing.process.parent_process", object)
    assert type(shown("auto", Terminal())) is Shown
    assert type(shown(True, Terminal())) is Line
    monkeypatch.setattr("multiprocessing.process.parent_process", lambda: None)
    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    assert type(shown("auto", Terminal())) is Notebook


def test_a_bar_counts() -> None:
    seen: list[Progress] = []
    with Bar("count", 10, "documents", seen.append) as counted:
        counted.update(3)
        counted.reach(7)
        counted.update(3)
    assert [each.done for each in seen] == [3, 7, 10]


def test_long_work_of_the_package_says_how_far_it_is() -> None:
    tok, texts = jittok.bundled("gpt-2"), ["some words of a text"] * 50
    ends: dict[str, Any] = {}

    def see(name: str) -> Any:
        return lambda each: ends.__setitem__(name, (each.work, each.done, each.total))

    tok.count_batch(texts, progress=see("count"))
    tok.align_batch(texts, progress=see("align"))
    jittok.compare(tok, jittok.bundled("t5"), texts, progress=see("compare"))
    jittok.train([*texts, "abcd" * 9], size=270, progress=see("train"))
    tok.decode_batch(tok.encode_batch(texts), progress=see("decode"))
    tok.chunks_batch(texts, 3, progress=see("chunks"))
    assert ends["count"] == ("encode", 50, 50)
    assert ends["align"] == ("encode", 50, 50)
    assert ends["compare"] == ("compare", 50, 50)
    assert ends["train"][0] == "train"
    assert ends["train"][2] == 270 - 256
    assert ends["decode"] == ("decode", 250, 250)
    assert ends["chunks"] == ("chunks", 50, 50)


def test_a_conversion_says_how_many_texts_it_has_tried(tmp_path: Path) -> None:
    seen: list[Progress] = []
    found = jittok.convert(jittok.train(LINES, 280).tokenizer, tmp_path / "tokenizer.json", progress=seen.append)
    assert (seen[-1].work, seen[-1].done, seen[-1].unit) == ("convert", found.texts, "texts")
    assert len(seen) > 2  # not only in the end


@pytest.mark.parametrize(
    ("train", "unit"),
    [
        (lambda see: train_spm(LINES, 60, byte_fallback=False, progress=see), "merges"),
        (lambda see: train_unigram(LINES, 40, progress=see), "rounds"),
        (lambda see: train_wordpiece(LINES, 60, progress=see), "merges"),
        (lambda see: train_superbpe(LINES, 280, 270, progress=see), "merges"),
        (lambda see: extend(jittok.bundled("gpt-2"), LINES, 5, progress=see), "merges"),
    ],
    ids=["spm", "unigram", "wordpiece", "superbpe", "extend"],
)
def test_every_trainer_says_how_far_it_is(train: Callable[[Any], object], unit: str) -> None:
    seen: list[Progress] = []
    train(seen.append)
    learned = [each for each in seen if each.work == "train"]
    assert learned
    assert {each.unit for each in learned} == {unit}
    assert all(each.total is not None and 0 <= each.done <= each.total + 1e-6 for each in learned)
    assert learned[-1].done >= 1


def test_words_of_files_are_counted_visibly(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("some words\n" * 1000, encoding="utf-8")
    seen: list[Progress] = []
    count_files([path], How(), progress=seen.append)
    assert (seen[-1].work, seen[-1].unit, seen[-1].done, seen[-1].total) == ("count", "bytes", 11000, 11000)


def test_slow_rates_have_a_digit_more() -> None:
    assert "0.5 rounds/s" in Progress("train", 1, 4, "rounds", 2.0).line()
