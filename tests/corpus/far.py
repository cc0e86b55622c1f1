"""Servers for tests: files by HTTP with and without ranges, SeaweedFS and moto as S3, and a proxy before them that
fails on purpose."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import http.client
import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from jittok.corpus.store import Store, claim

KEY, SECRET = "KEYOFTESTS", "SECRETOFTESTS"
BUCKET = "corpora"
MODES = ("503", "500", "reset", "cut", "stall", "lost")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Files(http.server.ThreadingHTTPServer):
    """Files of a folder by HTTP. `sent`: bytes of bodies by path; `asked`: requests by method and path."""

    daemon_threads = False

    def __init__(self, folder: Path, ranges: bool = True) -> None:
        self.folder, self.ranges = folder, ranges
        self.sent: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, *_: Any) -> None:
        """A client that has gone is no error."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Files
    close_connection = True

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, body: bool) -> None:
        name = unquote(self.path.partition("?")[0].lstrip("/"))
        self.server.asked[f"{self.command} {name}"] += 1
        path = self.server.folder / name
        if not path.is_file():
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()
            return
        data = path.read_bytes()
        size, status, asked = len(data), 200, self.headers.get("Range", "")
        if asked and self.server.ranges and body:
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, stop = int(first), min(int(last) + 1 if last else size, size)
            data, status = data[start:stop], 206
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.send_header("ETag", f'"{path.stat().st_mtime_ns}"')
        if self.server.ranges:
            self.send_header("Accept-Ranges", "bytes")
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        self.end_headers()
        if body:
            self.wfile.write(data)
            self.server.sent[name] += len(data)


@contextlib.contextmanager
def seaweed(folder: Path) -> Iterator[int]:
    """SeaweedFS with an S3 gateway; its port. It is up after two seconds."""
    weed = program("weed")
    assert weed is not None
    rights = ["Admin", "Read", "Write", "List", "Tagging"]
    keys = {"name": "tests", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": rights}
    (folder / "s3.json").write_text(json.dumps({"identities": [keys]}))
    (folder / "data").mkdir()
    ports = {name: free_port() for name in ("master.port", "volume.port", "filer.port", "s3.port")}
    more = {name.replace(".port", ".port.grpc"): free_port() for name in ports}
    arguments = [
        "server", f"-dir={folder / 'data'}", "-ip=127.0.0.1", "-s3", f"-s3.config={folder / 's3.json'}",
        "-s3.port.iceberg=0", "-s3.port.lance=0",
        "-volume.max=30", "-master.volumeSizeLimitMB=100", "-volume.minFreeSpace=1MiB",
        *(f"-{name}={port}" for name, port in (ports | more).items()),
    ]  # fmt: skip
    with running([weed, *arguments], folder / "log"):
        yield ports["s3.port"]


@contextlib.contextmanager
def moto(folder: Path, smallest: int = 1) -> Iterator[int]:
    """moto's S3, which keeps everything in memory; its port. `smallest`: bytes of the smallest piece of an upload, the
    last apart (of S3 5 MB)."""
    found = program("moto_server")
    assert found is not None
    port, more = free_port(), {"S3_UPLOAD_PART_MIN_SIZE": str(smallest)}
    with running([found, "-H", "127.0.0.1", "-p", str(port)], folder / "moto.log", more):
        until_up(port, "PUT", f"/{BUCKET}", {"Content-Length": "0"})
        yield port


def program(name: str) -> str | None:
    """Where a program is, that of this environment first."""
    return shutil.which(name, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")


@contextlib.contextmanager
def running(command: list[str], log: Path, environ: dict[str, str] | None = None) -> Iterator[None]:
    """A server, which ends with this process, however that ends."""
    with log.open("wb") as said:
        process = subprocess.Popen(
            ["sh", "-c", '"$@" & read line; kill -9 $!', "sh", *command], stdin=subprocess.PIPE, stdout=said,
            stderr=said, start_new_session=True, env={**os.environ, **(environ or {})},
        )  # fmt: skip
        try:
            yield
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()


def environment(port: int, timeout: float = 20) -> dict[str, str]:
    """The variables that lead to a server of this machine."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1", "JITTOK_CLOUD_TIMEOUT": str(timeout),
    }  # fmt: skip


class Proxy:
    """Passes HTTP on to a port, and spoils every `every`-th request that `mode` is about (0: none).

    "503", "500": says so, and the server sees nothing. "reset": closes at once. "cut": closes within the answer's body.
    "stall": stops within it and says nothing more. "lost": the server has done what was asked, and nobody hears it.
    `all`: each of these in turn. `sent`: bytes of bodies that clients got.
    """

    def __init__(self, port: int) -> None:
        self.upstream, self.port = port, free_port()
        self.mode, self.every = "", 0
        self.counts: Counter[str] = Counter()
        self._seen = 0
        ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()

    def spoil(self, mode: str, every: int) -> None:
        """From now on."""
        self.mode, self.every, self._seen = mode, every, 0
        self.counts.clear()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0)  # what was closed is gone

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._client, "127.0.0.1", self.port, limit=1 << 20)
        )
        ready.set()
        self._loop.run_forever()

    def _fault(self, method: str) -> str:
        """What happens to this request."""
        if not self.every:
            return ""
        mode = self.mode if self.mode != "all" else MODES[self.counts["faults"] % len(MODES)]
        if (mode == "lost") != (method in ("PUT", "POST", "DELETE")) and mode in ("lost", "cut", "stall"):
            return ""
        self._seen += 1
        if self._seen % self.every:
            return ""
        self.counts["faults"] += 1
        self.counts[mode] += 1
        return mode

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up: Any = None
        try:
            while True:
                head, fields = await _head(reader)
                method = head.split(b" ", 1)[0].decode()
                size = int(fields.get(b"content-length", 0))
                self.counts["requests"] += 1
                self.counts[method] += 1
                fault = self._fault(method)
                if fault in ("503", "500"):
                    await _pass(reader, None, size)
                    body = b"<Error><Code>SlowDown</Code></Error>"
                    status = f"HTTP/1.1 {fault} Slow Down\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                    writer.write(status + body)
                    await writer.drain()
                    continue
                if fault == "reset":
                    return writer.transport.abort()
                if up is None or up[1].is_closing():
                    up = await asyncio.open_connection("127.0.0.1", self.upstream, limit=1 << 20)
                up[1].write(head)
                await _pass(reader, up[1], size)
                if not await self._answer(up[0], writer, method, fault):
                    return writer.transport.abort()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            for each in (writer, up and up[1]):
                if each:
                    each.transport.abort()

    async def _answer(self, up: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, fault: str) -> bool:
        head, fields = await _head(up)
        size = int(fields.get(b"content-length", 0))
        if fault == "lost":
            if method != "HEAD":
                await _pass(up, None, size)
            return False
        writer.write(head)
        await writer.drain()
        if method == "HEAD":
            return True
        if b"transfer-encoding" in fields:
            while (line := await up.readline()).strip() != b"0":
                writer.write(line + await up.readexactly(int(line, 16) + 2))
                await writer.drain()
            writer.write(line + await up.readexactly(2))
            return True
        keep = size // 2 if fault in ("cut", "stall") else size
        await _pass(up, writer, keep)
        self.counts["sent"] += keep
        if fault == "stall":
            await asyncio.sleep(3600)
        return fault != "cut"


async def _head(reader: asyncio.StreamReader) -> tuple[bytes, dict[bytes, bytes]]:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = [line.split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line]
    return head, {name.strip().lower(): text.strip() for name, text in lines}


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter | None, size: int) -> None:
    while size:
        data = await reader.read(min(size, 1 << 16))
        if not data:
            raise ConnectionError
        if writer is not None:
            writer.write(data)
            await writer.drain()
        size -= len(data)


def wait_for(port: int, seconds: float = 30) -> None:
    """Until a bucket can be written to."""
    import obstore
    from obstore.store import S3Store

    client = S3Store(
        BUCKET, endpoint=f"http://127.0.0.1:{port}", access_key_id=KEY, secret_access_key=SECRET,
        client_options={"allow_http": True}, retry_config={"max_retries": 0},
    )  # fmt: skip
    end = time.monotonic() + seconds
    while True:
        try:
            obstore.put(client, "ready", b"1")
        except obstore.exceptions.BaseError:  # noqa: PERF203
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
        else:
            return


def everything(store: Store, data: bytes) -> None:
    """All that a store can do, once; what it says is checked."""
    folder = store.scratch("w")
    (folder / "part").write_bytes(data)
    store.publish(folder / "part", "npy/00000.bin", "run 1 part 0")
    assert store.mark_of("npy/00000.bin") == "run 1 part 0"
    store.put("plan.json", b"{}")
    store.put("plan.json", b"[]")
    lease = claim(store, "t/0.lease", 60)
    assert lease is not None  # it is this process's, whatever the answer was
    assert claim(store, "t/0.lease", 60) is None
    assert lease.renew()
    assert store.read("npy/00000.bin") == data
    assert store.read("npy/00000.bin", 3, len(data) - 7) == data[3:-7]
    assert store.read("plan.json") == b"[]"
    assert [each[:2] for each in store.objects()] == [
        ("npy/00000.bin", len(data)), ("plan.json", 2), ("t/0.lease", len(store.read("t/0.lease")))
    ]  # fmt: skip
    assert not store.create("plan.json", b"other")
    lease.release()
    assert store.head("t/0.lease") is None
    store.clear("npy")
    assert [each.name for each in store.objects()] == ["plan.json"]


@contextlib.contextmanager
def azurite(folder: Path) -> Iterator[dict[str, str]]:
    """Microsoft's emulator of Azure's blobs, with a container; the variables that lead to it."""
    found = program("azurite-blob")
    assert found is not None
    port, account, key = free_port(), "devstoreaccount1", base64.b64encode(SECRET.encode() * 4).decode()
    url = f"http://127.0.0.1:{port}/{account}"
    command = [found, "--silent", "--blobHost", "127.0.0.1", "--blobPort", str(port), "-l", str(folder)]
    with running([*command, "--skipApiVersionCheck"], folder / "log", {"AZURITE_ACCOUNTS": f"{account}:{key}"}):
        now, version = formatdate(usegmt=True), "2021-08-06"
        text = f"PUT{12 * chr(10)}x-ms-date:{now}\nx-ms-version:{version}\n/{account}/{account}/{BUCKET}"
        digest = hmac.digest(base64.b64decode(key), f"{text}\nrestype:container".encode(), "sha256")
        signed = {
            "x-ms-date": now, "x-ms-version": version, "Content-Length": "0",
            "Authorization": f"SharedKey {account}:{base64.b64encode(digest).decode()}",
        }  # fmt: skip
        until_up(port, "PUT", f"/{account}/{BUCKET}?restype=container", signed)
        yield {
            "AZURE_STORAGE_ACCOUNT_NAME": account, "AZURE_STORAGE_ACCOUNT_KEY": key, "AZURE_STORAGE_ENDPOINT": url,
        }  # fmt: skip


def until_up(port: int, method: str, path: str, headers: dict[str, str], seconds: float = 60) -> None:
    """Make a request that a server takes, as soon as there is one."""
    end = time.monotonic() + seconds
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            said = answer.read()
            connection.close()
        except OSError:  # noqa: PERF203
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            assert answer.status < 300, said
            return
