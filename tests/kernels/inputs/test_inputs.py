import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jittok.common.rows import Ragged
from jittok.errors import EncodingFailed
from jittok.kernels import inputs
from jittok.kernels.fragments import PAD
from jittok.kernels.inputs import arrow, containers, documents, to_bytes
from jittok.kernels.memory.python_objects import texts as objects
from jittok.kernels.memory.python_objects.texts import can_read_in_place, texts_in_place

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
    monkeypatch.setattr(containers, "PART_BYTES", 1000)
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


def test_a_dictionary_may_have_rows_and_no_entries() -> None:
    pa = pytest.importorskip("pyarrow")
    nothing, none = pa.array([], pa.string()).dictionary_encode(), pa.array([None, None], pa.string())
    assert read(nothing) == []
    assert read(none.dictionary_encode()) == [b"", b""]
    assert read(pa.chunked_array([none.dictionary_encode(), nothing])) == [b"", b""]


def test_a_dictionary_is_written_out_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow")
    monkeypatch.setattr(arrow, "PART_BYTES", 10)
    words, rows = ["four", None, "", "a word of more than ten bytes"], [0, 3, 1, None, 2, 0, 0, 0, 3, 3, 2]
    array = pa.DictionaryArray.from_arrays(pa.array(rows, pa.int8()), pa.array(words))
    want = [(words[row] or "").encode() if row is not None else b"" for row in rows]
    parts = list(documents(array))
    assert len(parts) > 3
    assert max(int(part.data.size) for part in parts) <= 29 + 10
    for texts, expected in ((array, want), (array[2:9], want[2:9]), (array[:0], []), (array[3:5], want[3:5])):
        assert read(texts) == expected
        assert read(pa.chunked_array([texts, texts[:0], texts])) == 2 * expected


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
    monkeypatch.setattr(arrow, "WHOLE_CHUNK", 10)
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
    assert read(np.array(["a", pd.NA, None, float("nan"), b"b"], object)) == [b"a", b"", b"", b"", b"b"]
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
    monkeypatch.setattr(containers, "PART_BYTES", 10)
    monkeypatch.setattr(containers, "SHORT_TEXT_BYTES", 0)
    texts = [b"x" * size for size in (4, 0, 7, 3, 25, 1)]
    parts = list(documents(texts, in_place=True))
    assert len(parts) > 2
    found = [[part.between(i, j) for i, j in zip(part.starts, part.stops, strict=True)] for part in parts]
    assert [text for rows in found for text in rows] == texts
    assert [part.size(0, part.starts.size) for part in parts] == [sum(map(len, rows)) for rows in found]


class Bytes(bytes):
    pass


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize("texts", [["a", Text("b")], [b"a", Bytes(b"b")], [b"a", bytearray(b"b")], [b"a", None]])
def test_other_objects_are_never_read_in_place(texts: list[Any]) -> None:
    assert texts_in_place(tuple(texts)) is None
    want = [b"" if text is None else bytes(text, "utf-8") if isinstance(text, str) else bytes(text) for text in texts]
    assert read(np.array([*texts, None], object), in_place=True) == [*want, b""]


class Long(str):
    __slots__ = ()

    def __len__(self) -> int:
        return 1

    def encode(self, *_: Any) -> bytes:
        return b"?"


class LongBytes(bytes):
    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(
    "texts",
    [
        [Long("a b"), "c"],
        ["c", Long("\u00e9\u00e9")],
        [Long("\u00e9b")],
        [b"c", LongBytes(b"a b")],
        [LongBytes(b"a b")],
    ],
)
def test_what_a_class_says_of_its_length_does_not_matter(texts: list[Any], in_place: bool) -> None:
    want = [str.encode(text) if isinstance(text, str) else memoryview(text).tobytes() for text in texts]
    assert read(texts, in_place=in_place) == read(iter(texts), in_place=in_place) == want


@pytest.mark.parametrize("kind", ["S2", "U2", object])
def test_masked_texts_are_empty_rows(kind: Any) -> None:
    texts = np.array([b"a", b"zz", b"b"]).astype(kind)
    assert read(np.ma.masked_array(texts, [False, True, False])) == [b"a", b"", b"b"]
    assert read(np.ma.masked_array(texts)) == [b"a", b"zz", b"b"]


def test_texts_for_python_are_joined() -> None:
    (docs,) = documents([b"a", b"b"], in_place=False)
    assert docs.kept is None


def lies(docs: inputs.Documents) -> list[tuple[int, bytes]]:
    """Where each text lies, and what is there."""
    here = docs.data.ctypes.data
    places = zip(docs.starts.tolist(), docs.stops.tolist(), strict=True)
    return [(here + start, docs.between(start, stop)) for start, stop in places]


@in_place
def test_str_is_read_where_it_is_if_it_is_ascii_and_encoded_if_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "SHORT_TEXT_BYTES", 0)
    texts = [
        "",
        "a",
        str(b"made now", "ascii"),
        "x" * 300,
        "h\xe9llo",
        b"bytes",
        "\u20ac" * 40,
        "a\U0001f600",
        "\x7f\0",
    ]
    (docs,) = documents(texts, in_place=True)
    found = lies(docs)
    assert [text for _, text in found] == [text if isinstance(text, bytes) else text.encode() for text in texts]
    where = ctypes.pythonapi.PyUnicode_AsUTF8AndSize
    where.restype, where.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_void_p)
    for text, (place, _) in zip(texts, found, strict=True):
        if isinstance(text, str) and text.isascii():
            assert place == where(text, None)


@in_place
def test_a_wrong_layout_of_str_is_told_from_the_right_one() -> None:
    header, bits = layout = objects.str_layout()
    assert layout != objects.NO_STR
    assert objects.is_right(layout)
    others = {objects.StrLayout(wrong, bits) for wrong in range(24, 73)} - {layout}
    others |= {objects.StrLayout(header, 1 << k) for k in range(32)} | {objects.NO_STR}
    assert [other for other in others if objects.is_right(other) and other.bits & bits != other.bits] == []
    is_ascii = [k for k in range(32) if bits >> k & 1 and objects.is_right(objects.StrLayout(header, 1 << k))]
    assert len(is_ascii) == 1  # the other bit is for what lies elsewhere, which Python itself no longer makes


@in_place
def test_without_a_known_layout_of_str_bytes_are_still_read_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "SHORT_TEXT_BYTES", 0)
    for known, wanted in ((True, [1, 1]), (False, [0, 1])):
        if not known:
            monkeypatch.setattr(objects, "str_layout", lambda: objects.NO_STR)
        found = [next(documents(texts, in_place=True)).kept is not None for texts in (TEXTS, BYTES)]
        assert found == wanted
        assert [text for part in documents(TEXTS, in_place=True) for text in _texts(part)] == BYTES


def _texts(part: inputs.Documents) -> list[bytes]:
    return [part.between(i, j) for i, j in zip(part.starts.tolist(), part.stops.tolist(), strict=True)]


@in_place
def test_long_texts_stay_where_they_are_unless_nothing_can_be_read_behind_them() -> None:
    base = bytes(range(97, 123)) * 10_000
    texts = [make(base[:size]) for size in range(90_000, 90_000 + 4096, 61) for make in (bytes, bytes.decode)]
    (docs,) = documents(texts, in_place=True)
    moved = 0
    for text, (place, found) in zip(texts, lies(docs), strict=True):
        assert found == (text if isinstance(text, bytes) else text.encode())
        end = place + len(found) - 1
        kept_there = place - id(text) in (32, objects.str_layout().header)
        moved += not kept_there
        if kept_there:
            assert end % 4096 + PAD < 4096
    assert moved < len(texts) / 5


@in_place
def test_short_texts_are_joined() -> None:
    texts = ["a", b"", "b" * 249, "\u20ac", b"cc", ""]
    (docs,) = documents(texts, in_place=True)
    assert docs.kept is None
    assert [docs.data[i:j].tobytes() for i, j in zip(docs.starts, docs.stops, strict=True)] == [
        inputs.to_bytes(text) for text in texts
    ]
    assert docs.data.size == docs.stops[-1] + PAD


@in_place
def test_a_very_long_text_is_a_part_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "LONGEST_TOGETHER", 1000)
    texts = ["a", "b" * 2000, "c", "d", b"e" * 1001, "\xe9" * 600, ""]
    for taken in (texts, iter(texts)):
        parts = list(documents(taken, in_place=True))
        assert [part.starts.size for part in parts] == [1, 1, 2, 1, 1, 1]
        assert [text for part in parts for text in _texts(part)] == [inputs.to_bytes(text) for text in texts]


@in_place
def test_iterators_are_read_in_place_and_errors_name_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "PART_BYTES", 100)
    texts = [f"text {k}" for k in range(500)]
    parts = list(documents(iter(texts), in_place=True))
    assert len(parts) > 3
    assert [text for part in parts for text in _texts(part)] == [text.encode() for text in texts]
    for wrong, error in (("a\ud800", "document 500, offset 1"), (5, "document 500: found int")):
        for make in (list, iter):
            with pytest.raises((EncodingFailed, TypeError), match=error):
                list(documents(make([*texts, wrong]), in_place=True))
    assert next(documents(iter(()), in_place=True)).starts.size == 0
