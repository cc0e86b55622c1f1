"""The search between places that no token crosses: see `kernel`."""

from __future__ import annotations

from jittok.chunks.texts.search.chains import (
    Chains,
    after,
    answer,
    ask,
    back_to_boundary,
    before,
    get,
    ids_before,
    is_apart,
    next_apart,
    on,
    place,
    put,
)
from jittok.chunks.texts.search.ends import end_search, fits, found
from jittok.chunks.texts.search.runs import gallop
from jittok.chunks.texts.search.state import (
    ANCHOR,
    ANCHORED,
    ANCHORLESS,
    ASKS_ALL,
    BACK,
    BATCH,
    BYTES,
    CEILING,
    COUNT,
    DIRECTION,
    EXPECTED_OFFSET,
    FIRST,
    FIT,
    FIT_COUNT,
    FIXED,
    GUESS,
    HIGH,
    IDS,
    INNER,
    INNER_BATCH,
    KNOWN,
    KNOWN_COUNT,
    LIMIT,
    LIST,
    LISTED,
    LONGEST_LIST,
    LOW,
    LOW_COUNT,
    MARGIN,
    MEASURES,
    MOST,
    NARROW,
    NEXT,
    OFFSET,
    PHASE,
    POINTS,
    USABLE,
    WHOLE_COUNT,
    WIDTH,
)  # fmt: skip
from jittok.common.unicode.characters import SPACE_BYTE
from jittok.kernels.jit import helper
from jittok.kernels.memory import Window, get_i32, get_u8, get_u16, put_i64


@helper
def expected_end(own: Chains, s: int) -> int:
    """Where the search ends, by the bytes of an id."""
    more = (get(own, s, MOST) - get(own, s, KNOWN_COUNT)) * get(own, s, BYTES) // get(own, s, IDS)
    return get(own, s, KNOWN) + get(own, s, DIRECTION) * more


@helper
def learn(own: Chains, s: int, x: int, count: int) -> None:
    """Note the count at x: of a place that no token crosses."""
    direction, high = get(own, s, DIRECTION), get(own, s, HIGH)
    if count > get(own, s, MOST):
        if high < 0 or direction * (high - x) > 0:
            put(own, s, HIGH, x)
    elif direction * (x - get(own, s, LOW)) > 0:
        put(own, s, LOW, x)
        put(own, s, LOW_COUNT, count)
    fits(own, s, x, count)


@helper
def guessed(own: Chains, s: int) -> None:
    """GUESS is answered."""
    x, count, direction, fixed = place(own, s, 0), answer(own, s, 0), get(own, s, DIRECTION), get(own, s, FIXED)
    put(own, s, COUNT, 0)
    if direction > 0 and count > 8:
        put(own, s, BYTES, x - fixed)
        put(own, s, IDS, count)
        put_i64(own.made, 1, x - fixed)
        put_i64(own.made, 2, count)
    fits(own, s, x, count)
    if x == get(own, s, LIMIT) and count <= get(own, s, MOST):
        found(own, s, x, count)
        return
    if is_apart(own, s, x):
        learn(own, s, x, count)
    over = count > get(own, s, MOST) and direction > 0
    if over and own.exact != 0 and get(own, s, ASKS_ALL) == 0 and spelled(own, s, x, count):
        return
    put(own, s, KNOWN, x)
    put(own, s, KNOWN_COUNT, count)
    expected = expected_end(own, s)
    far = abs(expected - x)
    put(own, s, WIDTH, max(MARGIN, far // 2))
    if over:  # tokens tell it better
        expected = by_sizes(own, s, x, count)
        put(own, s, KNOWN, expected)
        put(own, s, KNOWN_COUNT, get(own, s, MOST))
        far = 0
        put(own, s, WIDTH, MARGIN)
    if direction > 0 and x - fixed >= ANCHORED:
        drop_anchor(own, s, min(x, expected) - far // 2 - 2 * MARGIN, x, count)
    narrow(own, s)


@helper
def by_sizes(own: Chains, s: int, x: int, count: int) -> int:
    """About where the last id that fits ends, by the sizes of the tokens of the text up to x."""
    first, fixed = ids_before(own, get(own, s, FIRST)), get(own, s, FIXED)
    total, tail, most = 1, 0, first + get(own, s, MOST)
    for k in range(first, first + count):
        size = get_u16(own.sizes, get_i32(own.ids, k) + 1)
        total += size
        if k >= most:
            tail += size
    return max(fixed + 1, x - tail * (x - fixed) // total)


@helper
def spelled(own: Chains, s: int, x: int, count: int) -> bool:
    """Whether the ids of the text up to x tell which bytes each covers. Then LOW and HIGH are the places that no token
    crosses before and after the last id that fits, and nothing is to be narrowed.

    The sizes are the least that tokens cover: if they add up to the text, each is exact.
    """
    first = ids_before(own, get(own, s, FIRST)) + own.ids_before
    last, fixed = first + count - own.ids_before - own.ids_after, get(own, s, FIXED)
    most = first + get(own, s, MOST) - own.ids_before - own.ids_after
    at = end = fixed - own.prefix
    for k in range(first, last):
        if k == most:
            end = at
        at += get_u16(own.sizes, get_i32(own.ids, k) + 1)
    if at != x or most <= first:
        return False
    low = back_to_boundary(own, s, end)
    while low > fixed and not is_apart(own, s, low):
        low = before(own, s, low)
    if low <= fixed:
        return False
    at, k = end, most
    while at > low and k > first:
        k -= 1
        at -= get_u16(own.sizes, get_i32(own.ids, k) + 1)
    return at == low and list_after(own, s, low, k - first + own.ids_before + own.ids_after, x, k)


@helper
def list_after(own: Chains, s: int, low: int, count: int, x: int, k: int) -> bool:
    """Whether the boundaries after low are asked for, the last place that no token crosses and that fits, as far as the
    ids up to x tell, with `count` ids; k: the first id after it.

    A text that ends there may have other ids than this one has, as pre-tokenizers look at what follows. At the start of
    a word they do not; elsewhere the offset of an anchor must be what it is in this text.
    """
    certain = get_u8(own.text, low) == SPACE_BYTE and is_anchor(own.text, low)
    if certain and count == get(own, s, MOST):  # what follows has an id at least
        found(own, s, low, count)
        return True
    put(own, s, KNOWN, low)
    put(own, s, KNOWN_COUNT, count)
    if low - get(own, s, FIXED) >= ANCHORED:
        drop_anchor(own, s, low - MARGIN, low, count)
    if get(own, s, MEASURES) == 0 and not certain:
        return False
    if get(own, s, MEASURES) != 0 and own.prefix == 0:
        at, anchor = low, get(own, s, ANCHOR)
        while at > anchor and count > own.ids_before + own.ids_after:
            k -= 1
            count -= 1
            at -= get_u16(own.sizes, get_i32(own.ids, k) + 1)
        put(own, s, EXPECTED_OFFSET, count - own.ids_before - own.ids_after)
    learn(own, s, low, get(own, s, KNOWN_COUNT))
    ceiling = next_apart(own, s, low, x)
    if ceiling >= 0:
        put(own, s, CEILING, ceiling)
        put(own, s, NEXT, on(own, s, ceiling))
        ask_list(own, s)
    else:
        list_boundaries(own, s)
    return True


@helper
def ask_all(own: Chains, s: int) -> None:
    """Ask for the whole text up to KNOWN: ids of a longer text do not tell how many it has."""
    fixed = get(own, s, FIXED)
    for field in (LOW, FIT, ANCHOR, USABLE):
        put(own, s, field, fixed)
    put(own, s, INNER, 0)
    put(own, s, LOW_COUNT, -1)
    put(own, s, FIT_COUNT, -1)
    put(own, s, OFFSET, 0)
    put(own, s, EXPECTED_OFFSET, -1)
    put(own, s, CEILING, 0)
    put(own, s, ASKS_ALL, 1)
    put(own, s, COUNT, 0)
    ask(own, s, get(own, s, KNOWN))
    put(own, s, PHASE, GUESS)


@helper
def drop_anchor(own: Chains, s: int, at: int, x: int, count: int) -> None:
    """Find an anchor at most at `at`, and ask for what is between it and x, up to which the text has `count` ids."""
    fixed = get(own, s, FIXED)
    least = max(fixed, at - BACK)
    if at <= fixed + MARGIN or get(own, s, ANCHORLESS) != 0:
        return
    at = before(own, s, at + 1)
    usable = -1  # the next place after the anchor that no token crosses
    while at > least:
        if is_apart(own, s, at):
            if usable >= 0 and is_anchor(own.text, at):
                usable = after(own, s, usable)
                if usable < x:
                    put(own, s, ANCHOR, at)
                    put(own, s, USABLE, usable)
                    put(own, s, MEASURES, 1)
                    put(own, s, WHOLE_COUNT, count)
                    ask(own, s, x)
                return
            usable = at
        at = before(own, s, at)


@helper
def is_anchor(text: Window, at: int) -> bool:
    """Whether what begins at `at` is cut there for certain: not inside white space or digits."""
    a, b, c = get_u8(text, at - 1), get_u8(text, at), get_u8(text, at + 1)
    if a <= 0x20 or 0x30 <= a <= 0x39 or 0x30 <= b <= 0x39 or b in (9, 10, 13):
        return False
    return b != 0x20 or (c > 0x20 and not 0x30 <= c <= 0x39)


@helper
def narrow(own: Chains, s: int) -> None:
    """Ask for places between LOW and HIGH that no token crosses, near the expected one first."""
    direction, low, high = get(own, s, DIRECTION), get(own, s, LOW), get(own, s, HIGH)
    width, expected, limit = get(own, s, WIDTH), expected_end(own, s), get(own, s, LIMIT)
    end = limit if high < 0 else high
    first, last = expected - direction * width, expected + direction * width
    asked = 0
    if direction * (first - low) > 0 and direction * (end - first) > 0:
        last = last if direction * (end - last) > 0 else end
        asked = ask_points(own, s, back_to_boundary(own, s, first), last)
    elif direction * (last - low) > 0:
        asked = ask_points(own, s, low, last if direction * (end - last) > 0 else end)
    if asked == 0:
        asked = ask_points(own, s, low, end)
    if asked > 0:
        put(own, s, PHASE, NARROW)
    else:
        list_boundaries(own, s)


@helper
def ask_points(own: Chains, s: int, x: int, end: int) -> int:
    """Ask for up to POINTS places between x and `end` that no token crosses. Returns their number."""
    direction, asked = get(own, s, DIRECTION), 0
    step = max(1, direction * (end - x) // POINTS)
    while asked < POINTS:
        x = next_apart(own, s, x, end)
        if x < 0:
            break
        ask(own, s, x)
        asked += 1
        y = x + direction * (step - 1)
        if direction * (end - y) <= 0:
            break
        y = back_to_boundary(own, s, y)
        if direction * (y - x) > 0:
            x = y
    return asked


@helper
def narrowed(own: Chains, s: int, first: int) -> None:
    """first: the first question that asks for a place."""
    most, found = get(own, s, MOST), False
    for k in range(first, get(own, s, COUNT)):
        x, count = place(own, s, k), answer(own, s, k)
        learn(own, s, x, count)
        found = found or count > most
        if k == first or abs(count - most) < abs(get(own, s, KNOWN_COUNT) - most):
            put(own, s, KNOWN, x)
            put(own, s, KNOWN_COUNT, count)
    put(own, s, COUNT, 0)
    if not found or get(own, s, LOW) == get(own, s, FIXED):
        put(own, s, WIDTH, 2 * get(own, s, WIDTH))
    narrow(own, s)


@helper
def list_boundaries(own: Chains, s: int) -> None:
    """No place between LOW and HIGH is known to be crossed by no token: all boundaries there are asked for, from one
    after HIGH on, as pre-tokenizers look at the character that follows. Too many: GALLOP."""
    direction, low, high, limit = get(own, s, DIRECTION), get(own, s, FIT), get(own, s, HIGH), get(own, s, LIMIT)
    end = limit
    if high >= 0 and high != limit:
        end = on(own, s, high)
    x, boundaries = low, 0
    while direction * (end - x) > 0 and boundaries <= LONGEST_LIST:
        x = on(own, s, x)
        boundaries += 1
    if boundaries > LONGEST_LIST:
        put(own, s, NEXT, high)
        gallop(own, s)
    else:
        put(own, s, NEXT, end)
        ask_list(own, s)


@helper
def ask_list(own: Chains, s: int) -> None:
    """Ask for up to BATCH boundaries, from NEXT back to FIT; none is left: FIT is the answer."""
    direction, fit, high, x = get(own, s, DIRECTION), get(own, s, FIT), get(own, s, HIGH), get(own, s, NEXT)
    asked, most = 0, BATCH if get(own, s, INNER) == 0 else INNER_BATCH
    while direction * (x - fit) > 0 and asked < most and (asked == 0 or x >= get(own, s, LISTED)):
        if x != high:
            ask(own, s, x)
            asked += 1
        x = before(own, s, x) if direction > 0 else after(own, s, x)
    put(own, s, NEXT, x)
    put(own, s, LISTED, 0)
    if asked > 0:
        put(own, s, PHASE, LIST)
    else:
        end_search(own, s)


@helper
def listed(own: Chains, s: int, first: int) -> None:
    """LIST is answered."""
    for k in range(first, get(own, s, COUNT)):
        x, count = place(own, s, k), answer(own, s, k)
        if count <= get(own, s, MOST):
            ceiling = get(own, s, CEILING)
            if ceiling > 0 and x >= ceiling:  # and so may a place after it
                go_on(own, s, x, count)
            else:
                found(own, s, x, count)
            return
    put(own, s, COUNT, 0)
    ask_list(own, s)


@helper
def go_on(own: Chains, s: int, x: int, count: int) -> None:
    """Narrow what is after x, which fits."""
    put(own, s, COUNT, 0)
    put(own, s, CEILING, 0)
    put(own, s, KNOWN, x)
    put(own, s, KNOWN_COUNT, count)
    put(own, s, WIDTH, MARGIN)
    fits(own, s, x, count)
    if x == get(own, s, LIMIT):
        end_search(own, s)
        return
    if is_apart(own, s, x):
        learn(own, s, x, count)
    narrow(own, s)
