"""`python -m jittok` and the command `jittok`. Only built-in modules are imported until Ctrl-C is handled."""

from __future__ import annotations

import _thread
import atexit
import sys
import time


def run() -> int:
    """Run the command line; returns the exit status."""
    sys.unraisablehook = _not_lost
    atexit.register(_drop_unwritten)  # registered first, so run last
    try:
        from jittok.cli import INTERRUPTED, main

        status = main()
    except KeyboardInterrupt:  # during imports; `main` handles its own
        if sys.stderr is not None:
            sys.stderr.write("jittok: interrupted\n")
        return 130
    if status == INTERRUPTED and "ray" not in sys.modules:  # Ray ends its processes when Python ends as usual
        leave(status)
    return status


def _not_lost(told: sys.UnraisableHookArgs) -> None:
    """Unraisable hook. Python drops exceptions raised in callbacks, and runs a callback of its own after each import.
    Ctrl-C must not be lost there: it is raised again when the callback is over."""
    if told.exc_type is KeyboardInterrupt:
        _thread.start_new_thread(_press, ())
    else:
        sys.__unraisablehook__(told)


def _press() -> None:
    """Raise Ctrl-C in the main thread, a moment later."""
    time.sleep(0.001)
    _thread.interrupt_main()


def _drop_unwritten() -> None:
    """Drop output that standard error cannot take (a full disk, a closed pipe). It would stay in the buffer of the
    stream, and Python would try to write it again at exit and change the exit status to 120 if that fails."""
    stream = sys.stderr
    try:
        stream.flush()
    except (OSError, ValueError, AttributeError):  # ValueError, AttributeError: closed
        import os
        from contextlib import suppress

        with suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def leave(status: int) -> None:
    """Exit without waiting for threads: one may be busy with a long text, and none has anything left to write."""
    import os
    from contextlib import suppress

    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # AttributeError: closed
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    raise SystemExit(run())
