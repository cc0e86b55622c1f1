"""`python -m jittok` and the command `jittok`: imports nothing before Ctrl-C is told in one line."""

import _thread
import sys
import time
from typing import Any


def run() -> int:
    """Run the command line; its exit status."""
    sys.unraisablehook = _not_lost
    try:
        from jittok.cli import INTERRUPTED, main

        status = main()
    except KeyboardInterrupt:  # while modules were imported: `main` tells its own
        sys.stderr.write("jittok: interrupted\n")
        return 130
    if status == INTERRUPTED and "ray" not in sys.modules:  # which ends its processes at the end of Python
        leave(status)
    return status


def _not_lost(told: Any) -> None:
    """Python drops what is raised in a callback, such as its own behind each import. Ctrl-C must not be lost there: it
    comes once more when the callback is over."""
    if told.exc_type is KeyboardInterrupt:
        _thread.start_new_thread(_press, ())
    else:
        sys.__unraisablehook__(told)


def _press() -> None:
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
