"""The store of a path or URL."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from jittok.corpus.store.base import Store
from jittok.corpus.store.local import LocalStore
from jittok.errors import CorpusError, InWords, has_secret

LOCAL = ("file://", "local://")
"""Schemes of local files."""
BUCKETS = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "memory")
"""Schemes of buckets that can be written to."""


def scheme_of(name: str) -> str:
    """The scheme of a URL in lower case, "" for a path."""
    return name.partition("://")[0].lower() if "://" in name else ""


def is_far(name: str | os.PathLike[str]) -> bool:
    """Whether a name is the URL of a bucket, which `open_store` opens."""
    return scheme_of(os.fsdecode(name)) in BUCKETS


def refuse_secrets(names: Iterable[str]) -> None:
    """CorpusError for a URL with a signature or a password: messages, the plan and the manifest would have it."""
    for name in names:
        if "://" in name and has_secret(name):
            found = InWords("a URL with a signature or a password, which plan and manifest would have")
            shown = "".join(name.split())  # masked as one word
            raise CorpusError(shown, found, "a URL without, and credentials in the environment (or a copy of the file)")


def open_store(place: str | os.PathLike[str]) -> Store:
    """The store of a folder or of a URL: s3://BUCKET/PREFIX, gs://, az://, memory://, file://. Nothing is asked yet.

    Raises CorpusError for another scheme, ImportError without the extra `cloud`.
    """
    name = os.fsdecode(place)
    refuse_secrets([name])
    for start in LOCAL:
        if name.lower().startswith(start):
            return LocalStore(name[len(start) :])
    if is_far(name):
        from jittok.corpus.store.bucket import Bucket

        return Bucket(name)
    if scheme_of(name) or re.match(r"(s3|gs|gcs|az|abfss?|hdfs|https?|hf):/", name):  # pathlib turns // into /
        expected = f"a folder, or a URL of {', '.join(f'{each}://' for each in ('s3', 'gs', 'az', 'memory', 'file'))}"
        raise CorpusError("--out", name, expected)
    return LocalStore(place)
