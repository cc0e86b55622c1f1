"""Memory of ids is used again only when no one has the ids any more, and much of it stays with no one."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import jittok
from jittok.encode import buffers
from jittok.encode.buffers import Workspace
from jittok.encode.threads import batch

pytestmark = pytest.mark.skipif(not buffers.POSSIBLE, reason="only Linux has such mappings")
COUNT = 3000


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few ids are many."""
    monkeypatch.setattr(buffers, "LEAST_IDS", 1000)


def _place(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _filled(memory: buffers.BufferPool, count: int, value: int) -> Any:
    ids = memory.array(count)
    assert ids.size >= count
    assert ids.dtype == np.int32
    ids[:count] = value
    return memory.detach(ids, count)


def test_memory_of_ids_that_are_gone_is_used_again() -> None:
    memory = buffers.BufferPool()
    first = _filled(memory, COUNT, 1)
    place = _place(first)
    assert first.size == COUNT
    assert (first == 1).all()
    del first
    assert _place(_filled(memory, COUNT + 10, 2)) == place


def test_memory_that_another_thread_took_and_brought_back_meanwhile_is_its_own() -> None:
    kept: list[buffers.Mapping] = []
    mine, others = buffers.BufferPool(kept), buffers.BufferPool(kept)
    _filled(mine, COUNT, 1)
    theirs: list[Any] = []

    def meanwhile() -> object:
        """Between my question and what I do with the answer, the other thread runs."""
        if not theirs:
            kept[0].holder = lambda: None
            theirs.append(_filled(others, COUNT, 2))
        return None

    kept[0].holder = meanwhile
    ids = mine.array(COUNT)
    ids[:] = 3
    assert (theirs[0] == 2).all()
    assert len(kept) == 1


def test_ids_that_a_workspace_lets_go_of_take_no_memory() -> None:
    """After a long text that was only counted."""
    workspace = Workspace()
    workspace.grow_ids(COUNT, 0)
    given = workspace.recycled._given
    assert given is not None
    pages = weakref.ref(given.pages)
    del given
    workspace.written = COUNT
    workspace.trim(COUNT - 1)
    gc.collect()
    assert pages() is None


def test_all_threads_of_a_tokenizer_keep_no_more_than_one_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffers, "MOST_MAPPINGS", 2)
    tok = jittok.bundled("gpt-2")
    held = []
    with ExitStack() as stack:  # as many workspaces at once as there are threads
        for workspace in [stack.enter_context(tok._encoder.workspace()) for _ in range(4)]:
            workspace.grow_ids(COUNT, 0)
            held.append(workspace.detach_ids(COUNT))
    assert len(tok._encoder.kept) == 2


@pytest.fixture
def little_to_collect() -> Iterator[None]:
    """What is there already is not looked through by `gc.collect`, which takes half a second after many tests."""
    gc.freeze()
    yield
    gc.unfreeze()


HOLDERS: list[Callable[[Any], Any]] = [
    lambda ids: ids,
    lambda ids: ids[7:9],
    lambda ids: ids.reshape(2, -1)[1],
    lambda ids: ids.view(np.uint8),
    lambda ids: memoryview(ids)[3:],
    np.from_dlpack,
    lambda ids: np.asarray(memoryview(ids)),
]


@pytest.mark.usefixtures("little_to_collect")
@pytest.mark.parametrize("holder", HOLDERS)
def test_whoever_holds_ids_in_any_way_keeps_them(holder: Callable[[Any], Any]) -> None:
    memory = buffers.BufferPool()
    held = holder(_filled(memory, COUNT, 1))
    before = np.array(held)
    for value in range(2, 6):
        _filled(memory, COUNT, value)
        gc.collect()
    assert np.array_equal(before, held)


def test_memory_that_nobody_has_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = buffers.BufferPool()
    most = buffers.MOST_MAPPINGS + 3
    many = [_filled(memory, COUNT, value) for value in range(most)]
    assert [int(ids[-1]) for ids in many] == list(range(most))
    del many
    assert len(memory._kept) == buffers.MOST_MAPPINGS
    monkeypatch.setattr(buffers, "KEPT_BYTES", 4 * COUNT)
    for count in (COUNT, 2 * COUNT, 3 * COUNT, COUNT):
        _filled(memory, count, 1)
    assert sum(each.touched for each in memory._kept) <= max(4 * COUNT, 2 * 4 * COUNT)


def test_nothing_of_ours_runs_when_ids_go() -> None:
    """A Ctrl-C in a finalizer would be lost."""
    memory, seen = buffers.BufferPool(), []
    held = [_filled(memory, COUNT, 1)]
    sys.setprofile(lambda frame, event, _: seen.append(frame.f_code) if event == "call" else None)
    held.clear()
    sys.setprofile(None)
    assert seen == []


def test_few_ids_do_not_keep_the_memory_of_many() -> None:
    memory, many = buffers.BufferPool(), 3 << 20
    _filled(memory, many, 1)
    ids = memory.array(2000)
    ids[:2000], given = 7, memory._given
    few = memory.detach(ids, 2000)
    assert given is not None
    assert given.touched <= 2 * few.nbytes + buffers.HUGE
    whole = np.frombuffer(given.pages, np.int32, many, given.skip)
    assert (few == 7).all()
    assert not whole[buffers.HUGE :].any()


def test_a_workspace_that_is_gone_leaves_ids_alone() -> None:
    memory = buffers.BufferPool()
    ids = _filled(memory, COUNT, 5)
    del memory
    gc.collect()
    assert (ids == 5).all()


def test_without_address_space_ids_come_from_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_size: int) -> Any:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(buffers, "mapping", refuse)
    ids = _filled(buffers.BufferPool(), COUNT, 3)
    assert ids.size == COUNT
    assert (ids == 3).all()


def test_results_of_calls_stay_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of one tokenizer, kept whole, as rows, as slices, by two threads."""
    monkeypatch.setattr(batch, "LEAST_DETACHED_IDS", 10)
    tok = jittok.bundled("gpt-2")
    batches = [[f"{k} and {k * k} words, "] * 4 for k in range(6)]
    right = [[tok.encode(text).tolist() for text in texts] for texts in batches]
    wrong: list[int] = []

    def work(first: int) -> None:
        kept: list[tuple[list[int], Any]] = []
        for turn in range(3):
            for number in range(first, len(batches), 2):
                result, rows = tok.encode_batch(batches[number], threads=1), right[number]
                flat = [token for row in rows for token in row]
                kept.append([(flat, result.ids), (rows[3], result[3]), (flat[:9], result.ids[:9])][turn])
        wrong.extend(k for k, (ids, found) in enumerate(kept) if found.tolist() != ids)

    workers = [threading.Thread(target=work, args=(first,)) for first in (0, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_a_mapping_that_another_thread_has_just_taken_is_left_to_it():
    class Raced(list):
        """Another thread takes what this one is about to take."""

        def remove(self, found):
            super().remove(found)
            raise ValueError("not in the list")

    kept = Raced()
    memory = buffers.BufferPool(kept)
    ids = memory.detach(memory.array(buffers.LEAST_IDS), buffers.LEAST_IDS)
    (mapping,) = kept
    assert mapping.holder() is not None
    del ids
    memory.array(buffers.LEAST_IDS)
    assert memory._given is not mapping


def test_few_ids_take_no_mapping():
    memory = buffers.BufferPool()
    memory.array(buffers.LEAST_IDS - 1)
    assert memory._given is None
