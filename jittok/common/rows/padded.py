"""Rows of one length, as arrays that a model takes. Needs NumPy alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from jittok.common.rows.ragged import whole_number

if TYPE_CHECKING:
    import torch

INT32_MAX = 2**31 - 1


class Padded(NamedTuple):
    """Rows of one length.

    `ids`: int32[rows, length]; `mask`: bool[rows, length], True for what is of the row; `types`: int32[rows, length],
    the segment that each id belongs to, or None where rows have no segments. The arrays are C-contiguous, writable, and
    belong to nobody else.
    """

    ids: NDArray[np.int32]
    mask: NDArray[np.bool_]
    types: NDArray[np.int32] | None

    def to_torch(self) -> Tensors:
        """The same memory as tensors: int32, bool and int32 or None. ImportError without torch.

        >>> import jittok
        >>> batch = jittok.bundled("gpt-2").encode_batch(["a text"], max_length=8).to_padded(8, pad_id=0)
        >>> batch.to_torch().ids.shape  # doctest: +SKIP
        torch.Size([1, 8])
        """
        import torch

        types = None if self.types is None else torch.from_numpy(self.types)
        return Tensors(torch.from_numpy(self.ids), torch.from_numpy(self.mask), types)


def _no_attribute(padded: Padded, name: str) -> NoReturn:
    """An AttributeError that says what to write for the names of other libraries' batches."""
    from jittok.common.hints import no_attribute_of_rows

    message = no_attribute_of_rows("Padded", name, dir(Padded))
    raise AttributeError(message, name=name, obj=padded)


if not TYPE_CHECKING:  # a checker tells what is not there
    Padded.__getattr__ = _no_attribute


class Tensors(NamedTuple):
    """`Padded` as tensors, over the same memory."""

    ids: torch.Tensor
    mask: torch.Tensor
    types: torch.Tensor | None


Side = Literal["right", "left"]


def padding_id(given: int | None, own: int | None, side: str) -> int:
    """The id that pads rows: the given one, else that of the vocabulary. TypeError where there is none, ValueError for
    what is no int32 and for any other side."""
    pad_id = own if given is None else given
    if pad_id is None:
        raise TypeError(
            "pad_id: found None, and these rows know no padding token; expected an id: pad_id=tok.pad_id where the "
            "vocabulary has one, else any where the mask is used, pad_id=tok.eos_id or pad_id=0"
        )
    if side not in ("right", "left"):
        raise ValueError(f"side: found {side!r}, expected 'right' or 'left'")
    return int32(pad_id, "pad_id")


def int32(value: int, name: str) -> int:
    """The same as Python's integer. TypeError for what is none, ValueError for what is no int32."""
    value = whole_number(value, name)
    if not -INT32_MAX - 1 <= value <= INT32_MAX:
        raise ValueError(f"{name}: found {value}, expected an int32")
    return value


def padded_length(length: int | None, longest: int, multiple_of: int | None) -> int:
    """The length of padded rows: the longest row's where none is given, rounded up. ValueError, TypeError for what is
    no length, and for a multiple that is no positive number."""
    length = longest if length is None else whole_number(length, "length")
    if length < 0:
        raise ValueError(f"length: found {length}, expected 0 or more")
    if multiple_of is None:
        return length
    if whole_number(multiple_of, "multiple_of") < 1:
        raise ValueError(f"multiple_of: found {multiple_of}, expected 1 or more")
    return length + -length % multiple_of
