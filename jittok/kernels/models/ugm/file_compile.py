"""Compile the Unigram model of a tokenizer.json or of a sentencepiece model to flat arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import NO_TOKEN, NORMAL, UNIGRAM, UNKNOWN, USER, Pieces, Unigram
from jittok.common.pipeline.pipeline import packed
from jittok.common.pipeline.steps import Squeeze
from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_BYTES
from jittok.errors import MalformedVocab
from jittok.kernels.jit import frozen
from jittok.kernels.models.ugm.compile import growth
from jittok.kernels.models.ugm.file_arrays import CharacterTable, UnigramFileArrays
from jittok.kernels.models.ugm.lattice import HIGHEST, RESET
from jittok.kernels.models.ugm.normalizer_tables import read_steps
from jittok.kernels.models.ugm.rules import TokenTexts, VocabLattice, span_rules
from jittok.kernels.normalize.charsmap.keys import BEGINS_USER, CharsmapKeys, byte_kinds, charsmap_keys
from jittok.kernels.normalize.charsmap.xcda import Charsmap, read_charsmap, root_base
from jittok.kernels.pretoken_cache.run_loop import NO_BLANK, ONE_BLANK
from jittok.kernels.safe_cuts.cuts import BLANK, CLASSES, ILL, LETTER, WIDE
from jittok.kernels.structures.double_array import DoubleArray, build_double_array
from jittok.kernels.structures.long_keys import LONG, long_keys

UNKNOWN_PENALTY = 10.0
FLOAT_LIMIT = 1 << 16
"""The longest text, in bytes, for which sums of a sentencepiece model may be small enough for spans."""
NEAR_FLOATS = 1.0625 * 2.0**-7
"""The rounding error of floats for each character: a sum below 2 ** 17 rounds by at most 2 ** -8, one within a span,
below 2 ** 12, by 2 ** -13, and two paths through n characters have at most 2 * n additions."""
BELOW_PATH = 2.0**12
"""The most by which the sum at an offset inside a token of the best path may be below the sums of that path. Such an
offset is reached by unknown characters from the token's beginning."""
SLACK = 64.0
"""More than rounding adds to that."""
NEAR_DOUBLES, MOST_DOUBLE = 1.25 * 2.0**-22, 2.0**30
"""The same error for doubles, whose sums are below 2 ** 30."""
MARGIN = 1.0
"""A token is on no path if others spell its text with a sum that is higher by this much."""
LEAST_SCORE = -1e30
"""The lowest score for which all sums are finite, as floats too; an offset with an infinite sum is not reached."""
MOST_LIMIT = 1 << 24
MOST_TYING_TOKENS = 128
"""See `rules.to_look_for`; T5 has a hundred tokens <extra_id_0> ... that join letters with digits."""


class _FileModel(NamedTuple):
    """The facts that both kinds of file have."""

    texts: list[bytes]  # with U+2581; b"" for tokens that are on no path
    values: NDArray[np.int64]  # the trie's value of each
    scores: NDArray[np.float64]  # the score of each
    steps: NDArray[np.float64]
    byte_ids: NDArray[np.int32]
    unk_id: int
    unk_score: float
    single: bool
    users: list[bytes]


def compile_pipeline(pipeline: Pipeline) -> UnigramFileArrays | None:
    """The arrays of such a file, or None for any other."""
    if isinstance(pipeline.model, Unigram):
        return _of_unigram(pipeline, pipeline.model)
    if isinstance(pipeline.model, Pieces) and pipeline.model.kind == UNIGRAM:
        return _of_pieces(pipeline, pipeline.model)
    return None


def _of_unigram(pipeline: Pipeline, model: Unigram) -> UnigramFileArrays | None:
    if model.unknown == NO_TOKEN or any(token.normalized for token in pipeline.added):
        return None
    tokens, count = pipeline.model_tokens, len(pipeline.model_tokens)
    unknown = tokens[model.unknown]
    scores = np.array(model.scores, np.float64)
    if not unknown or may_be_joined(tokens, unknown) or not np.isfinite(scores).all():
        return None
    if pipeline.vocabulary[unknown] != model.unknown:
        return None
    byte_ids = byte_tokens(pipeline, model.byte_fallback)
    steps = scores.copy()
    steps[model.unknown] = np.nan
    if model.byte_fallback:
        if (byte_ids < 0).any():
            return None
        steps[byte_ids] = np.nan
    found = read_steps(pipeline)
    if found is None:
        return None
    values = np.arange(count)
    values[model.unknown] = count
    # words begin before each U+2581
    texts = [text or b"" for text in tokens]
    for token in _with_spaces_inside(pipeline.model_bytes, pipeline.model_offsets):
        texts[token] = b""
    unk_score = float(scores.min()) - UNKNOWN_PENALTY
    own = _FileModel(texts, values, scores, steps, byte_ids, model.unknown, unk_score, False, [])
    empty = Charsmap(frozen([], np.uint32), frozen([0], np.uint8), 0)
    return _arrays(
        own, found.keys, merge=1, prefix=1, tail=int(found.tail), kinds=found.kinds, table=found.table, charsmap=empty,
        first_span=ONE_BLANK,
    )  # fmt: skip


def byte_tokens(pipeline: Pipeline, wanted: bool) -> NDArray[np.int32]:
    """int32[256]: the id of each byte's token for byte fallback; -1 if there is none, or none is `wanted`."""
    found = [pipeline.vocabulary.get(b"<0x%02X>" % byte, -1) if wanted else -1 for byte in range(256)]
    return np.array(found, np.int32)


def _begins_mark(data: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """bool[bytes - 2]: whether U+2581 begins at a byte."""
    first, second, third = SPACE_MARK_BYTES
    return (data[:-2] == first) & (data[1:-1] == second) & (data[2:] == third)


def _begin_with_mark(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[texts]: which of these concatenated texts, none empty, begin with U+2581."""
    padded = np.append(_begins_mark(data), [False, False])
    return padded[offsets[:-1]] & (np.diff(offsets) >= len(SPACE_MARK_BYTES))


def _with_spaces_inside(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> set[int]:
    """The rows that contain a space, or U+2581 after their first character."""
    odd = data == SPACE_BYTE
    odd[:-2] |= _begins_mark(data)
    begins = offsets[:-1][offsets[:-1] < data.size]
    odd[begins] &= data[begins] == SPACE_BYTE
    return set((np.searchsorted(offsets, np.flatnonzero(odd), "right") - 1).tolist())


def may_be_joined(tokens: tuple[bytes | None, ...], unknown: bytes) -> bool:
    """Whether unknown characters next to the unknown token's own text may spell another token: tokenizers would then
    give that token. Impossible if the token contains another character that is a token by itself, as CamemBERT's
    <unk>NOTUSED does."""
    if b"".join(filter(None, tokens)).count(unknown) <= 1:  # as in nearly every file
        return False
    known, own = set(tokens), set(unknown)
    holding = [text for text in tokens if text and unknown in text and text != unknown]
    return not all(any(byte < 0x80 and byte not in own and bytes([byte]) in known for byte in text) for text in holding)


def _of_pieces(pipeline: Pipeline, model: Pieces) -> UnigramFileArrays | None:
    (step,) = pipeline.normalize
    assert isinstance(step, Squeeze)
    if not step.escape or step.suffix or (step.squeeze and not step.prefix):
        return None
    tokens, types = pipeline.model_tokens, model.types
    users = [text for text, kind in zip(tokens, types, strict=True) if kind == USER and text]
    if any(text[0] <= SPACE_BYTE or (step.squeeze and b"  " in text) for text in users):
        return None  # the added space may become part of such a piece; spaces inside one are not merged
    try:
        charsmap = read_charsmap(step.charsmap, pipeline.source)
    except MalformedVocab:
        return None
    keys = charsmap_keys(charsmap)
    if keys is None or SPACE_MARK_BYTES in keys.images.tobytes() or _spaces_matter(keys, step.squeeze):
        return None
    scores = np.array(model.scores, np.float64)
    for token in np.flatnonzero(types == USER).tolist():
        scores[token] = np.float64(np.float32(0.1 * len(tokens[token] or b"") - 0.1))
    normal = scores[types == NORMAL]
    if not normal.size:
        return None  # then the score of an unknown character is the largest float
    unk_score = float(np.float32(normal.min() - UNKNOWN_PENALTY))
    steps = scores.copy()
    steps[types == UNKNOWN] = unk_score
    byte_ids = byte_tokens(pipeline, model.byte_fallback)
    if model.byte_fallback:
        if (byte_ids < 0).any():
            return None
        steps[byte_ids] = np.where(np.arange(256) & 0xC0 == 0x80, 0.0, unk_score)
    used = (types == NORMAL) | (types == USER)
    if not np.isfinite(scores[used]).all():
        return None
    texts = [
        text if text and use and b" " not in text else b"" for text, use in zip(tokens, used.tolist(), strict=True)
    ]
    own = _FileModel(texts, np.arange(len(texts)), scores, steps, byte_ids, model.unknown, unk_score, True, users)
    kinds = byte_kinds(keys).copy()
    for text in users:
        kinds[text[0]] |= BEGINS_USER
    return _arrays(
        own, keys, merge=int(step.squeeze), prefix=int(step.prefix), tail=0, kinds=frozen(kinds, np.uint8),
        table=_no_table(), charsmap=charsmap, first_span=ONE_BLANK if step.prefix else NO_BLANK,
    )  # fmt: skip


def _spaces_matter(keys: CharsmapKeys, squeeze: bool) -> bool:
    """Whether the origin of a space matters: some key begins with a space (the one added before a text does not count),
    or some character becomes two spaces, which are not merged."""
    first = keys.data[keys.offsets[:-1]] if keys.data.size else keys.data
    double = np.flatnonzero((keys.images[1:] == SPACE_BYTE) & (keys.images[:-1] == SPACE_BYTE)) + 1
    return bool((first == SPACE_BYTE).any() or (squeeze and not np.isin(double, keys.image_offsets).all()))


def _no_table() -> CharacterTable:
    nothing = build_double_array(*packed([]), np.zeros(0, np.int32))
    zero = frozen([0], np.int32)
    return CharacterTable(
        frozen([0], np.uint16), frozen([0], np.uint8), zero, zero, frozen([0], np.uint8), nothing, zero,
        frozen([0], np.uint8), 0, frozen([], np.int32),
    )  # fmt: skip


def _arrays(
    own: _FileModel, keys: CharsmapKeys, *, first_span: int, merge: int, **more: Any
) -> UnigramFileArrays | None:
    kept = np.flatnonzero(np.fromiter(map(len, own.texts), np.int64, len(own.texts)))
    texts = [own.texts[k] for k in kept.tolist()]
    flat = packed(texts)
    spaces = kept[_begin_with_mark(*flat)]  # tokens that begin with U+2581
    mark = [token for token in spaces.tolist() if own.texts[token] == SPACE_MARK_BYTES]
    if not mark or not kept.size or own.scores[kept].max() > HIGHEST or _breaks(*flat):
        return None
    if min(own.scores[kept].min(), own.unk_score) < LEAST_SCORE:
        return None
    values = own.values[kept].astype(np.int32)
    spaced, ends = _spaced(*flat)
    longest = int(np.diff(ends).max())
    trie_scores = frozen(own.scores[kept], np.float32)
    trie = build_double_array(spaced, ends, values, trie_scores)
    long_ones, long_scores, own_scores = dict[bytes, int](), dict[bytes, float](), own.scores[kept]
    for k in np.flatnonzero(np.diff(ends) > LONG).tolist():
        text = spaced[ends[k] : ends[k + 1]].tobytes()
        long_ones[text], long_scores[text] = int(values[k]), float(trie_scores[k] if own.single else own_scores[k])
    count = len(own.texts)
    scores = np.full(count + 2, -np.inf)
    scores[own.values + 1] = own.scores
    begins = np.zeros(count, np.uint8)
    begins[spaces] = 1
    lattice, user = _lattice(own, texts, flat, kept, merge), TokenTexts(*packed(own.users))
    rules, _ = span_rules(lattice, user, keys, bool(merge), MARGIN, MOST_TYING_TOKENS)
    three = rules.three.copy()
    three[0xD800:0xE000] = ILL  # surrogates are invalid UTF-8, as all that the splitter has to find
    rules = rules._replace(three=frozen(three, np.uint8))
    limit = FLOAT_LIMIT
    free = rules.cuts[CLASSES * LETTER + BLANK] != 0 and not any(b" " in text for text in own.users)
    below = longest * abs(own.unk_score)
    if own.single and below >= BELOW_PATH:
        limit = 0
    parts = int(own.single and free and limit > 0)
    parts += int(parts and rules.cuts[CLASSES * WIDE + BLANK] != 0 and _follow_spaces(keys))
    if not own.single:
        most = float(max(np.abs(own.scores[kept]).max(), abs(own.unk_score)))
        limit = min(MOST_LIMIT, int(MOST_DOUBLE / (most * growth(keys, True))))
    return UnigramFileArrays(
        trie, frozen(scores, np.float64), frozen(own.steps, np.float64), frozen(begins, np.uint8),
        frozen(own.byte_ids, np.int32), count, own.unk_id, own.unk_score, int(own.single), parts, merge, more["tail"],
        frozen(mark[-1:], np.int32), more["prefix"], more["kinds"], more["table"], more["charsmap"],
        root_base(more["charsmap"]), _trie_of(own.users), rules, limit, first_span,
        growth(keys, own.byte_ids[0] >= 0), longest, long_keys(long_ones, long_scores),
        NEAR_FLOATS if own.single else NEAR_DOUBLES, RESET - below - SLACK if own.single else np.inf,
    )  # fmt: skip


def _follow_spaces(keys: CharsmapKeys) -> bool:
    """Whether a character next to a space that is no key itself is also next to it in normalized text. True if no key
    of several characters becomes empty, or becomes a text that begins or ends with a space."""
    sizes = np.diff(keys.image_offsets)
    lead = keys.data[keys.offsets[:-1]] if keys.data.size else keys.data
    longer = np.diff(keys.offsets) > 1 + (lead >= 0xC0) + (lead >= 0xE0).astype(np.int64) + (lead >= 0xF0)
    first, last = keys.image_offsets[:-1][sizes > 0], keys.image_offsets[1:][sizes > 0] - 1
    ends = (keys.images[first] == SPACE_BYTE) | (keys.images[last] == SPACE_BYTE)
    return not ((sizes == 0) & longer).any() and not (ends & longer[sizes > 0]).any()


def _spaced(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(data, offsets) of the texts with a space for each U+2581."""
    marks, kept, spaced = np.flatnonzero(_begins_mark(data)), np.ones(data.size, np.bool_), data.copy()
    spaced[marks] = SPACE_BYTE
    kept[marks + 1], kept[marks + 2] = False, False
    return spaced[kept], offsets - (len(SPACE_MARK_BYTES) - 1) * np.searchsorted(marks, offsets)


def _breaks(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> bool:
    """Whether some token ends inside a character. None is empty."""
    try:
        data.tobytes().decode()
    except UnicodeDecodeError:
        return True
    return bool((data[offsets[:-1]] & 0xC0 == 0x80).any())


def _trie_of(texts: list[bytes]) -> DoubleArray:
    return build_double_array(*packed(texts), np.zeros(len(texts), np.int32))


def _lattice(
    own: _FileModel,
    texts: list[bytes],
    flat: tuple[NDArray[np.uint8], NDArray[np.int64]],
    kept: NDArray[np.int64],
    merge: int,
) -> VocabLattice:
    """The tokens for `span_rules`. If spaces are merged, a span never has two U+2581 in a row, so tokens with two are
    left out."""
    unk_score = float(np.float32(own.unk_score))
    if merge and 2 * SPACE_MARK_BYTES in flat[0].tobytes():
        seen = [k for k, text in enumerate(texts) if 2 * SPACE_MARK_BYTES not in text]
        texts, kept = [texts[k] for k in seen], kept[seen]
        flat = packed(texts)
    user = np.zeros(len(texts), bool)
    if own.single and own.users:
        users = set(own.users)
        user = np.array([text in users for text in texts], bool)
    return VocabLattice(TokenTexts(*flat), own.scores[kept].astype(np.float32), kept, user, -1, unk_score)
