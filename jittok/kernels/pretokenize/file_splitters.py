"""Splitters of other files than GGUF, as arrays: patterns over the classes of Unicode 16.0, without llama.cpp's
engines."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

import numpy as np

from jittok.common.pipeline.known_patterns import GPT2, GREEDY_R50K, O200K, greedy
from jittok.common.pipeline.pattern_parts import is_possessive
from jittok.common.pipeline.patterns import PatternError, explicit
from jittok.common.pipeline.steps import CONTIGUOUS, ISOLATED, REMOVED, Cut, CutClass, Pattern, SpellBytes, Splitter
from jittok.common.unicode.libraries import ranges
from jittok.kernels.pretokenize.automaton import DEAD, START, Automaton, compile_pattern
from jittok.kernels.pretokenize.classes import UNICODE_SIZE
from jittok.kernels.pretokenize.lookaround_dfa import Machine, machine_of
from jittok.kernels.pretokenize.splitter_tables import Stage, splitter_from
from jittok.kernels.pretokenize.splitters import general
from jittok.kernels.pretokenize.splitters.blocks import (
    BAD,
    CAPITAL,
    DIGIT,
    LETTER,
    MARK,
    SMALL,
    SPACE,
    CharacterClasses,
    class_tables,
)
from jittok.kernels.pretokenize.splitters.general import LOOKAROUND, MATCHER
from jittok.kernels.pretokenize.splitters.llama3 import FOLDED, ONE_CASE, PREFIX, SUFFIX, TRUE_CASE, WITHOUT

SURROGATES = slice(0xD800, 0xE000)
_REST = r"[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_FOLDED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|"
_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_BOTH = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|"
_CL100K = r"'(?i:[sdmt]|ll|ve|re)|"
GPT2_FORMS = (
    GPT2,
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    GREEDY_R50K,
)
"""Patterns that cut like `splitters.gpt2`. Where `\\s+(?!\\S)` fails, a single white space character is left."""
MOST_KEPT = 32
"""Limit of splitters that are cached."""


class RecognizedFamily:
    """A fast splitter and its settings, under the names of the BPE arrays."""

    def __init__(
        self, name: str, group: int = 0, contractions: int = WITHOUT, marks: bool = False, folded: bool = False,
        cased: int = ONE_CASE, ends: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.group, self.contractions = name, group, contractions | FOLDED if folded else contractions
        self.marks, self.cased = marks, cased
        self.ends = ends
        """White space that ends a text is one pre-token, but the splitter cuts it after its last line feed. The ids are
        the same unless a token continues after the line feed (`crosses`)."""

    def classes(self) -> CharacterClasses:
        """Its table of characters."""
        table = np.zeros(UNICODE_SIZE, np.uint8)
        kinds = [("L", LETTER), ("N", DIGIT), ("space", SPACE)]
        if self.marks:
            kinds.append(("M", LETTER))
        if self.cased == TRUE_CASE:
            kinds += [("Lu", CAPITAL), ("Lt", CAPITAL), ("Ll", SMALL), ("M", MARK)]
        for name, kind in kinds:
            for first, last in ranges(name):
                table[first : last + 1] = kind
        table[SURROGATES] = BAD
        return class_tables(table)


def _llama3_forms() -> dict[str, RecognizedFamily]:
    found = {}
    for contraction, folded in ((_FOLDED, True), (_CL100K, True), (_BOTH, False)):
        for digits, group in ((r"\p{N}{1,3}", 3), (r"\p{N}", 1)):
            plain = contraction + _REST % digits
            marks = plain.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
            # of a run of white space the same is left, and where \s+(?!\S) fails it is one character
            short = plain.replace(r"\s*[\r\n]+|\s+(?!\S)|\s+", r"\s*[\r\n]|\s+(?!\S)|\s")
            for text, with_marks in ((plain, False), (marks, True), (short, False)):
                found[text] = RecognizedFamily("llama3", group, PREFIX, with_marks, folded)
            ending = short.replace(r"|\s*[\r\n]|", r"|\s+\z|\s*[\r\n]|")
            found[ending] = RecognizedFamily("llama3", group, PREFIX, False, folded, ends=True)
    return found


def _cased_forms() -> dict[str, RecognizedFamily]:
    """o200k, and tekken: without contractions, each digit alone."""
    tekken = O200K.replace(_SUFFIX, "").replace(r"\p{N}{1,3}", r"\p{N}")
    found = {}
    for text, group, contractions in ((O200K, 3, SUFFIX), (tekken, 1, WITHOUT)):
        short = text.replace(r"\s*[\r\n]+|\s+(?!\S)|\s+", r"\s*[\r\n]|\s+(?!\S)|\s")
        family = RecognizedFamily("llama3", group, contractions, folded=contractions == SUFFIX, cased=TRUE_CASE)
        found.update(dict.fromkeys((text, short), family))
    return found


@functools.cache
def _forms() -> dict[str, RecognizedFamily]:
    return {**{text: RecognizedFamily("gpt2") for text in GPT2_FORMS}, **_llama3_forms(), **_cased_forms()}


@functools.cache
def _explicit_forms() -> dict[str, RecognizedFamily]:
    return {explicit(text): family for text, family in _forms().items()}


def _family(pattern: Pattern) -> RecognizedFamily | None:
    """The fast splitter of a pattern. Most files have one of `_forms`, which all engines match alike; other spellings
    are compared by their classes. PatternError for a pattern that `explicit` does not cover."""
    text = greedy(pattern.text, pattern.engine) or pattern.text
    return _forms().get(text) or _explicit_forms().get(explicit(text, pattern.engine))


def family_of(stages: tuple[Splitter, ...]) -> RecognizedFamily | None:
    """The fast splitter that cuts like these stages, None if there is none."""
    cuts = _without_spelling(stages)
    if len(cuts) == 1 and isinstance(cuts[0], Cut) and not cuts[0].pattern.literal and _keeps_all(cuts[0]):
        return _family(cuts[0].pattern)
    return None


_CROSSING = re.compile(rb"[\r\n][\t\v\f\x1c-\x20\xc2\xe1-\xe3][^\r\n]*\Z")
"""The bytes after the line end are first bytes of white space, so some other characters match too."""


def crosses(tokens: Iterable[bytes]) -> bool:
    """Whether a token may continue with white space after its last line feed or carriage return. If none does, no merge
    crosses this offset, so cutting white space there changes no id."""
    return any(map(_CROSSING.search, tokens))


def _without_spelling(stages: tuple[Splitter, ...]) -> tuple[Splitter, ...]:
    """The stages without a final SpellBytes: the model reads bytes in any case."""
    return stages[:-1] if stages and isinstance(stages[-1], SpellBytes) else stages


def _keeps_all(stage: Cut) -> bool:
    return (stage.behavior == ISOLATED and not stage.invert) or (stage.behavior == REMOVED and stage.invert)


@functools.lru_cache(MOST_KEPT)
def splitter_of_stages(stages: tuple[Splitter, ...]) -> general.Splitter | None:
    """The arrays of a splitter, None if the kernels do not cover it. A last SpellBytes is left to the model."""
    try:
        known = _stages_of(stages)
        return None if known is None else splitter_from(known or [_whole()])
    except ValueError:
        return None


def automata_of(stages: tuple[Splitter, ...]) -> list[Stage] | None:
    """The automaton of each stage, None if a stage is not covered or has no automaton over classes alone. A last
    SpellBytes is left to the model."""
    known = _stages_of(stages)
    return None if known is None or any(kind == LOOKAROUND for kind, _, _ in known) else known


def _stages_of(stages: tuple[Splitter, ...]) -> list[Stage] | None:
    try:
        parts = [_stage(stage) for stage in _without_spelling(stages)]
    except (ValueError, PatternError):
        return None
    known = [part for part in parts if part is not None]
    return known if len(known) == len(parts) else None


def _whole() -> Stage:
    """A stage that never cuts: runs of any characters."""
    automaton = compile_pattern("[\\x00-\\U0010ffff]+", UNICODE_SIZE)
    return MATCHER, automaton, (automaton.starts, automaton.classes)


def _stage(stage: Splitter) -> Stage | None:
    """One stage, None if it drops characters or needs more than an automaton."""
    if isinstance(stage, CutClass):
        if stage.behavior not in (ISOLATED, CONTIGUOUS):
            return None
        members = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges(stage.name))
        text = f"[{members}]" + ("+" if stage.behavior == CONTIGUOUS else "")
    elif isinstance(stage, Cut) and not stage.pattern.literal:
        text = explicit(stage.pattern.text, stage.pattern.engine)
        if is_possessive(text):
            return None
    else:
        return None
    machine = machine_of(text)
    if isinstance(stage, Cut):
        whole = stage.behavior == REMOVED and stage.invert and covers(machine)
        if not whole and not (stage.behavior == ISOLATED and not stage.invert):
            return None
    kind = LOOKAROUND if isinstance(machine, Machine) else MATCHER
    return kind, machine, (machine.starts, machine.classes)


def covers(machine: Automaton | Machine) -> bool:
    """Whether matches cover every text without gaps: a non-empty match begins at every character, whatever follows, and
    whatever the look-arounds find."""
    said, rows = 1, np.zeros((0, 0), np.int64)
    if isinstance(machine, Machine):
        said, rows = machine.parts[-1].answered, machine.parts[-1].rows
    else:
        rows = machine.transitions.reshape(-1, machine.width).astype(np.int64)
    first = rows[START, :-said] >> 1
    todo, seen = set(first.tolist()), set[int]()
    if (rows[START] & 1).any():
        return False
    while todo:
        state = todo.pop()
        if state == DEAD:
            return False
        if state in seen:
            continue
        seen.add(state)
        waiting = rows[state, :-said][rows[state, :-said] & 1 == 0] >> 1
        if (rows[state, -said:] & 1 == 0).any():
            return False
        todo |= set(waiting.tolist())
    return True
