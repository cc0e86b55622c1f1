"""sentencepiece 0.2.3's Unigram training, literally: seeds, expectation and maximization, pruning, final pieces.

Numbers are of 32 bits where sentencepiece's are, and are added in its order: in as many slices as it has threads.

>>> model = Model([("a", -1.0), ("b", -2.0), ("ab", -2.5)])
>>> best_path(model, "abb")  # ids, score
([2, 1], -4.5)
>>> [round(number, 3) for number in expectation(model, [("abb", 10)], slices=1)[0]]  # counts of a, b, ab
[3.775, 13.775, 6.225]
"""

from __future__ import annotations

import math
import struct
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any


def F(x: float) -> float:  # noqa: N802  replaces `float` of sentencepiece
    """The nearest number of 32 bits."""
    return float(struct.unpack("f", struct.pack("f", x))[0])


SEEDS, SUB_STEPS, SHRINKS, TOO_FEW, SPARE = 1_000_000, 2, 0.75, 0.5, 1.1
UNKNOWN_PENALTY, PENALTY_STEP, LOG_CUT = 10.0, F(0.0001), 50.0
Pieces = list[tuple[str, float]]
"""(text, score) in the order of ids."""
Edge = tuple[int, int, int]
"""(begin, end, id) of a piece in a word; an unknown character has id 0, and UNKNOWN in `edges_of`."""
UNKNOWN = -1


def seed_scores(sentences: Sequence[str], valid: Callable[[str], bool], longest: int = 16) -> list[tuple[str, float]]:
    """Texts of two characters or more that are followed by at least two different bytes, best first: (text, count *
    length).

    Sentences are one after the other as UTF-8, a NUL after each. Where the last one ends, what ends a sentence goes on
    in more than one way (a text, or nothing): such a text gets the number of sentences it ends on top.
    """
    counts: Counter[str] = Counter()
    following: dict[str, set[int]] = {}
    for sentence in sentences:
        after = [c.encode()[0] for c in sentence] + [0]
        for start in range(len(sentence)):
            for end in range(start + 2, min(start + longest, len(sentence)) + 1):
                counts[sentence[start:end]] += 1
                following.setdefault(sentence[start:end], set()).add(after[end])
    found = {text: number for text, number in counts.items() if len(following[text]) > 1 and valid(text)}
    last = sentences[-1]
    for start in range(max(len(last) - longest, 0), len(last) - 1):
        ends = sum(sentence.endswith(last[start:]) for sentence in sentences)
        if ends > 1 and valid(last[start:]):
            found[last[start:]] = found.get(last[start:], 0) + ends
    scored = [(text, F(F(number) * F(len(text)))) for text, number in found.items()]
    return sorted(scored, key=lambda row: (-row[1], -len(row[0].encode()), row[0].encode()))


def seeds(sentences: Sequence[str], valid: Callable[[str], bool], longest: int = 16) -> Pieces:
    """Characters, then the best texts, with the logarithms of their shares."""
    single = Counter("".join(sentences))
    rows = sorted(single.items(), key=lambda row: (-row[1], row[0].encode()))
    scored = [(c, F(number)) for c, number in rows if c != "\u2585"]
    scored += seed_scores(sentences, valid, longest)[:SEEDS]
    total = 0.0
    for _, score in scored:
        total += float(score)
    return [(text, F(math.log(float(score)) - math.log(total))) for text, score in scored]


def edges_of(word: str, ids: Mapping[str, int], longest: int) -> list[Edge]:
    """Pieces of a word by their start, shorter ones first; then an unknown edge if the character is no piece."""
    found = []
    for begin in range(len(word)):
        ends = [end for end in range(begin + 1, min(begin + longest, len(word)) + 1) if word[begin:end] in ids]
        found += [(begin, end, ids[word[begin:end]]) for end in ends]
        if begin + 1 not in ends:
            found.append((begin, begin + 1, UNKNOWN))
    return found


def log_sum(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y))."""
    low, high = min(x, y), max(x, y)
    if high > F(low + LOG_CUT):
        return high
    return F(float(high) + math.log1p(math.exp(float(F(low - high)))))


class Model:
    """Pieces with scores."""

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces
        self.ids = {text: k for k, (text, _) in enumerate(pieces)}
        self.longest = max(map(len, self.ids))
        self.lowest = min(score for _, score in pieces)
        self.unknown = F(self.lowest - UNKNOWN_PENALTY)

    def lattice(self, word: str) -> Iterator[tuple[int, int, int, Any]]:
        """(begin, end, id, score) of each edge."""
        for begin, end, k in edges_of(word, self.ids, self.longest):
            yield begin, end, max(k, 0), self.unknown if k == UNKNOWN else self.pieces[k][1]


def best_path(model: Model, word: str) -> tuple[list[int], Any]:
    """Ids of the best segmentation, and its score. The first of the best wins."""
    best: list[Any] = [None] * (len(word) + 1)
    best[0] = (0.0, [])
    for begin, end, k, score in model.lattice(word):
        sum_ = F(best[begin][0] + score)
        if best[end] is None or sum_ > best[end][0]:
            best[end] = (sum_, [*best[begin][1], k])
    return best[-1][1], best[-1][0]


def add_expected(model: Model, word: str, count: int, expected: Any) -> Any:
    """Add the expected counts of each piece in `count` copies of a word; returns its log-likelihood times `count`."""
    edges, size = list(model.lattice(word)), len(word)
    before: list[Any] = [0.0] + [None] * size
    after: list[Any] = [None] * size + [0.0]
    for begin, end, _, score in edges:
        sum_ = F(score + before[begin])
        before[end] = sum_ if before[end] is None else log_sum(before[end], sum_)
    for begin in reversed(range(size)):
        for _, end, _, score in (edge for edge in edges if edge[0] == begin):
            sum_ = F(score + after[end])
            after[begin] = sum_ if after[begin] is None else log_sum(after[begin], sum_)
    for begin, end, k, score in edges:
        share = math.exp(float(F(F(F(before[begin] + score) + after[end]) - before[size])))
        expected[k] = F(float(expected[k]) + float(F(count)) * share)
    return F(F(count) * before[size])


def expectation(model: Model, words: Sequence[tuple[str, int]], slices: int) -> tuple[Any, Any, int]:
    """(expected counts, the negated log-likelihood per word, pieces of the best segmentations)."""
    total, tokens = F(sum(number for _, number in words)), 0
    expected, objective = [0.0] * len(model.pieces), 0.0
    for part in range(slices):
        own, own_objective = [0.0] * len(model.pieces), 0.0
        for word, number in words[part::slices]:
            likelihood = add_expected(model, word, number, own)
            own_objective = F(own_objective - F(likelihood / total))
            tokens += number * len(best_path(model, word)[0])
        expected = [F(a + b) for a, b in zip(expected, own, strict=True)]
        objective = F(objective + own_objective)
    return expected, objective, tokens


def digamma(x: float) -> float:
    """The derivative of log gamma, by sentencepiece's series."""
    out = 0.0
    while x < 7:
        out -= 1 / x
        x += 1
    x -= 0.5
    a = 1 / x
    b = a * a
    c = b * b
    return out + (math.log(x) + (1 / 24) * b - (7 / 960) * c + (31 / 8064) * c * b - (127 / 30720) * c * c)


def maximization(model: Model, expected: Any) -> Pieces:
    """Pieces with an expected count of 0.5 or more, with new scores."""
    kept = [(text, number) for (text, _), number in zip(model.pieces, expected, strict=True) if number >= TOO_FEW]
    total = 0.0
    for _, number in kept:
        total = F(total + number)
    whole = F(digamma(float(total)))
    return [(text, F(digamma(float(number)) - float(whole))) for text, number in kept]


class Agenda:
    """C++'s `std::priority_queue` as in libstdc++: its heap decides which of equals comes first."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []

    def push(self, row: tuple[Any, ...]) -> None:
        """Sift up from the last position."""
        rows = self.rows
        rows.append(row)
        self._up(len(rows) - 1, row)

    def _up(self, at: int, row: tuple[Any, ...]) -> None:
        rows = self.rows
        while at > 0 and rows[(at - 1) // 2][0] < row[0]:
            rows[at], at = rows[(at - 1) // 2], (at - 1) // 2
        rows[at] = row

    def pop(self) -> tuple[Any, ...]:
        """Sift the hole down to a leaf by the larger children, then the last row up from there."""
        rows = self.rows
        top, row = rows[0], rows.pop()
        if rows:
            at = child = 0
            while child < (len(rows) - 1) // 2:
                child = 2 * (child + 1)
                if rows[child][0] < rows[child - 1][0]:
                    child -= 1
                rows[at], at = rows[child], child
            if len(rows) % 2 == 0 and child == (len(rows) - 2) // 2:
                child = 2 * (child + 1)
                rows[at], at = rows[child - 1], child - 1
            self._up(at, row)
        return top


def two_best(model: Model, word: str) -> list[list[int]]:
    """The best segmentation and the second best, from the end of the word backwards by what is left at best."""
    ends: list[list[tuple[int, int, Any, Any]]] = [[] for _ in range(len(word) + 1)]
    best: list[Any] = [0.0] + [None] * len(word)
    for begin, end, k, score in model.lattice(word):
        sum_ = F(best[begin] + score)
        ends[end].append((begin, k, score, sum_))
        best[end] = sum_ if best[end] is None or sum_ > best[end] else best[end]
    agenda = Agenda()
    found: list[list[int]] = []
    agenda.push((best[-1], len(word), 0.0, None))
    while agenda.rows and len(found) < 2:
        _, position, after, path = agenda.pop()
        if position == -1:
            ids = []
            while path is not None:
                k, path = path
                ids.append(k)
            found.append(ids)
            continue
        if position == 0:
            agenda.push((F(0.0 + after), -1, after, path))
        for begin, k, score, sum_ in ends[position]:
            agenda.push((F(sum_ + after), begin, F(score + after), (k, path)))
    return found


def prune(model: Model, words: Sequence[tuple[str, int]], goal: int, slices: int) -> Pieces:
    """Pieces without an alternative segmentation, then those whose loss would cost most, up to the new size."""
    count = len(model.pieces)
    freq = [0.0] * count
    for part in range(slices):
        own = [0.0] * count
        for word, number in words[part::slices]:
            for k in best_path(model, word)[0]:
                own[k] = F(own[k] + F(number))
        freq = [F(a + b) for a, b in zip(freq, own, strict=True)]
    whole = F(deque(accumulate(freq), 1).pop())  # not `sum`, which makes up for what is rounded
    log_whole = F(math.log(float(whole)))
    kept, candidates = [], []
    for k, (text, _) in enumerate(model.pieces):
        ways = two_best(model, text)
        if freq[k] == 0 or (len(ways) > 1 and len(ways[0]) > 1):
            continue
        if len(ways) == 1:
            kept.append(model.pieces[k])
            continue
        own_log = F(math.log(float(freq[k])) - float(log_whole))
        more = F(freq[k] * F(len(ways[1]) - 1))
        others_whole, others = F(math.log(float(F(whole + more)))), 0.0
        for other in ways[1]:
            others = F(float(others) + (math.log(float(F(freq[other] + freq[k]))) - float(others_whole)))
        candidates.append((F(F(freq[k] / whole) * F(own_log - others)), k))
    capacity = max(goal, int(F(SHRINKS * F(count)))) - len(kept)
    best = sorted(candidates, key=lambda row: (-row[0], row[1]))[: max(capacity, 0)]
    return kept + [model.pieces[k] for _, k in best]


def reachable(model: Model) -> Pieces:
    """Pieces whose own text has no better segmentation."""
    kept = []
    for k, (text, score) in enumerate(model.pieces):
        rows: list[tuple[str, float]] = list(model.pieces)
        rows[k] = (text, -math.inf)
        other = Model(rows)
        other.unknown = model.unknown
        if not best_path(other, text)[1] > score:
            kept.append((text, score))
    return kept


def final(model: Model, required: Sequence[str], wanted: int) -> Pieces:
    """Required characters, then the best pieces; best first."""
    scores, chosen, penalty = dict(model.pieces), {}, 0.0
    for c in required:
        chosen[c] = scores[c] if c in scores else F(model.lowest + penalty)
        if c not in scores:
            penalty = F(penalty + PENALTY_STEP)
    for text, score in sorted(model.pieces, key=lambda row: (-row[1], row[0].encode())):
        if len(chosen) == wanted and text not in chosen:
            break
        chosen.setdefault(text, score)
    return sorted(chosen.items(), key=lambda row: (-row[1], row[0].encode()))


def train(
    sentences: Sequence[str], size: int, valid: Callable[[str], bool], required: Sequence[str], *,
    slices: int = 16, symbols: int = 3, log: list[Any] | None = None, longest: int = 16,
) -> Pieces:  # fmt: skip
    """The pieces of sentences in which U+2581 replaces spaces and U+2585 replaces characters that are left out.

    log: gets (step, pieces, objective, tokens) of each maximization.
    """
    model = Model(seeds(sentences, valid, longest))
    sums = Counter("\u2581" + word for sentence in sentences for word in sentence.split("\u2581")[1:])
    words = sorted(sums.items(), key=lambda row: (-row[1], row[0].encode()))
    goal = int(size * SPARE)
    while True:
        for step in range(SUB_STEPS):
            expected, objective, tokens = expectation(model, words, slices)
            model = Model(maximization(model, expected))
            if log is not None:
                log.append((step, len(model.pieces), objective, tokens))
        model = Model(prune(model, words, goal, slices))
        if len(model.pieces) <= goal:
            break
    return final(Model(reachable(model)), required, size - symbols)
