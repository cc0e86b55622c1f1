"""Texts of which a part is literal: there no special token of `parse_special` is found, whatever the text spells.

The search for special tokens sees the whole text, so whatever it does not cut is split and merged as usual, across the
borders of literal parts, too. Only the tokens `guarded` are refused; user-defined ones that `parse_special=False` finds
are found here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import Pieces
from jittok.common.pipeline.pipeline import SPECIAL, read_only_array
from jittok.encode.cutters import EncodeOptions
from jittok.encode.encoder import Encoder
from jittok.encode.fallback.reference_encoder import ReferenceEncoder
from jittok.errors import EncodingFailed, MixedToken, UnsupportedVocab
from jittok.kernels.inputs import PADDING, Documents
from jittok.kernels.jit import U32, frozen
from jittok.kernels.special.search import MIXED_FAILS, MIXED_IS_TEXT
from jittok.kernels.special.tables import CONTROL, UNKNOWN
from jittok.vocab import Vocab


class GuardedRule(NamedTuple):
    """How texts with literal parts are encoded. Made once, by `guarded_rule`, and shared by calls."""

    encoder: Encoder | ReferenceEncoder
    guarded: frozenset[int]
    is_guarded: NDArray[np.bool_]  # [ids]
    add_special: bool
    replace: bool
    options: EncodeOptions | None  # None: the reference encodes


class LiteralIds(NamedTuple):
    """The ids of documents, and the fragments that they were cut into (see `jittok.kernels.fragments`)."""

    ids: NDArray[np.int32]
    document_ends: NDArray[np.int64]  # [documents] fragments up to the end of each
    starts: NDArray[np.int64]  # [fragments]
    stops: NDArray[np.int64]
    tokens: NDArray[np.int32]
    ends: NDArray[np.int64]  # ids up to the end of each fragment


def parsed_only(vocab: Vocab | Pipeline) -> frozenset[int]:
    """The ids that are found in a text with `parse_special` alone."""
    if isinstance(vocab, Pipeline):
        return frozenset(vocab.added_ids[vocab.added_flags & SPECIAL != 0].tolist())
    special = vocab.special_tokens
    return frozenset(special[vocab.attributes[special] & (CONTROL | UNKNOWN) != 0].tolist())


def guarded_rule(
    encoder: Encoder | ReferenceEncoder, guarded: frozenset[int] | None, add_special: bool, replace: bool
) -> GuardedRule:
    """The rule of a call. guarded: ids that literal text cannot become; None: those of `parsed_only`, kept with the
    encoder."""
    if guarded is not None or isinstance(encoder, ReferenceEncoder):
        return _rule(encoder, parsed_only(encoder.vocab) if guarded is None else guarded, add_special, replace)
    key = bool(add_special), bool(replace)
    found = encoder.literal_rules.get(key)
    if found is None:
        found = encoder.literal_rules[key] = _rule(encoder, parsed_only(encoder.vocab), *key)
    return found


def _rule(
    encoder: Encoder | ReferenceEncoder, guarded: frozenset[int], add_special: bool, replace: bool
) -> GuardedRule:
    options = None
    if isinstance(encoder, Encoder):
        options = encoder.plan.cutter.guarded(guarded, add_special, replace)
    is_guarded = np.zeros(max(len(encoder.vocab), max(guarded, default=0) + 1), np.bool_)
    is_guarded[list(guarded)] = True
    return GuardedRule(encoder, guarded, frozen(is_guarded, np.bool_), add_special, replace, options)


# ---- spans


def literal_counts(spans: ArrayLike, text: str | bytes, raw: bytes) -> U32:
    """uint32[bytes + 1]: how many bytes before each offset of a text are literal.

    spans: (n, 2) offsets in characters of a str, in bytes of `raw`, its UTF-8, otherwise; in any order, and they may
    overlap. ValueError if one is not in the text.
    """
    given = np.asarray(spans)
    if given.size == 0:
        given = np.empty((0, 2), np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iu":
        found = f"{given.dtype} of shape {given.shape}"
        raise ValueError(f"literal: found {found}, expected integers of shape (n, 2): start and stop of each span")
    given = given.astype(np.int64)
    starts, stops = given[:, 0], given[:, 1]
    of_str = isinstance(text, str)
    size, unit = len(text) if of_str else len(raw), "characters" if of_str else "bytes"
    bad = np.flatnonzero((starts < 0) | (starts > stops) | (stops > size))
    if bad.size:
        at = int(bad[0])
        raise ValueError(
            f"literal: span {at}: found {tuple(given[at].tolist())}, expected 0 <= start <= stop <= {size} ({unit} of "
            "the text)"
        )
    if of_str and size != len(raw):
        data = np.frombuffer(raw, np.uint8)
        offsets = np.append(np.flatnonzero(data & 0xC0 != 0x80), data.size)
        starts, stops = offsets[starts], offsets[stops]
    depth = np.zeros(len(raw) + 1, np.int64)
    np.add.at(depth, starts, 1)
    np.add.at(depth, stops, -1)
    return counts_of(np.cumsum(depth[:-1]) > 0)


def counts_of(marked: NDArray[np.bool_]) -> U32:
    """uint32[n + 1]: how many of bool[n] are set before each. The sum wraps; a difference of two is right."""
    counts = np.zeros(marked.size + 1, np.uint32)
    np.cumsum(marked, dtype=np.uint32, out=counts[1:])
    return frozen(counts, np.uint32)


# ---- texts to ids


def encode_literal(rule: GuardedRule, raw: bytes, counts: U32, mixed_is_text: bool = False) -> NDArray[np.int32]:
    """int32[n]: the ids of one text. Raises EncodingFailed, MixedToken."""
    data = np.frombuffer(raw + PADDING, np.uint8)
    start, stop = read_only_array([0], np.int64), read_only_array([len(raw)], np.int64)
    return encode_documents(rule, Documents(data, start, stop), counts, mixed_is_text).ids


def encode_documents(rule: GuardedRule, docs: Documents, counts: U32, mixed_is_text: bool = False) -> LiteralIds:
    """The ids and the fragments of documents. counts: of all bytes of their data, see `literal_counts`.

    Raises EncodingFailed, with the number of the document, and MixedToken.
    """
    if rule.options is None:
        return _by_reference(rule, docs, counts, mixed_is_text)
    last = int(docs.stops.max(initial=0))
    if counts.size <= last or docs.kept is not None:
        raise AssertionError("literal_counts are not those of the documents")
    number, encoder = docs.starts.size, rule.encoder
    options = rule.options._replace(literal=(counts, MIXED_IS_TEXT if mixed_is_text else MIXED_FAILS))
    assert isinstance(encoder, Encoder)
    with encoder.workspace() as workspace:
        workspace.expect(docs, last)
        try:
            fragments = encoder.cut(workspace, docs, 0, number, options)
        except MixedToken:
            _by_reference(rule, docs, counts, mixed_is_text)  # raises it with the token that is searched for first
            raise
        count = encoder.encode(workspace, docs, 0, number, fragments, options, 0)
        return LiteralIds(
            workspace.ids[:count].copy(), workspace.document_ends[:number].copy(), workspace.starts[:fragments].copy(),
            workspace.stops[:fragments].copy(), workspace.tokens[:fragments].copy(), workspace.ends[:fragments].copy(),
        )  # fmt: skip


def _by_reference(rule: GuardedRule, docs: Documents, counts: U32, mixed_is_text: bool) -> LiteralIds:
    """The same in plain Python; each id is a fragment."""
    ids, starts, stops, ends = list[int](), list[int](), list[int](), list[int]()
    vocab = rule.encoder.vocab
    for number, (start, stop) in enumerate(zip(docs.starts.tolist(), docs.stops.tolist(), strict=True)):
        marked = np.diff(counts[start : stop + 1]).astype(np.uint8).tobytes()
        raw = docs.between(start, stop)
        try:
            found = literal_tokens(vocab, raw, rule, marked, mixed_is_text)
        except EncodingFailed as error:
            raise EncodingFailed(number, error.offset, error.found, error.expected) from None
        ids += [token for token, _, _ in found]
        starts += [start + first for _, first, _ in found]
        stops += [start + last for _, _, last in found]
        ends.append(len(ids))
    every = np.arange(1, len(ids) + 1)
    found_ids = np.array(ids, np.int32)
    return LiteralIds(
        found_ids, np.array(ends, np.int64), np.array(starts, np.int64), np.array(stops, np.int64), found_ids, every
    )


def literal_tokens(
    vocab: Vocab | Pipeline, raw: bytes, rule: GuardedRule, marked: bytes, mixed_is_text: bool
) -> list[tuple[int, int, int]]:
    """(id, start, stop) of each token of a text, by the reference. marked: a byte for each of the text, 1 where it is
    literal."""
    from jittok.encode.fallback.reference_encoder import as_text  # few texts need these
    from jittok.reference.pipeline import aligned
    from jittok.reference.special import Literal
    from jittok.reference.tokenize import tokens

    literal = Literal(marked, rule.guarded, mixed_is_text)
    if isinstance(vocab, Pipeline):
        if isinstance(vocab.model, Pieces) and rule.guarded & set(vocab.special_tokens.tolist()):
            raise UnsupportedVocab(
                vocab.source, "user-defined pieces", vocab.library, "a file whose kernels search for them in the text"
            )
        if not rule.replace:
            as_text(raw, False)
        found = aligned(vocab, raw, rule.add_special, True, literal)
    else:
        found = list(tokens(vocab, raw, add_special=rule.add_special, parse_special=True, literal=literal))
    return [(token.id, token.start, token.stop) for token in found]
