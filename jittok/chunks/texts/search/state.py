"""The state of a chain, the pieces of one text that are being cut: words of an array that `search` reads and writes."""

from __future__ import annotations

BEGIN, GUESS, NARROW, LIST, GALLOP, HALVE, SCAN, LIKED, JOIN, WORDS, CHECK, DONE, STUCK = range(13)
"""Phases. STUCK: the character at START has more ids alone than a piece may have."""
END_OF_PIECE, OVERLAP, KEPT_END = range(3)
"""What a search is for: the end of a piece, the start of the next one, what `truncate` keeps of the end."""

PHASE = 0
FIRST, COUNT, CURSOR = 1, 2, 3
"""The first question of a chain among all, the number of its questions, and where the next ones go."""
TEXT_START, TEXT_STOP = 4, 5
START, STOP, STOP_COUNT, LAST = 6, 7, 8, 9
"""The piece, and where the one before ended."""
PURPOSE, DIRECTION, FIXED, LIMIT, MOST, CHARACTERS = 10, 11, 12, 13, 14, 15
"""The search: what for, 1 forward or -1 back, from where to where at most, how many ids, and whether boundaries are
those of characters."""
ANCHOR, USABLE, OFFSET, MEASURES = 16, 17, 18, 19
"""The anchor, the first place that is asked for from there, what its counts differ by, and whether the first question
measures that."""
LOW, LOW_COUNT, HIGH, FIT, FIT_COUNT = 20, 21, 22, 23, 24
"""Places that no token crosses, of which the first fits and the second does not (-1: unknown); the farthest place that
fits."""
KNOWN, KNOWN_COUNT, WIDTH = 25, 26, 27
"""A place near the end of the search with its count, and how far around the expected end NARROW asks."""
BYTES, IDS = 28, 29
"""Bytes of so many ids, of the last text that was asked for as a whole."""
NEXT = 30
"""Where LIST or SCAN goes on, or a place beyond FIT that does not fit."""
LIKED_AT, LIKED_FIRST, LIKED_LAST = 31, 32, 33
"""Places where pieces like to end: before which one the next is tried, and all of them."""
EXPECTED_OFFSET, CEILING, ASKS_ALL = 34, 35, 36
"""What the offset must be if counts inside the longer text are those of the shorter one (-1: not known); the first
place where LIST's answer would not be the last that fits (0: none); whether a search goes without sizes of tokens."""
WHOLE_COUNT = 37
"""The count of the whole text that MEASURES is about."""
SECTION, LAST_SECTION, INNER, LISTED = 38, 39, 40, 41
"""The first section that begins at START or after it, and the one after the last of the text (see `sections`); whether
what is asked for from the anchor is the inside of a text; the last place that LIST asks for at first."""
ANCHORLESS = 42
"""Whether a search goes without an anchor, as counts from one were wrong."""
PLACES = 43
"""The places that were asked for."""
AT_ONCE = 20
"""The most questions of a chain at once."""
FIELDS = PLACES + AT_ONCE

PIECE = 4
"""Words of a piece: its chain, start, stop, count."""
POINTS, BATCH, INNER_BATCH, LONGEST_LIST, NEAR = 6, 6, 16, 64, 512
"""Places that NARROW asks for at once, boundaries that LIST does, and from a section on, which is nearer; the most
boundaries that LIST asks for; bytes in which a place that no token crosses is looked for."""
ANCHORED, BACK, MARGIN = 192, 256, 24
"""Bytes of a search from which on it gets an anchor, in which one is looked for, and between it and what is asked."""
FIRST_BYTES, FIRST_IDS = 7, 2
"""The guess before anything was counted: bytes of so many ids."""
