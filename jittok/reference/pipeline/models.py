"""Models: the ids of one word, and their spans in its bytes."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple, NoReturn, Protocol

from jittok.common.pipeline import models
from jittok.common.pipeline.models import MISSING, NO_TOKEN
from jittok.common.pipeline.pipeline import Pipeline
from jittok.errors import EncodingFailed
from jittok.reference.pipeline.merging import Popped, merge, merged_ids

UNKNOWN_PENALTY = 10.0
REMEMBERED = 1 << 16
"""Limit of words whose ids are cached."""
LONG_WORD = 1 << 13
"""Characters of a word from which on its ids are computed without structures of hundreds of bytes per character."""
Part = tuple[int, int, int]
"""An id, and its span in the word's UTF-8: start, stop."""


class Watch:
    """An observer of a model on one word; does nothing."""

    def symbols(self, texts: list[str]) -> None:
        """The symbols before any is merged."""

    def popped(self, pair: tuple[int, int], text: str, priority: float, applied: bool, after: list[int]) -> None:
        """A popped pair of symbols: whether it is merged, and the next symbol of each."""

    def tried(self, start: int, stop: int, token: int | None) -> None:
        """Bytes of the word that were looked up."""

    def rival(self, start: int, stop: int, token: int, score: float, total: float, won: bool) -> None:
        """Characters of the word that are a token: its score, the sum of the path to `stop`, whether that is the
        best."""


class Encode(Protocol):
    """What makes ids of a word."""

    def __call__(self, word: str, watch: Watch | None = None) -> list[Part]:
        """The ids, each with its bytes of the word. `watch` sees how they are found."""


class Model(NamedTuple):
    """The encoders of a model."""

    encode: Encode
    long: Callable[[str, array[int]], None] | None = None  # adds the ids of a long word to an array


class Word:
    """An encoder of words with a cache. Starts and ends of spans are ascending."""

    def __init__(self, model: Model) -> None:
        self._model, self._known = model, dict[str, list[Part]]()

    def __call__(self, word: str, watch: Watch | None = None) -> list[Part]:
        """The ids, each with its bytes of the word. `watch` sees how they are found."""
        if watch is not None:
            return self._model.encode(word, watch)
        found = self._known.get(word)
        if found is None:
            found = self._model.encode(word)
            if len(word) < 64 and len(self._known) < REMEMBERED:
                self._known[word] = found
        return found

    def ids(self, word: str, out: array[int]) -> None:
        """Add the ids to `out`."""
        if len(word) >= LONG_WORD and self._model.long is not None:
            self._model.long(word, out)
        else:
            out.extend(token for token, _, _ in self(word))


def word_model(pipeline: Pipeline) -> Word:
    """What makes ids of a word."""
    makers: dict[type, Callable[[Pipeline, Any], Model]] = {
        models.Merges: _merges,
        models.Ranks: _ranks,
        models.Unigram: _unigram,
        models.WordPiece: _wordpiece,
        models.Words: _words,
        models.Longest: _longest,
    }
    return Word(makers[type(pipeline.model)](pipeline, pipeline.model))


def texts_of(pipeline: Pipeline) -> dict[str, int]:
    """text -> id of a vocabulary whose tokens are texts."""
    return {text.decode(): token for text, token in pipeline.vocabulary.items()}


def _shown(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def watching(watch: Watch, texts: list[str]) -> Popped:
    """The callback that reports the pairs of `merge` to a watch; texts: of the first symbols."""
    watch.symbols(texts)

    def popped(rank: float, left: int, right: int, applied: bool, after: list[int]) -> None:
        stop = after[left] if applied else after[right] if right >= 0 else right
        text = "".join(texts[left : stop if stop >= 0 else len(texts)]) if right >= 0 else ""
        watch.popped((left, right), text, rank, applied, after)

    return popped


def _byte_places(word: str) -> list[int]:
    """Where each character begins in the word's UTF-8, and where the last one ends."""
    return [0, *accumulate(len(c.encode()) for c in word)]


def _fail(found: str, expected: str) -> NoReturn:
    raise EncodingFailed(0, 0, found, expected)


def _bytes_of(ids: dict[str, int], text: str) -> list[int] | None:
    """The tokens <0xXX> of a text's bytes, None if one is missing."""
    found = [ids.get(f"<0x{byte:02X}>", NO_TOKEN) for byte in text.encode()]
    return None if NO_TOKEN in found else found


def _merges(pipeline: Pipeline, model: models.Merges) -> Model:
    ids = texts_of(pipeline)
    rows = zip(model.left.tolist(), model.right.tolist(), model.merged.tolist(), strict=True)
    ranks = {(left, right): (rank, made) for rank, (left, right, made) in enumerate(rows)}

    def joined(left: int, right: int) -> tuple[int, int] | None:
        return ranks.get((left, right))

    def symbols(word: str) -> Iterator[Part]:
        waiting: Part | None = None  # a pending unknown is written before the next known character
        between: list[Part] = []  # bytes since then
        at = 0

        def written() -> list[Part]:
            nonlocal waiting
            if waiting is None:
                return []
            parts = [*between, waiting]  # bytes since then have its span
            unit = waiting[1], max(stop for _, _, stop in parts)
            waiting = None
            between.clear()
            return [(token, *unit) for token, _, _ in parts]

        for k, c in enumerate(word):
            start, at = at, at + len(c.encode())
            text = (model.prefix if k else "") + c + (model.suffix if k == len(word) - 1 else "")
            if text in ids:
                yield from written()
                yield ids[text], start, at
                continue
            parts = _bytes_of(ids, text) if model.byte_fallback else None
            if parts is not None:
                own = len(parts) == at - start  # else prefix or suffix are among them
                spelled = [
                    (token, start + j, start + j + 1) if own else (token, start, at) for j, token in enumerate(parts)
                ]
                if waiting is None:
                    yield from spelled
                else:
                    between += spelled
            elif model.unknown == MISSING:
                _fail(text, "a character of the vocabulary: the file's unknown token is not in it")
            elif model.unknown != NO_TOKEN:
                if not model.fuse_unknown:
                    yield from written()
                waiting = model.unknown, start if waiting is None else waiting[1], at
        yield from written()

    def encode(word: str, watch: Watch | None = None) -> list[Part]:
        if model.whole_words and word in ids:
            return [(ids[word], 0, len(word.encode()))]
        parts, raw = list(symbols(word)), word.encode()
        popped = watching(watch, [_shown(raw[start:stop]) for _, start, stop in parts]) if watch else None
        left = merge([token for token, _, _ in parts], joined, popped)
        return [(token, parts[first][1], parts[stop - 1][2]) for token, first, stop in left]

    def long(word: str, out: array[int]) -> None:
        if model.whole_words and word in ids:
            out.append(ids[word])
        else:
            merged_ids(array("i", (token for token, _, _ in symbols(word))), joined, out)

    return Model(encode, long)


def _ranks(pipeline: Pipeline, _: models.Ranks) -> Model:
    ids, tokens = pipeline.vocabulary, pipeline.model_tokens

    def joined(left: int, right: int) -> tuple[int, int] | None:
        token = ids.get((tokens[left] or b"") + (tokens[right] or b""))
        return None if token is None else (token, token)

    def encode(word: str, watch: Watch | None = None) -> list[Part]:
        raw = word.encode()
        if raw in ids:
            return [(ids[raw], 0, len(raw))]
        popped = watching(watch, [_shown(raw[k : k + 1]) for k in range(len(raw))]) if watch else None
        return merge([ids[raw[k : k + 1]] for k in range(len(raw))], joined, popped)

    def long(word: str, out: array[int]) -> None:
        raw = word.encode()
        if raw in ids:
            out.append(ids[raw])
        else:
            merged_ids(array("i", (ids[raw[k : k + 1]] for k in range(len(raw)))), joined, out)

    return Model(encode, long)


def _longest(pipeline: Pipeline, _: models.Longest) -> Model:
    ids = pipeline.vocabulary
    most = max(map(len, ids))

    def parts(word: str, watch: Watch | None) -> Iterator[Part]:
        raw, at = word.encode(), 0
        while at < len(raw):
            for size in range(min(most, len(raw) - at), 0, -1):
                if watch is not None:
                    watch.tried(at, at + size, ids.get(raw[at : at + size]))
                if raw[at : at + size] in ids:
                    break
            yield ids[raw[at : at + size]], at, at + size
            at += size

    return Model(
        lambda word, watch=None: list(parts(word, watch)),
        lambda word, out: out.extend(token for token, _, _ in parts(word, None)),
    )


def _wordpiece(pipeline: Pipeline, model: models.WordPiece) -> Model:
    ids = texts_of(pipeline)
    lengths = sorted({len(text) for text in ids}, reverse=True)
    most = max(lengths, default=0)

    def unknown(word: str) -> list[Part]:
        if model.unknown == NO_TOKEN:
            _fail(word, "a word of the vocabulary: it has no unknown token")
        return [(model.unknown, 0, len(word.encode()))]

    def longest(word: str, at: int) -> Iterator[tuple[int, int | None]]:
        """The texts looked up at an offset, longest first: (end, token)."""
        front = model.prefix if at else ""
        return ((stop, ids.get(front + word[at:stop])) for stop in range(min(len(word), at + most), at, -1))

    def encode(word: str, watch: Watch | None = None) -> list[Part]:
        if len(word) > model.longest:
            return unknown(word)
        out, at, positions = list[Part](), 0, _byte_places(word)
        while at < len(word):
            for stop, token in longest(word, at):
                if watch is not None:
                    watch.tried(positions[at], positions[stop], token)
                if token is not None:
                    out.append((token, positions[at], positions[stop]))
                    at = stop
                    break
            else:
                return unknown(word)
        return out

    def long(word: str, out: array[int]) -> None:
        known, at = len(out), 0 if len(word) <= model.longest else len(word) + 1
        while at < len(word):
            front = model.prefix if at else ""
            stops = (at + length - len(front) for length in lengths)  # other lengths are no tokens
            found = ((stop, ids.get(front + word[at:stop])) for stop in stops if at < stop <= len(word))
            at, token = next((each for each in found if each[1] is not None), (len(word) + 1, None))
            if token is not None:
                out.append(token)
        if at > len(word):
            del out[known:]
            out.append(unknown(word)[0][0])

    return Model(encode, long)


def _words(pipeline: Pipeline, model: models.Words) -> Model:
    ids = texts_of(pipeline)

    def encode(word: str, watch: Watch | None = None) -> list[Part]:
        del watch
        token = ids.get(word, model.unknown)
        if token == NO_TOKEN:
            _fail(word, "a word of the vocabulary: it has no unknown token")
        return [(token, 0, len(word.encode()))]

    return Model(encode)


def _unigram(pipeline: Pipeline, model: models.Unigram) -> Model:
    ids = texts_of(pipeline)  # of equal texts the last
    scores = model.scores.tolist()
    worst = min(scores, default=0.0) - UNKNOWN_PENALTY
    most = max(map(len, ids), default=0)

    def best_starts(word: str, watch: Watch | None) -> list[tuple[int, bool]]:
        """For each offset, the start of the best path's last token, and whether that token is known."""
        size = len(word)
        best, last = [0.0] * (size + 1), [(-1, False)] * (size + 1)
        for start in range(size):
            single = False
            for stop in range(start + 1, min(size, start + most) + 1):
                token = ids.get(word[start:stop])
                if token is None:
                    continue
                score = scores[token] + best[start]
                won = last[stop][0] < 0 or score > best[stop]
                if watch is not None:
                    watch.rival(start, stop, token, scores[token], score, won)
                if won:
                    best[stop], last[stop] = score, (start, token != model.unknown)
                single |= stop == start + 1
            score = worst + best[start]
            won = last[start + 1][0] < 0 or score > best[start + 1]
            if watch is not None and not single:
                watch.rival(start, start + 1, model.unknown, worst, score, won)
            if not single and won:
                best[start + 1], last[start + 1] = score, (start, False)
        return last

    def encode(word: str, watch: Watch | None = None) -> list[Part]:
        last, stop, parts, unknown = best_starts(word, watch), len(word), list[str](), ""
        while stop > 0:
            start, known = last[stop]
            if known:
                parts += [unknown, word[start:stop]]
                unknown = ""
            else:
                unknown = word[start:stop] + unknown
            stop = start
        parts.append(unknown)
        out, at = list[Part](), 0
        for part in filter(None, reversed(parts)):
            start, at = at, at + len(part.encode())
            tokens = _bytes_of(ids, part) if model.byte_fallback and part not in ids else None
            if tokens is not None:
                out += [(token, k, k + 1) for k, token in enumerate(tokens, start)]
                continue
            token = ids.get(part, model.unknown)
            if token == NO_TOKEN:
                _fail(part, "text of the vocabulary: it has no unknown token")
            out.append((token, start, at))
        return out

    return Model(encode)
