from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jittok import inputs
from jittok._raw.objects import can_read_in_place, texts_in_place
from jittok.errors import EncodingFailed
from jittok.inputs import documents, to_bytes
from jittok.ragged import Ragged

TEXTS = ["a", "", "héllo wörld, longer than twelve bytes", "x" * 20]
BYTES = [text.encode() for text in TEXTS]
NULLS = ["a", None, *TEXTS[2:]]


def read(texts: Any, **options: Any) -> list[bytes]:
    return [d.data[i:j].tobytes() for d in documents(texts, **options) for i, j in zip(d.starts, d.stops, strict=True)]


@pytest.mark.parametrize(
    "made",
    [
        list, tuple, iter, lambda t: (each for each in t), np.array, lambda t: np.array(t, object),
        lambda t: np.array([each.encode() for each in t]), lambda t: np.array([each.encode() for each in t], object),
        lambda t: [each.encode() for each in t], lambda t: [bytearray(each.encode()) for each in t],
        lambda t: [t[0], *(each.encode() for each in t[1:])], lambda t: [memoryview(each.encode()) for each in t],
    ],
)  # fmt: skip
def test_python_and_numpy_containers(made: Any) -> None:
    assert read(made(TEXTS)) == BYTES


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 2 has it")
def test_numpy_strings_of_variable_width() -> None:
    assert read(np.array(TEXTS, dtype=np.dtypes.StringDType())) == BYTES


def test_numpy_bytes_are_read_in_place() -> None:
    texts = np.array([b"ab", b"c"])
    (part,) = documents(texts)
    assert np.shares_memory(part.data, texts)


@given(st.lists(st.binary(max_size=6) | st.text(max_size=6), max_size=1200))
def test_any_mixture_keeps_order_and_bytes(texts: list[Any]) -> None:
    texts = [t for t in texts if isinstance(t, bytes) or not any("\ud800" <= c <= "\udfff" for c in t)]
    assert read(texts) == [t if isinstance(t, bytes) else t.encode() for t in texts]


def test_long_inputs_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PART_BYTES", 1000)
    texts = [f"text {i}" for i in range(5000)]
    assert len(list(documents(iter(texts)))) == 10
    assert read(iter(texts)) == [text.encode() for text in texts]


@pytest.mark.parametrize("thing", ["text", b"text", bytearray(b"text"), memoryview(b"text")])
def test_one_bare_text_is_refused(thing: Any) -> None:
    with pytest.raises(TypeError, match="expected a sequence of texts"):
        read(thing)


@pytest.mark.parametrize(
    "thing",
    [{"a": 1}, {"a"}, 5, None, [1], [None], ["a", 1], np.zeros(3), np.zeros((2, 2), "S1"), np.array("a"), [["a"]]],
)
def test_what_holds_no_texts_is_a_type_error(thing: Any) -> None:
    with pytest.raises(TypeError, match="expected"):
        read(thing)


def test_the_error_names_the_document() -> None:
    with pytest.raises(TypeError, match="document 600: found int"):
        read(["a"] * 600 + [5])


def test_a_lone_surrogate_is_refused_or_replaced() -> None:
    with pytest.raises(EncodingFailed, match="document 700, offset 2") as caught:
        read(["a"] * 700 + ["éb\ud800c"])
    assert (caught.value.document, caught.value.offset, caught.value.found) == (700, 2, "\ud800")
    assert read(["b\ud83d\ude00c"], replace=True) == ["b\ufffd\ufffdc".encode()]
    assert to_bytes("\udfff", replace=True) == b"\xef\xbf\xbd"


def test_ragged_is_taken_as_it_is() -> None:
    texts = Ragged(b"abc", [0, 1, 3])
    (part,) = documents(texts)
    assert np.shares_memory(part.data, texts.data)
    assert read(texts) == [b"a", b"bc"]


def test_errors_must_be_a_known_word() -> None:
    assert inputs.check_errors("replace")
    with pytest.raises(ValueError, match="expected 'strict' or 'replace'"):
        inputs.check_errors("ignore")


def test_arrow_arrays_of_every_layout() -> None:
    pa = pytest.importorskip("pyarrow")
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()):
        array = pa.array([each if each is None else each.encode() for each in NULLS], pa.binary()).cast(kind)
        want = [b"a", b"", *BYTES[2:]]
        assert read(array) == want
        assert read(array[1:3]) == want[1:3]
        assert read(pa.chunked_array([array[:2], array[2:], array[:0]])) == want
        assert read(array.dictionary_encode()) == want
        assert read(array[:0]) == []
    assert read(pa.chunked_array([], pa.string())) == []
    assert read(pa.nulls(2)) == [b"", b""]
    assert read(pa.array([b"ab", None], pa.binary(2))) == [b"ab", b""]
    for wrong in (pa.array([1]), pa.table({"a": ["x"]})):
        with pytest.raises(TypeError, match="expected"):
            read(wrong)


def test_arrow_strings_are_read_in_place() -> None:
    pa = pytest.importorskip("pyarrow")
    array = pa.array(TEXTS)
    (part,) = documents(array)
    assert np.shares_memory(part.data, np.frombuffer(array.buffers()[2], np.uint8))


def test_what_lies_behind_an_arrow_null_is_not_read() -> None:
    pa = pytest.importorskip("pyarrow")
    offsets = pa.py_buffer(np.array([0, 1, 3, 4], np.int32))
    array = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x05"), offsets, pa.py_buffer(b"abcd")])
    assert read(array) == [b"a", b"", b"d"]


def test_large_arrow_chunks_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow")
    monkeypatch.setattr(inputs, "WHOLE_CHUNK", 10)
    chunks = [["aa"], ["b"], ["c" * 20], ["d" * 20], ["e"]]
    parts = list(documents(pa.chunked_array(chunks)))
    assert [part.data.tobytes() for part in parts] == [b"aab", b"c" * 20, b"d" * 20, b"e"]


def test_pandas_series() -> None:
    pd = pytest.importorskip("pandas")
    want = [b"a", b"", *BYTES[2:]]
    assert read(pd.Series(NULLS)) == want
    for kind in ("object", "category", "string[python]"):
        assert read(pd.Series(NULLS, dtype=kind)) == want
    assert read(pd.Index(TEXTS)) == BYTES
    assert read(pd.Series([b"a", float("nan")])) == [b"a", b""]
    for wrong in (pd.Series([1, 2]), pd.DataFrame({"a": ["x"]})):
        with pytest.raises(TypeError, match="expected"):
            read(wrong)
    pa = pytest.importorskip("pyarrow")
    assert read(pd.Series(NULLS, dtype="string[pyarrow]")) == want
    assert read(pd.Series(NULLS, dtype=pd.ArrowDtype(pa.string()))) == want


def test_polars_series() -> None:
    pl = pytest.importorskip("polars")
    want = [b"a", b"", *BYTES[2:]]
    assert read(pl.Series(NULLS)) == want
    assert read(pl.Series(NULLS, dtype=pl.Categorical)) == want
    assert read(pl.Series(BYTES)) == BYTES
    for wrong in (pl.Series([1, 2]), pl.DataFrame({"a": ["x"]})):
        with pytest.raises(TypeError, match="expected"):
            read(wrong)


in_place = pytest.mark.skipif(not can_read_in_place(), reason="texts are never read in place here")


@in_place
def test_bytes_objects_are_read_where_they_are() -> None:
    texts = [b"", b"abc", bytes(range(256)) * 16, b"\0", b"abc"]
    (docs,) = documents(texts, in_place=True)
    assert docs.kept == tuple(texts)
    assert [docs.between(i, j) for i, j in zip(docs.starts.tolist(), docs.stops.tolist(), strict=True)] == texts
    assert [docs.size(0, 5), docs.size(1, 3), docs.size(4, 5)] == [4103, 4099, 3]


@in_place
def test_long_lists_of_bytes_objects_come_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "PART_BYTES", 10)
    texts = [b"x" * size for size in (4, 0, 7, 3, 25, 1)]
    parts = list(documents(texts, in_place=True))
    assert len(parts) > 2
    found = [[part.between(i, j) for i, j in zip(part.starts, part.stops, strict=True)] for part in parts]
    assert [text for rows in found for text in rows] == texts
    assert [part.size(0, part.starts.size) for part in parts] == [sum(map(len, rows)) for rows in found]


class Bytes(bytes):
    pass


@pytest.mark.parametrize("texts", [[b"a", "b"], [b"a", Bytes(b"b")], [b"a", bytearray(b"b")], [b"a", None]])
def test_other_objects_are_never_read_in_place(texts: list[Any]) -> None:
    assert texts_in_place(tuple(texts)) is None


def test_long_texts_and_texts_for_python_are_joined() -> None:
    for texts, wanted in (([b"a" * (inputs.LONGEST_IN_PLACE + 1), b"b"], True), ([b"a", b"b"], False)):
        (docs,) = documents(texts, in_place=wanted)
        assert docs.kept is None
