from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jittok.reference.merging import MERGED, OFFERED, Pair, Symbols, merge_pairs


def links(symbols: Symbols) -> dict[str, list[int]]:
    return {"n": symbols.n, "prev": symbols.prev, "next": symbols.next}


def test_hello_after_l_and_o_have_merged(walkthroughs: dict[str, Any]) -> None:
    facts = walkthroughs["hello"]
    symbols = Symbols(facts["text"].encode())
    assert links(symbols) == facts["before"]
    symbols.merge(*facts["merge"])
    assert links(symbols) == facts["after"]
    assert [symbols.piece(i).decode() for i in range(5)] == facts["texts_after"]
    assert symbols.pieces() == [b"H", b"e", b"l", b"lo"]


def test_abcde_after_b_and_c_have_merged(walkthroughs: dict[str, Any]) -> None:
    facts = walkthroughs["abcde"]
    symbols = Symbols(facts["text"].encode())
    assert links(symbols) == facts["before"]
    symbols.merge(*facts["merge"])
    assert links(symbols) == facts["after"]


def test_a_merge_offers_the_pair_on_its_left_before_the_one_on_its_right(walkthroughs: dict[str, Any]) -> None:
    ranks = {(b"B", b"C"): 0, (b"A", b"BC"): 5, (b"BC", b"D"): 6}
    told: list[tuple[str, Pair]] = []
    merge_pairs(b"ABCDE", lambda *pair: ranks.get(pair), lambda what, pair, _: told.append((what, pair)))
    assert [what for what, _ in told[:4]] == [OFFERED, MERGED, OFFERED, OFFERED]
    offers = [(pair.left, pair.right) for _, pair in told[2:4]]
    assert offers == [(left, right) for _, _, left, right in walkthroughs["abcde"]["offers_after"]]


def test_symbols_are_characters_by_their_first_byte() -> None:
    assert Symbols("aé▁😀".encode()).n == [1, 2, 3, 4]
    assert Symbols(b"\x80\xe2ab").n == [1, 3]  # what follows is not looked at
    assert Symbols(b"a\xf0\x9f").n == [1, 2]  # cut at the end
    assert Symbols(b"").pieces() == []


def test_an_entry_is_stale_once_either_side_has_grown() -> None:
    right_grows = {(b"b", b"c"): 0, (b"a", b"b"): 1}
    assert merge_pairs(b"abc", lambda *pair: right_grows.get(pair)).pieces() == [b"a", b"bc"]
    left_grows = {(b"a", b"b"): 0, (b"b", b"c"): 1}
    assert merge_pairs(b"abc", lambda *pair: left_grows.get(pair)).pieces() == [b"ab", b"c"]


def by_scanning(text: bytes, ranks: dict[tuple[bytes, bytes], int]) -> list[bytes]:
    """The meaning without a queue: again and again the best pair of the whole list."""
    pieces = [text[i : i + 1] for i in range(len(text))]
    while True:
        found = [(ranks[pair], i) for i, pair in enumerate(pairwise(pieces)) if pair in ranks]
        if not found:
            return pieces
        _, i = min(found)
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]


pairs = st.tuples(st.text("abc", min_size=1, max_size=4), st.text("abc", min_size=1, max_size=4))


@given(st.text("abc", max_size=30), st.lists(pairs, unique=True, max_size=30))
def test_the_queue_gives_what_scanning_gives(text: str, lines: list[tuple[str, str]]) -> None:
    ranks = {(left.encode(), right.encode()): rank for rank, (left, right) in enumerate(lines)}
    found = merge_pairs(text.encode(), lambda *pair: ranks.get(pair)).pieces()
    assert found == by_scanning(text.encode(), ranks)
