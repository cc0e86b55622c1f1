"""Where a search begins, and what becomes of its end: a piece, the start of the next one, what `truncate` keeps."""

from __future__ import annotations

from jittok.chunks.texts.search.chains import (
    Chains,
    after,
    answer,
    ask,
    ask_between,
    back_to_boundary,
    before,
    get,
    is_apart,
    on,
    place,
    put,
    raw_answer,
)
from jittok.chunks.texts.search.state import (
    ANCHOR,
    ANCHORLESS,
    ASKS_ALL,
    BEGIN,
    BYTES,
    CEILING,
    CHARACTERS,
    CHECK,
    COUNT,
    DIRECTION,
    DONE,
    END_OF_PIECE,
    EXPECTED_OFFSET,
    FIELDS,
    FIT,
    FIT_COUNT,
    FIXED,
    GUESS,
    HIGH,
    IDS,
    INNER,
    KEPT_END,
    LAST,
    LIKED,
    LIKED_AT,
    LIKED_FIRST,
    LIKED_LAST,
    LIMIT,
    LISTED,
    LOW,
    LOW_COUNT,
    MARGIN,
    MEASURES,
    MOST,
    OFFSET,
    OVERLAP,
    PHASE,
    PIECE,
    PURPOSE,
    START,
    STOP,
    STOP_COUNT,
    STUCK,
    TEXT_START,
    TEXT_STOP,
    USABLE,
)  # fmt: skip
from jittok.kernels.jit import helper
from jittok.kernels.memory import get_i64, put_i64


@helper
def begin_piece(own: Chains, s: int) -> None:
    """Search for the end of the piece at START, or for what is kept of the end of the text."""
    start, stop = get(own, s, START), get(own, s, TEXT_STOP)
    if get(own, s, PURPOSE) == KEPT_END:
        put(own, s, FIXED, stop)
        put(own, s, LIMIT, get(own, s, TEXT_START))
        put(own, s, DIRECTION, -1)
    else:
        put(own, s, PURPOSE, END_OF_PIECE)
        put(own, s, FIXED, start)
        put(own, s, LIMIT, stop)
        put(own, s, DIRECTION, 1)
    put(own, s, MOST, own.most)
    put(own, s, CHARACTERS, 0)
    put(own, s, ANCHORLESS, 0)
    if start >= stop:
        put(own, s, PHASE, DONE)
    else:
        begin_search(own, s)


@helper
def begin_search(own: Chains, s: int) -> None:
    """Guess where the search ends, by the bytes of an id so far."""
    fixed, limit, direction = get(own, s, FIXED), get(own, s, LIMIT), get(own, s, DIRECTION)
    put(own, s, ANCHOR, fixed)
    put(own, s, USABLE, fixed)
    put(own, s, OFFSET, 0)
    put(own, s, LOW, fixed)
    put(own, s, LOW_COUNT, -1)
    put(own, s, HIGH, -1)
    put(own, s, FIT, fixed)
    put(own, s, FIT_COUNT, -1)
    put(own, s, MEASURES, 0)
    put(own, s, EXPECTED_OFFSET, -1)
    put(own, s, CEILING, 0)
    put(own, s, ASKS_ALL, 0)
    put(own, s, INNER, 0)
    put(own, s, LISTED, 0)
    if get(own, s, IDS) == 0:
        put(own, s, BYTES, get_i64(own.made, 1))
        put(own, s, IDS, get_i64(own.made, 2))
    expected = get(own, s, MOST) * get(own, s, BYTES) // get(own, s, IDS) + 1
    if direction > 0:  # a little more, so that the end is among the ids
        expected += (expected >> 5) + MARGIN
    x = fixed + direction * expected
    if direction * (limit - x) <= 0:
        x = limit
    else:
        x = back_to_boundary(own, s, x)
        y = x
        while direction * (y - fixed) > 0 and direction * (x - y) < MARGIN:
            if is_apart(own, s, y):
                x = y
                break
            y = after(own, s, y) if direction < 0 else before(own, s, y)
        if direction * (x - fixed) <= 0:
            x = on(own, s, fixed)
    put(own, s, COUNT, 0)
    ask(own, s, x)
    put(own, s, PHASE, GUESS)


@helper
def step_back(own: Chains, s: int, least: int, stop: int) -> None:
    """Search for where the next piece begins: at `least` or later, with at most `overlap` ids up to `stop`."""
    put(own, s, CHARACTERS, 0)
    if least >= stop:
        put(own, s, START, stop)
        put(own, s, PHASE, BEGIN)
    else:
        put(own, s, PURPOSE, OVERLAP)
        put(own, s, FIXED, stop)
        put(own, s, LIMIT, least)
        put(own, s, DIRECTION, -1)
        put(own, s, MOST, own.overlap)
        begin_search(own, s)


@helper
def found(own: Chains, s: int, x: int, count: int) -> None:
    """The search ends at x."""
    purpose, start = get(own, s, PURPOSE), get(own, s, START)
    put(own, s, COUNT, 0)
    if purpose == OVERLAP:
        put(own, s, START, x)
        put(own, s, PHASE, BEGIN)
    elif purpose == KEPT_END:
        put(own, s, START, x)
        emit(own, s, get(own, s, TEXT_STOP), count)
        put(own, s, PHASE, DONE)
    elif x <= get(own, s, LAST) and start < get(own, s, LAST):  # a step back that leads nowhere
        step_back(own, s, after(own, s, start), get(own, s, LAST))
    else:
        put(own, s, STOP, x)
        put(own, s, STOP_COUNT, count)
        if own.rounds != 0 and get(own, s, INNER) == 0 and get(own, s, ANCHOR) != get(own, s, FIXED):
            ask_between(own, s, start, x, x, False)
            put(own, s, PHASE, CHECK)
        else:
            prefer(own, s)


@helper
def checked(own: Chains, s: int) -> None:
    """CHECK is answered: the count of the piece from START to STOP."""
    count = raw_answer(own, s, 0)
    put(own, s, COUNT, 0)
    if count == get(own, s, STOP_COUNT):
        prefer(own, s)
    else:
        put(own, s, ANCHORLESS, 1)
        begin_search(own, s)


@helper
def prefer(own: Chains, s: int) -> None:
    """End the piece at STOP, or at a liked place before it."""
    start, x, first, last = get(own, s, START), get(own, s, STOP), get(own, s, LIKED_FIRST), get(own, s, LIKED_LAST)
    while first < last and get_i64(own.liked, first) <= start:
        first += 1
    put(own, s, LIKED_FIRST, first)
    at = first
    while at < last and get_i64(own.liked, at) <= x:
        at += 1
    if at > first and get_i64(own.liked, at - 1) < x:
        put(own, s, LIKED_AT, at)
        like(own, s)
    else:
        end_piece(own, s)


@helper
def none_found(own: Chains, s: int) -> None:
    """Not one boundary fits: the cluster is divided at characters."""
    purpose, direction = get(own, s, PURPOSE), get(own, s, DIRECTION)
    put(own, s, COUNT, 0)
    if purpose == OVERLAP:
        put(own, s, START, get(own, s, FIXED))
        put(own, s, PHASE, BEGIN)
    elif get(own, s, CHARACTERS) == 0:
        put(own, s, LIMIT, on(own, s, get(own, s, FIXED)))
        put(own, s, CHARACTERS, 1)
        begin_search(own, s)
    elif direction < 0:
        put(own, s, START, get(own, s, TEXT_STOP))
        put(own, s, PHASE, DONE)
    else:
        put(own, s, PHASE, STUCK)


@helper
def like(own: Chains, s: int) -> None:
    """Ask for the text up to the last liked place before LIKED_AT, or end the piece where it ends without one."""
    at = get(own, s, LIKED_AT) - 1
    least = max(get(own, s, START), get(own, s, LAST))
    if at < get(own, s, LIKED_FIRST) or get_i64(own.liked, at) <= least:
        end_piece(own, s)
        return
    put(own, s, LIKED_AT, at)
    put(own, s, OFFSET, 0)
    put(own, s, COUNT, 0)
    ask_between(own, s, get(own, s, START), get_i64(own.liked, at), get_i64(own.liked, at), False)
    put(own, s, PHASE, LIKED)


@helper
def liked(own: Chains, s: int) -> None:
    """LIKED is answered."""
    count = answer(own, s, 0)
    put(own, s, COUNT, 0)
    if count <= own.most:
        put(own, s, STOP, place(own, s, 0))
        put(own, s, STOP_COUNT, count)
        end_piece(own, s)
    else:
        like(own, s)


@helper
def emit(own: Chains, s: int, stop: int, count: int) -> None:
    """Write the piece from START to `stop`."""
    at = PIECE * get_i64(own.made, 0)
    put_i64(own.pieces, at, s // FIELDS)
    put_i64(own.pieces, at + 1, get(own, s, START))
    put_i64(own.pieces, at + 2, stop)
    put_i64(own.pieces, at + 3, count)
    put_i64(own.made, 0, get_i64(own.made, 0) + 1)


@helper
def end_piece(own: Chains, s: int) -> None:
    """The piece is done: the next one begins where it ends, or before that."""
    start, stop = get(own, s, START), get(own, s, STOP)
    emit(own, s, stop, get(own, s, STOP_COUNT))
    put(own, s, COUNT, 0)
    put(own, s, CHARACTERS, 0)
    put(own, s, LAST, stop)
    if own.once != 0 or stop >= get(own, s, TEXT_STOP):
        put(own, s, PHASE, DONE)
    elif own.overlap == 0:
        put(own, s, START, stop)
        put(own, s, PHASE, BEGIN)
    else:
        step_back(own, s, after(own, s, start), stop)


@helper
def fits(own: Chains, s: int, x: int, count: int) -> None:
    """Note a place that fits, if it is the farthest."""
    if count <= get(own, s, MOST) and get(own, s, DIRECTION) * (x - get(own, s, FIT)) > 0:
        put(own, s, FIT, x)
        put(own, s, FIT_COUNT, count)


@helper
def end_search(own: Chains, s: int) -> None:
    """FIT is the answer, if anything fits."""
    if get(own, s, FIT_COUNT) >= 0:
        found(own, s, get(own, s, FIT), get(own, s, FIT_COUNT))
    else:
        none_found(own, s)
