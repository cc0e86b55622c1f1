"""`sentencepiece.SentencePieceProcessor` over a jittok Tokenizer: its methods, arguments, results and errors.

These are those of release 0.2.3. What 0.2.3 has no more still works here as it did in earlier
releases: "immutable_proto", `encode_as_immutable_proto` and `encode_as_serialized_proto`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import once
from jittok.common.pipeline.models import UNIGRAM, Pieces
from jittok.compat.missing import SAMPLING, Missing, not_there
from jittok.compat.pieces import NBest, PieceText, Spelled, decoded, mapping, record, spelled
from jittok.errors import EncodingFailed
from jittok.reference.decode import PiecesText
from jittok.reference.models.sentencepiece import SentencePieceEncoder
from jittok.reference.pipeline import runner
from jittok.tokenizer import Tokenizer

TYPES = ("spm", "ugm", "word", "char")
"""Vocabularies whose tokens are sentencepiece's pieces."""
UNKNOWN, UNUSED, CONTROL, BYTE = 1, 2, 8, 32
"""Bits of `Tokenizer.attributes`."""
RETURNS = (int, str, bytes, "numpy")
PLACED = ("proto", "immutable_proto", "serialized_proto", "offset_mapping")
"""What encoding can return: ids or pieces, and with the places in the text that they cover."""
OUT_OF_RANGE = "OUT_OF_RANGE: piece id is out of range."
PARALLEL = "write tok.encode(text, threads=2)"
FIXED = "a jittok.Tokenizer has its model: jittok.load(path) makes another"
Text = str | bytes
Returned = type | str
"""int, str, bytes, "numpy", or of PLACED."""
Around = tuple[bool, bool, bool, bool]
"""add_bos, add_eos, reverse, emit_unk_piece."""


def as_sentencepiece(
    tok: Tokenizer, *, add_bos: bool = False, add_eos: bool = False, reverse: bool = False,
    emit_unk_piece: bool = False, out_type: Returned | None = None, num_threads: int = -1,
    return_type: Returned | None = None,
) -> Processor:  # fmt: skip
    """A `sentencepiece.SentencePieceProcessor` of a Tokenizer, for programs that expect one; the options are those of
    its constructor.

    >>> import jittok
    >>> sp = as_sentencepiece(jittok.bundled("mistral"))
    >>> sp.encode("Hello world", out_type=str)
    ['▁Hello', '▁world']
    >>> sp.decode(["▁Hello", "▁world"]), sp["▁Hello"]
    ('Hello world', 22557)

    TypeError for a vocabulary of another kind: BPE of bytes, WordPiece.
    """
    if not isinstance(tok, Tokenizer):
        raise TypeError(f"tok: found {type(tok).__name__}, expected a jittok.Tokenizer: jittok.load(path)")
    if tok.type not in TYPES:
        raise TypeError(
            f"as_sentencepiece: found a vocabulary of type {tok.type}, expected one of sentencepiece's "
            f"({', '.join(TYPES)}): write jittok.compat.as_tokenizers(tok) or as_tiktoken(tok)"
        )
    wanted = _either(return_type, out_type) or int
    return Processor(tok, add_bos, add_eos, reverse, emit_unk_piece, wanted, num_threads)


class Processor:
    """What `as_sentencepiece` makes. Immutable and thread-safe; its pickle is that of the Tokenizer."""

    def __init__(
        self, tok: Tokenizer, add_bos: bool, add_eos: bool, reverse: bool, emit_unk_piece: bool, out_type: Returned,
        num_threads: int,
    ) -> None:  # fmt: skip
        self._tok = tok
        self._defaults = (add_bos, add_eos, reverse, emit_unk_piece, _return_type(out_type), num_threads)
        self._model = tok.pipeline if isinstance(tok.pipeline.model, Pieces) else None

    def __reduce__(self) -> tuple[Any, ...]:
        return Processor, (self._tok, *self._defaults)

    # ---- text to ids and pieces

    def encode(
        self, input: Text | list[Text], add_bos: bool | None = None, add_eos: bool | None = None,  # noqa: A002
        reverse: bool | None = None, emit_unk_piece: bool | None = None, enable_sampling: bool | None = None,
        nbest_size: int | None = None, alpha: float | None = None, num_threads: int | None = None,  # noqa: ARG002
        thread_pool: object = None, return_type: Returned | None = None,  # noqa: ARG002
        out_type: Returned | None = None, return_bytes: bool | None = None,
    ) -> Any:  # fmt: skip
        """Ids (int, "numpy": int32[n]) or pieces (str, bytes) of a text, or a list of these for a list of texts.

        With places: "offset_mapping", a dict of ids, pieces and offsets, in characters of a str, in bytes of
        bytes or with `return_bytes`; "proto", a `PieceText` with places in bytes, as sentencepiece's message has them;
        "immutable_proto", the same with places in characters of a str; "serialized_proto", the bytes of the message.
        0.2.3 refuses "immutable_proto", which earlier releases have.

        `reverse` turns them around before BOS and EOS are added. ValueError for a BOS or EOS that the model lacks.
        """
        if enable_sampling:
            not_there("enable_sampling", SAMPLING)
        said = add_bos, add_eos, reverse, emit_unk_piece, _either(return_type, out_type), num_threads
        given: list[Any] = [own if each is None else each for each, own in zip(said, self._defaults, strict=True)]
        bos, eos, turned, unknown, wanted, threads = given
        asked = bool(bos), bool(eos), bool(turned), bool(unknown)
        if not isinstance(threads, int):
            raise TypeError("num_threads: expected an int")
        _check_return_bytes(return_bytes, wanted)
        _check_around(wanted, asked)
        found: list[Any]
        around = [self._around(role) if asked else () for role, asked in (("bos", bos), ("eos", eos))]
        texts = input if isinstance(input, list) else [input]
        rows = self._ids(texts, isinstance(input, list), threads)
        if wanted in PLACED:
            found = [self._placed(text, wanted, asked, return_bytes) for text in texts]
        elif wanted in (int, "numpy"):
            made = [np.concatenate([around[0], row[::-1] if turned else row, around[1]]).astype(np.int32) for row in rows] if turned or bos or eos else rows  # noqa: E501  # fmt: skip
            found = [np.array(row) if wanted == "numpy" else row.tolist() for row in made]
        else:
            found = [self._pieces_of(*each, bool(unknown)) for each in zip(texts, rows, strict=True)]
            front, after = ([self.id_to_piece(token) for token in ids] for ids in around)
            found = [[*front, *(row[::-1] if turned else row), *after] for row in found]
            if wanted is bytes:
                found = [[piece.encode() for piece in row] for row in found]
        return found if isinstance(input, list) else found[0]

    def encode_as_ids(self, input: Text | list[Text], **options: Any) -> Any:  # noqa: A002
        """`encode` to ids."""
        return self.encode(input, out_type=int, **options)

    def encode_as_pieces(self, input: Text | list[Text], **options: Any) -> Any:  # noqa: A002
        """`encode` to pieces."""
        return self.encode(input, out_type=str, **options)

    def encode_as_numpy(self, input: Text | list[Text], **options: Any) -> Any:  # noqa: A002
        """`encode` to int32[n]."""
        return self.encode(input, out_type="numpy", **options)

    def encode_as_offset_mapping(self, input: Text | list[Text], **options: Any) -> Any:  # noqa: A002
        """`encode` to a dict of ids, pieces and offsets."""
        return self.encode(input, out_type="offset_mapping", **options)

    def encode_as_proto(self, input: Text | list[Text], **options: Any) -> Any:  # noqa: A002
        """`encode` to a `PieceText`, with places in bytes."""
        return self.encode(input, out_type="proto", **options)

    def encode_as_immutable_proto(self, input: Text | list[Text], **options: Any) -> Any:  # noqa: A002
        """`encode` to a `PieceText`, with places in characters of a str. Of releases before 0.2.3."""
        return self.encode(input, out_type="immutable_proto", **options)

    def encode_as_serialized_proto(self, input: Text | list[Text], **options: Any) -> Any:  # noqa: A002
        """`encode` to the bytes of a message. Of releases before 0.2.3."""
        return self.encode(input, out_type="serialized_proto", **options)

    def nbest_encode(
        self, input: Text | list[Text], add_bos: bool | None = None, add_eos: bool | None = None,  # noqa: A002
        reverse: bool | None = None, emit_unk_piece: bool | None = None, nbest_size: int | None = None,
        return_type: Returned | None = None, out_type: Returned | None = None,
    ) -> Any:  # fmt: skip
        """The n best ways to encode a text, best first, of a Unigram model: a list of what `encode` gives, or an
        `NBest` of records. RuntimeError for n > 512 and for other models."""
        said = add_bos, add_eos, reverse, emit_unk_piece, _either(return_type, out_type)
        given: list[Any] = [own if each is None else each for each, own in zip(said, self._defaults, strict=False)]
        bos, eos, turned, unknown, wanted = given
        around = bool(bos), bool(eos), bool(turned), bool(unknown)
        if isinstance(input, list):
            return [self.nbest_encode(text, *around, nbest_size=nbest_size, return_type=wanted) for text in input]
        if wanted == "offset_mapping":
            raise ValueError(f"unknown return_type={wanted}")
        _check_around(wanted, around)
        found = self._paths(input, max(1, nbest_size or 1))
        text = input.encode() if isinstance(input, str) else input
        rows = [(self._finished(len(text), paths, around), score) for paths, score in found]
        if wanted in PLACED:
            inside = wanted == "immutable_proto" and isinstance(input, str)
            made = NBest([self._record(text, row, score, inside) for row, score in rows])
            return made.SerializeToString() if wanted == "serialized_proto" else made
        if wanted in (int, "numpy"):
            ids = [[piece.id for piece in row] for row, _ in rows]
            return ids if wanted is int else [np.array(each, np.int32) for each in ids]
        return [[piece.piece if wanted is bytes else piece.piece.decode() for piece in row] for row, _ in rows]

    def nbest_encode_as_ids(self, input: Text | list[Text], nbest_size: int | None = None, **options: Any) -> Any:  # noqa: A002
        """`nbest_encode` to ids."""
        return self.nbest_encode(input, nbest_size=nbest_size, return_type=int, **options)

    def nbest_encode_as_pieces(self, input: Text | list[Text], nbest_size: int | None = None, **options: Any) -> Any:  # noqa: A002
        """`nbest_encode` to pieces."""
        return self.nbest_encode(input, nbest_size=nbest_size, return_type=str, **options)

    def nbest_encode_as_numpy(self, input: Text | list[Text], nbest_size: int | None = None, **options: Any) -> Any:  # noqa: A002
        """`nbest_encode` to int32[n] arrays."""
        return self.nbest_encode(input, nbest_size=nbest_size, return_type="numpy", **options)

    def nbest_encode_as_proto(self, input: Text | list[Text], nbest_size: int | None = None, **options: Any) -> Any:  # noqa: A002
        """`nbest_encode` to an `NBest` of records."""
        return self.nbest_encode(input, nbest_size=nbest_size, return_type="proto", **options)

    # ---- the places that pieces cover

    def _normalized(self, text: Text) -> tuple[bytes, bytes, list[int]]:
        """The bytes of a text, of its normalized text, and where each of these is from."""
        if not isinstance(text, str | bytes):
            raise TypeError("Input must be str or bytes")
        self._reference("places of pieces")
        try:
            raw = text.encode() if isinstance(text, str) else text
            raw.decode()
        except UnicodeDecodeError:
            not_there("places in bytes that are invalid UTF-8", "write tok.align(data, errors='replace')")
        except UnicodeEncodeError as error:
            raise RuntimeError(str(error)) from None
        coded, places = self.normalize(raw, with_offsets=True)
        return raw, coded, places

    def _placed(self, text: Text, wanted: Returned, around: Around, return_bytes: bool | None) -> Any:
        """A text's pieces with the places that they cover."""
        reference = self._reference("places of pieces")
        raw, coded, places = self._normalized(text)
        rows = [*spelled(reference, self._names, coded, places, reference.tokens(coded.decode()))]
        rows = self._finished(len(raw), rows, around)
        if wanted == "offset_mapping":
            return mapping(raw, rows, isinstance(text, bytes) if return_bytes is None else return_bytes)
        made = self._record(raw, rows, None, wanted == "immutable_proto" and isinstance(text, str))
        return made.SerializeToString() if wanted == "serialized_proto" else made

    def _paths(self, text: Text, n: int) -> list[tuple[list[Spelled], float]]:
        """The n best paths of a text: pieces, sum of scores."""
        from jittok.reference.models.nbest import MOST_PATHS, nbest

        reference = self._reference("n-best")
        _, coded, places = self._normalized(text)
        if n > MOST_PATHS:
            raise RuntimeError(f"INTERNAL: nbest_size must be nbest_size <= {MOST_PATHS}")
        if reference.model.kind != UNIGRAM:
            raise RuntimeError("INTERNAL: NBestEncode is not available for the current model.")
        paths = nbest(reference, coded.decode(), n)
        return [
            ([*spelled(reference, self._names, coded, places, reference.joined(parts))], score)
            for parts, score in paths
        ]

    def _finished(self, size: int, rows: list[Spelled], around: Around) -> list[Spelled]:
        """Pieces turned around, with BOS and EOS, unknown ones under one name, as asked."""
        bos, eos, turned, unknown = around
        rows = rows[::-1] if turned else rows
        front = [Spelled(self._names[token].encode(), token, 0, 0) for token in (self._around("bos") if bos else ())]
        after = [
            Spelled(self._names[token].encode(), token, size, size) for token in (self._around("eos") if eos else ())
        ]
        if unknown:
            name = self._names[self.unk_id()].encode()
            rows = [row._replace(piece=name) if row.id == self.unk_id() else row for row in rows]
        return [*front, *rows, *after]

    def _record(self, raw: bytes, rows: list[Spelled], score: float | None, characters: bool) -> PieceText:
        return record(raw, rows, [raw[row.begin : row.end] for row in rows], score, characters)

    def normalize(self, input: Text | list[Text], with_offsets: bool = False) -> Any:  # noqa: A002
        """The normalized text, which the model encodes; `with_offsets`: and for each of its characters (bytes of
        bytes) the offset in the text, then where the last one ends."""
        if isinstance(input, list):
            return [self.normalize(text, with_offsets) for text in input]
        text = input.decode("utf-8", "replace") if isinstance(input, bytes) else input
        normalized, starts = self._reference("normalize").offsets(text)
        shown: Text = normalized.encode() if isinstance(input, bytes) else normalized
        if not with_offsets:
            return shown
        if isinstance(input, str):
            return shown, starts or [0]
        if not starts:
            return shown, []
        places = np.cumsum([0, *(len(c.encode()) for c in text)]).tolist()
        sizes = [len(c.encode()) for c in normalized]
        found = [places[k] for k, size in zip(starts[:-1], sizes, strict=True) for _ in range(size)]
        return shown, [*found, places[starts[-1]]]

    def _ids(self, texts: list[Any], batch: bool, threads: int) -> list[NDArray[np.int32]]:
        for text in texts:
            if not isinstance(text, str | bytes):
                raise TypeError("List elements must be str or bytes" if batch else "Input must be str or bytes")
        try:
            if not batch:
                return [self._tok.encode(texts[0])]
            return list(self._tok.encode_batch(texts, threads=threads if threads > 0 else None))
        except EncodingFailed as error:  # a surrogate
            if self._model is not None and any(isinstance(text, bytes) for text in texts):
                return [self._tok.encode(text, errors="replace" if isinstance(text, bytes) else "strict") for text in texts]  # noqa: E501  # fmt: skip
            raise RuntimeError(str(error)) from None

    def _around(self, role: str) -> tuple[int, ...]:
        token = getattr(self, f"{role}_id")()
        if token < 0:
            name = role.upper()
            raise ValueError(f"INVALID_ARGUMENT: {name} token is not defined as a control symbol in this model.")
        return (token,)

    def _pieces_of(self, text: Text, ids: NDArray[np.int32], unknown: bool) -> list[str]:
        """The pieces of a text: an unknown one is what it covers of the normalized text, or the unknown token."""
        numbers = ids.tolist()
        if unknown or self.unk_id() not in numbers:
            return [self._names[token] for token in numbers]
        if self._model is None:
            return [self._names[token] if token != self.unk_id() else str(self._covered(text, k)) for k, token in enumerate(numbers)]  # noqa: E501  # fmt: skip
        reference = self._reference("pieces")
        raw = reference.normalized(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)[0]
        coded = raw.encode()
        return [
            self._names[token] if token != self.unk_id() else coded[start:stop].decode()
            for token, start, stop in reference.tokens(raw)
        ]

    def _covered(self, text: Text, k: int) -> str:
        part = self._tok.align(text).slice(k)
        return part.decode("utf-8", "replace") if isinstance(part, bytes) else part

    def _reference(self, what: str) -> SentencePieceEncoder:
        if self._model is None:
            not_there(f"{what} of a GGUF", "write tok.trace(text), which shows the normalized text")
        return runner(self._model).sentencepiece

    # ---- ids and pieces to text

    def decode(
        self, input: Any, out_type: Returned | None = None, num_threads: int | None = None,  # noqa: A002, ARG002
        return_type: Returned | None = None, thread_pool: object = None,  # noqa: ARG002
        return_bytes: bool | None = None,
    ) -> Any:  # fmt: skip
        """The text of ids or pieces, or a list of texts for a list of lists; `out_type`: str, bytes, or with the place
        of each piece in the text, as for `encode`. IndexError for an id that there is not."""
        wanted = _either(return_type, out_type) or str
        if wanted not in (str, bytes, *PLACED):
            raise ValueError(f"unknown return_type={wanted}")
        _check_return_bytes(return_bytes, wanted)
        if _is_batch(input):
            if wanted == "offset_mapping":  # all as the first that is not empty
                first = next((row[0] for row in input if len(row)), None)
                return_bytes = bool(return_bytes) or isinstance(first, bytes)
            return [self.decode(row, out_type=wanted, return_bytes=return_bytes) for row in input]
        if isinstance(input, str | bytes | int | np.integer):
            input = [input]  # noqa: A001
        if wanted in PLACED:
            items = [] if input is None else list(input)
            as_bytes = bool(return_bytes) or (bool(items) and isinstance(items[0], bytes))
            return self._decoded_places(items, wanted, as_bytes)
        text = self._decoded([] if input is None else list(input))
        return text.encode() if wanted is bytes else text

    def decode_ids(self, input: Any, **options: Any) -> Any:  # noqa: A002
        """The text of ids."""
        return self.decode(input, **options)

    def decode_pieces(self, input: Any, **options: Any) -> Any:  # noqa: A002
        """The text of pieces."""
        return self.decode(input, **options)

    def decode_ids_as_proto(self, input: Any, **options: Any) -> Any:  # noqa: A002
        """The text of ids as a `PieceText`, with places in bytes."""
        return self.decode(input, return_type="proto", **options)

    decode_pieces_as_proto = decode_ids_as_proto

    def _decoded_places(self, items: list[Any], wanted: Returned, as_bytes: bool) -> Any:
        self._reference("places of pieces")
        model: Any = self._model
        if all(isinstance(item, str | bytes) for item in items):
            pieces = [item.decode() if isinstance(item, bytes) else item for item in items]
            known = [(self.piece_to_id(piece), piece) for piece in pieces]
        else:
            known = [(self._checked(token), self._names[token]) for token in self._as_ids(items)]
        raw, rows, shown = decoded(model.model, model.decode[0], self._names, known)
        if wanted == "offset_mapping":
            return {"text": raw if as_bytes else raw.decode(), **mapping(raw, rows, as_bytes)}
        made = record(raw, rows, shown, None, wanted == "immutable_proto")
        return made.SerializeToString() if wanted == "serialized_proto" else made

    def _as_ids(self, items: list[Any]) -> list[Any]:
        if not all(isinstance(item, int | np.integer) for item in items):
            raise TypeError("Input must be an integer buffer, list of integers, or a sequence of integers.")
        return items

    def _decoded(self, items: list[Any]) -> str:
        if all(isinstance(item, str | bytes) for item in items):
            pieces = [item.decode() if isinstance(item, bytes) else item for item in items]
            strange = [piece for piece in pieces if piece not in self._by_name]
            if strange:
                return self._with_strange(pieces)
            items = [self._by_name[piece] for piece in pieces]
        for token in self._as_ids(items):
            self._checked(token)
        return self._tok.decode(items)

    def _with_strange(self, pieces: list[str]) -> str:
        """The text of pieces, some of which the model does not have."""
        if self._model is None:
            return "".join(self._tok.decode([self._by_name[p]]) if p in self._by_name else p for p in pieces)
        out = PiecesText(self._model)
        texts = [out.push(self._by_name[piece]) if piece in self._by_name else out.push_text(piece) for piece in pieces]
        return "".join(texts) + out.finish()

    # ---- the vocabulary

    def id_to_piece(self, id: int | Sequence[int]) -> Any:  # noqa: A002
        """The piece of an id, or a list of pieces. IndexError for an id that there is not."""
        return self._each(id, lambda token: self._names[token])

    def piece_to_id(self, piece: str | bytes | Sequence[str | bytes]) -> Any:
        """The id of a piece, or a list of ids; the unknown id for a piece that there is not."""
        if isinstance(piece, list | tuple):
            return [self.piece_to_id(each) for each in piece]
        if not isinstance(piece, str | bytes):
            raise TypeError(f"piece: found {type(piece).__name__}, expected str or bytes")
        return self._by_name.get(piece.decode() if isinstance(piece, bytes) else piece, self.unk_id())

    def get_score(self, id: int | Sequence[int]) -> Any:  # noqa: A002
        """The score of an id."""
        return self._each(id, lambda token: float(self._tok.scores[token]))

    def is_unknown(self, id: int | Sequence[int]) -> Any:  # noqa: A002
        """Whether an id is the unknown one."""
        return self._has(id, UNKNOWN)

    def is_control(self, id: int | Sequence[int]) -> Any:  # noqa: A002
        """Whether an id is a control token's, as BOS."""
        return self._has(id, CONTROL)

    def is_unused(self, id: int | Sequence[int]) -> Any:  # noqa: A002
        """Whether an id is not used."""
        return self._has(id, UNUSED)

    def is_byte(self, id: int | Sequence[int]) -> Any:  # noqa: A002
        """Whether an id stands for a byte."""
        return self._has(id, BYTE)

    def __len__(self) -> int:
        return self._tok.vocab_size

    def __getitem__(self, piece: str) -> int:
        found: int = self.piece_to_id(piece)
        return found

    def vocab_size(self) -> int:
        """The number of pieces."""
        return len(self)

    get_piece_size = piece_size = vocab_size

    def unk_id(self) -> int:
        """The unknown id; -1 if there is none."""
        return _or_none(self._tok.unk_id)

    def bos_id(self) -> int:
        """The id that begins a text; -1 if there is none."""
        return _or_none(self._tok.bos_id)

    def eos_id(self) -> int:
        """The id that ends a text; -1 if there is none."""
        return _or_none(self._tok.eos_id)

    def pad_id(self) -> int:
        """The id that pads; -1 if there is none."""
        return _or_none(self._tok.pad_id)

    def serialized_model_proto(self) -> bytes:
        """The model as a .model file has it: `jittok.convert` writes it."""
        import tempfile
        from pathlib import Path

        from jittok.convert import convert

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tokenizer.model"
            convert(self._tok, path)
            return path.read_bytes()

    @once
    def _names(self) -> list[str]:
        return [self._tok.id_to_token(token).decode("utf-8", "replace") for token in range(len(self))]

    @once
    def _by_name(self) -> dict[str, int]:
        return {name: token for token, name in reversed([*enumerate(self._names)])}

    def _checked(self, token: Any) -> int:
        if not 0 <= token < len(self):
            raise IndexError(OUT_OF_RANGE)
        return int(token)

    def _each(self, ids: Any, call: Callable[[int], Any]) -> Any:
        if isinstance(ids, int | np.integer):
            return call(self._checked(ids))
        return [call(self._checked(token)) for token in ids]

    def _has(self, ids: Any, bit: int) -> Any:
        return self._each(ids, lambda token: bool(self._tok.attributes[token] & bit))

    # ---- what is not there

    sample_encode_as_ids = sample_encode_as_pieces = sample_encode_as_numpy = Missing(SAMPLING)
    sample_encode_as_proto = sample_encode_and_score = calculate_entropy = Missing(SAMPLING)
    parallel_encode = parallel_encode_as_ids = parallel_encode_as_pieces = Missing(PARALLEL)
    parallel_encode_as_numpy = parallel_encode_as_proto = Missing(PARALLEL)
    from_file = from_proto = Missing("write jittok.compat.as_sentencepiece(jittok.load(path))")
    set_encode_extra_options = Missing("add_bos=, add_eos= and reverse= are options of encode")
    set_vocabulary = reset_vocabulary = load_vocabulary = override_normalizer_spec = Missing(FIXED)
    load = load_from_file = load_from_serialized_proto = Missing(FIXED)

    # ---- the same names in CamelCase

    tokenize = Tokenize = Encode = encode
    detokenize = Detokenize = Decode = decode
    EncodeAsIds, EncodeAsPieces, EncodeAsNumpy = encode_as_ids, encode_as_pieces, encode_as_numpy
    DecodeIds, DecodePieces, Normalize = decode_ids, decode_pieces, normalize
    IdToPiece, PieceToId, GetScore, GetPieceSize = id_to_piece, piece_to_id, get_score, vocab_size
    IsUnknown, IsControl, IsUnused, IsByte = is_unknown, is_control, is_unused, is_byte
    NBestEncode, NBestEncodeAsIds, NBestEncodeAsPieces = nbest_encode, nbest_encode_as_ids, nbest_encode_as_pieces
    NBestEncodeAsNumpy, NBestEncodeAsProto = nbest_encode_as_numpy, nbest_encode_as_proto
    SampleEncodeAsIds = SampleEncodeAsPieces = SampleEncodeAsNumpy = SampleEncodeAsProto = sample_encode_as_ids
    SampleEncodeAndScore = CalculateEntropy = calculate_entropy
    ParallelEncode = ParallelEncodeAsIds = ParallelEncodeAsPieces = ParallelEncodeAsNumpy = parallel_encode
    ParallelEncodeAsProto = parallel_encode_as_proto
    EncodeAsProto, EncodeAsSerializedProto = encode_as_proto, encode_as_serialized_proto
    EncodeAsImmutableProto, EncodeAsOffsetMapping = encode_as_immutable_proto, encode_as_offset_mapping
    DecodeIdsAsProto = DecodePiecesAsProto = decode_ids_as_proto
    Load = LoadFromFile = LoadFromSerializedProto = load
    SetEncodeExtraOptions, SetVocabulary = set_encode_extra_options, set_vocabulary


def _or_none(token: int | None) -> int:
    return -1 if token is None else token


def _is_batch(found: Any) -> bool:
    """Whether these are rows of ids or pieces."""
    if isinstance(found, np.ndarray):
        return found.ndim > 1
    return isinstance(found, list | tuple) and bool(found) and isinstance(found[0], list | tuple | np.ndarray)


def _either(return_type: Returned | None, out_type: Returned | None) -> Returned | None:
    if return_type is not None and out_type is not None:
        raise ValueError("return_type, out_type: found both, expected one of them")
    given = out_type if return_type is None else return_type
    return None if given is None else _return_type(given)


def _return_type(given: Returned) -> Returned:
    if given not in (*RETURNS, *PLACED):
        raise ValueError(f"return_type: found {given!r}, expected int, str, bytes, 'numpy' or one of {PLACED}")
    return given


def _check_return_bytes(given: bool | None, wanted: Returned) -> None:
    if given is not None and wanted != "offset_mapping":
        raise ValueError("return_bytes: found it with another return_type, expected 'offset_mapping'")


def _check_around(wanted: Returned, around: Around) -> None:
    """RuntimeError where sentencepiece cannot add or turn around what has places."""
    if any(around) and wanted in PLACED and wanted != "immutable_proto":
        raise RuntimeError(
            f"UNIMPLEMENTED: found add_bos, add_eos, reverse or emit_unk_piece with {wanted!r}, expected none of them; "
            "'immutable_proto', of releases before 0.2.3, takes them"
        )
