"""The ledger, an append-only record of what is done, one fact a line with its checksum.

An incomplete line ends the ledger; it and all lines after it are cut off when the ledger is opened again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jittok.corpus.store import disk
from jittok.corpus.store.disk import open_regular

Fact = dict[str, Any]
LEDGER = "ledger.jsonl"
fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class Ledger:
    """The facts on disk. `facts` holds those that were there when it was opened, oldest first; `add` only appends to
    the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self._places = [0]  # where line k begins, and where the last one ends
        self.facts = list(self._read())
        os.ftruncate(self._descriptor, self._places[-1])

    def _read(self) -> Iterator[Fact]:
        with open(os.dup(self._descriptor), "rb") as file:  # noqa: PTH123  a descriptor
            for line in file:
                fact = _parsed(line)
                if fact is None:
                    return
                self._places.append(self._places[-1] + len(line))
                yield fact

    def add(self, fact: Fact, sync: bool = False) -> None:
        """Append a line. With `sync`, it and all lines before it survive a loss of power when this returns."""
        text = json.dumps(fact, separators=(",", ":"))
        disk.append(self._descriptor, f"{disk.crc_of_text(text)} {text}\n".encode("ascii"))
        if sync:
            os.fsync(self._descriptor)

    def hold(self) -> bool:
        """Lock the file until it is closed; whether no other process holds the lock. True on systems without locks."""
        if fcntl is None:
            return True
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
        return True

    def cut(self, count: int) -> None:
        """Drop all but the first `count` of the facts that were there when the ledger was opened."""
        os.ftruncate(self._descriptor, self._places[count])
        del self.facts[count:], self._places[count + 1 :]

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _parsed(line: bytes) -> Fact | None:
    """The fact of a complete line, None for anything else."""
    try:
        checksum, text = line.decode("ascii").split(" ", 1)
        if not text.endswith("\n") or disk.crc_of_text(text[:-1]) != checksum:
            return None
        fact = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return fact if isinstance(fact, dict) else None
