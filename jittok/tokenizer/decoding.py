"""Ids to text: what a Tokenizer decodes with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from jittok._jit import when_long
from jittok.compiled import keep, recall
from jittok.inputs import to_ids
from jittok.locks import once
from jittok.pipeline import Pipeline
from jittok.rows import TokenArray
from jittok.tokenizer.meanwhile import piece_meanwhile, texts_meanwhile
from jittok.tokenizer.other_files import OtherFiles
from jittok.vocab.types import rules_of

if TYPE_CHECKING:
    from jittok.decode.pieces import Pieces
    from jittok.decode.rows import Decoder
    from jittok.decode.stream import StreamDecoder


class Decoding(OtherFiles):
    """The part of `Tokenizer` that turns ids into text."""

    _key: str | None
    _may_wait: bool  # whether kernels may still have to be compiled: those of encoding
    _text_may_wait: bool  # and those of decoding

    def _wait_for_kernels(self) -> None:
        """From now on the kernels are compiled, however little there is to do (see `encode.meanwhile`)."""
        self._may_wait = self._text_may_wait = False

    def decode_bytes(
        self,
        ids: ArrayLike | Iterable[int],
        *,
        remove_special: bool = False,
        unparse_special: bool = False,
        skip_special: bool | None = None,
    ) -> bytes:
        """The bytes of ids, as llama.cpp's detokenize or the file's own decoder. Raises InvalidToken.

        `remove_special` drops what `add_special` has put around, `skip_special` the text of special tokens everywhere.
        Left out, it is as in the file's library: special tokens of a GGUF vocabulary print nothing unless
        `unparse_special` is set, those of other files print their text.
        """
        return bytes(self._decoded(ids, remove_special, unparse_special, skip_special))

    def _decoded(
        self, ids: ArrayLike | Iterable[int], remove_special: bool, unparse_special: bool, skip_special: bool | None
    ) -> bytes | bytearray:
        if not rules_of(self.type).has_tokens:
            return b""
        known = to_ids(ids, self.vocab_size)
        prints = self._prints_special(unparse_special, skip_special)
        if self._text_may_wait:
            texts = texts_meanwhile(self.gguf("pieces"), [known], known.size, remove_special, prints)
            if texts is not None:
                return texts[0]
            self._text_may_wait = False
        decoder = self._decoder
        frame = decoder.frame(remove_special, prints)
        return when_long(known.nbytes)(decoder.one, known, frame)  # type: ignore[no-any-return]

    def decode(
        self,
        ids: ArrayLike | Iterable[int],
        *,
        errors: str = "replace",
        remove_special: bool = False,
        unparse_special: bool = False,
        skip_special: bool | None = None,
    ) -> str:
        """The text of ids; `errors` as for bytes.decode, the rest as for `decode_bytes`."""
        return self._decoded(ids, remove_special, unparse_special, skip_special).decode("utf-8", errors)

    def decode_batch(
        self,
        rows: TokenArray | Iterable[ArrayLike],
        *,
        errors: str = "replace",
        remove_special: bool = False,
        unparse_special: bool = False,
        skip_special: bool | None = None,
    ) -> list[str]:
        """The text of each row of a TokenArray (or of any sequence of rows of ids)."""
        if not rules_of(self.type).has_tokens:
            return [""] * sum(1 for _ in rows)
        if not isinstance(rows, TokenArray):
            parts = [to_ids(row, self.vocab_size) for row in rows]
            ids = np.concatenate(parts) if parts else np.zeros(0, np.int32)
            rows = TokenArray(ids, np.cumsum([0, *(part.size for part in parts)]))
        prints = self._prints_special(unparse_special, skip_special)
        if self._text_may_wait:
            texts = texts_meanwhile(self.gguf("pieces"), rows, rows.ids.size + len(rows), remove_special, prints)
            if texts is not None:
                return [part.decode("utf-8", errors) for part in texts]
            self._text_may_wait = False
        decoder = self._decoder
        frame = decoder.frame(remove_special, prints)
        text, ends = when_long(rows.ids.nbytes)(decoder.rows, rows.ids, rows.offsets, frame)
        raw, start, out = text.tobytes(), 0, []
        for end in ends.tolist():
            out.append(raw[start:end].decode("utf-8", errors))
            start = end
        return out

    def stream_decoder(
        self, *, errors: str = "replace", remove_special: bool = False, unparse_special: bool = False
    ) -> StreamDecoder:
        """Text from ids one at a time; what `push` and `finish` give, joined, is what `decode` gives."""
        from jittok.decode.stream import StreamDecoder

        if isinstance(self.vocab, Pipeline):
            return self._general.stream(errors, remove_special, self._prints_special(unparse_special, None))
        frame = self._decoder.frame(remove_special, unparse_special)
        return StreamDecoder(lambda token: self.token_to_piece(token, special=unparse_special), frame, errors)

    def token_to_piece(self, id: int, *, lstrip: int = 0, special: bool = False) -> bytes:  # noqa: A002  llama.cpp's
        """What one id prints, without up to `lstrip` spaces in front. Special tokens print nothing unless `special`."""
        token = self._checked(id)
        if isinstance(self.vocab, Pipeline):
            return b"" if not special and token in self.special_ids else self._general.piece(token, lstrip)
        if self._text_may_wait:
            plain = piece_meanwhile(self.gguf("pieces"), token, lstrip, bool(special))
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
        if isinstance(self.vocab, Pipeline):
            return self._general  # type: ignore[return-value]
        from jittok.decode.rows import Decoder

        return Decoder(self.vocab, self._pieces)

    @once
    def _pieces(self) -> Pieces:
        from jittok.decode.pieces import build_pieces

        vocab = self.gguf("pieces")
        if self._key is None:
            return build_pieces(vocab)
        kept = recall(self._key, "pieces")
        known = kept and kept.part("pieces")
        if not known:
            known = {"pieces": build_pieces(vocab)}
            keep(self._key, "pieces", known)
        return known["pieces"]  # type: ignore[no-any-return]
