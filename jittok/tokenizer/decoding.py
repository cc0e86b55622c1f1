"""Ids to text: what a Tokenizer decodes with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jittok.common.locks import once
from jittok.common.pipeline import Pipeline
from jittok.errors import refuse_keywords
from jittok.kernels.inputs import to_ids
from jittok.kernels.jit import interruptible_if_long
from jittok.kernels.vocab_cache import load_arrays, save_arrays
from jittok.tokenizer.other_files import OtherFiles
from jittok.tokenizer.python_fallback import decode_in_python, piece_in_python
from jittok.vocab.types import rules_of

if TYPE_CHECKING:
    from jittok.common.rows import TokenArray
    from jittok.decode.pieces import PieceTable
    from jittok.decode.rows import DecodeFrame, Decoder
    from jittok.decode.stream import StreamDecoder


IDS_PER_SLICE = 1 << 18
"""Ids that are decoded at once."""


class Decoding(OtherFiles):
    """The part of `Tokenizer` that turns ids into text."""

    _key: str | None
    _may_wait: bool  # whether kernels may still have to be compiled: those of encoding
    _text_may_wait: bool  # and those of decoding

    def _wait_for_kernels(self) -> None:
        """From now on the kernels are compiled, however little there is to do (see `encode.python_fallback`)."""
        self._may_wait = self._text_may_wait = False

    def decode_bytes(
        self,
        ids: ArrayLike | Iterable[int],
        *,
        remove_special: bool = False,
        unparse_special: bool = False,
        skip_special: bool | None = None,
        clean: bool = True,
        **others: NoReturn,
    ) -> bytes:
        """The bytes of ids, as llama.cpp's detokenize or the file's own decoder. Raises InvalidToken.

        `remove_special` drops what `add_special` has put around, `skip_special` the text of special tokens everywhere.
        Left out, it is as in the file's library: special tokens of a GGUF vocabulary print nothing unless
        `unparse_special` is set, those of other files print their text.

        `clean=False` keeps every space that the tokens have. By default a vocabulary that cleans (GPT-2's family and
        BERT's) loses spaces before ? ! . , and around apostrophes, as in llama.cpp: of ids that are cut and decoded
        part by part, too.
        """
        if others:
            refuse_keywords(self.decode_bytes, others)
        return bytes(self._decoded(ids, remove_special, self._prints_special(unparse_special, skip_special), clean))

    def _decoded(
        self, ids: ArrayLike | Iterable[int], remove_special: bool, prints: bool, clean: bool
    ) -> bytes | bytearray:
        if not rules_of(self.type).has_tokens:
            return b""
        known = to_ids(ids, self.vocab_size)
        if self._text_may_wait:
            texts = decode_in_python(self.gguf("pieces"), [known], known.size, remove_special, prints, clean)
            if texts is not None:
                return texts[0]
            self._text_may_wait = False
        decoder, frame = self._decoding(remove_special, prints, clean)
        return interruptible_if_long(known.nbytes)(decoder.one, known, frame)  # type: ignore[no-any-return]

    def _decoding(self, remove_special: bool, prints: bool, clean: bool) -> tuple[Decoder, DecodeFrame]:
        """What decodes, and how. `prints`: special tokens print their text."""
        if isinstance(self.vocab, Pipeline):
            general = self._general if clean else self._general_as_written
            return general, general.frame(remove_special, prints)  # type: ignore[return-value]
        return self._decoder, self._decoder.frame(remove_special, prints, clean)

    def decode(
        self,
        ids: ArrayLike | Iterable[int],
        *,
        errors: str = "replace",
        remove_special: bool = False,
        unparse_special: bool = False,
        skip_special: bool | None = None,
        clean: bool = True,
        **others: NoReturn,
    ) -> str:
        """The text of ids; `errors` as for bytes.decode, the rest as for `decode_bytes`."""
        if others:
            refuse_keywords(self.decode, others)
        if isinstance(self.vocab, Pipeline):
            ids = to_ids(ids, self.vocab_size)
            if self._general.cuts(ids).size:
                from jittok.common.rows import TokenArray

                rows = TokenArray(ids, np.array([0, ids.size]))
                how: dict[str, Any] = {
                    "remove_special": remove_special,
                    "unparse_special": unparse_special,
                    "clean": clean,
                }
                return self.decode_batch(rows, errors=errors, skip_special=skip_special, **how)[0]
        prints = self._prints_special(unparse_special, skip_special)
        many = (ids.size if isinstance(ids, np.ndarray) else isinstance(ids, Sized) and len(ids)) > IDS_PER_SLICE
        if many and rules_of(self.type).has_tokens:
            ids = to_ids(ids, self.vocab_size)
            text = self._in_slices(ids, errors, *self._decoding(remove_special, prints, clean))
            if text is not None:
                return text
        return self._decoded(ids, remove_special, prints, clean).decode("utf-8", errors)

    def _in_slices(self, ids: NDArray[np.int32], errors: str, decoder: Decoder, frame: DecodeFrame) -> str | None:
        """The text of many ids; None where they have to be decoded at once."""
        from jittok.decode.slices import parts_of, size_of_slices, text_of

        at_once = size_of_slices(ids.size, IDS_PER_SLICE >> 2)
        if isinstance(self.vocab, Pipeline):
            return text_of(*decoder.parts(ids, frame, errors, at_once))  # type: ignore[attr-defined]
        return text_of(parts_of(decoder, ids, frame, at_once), errors)

    def decode_batch(
        self,
        rows: TokenArray | Iterable[ArrayLike],
        *,
        errors: str = "replace",
        remove_special: bool = False,
        unparse_special: bool = False,
        skip_special: bool | None = None,
        clean: bool = True,
        **others: NoReturn,
    ) -> list[str]:
        """The text of each row of a TokenArray (or of any sequence of rows of ids)."""
        if others:
            refuse_keywords(self.decode_batch, others)
        from jittok.common.rows import TokenArray

        if not rules_of(self.type).has_tokens:
            return [""] * sum(1 for _ in rows)
        if not isinstance(rows, TokenArray):
            parts = [to_ids(row, self.vocab_size) for row in self._several(rows)]
            ids = np.concatenate(parts) if parts else np.zeros(0, np.int32)
            rows = TokenArray(ids, np.cumsum([0, *(part.size for part in parts)]))
        prints = self._prints_special(unparse_special, skip_special)
        cut = self._general.cut_rows(rows) if isinstance(self.vocab, Pipeline) else None
        if cut is not None:
            parts_of_rows, begins = cut
            decoding = self._decoding(remove_special, prints, clean)
            texts_of_parts = self._decoded_rows(parts_of_rows, errors, *decoding, IDS_PER_SLICE)
            return ["".join(texts_of_parts[first:last]) for first, last in pairwise(begins.tolist())]
        if self._text_may_wait:
            texts = decode_in_python(
                self.gguf("pieces"), rows, rows.ids.size + len(rows), remove_special, prints, clean
            )
            if texts is not None:
                return [part.decode("utf-8", errors) for part in texts]
            self._text_may_wait = False
        decoding = self._decoding(remove_special, prints, clean)
        try:
            return self._decoded_rows(rows, errors, *decoding, IDS_PER_SLICE)
        except UnicodeDecodeError:  # an id outside the vocabulary comes first, wherever it is
            return self._decoded_rows(rows, errors, *decoding, rows.ids.size + 1)

    @staticmethod
    def _several(rows: Iterable[ArrayLike]) -> Iterator[ArrayLike]:
        """The rows; TypeError if a single row of ids is given instead."""
        if not isinstance(rows, Iterable) or isinstance(rows, str | bytes):
            raise TypeError(f"rows: found {type(rows).__name__}, expected rows of ids")
        for k, row in enumerate(rows):
            if isinstance(row, int | np.integer):
                raise TypeError(f"rows: found an id as row {k}, expected rows of ids: decode(ids) takes one row")
            yield row

    def _decoded_rows(
        self, rows: TokenArray, errors: str, decoder: Decoder, frame: DecodeFrame, at_once: int
    ) -> list[str]:
        """The texts of rows, some at a time: of all there would be bytes and characters at once."""
        out = list[str]()
        for first, last in pairwise(_groups(rows.offsets, at_once)):
            offsets = rows.offsets[first : last + 1]
            ids = rows.ids[offsets[0] : offsets[-1]]
            alone = last - first == 1 and ids.size > at_once
            whole = self._in_slices(ids, errors, decoder, frame) if alone else None
            if whole is not None:
                out.append(whole)
                continue
            text, ends = interruptible_if_long(rows.ids.nbytes)(decoder.rows, ids, offsets - offsets[0], frame)
            raw, start = text.tobytes(), 0
            for end in ends.tolist():
                out.append(raw[start:end].decode("utf-8", errors))
                start = end
        return out

    def stream_decoder(
        self,
        *,
        errors: str = "replace",
        remove_special: bool = False,
        unparse_special: bool = False,
        clean: bool = True,
        **others: NoReturn,
    ) -> StreamDecoder:
        """Text from ids one at a time; what `push` and `flush` give, joined, is what `decode` gives."""
        if others:
            refuse_keywords(self.stream_decoder, others)
        from jittok.decode.rows import frame_of
        from jittok.decode.stream import StreamDecoder

        if isinstance(self.vocab, Pipeline):
            general = self._general if clean else self._general_as_written
            return general.stream(errors, remove_special, self._prints_special(unparse_special, None))
        frame = frame_of(self.vocab, remove_special, unparse_special, clean)
        return StreamDecoder(lambda token: self.token_to_piece(token, special=unparse_special), frame, errors)

    def token_to_piece(self, id: int, *, lstrip: int = 0, special: bool = False) -> bytes:  # noqa: A002  llama.cpp's
        """What one id prints, without up to `lstrip` spaces before. Special tokens print nothing unless `special`."""
        token = self._checked(id)
        if isinstance(self.vocab, Pipeline):
            return b"" if not special and token in self.special_ids else self._general.piece(token, lstrip)
        if self._text_may_wait:
            plain = piece_in_python(self.gguf("pieces"), token, lstrip, bool(special))
            if plain is not None:
                return plain
            self._text_may_wait = False
        pieces = self._pieces
        if not special and pieces.hides(token):
            return b""
        piece = pieces.blob[pieces.offsets[token] : pieces.offsets[token + 1]].tobytes()
        while lstrip > 0 and piece[:1] == b" ":
            piece, lstrip = piece[1:], lstrip - 1
        return piece

    @once
    def _decoder(self) -> Decoder:
        from jittok.decode.rows import Decoder

        return Decoder(self.gguf("pieces"), self._pieces)

    @once
    def _pieces(self) -> PieceTable:
        from jittok.decode.pieces import build_pieces

        vocab = self.gguf("pieces")
        if self._key is None:
            return build_pieces(vocab)
        kept = load_arrays(self._key, "pieces")
        known = kept and kept.part("pieces")
        if not known:
            known = {"pieces": build_pieces(vocab)}
            save_arrays(self._key, "pieces", known)
        return known["pieces"]  # type: ignore[no-any-return]


def _groups(offsets: NDArray[np.int64], at_once: int) -> list[int]:
    """The first row of each group of rows with few ids together, and how many rows there are. A long row is alone."""
    marks = np.searchsorted(offsets, np.arange(0, offsets[-1], at_once), "left").tolist()
    long = np.flatnonzero(np.diff(offsets) > at_once)
    return sorted({0, *marks, *long.tolist(), *(long + 1).tolist(), offsets.size - 1})
