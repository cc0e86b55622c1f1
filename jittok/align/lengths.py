"""The number of bytes that each token covers.

Each token has two lengths, and both are *lower bounds*, whichever way the token was made. The tokens of a fragment
cover disjoint parts of it. So if the lower bounds add up to the whole fragment, each of them is exact, and no byte has
to be compared. Ids begin at -1 (an unknown token that the vocabulary lacks), so the entry of an id is at id + 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.characters import KMER_MARK, SPACE_MARK_0, SPACE_MARK_1, SPACE_MARK_2, SPACE_MARK_BYTES
from jittok.common.unicode.tables import BYTE_OF_CHARACTER
from jittok.kernels.jit import I32, U16, frozen
from jittok.kernels.models import rwkv
from jittok.kernels.pretokenize.definition import pre_type
from jittok.vocab import Vocab
from jittok.vocab.types import type_of

BYTE = 32
"""llama.cpp's attribute bit of byte tokens."""
DNA_BEGIN, DNA_END, DNA_UNKNOWN = b"<dna>", b"</dna>", b"<oov>"
_DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)


class Lengths(NamedTuple):
    """The least bytes that tokens cover; see the module's docstring."""

    source: U16  # [tokens + 1] bytes of the original text, where U+2581 is one space; capped, which is still a bound
    output: I32  # [tokens + 1] bytes of the rewritten text that is tokenized
    direct: int  # 1: `source` is usable


def build_lengths(vocab: Vocab) -> Lengths:
    """The lengths of the tokens of any vocabulary; linear in its bytes."""
    way = type_of(vocab).alignment
    output, source = _WAYS[way.lengths](vocab)
    unknown = way.unknown
    return Lengths(
        _entries(np.zeros_like(output) if source is None else source, unknown, np.uint16),
        _entries(output, unknown, np.int32),
        int(source is not None),
    )


def _entries(lengths: NDArray[np.int64], unknown: int, dtype: type[np.uint16 | np.int32]) -> NDArray[Any]:
    return frozen(np.minimum(np.concatenate([[unknown], lengths]), np.iinfo(dtype).max), dtype)


def is_dna(vocab: Vocab) -> bool:
    """Whether the vocabulary treats <dna> ... </dna> specially."""
    return vocab.model == "hybriddna" and all(find_key(vocab, key) >= 0 for key in (DNA_BEGIN, DNA_END, DNA_UNKNOWN))


def find_key(vocab: Vocab, key: bytes) -> int:
    """The id of a text, or -1; does not build the vocabulary's dict."""
    return int(np.append(_equal_keys(vocab, key), -1)[0])


def _equal_keys(vocab: Vocab, key: bytes) -> NDArray[np.int64]:
    """int64[n]: the tokens that have this key."""
    found = np.flatnonzero(np.diff(vocab.key_offsets) == len(key))
    positions = vocab.key_offsets[found][:, None] + np.arange(len(key))
    equal: NDArray[np.bool_] = (vocab.key_bytes[positions] == np.frombuffer(key, np.uint8)).all(axis=1)
    return found[equal]


def _hex_tokens(vocab: Vocab) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(ids, bytes): the tokens <0x00> to <0xFF>."""
    found = np.flatnonzero(np.diff(vocab.key_offsets) == 6)
    texts = vocab.key_bytes[vocab.key_offsets[found][:, None] + np.arange(6)]
    right = (texts[:, [0, 1, 2, 5]] == np.frombuffer(b"<0x>", np.uint8)).all(axis=1)
    right &= np.isin(texts[:, 3:5], _DIGITS).all(axis=1)
    digits = np.searchsorted(_DIGITS, texts[right, 3:5]).astype(np.int64)
    return found[right], digits[:, 0] << 4 | digits[:, 1]


def _marks(vocab: Vocab) -> NDArray[np.int64]:
    """int64[tokens]: the number of U+2581 in each text."""
    data, offsets = vocab.key_bytes, vocab.key_offsets
    here = np.zeros(data.size + 1, np.int64)
    if data.size >= len(SPACE_MARK_BYTES):
        begins = (data[:-2] == SPACE_MARK_0) & (data[1:-1] == SPACE_MARK_1) & (data[2:] == SPACE_MARK_2)
        np.cumsum(begins, out=here[1 : begins.size + 1])
        here[begins.size + 1 :] = here[begins.size]
    starts, stops = offsets[:-1], np.maximum(offsets[1:] - 2, offsets[:-1])
    counts: NDArray[np.int64] = here[stops] - here[starts]
    return counts


def _single_bytes(vocab: Vocab) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(ids, bytes): the tokens of one byte."""
    found = np.flatnonzero(np.diff(vocab.key_offsets) == 1)
    return found, vocab.key_bytes[vocab.key_offsets[found]].astype(np.int64)


def _bpe(vocab: Vocab) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    pre = pre_type(vocab.pre_type)
    encoded = pre.byte_encode
    if encoded:
        output = _alphabet_lengths(vocab)
    else:
        output = np.diff(vocab.key_offsets)
        ids, bytes_ = _hex_tokens(vocab)
        output[ids] = 1
    if vocab.model == "whitespace" or (encoded and vocab.escape_whitespaces) or pre.begin_lines:
        return output, None
    source = output.copy()
    if vocab.escape_whitespaces:  # not byte-level
        source -= 2 * _marks(vocab)
        source[ids] = 1
        # a symbol that is no token becomes byte tokens, and a space in it these three
        source[ids[np.isin(bytes_, np.frombuffer(SPACE_MARK_BYTES, np.uint8))]] = 0
    if is_dna(vocab):  # the last k-mer may have a single letter
        source[_equal_keys(vocab, DNA_UNKNOWN)] = int(not vocab.escape_whitespaces)  # a space counts as three letters
        ends = vocab.key_offsets[1:]
        kmers = ends - vocab.key_offsets[:-1] >= len(KMER_MARK)
        for k, byte in enumerate(reversed(KMER_MARK)):
            kmers &= vocab.key_bytes[np.maximum(ends - 1 - k, 0)] == byte
        source[kmers] = 0
    return output, source


def _alphabet_lengths(vocab: Vocab) -> NDArray[np.int64]:
    """int64[tokens]: the number of bytes that each byte-level text means; 0 for other texts, which no whole word
    becomes."""
    from jittok.kernels.models.bpe.compile import decode_texts  # here, so that other types do not import BPE

    byte_of = np.full(0x200, -1, np.int32)
    byte_of[list(BYTE_OF_CHARACTER)] = list(BYTE_OF_CHARACTER.values())
    raw, ends = np.empty(vocab.key_bytes.size, np.uint8), np.zeros(len(vocab) + 1, np.int64)
    ids, lengths = np.empty(len(vocab), np.int32), np.zeros(len(vocab), np.int64)
    data, offsets = frozen(vocab.key_bytes, np.uint8), frozen(vocab.key_offsets, np.int64)
    count = decode_texts(data, offsets, frozen(byte_of, np.int32), raw, ends, ids)
    lengths[ids[:count]] = np.diff(ends[: count + 1])
    return lengths


def _spm(vocab: Vocab) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    output = np.diff(vocab.key_offsets)
    hex_ids, hex_bytes = _hex_tokens(vocab)
    ids, bytes_ = _single_bytes(vocab)
    output[hex_ids] = 1
    if vocab.unk_id >= 0 and np.union1d(hex_bytes, bytes_[bytes_ > 0]).size < 256:
        output[vocab.unk_id] = 1  # errors="replace": it replaces a byte that has no token
    source = output - 2 * _marks(vocab)
    source[output == 1] = 1
    if not _equal_keys(vocab, SPACE_MARK_BYTES).size:  # a space becomes three byte tokens, which cover it together
        for tokens, values in ((hex_ids, hex_bytes), (ids, bytes_)):
            source[tokens[np.isin(values, np.frombuffer(SPACE_MARK_BYTES, np.uint8))]] = 0
        if vocab.unk_id >= 0:
            source[vocab.unk_id] = 0  # errors="replace": it may replace one of them
    return output, source


def _rwkv(vocab: Vocab) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    output = np.diff(rwkv.pieces(vocab)[1])
    source = output.copy()
    if vocab.unk_id >= 0:
        source[vocab.unk_id] = min(source[vocab.unk_id], 1)
    return output, source


def _texts(vocab: Vocab) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    output = np.where(vocab.file_attributes & BYTE, 1, np.diff(vocab.token_offsets))
    return output, output


_WAYS: dict[str, Callable[[Vocab], tuple[NDArray[np.int64], NDArray[np.int64] | None]]] = {
    "symbols": _bpe,
    "scored": _spm,
    "unescaped": _rwkv,
    "texts": _texts,
    "texts only": lambda vocab: (np.diff(vocab.token_offsets), None),
    "keys only": lambda vocab: (np.diff(vocab.key_offsets), None),
}
"""By `AlignmentRules.lengths`: functions that return (output, source or None) as in `Lengths`, without that of -1."""
