"""The n best paths of a Unigram model, as sentencepiece's search gives them: order, ties and bounds included.

The search takes partial paths from the end of the text, each with the sum of its scores and the best sum that can come
before it, so complete paths come best first. Among equal sums the order is that of the heap of C++'s priority queue.

>>> heap = Heap()
>>> for fx, name in ((1.0, "a"), (3.0, "b"), (2.0, "c"), (3.0, "d")):
...     heap.push(Path(fx, 0.0, None, name))
>>> [heap.pop().node for _ in range(4)]
['b', 'd', 'c', 'a']
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jittok.common.pipeline.models import UNUSED, USER
from jittok.reference.models.sentencepiece import Part, SentencePieceEncoder, single

MOST_PATHS = 512
"""The largest n."""
MOST_WAITING, LEAST_KEPT, MOST_MADE, MOST_SHRINKS, MOST_AT_ALL = 10_000, 512, 100_000, 10, 500_000
"""Partial paths that may wait, that are kept when they are too many, and that are made before this is asked; how often
this may be, and how many may be made, before the best path alone is the answer."""


class Node:
    """A token at a place of the lattice."""

    __slots__ = ("at", "best", "previous", "score", "stop", "token")

    def __init__(self, at: int, stop: int, token: int, score: float) -> None:
        self.at, self.stop, self.token, self.score = at, stop, token, score
        self.best = 0.0  # the sum of scores up to its end
        self.previous: Node | None = None  # the node before on that path


class Path(NamedTuple):
    """A path from a node to the end of the text."""

    fx: float  # the sum of the best whole path that ends so
    gx: float  # the sum of its own scores
    next: Path | None
    node: Any


class Heap:
    """The largest `fx` first; equal ones as C++'s `push_heap` and `pop_heap` leave them."""

    def __init__(self) -> None:
        self.items: list[Path] = []

    def __len__(self) -> int:
        return len(self.items)

    def push(self, path: Path) -> None:
        """Add a path."""
        self.items.append(path)
        self._raise(len(self.items) - 1, path)

    def _raise(self, hole: int, path: Path) -> None:
        items = self.items
        while hole > 0:
            above = (hole - 1) // 2
            if not items[above].fx < path.fx:
                break
            items[hole] = items[above]
            hole = above
        items[hole] = path

    def pop(self) -> Path:
        """Take the first one."""
        items = self.items
        first, last = items[0], items.pop()
        size, hole = len(items), 0
        if not size:
            return first
        child = 0
        while child < (size - 1) // 2:
            child = 2 * (child + 1)
            if items[child].fx < items[child - 1].fx:
                child -= 1
            items[hole] = items[child]
            hole = child
        if size % 2 == 0 and child == (size - 2) // 2:
            child = 2 * (child + 1)
            items[hole] = items[child - 1]
            hole = child - 1
        self._raise(hole, last)
        return first


def nbest(model: SentencePieceEncoder, text: str, n: int) -> list[tuple[list[Part], float]]:
    """The n best ways to write a normalized text, each with the sum of its scores; fewer if there are not so many.

    n = 1 is the path that is encoded, with a sum of 0. n: 1 to 512.
    """
    if not text:
        return [([], 0.0)]
    if n == 1:
        return [([*model.parts(text, None)], 0.0)]
    ends = _lattice(model, text)
    last = Node(len(text), len(text), -1, 0.0)
    _best(ends, last)
    found = _search(ends, last, n)
    return [([(text[node.at : node.stop], node.token) for node in nodes], score) for nodes, score in found]


def _lattice(model: SentencePieceEncoder, text: str) -> list[list[Node]]:
    """The nodes that end at each character, in the order of their beginnings; the start ends at 0."""
    ends: list[list[Node]] = [[] for _ in range(len(text) + 1)]
    ends[0].append(Node(0, 0, -1, 0.0))
    long = model.long.positions(text)
    for start in range(len(text)):
        alone = False
        lengths = (*model.lengths, *(reversed([*model.long.lengths(long[start])]) if long else ()))
        for length in lengths:
            stop = start + length
            token = model.ids.get(text[start:stop]) if stop <= len(text) else None
            if token is None or model.types[token] == UNUSED:
                continue
            score = single(0.1 * (length - 1)) if model.types[token] == USER else model.scores[token]
            ends[stop].append(Node(start, stop, token, score))
            alone |= length == 1
        if not alone:
            ends[start + 1].append(Node(start, start + 1, model.model.unknown, model.unknown_score))
    return ends


def _best(ends: list[list[Node]], last: Node) -> None:
    """The best path to each node."""
    begins: list[list[Node]] = [[] for _ in ends]
    for nodes in ends[1:]:
        for node in nodes:
            begins[node.at].append(node)
    begins[-1].append(last)
    for at, nodes in enumerate(begins):
        for node in nodes:
            before: Node | None = None
            for each in ends[at]:
                score = single(each.best + node.score)
                if before is None or score > node.best:
                    before, node.best = each, score
            node.previous = before


def _viterbi(last: Node) -> list[tuple[list[Node], float]]:
    nodes, node = list[Node](), last.previous
    while node is not None and node.previous is not None:
        nodes.append(node)
        node = node.previous
    return [(nodes[::-1], last.best)]


def _search(ends: list[list[Node]], last: Node, n: int) -> list[tuple[list[Node], float]]:
    """Paths in the order of their sums."""
    heap, found, made, total, shrinks = Heap(), list[tuple[list[Node], float]](), 1, 1, 0
    kept, bound = min(LEAST_KEPT, 10 * n), MOST_MADE
    heap.push(Path(last.best, 0.0, None, last))
    while heap and len(found) < n:
        top = heap.pop()
        if top.node.token < 0 and top.node is not last:  # the start
            nodes, path = list[Node](), top.next
            while path is not None and path.next is not None:
                nodes.append(path.node)
                path = path.next
            found.append((nodes, top.fx))
            continue
        for node in ends[top.node.at]:
            heap.push(Path(single(node.best + top.gx), single(node.score + top.gx), top, node))
        made += len(ends[top.node.at])
        total += len(ends[top.node.at])
        if max(total, made) >= MOST_AT_ALL:
            return _viterbi(last)
        if len(heap) >= MOST_WAITING or (len(heap) > kept and made >= bound):
            if shrinks >= MOST_SHRINKS:
                return _viterbi(last)
            shrinks += 1
            heap, made = _shrunk(heap, kept)
            bound = made + MOST_MADE
    return found


def _shrunk(heap: Heap, kept: int) -> tuple[Heap, int]:
    """The first `kept` paths, and how many they and what they continue are."""
    small, seen = Heap(), set[int]()
    for _ in range(min(len(heap), kept)):
        path: Path | None = heap.pop()
        assert path is not None
        small.push(path)
        while path is not None and id(path) not in seen:
            seen.add(id(path))
            path = path.next
    return small, len(seen)
