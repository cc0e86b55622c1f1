"""Unigram ("t5"): normalization by the character map, then the path of the lattice with the highest score."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from jittok.common.pipeline.models import Lattice
from jittok.common.pipeline.steps import SqueezeLlama
from jittok.common.unicode.characters import SPACE_MARK_BYTES
from jittok.common.unicode.tables import REPLACEMENT, sequence_length, utf8, well_formed
from jittok.errors import EncodingFailed
from jittok.reference.mapped_text import Mapped, Token
from jittok.reference.special import by_flags
from jittok.reference.vocab_tables import attributes, file_attributes, per_vocab, scores
from jittok.reference.xcda import charsmap, longest_key, replacement
from jittok.vocab import Vocab
from jittok.vocab.as_pipeline import model_of, step_of

UNUSED, NORMAL, USER_DEFINED = 2, 4, 16
LOWEST = -sys.float_info.max
FLOAT32_MAX = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
UNKNOWN_PENALTY = 10.0


class UgmTables(NamedTuple):
    """Tables that llama.cpp builds once, from the attributes of the file."""

    tokens: dict[bytes, int]  # that can match
    prefixes: frozenset[bytes]  # of these: the paths of the trie
    user_prefixes: frozenset[bytes]  # of user-defined tokens alone
    unknown_score: float


class LatticeCell(NamedTuple):
    """The best path to an offset: its last token, where that starts, the sum of scores."""

    token: int
    start: int
    score: float


class Challenge(NamedTuple):
    """A path to `stop` that was compared with the best one so far."""

    start: int
    stop: int
    token: int
    score: float
    total: float
    won: bool


@per_vocab
def tables(vocab: Vocab) -> UgmTables:
    """The tokens of a vocabulary that can match, and the score of an unknown character."""
    tokens, users, lowest = {}, [], FLOAT32_MAX
    for token, (text, score, attribute) in enumerate(
        zip(vocab.tokens, scores(vocab), file_attributes(vocab), strict=True)
    ):
        if attribute & NORMAL and score < lowest:
            lowest = score
        if attribute & (NORMAL | USER_DEFINED | UNUSED):
            tokens[text] = token
        if attribute & USER_DEFINED:
            users.append(text)
    unknown = struct.unpack("<f", struct.pack("<f", lowest - UNKNOWN_PENALTY))[0]
    return UgmTables(tokens, _prefixes(tokens), _prefixes(users), unknown)


def _prefixes(texts: dict[bytes, int] | list[bytes]) -> frozenset[bytes]:
    return frozenset(text[:size] for text in texts for size in range(1, len(text) + 1))


around = by_flags


def tokens(vocab: Vocab, text: Mapped) -> Iterator[Token]:
    """Tokens of a normalized text; runs of the unknown token become one.

    Source: llama.cpp, `llm_tokenizer_ugm_session`.
    """
    if text.text:
        yield from joined(vocab, text, best_path(lattice(vocab, bytes(text.text))))


def joined(vocab: Vocab, text: Mapped, path: list[Token]) -> Iterator[Token]:
    """The tokens of a path over a normalized text, a run of unknown ones as one."""
    unknown, run = model_of(vocab, Lattice).unknown, None  # a run of unknown tokens, still growing
    for token, start, stop in path:
        found = text.token(token, start, stop)
        if run and token == unknown == run.id:
            run = Token(token, min(run.start, found.start), max(run.stop, found.stop))
            continue
        if run:
            yield run
        run = found
    if run:
        yield run


def step(vocab: Vocab, text: bytes | bytearray, at: int) -> tuple[bytes, int]:
    """(bytes of output, bytes of input) of one step of normalizing. Source: llama.cpp, `normalize_prefix`."""
    stop = at
    while stop < len(text) and bytes(text[at : stop + 1]) in tables(vocab).user_prefixes:
        stop += 1
    if stop > at:  # as far as the trie goes, whether or not a token ends there
        return bytes(text[at:stop]), stop - at
    chars = charsmap(vocab)
    size, value = longest_key(chars, text, at)
    if size:
        return replacement(chars, value, at), size
    size = well_formed(text, at, step_of(vocab, SqueezeLlama).shortest)
    return (bytes(text[at : at + size]), size) if size else (utf8(REPLACEMENT), 1)


def normalize(vocab: Vocab, fragment: Mapped, observe: Callable[[int, int, bytes, int], None] | None = None) -> Mapped:
    """The input of the lattice. EncodingFailed: a corrupt character map. Source: llama.cpp, `normalize`.

    observe: called after each step with its offset, the bytes used, the output, and the bytes of the result so far.
    With `squeeze` the span of a space is that of all the spaces since the last word; before the first word it may be
    empty.
    """
    how = step_of(vocab, SqueezeLlama)
    space = SPACE_MARK_BYTES if how.escape else b" "
    prepend, merge = how.prefix and not how.suffix, how.squeeze
    out, prepended, inside, at = Mapped(), False, False, 0
    skipped = None  # the span of the spaces that were left out since the last word
    while at < len(fragment.text):
        try:
            piece, used = step(vocab, fragment.text, at)
        except EncodingFailed as failed:
            raise EncodingFailed(0, fragment.starts[at], failed.found, failed.expected) from None
        unit = Mapped()
        unit.put(piece, fragment, at, at + used)
        at += used
        for k, byte in enumerate(piece):
            start, stop = unit.starts[k], unit.stops[k]
            if byte == ord(" "):
                inside = False
                if merge:
                    skipped = (skipped[0] if skipped else start, stop)
                else:
                    out.add(space, start, stop)
                continue
            if not inside and (merge or (prepend and not prepended)):
                changed = k > 0 and start == unit.starts[0]
                out.add(space, *(skipped or ((start, stop) if changed else (start, start))))
                prepended = True
            inside, skipped = True, None
            out.add(bytes([byte]), start, stop)
        if observe:
            observe(at - used, used, piece, len(out.text))
    if how.prefix and how.suffix:
        out.add(space, fragment.stops[-1], fragment.stops[-1])
    return out


def lattice(vocab: Vocab, text: bytes, observe: Callable[[Challenge], None] | None = None) -> list[LatticeCell]:
    """The best cell of each offset of a normalized text. Sums are doubles; only a higher one wins."""
    known, attribute, score_of = tables(vocab), attributes(vocab), scores(vocab)
    unknown = model_of(vocab, Lattice).unknown
    cells = [LatticeCell(unknown, 0, 0.0), *[LatticeCell(unknown, 0, LOWEST)] * len(text)]

    def challenge(token: int, start: int, stop: int, score: float) -> None:
        total = cells[start].score + score
        won = total > cells[stop].score
        if won:
            cells[stop] = LatticeCell(token, start, total)
        if observe:
            observe(Challenge(start, stop, token, score, total, won))

    at = 0
    while at < len(text):
        character = min(at + sequence_length(text[at]), len(text))
        covered = False  # by a token that is just this character
        stop = at + 1
        while stop <= len(text) and text[at:stop] in known.prefixes:
            token = known.tokens.get(text[at:stop])
            if token is not None:
                covered = covered or stop == character
                challenge(token, at, stop, 0.0 if attribute[token] & USER_DEFINED else score_of[token])
            stop += 1
        if not covered:
            challenge(unknown, at, character, known.unknown_score)
        at = character
    return cells


def best_path(cells: list[LatticeCell]) -> list[Token]:
    """(id, start, stop) along the best path, in the order of the text."""
    path, stop = [], len(cells) - 1
    while True:
        token, start, _ = cells[stop]
        path.append(Token(token, start, stop))
        if start == 0:
            return path[::-1]
        stop = start
