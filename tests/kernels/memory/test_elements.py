"""Raw loads, stores and block operations: fast and checked twins give what plain Python gives."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.kernels import memory
from jittok.kernels.jit import (
    F32,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    OutF64,
    OutI32,
    OutI64,
    OutU8,
    OutU16,
    OutU32,
    OutU64,
    kernel,
)
from jittok.kernels.memory import (
    FAST,
    blocks,
    byte_maps,
    byte_masks,
    key_masks,
    keys,
    pair_places,
    tables,
    window,
    word_stores,
)

FOLLOWS = 66
"""Bytes that block operations read from a place on, at most."""
bytes_ = st.binary(min_size=FOLLOWS, max_size=90) | st.lists(
    st.sampled_from(b" '\n\r\t/09azAZst\x7f\x80\xbf\xc0\xdf\xe0\xef\xf0\xf7\xf8\xffrevmdl"),
    min_size=FOLLOWS,
    max_size=90,
).map(bytes)
any_word = st.integers(0, (1 << 64) - 1) | st.sampled_from([0, 1, 1 << 63, (1 << 64) - 1])


def array(values, dtype, writeable=False):
    made = np.array(values, dtype)
    made.flags.writeable = writeable
    return made


class Elements:
    """A kernel an element type: reads every element of an array and writes it to another of the same type."""

    @staticmethod
    @kernel
    def uint8(data: U8, out: OutU8, sums: OutI64) -> int:
        for i in range(data.size):
            sums[i] = memory.get_u8(window(data), i)
            memory.put_u8(window(out), i, sums[i])
        return 0

    @staticmethod
    @kernel
    def uint16(data: U16, out: OutU16, sums: OutI64) -> int:
        for i in range(data.size):
            sums[i] = memory.get_u16(window(data), i)
            memory.put_u16(window(out), i, sums[i])
        return 0

    @staticmethod
    @kernel
    def uint32(data: U32, out: OutU32, sums: OutI64) -> int:
        for i in range(data.size):
            sums[i] = memory.get_u32(window(data), i)
            memory.put_u32(window(out), i, sums[i])
        return 0

    @staticmethod
    @kernel
    def int32(data: I32, out: OutI32, sums: OutI64) -> int:
        for i in range(data.size):
            sums[i] = memory.get_i32(window(data), i)
            memory.put_i32(window(out), i, sums[i])
        return 0

    @staticmethod
    @kernel
    def int64(data: I64, out: OutI64, sums: OutI64) -> int:
        for i in range(data.size):
            sums[i] = memory.get_i64(window(data), i)
            memory.put_i64(window(out), i, sums[i])
        return 0

    @staticmethod
    @kernel
    def uint64(data: U64, out: OutU64, sums: OutU64) -> int:
        for i in range(data.size):
            sums[i] = memory.get_u64(window(data), i)
            memory.put_u64(window(out), i, sums[i])
        return 0


@pytest.mark.parametrize("name", ["uint8", "uint16", "uint32", "int32", "int64", "uint64"])
def test_every_value_of_an_element_type_is_read_widened_and_written_back(name):
    dtype = np.dtype(name)
    limits = np.iinfo(dtype)
    values = [0, 1, 0x7F, limits.min, limits.max, limits.max - 1, limits.max // 3]
    data, out = array(values, dtype), np.zeros(len(values), dtype)
    sums = np.zeros(len(values), np.uint64 if name == "uint64" else np.int64)
    getattr(Elements, name)(data, out, sums)
    assert sums.tolist() == values
    assert out.tolist() == values


@kernel
def floats(data: F32, out: OutF64, again: OutF64) -> int:
    for i in range(data.size):
        memory.put_f64(window(out), i, memory.get_f32(window(data), i))
        again[i] = memory.get_f64(window(out), i)
    return 0


def test_floats_are_widened_exactly():
    values = [0.0, -0.0, 1.5, -3.4e38, 1e-40, np.inf, -np.inf, np.nan]
    data, out, again = array(values, np.float32), np.zeros(8), np.zeros(8)
    floats(data, out, again)
    assert out.tobytes() == again.tobytes() == data.astype(np.float64).tobytes()


@kernel
def every_word(text: U8, out: OutU64, copied: OutU8) -> int:
    for i in range(text.size - 7):
        out[i] = memory.get_word(window(text), i)
        word_stores.put_word(window(copied), i, out[i])
    return 0


@given(bytes_)
def test_words_are_little_endian_wherever_they_stand(text):
    out, copied = np.zeros(len(text) - 7, np.uint64), np.zeros(len(text), np.uint8)
    every_word(array([*text], np.uint8), out, copied)
    assert out.tolist() == [int.from_bytes(text[i : i + 8], "little") for i in range(out.size)]
    assert copied.tobytes() == text


@kernel
def count_bits(values: U64, other: U64, out: OutI64, made: OutU64) -> int:
    for i in range(values.size):
        out[3 * i] = memory.trailing_zeros(values[i])
        out[3 * i + 1] = memory.leading_zeros(values[i])
        out[3 * i + 2] = memory.popcount(values[i])
        made[2 * i] = memory.multiply(values[i], other[i])
        made[2 * i + 1] = memory.add(values[i], other[i])
    return 0


@given(st.lists(st.tuples(any_word, any_word), min_size=1, max_size=8))
def test_bits_are_counted_and_words_wrap(pairs):
    out, made = np.zeros(3 * len(pairs), np.int64), np.zeros(2 * len(pairs), np.uint64)
    count_bits(array([a for a, _ in pairs], np.uint64), array([b for _, b in pairs], np.uint64), out, made)
    for k, (a, b) in enumerate(pairs):
        binary = f"{a:064b}"
        trailing = len(binary) - len(binary.rstrip("0"))
        assert out[3 * k : 3 * k + 3].tolist() == [trailing, len(binary) - len(binary.lstrip("0")), binary.count("1")]
        assert made[2 * k : 2 * k + 2].tolist() == [a * b % 2**64, (a + b) % 2**64]


@kernel
def all_masks(text: U8, fold: int, byte: int, out: OutU64) -> int:
    w = window(text)
    high, letter, digit, white, space, line, quote, capital, slash = blocks.class_masks(w, 0)
    for k, mask in enumerate((high, letter, digit, white, space, line, quote, capital, slash)):
        out[k] = mask
    follower, c0, e0, f0, f8 = blocks.utf8_masks(w, 0)
    for k, mask in enumerate((follower, c0, e0, f0, f8)):
        out[9 + k] = mask
    one, two = blocks.contraction_masks(w, 0, np.uint64(fold))
    out[14], out[15] = one, two
    high, letter, digit, control, space = byte_masks.span_masks(w, 0)
    for k, mask in enumerate((high, letter, digit, control, space)):
        out[16 + k] = mask
    out[21] = byte_masks.equal_mask(w, 0, byte)
    out[22], out[23] = byte_masks.string_masks(w, 0)
    return 0


@given(bytes_, st.sampled_from([0, 0x20]), st.integers(0, 255))
@example(bytes(range(66)), 0, 0)
@example(bytes(range(64, 130)), 0x20, 0x80)
@example(bytes(range(128, 194)), 0, 0xC0)
@example(bytes(range(190, 256)), 0, 0xFF)
@example(b"'s't'd'm're've'll'S'RE" * 3, 0x20, 0x27)
def test_masks_of_64_bytes_are_what_each_byte_is(text, fold, byte):
    out = np.zeros(24, np.uint64)
    all_masks(array([*text], np.uint8), fold, byte, out)

    def mask(holds):
        return sum(1 << k for k in range(64) if holds(text[k]))

    def letter(c):
        return 0x61 <= c | 0x20 <= 0x7A

    def digit(c):
        return 0x30 <= c <= 0x39

    def high(c):
        return c >= 0x80

    def space(c):
        return c == 0x20

    folded = bytes(c | fold for c in text)
    after = [folded[k + 1 : k + 3] for k in range(64)]
    one = sum(1 << k for k in range(64) if after[k][:1] in (b"s", b"t", b"d", b"m"))
    two = sum(1 << k for k in range(64) if after[k] in (b"re", b"ve", b"ll"))
    assert out.tolist() == [
        mask(high), mask(letter), mask(digit), mask(lambda c: c in b"\t\n\v\f\r "), mask(space),
        mask(lambda c: c in b"\r\n"), mask(lambda c: c == 0x27), mask(lambda c: 0x41 <= c <= 0x5A),
        mask(lambda c: c == 0x2F),
        mask(lambda c: 0x80 <= c < 0xC0), *(mask(lambda c, low=low: c >= low) for low in (0xC0, 0xE0, 0xF0, 0xF8)),
        one, two,
        mask(high), mask(letter), mask(digit), mask(lambda c: c < 0x20 or c == 0x7F), mask(space),
        mask(lambda c: c == byte),
        mask(lambda c: c < 0x20 or c in b'"\\'), mask(high),
    ]  # fmt: skip


@kernel
def copied(text: U8, out: OutU8) -> int:
    byte_maps.copy_block(window(text), 2, window(out), 3)
    return 0


@given(bytes_)
def test_64_bytes_are_copied_and_no_other(text):
    out = np.full(3 + 64 + 1, 7, np.uint8)
    copied(array([*text], np.uint8), out)
    assert out.tolist() == [7, 7, 7, *text[2:66], 7]


@kernel
def mapped(table: U8, text: U8, beyond: int, masks: U64, out: OutU8) -> int:
    w = window(out)
    byte_maps.map_block(window(table), 1, window(text), 2, beyond, w, 3)
    byte_maps.mark_block(w, 3, masks[0])
    return 0


@given(bytes_, st.binary(min_size=129, max_size=129), st.integers(0, 255), st.integers(0, (1 << 64) - 1))
@example(bytes(range(64, 130)), bytes(range(1, 130)), 0xFE, 0)
@example(bytes(range(66)), bytes(range(1, 130)), 0xFE, (1 << 64) - 1)
def test_64_bytes_are_looked_up_in_a_table_and_marked(text, table, beyond, mask):
    out = np.full(3 + 64 + 1, 7, np.uint8)
    mapped(array([*table], np.uint8), array([*text], np.uint8), beyond, array([mask], np.uint64), out)
    found = [(table[1 + c] if c < 0x80 else beyond) | mask >> k & 1 for k, c in enumerate(text[2:66])]
    assert out.tolist() == [7, 7, 7, *found, 7]


@kernel
def paired(table: U8, classes: U8, width: int, out: OutU16, flags: OutU8) -> int:
    byte_maps.pair_block(window(table), 1, window(classes), 2, width, window(out), 1)
    word_stores.put_two(window(flags), 1, width)
    return 0


@given(bytes_, st.lists(st.integers(0, 127), min_size=129, max_size=129), st.integers(1, 256))
def test_two_classes_become_one_number(classes, columns, width):
    out, flags = np.full(34, 7, np.uint16), np.full(4, 7, np.uint8)
    paired(array([2 * column for column in columns], np.uint8), array([*classes], np.uint8), width, out, flags)
    of = [2 * columns[1 + (c >> 1)] + c % 2 for c in classes[2:66]]
    assert out.tolist() == [7, *((a * width + b) % 65536 for a, b in zip(of[::2], of[1::2], strict=True)), 7]
    assert flags.tolist() == [7, width % 256, width >> 8, 7]


@kernel
def lowest(values: OutU32, count: int, places: I64, news: I64, out: OutI64) -> int:
    w = window(values)
    a, b, c = places[0], places[1], places[2]
    if count == 16:
        out[0] = blocks.lowest_16(w, 1)
        out[1] = blocks.set_three_lowest_16(w, 1, a, news[0], b, news[1], c, news[2])
    else:
        out[0] = blocks.lowest_32(w, 1)
        out[1] = blocks.set_three_lowest_32(w, 1, a, news[0], b, news[1], c, news[2])
    return 0


@pytest.mark.parametrize("count", [16, 32])
@given(
    st.lists(st.integers(0, (1 << 32) - 1), min_size=34, max_size=34),
    st.lists(st.integers(-1, 33), min_size=3, max_size=3, unique=True),
    st.lists(st.integers(0, (1 << 32) - 1), min_size=3, max_size=3),
)
def test_the_lowest_of_some_words_before_and_after_three_are_set(count, values, places, news):
    data, out = np.array(values, np.uint32), np.zeros(2, np.int64)
    lowest(data, count, array(places, np.int64), array(news, np.int64), out)
    after = values[:]
    for place, new in zip(places, news, strict=True):
        if 0 <= place < count:  # outside: nothing changes
            after[1 + place] = new
    assert out.tolist() == [min(values[1 : 1 + count]), min(after[1 : 1 + count])]
    assert data.tolist() == after


@kernel
def copies(packed: U64, source: I32, ids: OutI32) -> int:
    keys.copy_ids(window(ids), 1, window(packed), 1)
    keys.copy_four(window(ids), 6, window(source), 1)
    keys.copy_narrow(window(ids), 11, window(packed), 2)
    return 0


@given(
    st.lists(any_word, min_size=4, max_size=4), st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=6, max_size=6)
)
def test_ids_are_copied_four_without_the_count_in_their_top_byte_and_eight_narrow_ones(keys, source):
    ids = np.full(20, -7, np.int32)
    copies(array(keys, np.uint64), array(source, np.int32), ids)
    raw = b"".join(word.to_bytes(8, "little") for word in keys[1:3])
    four = np.frombuffer(raw, np.int32).copy()
    four[0] &= 0xFFFFFF
    eight = np.frombuffer(b"".join(word.to_bytes(8, "little") for word in keys[2:4]), np.uint16)
    assert ids.tolist() == [-7, *four.tolist(), -7, *source[1:5], -7, *eight.tolist(), -7]


@kernel
def match(slots: U64, key: U64, places: U8) -> int:
    return keys.match_pair(window(slots), 1, window(key), 1, window(places))


@given(st.lists(st.integers(0, 2), min_size=9, max_size=9), st.tuples(st.integers(0, 2), st.integers(0, 2)))
def test_the_first_of_two_slots_with_both_words_of_a_key_is_found(slots, key):
    wanted = tables.NO_MATCH
    if tuple(slots[1:3]) == key:
        wanted = 0
    elif tuple(slots[5:7]) == key:
        wanted = 4
    assert match(array(slots, np.uint64), array([7, *key], np.uint64), pair_places()) == wanted


@kernel
def make_key(text: U8, length: int, masks: U64, records: OutU64, out: OutU64) -> int:
    out[0], out[1] = keys.put_key(window(records), 1, window(text), 2, window(masks), length)
    return 0


@given(st.binary(min_size=18, max_size=18), st.integers(0, tables.KEY_LENGTHS - 1))
def test_a_key_is_the_text_with_zeros_and_its_length_behind(text, length):
    records, out = np.full(4, 7, np.uint64), np.zeros(2, np.uint64)
    make_key(array([*text], np.uint8), length, key_masks(), records, out)
    made = bytearray(text[2 : 2 + length % 16].ljust(16, b"\0"))
    made[15] |= length
    assert out.tobytes() == made
    assert records.tolist() == [7, *out.tolist(), 7]


@kernel
def places_of(mask: U64, first: int, out: OutI32) -> int:
    return blocks.bit_places(window(out), 2, first, mask[0])


@given(any_word, st.integers(0, 1 << 20))
def test_the_places_of_set_bits_stand_behind_each_other(mask, first):
    out = np.full(2 + 64, -7, np.int32)
    end = places_of(array([mask], np.uint64), first, out)
    assert out[:end].tolist() == [-7, -7, *(first + k for k in range(64) if mask >> k & 1)]


@pytest.mark.skipif(FAST, reason="fast code checks nothing")
def test_places_that_find_no_room_are_reported():
    assert places_of(array([0b1011], np.uint64), 0, np.zeros(2 + blocks.EIGHT, np.int32)) == 5
    with pytest.raises(IndexError, match="raw access outside its array"):
        places_of(array([0b1011], np.uint64), 0, np.zeros(1 + blocks.EIGHT, np.int32))
