from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jittok.reference.merging import MERGED, OFFERED, Observe, Pair, Symbols, characters, merge

Ranks = dict[tuple[bytes, bytes], int]


def merge_pairs(text: bytes, ranks: Ranks, observe: Observe | None = None) -> Symbols:
    def join(left: bytes, right: bytes) -> tuple[int, bytes] | None:
        return (ranks[left, right], left + right) if (left, right) in ranks else None

    return merge(characters(text), join, observe)


def links(symbols: Symbols) -> dict[str, list[int]]:
    return {
        "n": symbols.n,
        "prev": symbols.prev,
        "next": symbols.next,
    }


def test_hello_after_l_and_o_have_merged(walkthroughs: dict[str, Any]) -> None:
    facts = walkthroughs["hello"]
    symbols = Symbols(characters(facts["text"].encode()))
    assert links(symbols) == facts["before"]
    left, right = facts["merge"]
    symbols.merge(left, right, symbols.piece(left) + symbols.piece(right))
    assert links(symbols) == facts["after"]
    assert [symbols.piece(i).decode() for i in range(5)] == facts["texts_after"]
    assert symbols.pieces() == [b"H", b"e", b"l", b"lo"]


def test_abcde_after_b_and_c_have_merged(walkthroughs: dict[str, Any]) -> None:
    facts = walkthroughs["abcde"]
    symbols = Symbols(characters(facts["text"].encode()))
    assert links(symbols) == facts["before"]
    left, right = facts["merge"]
    symbols.merge(left, right, symbols.piece(left) + symbols.piece(right))
    assert links(symbols) == facts["after"]


def test_a_merge_offers_the_pair_on_its_left_before_the_one_on_its_right(walkthroughs: dict[str, Any]) -> None:
    ranks = {(b"B", b"C"): 0, (b"A", b"BC"): 5, (b"BC", b"D"): 6}
    told: list[tuple[str, Pair]] = []
    merge_pairs(b"ABCDE", ranks, lambda what, pair, _: told.append((what, pair)))
    assert [what for what, _ in told[:4]] == [OFFERED, MERGED, OFFERED, OFFERED]
    offers = [(pair.left, pair.right) for _, pair in told[2:4]]
    assert offers == [(left, right) for _, _, left, right in walkthroughs["abcde"]["offers_after"]]


def test_symbols_are_characters_by_their_first_byte() -> None:
    assert [*map(len, characters("aé▁😀".encode()))] == [1, 2, 3, 4]
    assert [*map(len, characters(b"\x80\xe2ab"))] == [1, 3]  # what follows is not looked at
    assert [*map(len, characters(b"a\xf0\x9f"))] == [1, 2]  # cut at the end
    assert Symbols([]).pieces() == characters(b"") == []


def test_an_entry_is_stale_once_either_side_has_grown() -> None:
    right_grows = {(b"b", b"c"): 0, (b"a", b"b"): 1}
    assert merge_pairs(b"abc", right_grows).pieces() == [b"a", b"bc"]
    left_grows = {(b"a", b"b"): 0, (b"b", b"c"): 1}
    assert merge_pairs(b"abc", left_grows).pieces() == [b"ab", b"c"]


def by_scanning(text: bytes, ranks: Ranks) -> list[bytes]:
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
    found = merge_pairs(text.encode(), ranks).pieces()
    assert found == by_scanning(text.encode(), ranks)
