"""PLaMo-2 and 3: the cheapest segmentation of a text, found from its end with a table of suffixes of tokens.

PLaMo-3 searches segment by segment: the text is first split around control sequences and runs of one character.

>>> table_ = SuffixTable(  # of the tokens "a" (id 0), "b" (1) and "ab" (2)
...     rows=[Row(1, -1, UNKNOWN, 0), Row(1, 0, -30, 1), Row(1, -1, UNKNOWN, 0), Row(2, 2, -40, 3), Row(1, 0, -30, 1),
...           Row(1, -1, UNKNOWN, 0), Row(1, 1, -20, 6), Row(1, -1, UNKNOWN, 0)],
...     blocks={(97, 0): 1, (97, 6): 3, (98, 0): 6}, byte_tokens=[])
>>> best_pieces(table_, [*b"aab"], [0, 1, 2])  # (code points, id) of the cheapest segmentation
[(1, 0), (2, 2)]
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from jittok.common.pipeline.steps import PlamoSegments
from jittok.common.unicode.characters import NEWLINE, SPACE_BYTE
from jittok.common.unicode.tables import code_points, decode, is_whitespace, utf8
from jittok.errors import EncodingFailed, MalformedVocab
from jittok.reference.special import by_flags
from jittok.reference.text import Mapped, Token
from jittok.reference.vocab_tables import file_attributes, per_vocab, scores
from jittok.vocab import Vocab
from jittok.vocab.as_pipeline import step_of

BYTE = 32
INVALID, UNKNOWN = -20_000_000, -10_000_000
"""Scores of a token that is never used and of a character without a token."""
NO_PATH = 1 << 60
BYTE_ORDER_MARK = 0xFEFF
BOUNDARY = 0xEE00
"""PLaMo-3: ends a segment and is dropped; of newlines no run is long; of spaces two are one, of all else RUN."""
RUN, LONGEST_BODY = 4, 64
OPENED, CLOSED = [*b"<|plamo:"], [*b"|>"]
"""What a control sequence begins and ends with; between are up to LONGEST_BODY code points, none of them white
space."""
Point = tuple[int, int, int]
"""A code point, its start and its end."""
Observe = Callable[[int, int, int, int, int, bool], None]
"""Called with offset, code points, id, score and cost of each piece compared, and whether it was the cheapest so
far."""
_BYTE_TOKEN = re.compile(rb"<0x([0-9a-fA-F]{2})>", re.DOTALL)


class Row(NamedTuple):
    """A piece that a suffix begins with, or the row that ends a block."""

    size: int  # code points
    token: int  # -1: none
    score: int
    block: int  # rows of the piece itself


class SuffixTable(NamedTuple):
    """Rows, sorted by suffix; `blocks[c, rest]` is where those of c + (the suffix of block `rest`) begin."""

    rows: list[Row]
    blocks: dict[tuple[int, int], int]
    byte_tokens: list[int]


around = by_flags


def tokens(vocab: Vocab, segment: Mapped) -> Iterator[Token]:
    """Tokens of one segment. Source: llama.cpp, `llm_tokenizer_plamo2_session` and `..plamo3_session`."""
    yield from searched(table(vocab), segment, list(decode(segment.text, step_of(vocab, PlamoSegments).shortest)))


def segments(vocab: Vocab, fragment: Mapped) -> list[list[Point]]:
    """The segments of code points that are searched one by one, with their positions. None is empty.

    PLaMo-2 drops a byte order mark before.
    """
    how = step_of(vocab, PlamoSegments)
    text = list(decode(fragment.text, how.shortest))
    if not how.runs:
        return [text[text[0][0] == BYTE_ORDER_MARK :]] if text and len(text) > (text[0][0] == BYTE_ORDER_MARK) else []
    points = [c for c, _, _ in text]
    cuts = {0, len(points), *_around_controls(points)}
    cuts |= _around_runs(points, cuts)
    positions = sorted(cuts)
    found: list[list[Point]] = []
    for i, j in pairwise(positions):
        kept: list[Point] = []
        for point in text[i:j]:
            if point[0] == BOUNDARY:
                found.append(kept)
                kept = []
            else:
                kept.append(point)
        found.append(kept)
    return [part for part in found if part]


def _around_controls(points: list[int]) -> Iterator[int]:
    """The offsets around each <|plamo:body|>; the body is as long as possible, and there is no match without |> after
    it."""
    i = 0
    while i < len(points):
        if points[i : i + len(OPENED)] == OPENED:
            stop = i + len(OPENED)
            last = stop + LONGEST_BODY
            while stop < min(last, len(points)) and _in_body(points[stop]):
                stop += 1
            if points[stop : stop + len(CLOSED)] == CLOSED:
                yield from (i, stop + len(CLOSED))
                i = stop + len(CLOSED)
                continue
        i += 1


def _in_body(c: int) -> bool:
    return c != ord("|") and not is_whitespace(c) and not 0x1C <= c <= 0x1F


def _around_runs(points: list[int], cuts: set[int]) -> set[int]:
    """The offsets around runs of one code point that are long enough and have no cut inside."""
    found, i = set(), 0
    while i < len(points):
        j = i
        while j < len(points) and points[j] == points[i]:
            j += 1
        long = 2 if points[i] == SPACE_BYTE else RUN
        if j - i >= long and points[i] != NEWLINE and not any(k in cuts for k in range(i + 1, j)):
            found |= {i, j}
        i = j
    return found


def searched(known: SuffixTable, fragment: Mapped, text: list[Point]) -> Iterator[Token]:
    """The tokens of one segment; byte tokens for a character that has none."""
    at = 0
    for size, token in best_pieces(known, [c for c, _, _ in text], [fragment.starts[i] for _, i, _ in text]):
        start, stop = text[at][1], text[at + size - 1][2]
        if token >= 0:
            yield fragment.token(token, start, stop)
        else:
            character = Mapped()
            character.put(utf8(text[at][0]), fragment, start, stop)
            for k, byte in enumerate(character.text):
                yield character.token(known.byte_tokens[byte], k, k + 1)
        at += size


def best_pieces(
    known: SuffixTable, text: list[int], positions: list[int], observe: Observe | None = None
) -> list[tuple[int, int]]:
    """(code points, id) of the pieces of the cheapest segmentation, id -1 for an unknown character.

    positions: int[n] where each code point begins, for EncodingFailed
    """
    rows = known.rows
    cost, path = [*[NO_PATH] * len(text), 0], [(0, 0)] * len(text)
    block = 0
    for i in range(len(text) - 1, -1, -1):
        # go to the longest suffix in the table that the rest of the text begins with
        at = block
        while not (block := known.blocks.get((text[i], rows[at].block), 0)) and rows[at].score != UNKNOWN:
            at += 1
        # all the pieces of that suffix, up to the first unknown one
        at = block
        while True:
            size, token, score, _ = rows[at]
            if score > INVALID:
                if i + size > len(text):
                    expected = "pieces that end inside the text (llama.cpp reads outside its table here)"
                    raise EncodingFailed(0, positions[i], f"a piece of {size} code points", expected)
                if observe:
                    observe(i, size, token, score, cost[i + size] - score, cost[i + size] - score < cost[i])
                if cost[i + size] - score < cost[i]:
                    cost[i], path[i] = cost[i + size] - score, (size, token)
            if score == UNKNOWN:
                break
            at += 1
    pieces, i = [], 0
    while i < len(text):
        if path[i][0] == 0:
            raise EncodingFailed(0, positions[i], chr(min(text[i], 0x10FFFF)), "text that can be cut into pieces")
        pieces.append(path[i])
        i += path[i][0]
    return pieces


@per_vocab
def table(vocab: Vocab) -> SuffixTable:
    """The table of a vocabulary. MalformedVocab: a byte has no token.

    Source: llama.cpp, `llm_tokenizer_plamo2::build`.
    """
    byte_tokens, score_of, ids = [0] * 256, {}, {}
    for token, (text, score, attribute) in enumerate(
        zip(vocab.tokens, scores(vocab), file_attributes(vocab), strict=True)
    ):
        ids[text] = token
        if attribute & BYTE:
            if match := _BYTE_TOKEN.fullmatch(text):
                byte_tokens[int(match[1], 16)] = token
            continue
        score_of[text] = score
        for i in range(1, len(points := code_points(text))):
            score_of.setdefault(_text(points[i:]), math.nan)  # a suffix that is no token so far
    if 0 in byte_tokens:
        found = f"no byte token {byte_tokens.index(0)} with an id above 0"
        raise MalformedVocab(vocab.source, "tokenizer.ggml.tokens", found, "a token for each byte")

    suffixes = sorted([*score_of, b""], key=lambda text: text[::-1])
    block_of: dict[bytes, int] = {}
    blocks, count = {}, 0
    for suffix in suffixes:
        block_of[suffix] = count
        points = code_points(suffix)
        if points:
            blocks[points[0], block_of.setdefault(_text(points[1:]), 0)] = count
        count += 1 + sum(_text(points[:n]) in score_of for n in range(1, len(points) + 1))
    rows = []
    for suffix in suffixes:
        points = code_points(suffix)
        for n in range(len(points), 0, -1):
            piece = _text(points[:n])
            if piece in score_of:
                rows.append(Row(n, ids.get(piece, -1), fixed_score(score_of[piece]), block_of[piece]))
        rows.append(Row(1, -1, UNKNOWN, 0))
    return SuffixTable(rows, blocks, byte_tokens)


def _text(points: list[int]) -> bytes:
    return b"".join(map(utf8, points))


def fixed_score(score: float) -> int:
    """The score in units of 1/10000, halves rounded away from zero."""
    if not math.isfinite(score):
        return INVALID
    scaled = abs(score * 1e4)
    whole = math.floor(scaled)
    whole = int(math.copysign(whole + (scaled - whole >= 0.5), score))
    return whole if -(2**31) <= whole < 2**31 else -(2**31)  # outside: undefined in C++, this is x86-64
