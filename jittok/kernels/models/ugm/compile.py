"""Compile a Unigram vocabulary to flat arrays.

As in llama.cpp's `llm_tokenizer_ugm`, the tries contain tokens by the attributes in the file, before llama.cpp changes
them. Only the rule that user-defined tokens cost nothing uses the final attributes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline, models
from jittok.common.pipeline.steps import SqueezeLlama
from jittok.common.unicode.characters import SPACE_BYTE
from jittok.kernels.jit import F32, U8, OutF64, OutI32, OutU8, OutU64, frozen
from jittok.kernels.models.ugm.rules import TokenTexts, VocabLattice, span_rules
from jittok.kernels.normalize.charsmap.keys import BEGINS_USER, CharsmapKeys, byte_kinds, charsmap_keys
from jittok.kernels.normalize.charsmap.xcda import Charsmap, read_charsmap, root_base
from jittok.kernels.normalize.spaces import SpaceRules, space_rules
from jittok.kernels.pretoken_cache.run_loop import NO_BLANK, ONE_BLANK, SEPARATE
from jittok.kernels.pretoken_cache.span_loop import CHUNK, SpanWork, make_span_work, regrow_span_work
from jittok.kernels.safe_cuts import cuts, rules
from jittok.kernels.safe_cuts.cuts import SpanRules
from jittok.kernels.safe_cuts.rules import characters
from jittok.kernels.structures.double_array import DoubleArray, build_double_array
from jittok.kernels.structures.long_keys import LONG, LongKeys, long_keys
from jittok.kernels.structures.pages import scratch

UNUSED, NORMAL, USER_DEFINED = 2, 4, 16
"""llama.cpp's attribute bits that matter here."""
UNKNOWN_PENALTY = 10.0
BYTES_PER_BYTE = 2
"""The capacity for normalized text, as a multiple of the text; it is increased for texts that need more."""
SPARE_BYTES = 128


class UgmArrays(NamedTuple):
    """A compiled Unigram vocabulary."""

    trie: DoubleArray  # normal, user-defined and unused tokens -> id and score
    user: DoubleArray  # user-defined tokens: the texts that are not normalized
    charsmap: Charsmap
    spaces: SpaceRules
    tokens: int  # number of tokens
    unk_id: int  # may be -1, and is then emitted as -1
    unk_score: float  # the score of a character that is no token; a float32
    trie_scores: F32  # the trie's units, read as float32
    kinds: U8  # [256] kinds of bytes, see normalize.keys
    map_root: int  # base of the character map's root
    rules: SpanRules
    cut_limit: int  # longer fragments are not cut; negative: none is
    first_span: int  # how the first span of a fragment is encoded, see pretoken_cache.run_loop
    readable: int  # 1: every link of the character map stays inside it; else the reference encodes
    clears: int  # 1: some score is not finite, see `Lattice`
    ids_per_byte: int  # the most ids of one byte of text
    shortest: int  # Vocab.shortest_utf8
    longest: int  # bytes of the longest token in the trie
    long: LongKeys  # the long tokens of the trie again, for linear time


class UgmWork(NamedTuple):
    """Scratch memory of one thread."""

    text: OutU8  # [BYTES_PER_BYTE * longest + SPARE_BYTES] normalized text
    sums: OutF64  # [that + 1] best sum of scores up to each offset of `text`
    arcs: OutU64  # [that + 1] back-pointers: last token << 32 | where it begins; the bit `lattice.MARK` is 0
    found: OutI32  # [as `text`] which long tokens begin at each offset; empty where there are no long tokens
    spans: SpanWork


def compile_pipeline(pipeline: Pipeline) -> UgmArrays:
    """Flat arrays of a GGUF of type "ugm". MalformedVocab if its character map is invalid."""
    model, squeeze = pipeline.model, pipeline.step(SqueezeLlama)
    assert isinstance(model, models.Lattice)
    assert squeeze is not None
    attributes = model.attributes
    # NaN stays NaN: it wins no comparison.
    scores = np.where(model.free, np.float32(0), model.scores)
    usable, user = attributes & (NORMAL | USER_DEFINED | UNUSED) != 0, attributes & USER_DEFINED != 0
    trie, charsmap, spaces = (
        _trie(pipeline, usable, scores),
        read_charsmap(squeeze.charsmap, pipeline.source),
        space_rules(squeeze),
    )
    unk_score = unknown_score(model.scores[attributes & NORMAL != 0])
    keys, user_texts = charsmap_keys(charsmap), _texts(pipeline, user)
    kinds = (byte_kinds(keys) if keys is not None else np.zeros(256, np.uint8)).copy()
    kinds[user_texts.data[user_texts.offsets[:-1][np.diff(user_texts.offsets) > 0]]] |= BEGINS_USER
    lattice = VocabLattice(
        _texts(pipeline, usable), scores[usable], np.flatnonzero(usable), user[usable], model.unknown, unk_score
    )
    merge = bool(spaces.merge)
    rules, limit = span_rules(lattice, user_texts, keys if spaces.escape and not spaces.append else None, merge)
    # If spaces are merged, a blank before the first word changes nothing, unless a user-defined token begins with it.
    first_span = NO_BLANK if not merge and not spaces.prepend else SEPARATE
    if merge and not any(kinds[b] & BEGINS_USER for b in (0x20, *rules.blanks.tolist())):
        first_span = ONE_BLANK
    return UgmArrays(
        trie,
        _trie(pipeline, user, scores),
        charsmap,
        spaces,
        len(pipeline),
        model.unknown,
        unk_score,
        frozen(trie.units.view(np.float32), np.float32),
        frozen(kinds, np.uint8),
        root_base(charsmap),
        rules,
        limit,
        first_span,
        int(keys is not None),
        int(not np.isfinite(scores[usable]).all() or not np.isfinite(unk_score)),
        _ids_per_byte(keys, lattice.texts, user_texts),
        int(squeeze.shortest),
        int(np.max(np.diff(lattice.texts.offsets), initial=0)),
        _long_ones(lattice.texts, np.flatnonzero(usable), scores[usable]),
    )


def _long_ones(texts: TokenTexts, ids: NDArray[np.int64], scores: NDArray[np.float32]) -> LongKeys:
    found, own = dict[bytes, int](), dict[bytes, float]()
    for k in np.flatnonzero(np.diff(texts.offsets) > LONG).tolist():
        text = texts.data[texts.offsets[k] : texts.offsets[k + 1]].tobytes()
        found[text], own[text] = int(ids[k]), float(scores[k])
    return long_keys(found, own)


def can_split_at_spaces(arrays: UgmArrays, size: int) -> bool:
    """Whether a text of `size` bytes may be cut before a space between ASCII letters.

    Three conditions must hold. Letters are not mapped to anything else. No token, key or user-defined text contains a
    letter followed by a space. A part that begins with a space gets no other space than the whole text has there. In
    texts longer than `cut_limit`, sums of scores may round, so the best path may depend on all the text before.
    """
    letters = np.flatnonzero(rules.class_of() == cuts.LETTER)
    crossings = letters << 8 | SPACE_BYTE
    return bool(
        0 <= size <= arrays.cut_limit
        and (arrays.spaces.merge or not arrays.spaces.prepend)
        and arrays.rules.cuts[cuts.CLASSES * cuts.LETTER + cuts.BLANK]
        and not np.isin(arrays.rules.apart, letters).any()
        and not (arrays.rules.crossings[crossings >> 6] >> (crossings & 63).astype(np.uint64) & np.uint64(1)).any()
    )


def _ids_per_byte(keys: CharsmapKeys | None, tokens: TokenTexts, user: TokenTexts) -> int:
    """The most ids of one byte of text."""
    if keys is None:
        return 1
    _, _, bad = characters(*tokens, np.ones(len(tokens), bool))
    _, _, bad_image = characters(keys.images, keys.image_offsets, np.ones(keys.image_offsets.size - 1, bool))
    return growth(keys, in_bytes=bool(bad.any() or bad_image.any() or np.any(user.data >= 0x80)))


def growth(keys: CharsmapKeys, in_bytes: bool) -> int:
    """The most ids of one byte of text: the characters of its normal form if tokens end at characters, else (in_bytes)
    their bytes, with three for a space, which becomes U+2581."""
    if in_bytes:
        spaces = np.concatenate([[0], np.cumsum(keys.images == SPACE_BYTE)])[keys.image_offsets]
        grown, least = np.diff(keys.image_offsets) + 2 * np.diff(spaces), 3
    else:
        heads = np.concatenate([[0], np.cumsum(keys.images & 0xC0 != 0x80)])[keys.image_offsets]
        grown, least = np.diff(heads), 1
    return int(max(least, np.max(-(-grown // np.maximum(np.diff(keys.offsets), 1)), initial=1)))


def unknown_score(scores: NDArray[np.float32]) -> float:
    """The score of an unknown character: the lowest score of the normal tokens, minus ten, in float32."""
    lowest = np.min(scores[~np.isnan(scores)], initial=np.finfo(np.float32).max)
    return float(np.float32(lowest) - np.float32(UNKNOWN_PENALTY))


def _texts(pipeline: Pipeline, chosen: NDArray[np.bool_]) -> TokenTexts:
    """The texts of the chosen tokens."""
    lengths = np.diff(pipeline.model_offsets)
    offsets = np.zeros(int(chosen.sum()) + 1, np.int64)
    np.cumsum(lengths[chosen], out=offsets[1:])
    return TokenTexts(pipeline.model_bytes[np.repeat(chosen, lengths)], offsets)


def _trie(pipeline: Pipeline, chosen: NDArray[np.bool_], scores: NDArray[np.float32]) -> DoubleArray:
    """The trie of the chosen tokens, with their ids and scores."""
    return build_double_array(*_texts(pipeline, chosen), np.flatnonzero(chosen).astype(np.int32), scores[chosen])


def make_work(arrays: UgmArrays, longest: int, cache_bytes: int = 64 << 20, chunk: int = CHUNK) -> UgmWork:
    """Memory of one thread for fragments of up to `longest` bytes that grow at most BYTES_PER_BYTE times."""
    return UgmWork(*_scratch(arrays, longest), make_span_work(longest, arrays.tokens, cache_bytes, chunk))


def regrow(arrays: UgmArrays, work: UgmWork, longest: int) -> UgmWork:
    """The same memory for longer fragments, with the same cache."""
    return UgmWork(*_scratch(arrays, longest), regrow_span_work(work.spans, longest))


def _scratch(arrays: UgmArrays, longest: int) -> tuple[OutU8, OutF64, OutU64, OutI32]:
    """The scratch arrays. Pages that no text needs are not touched."""
    capacity = BYTES_PER_BYTE * longest + SPARE_BYTES
    return (
        scratch(capacity, np.uint8),
        scratch(capacity + 1, np.float64),
        np.zeros(capacity + 1, np.uint64),
        scratch(capacity if arrays.long.count else 0, np.int32),
    )
