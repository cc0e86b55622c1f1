"""sentencepiece's models (ModelProto) to a Pipeline. Protocol buffers are read field by field (`Message`)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from jittok.common.pipeline.models import BYTE, CONTROL, KINDS, NO_TOKEN, NORMAL, UNIGRAM, UNKNOWN, UNUSED, Pieces
from jittok.common.pipeline.pipeline import FIRST_TEXT, SECOND_TEXT, Pipeline, packed, read_only_array
from jittok.common.pipeline.steps import JoinPieces, Squeeze
from jittok.errors import InWords, MalformedVocab, UnsupportedVocab
from jittok.files.charsmap import checked_charsmap

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Wire types; groups, 3 and 4, are in no file of ours."""
WIRE = {VARINT: "a varint", FIXED64: "8 bytes", BYTES: "a length and bytes", FIXED32: "4 bytes"}


class Message:
    """A message: bytes start .. stop - 1 of a file. `position` is its name."""

    def __init__(self, file: str, location: str, data: bytes, start: int, stop: int) -> None:
        self.file, self.position, self.data, self.start, self.stop = file, location, data, start, stop

    def bad(self, at: int, found: object, expected: str) -> MalformedVocab:
        """The error of what is at byte `at`."""
        return MalformedVocab(self.file, f"{self.position} (byte {at})", found, expected)

    def fields(self) -> Iterator[tuple[int, int, int, int]]:
        """(number, wire type, value, stop) of each field. stop: the offset after it; for bytes, value is where they
        begin."""
        data, at, stop = self.data, self.start, self.stop
        while at < stop:
            key, start, at = data[at], at, at + 1
            if key > 127:
                key, at = self.varint(start)
            wire = key & 7
            if wire == VARINT:
                value, at = self.varint(at)
            elif wire == BYTES:
                if at < stop and data[at] < 128:
                    size, at = data[at], at + 1
                else:
                    size, at = self.varint(at)
                if size > stop - at:
                    raise self.bad(
                        start, InWords(f"a field of {size} bytes"), f"at most the {stop - at} remaining bytes"
                    )
                value, at = at, at + size
            elif wire in (FIXED32, FIXED64):
                size = 4 if wire == FIXED32 else 8
                if size > stop - at:
                    raise self.bad(start, InWords(f"{stop - at} bytes"), f"the {size} bytes of a number")
                value, at = int.from_bytes(data[at : at + size], "little"), at + size
            else:
                raise self.bad(start, InWords(f"wire type {wire}"), "0, 1, 2 or 5")
            if key >> 3 == 0:
                raise self.bad(start, InWords("field number 0"), "1 or more")
            yield key >> 3, wire, value, at

    def varint(self, at: int) -> tuple[int, int]:
        """(number, offset after it)."""
        value, start = 0, at
        for shift in range(0, 70, 7):
            if at >= self.stop:
                raise self.bad(start, InWords("the end of the message"), "the rest of a varint")
            byte = self.data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value & (1 << 64) - 1, at
        raise self.bad(start, InWords("a varint of more than ten bytes"), "at most ten")

    def expect(self, wire: int, wanted: int, at: int, name: str) -> None:
        """MalformedVocab where a field has another wire type."""
        if wire != wanted:
            raise self.bad(at, InWords(f"{name} as {WIRE.get(wire, wire)}"), WIRE[wanted])


MOST_PIECES = 1 << 22
NUL = b"\0"
_FLOAT = struct.Struct("<f")
NOTHING: Mapping[str, str | None] = MappingProxyType({})
TRAINER: dict[int, tuple[str, int, Any]] = {
    3: ("model_type", VARINT, 1),
    24: ("treat_whitespace_as_suffix", VARINT, 0),
    35: ("byte_fallback", VARINT, 0),
    44: ("unk_surface", BYTES, " \u2047 "),
    45: ("unk_piece", BYTES, "<unk>"),
    46: ("bos_piece", BYTES, "<s>"),
    47: ("eos_piece", BYTES, "</s>"),
    48: ("pad_piece", BYTES, "<pad>"),
}
"""Field of the TrainerSpec -> name, wire type, default."""
NORMALIZER: dict[int, tuple[str, int, Any]] = {
    2: ("precompiled_charsmap", BYTES, b""),
    3: ("add_dummy_prefix", VARINT, 1),
    4: ("remove_extra_whitespaces", VARINT, 1),
    5: ("escape_whitespaces", VARINT, 1),
}
"""The same of the NormalizerSpec and the denormalizer's."""


class ModelProto(NamedTuple):
    """The parts of a model file that are used."""

    texts: list[bytes]  # of pieces, by id
    types: list[int]
    scores: list[float]
    trainer: dict[str, Any]
    normalizer: dict[str, Any]


def read_sentencepiece(
    file: str, content: bytes, add_bos: bool = False, add_eos: bool = False, said: Mapping[str, str | None] = NOTHING
) -> Pipeline:
    """The Pipeline of a model. `add_bos`, `add_eos`: what `add_special` adds (a model itself has no such flags).

    said: "bos", "eos" -> the piece that files beside the model name for it, None for none; else the model's own
    """
    texts, types, scores, trainer, normalizer = _read(file, content)
    byte_fallback = bool(trainer["byte_fallback"])
    ids = _checked(file, texts, types, byte_fallback)
    if byte_fallback and NUL in ids:  # the library takes the piece <0x00> for it
        types[ids[NUL]] = UNUSED
    kind = _kind(file, trainer["model_type"], scores)

    def named(name: str) -> int:
        token = ids.get(trainer[name].encode(), NO_TOKEN)
        return token if token != NO_TOKEN and types[token] == CONTROL else NO_TOKEN

    def around(role: str, wanted: bool, own: int) -> tuple[int, ...]:
        text = said.get(role)
        if not wanted or (role in said and text is None):
            return ()
        token = own if text is None else ids.get(text.encode(), NO_TOKEN)
        if text is not None and token == NO_TOKEN:
            raise UnsupportedVocab(file, f"{role}_token", text, f"a piece of this model, as add_{role}_token is set")
        return (token,) if token != NO_TOKEN else ()

    bos, eos, unknown = named("bos_piece"), named("eos_piece"), types.index(UNKNOWN)
    before, after = around("bos", add_bos, bos), around("eos", add_eos, eos)
    data, offsets = packed(texts)
    squeeze = _squeeze(file, trainer, normalizer)
    return Pipeline(
        source=file,
        format="sentencepiece",
        library="sentencepiece",
        model_bytes=data,
        model_offsets=offsets,
        holes=read_only_array([], np.int32),
        model=Pieces(
            kind, read_only_array(types, np.uint8), read_only_array(scores, np.float32), unknown, byte_fallback
        ),
        normalize=(squeeze,),
        decode=(JoinPieces(squeeze.prefix or squeeze.squeeze, squeeze.squeeze, trainer["unk_surface"]),),
        single=(*before, FIRST_TEXT, *after),
        pair=(*before, FIRST_TEXT, SECOND_TEXT, *after),
        bos_id=bos,
        eos_id=eos,
        unk_id=unknown,
        pad_id=named("pad_piece"),
        notes=("Unigram as sentencepiece 0.2.3 sums it",) if kind == UNIGRAM else (),
    )


def _read(file: str, content: bytes) -> ModelProto:
    texts, types, scores = list[bytes](), list[int](), list[float]()
    proto = Message(file, "model", content, 0, len(content))
    spans: dict[int, list[tuple[int, int]]] = {2: [], 3: [], 5: []}
    for number, wire, value, stop in proto.fields():
        if number == 1:
            proto.expect(wire, BYTES, value, "pieces")
            text, kind, score = _piece(Message(file, f"pieces[{len(texts)}]", content, value, stop))
            texts.append(text)
            types.append(kind)
            scores.append(score)
        elif number in spans:
            proto.expect(wire, BYTES, value, "a specification")
            spans[number].append((value, stop))
    if not texts or len(texts) > MOST_PIECES:
        raise MalformedVocab(file, "pieces", InWords(f"{len(texts)} pieces"), f"1 to {MOST_PIECES}")
    trainer = _spec(file, "trainer_spec", content, spans[2], TRAINER)
    normalizer = _spec(file, "normalizer_spec", content, spans[3], NORMALIZER)
    if _spec(file, "denormalizer_spec", content, spans[5], NORMALIZER)["precompiled_charsmap"]:
        raise UnsupportedVocab(
            file, "denormalizer_spec", InWords("a character map"), "none: jittok does not support maps for decoding"
        )
    return ModelProto(texts, types, scores, trainer, normalizer)


def _kind(file: str, number: int, scores: list[float]) -> str:
    """The kind of model. Unigram needs finite scores."""
    if not 1 <= number <= len(KINDS):
        expected = "1 (Unigram), 2 (BPE), 3 (words) or 4 (characters)"
        raise UnsupportedVocab(file, "trainer_spec.model_type", number, expected)
    kind = KINDS[number - 1]
    if kind == UNIGRAM and not np.isfinite(scores).all():
        token = int(np.argmin(np.isfinite(scores)))
        raise MalformedVocab(file, f"pieces[{token}]", InWords(f"the score {scores[token]}"), "a finite number")
    return kind


def _squeeze(file: str, trainer: dict[str, Any], normalizer: dict[str, Any]) -> Squeeze:
    charsmap = read_only_array([], np.uint8)
    if normalizer["precompiled_charsmap"]:
        charsmap = checked_charsmap(
            normalizer["precompiled_charsmap"],
            lambda found, expected: MalformedVocab(file, "normalizer_spec.precompiled_charsmap", found, expected),
        )
    prefix, squeeze = bool(normalizer["add_dummy_prefix"]), bool(normalizer["remove_extra_whitespaces"])
    escape, suffix = bool(normalizer["escape_whitespaces"]), bool(trainer["treat_whitespace_as_suffix"])
    return Squeeze(charsmap, prefix, squeeze, escape, suffix)


def _piece(message: Message) -> tuple[bytes, int, float]:
    text, kind, score = b"", NORMAL, 0.0
    for number, wire, value, stop in message.fields():
        if number == 1:
            message.expect(wire, BYTES, value, "piece")
            text = message.data[value:stop]
        elif number == 2:
            message.expect(wire, FIXED32, stop, "score")
            (score,) = _FLOAT.unpack_from(message.data, stop - 4)
        elif number == 3:
            message.expect(wire, VARINT, stop, "type")
            kind = value
    if not text:
        raise message.bad(message.start, InWords("an empty piece"), "a text")
    if not NORMAL <= kind <= BYTE:
        raise message.bad(message.start, InWords(f"type {kind}"), "a type from 1 to 6")
    try:
        text.decode()
    except UnicodeDecodeError:
        raise message.bad(message.start, text, "UTF-8") from None
    return text, kind, score


def _spec(
    file: str, location: str, content: bytes, spans: list[tuple[int, int]], known: dict[int, tuple[str, int, Any]]
) -> dict[str, Any]:
    """The values of a specification; of a field that comes twice the last."""
    values = {name: default for name, _, default in known.values()}
    for start, stop in spans:
        message = Message(file, location, content, start, stop)
        for number, wire, value, end in message.fields():
            if number not in known:
                continue
            name, wanted, default = known[number]
            message.expect(wire, wanted, end, name)
            if wanted == VARINT:
                values[name] = value
            else:
                raw = content[value:end]
                try:
                    values[name] = raw if isinstance(default, bytes) else raw.decode()
                except UnicodeDecodeError:
                    raise message.bad(value, raw, "UTF-8") from None
    return values


def _checked(file: str, texts: list[bytes], types: list[int], byte_fallback: bool) -> dict[bytes, int]:
    """text -> id. MalformedVocab for what sentencepiece refuses too."""
    ids = dict(zip(texts, range(len(texts)), strict=True))
    if len(ids) < len(texts):
        first: dict[bytes, int] = {}
        token, text = next((k, text) for k, text in enumerate(texts) if first.setdefault(text, k) != k)
        raise MalformedVocab(file, f"pieces[{token}]", text, f"distinct texts: piece {first[text]} has the same")
    if types.count(UNKNOWN) != 1:
        raise MalformedVocab(file, "pieces", InWords(f"{types.count(UNKNOWN)} pieces of type UNKNOWN"), "one")
    wanted = {b"<0x%02X>" % byte for byte in range(256)}
    with_nul = {token for text, token in ids.items() if NUL in text}
    for token in sorted({token for token, kind in enumerate(types) if kind == BYTE} | with_nul):
        text, kind = texts[token], types[token]
        if kind == BYTE and text not in wanted:
            raise MalformedVocab(file, f"pieces[{token}]", text, "<0x00> to <0xFF>, as the piece is of type BYTE")
        if kind == BYTE and not byte_fallback:
            raise MalformedVocab(
                file, f"pieces[{token}]", text, "another type than BYTE, or byte_fallback in trainer_spec"
            )
        if NUL in text and (text != NUL or kind == UNKNOWN or not (byte_fallback or kind == UNUSED)):
            raise MalformedVocab(file, f"pieces[{token}]", text, "a text without NUL, or NUL alone with byte_fallback")
    if byte_fallback:
        missing = sorted(wanted - {text for text, kind in zip(texts, types, strict=True) if kind == BYTE})
        if missing:
            raise MalformedVocab(
                file,
                "pieces",
                InWords(f"no piece {missing[0].decode()}"),
                "one for each byte, as byte_fallback requires",
            )
    return ids
