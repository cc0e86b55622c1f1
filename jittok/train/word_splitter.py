"""How documents become words: a pre type's splitter, or a regular expression of one's own."""

from __future__ import annotations

import json
import os
import re
from collections import Counter as Tally
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jittok import _jit
from jittok._jit import frozen
from jittok.errors import CorpusError, UnsupportedVocab
from jittok.pipeline.steps import SpellBytes
from jittok.pretokenize.definition import pre_type
from jittok.pretokenize.families import GENERAL, GPT2, LLAMA3, family_numbers
from jittok.pretokenize.file_splitters import automata_of, family_of, splitter_of_stages
from jittok.pretokenize.splitter_tables import Stage, splitter_of, stages_of_patterns
from jittok.pretokenize.splitters.blocks import character_classes
from jittok.pretokenize.splitters.general import Splitter
from jittok.pretokenize.splitters.llama3 import WITHOUT
from jittok.pretokenize.splitters.lookaround_stage import no_lookarounds
from jittok.train.count_kernels import CountFamily, count_general, count_gpt2, count_llama3
from jittok.train.option_checks import FILE
from jittok.unicode.tables import LETTER
from jittok.vocab.keys import pre_names

DEFAULT_PRE = "qwen2"
"""Lossless (llama.cpp cleans no spaces when it decodes), and known to every library."""


class WordSplitter(NamedTuple):
    """The splitter of a pre type."""

    pre: str
    family: CountFamily
    count: _jit.kernel[..., int]  # its own
    whole: bool  # texts are cut as a whole
    patterns: tuple[tuple[str, str], ...] = ()  # what it stands for: (pattern, engine), see `pretokenize.definition`
    stages: tuple[Any, ...] = ()  # or the stages of a Pipeline
    slow: Callable[[], WordSplitter] | None = (
        None  # what cuts texts that this one refuses, where it is as other libraries do
    )

    def automata(self) -> list[Stage]:
        """What it stands for as stages of automata."""
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
    pattern says exactly how."""
    known = cutter_of(pre)
    try:
        return _described_cutter(pre)
    except UnsupportedVocab:
        return known


def _described_cutter(pre: str) -> WordSplitter:
    """What cuts as the `pre_tokenizer` of a tokenizer.json."""
    from jittok.files.growth import Growth
    from jittok.files.hf_steps import splitters
    from jittok.files.json_nodes import Node
    from jittok.train.export import hf_pre_tokenizer

    stages = splitters(Node("train", "pre_tokenizer", hf_pre_tokenizer(pre)), Growth())
    if not any(isinstance(stage, SpellBytes) for stage in stages):
        expected = "one that ends in ByteLevel: what is learned here are bytes"
        raise UnsupportedVocab("", "--pre", pre.removeprefix(FILE), expected)
    return stages_cutter(pre, stages)


def named_pre(pre: str) -> str:
    """A `pre` itself; of the path of a tokenizer.json, one that stands for its pre-tokenizer. CorpusError for a file
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
    arrays = CountFamily(family.classes(), no_splitter(), 0, family.group, family.cased, family.contractions)
    kernel = {"gpt2": count_gpt2, "llama3": count_llama3}[family.name]
    return WordSplitter(name, arrays, kernel, False, stages=stages, slow=general)


def no_splitter() -> Splitter:
    """What a kernel of a fast family is given in place of the general splitter."""
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
    """A cutter by the `regex` package's Unicode rules. UnsupportedVocab for what is no pattern."""
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


def special_pattern(special: Iterable[str]) -> re.Pattern[bytes] | None:
    """What finds the texts of special tokens in a document, longer ones first; None without any."""
    texts = sorted({text.encode() for text in special if text}, key=lambda text: (-len(text), text))
    return re.compile(b"|".join(map(re.escape, texts))) if texts else None
