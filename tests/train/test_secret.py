"""Words of training are hashed with a secret of the process, on which no count and no byte that is written depends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from chosen_tokens import key_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from jittok.kernels.jit import JIT
from jittok.train import count, learner, train
from jittok.train.counting import table
from jittok.train.counting.counter import Counter
from jittok.train.counting.counts import of_table
from jittok.train.counting.runs import slices_of, write_run
from jittok.train.counting.splitters import cutter_of
from jittok.train.pairs import PairCounts, enter_pairs
from jittok.train.spm import train_spm
from jittok.train.unigram import sentences, train_unigram
from jittok.train.wordpiece import train_wordpiece

ALL = (1 << 64) - 1
K1, K2, K3 = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, int(table.MIX)
FEW = 1 << 12 if JIT else 1 << 7


def with_key(patch: pytest.MonkeyPatch, number: int) -> None:
    for module in (table, learner, sentences):
        patch.setattr(module, "KEYS", key_of(number))


def unshifted(h: int, by: int) -> int:
    """x of x ^ x >> by."""
    x = h
    for _ in range(64 // by + 1):
        x = h ^ x >> by
    return x


def chosen_short(number: int) -> bytes:
    """A word of 8 bytes. When the hash had no secret, the lowest 32 bits were 0 for all of them."""
    h = unshifted((number + 1) << 32, 29)
    h = unshifted(h * pow(K3, -1, 1 << 64) & ALL, 32)
    b = 8 << 56
    x = (h ^ (b ^ b >> 29) * K2) * pow(K1, -1, 1 << 64) & ALL
    return unshifted(x, 32).to_bytes(8, "little")


def chosen_long(number: int) -> bytes:
    """A word of 24 bytes. When the hash had no secret, the second eight bytes undid what the first had changed."""
    h = ((24 * K1 & ALL) ^ number) * K2 & ALL
    h ^= h >> 29
    return number.to_bytes(8, "little") + (h ^ 12345).to_bytes(8, "little") + b"the rest"


def counter_of(words: dict[bytes, int]) -> Counter:
    counter = Counter(cutter_of("gpt-2"))
    starts = np.cumsum([0, *map(len, words)]).astype(np.int64)
    counter.add_words(np.frombuffer(b"".join(words), np.uint8), starts, np.array([*words.values()], np.int64))
    return counter


def longest_run(slots: NDArray[np.uint64]) -> int:
    """Full slots in a row: a search takes as many steps."""
    free = np.flatnonzero(slots[2 :: table.SLOT] == 0)
    return int(np.diff(np.append(-1, free)).max()) - 1


@pytest.mark.parametrize("number", range(3))
def test_chosen_words_are_spread_over_the_slots(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    with_key(monkeypatch, number)
    words = {word: 1 for k in range(FEW) for word in (chosen_short(k), chosen_long(k))}
    assert len(words) == 2 * FEW
    counter = counter_of(words)
    assert counter.table.used[:2].tolist() == [FEW, FEW]
    assert longest_run(counter.table.short) < 60
    assert longest_run(counter.table.long) < 60
    assert of_table(counter.table).to_dict() == words


@given(st.dictionaries(st.binary(min_size=1, max_size=40), st.integers(1, 1 << 50), min_size=1, max_size=40))
@settings(max_examples=20 if JIT else 3, deadline=None)
def test_runs_of_processes_with_two_secrets_have_a_word_in_one_slice(
    tmp_path_factory: pytest.TempPathFactory, words: dict[bytes, int]
) -> None:
    folder, paths = tmp_path_factory.mktemp("runs"), []
    with pytest.MonkeyPatch.context() as patch:
        for number in (1, 2):
            with_key(patch, number)
            paths.append(folder / f"{number}.words")
            write_run(paths[-1], counter_of(words).table)
        with_key(patch, 3)
        found: dict[bytes, int] = {}
        for listed in slices_of(paths):
            both = Counter(cutter_of("gpt-2"))
            for of_one in listed:
                both.add_words(*of_one)
            part = of_table(both.table).to_dict()
            assert not part.keys() & found.keys()
            found |= part
    assert found == {word: 2 * n for word, n in words.items()}


def test_chosen_pairs_are_spread_over_the_slots() -> None:
    """When pairs were hashed without a secret, all of these wanted slot 0 of 2^18."""
    low, keys = (1 << 18) - 1, []
    for right in range(FEW):
        base = right * K1 & ALL
        left = ((base & low) - (base >> 32)) * pow(K1, -1, 1 << 18) & low
        h = (left << 32 | right) * K1 & ALL
        assert (h ^ h >> 32) & low == 0
        keys.append(left << 32 | right)
    none = np.zeros(0, np.int64)
    table_of = np.empty(1 << 18, np.int32)
    enter_pairs(PairCounts(table_of, np.array(keys), none, none, none, none.astype(np.int32), learner.KEYS), FEW)
    assert int(np.diff(np.flatnonzero(np.append(-1, table_of) < 0)).max()) < 60


def learnt(kind: str) -> Any:
    if kind == "bpe":
        made = train(TEXTS, 400, pre="gpt-2", threads=2)
        return made.tokens, made.merges
    if kind == "wordpiece":
        return train_wordpiece(TEXTS, 200, threads=2).texts
    made_of = train_spm if kind == "spm" else train_unigram
    pieces = made_of(TEXTS, 60, threads=2, byte_fallback=False)
    return pieces.pieces, pieces.scores


TEXTS = [" ".join(f"{a}{b}ing{a * 12}{b * 9}" for a in "kxyzéß" for b in "abcdef日") * (1 + k % 3) for k in range(40)]


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "spm", "unigram"])
def test_what_is_learnt_has_the_same_bytes_with_two_secrets(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    written = []
    for number in (1, 2):
        with_key(monkeypatch, number)
        written.append(learnt(kind))
    assert written[0] == written[1]


def test_the_order_of_counted_words_does_not_show_the_secret() -> None:
    counts = count([b"one two two three three three four"], threads=1).to_dict()
    assert list(counts) == sorted(counts, key=lambda word: (-counts[word], word))
