"""The search where no place that no token crosses is near: see `kernel`."""

from __future__ import annotations

from jittok.chunks.texts.search.chains import Chains, answer, ask, back_to_boundary, get, on, place, put
from jittok.chunks.texts.search.ends import end_search, fits
from jittok.chunks.texts.search.state import (
    BATCH,
    COUNT,
    DIRECTION,
    FIT,
    GALLOP,
    HALVE,
    HIGH,
    LIMIT,
    NEXT,
    PHASE,
    POINTS,
    SCAN,
)  # fmt: skip
from jittok.kernels.jit import helper


@helper
def gallop(own: Chains, s: int) -> None:
    """Ask for places farther and farther beyond FIT. NEXT: a place beyond it that does not fit, or -1."""
    direction, fit, next_, limit = get(own, s, DIRECTION), get(own, s, FIT), get(own, s, NEXT), get(own, s, LIMIT)
    if next_ >= 0:
        halve(own, s)
        return
    x, far = fit, 8
    for _ in range(POINTS):
        y = fit + direction * far
        if direction * (limit - y) <= 0:
            ask(own, s, limit)
            break
        y = back_to_boundary(own, s, y)
        if direction * (y - x) > 0:
            x = y
            ask(own, s, x)
        far *= 2
    if get(own, s, COUNT) == 0:  # one long cluster
        ask(own, s, on(own, s, fit))
    put(own, s, PHASE, GALLOP)


@helper
def halve(own: Chains, s: int) -> None:
    """Ask for places between FIT and NEXT, if there are any."""
    direction, fit, next_ = get(own, s, DIRECTION), get(own, s, FIT), get(own, s, NEXT)
    if on(own, s, fit) == next_:
        scan(own, s)
        return
    step, x = max(1, direction * (next_ - fit) // POINTS), fit
    for _ in range(POINTS):
        y = back_to_boundary(own, s, x + direction * step)
        x = y if direction * (y - x) > 0 else on(own, s, x)
        if direction * (next_ - x) <= 0:
            break
        ask(own, s, x)
    put(own, s, PHASE, HALVE)


@helper
def halved(own: Chains, s: int, first: int) -> None:
    """The last place that fits, and the first beyond it that does not."""
    direction, limit = get(own, s, DIRECTION), get(own, s, LIMIT)
    count = get(own, s, COUNT)
    for k in range(first, count):
        fits(own, s, place(own, s, k), answer(own, s, k))
    fit, next_ = get(own, s, FIT), get(own, s, NEXT)
    if next_ >= 0 and direction * (next_ - fit) <= 0:
        next_ = -1
    for k in range(first, count):
        x = place(own, s, k)
        if direction * (x - fit) > 0 and (next_ < 0 or direction * (next_ - x) > 0):
            next_ = x
    put(own, s, NEXT, next_)
    put(own, s, COUNT, 0)
    if fit == limit:
        end_search(own, s)
    elif next_ < 0:
        gallop(own, s)
    else:
        halve(own, s)


@helper
def scan(own: Chains, s: int) -> None:
    """Ask for the boundaries beyond NEXT, until `reach` bytes beyond FIT."""
    direction, fit, high, x = get(own, s, DIRECTION), get(own, s, FIT), get(own, s, HIGH), get(own, s, NEXT)
    limit = get(own, s, LIMIT)
    end = limit if high < 0 or high == limit else on(own, s, high)
    for _ in range(2 * BATCH):
        if direction * (end - x) <= 0 or direction * (x - fit) > own.reach:
            break
        x = on(own, s, x)
        if x != high:
            ask(own, s, x)
    put(own, s, NEXT, x)
    if get(own, s, COUNT) > 0:
        put(own, s, PHASE, SCAN)
    else:
        end_search(own, s)


@helper
def scanned(own: Chains, s: int, first: int) -> None:
    """SCAN is answered."""
    for k in range(first, get(own, s, COUNT)):
        fits(own, s, place(own, s, k), answer(own, s, k))
    put(own, s, COUNT, 0)
    scan(own, s)
