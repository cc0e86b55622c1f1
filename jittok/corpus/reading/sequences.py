"""Training sequences of finished corpora, any of them at once."""

from __future__ import annotations

import hashlib
import json
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from jittok.corpus.reading import packing
from jittok.corpus.reading.kernels import NO_TARGET
from jittok.corpus.reading.order import SPREAD, Order, name_of
from jittok.corpus.reading.rows import Mix, OneCorpus, Shape, Source, laid_out
from jittok.corpus.reading.tokens import Tokens, Workspace
from jittok.errors import CorpusError, InWords

if TYPE_CHECKING:
    from typing import TypeGuard

    from jittok.corpus.reading.loader import Loader
    from jittok.corpus.shards.readback import Corpus

    One: TypeAlias = str | os.PathLike[str] | Corpus

PACKS = ("split", "whole", "best")
SHUFFLES = (None, "documents", "sequences")
MOST_LENGTH = 1 << 28


class Packed(NamedTuple):
    """A sequence (arrays of one dimension) or a batch of them (of two), all int32.

    ids; segments: the documents of a sequence, counted from 1, 0 for padding; positions: of each id in its segment.
    """

    ids: NDArray[np.int32]
    segments: NDArray[np.int32]
    positions: NDArray[np.int32]

    @property
    def cu_seqlens(self) -> NDArray[np.int32]:
        """int32[n + 1]: where segments begin in all ids one after the other, and where the last one ends; padding
        counts as one. It is what attention kernels for packed documents take."""
        return _borders(self.segments)


class WithMask(NamedTuple):
    """The same of a corpus that says what is to be learned, with `loss_mask`, uint8: 1 for the ids that are."""

    ids: NDArray[np.int32]
    segments: NDArray[np.int32]
    positions: NDArray[np.int32]
    loss_mask: NDArray[np.uint8]

    @property
    def cu_seqlens(self) -> NDArray[np.int32]:
        """As that of `Packed`."""
        return _borders(self.segments)

    @property
    def labels(self) -> NDArray[np.int64]:
        """int64: the ids that are to be learned, at their places, -100 for others: what models of transformers take,
        which shift them themselves."""
        return np.where(self.loss_mask != 0, self.ids, NO_TARGET).astype(np.int64)


class WithTargets(NamedTuple):
    """The same with `targets`, int64: the next id of each, -100 where there is none (PyTorch leaves it out), and where
    the corpus says that it is not to be learned."""

    ids: NDArray[np.int32]
    segments: NDArray[np.int32]
    positions: NDArray[np.int32]
    targets: NDArray[np.int64]

    @property
    def cu_seqlens(self) -> NDArray[np.int32]:
        """As that of `Packed`."""
        return _borders(self.segments)


Found: TypeAlias = Packed | WithMask | WithTargets
"""What a sequence, or a batch of them, is."""


def _borders(segments: Any) -> NDArray[np.int32]:
    rows = np.atleast_2d(np.asarray(segments))
    begins = np.ones(rows.shape, np.bool_)
    begins[:, 1:] = rows[:, 1:] != rows[:, :-1]
    return np.append(np.flatnonzero(begins), rows.size).astype(np.int32)


def sequences(
    corpora: One | Sequence[One] | Mapping[One, float],
    length: int,
    *,
    overlap: int = 0,
    pack: str = "split",
    pad_id: int | None = None,
    shuffle: str | None = None,
    seed: int = 0,
    targets: bool = False,
    within: int | None = None,
    format: str | None = None,  # noqa: A002
    check: str = "size",
    cache: str | os.PathLike[str] | None = None,
    cache_bytes: int | None = None,
) -> Sequences:
    """Sequences of `length` ids of a finished corpus, of several one after the other (a list), or of a mix (a mapping
    of corpora to weights; with `shuffle`).

    pack: how documents become sequences. "split": they lie one after the other and are cut where a sequence is full,
    `overlap` ids occur in two; the end is left out, or padded if there is a `pad_id`. The others cut only what is
    longer than a sequence, pad with `pad_id`, and have no overlap. "whole": in order, as many as fit. "best": best fit
    in windows of 16,384 pieces, which leaves hundredths of a percent to padding.
    shuffle: None, the order of the documents; "sequences", another order of the sequences in each epoch; "documents":
    documents are put together in an order drawn once, and their sequences in another order in each epoch.
    within: shuffle sequences with about so many others instead of all, for shards in a bucket or on slow disks.
    Of chats that were compiled with `learn`, sequences have `loss_mask` and `labels`, and targets are -100 where
    nothing is to be learned; beside such a corpus all of others is.
    targets: also the next ids, as int64; with "split" a sequence then reads one id more, the first of the next one.
    format: which of the formats that the corpus was written in; by default the one that is read fastest.
    check: "size" compares each file that is used with the manifest's size, "sha256" also its digest, once a process.

    cache, cache_bytes: of a corpus in a bucket (s3://, gs://, az://), the folder that pieces of its shards are kept in
    (by default one beside the compiled kernels) and its bound (16 GB); processes of one machine share it.

    >>> import jittok.corpus
    >>> found = jittok.corpus.sequences("shards", 1024, shuffle="sequences", seed=7)  # doctest: +SKIP
    >>> len(found), found[0].ids.shape  # doctest: +SKIP
    (96, (1024,))

    Raises CorpusError for a corpus that is unfinished, damaged or of another vocabulary than the first, and where its
    format cannot be shuffled (parquet, whose row groups have to be unpacked); ValueError for impossible arguments.
    """
    shape = _checked(length, overlap, pack, pad_id, shuffle, targets)
    _one_of("check", check, ("size", "sha256"))
    if within is not None and (within < SPREAD or shuffle is None):
        raise ValueError(f"within: found {within} with shuffle={shuffle!r}, expected {SPREAD} or more, and a shuffle")
    recipe = _Recipe(shape, overlap, pack, pad_id is not None, shuffle, operator.index(seed), within)
    from jittok.corpus.reading.opening import How, cache_of, opened

    how = How(format, check, shuffle, within, cache_of(cache, cache_bytes))

    def tokens_of(given: Sequence[One]) -> Tokens:
        return opened(given, how)

    if isinstance(corpora, Mapping):
        return _mixed(corpora, recipe, tokens_of)
    given: list[One] = list(corpora) if _are_several(corpora) else [corpora]  # type: ignore[list-item]
    if not given:
        raise ValueError("corpora: found none, expected one or more")
    tokens = tokens_of(given)
    return Sequences(recipe.source(tokens), shape, recipe.seed, recipe.digest([tokens], []))


def _are_several(corpora: One | Sequence[One]) -> TypeGuard[Sequence[One]]:
    return not isinstance(corpora, str | os.PathLike) and not hasattr(corpora, "manifest")


def _checked(length: int, overlap: int, pack: str, pad_id: int | None, shuffle: str | None, targets: bool) -> Shape:
    _one_of("pack", pack, PACKS)
    _one_of("shuffle", shuffle, SHUFFLES)
    if not 1 <= length <= MOST_LENGTH or not 0 <= overlap < length:
        found = f"length={length}, overlap={overlap}"
        raise ValueError(f"found {found}, expected 1 <= length <= {MOST_LENGTH} and 0 <= overlap < length")
    if pack != "split" and (pad_id is None or overlap):
        raise ValueError(f"pack={pack!r}: found pad_id={pad_id}, overlap={overlap}, expected a pad_id and no overlap")
    if pad_id is not None and not -(1 << 31) <= pad_id < 1 << 31:
        raise ValueError(f"pad_id: found {pad_id}, expected an int32")
    return Shape(length, pad_id or 0, targets, pack == "split")


def _one_of(name: str, found: object, allowed: Sequence[object]) -> None:
    if found not in allowed:
        raise ValueError(f"{name}: found {found!r}, expected one of {', '.join(map(repr, allowed))}")


class _Recipe(NamedTuple):
    """What makes sequences of tokens."""

    shape: Shape
    overlap: int
    pack: str
    padded: bool
    shuffle: str | None
    seed: int
    within: int | None

    def source(self, tokens: Tokens, name: str = "") -> OneCorpus:
        """The sequences of these tokens; `name` makes the order another one than those of others."""
        return OneCorpus(tokens, self._packing(tokens, name), self.seed if self.shuffle else None, name, self.within)

    def _packing(self, tokens: Tokens, name: str) -> packing.Split | packing.Table:
        more = int(self.shape.targets and self.pack == "split")
        length = self.shape.length + more
        split = packing.Split(tokens.total, length, self.shape.length - self.overlap, self.padded)
        if self.shuffle == "documents":
            documents = packing.drawn(tokens, lambda count: Order(count, name_of(self.seed, f"{name}documents", 0)))
            if self.pack == "split":
                return packing.split(documents, split)
        elif self.pack == "split":
            return split
        else:
            documents = packing.in_order(tokens)
        return (packing.best if self.pack == "best" else packing.whole)(documents, self.shape.length)

    def digest(self, tokens: Sequence[Tokens], shares: Sequence[int]) -> str:
        """16 hexadecimal digits of all that decides the sequences."""
        facts = [self, list(shares), [each.digest for each in tokens]]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _mixed(corpora: Mapping[One, float], recipe: _Recipe, tokens_of: Any) -> Sequences:
    weights = [float(weight) for weight in corpora.values()]
    if not weights or not all(0 < weight < float("inf") for weight in weights):
        raise ValueError(f"weights: found {weights}, expected one or more numbers above 0")
    if recipe.shuffle is None:
        raise ValueError("a mix: found shuffle=None, expected 'sequences' or 'documents': its order is drawn")
    tokens = [tokens_of([corpus]) for corpus in corpora]
    for each in tokens[1:]:
        each.same_vocabulary(tokens[0])
    if any(each.learned is not None for each in tokens):
        for each in tokens:
            each.learns_all()
    sources = [recipe.source(each, f"{k}/") for k, each in enumerate(tokens)]
    for source in sources:
        if not source.count:
            raise CorpusError(source.tokens.name, InWords("no sequence"), "at least one, for a mix")
    shares = _shares(weights, sum(source.count for source in sources))
    return Sequences(Mix(sources, shares, recipe.seed), recipe.shape, recipe.seed, recipe.digest(tokens, shares))


def _shares(weights: Sequence[float], count: int) -> list[int]:
    """`count` by weights, the largest remainders rounded up; at least 1 each."""
    exact = [weight / sum(weights) * count for weight in weights]
    shares = [max(int(part), 1) for part in exact]
    for k in sorted(range(len(exact)), key=lambda k: (int(exact[k]) - exact[k], k))[: max(count - sum(shares), 0)]:
        shares[k] += 1
    return shares


class Sequences:
    """The sequences of an epoch: `len`, `[i]`, `batch([i, j, ...])`, iteration; `loader` for all epochs and ranks.

    It is a map-style dataset for PyTorch's DataLoader and a random access source for Grain. Threads and forked or
    spawned processes may share it; files are read, not mapped, so processes share the pages that the system keeps.
    """

    def __init__(self, source: Source, shape: Shape, seed: int, digest: str, epoch: int = 0) -> None:
        self.shape, self.seed, self.digest = shape, seed, digest
        self._source, self._epoch, self._space = source, epoch, Workspace()

    def __reduce__(self) -> tuple[Any, ...]:
        return Sequences, (self._source, self.shape, self.seed, self.digest, self._epoch)

    def __len__(self) -> int:
        return self._source.count

    def __repr__(self) -> str:
        return f"Sequences({len(self)} of {self.shape.length} ids, {self._source.tokens.name})"

    @overload
    def __getitem__(self, number: int) -> Found: ...
    @overload
    def __getitem__(self, number: slice) -> Found: ...
    def __getitem__(self, number: int | slice) -> Found:
        """Sequence i, or a batch of those of a slice."""
        if isinstance(number, slice):
            return self.batch(range(len(self))[number])
        at = operator.index(number)
        if not -len(self) <= at < len(self):
            raise IndexError(f"sequence {at}: expected {-len(self)} <= sequence < {len(self)}")
        found = self.stream(np.array([at % len(self) + self._epoch * len(self)], np.int64))
        return type(found)(*(array[0] for array in found))

    def __getitems__(self, numbers: Sequence[int]) -> list[Found]:
        """Several sequences, as DataLoaders ask for them."""
        found = self.batch(numbers)
        return [type(found)(*rows) for rows in zip(*found, strict=True)]

    def __iter__(self) -> Iterator[Found]:
        for number in range(len(self)):
            yield self[number]

    def batch(self, numbers: Sequence[int] | NDArray[np.integer[Any]]) -> Found:
        """These sequences as arrays of two dimensions. IndexError for one that is not there."""
        given = np.asarray(numbers, np.int64).reshape(-1)
        count = len(self)
        if given.size and not -count <= int(given.min()) <= int(given.max()) < count:
            bad = next(number for number in given.tolist() if not -count <= number < count)
            raise IndexError(f"sequence {bad}: expected {-count} <= sequence < {count}")
        return self.stream(np.where(given < 0, given + count, given) + self._epoch * count)

    def stream(self, numbers: NDArray[np.int64]) -> Found:
        """A batch of sequences counted over all epochs: n is sequence n % len of epoch n // len."""
        if numbers.size:
            found = laid_out(self._source, numbers, self.shape, self._space)
        else:
            shape, empty = (0, self.shape.length), np.zeros((0, self.shape.length), np.int32)
            found = (empty, empty, empty, np.zeros(shape, np.int64 if self.shape.targets else np.uint8))
        if self.shape.targets:
            return WithTargets(*found)
        return WithMask(*found) if self.masked else Packed(*found[:3])

    @property
    def masked(self) -> bool:
        """Whether the corpora, or one of them, say what is to be learned."""
        return self._source.tokens.learned is not None

    @property
    def far(self) -> bool:
        """Whether any shard is in a bucket."""
        return self._source.far

    def ahead(self, numbers: NDArray[np.int64]) -> None:
        """Have the shards' pieces fetched that `stream` will need for these numbers, in other threads."""
        self._source.ahead(numbers)

    def epoch(self, number: int) -> Sequences:
        """The same in the order of another epoch; epochs count from 0."""
        if operator.index(number) < 0:
            raise ValueError(f"epoch: found {number}, expected 0 or more")
        return Sequences(self._source, self.shape, self.seed, self.digest, number)

    def loader(
        self, batch: int = 1, *, rank: int = 0, world: int = 1, epochs: int | None = 1, drop_last: bool = True
    ) -> Loader:
        """Batches for one of `world` processes that train together; see `Loader`."""
        from jittok.corpus.reading.loader import Loader

        return Loader(self, batch, rank=rank, world=world, epochs=epochs, drop_last=drop_last)
