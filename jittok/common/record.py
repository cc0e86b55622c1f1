"""`Record`: frozen data with named fields, for classes that every start makes.

`dataclasses` and `typing.NamedTuple` write the source of each class's methods and compile it, which takes 0.1 to 1 ms a
class, and the former imports `inspect`. A start makes seventy such classes. The methods of a Record go through its
fields instead and are compiled once, for all of them. Kernels take NamedTuples only, and rows of a table that are made
by the thousand are better as such: they take less memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

if TYPE_CHECKING:
    from typing import Self, dataclass_transform  # of 3.11
else:

    def dataclass_transform(**_options):
        """Only type checkers read it."""
        return lambda kind: kind


@dataclass_transform(frozen_default=True)
class Record:
    """The annotations of a subclass are its fields, after those of its parents; a value beside one is its default.

    Made, shown and matched as a frozen dataclass; `_replace`, `_asdict` and `_fields` are those of a NamedTuple. Equal
    are records of one class with equal fields, arrays by their bytes; with `eq=False` only the object itself.
    """

    _fields: tuple[str, ...] = ()
    _defaults: dict[str, Any] = {}  # noqa: RUF012  each class has its own

    def __init_subclass__(cls, eq: bool = True) -> None:
        own = tuple(cls.__annotations__)
        cls._fields = cls.__match_args__ = cls._fields + own  # type: ignore[attr-defined, misc]
        cls._defaults = {**cls._defaults, **{name: vars(cls)[name] for name in own if name in vars(cls)}}
        if not eq:
            cls.__eq__, cls.__hash__ = object.__eq__, object.__hash__  # type: ignore[method-assign]

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = self._fields
        made = {**self._defaults, **dict(zip(fields, values)), **named}  # noqa: B905  what is too much is found below
        if len(values) > len(fields) or made.keys() != {*fields} or not named.keys().isdisjoint(fields[: len(values)]):
            found = ", ".join(["?"] * len(values) + [f"{name}=?" for name in named])
            raise TypeError(f"{type(self).__name__}({', '.join(fields)}): found ({found})")
        vars(self).update(made)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name}: records are immutable (see _replace)")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name}: records are immutable (see _replace)")

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies: all but what was computed of the record and kept under a private name."""
        return {name: value for name, value in vars(self).items() if name in self._fields or not name.startswith("_")}

    def _asdict(self) -> dict[str, Any]:
        """Field -> value."""
        return {name: getattr(self, name) for name in self._fields}

    def _replace(self, **changes: Any) -> Self:
        """A record with other values in these fields. What was computed of the old ones is not in it."""
        return type(self)(**{**self._asdict(), **changes})

    __replace__ = _replace  # for `copy.replace`

    def _plain(self) -> tuple[object, ...]:
        """The values as something that can be compared and hashed."""
        values = self._asdict().values()
        return tuple((v.dtype.str, v.tobytes()) if isinstance(v, np.ndarray) else v for v in values)

    def __eq__(self, other: object) -> bool:
        return self._plain() == other._plain() if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._plain()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"
