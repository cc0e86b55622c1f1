"""The reader's kernels: rows of ids with their segments and positions, the order of sequences, and best fit.

The reference is `jittok/reference/corpus/sequences.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jittok.kernels.jit import I32, I64, U16, U64, OutI32, OutI64, OutU64, helper, kernel
from jittok.kernels.memory import (
    Window,
    get_i32,
    get_i64,
    get_u16,
    get_u64,
    multiply,
    put_i32,
    put_i64,
    put_u64,
    trailing_zeros,
    window,
)

START, COUNT, LOW, HIGH, PLACE, NARROW, FACTS = 0, 1, 2, 3, 4, 5, 6
"""What is known of a row: where its ids begin (in the numbers of its marks), how many there are, its marks
[LOW, HIGH), where its ids lie, and whether as uint16."""
NO_TARGET = -100
"""Where there is no next token; PyTorch's losses leave it out."""
NO_TOKEN = -1


class Read(NamedTuple):
    """What was read of files. `narrow` and `wide` are the same memory.

    rows: FACTS numbers each; `COUNT` ids from PLACE on, counted in ids, are in that memory.
    marks: where documents begin, never falling from LOW to HIGH of a row.
    """

    narrow: U16
    wide: I32
    rows: I64
    marks: I64


class Rows(NamedTuple):
    """Rows of `length`, one after the other. targets: as many, or none."""

    ids: OutI32
    segments: OutI32
    positions: OutI32
    targets: OutI64


@helper
def _widen_narrow(source: Window, place: int, target: Window, at: int, count: int) -> int:
    top = 0
    for t in range(count):
        token = get_u16(source, place + t)
        put_i32(target, at + t, token)
        top = max(top, token)
    return top


@helper
def _copy_wide(source: Window, place: int, target: Window, at: int, count: int) -> int:
    """The largest id, where one of 2^31 or more (negative as int32) counts as 2^31 and more."""
    top, low = 0, 0
    for t in range(count):
        token = get_i32(source, place + t)
        put_i32(target, at + t, token)
        top = max(top, token)
        low = min(low, token)
    return top if low >= 0 else 1 << 32


@helper
def _after(marks: Window, low: int, high: int, start: int) -> int:
    """The first mark of [low, high) that is larger than `start`."""
    while low < high:
        middle = (low + high) >> 1
        if get_i64(marks, middle) > start:
            high = middle
        else:
            low = middle + 1
    return low


@helper
def _fill(target: Window, at: int, stop: int, value: int) -> None:
    for t in range(at, stop):
        put_i32(target, t, value)


@helper
def _count_up(target: Window, at: int, count: int) -> None:
    for t in range(count):
        put_i32(target, at + t, t)


@helper
def _mark(
    marks: Window, low: int, high: int, start: int, count: int, segments: Window, positions: Window, at: int
) -> None:
    """Segments from 1 and positions from 0 of a row of `count` ids: a mark begins the next one."""
    mark, begin, number = _after(marks, low, high, start), 0, 1
    while begin < count:
        end = count
        while mark < high:
            there = get_i64(marks, mark) - start
            mark += 1
            if there > begin:
                end = min(there, count)
                break
        _fill(segments, at + begin, at + end, number)
        _count_up(positions, at + begin, end - begin)
        begin = end
        number += 1


@helper
def _aim(
    narrow: Window, wide: Window, place: int, is_narrow: int, count: int, target: Window, at: int, length: int
) -> None:
    """The id after each of a row of `length`, where `count` ids were read."""
    most = min(count - 1, length)
    for t in range(most):
        put_i64(target, at + t, get_u16(narrow, place + t + 1) if is_narrow else get_i32(wide, place + t + 1))
    for t in range(max(most, 0), length):
        put_i64(target, at + t, NO_TARGET)


@kernel
def lay_out(read: Read, count: int, length: int, vocab: int, pad: int, across: int, rows: Rows, report: OutI64) -> int:
    """Lays out `count` rows. NO_TOKEN for an id that is not below `vocab`; report: its row, its place in it, the id.

    across: whether the target of a document's last token is the first of the next one.
    """
    narrow, wide, facts, marks = window(read.narrow), window(read.wide), window(read.rows), window(read.marks)
    ids, segments, positions = window(rows.ids), window(rows.segments), window(rows.positions)
    targets, aimed = window(rows.targets), rows.targets.size > 0
    for row in range(count):
        fact, at = row * FACTS, row * length
        there, place = get_i64(facts, fact + COUNT), get_i64(facts, fact + PLACE)
        is_narrow, used = get_i64(facts, fact + NARROW), min(there, length)
        top = _widen_narrow(narrow, place, ids, at, used) if is_narrow else _copy_wide(wide, place, ids, at, used)
        if top >= vocab:
            for t in range(used):
                token = get_i32(ids, at + t)
                if token < 0 or token >= vocab:
                    report[0], report[1], report[2] = row, t, token
                    return NO_TOKEN
        start, low, high = get_i64(facts, fact + START), get_i64(facts, fact + LOW), get_i64(facts, fact + HIGH)
        _mark(marks, low, high, start, used, segments, positions, at)
        _fill(ids, at + used, at + length, pad)
        _fill(segments, at + used, at + length, 0)
        _fill(positions, at + used, at + length, 0)
        if aimed:
            _aim(narrow, wide, place, is_narrow, there, targets, at, length)
            if not across:
                for t in range(1, used):
                    if get_i32(positions, at + t) == 0:
                        put_i64(targets, at + t - 1, NO_TARGET)
            if there > length:
                token = get_i64(targets, at + length - 1)
                if token < 0 or token >= vocab:
                    report[0], report[1], report[2] = row, length, token
                    return NO_TOKEN
    return 0


@helper
def _mixed(word: np.uint64) -> np.uint64:
    word = multiply(word, np.uint64(0x9E3779B97F4A7C15))
    word ^= word >> np.uint64(29)
    word = multiply(word, np.uint64(0xBF58476D1CE4E5B9))
    return word ^ (word >> np.uint64(32))


@kernel
def permute(numbers: I64, keys: U64, count: int, half: int, found: OutI64) -> int:
    """Sends each of some numbers below `count` to another one, by a Feistel network over 2 * half bits.

    keys: one a round; 4 ** half >= count.
    """
    bits, mask = np.uint64(half), np.uint64((1 << half) - 1)
    for k in range(numbers.size):
        number = np.uint64(numbers[k])
        while True:
            left, right = number >> bits, number & mask
            for r in range(keys.size):
                left, right = right, left ^ (_mixed(right ^ keys[r]) & mask)
            number = (left << bits) | right
            if number < np.uint64(count):
                break
        found[k] = np.int64(number)
    return 0


class Rooms(NamedTuple):
    """Scratch of best fit: sequences that are not full by the room that is left in them.

    last: int32[length + 1], the sequence that came last to each room, -1 for none; before: int32[pieces], the one that
    came there before it; words: a bit for each room that some sequence has; groups: a bit for each word.
    """

    last: OutI32
    before: OutI32
    words: OutU64
    groups: OutU64


@helper
def _bit(number: int) -> np.uint64:
    return np.uint64(1) << np.uint64(number & 63)


@helper
def _least(words: Window, groups: Window, room: int, size: int) -> int:
    """The least room of `room` or more that a sequence has; -1 for none. size: of `groups`."""
    word = room >> 6
    bits = get_u64(words, word) >> np.uint64(room & 63)
    if bits != np.uint64(0):
        return room + trailing_zeros(bits)
    group, skip = (word + 1) >> 6, (word + 1) & 63
    while group < size:
        bits = (get_u64(groups, group) >> np.uint64(skip)) << np.uint64(skip)
        if bits != np.uint64(0):
            word = (group << 6) + trailing_zeros(bits)
            return (word << 6) + trailing_zeros(get_u64(words, word))
        group, skip = group + 1, 0
    return -1


@kernel
def best_fit(sizes: I32, length: int, rooms: Rooms, counts: OutI32, order: OutI32, place: OutI32) -> int:
    """Packs pieces of 1 to `length` tokens; returns how many sequences. place: the sequence of each, numbered by
    their first pieces.

    counts: int32[length + 2] and at least pieces + 2, order: int32[pieces], both scratch.
    """
    pieces = sizes.size
    for k in range(length + 2):
        counts[k] = 0
    for k in range(pieces):
        counts[length - sizes[k] + 1] += 1
    for k in range(length + 1):
        counts[k + 1] += counts[k]
    for k in range(pieces):  # the longest first, the earlier of equals first
        slot = length - sizes[k]
        order[counts[slot]] = k
        counts[slot] += 1
    last, before = window(rooms.last), window(rooms.before)
    words, groups, groups_size = window(rooms.words), window(rooms.groups), rooms.groups.size
    _fill(last, 0, length + 1, -1)
    for k in range(rooms.words.size):
        put_u64(words, k, 0)
    for k in range(groups_size):
        put_u64(groups, k, 0)
    made = 0
    for n in range(pieces):
        size = np.int64(sizes[order[n]])
        room = _least(words, groups, size, groups_size)
        if room < 0:
            sequence, room = made, length
            made += 1
        else:
            sequence = get_i32(last, room)
            put_i32(last, room, get_i32(before, sequence))
            if get_i32(last, room) < 0:
                word = room >> 6
                put_u64(words, word, get_u64(words, word) & ~_bit(room))
                if get_u64(words, word) == np.uint64(0):
                    group = word >> 6
                    put_u64(groups, group, get_u64(groups, group) & ~_bit(word))
        place[order[n]] = sequence
        room -= size
        if room > 0:
            put_i32(before, sequence, get_i32(last, room))
            put_i32(last, room, sequence)
            word = room >> 6
            put_u64(words, word, get_u64(words, word) | _bit(room))
            put_u64(groups, word >> 6, get_u64(groups, word >> 6) | _bit(word))
    _fill(window(counts), 0, made, -1)
    number = 0
    for k in range(pieces):
        if counts[place[k]] < 0:
            counts[place[k]] = number
            number += 1
        place[k] = counts[place[k]]
    return made


@kernel
def next_fit(sizes: I32, length: int, room: int, place: OutI64) -> int:
    """A piece goes to the last sequence, in which `room` is left, or begins another one; returns the room left.

    place: of each piece its sequence, where 0 is the one before the first new one.
    """
    number = 0
    for k in range(sizes.size):
        size = np.int64(sizes[k])
        if size > room:
            number += 1
            room = length
        room -= size
        place[k] = number
    return room
