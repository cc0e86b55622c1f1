"""The end of a piece by the counts of sections: see `sections`. It is searched for in one section, often without a
question."""

from __future__ import annotations

from jittok.chunks.texts.search.chains import Chains, ask_between, get, is_apart, next_apart, on, place, put, raw_answer
from jittok.chunks.texts.search.ends import begin_piece, found
from jittok.chunks.texts.search.narrowing import ask_list, list_boundaries, narrow
from jittok.chunks.texts.search.sections import (
    AFTER_SPACE,
    BY_SIZES,
    BY_SPACES,
    BY_WORDS,
    LONGEST_SECTION,
    NO_COUNT,
    is_section,
)
from jittok.chunks.texts.search.state import (
    ANCHOR,
    ASKS_ALL,
    AT_ONCE,
    BYTES,
    CEILING,
    CHARACTERS,
    COUNT,
    DIRECTION,
    END_OF_PIECE,
    EXPECTED_OFFSET,
    FIT,
    FIT_COUNT,
    FIXED,
    HIGH,
    IDS,
    INNER,
    JOIN,
    KEPT_END,
    KNOWN,
    KNOWN_COUNT,
    LAST_SECTION,
    LIMIT,
    LISTED,
    LOW,
    LOW_COUNT,
    MARGIN,
    MEASURES,
    MOST,
    NEXT,
    OFFSET,
    PHASE,
    PURPOSE,
    SECTION,
    START,
    TEXT_START,
    TEXT_STOP,
    USABLE,
    WIDTH,
    WORDS,
)  # fmt: skip
from jittok.kernels.jit import helper
from jittok.kernels.memory import get_i32, get_i64, get_u8, get_u16

LONGEST_WORD = 96
"""Bytes in which all boundaries are asked for at once, or nearly."""


@helper
def begin_joined(own: Chains, s: int) -> bool:
    """Whether sections tell about the end of the piece at START: then it is found, or asked for."""
    k, last, start = get(own, s, SECTION), get(own, s, LAST_SECTION), get(own, s, START)
    if k >= last or get(own, s, PURPOSE) == KEPT_END:
        return False
    while k < last and get_i64(own.sections.starts, k) < start:
        k += 1
    put(own, s, SECTION, k)
    if k == last:
        return False
    put(own, s, PURPOSE, END_OF_PIECE)
    around = own.ids_before + own.ids_after
    if get_i64(own.sections.starts, k) == start and (own.sections.alone != 0 or start == get(own, s, TEXT_START)):
        return from_section(own, s, k, around)
    if get_i64(own.sections.starts, k) == start:
        k += 1
        if k == last:
            return False
    begin = get_i64(own.sections.starts, k)
    if begin - start > LONGEST_SECTION:
        return False
    put(own, s, COUNT, 0)
    put(own, s, NEXT, k)
    ask_between(own, s, start, begin, begin, False)
    put(own, s, PHASE, JOIN)
    return True


@helper
def joined(own: Chains, s: int) -> None:
    """JOIN is answered: the ids up to the section that NEXT has the number of."""
    count, k = raw_answer(own, s, 0), get(own, s, NEXT)
    put(own, s, COUNT, 0)
    if count > own.most or not from_section(own, s, k, count):
        begin_piece(own, s)


@helper
def from_section(own: Chains, s: int, k: int, count: int) -> bool:
    """Whether the end of the piece, which has `count` ids before section k, is found or asked for."""
    last, start = get(own, s, LAST_SECTION), get(own, s, START)
    before_it = get_i64(own.sections.before, k)
    room, low, high = own.most - count, k, last
    while low < high:
        middle = (low + high + 1) // 2
        if get_i64(own.sections.before, middle) - before_it <= room:
            low = middle
        else:
            high = middle - 1
    count += get_i64(own.sections.before, low) - before_it
    if low == last:
        found(own, s, get(own, s, TEXT_STOP), count)
        return True
    begin = get_i64(own.sections.starts, low)
    if begin == start or room < 0:
        return False
    settle(own, s, begin, count)
    if get_i64(own.sections.before, low + 1) - get_i64(own.sections.before, low) >= NO_COUNT:
        narrow(own, s)
    elif own.sections.way == BY_SIZES:
        by_sizes_of(own, s, low)
    elif own.sections.where >= AFTER_SPACE and own.sections.way in (BY_WORDS, BY_SPACES):
        by_first_tokens(own, s, low)
    else:
        ask_words(own, s, get_i64(own.sections.stops, low))
    return True


@helper
def settle(own: Chains, s: int, x: int, count: int) -> None:
    """The piece goes on beyond x, where ids are cut for certain, and up to which it has `count` ids: what is asked for
    begins there."""
    put(own, s, FIXED, get(own, s, START))
    put(own, s, LIMIT, get(own, s, TEXT_STOP))
    put(own, s, DIRECTION, 1)
    put(own, s, MOST, own.most)
    for field in (CHARACTERS, COUNT, MEASURES, CEILING, ASKS_ALL, LISTED):
        put(own, s, field, 0)
    put(own, s, EXPECTED_OFFSET, -1)
    put(own, s, HIGH, -1)
    for field in (ANCHOR, LOW, FIT, KNOWN):
        put(own, s, field, x)
    for field in (LOW_COUNT, FIT_COUNT, KNOWN_COUNT):
        put(own, s, field, count)
    put(own, s, USABLE, x + 1)
    put(own, s, OFFSET, count - own.ids_before - own.ids_after)
    put(own, s, INNER, 1)
    put(own, s, WIDTH, MARGIN)
    if get(own, s, IDS) == 0:
        put(own, s, BYTES, get_i64(own.made, 1))
        put(own, s, IDS, get_i64(own.made, 2))


@helper
def end_in_word(own: Chains, s: int, high: int) -> None:
    """The piece ends in the word that begins at LOW, or there. high: a place that no token crosses, and that probably
    does not fit."""
    low, count = get(own, s, LOW), get(own, s, LOW_COUNT)
    if count == own.most:  # the word has an id at least
        found(own, s, low, count)
        return
    ceiling = high
    if ceiling - low > LONGEST_WORD:
        ceiling = next_apart(own, s, low, get(own, s, TEXT_STOP))
    if ceiling >= get(own, s, TEXT_STOP):
        put(own, s, NEXT, get(own, s, TEXT_STOP))
        ask_list(own, s)
    elif ceiling >= 0:
        put(own, s, CEILING, ceiling)
        put(own, s, NEXT, on(own, s, ceiling))
        ask_list(own, s)
    else:
        list_boundaries(own, s)


@helper
def by_sizes_of(own: Chains, s: int, k: int) -> None:
    """Find the last word of section k that may be in the piece by the sizes of tokens; ask where they do not add up."""
    first = (get_i64(own.sections.ends, k - 1) if k > 0 else 0) + own.ids_before
    last, stop = get_i64(own.sections.ends, k) - own.ids_after, get_i64(own.sections.stops, k)
    start, text_stop = get(own, s, TEXT_START), get(own, s, TEXT_STOP)
    at, count = get_i64(own.sections.starts, k), get(own, s, LOW_COUNT)
    low, low_count, end, high = at, count, at, -1
    for i in range(first, last):
        if count <= own.most:
            end = at
            if is_section(own.own, own.text, own.bits, at, start, text_stop, own.sections.where):
                low, low_count = at, count
        elif high < 0 and is_apart(own, s, at):
            high = at
        at += get_u16(own.sizes, get_i32(own.sections.ids, i) + 1)
        count += 1
    if at == stop:
        settle(own, s, low, low_count)
        put(own, s, LISTED, end)
        end_in_word(own, s, high if high >= 0 else stop)
    else:
        ask_words(own, s, stop)


@helper
def by_first_tokens(own: Chains, s: int, k: int) -> None:
    """The same by tokens that begin words, where text is ASCII and has as many words."""
    i = (get_i64(own.sections.ends, k - 1) if k > 0 else 0) + own.ids_before
    last, stop = get_i64(own.sections.ends, k) - own.ids_after, get_i64(own.sections.stops, k)
    start, text_stop = get(own, s, TEXT_START), get(own, s, TEXT_STOP)
    x, count = get_i64(own.sections.starts, k), get(own, s, LOW_COUNT)
    low, low_count, high, good = x, count, -1, True
    end, end_count, end_id = x, count, i
    while x < stop and good:
        byte = get_u8(own.text, x)
        if byte in (32, 9, 10, 13):
            x += 1
            continue
        good = 32 < byte < 0x7F and i < last and kind_of(own, i) == 1
        if not good:
            break
        if count > own.most:
            high = x if high < 0 else high
        else:
            end, end_count, end_id = x, count, i
            if is_section(own.own, own.text, own.bits, x, start, text_stop, own.sections.where):
                low, low_count = x, count
        i += 1
        count += 1
        while i < last and kind_of(own, i) == 0:
            i += 1
            count += 1
        x = end_of_word(own, x, stop)
    if good and i == last:
        settle(own, s, low, low_count)
        spaces = own.sections.way == BY_SPACES
        x, i = end - spaces, end_id  # its tokens cover about so many bytes
        while i < end_id + own.most - end_count:
            x += get_u16(own.sizes, get_i32(own.sections.ids, i) + 1)
            i += 1
        x = min(max(x, end), stop - 1)
        put(own, s, LISTED, x)
        if spaces:
            high = next_apart(own, s, x, get(own, s, TEXT_STOP))
        end_in_word(own, s, high if high >= 0 else stop)
    else:
        ask_words(own, s, stop)


@helper
def kind_of(own: Chains, i: int) -> int:
    """1: id i of the sections is a token that begins words; ANYWHERE: it may begin inside of one; 0: it begins none."""
    return get_u8(own.sections.begins, get_i32(own.sections.ids, i) + 1)


@helper
def end_of_word(own: Chains, x: int, stop: int) -> int:
    """Where the word at x ends: before white space, and for BERT's words before and after punctuation. It may hold what
    is not ASCII, which begins no word."""
    by_words = own.sections.way == BY_WORDS
    if by_words and is_mark(get_u8(own.text, x)):
        return x + 1
    while x < stop:
        byte = get_u8(own.text, x)
        if byte <= 32 or byte >= 0x7F or (by_words and is_mark(byte)):
            break
        x += 1
    return x


@helper
def is_mark(byte: int) -> bool:
    """Whether an ASCII character is punctuation for BERT."""
    return 33 <= byte <= 47 or 58 <= byte <= 64 or 91 <= byte <= 96 or 123 <= byte <= 126


@helper
def ask_words(own: Chains, s: int, stop: int) -> None:
    """Ask for the words between LOW and `stop`, each alone: ids are cut for certain between them."""
    start, text_stop = get(own, s, TEXT_START), get(own, s, TEXT_STOP)
    begin = get(own, s, LOW)
    x = begin + 1
    while x < stop and get(own, s, COUNT) < AT_ONCE:
        if is_section(own.own, own.text, own.bits, x, start, text_stop, own.sections.where):
            ask_between(own, s, begin, x, x, True)
            begin = x
        x += 1
    if get(own, s, COUNT) == 0:
        end_in_word(own, s, stop)
        return
    put(own, s, NEXT, stop)
    put(own, s, PHASE, WORDS)


@helper
def words_counted(own: Chains, s: int) -> None:
    """WORDS is answered."""
    count, low, stop, high = get(own, s, LOW_COUNT), get(own, s, LOW), get(own, s, NEXT), -1
    for k in range(get(own, s, COUNT)):
        more = raw_answer(own, s, k) - own.ids_before - own.ids_after
        if high < 0 and count + more > own.most:
            high = place(own, s, k)
        if high < 0:
            count += more
            low = place(own, s, k)
    settle(own, s, low, count)
    if high >= 0:
        end_in_word(own, s, high)
    else:
        ask_words(own, s, stop)
