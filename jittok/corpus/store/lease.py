"""Leases: who works on what for a while, kept as objects of a store.

A lease saves work and never decides what is right: two processes that believe to hold one write the same bytes. It
holds the token of its owner and is read back, because the answer to a request may be lost: a server then says that the
object is there already, and it is ours.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass, field

from jittok.corpus.store.base import Store

SECONDS = 120.0
"""How long a lease is held without being renewed."""

LONGEST = 86400.0
"""No lease is longer: what says so is none."""


@dataclass
class Lease:
    """A lease that this process holds."""

    store: Store
    name: str
    seconds: float = SECONDS
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    until: float = 0.0
    lost: int = 0  # leases on this name before it that ended without being given up: their owners died
    _tag: str = ""

    def renew(self) -> bool:
        """Hold it for `seconds` more; whether it is still this process's."""
        data = self._data()
        if not self.store.replace(self.name, data, self._tag) and not self._is_ours():
            return False
        return self._read_back()

    def release(self) -> None:
        """Give it up, if it is still this process's."""
        if self._is_ours():
            self.store.delete(self.name)

    def _data(self) -> bytes:
        self.until = time.time() + self.seconds
        return json.dumps({"owner": self.token, "until": self.until, "lost": self.lost}).encode()

    def _is_ours(self) -> bool:
        found = _read(self.store, self.name)
        return found is not None and found.owner == self.token

    def _read_back(self) -> bool:
        found = _read(self.store, self.name)
        if found is None or found.owner != self.token:
            return False
        self._tag = found.tag
        return True


@dataclass(frozen=True)
class _Held:
    owner: str
    until: float
    tag: str
    lost: int = 0


def _read(store: Store, name: str) -> _Held | None:
    """What a lease says, None if there is none. What is no lease has no owner and ends a while after it was written."""
    try:
        data, tag = store.read_tagged(name)
    except FileNotFoundError:
        return None
    try:
        fact = json.loads(data)
        owner, until = str(fact["owner"]), float(fact["until"])
        if until < time.time() + LONGEST:
            return _Held(owner, until, tag, int(fact.get("lost", 0)))
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    found = store.head(name)
    return None if found is None else _Held("", found.changed + SECONDS, tag)


def is_held(store: Store, name: str) -> bool:
    """Whether a process holds a lease on a name now."""
    held = _read(store, name)
    return held is not None and held.until >= time.time()


def claim(store: Store, name: str, seconds: float = SECONDS) -> Lease | None:
    """A lease on a name, None while another process holds it. One that has ended is taken over.

    Clocks of machines should agree within a small part of `seconds`; where they do not, work is done twice.

    Examples:
        >>> import tempfile
        >>> from jittok.corpus.store import open_store
        >>> store = open_store(tempfile.mkdtemp())
        >>> lease = claim(store, "t/00012.lease")
        >>> claim(store, "t/00012.lease") is None
        True
        >>> lease.release()

    """
    lease = Lease(store, name, seconds)
    held = _read(store, name)
    if held is None:
        store.create(name, lease._data())
    elif held.until < time.time():
        lease.lost = held.lost + 1
        store.replace(name, lease._data(), held.tag)
    else:
        return None
    return lease if lease._read_back() else None
