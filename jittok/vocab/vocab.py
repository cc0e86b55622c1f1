"""A vocabulary as data: the state of llama.cpp after loading, before anything is compiled.

`vocab.load` fills a `Vocab`. All other packages read it. Big fields are flat arrays, so compiling needs no Python
object per token. `tokens`, `ids` and `merges` are the same data as Python objects, built on first use. The reference,
the traces and small vocabularies use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.digest import blake2b
from jittok.common.locks import once
from jittok.common.pipeline.pipeline import ragged_bytes
from jittok.common.record import Record
from jittok.vocab.releases import FLAGS_SINCE, NEWEST
from jittok.vocab.types import type_named

if TYPE_CHECKING:
    from jittok.vocab.as_pipeline import GgufPipeline

NO_TOKEN = -1
"""A special id that the vocabulary does not have."""
VERSION = b"jittok vocabulary 1"
"""Begins what a fingerprint hashes."""
_FIELDS = [
    "model",
    "type",
    "pre_type",
    "bos_id",
    "eos_id",
    "eot_id",
    "eom_id",
    "unk_id",
    "sep_id",
    "pad_id",
    "mask_id",
    "fim_prefix_id",
    "fim_suffix_id",
    "fim_middle_id",
    "fim_pad_id",
    "fim_rep_id",
    "fim_sep_id",
    "default_unk_id",
    "default_pad_id",
    "add_bos",
    "add_eos",
    "add_sep",
    "add_space_prefix",
    "ignore_merges",
    "clean_spaces",
    "escape_whitespaces",
    "remove_extra_whitespaces",
    "treat_whitespace_as_suffix",
    "lowercase",
    "strip_accents",
]
_ARRAYS = [
    "token_bytes",
    "token_offsets",
    "key_bytes",
    "key_offsets",
    "attributes",
    "file_attributes",
    "piece_attributes",
    "special_tokens",
    "charsmap",
]


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


def fingerprint(vocab: Any) -> str:
    """32 hex digits over the canonical content of a `Vocab`.

    Not included:
    - the path of the file;
    - names (the attributes hold what names decide), other keys, and the order of keys;
    - merge lines that repeat or can never match (only the order of ranks counts);
    - the sign of a zero score.
    """
    digest = blake2b(VERSION, digest_size=16)

    def add(name: str, content: bytes) -> None:
        digest.update(f"{name} {len(content)}\n".encode() + content)

    for name in _FIELDS:
        add(name, repr(getattr(vocab, name)).encode())
    for name, matters in _since_the_first_release(vocab):
        if matters:
            add(name, b"True")
    add("eog_ids", repr(sorted(vocab.eog_ids)).encode())
    for name in _ARRAYS:
        array = np.ascontiguousarray(getattr(vocab, name))
        add(name, array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
    add("scores", (vocab.scores + np.float32(0)).astype("<f4").tobytes())
    add("merges", _canonical_merges(vocab))
    return digest.hexdigest()


def _since_the_first_release(vocab: Any) -> tuple[tuple[str, bool], ...]:
    """Differences of llama.cpp's releases that can change an answer for a vocabulary. The oldest release adds nothing,
    so that recorded fingerprints stay valid."""
    return (
        ("shortest_utf8", vocab.shortest_utf8 and type_named(vocab.type).reads_characters),
        ("adds_around", vocab.adds_around and vocab.model in FLAGS_SINCE and (vocab.add_bos or vocab.add_eos)),
        ("nfc", vocab.nfc),
    )


def _canonical_merges(vocab: Any) -> bytes:
    """The merge lines that can match, each once, in order, after the length of their left part.

    No symbol of a word holds a space, so a pair with a space never matches. Without such pairs the spaces between the
    parts say where a line ends, whatever else is in them. A line holds one pair (split_merge): lines are compared.
    """
    lines = [line for line in ragged_bytes(vocab.merge_bytes, vocab.merge_offsets) if line.count(b" ") == 1]
    cuts = [line.find(b" ") for line in lines]
    kept = [b"%d %s" % (cut, line) for cut, line in zip(cuts, lines, strict=True) if 0 < cut < len(line) - 1]
    return b"\n".join(dict.fromkeys(kept))
