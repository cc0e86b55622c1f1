r"""Ids back to text.

In a GGUF, each token has a piece; spaces before punctuation may be removed afterwards (`detokenize`). Files name their
decoders, which rewrite the list of the tokens' texts; the results are concatenated (`decoder`, `PiecesText`).

>>> import jittok
>>> vocab = jittok.bundled("gpt-2").vocab
>>> token_to_piece(vocab, 11), token_to_piece(vocab, 995)
(b',', b' world')
>>> detokenize(vocab, [15496, 11, 995])
b'Hello, world'
>>> clean_spaces(bytearray(b"Isn ' t it , he 's"))
b"Isn't it, he's"
>>> decoder(steps.JoinFallback())(["caf", "<0xC3>", "<0xA9>", "!"])
['caf', 'é', '!']
>>> decoder(steps.Unmark("▁", keep_first=False))(["▁Hello", "▁world"])
['Hello', ' world']
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jittok.common.pipeline import models, steps
from jittok.common.pipeline.models import BYTE, CONTROL, UNKNOWN
from jittok.common.pipeline.patterns import compiled
from jittok.common.pipeline.pipeline import Pipeline
from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK, SPACE_MARK_BYTES
from jittok.common.unicode.tables import BYTE_OF_CHARACTER, code_points, utf8
from jittok.errors import InvalidToken
from jittok.reference.models.rwkv import unescape
from jittok.reference.normalize import ALPHABET
from jittok.reference.vocab_tables import attributes, piece_attributes
from jittok.vocab import Vocab
from jittok.vocab.types import type_of


class Attribute:
    """Bits of a token's attributes, by llama.cpp's numbers."""

    UNKNOWN, NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 4, 8, 16, 32


QUOTE = ord("'")
_STRTOL = re.compile(rb"[ \t\n\v\f\r]*([+-]?)(?:0[xX](?=[0-9a-fA-F]))?([0-9a-fA-F]*)")
_BYTE_TOKEN = re.compile(rb"<0x([0-9a-fA-F]{2})>", re.DOTALL)


def detokenize(
    vocab: Vocab,
    ids: Sequence[int],
    *,
    remove_special: bool = False,
    unparse_special: bool = False,
    clean: bool = True,
) -> bytes:
    """The text of ids. InvalidToken: an id outside the vocabulary.

    remove_special: drop one BOS and one EOS, if the vocabulary adds them; unparse_special: special tokens print
    their text; clean: remove spaces if the vocabulary cleans; False keeps all. Source: llama.cpp,
    `llama_vocab::impl::detokenize`, with `clean`.
    """
    if not type_of(vocab).has_tokens:
        return b""
    ids = list(ids)
    strip = vocab.add_space_prefix
    if remove_special and vocab.add_bos and ids and ids[0] == vocab.bos_id:
        del ids[0]
        strip = False
    if remove_special and vocab.add_eos and ids and ids[-1] == vocab.eos_id:
        del ids[-1]
    text = bytearray()
    for position, token in enumerate(ids):
        text += token_to_piece(vocab, token, lstrip=int(strip and position == 0), special=unparse_special)
    return clean_spaces(text) if clean and vocab.clean_spaces else bytes(text)


def token_to_piece(vocab: Vocab, token: int, *, lstrip: int = 0, special: bool = False) -> bytes:
    """The piece of one token, without up to `lstrip` leading spaces. InvalidToken: an id outside the vocabulary.

    special: control and unknown tokens print their text. Source: llama.cpp, `llama_vocab::impl::token_to_piece`.
    """
    if not 0 <= token < len(vocab):
        raise InvalidToken(token, len(vocab))
    if not special and attributes(vocab)[token] & (Attribute.UNKNOWN | Attribute.CONTROL):
        return b""
    piece = full_piece(vocab, token)
    while lstrip > 0 and piece.startswith(b" "):
        piece, lstrip = piece[1:], lstrip - 1
    return piece


def full_piece(vocab: Vocab, token: int) -> bytes:
    """The piece, special or not; llama.cpp computes all pieces while loading."""
    text, attribute = vocab.tokens[token], piece_attributes(vocab)[token]
    (how,) = vocab.pipeline.decode
    assert isinstance(how, steps.JoinLlama)
    if how.prints == steps.ESCAPES:
        return unescape(text)
    if how.prints == steps.ID:
        return b"%x" % token
    if how.prints == steps.TEXT:
        match = _BYTE_TOKEN.fullmatch(text)
        return bytes([int(match[1], 16)]) if match and attribute & Attribute.BYTE else text
    if attribute & (Attribute.UNKNOWN | Attribute.CONTROL | Attribute.USER_DEFINED):
        return text
    if attribute & Attribute.NORMAL:
        if how.prints == steps.BYTE_ALPHABET:
            return decode_bytes(text, vocab.shortest_utf8)
        return text.replace(SPACE_MARK_BYTES, b" ")
    return bytes([strtol16(text[3:5]) & 0xFF]) if attribute & Attribute.BYTE else b""


def decode_bytes(text: bytes, shortest: bool = True) -> bytes:
    """The bytes of a byte-level token; a character outside the byte alphabet gives a long marker."""
    out = bytearray()
    for c in code_points(text, shortest):
        if c in BYTE_OF_CHARACTER:
            out.append(BYTE_OF_CHARACTER[c])
        else:
            out += b"[UNK_BYTE_0x" + utf8(c).hex().encode() + text + b"]"
    return bytes(out)


def strtol16(text: bytes) -> int:
    """C's strtol(text, 16): white space, a sign and 0x may precede; the first other character ends it."""
    sign, digits = _STRTOL.match(text).groups()  # type: ignore[union-attr]  # it matches the empty text too
    return (-1 if sign == b"-" else 1) * int(digits or b"0", 16)


def clean_spaces(text: bytearray) -> bytes:
    """Three passes, each over the result of the one before; byte 0 is always kept.

    Literally llama.cpp's: a pass reads ahead of where it writes, in one buffer.
    """
    size = _drop_before_punctuation(text, len(text))
    size = _drop_around_quotes(text, size)
    return bytes(text[: _drop_before_contractions(text, size)])


def _drop_before_punctuation(text: bytearray, size: int) -> int:
    """Remove a space before ? ! . or ,"""
    out = min(1, size)
    for i in range(1, size):
        byte = text[i]
        if text[i - 1] == SPACE_BYTE and byte in b"?!.,":
            out -= 1
        text[out] = byte
        out += 1
    return out


def _drop_around_quotes(text: bytearray, size: int) -> int:
    """Remove the spaces around an apostrophe between two; the second one does not count for the next apostrophe."""
    out, i = min(1, size), 1
    while i < size:
        byte = text[i]
        if byte == QUOTE and i + 1 < size and text[i - 1] == SPACE_BYTE and text[i + 1] == SPACE_BYTE:
            out -= 1
            i += 1
            text[i] = 0
        text[out] = byte
        out += 1
        i += 1
    return out


def _drop_before_contractions(text: bytearray, size: int) -> int:
    """Remove a space before 's 'm 're or 've."""
    out = min(1, size)
    for i in range(1, size):
        byte = text[i]
        if byte == QUOTE and text[i - 1] == SPACE_BYTE:
            following = bytes(text[i + 1 : min(i + 3, size)])
            if following[:1] in (b"s", b"m") or following in (b"re", b"ve"):
                out -= 1
        text[out] = byte
        out += 1
    return out


# ---- decoders of files

BYTES = {c: byte for byte, c in enumerate(ALPHABET)}
HEX = frozenset("0123456789abcdefABCDEF")
SIGN = "+"
"""What the library's numbers may begin with."""
CLEANED = (
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"),
    (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip
Texts = list[str]


def decoder(step: steps.Decoder) -> Callable[[Texts], Texts]:
    """The function that applies one step to a list of texts."""
    makers: dict[type, Callable[[Any], Callable[[Texts], Texts]]] = {
        steps.JoinBytes: lambda _: _join_bytes,
        steps.JoinFallback: lambda _: _join_fallback,
        steps.Fuse: lambda _: lambda texts: ["".join(texts)],
        steps.ReplaceEach: lambda s: lambda texts: [_replaced(text, s) for text in texts],
        steps.Unmark: lambda s: lambda texts: [unmarked(text, s, k) for k, text in enumerate(texts)],
        steps.StripEach: lambda s: lambda texts: [stripped(text, s) for text in texts],
        steps.JoinWords: lambda s: lambda texts: [word(text, s, k) for k, text in enumerate(texts)],
        steps.Unsuffix: lambda s: lambda texts: _unsuffixed(texts, s.suffix),
        steps.Ctc: lambda s: lambda texts: _ctc(texts, s),
        steps.Spaced: lambda _: lambda texts: [" ".join(texts)],
        steps.Trim: lambda _: lambda texts: [text.strip() for text in texts],
    }
    return makers[type(step)](step)


def raw_bytes(texts: Iterable[str]) -> bytes:
    """Byte-level texts to bytes; a text with another character becomes its UTF-8."""
    return b"".join(bytes(BYTES[c] for c in text) if all(c in BYTES for c in text) else text.encode() for text in texts)


def is_byte(text: str) -> bool:
    """Whether a text is <0xC3>, or <0x+A>."""
    digits = text[3:5]
    own = len(text) == 6 and text.startswith("<0x") and text[5] == ">"
    return own and digits[1] in HEX and (digits[0] in HEX or digits[0] == SIGN)


def _join_bytes(texts: Texts) -> Texts:
    return [raw_bytes(texts).decode("utf-8", "replace")]


class JoinedRuns:
    """`JoinFallback`, text by text."""

    def __init__(self) -> None:
        self._run = bytearray()

    def push(self, text: str) -> Texts:
        """Add a text; returns the texts that are final."""
        if is_byte(text):
            self._run.append(int(text[3:5], 16))
            return []
        return [*self.end(), text]

    def end(self) -> Texts:
        """The pending run, at the end."""
        run, self._run = self._run, bytearray()
        if not run:
            return []
        try:
            return [run.decode()]
        except UnicodeDecodeError:
            return ["\ufffd"] * len(run)


def _join_fallback(texts: Texts) -> Texts:
    runs = JoinedRuns()
    return [*(part for text in texts for part in runs.push(text)), *runs.end()]


def _replaced(text: str, step: steps.ReplaceEach) -> str:
    if step.pattern.literal and step.pattern.text:
        return text.replace(step.pattern.text, step.content)
    return str(compiled(step.pattern).sub(lambda _: step.content, text)) if text else text


def unmarked(text: str, step: steps.Unmark, k: int) -> str:
    """A text with marks replaced by spaces or removed; `k`: its number."""
    return text.replace(step.mark, " " if k or step.keep_first else "")


def stripped(text: str, step: steps.StripEach) -> str:
    """A text without up to so many `content` at its ends."""
    start, stop = 0, len(text)
    while start < min(step.start, len(text)) and text[start] == step.content:
        start += 1
    while len(text) - stop < step.stop and stop > 0 and text[stop - 1] == step.content:
        stop -= 1
    return text[start:stop]


def cleaned(text: str) -> str:
    """A text without the spaces that WordPiece adds."""
    for found, new in CLEANED:
        text = text.replace(found, new)
    return text


def word(text: str, step: steps.JoinWords, k: int) -> str:
    """Text number `k` with the separator of words."""
    if k:
        text = text.removeprefix(step.prefix) if text.startswith(step.prefix) else " " + text
    return cleaned(text) if step.cleanup else text


def _unsuffixed(texts: Texts, suffix: str) -> Texts:
    return [text.replace(suffix, "" if k == len(texts) - 1 else " ") for k, text in enumerate(texts)]


def _ctc(texts: Texts, step: steps.Ctc) -> Texts:
    out = []
    for k, text in enumerate(texts):
        if k and texts[k - 1] == text:
            continue
        new = text.replace(step.pad, "")
        if step.cleanup:
            new = cleaned(new).replace(step.delimiter, " ")
        if new:
            out.append(new)
    return out


class PiecesText:
    """sentencepiece's decoder, id by id. `written`: other ids have printed something before."""

    def __init__(self, pipeline: Pipeline, written: bool = False) -> None:
        model, (step,) = pipeline.model, pipeline.decode
        assert isinstance(model, models.Pieces)
        assert isinstance(step, steps.JoinPieces)
        self._step, self._types, self._tokens = step, model.types, pipeline.model_tokens
        self._run, self._written, self._first, self._trimmed = bytearray(), written, True, False

    def push(self, token: int) -> str:
        """Add an id; returns the text that is final."""
        kind, text = int(self._types[token]), (self._tokens[token] or b"").decode()
        if kind == BYTE:
            self._run.append(int(text[3:5], 16))
            return ""
        out = self.finish()
        if self._trimmed or self._written:
            self._first = False
        self._trimmed = False
        if kind == UNKNOWN:
            text = self._step.unknown
        elif kind == CONTROL:
            text = ""
        elif self._first and self._step.trim_first and text.startswith(SPACE_MARK):
            text, self._trimmed = text[1:].replace(SPACE_MARK, " "), not self._step.squeezed
        else:
            text = text.replace(SPACE_MARK, " ")
        self._written |= bool(text)
        return out + text

    def push_text(self, text: str) -> str:
        """Add a piece that the model does not have, which prints itself; returns the text that is final."""
        out = self.finish()
        self._trimmed, self._written = False, self._written or bool(text)
        return out + text

    @property
    def begun(self) -> bool:
        """Whether later text is not trimmed, and no byte is pending."""
        return (self._trimmed or self._written) and not self._run

    def finish(self) -> str:
        """The characters of the pending bytes."""
        run, self._run = self._run, bytearray()
        self._written |= bool(run)
        return "".join(_characters(bytes(run))) if run else ""


def _characters(raw: bytes) -> Texts:
    """The characters of bytes; U+FFFD for each byte that begins no character."""
    out, at = Texts(), 0
    while at < len(raw):
        for size in range(1, 5):
            try:
                out.append(raw[at : at + size].decode())
                break
            except UnicodeDecodeError:
                continue
        else:
            out.append("\ufffd")
            size = 1
        at += size
    return out
