"""Clients of obstore: one for each bucket and process, made when it is needed, and requests that are tried again.

obstore runs its requests on threads of its own, which a fork does not copy: in the child every request would wait
forever. The child of a process that has used it therefore loads the library once more, from a copy, whose state is
new (`library`).
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import logging
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jittok.common.locks import Lock
from jittok.corpus.store.base import Unreachable
from jittok.errors import CorpusError, InWords, JittokError, masked, missing

T = TypeVar("T")
log = logging.getLogger("jittok")
TIMEOUT = "JITTOK_CLOUD_TIMEOUT"
"""Environment variable: seconds that a request may take."""
SECONDS = 20.0
OWN_TRIES = 8
"""Times that a request is made, each of which obstore tries INNER_TRIES times."""
INNER_TRIES = 3
FIRST_WAIT, LONGEST_WAIT = 0.1, 10.0
EXTENSION = "obstore._obstore"
_AGAIN = re.compile(r"status code: (?!408|409|425|429)4\d\d")
"""What the text of an error has if the request would be refused again."""
_SECRETS = re.compile(r"(?<=[?&;])[^\s)\"'<>]*|(?<=://)[^\s/@]*@")
_REQUEST = re.compile(
    r"(?:.*?Generic \w+ error: )?Error performing (\w+) \S+ in [^ ,]+(?:, after .*?retry_timeout: \S+)?[ -]*"
)
_lock = Lock()
_clients: dict[Any, Any] = {}
_state = {"process": os.getpid(), "stale": False}


class Bucketed(NamedTuple):
    """A place in a bucket: "s3", the bucket (of http the server), and the prefix in it."""

    kind: str
    bucket: str
    prefix: str


KINDS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "az": "az", "azure": "az", "abfs": "az", "abfss": "az"}
"""Schemes of URLs, and how the same are named here."""


ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"), "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}  # fmt: skip
"""Variables with the server's URL, where it is not the provider's own."""
WITHOUT_TLS = {
    "s3": ("AWS_ALLOW_HTTP",), "gs": ("GOOGLE_ALLOW_HTTP",),
    "az": ("AZURE_ALLOW_HTTP", "AZURE_STORAGE_USE_EMULATOR", "AZURE_USE_EMULATOR"),
}  # fmt: skip
"""Variables that say that a server speaks plain HTTP."""


def endpoint_of(kind: str) -> str:
    """The URL of a server that the environment names, "" for the provider's own."""
    return next((os.environ[name] for name in ENDPOINTS.get(kind, ()) if os.environ.get(name)), "")


def _is_plain(kind: str) -> bool:
    """Whether requests may go without TLS: the options of a client, which take the place of these variables, have it
    off."""
    said = (os.environ.get(name, "").lower() for name in WITHOUT_TLS.get(kind, ()))
    return kind == "http" or endpoint_of(kind).startswith("http://") or any(text in ("1", "true") for text in said)


def parse(url: str) -> Bucketed:
    """The bucket and the prefix of a URL. CorpusError for one without a bucket."""
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    bucket, _, prefix = rest.partition("/")
    if scheme == "memory":
        return Bucketed("memory", "", rest.strip("/"))
    if scheme in ("http", "https"):
        return Bucketed(scheme, bucket, prefix)
    bucket, at, account = bucket.partition("@")  # abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH
    if not bucket:
        raise CorpusError(url, InWords("a URL without a bucket"), f"{scheme}://BUCKET/PREFIX")
    kind = KINDS[scheme]
    return Bucketed(kind, f"{bucket}{at}{account}" if kind == "az" else bucket, prefix.strip("/"))


def missing_cloud(what: str) -> ImportError:
    """The error where obstore is not installed."""
    return missing(masked(what), "obstore", "cloud")


def library(what: str = "a bucket") -> Any:
    """The module obstore, with threads of this process. ImportError."""
    with _lock:
        if _state["process"] != os.getpid():
            _clients.clear()
            _state["process"] = os.getpid()
        try:
            if _state["stale"]:
                _load_again()
                _state["stale"] = False
            import obstore
            import obstore.store
        except ImportError as error:
            raise missing_cloud(what) from error
        return obstore


def _load_again() -> None:
    """Import obstore from a copy of its library. The loader of the system keeps one state for each file."""
    path = Path(sys.modules[EXTENSION].__file__ or "")
    spec = importlib.util.find_spec("obstore")
    if not path.is_file() and spec is not None and spec.submodule_search_locations:  # a child of such a child
        path = next(Path(spec.submodule_search_locations[0]).glob("_obstore*"))
    for name in [name for name in sys.modules if name == "obstore" or name.startswith("obstore.")]:
        del sys.modules[name]
    with tempfile.TemporaryDirectory(prefix="jittok-obstore-") as folder:
        copy = Path(folder) / f"{os.getpid()}-{path.name}"
        copy.write_bytes(path.read_bytes())
        finder = _Copy(str(copy))
        sys.meta_path.insert(0, finder)
        try:
            importlib.import_module("obstore")
        finally:
            sys.meta_path.remove(finder)


class _Copy:
    """Finds the library of obstore in a copy."""

    def __init__(self, path: str) -> None:
        self._path = path

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        """The spec of the copy."""
        if name != EXTENSION:
            return None
        loader = importlib.machinery.ExtensionFileLoader(name, self._path)
        return importlib.util.spec_from_file_location(name, self._path, loader=loader)


def _forked() -> None:
    _state["stale"] = EXTENSION in sys.modules


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def timeout() -> float:
    """Seconds that a request may take. CorpusError for a variable that is no number of seconds."""
    text = os.environ.get(TIMEOUT, "")
    try:
        seconds = float(text) if text else SECONDS
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 86400:
        raise CorpusError(TIMEOUT, text, "a number of seconds")
    return seconds


def client(place: Bucketed) -> Any:
    """The client of a bucket in this process."""
    obstore = library(f"{place.kind}://{place.bucket}")
    key = place.kind, place.bucket
    with _lock:
        if key not in _clients:
            _clients[key] = _made(obstore.store, place)
        return _clients[key]


def has_client(place: Bucketed) -> bool:
    """Whether this process has asked this bucket before."""
    with _lock:
        return _state["process"] == os.getpid() and (place.kind, place.bucket) in _clients


def _made(stores: Any, place: Bucketed) -> Any:
    kind, bucket, _ = place
    if kind == "memory":
        return stores.MemoryStore()
    endpoint = endpoint_of(kind)
    common: dict[str, Any] = {
        "client_options": {
            "timeout": timedelta(seconds=timeout()), "connect_timeout": timedelta(seconds=min(timeout(), 10.0)),
            **({"allow_http": True} if _is_plain(kind) else {}),
        },
        "retry_config": {"max_retries": INNER_TRIES, "retry_timeout": timedelta(seconds=3 * timeout())},
    }  # fmt: skip
    try:
        if kind in ("http", "https"):
            return stores.HTTPStore.from_url(f"{kind}://{bucket}", **common)
        if kind == "s3":
            known = {"endpoint": endpoint} if endpoint else {}
            return stores.S3Store(bucket, **known, **_credentials(), **common)
        if kind == "gs":
            return stores.GCSStore(bucket, **common)
        container, _, account = bucket.partition("@")
        known = {"account_name": account.partition(".")[0]} if account else {}
        return stores.AzureStore(container, **known, **common)
    except (library().exceptions.BaseError, ValueError, TypeError) as error:
        raise CorpusError(f"{kind}://{bucket}", InWords(said(error)), "settings that obstore takes") from None


def _credentials() -> dict[str, Any]:
    """Where the credentials of S3 come from if no variable has them: boto3 where it is installed and has some. Else
    obstore asks the machine's own service for them."""
    named = ("AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE", "AWS_WEB_IDENTITY_TOKEN_FILE")
    if any(os.environ.get(name) for name in (*named, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")):
        return {}
    session = boto_session()
    if session is None:
        return {}
    from obstore.auth.boto3 import Boto3CredentialProvider

    return {"credential_provider": Boto3CredentialProvider(session)}


def boto_session() -> Any:
    """A session of boto3 with credentials, None where there is none."""
    try:
        import boto3
    except ImportError:
        return None
    session = boto3.Session()
    return session if session.get_credentials() is not None else None


def said(error: BaseException) -> str:
    """The first line of an error's text, without what may be secret: queries of URLs, users and passwords."""
    text = str(error).partition("\n\nDebug source")[0]
    text = " ".join(re.sub(r"<\?xml.*?\?>", "", text, flags=re.DOTALL).split())
    code = re.search(r"<Code>(\w+)</Code>", text)
    text = _SECRETS.sub("…", re.sub(r"<Error>.*", code[1] if code else "", text))
    text = _REQUEST.sub(r"\1: ", text)  # who raises it names the place
    return text[:300] or type(error).__name__


def is_beyond(error: BaseException) -> bool:
    """Whether a range begins where an object has ended."""
    return "Wanted range" in str(error) or "status code: 416" in str(error)


def tried(where: str, ask: Callable[[], T]) -> T:
    """What a request returns that may be made again, made up to OWN_TRIES times.

    Raises FileNotFoundError, PermissionError, obstore's AlreadyExistsError and PreconditionError; Unreachable where
    the server does not answer, CorpusError where it refuses the request as such.
    """
    exceptions = library(where).exceptions
    for attempt in range(OWN_TRIES):
        try:
            return ask()
        except JittokError:
            raise
        except FileNotFoundError as error:
            raise FileNotFoundError(error.errno or 2, "No such object", where) from None
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            raise
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise PermissionError(13, said(error), where) from None
        except (exceptions.BaseError, ValueError) as error:
            found = said(error)
            if not isinstance(error, exceptions.GenericError) or _AGAIN.search(str(error)):
                raise CorpusError(where, InWords(found), "a name and settings that the server takes") from None
            if attempt + 1 == OWN_TRIES:
                expected = "a server that answers (network, endpoint and credentials; then the same command again)"
                raise Unreachable(where, InWords(f"{OWN_TRIES} times {found}"), expected) from None
            log.info("%s: %s; trying again", masked(where), found)
        pause(attempt)
    raise AssertionError


def pause(attempt: int) -> None:
    """Wait after a request that failed, the longer the more often it has."""
    time.sleep(min(FIRST_WAIT * 2**attempt, LONGEST_WAIT) * random.uniform(0.5, 1.0))  # noqa: S311
