"""Many ids are decoded some at a time: the same texts and the same errors as at once."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from jittok import TokenArray
from jittok.errors import InvalidToken
from jittok.tokenizer import Tokenizer, decoding

TEXTS = [b" a", b" '", b"'", b" ", b".", "é".encode()[:1], "é".encode()[1:], b"s", b"long" * 9]
USER_DEFINED = 16


@pytest.fixture
def tok(vocab_of: Callable[..., Any]) -> Tokenizer:
    return Tokenizer(vocab_of(TEXTS, [USER_DEFINED] * len(TEXTS), clean_spaces=True))


@pytest.mark.parametrize("at_once", [1, 3, 10])
def test_rows_in_groups_are_the_rows(tok: Tokenizer, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    lengths = random.integers(0, 9, 40)
    lengths[[3, 17]] = 25
    ids = random.integers(0, len(TEXTS), int(lengths.sum())).astype(np.int32)
    rows = TokenArray(ids, np.append(0, np.cumsum(lengths)))
    whole = tok.decode_batch(rows), tok.decode_batch(rows, errors="ignore"), tok.decode(ids), tok.decode(ids.tolist())
    monkeypatch.setattr(decoding, "AT_ONCE", at_once)
    assert whole == (
        tok.decode_batch(rows), tok.decode_batch(rows, errors="ignore"), tok.decode(ids), tok.decode(ids.tolist())
    )  # fmt: skip
    assert whole[0] == [tok.decode(row) for row in rows]


def test_groups_have_few_ids_or_one_row() -> None:
    for lengths in ([], [0], [5], [1, 1, 9, 1, 1, 0, 0, 4], [0, 0, 30, 0, 30, 2, 2]):
        offsets = np.cumsum([0, *lengths])
        cuts = decoding._groups(offsets, 4)
        assert cuts[0] == 0
        assert cuts[-1] == len(lengths)
        for first, last in pairwise(cuts):
            assert last - first == 1 or offsets[last] - offsets[first] <= 4 + 4


def test_errors_are_those_of_the_whole(tok: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = np.array([0, 5, 0, 0, 0], np.int32)
    with pytest.raises(UnicodeDecodeError) as whole:
        tok.decode(bad, errors="strict")
    monkeypatch.setattr(decoding, "AT_ONCE", 2)
    with pytest.raises(UnicodeDecodeError) as found:
        tok.decode(bad, errors="strict")
    assert str(found.value) == str(whole.value)
    with pytest.raises(InvalidToken, match="token 9"):
        tok.decode(np.append(bad, 9).astype(np.int32), errors="strict")
    with pytest.raises(InvalidToken, match="token 9"):
        tok.decode_batch(TokenArray(np.append(bad, 9), [0, 2, 5, 6]), errors="strict")


def test_text_that_cannot_be_cut_is_cleaned_whole(tok: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = np.array([3] * 40 + [2, 7, 3, 4] * 5, np.int32)
    whole = tok.decode(ids)
    monkeypatch.setattr(decoding, "AT_ONCE", 4)
    monkeypatch.setattr("jittok.decode.in_slices.MOST_HELD", 6)
    assert tok.decode(ids) == whole
