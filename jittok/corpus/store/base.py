"""The interface of a store."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from jittok.corpus.store.disk import is_component
from jittok.errors import CorpusError, InWords

MOST_COMPONENTS = 16


class Unreachable(CorpusError):
    """A server that does not answer: it stops a run, as it says nothing about a single file."""


class Exchanged(CorpusError):
    """A file that was changed or replaced since it was found: it stops a run."""


class Stored(NamedTuple):
    """An object in a store. `tag` changes with every write to its name; `changed`: seconds since 1970."""

    name: str
    size: int
    tag: str
    changed: float


class Store(ABC):
    """A folder or a bucket's prefix, with everything below it.

    Names are relative: "npy/00000.ids.npy". What a store cannot do raises OSError or CorpusError, whose texts name the
    place and hold no credentials. A store may be pickled, and used in the child of a fork: whatever talks to a server
    is made in each process, when it is needed.
    """

    place: str
    """The folder or URL, as messages name it."""
    local: Path | None = None
    """The folder on this machine, None for what lies elsewhere."""

    @property
    def grows(self) -> str:
        """Where files are before they are published, as an error of a full disk names it."""
        return self.place

    @abstractmethod
    def objects(self, under: str = "") -> Iterator[Stored]:
        """The objects below a folder, sorted by name (code points); none where there is no such folder. Names that this
        interface would not take (of other programs) are left out."""

    @abstractmethod
    def head(self, name: str) -> Stored | None:
        """Facts of an object, None if it is not there."""

    @abstractmethod
    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Bytes [start, stop) of an object, up to its end if `stop` is None or lies after it. FileNotFoundError."""

    @abstractmethod
    def read_tagged(self, name: str) -> tuple[bytes, str]:
        """All bytes of a small object, and the tag of what was read. FileNotFoundError."""

    @abstractmethod
    def create(self, name: str, data: bytes) -> bool:
        """Write a small object if there is none of this name; whether there was none.

        False may also be the answer where the object is this call's own: the first answer of a server was lost, and
        the request was repeated. Who needs to know reads it back (as `claim` does).
        """

    @abstractmethod
    def replace(self, name: str, data: bytes, tag: str) -> bool:
        """Write a small object if the one that is there has this tag; whether it had. As with `create`, False may be
        the answer to what this call itself has written."""

    @abstractmethod
    def put(self, name: str, data: bytes) -> None:
        """Write a small object, whatever was there; it survives a loss of power when this returns."""

    @abstractmethod
    def publish(self, path: Path, name: str, mark: str = "") -> None:
        """Move a finished file of `scratch` to its final name, replacing what was there. The name is there with all
        bytes or not at all, and survives a loss of power when this returns.

        `mark`: who writes what (run, part and digest), kept with the object where the store can: if the answer to an
        upload is lost, size and mark of what is there tell whether it has arrived.
        """

    @abstractmethod
    def mark_of(self, name: str) -> str:
        """The mark that an object was published with, "" where the store keeps none or the object is not there."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove an object; nothing happens if it is not there."""

    @abstractmethod
    def clear(self, under: str) -> None:
        """Remove a folder with everything in it, and what `scratch` made there. A link in it goes, not what it leads
        to."""

    @abstractmethod
    def scratch(self, name: str) -> Path:
        """A new empty folder on this machine, which only this user can write to and from which `publish` moves files.
        Of a local store it is the folder `name` in it, else a temporary one."""

    @abstractmethod
    def discard_unfinished(self, under: str = "") -> int:
        """Remove what writers that died have left in a folder: temporary files of a local one; in a bucket the uploads
        that were begun below it and never completed, which cost money and are seen nowhere. Their number.

        What is still being written there fails, so that nobody else may write to a local folder meanwhile; an upload is
        repeated by who makes it. CorpusError for a whole bucket.
        """

    def where(self, name: str) -> str:
        """The full name of an object, for messages."""
        return f"{self.place.rstrip('/')}/{name}"

    def absent(self, name: str) -> FileNotFoundError:
        """The error for an object that is not there."""
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.where(name))


def components(name: str, place: str) -> tuple[str, ...]:
    """The components of a name. CorpusError for a name that could lead elsewhere."""
    parts = tuple(name.split("/"))
    if len(parts) > MOST_COMPONENTS or not all(map(is_component, parts)):
        raise CorpusError(place, InWords(f"the name {name!r}"), "FOLDER/FILE, without .. or empty parts")
    return parts


def is_name(name: str) -> bool:
    """Whether `components` takes it."""
    parts = name.split("/")
    return len(parts) <= MOST_COMPONENTS and all(map(is_component, parts))
