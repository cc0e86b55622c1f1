"""A few ids to text by the plain reference, as long as the kernels of decoding are not compiled.

They take a second to compile, the reference some microseconds an id. `fallback.first_texts` counts both decoding and
encoding, and decides when compiling pays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jittok.encode.fallback.first_texts import COST_PER_TEXT, charge, is_cheap
from jittok.errors import JittokError

if TYPE_CHECKING:
    from jittok.vocab import Vocab

AN_ID = 8
"""Bytes of text that an id counts for."""


def decode_in_python(
    vocab: Vocab, rows: Iterable[NDArray[np.int32]], count: int, remove_special: bool, special: bool, clean: bool
) -> list[bytes] | None:
    """The bytes of rows with `count` ids together. None where kernels are to join them: they are at hand, there are
    too many ids, or one is to be refused. `special`: special tokens print their text; `clean`: as for `decode`."""
    size = COST_PER_TEXT + AN_ID * count
    if not is_cheap(size) or _at_hand():
        return None
    from jittok.reference.decode import detokenize

    charge(size)
    options = {"remove_special": bool(remove_special), "unparse_special": special, "clean": bool(clean)}
    try:
        return [detokenize(vocab, row.tolist(), **options) for row in rows]
    except JittokError:
        return None


def piece_in_python(vocab: Vocab, token: int, lstrip: int, special: bool) -> bytes | None:
    """What a token of the vocabulary prints. None where it is to be looked up among the pieces of all tokens."""
    if not is_cheap(AN_ID) or _at_hand():
        return None
    from jittok.reference.decode import token_to_piece

    charge(AN_ID)
    return token_to_piece(vocab, token, lstrip=lstrip, special=special)


def _at_hand() -> bool:
    from jittok.decode.rows import join_rows

    return join_rows.at_hand()
