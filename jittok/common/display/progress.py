"""Progress of long work, shown where someone looks: one line of a terminal, one display of a notebook, a line a minute
of a log, or a function of the caller's.

    with shown("auto") as show:            # progress=True | False | "auto" | a function
        show(Progress("compare", done=3, total=9, unit="documents", seconds=1.5))
"""

from __future__ import annotations

import html
import os
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, TextIO

EVERY = 0.2
"""Seconds between two updates of a terminal or a notebook."""
EVERY_LOG = 60.0
"""Seconds between two lines of a log."""
PATIENCE = 1.0
"""Seconds before anything is shown: shorter work needs nothing."""


@dataclass(frozen=True)
class Progress:
    """How far a piece of work is. Numbers count from its very start, rates from where this run took it up."""

    work: str  # "encode", "train" ...
    done: float  # of `total`, in `unit`
    total: float | None  # None: no one knows
    unit: str  # "documents", "bytes", "merges" ...
    seconds: float  # since this run began
    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0
    before: tuple[float, int, int] = (0, 0, 0)  # done, text_bytes and tokens when this run began

    @property
    def share(self) -> float | None:
        """The part that is done, 0 to 1; None if the total is not known."""
        return None if not self.total else min(self.done / self.total, 1.0)

    @property
    def rate(self) -> float:
        """`unit` a second."""
        return (self.done - self.before[0]) / max(self.seconds, 1e-9)

    @property
    def bytes_per_second(self) -> float:
        """Bytes of text a second."""
        return (self.text_bytes - self.before[1]) / max(self.seconds, 1e-9)

    @property
    def tokens_per_second(self) -> float:
        """Tokens a second."""
        return (self.tokens - self.before[2]) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the rate so far; None if no one knows."""
        if self.total is None or self.rate <= 0:
            return None
        return max(self.total - self.done, 0) / self.rate

    def parts(self) -> list[tuple[int, str]]:
        """Percent, what is done, rates, time left: (rank, text), those with the highest ranks are left out first."""
        share, left = self.share, self.seconds_left
        counted = self.unit not in ("bytes", "documents")
        done = f"{self.done:,.0f}{f' of {self.total:,.0f}' if self.total else ''} {self.unit}"
        documents = self.documents or (self.done if self.unit == "documents" else 0)
        found = [
            (0, f"{100 * share:3.0f} %" if share is not None else ""),
            (1, done if counted else ""),
            (3, f"{documents:,.0f} documents" if documents else ""),
            (1, f"{self.tokens:,} tokens" if self.tokens else ""),
            (4, f"{self.bytes_per_second / 1e6:.1f} MB/s" if self.text_bytes else ""),
            (5, f"{self.tokens_per_second / 1e6:.2f} M tokens/s" if self.tokens else ""),
            (4, f"{self.rate:,.{0 if self.rate >= 10 else 1}f} {self.unit}/s" if counted else ""),
            (2, f"{clock(left)} left" if left is not None else ""),
        ]
        return [(rank, text) for rank, text in found if text]

    def line(self, width: int | None = None) -> str:
        """`parts` in one line, in `width` columns those that fit."""
        parts = self.parts()
        while width is not None and len(parts) > 1 and len("  ".join(text for _, text in parts)) > width:
            parts.remove(max(parts))
        return "  ".join(text for _, text in parts)[: None if width is None else max(width, 0)]


Show = bool | Literal["auto"] | Callable[[Progress], object] | None
"""Values of `progress=`: "auto" shows work that lasts, unless JITTOK_PROGRESS is "off"; True also in worker processes;
False and None nothing; or a function that is called with each `Progress`."""


def clock(seconds: float) -> str:
    """12 s, 3:07, 2:03:07."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


def columns(stream: TextIO) -> int:
    """Columns of the terminal that a stream writes to; standard output may go elsewhere."""
    with suppress(OSError, ValueError, AttributeError):
        if found := os.get_terminal_size(stream.fileno()).columns:
            return found
    return shutil.get_terminal_size().columns


class Shown:
    """Takes progress, and shows it at most every `every` seconds."""

    every = EVERY

    def __init__(self, patience: float = PATIENCE) -> None:
        self._next = time.monotonic() + patience
        self._last: Progress | None = None
        self._begun = False

    def __call__(self, progress: Progress) -> None:
        """Show it, unless something was shown a moment ago."""
        self._last = progress
        if (now := time.monotonic()) >= self._next:
            self._next, self._begun = now + self.every, True
            self.draw(progress)

    def draw(self, progress: Progress) -> None:
        """Show it now."""

    def close(self) -> None:
        """The work is over."""

    def __enter__(self) -> Shown:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Line(Shown):
    """One line of a terminal, cleared in the end."""

    def __init__(self, stream: TextIO, patience: float = PATIENCE) -> None:
        super().__init__(patience)
        self._stream, self._width = stream, 0

    def draw(self, progress: Progress) -> None:
        """Write over the line."""
        line = progress.line(columns(self._stream) - 1)  # the last column may wrap
        self._write("\r" + line.ljust(self._width))
        self._width = len(line)

    def close(self) -> None:
        """Clear the line."""
        if self._width:
            self._write("\r" + " " * self._width + "\r")
            self._width = 0

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal may be gone, and the work is done all the same
            self._stream.write(text)
            self._stream.flush()


class Log(Line):
    """A line a minute, for logs of jobs."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream, EVERY_LOG)
        self.every = EVERY_LOG

    def draw(self, progress: Progress) -> None:
        """Write a line."""
        self._write(f"jittok {progress.work}: {progress.line()}\n")


class Notebook(Shown):
    """One display of a notebook that is updated; its last state is saved with the notebook."""

    def __init__(self, patience: float = PATIENCE) -> None:
        super().__init__(patience)
        self._display: Any = None

    def draw(self, progress: Progress) -> None:
        """Update the display."""
        from IPython import display

        shown: Any = display  # which has no types
        picture = shown.HTML(bar(progress))
        if self._display is None:
            self._display = shown.display(picture, display_id=True)
        else:
            self._display.update(picture)

    def close(self) -> None:
        """Show how it ended."""
        if self._display is not None and self._last is not None:
            self.draw(self._last)


class Calling(Shown):
    """A function of the caller's, called with every progress."""

    def __init__(self, function: Callable[[Progress], object]) -> None:
        super().__init__(0)
        self._function = function

    def __call__(self, progress: Progress) -> None:
        """Call the function."""
        self._function(progress)


def bar(progress: Progress) -> str:
    """A bar as HTML that reads on light and on dark pages, and as text without any style."""
    share = progress.share
    filled = "" if share is None else f'<div style="width:{100 * share:.1f}%;height:100%;background:#4285f4"></div>'
    return (
        f'<div role="progressbar" aria-valuemin="0" aria-valuemax="100"'
        f"{'' if share is None else f' aria-valuenow={chr(34)}{100 * share:.0f}{chr(34)}'}"
        f' style="max-width:30em;height:.5em;border-radius:3px;overflow:hidden;background:#8884">{filled}</div>'
        f"<div>{html.escape(progress.work)}: {html.escape(progress.line())}</div>"
    )


def count_of(texts: object) -> int | None:
    """The number of texts; None for an iterator."""
    count = getattr(type(texts), "__len__", None)
    return None if count is None else int(count(texts))


def in_worker() -> bool:
    """Whether this process works for another one: of multiprocessing, or of Ray."""
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        return True
    ray = sys.modules.get("ray._private.worker")
    return ray is not None and ray.global_worker.mode == ray.WORKER_MODE


def in_notebook() -> bool:
    """Whether displays of this process go to a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def shown(progress: Show, stream: TextIO | None = None) -> Shown:
    """What shows the progress of one piece of work. TypeError for another value of `progress`."""
    if callable(progress):
        return Calling(progress)
    if progress is not None and progress is not True and progress is not False and progress != "auto":
        raise TypeError(f'progress: found {progress!r}, expected True, False, "auto" or a function')
    if not progress or (progress == "auto" and (in_worker() or os.environ.get("JITTOK_PROGRESS") == "off")):
        return Shown()
    if in_notebook():
        return Notebook()
    stream = sys.stderr if stream is None else stream
    if stream is None:  # closed by the caller
        return Shown()
    return Line(stream) if stream.isatty() else Log(stream)


class Bar:
    """Counts what is done of some work and shows it."""

    def __init__(self, work: str, total: float | None, unit: str, progress: Show) -> None:
        self.n: float = 0
        self._work, self._total, self._unit = work, total, unit
        self._shown, self._start = shown(progress), time.monotonic()

    def update(self, number: float) -> None:
        """So many more are done."""
        self.reach(self.n + number)

    def reach(self, number: float) -> None:
        """So many are done."""
        self.n = number
        self._shown(Progress(self._work, number, self._total, self._unit, time.monotonic() - self._start))

    def close(self) -> None:
        """The work is over."""
        self._shown.close()

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
