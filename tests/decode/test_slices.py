"""Many ids are decoded some at a time: the same texts and the same errors as at once."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from jittok import TokenArray
from jittok.decode import slices
from jittok.decode.rows import DecodeFrame
from jittok.errors import InvalidToken
from jittok.tokenizer import Tokenizer, tokenizer

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
    monkeypatch.setattr(tokenizer, "IDS_PER_SLICE", at_once)
    assert whole == (
        tok.decode_batch(rows), tok.decode_batch(rows, errors="ignore"), tok.decode(ids), tok.decode(ids.tolist())
    )  # fmt: skip
    assert whole[0] == [tok.decode(row) for row in rows]


def test_groups_have_few_ids_or_one_row() -> None:
    for lengths in ([], [0], [5], [1, 1, 9, 1, 1, 0, 0, 4], [0, 0, 30, 0, 30, 2, 2]):
        offsets = np.cumsum([0, *lengths])
        cuts = slices.groups_of_rows(offsets, 4)
        assert cuts[0] == 0
        assert cuts[-1] == len(lengths)
        for first, last in pairwise(cuts):
            assert last - first == 1 or offsets[last] - offsets[first] <= 4 + 4


def test_errors_are_those_of_the_whole(tok: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = np.array([0, 5, 0, 0, 0], np.int32)
    with pytest.raises(UnicodeDecodeError) as whole:
        tok.decode(bad, errors="strict")
    monkeypatch.setattr(tokenizer, "IDS_PER_SLICE", 2)
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
    monkeypatch.setattr(tokenizer, "IDS_PER_SLICE", 4)
    monkeypatch.setattr("jittok.decode.slices.MOST_HELD", 6)
    assert tok.decode(ids) == whole


class Noting:
    """Ids to bytes; it notes by which frames."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.frames = raw, list[DecodeFrame]()

    def one(self, ids: Any, frame: DecodeFrame) -> bytes:
        self.frames.append(frame)
        return self.raw[int(ids[0]) : int(ids[-1]) + 1]


@pytest.mark.parametrize("count", [1, 3, 4, 6])
def test_the_ends_of_a_row_are_those_of_its_first_and_last_slice(count: int) -> None:
    noting = Noting(b" . , ! ? ")
    parts = [*slices.parts_of(noting, np.arange(count, dtype=np.int32), DecodeFrame(1, 7, 8, 1, 0), 3)]  # type: ignore[arg-type]
    assert parts == [b" . , ! ? "[:count][at : at + 3] for at in range(0, count, 3)]  # not cleaned
    last = len(parts) - 1
    wanted = [(int(k == 0), 7 if k == 0 else -1, 8 if k == last else -1, 1, 0) for k in range(last + 1)]
    assert [tuple(frame) for frame in noting.frames] == wanted


def test_bytes_that_wait_are_counted_and_not_those_that_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MOST_HELD", 4)
    raw, frame = b"some words and  others" + b" '" * 4, DecodeFrame(0, -1, -1, 1, 1)
    parts = [*slices.parts_of(Noting(raw), np.arange(22, dtype=np.int32), frame, 11)]  # type: ignore[arg-type]
    assert None not in parts
    assert b"".join(part or b"" for part in parts) == raw[:22]
    assert None in [*slices.parts_of(Noting(raw), np.arange(30, dtype=np.int32), frame, 9)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parts", "errors", "text"),
    [
        ([b"a\xc3", b"\xa9b"], "strict", "a\u00e9b"), ([b"a\xc3", b"b"], "replace", "a\ufffdb"),
        ([b"a", b"\xc3"], "replace", "a\ufffd"), ([b"a\xc3", b"b"], "strict", None), ([b"\xc3"], "strict", None),
        ([b"a", None], "replace", None), ([b"a"], "xmlcharrefreplace", None), ([], "strict", ""),
    ],
)  # fmt: skip
def test_a_text_is_read_part_by_part_if_its_bytes_say_all(parts: Any, errors: str, text: str | None) -> None:
    assert slices.text_of(parts, errors) == text


def test_there_are_at_most_so_many_slices_of_so_many_ids() -> None:
    assert [slices.size_of_slices(*each) for each in ((0, 0), (9, 4), (64 * 5, 4), (64 * 5, 6))] == [1, 4, 5, 6]
