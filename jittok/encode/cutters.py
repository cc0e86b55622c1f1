"""The first step of a plan: documents become fragments, cut around special tokens.

`LlamaCutter` does it by llama.cpp's rule, for a GGUF; `FileCutter` by that of tokenizers or sentencepiece, for any
other file. Either makes the `EncodeOptions` of a call: a kernel, its tables, and the ids around each document.

A first text need not wait a second until the kernel that cuts is compiled: fragments of documents without special
tokens are also laid out by NumPy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_BYTES
from jittok.encode.buffers import Workspace
from jittok.errors import MixedToken
from jittok.kernels.fragments import MIXED_TOKEN, NEED, OFFSET, OUT_OF_CAPACITY, OUT_OF_WORK, TEXT, TEXT_PREFIXED
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import I32, I64, frozen
from jittok.kernels.special import partition, tables
from jittok.kernels.special.tables import SpecialTokens
from jittok.vocab import NO_TOKEN, Vocab
from jittok.vocab.types import ids_around

if TYPE_CHECKING:
    from jittok.common.pipeline import Pipeline

MOST_DOCUMENTS, MOST_BYTES = 64, 1 << 16
"""Documents, and their bytes, that are looked through for special tokens by NumPy."""
MOST_CALLS = 1 << 14
"""Calls in which Python looks: a second or two of them."""
_calls = itertools.count()


class EncodeOptions(NamedTuple):
    """How the documents of one call are encoded."""

    kernel: Any  # cuts documents
    tables: tuple[Any, ...]  # its arguments before the workspace's and the documents
    before: Any  # what is before each document: an id or NO_TOKEN for llama.cpp's rule, else int32[] ids
    after: Any
    around: tuple[int, int]  # numbers of these ids
    searches: bool  # whether a token may be found
    later: SpecialTokens | None  # tokens that are searched for once text is normalized
    replace: bool  # whether text that cannot be encoded becomes U+FFFD
    literal: tuple[Any, int] | None = None  # PartitionWork.literal and .mixed of the documents, if some text is literal

    @property
    def cuts(self) -> bool:
        """Whether a text may become several fragments."""
        return self.searches or self.around != (0, 0)


class LlamaCutter:
    """llama.cpp's rule: the longest special token of the whole text first."""

    def __init__(self, vocab: Vocab, plain: SpecialTokens | None = None, parsed: SpecialTokens | None = None) -> None:
        """plain, parsed: the tables without and with `parse_special`, if they are compiled already."""
        self._vocab, self._tables = vocab, {False: plain, True: parsed}

    def compiled(self) -> dict[str, Any]:
        """The compiled tables, as keyword arguments of this class."""
        return {"plain": self._search(False), "parsed": self._search(True)}

    def _search(self, parse_special: bool) -> SpecialTokens:
        found = self._tables[parse_special]
        if found is None:
            found = self._tables[parse_special] = tables.compile_special(self._vocab, parse_special)
        return found

    def options(
        self, add_special: bool, parse_special: bool, replace: bool, special: SpecialTokens | None = None
    ) -> EncodeOptions:
        """The options of one call. EncodingFailed if `add_special` needs an id that the vocabulary does not have.
        special: the tokens to search for, if not those of the vocabulary."""
        before, after = ids_around(self._vocab) if add_special else (NO_TOKEN, NO_TOKEN)
        special = special or self._tables[parse_special] or self._search(parse_special)
        numbers, searches = (int(before >= 0), int(after >= 0)), bool(special.ids.size)
        return EncodeOptions(partition.cut_documents, (special,), before, after, numbers, searches, None, replace)

    def guarded(self, guarded: frozenset[int], add_special: bool, replace: bool) -> EncodeOptions:
        """The options of a call with `parse_special` and literal text, which cannot become one of the tokens
        `guarded`."""
        return self.options(
            add_special, True, replace, tables.build_special(self._vocab, self._vocab.special_tokens, guarded)
        )

    def bare_options(self) -> EncodeOptions:
        """Options for plain text: no special token is searched for, and none is added."""
        return self.options(False, False, False, tables.build_special(self._vocab, np.zeros(0, np.int32)))


class FileCutter:
    """The rule of a file other than GGUF: leftmost, then longest, in two searches; see `special.leftmost`."""

    def __init__(
        self, pipeline: Pipeline, make: Callable[..., SpecialTokens], pieces: Any = None, again: bool = False,
        known: tuple[SpecialTokens | None, ...] = (None,) * 4,
    ) -> None:  # fmt: skip
        """make(later, parse_special, guarded=ids): the tables of one search.

        pieces: the arrays of the model, if sentencepiece's user-defined pieces are cut out
        again: whether the second search is done after the text is normalized, not here
        known: the tables of (first, later) search without `parse_special`, then with it, if they are compiled already
        """
        self._pipeline, self._make, self._pieces, self._again = pipeline, make, pieces, again
        keys = (False, False), (True, False), (False, True), (True, True)
        self._tables = {key: table for key, table in zip(keys, known, strict=True) if table is not None}

    def _search(self, later: bool, parse_special: bool) -> SpecialTokens:
        if (later, parse_special) not in self._tables:
            self._tables[later, parse_special] = self._make(later, parse_special)
        return self._tables[later, parse_special]

    def compiled(self) -> dict[str, Any]:
        """The compiled tables by name."""
        names = "raw", "later", "raw_parsed", "later_parsed"
        searches = [self._search(later, parse) for parse in (False, True) for later in (False, True)]
        return dict(zip(names, searches, strict=True))

    def guarded(self, guarded: frozenset[int], add_special: bool, replace: bool) -> EncodeOptions | None:
        """The options of a call with `parse_special` and literal text, which cannot become one of the tokens `guarded`.
        None if such a token is searched for once text is normalized: then offsets are others."""
        raw, later = (self._make(later, True, guarded=guarded) for later in (False, True))
        again = self._again and bool(np.isin(later.ids, sorted(guarded)).any())
        return None if again else self._options(add_special, replace, raw, later)

    def options(self, add_special: bool, parse_special: bool, replace: bool) -> EncodeOptions:
        """The options of one call."""
        raw, later = self._search(False, parse_special), self._search(True, parse_special)
        return self._options(add_special, replace, raw, later)

    def _options(self, add_special: bool, replace: bool, raw: SpecialTokens, later: SpecialTokens) -> EncodeOptions:
        from jittok.common.pipeline.pipeline import FIRST_TEXT
        from jittok.kernels.special.leftmost import cut_leftmost
        from jittok.kernels.special.user_defined_pieces import cut_user_defined

        single = self._pipeline.single if add_special else (FIRST_TEXT,)
        at = single.index(FIRST_TEXT)
        before, after = frozen(single[:at], np.int32), frozen(single[at + 1 :], np.int32)
        kernel: Any = cut_leftmost
        found: tuple[Any, ...] = raw, no_tokens() if self._again else later
        if self._pieces is not None:
            kernel, found = cut_user_defined, (raw, self._space_alone())
        return EncodeOptions(kernel, found, before, after, (before.size, after.size), True, later, replace)

    def _space_alone(self) -> I32:
        """Ids of the space before a text that begins with a user-defined piece."""
        if not self._pieces.add_space_prefix:
            return frozen([], np.int32)
        mark = self._pieces.ascii[SPACE_BYTE]
        known = 0 <= mark < self._pieces.tokens
        return frozen([mark] if known else self._pieces.span_byte_ids[list(SPACE_MARK_BYTES)], np.int32)


@cache
def no_tokens() -> SpecialTokens:
    """Tables of a search that finds nothing."""
    return tables.tables_of([], frozen([], np.int32), np.zeros(0, np.uint8))


# ---- cutting


def cut(workspace: Workspace, docs: Documents, first: int, last: int, rule: EncodeOptions) -> int:
    """Write the fragments of documents first .. last - 1 to the workspace. Returns their number. MixedToken, with
    an offset in the data alone."""
    if workspace.document_ends.size < last - first:
        workspace.grow_ends(last - first)
    by_llama = rule.kernel is partition.cut_documents
    if by_llama and can_wait(rule.kernel) and nothing_to_cut(rule.tables[0], docs, first, last):
        return whole_document_fragments(workspace, docs, first, last, rule.before, rule.after)
    while True:
        work = workspace.special_work
        if rule.literal is not None:
            work = work._replace(literal=rule.literal[0], mixed=rule.literal[1])
        code = workspace.run(
            rule.kernel, *rule.tables, work, docs.data, docs.starts, docs.stops, first, last,
            rule.before, rule.after, workspace.starts, workspace.stops, workspace.tokens, workspace.document_ends,
            workspace.report,
        )  # fmt: skip
        if code >= 0:
            return int(code)
        need = int(workspace.report[NEED])
        if code == MIXED_TOKEN:
            raise MixedToken(int(workspace.report[OFFSET]), b"")
        if code == OUT_OF_CAPACITY:
            workspace.grow_fragments(max(need, 2 * workspace.starts.size))
        elif code != OUT_OF_WORK:
            raise AssertionError(f"cutting documents around special tokens gave {code}")
        elif by_llama:
            size = max(need, 2 * workspace.special_work.keys.size)
            workspace.special_work = partition.make_work(size, size if rule.tables[0].long.count else 0)
        else:
            workspace.give_long(need)


def always(_text: str) -> bool:
    """Every normalized text begins at the start of its document: nothing before it can be removed."""
    return True


def mark_inner_texts(
    workspace: Workspace, docs: Documents, starts: I64, count: int, begins: Callable[[str], bool]
) -> None:
    """Mark texts that are not at the start of their document as TEXT; this holds for the normalized text, too. starts:
    where the documents begin; begins: see `Plan.first_only`."""
    of = np.repeat(starts, np.diff(workspace.document_ends[: starts.size], prepend=0))
    texts = workspace.tokens[:count] < 0
    inner = texts & (workspace.starts[:count] != of)
    for k in np.flatnonzero(texts & ~inner).tolist() if begins is not always else ():
        raw = docs.between(int(workspace.starts[k]), int(workspace.stops[k]))
        inner[k] = not begins(raw.decode("utf-8", "replace"))
    workspace.tokens[:count][inner] = TEXT


def can_wait(kernel: Any) -> bool:
    """Whether Python should search for special tokens, because the kernel would have to be compiled."""
    return not kernel.at_hand() and next(_calls) < MOST_CALLS


def nothing_to_cut(special: SpecialTokens, documents: Documents, first: int, last: int) -> bool:
    """Whether a quick search shows that documents first .. last - 1 contain no special token; False for much text."""
    if special.ids.size == 0:
        return True
    if last - first > MOST_DOCUMENTS or documents.size(first, last) > MOST_BYTES:
        return False
    positions = zip(documents.starts[first:last].tolist(), documents.stops[first:last].tolist(), strict=True)
    return not any(special.first[np.frombuffer(documents.between(*position), np.uint8)].any() for position in positions)


def whole_document_fragments(
    workspace: Workspace, documents: Documents, first: int, last: int, before: int, after: int
) -> int:
    """Write the fragments of documents first .. last - 1 to the workspace, with `before` and `after` (an id or -1)
    around each. Returns their number."""
    starts, stops = documents.starts[first:last], documents.stops[first:last]
    tokens = np.empty((last - first, 3), np.int32)
    tokens[:] = before, TEXT_PREFIXED, after
    used = tokens >= 0
    used[:, 1] = stops > starts
    count = int(used.sum())
    if count > workspace.starts.size:
        workspace.grow_fragments(count)
    workspace.starts[:count] = np.stack([starts, starts, stops], 1)[used]
    workspace.stops[:count] = np.stack([starts, stops, stops], 1)[used]
    workspace.tokens[:count] = tokens[used]
    workspace.document_ends[: last - first] = used.sum(1).cumsum()
    return count


def whole_text_fragment(workspace: Workspace, size: int, before: int, after: int) -> int:
    """The same for one text of `size` bytes, without arrays."""
    if before < 0 and after < 0:
        workspace.starts[0], workspace.stops[0], workspace.tokens[0] = 0, size, TEXT_PREFIXED
        return 1 if size else 0
    at = 0
    for token in (before, TEXT_PREFIXED, after):
        if token >= 0 or (token == TEXT_PREFIXED and size):
            workspace.starts[at], workspace.stops[at], workspace.tokens[at] = 0, size, token
            at += 1
    return at
