"""No common idiom of lists gives wrong ids, or half of them, without a word."""

from __future__ import annotations

import copy
import json
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jittok
from jittok.common.rows import TokenArray
from jittok.common.rows.ids import Ids
from jittok.tokenizer import Tokenizer

BOS, EOS = 1, 2


@pytest.fixture
def rows_of_ids(spm: Tokenizer) -> list[Any]:
    """The ids of "ab hi" by every way to get a row."""
    batch = spm.encode_batch(["ab hi"])
    (stream,) = spm.encode_stream(["ab hi"])
    return [
        spm.encode("ab hi"),
        spm.encode(b"ab hi", add_special=True),
        batch[0],
        next(iter(batch)),
        stream[0],
        batch[:1][0],
        spm.align("ab hi").ids,
        spm.encode("ab hi")[:1],
        spm.encode("ab hi").astype(np.int64),
        pickle.loads(pickle.dumps(spm.encode("ab hi"))),
        copy.deepcopy(spm.encode("ab hi")),
    ]


def extended(ids: Any) -> Any:
    row = [BOS]
    row += ids
    return row


def extended_in_place(ids: Any) -> Any:
    ids += [EOS]
    return ids


JOINS: dict[str, Callable[[Any], Any]] = {
    "list + ids": lambda ids: [BOS] + ids,  # noqa: RUF005  what people write
    "ids + list": lambda ids: ids + [EOS],  # noqa: RUF005
    "tuple + ids": lambda ids: (BOS,) + ids,  # noqa: RUF005
    "ids + tuple": lambda ids: ids + (EOS,),  # noqa: RUF005
    "ids + ids": lambda ids: ids + ids,
    "list += ids": extended,
    "ids += list": extended_in_place,
    "sum": lambda ids: sum([ids, ids], []),  # noqa: RUF017
}


@pytest.mark.parametrize("name", JOINS)
def test_joining_with_a_plus_is_refused_and_says_what_to_write(rows_of_ids: list[Any], name: str) -> None:
    for ids in rows_of_ids:
        with pytest.raises(TypeError, match=r"\[bos, \*ids\.tolist\(\), eos\].*np\.concatenate"):
            JOINS[name](ids)


@pytest.mark.parametrize("name", ["append", "extend", "insert", "pop", "remove", "index", "count"])
def test_methods_of_lists_say_what_to_write(spm: Tokenizer, name: str) -> None:
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; .*ids"):
        getattr(spm.encode("hi"), name)
    assert not hasattr(spm.encode("hi"), "nothing")


def test_truth_is_refused_also_for_one_id_which_may_be_0(spm: Tokenizer) -> None:
    for text in ("", "hi", "ab hi"):
        with pytest.raises(ValueError, match=r"ids\.size > 0"):
            bool(spm.encode(text))


def test_ids_are_a_numpy_array_in_all_else(spm: Tokenizer) -> None:
    ids = spm.encode("ab hi")
    assert isinstance(ids, np.ndarray)
    assert ids.dtype == np.int32
    assert [BOS, *ids.tolist(), EOS] == np.concatenate([[BOS], ids, [EOS]]).tolist() == [1, 269, 271, 2]
    assert json.dumps(ids.tolist()) == "[269, 271]"
    for made in (ids + 1, 1 + ids, ids * 2, ids == 271, np.asarray(ids), ids + np.array([1, 2]), ids.cumsum() % 7):
        assert type(made) is np.ndarray
    assert (ids + 1).tolist() == [270, 272]
    assert type(ids.max()) is type(np.int32(0) + np.int32(0))
    assert ids.sum() == 540
    assert (ids == 271).any()
    assert spm.decode(ids) == spm.decode(ids[:1]) + " hi"
    assert spm.decode_batch([ids, ids[1:]]) == ["ab hi", "hi"]
    assert TokenArray(ids, [0, 2]) == spm.encode_batch(["ab hi"])
    assert type(pickle.loads(pickle.dumps(ids))) is Ids


def test_rows_of_a_table_take_ids() -> None:
    pa = pytest.importorskip("pyarrow")
    ids = jittok.bundled("gpt-2").encode("Hello, world")
    assert pa.array(ids).to_pylist() == pa.array([ids])[0].as_py() == ids.tolist()


@pytest.mark.parametrize(("name", "package"), [("arrow", "pyarrow"), ("polars", "polars"), ("ray", "ray.data")])
def test_a_missing_extra_of_tables_is_named(monkeypatch: pytest.MonkeyPatch, name: str, package: str) -> None:
    pytest.importorskip("pyarrow")
    table = pytest.importorskip("pyarrow").table({"text": ["a"]})
    tok = jittok.bundled("gpt-2")
    rows = tok.encode_batch(["a"])
    monkeypatch.delattr(jittok, name, raising=False)
    monkeypatch.delitem(sys.modules, f"jittok.{name}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    said = rf"needs .*pip install '\.\[{name}\]' in a checkout"
    uses: dict[str, list[Callable[[], Any]]] = {
        "arrow": [lambda: jittok.arrow.encode_table(table, tok), rows.to_arrow, lambda: TokenArray.from_arrow(None)],
        "polars": [lambda: jittok.polars],
        "ray": [lambda: jittok.ray.encode(None, vocab=tok)],  # type: ignore[arg-type]
    }
    for use in uses[name]:
        with pytest.raises((ImportError, AttributeError), match=said):  # AttributeError: an attribute of jittok
            use()


# ---- rectangles


def test_a_row_that_is_too_long_is_an_error_unless_cutting_is_asked_for(spm: Tokenizer) -> None:
    rows = spm.encode_batch(["hi", "ab hi ab hi ab"])
    with pytest.raises(ValueError, match=r"row 1: found 5 ids, expected at most 4: .*truncate=True"):
        rows.to_padded(4, pad_id=0)
    assert rows.to_padded(4, pad_id=0, truncate=True)[0].tolist() == [[271, 0, 0, 0], [269, 271, 269, 271]]


def test_cutting_keeps_what_stands_around_the_text(bundled: Callable[[str], Tokenizer]) -> None:
    bert = bundled("bert")
    assert bert.bos_id is not None
    texts = ["", "one", "one two three four five six", "one two"]
    rows = bert.encode_batch(texts, add_special=True)
    ways = {
        "made": rows,
        "sliced": rows[:],
        "every row": rows[::1],
        "joined": TokenArray.concat([rows[:2], rows[2:]]),
        "pickled": pickle.loads(pickle.dumps(rows)),
        "stream": TokenArray.concat(bert.encode_stream(texts, add_special=True)),
    }
    for name, way in ways.items():
        out, mask, _ = way.to_padded(4, pad_id=0, truncate=True)
        for row, kept, text in zip(out, mask, texts, strict=True):
            ids = row[kept]
            inner = bert.encode(text).tolist()[:2]
            assert ids.tolist() == [bert.bos_id, *inner, bert.sep_id], (name, text)
    left, mask, _ = rows.to_padded(4, pad_id=0, truncate=True, side="left")
    assert left[1][mask[1]].tolist() == rows[1].tolist()
    assert left[2].tolist() == rows.to_padded(4, pad_id=0, truncate=True)[0][2].tolist()
    with pytest.raises(ValueError, match="found 1, expected 2 or more"):
        rows.to_padded(1, pad_id=0, truncate=True)


def test_rows_from_elsewhere_are_told_how_many_ids_close_them() -> None:
    rows = TokenArray([1, 5, 6, 7, 2, 1, 2], [0, 5, 7])
    assert rows.to_padded(3, pad_id=0, truncate=True, closing=1)[0].tolist() == [[1, 5, 2], [1, 2, 0]]
    assert rows.to_padded(3, pad_id=0, truncate=True)[0].tolist() == [[1, 5, 6], [1, 2, 0]]
    with pytest.raises(ValueError, match="closing"):
        rows.to_padded(3, pad_id=0, truncate=True, closing=-1)


# ---- names in place of vocabularies


def test_a_name_in_place_of_a_vocabulary_says_what_to_write() -> None:
    make: Any = jittok.Tokenizer
    with pytest.raises(TypeError, match=r"found 'gpt-2', expected a Vocab: write jittok\.bundled\('gpt-2'\)"):
        make("gpt-2")
    with pytest.raises(TypeError, match=r"found 'model\.gguf', expected a Vocab: write jittok\.load\(path\)"):
        make("model.gguf")
    with pytest.raises(TypeError, match="found NoneType"):
        make(None)
