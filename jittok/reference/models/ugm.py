"""Unigram: the path through the lattice of a text's tokens with the highest sum of scores.

In a GGUF ("t5"), the character map normalizes first (`normalize`). A tokenizer.json has other rules for characters
without a token, and for which of equal paths wins (`unigram_model`).

>>> import jittok
>>> from jittok.reference.text import mapped
>>> vocab = jittok.bundled("t5").vocab
>>> text = normalize(vocab, mapped(b"What is LoRA?", 0, 13))
>>> text.text.decode()
'▁What▁is▁LoRA?'
>>> [(vocab.tokens[token.id].decode(), token.start, token.stop) for token in tokens(vocab, text)]
[('▁What', 0, 4), ('▁is', 4, 7), ('▁Lo', 7, 10), ('RA', 10, 12), ('?', 12, 13)]
>>> best = lattice(vocab, bytes(text.text))[-1]  # the cell at the end: its last token, its start, the sum
>>> vocab.tokens[best.token], best.start, round(best.score, 3)
(b'?', 19, -41.343)
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

from jittok.common.pipeline import models
from jittok.common.pipeline.models import NO_TOKEN
from jittok.common.pipeline.pipeline import Pipeline
from jittok.common.pipeline.steps import SqueezeLlama
from jittok.common.unicode.characters import SPACE_MARK_BYTES
from jittok.common.unicode.tables import REPLACEMENT, sequence_length, utf8, well_formed
from jittok.errors import EncodingFailed
from jittok.reference.models.watch import Model, Part, Watch, byte_tokens, fail, texts_of
from jittok.reference.normalize.xcda import charsmap
from jittok.reference.special import by_flags
from jittok.reference.text import Mapped, Token
from jittok.reference.vocab_tables import attributes, file_attributes, per_vocab, scores
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
    unknown, run = model_of(vocab, models.Lattice).unknown, None  # a run of unknown tokens, still growing
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
    size, value = chars.longest_key(text, at)
    if size:
        return chars.replacement(value, at), size
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
    unknown = model_of(vocab, models.Lattice).unknown
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


# ---- files other than GGUF


def unigram_model(pipeline: Pipeline, model: models.Unigram) -> Model:
    """The model of a tokenizer.json. Source: tokenizers, `Unigram::encode_unoptimized`."""
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
            tokens = byte_tokens(ids, part) if model.byte_fallback and part not in ids else None
            if tokens is not None:
                out += [(token, k, k + 1) for k, token in enumerate(tokens, start)]
                continue
            token = ids.get(part, model.unknown)
            if token == NO_TOKEN:
                fail(part, "text of the vocabulary: it has no unknown token")
            out.append((token, start, at))
        return out

    return Model(encode)
