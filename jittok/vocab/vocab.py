"""A vocabulary as data: the state of llama.cpp after loading, before anything is compiled.

`vocab.load` fills a `Vocab`. All other packages read it. Big fields are flat arrays, so compiling needs no Python
object per token. `tokens`, `ids` and `merges` are the same data as Python objects, built on first use. The reference,
the traces and small vocabularies use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import once
from jittok.common.record import Record
from jittok.vocab.fingerprint import fingerprint
from jittok.vocab.releases import NEWEST
from jittok.vocab.rows import ragged_bytes

if TYPE_CHECKING:
    from jittok.vocab.as_pipeline import GgufPipeline

__all__ = ["NO_TOKEN", "Vocab", "ragged_bytes", "split_merge"]

NO_TOKEN = -1
"""A special id that the vocabulary does not have."""


class Vocab(Record, eq=False):
    """The content of the file, checked and completed as llama.cpp does. All arrays are read-only."""

    source: str  # the file's path, or "vocabulary in memory"
    model: str  # tokenizer.ggml.model: "llama", "gpt2", "bert", ...
    type: str  # "spm" "bpe" "wpm" "ugm" "rwkv" "plamo2" "plamo3" "test" "none"
    pre: str | None  # tokenizer.ggml.pre of the file, or what was passed instead
    pre_type: int  # llama.cpp's enumeration; 0 where it has no meaning
    name: str  # general.name
    architecture: str  # general.architecture

    token_bytes: NDArray[np.uint8]  # uint8[bytes] texts of all tokens, id -> text
    token_offsets: NDArray[np.int64]  # int64[tokens + 1]
    key_bytes: NDArray[np.uint8]  # text -> id: the same arrays but for model "hybriddna", whose k-mers keep a mark
    key_offsets: NDArray[np.int64]
    scores: NDArray[np.float32]  # float32[tokens]
    attributes: NDArray[np.int32]  # int32[tokens] llama.cpp's bits after all rewriting, LSTRIP and RSTRIP included
    file_attributes: NDArray[np.int32]  # int32[tokens] before any rewriting: UGM's and PLaMo-2's tables see these
    piece_attributes: NDArray[np.int32]  # int32[tokens] when pieces are made: after rewriting, before LSTRIP and RSTRIP
    merge_bytes: NDArray[np.uint8]  # uint8[bytes] lines of the merge list, "left right"
    merge_offsets: NDArray[np.int64]  # int64[merges + 1]; empty merges: [0]
    charsmap: NDArray[np.uint8]  # uint8[bytes] precompiled_charsmap; empty when absent

    special_tokens: NDArray[np.int32]  # int32[k] ids that the partition searches for, in llama.cpp's order
    eog_ids: frozenset[int] = frozenset()
    suppressed_ids: tuple[int, ...] = ()

    bos_id: int = NO_TOKEN
    eos_id: int = NO_TOKEN
    eot_id: int = NO_TOKEN
    eom_id: int = NO_TOKEN
    unk_id: int = NO_TOKEN
    sep_id: int = NO_TOKEN
    pad_id: int = NO_TOKEN
    mask_id: int = NO_TOKEN
    fim_prefix_id: int = NO_TOKEN
    fim_suffix_id: int = NO_TOKEN
    fim_middle_id: int = NO_TOKEN
    fim_pad_id: int = NO_TOKEN
    fim_rep_id: int = NO_TOKEN
    fim_sep_id: int = NO_TOKEN
    default_unk_id: int = NO_TOKEN  # the type's default, with which the newline id is found
    default_pad_id: int = NO_TOKEN  # the type's default, which the newline id falls back to

    add_bos: bool = False
    add_eos: bool = False
    add_sep: bool = False
    add_space_prefix: bool = False
    ignore_merges: bool = False
    clean_spaces: bool = False
    escape_whitespaces: bool = True
    remove_extra_whitespaces: bool = False
    treat_whitespace_as_suffix: bool = False
    lowercase: bool = True
    strip_accents: bool = True
    max_token_length: int = 0  # bytes of the longest token

    llama_cpp: str = NEWEST  # the release whose answers these are, see `releases`
    shortest_utf8: bool = True  # overlong forms and values above U+10FFFF are bad bytes
    adds_around: bool = True  # add_bos and add_eos are obeyed: releases before b11739 did not for PLaMo-2
    nfc: bool = False  # Unigram: each fragment is normalized to NFC first

    def __len__(self) -> int:
        return self.token_offsets.size - 1

    def __repr__(self) -> str:
        return f"Vocab({self.source!r}, {self.type}, pre={self.pre!r}, {len(self)} tokens)"

    @once
    def tokens(self) -> list[bytes]:
        """Texts in id order."""
        return ragged_bytes(self.token_bytes, self.token_offsets)

    @once
    def keys(self) -> list[bytes]:
        """Texts in id order as `ids` knows them."""
        if self.key_bytes is self.token_bytes:
            return self.tokens
        return ragged_bytes(self.key_bytes, self.key_offsets)

    @once
    def ids(self) -> dict[bytes, int]:
        """text -> id, one to one."""
        return {key: i for i, key in enumerate(self.keys)}

    @once
    def merges(self) -> dict[tuple[bytes, bytes], int]:
        """(left, right) -> rank, the first line of a pair. Source: llama.cpp's BPE loading; see `split_merge`."""
        ranks: dict[tuple[bytes, bytes], int] = {}
        for rank, line in enumerate(ragged_bytes(self.merge_bytes, self.merge_offsets)):
            ranks.setdefault(split_merge(line), rank)
        return ranks

    @property
    def unknown_id(self) -> int:
        """The unknown token, `unk_id`, under its name in other files."""
        return self.unk_id

    @once
    def pipeline(self) -> GgufPipeline:
        """llama.cpp's steps as data, in the same form as for other files."""
        from jittok.vocab.as_pipeline import make_pipeline

        return make_pipeline(self)

    @once
    def fingerprint(self) -> str:
        """32 hex digits over everything that can change an id, a piece or a special-token rule."""
        return fingerprint(self)


def split_merge(line: bytes) -> tuple[bytes, bytes]:
    """The two parts of a merge line: cut at the first space after byte 0; without one, a pair that never matches."""
    cut = line.find(b" ", 1)
    return (line[:cut], line[cut + 1 :]) if cut >= 0 else (b"", b"")
