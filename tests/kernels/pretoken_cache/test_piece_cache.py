"""A cache never changes an id: tiny ones that grow, evict and drop their stores answer as the encoder after them."""

import numpy as np
import pytest
from amounts import amount
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.kernels.jit import JIT, U8, OutI32, OutU64, frozen, helper, kernel
from jittok.kernels.memory import PAD, get_u8, put_i32, window
from jittok.kernels.memory.elements import Window
from jittok.kernels.pretoken_cache import tables
from jittok.kernels.pretoken_cache.growth import BY_LOSSES, grow_short
from jittok.kernels.pretoken_cache.lookup import make_look_up, make_resolve
from jittok.kernels.pretoken_cache.records import make_records
from jittok.kernels.pretoken_cache.tables import (
    EPOCH,
    ID_LIMIT,
    LONGEST_KEPT,
    MIDDLE_BITS,
    MIDDLE_MOST,
    MISSES,
    SHORT_BITS,
    SHORT_COUNT,
    SHORT_LOST,
    SHORT_MOST,
    SPARE_IDS,
    PretokenCache,
    hash_short,
    make_cache,
    open_cache,
    short_home,
    short_line,
)


@helper
def _fake_ids(
    _work: Window, text: Window, start: int, stop: int, _low: np.uint64, _high: np.uint64, ids: Window, count: int
) -> int:
    """A stand-in for a model. Each byte of a piece gives its value, and before stands a number made of all of them.
    Pieces that begin with "-" give nothing. Those that begin with "=" or ":" give a number for each byte, with ":" none
    above 16 bits."""
    head = 0
    for i in range(start, stop):
        head = (head * 31 + get_u8(text, i)) % 16777213
    first = get_u8(text, start)
    if first == 0x2D:
        return count
    put_i32(ids, count, head & 0xFFFF if first == 0x3A else head)
    count += 1
    for i in range(start + 1, stop):
        if first in (0x3D, 0x3A) or i < start + 3:
            put_i32(ids, count, get_u8(text, i))
            count += 1
    return count


def plain_ids(piece: bytes) -> list[int]:
    """The same in Python."""
    head = 0
    for byte in piece:
        head = (head * 31 + byte) % 16777213
    if piece[:1] == b"-":
        return []
    if piece[:1] == b":":
        head &= 0xFFFF
    return [head, *(piece[1:] if piece[:1] in b"=:" else piece[1:3])]


_look_up = make_look_up(make_resolve(_fake_ids, in_runs=False))


@kernel
def encode_pieces(cache: PretokenCache, records: OutU64, text: U8, places: OutI32, number: int, ids: OutI32) -> int:
    open_ = open_cache(cache)
    return _look_up(open_, window(records), window(text), window(text), 0, window(places), number, 0, window(ids), 0)


def encode(cache, pieces):
    text = np.frombuffer(b"".join(pieces) + bytes(PAD), np.uint8)
    places = np.cumsum([0, *map(len, pieces)]).astype(np.int32)
    ids = np.full(2 * int(places[-1]) + SPARE_IDS + 8, -9, np.int32)
    count = encode_pieces(cache, make_records(), frozen(text, np.uint8), places, len(pieces), ids)
    return ids[:count].tolist()


def expected(pieces):
    return [token for piece in pieces for token in plain_ids(piece)]


lengths = st.sampled_from([1, 2, 7, 8, 9, 14, 15, 16, 17, 23, 24, 30, 31, 32, 33, 47, 64, 100, 2047, 2048, 2049])
starts = st.sampled_from([b"a", b"b", b"-", b"=", b":", b"\0", b"\xff"])
sizes = pytest.mark.parametrize("tokens", [1 << 16, ID_LIMIT], ids=["narrow", "wide"])
piece_ = st.tuples(starts, st.sampled_from([b"a", b"ab", b"\0", b"a\0", b"xyz"]), lengths).map(
    lambda drawn: (drawn[0] + drawn[1] * drawn[2])[: drawn[2]]
)
lists = st.lists(st.lists(piece_ | st.binary(min_size=1, max_size=40), max_size=40), max_size=4)


@sizes
@given(calls=lists)
@example(calls=[[b"a", b"a\0", b"a\0\0", b"a"]])
@example(calls=[[b"=" + b"x" * n for n in (1, 2, 3, 4, 5, 7, 8, 9, 14, 30, 31, 99)] * 3])
@example(calls=[[b":" + b"x" * n for n in range(31)] * 3])
@example(calls=[[b"-"], [b"-" * 16], [b"-" * 32], [b"-", b"-" * 16, b"-" * 32]])
@example(calls=[[b"=" * LONGEST_KEPT, b"=" * LONGEST_KEPT + b"x"] * 9])
def test_drawn_pieces_give_their_ids_however_often_they_come(tokens, calls):
    cache = make_cache(1 << 14, tokens)
    for pieces in [*calls, *calls]:
        assert encode(cache, pieces) == expected(pieces)


def words(random, kinds, count):
    """`count` pieces of `kinds` different ones, lengths of all tables."""
    numbers = random.integers(0, kinds, count)
    return [
        (b"=" if n % 5 == 0 else b":" if n % 5 == 1 else b"w") + b"%d" % n + b"abcdefgh" * (int(n) % 7)
        for n in numbers.tolist()
    ]


@sizes
@pytest.mark.parametrize("kinds", [10, 700, 20_000])
def test_a_tiny_cache_that_grows_evicts_and_drops_its_stores_gives_the_same_ids(kinds, tokens):
    random, cache = np.random.default_rng(kinds), make_cache(1 << 14, tokens)
    for _ in range(amount(20, 10, 2)):
        pieces = words(random, kinds, 1000 if JIT else 300)
        assert encode(cache, pieces) == expected(pieces)
    if kinds == 20_000 and JIT:
        assert cache.state[EPOCH] > 1  # stores were dropped
        assert cache.state[SHORT_BITS] == cache.state[SHORT_MOST]


def test_tables_grow_with_what_they_hold():
    cache = make_cache(8 << 20)
    bits = cache.state[[SHORT_BITS, MIDDLE_BITS]].copy()
    assert (bits < cache.state[[SHORT_MOST, MIDDLE_MOST]]).all()
    if not JIT:
        pytest.skip("takes long without the compiler")
    pieces = [b"%d" % k for k in range(30_000)] + [b"%020d" % k for k in range(10_000)]
    assert encode(cache, pieces) == expected(pieces)
    assert (cache.state[[SHORT_BITS, MIDDLE_BITS]] > bits).all()
    misses = int(cache.state[MISSES])
    assert encode(cache, pieces[:5000]) == expected(pieces[:5000])
    assert cache.state[MISSES] - misses < 2500  # most of them were kept while the tables grew


@kernel
def _keep_short(cache: PretokenCache, high: int, first: int, last: int, new: int) -> int:
    """How many of the keys (k, high) have a slot; those that have none get an empty one, if there is any."""
    open_, kept = open_cache(cache), 0
    for k in range(first, last):
        low = np.uint64(k)
        line = short_line(hash_short(low, np.uint64(high)), cache.state[SHORT_BITS])
        at, has = short_home(open_, low, np.uint64(high), line)
        if not has and new != 0 and cache.short[at + 1] == 0:
            cache.short[at], cache.short[at + 1] = low, np.uint64(high)
            has = True
        kept += has
    return kept


@kernel
def _grow_short(cache: PretokenCache) -> int:
    grow_short(open_cache(cache))
    return 0


def test_a_table_that_is_full_keeps_all_pieces_when_it_grows():
    cache = make_cache(1 << 15)
    cache.state[SHORT_BITS] = 5
    kept = _keep_short(cache, 7 << 56, 1, 300, True)
    assert kept == np.count_nonzero(cache.short[1::4][:32]) == 32
    for bits in (6, 7, 8):
        _grow_short(cache)
        assert cache.state[SHORT_BITS] == bits
        assert _keep_short(cache, 7 << 56, 1, 300, False) == 32
        assert np.count_nonzero(cache.short[1::4]) == 32


@pytest.mark.skipif(not JIT, reason="takes long without the compiler")
def test_a_table_grows_when_pieces_of_full_groups_keep_losing_their_slots():
    cache = make_cache(8 << 20)
    bits = int(cache.state[SHORT_BITS])
    random = np.random.default_rng(1)  # numbers in a row are spread too evenly
    pieces = [random.bytes(9) for _ in range((1 << bits) // 4 - 50)]  # not enough to fill a quarter
    passes = 0
    while cache.state[SHORT_BITS] == bits and passes < 50:
        assert encode(cache, pieces) == expected(pieces)
        passes += 1
    assert 1 < passes < 50
    assert encode(cache, pieces) == expected(pieces)
    misses = int(cache.state[MISSES])
    assert encode(cache, pieces) == expected(pieces)
    assert cache.state[MISSES] - misses < 20  # a group of five is rare now


@pytest.mark.skipif(not JIT, reason="takes long without the compiler")
def test_a_large_table_grows_only_by_what_it_loses():
    cache = make_cache(128 << 20)
    assert cache.state[SHORT_MOST] == BY_LOSSES + 1
    numbers = np.random.default_rng(2).permutation(1_200_000)
    pieces = [b"%d" % k for k in numbers.tolist()]
    for start in range(0, 200_000, 50_000):
        assert encode(cache, pieces[start : start + 50_000]) == expected(pieces[start : start + 50_000])
    assert cache.state[SHORT_BITS] == BY_LOSSES
    assert 4 * cache.state[SHORT_COUNT] > 1 << BY_LOSSES  # a smaller one would have grown
    grown = 0
    for start in range(200_000, len(pieces), 50_000):
        lost = int(cache.state[SHORT_LOST])
        assert encode(cache, pieces[start : start + 50_000]) == expected(pieces[start : start + 50_000])
        if not grown and cache.state[SHORT_BITS] > BY_LOSSES:
            grown = lost
    assert 4 * grown > (1 << BY_LOSSES) * 0.6


@helper
def _many_ids(
    _work: Window, text: Window, start: int, stop: int, _low: np.uint64, _high: np.uint64, ids: Window, count: int
) -> int:
    """A hundred ids for each "#", one for any other byte."""
    for i in range(start, stop):
        for _ in range(100 if get_u8(text, i) == 0x23 else 1):
            put_i32(ids, count, get_u8(text, i))
            count += 1
    return count


_look_up_many = make_look_up(make_resolve(_many_ids, in_runs=False))


@kernel
def encode_many(cache: PretokenCache, records: OutU64, text: U8, places: OutI32, number: int, ids: OutI32) -> int:
    open_ = open_cache(cache)
    return _look_up_many(
        open_, window(records), window(text), window(text), 0, window(places), number, 0, window(ids), 0
    )


@sizes
def test_a_piece_of_more_ids_than_the_store_holds_is_not_kept(tokens):
    cache = make_cache(0, tokens)
    cache = cache._replace(ids=cache.ids[: 1000 + SPARE_IDS])
    pieces = [b"a#", b"#" * 9, b"#" * 10, b"#" * 11, b"#" * 31, b"x" * 9, b"#" * 32]
    text = frozen(np.frombuffer(b"".join(pieces) + bytes(PAD), np.uint8), np.uint8)
    places = np.cumsum([0, *map(len, pieces)]).astype(np.int32)
    ids = np.full(20_000, -9, np.int32)
    wanted = [byte for piece in pieces for byte in piece for _ in range(100 if byte == 0x23 else 1)]
    for _ in range(3):
        count = encode_many(cache, make_records(), text, places, len(pieces), ids)
        assert ids[:count].tolist() == wanted


@sizes
def test_a_piece_that_was_seen_is_not_encoded_again(tokens):
    cache = make_cache(1 << 20, tokens)
    pieces = [
        b"short",
        b":seven",
        b"::eight",
        b"=of middle length, so",
        b"=a longer one, of more than thirty-two bytes",
    ]
    assert encode(cache, pieces) == expected(pieces)
    misses = int(cache.state[MISSES])
    for _ in range(3):
        assert encode(cache, pieces) == expected(pieces)
    assert cache.state[MISSES] == misses


@pytest.mark.parametrize("cache_bytes", [0, 1, 1 << 10, 1 << 14, 1 << 20, 64 << 20])
def test_a_cache_takes_about_what_it_may(cache_bytes):
    cache = make_cache(cache_bytes)
    total = sum(array.nbytes for array in cache)
    assert total <= 1.3 * max(cache_bytes, 1 << 16)
    assert cache.short.ctypes.data % 64 == cache.middle.ctypes.data % 64 == 0


def test_ids_have_fewer_bits_than_a_slot_keeps():
    from jittok.vocab import load

    assert load.MOST_TOKENS <= ID_LIMIT == tables.ID_LIMIT
