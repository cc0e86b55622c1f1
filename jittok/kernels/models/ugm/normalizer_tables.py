"""Compile the normalizer and the splitter of a tokenizer.json to one table of characters, where that is possible.

All steps on single characters are run once, with the reference's code, on all characters that some step may change; the
table holds the results. Everything that depends on neighbors is one of three cases: keys of several characters are
stored next to the table; white space becomes one space before a word; and texts with an odd character are left to the
reference.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.pipeline import packed_texts
from jittok.common.pipeline.steps import (
    ALWAYS,
    REMOVED,
    Clusters,
    Compose,
    CutClass,
    Map,
    Metaspace,
    Normalizer,
    Pattern,
    Replace,
    Strip,
)
from jittok.common.unicode.characters import SPACE_MARK
from jittok.common.unicode.libraries import characters, mapping, member_flags, normal_form
from jittok.common.unicode.nfc import class_table, seconds
from jittok.common.unicode.tables import UNICODE_SIZE
from jittok.errors import MalformedVocab
from jittok.kernels.jit import I32, I64, U8, OutI64, OutU8, as_int64, frozen, helper, kernel
from jittok.kernels.memory import Window, get_u8, put_u8, window
from jittok.kernels.models.ugm.file_arrays import CharacterTable
from jittok.kernels.models.ugm.normalizer import (
    BEGINS_KEY,
    CONTROL,
    EXTENDS,
    INSIDE,
    IS_KEY,
    JOINS,
    MAPPED,
    ODD,
    ODD_TEXT,
    PARTS,
    PICTURE,
    PREPENDS,
    SHORT_CLUSTER,
    NormalizerWindow,
    table_step,
)
from jittok.kernels.normalize.charsmap.keys import MAPPED as NOT_PLAIN
from jittok.kernels.normalize.charsmap.keys import PLAIN, TIED, CharsmapKeys, charsmap_keys
from jittok.kernels.normalize.charsmap.xcda import read_charsmap
from jittok.kernels.normalize.decomposition import BORDER, unstable
from jittok.kernels.pretokenize.classes import distinct, two_stage_of
from jittok.kernels.structures.double_array import build_double_array

WORDS = Metaspace(SPACE_MARK, ALWAYS, True)
BY_SPACES, BY_WHITE_SPACE = (WORDS,), (CutClass("whitespace", REMOVED), WORDS)
RUNS = Pattern(" {2,}")
LINE_BREAK = "\r\n"
"""The only grapheme cluster of several ASCII characters."""
JAMO = (*range(0x1100, 0x1200), *range(0xA960, 0xA980), *range(0xD7B0, 0xD800))
"""The jamo, which may join Hangul characters to one cluster."""


_ANY = Clusters(np.zeros(0, np.uint8))


class NormalizerTables(NamedTuple):
    """The compiled normalizer and splitter of a file."""

    table: CharacterTable
    kinds: U8
    keys: CharsmapKeys  # all texts that are changed, for `rules`
    tail: bool  # a space at the end of a text is a word by itself


class _NormalizerParts(NamedTuple):
    """The steps of a file by their kinds."""

    literals: list[Replace]  # of several characters; they come before all others
    charsmap: Clusters | None
    single: list[Map | Compose | Replace]  # on one character at a time
    by_white_space: bool
    tail: bool
    strips_left: bool = False


def read_steps(pipeline: Pipeline) -> NormalizerTables | None:
    """The table of a file, or None if it has none."""
    read = _read(pipeline)
    if read is None:
        return None
    table, odd = _images(read)
    keys: dict[str, str] = {}
    clusters = {}
    if read.charsmap is not None:
        found = cluster_keys(read.charsmap, pipeline.source)
        if found is None:
            return None
        clusters = found

    def run(text: str) -> str:
        for step in read.single:
            text = _done(step, text)
        return text

    for text, image in clusters.items():
        if len(text) == 1:
            table[ord(text)] = run(image) if read.single else image
        elif text[0] not in clusters:
            keys[text] = run(image)
    for literal in read.literals:
        keys[literal.pattern.text] = run(literal.content)
    white, ends = characters("whitespace"), set[int]()
    spaced = str.maketrans(dict.fromkeys(white, " "))
    if read.by_white_space:
        table = {**{ord(c): c for c in white}, **table}
        if any(table[ord(c)].strip("".join(white)) for c in white):
            return None
        table = {c: image.translate(spaced) for c, image in table.items() if image != chr(c) or image in white - {" "}}
        keys = {text: image.translate(spaced) for text, image in keys.items()}
    else:
        table = {c: image for c, image in table.items() if image != chr(c)}
        if not read.tail:
            ends, mixed = _white_ends(table, keys, white)
            odd |= ends if read.strips_left else mixed
        if ord(SPACE_MARK) not in table:
            odd.add(ord(SPACE_MARK))
    if any(SPACE_MARK in image for image in (*table.values(), *keys.values())) or table.get(32, " ") != " ":
        return None
    return _steps(table, keys, odd, {text for text in clusters if len(text) == 1}, ends, read)


def _white_ends(table: dict[int, str], keys: dict[str, str], white: frozenset[str]) -> tuple[set[int], set[int]]:
    """(white space other than U+0020 that normalized texts may contain, characters whose image has such white space
    next to something else)."""
    images = {**{chr(c): image for c, image in table.items()}, **keys}
    ends = (white - {" "} - {chr(c) for c in table}) | (white & set("".join(images.values())) - {" "})
    blank = "".join(white)
    mixed = {text[0] for text, image in images.items() if not ends.isdisjoint(image) and image.strip(blank)}
    return {*map(ord, ends)}, {*map(ord, mixed)}


def _read(pipeline: Pipeline) -> _NormalizerParts | None:
    """The steps by their kinds, or None if some step cannot be part of a table."""
    if pipeline.split not in (BY_SPACES, BY_WHITE_SPACE):
        return None
    by_white_space = pipeline.split == BY_WHITE_SPACE
    steps = [*pipeline.normalize]
    tail, strips_left = not by_white_space, False
    if not by_white_space:
        if not steps or not _joins_spaces(steps[-1], " ", SPACE_MARK):
            return None
        steps.pop()
        if steps and isinstance(steps[-1], Strip) and steps[-1].right:
            tail, strips_left = False, steps[-1].left
            steps.pop()
    else:
        steps = [step for step in steps if not (_joins_spaces(step, " ") or isinstance(step, Strip))]
    literals: list[Replace] = []
    while steps and isinstance(steps[0], Replace) and _is_literal(steps[0]):
        literals.append(steps.pop(0))  # type: ignore[arg-type]
    charsmap = None
    if steps and isinstance(steps[0], Clusters):
        charsmap = steps.pop(0)
    single: list[Map | Compose | Replace] = []
    for step in steps:
        if isinstance(step, Map | Compose) or (isinstance(step, Replace) and _is_literal(step, 1)):
            single.append(step)
        else:
            return None
    used = [set(step.pattern.text) for step in literals]
    apart = all(len(set(text)) for text in used) and len(set().union(*used)) == sum(map(len, used))
    contents = set("".join(step.content for step in literals))
    if charsmap is not None and (literals or any(isinstance(step, Compose) for step in single)):
        return None
    if literals and (not apart or contents & set().union(*used) or " " in contents.union(*used)):
        return None
    return _NormalizerParts(literals, charsmap, single, by_white_space, tail, strips_left)  # type: ignore[arg-type]


def _joins_spaces(step: Normalizer, *contents: str) -> bool:
    """Whether a step replaces runs of spaces by one of `contents`."""
    return isinstance(step, Replace) and step.pattern == RUNS and step.content in contents


def _is_literal(step: Replace, size: int = 0) -> bool:
    """Whether a step replaces an ASCII text; of `size` characters, unless that is 0."""
    text = step.pattern.text
    return step.pattern.literal and bool(text) and text.isascii() and (len(text) == size or not size)


def _done(step: Map | Compose | Replace, text: str) -> str:
    """The result of one step."""
    if isinstance(step, Map):
        return text.translate(mapping(step.name))
    return normal_form(step.form, text) if isinstance(step, Compose) else text.replace(step.pattern.text, step.content)


def _images(read: _NormalizerParts) -> tuple[dict[int, str], set[int]]:
    """({character: image} for all characters that some step on single characters may change, those whose neighbors
    matter)."""
    seen = np.zeros(UNICODE_SIZE, np.bool_)
    for step in read.single:
        seen |= _touched(step)
    seen[0xD800:0xE000] = False
    points = np.flatnonzero(seen)
    text, odd = BORDER.join(map(chr, points.tolist())), set[int]()
    for k, step in enumerate(read.single):
        joins = isinstance(step, Compose) and step.form in ("NFC", "NFKC")
        if joins:
            odd |= _holding(text, points, _meets())
        text = _done(step, text)
        if isinstance(step, Compose):
            removed = k + 1 < len(read.single) and read.single[k + 1] == Map("accents")
            left = _done(Map("accents"), text) if removed else text
            odd |= _beginning(left, points, _meets()) if joins else _holding(left, points, class_table() > 0)
    images = text.split(BORDER) if points.size else []
    return dict(zip(points.tolist(), images, strict=True)), odd


def _touched(step: Map | Compose | Replace) -> NDArray[np.bool_]:
    """bool[0x110000]: all characters that a step may change, by themselves or next to others."""
    found = np.zeros(UNICODE_SIZE, np.bool_)
    if isinstance(step, Compose):
        return _meets() | unstable(step.form)
    found[[*mapping(step.name)] if isinstance(step, Map) else [ord(step.pattern.text)]] = True
    return found


@cache
def _meets() -> NDArray[np.bool_]:
    """bool[0x110000]: characters that NFC may compose with others or reorder."""
    found = class_table() > 0
    found[sorted(seconds())] = True
    return found


def _codes(joined: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(code points, number of BORDER characters up to each)."""
    codes = np.frombuffer(joined.encode("utf-32-le"), np.uint32).astype(np.int64)
    return codes, np.cumsum(codes == ord(BORDER))


def _holding(joined: str, points: NDArray[np.int64], wanted: NDArray[np.bool_]) -> set[int]:
    codes, row = _codes(joined)
    return set(points[distinct(row[wanted[codes]])].tolist())


def _beginning(joined: str, points: NDArray[np.int64], wanted: NDArray[np.bool_]) -> set[int]:
    codes, row = _codes(joined)
    first = np.append(True, codes[:-1] == ord(BORDER))
    return set(points[distinct(row[first & wanted[codes]])].tolist())


def cluster_keys(step: Clusters, source: str) -> dict[str, str] | None:
    """The keys of a character map that are shorter than SHORT_CLUSTER bytes, and their images; None if the map is
    invalid."""
    keys = charsmap_keys(read_charsmap(step.charsmap, source), SHORT_CLUSTER - 1)
    if keys is None:
        return None
    try:
        return dict(zip(_cut(keys.data, keys.offsets), _cut(keys.images, keys.image_offsets), strict=True))
    except UnicodeDecodeError:
        return None


def _cut(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> list[str]:
    """Split concatenated texts. UnicodeDecodeError if one is invalid UTF-8."""
    text = data.tobytes()
    return [text[start:stop].decode() for start, stop in pairwise(offsets.tolist())]


@cache
def _cluster_flags() -> NDArray[np.uint8]:
    """uint8[0x110000]: flags of characters for grapheme clusters, see `normalizer`."""
    flags = np.zeros(UNICODE_SIZE, np.uint8)
    for name, flag in (("extending", EXTENDS), ("cluster_control", CONTROL), ("pictographic", PICTURE),
                        ("cluster_prepend", PREPENDS), ("cluster_hangul", JOINS), ("cluster_consonant", JOINS),
                        ("cluster_linker", JOINS), ("cluster_apart", PREPENDS)):  # fmt: skip
        flags[member_flags(name)] |= flag
    return flags


def cluster_table(keys: dict[str, str], same: str) -> tuple[U8, CharacterTable]:
    """(kinds of bytes, the table) of a character map without other steps. keys: from `cluster_keys`; same: characters
    that the table maps to themselves. They are no keys, so marks after them stay."""
    single = {text for text in keys if len(text) == 1}
    longer = {text: image for text, image in keys.items() if len(text) > 1 and text[0] not in single}
    found = _steps(
        {ord(c): c for c in same} | {ord(text): keys[text] for text in single},
        longer,
        set(),
        single,
        set(),
        _NormalizerParts([], _ANY, [], False, True),
    )
    return found.kinds, found.table


def _steps(
    table: dict[int, str], keys: dict[str, str], odd: set[int], single: set[str], ends: set[int], read: _NormalizerParts
) -> NormalizerTables:
    clusters = read.charsmap is not None
    flags = _cluster_flags().copy() if clusters else np.zeros(UNICODE_SIZE, np.uint8)
    prepends = np.flatnonzero(flags & PARTS == PREPENDS)
    near = [*np.flatnonzero(flags & EXTENDS), *prepends, *JAMO] if clusters else []
    points = sorted(table)
    flags[points] |= MAPPED
    odd |= {ord(text[0]) for text in (*single, *keys)} & set(prepends.tolist())
    flags[sorted(odd)] |= ODD
    texts, offsets = packed_texts([table[c] for c in points])
    key_texts, key_offsets = packed_texts(keys.values())
    data, bounds = packed_texts(keys)
    trie = build_double_array(data, bounds, np.arange(len(keys), dtype=np.int32))
    flags[sorted(map(ord, single))] |= IS_KEY
    if not clusters:
        for text in keys:
            flags[ord(text[0])] |= BEGINS_KEY
    pages, blocks = two_stage_of(flags)
    kinds = np.full(256, NOT_PLAIN, np.uint8)
    kinds[:0x80] = np.where(flags[:0x80] & (MAPPED | ODD | BEGINS_KEY), NOT_PLAIN, TIED if clusters else 0)
    kinds[ord("\r")] = NOT_PLAIN if LINE_BREAK in keys else kinds[ord("\r")]
    own = CharacterTable(
        frozen(pages, np.uint16), frozen(blocks, np.uint8), frozen(points, np.int32), frozen(offsets, np.int32),
        _filled(texts), trie, frozen(key_offsets, np.int32), _filled(key_texts), int(clusters),
        frozen(sorted(ends), np.int32),
    )  # fmt: skip
    rows = {**{chr(c): table[c] for c in points}, **keys, **{2 * chr(c): chr(c) for c in near}}
    if "\r" in single and not table[ord("\r")] == table.get(ord("\n")) == " ":  # else merged anyway
        rows[LINE_BREAK] = table[ord("\r")]
    texts, offsets = packed_texts(rows)
    images, bounds = packed_texts(rows.values())
    return NormalizerTables(own, frozen(kinds, np.uint8), CharsmapKeys(texts, offsets, images, bounds), read.tail)


def _filled(texts: NDArray[np.uint8]) -> U8:
    """The texts and one more byte, so that the array is never empty."""
    return frozen(np.append(texts, np.uint8(0)), np.uint8)


# ---- the character map alone


class Clustered(NamedTuple):
    """A compiled character map of sentencepiece as `tokenizers` applies it, for whole texts of models whose other
    normalization steps work on copies."""

    kinds: U8  # [256] kinds of bytes, see `charsmap.keys`
    table: CharacterTable
    growth: int  # the most bytes that one byte becomes


def clustered_of(step: Clusters) -> Clustered | None:
    """The table of such a step, or None if its map cannot be one."""
    try:
        keys = cluster_keys(step, "")
    except MalformedVocab:
        return None
    if keys is None:
        return None
    kinds, table = cluster_table(keys, SPACE_MARK)  # an unmapped U+2581 would become a space
    growth = max((-(-len(image.encode()) // len(text.encode())) for text, image in keys.items()), default=1)
    return Clustered(kinds, table, max(growth, 1))


@helper
def _open(own: Clustered, out: Window, capacity: int) -> NormalizerWindow:
    table = own.table
    none = window(table.texts)
    return NormalizerWindow(
        0, 0, 0, window(own.kinds), window(table.pages), window(table.blocks), window(table.points), table.points.size,
        window(table.offsets), window(table.texts), window(table.keys.units), window(table.key_offsets),
        window(table.key_texts), table.clusters, window(table.ends), 0, none, 0, 0, none, none, out, capacity,
    )  # fmt: skip


@kernel
def write_clusters(
    own: Clustered, data: U8, starts: I64, stops: I64, tokens: I32, count: int, out: OutU8, out_starts: OutI64,
    out_stops: OutI64, odd: OutI64,
) -> int:  # fmt: skip
    """Write the normalized fragments, concatenated, to `out`; returns the number of bytes. Special tokens become empty.

    starts, stops: int64[count], tokens: int32[count] fragments of valid UTF-8, see `jittok.kernels.fragments`
    out: uint8[growth * bytes + 2 * STEP]; out_starts, out_stops: int64[count] receive their offsets
    odd: int64[count] receives ODD for a fragment that has to be normalized by the reference, else 0
    """
    text, at = window(data), as_int64(0)
    rewriting = _open(own, window(out), out.size)
    for k in range(count):
        out_starts[k], odd[k] = at, 0
        first, stop = as_int64(starts[k]), as_int64(stops[k])
        i, begun, state = first, at, INSIDE
        while tokens[k] < 0 and i < stop:
            byte = get_u8(text, i)
            kind = get_u8(rewriting.kinds, byte)
            if kind == PLAIN or (kind == TIED and (i + 1 >= stop or get_u8(text, i + 1) < 0x80)):
                put_u8(rewriting.out, at, byte)
                at += 1
                i += 1
                continue
            i, at, state = table_step(rewriting, text, first, i, stop, at, state)
            if i < 0:
                if i != ODD_TEXT:
                    return i
                odd[k], at = ODD, begun
                break
        out_stops[k] = at
    return at
