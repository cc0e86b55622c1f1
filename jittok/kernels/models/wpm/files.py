"""WordPiece of files other than GGUF with BertNormalizer, compiled to the arrays of WordPiece.

In such a file, tokens that continue a word begin with `##`. In a GGUF, tokens that begin a word begin with U+2581, and
those that continue one have no prefix; the tokens are rewritten to that form. U+2581 itself is an ordinary character in
such a file, so it is replaced by one that no token has.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import NO_TOKEN, WordPiece
from jittok.common.unicode.characters import SPACE_MARK, SPACE_MARK_BYTES
from jittok.kernels.jit import frozen
from jittok.kernels.models.wpm.alphabet import NONE, AlphabetKeys, build_alphabet
from jittok.kernels.models.wpm.bert import bert_flags, characters
from jittok.kernels.models.wpm.compile import BYTES_PER_BYTE, WpmArrays, span_rules
from jittok.kernels.pretoken_cache.span_loop import NO_LIMIT
from jittok.kernels.pretoken_cache.tables import LONGEST_SHORT
from jittok.kernels.safe_cuts.cuts import ILL

STRANGER = "\U0010ffff"
"""The replacement of U+2581; its own replacement is U+10FFFE. No token may contain either."""
MARK, INSTEAD, STRANGEST = ord(SPACE_MARK), ord(STRANGER), ord(STRANGER) - 1


def compile_pipeline(pipeline: Pipeline, odd: bool = True) -> WpmArrays | None:
    """The arrays of such a file, or None for any other. odd: whether texts with marks that may be reordered are left to
    Python; false for texts that are normalized already."""
    model, flags = pipeline.model, bert_flags(pipeline)
    if not isinstance(model, WordPiece) or flags is None or any(token.normalized for token in pipeline.added):
        return None
    if model.unknown == NO_TOKEN:
        return None  # then an unknown word is an error
    prefix = model.prefix.encode()
    # no word begins with punctuation and goes on, so a token with this prefix always continues a word
    punctuation = all(chr(byte).isascii() and 32 < byte < 127 and not chr(byte).isalnum() for byte in prefix)
    if len(prefix) < 2 or not punctuation or model.longest < LONGEST_SHORT:
        return None
    whole = pipeline.model_bytes.tobytes()
    if STRANGER.encode() in whole or chr(STRANGEST).encode() in whole:
        return None
    keys = _keys_of(pipeline.model_bytes, pipeline.model_offsets, prefix)
    table = characters(flags)
    points = np.append(table.points, [MARK, INSTEAD])
    images = np.append(np.where(table.images == MARK, INSTEAD, table.images), [INSTEAD, STRANGEST])
    kinds = table.kinds
    alphabet = build_alphabet(keys, points, images, kinds, table.several, table.odd if odd else NONE.points)
    rules = span_rules(kinds)
    three = rules.three.copy()
    three[0xD800:0xE000] = ILL  # surrogates are invalid UTF-8, as all that the splitter has to find
    rules = rules._replace(three=frozen(three, np.uint8))
    if alphabet is None or not rules.cuts.any():
        return None
    return WpmArrays(model.unknown, keys.size, alphabet, rules, NO_LIMIT, BYTES_PER_BYTE, 0, 1, model.longest)


def _keys_of(data: NDArray[np.uint8], offsets: NDArray[np.int64], prefix: bytes) -> AlphabetKeys:
    """The tokens in the form of a GGUF, as keys of an alphabet. data, offsets: concatenated texts of valid UTF-8."""
    whole = data.tobytes()
    if SPACE_MARK_BYTES in whole:
        first, second, third = SPACE_MARK_BYTES
        marks = np.flatnonzero((data[:-2] == first) & (data[1:-1] == second) & (data[2:] == third))
        data = np.frombuffer(whole.replace(SPACE_MARK_BYTES, STRANGER.encode()), np.uint8)
        offsets = offsets + (len(STRANGER.encode()) - len(SPACE_MARK_BYTES)) * np.searchsorted(marks, offsets)
    begins, lengths = offsets[:-1], np.diff(offsets)
    goes_on = lengths >= len(prefix)
    for k, byte in enumerate(prefix):
        goes_on[goes_on] = data[begins[goes_on] + k] == byte
    words = ~goes_on & (lengths > 0)
    new = np.zeros(offsets.size, np.int64)
    np.cumsum(lengths - len(prefix) * goes_on + len(SPACE_MARK_BYTES) * words, out=new[1:])
    kept, own = np.ones(data.size, np.bool_), np.ones(int(new[-1]), np.bool_)
    out = np.empty(own.size, np.uint8)
    for k in range(len(prefix)):
        kept[begins[goes_on] + k] = False
    for k, byte in enumerate(SPACE_MARK_BYTES):
        positions = new[:-1][words] + k
        out[positions], own[positions] = byte, False
    out[own] = data[kept]
    return AlphabetKeys(out, new)
