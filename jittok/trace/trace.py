"""The result of `Tokenizer.trace`: all stages of one text, as data and as pictures."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.display.terminal import print_lines
from jittok.common.pipeline import Pipeline
from jittok.errors import UnsupportedVocab
from jittok.trace.gdb import gdb_script
from jittok.trace.recorder import Record
from jittok.trace.stage import Stage
from jittok.trace.stages import STAGES, sentence, stage_lines, trace_html, trace_lines
from jittok.trace.stages.fragments import insertions
from jittok.vocab import Vocab
from jittok.vocab.describe import shown


class Step(NamedTuple):
    """One record of one stage on a walk through a trace; as a str it is a sentence."""

    stage: str
    number: int  # of the record in its stage
    record: Record
    says: str

    def __str__(self) -> str:
        return f"{self.stage} {self.number}: {self.says}"


class Trace:
    """The stages of tokenizing one text. A stage that the vocabulary's type does not have is empty.

    fragments   the buffer after each special token that was searched for: raw text with offset and length, or a token
    normalized  UGM, WPM, SPM: the normalized fragment; map: [first byte, end, source start, source end]; other files
                than GGUF: a record per step of the normalizer
    charsmap    UGM: the bytes of each walk through the character map
    split       other files than GGUF: the words after each stage of the splitter
    words       BPE, WPM: the words, and which regex cut them
    symbols     BPE, SPM: a word's symbols before and after merging, and the pairs offered first
    merges      BPE, SPM: a record per popped pair, applied or stale, with the symbols after it
    resegment   SPM: from symbols to tokens
    matches     WPM, RWKV: the longest token at each offset, and what else was tried
    lattice     UGM: the best path to each offset that can be reached, and its challengers
    path        PLaMo-2: the cheapest path from each offset to the end, and its challengers
    tokens      id, piece, bytes, source span, attributes
    """

    fragments: Stage
    normalized: Stage
    charsmap: Stage
    split: Stage
    words: Stage
    symbols: Stage
    merges: Stage
    resegment: Stage
    matches: Stage
    lattice: Stage
    path: Stage
    tokens: Stage

    def __init__(
        self,
        vocab: Vocab | Pipeline,
        text: bytes,
        *,
        add_special: bool,
        parse_special: bool,
        regexes: tuple[str, ...],
        stages: dict[str, Stage],
    ) -> None:
        self.vocab, self.text = vocab, text
        self.add_special, self.parse_special = bool(add_special), bool(parse_special)
        self.regexes = regexes
        """The patterns that `words` refers to by number, in the order of application."""
        self._stages = stages
        context = {"text": text, "regexes": regexes, "stages": stages}
        for name, stage in stages.items():
            stage.context = context
            setattr(self, name, stage)

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of the stages that have records, in order."""
        return tuple(name for name in STAGES if self._stages[name])

    @property
    def ids(self) -> NDArray[np.int32]:
        """int32[n]: the ids, which are those of `encode`."""
        return np.array([token["id"] for token in self.tokens], np.int32)

    @property
    def spans(self) -> NDArray[np.int64]:
        """int64[n, 2]: the span of each id in the bytes of the text."""
        return np.array([token["span"] for token in self.tokens], np.int64).reshape(-1, 2)

    def __getitem__(self, name: str) -> Stage:
        if name not in self._stages:
            raise KeyError(f"stage: found {name!r}, expected one of {', '.join(STAGES)}")
        return self._stages[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.stages)

    def show(self, stage: str) -> Stage:
        """One stage, displayed as a picture in a notebook, as text elsewhere."""
        return self[stage]

    def steps(self, *stages: str) -> Iterator[Step]:
        """Everything that happened, record by record, each with a sentence about it; of some stages if named."""
        for name in stages or self.stages:
            for number, record in enumerate(self[name]):
                yield Step(name, number, record, sentence(name, record, self.regexes))

    def insertions(self) -> Iterator[list[Record]]:
        """The buffer of fragments at the start and after each insertion and removal, as a debugger shows the list."""
        if isinstance(self.vocab, Pipeline):  # all at once
            return iter([self.fragments[0]["buffer"], self.fragments[-1]["buffer"]])
        return insertions(self.vocab, self.text, self.parse_special)

    def to_dict(self) -> Record:
        """Facts of the call and all stages, in values that JSON supports."""
        return {
            **self.facts(),
            "regexes": list(self.regexes),
            **{name: self._stages[name].to_dict() for name in STAGES},
            "ids": self.ids.tolist(),
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=indent)

    def facts(self) -> Record:
        """The arguments of the call."""
        vocab = self.vocab
        return {
            "vocab": vocab.name or vocab.source,
            "type": vocab.type,
            "pre": vocab.pre,
            "fingerprint": vocab.fingerprint,
            "text": shown(self.text),
            "bytes": len(self.text),
            "add_special": self.add_special,
            "parse_special": self.parse_special,
        }

    def gdb(self) -> str:
        """A gdb script with breakpoints and expected values, to follow the same steps in llama.cpp itself."""
        if isinstance(self.vocab, Pipeline):
            raise UnsupportedVocab(
                self.vocab.source, "gdb", self.vocab.format, "a GGUF vocabulary, as llama.cpp has it"
            )
        return gdb_script(self.vocab, self.text, self.facts(), self._stages)

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(self._stages[name])} {name}" for name in self.stages)
        return f"<jittok.Trace of {len(self.text)} bytes with {self.vocab.name or self.vocab.source!r}: {counts}>"

    def print(self, *stages: str, stream: IO[str] | None = None, rows: int | None = None) -> None:
        """All stages (or those named) to a stream, standard output if there is none: in color if it is a terminal and
        rich is installed. `rows`: how many lines a stage may have; all if None."""
        stream = stream or sys.stdout
        context = self.tokens.context
        if not stages:
            print_lines(trace_lines(self.facts(), self._stages, context, rows), stream)
        for name in stages:
            print_lines(stage_lines(name, self[name], context, rows), stream)

    def _repr_html_(self) -> str:
        return trace_html(self.facts(), self._stages, self.tokens.context)
