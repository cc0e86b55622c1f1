"""Blocks of far files: each is fetched once however many files are read at a time, and none is held longer."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from jittok.corpus.inputs import remote
from jittok.corpus.ranges import cutting
from jittok.corpus.store import blocks

INTERVAL = 8 << 20
LINE = b"x" * 1023 + b"\n"


class Server:
    """A far file of lines, which counts the bytes that are fetched of it."""

    def __init__(self, size: int, key: str = "a", bad: int = 0) -> None:
        self.key, self.size, self.bad = key, size, bad
        self.fetched, self._turn = 0, threading.Lock()

    def fetch(self, start: int, stop: int) -> bytes:
        with self._turn:
            self.fetched += stop - start
            self.bad -= 1
            if self.bad >= 0:
                raise OSError("not now")
        return LINE * ((stop - start) // len(LINE))

    def save(self, target) -> None:
        raise NotImplementedError


@pytest.fixture(autouse=True)
def nothing_kept():
    blocks._process.clear()
    yield
    blocks._process.clear()


def nothing_is_held():
    """But the blocks that were read last."""
    assert len(blocks._now().blocks) <= blocks.MOST_BLOCKS
    blocks._now().blocks.clear()
    gc.collect()
    assert not len(blocks._now().there)


@pytest.mark.parametrize("readers", [8, 16])
def test_lines_of_many_threads_are_fetched_once(readers, monkeypatch):
    """All have begun to fetch before any of them reads."""
    server, begun, real = Server(readers * INTERVAL), threading.Barrier(readers), cutting.fetch_part_soon

    def fetch_part_soon(file, start, stop):
        real(file, start, stop)
        begun.wait(30)

    monkeypatch.setattr(cutting, "fetch_part_soon", fetch_part_soon)

    def read(k: int) -> int:
        with blocks.opened(server) as file:
            limit = cutting.Limit("a", 1 << 30, "line")
            return len(cutting.interval(file, k * INTERVAL, (k + 1) * INTERVAL, limit))

    with ThreadPoolExecutor(readers) as pool:
        assert sum(pool.map(read, range(readers))) == server.size
    assert server.fetched <= 1.05 * server.size
    nothing_is_held()


def test_files_that_are_read_in_order_beside_others_are_fetched_once():
    servers = [Server(INTERVAL, str(k)) for k in range(10)]
    with ExitStack() as opened:
        files = [opened.enter_context(blocks.opened(server)) for server in servers]
        for file in files * (INTERVAL >> 18):
            assert len(file.read(1 << 18)) == 1 << 18
    assert [server.fetched for server in servers] == [INTERVAL] * 10
    nothing_is_held()


def test_small_files_are_there_while_they_are_held(monkeypatch):
    servers = {str(k): Server(INTERVAL, str(k)) for k in range(8)}
    monkeypatch.setattr(remote, "is_url", lambda _: True)
    monkeypatch.setattr(remote, "FarSource", lambda path, _size, _stamp: servers[path])
    held = [remote.fetch_soon([(key, INTERVAL, "")]) for key in servers]
    for server in servers.values():
        with blocks.opened(server) as file:
            assert len(file.read()) == INTERVAL
    assert [server.fetched for server in servers.values()] == [INTERVAL] * 8
    del held
    nothing_is_held()


def test_what_could_not_be_fetched_is_asked_for_again():
    server = Server(blocks.BLOCK, bad=1)
    with blocks.opened(server) as file:
        blocks.fetch_part_soon(file.raw, 0, blocks.BLOCK)
        with pytest.raises(OSError, match="not now"):
            file.read(10)
        assert file.read(10) == b"x" * 10
