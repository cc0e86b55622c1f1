"""Google Cloud Storage as its XML interface is documented, in memory: no emulator at hand speaks it."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
import time
from datetime import datetime, timezone
from email.utils import formatdate
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "corpora"


class Kept(NamedTuple):
    data: bytes
    generation: int
    meta: dict[str, str]
    at: float

    @property
    def headers(self) -> dict[str, str]:
        return {
            "ETag": f'"{hashlib.md5(self.data).hexdigest()}"', "x-goog-generation": str(self.generation),
            "Last-Modified": formatdate(self.at, usegmt=True), **self.meta,
        }  # fmt: skip


class Google(http.server.ThreadingHTTPServer):
    """One bucket. `uploads`: those that were begun and not completed. `ends`: so many of them are ended by
    somebody else as soon as a piece comes ("piece"), or when they are to be completed ("complete")."""

    daemon_threads = True

    def __init__(self) -> None:
        self.objects: dict[str, Kept] = {}
        self.uploads: dict[str, tuple[dict[str, str], dict[int, bytes]]] = {}
        self.generation, self.lock = 1000, threading.Lock()
        self.ends = {"piece": 0, "complete": 0}
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        """The variables that lead to it."""
        names = ("client_email", "private_key", "private_key_id")
        account = {"gcs_base_url": self.url, "disable_oauth": True, **dict.fromkeys(names, "")}
        return {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(account), "GOOGLE_ALLOW_HTTP": "true"}

    def end(self, when: str, number: str) -> None:
        if self.ends[when]:
            self.ends[when] -= 1
            self.uploads.pop(number, None)

    def keep(self, key: str, data: bytes, meta: dict[str, str]) -> Kept:
        self.generation += 1
        self.objects[key] = Kept(data, self.generation, meta, float(int(time.time())))
        return self.objects[key]

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # header and body in one packet
    server: Google

    def log_message(self, *_: Any) -> None:
        pass

    def answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, text in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def asked(self) -> None:
        parts = urlsplit(self.path)
        query = {name: texts[0] for name, texts in parse_qs(parts.query, keep_blank_values=True).items()}
        bucket, _, key = unquote(parts.path.lstrip("/")).partition("/")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.server.lock:
            if bucket != BUCKET:
                self.answer(404, b"<Error><Code>NoSuchBucket</Code></Error>")
            else:
                getattr(self, self.command.lower())(key, query, body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = asked  # noqa: N815

    def meta(self) -> dict[str, str]:
        return {name.lower(): text for name, text in self.headers.items() if name.lower().startswith("x-goog-meta-")}

    def get(self, key: str, query: dict[str, str], _: bytes) -> None:
        if not key:
            return self.listed(query.get("prefix", ""))
        kept = self.server.objects.get(key)
        if kept is None:
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        asked, size = self.headers.get("Range", ""), len(kept.data)
        if not asked:
            return self.answer(200, kept.data, kept.headers)
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start, stop = int(first), min(int(last) + 1 if last else size, size)
        if start >= size:
            return self.answer(416, b"", {"Content-Range": f"bytes */{size}"})
        return self.answer(
            206, kept.data[start:stop], {**kept.headers, "Content-Range": f"bytes {start}-{stop - 1}/{size}"}
        )

    def head(self, key: str, _: dict[str, str], __: bytes) -> None:
        kept = self.server.objects.get(key)
        if kept is None:
            return self.answer(404)
        return self.answer(200, b"", {"Content-Length": str(len(kept.data)), **kept.headers})

    def listed(self, prefix: str) -> None:
        rows = ""
        for key, kept in sorted(self.server.objects.items()):
            if key.startswith(prefix):
                at = datetime.fromtimestamp(kept.at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
                facts = {
                    "Key": escape(key), "Generation": kept.generation, "LastModified": at, "ETag": kept.headers["ETag"],
                    "Size": len(kept.data),
                }  # fmt: skip
                inner = "".join(f"<{name}>{fact}</{name}>" for name, fact in facts.items())
                rows += f"<Contents>{inner}</Contents>"
        self.answer(200, f"<ListBucketResult><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>".encode())

    def put(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploadId" in query:
            self.server.end("piece", query["uploadId"])
            if query["uploadId"] not in self.server.uploads:
                return self.answer(404, b"<Error><Code>NoSuchUpload</Code></Error>")
            self.server.uploads[query["uploadId"]][1][int(query["partNumber"])] = body
            return self.answer(200, b"", {"ETag": f'"{hashlib.md5(body).hexdigest()}"'})
        wanted, kept = self.headers.get("x-goog-if-generation-match"), self.server.objects.get(key)
        if wanted is not None and int(wanted) != (kept.generation if kept else 0):
            return self.answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
        return self.answer(200, b"", self.server.keep(key, body, self.meta()).headers)

    def post(self, key: str, query: dict[str, str], _: bytes) -> None:
        if "uploads" in query:
            self.server.generation += 1
            number = str(self.server.generation)
            self.server.uploads[number] = self.meta(), {}
            said = f"<Bucket>{BUCKET}</Bucket><Key>{escape(key)}</Key><UploadId>{number}</UploadId>"
            return self.answer(200, f"<InitiateMultipartUploadResult>{said}</InitiateMultipartUploadResult>".encode())
        self.server.end("complete", query["uploadId"])
        if query["uploadId"] not in self.server.uploads:
            return self.answer(404, b"<Error><Code>NoSuchUpload</Code></Error>")
        meta, pieces = self.server.uploads.pop(query["uploadId"])
        kept = self.server.keep(key, b"".join(pieces[number] for number in sorted(pieces)), meta)
        tag = escape(kept.headers["ETag"])
        said = f"<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
        return self.answer(200, said.encode(), kept.headers)

    def delete(self, key: str, query: dict[str, str], _: bytes) -> None:
        there = self.server.uploads.pop(query["uploadId"], None) if "uploadId" in query else None
        there = self.server.objects.pop(key, None) if "uploadId" not in query else there
        self.answer(204 if there is not None else 404)
