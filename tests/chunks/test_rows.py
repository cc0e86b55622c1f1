"""`Rows`: what they hold, their parts, their pickles, their errors."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jittok
from jittok.chunks import padding
from jittok.chunks.rows import Rows
from jittok.common.rows import TokenArray
from jittok.errors import EncodingFailed, MalformedArray, UnsupportedVocab
from jittok.reference.chunks import windows as reference
from jittok.tokenizer import Tokenizer

TEXTS = ["one two three four five", "", "six seven", "eight nine ten"]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "fine_tuning.py"


@pytest.fixture(scope="module")
def gpt2() -> Tokenizer:
    return jittok.bundled("gpt-2")


@pytest.fixture(scope="module")
def bert() -> Tokenizer:
    return jittok.bundled("bert")


@pytest.fixture(scope="module")
def rows(gpt2: Tokenizer) -> Rows:
    return gpt2.encode_batch(TEXTS, max_length=3, overlap=1, windows=True)


def test_rows_are_a_token_array_of_windows(rows: Rows, gpt2: Tokenizer) -> None:
    one, _, two, three = (gpt2.encode(text).tolist() for text in TEXTS)
    assert isinstance(rows, TokenArray)
    assert rows.to_list() == [one[:3], one[2:], [], two, three]
    assert rows.row_of.tolist() == [0, 0, 1, 2, 3]
    assert [row.tolist() for row in rows] == rows.to_list()
    assert rows[-1].tolist() == three
    assert rows.lengths.tolist() == [3, 3, 0, 2, 3]
    assert gpt2.decode_batch(rows)[1] == " three four five"
    assert rows.to_arrow().to_pylist() == rows.to_list()
    assert rows == TokenArray.concat([rows[:2], rows[2:]])
    assert repr(rows) == "Rows(5 rows, 11 ids)"
    assert "three" in rows._repr_html_()
    for array in (rows.ids, rows.offsets, rows.row_of, rows.types, rows.sequences, rows.lengths):
        assert not array.flags.writeable


def test_rows_are_whole_without_a_length(gpt2: Tokenizer) -> None:
    whole = gpt2.encode_batch(TEXTS, truncation=False, max_length=2, windows=True)
    assert whole == gpt2.encode_batch(TEXTS)
    assert whole.max_length is None
    assert whole.row_of.tolist() == [0, 1, 2, 3]


def test_slices_and_chosen_rows_have_the_same_facts(rows: Rows) -> None:
    for part, numbers in (
        (rows[1:4], [1, 2, 3]), (rows[::-2], [4, 2, 0]), (rows.take([3, 0, 0]), [3, 0, 0]), (rows[9:], []),
        (rows.take(np.array([-1])), [4]),
    ):  # fmt: skip
        assert isinstance(part, Rows)
        assert part.to_list() == [rows.to_list()[k] for k in numbers]
        assert part.row_of.tolist() == rows.row_of[numbers].tolist()
        assert part.max_length == 3
    with pytest.raises(IndexError, match="row 5: expected -5 <= row < 5"):
        rows.take([0, 5])
    with pytest.raises(IndexError, match="row -6"):
        rows.take([-6])
    with pytest.raises(IndexError, match="row 5"):
        rows[5]
    with pytest.raises(TypeError, match="float"):
        rows.take([0.5])


def test_a_pickle_holds_no_more_ids_than_the_rows(gpt2: Tokenizer) -> None:
    rows = gpt2.encode_batch([*TEXTS, "word " * 10_000], ["a pair"] * 5, max_length=8, windows=True)
    part = rows[:3]
    assert len(pickle.dumps(part)) < 3_000
    for same in (pickle.loads(pickle.dumps(part)), copy.copy(part), copy.deepcopy(part)):
        assert same == part
        assert same.types.tolist() == part.types.tolist()
        assert same.row_of.tolist() == part.row_of.tolist()
        assert same.to_padded(pad_id=0).ids.tolist() == part.to_padded(pad_id=0).ids.tolist()
    with pytest.raises(ValueError, match="keep no texts"):
        pickle.loads(pickle.dumps(part)).spans()


def test_a_forged_pickle_is_refused(rows: Rows) -> None:
    make, (facts, ids, table) = rows.__reduce__()
    assert make(facts, ids, table) == rows
    for column in range(table.shape[1]):
        for value in (-1, 1 << 40, (1 << 63) - 1):
            forged = table.copy()
            forged[1, column] = value
            if column == 0 and value >= 0:
                continue  # the number of a text is not looked up
            with pytest.raises(MalformedArray, match="row 1 of a pickle"):
                make(facts, ids, forged)


def test_spans_say_where_ids_are_in_the_two_texts(bert: Tokenizer) -> None:
    texts = ["wo ist die Bibliothek?", "x"]
    pairs = ["It was in Alexandria, an Egyptian city, until it burnt", "Ünï😀cödé words"]
    options: dict[str, Any] = {"max_length": 16, "overlap": 2, "truncation": "only_second", "windows": True}
    rows = bert.encode_batch(texts, pairs, add_special=True, **options)
    spans, sequences = rows.spans(), rows.sequences
    row_of = np.repeat(rows.row_of, rows.lengths)
    assert len(rows) == 6
    for token, (start, stop), sequence, k in zip(
        rows.ids.tolist(), spans.tolist(), sequences.tolist(), row_of.tolist(), strict=True
    ):
        if sequence < 0:
            assert (start, stop) == (0, 0)
            assert token in (bert.bos_id, bert.sep_id)
        else:
            said = (texts, pairs)[sequence][k][start:stop]
            assert said
            assert bert.encode(said).tolist()[0] == token or len(said) < len(pairs[k])
    aligned = bert.align(pairs[0])
    assert spans[sequences == 1][:4].tolist() == aligned.char_spans[:4].tolist()
    for part in (rows[1:], rows.take([5, 1]), rows[2:3]):
        chosen = [spans[rows.offsets[k] : rows.offsets[k + 1]] for k in _numbers(rows, part)]
        assert part.spans().tolist() == np.concatenate(chosen).tolist()
    in_bytes = rows[rows.row_of.tolist().index(1) :].spans("bytes")
    assert in_bytes.max() == len(pairs[1].encode())
    with pytest.raises(ValueError, match="unit: found 'words'"):
        rows.spans("words")  # type: ignore[arg-type]


def _numbers(rows: Rows, part: Rows) -> list[int]:
    """Which rows a part has."""
    lines = [tuple(line) for line in rows._table.tolist()]
    return [lines.index(tuple(line)) for line in part._table.tolist()]


def test_spans_of_changed_texts_are_refused(gpt2: Tokenizer) -> None:
    texts = ["one two", "three"]
    rows = gpt2.encode_batch(texts, max_length=4)
    texts[1] = "four"
    assert rows[:1].spans().tolist() == [[0, 3], [3, 7]]
    with pytest.raises(ValueError, match="have changed"):
        rows.spans()
    with pytest.raises(ValueError, match="keep no texts"):
        gpt2.encode_batch(iter(texts), max_length=4).spans()


@pytest.mark.parametrize("container", ["arrow", "numpy", "ragged", "tuple", "iterator"])
def test_texts_come_in_any_container(gpt2: Tokenizer, container: str) -> None:
    pa = pytest.importorskip("pyarrow")
    made: dict[str, Any] = {
        "arrow": pa.array, "numpy": np.array, "tuple": tuple, "iterator": iter,
        "ragged": lambda texts: jittok.Ragged(
            "".join(texts).encode(), np.cumsum([0, *(len(text) for text in texts)])
        ),
    }  # fmt: skip
    wanted = gpt2.encode_batch(TEXTS, TEXTS[::-1], max_length=6, windows=True)
    found = gpt2.encode_batch(made[container](TEXTS), made[container](TEXTS[::-1]), max_length=6, windows=True)
    assert found == wanted
    if container != "iterator":
        assert found.spans().tolist() == wanted.spans().tolist()


@pytest.mark.parametrize("threads", [1, 2])
def test_many_rows_are_written_by_any_number_of_threads(gpt2: Tokenizer, threads: int) -> None:
    texts = [f"{k} words and numbers {k * k} " * (1 + k % 40) for k in range(4000)]
    rows = gpt2.encode_batch(texts, texts, max_length=64, windows=True, threads=threads)
    assert rows.ids.size > 2 * padding.IDS_PER_STEP
    found = rows.to_padded(64, pad_id=7, side="left")
    lengths = rows.lengths
    assert found.mask.sum() == rows.ids.size
    assert (found.mask.sum(1) == lengths).all()
    assert (found.ids[found.mask] == rows.ids).all()
    assert (found.ids[~found.mask] == 7).all()
    assert (found.types[found.mask] == rows.types).all()
    assert not found.types[~found.mask].any()
    assert all(array.flags.c_contiguous and array.flags.writeable for array in found)
    for text in (0, 77, 3999):
        ids = gpt2.encode(texts[text]).tolist()
        wanted = reference.rows(ids, ids, gpt2.pipeline.template(True, False), room=64)
        of_text = rows.take(np.flatnonzero(rows.row_of == text))
        assert of_text.to_list() == [[item.id for item in row] for row in wanted]


def test_memory_of_padded_rows_is_used_again_only_when_no_one_has_it(gpt2: Tokenizer) -> None:
    rows = gpt2.encode_batch(["a b c d e f g h"] * (1 << 15), max_length=8)
    first = rows.to_padded(64, pad_id=1)
    kept = first.ids.copy(), first.mask.copy()
    second = rows.to_padded(64, pad_id=2)
    assert not np.shares_memory(first.ids, second.ids)
    assert (first.ids == kept[0]).all()
    assert (first.mask == kept[1]).all()
    view = second.ids[3:5]
    del second, first
    third = rows.to_padded(64, pad_id=3)
    assert (view[:, 8:] == 2).all()
    assert (third.ids[:, 8:] == 3).all()
    assert not third.mask[:, 8:].any()


def test_lengths_of_padded_rows(rows: Rows, bert: Tokenizer) -> None:
    assert rows.to_padded(pad_id=0).ids.shape == (5, 3)
    assert rows.to_padded(7, pad_id=0, multiple_of=3).ids.shape == (5, 9)
    ids, mask, types = rows.to_padded(4, pad_id=9, side="left", pad_type=2)
    assert ids[2].tolist() == [9, 9, 9, 9]
    assert mask[3].tolist() == [False, False, True, True]
    assert types[3].tolist() == [2, 2, 0, 0]
    assert (ids.dtype, mask.dtype, types.dtype) == (np.int32, np.bool_, np.int32)
    assert rows[:0].to_padded(pad_id=0).ids.shape == (0, 0)
    assert rows[:0].to_padded(4, pad_id=0).ids.shape == (0, 4)
    assert bert.encode_batch(["a"], max_length=4).to_padded(4).ids[0, 3] == bert.pad_id
    for given, error, says in (
        ({"length": 2}, ValueError, "row 0: found 3 ids, expected at most 2"),
        ({"multiple_of": 2}, ValueError, "expected a divisor of 3"),
        ({"multiple_of": 0}, ValueError, "multiple_of: found 0"),
        ({"side": "top"}, ValueError, "side: found 'top'"),
        ({"pad_id": 1 << 31}, ValueError, "pad_id: found 2147483648"),
        ({"pad_type": "0"}, TypeError, "pad_type"),
        ({"pad_id": None}, TypeError, "pad_id=tok.eos_id"),
        ({"length": 2.5}, TypeError, "length"),
    ):
        with pytest.raises(error, match=says):
            rows.to_padded(**{"pad_id": 0, **given})


def test_a_token_array_is_padded_to_multiples_too(gpt2: Tokenizer) -> None:
    plain = gpt2.encode_batch(TEXTS)
    assert plain.to_padded(pad_id=0, multiple_of=8)[0].shape == (4, 8)
    with pytest.raises(ValueError, match="multiple_of: found -1"):
        plain.to_padded(pad_id=0, multiple_of=-1)


class NotEncoded:
    """Texts that nothing may look at."""

    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Any:
        raise AssertionError("a text was looked at")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_length": 1, "add_special": True}, "max_length: found 1, expected 2 or more, the special tokens"),
        ({"max_length": 2, "add_special": True, "pairs": NotEncoded()}, "max_length: found 2, expected 3 or more"),
        ({"max_length": 0, "add_special": "document"}, "max_length: found 0, expected 1 or more"),
        ({"max_length": -1}, "max_length: found -1"),
        ({"max_length": 6, "overlap": 4, "add_special": True}, "overlap: found 4, expected less than 4"),
        ({"max_length": 6, "overlap": 6, "add_special": "document"}, "overlap: found 6, expected less than 6"),
        ({"max_length": 6, "overlap": 6}, "overlap: found 6, expected less than 6"),
        ({"max_length": 6, "overlap": 5}, "overlap: found 5, expected at most 4, 6 without the special tokens"),
        ({"max_length": 1, "overlap": 2}, "overlap: found 2, expected less than 1"),
        ({"max_length": 6, "overlap": -1}, "overlap: found -1"),
        ({"max_length": 6, "truncation": "first"}, "truncation: found 'first', expected True, False, 'longest_first'"),
        ({"max_length": 6, "side": "top"}, "side: found 'top'"),
        ({"max_length": 6, "add_special": "text"}, "add_special: found 'text'"),
        ({"max_length": 6, "add_special": "document", "pairs": NotEncoded()}, "'document' with pairs"),
        ({"max_length": 6, "pairs": ["a"]}, "pairs: found 1 texts, expected 2"),
        ({"pairs": ["a"]}, "pairs: found 1 texts, expected 2"),
    ],
)
def test_options_are_refused_before_a_text_is_encoded(bert: Tokenizer, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        bert.encode_batch(NotEncoded(), **options)  # type: ignore[call-overload]


def test_texts_that_cannot_be_cut_are_named(bert: Tokenizer) -> None:
    long = "word " * 9
    for texts, pairs, options, says in (
        (["a", "a b"], [long, long], {"truncation": "only_first"}, r"text 0: found 1 ids in texts\[0\] and 5 too many"),
        (["a", long], ["a", "b"], {"truncation": "only_second"}, r"text 1: found 1 ids in pairs\[1\] and 5 too many"),
        (["a", long], None, {"truncation": "only_second"}, "text 1: .* where there are no pairs"),
        (["a", long], ["a", long], {"overlap": 3, "windows": True}, "text 1: found overlap=3, expected less than 2"),
    ):
        with pytest.raises(ValueError, match=says):
            bert.encode_batch(texts, pairs, max_length=8, add_special=True, **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="pairs: found 2 texts, expected 1"):
        bert.encode_batch(iter(["a"]), iter(["b", "c"]))
    with pytest.raises(TypeError, match="pairs: found one str"):
        bert.encode_batch(["a"], "b")
    with pytest.raises(TypeError, match="texts: found one str"):
        bert.encode_batch("a", ["b"])
    with pytest.raises(TypeError, match="max_length: found str"):
        bert.encode_batch(["a"], max_length="8")  # type: ignore[call-overload]


def test_an_overlap_without_windows_is_told(gpt2: Tokenizer) -> None:
    with pytest.warns(UserWarning, match="overlap is of windows: pass windows=True"):
        rows = gpt2.encode_batch(["a b c d e"], max_length=3, overlap=1)
    assert len(rows) == 1


def test_what_is_asked_without_a_length_is_told(gpt2: Tokenizer) -> None:
    for options in ({"truncation": True}, {"windows": True}, {"overlap": 2}, {"truncation": "only_first"}):
        with pytest.warns(UserWarning, match="pass max_length="):
            assert gpt2.encode_batch(TEXTS, **options) == gpt2.encode_batch(TEXTS)  # type: ignore[call-overload]


def test_special_tokens_are_around_each_window_or_once_around_a_document(spm: Tokenizer) -> None:
    text, bos, eos = "ab hi ab hi ab", spm.bos_id, spm.eos_id
    whole = spm.encode(text, add_special=True).tolist()
    assert whole[0] == bos
    each = spm.encode_batch([text, ""], max_length=3, windows=True, add_special="window")
    assert each == spm.encode_batch([text, ""], max_length=3, windows=True, add_special=True)
    assert all(row[0] == bos for row in each)
    once = spm.encode_batch([text, ""], max_length=3, windows=True, add_special="document")
    assert [token for row, of in zip(once, once.row_of.tolist(), strict=True) if of == 0 for token in row] == whole
    assert once[-1].tolist() == spm.encode("", add_special=True).tolist()
    assert once.sequences.tolist().count(-1) == 2 * (whole[-1] == eos) + 2 * (whole[0] == bos) - 2 * (whole[-1] == eos)
    assert spm.encode_batch([text], add_special="document").to_list() == [whole]


def test_pairs_of_a_gguf_have_its_separator(bert: Tokenizer, gpt2: Tokenizer) -> None:
    rows = bert.encode_batch(["one"], ["two"], add_special=True)
    cls, sep = bert.bos_id, bert.sep_id
    one, two = bert.encode("one").tolist(), bert.encode("two").tolist()
    assert rows.to_list() == [[cls, *one, sep, *two, sep]]
    assert rows.types.tolist() == [0, 0, 0, 1, 1]
    assert bert.encode_pair("one", "two").tolist() == rows.to_list()[0]
    assert gpt2.encode_batch(["one"], ["two"]).types.tolist() == [0, 1]
    with pytest.raises(UnsupportedVocab, match=r"without a separator, expected add_special=False"):
        gpt2.encode_batch(["one"], ["two"], add_special=True)


def test_failures_of_encoding_name_the_text(gpt2: Tokenizer) -> None:
    with pytest.raises(EncodingFailed, match="document 1"):
        gpt2.encode_batch(["a", "\ud800"], max_length=4)
    assert gpt2.encode_batch(["a", "\ud800"], max_length=4, errors="replace").row_of.tolist() == [0, 1]


def test_a_long_document_among_short_ones_has_its_windows(gpt2: Tokenizer) -> None:
    long = "The quick brown fox jumps over the lazy dog. " * 120_000
    rows = gpt2.encode_batch(["a b", long, "c"], max_length=1024, overlap=128, windows=True)
    ids = gpt2.encode(long)
    of_long = rows[1:-1]
    assert rows.row_of[0] == 0
    assert rows.row_of[-1] == 2
    assert (of_long.row_of == 1).all()
    assert np.array_equal(np.concatenate([of_long[0], *(row[128:] for row in list(of_long)[1:])]), ids)


def test_tensors_are_the_same_memory(gpt2: Tokenizer) -> None:
    torch = pytest.importorskip("torch")
    padded = gpt2.encode_batch(TEXTS, max_length=4).to_padded(4, pad_id=0)
    tensors = padded.to_torch()
    assert [tensor.dtype for tensor in tensors] == [torch.int32, torch.bool, torch.int32]
    assert tensors.ids.tolist() == padded.ids.tolist()
    padded.ids[0, 0] = 5
    assert tensors.ids[0, 0] == 5


@pytest.mark.process
def test_the_example_for_fine_tuning_runs() -> None:
    assert len([line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if line.strip()]) < 20
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True)
    first, *others = done.stdout.splitlines()
    assert first.startswith("Rows(9 rows, 511 ids) of texts [0, 0, 0, 0, 0, 0, 0, 0, 1] (9, 64)")
    assert len(others) == 9
    assert others[-1] == "8 covers 0 to 21 of the context 1"
