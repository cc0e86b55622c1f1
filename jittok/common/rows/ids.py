"""The ids of one text: a NumPy array that rejects operations which work on lists but give silently wrong results on
arrays."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

JOIN = (
    "to join ids write [bos, *ids.tolist(), eos] for a list or np.concatenate([[bos], ids, [eos]]) for an array; "
    "encode(text, add_special=True) adds what the vocabulary specifies"
)
OF_LISTS = {
    "append": JOIN,
    "extend": JOIN,
    "insert": JOIN,
    "pop": "ids[:-1] drops the last id",
    "remove": "ids[ids != token] drops a token",
    "index": "np.flatnonzero(ids == token) gives its positions",
    "count": "(ids == token).sum() counts a token",
    "clear": "ids.tolist() gives a list",
    "ids": "these are the ids",
    "input_ids": "these are the ids",
    "tokens": "[tok.id_to_token(i) for i in ids] gives the tokens",
    "offsets": "tok.align(text) gives ids and their spans",
    "type_ids": "rows = tok.encode_batch(texts, pairs) has types",
    "attention_mask": "rows.to_padded() gives ids and mask of many texts",
}
"""Methods of lists, and what rows of other libraries have -> what to write with an array."""


class Ids(np.ndarray[Any, np.dtype[Any]]):
    """One row of ids: an np.ndarray, except that `+` with a list, a tuple or other ids, which would add numbers to ids,
    is a TypeError, and that its truth value is a ValueError. Results of arithmetic are plain arrays."""

    __slots__ = ()

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """The result of a ufunc: not ids any more, so a plain array or a number."""
        del context, return_scalar
        plain = array.view(np.ndarray)
        return plain if plain.ndim else plain[()]

    def __add__(self, other: Any) -> Any:
        return _refused(other) if isinstance(other, list | tuple | Ids) else super().__add__(other)

    def __radd__(self, other: Any) -> Any:
        return _refused(other) if isinstance(other, list | tuple) else super().__radd__(other)

    def __iadd__(self, other: Any) -> Any:
        return _refused(other) if isinstance(other, list | tuple | Ids) else super().__iadd__(other)

    def __bool__(self) -> bool:
        raise ValueError("the truth value of an array of ids is ambiguous: use ids.size > 0")

    def __getattr__(self, name: str) -> NoReturn:
        """Called only for names that an array does not have."""
        said = f"; {OF_LISTS[name]}" if name in OF_LISTS else ""
        raise AttributeError(f"ids are a NumPy array, which has no attribute {name!r}{said}", name=name, obj=self)


def _refused(other: object) -> NoReturn:
    kind = "ids" if isinstance(other, Ids) else type(other).__name__
    raise TypeError(f"found {kind} + ids, which adds numbers elementwise instead of joining: {JOIN}")
