"""Which characters no token of a vocabulary holds side by side.

No token crosses a place between two such characters, so the ids before it do not depend on what follows, and a text
that goes on beyond it has at least as many ids as what is before it. Where pieces end is searched for between these
places (`search`).

What is known of two characters is what a token shows of them: all bytes of both, or, in a vocabulary over bytes, the
last bytes of the one and the first of the other. All pairs are in one bit filter; a pair that is in it by accident is
one place less. Normalizers change what tokens are compared with:

- EXACT: nothing changes, or only NFC, which leaves most characters alone; the others are never apart;
- CANONICAL: characters and tokens are compared by what case folding, NFKD and the loss of marks leave of them, which is
  the same for all that such normalizers may write. A character of which nothing is left is never apart;
- WORDS: one unknown character makes a whole word the unknown token, so only what always divides words does: white
  space, and for BERT's words ASCII punctuation and ideographs, where no added token holds the two side by side;
- NOWHERE: a step may change anything. Pieces are then found by counting alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from jittok.chunks.texts.clusters import character
from jittok.common.pipeline import steps
from jittok.common.pipeline.models import USER, Hashed, LongestText, Merges, Pieces, WordPiece, Words
from jittok.common.pipeline.pipeline import SINGLE_WORD, SPECIAL, UNSEARCHED, Pipeline
from jittok.kernels.jit import U32, U64, frozen, helper
from jittok.kernels.memory import Window, get_u8, get_u32, get_u64, multiply, window

if TYPE_CHECKING:
    from jittok.vocab import Vocab

EXACT, CANONICAL, WORDS, NOWHERE = range(4)
NEVER, ITSELF = 0, 1
"""What a character is compared by: nothing, as it is never apart; its own bytes."""
SPACE, SPACE_MARK = 0x20, 0x2581
BLANKS = b" \n\t\r"
BMP = 0x10000
FIRST_PLAIN, ENCLOSED, DIGITS = 0x1F000, (0x1F100, 0x1F300), (0x1FBF0, 0x1FBFA)
"""Of the characters above U+FFFF, normalizers leave alone what begins there, apart from these; and ideographs but"""
FIRST_IDEOGRAPH, COMPATIBLE = 0x20000, (0x2F800, 0x2FA20)
"""the compatible ones."""
LONGEST_REACH = 1024
LONGEST_WORD_BYTES = 4 * 101
"""WordPiece: from 101 characters on a word is unknown as a whole."""
_BLANK = bytes.maketrans(BLANKS, b" " * len(BLANKS))
_MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_32 = np.uint64(32)
_LOST = regex.compile(r"[\p{Mn}\p{Me}\p{Cc}\p{Cf}\p{Cn}]+")
_WHITE = regex.compile("[\\s\u2581]")
_BETWEEN = "\ue000"
_COMBINES = regex.compile(r"[\p{M}\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff\p{Cc}\p{Cf}\p{Cn}]")


class Adjacent(NamedTuple):
    """Invariants: filter.size << 6 == 1 << filter_bits; left and right have BMP entries, or none."""

    mode: int
    bert: int  # WORDS: whether punctuation and ideographs are words of their own
    filter: U64  # bit filter of pairs, see `_slot`
    filter_bits: int
    left: U32  # what a character of the BMP is compared by, its bytes as one number, where it is on the left,
    right: U32  # and on the right; none: all by themselves
    reach: int  # bytes that the longest token may cover


class AdjacentWindow(NamedTuple):
    """The same as windows."""

    mode: int
    bert: int
    filter: Window
    filter_bits: int
    left: Window
    right: Window
    tables: int


@helper
def open_adjacent(found: Adjacent) -> AdjacentWindow:
    """Windows onto the arrays."""
    return AdjacentWindow(
        found.mode, found.bert, window(found.filter), found.filter_bits, window(found.left), window(found.right),
        found.left.size,
    )  # fmt: skip


@helper
def _slot(left: int, right: int, bits: int) -> np.uint64:
    key = np.uint64(left) << _32 | np.uint64(right)
    key = multiply(key ^ (key >> np.uint64(29)), _MIX_1)
    return multiply(key ^ (key >> _32), _MIX_2) >> np.uint64(64 - bits)


@helper
def _seen(own: AdjacentWindow, left: int, right: int) -> bool:
    at = _slot(left, right, own.filter_bits)
    word = get_u64(own.filter, np.int64(at >> np.uint64(6)))
    return (word >> (at & np.uint64(63))) & np.uint64(1) != np.uint64(0)


@helper
def _compared_by(own: AdjacentWindow, table: Window, code: int) -> int:
    """NEVER, ITSELF, or the bytes."""
    if code == SPACE_MARK:
        return SPACE
    if own.tables == 0:
        return ITSELF
    if code < BMP:
        return get_u32(table, code)
    plain = code >= FIRST_IDEOGRAPH and not (COMPATIBLE[0] <= code < COMPATIBLE[1])
    if FIRST_PLAIN <= code < FIRST_IDEOGRAPH:
        plain = not (ENCLOSED[0] <= code < ENCLOSED[1]) and not (DIGITS[0] <= code < DIGITS[1])
    return ITSELF if plain else NEVER


@helper
def compared_right(own: AdjacentWindow, code: int) -> int:
    """NEVER, ITSELF, or the bytes that a character on the right is compared by."""
    return _compared_by(own, own.right, code)


@helper
def _is_blank(code: int) -> bool:
    return code in (32, 10, 9, 13)


@helper
def _divides(code: int) -> bool:
    """Whether BERT makes a character a word of its own: ASCII punctuation, most ideographs."""
    return (
        0x21 <= code <= 0x2F or 0x3A <= code <= 0x40 or 0x5B <= code <= 0x60 or 0x7B <= code <= 0x7E
        or 0x4E00 <= code <= 0x9FFF or code in (0x3001, 0x3002, 0xFF0C)
    )  # fmt: skip


@helper
def before(text: Window, i: int) -> int:
    """The offset of the character that ends at i > 0, of valid UTF-8."""
    i -= 1
    while get_u8(text, i) & 0xC0 == 0x80:
        i -= 1
    return i


@helper
def apart(own: AdjacentWindow, text: Window, i: int) -> bool:
    """Whether no token holds the characters on both sides of i; there is one on either side."""
    if own.mode == NOWHERE:
        return False
    begin = before(text, i)
    a, a_size = character(text, begin)
    b, b_size = character(text, i)
    by_a, by_b = _compared_by(own, own.left, a), _compared_by(own, own.right, b)
    if own.mode == WORDS:
        blank_a, blank_b = _is_blank(a), _is_blank(b)
        by_a, by_b = SPACE if blank_a else by_a, SPACE if blank_b else by_b
        divided = own.bert != 0 and (_divides(a) or _divides(b))
        if not (divided or (blank_a and by_b != SPACE) or (blank_b and by_a != SPACE)):
            return False
    if NEVER in (by_a, by_b):
        return False
    if ITSELF not in (by_a, by_b):
        return not _seen(own, by_a, by_b)
    left = 0
    for k in range(1 if by_a != ITSELF else a_size):  # the last bytes of a, more and more of them
        left = by_a if by_a != ITSELF else left | get_u8(text, i - 1 - k) << (8 * k)
        right = 0
        for m in range(1 if by_b != ITSELF else b_size):
            right = by_b if by_b != ITSELF else right << 8 | get_u8(text, i + m)
            if _seen(own, left, right):
                return False
    return True


# ---- building


def pairs_of(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """(left, right): what each place inside a text shows of the characters beside it, without repeats.

    data: uint8[bytes], offsets: int64[texts + 1]. Continuation bytes before a place without their first byte count as
    they are, as do first bytes after it without the rest.
    """
    follower = (data & 0xC0) == 0x80
    begins = np.zeros(data.size + 1, bool)
    begins[offsets] = True
    at = np.flatnonzero(~follower & ~begins[:-1])
    wide = data.astype(np.uint64)
    left, right, going = wide[at - 1], wide[at], follower[at - 1] & ~begins[at - 1]
    for k in range(1, 4):
        here = np.maximum(at - 1 - k, 0)
        left = np.where(going, left | wide[here] << np.uint64(8 * k), left)
        going &= follower[here] & ~begins[here]
    going = np.ones(at.size, bool)
    for k in range(1, 4):
        here = np.minimum(at + k, data.size - 1)
        going &= (at + k < data.size) & follower[here] & ~begins[here]
        right = np.where(going, right << np.uint64(8) | wide[here], right)
    keys = np.unique(left << _32 | right)
    return keys >> _32, keys & np.uint64(0xFFFFFFFF)


def filter_of(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], int]:
    """(bit filter of these pairs, its bits): sixteen bits a pair."""
    bits = max(9, int(16 * left.size).bit_length())
    with np.errstate(over="ignore"):
        keys = left << _32 | right
        keys = (keys ^ (keys >> np.uint64(29))) * _MIX_1
        slots = (keys ^ (keys >> _32)) * _MIX_2 >> np.uint64(64 - bits)
    words = np.zeros(1 << bits - 6, np.uint64)
    np.bitwise_or.at(words, (slots >> np.uint64(6)).astype(np.int64), np.uint64(1) << (slots & np.uint64(63)))
    return words, bits


def canonical(text: str) -> str:
    """What case folding, NFKD and the loss of marks and controls leave of a text, all white space being a space."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return str(_WHITE.sub(" ", _LOST.sub("", folded)))


def _characters() -> list[str]:
    return [chr(c) for c in range(BMP) if not 0xD800 <= c < 0xE000 and chr(c) != _BETWEEN]


def canonical_tables(never: Iterable[str]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """(left, right) of CANONICAL. never: characters that are never apart, beside those of which nothing is left."""
    characters, lost = _characters(), set(never)
    left, right = np.zeros(BMP, np.uint32), np.zeros(BMP, np.uint32)
    for c, form in zip(characters, canonical(_BETWEEN.join(characters)).split(_BETWEEN), strict=True):
        if form and c not in lost:
            left[ord(c)], right[ord(c)] = _number(form[-1]), _number(form[0])
    return left, right


def _number(c: str) -> int:
    return int.from_bytes(c.encode(), "big")


def composing_table(never: Iterable[str]) -> NDArray[np.uint32]:
    """Of EXACT where texts become NFC: NEVER for what it changes and what may combine, ITSELF for all others."""
    characters = _characters()
    table, lost = np.zeros(BMP, np.uint32), set(never)
    composed = unicodedata.normalize("NFC", _BETWEEN.join(characters)).split(_BETWEEN)
    for c, form in zip(characters, composed, strict=True):
        if c == form and c not in lost and not _COMBINES.match(c):
            table[ord(c)] = ITSELF
    return table


def mode_of(pipeline: Pipeline) -> tuple[int, bool, set[str]]:
    """(mode, whether texts become NFC, characters that a step changes in ways of its own)."""
    model, never = pipeline.model, set[str]()
    plain = pipeline.added_flags & (SPECIAL | UNSEARCHED) == 0
    if (pipeline.added_flags[plain] & SINGLE_WORD).any():  # whether one is found depends on the characters beside it
        return NOWHERE, False, never
    if any(isinstance(step, steps.Kmers | steps.Chars) for step in pipeline.split) or isinstance(model, Hashed):
        return NOWHERE, False, never
    mode, composes = EXACT, False
    for step in pipeline.normalize:
        if isinstance(
            step, steps.ReadUtf8 | steps.PrependBehindSpecial | steps.Prepend | steps.SpellBytes | steps.Strip
        ):
            continue
        if isinstance(step, steps.ComposeAll) or (isinstance(step, steps.Compose) and step.form == "NFC"):
            composes = True
        elif isinstance(step, steps.Replace):
            if step.pattern.literal and step.pattern.text == " " and step.content == "\u2581":
                continue
            never |= set(step.pattern.text + step.content) - {" "}
            mode = CANONICAL
        elif isinstance(step, steps.Squeeze | steps.SqueezeLlama) and step.suffix:
            return NOWHERE, False, never
        elif isinstance(
            step, steps.Map | steps.Lowercase | steps.Compose | steps.Clusters | steps.Squeeze | steps.SqueezeLlama
        ):
            mode = CANONICAL
        else:
            return NOWHERE, False, never
    if any(isinstance(step, steps.CutWhite) for step in pipeline.split):
        mode = CANONICAL
    whole = isinstance(model, WordPiece | Words | LongestText) or (isinstance(model, Pieces) and model.kind == "word")
    if whole or (isinstance(model, Merges) and (model.prefix or model.suffix)):
        mode = WORDS
    return mode, composes, never


def build_adjacent(vocab: Vocab | Pipeline, texts: list[bytes]) -> Adjacent:
    """The table of a vocabulary. texts: of all tokens, as they print and as they are written."""
    pipeline = vocab if isinstance(vocab, Pipeline) else vocab.pipeline
    mode, composes, never = mode_of(pipeline)
    left = right = np.zeros(0, np.uint32)
    longest = max(map(len, texts), default=1)
    reach = min(longest + 8, LONGEST_REACH)
    own = [*plain_tokens(pipeline)]
    texts = [text.translate(_BLANK) for text in own] if mode == WORDS else texts + own
    if mode in (CANONICAL, WORDS):
        left, right = canonical_tables(never)
        joined = canonical(_BETWEEN.join(text.decode("utf-8", "ignore") for text in texts)).encode("utf-8", "replace")
        data, offsets = np.frombuffer(joined, np.uint8), np.array([0, len(joined)])
    else:
        if composes:
            left = right = composing_table(never)
        marked = [text.replace(b"\xe2\x96\x81", b" ") for text in texts]
        data = np.frombuffer(b"".join(marked), np.uint8)
        offsets = np.cumsum([0, *map(len, marked)])
    pairs = pairs_of(data, offsets) if mode != NOWHERE and data.size else (np.zeros(0, np.uint64),) * 2
    stripped = _stripping(pipeline, mode)
    if stripped:
        pairs = tuple(np.concatenate(both) for both in zip(pairs, blank_pairs(stripped), strict=True))  # type: ignore[assignment]
    words, bits = filter_of(*pairs)
    if mode == WORDS:
        reach = max(reach, LONGEST_WORD_BYTES)
    bert = mode == WORDS and any(isinstance(step, steps.BertWords) for step in pipeline.split)
    return Adjacent(
        mode, int(bert), frozen(words, np.uint64), bits, frozen(left, np.uint32), frozen(right, np.uint32), reach
    )


def plain_tokens(pipeline: Pipeline) -> dict[bytes, int]:
    """text -> id of what is found in plain text before words are cut: added tokens that are not special, as they are
    written and as they are searched for, and the user-defined ones of a sentencepiece model."""
    from jittok.encode.fallback.reference_encoder import normalized

    found, model = dict[bytes, int](), pipeline.model
    for token in pipeline.added:
        if not token.special and not token.unsearched:
            text = token.content.encode()
            found[text] = token.id
            if token.normalized and pipeline.normalize:
                found[normalized(pipeline, text)] = token.id
    if isinstance(model, Pieces):
        tokens = pipeline.model_tokens
        found |= {tokens[k] or b"": k for k in np.flatnonzero(model.types == USER).tolist()}
    return {text: token for text, token in found.items() if text}


def _stripping(pipeline: Pipeline, mode: int) -> set[bytes]:
    """What tokens that take the white space beside them begin and end with: a byte, or a character of its canonical
    form."""
    found = set[bytes]()
    for token in pipeline.added:
        if token.lstrip or token.rstrip:
            raw, form = token.content.encode(), canonical(token.content)
            found |= {raw[:1], raw[-1:]} if mode == EXACT else {form[:1].encode(), form[-1:].encode()}
    return found - {b""}


def blank_pairs(ends: set[bytes]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Pairs of white space with itself and with these."""
    numbers = {int.from_bytes(text, "big") for text in ends} | set(BLANKS)
    found = [(a, b) for a in BLANKS for b in numbers] + [(b, a) for a in BLANKS for b in numbers]
    return np.array([a for a, _ in found], np.uint64), np.array([b for _, b in found], np.uint64)
