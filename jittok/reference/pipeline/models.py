"""Models: the ids of one word, and which of its bytes each of them stands for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any, NoReturn, Protocol

from jittok.errors import EncodingFailed
from jittok.pipeline import models
from jittok.pipeline.models import MISSING, NO_TOKEN
from jittok.pipeline.pipeline import Pipeline
from jittok.reference.pipeline.merging import Popped, merge

UNKNOWN_PENALTY = 10.0
REMEMBERED = 1 << 16
"""Words whose ids are kept."""
Part = tuple[int, int, int]
"""An id, and the bytes of the word's UTF-8 that it stands for: from, to."""


class Watch:
    """Looks at a model that works on one word, and does nothing."""

    def symbols(self, texts: list[str]) -> None:
        """The symbols before any is merged."""

    def popped(self, pair: tuple[int, int], text: str, priority: float, applied: bool, behind: list[int]) -> None:
        """A pair of symbols taken from the queue: whether it is merged, and the symbol behind each one now."""

    def tried(self, start: int, stop: int, token: int | None) -> None:
        """Bytes of the word that were looked up."""

    def rival(self, start: int, stop: int, token: int, score: float, total: float, won: bool) -> None:
        """Characters of the word that are a token: its score, the sum on the way to `stop`, whether that is best."""


class Word(Protocol):
    """What makes ids of a word."""

    def __call__(self, word: str, watch: Watch | None = None) -> list[Part]:
        """The ids, each with its bytes of the word. `watch` sees how they are found."""


def word_model(pipeline: Pipeline) -> Word:
    """What makes ids of a word; it remembers words. Neither starts nor ends of their bytes fall."""
    makers: dict[type, Callable[[Pipeline, Any], Word]] = {
        models.Merges: _merges,
        models.Ranks: _ranks,
        models.Unigram: _unigram,
        models.WordPiece: _wordpiece,
        models.Words: _words,
        models.Longest: _longest,
    }
    encode, known = makers[type(pipeline.model)](pipeline, pipeline.model), dict[str, list[Part]]()

    def remembered(word: str, watch: Watch | None = None) -> list[Part]:
        if watch is not None:
            return encode(word, watch)
        found = known.get(word)
        if found is None:
            found = encode(word)
            if len(word) < 64 and len(known) < REMEMBERED:
                known[word] = found
        return found

    return remembered


def texts_of(pipeline: Pipeline) -> dict[str, int]:
    """text -> id of a vocabulary whose tokens are texts."""
    return {text.decode(): token for text, token in pipeline.vocabulary.items()}


def _shown(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def watching(watch: Watch, texts: list[str]) -> Popped:
    """What tells a watch of the pairs of `merge`; texts: of the first symbols."""
    watch.symbols(texts)

    def popped(rank: float, left: int, right: int, applied: bool, behind: list[int]) -> None:
        stop = behind[left] if applied else behind[right] if right >= 0 else right
        text = "".join(texts[left : stop if stop >= 0 else len(texts)]) if right >= 0 else ""
        watch.popped((left, right), text, rank, applied, behind)

    return popped


def _byte_places(word: str) -> list[int]:
    """Where each character begins in the word's UTF-8, and where the last one ends."""
    return [0, *accumulate(len(c.encode()) for c in word)]


def _fail(found: str, expected: str) -> NoReturn:
    raise EncodingFailed(0, 0, found, expected)


def _bytes_of(ids: dict[str, int], text: str) -> list[int] | None:
    """The tokens <0xXX> of a text's bytes, None where one is missing."""
    found = [ids.get(f"<0x{byte:02X}>", NO_TOKEN) for byte in text.encode()]
    return None if NO_TOKEN in found else found


def _merges(pipeline: Pipeline, model: models.Merges) -> Word:
    ids = texts_of(pipeline)
    rows = zip(model.left.tolist(), model.right.tolist(), model.merged.tolist(), strict=True)
    ranks = {(left, right): (rank, made) for rank, (left, right, made) in enumerate(rows)}

    def symbols(word: str) -> list[Part]:
        out: list[Part] = []
        waiting: Part | None = None  # an unknown that waits is written in front of the next known character
        since = at = 0

        def write() -> None:
            nonlocal waiting
            if waiting is not None:
                parts = [*out[since:], waiting]  # bytes that came between stand for the same as it
                unit = waiting[1], max(stop for _, _, stop in parts)
                out[since:] = [(token, *unit) for token, _, _ in parts]
                waiting = None

        for k, c in enumerate(word):
            start, at = at, at + len(c.encode())
            text = (model.prefix if k else "") + c + (model.suffix if k == len(word) - 1 else "")
            if text in ids:
                write()
                out.append((ids[text], start, at))
                continue
            parts = _bytes_of(ids, text) if model.byte_fallback else None
            if parts is not None:
                own = len(parts) == at - start  # else prefix or suffix are among them
                out += [
                    (token, start + j, start + j + 1) if own else (token, start, at) for j, token in enumerate(parts)
                ]
            elif model.unknown == MISSING:
                _fail(text, "a character of the vocabulary: the file's unknown token is not in it")
            elif model.unknown != NO_TOKEN:
                if waiting is not None and not model.fuse_unknown:
                    write()
                since, first = (len(out), start) if waiting is None else (since, waiting[1])
                waiting = model.unknown, first, at
        write()
        return out

    def encode(word: str, watch: Watch | None = None) -> list[Part]:
        if model.whole_words and word in ids:
            return [(ids[word], 0, len(word.encode()))]
        parts, raw = symbols(word), word.encode()
        popped = watching(watch, [_shown(raw[start:stop]) for _, start, stop in parts]) if watch else None
        left = merge([token for token, _, _ in parts], lambda left, right: ranks.get((left, right)), popped)
        return [(token, parts[first][1], parts[stop - 1][2]) for token, first, stop in left]

    return encode


def _ranks(pipeline: Pipeline, _: models.Ranks) -> Word:
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

    return encode


def _longest(pipeline: Pipeline, _: models.Longest) -> Word:
    ids = pipeline.vocabulary
    most = max(map(len, ids))

    def encode(word: str, watch: Watch | None = None) -> list[Part]:
        raw, out, at = word.encode(), list[Part](), 0
        while at < len(raw):
            for size in range(min(most, len(raw) - at), 0, -1):
                if watch is not None:
                    watch.tried(at, at + size, ids.get(raw[at : at + size]))
                if raw[at : at + size] in ids:
                    break
            out.append((ids[raw[at : at + size]], at, at + size))
            at += size
        return out

    return encode


def _wordpiece(pipeline: Pipeline, model: models.WordPiece) -> Word:
    ids = texts_of(pipeline)
    most = max(map(len, ids), default=0)

    def unknown(word: str) -> list[Part]:
        if model.unknown == NO_TOKEN:
            _fail(word, "a word of the vocabulary: it has no unknown token")
        return [(model.unknown, 0, len(word.encode()))]

    def encode(word: str, watch: Watch | None = None) -> list[Part]:
        if len(word) > model.longest:
            return unknown(word)
        out, at, places = list[Part](), 0, _byte_places(word)
        while at < len(word):
            front = model.prefix if at else ""
            for stop in range(min(len(word), at + most), at, -1):
                token = ids.get(front + word[at:stop])
                if watch is not None:
                    watch.tried(places[at], places[stop], token)
                if token is not None:
                    break
            else:
                return unknown(word)
            out.append((token, places[at], places[stop]))
            at = stop
        return out

    return encode


def _words(pipeline: Pipeline, model: models.Words) -> Word:
    ids = texts_of(pipeline)

    def encode(word: str, watch: Watch | None = None) -> list[Part]:
        del watch
        token = ids.get(word, model.unknown)
        if token == NO_TOKEN:
            _fail(word, "a word of the vocabulary: it has no unknown token")
        return [(token, 0, len(word.encode()))]

    return encode


def _unigram(pipeline: Pipeline, model: models.Unigram) -> Word:
    ids = texts_of(pipeline)  # of equal texts the last
    scores = model.scores.tolist()
    worst = min(scores, default=0.0) - UNKNOWN_PENALTY
    most = max(map(len, ids), default=0)

    def best_starts(word: str, watch: Watch | None) -> list[tuple[int, bool]]:
        """For each place the start of the best path's last token, and whether that is a known one."""
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

    return encode
