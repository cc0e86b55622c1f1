"""A bucket as a store: S3, Google Cloud Storage, Azure, or the memory of this process, by obstore."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jittok.corpus.store import client, uploads
from jittok.corpus.store.base import Store, Stored, components, is_name
from jittok.errors import CorpusError, InWords

PIECE = 8 << 20
"""Bytes of one request: it ends within the timeout on a line of 4 MBit/s."""
MOST_PIECES = 9000
"""Of one upload; servers take 10,000."""
AT_ONCE = 4
"""Pieces of an upload that are under way at once."""
NO_BUCKET = re.compile("NoSuchBucket|ContainerNotFound|bucket does not exist")
MARK = "jittok"
"""The key under which an object carries who has written it."""


class Bucket(Store):
    """The objects of a bucket below a prefix."""

    def __init__(self, url: str) -> None:
        self._at = client.parse(url)
        if self._at.prefix:
            components(self._at.prefix, url)
        self.place = f"{self._at.kind}://{'/'.join(filter(None, self._at[1:]))}"
        self._scratch: dict[str, weakref.finalize[Any, Bucket]] = {}
        client.library(self.place)

    @property
    def grows(self) -> str:
        """The folder of temporary files."""
        return f"{tempfile.gettempdir()} (TMPDIR: shards for {self.place})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Bucket, (self.place,)

    def _key(self, name: str) -> str:
        components(name, self.place)
        return f"{self._at.prefix}/{name}" if self._at.prefix else name

    def _name(self, key: str) -> str:
        return key[len(self._at.prefix) + 1 :] if self._at.prefix else key

    @property
    def _client(self) -> Any:
        return client.client(self._at)

    def objects(self, under: str = "") -> Iterator[Stored]:
        """The objects below a folder, sorted by name."""
        prefix = self._key(under) if under else self._at.prefix

        def ask() -> list[Any]:
            pages = client.library().list(self._client, prefix or None)
            return [each for page in pages for each in page]

        found = (self._stored(facts) for facts in client.tried(self.where(under), ask))
        return iter(sorted(each for each in found if is_name(each.name)))

    def _stored(self, facts: Any) -> Stored:
        changed = facts["last_modified"].timestamp() if facts["last_modified"] else 0.0
        return Stored(self._name(facts["path"]), int(facts["size"]), facts["e_tag"] or "", changed)

    def head(self, name: str) -> Stored | None:
        """Facts of an object, None if it is not there."""
        key = self._key(name)
        try:
            return self._stored(client.tried(self.where(name), lambda: client.library().head(self._client, key)))
        except FileNotFoundError:
            return None

    def read(self, name: str, start: int = 0, stop: int | None = None) -> bytes:
        """Bytes [start, stop) of an object."""
        if stop is None:
            found = self.head(name)
            if found is None:
                raise self.absent(name)
            stop = found.size
        pieces: list[bytes] = []
        for at in range(start, stop, PIECE):
            pieces.append(self._range(name, at, min(at + PIECE, stop)))
            if len(pieces[-1]) < min(PIECE, stop - at):  # the object ends here
                break
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _range(self, name: str, start: int, stop: int) -> bytes:
        key, library = self._key(name), client.library()

        def ask() -> bytes:
            try:
                return bytes(library.get_range(self._client, key, start=start, end=stop))
            except library.exceptions.GenericError as error:
                if client.is_beyond(error):
                    return b""
                raise

        return client.tried(self.where(name), ask)

    def read_tagged(self, name: str) -> tuple[bytes, str]:
        """All bytes of a small object, and the tag of what was read."""
        key = self._key(name)

        def ask() -> tuple[bytes, str]:
            found = client.library().get(self._client, key)
            return bytes(found.bytes()), found.meta[self._condition] or ""

        return client.tried(self.where(name), ask)

    @property
    def _condition(self) -> str:
        """What conditional requests name an object's state by: Google's take its generation, not its tag."""
        return "version" if self._at.kind == "gs" else "e_tag"

    def create(self, name: str, data: bytes) -> bool:
        """Write a small object if there is none of this name (If-None-Match); whether there was none."""
        return self._conditional(name, data, "create")

    def replace(self, name: str, data: bytes, tag: str) -> bool:
        """Write a small object if the one that is there has this tag (If-Match); whether it had."""
        return self._conditional(name, data, {self._condition: tag})

    def _conditional(self, name: str, data: bytes, mode: Any) -> bool:
        key, library = self._key(name), client.library()
        try:
            client.tried(self.where(name), lambda: library.put(self._client, key, data, mode=mode))
        except (library.exceptions.AlreadyExistsError, library.exceptions.PreconditionError, FileNotFoundError):
            return False
        return True

    def put(self, name: str, data: bytes) -> None:
        """Write a small object, whatever was there."""
        key = self._key(name)
        client.tried(self.where(name), lambda: client.library().put(self._client, key, data, use_multipart=False))

    def publish(self, path: Path, name: str, mark: str = "") -> None:
        """Upload a finished file in pieces, and remove it."""
        key, size = self._key(name), path.stat().st_size
        attributes = {MARK: mark or secrets.token_hex(16)}
        piece = max(PIECE, -(-size // MOST_PIECES))

        def ask() -> None:
            library = client.library()
            try:
                library.put(
                    self._client, key, path, attributes=attributes, use_multipart=size > piece, chunk_size=piece,
                    max_concurrency=AT_ONCE,
                )  # fmt: skip
            except (library.exceptions.BaseError, FileNotFoundError) as error:
                # the answer to what completes it may be lost, and the next one says that there is no such upload
                facts, found = self._attributes(key)
                if facts is not None and facts.size == size and found == attributes[MARK]:
                    return
                if isinstance(error, FileNotFoundError) and not NO_BUCKET.search(str(error)):  # another has ended it
                    raise library.exceptions.GenericError("the upload was ended before it was complete") from None
                raise

        client.tried(self.where(name), ask)
        path.unlink()

    def mark_of(self, name: str) -> str:
        """The mark that an object was published with."""
        key = self._key(name)
        return client.tried(self.where(name), lambda: self._attributes(key)[1])

    def _attributes(self, key: str) -> tuple[Stored | None, str]:
        """Facts and mark of an object."""
        try:
            found = client.library().get(self._client, key, options={"head": True})
        except FileNotFoundError:
            return None, ""
        return self._stored(found.meta), str(found.attributes.get(MARK, ""))

    def delete(self, name: str) -> None:
        """Remove an object."""
        key = self._key(name)
        with contextlib.suppress(FileNotFoundError):
            client.tried(self.where(name), lambda: client.library().delete(self._client, key))

    def clear(self, under: str) -> None:
        """Remove all objects below a folder, and the folder on this machine that `scratch` made."""
        self._clear_scratch(under)
        for found in self.objects(under):
            self.delete(found.name)

    def scratch(self, name: str) -> Path:
        """A new temporary folder on this machine."""
        components(name, self.place)
        self._clear_scratch(name)
        folder = tempfile.mkdtemp(prefix="jittok-")
        self._scratch[name] = weakref.finalize(self, _remove, folder, os.getpid())
        return Path(folder)

    def _clear_scratch(self, name: str) -> None:
        kept = self._scratch.pop(name, None)
        if kept is not None:
            kept()

    def discard_unfinished(self, under: str = "") -> int:
        """End the uploads below a folder that were never completed (of S3; the other services end them themselves).
        CorpusError for a whole bucket, in which others upload as well."""
        prefix = self._key(under) if under else self._at.prefix
        if not prefix:
            raise CorpusError(self.place, InWords("uploads of a whole bucket"), "a folder whose uploads are ended")
        return uploads.abort(self._at.bucket, f"{prefix}/") if self._at.kind == "s3" else 0


def _remove(folder: str, process: int) -> None:
    """Remove a temporary folder, unless it is that of the process that this one was forked from."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
