"""The fingerprint of a vocabulary: a hash of everything that determines ids, pieces and special-token rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok.common.digest import blake2b
from jittok.vocab.rows import ragged_bytes
from jittok.vocab.types import rules_of

VERSION = b"jittok vocabulary 1"
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
        ("shortest_utf8", vocab.shortest_utf8 and rules_of(vocab.type).reads_characters),
        ("adds_around", vocab.adds_around and vocab.model == "plamo2" and (vocab.add_bos or vocab.add_eos)),
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
