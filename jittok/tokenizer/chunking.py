"""Texts cut to tokens, as methods of `Tokenizer`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from jittok.common.locks import once
from jittok.kernels.inputs import OneText, check_options, to_bytes
from jittok.tokenizer.hinting import hinted

if TYPE_CHECKING:
    import pyarrow as pa

    from jittok.chunks.texts.adjacent import Adjacent
    from jittok.chunks.texts.chunker import Chunker
    from jittok.chunks.texts.cutter import Joins, TokenSizes
    from jittok.chunks.texts.pieces import Piece, PieceRows
    from jittok.chunks.texts.preferred import By
    from jittok.common.display.progress import Show
    from jittok.common.pipeline import Pipeline
    from jittok.encode.cutters import EncodeOptions
    from jittok.encode.encoder import Encoder
    from jittok.kernels.inputs import Texts
    from jittok.vocab import Vocab


class Chunking:
    """What `Tokenizer` cuts texts with. A piece is cut so that it has at most `n` ids when it is encoded alone."""

    if TYPE_CHECKING:
        vocab: Vocab | Pipeline

        def _rule(self, add_special: bool, parse_special: bool, errors: str) -> tuple[Encoder, EncodeOptions]: ...

    @hinted
    def truncate(
        self, text: OneText, n: int, *, side: Literal["left", "right"] = "right", add_special: bool = False
    ) -> str:  # fmt: skip
        """The longest beginning of a text (`side="left"`: the longest end, the left is cut away) that alone has at most
        n ids. It ends at a grapheme cluster; where not one fits, at a character; where not one fits, it is empty.

        `add_special`: n counts the ids that it adds. Special tokens in the text are text. ValueError for n < 0 and any
        other side, EncodingFailed for a lone surrogate and for bytes that are invalid UTF-8.

        >>> import jittok
        >>> jittok.bundled("gpt-2").truncate("The compatibility of tokenizers", 2)
        'The compatibility'
        """
        return self._chunker(add_special).truncated(to_bytes(text), n, side)

    @hinted
    def chunks(
        self, text: OneText, n: int, *, overlap: int = 0, by: By = "token", add_special: bool = False
    ) -> list[Piece]:  # fmt: skip
        """The pieces of a text, in order, each as long as can be with at most n ids alone: it ends at the last boundary
        of a grapheme cluster up to which the text has at most n ids. A cluster of more ids is divided at characters.

        `by="line"`, `by="sentence"`: a piece ends at the last end of a line or sentence in it, if there is one.
        `overlap`: each piece begins so far before the end of the one before that what they share has at most `overlap`
        ids alone. Without it, the pieces joined are the text. `add_special`: n counts the ids that it adds.

        Each is a `Piece`: text; start, stop in characters; byte_start, byte_stop in bytes of UTF-8; count, its ids. The
        time is linear in the text. Raises ValueError for n < 1, for overlap >= n and for a character that alone has
        more than n ids; EncodingFailed for a lone surrogate and for bytes that are invalid UTF-8.

        >>> import jittok
        >>> tok = jittok.bundled("gpt-2")
        >>> [(piece.text, piece.start, piece.count) for piece in tok.chunks("One. Two three. Four.", 4, by="sentence")]
        [('One. ', 0, 3), ('Two three. ', 5, 4), ('Four.', 16, 2)]
        """
        from jittok.chunks.texts.chunker import Request

        return self._chunker(add_special).pieces(to_bytes(text), Request(n, overlap, by).checked())

    @hinted
    def chunks_batch(
        self, texts: Texts, n: int, *, overlap: int = 0, by: By = "token", add_special: bool = False,
        threads: int | None = None, progress: Show = False,
    ) -> PieceRows | pa.Array:  # fmt: skip
        """The pieces of many texts (as for `encode_batch`), the same as `chunks`: `PieceRows`, one row of pieces a text
        over flat arrays. Of an Arrow array: an Arrow array, `list<struct<text, start, stop, byte_start, byte_stop,
        count>>`. Nulls have no pieces. Raises as `chunks`, with the number of the text. `progress`: as for
        `encode_batch`."""
        from jittok.chunks.texts.chunker import Request

        rows = self._chunker(add_special).batch(texts, Request(n, overlap, by).checked(), threads, progress)
        return rows.to_arrow() if type(texts).__module__.partition(".")[0] == "pyarrow" else rows

    def _chunker(self, add_special: bool) -> Chunker:
        from jittok.chunks.texts.chunker import Chunker
        from jittok.chunks.texts.cutter import Cutter

        check_options(add_special, False, "strict")
        encoder, rule = self._rule(add_special, False, "strict")
        return Chunker(Cutter(encoder, rule, *self._chunk_tables))

    @once
    def _chunk_tables(self) -> tuple[Adjacent, TokenSizes, Joins]:
        """What is known of this vocabulary's tokens, made at the first text that is cut."""
        from jittok.chunks.texts.cutter import Cutter
        from jittok.chunks.texts.of_vocab import adjacent_of, joins_of, token_sizes

        adjacent = adjacent_of(self.vocab)
        sizes = token_sizes(self.vocab, adjacent)
        return adjacent, sizes, joins_of(Cutter(*self._rule(False, False, "strict"), adjacent, sizes))
