"""Files on servers: their facts, their bytes, and what lies in a folder. By obstore where it knows the scheme, by
fsspec else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import IO, Any, NamedTuple
from urllib.parse import unquote

from jittok.corpus.store import client
from jittok.corpus.store.base import Exchanged
from jittok.corpus.store.blocks import NoRanges
from jittok.corpus.store.opening import scheme_of
from jittok.errors import CorpusError, InWords, masked, missing

HTTP = ("http", "https")
OBJECTS = (*client.KINDS, *HTTP)
"""Schemes of which obstore is asked; memory:// as well, for what this process has written to it."""
PIECE = 8 << 20
"""Bytes of a file without ranges that are in memory at once."""
MAGIC = "*?["
SHOWN = r"(?!\.)"
ANY_FOLDERS = f"(?:{SHOWN}[^/]+/)*"


class FileFacts(NamedTuple):
    """A file on a server."""

    url: str
    size: int | None
    stamp: str  # a text that changes when the file does
    folder: bool = False


class Server:
    """Where a URL leads: obstore or fsspec."""

    def facts(self, url: str) -> FileFacts:
        """Facts of a file. FileNotFoundError."""
        raise NotImplementedError

    def below(self, url: str) -> list[FileFacts]:
        """The files below a folder, sorted by URL; empty where there is none."""
        raise NotImplementedError

    def fetch(self, file: FileFacts, start: int, stop: int) -> bytes:
        """Bytes [start, stop) of a file. Exchanged where it has not this size and stamp; NoRanges."""
        raise NotImplementedError

    def save(self, file: FileFacts, target: IO[bytes]) -> None:
        """Write all bytes of a file to another one, a piece at a time. Exchanged where it has not this size and
        stamp."""
        raise NotImplementedError

    def same(self, url: str) -> str:
        """The canonical form of a URL."""
        raise NotImplementedError


def server_of(url: str) -> Server:
    """Who is asked for a URL. ImportError for a missing package."""
    scheme = scheme_of(url)
    if scheme == "memory" and _in_our_memory(url):
        return Objects()
    if scheme in OBJECTS and not (scheme in HTTP and re.search("[?#]|//[^/]*@", url)):
        try:
            client.library(url)
        except ImportError:
            if scheme not in HTTP and not _fsspec_knows(scheme):
                raise
        else:
            return Objects()
    return Others()


def _fsspec_knows(scheme: str) -> bool:
    """Whether fsspec and its package for a scheme are installed."""
    try:
        import fsspec

        fsspec.get_filesystem_class(scheme)
    except (ImportError, ValueError):
        return False
    return True


def _in_our_memory(url: str) -> bool:
    place = client.parse(url)
    if not client.has_client(place):
        return False
    found = client.library().list(client.client(place), place.prefix or None)
    return any(True for page in found for _ in page) or _is_object(place)


def _is_object(place: client.Bucketed) -> bool:
    try:
        client.library().head(client.client(place), place.prefix)
    except FileNotFoundError:
        return False
    return True


class Objects(Server):
    """Files in buckets and of http servers, by obstore."""

    def facts(self, url: str) -> FileFacts:
        """Facts of a file."""
        place, key = _place(url)
        found = client.tried(url, lambda: client.library().head(client.client(place), key))
        return FileFacts(url, int(found["size"]), _stamp(found))

    def below(self, url: str) -> list[FileFacts]:
        """The files below a folder."""
        place, key = _place(url)
        if place.kind in HTTP:
            return []
        start = f"{scheme_of(url)}://{place.bucket + '/' if place.bucket else ''}"

        def ask() -> list[Any]:
            pages = client.library().list(client.client(place), key or None)
            return [each for page in pages for each in page]

        found = client.tried(url, ask)
        return sorted(FileFacts(f"{start}{each['path']}", int(each["size"]), _stamp(each)) for each in found)

    def fetch(self, file: FileFacts, start: int, stop: int) -> bytes:
        """Bytes [start, stop) of a file."""
        url = file.url
        place, key = _place(url)
        library = client.library()

        def ask() -> bytes:
            try:
                found = library.get(client.client(place), key, options={"range": (start, stop)})
            except library.exceptions.NotSupportedError:
                raise NoRanges from None
            except library.exceptions.GenericError as error:
                if client.is_beyond(error):  # it has become shorter
                    raise Exchanged(url, InWords("another state of it"), f"{file.size} bytes as at first") from None
                raise
            _check_state(file, FileFacts(url, found.meta["size"], _stamp(found.meta)))
            return bytes(found.bytes())

        found = client.tried(url, ask)
        if len(found) != stop - start:
            raise CorpusError(url, InWords(f"{len(found)} bytes"), f"the {stop - start} bytes that were asked for")
        return found

    def save(self, file: FileFacts, target: IO[bytes]) -> None:
        """Write all bytes of a file to another one."""
        place, key = _place(file.url)

        def ask() -> None:
            found = client.library().get(client.client(place), key)
            _check_state(file, FileFacts(file.url, found.meta["size"], _stamp(found.meta)))
            _write_pieces(file, found.stream(min_chunk_size=PIECE), target)

        client.tried(file.url, ask)

    def same(self, url: str) -> str:
        """The canonical form of a URL."""
        place, key = _place(url)
        return f"{place.kind}://{place.bucket}/{key}"


def _place(url: str) -> tuple[client.Bucketed, str]:
    place = client.parse(url)
    return place, unquote(place.prefix) if place.kind in HTTP else place.prefix


def _stamp(facts: Any) -> str:
    changed = facts["last_modified"]
    return f"{(facts['e_tag'] or '').strip(chr(34))} {'' if changed is None else int(changed.timestamp())}".strip()


class Others(Server):
    """Files of any scheme that fsspec knows."""

    def facts(self, url: str) -> FileFacts:
        """Facts of a file."""
        fs, path = filesystem(url)
        return _facts_of(url, fs.info(path))

    def below(self, url: str) -> list[FileFacts]:
        """The files below a folder."""
        fs, path = filesystem(url)
        if scheme_of(url) in HTTP or not fs.isdir(path):
            return []
        start, base = len(path.rstrip("/")), url.rstrip("/")
        # of some file systems the facts of a list are not those of a file
        return [FileFacts(f"{base}{name[start:]}", None, "") for name in sorted(fs.find(path))]

    def fetch(self, file: FileFacts, start: int, stop: int) -> bytes:
        """Bytes [start, stop) of a file."""
        url = file.url
        fs, path = filesystem(url)
        if scheme_of(url) in HTTP:
            found = _http_range(fs, path, start, stop)
        else:
            found = fs.cat_file(path, start=start, end=stop)
        if len(found) != stop - start:
            raise CorpusError(url, InWords(f"{len(found)} bytes"), f"the {stop - start} bytes that were asked for")
        return bytes(found)

    def save(self, file: FileFacts, target: IO[bytes]) -> None:
        """Write all bytes of a file to another one."""
        fs, path = filesystem(file.url)
        _check_state(file, self.facts(file.url))
        how = {"block_size": 0} if scheme_of(file.url) in HTTP else {}  # 0: one request for all of it
        with fs.open(path, "rb", **how) as opened:
            _write_pieces(file, iter(lambda: opened.read(PIECE), b""), target)

    def same(self, url: str) -> str:
        """The canonical form of a URL."""
        fs, path = filesystem(url)
        return str(fs.unstrip_protocol(path))


def _check_state(file: FileFacts, now: FileFacts) -> None:
    """Exchanged unless a file has the size and stamp that it was found with."""
    if (now.size, now.stamp) != (file.size, file.stamp):
        found = InWords(f"another state of it, of {now.size} bytes")
        raise Exchanged(file.url, found, f"{file.size} bytes as at first")


def _write_pieces(file: FileFacts, pieces: Iterable[Any], target: IO[bytes]) -> None:
    """Write the bytes of a file from the start of another one on. CorpusError unless there are as many as it has."""
    target.seek(0)
    target.truncate()
    for piece in pieces:
        target.write(piece)
    if target.tell() != file.size:
        raise CorpusError(file.url, InWords(f"{target.tell()} bytes"), f"all {file.size} bytes of it")


def _http_range(fs: Any, path: str, start: int, stop: int) -> bytes:
    """A part of a file of a server that may have no ranges: then it sends the whole file, unasked."""
    with fs.open(path, "rb", cache_type="none", block_size=max(stop - start, 1)) as file:
        if not file.seekable() or type(file).__name__ == "HTTPStreamFile":
            raise NoRanges
        file.seek(start)
        found: bytes = file.read(stop - start)
        return found


def _facts_of(url: str, facts: Any) -> FileFacts:
    marks = [facts.get(key) for key in ("ETag", "etag", "md5Hash", "mtime", "LastModified", "created")]
    size = facts.get("size")
    stamp = " ".join(str(mark) for mark in marks if mark is not None)
    return FileFacts(url, None if size is None else int(size), stamp, facts.get("type") == "directory")


def filesystem(url: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and its path there. ImportError for a missing package, CorpusError for an
    unknown URL."""
    try:
        import fsspec
    except ImportError:
        raise missing(f"{masked(url)}: reading URLs", "fsspec", "corpus") from None
    try:
        fs, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        scheme = scheme_of(url)
        if scheme in HTTP:
            raise missing(f"{masked(url)}: reading http", "aiohttp", "corpus") from error
        if scheme in client.KINDS:
            raise client.missing_cloud(url) from error
        raise ImportError(f"{masked(url)}: {error}", name=error.name) from error
    except ValueError as error:
        raise CorpusError(url, InWords(client.said(error)), "a URL that fsspec knows") from error
    return fs, path


def fixed_part(pattern: str) -> str:
    """The folder of a pattern before its first wildcard.

    Examples:
        >>> fixed_part("s3://bucket/a/b*/c.jsonl")
        's3://bucket/a'

    """
    first = min(pattern.find(mark) for mark in MAGIC if mark in pattern)
    return pattern[:first].rpartition("/")[0]


def matcher(pattern: str) -> re.Pattern[str]:
    """The regular expression of a pattern: `*` and `?` stay within a component, `**` as one crosses any number;
    hidden names are matched by their dot alone. CorpusError for a range whose end is before its start.

    Examples:
        >>> bool(matcher("s3://b/**/*.jsonl").fullmatch("s3://b/x/y.jsonl"))
        True
        >>> bool(matcher("s3://b/*.jsonl").fullmatch("s3://b/x/y.jsonl"))
        False

    """
    *above, last = pattern.split("/")
    found = "".join(ANY_FOLDERS if part == "**" else f"{_component(part)}/" for part in above)
    found += f"{ANY_FOLDERS}{SHOWN}[^/]+" if last == "**" else _component(last)
    try:
        return re.compile(found, re.DOTALL)
    except re.error as error:
        said = InWords(f"a pattern with a {error.msg}")
        raise CorpusError(pattern, said, "characters between [ and ] in ascending order") from None


def _component(pattern: str) -> str:
    """The regular expression of one component."""
    found, at = SHOWN if pattern.startswith(tuple(MAGIC)) else "", 0
    while at < len(pattern):
        mark, at = pattern[at], at + 1
        end = pattern.find("]", at + 1 + (pattern[at : at + 1] == "!")) if mark == "[" else -1
        if end > 0:
            chosen = pattern[at:end].replace("\\", r"\\").replace("[", r"\[")
            found += f"[^/{chosen[1:]}]" if chosen.startswith("!") else f"[{chosen.replace('^', chr(92) + '^')}]"
            at = end + 1
        else:
            found += {"*": "[^/]*", "?": "[^/]"}.get(mark, re.escape(mark))
    return found
