"""Multipart uploads of S3 that were begun and never completed: listed and ended.

obstore has no request for them. The two that are needed are signed here (AWS Signature Version 4).
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import logging
import os
from collections.abc import Callable
from datetime import datetime, timezone
from functools import partial
from typing import NamedTuple, TypeVar
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

from jittok.corpus.store import client
from jittok.corpus.store.client import boto_session, timeout

T = TypeVar("T")
log = logging.getLogger("jittok")
MOST_BYTES = 16 << 20
"""Of one answer: a thousand uploads have less than 2 MB."""
MOST_PAGES = 100
PASSING = (408, 425, 429)
"""Statuses below 500 that another try may not get."""
FAULTS = (OSError, http.client.HTTPException, ElementTree.ParseError)
EMPTY = hashlib.sha256(b"").hexdigest()


class Keys(NamedTuple):
    """Credentials of S3."""

    key: str
    secret: str
    token: str


class Upload(NamedTuple):
    """An upload that was not completed: its object and its number."""

    key: str
    upload: str


def abort(bucket: str, prefix: str) -> int:
    """End all uploads of objects whose keys begin with `prefix`; their number. Where the credentials or the rights
    for it are missing, a warning says so: a rule of the bucket may remove such uploads, too."""
    keys = _keys()
    if keys is None:
        return 0
    ended = 0
    try:
        for upload in _listed(bucket, prefix, keys):
            query = {"uploadId": upload.upload}
            status, _ = _tried(partial(_ask, "DELETE", bucket, upload.key, query, keys))
            ended += status != 404
    except FAULTS as error:
        log.warning("s3://%s/%s: uploads that were never completed are not removed: %s", bucket, prefix, error)
    return ended


def _tried(ask: Callable[[], T]) -> T:
    """What a request returns, made as often as those of obstore."""
    for attempt in range(client.OWN_TRIES):
        try:
            return ask()
        except PermissionError:
            raise
        except FAULTS:
            if attempt + 1 == client.OWN_TRIES:
                raise
        client.pause(attempt)
    raise AssertionError


def _keys() -> Keys | None:
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    found = Keys(*(os.environ.get(name, "") for name in names))
    if found.key and found.secret:
        return found
    session = boto_session()
    if session is None:
        return None
    frozen = session.get_credentials().get_frozen_credentials()
    return Keys(frozen.access_key, frozen.secret_key, frozen.token or "")


def _listed(bucket: str, prefix: str, keys: Keys) -> list[Upload]:
    found: list[Upload] = []
    query = {"uploads": "", "prefix": prefix}
    for _ in range(MOST_PAGES):
        tree = _tried(partial(_page, bucket, query, keys))
        space = tree.tag.partition("}")[0] + "}" if tree.tag.startswith("{") else ""
        for each in tree.iter(f"{space}Upload"):
            key, number = each.findtext(f"{space}Key") or "", each.findtext(f"{space}UploadId") or ""
            if key.startswith(prefix) and number:
                found.append(Upload(key, number))
        if (tree.findtext(f"{space}IsTruncated") or "").lower() != "true":
            break
        markers = tree.findtext(f"{space}NextKeyMarker") or "", tree.findtext(f"{space}NextUploadIdMarker") or ""
        query = {"uploads": "", "prefix": prefix, "key-marker": markers[0], "upload-id-marker": markers[1]}
    return found


def _page(bucket: str, query: dict[str, str], keys: Keys) -> ElementTree.Element:
    """A part of the list of uploads."""
    status, body = _ask("GET", bucket, "", query, keys)
    if status != 200:
        raise PermissionError(f"status {status} for their list")
    if b"<!DOCTYPE" in body or b"<!ENTITY" in body:
        raise PermissionError("an answer that is no list")
    return ElementTree.fromstring(body)  # noqa: S314  bounded, and without entities


def _ask(method: str, bucket: str, key: str, query: dict[str, str], keys: Keys) -> tuple[int, bytes]:
    """Status (of success, or 404) and body of a signed request. PermissionError where it would be refused again."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    parts = urlsplit(client.endpoint_of("s3") or f"https://s3.{region}.amazonaws.com")
    path = quote(f"{parts.path.rstrip('/')}/{bucket}/{key}", safe="/-_.~")
    asked = "&".join(f"{quote(name, safe='-_.~')}={quote(text, safe='-_.~')}" for name, text in sorted(query.items()))
    now = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": parts.netloc.rpartition("@")[2], "x-amz-content-sha256": EMPTY, "x-amz-date": now}
    if keys.token:
        headers["x-amz-security-token"] = keys.token
    headers["authorization"] = authorization((method, path, asked), headers, keys, region)
    opened = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = opened(headers["host"], timeout=timeout())
    try:
        connection.request(method, f"{path}?{asked}", headers=headers)
        answer = connection.getresponse()
        body = answer.read(MOST_BYTES + 1)
        if len(body) > MOST_BYTES:
            raise OSError("an answer that is too long")
        if answer.status >= 500 or answer.status in PASSING:
            raise OSError(f"status {answer.status}")
        if answer.status not in (200, 204, 404):
            raise PermissionError(f"status {answer.status}")
        return answer.status, body
    finally:
        connection.close()


def authorization(request: tuple[str, str, str], headers: dict[str, str], keys: Keys, region: str) -> str:
    """The header that signs a request without a body: method, path and query; `headers` with lower-case names.

    Examples:
        >>> keys = Keys("AKID", "secret", "")
        >>> headers = {"host": "s3.local", "x-amz-content-sha256": EMPTY, "x-amz-date": "20260102T030405Z"}
        >>> authorization(("GET", "/b/", "uploads="), headers, keys, "us-east-1")[:62]
        'AWS4-HMAC-SHA256 Credential=AKID/20260102/us-east-1/s3/aws4_re'

    """
    method, path, query = request
    names = ";".join(sorted(headers))
    lines = [method, path, query, *(f"{name}:{headers[name]}" for name in sorted(headers)), "", names, EMPTY]
    now = headers["x-amz-date"]
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256("\n".join(lines).encode()).hexdigest()])
    key = f"AWS4{keys.secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.new(key, text.encode(), "sha256").hexdigest()
    return f"AWS4-HMAC-SHA256 Credential={keys.key}/{scope}, SignedHeaders={names}, Signature={signature}"
