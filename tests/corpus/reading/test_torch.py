"""PyTorch's DataLoader takes loaders and sequences as they are. The same without PyTorch is in test_loader.py."""

from __future__ import annotations

import pytest

from jittok.corpus import Loader, sequences

data = pytest.importorskip("torch.utils.data")
pytestmark = [pytest.mark.process, pytest.mark.filterwarnings("ignore")]


def keys(batch):
    return [tuple(row) for row in batch.ids.tolist()]


def loader_of(corpora, **how):
    return sequences(corpora["short"][0], 13, shuffle="sequences", targets=True).loader(2, world=2, rank=1, **how)


class Iterated(data.IterableDataset):
    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def __iter__(self):
        return iter(self.loader)


@pytest.mark.parametrize(("workers", "how"), [(0, None), (1, "fork"), (4, "fork"), (2, "spawn")])
@pytest.mark.parametrize("wrapped", [lambda loader: loader, Iterated])
def test_workers_hand_out_each_batch_once_in_order(corpora, workers, how, wrapped):
    if how == "spawn" and wrapped is Iterated:
        pytest.skip("the class of a test is not found by another process")
    want = [keys(batch) for batch in loader_of(corpora)]
    loader = loader_of(corpora)
    found = data.DataLoader(wrapped(loader), batch_size=None, num_workers=workers, multiprocessing_context=how)
    had = []
    for batch in found:
        assert [str(each.dtype) for each in batch] == ["torch.int32"] * 3 + ["torch.int64"]
        had.append(keys(batch))
    assert had == want


@pytest.mark.parametrize("workers", [0, 3])
def test_a_run_that_was_stopped_goes_on_where_it_was(corpora, workers):
    want = [keys(batch) for batch in loader_of(corpora, epochs=3)]
    had, state = [], None
    while len(had) < len(want):
        loader = loader_of(corpora, epochs=3)
        if state:
            loader.load_state_dict(state)
        for batch in data.DataLoader(loader, batch_size=None, num_workers=workers):
            had.append(keys(batch))
            loader.advance()
            if len(had) % 7 == 0:
                break
        state = loader.state_dict()
    assert had == want


@pytest.mark.parametrize(
    ("workers", "how", "lasting"), [(0, None, False), (3, "fork", False), (3, "fork", True), (2, "spawn", True)]
)
def test_passes_of_one_loader_are_the_epochs_in_order(corpora, workers, how, lasting):
    """Also where workers last, which have their copies from before the first of them."""
    straight, loader = loader_of(corpora), loader_of(corpora)
    want = [[keys(batch) for batch in straight] for _ in range(3)]
    assert want[0] != want[1]
    found = data.DataLoader(
        loader, batch_size=None, num_workers=workers, persistent_workers=lasting and workers > 0,
        multiprocessing_context=how,
    )  # fmt: skip
    for epoch in want:
        had = []
        for batch in found:
            had.append(keys(batch))
            loader.advance()
        assert had == epoch
    want = [keys(straight[k]) for k in range(5)]
    for number, batch in enumerate(found):  # a pass that is broken off
        assert keys(batch) == want[number]
        loader.advance()
        if number == 2:
            break
    loader.load_state_dict(loader.state_dict())
    assert [keys(batch) for _, batch in zip(range(2), found, strict=False)] == want[3:]


@pytest.mark.parametrize("workers", [0, 3])
def test_a_stateful_loader_keeps_its_own_state(corpora, workers):
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    want = [keys(batch) for batch in loader_of(corpora)]
    had, state = [], None
    while len(had) < len(want):
        found = stateful(loader_of(corpora), batch_size=None, num_workers=workers)
        if state:
            found.load_state_dict(state)
        for batch in found:
            had.append(keys(batch))
            if len(had) % 7 == 0:
                break
        state = found.state_dict()
    assert had == want


def test_sequences_are_a_dataset_of_single_items(corpora):
    found = sequences(corpora["short"][0], 13, shuffle="sequences")
    batches = [*data.DataLoader(found, batch_size=5, drop_last=True)]
    assert [key for batch in batches for key in keys(batch)] == keys(found[: len(batches) * 5])
    assert batches[0].cu_seqlens.tolist() == found[:5].cu_seqlens.tolist()
