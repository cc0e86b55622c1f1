"""The front-end of all splitters: patterns with their engine, and the other stages of files, compiled for the kernels.

    (pattern, engine) of llama.cpp, or a stage of a Pipeline  ->  Stage, its automaton  ->  arrays (`tables`)

Each engine reads characters in its own way. Those of llama.cpp (see `definition`) map a character to one byte
(collapsed), or to its code point with white space above U+007F folded (wide); those of other files read Unicode 16.0.
All are maps from runs of code points to symbols of the pattern's automaton.

Stages over characters may be followed by stages over bytes. If a stage drops exactly the characters of a set, a piece
is dropped if its first character is in that set, however the later stages split it. If a stage merges matches of a
single character with their neighbours, its pieces are the matches of another pattern. Any other stage that does more
than isolate its matches has a behavior code, which `splitters.word_bitmap` obeys.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.known_patterns import GPT2
from jittok.common.pipeline.patterns import PatternError, explicit, is_possessive
from jittok.common.pipeline.steps import (
    CONTIGUOUS,
    ISOLATED,
    MERGED_WITH_NEXT,
    MERGED_WITH_PREVIOUS,
    REMOVED,
    Chars,
    Cut,
    CutClass,
    CutSomeScripts,
    Pattern,
    SpellBytes,
    Splitter,
)
from jittok.common.unicode import tables
from jittok.common.unicode.libraries import ranges, scripts
from jittok.common.unicode.sets import Ranges
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.kernels.jit import I32, I64, U8, frozen
from jittok.kernels.pretokenize.automaton import DEAD, START, Automaton, compile_pattern
from jittok.kernels.pretokenize.classes import UNICODE_SIZE, distinct
from jittok.kernels.pretokenize.definition import HAN, JOINERS, LONG_S, collapsed_pattern, wide_pattern
from jittok.kernels.pretokenize.lookaround_dfa import Machine, machine_of
from jittok.kernels.pretokenize.matcher import MOST_KEPT, automaton_of, reads_once
from jittok.kernels.pretokenize.splitters import general
from jittok.kernels.pretokenize.splitters.general import DIGIT_GROUPS, DIGIT_THREES, SPACE_POWERS, TRAILING_SPACE
from jittok.kernels.pretokenize.splitters.word_bitmap import (
    COUNTS,
    INVERTS,
    ISOLATES,
    JOINS,
    MERGES_AFTER,
    MERGES_BEFORE,
    REMOVES,
)
from jittok.kernels.pretokenize.tables import MEMBER, Runs, Stage, build_splitter

# ---- llama.cpp's patterns

CONTRACTION = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
KIMI_K2 = (
    r"[\xD6\xD7]+"
    rf"|[^\r\n\p{{L}}\p{{N}}\xD6]?\p{{L}}+{CONTRACTION}?|\p{{N}}{{1,3}}"
    r"| ?[^\s\p{L}\p{N}\xD6]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""llama.cpp's kimi_k2 splitter, over collapsed bytes in which ideographs of its blocks that are letters are D6, and
code points of these blocks that are none (unassigned ones) D7."""
K2_HORIZON = (
    r"'[sS\xD7]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
    r"|[^\r\n\p{L}\p{N}\xD7]?[\p{L}\p{M}\xD6\xD7]+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}\xD7]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""llama.cpp's k2_horizon splitter, over collapsed bytes in which U+200C and U+200D are D6 and U+017F, a letter, D7."""
DIGIT_THREES_PATTERN = r"(?=(\d{3})+(?!\d))"
TRAILING_PATTERN = r"\s+$"
SPACE_POWERS_PATTERN = "|".join(rf"\s{{{2**k}}}(?!\S)" for k in range(9, 1, -1)) + r"|\s{1,2}(?!\S)|\s{1}"


@functools.cache
def splitter_of(patterns: tuple[tuple[str, str], ...]) -> general.Splitter:
    """The arrays of (pattern, engine), llama.cpp's, applied one after the other."""
    return build_splitter(stages_of_patterns(patterns))[0]


def stages_of_patterns(patterns: Sequence[tuple[str, str]]) -> list[Stage]:
    """The stages of (pattern, engine), applied one after the other."""
    return [stage for pattern, engine in patterns for stage in _stages(pattern, engine)]


def _stages(pattern: str, engine: str) -> list[Stage]:
    if SPACE_POWERS_PATTERN in pattern:
        simpler = pattern.replace(SPACE_POWERS_PATTERN, r"\s+(?!\S)|\s+")
        starts, flags = _flag_runs()
        white = (flags & tables.WHITESPACE > 0) & (starts != 0x0A) & (starts != 0x0D)
        return [
            _pattern_stage(simpler, engine),
            Stage(None, (starts, np.where(white, MEMBER, 0).astype(np.uint8)), SPACE_POWERS),
        ]
    return [_pattern_stage(pattern, engine)]


def _pattern_stage(pattern: str, engine: str) -> Stage:
    if pattern == DIGIT_THREES_PATTERN:
        return Stage(None, _members([(0x30, 0x39)]), DIGIT_THREES)
    if pattern == TRAILING_PATTERN:
        return Stage(None, _flagged(tables.WHITESPACE), TRAILING_SPACE)
    if engine == "custom:digit_groups":
        return Stage(None, _flagged(tables.NUMBER), DIGIT_GROUPS)
    if engine in ("wide", "custom:metaspace"):
        automaton = compile_pattern(wide_pattern(pattern), UNICODE_SIZE)
        return Stage(automaton, _wide_runs(automaton))
    if engine == "custom:gpt2":
        pattern = GPT2  # the pattern that the hand-written splitter replaces lacks `|\s+` at the end
    elif engine == "custom:kimi_k2":
        pattern = KIMI_K2
    elif engine == "custom:k2_horizon":
        pattern = K2_HORIZON
    automaton = compile_pattern(collapsed_pattern(pattern), 256)
    return Stage(automaton, _collapsed_runs(automaton, engine))


def _class_of(automaton: Automaton, symbols: NDArray[np.int64]) -> NDArray[np.uint8]:
    return automaton.classes[np.searchsorted(automaton.starts, symbols, "right") - 1]


def _flag_runs(extra: object = ()) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs of code points of equal flags (each ASCII character and each start in `extra` on its own), and the flags."""
    flags = tables.flag_table()
    changes = np.flatnonzero(np.diff(flags)) + 1
    starts = distinct(np.concatenate([np.arange(129), changes, np.array(list(extra), np.int64)]))  # type: ignore[call-overload]
    starts = starts[starts < UNICODE_SIZE].astype(np.int64)
    return starts, flags[starts].astype(np.int64)


def _collapsed_runs(automaton: Automaton, engine: str) -> Runs:
    edges = [edge for low, high in HAN for edge in (low, high + 1)]
    starts, flags = _flag_runs([*edges, *(c + k for c in (*JOINERS, LONG_S) for k in (0, 1))])
    symbols = np.full(starts.size, 0xD0)
    for bit, byte in tables.COLLAPSED_BYTE.items():
        symbols[flags & bit > 0] = byte
    if engine == "custom:k2_horizon":
        symbols[np.isin(starts, JOINERS)] = 0xD6
        symbols[starts == LONG_S] = 0xD7
    if engine == "custom:kimi_k2":
        inside = np.zeros(starts.size, bool)
        for low, high in HAN:
            inside |= (starts >= low) & (starts <= high)
        symbols[inside] = np.where(flags[inside] & tables.LETTER > 0, 0xD6, 0xD7)
    symbols[flags & tables.WHITESPACE > 0] = 0x0B
    symbols[:128] = np.arange(128)
    return starts, _class_of(automaton, symbols)


def _wide_runs(automaton: Automaton) -> Runs:
    starts, flags = _flag_runs(automaton.starts)
    return starts, _class_of(automaton, np.where((flags & tables.WHITESPACE > 0) & (starts > 127), 0x0B, starts))


def _flagged(bit: int) -> Runs:
    starts, flags = _flag_runs()
    return starts, np.where(flags & bit > 0, MEMBER, 0).astype(np.uint8)


def _members(ranges: list[tuple[int, int]]) -> Runs:
    borders = [0] + [edge for low, high in ranges for edge in (low, high + 1)]
    return np.array(borders, np.int64), np.array([0] + [MEMBER, 0] * len(ranges), np.uint8)


# ---- stages of other files

_EVERYTHING = "[\\x00-\\U0010ffff]+"
_BEHAVES = {
    REMOVED: REMOVES, MERGED_WITH_PREVIOUS: MERGES_BEFORE, MERGED_WITH_NEXT: MERGES_AFTER, CONTIGUOUS: JOINS,
}  # fmt: skip


class StageChain(NamedTuple):
    """All stages of a splitter, compiled."""

    splitter: general.Splitter
    drops: U8  # [128] 1 for a class of the splitter that is dropped
    byte_at: I64
    byte_rows: I32
    byte_widths: I64
    byte_classes: U8
    behaves: I64
    sizes: I64
    spelled: bool  # whether words are spelled in bytes

    @property
    def cuts_only(self) -> bool:
        """Whether the splitter alone finds the pre-tokens: nothing is dropped, and no stage is over bytes."""
        return not (self.byte_at.size or self.behaves.size or self.drops.any())


def splitter_of_stages(stages: tuple[Splitter, ...]) -> general.Splitter | None:
    """The arrays of a splitter that only cuts, None if it does more or if the kernels do not cover it. A last
    SpellBytes is left to the model."""
    chain = chain_of(stages)
    return chain.splitter if chain and chain.cuts_only else None


def automata_of(stages: tuple[Splitter, ...]) -> list[Stage] | None:
    """The stages of a splitter that only cuts; None if a stage does more, is not covered, or has no automaton over
    classes alone. A last SpellBytes is left to the model."""
    found = _compiled(stages)
    if found is None or found[1]:
        return None
    plain = all(not (each.behaves or isinstance(each.machine, Machine) or _drops(each).any()) for each in found[0])
    return found[0] if plain else None


def _compiled(stages: tuple[Splitter, ...]) -> tuple[list[Stage], list[Stage], bool] | None:
    """(stages over characters, stages over bytes, whether words are spelled in bytes); None if one is not covered."""
    at = next((k for k, stage in enumerate(stages) if isinstance(stage, SpellBytes)), len(stages))
    if any(isinstance(stage, SpellBytes) for stage in stages[at + 1 :]):
        return None
    try:
        before = [compile_stage(stage, at + 1 < len(stages)) for stage in stages[:at]]
        after = [compile_stage(stage, True) for stage in stages[at + 1 :]]
    except (ValueError, PatternError):
        return None
    if any(stage is None for stage in (*before, *after)):
        return None
    return [each for each in before if each], [each for each in after if each], at < len(stages)


@functools.lru_cache(MOST_KEPT)
def chain_of(stages: tuple[Splitter, ...]) -> StageChain | None:
    """The stages compiled, None if one is not covered."""
    found = _compiled(stages)
    if found is None:
        return None
    over_characters, over_bytes, spelled = found
    if any(stage.behaves or isinstance(stage.machine, Machine) for stage in over_bytes):
        return None  # only stages over characters may do more than cut, or look around
    over_characters = over_characters or [_of(automaton_of(_EVERYTHING))]
    try:
        splitter, members = build_splitter(over_characters)
    except ValueError:
        return None
    drops = np.zeros(128, np.uint8)
    for k, each in enumerate(over_characters):
        drops[: members.shape[0]] |= _drops(each)[members[:, k]].astype(np.uint8)
    behaves = [each.behaves for each in over_characters]
    return StageChain(
        splitter, frozen(drops, np.uint8), *_byte_tables(over_bytes),
        frozen(behaves if any(behaves) else [], np.int64), frozen([each.size for each in over_characters], np.int64),
        spelled,
    )  # fmt: skip


def _byte_tables(stages: list[Stage]) -> tuple[I64, I32, I64, U8]:
    """The fields of `WordBitmap` of stages over bytes: where the rows of each begin, all rows, widths, classes."""
    rows, positions, widths, classes = [np.zeros(0, np.int64)], list[int](), list[int](), [np.zeros(0, np.uint8)]
    for stage in stages:
        automaton = stage.machine
        assert isinstance(automaton, Automaton)
        base = sum(part.size for part in rows)
        entries = automaton.transitions.astype(np.int64)
        rows.append((entries >> 1) * automaton.width + base << 1 | entries & 1)
        positions.append(base)
        widths.append(automaton.width)
        runs = np.searchsorted(automaton.starts, np.array(CHARACTER_OF_BYTE), "right") - 1
        classes.append(automaton.classes[runs])
    return (
        frozen(positions, np.int64), frozen(np.concatenate(rows), np.int32), frozen(widths, np.int64),
        frozen(np.concatenate(classes), np.uint8),
    )  # fmt: skip


def _of(machine: Automaton | Machine, behaves: int = ISOLATES, size: int = 0) -> Stage:
    return Stage(machine, (machine.starts, machine.classes), behaves=behaves, size=size)


def _drops(stage: Stage) -> NDArray[np.bool_]:
    """[classes of the stage] whether a piece that begins with such a character is dropped."""
    return np.zeros(256, np.bool_) if stage.drops is None else stage.drops


def compile_stage(stage: Splitter, apart: bool) -> Stage | None:
    """One stage; None if it is not covered. ValueError, PatternError for a pattern that has no automaton. apart:
    whether stages over bytes follow, which may split a dropped piece."""
    if isinstance(stage, Chars):
        return _of(automaton_of(_EVERYTHING), COUNTS, stage.size)
    if isinstance(stage, CutSomeScripts):
        return _of(automaton_of_scripts(stage), REMOVES + INVERTS)
    if isinstance(stage, CutClass):
        text, invert = written(ranges(stage.name)), False
    elif isinstance(stage, Cut) and stage.pattern.text:
        text, invert = _written_pattern(stage.pattern), stage.invert
    else:
        return None
    if is_possessive(text):
        return None
    machine = machine_of(text)
    if stage.behavior == ISOLATED or (stage.behavior == REMOVED and invert and covers(machine)):
        return _of(machine)
    behaves = _BEHAVES[stage.behavior] + INVERTS * invert
    if isinstance(machine, Machine):
        return _of(machine, behaves)
    if stage.behavior == REMOVED:
        begins = _rows(machine)[START, :-1] >> 1 != DEAD
        if not apart and covers(machine, begins) and not _takes(machine, ~begins):
            return _of(machine)._replace(drops=~begins if invert else begins)
        return _of(machine, behaves)
    single = _single(machine)
    if single is None or invert:
        return _of(machine, behaves)
    inside = written(_runs_of(machine, single))
    outside = "[^" + inside[1:]
    forms = {
        CONTIGUOUS: f"{inside}+|{outside}+",
        MERGED_WITH_PREVIOUS: f"{outside}+{inside}?|{inside}",
        MERGED_WITH_NEXT: f"{inside}?{outside}+|{inside}",
    }
    return _of(automaton_of(forms[stage.behavior]))


def written(parts: Ranges) -> str:
    """A set of characters as a pattern."""
    return "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in parts) + "]"


def _written_pattern(pattern: Pattern) -> str:
    if pattern.literal:
        return "".join(f"\\U{ord(c):08x}" for c in pattern.text)
    return explicit(pattern.text, pattern.engine)


def _rows(automaton: Automaton) -> NDArray[np.int64]:
    return automaton.transitions.reshape(-1, automaton.width).astype(np.int64)


def _single(automaton: Automaton) -> NDArray[np.bool_] | None:
    """The classes of a pattern that is one character of a set; None for any other."""
    rows = _rows(automaton)
    first = rows[START, :-1] >> 1
    alive = distinct(first[first != DEAD])
    if alive.size == 1 and (rows[alive[0]] == DEAD << 1 | 1).all():
        found: NDArray[np.bool_] = first != DEAD
        return found
    return None


def _runs_of(automaton: Automaton, classes: NDArray[np.bool_]) -> Ranges:
    """The characters of some classes."""
    ends = np.append(automaton.starts[1:], UNICODE_SIZE) - 1
    chosen = classes[automaton.classes]
    return tuple(zip(automaton.starts[chosen].tolist(), ends[chosen].tolist(), strict=True))


def covers(machine: Automaton | Machine, begins: NDArray[np.bool_] | None = None) -> bool:
    """Whether a non-empty match begins at every character of these classes, whatever follows, and whatever the
    look-arounds find. begins: [classes] of an automaton; None for all."""
    answers = 1
    if isinstance(machine, Machine):
        answers, rows = machine.parts[-1].answered, machine.parts[-1].rows
    else:
        rows = _rows(machine)
    if (rows[START] & 1).any():
        return False
    first = rows[START, :-answers] >> 1
    todo, seen = set((first if begins is None else first[begins]).tolist()), set[int]()
    while todo:
        state = todo.pop()
        if state == DEAD:
            return False
        if state in seen:
            continue
        seen.add(state)
        if (rows[state, -answers:] & 1 == 0).any():
            return False
        inner = rows[state, :-answers]
        todo |= set((inner[inner & 1 == 0] >> 1).tolist())
    return True


def _takes(automaton: Automaton, classes: NDArray[np.bool_]) -> bool:
    """Whether a character of these classes is ever read as part of a match."""
    rows = _rows(automaton)
    return bool((rows[:, :-1][:, classes] >> 1 != DEAD).any())


def one_set(pattern: Pattern) -> tuple[Ranges | None, bool]:
    """(characters, whether it is a run) of a pattern that is one character of a set, or a run of them; None for
    others."""
    if pattern.literal:
        return (((ord(pattern.text), ord(pattern.text)),), False) if len(pattern.text) == 1 else (None, False)
    try:
        text = explicit(pattern.text, pattern.engine)
        if is_possessive(text):
            return None, False
        automaton = automaton_of(text)
        if not reads_once(text):
            return None, False
    except (ValueError, PatternError):
        return None, False
    rows = _rows(automaton)
    if (rows[START] & 1).any():  # it matches the empty text
        return None, False
    first = rows[START, :-1] >> 1
    alive = distinct(first[first != DEAD])
    if alive.size != 1 or not (rows[alive[0]] & 1).all():
        return None, False
    nexts, inside = rows[alive[0], :-1] >> 1, first != DEAD
    if (nexts == DEAD).all() and rows[alive[0], -1] == DEAD << 1 | 1:
        return _runs_of(automaton, inside), False
    if (nexts == np.where(inside, alive[0], DEAD)).all():
        return _runs_of(automaton, inside), True
    return None, False


# ---- scripts
#
# There are more scripts than a kernel has classes, so two automata run one after the other, and each distinguishes half
# of the scripts. Where the script changes, one of the two distinguishes the new script or the one before, and cuts.
# Neither cuts anywhere else.

ANY, OTHER = 0, 1
"""Classes: characters of no script, and of scripts that this automaton does not distinguish."""


def halves() -> tuple[CutSomeScripts, CutSomeScripts]:
    """The two stages."""
    stop = int(scripts()[1].max()) + 1
    return CutSomeScripts(1, stop // 2), CutSomeScripts(stop // 2, stop)


def automaton_of_scripts(stage: CutSomeScripts) -> Automaton:
    """Its matches are the words: characters of one script, with those of no script after them. Gaps are dropped."""
    starts, numbers = scripts()
    inside = (numbers >= stage.first) & (numbers < stage.stop)
    classes = np.where(inside, numbers.astype(np.int64) - stage.first + OTHER + 1, OTHER)
    classes[numbers == 0] = ANY
    count = OTHER + 1 + stage.stop - stage.first
    own = START + np.arange(count)  # the state in a word of each class but ANY
    rows = np.full((START + count, count + 1), DEAD << 1 | 1, np.int64)
    rows[DEAD], rows[START] = DEAD, DEAD << 1
    rows[START, OTHER:count] = own[OTHER:] << 1
    rows[own[OTHER:], ANY] = own[OTHER:] << 1 | 1
    rows[own[OTHER:], np.arange(OTHER, count)] = own[OTHER:] << 1 | 1
    return Automaton(starts, classes.astype(np.uint8), rows.astype(np.uint16).reshape(-1), count + 1)
