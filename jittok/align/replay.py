"""Find spans by encoding a fragment again in Python, step by step: the fallback for what token lengths do not decide.

Such fragments are rare: they have bytes without a token, BPE symbols that are no token, or byte tokens that were found
as texts. Symbols are merged as in llama.cpp, keeping the offset of each.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.align.lengths import DNA_BEGIN, DNA_END, DNA_UNKNOWN, is_dna
from jittok.models.vocab_types import kind_of
from jittok.pretokenize.definition import pre_type, split
from jittok.pretokenize.spaces_in_words import spaces_in_words
from jittok.unicode.characters import KMER, KMER_MARK, SPACE_MARK_BYTES
from jittok.unicode.tables import decode, is_whitespace, lower, sequence_length, utf8
from jittok.vocab import Vocab

HASHED = 5
"""Bytes a token of llama.cpp's type for its own tests."""
BEYOND = re.compile(rb"\xf4[\x90-\xbf][\x80-\xbf]{2}|[\xf5-\xf7][\x80-\xbf]{3}")
"""A code point above U+10FFFF. It is only encoded with errors="replace", as four invalid bytes."""

LONG_FRAGMENT = 1 << 16
"""Fragments of this many bytes or more are aligned in parts."""
PART_BYTES = 1 << 15
"""The least bytes of a part, which ends between two words."""
BETWEEN_WORDS = re.compile(rb"(?<=[A-Za-z])(?= [A-Za-z])")

Token = tuple[int, int, int]
"""(id, start, stop)."""
Rank = Callable[[bytes, bytes], float | None]


class SourceMappedText(NamedTuple):
    """A rewritten text, with the span in the document that each of its bytes comes from."""

    text: bytes
    starts: list[int]
    stops: list[int]

    def part(self, i: int, j: int) -> SourceMappedText:
        """Bytes i .. j - 1."""
        return SourceMappedText(self.text[i:j], self.starts[i:j], self.stops[i:j])

    def replaced(self, parts: Iterable[tuple[bytes, int, int]]) -> SourceMappedText:
        """The text made of parts (out, i, j), each a replacement of the bytes i .. j - 1. All bytes of a changed part
        get the span of the whole part."""
        out = SourceMappedText(b"", [], [])
        texts = []
        for text, i, j in parts:
            texts.append(text)
            if i == j:
                out.starts.extend([self.starts[i]] * len(text))
                out.stops.extend([self.starts[i]] * len(text))
            elif text == self.text[i:j]:
                out.starts.extend(self.starts[i:j])
                out.stops.extend(self.stops[i:j])
            else:
                out.starts.extend([self.starts[i]] * len(text))
                out.stops.extend([self.stops[j - 1]] * len(text))
        return out._replace(text=b"".join(texts))

    def located(self, tokens: Iterable[Token]) -> Iterator[Token]:
        """Convert tokens with spans in this text to tokens with spans in the document."""
        for token, i, j in tokens:
            yield token, self.starts[i], self.stops[j - 1]


def replayed_tokens(vocab: Vocab, raw: bytes, start: int, prefixed: bool) -> list[Token]:
    """The tokens of a fragment `raw` that begins at `start`, by the type's `Alignment.literal`.

    prefixed: it is at the start or after a special token.
    """
    source = SourceMappedText(raw, [*range(start, start + len(raw))], [*range(start + 1, start + len(raw) + 1)])
    way = kind_of(vocab).alignment.literal
    if way == "chunks":
        return [*source.located((0, i, min(i + HASHED, len(raw))) for i in range(0, len(raw), HASHED))]
    if way == "spm":
        return [*_spm(vocab, source, prefixed)]
    if vocab.model == "whitespace":
        return [token for run in _runs(vocab, _with_replacements(vocab, source)) for token in _bpe(vocab, run)]
    if is_dna(vocab):
        return [*_dna(vocab, source)]
    return [*_bpe(vocab, _without_inner_spaces(vocab, _with_replacements(vocab, source)))]


def replayed_parts(
    vocab: Vocab, raw: bytes, start: int, prefixed: bool, ids: NDArray[np.int32], spans: NDArray[np.int64]
) -> bool:
    """Write the spans of a long fragment's ids to `spans`, int64[n, 2], in parts, because Python lists take hundreds of
    bytes for each byte of text. Parts are cut before a space between letters; returns whether they gave these ids."""
    if len(raw) < LONG_FRAGMENT:
        return False
    at, done = 0, 0
    while at < len(raw):
        found = BETWEEN_WORDS.search(raw, at + PART_BYTES)
        stop = len(raw) if found is None else found.start()
        tokens = replayed_tokens(vocab, raw[at:stop], start + at, prefixed and at == 0)
        known = np.array(tokens, np.int64).reshape(-1, 3)
        if not np.array_equal(known[:, 0], ids[done : done + len(known)]):
            return False
        spans[done : done + len(known)] = known[:, 1:]
        at, done = stop, done + len(known)
    return done == ids.size


def merged(text: bytes, rank: Rank) -> list[bytes]:
    """Merge adjacent symbols until no pair has a rank, the lowest rank first, the leftmost among equals; returns the
    symbols that are left."""
    starts, at = [], 0
    while at < len(text):
        starts.append(at)
        at += sequence_length(text[at])
    stops = [*starts[1:], len(text)]
    before, after = [*range(-1, len(starts) - 1)], [*range(1, len(starts)), -1]
    alive = [True] * len(starts)
    queue: list[tuple[float, int, int, int]] = []

    def offer(left: int, right: int) -> None:
        if left >= 0 and right >= 0:
            value = rank(text[starts[left] : stops[left]], text[starts[right] : stops[right]])
            if value is not None:
                heapq.heappush(queue, (value, left, right, stops[right]))

    for right in range(1, len(starts)):
        offer(right - 1, right)
    while queue:
        _, left, right, stop = heapq.heappop(queue)
        if not (alive[left] and alive[right] and after[left] == right and stops[right] == stop):
            continue
        alive[right], stops[left], after[left] = False, stop, after[right]
        if after[left] >= 0:
            before[after[left]] = left
        offer(before[left], left)
        offer(left, after[left])
    return [text[starts[i] : stops[i]] for i in range(len(starts)) if alive[i]]


def _fallen(vocab: Vocab, symbols: list[bytes], byte_id: Callable[[int], int | None]) -> Iterator[Token]:
    """The tokens of adjacent symbols. A symbol that is no token becomes the tokens of its bytes, if there are any."""
    at = 0
    for symbol in symbols:
        token = vocab.ids.get(symbol)
        if token is not None:
            yield token, at, at + len(symbol)
        else:
            for k, byte in enumerate(symbol, at):
                found = byte_id(byte)
                if found is not None:
                    yield found, k, k + 1
        at += len(symbol)


def _spm(vocab: Vocab, source: SourceMappedText, prefixed: bool) -> Iterator[Token]:
    text = source.replaced((SPACE_MARK_BYTES if b == 0x20 else bytes([b]), i, i + 1) for i, b in enumerate(source.text))
    if vocab.add_space_prefix and prefixed:
        first = [source.starts[0]] * len(SPACE_MARK_BYTES)
        text = SourceMappedText(SPACE_MARK_BYTES + text.text, first + text.starts, first + text.stops)
    ids, scores = vocab.ids, vocab.scores

    def rank(left: bytes, right: bytes) -> float | None:
        token = ids.get(left + right)
        return None if token is None else -float(scores[token])

    def byte_id(byte: int) -> int:
        token = ids.get(b"<0x%02X>" % byte, ids.get(bytes([byte])) if byte else None)
        return vocab.unk_id if token is None else token  # with errors="replace"; otherwise encoding would have failed

    return text.located(_fallen(vocab, merged(text.text, rank), byte_id))


def _with_replacements(vocab: Vocab, source: SourceMappedText) -> SourceMappedText:
    """Replace each byte of a code point above U+10FFFF by U+FFFD, if the decoder would accept such a code point."""
    if vocab.shortest_utf8:
        return source
    parts, done = [], 0
    for match in BEYOND.finditer(source.text):
        parts.append((source.text[done : match.start()], done, match.start()))
        parts += [(utf8(0xFFFD), k, k + 1) for k in range(match.start(), match.end())]
        done = match.end()
    return source.replaced([*parts, (source.text[done:], done, len(source.text))]) if parts else source


def _without_inner_spaces(vocab: Vocab, source: SourceMappedText) -> SourceMappedText:
    """Replace spaces inside words by U+FFFD, one for each byte, until there is none: a replacement may put another
    space inside a word."""
    while spaces := spaces_in_words(vocab, source.text):
        inside = {k for start, stop in spaces for k in range(start, stop)}
        source = source.replaced(
            (utf8(0xFFFD) if k in inside else source.text[k : k + 1], k, k + 1) for k in range(len(source.text))
        )
    return source


def _begun_lines(text: SourceMappedText) -> SourceMappedText:
    """Put U+2581, which covers nothing, before each line that does not begin with it."""
    parts, at = [], 0
    for line in re.split(rb"(\n+)", text.text):
        if line and line[:1] != b"\n" and not line.startswith(SPACE_MARK_BYTES):
            parts.append((SPACE_MARK_BYTES, at, at))
        parts.append((line, at, at + len(line)))
        at += len(line)
    return text.replaced(part for part in parts if part[0])


def _escaped(vocab: Vocab, source: SourceMappedText) -> SourceMappedText:
    """Replace spaces by U+2581 if the vocabulary requires it, for all models of BPE."""
    if not vocab.escape_whitespaces:
        return source
    return source.replaced((SPACE_MARK_BYTES if b == 0x20 else bytes([b]), i, i + 1) for i, b in enumerate(source.text))


def _bpe(vocab: Vocab, source: SourceMappedText) -> Iterator[Token]:
    source = _escaped(vocab, source)
    text = source.replaced((utf8(c), i, j) for c, i, j in decode(source.text, vocab.shortest_utf8))
    pre = pre_type(vocab.pre_type)
    if pre.begin_lines:
        text = _begun_lines(text)
    known: dict[bytes, tuple[int, list[Token]]] = {}
    at = 0
    for word in split(text.text, pre):
        if word not in known:
            known[word] = _word(vocab, word, pre.byte_encode)
        size, tokens = known[word]
        yield from text.located((token, at + i, at + j) for token, i, j in tokens)
        at += size


def _word(vocab: Vocab, word: bytes, encoded: bool) -> tuple[int, list[Token]]:
    """(the number of text bytes that a pre-token covers, its tokens)."""
    whole = vocab.ignore_merges or (pre_type(vocab.pre_type).newlines_whole and not word.strip(b"\n"))
    ranks, ids = vocab.merges, vocab.ids
    symbols = [word] if whole and word in ids else merged(word, lambda left, right: ranks.get((left, right)))
    tokens = _fallen(vocab, symbols, lambda byte: ids.get(bytes([byte]) if encoded else b"<0x%02X>" % byte))
    if not encoded:
        return len(word), [*tokens]
    position: list[int] = []  # of the byte that each byte of the word is written for
    i = 0
    while i < len(word):
        size = sequence_length(word[i])
        position += [position[-1] + 1 if position else 0] * size
        i += size
    return (position[-1] + 1 if position else 0), [(token, position[i], position[j - 1] + 1) for token, i, j in tokens]


def _runs(vocab: Vocab, source: SourceMappedText) -> Iterator[SourceMappedText]:
    """The runs between white space, in lower case if the vocabulary requires it."""
    parts: list[tuple[bytes, int, int]] = []
    source = _escaped(vocab, source)
    for c, i, j in [*decode(source.text, vocab.shortest_utf8), (0x20, len(source.text), len(source.text))]:
        if not is_whitespace(c):
            parts.append((utf8(lower(c) if vocab.lowercase else c), i, j))
        elif parts:
            yield source.replaced(parts)
            parts = []


def _dna(vocab: Vocab, source: SourceMappedText) -> Iterator[Token]:
    """BPE outside <dna> ... </dna>, six letters a token inside."""
    outside = re.sub(rb"(?s)<dna>.*?(</dna>|\Z)", b" ", source.text)
    if BEYOND.search(outside):
        source = _with_replacements(vocab, source)
    source = _escaped(vocab, source)
    text, ids, at = source.text, vocab.ids, 0
    while at < len(text):
        begin = text.find(DNA_BEGIN, at)
        if begin < 0:
            yield from _bpe(vocab, source.part(at, len(text)))
            return
        if begin > at:
            yield from _bpe(vocab, source.part(at, begin))
        inner = begin + len(DNA_BEGIN)
        end = text.find(DNA_END, inner)
        stop = end if end >= 0 else len(text)
        tokens = [(ids[DNA_BEGIN], begin, inner)]
        for i in range(inner, stop, KMER):
            letters = text[i : min(i + KMER, stop)]
            kmer = letters.upper().ljust(KMER, b"A") + KMER_MARK
            tokens.append((ids.get(kmer, ids[DNA_UNKNOWN]), i, i + len(letters)))
        at = stop
        if end >= 0:
            at = end + len(DNA_END)
            tokens.append((ids[DNA_END], end, at))
        yield from source.located(tokens)
