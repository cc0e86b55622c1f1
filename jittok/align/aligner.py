"""Find the spans of encoded texts: for each vocabulary type a fast path, then its fallbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.align.by_lengths import (
    DirectRules,
    RewriteRules,
    direct_spans,
    map_capacity,
    rewrite_rules,
    rewritten_spans,
)
from jittok.align.conversions import character_spans, spans_through_nfc
from jittok.align.lengths import build_lengths
from jittok.common.locks import once
from jittok.kernels.fragments import FRAGMENT, OUT_OF_WORK, REPORT_SIZE, TEXT_PREFIXED
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import I32, I64, U8, OutI64, frozen
from jittok.kernels.normalize.nfc.fragments import changed_fragments, nfc_tables
from jittok.kernels.vocab_cache import load_arrays, save_arrays
from jittok.vocab import Vocab
from jittok.vocab.types import type_of


class EncodedFragments(NamedTuple):
    """The fragments of some documents, as in `jittok.kernels.fragments`, and their ids."""

    starts: I64
    stops: I64
    tokens: I32
    ends: I64  # [fragments] the end of each one's ids in `ids`
    ids: I32


class Aligner:
    """Finds the spans of one vocabulary's ids. Immutable and thread-safe."""

    def __init__(self, vocab: Vocab, key: str | None = None, arrays: Any = None) -> None:
        """`key`: the vocabulary's name in the cache of compiled vocabularies; `arrays`: what its encoder has
        compiled, None to compile it again where that is needed."""
        self.vocab, self._key, self._compiled = vocab, key, arrays
        self.lengths = build_lengths(vocab)
        self._way = type_of(vocab).alignment
        self._rules = DirectRules(
            prefix=int(self._way.prefix and vocab.add_space_prefix),
            well_formed=int(self._way.well_formed),
            no_mark=int(self._way.drops_mark),
        )

    def spans(
        self, docs: Documents, first: int, last: int, document_ends: NDArray[np.int64], starts: NDArray[np.int64],
        stops: NDArray[np.int64], tokens: NDArray[np.int32], ends: NDArray[np.int64], ids: NDArray[np.int32],
    ) -> NDArray[np.int64]:  # fmt: skip
        """int64[n, 2]: the span of each id of documents first .. last - 1, in bytes of its document.

        document_ends: int64[last - first] number of fragments up to the end of each document
        starts, stops: int64[fragments], tokens: int32[fragments] see `jittok.kernels.fragments`
        ends: int64[fragments] the end of each one's ids in `ids`: int32[n]
        """
        if self.vocab.nfc:
            found = changed_fragments(nfc_tables(), docs.data, starts, stops, tokens, starts.size, with_map=True)
            if found is not None:
                return spans_through_nfc(
                    self._spans, found, docs, first, last, document_ends, starts, stops, tokens, ends, ids
                )
        return self._spans(docs, first, last, document_ends, starts, stops, tokens, ends, ids)

    def _spans(
        self, docs: Documents, first: int, last: int, document_ends: NDArray[np.int64], starts: NDArray[np.int64],
        stops: NDArray[np.int64], tokens: NDArray[np.int32], ends: NDArray[np.int64], ids: NDArray[np.int32],
    ) -> NDArray[np.int64]:  # fmt: skip
        """The same for fragments that are encoded unchanged."""
        spans = np.empty((ids.size, 2), np.int64)
        left = np.empty(2 * starts.size, np.int64)
        cut = EncodedFragments(*(frozen(array, array.dtype) for array in (starts, stops, tokens, ends, ids)))
        count = direct_spans(
            self.lengths, self._rules, docs.data, docs.starts, first, last, frozen(document_ends, np.int64),
            cut.starts, cut.stops, cut.tokens, cut.ends, cut.ids, spans.reshape(-1), left,
        )  # fmt: skip
        if count:
            self._others(docs.data, cut, spans, left, count)
        spans.flags.writeable = False
        return spans

    def spans_in_characters(
        self, docs: Documents, first: int, last: int, document_ends: NDArray[np.int64], *fragments: NDArray[Any]
    ) -> NDArray[np.int64]:
        """`spans`, but in characters; the documents are valid UTF-8."""
        spans = self.spans(docs, first, last, document_ends, *fragments)
        offsets = np.concatenate([[0], fragments[3]])[document_ends]  # without a fragment there is no id
        offsets = np.concatenate([[0], offsets])
        return character_spans(docs.data, docs.starts[first:last], docs.stops[first:last], offsets, spans)

    def _others(self, data: U8, cut: EncodedFragments, spans: OutI64, left: OutI64, count: int) -> None:
        """Write the spans of the fragments that `direct_spans` could not decide."""
        flat = spans.reshape(-1)
        if self._way.walk == "words" and not self._word_rules.ambiguous:
            count = self._words(data, cut, flat, left, count)
        elif self._way.walk == "unigram":
            count = self._unigram(data, cut, flat, left, count)
        elif self._way.walk == "rewritten":
            capacity = map_capacity(int(self.lengths.output.max(initial=0)))
            count = rewritten_spans(
                self.lengths, self._rewriting, data, cut.starts, cut.stops, cut.tokens, cut.ends, cut.ids,
                np.empty(capacity, np.int64), np.empty(capacity, np.int64), flat, left, count,
            )  # fmt: skip
        if count:
            self._replay(data, cut, spans, left[: 2 * count])

    def _replay(self, data: U8, cut: EncodedFragments, spans: OutI64, left: OutI64) -> None:
        """Write the spans of the fragments that the reference encodes again."""
        from jittok.align.replay import replayed_parts, replayed_tokens

        for fragment, origin in left.reshape(-1, 2).tolist():
            start, stop = int(cut.starts[fragment]), int(cut.stops[fragment])
            prefixed = bool(cut.tokens[fragment] == TEXT_PREFIXED)
            before, end = int(cut.ends[fragment - 1]) if fragment else 0, int(cut.ends[fragment])
            raw, wanted, out = data[start:stop].tobytes(), cut.ids[before:end], spans[before:end]
            if self._way.walk != "unigram" and replayed_parts(self.vocab, raw, start - origin, prefixed, wanted, out):
                continue
            found = replayed_tokens(self.vocab, raw, start - origin, prefixed)
            _same([token for token, _, _ in found] == wanted.tolist(), fragment)
            spans[before:end] = [(i, j) for _, i, j in found] or np.empty((0, 2))

    def _words(self, data: U8, cut: EncodedFragments, flat: OutI64, left: OutI64, count: int) -> int:
        from jittok.align.wordpiece import OFFSETS, word_spans

        code = word_spans(
            self.lengths, self._word_rules, data, cut.starts, cut.stops, cut.ends, cut.ids,
            np.empty(OFFSETS, np.int32), flat, left, count,
        )  # fmt: skip
        _same(code == 0, -1 - code)
        return 0

    def _unigram(self, data: U8, cut: EncodedFragments, flat: OutI64, left: OutI64, count: int) -> int:
        from jittok.align.unigram import BUFFER_BYTES, PATH_CHUNK_BYTES, make_unigram_work, path_spans, text_spans

        rules, inert, arrays = self._unigram_rules, self._inert, self._arrays
        if not rules.whole_map:
            return count
        if inert.usable:
            count = text_spans(
                self.lengths, rules, inert, arrays, make_unigram_work(BUFFER_BYTES, None), data, cut.starts, cut.stops,
                cut.ends, cut.ids, flat, left, count,
            )  # fmt: skip
        report, capacity = np.zeros(REPORT_SIZE, np.int64), 2 * PATH_CHUNK_BYTES
        while count:
            code = path_spans(
                rules, inert, arrays, make_unigram_work(capacity, arrays), data, cut.starts, cut.stops, cut.ends,
                cut.ids, flat, left, int(report[FRAGMENT]), count, report,
            )  # fmt: skip
            if code != OUT_OF_WORK:
                _same(code == 0, int(left[2 * report[FRAGMENT]]))
                break
            capacity *= 2
        return 0

    @once
    def _rewriting(self) -> RewriteRules:
        return rewrite_rules(self.vocab)

    def _kept_or_made(self, make: Callable[[], dict[str, Any]], *parts: str) -> dict[str, Any]:
        """The structures `parts` from the cache on disk; else those that `make` builds, which are then stored."""
        kept = None if self._key is None else load_arrays(self._key, "spans")
        known = kept and kept.part(*parts)
        if not known:
            known = make()
            if self._key is not None:
                save_arrays(self._key, "spans", known)
        return known

    @once
    def _word_rules(self) -> Any:
        def make() -> dict[str, Any]:
            from jittok.align.wordpiece import word_rules

            return {"words": word_rules(self.vocab)}

        return self._kept_or_made(make, "words")["words"]

    @once
    def _unigram_parts(self) -> dict[str, Any]:
        def make() -> dict[str, Any]:
            from jittok.align.unigram_normalizer import build_inert, unigram_rules

            rules = unigram_rules(self.vocab, self._arrays)
            return {"unigram": rules, "inert": build_inert(self.vocab, self._arrays, rules)}

        return self._kept_or_made(make, "unigram", "inert")

    @property
    def _unigram_rules(self) -> Any:
        return self._unigram_parts["unigram"]

    @property
    def _inert(self) -> Any:
        return self._unigram_parts["inert"]

    @once
    def _arrays(self) -> Any:
        """The vocabulary, compiled for encoding."""
        if self._compiled is not None:
            return self._compiled
        from jittok.kernels.models.ugm import compile_pipeline

        return compile_pipeline(self.vocab.pipeline)


def _same(same: bool, fragment: int) -> None:
    """AssertionError unless `same`: the walked ids are those of the text."""
    if not same:
        raise AssertionError(f"fragment {fragment}: alignment gives other ids than encoding; please report it")
