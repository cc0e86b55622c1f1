"""`python -m jittok` and the command `jittok`: before Ctrl-C is told in one line, only what Python has built in is
imported."""

from __future__ import annotations

import _thread
import sys
import time


def run() -> int:
    """Run the command line; its exit status."""
    sys.unraisablehook = _not_lost
    try:
        from jittok.cli import INTERRUPTED, main

        status = main()
    except KeyboardInterrupt:  # while modules were imported: `main` tells its own
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
