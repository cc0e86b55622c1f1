"""Many texts to ids, as methods of `Tokenizer`: plain rows, or rows cut for training."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast, overload

from jittok.errors import refuse_keywords

if TYPE_CHECKING:
    from jittok.chunks.cutting import AddSpecial, Truncation
    from jittok.chunks.rows import Rows
    from jittok.common.display.progress import Show
    from jittok.common.rows import TokenArray
    from jittok.kernels.inputs import Errors, Texts
    from jittok.tokenizer.tokenizer import Tokenizer


class Batching:
    """Batches of texts."""

    @overload
    def encode_batch(
        self, texts: Texts, pairs: Texts | None = None, *, max_length: int, add_special: bool | AddSpecial = False,
        parse_special: bool = False, errors: Errors = "strict", threads: int | None = None, progress: Show = False,
        overlap: int = 0, truncation: bool | Truncation | None = None, side: Literal["right", "left"] = "right",
        windows: bool = False,
    ) -> Rows: ...  # fmt: skip
    @overload
    def encode_batch(
        self, texts: Texts, pairs: Texts, *, max_length: int | None = None, add_special: bool | AddSpecial = False,
        parse_special: bool = False, errors: Errors = "strict", threads: int | None = None, progress: Show = False,
        overlap: int = 0, truncation: bool | Truncation | None = None, side: Literal["right", "left"] = "right",
        windows: bool = False,
    ) -> Rows: ...  # fmt: skip
    @overload
    def encode_batch(
        self, texts: Texts, *, add_special: bool = False, parse_special: bool = False, errors: Errors = "strict",
        threads: int | None = None, progress: Show = False,
    ) -> TokenArray: ...  # fmt: skip
    @overload
    def encode_batch(
        self, texts: Texts, pairs: Texts | None = None, *, max_length: int | None = None,
        add_special: bool | AddSpecial = False, parse_special: bool = False, errors: Errors = "strict",
        threads: int | None = None, progress: Show = False, overlap: int = 0,
        truncation: bool | Truncation | None = None, side: Literal["right", "left"] = "right", windows: bool = False,
    ) -> TokenArray | Rows: ...  # fmt: skip
    def encode_batch(
        self, texts: Texts, pairs: Texts | None = None, *, add_special: bool | AddSpecial = False,
        parse_special: bool = False, errors: Errors = "strict", threads: int | None = None, progress: Show = False,
        max_length: int | None = None, overlap: int = 0, truncation: bool | Truncation | None = None,
        side: Literal["right", "left"] = "right", windows: bool = False, **others: NoReturn,
    ) -> TokenArray | Rows:  # fmt: skip
        """One row a text, the same ids as `encode`. Raises EncodingFailed as that does, with the number of the text.

        `texts`: a sequence or iterator of str or bytes, a NumPy array, a pandas or polars Series, a pyarrow string or
        binary array, `Ragged`; nulls of tables are empty rows. What others may write to is copied a stretch at a time.
        `threads=None`: every core this process may use. `progress`: True, "auto" or a function shows how far it is (a
        line of a terminal, a bar of a notebook, a line a minute of a log).

        Rows for training are `Rows`, by tokenizers' rules. `pairs`: a second text for each row, which the file's
        template joins. `max_length`: the most ids of a row, with its special tokens; a longer text is cut, or with
        `windows=True` becomes several rows, which share `overlap` ids. `truncation` says which text of a pair loses
        ids: "longest_first" (None, True), "only_first", "only_second"; False cuts nothing. `side`: where ids are lost,
        and at which end windows stop. `add_special`: special tokens around each row (True, "window"), or once around
        all windows of a text ("document"). ValueError for a `max_length` smaller than the special tokens, for an
        `overlap` of a whole window, and for a text that `truncation` cannot make short enough.

        >>> import jittok
        >>> tok = jittok.bundled("gpt-2")
        >>> tok.encode_batch(["one two three four five"], max_length=3, overlap=1, windows=True).to_list()
        [[505, 734, 1115], [1115, 1440, 1936]]
        """
        if others:
            refuse_keywords(self.encode_batch, others)
        tok = cast("Tokenizer", self)
        asked_for_rows = overlap or windows or truncation or side != "right"
        if pairs is None and max_length is None and not isinstance(add_special, str) and not asked_for_rows:
            return _plain(tok, texts, add_special, parse_special, errors, threads, progress)
        from jittok.chunks.cutting import Calls, RowOptions, encode_rows

        how: dict[str, Any] = {"parse_special": parse_special, "errors": errors, "threads": threads}
        calls = Calls(
            tok.vocab, partial(tok.encode_batch, progress=progress, **how),
            lambda texts, unit: tok.align_batch(texts, unit=unit, **how), tok.describe, threads,
        )  # fmt: skip
        return encode_rows(texts, pairs, RowOptions(add_special, max_length, overlap, truncation, side, windows), calls)


def _plain(
    tok: Tokenizer, texts: Texts, add_special: bool, parse_special: bool, errors: Errors, threads: int | None,
    progress: Show,
) -> TokenArray:  # fmt: skip
    """One row a text."""
    from jittok.encode.threads.batch import encode_batch

    meanwhile = tok._rows_meanwhile(texts, add_special, parse_special, errors)
    if meanwhile is not None:
        return meanwhile.described_by(tok.describe, tok.pad_id)
    encoder, rule = tok._rule(add_special, parse_special, errors)
    rows = tok._few(encoder, texts, rule, threads, progress, add_special, parse_special, errors)
    if rows is None:
        rows = encode_batch(encoder, texts, rule, threads, progress)
    return rows.described_by(tok.describe, tok.pad_id).surrounded_by(*rule.around)
