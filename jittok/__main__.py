"""`python -m jittok` and the command `jittok`: before Ctrl-C is told in one line, only what Python has built in is
imported."""

from __future__ import annotations

import _thread
import atexit
import sys
import time


def run() -> int:
    """Run the command line; its exit status."""
    sys.unraisablehook = _not_lost
    atexit.register(_drop_unwritten)  # the first to be registered is the last to be run
    try:
        from jittok.cli import INTERRUPTED, main

        status = main()
    except KeyboardInterrupt:  # while modules were imported: `main` tells its own
        if sys.stderr is not None:
            sys.stderr.write("jittok: interrupted\n")
        return 130
    if status == INTERRUPTED and "ray" not in sys.modules:  # Ray ends its processes when Python ends as usual
        leave(status)
    return status


def _not_lost(told: sys.UnraisableHookArgs) -> None:
    """Python drops what is raised in a callback, and runs one of its own after each import. Ctrl-C must not be lost
    there: it comes once more when the callback is over."""
    if told.exc_type is KeyboardInterrupt:
        _thread.start_new_thread(_press, ())
    else:
        sys.__unraisablehook__(told)


def _press() -> None:
    """Ctrl-C, a moment later."""
    time.sleep(0.001)
    _thread.interrupt_main()


def _drop_unwritten() -> None:
    """Drop what standard error does not take: a full disk, a pipe that no one reads. It stays in the buffer of the
    stream. Python tries to write it once more when it ends, and replaces the status with 120 if that fails."""
    stream = sys.stderr
    try:
        stream.flush()
    except (OSError, ValueError, AttributeError):  # ValueError, AttributeError: closed
        import os
        from contextlib import suppress

        with suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def leave(status: int) -> None:
    """End the process without waiting for threads: one may be at a long text, and none has anything to write."""
    import os
    from contextlib import suppress

    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # AttributeError: closed
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    raise SystemExit(run())
