"""Facts of a vocabulary as attributes of its `Tokenizer`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, overload

from jittok.vocab import NO_TOKEN

if TYPE_CHECKING:
    from jittok.tokenizer.tokenizer import Tokenizer

T = TypeVar("T")
KERNELS = "kernels"
"""Value of `Tokenizer.runs` for a vocabulary that compiled code encodes."""
SPECIAL_IDS = (
    "bos_id", "eos_id", "eot_id", "eom_id", "unk_id", "sep_id", "pad_id", "mask_id", "nl_id", "fim_prefix_id",
    "fim_suffix_id", "fim_middle_id", "fim_pad_id", "fim_rep_id", "fim_sep_id",
)  # fmt: skip
"""Names of the special ids that a tokenizer has."""


def or_none(token: int) -> int | None:
    """A special id, None if the vocabulary does not have it."""
    return None if token == NO_TOKEN else int(token)


class Fact(Generic[T]):
    """A fact of the vocabulary under the same name, read-only."""

    def __init__(self, doc: str, kind: Callable[[Any], T] | None = None) -> None:
        self.__doc__, self._kind = doc, kind

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, holder: None, owner: Any) -> Fact[T]: ...
    @overload
    def __get__(self, holder: Tokenizer, owner: Any) -> T: ...
    def __get__(self, holder: Tokenizer | None, owner: Any = None) -> Fact[T] | T:
        if holder is None:
            return self
        found = getattr(holder.vocab, self._name)
        return found if self._kind is None else self._kind(found)

    def __set__(self, holder: Tokenizer, value: object) -> NoReturn:
        raise AttributeError(f"Tokenizer.{self._name}: tokenizers are immutable")
