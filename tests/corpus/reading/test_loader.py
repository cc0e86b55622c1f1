"""A loader hands out every sequence once, in one order, whatever ranks, workers, batch sizes and resumes there are."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jittok.corpus import Loader, sequences
from jittok.errors import CorpusError

PAD = 50256


def keys(batch):
    return [tuple(row) for row in batch.ids.tolist()]


def undisturbed(found, epochs):
    """The order of all sequences in these epochs."""
    return [tuple(row) for epoch in range(epochs) for row in found.epoch(epoch)[:].ids.tolist()]


class Workers:
    """A DataLoader with several workers: each has a copy of the loader, and takes its batches in turn."""

    def __init__(self, loader, workers, monkeypatch):
        self.parts = []
        state = loader.state_dict()
        for k in range(workers):
            copy = Loader(
                loader.sequences, loader.batch, rank=loader.rank, world=loader.world, epochs=loader.epochs,
                drop_last=loader.drop_last,
            )  # fmt: skip
            copy.load_state_dict(state)
            self.parts.append((copy, iter(copy), types.SimpleNamespace(id=k, num_workers=workers)))
        self.monkeypatch, self.turn = monkeypatch, 0

    def __next__(self):
        _, part, info = self.parts[self.turn % len(self.parts)]
        torch = types.ModuleType("torch.utils.data")
        torch.get_worker_info = lambda: info
        with self.monkeypatch.context() as patch:
            patch.setitem(sys.modules, "torch.utils.data", torch)
            batch = next(part)
        self.turn += 1
        return batch


@given(
    data=st.data(), pack=st.sampled_from(["split", "whole", "best"]),
    shuffle=st.sampled_from([None, "documents", "sequences"]), length=st.sampled_from([9, 30]), seed=st.integers(0, 9),
)  # fmt: skip
def test_any_resumes_joined_are_the_undisturbed_order(corpora, data, pack, shuffle, length, seed):
    how = {"pack": pack, "pad_id": None if pack == "split" else PAD, "shuffle": shuffle, "seed": seed}
    found = sequences(corpora["short"][0], length, **how)
    had = []
    state = found.loader().state_dict()
    with pytest.MonkeyPatch.context() as patch:
        for _ in range(data.draw(st.integers(1, 10), "resumes")):
            world = data.draw(st.sampled_from([1, 3, 2]), "world")
            batch = data.draw(st.integers(1, 5), "batch")
            workers = data.draw(st.sampled_from([0, 1, 4]), "workers")
            steps = data.draw(st.integers(0, 12), "steps")
            ranks = []
            for rank in range(world):
                loader = sequences(corpora["short"][0], length, **how).loader(
                    batch, rank=rank, world=world, epochs=None
                )
                loader.load_state_dict(json.loads(json.dumps(state)))
                ranks.append((loader, Workers(loader, workers, patch) if workers else iter(loader)))
            for _ in range(steps):
                for loader, batches in ranks:
                    had += keys(next(batches))
                    if workers:
                        loader.advance()
            states = [loader.state_dict() for loader, _ in ranks]
            assert all(each == states[0] for each in states)
            state = states[0]
    assert had == undisturbed(found, len(had) // len(found) + 1)[: len(had)]


@given(
    data=st.data(), epochs=st.sampled_from([1, 2]), shuffle=st.sampled_from([None, "documents", "sequences"]),
    seed=st.integers(0, 9),
)  # fmt: skip
def test_resumes_across_the_ends_of_epochs_are_the_undisturbed_order(corpora, data, epochs, shuffle, seed):
    """As datasets that are asked by number, and as iterations that end: what is left at an end begins the next one."""
    found = sequences(corpora["short"][0], 13, shuffle=shuffle, seed=seed)
    had, state = [], found.loader().state_dict()
    for _ in range(data.draw(st.integers(1, 8), "resumes")):
        world = data.draw(st.sampled_from([1, 3, 2]), "world")
        batch = data.draw(st.integers(1, 7), "batch")
        asked = data.draw(st.booleans(), "by number")
        left = data.draw(st.integers(0, 40), "steps")
        loaders = [found.loader(batch, rank=rank, world=world, epochs=epochs) for rank in range(world)]
        for loader in loaders:
            loader.load_state_dict(json.loads(json.dumps(state)))
        while left:
            steps = min(left, len(loaders[0]))
            iterations = [iter(loader) for loader in loaders]
            for number in range(steps):
                for loader, batches in zip(loaders, iterations, strict=True):
                    had += keys(loader[number] if asked else next(batches))
            for loader, batches in zip(loaders, iterations, strict=True):
                if asked:
                    loader.advance(steps)
                elif steps < left:
                    assert next(batches, None) is None
            left -= steps
        states = [loader.state_dict() for loader in loaders]
        assert all(each == states[0] for each in states)
        state = states[0]
    assert had == undisturbed(found, len(had) // len(found) + 1)[: len(had)]


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_workers_that_last_follow_the_loader_of_the_training_process(corpora, monkeypatch):
    torch = types.ModuleType("torch.utils.data")
    torch.get_worker_info = lambda: None
    monkeypatch.setitem(sys.modules, "torch.utils.data", torch)
    found = sequences(corpora["short"][0], 13, shuffle="sequences", seed=1)
    straight, loader = found.loader(4), found.loader(4)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def work():
        torch.get_worker_info = lambda: types.SimpleNamespace(id=0, num_workers=1)
        while (number := there.recv()) is not None:
            there.send(keys(loader[number]))

    worker = context.Process(target=work)
    worker.start()
    for _ in range(3):
        for number, batch in enumerate(straight):
            here.send(number)
            assert here.recv() == keys(batch)
            loader.advance()
    here.send(None)
    worker.join()
    before, copy = loader.state_dict(), pickle.loads(pickle.dumps(loader))
    loader.advance()
    assert copy.state_dict() == before != loader.state_dict()
    copy.advance(2)
    assert copy.state_dict() != loader.state_dict()


@pytest.mark.parametrize("workers", [1, 3])
def test_each_worker_goes_on_with_its_own_state(corpora, monkeypatch, workers):
    loader = sequences(corpora["short"][0], 13, shuffle="sequences", seed=1).loader(2, world=2, rank=1, epochs=None)
    want = [keys(loader[k]) for k in range(8 * workers)]
    first = Workers(loader, workers, monkeypatch)
    had = [keys(next(first)) for _ in range(5 * workers)]
    second = Workers(loader, workers, monkeypatch)
    for (old, *_), (new, *_) in zip(first.parts, second.parts, strict=True):
        new.load_state_dict(old.state_dict())
    had += [keys(next(second)) for _ in range(3 * workers)]
    assert had == want


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("epochs", [1, 2])
def test_iterations_end_with_epochs_and_leave_nothing_out(corpora, world, epochs):
    found = sequences(corpora["short"][0], 13, shuffle="sequences", seed=1)
    loaders = [found.loader(4, rank=rank, world=world, epochs=epochs) for rank in range(world)]
    had, size = [], 4 * world
    for iteration in range(1, 4):
        lengths = [len(loader) for loader in loaders]
        batches = [[*loader] for loader in loaders]
        assert [len(each) for each in batches] == lengths
        for step in zip(*batches, strict=True):
            for batch in step:
                had += keys(batch)
        assert len(had) == iteration * epochs * len(found) // size * size
    assert had == undisturbed(found, 3 * epochs)[: len(had)]


def test_a_resumed_run_of_several_epochs_ends_where_it_would_have_ended(corpora):
    found = sequences(corpora["short"][0], 13)
    loader = found.loader(4, epochs=2)
    batches = iter(loader)
    had = [key for _ in range(len(loader) * 3 // 4) for key in keys(next(batches))]
    other = found.loader(4, epochs=2)
    other.load_state_dict(loader.state_dict())
    had += [key for batch in other for key in keys(batch)]
    assert had == [key for batch in found.loader(4, epochs=2) for key in keys(batch)]


def test_the_end_of_one_rank_may_be_a_smaller_batch(corpora):
    found = sequences(corpora["short"][0], 13)
    count = len(found)
    size = next(size for size in range(5, 20) if count % size)
    loader = found.loader(size, drop_last=False)
    batches = [*loader]
    assert [len(batch.ids) for batch in batches] == [size] * (count // size) + [count % size]
    assert len(batches) == -(-count // size)
    assert loader.state_dict()["epoch"] == 1
    assert loader.state_dict()["sequence"] == 0
    assert [key for batch in batches for key in keys(batch)] == undisturbed(found, 1)


def test_as_a_dataset_it_is_asked_by_number(corpora):
    found = sequences(corpora["short"][0], 13, shuffle="sequences")
    loader = found.loader(4, world=2, rank=1)
    want = [keys(batch) for batch in found.loader(4, world=2, rank=1)]
    assert [keys(loader[k]) for k in range(len(loader))] == want
    with pytest.raises(IndexError, match=f"batch {len(loader)}"):
        loader[len(loader)]
    loader.advance(2)
    assert keys(loader[2]) == want[2]  # numbers are those of the iteration
    resumed = found.loader(4, world=2, rank=1)
    resumed.load_state_dict(loader.state_dict())
    assert [keys(resumed[k]) for k in range(len(resumed))] == want[2:]
    with pytest.raises(ValueError, match="advance: found 1000"):
        loader.advance(1000)
    loader.advance(len(loader) - 2)
    assert keys(loader[0]) == keys(found.loader(4, epochs=None)[2 * len(want) + 1])


def test_the_state_is_three_numbers_and_is_of_these_sequences(corpora):
    folder = corpora["short"][0]
    loader = sequences(folder, 13, shuffle="sequences", seed=6).loader(4)
    next(iter(loader))
    state = loader.state_dict()
    assert {key: state[key] for key in ("seed", "epoch", "sequence")} == {"seed": 6, "epoch": 0, "sequence": 4}
    for other in (
        sequences(folder, 13, shuffle="sequences", seed=7), sequences(folder, 12, shuffle="sequences", seed=6),
        sequences(folder, 13, seed=6), sequences(corpora["long"][0], 13, shuffle="sequences", seed=6),
    ):  # fmt: skip
        with pytest.raises(CorpusError, match="a loader's state: found sequences"):
            other.loader().load_state_dict(state)
    for bad in ({}, {**state, "sequence": "4"}, {**state, "sequence": 1 << 40}, {**state, "epoch": -1}):
        with pytest.raises(CorpusError, match="a loader's state"):
            loader.load_state_dict(bad)
    assert loader.state_dict() == state


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ({"batch": 0}, "batch=0"),
        ({"rank": 2, "world": 2}, "rank=2, world=2"),
        ({"epochs": 0}, "epochs=0"),
        ({"world": 2, "drop_last": False}, "several ranks"),
        ({"batch": 10_000}, "sequences, expected 10000 or more"),
    ],
)
def test_impossible_arguments_say_what_was_found(corpora, how, found):
    with pytest.raises(ValueError, match=found):
        sequences(corpora["short"][0], 13).loader(**how)
    with pytest.raises(TypeError, match="epochs=None"):
        len(sequences(corpora["short"][0], 13).loader(epochs=None))
