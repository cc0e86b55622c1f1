"""One text to ids, or a stretch of documents in a workspace: cut around special tokens, then the model's kernel.

A kernel that lacks something (capacity, or tables that few texts need) returns a code; an `Encoder` provides it and
calls the kernel again, which resumes. Threads are handled by `batch`: each has a workspace of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import Lock
from jittok.encode.buffer_pool import Mapping
from jittok.encode.failures import failure_of, replace_unencodable
from jittok.encode.options import EncodeOptions
from jittok.encode.precheck import PreCheckTables
from jittok.encode.rewriting import Rewrite, run_rewritten
from jittok.encode.short_text import has_to_cut, try_short_text
from jittok.encode.whole_documents import can_wait, nothing_to_cut, whole_document_fragments, whole_text_fragment
from jittok.encode.workspace import LONGEST_HELD, Workspace, read_only_array, weight_of
from jittok.errors import JittokError, UnsupportedVocab
from jittok.kernels.fragments import (
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
    Failure,
)
from jittok.kernels.inputs import PADDING, Documents
from jittok.kernels.jit import CHECKED, kernel, run_interruptible
from jittok.kernels.merging.left_to_right import BUILD_ON_DEMAND, LONG_WORD_SYMBOLS, READY
from jittok.kernels.normalize.nfc_fragments import changed_fragments, nfc_tables
from jittok.kernels.special import partition, tables
from jittok.vocab import NO_TOKEN, Vocab
from jittok.vocab.types import TYPES, ids_around

MOST_KEPT_IDS = 1 << 24
"""Arrays of a workspace with more capacity than this are not kept."""
FIRST_LONGEST = 1 << 12
"""Bytes of a fragment that the scratch of a new workspace is made for."""

LONGEST_KERNEL_COPY = 1 << 11
"""Other single texts of up to this many bytes are copied by the kernel to where it can read past their ends."""
FULL_CAPACITY_BYTES = 1 << 16
"""Texts of up to this many bytes get capacity for all ids they could give, longer ones as much as texts before
needed."""
MUCH_TEXT = 1 << 18
"""Bytes of one stretch from which on the layout of the compiled arrays is optimized."""
SPARE_IDS = 48 << 10
"""Spare capacity for ids beyond that, as kernels need it for all ids that a chunk of text could have."""

GIVEN_AWAY = 1 << 20
"""From this many ids of one text on the array is given to the caller: a copy would double the memory."""


class Encoder:
    """A compiled vocabulary that encodes. Immutable but for its workspaces; safe to share between threads."""

    in_python = False
    """Whether plain Python does the work, see `batch`."""

    def __init__(
        self,
        vocab: Vocab,
        arrays: Any = None,
        cache_bytes: int | None = None,
        plain: tables.SpecialTokens | None = None,
        parsed: tables.SpecialTokens | None = None,
        kernels: str | None = None,
    ) -> None:
        kind = TYPES.get(kernels or vocab.type)
        if kind is None or not kind.module:
            raise UnsupportedVocab(vocab.source, "tokenizer.ggml.model", vocab.model, "a type that can tokenize")
        self.vocab = vocab
        self.model = importlib.import_module(kind.module)
        self.one_kernel = isinstance(self.model.encode_fragments, kernel)
        self.arrays = self.model.compile_pipeline(vocab.pipeline) if arrays is None else arrays
        self._cache = {"cache_bytes": cache_bytes} if cache_bytes is not None and _has_cache(self.model) else {}
        self.ids_per_byte = 0.4  # a guess for the next texts, from the last ones of any thread
        tables = {False: plain, True: parsed}
        self._special = {parse: table for parse, table in tables.items() if table is not None}
        self._rules: dict[tuple[bool, bool, bool], EncodeOptions] = {}
        self._workspaces: list[Workspace] = []
        self.kept: list[Mapping] = []  # mappings of ids, shared by all threads, see `buffer_pool`
        self.builtins: dict[int, Any] = {}  # by id of their rules, see `short_text`
        self._parted = 0, 1 << 62  # bytes of the longest document known to be cuttable, of the shortest known not to be
        if hasattr(self.arrays, "chain"):
            self.arrays = self.arrays._replace(chain=self.arrays.chain._replace(state=BUILD_ON_DEMAND))
        self.composes = bool(vocab.nfc)
        self.rewrite: Rewrite | None = partial(changed_fragments, nfc_tables()) if self.composes else None
        self.look = (
            PreCheckTables(nfc_tables(), strict=False) if self.composes else None
        )  # of one short text, see `short_text`
        self.weight = weight_of(vocab)
        self._settled = not hasattr(self.model, "optimized_layout")
        self._settling = Lock()
        self.odd_text: int | None = getattr(self.model, "ODD_TEXT", None)

    def _kernel(self, workspace: Workspace, *args: Any) -> int:
        """The model's `encode_fragments`, a kernel or a function that chooses one."""
        if self.one_kernel:
            return workspace.run(self.model.encode_fragments, *args)  # type: ignore[no-any-return]
        return self.model.encode_fragments(*args, run=workspace.run)  # type: ignore[no-any-return]

    def rule(self, add_special: bool, parse_special: bool, replace: bool) -> EncodeOptions:
        """The options of one call. EncodingFailed if `add_special` needs an id that the vocabulary does not have."""
        wanted = (bool(add_special), bool(parse_special), bool(replace))
        if wanted not in self._rules:
            before, after = ids_around(self.vocab) if add_special else (NO_TOKEN, NO_TOKEN)
            self._rules[wanted] = EncodeOptions(self._tokens(wanted[1]), before, after, wanted[2])
        return self._rules[wanted]

    def _tokens(self, parse_special: bool) -> tables.SpecialTokens:
        if parse_special not in self._special:
            self._special[parse_special] = tables.compile_special(self.vocab, parse_special)
        return self._special[parse_special]

    def compiled(self) -> dict[str, Any]:
        """The compiled arrays of the vocabulary, as keyword arguments of this class."""
        return {"arrays": self.arrays, "plain": self._tokens(False), "parsed": self._tokens(True)}

    def bare_rule(self) -> EncodeOptions:
        """Options for plain text: no special token is searched for, and none is added."""
        return EncodeOptions(tables.build_special(self.vocab, np.zeros(0, np.int32)), NO_TOKEN, NO_TOKEN, False)

    def one(self, text: bytes, rule: EncodeOptions) -> NDArray[np.int32]:
        """int32[n]: the ids of one text, without the bookkeeping of a batch. Raises EncodingFailed."""
        workspace = self.acquire()
        stays = self.rewrite is None or (self.composes and text.isascii())
        quick = len(text) <= LONGEST_HELD and workspace.scratch is not None and stays
        if quick and not CHECKED:  # checked kernels test every index against the end of the array
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
        padded = text + PADDING if len(text) > LONGEST_KERNEL_COPY else text  # a kernel copies a short one faster
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

    try_short_text = try_short_text
    chain: Callable[[Workspace], Any] | None = None  # the steps that prepare a short text, see `call_sequence`

    def cutting(self, rule: EncodeOptions, workspace: Workspace) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]] | None:
        """The kernel that cuts documents, its arguments before their data, and the ids around each document; None if
        texts are not cut."""
        if not has_to_cut(rule):
            return None
        return partition.cut_documents, (rule.special, workspace.special_work), (rule.before, rule.after)

    def can_split_at_spaces(self, size: int) -> bool:
        """Whether the model has safe cuts between words in a text of `size` bytes (see `long_document`)."""
        yes, no = self._parted
        if yes < size < no:  # what holds for a text holds for shorter ones, so the model's test seldom runs
            may_part = getattr(self.model, "can_split_at_spaces", None)
            if may_part is not None and may_part(self.arrays, size):
                yes = size
            else:
                no = size
            self._parted = yes, no
        return size <= yes

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

    def _cut_one(self, workspace: Workspace, docs: Documents, size: int, rule: EncodeOptions) -> int:
        """Write the fragments of a single document to the workspace. Returns their number."""
        if rule.special.ids.size == 0:
            return whole_text_fragment(workspace, size, rule.before, rule.after)
        return self.cut(workspace, docs, 0, 1, rule)

    def cut(self, workspace: Workspace, docs: Documents, first: int, last: int, rule: EncodeOptions) -> int:
        """Write the fragments of documents first .. last - 1 to the workspace. Returns their number."""
        if workspace.document_ends.size < last - first:
            workspace.grow_ends(last - first)
        if can_wait(partition.cut_documents) and nothing_to_cut(rule.special, docs, first, last):
            return whole_document_fragments(workspace, docs, first, last, rule.before, rule.after)
        while True:
            code = workspace.run(
                partition.cut_documents, rule.special, workspace.special_work, docs.data, docs.starts, docs.stops,
                first, last, rule.before, rule.after, workspace.starts, workspace.stops, workspace.tokens,
                workspace.document_ends, workspace.report,
            )  # fmt: skip
            if code >= 0:
                return int(code)
            need = int(workspace.report[NEED])
            if code == OUT_OF_CAPACITY:
                workspace.grow_fragments(max(need, 2 * workspace.starts.size))
            elif code == OUT_OF_WORK:
                size = max(need, 2 * workspace.special_work.keys.size)
                workspace.special_work = partition.make_work(size, size if rule.special.long.count else 0)
            else:
                raise AssertionError(f"cutting documents around special tokens gave {code}")

    def encode(
        self,
        workspace: Workspace,
        docs: Documents,
        first: int,
        last: int,
        fragments: int,
        rule: EncodeOptions,
        base: int,
        at: int = 0,
    ) -> int:
        """Encode the workspace's fragments, which are those of documents first .. last - 1 (see `cut`). The ids are
        written after the workspace's first `at`. Returns the number of its ids now. base: the number of document 0.
        Raises EncodingFailed."""
        done = self.encode_fragments(
            workspace,
            docs,
            workspace.read_starts,
            workspace.read_stops,
            workspace.read_tokens,
            fragments,
            docs.size(first, last),
            rule,
            at,
        )
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
        if size >= MUCH_TEXT and not self._settled:
            self._optimize_layout()
        capacity = int(self.ids_per_byte * size) if size > FULL_CAPACITY_BYTES else self.model.IDS_PER_BYTE * size
        capacity += at + fragments + SPARE_IDS
        if workspace.ids.size < capacity:
            workspace.grow_ids(capacity + at, at)  # doubled where there are ids already, so that copies stay cheap
        done = self._runner(rule)(workspace, docs, starts, stops, tokens, fragments, at, workspace.ends, rule.replace)
        if isinstance(done, int):
            workspace.written = done
            if size > FULL_CAPACITY_BYTES:
                self.ids_per_byte = 1.05 * (done - at) / size
        return done

    def _runner(self, _rule: EncodeOptions) -> Callable[..., int | Failure]:
        """`_run`, or a function that rewrites the fragments first."""
        return self._run if self.rewrite is None else partial(run_rewritten, self, self.rewrite)

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

    def _run(
        self, workspace: Workspace, docs: Documents, starts: NDArray[np.int64], stops: NDArray[np.int64],
        tokens: NDArray[np.int32], fragments: int, count: int, ends: NDArray[np.int64], replace: bool,
    ) -> int | Failure:  # fmt: skip
        """Call the kernel until all fragments are done, and provide what its codes request. Ids are written to the
        workspace, from `count` on."""
        arrays, model, report, at, origin = self.arrays, self.model, workspace.report, 0, count
        strict_bytes = True
        if workspace.scratch is None:
            self._give_work(workspace, FIRST_LONGEST)
        while at < fragments:
            code = self._kernel(
                workspace, arrays, workspace.scratch, docs.data, starts, stops, tokens, at, fragments, count,
                workspace.ids, ends, report,
            )  # fmt: skip
            if code >= 0:
                return int(code)
            at, need = int(report[FRAGMENT]), int(report[NEED])
            count = int(ends[at - 1]) if at else origin
            if code == OUT_OF_CAPACITY:
                workspace.grow_ids(max(count + need, workspace.ids.size + workspace.ids.size // 2), count)
            elif code == OUT_OF_WORK:
                longest = int((stops[:fragments] - starts[:fragments]).max())  # more would only take address space
                wanted = max(need, min(2 * workspace.longest, longest))
                self._give_work(workspace, wanted if wanted > workspace.longest else 2 * workspace.longest)
            elif code == LONG_WORD:
                arrays = self._with_chain() if strict_bytes else self._with_unknown_bytes(self._with_chain())
                if arrays.chain.state != READY:
                    self._give_queue(workspace)
            elif code == NO_BYTE_TOKEN and replace and strict_bytes and self._can_replace_bytes():
                arrays, strict_bytes = self._with_unknown_bytes(arrays), False
            elif code == self.odd_text:
                found = self.ids_by_python(docs.between(int(starts[at]), int(stops[at])))
                if found is None:
                    return Failure(NOT_UTF8, at, int(starts[at]), 0)
                if workspace.ids.size < count + len(found):
                    workspace.grow_ids(2 * (count + len(found)), count)
                workspace.ids[count : count + len(found)] = found
                ends[at] = count = count + len(found)
                at += 1
            elif replace and (
                whole := replace_unencodable(self.vocab, code, docs.between(int(starts[at]), int(stops[at])))
            ):
                text = np.frombuffer(whole, np.uint8)
                one = (read_only_array([0]), read_only_array([text.size]), read_only_array([tokens[at]], np.int32))
                done = self._run(
                    workspace, Documents(text, one[0], one[1]), *one, 1, count, np.empty(1, np.int64), replace
                )
                if not isinstance(done, int):
                    return Failure(done.code, at, int(starts[at]), done.found)
                ends[at] = count = done
                at += 1
            elif code in EXPECTED:
                return Failure(code, at, int(report[OFFSET]), int(report[FOUND]))
            else:
                raise AssertionError(f"{model.__name__} gave code {code} at fragment {at}")
        return count

    def ids_by_python(self, text: bytes) -> list[int] | NDArray[np.int32] | None:
        """The ids of a fragment that the kernel leaves to Python (the model's code ODD_TEXT); None if it is invalid
        UTF-8."""
        raise NotImplementedError(f"{self.model.__name__} leaves no text to Python: {text!r}")

    def _can_replace_bytes(self) -> bool:
        return self.vocab.unk_id >= 0 and hasattr(self.arrays, "byte_ids")

    def _with_unknown_bytes(self, arrays: Any) -> Any:
        """The arrays, with the unknown id for bytes that have no token."""
        byte_ids = arrays.byte_ids
        return arrays._replace(byte_ids=read_only_array(np.where(byte_ids < 0, self.vocab.unk_id, byte_ids), np.int32))


def _has_cache(model: Any) -> bool:
    """Whether a model has a pre-token cache, whose memory can be bounded."""
    return "cache_bytes" in model.make_work.__annotations__
