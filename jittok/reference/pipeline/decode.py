"""Decoders: texts of tokens to texts, which are joined at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jittok.pipeline import models, steps
from jittok.pipeline.models import BYTE, CONTROL, UNKNOWN
from jittok.pipeline.patterns import compiled
from jittok.pipeline.pipeline import Pipeline
from jittok.reference.pipeline.normalize import ALPHABET
from jittok.unicode.characters import SPACE_MARK

BYTES = {c: byte for byte, c in enumerate(ALPHABET)}
HEX = frozenset("0123456789abcdefABCDEF")
CLEANED = (
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"),
    (" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip
Texts = list[str]


def decoder(step: steps.Decoder) -> Callable[[Texts], Texts]:
    """What one step makes of a list of texts."""
    makers: dict[type, Callable[[Any], Callable[[Texts], Texts]]] = {
        steps.JoinBytes: lambda _: _join_bytes,
        steps.JoinFallback: lambda _: _join_fallback,
        steps.Fuse: lambda _: lambda texts: ["".join(texts)],
        steps.ReplaceEach: lambda s: lambda texts: [_replaced(text, s) for text in texts],
        steps.Unmark: lambda s: lambda texts: [_unmarked(text, s, k) for k, text in enumerate(texts)],
        steps.StripEach: lambda s: lambda texts: [_stripped(text, s) for text in texts],
        steps.JoinWords: lambda s: lambda texts: [_word(text, s, k) for k, text in enumerate(texts)],
        steps.Unsuffix: lambda s: lambda texts: _unsuffixed(texts, s.suffix),
        steps.Ctc: lambda s: lambda texts: _ctc(texts, s),
        steps.Spaced: lambda _: lambda texts: [" ".join(texts)],
        steps.Trim: lambda _: lambda texts: [text.strip() for text in texts],
    }
    return makers[type(step)](step)


def raw_bytes(texts: Iterable[str]) -> bytes:
    """Texts in the byte alphabet to bytes; one with another character stands for its UTF-8."""
    return b"".join(bytes(BYTES[c] for c in text) if all(c in BYTES for c in text) else text.encode() for text in texts)


def _join_bytes(texts: Texts) -> Texts:
    return [raw_bytes(texts).decode("utf-8", "replace")]


def _join_fallback(texts: Texts) -> Texts:
    out, run = Texts(), b""

    def end() -> None:
        nonlocal run
        try:
            out.append(run.decode())
        except UnicodeDecodeError:
            out.extend("\ufffd" * len(run))
        run = b""

    for text in texts:
        if len(text) == 6 and text.startswith("<0x") and text[5] == ">" and text[3] in HEX and text[4] in HEX:
            run += bytes([int(text[3:5], 16)])
            continue
        if run:
            end()
        out.append(text)
    if run:
        end()
    return out


def _replaced(text: str, step: steps.ReplaceEach) -> str:
    return str(compiled(step.pattern).sub(lambda _: step.content, text))


def _unmarked(text: str, step: steps.Unmark, k: int) -> str:
    return text.replace(step.mark, " " if k or step.keep_first else "")


def _stripped(text: str, step: steps.StripEach) -> str:
    start, stop = 0, len(text)
    while start < min(step.start, len(text)) and text[start] == step.content:
        start += 1
    while len(text) - stop < step.stop and stop > 0 and text[stop - 1] == step.content:
        stop -= 1
    return text[start:stop]


def _cleaned(text: str) -> str:
    for found, new in CLEANED:
        text = text.replace(found, new)
    return text


def _word(text: str, step: steps.JoinWords, k: int) -> str:
    if k:
        text = text.removeprefix(step.prefix) if text.startswith(step.prefix) else " " + text
    return _cleaned(text) if step.cleanup else text


def _unsuffixed(texts: Texts, suffix: str) -> Texts:
    return [text.replace(suffix, "" if k == len(texts) - 1 else " ") for k, text in enumerate(texts)]


def _ctc(texts: Texts, step: steps.Ctc) -> Texts:
    out = []
    for k, text in enumerate(texts):
        if k and texts[k - 1] == text:
            continue
        new = text.replace(step.pad, "")
        if step.cleanup:
            new = _cleaned(new).replace(step.delimiter, " ")
        if new:
            out.append(new)
    return out


def pieces_decoder(pipeline: Pipeline) -> Callable[[list[int]], str]:
    """sentencepiece's: ids to text."""
    model, (step,) = pipeline.model, pipeline.decode
    assert isinstance(model, models.Pieces)
    assert isinstance(step, steps.JoinPieces)
    types, texts = model.types.tolist(), [(text or b"").decode() for text in pipeline.model_tokens]

    def decode(ids: list[int]) -> str:
        out, run, first, trimmed = Texts(), b"", True, False
        for token in ids:
            if types[token] == BYTE:
                run += bytes([int(texts[token][3:5], 16)])
                continue
            out += _characters(run)
            run = b""
            if trimmed or any(out):
                first = False
            trimmed = False
            if types[token] == UNKNOWN:
                out.append(step.unknown)
            elif types[token] != CONTROL:
                text = texts[token]
                if first and step.trim_first and text.startswith(SPACE_MARK):
                    text, trimmed = text[1:], not step.squeezed
                out.append(text.replace(SPACE_MARK, " "))
        return "".join(out + _characters(run))

    return decode


def _characters(raw: bytes) -> Texts:
    """The characters of bytes; U+FFFD for each byte that begins none."""
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
