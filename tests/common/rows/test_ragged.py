import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jittok.common.rows import Ragged, TokenArray
from jittok.errors import MalformedArray
from jittok.tokenizer import Tokenizer

ROWS = st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=5), max_size=6)


def of_rows(rows: list[list[int]]) -> TokenArray:
    return TokenArray(np.array([i for row in rows for i in row], np.int32), np.cumsum([0, *map(len, rows)]))


@given(ROWS)
def test_rows_come_back_as_they_went_in(rows: list[list[int]]) -> None:
    array = of_rows(rows)
    assert array.to_list() == rows == [row.tolist() for row in array]
    assert [array[i].tolist() for i in range(-len(rows), 0)] == rows
    assert array.lengths.tolist() == [len(row) for row in rows]
    assert len(array) == len(rows)


@given(ROWS, st.slices(6))
def test_a_slice_is_the_slice_of_the_list(rows: list[list[int]], part: slice) -> None:
    assert of_rows(rows)[part].to_list() == rows[part]


@given(st.lists(ROWS, max_size=4))
def test_concat_is_the_sum_of_the_lists(parts: list[list[list[int]]]) -> None:
    assert TokenArray.concat(map(of_rows, parts)).to_list() == [row for part in parts for row in part]


@given(ROWS, st.integers(0, 6) | st.none(), st.sampled_from(["right", "left"]))
def test_padding_puts_each_row_beside_pads(rows: list[list[int]], length: int | None, side: str) -> None:
    ids, mask, types = of_rows(rows).to_padded(length, pad_id=-9, side=side, truncate=True)
    wide = max(map(len, rows), default=0) if length is None else length
    assert ids.shape == mask.shape == (len(rows), wide)
    assert ids.dtype == np.int32
    assert mask.dtype == np.bool_
    assert types is None
    for full, out, kept in zip(rows, ids.tolist(), mask.tolist(), strict=True):
        row = full[:wide]
        pad, text = [-9] * (wide - len(row)), [True] * len(row)
        assert out == (row + pad if side == "right" else pad + row)
        assert kept == (text + [False] * len(pad) if side == "right" else [False] * len(pad) + text)


def test_rows_may_be_cut_down_to_what_add_special_put_around_them() -> None:
    rows = TokenArray(np.array([1, 5, 6, 2, 1, 2], np.int32), [0, 4, 6])
    rows = rows.surrounded_by(1, 1)
    assert rows.to_padded(2, pad_id=0, truncate=True)[0].tolist() == [[1, 2], [1, 2]]
    with pytest.raises(ValueError, match="length: found 1, expected 2 or more"):
        rows.to_padded(1, pad_id=0, truncate=True)


def test_padding_without_truncation_names_the_row_that_is_too_long() -> None:
    with pytest.raises(ValueError, match="row 1: found 3 ids, expected at most 2"):
        of_rows([[1], [1, 2, 3]]).to_padded(2, pad_id=0)


@pytest.mark.parametrize("pad_id", [True, np.True_, 1.0])
def test_what_is_no_integer_pads_nothing(pad_id: object) -> None:
    with pytest.raises(TypeError, match=r"pad_id: found \w+, expected an integer"):
        of_rows([[1]]).to_padded(2, pad_id=pad_id)  # type: ignore[arg-type]
    assert of_rows([[1]]).to_padded(2, pad_id=np.int64(7))[0].tolist() == [[1, 7]]  # type: ignore[arg-type]


def test_views_share_memory_and_nothing_can_be_written() -> None:
    ids = np.arange(5, dtype=np.int32)
    array = TokenArray(ids, [0, 2, 5])
    assert np.shares_memory(array.ids, ids)
    assert np.shares_memory(array[1], ids)
    assert np.shares_memory(array[1:].ids, ids)
    for values in (array.ids, array.offsets, array[0]):
        with pytest.raises(ValueError, match="read-only"):
            values[:] = 0
    with pytest.raises(AttributeError, match="immutable"):
        array.ids = ids


@pytest.mark.parametrize(
    ("ids", "offsets", "kind", "message"),
    [
        ([1, 2], [0, 1], ValueError, "found 0 to 1, expected 0 to 2"),
        ([1, 2], [1, 2], ValueError, "found 1 to 2"),
        ([1, 2], [], ValueError, "found an empty array"),
        ([1, 2], [0, 2, 1, 2], ValueError, r"found 1 after 2 \(row 1\)"),
        ([1.5], [0, 1], TypeError, "float64"),
        ([2**31], [0, 1], ValueError, "outside int32"),
        ([[1]], [0, 1], ValueError, "2 dimensions"),
    ],
)
def test_wrong_arrays_are_refused(ids: list[int], offsets: list[int], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        TokenArray(ids, offsets)


def test_equality_is_of_ids_and_rows() -> None:
    assert of_rows([[1], [2]]) == of_rows([[1], [2]])
    assert of_rows([[1], [2]]) != of_rows([[1, 2]])
    assert of_rows([[1]]) != of_rows([[2]])
    assert of_rows([]) != []


def test_an_index_out_of_range_is_named() -> None:
    with pytest.raises(IndexError, match="row 2"):
        of_rows([[1], [2]])[2]


@given(ROWS)
def test_pickle_keeps_rows_and_read_only_arrays(rows: list[list[int]]) -> None:
    array = of_rows(rows)
    again = pickle.loads(pickle.dumps(array))
    assert again == array
    assert not again.ids.flags.writeable


@pytest.mark.parametrize("rows", [[], [[]], [[1, 2], [], [3]]])
@pytest.mark.parametrize("mmap", [True, False])
def test_save_and_load(tmp_path: Path, rows: list[list[int]], mmap: bool) -> None:
    array = of_rows(rows)
    array.save(tmp_path / "ids")
    assert TokenArray.load(tmp_path / "ids", mmap=mmap) == array
    assert [entry.name for entry in tmp_path.iterdir()] == ["ids"]


def test_save_replaces_a_saved_array_and_nothing_else(tmp_path: Path) -> None:
    of_rows([[1]]).save(tmp_path / "ids")
    old = TokenArray.load(tmp_path / "ids")
    of_rows([[2, 3]]).save(tmp_path / "ids")
    assert TokenArray.load(tmp_path / "ids").to_list() == [[2, 3]]
    assert old.to_list() == [[1]]
    (tmp_path / "ids" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="existing file or folder"):
        of_rows([[1]]).save(tmp_path / "ids")
    assert (tmp_path / "ids" / "notes.txt").exists()


def test_loading_something_else_says_what_it_found(tmp_path: Path) -> None:
    of_rows([[1]]).save(tmp_path / "ids")
    np.save(tmp_path / "ids" / "ids.npy", np.zeros(3))
    with pytest.raises(ValueError, match=r"ids.npy: found float64 of shape \(3,\), expected int32"):
        TokenArray.load(tmp_path / "ids")


def test_loading_half_a_file_names_it(tmp_path: Path) -> None:
    of_rows([[1, 2, 3]]).save(tmp_path / "ids")
    path = tmp_path / "ids" / "ids.npy"
    whole = path.read_bytes()
    lying = whole.replace(b"(3,)", b"(3000000000000000,)")
    for raw in [*(whole[:size] for size in (0, 5, 9, 60, len(whole) - 1)), b"PK\3\4", b"PK", b"{}", lying]:
        path.write_bytes(raw)
        with pytest.raises(MalformedArray, match=r"ids\.npy: found .*, expected a complete \.npy file"):
            TokenArray.load(tmp_path / "ids")


def test_arrow_lists_hold_the_same_memory() -> None:
    pa = pytest.importorskip("pyarrow")
    array = of_rows([[1, 2], [], [3]])
    arrow = array.to_arrow()
    assert arrow.type == pa.list_(pa.int32())
    assert arrow.to_pylist() == array.to_list()
    assert TokenArray.from_arrow(arrow) == array
    assert np.shares_memory(TokenArray.from_arrow(arrow).ids, array.ids)


def test_every_kind_of_arrow_list_is_read() -> None:
    pa = pytest.importorskip("pyarrow")
    rows = [[1, 2], [], None, [3]]
    want = [[1, 2], [], [], [3]]
    for kind in (pa.list_(pa.int32()), pa.large_list(pa.int64()), pa.list_(pa.uint8())):
        assert TokenArray.from_arrow(pa.array(rows, kind)).to_list() == want
        assert TokenArray.from_arrow(pa.array([[9], *rows, [9]], kind)[1:-1]).to_list() == want
        assert (
            TokenArray.from_arrow(pa.chunked_array([pa.array(rows[:1], kind), pa.array(rows[1:], kind)])).to_list()
            == want
        )
    assert TokenArray.from_arrow(pa.array([[1, 2], None], pa.list_(pa.int32(), 2))).to_list() == [[1, 2], []]
    with pytest.raises(TypeError, match="expected an Arrow list"):
        TokenArray.from_arrow(pa.array([1]))
    with pytest.raises(TypeError, match="list of integers"):
        TokenArray.from_arrow(pa.array([[1.5]]))
    with pytest.raises(ValueError, match="1 null ids"):
        TokenArray.from_arrow(pa.array([[1, None]]))
    with pytest.raises(ValueError, match="outside int32"):
        TokenArray.from_arrow(pa.array([[2**40]]))


def test_html_is_bounded_and_plain() -> None:
    shown = of_rows([list(range(1000))] * 1000)._repr_html_()
    assert "1000 rows, 1000000 ids" in shown
    assert len(shown) < 40_000
    assert "<script" not in shown


def test_ragged_holds_texts() -> None:
    texts = Ragged(b"abc", [0, 1, 1, 3])
    assert list(texts) == [b"a", b"", b"bc"]
    assert (len(texts), texts[-1]) == (3, b"bc")
    assert list(pickle.loads(pickle.dumps(texts))) == list(texts)
    with pytest.raises(ValueError, match="the number of bytes"):
        Ragged(b"abc", [0, 2])
    with pytest.raises(IndexError, match="row 3"):
        texts[3]


def test_an_array_behind_a_link_is_replaced_and_the_link_stays(tmp_path):
    of_rows([[1]]).save(tmp_path / "ids")
    (tmp_path / "link").symlink_to("ids")
    of_rows([[2, 3]]).save(tmp_path / "link")
    assert TokenArray.load(tmp_path / "ids") == of_rows([[2, 3]])
    (tmp_path / "new").symlink_to("nothing yet")
    of_rows([[4]]).save(tmp_path / "new")
    assert TokenArray.load(tmp_path / "nothing yet") == of_rows([[4]])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ids", "link", "new", "nothing yet"]
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(FileExistsError, match="link: found an existing file or folder"):
        of_rows([[1]]).save(tmp_path / "link")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path):
    of_rows([[1]]).save(tmp_path / "ids")
    (tmp_path / "ids" / "ids.npy").unlink()
    os.mkfifo(tmp_path / "ids" / "ids.npy")
    with pytest.raises(ValueError, match=r"ids\.npy: found something other than a file"):
        TokenArray.load(tmp_path / "ids")


def test_padding_is_that_of_the_vocabulary_unless_one_is_given(bundled: Callable[[str], Tokenizer]) -> None:
    bert = bundled("bert")
    rows = bert.encode_batch(["one", "one two three"])
    ways = [rows, rows[:], rows[::1], TokenArray.concat([rows[:1], rows[1:]]), pickle.loads(pickle.dumps(rows))]
    for way in [*ways, TokenArray.concat(bert.encode_stream(["one", "one two three"]))]:
        ids, mask, types = way.to_padded()
        assert ids[0].tolist() == [*rows[0].tolist(), bert.pad_id, bert.pad_id]
        assert (mask.sum(), types) == (4, None)
        assert way.to_padded(pad_id=7).ids[0, 1] == 7
    for without in (bundled("gpt-2").encode_batch(["a"]), of_rows([[1]])):
        with pytest.raises(TypeError, match="pad_id: found None"):
            without.to_padded()
