"""The encoder of a Pipeline: kernels where they are exact, else the fallback (`reference_encoder`)."""

from __future__ import annotations

import importlib
import re
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import once
from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.growth import needs_measuring
from jittok.common.pipeline.models import Longest, Merges, Pieces, Ranks, Unigram, WordPiece
from jittok.common.pipeline.pipeline import FIRST_TEXT, LSTRIP, NORMALIZED, RSTRIP, SINGLE_WORD, SPECIAL, UNSEARCHED
from jittok.common.pipeline.steps import Replace
from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_BYTES
from jittok.common.unicode.tables import UNICODE_SIZE
from jittok.encode.encoder import Encoder
from jittok.encode.precheck import PreCheckTables
from jittok.encode.reference_encoder import GENERAL_ARRAYS, PARTS, ReferenceEncoder, as_text, fragment_ids, normalized
from jittok.encode.utf8_repair import well_formed, well_formed_copies
from jittok.encode.workspace import Workspace
from jittok.errors import EncodingFailed, UnsupportedVocab
from jittok.kernels.fragments import FRAGMENT, NEED, NOT_UTF8, OUT_OF_CAPACITY, OUT_OF_WORK, TEXT_PREFIXED, Failure
from jittok.kernels.inputs import PADDING, Documents
from jittok.kernels.jit import I32, frozen
from jittok.kernels.normalize.nfc_fragments import changed_fragments, nfc_tables
from jittok.kernels.pretokenize.splitters import GENERAL
from jittok.kernels.special.leftmost import cut_leftmost
from jittok.kernels.special.tables import ONLY_WORD, STRIPS_LEFT, STRIPS_RIGHT, SpecialTokens, tables_of
from jittok.kernels.special.user_defined_pieces import cut_user_defined, user_defined, user_defined_normalized
from jittok.kernels.structures.utf8_check import VALID, first_malformed
from jittok.kernels.vocab_cache import CachedArrays

COMPILERS: dict[str, tuple[str, tuple[type, ...]]] = {
    "bpe": ("jittok.kernels.models.bpe.files", (Ranks, Merges)),
    "spm": ("jittok.kernels.models.spm.files", (Merges, Pieces)),
    "wpm": ("jittok.kernels.models.wpm.files", (WordPiece,)),
    "rwkv": ("jittok.kernels.models.rwkv", (Longest,)),
    "unigram": ("jittok.kernels.models.ugm.files.compile", (Unigram, Pieces)),
}
"""Family -> the compiler of its arrays, and the models that it is for."""
ODD_CACHE = 8 << 20
"""Bytes of the cache for words beside odd marks."""
LONG_TEXT = 1 << 16
"""Bytes of a text from which on it is read a part at a time."""
BETWEEN_WORDS = re.compile(rb"(?<=[!-~])(?= [!-~])")
"""Where a text may be cut whatever its normalizer: words are apart there, and nothing joins these characters."""


def make_encoder(pipeline: Pipeline, cache_bytes: int, kept: CachedArrays | None) -> Encoder | ReferenceEncoder:
    """The encoder of a Pipeline, from the cached arrays if there are any."""
    measured = needs_measuring(pipeline.normalize) or needs_measuring(pipeline.split)
    if measured and not isinstance(pipeline.model, Pieces):
        refuse_empty_tokens(pipeline)
        return ReferenceEncoder(pipeline)  # it checks the size of a text after each step
    known = kept.part(*PARTS) if kept else None
    if known is not None:
        general = known["arrays"] == GENERAL_ARRAYS
        make = _prepared if known["prepared"] else PipelineEncoder
        return ReferenceEncoder(pipeline) if general else make(pipeline, cache_bytes, **known)
    refuse_empty_tokens(pipeline)
    if pipeline.twins:  # kernels have one text per id
        return ReferenceEncoder(pipeline)
    for family, (module, models) in COMPILERS.items():
        if not isinstance(pipeline.model, models):
            continue
        arrays = importlib.import_module(module).compile_pipeline(pipeline)
        if arrays is not None:
            return PipelineEncoder(pipeline, cache_bytes, arrays, family=family)
    from jittok.encode.compile_plan import compile_plan

    found = compile_plan(pipeline)
    if found is not None:
        return _prepared(pipeline, cache_bytes, found.arrays, family=found.family, prepared=found.marking or True)
    return ReferenceEncoder(pipeline)


def refuse_empty_tokens(pipeline: Pipeline) -> None:
    """UnsupportedVocab if a token that is searched for in normalized text is empty once it is normalized: tokenizers
    then cuts ASCII text at every character, and panics at any other character."""
    for token, flags in zip(pipeline.added, pipeline.added_flags.tolist(), strict=True):
        searched = pipeline.normalize and flags & NORMALIZED and not flags & UNSEARCHED
        if not searched:
            continue
        try:
            text = normalized(pipeline, token.content.encode())
        except EncodingFailed as error:
            raise UnsupportedVocab(pipeline.source, "added_tokens", error.found, error.expected) from None
        if not text:
            raise UnsupportedVocab(
                pipeline.source, "added_tokens", token.content,
                'a text that the normalizer does not remove, or "normalized": false',
            )  # fmt: skip


def _prepared(*args: Any, **named: Any) -> PipelineEncoder:
    from jittok.encode.normalizing_encoder import NormalizingEncoder  # few files need it

    return NormalizingEncoder(*args, **named)


class FileEncodeOptions(NamedTuple):
    """How documents are encoded: the tokens of both searches, the ids around each, what invalid UTF-8 becomes."""

    raw: SpecialTokens
    later: SpecialTokens
    before: I32
    after: I32
    replace: bool
    alone: I32  # ids of the space before a text that begins with a user-defined piece

    @property
    def around(self) -> tuple[int, int]:
        """Number of ids before each document, and after it."""
        return self.before.size, self.after.size


class PipelineEncoder(Encoder):
    """A compiled Pipeline that encodes. Immutable but for its workspaces; safe to share between threads."""

    def __init__(
        self,
        pipeline: Pipeline,
        cache_bytes: int,
        arrays: Any,
        raw: SpecialTokens | None = None,
        later: SpecialTokens | None = None,
        raw_parsed: SpecialTokens | None = None,
        later_parsed: SpecialTokens | None = None,
        family: str = "bpe",
        prepared: Any = False,  # of a NormalizingEncoder
    ) -> None:
        super().__init__(cast(Any, pipeline), arrays, cache_bytes, kernels=family)
        self.family, self.pipeline, self.prepared = family, pipeline, prepared
        self.plain = pipeline  # the pipeline by which the reference encodes odd fragments
        self.composes = pipeline.composes_alone and not prepared
        if self.composes:
            self.rewrite = partial(changed_fragments, nfc_tables(old=True), strict=True)
        self._chooses = family == "bpe" and arrays.family != GENERAL and not prepared
        self._finds_malformed = self._chooses or family in ("unigram", "wpm")
        if self.composes:
            self.look = PreCheckTables(nfc_tables(old=True), strict=True)
        elif not self._finds_malformed and not prepared:
            self.look = PreCheckTables(None, strict=True)
        self._cuts_pieces = family == "spm" and not prepared and bool(user_defined(pipeline))
        tables = {(False, False): raw, (True, False): later, (False, True): raw_parsed, (True, True): later_parsed}
        self._searches = {key: table for key, table in tables.items() if table is not None}

    def _search(self, later: bool, parse_special: bool) -> SpecialTokens:
        if (later, parse_special) not in self._searches:
            self._searches[later, parse_special] = search_tables(
                self.pipeline, later, parse_special, bool(self.prepared)
            )
        return self._searches[later, parse_special]

    def compiled(self) -> dict[str, Any]:
        """The compiled arrays, as keyword arguments of this class."""
        searches = [self._search(later, parse) for parse in (False, True) for later in (False, True)]
        values = [self.arrays, *searches, self.family, self.prepared]
        return dict(zip(PARTS, values, strict=True))

    def rule(self, add_special: bool, parse_special: bool, replace: bool) -> Any:
        """The options of one call."""
        wanted = (bool(add_special), bool(parse_special), bool(replace))
        if wanted not in self._rules:
            single = self.pipeline.single if add_special else (FIRST_TEXT,)
            at = single.index(FIRST_TEXT)
            around = (frozen(single[:at], np.int32), frozen(single[at + 1 :], np.int32))
            searches = (self._search(False, wanted[1]), self._search(True, wanted[1]))
            self._rules[wanted] = cast(Any, FileEncodeOptions)(*searches, *around, wanted[2], self._space_alone())
        return self._rules[wanted]

    def _space_alone(self) -> I32:
        if not (self._cuts_pieces and self.arrays.add_space_prefix):
            return frozen([], np.int32)
        mark = self.arrays.span_ascii[SPACE_BYTE]
        known = 0 <= mark < self.arrays.tokens
        return frozen([mark] if known else self.arrays.span_byte_ids[list(SPACE_MARK_BYTES)], np.int32)

    def _cutter(self, rule: Any, workspace: Workspace) -> tuple[Any, tuple[Any, ...]]:
        """The kernel that cuts documents, and its arguments before their data."""
        if self._cuts_pieces:
            return cut_user_defined, (rule.raw, rule.alone, workspace.special_work)
        return cut_leftmost, (rule.raw, rule.later, workspace.special_work)

    def cutting(self, rule: Any, workspace: Workspace) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
        """As in `Encoder`; every text is cut."""
        return *self._cutter(rule, workspace), (rule.before, rule.after)

    def one(self, text: bytes, rule: Any) -> NDArray[np.int32]:
        """int32[n]: the ids of one text. Raises EncodingFailed."""
        if text.isascii():
            return super().one(text, rule)
        if len(text) < LONG_TEXT:
            return super().one(as_text(text, rule.replace).encode(), rule)
        try:
            data = well_formed(text, rule.replace)
        except UnicodeDecodeError:
            as_text(text, rule.replace)  # raises an error with the offset
            raise
        return self._one_of(self.acquire(), data, data.size - len(PADDING), rule)

    def _cut_one(self, workspace: Workspace, docs: Documents, _size: int, rule: Any) -> int:
        return self.cut(workspace, docs, 0, 1, rule)

    def cut(self, workspace: Workspace, docs: Documents, first: int, last: int, rule: Any) -> int:
        """Write the fragments of documents first .. last - 1 to the workspace. Returns their number."""
        if workspace.document_ends.size < last - first:
            workspace.grow_ends(last - first)
        while True:
            kernel, tables = self._cutter(rule, workspace)
            code = workspace.run(
                kernel, *tables, docs.data, docs.starts, docs.stops, first, last, rule.before, rule.after,
                workspace.starts, workspace.stops, workspace.tokens, workspace.document_ends, workspace.report,
            )  # fmt: skip
            if code == OUT_OF_WORK:
                workspace.give_long(int(workspace.report[NEED]))
            elif code == OUT_OF_CAPACITY:
                workspace.grow_fragments(int(workspace.report[NEED]))
            else:
                return int(code)

    def _kernel(self, workspace: Workspace, *args: Any) -> int:
        if not self._chooses:
            return super()._kernel(workspace, *args)
        return self.model.encode_fragments(*args, run=partial(_run_if_utf8, workspace))  # type: ignore[no-any-return]

    def ids_by_python(self, text: bytes) -> list[int] | NDArray[np.int32] | None:
        """The ids of a fragment, by the reference for pre-tokens with something odd in them, else by the kernel. None
        if the fragment is invalid UTF-8, which the kernel has not checked to the end."""
        try:
            text.decode()
        except UnicodeDecodeError:
            return None
        if self.family == "wpm":
            return self._words_by_python(text)
        parts = BETWEEN_WORDS.split(text)
        if len(parts) == 1:
            if len(text) < LONG_TEXT or self._normalized is None:
                return fragment_ids(self.plain, text)
            return self._ids_of_normalized(normalized(self.pipeline, text))
        stops = np.cumsum([len(part) for part in parts], dtype=np.int64)
        starts = stops - [len(part) for part in parts]
        docs = Documents(np.frombuffer(text + PADDING, np.uint8), frozen(starts, np.int64), frozen(stops, np.int64))
        tokens = frozen(np.full(len(parts), TEXT_PREFIXED), np.int32)
        with self.workspace() as workspace:
            ends = np.empty(len(parts), np.int64)
            done = self._run(workspace, docs, docs.starts, docs.stops, tokens, len(parts), 0, ends, False)
            if not isinstance(done, int):
                raise AssertionError(f"parts of a text that is UTF-8 gave {done}")
            return workspace.ids[:done].copy()

    @once
    def _odd(self) -> NDArray[np.bool_]:
        """bool[0x110000]: WordPiece's odd characters."""
        from jittok.kernels.models.wpm.bert import bert_flags, characters

        flags, odd = bert_flags(self.pipeline), np.zeros(UNICODE_SIZE, np.bool_)
        assert flags is not None  # checked when the pipeline was compiled
        odd[characters(flags).odd] = True
        return odd

    def _words_by_python(self, text: bytes) -> NDArray[np.int32]:
        """The ids of a WordPiece fragment: Python normalizes it, and an encoder without odd characters encodes it."""
        from jittok.kernels.models.wpm.bert import rewritten

        new = rewritten(self._odd, partial(normalized, self.pipeline), text.decode()).encode()
        return self._ids_of_normalized(new)

    @once
    def _normalized(self) -> PipelineEncoder | None:
        """The encoder of text that is normalized already; None if no kernel covers it."""
        if self.family == "wpm":
            from jittok.kernels.models.wpm import files

            return PipelineEncoder(
                self.pipeline, ODD_CACHE, files.compile_pipeline(self.pipeline, odd=False), family="wpm"
            )
        from jittok.kernels.models.ugm.files.compile import compile_pipeline
        from jittok.kernels.models.ugm.files.normalizer_tables import RUNS

        steps = self.pipeline.normalize
        runs = [step for step in steps[-1:] if isinstance(step, Replace) and step.pattern == RUNS]  # none is left
        rest = self.pipeline._replace(normalize=tuple(runs))
        arrays = compile_pipeline(rest) if isinstance(rest.model, Unigram) and len(steps) > len(runs) else None
        return None if arrays is None else PipelineEncoder(rest, ODD_CACHE, arrays, family="unigram")

    def _ids_of_normalized(self, new: bytes) -> NDArray[np.int32]:
        """The ids of a fragment that is normalized already."""
        encoder = self._normalized
        assert encoder is not None  # checked by the caller
        whole = np.array([0], np.int64), np.array([len(new)], np.int64), np.array([TEXT_PREFIXED], np.int32)
        starts, stops, tokens = (frozen(each, each.dtype.type) for each in whole)
        docs, ends = Documents(np.frombuffer(new + PADDING, np.uint8), starts, stops), np.empty(1, np.int64)
        with encoder.workspace() as workspace:
            done = encoder._run(workspace, docs, starts, stops, tokens, 1, 0, ends, False)
            if not isinstance(done, int):
                raise AssertionError(f"a text that is UTF-8 and normalized gave {done}")
            return workspace.ids[:done].copy()

    def encode_fragments(
        self, workspace: Workspace, docs: Documents, starts: NDArray[np.int64], stops: NDArray[np.int64],
        tokens: NDArray[np.int32], fragments: int, size: int, rule: Any, at: int = 0,
    ) -> int | Failure:  # fmt: skip
        """Encode fragments as `Encoder.encode_fragments`; a Failure if one is invalid UTF-8."""
        if not self.prepared and (self.rewrite is not None or self._finds_malformed):
            done = super().encode_fragments(workspace, docs, starts, stops, tokens, fragments, size, rule, at)
            bad = done.fragment if isinstance(done, Failure) and done.code == NOT_UTF8 else VALID
            if bad == VALID:
                return done
        else:
            bad = workspace.run(first_malformed, docs.data, starts, stops, tokens, 0, fragments)
            if bad == VALID:
                return super().encode_fragments(workspace, docs, starts, stops, tokens, fragments, size, rule, at)
        if rule.replace:
            part = well_formed_copies(docs, starts[:fragments], stops[:fragments], tokens[:fragments])
            size = part[0].data.size
            return super().encode_fragments(workspace, *part, fragments, size, rule, at)
        try:
            docs.between(int(starts[bad]), int(stops[bad])).decode()
        except UnicodeDecodeError as error:
            return Failure(NOT_UTF8, int(bad), int(starts[bad]) + error.start, 0)
        raise AssertionError("text that is UTF-8 was said to be none")


def _run_if_utf8(workspace: Workspace, kernel: Any, *args: Any) -> int:
    """Call a kernel. The general one runs on fragments that another has left, which may be invalid UTF-8: these are
    checked first."""
    from jittok.kernels.models.bpe.general import encode_general  # only BPE needs it

    if kernel is encode_general:
        _, _, data, starts, stops, tokens, at = args[:7]
        if workspace.run(first_malformed, data, starts, stops, tokens, at, at + 1) != VALID:
            args[-1][FRAGMENT] = at
            return NOT_UTF8
    return workspace.run(kernel, *args)  # type: ignore[no-any-return]


def search_tables(pipeline: Pipeline, later: bool, parse_special: bool, prepared: bool = False) -> SpecialTokens:
    """The tokens of one search. prepared: user-defined pieces are searched for in normalized texts. Without
    `parse_special`, tokens flagged special are found but left as text (id -1)."""
    found, change = (
        dict[bytes, tuple[int, int]](),
        partial(normalized, pipeline) if later and pipeline.normalize else bytes,
    )
    if later == prepared:
        own = user_defined_normalized(pipeline) if prepared else user_defined(pipeline)
        found |= {text: (token, 0) for text, token in own.items()}
    for token, flags in zip(pipeline.added, pipeline.added_flags.tolist(), strict=True):
        if bool(flags & NORMALIZED) == later and not flags & UNSEARCHED:
            hidden = bool(flags & SPECIAL) and not parse_special
            strips = (STRIPS_LEFT if flags & LSTRIP else 0) | (STRIPS_RIGHT if flags & RSTRIP else 0)
            strips |= ONLY_WORD if flags & SINGLE_WORD else 0
            found[change(token.content.encode())] = -1 if hidden else token.id, strips  # of equal texts the last
    rows = [(text, token, strips) for text, (token, strips) in found.items() if text]
    if all(token < 0 for _, token, _ in rows):
        rows = []
    rows.sort(key=lambda row: -len(row[0]))
    ids = np.array([token for _, token, _ in rows], np.int32)
    return tables_of([text for text, _, _ in rows], ids, np.array([strips for _, _, strips in rows], np.uint8))
