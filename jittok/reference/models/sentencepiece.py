"""sentencepiece's models, version 0.2.3: its normalizer, and its four kinds of model.

Long texts of tokens are found by an automaton (`LongTexts`), in linear time: `jittok.kernels.structures.long_keys` over
characters.

>>> texts = LongTexts(["a" * 70, "ba" * 40])
>>> text = "b" + "a" * 75
>>> [at for at, node in enumerate(texts.positions(text)) if 70 in texts.lengths(node)]
[1, 2, 3, 4, 5, 6]
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from jittok.common.locks import once
from jittok.common.pipeline import models, steps
from jittok.common.pipeline.models import BPE, CHAR, NORMAL, UNIGRAM, UNKNOWN, UNUSED, USER, WORD
from jittok.common.pipeline.pipeline import Pipeline
from jittok.common.unicode.characters import SPACE_MARK
from jittok.reference import merging
from jittok.reference.merging import Made, UndecidedError, by_windows
from jittok.reference.models.watch import Watch, watching
from jittok.reference.normalize.xcda import CharacterMap, character_map

LONGEST_KEY = 40
"""Characters that a key of the character map may have, and more."""
RESET = 1e5
"""If the best sum at an offset is further from 0, it becomes 0, and is subtracted from all sums at later offsets."""
UNKNOWN_PENALTY = 10.0
LARGEST = (2 - 2.0**-23) * 2.0**127
"""The lowest score of a model without a normal piece."""
MOST_SPLITS = 100
"""Limit of recursive splits of unused pieces; what is left then is kept."""
CHUNK_CHARACTERS = 1 << 12
"""Minimum of characters of a text that are encoded at once."""
Part = tuple[str, int]
"""A part of the normalized text and its id."""
LONG = 64
"""Characters up to which a text is looked up directly."""
_ROOT = 0


class UserDefined(str):
    """A user-defined piece among the symbols of a text: it is never merged."""

    __slots__ = ()


def single(number: float) -> float:
    """Rounded to single precision; infinite if too large."""
    return ctypes.c_float(number).value


class SentencePieceEncoder:
    """Text to ids."""

    def __init__(self, pipeline: Pipeline) -> None:
        model, (step,) = pipeline.model, pipeline.normalize
        assert isinstance(model, models.Pieces)
        assert isinstance(step, steps.Squeeze)
        self.model, self.step, self.mark = model, step, SPACE_MARK if step.escape else " "
        self.charsmap = character_map(step.charsmap.tobytes(), lenient=True) if step.charsmap.size else None
        self.types, self.scores, self.ranks = model.types.tolist(), model.scores.tolist(), model.ranks.tolist()
        ids = {text.decode(): token for text, token in pipeline.vocabulary.items()}
        self.ids = {text: token for text, token in ids.items() if self.types[token] in (NORMAL, USER, UNUSED)}
        self.all_ids = ids
        self.longest = max(map(len, ids))
        self.long, self.long_users = LongTexts(self.ids), LongTexts(t for t in ids if self.types[ids[t]] == USER)
        self.lengths = sorted({len(text) for text in self.ids if len(text) <= LONG})
        self.users: dict[str, list[str]] = {}
        for text in sorted((text for text, token in ids.items() if self.types[token] == USER), key=len, reverse=True):
            if len(text) <= LONG:
                self.users.setdefault(text[0], []).append(text)
        normal = [score for score, kind in zip(self.scores, self.types, strict=True) if kind == NORMAL]
        self.unknown_score = single(min(normal, default=LARGEST) - UNKNOWN_PENALTY)
        self.parts: Callable[[str, Watch | None], Iterable[Part]] = {
            UNIGRAM: self._unigram, BPE: self._bpe, WORD: self._words, CHAR: self._characters,
        }[model.kind]  # fmt: skip

    def encode(self, text: str, out: array[int]) -> None:
        """Add the ids of a text to `out`."""
        known = len(out)
        try:
            out.extend(token for token, _, _ in self.joined(self._parts(text)))
        except UndecidedError:
            del out[known:]
            out.extend(token for token, _, _ in self.tokens(self.normalize(text)))

    def _parts(self, text: str) -> Iterator[Part]:
        """The parts of a text, with little memory besides the parts themselves."""
        if self.model.kind not in (BPE, CHAR):  # sums of scores span the whole text
            yield from self.parts(self.normalize(text), None)
            return
        for chunk in self._chunks(self._normalized(text)):
            if self.model.kind == CHAR or UNUSED in self.types or len(chunk) <= 2 * CHUNK_CHARACTERS:
                yield from self.parts(chunk, None)
                continue
            merged = by_windows(lambda i, j: self._made(chunk[i:j]), len(chunk), CHUNK_CHARACTERS, self.longest)  # noqa: B023
            yield from ((chunk[start:stop], token) for token, start, stop in merged)

    def _made(self, text: str) -> list[Made]:
        """The parts of a text, each with its characters."""
        parts = list(self.parts(text, None))
        stops = accumulate(len(part) for part, _ in parts)
        return [(token, stop - len(part), stop) for (part, token), stop in zip(parts, stops, strict=True)]

    def tokens(self, normalized: str, watch: Watch | None = None) -> list[tuple[int, int, int]]:
        """The ids of a normalized text, each with its span in the UTF-8.

        A run of unknown pieces is one id, or the ids of its bytes.
        """
        return list(self.joined(self.parts(normalized, watch)))

    def joined(self, parts: Iterable[Part]) -> Iterator[tuple[int, int, int]]:
        """The same of parts of a normalized text."""
        waiting: tuple[int, int, int] | None = None
        at = 0
        for part, token in parts:
            start, at = at, at + len(part.encode())
            unknown = self.types[token] == UNKNOWN and not self.model.byte_fallback
            if waiting is not None:
                start = waiting[1] if unknown else start
                if not unknown:
                    yield waiting
            waiting = (token, start, at) if unknown else None
            if self.types[token] == UNKNOWN and self.model.byte_fallback:
                ids = [self.all_ids[f"<0x{byte:02X}>"] for byte in part.encode()]
                yield from ((token, k, k + 1) for k, token in enumerate(ids, start))
            elif not unknown:
                yield token, start, at
        if waiting is not None:
            yield waiting

    @once
    def _pairs(self) -> frozenset[str]:
        """All pairs of adjacent characters in pieces."""
        return frozenset(text[k : k + 2] for text in self.ids for k in range(len(text) - 1))

    def _chunks(self, parts: Iterable[str]) -> Iterator[str]:
        """Split a normalized text without changing its ids: symbols are merged only to pieces, so where no piece has
        two characters next to each other, no merge crosses."""
        text, at = "", CHUNK_CHARACTERS
        for part in parts:
            text += part
            while at < len(text):
                if text[at - 1 : at + 1] not in self._pairs:
                    yield text[:at]
                    text, at = text[at:], CHUNK_CHARACTERS
                else:
                    at += 1
        yield text

    # ---- the normalizer

    def user_defined(self, text: str, at: int, long: list[int]) -> str | None:
        """The longest user-defined piece at an offset. long: what `long_users` returned for each offset, or empty."""
        for size in self.long_users.lengths(long[at]) if long else ():
            return text[at : at + size]
        return next((piece for piece in self.users.get(text[at], ()) if text.startswith(piece, at)), None)

    def _prefix(self, text: str, at: int, long: list[int]) -> tuple[str, int]:
        """(replacement of the text at an offset, characters replaced)."""
        piece = self.user_defined(text, at, long)
        if piece is not None:
            return piece, len(piece)
        if self.charsmap is not None:
            found = _mapped(self.charsmap, text[at : at + LONGEST_KEY])
            if found is not None:
                return found
        return text[at], 1

    def normalize(self, text: str) -> str:
        """The normalized text, which is the input of the models."""
        return "".join(self._normalized(text))

    def _normalized(self, text: str) -> Iterator[str]:
        """The same, part by part."""
        long = self.long_users.positions(text)
        at = self._begin(text, long)
        if at == len(text):
            return
        parts, spaces = [self._front], 0  # these are removed at the end of the text
        for new, _, _, _ in self._rewritten(text, at, long):
            parts.append(new.replace(" ", self.mark))
            if len(parts) >= CHUNK_CHARACTERS:
                found = "".join(parts)
                left = found.rstrip(self.mark) if self.step.squeeze else found
                if left:
                    yield self.mark * spaces + left
                    spaces = 0
                spaces += len(found) - len(left)
                parts.clear()
        yield self._ended(self.mark * spaces + "".join(parts))

    def normalized(self, text: str) -> tuple[str, list[tuple[int, int]]]:
        """The same, and the span of each of its characters, in characters of the text."""
        found, units = self._placed(text)
        spans = [
            (start + k, start + k + 1) if whole == text[start : start + taken] else (start, start + taken)
            for new, whole, start, taken in units
            for k in range(len(whole) - len(new), len(whole))
        ]
        after = len(self._behind) if found else 0
        spans = spans[: len(found) - after]
        end = spans[-1][1] if spans else 0
        return found, spans + [(end, end)] * after

    def offsets(self, text: str) -> tuple[str, list[int]]:
        """The same, and where each of its characters begins and the last one ends, as sentencepiece counts: those of
        one replacement, or of a user-defined piece, begin together, and what is removed at the end is after it. Empty
        lists of texts that are removed from their start on."""
        found, units = self._placed(text)
        if not units:
            return "", []
        starts = [start for new, _, start, _ in units for _ in new]
        kept = len(found) - len(self._behind)
        end = starts[kept] if kept < len(starts) else len(text)
        return found, [*starts[:kept], *[end] * (len(found) - kept + 1)]

    def _placed(self, text: str) -> tuple[str, list[tuple[str, str, int, int]]]:
        """A normalized text, and what it was made of, as `_rewritten`, before spaces at the end are removed."""
        long = self.long_users.positions(text)
        at = self._begin(text, long)
        if at == len(text):
            return "", []
        front = [(self._front, self._front, at, 0)] if self._front else []
        units = [*front, *self._rewritten(text, at, long)]
        return self._ended("".join(new.replace(" ", self.mark) for new, *_ in units)), units

    @property
    def _front(self) -> str:
        return self.mark if self.step.prefix and not self.step.suffix else ""

    @property
    def _behind(self) -> str:
        return self.mark if self.step.prefix and self.step.suffix else ""

    def _begin(self, text: str, long: list[int]) -> int:
        """Where a text begins without the leading spaces that are removed."""
        at = 0
        while self.step.squeeze and at < len(text):
            new, taken = self._prefix(text, at, long)
            if new != " ":
                break
            at += taken
        return at

    def _rewritten(self, text: str, at: int, long: list[int]) -> Iterator[tuple[str, str, int, int]]:
        """(what is written, the whole replacement that it is the rest of, where the source begins, its characters)."""
        spaced = self.step.squeeze
        while at < len(text):
            whole, taken = self._prefix(text, at, long)
            new = whole.lstrip(" ") if spaced else whole
            if new:
                yield new, whole, at, taken
                spaced = self.step.squeeze and new.endswith(" ")
            at += taken

    def _ended(self, normalized: str) -> str:
        """A normalized text without the trailing spaces that are removed, and with the suffix."""
        mark, stop = self.mark, len(normalized)
        while self.step.squeeze and normalized.endswith(mark, 0, stop):
            stop -= len(mark)
        return normalized[:stop] + self._behind

    # ---- the models

    def _id(self, piece: str) -> int:
        """The id of a part; the texts of control, byte and unused pieces count as unknown."""
        token = self.ids.get(piece, self.model.unknown)
        return self.model.unknown if self.types[token] == UNUSED else token

    def _symbols(self, text: str) -> Iterator[tuple[str, bool]]:
        """(text, whether it is a user-defined piece) of characters and user-defined pieces."""
        at, long = 0, self.long_users.positions(text)
        while at < len(text):
            piece = self.user_defined(text, at, long)
            yield piece or text[at], piece is not None
            at += len(piece or text[at])

    def _characters(self, text: str, _watch: Watch | None) -> Iterator[Part]:
        return ((symbol, self._id(symbol)) for symbol, _ in self._symbols(text))

    def _words(self, text: str, _watch: Watch | None) -> list[Part]:
        words: list[str] = []
        for c in text:
            if not words or c == SPACE_MARK:
                words.append("")
            words[-1] += c
        return [(word, self._id(word)) for word in words]

    def _bpe(self, text: str, watch: Watch | None) -> list[Part]:
        symbols = [UserDefined(symbol) if frozen else symbol for symbol, frozen in self._symbols(text)]
        halves: dict[str, tuple[str, str]] = {}  # of pieces of type UNUSED: what they were merged from
        report = watching(watch, symbols) if watch else None

        def join(left: str, right: str) -> tuple[int, str] | None:
            if isinstance(left, UserDefined) or isinstance(right, UserDefined):
                return None
            token = self.ids.get(left + right)
            return None if token is None else (self.ranks[token], left + right)

        def observe(what: str, pair: merging.Pair, found: merging.Symbols) -> None:
            token = self.ids[pair.made]
            if what == merging.OFFERED and self.types[token] == UNUSED:
                halves[pair.made] = found.values[pair.left], found.values[pair.right]
            if report:
                report(what, pair._replace(priority=-self.scores[token]), found)

        def split(piece: str, depth: int = 0) -> list[Part]:
            """Split a piece of type UNUSED into the two it was merged from, recursively up to a limit."""
            if piece not in halves:
                return [(piece, self._id(piece))]
            if depth > MOST_SPLITS:
                return [(piece, self.ids[piece])]
            return [part for half in halves[piece] for part in split(half, depth + 1)]

        return [part for symbol in merging.merge(symbols, join, observe).pieces() for part in split(str(symbol))]

    def _unigram(self, text: str, watch: Watch | None) -> list[Part]:
        size, long = len(text), self.long.positions(text)
        best, last = [0.0] * (size + 1), [(-1, self.model.unknown)] * (size + 1)
        reached = 0
        for start in range(size):
            alone, low = False, best[start]
            if abs(low) > RESET:
                for stop in range(start + 1, reached + 1):
                    best[stop] = single(best[stop] - low) if last[stop][0] >= 0 else best[stop]
                low = 0.0
            for length in (*self.lengths, *(reversed([*self.long.lengths(long[start])]) if long else ())):
                stop = start + length
                if stop > size:
                    break
                token = self.ids.get(text[start:stop])
                if token is None or self.types[token] == UNUSED:
                    continue
                own = self.scores[token]
                if self.types[token] == USER:
                    own = single(0.1 * len(text[start:stop].encode()) - 0.1)
                score = single(own + low)
                won = last[stop][0] < 0 or score > best[stop]
                if watch is not None:
                    watch.rival(start, stop, token, own, score, won)
                if won:
                    best[stop], last[stop], reached = score, (start, token), max(reached, stop)
                alone |= stop == start + 1
            score = single(self.unknown_score + low)
            won = last[start + 1][0] < 0 or score > best[start + 1]
            if watch is not None and not alone:
                watch.rival(start, start + 1, self.model.unknown, self.unknown_score, score, won)
            if not alone and won:
                best[start + 1], last[start + 1] = score, (start, self.model.unknown)
                reached = max(reached, start + 1)
        parts, stop = [], size
        while stop > 0:
            start, token = last[stop]
            parts.append((text[start:stop], token))
            stop = start
        return parts[::-1]


def _mapped(charsmap: CharacterMap, text: str) -> tuple[str, int] | None:
    """(replacement, characters) of the longest key that a text begins with."""
    raw = text.encode()
    keys = charsmap.keys(raw)
    return (charsmap.text(keys[-1][1]), len(raw[: keys[-1][0]].decode())) if keys else None


class LongTexts:
    """The texts of more than LONG characters."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._next: list[dict[str, int]] = [{}]
        self._own, self._fails, self._outs = [0], [_ROOT], [_ROOT]  # characters; node of the longest proper suffix
        for text in texts:
            if len(text) > LONG:
                self._add(text)
        self._link()

    def _add(self, text: str) -> None:
        node = _ROOT
        for c in reversed(text):
            new = self._next[node].setdefault(c, len(self._next))
            if new == len(self._next):
                self._next.append({})
                self._own.append(0)
            node = new
        self._own[node] = len(text)

    def _link(self) -> None:
        count = len(self._next)
        self._fails, self._outs, waiting = [_ROOT] * count, [_ROOT] * count, [_ROOT]
        for node in waiting:  # grows: breadth first
            for c, new in self._next[node].items():
                link = _ROOT if node == _ROOT else self._step(self._fails[node], c)
                self._fails[new], self._outs[new] = link, new if self._own[new] else self._outs[link]
                waiting.append(new)

    def _step(self, node: int, c: str) -> int:
        while c not in self._next[node]:
            if node == _ROOT:
                return _ROOT
            node = self._fails[node]
        return self._next[node][c]

    def __bool__(self) -> bool:
        """Whether there is any."""
        return len(self._next) > 1

    def positions(self, text: str) -> list[int]:
        """The node of the texts that begin at each offset, for `lengths`. Empty if there are no long texts."""
        if not self or len(text) <= LONG:
            return []
        found, node = [_ROOT] * len(text), _ROOT
        for at in range(len(text) - 1, -1, -1):
            node = self._step(node, text[at])
            found[at] = self._outs[node]
        return found

    def lengths(self, node: int) -> Iterator[int]:
        """Characters of the texts that begin there, longest first."""
        while node != _ROOT:
            yield self._own[node]
            node = self._outs[self._fails[node]]
