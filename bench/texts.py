"""Corpora of what a machine has, each text once: `bench/scale.py` encodes them by the gigabyte.

Sources and documents of installed packages, manuals, files under folders that are named, and packages that
`apt-get download` fetches. A corpus is made once, and kept in a folder: its texts one after the other, and their
lengths.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import site
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

PAGES = ".1.gz", ".3.gz", ".5.gz", ".7.gz", ".8.gz"
ENDINGS = {
    "code": (
        *(".py", ".pyi", ".pyx", ".c", ".h", ".cc", ".cpp", ".hpp"),
        *(".rs", ".go", ".js", ".ts", ".sh", ".pl", ".f90", ".S"),
    ),
    "english": (".txt", ".txt.gz", ".rst", ".md", ".html", ".htm", ".tex", ".info.gz", *PAGES),
    "multilingual": (".po", ".properties", ".txt", ".html", *PAGES),
}
"""What the files of a corpus end in."""
FOLDERS = {
    "code": [sysconfig.get_path("stdlib"), *site.getsitepackages(), "/usr/include", "/usr/share", "/usr/src"],
    "english": ["/usr/share/doc", "/usr/share/man", sysconfig.get_path("stdlib"), *site.getsitepackages()],
    "multilingual": ["/usr/share/locale", "/usr/share/man", "/usr/share/help", "/usr/share/i18n"],
}
LANGUAGES = """
    ja ru ko zh-cn hi el vi tr de fr es pl hu fi uk zh-tw km dz am it cs da sv nl pt-br sk sl et eu ca gl id om
"""
PAGES_OF = "de fr es ja pl ru it zh ro nl pt-br tr hu cs da fi uk"
PACKAGES = {
    "code": ["linux-source-6.1", "linux-source-6.12", "gcc-12-source", "binutils-source"],
    "english": [
        *("linux-doc-6.1", "python3.11-doc", "openjdk-17-doc", "cppreference-doc-en-html", "sagemath-doc", "axiom-doc"),
        *("gnucash-docs", "python-django-doc", "postgresql-doc-15", "octave-doc", "maxima-doc", "sqlite3-doc"),
        *("libreoffice-help-en-us", "perl-doc", "nodejs-doc", "vim-doc", "fp-docs-3.2.2", "manpages", "manpages-dev"),
        *("debian-policy", "debian-reference-en", "bible-kjv-text", "fortunes", "rust-doc", "scala-doc"),
    ],
    "multilingual": [
        *(f"libreoffice-help-{language}" for language in LANGUAGES.split()),
        *(f"manpages-{language}" for language in PAGES_OF.split()),
    ],
}  # fmt: skip
"""Debian's, of which those that are there are taken."""
MARKUP = re.compile(rb"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)
"""What is left out of HTML."""
LEAST, MOST = 200, 4 << 20
"""Bytes of a text."""


def texts_of_file(name: str, read: Callable[[], bytes]) -> Iterator[bytes]:
    """The text of a file, if it is one."""
    try:
        raw = read()
        text = gzip.decompress(raw) if name.endswith(".gz") else raw
        text = MARKUP.sub(b"", text) if name.endswith((".html", ".htm")) else text
        text.decode()
    except (OSError, UnicodeDecodeError, EOFError, ValueError):
        return
    if LEAST <= len(text) <= MOST and b"\0" not in text:
        yield text


def texts_of_folder(folder: str | Path, endings: tuple[str, ...]) -> Iterator[bytes]:
    """All texts under a folder, in the order of their names."""
    for path in sorted(Path(folder).rglob("*")):
        if path.name.endswith(endings) and path.is_file() and not path.is_symlink():
            yield from texts_of_file(path.name, path.read_bytes)


def texts_of_package(package: str, endings: tuple[str, ...]) -> Iterator[bytes]:
    """All texts of a Debian package, those of source archives in it too; none where it cannot be had."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(["apt-get", "download", package], cwd=folder, capture_output=True, check=False)
        except FileNotFoundError:  # another system
            return
        for path in Path(folder).glob("*.deb") if done.returncode == 0 else []:
            files = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(path)], capture_output=True, check=True).stdout
            yield from _texts_of_tar(io.BytesIO(files), endings)


def _texts_of_tar(file: Any, endings: tuple[str, ...]) -> Iterator[bytes]:
    with tarfile.open(fileobj=file) as tar:
        for member in tar:
            inside = tar.extractfile(member) if member.isfile() else None
            if inside is None:
                continue
            if re.search(r"\.tar\.(xz|gz|bz2)$", member.name):
                yield from _texts_of_tar(inside, endings)
            elif member.name.endswith(endings):
                yield from texts_of_file(member.name, inside.read)


def _new_texts(name: str, folders: list[Path], debian: bool) -> Iterator[bytes]:
    """The texts of a corpus, no text twice."""
    seen: set[bytes] = set()
    sources: list[Iterable[bytes]] = [texts_of_package(package, ENDINGS[name]) for package in PACKAGES[name] if debian]
    sources += [texts_of_folder(folder, ENDINGS[name]) for folder in folders or FOLDERS[name]]
    for source in sources:
        for text in source:
            key = hashlib.blake2b(text, digest_size=12).digest()
            if key not in seen:
                seen.add(key)
                yield text


def corpus(name: str, folders: list[Path], debian: bool, most: int, keep: Path) -> Iterator[bytes]:
    """The texts of a corpus, up to so many bytes: made, or as they were kept before."""
    chosen = hashlib.sha256(repr((name, [*map(str, folders)], debian, most)).encode()).hexdigest()[:8]
    place, sizes = keep / f"{name}-{chosen}.txt", keep / f"{name}-{chosen}.npy"
    if not sizes.exists():
        print(f"{name}: makes the corpus, {place}", file=sys.stderr)
        keep.mkdir(parents=True, exist_ok=True)
        lengths, left = [], most
        with place.open("wb") as file:
            for text in _new_texts(name, folders, debian):
                file.write(text)
                lengths.append(len(text))
                left -= len(text)
                if left <= 0:
                    break
        np.save(sizes, np.array(lengths, np.int64))
    with place.open("rb") as file:
        for size in np.load(sizes).tolist():
            yield file.read(size)


def batches(texts: Iterator[bytes], size: int) -> Iterator[list[bytes]]:
    """Texts in batches of about so many bytes; what is left over at the end is not enough for one."""
    batch: list[bytes] = []
    here = 0
    for text in texts:
        batch.append(text)
        here += len(text)
        if here >= size:
            yield batch
            batch, here = [], 0
