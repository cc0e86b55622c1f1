"""The one encoder: runs a `Plan` on one text, or on a stretch of documents in a workspace.

A kernel that lacks something (capacity, or tables that few texts need) returns a code; the encoder provides it and
calls the kernel again, which resumes. Threads are handled by `batch`: each has a workspace of its own.

Files other than GGUF encode characters: invalid UTF-8 is an error, or U+FFFD. llama.cpp reads any bytes, and some crash
it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import Lock, once
from jittok.common.pipeline.pipeline import SINGLE_WORD, read_only_array
from jittok.encode import limits
from jittok.encode.buffers import Mapping, Workspace, weight_of
from jittok.encode.cutters import EncodeOptions, LlamaCutter, cut, mark_inner_texts, whole_text_fragment
from jittok.encode.plan import ANY_BYTES, BEFORE, BY_KERNEL, FragmentTexts, Plan, gguf_plan, model_of
from jittok.encode.short_text import try_short_text
from jittok.errors import EncodingFailed, JittokError
from jittok.kernels.fragments import (
    BEYOND_UNICODE,
    EXPECTED,
    FOUND,
    FRAGMENT,
    LONG_WORD,
    NEED,
    NO_BYTE_TOKEN,
    NOT_UTF8,
    OFFSET,
    OUT_OF_CAPACITY,
    OUT_OF_WORK,
    SPACE_IN_SYMBOL,
    Failure,
    found_value,
)
from jittok.kernels.inputs import PADDING, Documents
from jittok.kernels.jit import CHECKED, U8, frozen, kernel, run_interruptible
from jittok.kernels.merging.left_to_right import BUILD_ON_DEMAND, LONG_WORD_SYMBOLS, READY
from jittok.kernels.normalize.nfc.fragments import NotUtf8
from jittok.kernels.pretokenize.splitters import GENERAL
from jittok.kernels.special.tables import SpecialTokens
from jittok.kernels.structures.utf8_check import VALID, first_malformed
from jittok.vocab import Vocab

if TYPE_CHECKING:
    from jittok.encode.fallback.reference_encoder import OddTexts
    from jittok.encode.prepared_texts import PreparedTexts

REPLACEMENT = "\ufffd".encode()
BEYOND = re.compile(rb"\xf4[\x90-\xbf][\x80-\xbf]{2}|[\xf5-\xf7][\x80-\xbf]{3}")
"""The sequences that llama.cpp's decoder reads as a code point above U+10FFFF."""
GROWTH = len(REPLACEMENT)
"""Bytes that one which is invalid UTF-8 becomes."""
MOST_KEPT_IDS = 1 << 24
"""Arrays of a workspace with more capacity than this are not kept."""
FIRST_LONGEST = 1 << 12
"""Bytes of a fragment that the scratch of a new workspace is made for."""
FULL_CAPACITY_BYTES = 1 << 16
"""Texts of up to this many bytes get capacity for all ids they could give, longer ones as much as texts before
needed."""
SPARE_IDS = 48 << 10
"""Spare capacity for ids beyond that, as kernels need it for all ids that a chunk of text could have."""
GIVEN_AWAY = 1 << 20
"""From this many ids of one text on the array is given to the caller: a copy would double the memory."""


class Encoder:
    """A plan that encodes. Immutable but for its workspaces; safe to share between threads."""

    in_python = False
    """Whether plain Python does the work, see `batch`."""
    try_short_text = try_short_text

    def __init__(
        self, plan: Plan | Vocab, arrays: Any = None, cache_bytes: int | None = None, **searches: Any
    ) -> None:  # fmt: skip
        """arrays, searches: for a Vocab, what is compiled already (see `gguf_plan`)."""
        self.plan = plan = gguf_plan(plan, arrays, **searches) if isinstance(plan, Vocab) else plan
        self.vocab: Any = plan.vocab
        self.model = model_of(plan.family)
        self.one_kernel = isinstance(self.model.encode_fragments, kernel)
        self.arrays = plan.arrays
        if hasattr(self.arrays, "chain"):
            self.arrays = self.arrays._replace(chain=self.arrays.chain._replace(state=plan.chain))
        self._cache = {"cache_bytes": cache_bytes} if cache_bytes is not None and _has_cache(self.model) else {}
        self.ids_per_byte = 0.4  # a guess for the next texts, from the last ones of any thread
        self._rules: dict[tuple[bool, bool, bool], EncodeOptions] = {}
        self.literal_rules: dict[tuple[bool, bool], Any] = {}  # see `literal`
        self._workspaces: list[Workspace] = []
        self.kept: list[Mapping] = []  # mappings of ids, shared by all threads, see `buffers`
        self.builtins: dict[int, Any] = {}  # by id of their rules, see `short_text`
        self._parted = 0, 1 << 62  # bytes of the longest document known to be cuttable, of the shortest known not to be
        self.weight = weight_of(plan.vocab)
        self._settled = not hasattr(self.model, "optimized_layout")
        self._settling = Lock()
        self.binds = plan.binds  # whether a short text may be encoded by a frame, see `short_text`
        self.begun = False  # whether a kernel has been called: the first text calls them one by one
        self.searches_again = bool(plan.normalize)  # whether tokens of normalized text are searched for after steps
        self.odd_text: int | None = getattr(self.model, "ODD_TEXT", None)
        self._in_place = not plan.prepares  # whether the model reads texts where they are
        self._strict, self._composes, self._marks = plan.utf8 != ANY_BYTES, plan.compose is not None, bool(plan.marks)
        first = self.first_kernel()
        if first.at_hand():
            first.plan  # noqa: B018  how it is called, computed once
        self._workspaces.append(self._new_workspace())  # for the first text
        self._checks_general = plan.utf8 == BY_KERNEL and getattr(plan.arrays, "family", GENERAL) != GENERAL

    # ---- options

    def rule(self, add_special: bool, parse_special: bool, replace: bool) -> EncodeOptions:
        """The options of one call. EncodingFailed if `add_special` needs an id that the vocabulary does not have."""
        wanted = (bool(add_special), bool(parse_special), bool(replace))
        if wanted not in self._rules:
            self._rules[wanted] = self.plan.cutter.options(*wanted)
        return self._rules[wanted]

    def bare_rule(self) -> EncodeOptions:
        """Options for plain text: no special token is searched for, and none is added."""
        assert isinstance(self.plan.cutter, LlamaCutter)  # only types of GGUFs need it
        return self.plan.cutter.bare_options()

    def compiled(self) -> dict[str, Any]:
        """What is compiled, for the cache of vocabularies: see `Plan.compiled`."""
        return self.plan._replace(arrays=self.arrays).compiled()

    # ---- one text

    def one(self, text: bytes, rule: EncodeOptions) -> NDArray[np.int32]:
        """int32[n]: the ids of one text, without the bookkeeping of a batch. Raises EncodingFailed."""
        if self._strict and not text.isascii():
            text, long = valid_text(text, rule.replace)
            if long is not None:
                return self._one_of(self.acquire(), long, long.size - len(PADDING), rule)
        workspace = self.acquire()
        in_place = self._in_place and (not self._composes or text.isascii())
        # checked kernels test every index against the end of the array
        if len(text) <= limits.LONGEST_HELD and workspace.scratch is not None and in_place and not CHECKED:
            fragments = self._cut_one(workspace, workspace.hold(text), len(text), rule)
            count = self._kernel(
                workspace, self.arrays, workspace.scratch, workspace.held.data, workspace.read_starts,
                workspace.read_stops, workspace.read_tokens, 0, fragments, 0, workspace.ids, workspace.ends,
                workspace.report,
            )  # fmt: skip
            if count >= 0:
                ids = workspace.ids[:count].copy()
                self._workspaces.append(workspace)  # `release` is not needed: no array has grown
                return ids
        padded = text + PADDING if len(text) > limits.LONGEST_HELD else text  # a kernel copies a short one faster
        return self._one_of(workspace, np.frombuffer(padded, np.uint8), len(text), rule)

    def _one_of(
        self, workspace: Workspace, data: NDArray[np.uint8], size: int, rule: EncodeOptions
    ) -> NDArray[np.int32]:
        """The same for the first `size` bytes of read-only `data`. Releases the workspace."""
        with self._kept(workspace):
            workspace.one_stop[0] = size
            docs = Documents(data, workspace.one_start, workspace.read_one_stop)
            workspace.expect(docs, size)
            fragments = self._cut_one(workspace, docs, size, rule)
            count = self.encode(workspace, docs, 0, 1, fragments, rule, 0)
            if count < GIVEN_AWAY:
                return workspace.ids[:count].copy()
            return workspace.detach_ids(count)

    def can_split_at_spaces(self, size: int) -> bool:
        """Whether the model has safe cuts between words in a text of `size` bytes (see `long_document`). Not if steps
        prepare the text, as these may depend on where a text begins."""
        yes, no = self._parted
        if yes < size < no:  # what holds for a text holds for shorter ones, so the model's test seldom runs
            may_part = None if self.plan.prepares else getattr(self.model, "can_split_at_spaces", None)
            if may_part is not None and may_part(self.arrays, size):
                yes = size
            else:
                no = size
            self._parted = yes, no
        return size <= yes

    def reads_whole(self, rule: EncodeOptions) -> bool:
        """Whether a text is one fragment that the model reads in place, unless a token is found in it: nothing is added
        or rewritten, and tokens are found wherever they are written."""
        plain = self._in_place and not self._composes and self.plan.first_only is None
        words = bool(getattr(self.vocab, "added_flags", np.zeros(0, np.uint8)).__and__(SINGLE_WORD).any())
        return plain and rule.around == (0, 0) and not words

    def finds_nothing(self, workspace: Workspace, docs: Documents, rule: EncodeOptions) -> bool:
        """Whether no token is found in any of these documents, and so in no part of them."""
        searches = (*rule.tables, *([] if rule.later is None else [rule.later]))
        if all(isinstance(table, SpecialTokens) and not table.ids.size for table in searches):
            return True
        count = self.cut(workspace, docs, 0, docs.starts.size, rule)
        return count == np.count_nonzero(docs.stops > docs.starts) and bool((workspace.tokens[:count] < 0).all())

    def encode_whole(
        self, workspace: Workspace, texts: FragmentTexts, number: int, ends: NDArray[np.int64]
    ) -> int | Failure:  # fmt: skip
        """Encode the first `number` of these texts, valid UTF-8, where `reads_whole`, to the workspace. Returns the
        number of ids; the ends of each text's ids are written to `ends`."""
        return self.run(workspace, texts, number, 0, ends, False)

    # ---- workspaces

    def _new_workspace(self) -> Workspace:
        """A workspace that short texts can be encoded with."""
        workspace = Workspace(self.kept, self.weight)
        workspace.grow_ids(SPARE_IDS, 0)
        self._give_work(workspace, FIRST_LONGEST)
        return workspace

    def acquire(self) -> Workspace:
        """A workspace that no other thread uses, a new one if none is free. `release` returns it."""
        try:
            workspace = self._workspaces.pop()
        except IndexError:
            return Workspace(self.kept, self.weight)
        if workspace.ready[0] < 0:  # see `short_text`
            return Workspace(self.kept, self.weight)
        workspace.ready[0] = 0
        return workspace

    def workspace(self) -> AbstractContextManager[Workspace]:
        """Context manager: a workspace for the time of a block."""
        return self._kept(self.acquire())

    @contextmanager
    def _kept(self, workspace: Workspace) -> Iterator[Workspace]:
        """Release a workspace at the end of a block. After an exception it is dropped: its arrays may be
        inconsistent."""
        try:
            yield workspace
        except JittokError:
            self.release(workspace)
            raise
        self.release(workspace)

    def release(self, workspace: Workspace) -> None:
        """Return a workspace, without its memory for unusually long texts. Its pre-token cache is kept."""
        self.tidy(workspace, MOST_KEPT_IDS)
        workspace.trim(MOST_KEPT_IDS)
        self._workspaces.append(workspace)

    def tidy(self, workspace: Workspace, longest: int) -> None:
        """Release scratch for texts of more than `longest` bytes. The pre-token cache is kept."""
        if workspace.longest > longest:
            self._give_work(workspace, FIRST_LONGEST)

    def _give_work(self, workspace: Workspace, longest: int) -> None:
        """Allocate scratch for fragments of up to `longest` bytes. The pre-token cache of the old one is kept."""
        if longest <= FIRST_LONGEST:
            workspace.queued = 0
        capacities = LONG_WORD_SYMBOLS, longest + 16, None
        queued = {"queued": capacities[workspace.queued]} if hasattr(self.arrays, "chain") else {}
        before, workspace.longest = workspace.longest, longest
        workspace.forget()
        if workspace.scratch is not None and hasattr(self.model, "regrow"):
            if before > FIRST_LONGEST:  # free the old one first, but for its cache
                workspace.scratch = self.model.regrow(self.arrays, workspace.scratch, FIRST_LONGEST)
            workspace.scratch = self.model.regrow(self.arrays, workspace.scratch, longest, **queued)
        else:
            workspace.scratch = None  # free the old one first
            workspace.scratch = self.model.make_work(self.arrays, longest, **queued, **self._cache)

    def _give_queue(self, workspace: Workspace) -> None:
        """Grow the queue for a pre-token that left-to-right BPE cannot encode: to one symbol a byte; if that is not
        enough, as for text that grows, to the maximum."""
        if workspace.queued == 2:
            raise AssertionError("a word is longer than there can be symbols")
        workspace.queued += 1
        self._give_work(workspace, max(workspace.longest, FIRST_LONGEST + 1))

    # ---- stretches of documents

    def _cut_one(self, workspace: Workspace, docs: Documents, size: int, rule: EncodeOptions) -> int:
        """Write the fragments of a single document to the workspace. Returns their number."""
        if rule.searches:
            return self.cut(workspace, docs, 0, 1, rule)
        return whole_text_fragment(workspace, size, rule.before, rule.after)

    def cut(self, workspace: Workspace, docs: Documents, first: int, last: int, rule: EncodeOptions) -> int:
        """Write the fragments of documents first .. last - 1 to the workspace. Returns their number."""
        count = cut(workspace, docs, first, last, rule)
        if self.plan.first_only is not None:
            mark_inner_texts(workspace, docs, docs.starts[first:last], count, self.plan.first_only)
        return count

    def encode(
        self, workspace: Workspace, docs: Documents, first: int, last: int, fragments: int, rule: EncodeOptions,
        base: int, at: int = 0,
    ) -> int:  # fmt: skip
        """Encode the workspace's fragments, which are those of documents first .. last - 1 (see `cut`). The ids are
        written after the workspace's first `at`. Returns the number of its ids now. base: the number of document 0.
        Raises EncodingFailed."""
        cut = workspace.read_starts, workspace.read_stops, workspace.read_tokens
        done = self.encode_fragments(workspace, docs, *cut, fragments, docs.size(first, last), rule, at)
        if isinstance(done, int):
            return done
        document = 0
        if last - first > 1:
            document = int(np.searchsorted(workspace.document_ends[: last - first], done.fragment, side="right"))
        raise failure_of(docs, base, first + document, done)

    def encode_fragments(
        self, workspace: Workspace, docs: Documents, starts: NDArray[np.int64], stops: NDArray[np.int64],
        tokens: NDArray[np.int32], fragments: int, size: int, rule: EncodeOptions, at: int = 0,
    ) -> int | Failure:  # fmt: skip
        """The same for `fragments` fragments (see `jittok.kernels.fragments`) of `size` bytes together; a Failure if
        one cannot be encoded. The workspace must have capacity for their ends."""
        texts, bad = FragmentTexts(docs.data, starts, stops, tokens, docs.kept), VALID
        if self.plan.utf8 == BEFORE:
            bad = int(workspace.run(first_malformed, *texts.columns, 0, fragments))
        if bad == VALID:
            done = self._encode_texts(workspace, texts, fragments, size, rule, at)
            if isinstance(done, int) or self.plan.utf8 != BY_KERNEL or done.code != NOT_UTF8:
                return done
            bad = done.fragment
        if rule.replace:
            texts = valid_copies(texts.some(slice(0, fragments)))
            return self._encode_texts(workspace, texts, fragments, texts.data.size, rule, at)
        return malformed(texts, bad)

    def _encode_texts(
        self, workspace: Workspace, texts: FragmentTexts, number: int, size: int, rule: EncodeOptions, at: int
    ) -> int | Failure:
        """The same for the first `number` of these texts, which are valid UTF-8 or are read as any bytes."""
        if size >= limits.MUCH_TEXT and not self._settled:
            self._optimize_layout()
        capacity = int(self.ids_per_byte * size) if size > FULL_CAPACITY_BYTES else self.model.IDS_PER_BYTE * size
        capacity += at + number + SPARE_IDS
        if workspace.ids.size < capacity:
            workspace.grow_ids(capacity + at, at)  # doubled where there are ids already, so that copies stay cheap
        if not self._in_place:
            done = self._prepared.run(workspace, texts.some(slice(0, number)), at, workspace.ends, rule)
        elif self._composes:
            done = self._run_composed(workspace, texts, number, at, rule.replace)
        else:
            done = self.run(workspace, texts, number, at, workspace.ends, rule.replace)
        if isinstance(done, int):
            workspace.written = done
            if size > FULL_CAPACITY_BYTES:
                self.ids_per_byte = 1.05 * (done - at) / size
        return done

    def _run_composed(
        self, workspace: Workspace, texts: FragmentTexts, number: int, count: int, replace: bool
    ) -> int | Failure:
        """`run` on fragments in NFC."""
        compose, own = self.plan.compose, texts.some(slice(0, number))
        assert compose is not None  # checked by the caller
        try:
            found = compose.changed(own)
        except NotUtf8 as bad:
            return Failure(NOT_UTF8, bad.args[0], 0, 0)
        if found is None:
            return self.run(workspace, texts, number, count, workspace.ends, replace)
        made = compose.replaced(workspace, own, found)
        done = self.run(workspace, made, number, count, workspace.ends, replace)
        if isinstance(done, int):
            return done
        k = done.fragment
        offset = done.offset - int(made.starts[k])
        changed = found.changes[k] >= 0
        offset = found.before(k, offset + int(found.starts[k])) if changed else offset + int(texts.starts[k])
        return Failure(done.code, k, offset, done.found)

    @once
    def _prepared(self) -> PreparedTexts:
        """What encodes fragments that steps of the plan prepare."""
        from jittok.encode.prepared_texts import PreparedTexts

        return PreparedTexts(self)

    # ---- the model

    def _optimize_layout(self) -> None:
        """Optimize the layout of the arrays for much text, once. Workspaces work with either layout."""
        with self._settling:
            if not self._settled:
                self.arrays = run_interruptible(self.model.optimized_layout, self.arrays)
                self._settled = True

    def _with_chain(self) -> Any:
        """The arrays with the tables of left-to-right BPE, built for the first long pre-token, or marked as having
        none."""
        with self._settling:
            if self.arrays.chain.state == BUILD_ON_DEMAND:
                self.arrays = run_interruptible(self.model.with_chain, self.arrays)
            return self.arrays

    def _kernel(self, workspace: Workspace, arrays: Any, work: Any, data: NDArray[np.uint8], *args: Any) -> int:
        """The model's `encode_fragments`, a kernel or a function that chooses one."""
        self.begun = True
        if self._marks:
            arrays = self.plan.arrays_for(arrays, data)
        if self.one_kernel:
            return workspace.run(self.model.encode_fragments, arrays, work, data, *args)  # type: ignore[no-any-return]
        run = partial(run_if_utf8, workspace) if self._checks_general else workspace.run
        return self.model.encode_fragments(arrays, work, data, *args, run=run)  # type: ignore[no-any-return]

    def first_kernel(self) -> Any:
        """The kernel that the model calls first."""
        if self.one_kernel:
            return self.model.encode_fragments
        called: list[Any] = []

        def note(kernel: Any, *_args: Any) -> int:
            called.append(kernel)
            return 0

        self.model.encode_fragments(self.arrays, *(None,) * 5, 0, 0, 0, None, None, None, run=note)
        return called[0]

    def run(
        self, workspace: Workspace, texts: FragmentTexts, number: int, count: int, ends: NDArray[np.int64],
        replace: bool,
    ) -> int | Failure:  # fmt: skip
        """Call the kernel until the first `number` of these texts are done, and provide what its codes request. Ids are
        written to the workspace, from `count` on. Returns their new number."""
        arrays, report, at, origin, strict_bytes = self.arrays, workspace.report, 0, count, True
        data, starts, stops, tokens, _ = texts
        if workspace.scratch is None:
            self._give_work(workspace, FIRST_LONGEST)
        while at < number:
            code = self._kernel(
                workspace, arrays, workspace.scratch, data, starts, stops, tokens, at, number, count, workspace.ids,
                ends, report,
            )  # fmt: skip
            if code >= 0:
                return int(code)
            at, need = int(report[FRAGMENT]), int(report[NEED])
            count = int(ends[at - 1]) if at else origin
            if code == OUT_OF_CAPACITY:
                workspace.grow_ids(max(count + need, workspace.ids.size + workspace.ids.size // 2), count)
            elif code == OUT_OF_WORK:
                longest = int((stops[:number] - starts[:number]).max())  # more would only be addresses
                wanted = max(need, min(2 * workspace.longest, longest))
                self._give_work(workspace, wanted if wanted > workspace.longest else 2 * workspace.longest)
            elif code == LONG_WORD:
                arrays = self._with_chain() if strict_bytes else self._with_unknown_bytes(self._with_chain())
                if arrays.chain.state != READY:
                    self._give_queue(workspace)
            elif code == NO_BYTE_TOKEN and replace and strict_bytes and self._can_replace_bytes():
                arrays, strict_bytes = self._with_unknown_bytes(arrays), False
            else:
                done = self._run_left(workspace, texts, at, count, code, replace)
                if not isinstance(done, int):
                    return done
                ends[at] = count = done
                at += 1
        return count

    def _run_left(
        self, workspace: Workspace, texts: FragmentTexts, at: int, count: int, code: int, replace: bool
    ) -> int | Failure:
        """Write the ids of text `at`, which the kernel leaves with this code, after the first `count`."""
        start, stop = int(texts.starts[at]), int(texts.stops[at])
        raw = Documents(texts.data, texts.starts, texts.stops, texts.kept).between(start, stop)
        if code == self.odd_text:
            if isinstance(self.vocab, Vocab):
                found: Any = gguf_fragment(self.vocab, raw, replace)
            else:
                found = self._odd_texts.ids(raw)
            if found is None:
                return Failure(NOT_UTF8, at, start, 0)
            if isinstance(found, Failure):
                return found._replace(fragment=at, offset=start + found.offset)
            if workspace.ids.size < count + len(found):
                workspace.grow_ids(2 * (count + len(found)), count)
            workspace.ids[count : count + len(found)] = found
            return count + len(found)
        whole = replace_unencodable(self.vocab, code, raw) if replace else None
        if whole:
            offsets = read_only_array([0], np.int64), read_only_array([len(whole)], np.int64)
            text = FragmentTexts(
                np.frombuffer(whole, np.uint8), *offsets, read_only_array([texts.tokens[at]], np.int32)
            )
            done = self.run(workspace, text, 1, count, np.empty(1, np.int64), replace)
            return done if isinstance(done, int) else Failure(done.code, at, start, done.found)
        if code in EXPECTED:
            return Failure(code, at, int(workspace.report[OFFSET]), int(workspace.report[FOUND]))
        raise AssertionError(f"{self.model.__name__} gave code {code} at fragment {at}")

    @once
    def _odd_texts(self) -> OddTexts:
        """What encodes fragments that the kernel leaves to Python."""
        from jittok.encode.fallback.reference_encoder import OddTexts

        return OddTexts(self)

    def _can_replace_bytes(self) -> bool:
        return self.vocab.unk_id >= 0 and hasattr(self.arrays, "byte_ids")

    def _with_unknown_bytes(self, arrays: Any) -> Any:
        """The arrays, with the unknown id for bytes that have no token."""
        byte_ids = arrays.byte_ids
        return arrays._replace(byte_ids=read_only_array(np.where(byte_ids < 0, self.vocab.unk_id, byte_ids), np.int32))


def _has_cache(model: Any) -> bool:
    """Whether a model has a pre-token cache, whose memory can be bounded."""
    return "cache_bytes" in model.make_work.__annotations__


# ---- text that a kernel cannot encode as it is


def failure_of(docs: Documents, base: int, document: int, done: Failure) -> EncodingFailed:
    """The error of a document that cannot be encoded. document: its number in `docs`; base: the number of document
    0."""
    start, stop = int(docs.starts[document]), int(docs.stops[document])
    return EncodingFailed(
        base + document,
        done.offset - start,
        found_value(done, docs.between(done.offset, min(done.offset + 8, stop))),
        EXPECTED[done.code],
    )


def gguf_fragment(vocab: Vocab, text: bytes, replace: bool) -> list[int] | Failure:
    """The ids of a GGUF's fragment by the reference, or the Failure with the offset in it: for vocabularies that no
    kernel can read. replace: U+FFFD for what crashes llama.cpp."""
    from jittok.encode.fallback.reference_encoder import fragment_of_gguf

    try:
        return fragment_of_gguf(vocab, text)
    except EncodingFailed as failed:
        code = next((code for code, expected in EXPECTED.items() if expected == failed.expected), None)
        if code is None:
            raise
        mended = replace_unencodable(vocab, code, text) if replace else None
        if mended is not None:
            return gguf_fragment(vocab, mended, False)
        return Failure(code, 0, failed.offset, int(str(failed.found)[2:], 16) if code == BEYOND_UNICODE else 0)


def replace_unencodable(vocab: Vocab, code: int, text: bytes) -> bytes | None:
    """A fragment that failed with this code, with U+FFFD for what crashes llama.cpp; None if that does not help."""
    if code == BEYOND_UNICODE:
        return BEYOND.sub(4 * REPLACEMENT, text)
    if code == SPACE_IN_SYMBOL:
        from jittok.kernels.pretokenize.spaces_in_words import spaces_in_words, without_spaces

        spaces = spaces_in_words(vocab, text)
        return without_spaces(text, spaces) if spaces else None
    return None


# ---- invalid UTF-8


def run_if_utf8(workspace: Workspace, kernel: Any, *args: Any) -> int:
    """Call a kernel. The general one runs on fragments that another has left, which may be invalid UTF-8: these are
    checked first."""
    from jittok.kernels.models.bpe.general import encode_general  # only BPE needs it

    if kernel is encode_general:
        _, _, data, starts, stops, tokens, at = args[:7]
        if workspace.run(first_malformed, data, starts, stops, tokens, at, at + 1) != VALID:
            args[-1][FRAGMENT] = at
            return NOT_UTF8
    return workspace.run(kernel, *args)  # type: ignore[no-any-return]


def malformed(texts: FragmentTexts, fragment: int) -> Failure:
    """The failure of a fragment that is invalid UTF-8."""
    start = int(texts.starts[fragment])
    docs = Documents(texts.data, texts.starts, texts.stops, texts.kept)
    try:
        docs.between(start, int(texts.stops[fragment])).decode()
    except UnicodeDecodeError as error:
        return Failure(NOT_UTF8, fragment, start + error.start, 0)
    raise AssertionError("text that is valid UTF-8 was reported as invalid")


def valid_text(text: bytes, replace: bool) -> tuple[bytes, U8 | None]:
    """(A text with U+FFFD in place of invalid UTF-8, None); (the text, the same with PADDING after it) for a long one.
    Without `replace`, raises EncodingFailed."""
    from jittok.encode.fallback.reference_encoder import as_text

    if len(text) < limits.VALIDATED_AT_ONCE:
        return as_text(text, replace).encode(), None
    out = np.empty((GROWTH if replace else 1) * len(text) + len(PADDING), np.uint8)  # untouched pages take no memory
    try:
        size = _write(text, "replace" if replace else "strict", out, 0)
    except UnicodeDecodeError:
        as_text(text, replace)  # raises an error with the offset
        raise
    out[size : size + len(PADDING)] = 0
    return text, frozen(out[: size + len(PADDING)], np.uint8)


def _write(text: bytes, errors: str, out: NDArray[np.uint8], size: int) -> int:
    """Write the text to out[size:]. Returns the offset after it."""
    decoder, parts = codecs.getincrementaldecoder("utf-8")(errors), memoryview(text)
    for at in range(0, len(text), limits.VALIDATED_PART):
        part = decoder.decode(parts[at : at + limits.VALIDATED_PART], at + limits.VALIDATED_PART >= len(text)).encode()
        out[size : size + len(part)] = np.frombuffer(part, np.uint8)
        size += len(part)
    return size


def valid_copies(texts: FragmentTexts) -> FragmentTexts:
    """Copies of fragments with U+FFFD in place of invalid UTF-8."""
    out = np.empty(GROWTH * texts.size, np.uint8)
    ends, size = np.empty(texts.number, np.int64), 0
    docs = Documents(texts.data, texts.starts, texts.stops, texts.kept)
    for k, (start, stop, token) in enumerate(
        zip(texts.starts.tolist(), texts.stops.tolist(), texts.tokens.tolist(), strict=True)
    ):
        if token < 0:
            size = _write(docs.between(start, stop), "replace", out, size)
        ends[k] = size
    begins, stops = frozen(np.append(0, ends[:-1]), np.int64), frozen(ends, np.int64)
    return FragmentTexts(frozen(out[:size], np.uint8), begins, stops, frozen(texts.tokens.copy(), np.int32))
