"""Facts of a vocabulary as attributes of its `Tokenizer`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from jittok.vocab import NO_TOKEN

if TYPE_CHECKING:
    from jittok.tokenizer.tokenizer import Tokenizer

T = TypeVar("T")
KERNELS = "kernels"
"""Value of `Tokenizer.runs` for a vocabulary that compiled code encodes."""
SPECIAL_IDS = (
    "bos_id", "eos_id", "eot_id", "eom_id", "unk_id", "sep_id", "pad_id", "mask_id", "nl_id", "fim_prefix_id",
    "fim_suffix_id", "fim_middle_id", "fim_pad_id", "fim_rep_id", "fim_sep_id",
)  # fmt: skip
"""Names of the special ids that a tokenizer has."""


def or_none(token: int) -> int | None:
    """A special id, None if the vocabulary does not have it."""
    return None if token == NO_TOKEN else int(token)


class Fact(Generic[T]):
    """A fact of the vocabulary under the same name, read-only."""

    def __init__(self, doc: str, kind: Callable[[Any], T] | None = None) -> None:
        self.__doc__, self._kind = doc, kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, holder: None, owner: Any) -> Fact[T]: ...
    @overload
    def __get__(self, holder: Tokenizer, owner: Any) -> T: ...
    def __get__(self, holder: Tokenizer | None, owner: Any = None) -> Fact[T] | T:
        if holder is None:
            return self
        found = getattr(holder.vocab, self._name)
        return found if self._kind is None else self._kind(found)

    def __set__(self, holder: Tokenizer, value: object) -> NoReturn:
        raise AttributeError(f"Tokenizer.{self._name}: tokenizers are immutable")


class Facts:
    """Those facts; special ids are None where the vocabulary has none."""

    bos_id = Fact("The token that begins a text.", or_none)
    eos_id = Fact("The token that ends a text.", or_none)
    eot_id = Fact("The token that ends a turn.", or_none)
    eom_id = Fact("The token that ends a message.", or_none)
    unk_id = Fact("The token that stands for what the vocabulary cannot spell.", or_none)
    sep_id = Fact("The token that separates texts.", or_none)
    pad_id = Fact("The token that pads rows.", or_none)
    mask_id = Fact("The token that masks a word.", or_none)
    fim_prefix_id = Fact("The token that precedes the text before a gap.", or_none)
    fim_suffix_id = Fact("The token that precedes the text after a gap.", or_none)
    fim_middle_id = Fact("The token that precedes the text of a gap.", or_none)
    fim_pad_id = Fact("The token that pads a gap.", or_none)
    fim_rep_id = Fact("The token that precedes a repository.", or_none)
    fim_sep_id = Fact("The token that separates files.", or_none)
    type = Fact[str]("One of spm, bpe, wpm, ugm, rwkv, plamo2, plamo3, none; of other files also words, word, char.")
    pre = Fact["str | None"]("tokenizer.ggml.pre of the file, or None.")
    name = Fact[str]("general.name of the file.")
    fingerprint = Fact[str]("32 hex digits of everything that can change an id or a piece.")
    add_bos = Fact("Whether `add_special` adds BOS before a text (WordPiece always adds it).", bool)
    add_eos = Fact("Whether `add_special` adds EOS after a text.", bool)
    add_sep = Fact("The file's add_sep_token. Encoding ignores it: WordPiece always ends with SEP.", bool)
    add_space_prefix = Fact("Whether a space is added before texts (SPM, UGM); decoding removes it.", bool)
    eog_ids = Fact[frozenset[int]]("Ids that end a generation.", frozenset)
    scores = Fact[NDArray[np.float32]]("float32[n]: the scores of all tokens.")
    attributes = Fact[NDArray[np.int32]]("int32[n]: llama.cpp's attribute bits of all tokens.")
    token_bytes = Fact[NDArray[np.uint8]]("uint8[bytes]: the concatenated texts of all tokens.")
    token_offsets = Fact[NDArray[np.int64]]("int64[n + 1]: the offsets of the texts in `token_bytes`.")
