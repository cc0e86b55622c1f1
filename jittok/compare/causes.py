"""Why two tokenizers differ on a text: the first stage whose output differs.

    added       only one of the two finds an added token in the text
    normalizer  the texts that reach the models differ
    split       pre-tokens differ: a border between pre-tokens of one is inside a token of the other
    model       all of these are the same

A difference is analysed with some of the text around it. If the tokens do not differ there in the same way, the cause
is "unknown".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import Pieces
from jittok.common.pipeline.steps import SpellBytes
from jittok.common.unicode.characters import SPACE_MARK
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.compare.spelling import UNKNOWN, cut_out
from jittok.compare.tally import Group, PartingTally
from jittok.compare.token_offsets import spans_of
from jittok.errors import JittokError
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import frozen
from jittok.kernels.pretokenize.definition import pre_type, split
from jittok.reference.special import partition
from jittok.vocab import Vocab

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

ADDED, NORMALIZER, SPLIT, MODEL, NOT_KNOWN = "added", "normalizer", "split", "model", "unknown"
CAUSES = (ADDED, NORMALIZER, SPLIT, MODEL, NOT_KNOWN)
MOST_PARTINGS = 500
"""How many distinct differences are examined for their cause, the most frequent first."""
_BYTE_OF = {chr(c): bytes([byte]) for byte, c in enumerate(CHARACTER_OF_BYTE)}


class Neighborhood(NamedTuple):
    """One tokenizer's tokens around a difference."""

    tokens: list[int]
    spans: list[tuple[int, int]]


class Causes:
    """Finds the causes of the differences of a tally."""

    def __init__(self, tally: PartingTally) -> None:
        self.tally = tally
        self._cut_out = cut_out(tally.a), cut_out(tally.b)
        self._spelled = tally.both_spelled

    def find(self, groups: list[Group]) -> None:
        """Set the causes of groups, in place."""
        for group in groups:
            group.cause = self._known_cause(group)

    def _known_cause(self, group: Group) -> str:
        try:
            return self._cause(group)
        except (JittokError, AssertionError, UnicodeDecodeError):
            return NOT_KNOWN

    def _cause(self, group: Group) -> str:
        if not group.around:
            return NOT_KNOWN
        cut = [
            [known.texts[token] for token in ids if mask[token]]
            for known, mask, ids in zip(self._spelled, self._cut_out, (group.a, group.b), strict=True)
        ]
        if cut[0] != cut[1]:
            return ADDED
        near = [self._near(k, group.around) for k in range(2)]
        start, stop = group.at, group.at + len(group.text)
        chosen = [_inside(each, ids, start) for each, ids in zip(near, (group.a, group.b), strict=True)]
        if chosen[0] is None or chosen[1] is None:
            return NOT_KNOWN
        low, high = _widened(near, start, stop, group.around)
        close = group.around[low:high]
        edges = (low == 0 and group.whole[0], high == len(group.around) and group.whole[1])
        toks = self.tally.a, self.tally.b
        normal = [b"".join(words_of(tok, close, self._parses)) for tok in toks]
        if normal[0].replace(b" ", b"") != normal[1].replace(b" ", b""):
            return NORMALIZER
        if self._split_differs(group.around, near, chosen):
            return SPLIT
        trimmed = [_trimmed(text, edges) for text in normal]
        return NORMALIZER if trimmed[0] != trimmed[1] else MODEL

    @property
    def _parses(self) -> bool:
        return bool(self.tally.options.get("parse_special", False))

    def _near(self, side: int, text: bytes) -> Neighborhood:
        data, starts, stops = np.frombuffer(text, np.uint8), frozen([0], np.int64), frozen([len(text)], np.int64)
        docs = Documents(frozen(data, np.uint8), starts, stops)
        tok = (self.tally.a, self.tally.b)[side]
        options = {**self.tally.options, "add_special": False, "threads": 1}
        found = spans_of(tok, docs, self._spelled[side], options)
        return Neighborhood(found.ids.tolist(), [(start, stop) for start, stop in found.spans.tolist()])

    def _split_differs(self, text: bytes, near: list[Neighborhood], chosen: list[Any]) -> bool:
        """Whether a border between pre-tokens of one tokenizer is inside a token of the other, at the difference.
        Offsets count in the normalized text, without spaces."""
        positions = []
        for tok, known, each, (first, last) in zip(
            (self.tally.a, self.tally.b), self._spelled, near, chosen, strict=True
        ):
            words = [word.replace(b" ", b"") for word in words_of(tok, text, self._parses)]
            borders = np.cumsum([0, *map(len, words)]).tolist()
            sizes = [_size(known.texts[token]) for token in each.tokens]
            unknown = [k for k, size in enumerate(sizes) if size is None]
            if unknown:  # such a token covers the text at its offset, or the rest of the text
                own = [len(text[start:stop].replace(b" ", b"")) for start, stop in each.spans]
                rest = borders[-1] - sum(size for size in sizes if size is not None)
                sizes = [own[k] if size is None else size for k, size in enumerate(sizes)]
                if len(unknown) == 1 and rest >= 0:
                    sizes[unknown[0]] = rest
            ends = np.cumsum([0, *sizes]).tolist()
            if ends[-1] != borders[-1]:
                return bool(unknown) and len(borders) > 2
            positions.append((set(borders), set(ends), ends[first], ends[last]))
        (words_a, ends_a, low_a, high_a), (words_b, ends_b, low_b, high_b) = positions
        inside = range(min(low_a, low_b) + 1, max(high_a, high_b))
        return any((p in words_a and p not in ends_b) or (p in words_b and p not in ends_a) for p in inside)


def words_of(tok: Tokenizer, text: bytes, parse_special: bool) -> list[bytes]:
    """The pre-tokens of a text, with U+2581 written as a space; special tokens are included unchanged."""
    vocab = tok.vocab
    return (
        _words_of_file(vocab, text.decode(), parse_special)
        if isinstance(vocab, Pipeline)
        else _words_of_gguf(tok, vocab, text, parse_special)
    )


def _words_of_file(pipeline: Pipeline, text: str, parse_special: bool) -> list[bytes]:
    from jittok.reference.pipeline import runner
    from jittok.reference.text import Piece, Token

    run = runner(pipeline)
    if isinstance(pipeline.model, Pieces):
        return [run.sentencepiece.normalize(text).replace(SPACE_MARK, " ").encode()]
    spelled = any(isinstance(step, SpellBytes) for step in (*pipeline.normalize, *pipeline.split))
    out = []
    for word in run.words(Piece(text, list(range(len(text)))), parse_special):
        if isinstance(word, Token):
            out.append(pipeline.tokens[word.id] or b"")
        elif spelled:
            out.append(b"".join(_BYTE_OF.get(c, c.encode()) for c in word.text))
        else:
            out.append(word.text.replace(SPACE_MARK, " ").encode())
    return out


def _words_of_gguf(tok: Tokenizer, vocab: Vocab, text: bytes, parse_special: bool) -> list[bytes]:
    out = []
    for token, start, stop in partition(vocab, text, parse_special):
        if token is not None:
            out.append(text[start:stop])
        elif vocab.type == "bpe" and vocab.model == "gpt2":
            words = split(text[start:stop], pre_type(vocab.pre_type))
            out += [_unspelled(word.decode("utf-8", "replace")) for word in words]
        else:
            out += _words_of_session(tok, text[start:stop])
    return out


def _words_of_session(tok: Tokenizer, text: bytes) -> list[bytes]:
    """The pre-tokens of a text without special tokens, from a trace of it."""
    trace = tok.trace(text, errors="replace")
    words = [row["text"] for row in trace.words] or [row["text"] for row in trace.normalized]
    return [word.replace(SPACE_MARK, " ").encode() for word in words] or [text]


def _unspelled(text: str) -> bytes:
    """The bytes of a byte-level word; the UTF-8 of any other word."""
    parts = [_BYTE_OF.get(c) for c in text]
    return (
        text.replace(SPACE_MARK, " ").encode()
        if None in parts
        else b"".join(part for part in parts if part is not None)
    )


def _inside(near: Neighborhood, ids: list[int], start: int) -> tuple[int, int] | None:
    """The range of the difference's tokens in `near`."""
    for first in range(len(near.tokens) - len(ids) + 1):
        if near.tokens[first : first + len(ids)] == ids and (not ids or near.spans[first][0] >= start):
            return first, first + len(ids)
    return None


def _widened(near: list[Neighborhood], start: int, stop: int, text: bytes) -> tuple[int, int]:
    """A difference and a token on each side, if both have the same border there; whole characters."""
    starts, stops = ({span[side] for span in near[0].spans} & {span[side] for span in near[1].spans} for side in (0, 1))
    low = max((position for position in starts if position < start), default=0)
    high = min((position for position in stops if position > stop), default=len(text))
    while low and text[low] & 0xC0 == 0x80:
        low -= 1
    while high < len(text) and text[high] & 0xC0 == 0x80:
        high += 1
    return low, high


def _trimmed(text: bytes, edges: tuple[bool, bool]) -> bytes:
    """A text without spaces at ends that are not ends of its document."""
    text = text if edges[0] else text.lstrip(b" ")
    return text if edges[1] else text.rstrip(b" ")


def _size(text: bytes) -> int | None:
    """Bytes of the normalized text that a token covers, without spaces; None if unknown."""
    if text == UNKNOWN:
        return None
    return len(text.removeprefix(b"##").replace(b" ", b""))
