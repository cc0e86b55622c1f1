"""Facts about a vocabulary, under their public names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import once
from jittok.common.pipeline import Pipeline
from jittok.errors import InvalidToken
from jittok.vocab import NO_TOKEN, Vocab

SPECIAL_IDS = (
    "bos_id", "eos_id", "eot_id", "eom_id", "unk_id", "sep_id", "pad_id", "mask_id", "nl_id", "fim_prefix_id",
    "fim_suffix_id", "fim_middle_id", "fim_pad_id", "fim_rep_id", "fim_sep_id",
)  # fmt: skip
"""Names of the special ids that a tokenizer has."""


def or_none(token: int) -> int | None:
    """A special id, None if the vocabulary does not have it."""
    return None if token == NO_TOKEN else int(token)


class SpecialId:
    """A special id of the vocabulary under the same name; None when absent."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, holder: Facts, owner: Any = None) -> int | None:
        return self if holder is None else or_none(getattr(holder.vocab, self.name))


class Facts:
    """The facts of `self.vocab`, read-only. Special ids are None where the vocabulary has none."""

    vocab: Vocab | Pipeline
    _asked: dict[str, Any]

    bos_id = SpecialId()
    eos_id = SpecialId()
    eot_id = SpecialId()
    eom_id = SpecialId()
    unk_id = SpecialId()
    sep_id = SpecialId()
    pad_id = SpecialId()
    mask_id = SpecialId()
    fim_prefix_id = SpecialId()
    fim_suffix_id = SpecialId()
    fim_middle_id = SpecialId()
    fim_pad_id = SpecialId()
    fim_rep_id = SpecialId()
    fim_sep_id = SpecialId()

    @property
    def type(self) -> str:
        """One of spm, bpe, wpm, ugm, rwkv, plamo2, plamo3, none; of other files also words, word, char."""
        return self.vocab.type

    @property
    def pre(self) -> str | None:
        """tokenizer.ggml.pre of the file, or None."""
        return self.vocab.pre

    @property
    def llama_cpp(self) -> str | None:
        """The release of llama.cpp whose answers these are: "b11739" for example; None for files of other libraries."""
        return self.vocab.llama_cpp if isinstance(self.vocab, Vocab) else None

    @property
    def asked_llama_cpp(self) -> str | None:
        """The release that was passed to the call; None if none was, so the newest is used."""
        return self._asked["llama_cpp"]  # type: ignore[no-any-return]

    @property
    def asked_pre(self) -> str | None:
        """The `pre` that was passed instead of the file's, or None."""
        return self._asked["pre"]  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        """general.name of the file."""
        return self.vocab.name

    @property
    def vocab_size(self) -> int:
        """The number of tokens."""
        return len(self.vocab)

    def __len__(self) -> int:
        return len(self.vocab)

    @property
    def fingerprint(self) -> str:
        """32 hex digits of everything that can change an id or a piece."""
        return self.vocab.fingerprint

    @property
    def add_bos(self) -> bool:
        """Whether `add_special` adds BOS before a text (WordPiece always adds it)."""
        return bool(self.vocab.add_bos)

    @property
    def add_eos(self) -> bool:
        """Whether `add_special` adds EOS after a text."""
        return bool(self.vocab.add_eos)

    @property
    def add_sep(self) -> bool:
        """The file's add_sep_token. Encoding ignores it: WordPiece always ends with SEP."""
        return bool(self.vocab.add_sep)

    @property
    def add_space_prefix(self) -> bool:
        """Whether a space is added before texts (SPM, UGM); decoding removes it."""
        return bool(self.vocab.add_space_prefix)

    @property
    def eog_ids(self) -> frozenset[int]:
        """Ids that end a generation."""
        return frozenset(self.vocab.eog_ids)

    @once
    def special_ids(self) -> frozenset[int]:
        """Ids of control, unknown and user-defined tokens: all that can be found in a text as special tokens."""
        return frozenset(self.vocab.special_tokens.tolist())

    @property
    def scores(self) -> NDArray[np.float32]:
        """float32[n]: the scores of all tokens."""
        return self.vocab.scores

    @property
    def attributes(self) -> NDArray[np.int32]:
        """int32[n]: llama.cpp's attribute bits of all tokens."""
        return self.vocab.attributes

    @property
    def token_bytes(self) -> NDArray[np.uint8]:
        """uint8[bytes]: the concatenated texts of all tokens."""
        return self.vocab.token_bytes

    @property
    def token_offsets(self) -> NDArray[np.int64]:
        """int64[n + 1]: the offsets of the texts in `token_bytes`."""
        return self.vocab.token_offsets

    def id_to_token(self, id: int) -> bytes:  # noqa: A002
        """The text of one id as the vocabulary has it. Raises InvalidToken."""
        token = self._checked(id)
        return self.token_bytes[self.token_offsets[token] : self.token_offsets[token + 1]].tobytes()

    def token_to_id(self, token: str | bytes) -> int | None:
        """The id of a token's text, None if there is none."""
        if isinstance(token, str):
            token = token.encode("utf-8", "surrogatepass")
        if not isinstance(token, bytes | bytearray | memoryview):  # bytes(5) are five zeros
            raise TypeError(f"token: found {type(token).__name__}, expected str or bytes")
        return self.vocab.ids.get(bytes(token))

    def _checked(self, token: int) -> int:
        if isinstance(token, bool) or not isinstance(token, int | np.integer):
            raise TypeError(f"id: found {type(token).__name__}, expected int")
        if not 0 <= token < self.vocab_size:
            raise InvalidToken(int(token), self.vocab_size)
        return int(token)
