"""A token is taken at once only where no other can overlap it."""

from collections.abc import Callable
from typing import Any

import pytest
from amounts import amount

from jittok.tokenizer import Tokenizer

NORMAL, USER_DEFINED = 4, 16
FRONTS = (0, 1, 30, 58, 59, 60, 61, 62, 63, 64, 65, 200)
MANY = [bytes([a, b, ord("~")]) for a in range(0x41, 0x5B) for b in range(0x61, 0x7B)]
"""Tokens with more beginnings than are searched for 64 bytes at a time."""


@pytest.mark.parametrize("others", [[], MANY], ids=["few", "many"])
@pytest.mark.parametrize("inside", range(1, 5))
def test_a_longer_token_that_begins_inside_takes_the_bytes(
    vocab_of: Callable[..., Any], others: list[bytes], inside: int
) -> None:
    longer = b"abcde"[inside:] + b"123456789"
    tokens = [b"<unk>", b"abcde", longer, b".", *(bytes([b]) for b in b"abcde123456789"), *others]
    special = {b"abcde", longer, *others}
    attributes = [USER_DEFINED if token in special else NORMAL for token in tokens]
    tok = Tokenizer(vocab_of(tokens, attributes, add_space_prefix=False, unk_id=0))
    for front in amount(FRONTS, FRONTS, FRONTS[inside % 3 :: 3]):
        text = b"." * front + b"abcde123456789" + b"." * 200
        left = [tokens.index(bytes([b])) for b in b"abcde"[:inside]]
        assert tok.encode(text).tolist() == [3] * front + left + [2] + [3] * 200, front
