"""Records: what a frozen dataclass and a NamedTuple promise of the same fields."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import numpy as np
import pytest

from jittok.common.record import Record


class Point(Record):
    x: int
    y: int = 2


class Named(Point):
    name: str = ""


class Held(Record):
    values: Any
    inner: tuple[Point, ...] = ()


class Own(Record, eq=False):
    x: int


def test_fields_come_by_place_by_name_or_by_default_behind_those_of_the_parent():
    made = Named(1, name="a")
    assert (made.x, made.y, made.name, made._fields) == (1, 2, "a", ("x", "y", "name"))
    assert repr(made) == "Named(x=1, y=2, name='a')"
    assert made._asdict() == {"x": 1, "y": 2, "name": "a"}
    match made:
        case Named(x, y):
            assert (x, y) == (1, 2)


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), ((1, 2, 3), {}), ((1,), {"x": 1}), ((1,), {"z": 1}), ((), {"y": 1, "z": 2})]
)
def test_what_is_missing_too_much_twice_or_unknown_is_a_type_error(values, named):
    with pytest.raises(TypeError, match=r"Point\(x, y\): found \("):
        Point(*values, **named)


def test_a_record_does_not_change():
    made = Point(1)
    with pytest.raises(AttributeError, match=r"Point\.x: records are immutable"):
        made.x = 3
    with pytest.raises(AttributeError, match=r"Point\.x: records are immutable"):
        del made.x
    other = made._replace(y=5)
    assert (made, other) == (Point(1, 2), Point(1, 5))
    with pytest.raises(TypeError, match="z="):
        made._replace(z=1)


def test_equal_are_records_of_one_class_with_equal_fields():
    assert Point(1) == Point(1, 2) != Point(1, 3)
    assert hash(Point(1)) == hash(Point(1, 2))
    assert Point(1) != (1, 2)
    assert Named(1, 2) != Point(1, 2)
    assert len({Point(1), Point(1, 2), Named(1)}) == 2


def test_arrays_are_equal_by_their_type_and_bytes():
    ones = Held(np.ones(2, np.int32), (Point(1),))
    assert ones == Held(np.ones(2, np.int32), (Point(1),))
    assert hash(ones) == hash(Held(np.ones(2, np.int32), (Point(1),)))
    assert ones != Held(np.ones(2, np.float32), (Point(1),))
    assert ones != Held(np.ones(2, np.int32), (Point(2),))
    assert Held(np.array([1, 0], np.int32)) != Held(np.array([1], np.int64))


def test_without_eq_only_the_object_itself_is_equal():
    made = Own(1)
    assert made == made  # noqa: PLR0124
    assert made != Own(1)
    assert len({made, Own(1)}) == 2


def test_records_are_pickled_and_copied():
    made = Held((1, "a"), (Point(1), Named(2, 3, "b")))
    assert pickle.loads(pickle.dumps(made)) == made == copy.deepcopy(made)
    assert copy.copy(made) == made
    if sys.version_info >= (3, 13):
        assert copy.replace(Point(1), y=3) == Point(1, 3)


def test_what_was_computed_of_a_record_is_in_no_pickle_and_no_copy():
    made = Named(1, name="a")
    vars(made)["_made"] = lambda: None  # as a Pipeline keeps the runner of its reference
    vars(made)["size"] = 3
    for other in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert other == made
        assert vars(other) == {"x": 1, "y": 2, "name": "a", "size": 3}
