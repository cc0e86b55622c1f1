"""How documents become words: the splitter of a pre type or a custom pattern, and where a long document may be cut.

A long document is counted in chunks whose words are those of the whole, so counting needs no memory for a whole
document. A chunk ends at the first offset after a given number of bytes where the text may be cut
(`pretokenize.tables`) and four ASCII characters are before, so that no malformed character reaches across. These
offsets depend on the text alone. A text without any is one chunk.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.steps import SpellBytes
from jittok.common.unicode.tables import LETTER
from jittok.corpus.ranges.cutting import Limit
from jittok.errors import CorpusError, UnsupportedVocab
from jittok.kernels import jit
from jittok.kernels.jit import frozen
from jittok.kernels.pretokenize.compile import automata_of, splitter_of, splitter_of_stages, stages_of_patterns
from jittok.kernels.pretokenize.definition import pre_type
from jittok.kernels.pretokenize.families import family_numbers, family_of, unicode_classes
from jittok.kernels.pretokenize.splitters import GENERAL, GPT2, LLAMA3
from jittok.kernels.pretokenize.splitters.blocks import character_classes
from jittok.kernels.pretokenize.splitters.general import Splitter
from jittok.kernels.pretokenize.splitters.llama3 import WITHOUT
from jittok.kernels.pretokenize.splitters.lookaround_stage import no_lookarounds
from jittok.kernels.pretokenize.tables import ASCII, Stage, ascii_cuts
from jittok.train.counting.kernels import CountFamily, count_general, count_gpt2, count_llama3
from jittok.vocab.keys import pre_names

REGEX = "regex:"
"""Prefix of a `pre` that is a custom pattern."""
FILE = "file:"
"""Prefix of a `pre` that is the `pre_tokenizer` of a tokenizer.json, as JSON."""
DEFAULT_PRE = "qwen2"
"""Lossless (llama.cpp cleans no spaces when it decodes), and known to every library."""
CHUNK_BYTES = 1 << 20
"""Bytes of a chunk of a document."""
SEARCH_BYTES = 1 << 14
ASCII_BEFORE = 4
NOWHERE = -1
NEWLINE = ord("\n")


class WordSplitter(NamedTuple):
    """The splitter of a pre type."""

    pre: str
    family: CountFamily
    count: jit.kernel[..., int]  # its own
    whole: bool  # texts are cut as a whole
    patterns: tuple[tuple[str, str], ...] = ()  # of the same words: (pattern, engine), see `pretokenize.definition`
    stages: tuple[Any, ...] = ()  # or the stages of a Pipeline
    slow: Callable[[], WordSplitter] | None = (
        None  # what cuts texts that this one refuses, where it is as other libraries do
    )

    def automata(self) -> list[Stage]:
        """The stages of automata that cut the same words."""
        return stages_of_patterns(self.patterns) if not self.stages else automata_of(self.stages) or []


class RegexSplitter(NamedTuple):
    """A pattern whose matches, and what lies between them, are the words. Python's speed, not a kernel's."""

    pattern: str
    compiled: Any

    def words(self, text: str) -> Iterable[str]:
        """The words of a text, in order."""
        done = 0
        for match in self.compiled.finditer(text):
            if match.start() > done:
                yield text[done : match.start()]
            if match.end() > match.start():
                yield match.group()
            done = match.end()
        if done < len(text):
            yield text[done:]

    def tally(self, text: str) -> Tally[str]:
        """The words of a text with how often each occurs."""
        return Tally(self.words(text))


@cache
def cutter_of(pre: str) -> WordSplitter:
    """The splitter that llama.cpp uses for this `tokenizer.ggml.pre`. UnsupportedVocab for one it does not know, or
    whose words are no bytes. Or of one from `named_pre`."""
    if pre.startswith(FILE):
        return _described_cutter(pre)
    if pre not in pre_names() or not pre:
        known = ", ".join(sorted(name for name in pre_names() if name))
        raise UnsupportedVocab("", "--pre", pre, f"one of {known}")
    number = pre_names()[pre]["pre_type"]
    found = pre_type(number)
    if not found.byte_encode:
        raise UnsupportedVocab("", "--pre", pre, "a pre-tokenizer of byte-level BPE, such as qwen2 or gpt-2")
    kind, digits_alone, group, cased, contractions, letters = family_numbers(found.family)
    kernel = {GPT2: count_gpt2, LLAMA3: count_llama3}.get(kind, count_general)
    splitter = splitter_of(found.patterns) if kernel is count_general else no_splitter()
    arrays = CountFamily(character_classes(letters), splitter, digits_alone, group, cased, contractions)
    return WordSplitter(pre, arrays, kernel, kernel is count_general, tuple(map(tuple, found.patterns)))


@cache
def hf_cutter(pre: str) -> WordSplitter:
    """What cuts as tokenizers does with the patterns of a pre type, by its tables of characters; as llama.cpp, where no
    pattern expresses how."""
    known = cutter_of(pre)
    try:
        return _described_cutter(pre)
    except UnsupportedVocab:
        return known


def _described_cutter(pre: str) -> WordSplitter:
    """What cuts as the `pre_tokenizer` of a tokenizer.json."""
    from jittok.files.hf.steps import Growth, splitters
    from jittok.files.json_nodes import Node
    from jittok.train.export import hf_pre_tokenizer

    stages = splitters(Node("train", "pre_tokenizer", hf_pre_tokenizer(pre)), Growth())
    if not any(isinstance(stage, SpellBytes) for stage in stages):
        expected = "one that ends in ByteLevel: what is learned here are bytes"
        raise UnsupportedVocab("", "--pre", pre.removeprefix(FILE), expected)
    return stages_cutter(pre, stages)


def named_pre(pre: str) -> str:
    """A `pre` itself; for the path of a tokenizer.json, FILE and its pre-tokenizer. CorpusError for a file
    that is none, or that changes texts before it cuts them."""
    if isinstance(pre, os.PathLike):
        pre = os.fspath(pre)
    if not isinstance(pre, str):
        raise CorpusError("--pre", pre, "the name of a pre-tokenizer or the path of a tokenizer.json")
    if not pre.endswith(".json"):
        return pre
    try:
        found = json.loads(Path(pre).read_bytes())
        described = found["pre_tokenizer"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorpusError("--pre", pre, f"a tokenizer.json with a pre_tokenizer ({error})") from None
    if found.get("normalizer") is not None:
        raise CorpusError(
            "train: pre", f"{pre} with a normalizer", "one without: byte-level BPE learns texts as they are"
        )
    return FILE + json.dumps(described, ensure_ascii=False, sort_keys=True)


def stages_cutter(name: str, stages: tuple[Any, ...]) -> WordSplitter:
    """What cuts as the splitters of a Pipeline. UnsupportedVocab for those that kernels do not run."""
    family = family_of(stages)

    def general() -> WordSplitter:
        splitter = splitter_of_stages(stages)
        if splitter is None:
            raise UnsupportedVocab("train", "pre-tokenizer", name, "one whose patterns are small and remove no text")
        arrays = CountFamily(character_classes(LETTER), splitter, 0, 0, 0, WITHOUT)
        return WordSplitter(name, arrays, count_general, True, stages=stages, slow=general)

    if family is None or family.ends:
        return general()
    kind, digits_alone, group, cased, contractions, _ = family_numbers(family, unicode=True)
    arrays = CountFamily(unicode_classes(family), no_splitter(), digits_alone, group, cased, contractions)
    kernel = {GPT2: count_gpt2, LLAMA3: count_llama3}[kind]
    return WordSplitter(name, arrays, kernel, False, stages=stages, slow=general)


def no_splitter() -> Splitter:
    """What a kernel of a fast family gets in place of the general splitter."""
    none64, none32, none16, none8 = (frozen([], kind) for kind in (np.int64, np.int32, np.uint16, np.uint8))
    return Splitter(
        kinds=none64, tables_at=none64, tables=none32, cutters=none32, columns=none8, widths=none64, width=0,
        sure=none8, begins=none8, apart=none8, looks=no_lookarounds(), byte=0, ascii=none8, pages=none16, blocks=none8,
    )  # fmt: skip


@cache
def runs_cutter(name: str, pattern: str) -> WordSplitter:
    """Words are matches of a pattern (of the wide engine, see `pretokenize.definition`) and what lies between them."""
    patterns = ((pattern, "wide"),)
    arrays = CountFamily(character_classes(LETTER), splitter_of(patterns), 0, 0, 0, WITHOUT)
    return WordSplitter(name, arrays, count_general, True, patterns)


def regex_cutter(pattern: str) -> RegexSplitter:
    """A splitter by the `regex` package's Unicode rules. UnsupportedVocab for an invalid pattern."""
    import regex

    try:
        return RegexSplitter(pattern, regex.compile(pattern))
    except regex.error as error:
        raise UnsupportedVocab("", "--pre-regex", pattern, f"a regular expression ({error})") from None


def cleans_spaces(pre: str) -> bool:
    """Whether llama.cpp's detokenizer takes spaces away before punctuation under this pre type."""
    return bool(pre_names()[pre]["sets"].get("clean_spaces", True))


def lossless_names(pre: str) -> list[str]:
    """Pre types that cut as this one does, or else nearly so, and clean no spaces."""
    number = pre_names()[pre]["pre_type"]
    kept = {name: entry["pre_type"] for name, entry in pre_names().items() if name and not cleans_spaces(name)}
    same = [name for name, found in kept.items() if pre_type(found).patterns == pre_type(number).patterns]
    family = family_numbers(pre_type(number).family).family
    near = [name for name, found in kept.items() if family == family_numbers(pre_type(found).family).family != GENERAL]
    return same or near or [DEFAULT_PRE]


# ---- long documents


class DocumentChunks:
    """Where documents may be cut that a `WordSplitter` splits."""

    def __init__(self, cutter: WordSplitter, special: Sequence[str] = (), lines: bool = False) -> None:
        """special: texts that must not be cut, as they are searched for in the document; lines: words are cut in lines,
        and documents after any of these."""
        self._cutter, self._special, self._lines = cutter, special, lines
        self._table: NDArray[np.bool_] | None = None

    def first(self, data: NDArray[np.uint8], low: int, high: int) -> int:
        """The first offset in low .. high - 1 where data may be cut, or NOWHERE. Linear."""
        table = self.table
        for at in range(max(low, ASCII_BEFORE), high, SEARCH_BYTES):
            end = min(at + SEARCH_BYTES, high)
            front = data[at - ASCII_BEFORE : end - 1]
            left, right = front[ASCII_BEFORE - 1 :], data[at:end]
            found = table[left.astype(np.uint16) << 8 | right]
            if not self._lines:
                wide = front >= ASCII
                for k in range(ASCII_BEFORE - 1):
                    found &= ~wide[k : k + found.size]
            if found.any():
                return at + int(found.argmax())
        return NOWHERE

    @property
    def table(self) -> NDArray[np.bool_]:
        """bool[65536] whether a text may be cut between two bytes, the one before times 256 and the one after."""
        if self._table is None:
            pairs = np.zeros((256, 256), np.bool_)
            if self._lines:
                pairs[NEWLINE] = True
            else:
                pairs[:ASCII, :ASCII] = _pairs_of(self._cutter)
                for text in self._special:
                    raw = np.frombuffer(text.encode(), np.uint8)
                    pairs[raw[:-1], raw[1:]] = False
            self._table = pairs.reshape(-1)
        return self._table

    def positions(self, data: NDArray[np.uint8], size: int) -> list[int]:
        """Where a document of `size` bytes, which begins at data[0], is cut: pieces have PIECE bytes or some more."""
        found, at = [0], 0
        while size - at > 2 * CHUNK_BYTES and (at := self.first(data, at + CHUNK_BYTES, size)) != NOWHERE:
            found.append(at)
        return found

    def read(self, read: Callable[[int], bytes], step: int, limit: Limit) -> Iterator[tuple[int, bytes]]:
        """(offset, bytes) of the pieces of a document, of `step` bytes or some more; one at least. CorpusError for a
        document that is too long."""
        held, offset, searched, ended = bytearray(), 0, step, False
        while not ended:
            piece = _filled(read, step)
            ended = len(piece) < step
            held += piece
            limit.check(offset + len(held))
            while (cut := self.first(np.frombuffer(held, np.uint8), searched, len(held))) != NOWHERE:
                yield offset, bytes(held[:cut])
                del held[:cut]
                offset, searched = offset + cut, step
            searched = max(searched, len(held))
        yield offset, bytes(held)


_known: dict[Any, NDArray[np.bool_]] = {}


def _pairs_of(cutter: WordSplitter) -> NDArray[np.bool_]:
    key = cutter.patterns or cutter.stages
    if key not in _known:
        _known[key] = ascii_cuts(cutter.automata())
    return _known[key]


def _filled(read: Callable[[int], bytes], size: int) -> bytes:
    """So many bytes, fewer only at the end."""
    parts = []
    while size and (piece := read(size)):
        parts.append(piece)
        size -= len(piece)
    return b"".join(parts)


# ---- texts of special tokens


def special_texts(special: Any) -> tuple[str, ...]:
    """Texts of special tokens, as given. CorpusError for anything but a list of texts."""
    if isinstance(special, str | bytes | bytearray) or not np.iterable(special):
        raise CorpusError("--special", special, "a list of texts")
    found = tuple(special)
    for text in found:
        if not text or not is_unicode(text):
            raise CorpusError("--special", text, "texts (str) of one character or more, without lone surrogates")
    return found


def is_unicode(text: Any) -> bool:
    """Whether this is a str without lone surrogates."""
    return isinstance(text, str) and not any("\ud800" <= c <= "\udfff" for c in text)


def special_pattern(special: Iterable[str]) -> re.Pattern[bytes] | None:
    """What finds the texts of special tokens in a document, longer ones first; None without any."""
    texts = sorted({text.encode() for text in special if text}, key=lambda text: (-len(text), text))
    return re.compile(b"|".join(map(re.escape, texts))) if texts else None
