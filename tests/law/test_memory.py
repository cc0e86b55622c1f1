"""The law: nothing unproven reaches a raw load. Every door is asked with offsets drawn at random, and answers what
slices of Python answer, or an error; memory that somebody writes to during a call leads nowhere."""

import itertools
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jittok
from jittok.common.rows import Ragged, TokenArray
from jittok.common.rows.checks import arrow_valid, is_held, own, proven
from jittok.errors import InvalidToken, JittokError, MalformedArray
from jittok.kernels.inputs import Documents, documents
from jittok.kernels.inputs.arrow import rows_of

pa = pytest.importorskip("pyarrow")
DATA = bytes(range(97, 117))
PLACES = st.integers(-3, 24) | st.sampled_from([-(2**31), 2**31 - 1])


def read(texts: Any) -> list[bytes]:
    return [d.data[i:j].tobytes() for d in documents(texts) for i, j in zip(d.starts, d.stops, strict=True)]


def model(offsets: list[int], size: int) -> list[bytes] | None:
    """Slices of Python; None where a place is not in order or outside."""
    if any(not 0 <= i <= j <= size for i, j in itertools.pairwise(offsets)):
        return None
    return [DATA[i:j] for i, j in itertools.pairwise(offsets)]


def arrow(kind: Any, dtype: Any, offsets: Any, data: Any = DATA, bits: bytes | None = None, first: int = 0) -> Any:
    """An Arrow array that is given these buffers and believed."""
    buffers = [None if bits is None else pa.py_buffer(bits), pa.py_buffer(np.array(offsets, dtype)), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(offsets) - 1 - first, buffers, offset=first)


def told(door: Callable[[], list[bytes]]) -> list[bytes] | None:
    """What a door gives, None for an error of this package (or of Arrow, which refuses some arrays when made)."""
    try:
        return door()
    except (JittokError, pa.ArrowInvalid):
        return None


KINDS = [(pa.string(), np.int32), (pa.binary(), np.int32), (pa.large_string(), np.int64), (pa.large_binary(), np.int64)]


@given(st.lists(PLACES, min_size=2, max_size=7), st.sampled_from(KINDS), st.integers(0, 3))
def test_arrow_offsets_are_slices_or_an_error(offsets: list[int], kind: Any, first: int) -> None:
    first = min(first, len(offsets) - 1)
    found = told(lambda: read(arrow(*kind, offsets, first=first)))
    assert found == model(offsets[first:], len(DATA)), offsets


@given(st.lists(st.integers(0, 20), min_size=2, max_size=12), st.integers(0, 255), st.integers(0, 3))
def test_arrow_nulls_are_empty_rows_whatever_stands_behind_them(places: list[int], bits: int, first: int) -> None:
    offsets, first = sorted(places), min(first, len(places) - 1)
    array = arrow(pa.string(), np.int32, offsets, bits=bytes([bits, bits]), first=first)
    whole = bits | bits << 8
    rows = itertools.pairwise(offsets)
    assert read(array) == [DATA[i:j] if whole >> k & 1 else b"" for k, (i, j) in enumerate(rows)][first:]


@given(st.lists(st.integers(-2, 5), min_size=1, max_size=6))
def test_arrow_dictionaries_are_indexing_or_an_error(indices: list[int]) -> None:
    words = [b"a", b"", b"ccc"]
    made = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(words), safe=False)
    wanted = [words[i] for i in indices] if all(0 <= i < 3 for i in indices) else None
    assert told(lambda: read(made)) == wanted


VIEWS = st.tuples(st.integers(-1, 20), st.integers(-1, 2), st.integers(-1, 24))


@given(st.lists(VIEWS, min_size=1, max_size=5), st.integers(0, 2))
def test_arrow_views_are_slices_or_an_error(views: list[tuple[int, int, int]], first: int) -> None:
    inline, first, wanted, right = b"twelve bytes", min(first, len(views) - 1), [], True
    packed = bytearray()
    for size, buffer, start in views:
        numbers = np.array([size, int.from_bytes(DATA[max(start, 0) :][:4], "little"), buffer, start], np.int32)
        packed += numbers.tobytes() if size > 12 or size < 0 else np.int32(size).tobytes() + inline
        right &= size >= 0 and (size <= 12 or (buffer == 0 and 0 <= start <= start + size <= len(DATA)))
        wanted.append(inline[:size] if size <= 12 else DATA[start : start + size])
    for kind in (pa.string_view(), pa.binary_view()):
        buffers = [None, pa.py_buffer(bytes(packed)), pa.py_buffer(DATA)]
        array = pa.Array.from_buffers(kind, len(views), buffers)
        if right:
            assert read(array.slice(first)) == wanted[first:]
        else:
            with pytest.raises(MalformedArray):
                read(array)


@pytest.mark.parametrize(
    "buffers",
    [
        [None, b"\0\0\0\0\x01\0\0\0", DATA],  # offsets for one row
        [b"", np.arange(9, dtype=np.int32), DATA],  # no bit of validity
        [None, None, DATA],
        [None, np.arange(9, dtype=np.int32), None],
    ],
)
def test_arrow_buffers_that_are_too_short_are_an_error(buffers: list[Any]) -> None:
    class Lying:
        """An array as other libraries may hand it over: pyarrow itself refuses some of these."""

        type, offset = pa.string(), 0

        def __len__(self) -> int:
            return 8

        def buffers(self) -> list[Any]:
            return [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]

    with pytest.raises(MalformedArray):
        rows_of(Lying())


def test_the_attacks_by_name() -> None:
    tok = jittok.bundled("gpt-2")
    for offsets in ([0, 200_000, 20], [0, -(10**9), 20], [0, 20, 10]):
        for kind, dtype in KINDS:
            with pytest.raises(MalformedArray, match="row"):
                tok.encode_batch(arrow(kind, dtype, offsets, bytes(260)))
    with pytest.raises(MalformedArray, match="row 0"):
        tok.encode_batch(pa.chunked_array([pa.array(["a"]), arrow(pa.string(), np.int32, [0, 200_000, 20])]))


# ---- lists of ids


@given(st.lists(PLACES, min_size=2, max_size=7), st.booleans(), st.integers(0, 2))
def test_arrow_lists_are_slices_or_an_error(offsets: list[int], large: bool, first: int) -> None:
    first, ids = min(first, len(offsets) - 1), list(range(20))
    kind, dtype = (pa.large_list(pa.int32()), np.int64) if large else (pa.list_(pa.int32()), np.int32)
    buffers = [None, pa.py_buffer(np.array(offsets, dtype))]
    rows = itertools.pairwise(offsets[first:])
    right = all(0 <= i <= j <= 20 for i, j in itertools.pairwise(offsets[first:]))
    try:
        array = pa.Array.from_buffers(
            kind, len(offsets) - 1 - first, buffers, offset=first, children=[pa.array(ids, pa.int32())]
        )
        found = TokenArray.from_arrow(array).to_list()
    except (MalformedArray, pa.ArrowInvalid):
        found = None
    assert found == ([ids[i:j] for i, j in rows] if right else None)


@given(st.lists(st.none() | st.lists(st.integers(0, 9), max_size=3), max_size=8), st.integers(0, 3), st.integers(0, 3))
def test_arrow_lists_with_nulls_and_slices(rows: list[Any], start: int, stop: int) -> None:
    for kind in (pa.list_(pa.int64()), pa.large_list(pa.uint8())):
        array = pa.array(rows, kind)[start : len(rows) - stop]
        assert TokenArray.from_arrow(array).to_list() == [row or [] for row in array.to_pylist()]


# ---- what others may write to


def test_offsets_cannot_be_changed_from_outside() -> None:
    offsets, ids = np.array([0, 2, 5]), np.arange(5, dtype=np.int32)
    data = np.frombuffer(bytearray(b"abcde"), np.uint8)
    texts, rows = Ragged(data, offsets), TokenArray(ids, offsets)
    for each in (texts, rows, rows.described_by(None), rows[:], pickle.loads(pickle.dumps(rows))):
        for change in (1 << 40, -(1 << 40)):
            offsets[1] = change
            assert each.offsets.tolist() == [0, 2, 5]
            with pytest.raises(ValueError, match="WRITEABLE"):
                each.offsets.flags.writeable = True
        offsets[1] = 2


@given(st.lists(PLACES, min_size=1, max_size=6))
def test_flat_arrays_take_slices_or_refuse(offsets: list[int]) -> None:
    fits = offsets[0] == 0 and offsets[-1] == len(DATA) and model(offsets, len(DATA)) is not None
    for make in (lambda: list(Ragged(DATA, offsets)), lambda: TokenArray(np.arange(20, dtype=np.int32), offsets)):
        if fits:
            make()
        else:
            with pytest.raises(ValueError, match="offsets"):
                make()


def test_documents_handed_in_are_proven() -> None:
    data = np.frombuffer(DATA, np.uint8)
    for start, stop in ((0, 21), (-1, 3), (4, 3)):
        with pytest.raises(MalformedArray):
            list(documents(Documents(data, np.array([start]), np.array([stop]))))
    with pytest.raises(MalformedArray):
        proven(np.zeros(2, np.int64), np.zeros(1, np.int64), 9, "x")


def test_what_others_may_write_to_is_copied_and_nothing_else() -> None:
    writable = np.array([b"ab", b"c"])
    for texts in (writable, pa.array(["a"]), Ragged(np.zeros(2, np.uint8), [0, 2])):
        (docs,) = documents(texts)
        assert docs.theirs
        copy = docs.own(0, docs.starts.size)
        assert not copy.theirs
        assert not np.shares_memory(copy.data, docs.data)
        assert [copy.data[i:j].tobytes() for i, j in zip(copy.starts, copy.stops, strict=True)] == read(texts)
    for texts in (Ragged(b"ab", [0, 2]), ["a"], [b"a"]):
        (docs,) = documents(texts)
        assert not docs.theirs
    assert is_held(own(np.arange(3)))
    assert not is_held(np.arange(3))
    assert arrow_valid(pa.array(["a"])) is None


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [3, 9_000])
def test_copied_texts_have_the_ids_of_others(threads: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from jittok.encode import limits

    monkeypatch.setattr(limits, "BYTES_PER_COPY", 20_000)
    tok = jittok.bundled("gpt-2")
    texts = [b"text %d of some words, " % k * (k % 5) for k in range(size)]
    ragged = Ragged(np.frombuffer(bytearray(b"".join(texts)), np.uint8), np.cumsum([0, *map(len, texts)]))
    for given_texts in (ragged, pa.array(texts), pa.chunked_array([texts[:2], texts[2:]])):
        assert tok.encode_batch(given_texts, threads=threads) == tok.encode_batch(texts, threads=threads)
        assert tok.count_batch(given_texts, threads=threads).sum() == tok.encode_batch(texts).ids.size


def test_the_number_of_a_document_that_fails_is_its_own(vocab_of: Callable[..., Any], monkeypatch: Any) -> None:
    from jittok.encode import limits
    from jittok.tokenizer import Tokenizer

    monkeypatch.setattr(limits, "BYTES_PER_COPY", 8)
    tok = Tokenizer(vocab_of([b"a"]), cache=False)
    texts = ["a"] * 40 + ["b"] + ["a"] * 9
    for given_texts in (texts, pa.array(texts), np.array(texts, "S1")):
        with pytest.raises(jittok.EncodingFailed) as caught:
            tok.encode_batch(given_texts, threads=1)
        assert (caught.value.document, caught.value.offset) == (40, 0)


# ---- ids


WRONG = [50_257, 50_258, -1, 2**31 - 1, -(2**31), 2**31, 2**32, 2**63 - 1, 2**64 - 1, -(2**63)]


@pytest.mark.parametrize("wrong", WRONG)
def test_an_id_outside_the_vocabulary_is_named_whatever_holds_it(wrong: int) -> None:
    tok = jittok.bundled("gpt-2")
    assert tok.vocab_size == 50_257
    fitting = [d for d in (np.int32, np.uint32, np.int64, np.uint64) if np.iinfo(d).min <= wrong <= np.iinfo(d).max]
    made: list[Any] = [[wrong], [0, wrong, 0], *(np.array([0, wrong], dtype) for dtype in fitting)]
    for ids in made:
        with pytest.raises(InvalidToken) as caught:
            tok.decode(ids)
        assert caught.value.token == wrong
        with pytest.raises(InvalidToken):
            tok.decode_batch([[0], ids])
    if -(2**31) <= wrong < 2**31:
        with pytest.raises(InvalidToken):
            tok.decode_batch(TokenArray([0, 0, wrong], [0, 1, 3]))


def test_the_last_id_of_every_bundled_vocabulary_is_the_last() -> None:
    for name in jittok.bundled_names():
        tok = jittok.bundled(name)
        if tok.type == "none":
            continue
        for special in (False, True):
            piece = tok.token_to_piece(tok.vocab_size - 1, special=special)
            assert tok.decode_bytes(np.array([tok.vocab_size - 1], np.int32), unparse_special=special).strip() == (
                piece.strip()
            )
        for dtype in (np.int32, np.uint32, np.int64):
            with pytest.raises(InvalidToken):
                tok.decode(np.array([tok.vocab_size], dtype))


def test_rows_outside_the_ids_are_refused_by_the_kernel_itself() -> None:
    tok = jittok.bundled("gpt-2")
    rows = TokenArray(np.zeros(5, np.int32), [0, 2, 5])
    for offsets in ([0, 2, 6], [0, -1, 5], [3, 2, 5], [-4, 2, 5], [0, 2**60, 5]):
        object.__setattr__(rows, "offsets", np.array(offsets))
        with pytest.raises(MalformedArray):
            tok.decode_batch(rows)


def test_room_is_found_for_pieces_of_any_length() -> None:
    tok = jittok.bundled("gpt-2")
    longest = int(np.diff(tok.token_offsets).argmax())
    for count in (1, 3, 500):
        assert tok.decode_bytes([longest] * count) == tok.token_to_piece(longest) * count


# ---- others that write during a call, in a process of its own

WRITER = r"""
import sys, threading, time, numpy as np, pyarrow as pa, jittok
what, name = sys.argv[1:]
tok = jittok.bundled(name)
text = ("It's a text of 1234 words, \u4e2d\u6587 \u00e9t\u00e9 <|endoftext|>\n\n   x" * 400).encode()
data = np.frombuffer(bytearray(text), np.uint8)
offsets = np.append(np.arange(0, data.size, 61), data.size)
garbage = np.random.default_rng(5).integers(0, 256, data.size).astype(np.uint8)
clean = data.copy()
words = np.frombuffer(data[:data.size // 60 * 60], "S60")
ids = np.array(tok.encode(text.decode()), np.int32)
rows = jittok.TokenArray(ids, np.append(np.arange(0, ids.size, 7), ids.size))
buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
column = pa.Array.from_buffers(pa.binary(), offsets.size - 1, buffers)
calls = {
    "ragged": lambda: tok.encode_batch(jittok.Ragged(data, offsets), errors="replace"),
    "arrow": lambda: tok.encode_batch(column, errors="replace"),
    "numpy": lambda: tok.encode_batch(words, errors="replace"),
    "align": lambda: tok.align_batch(words, errors="replace"),
    "decode": lambda: tok.decode_batch(rows),
}
on = True
def write():
    while on:
        if what == "decode":
            ids[::97] = 2**31 - 1; ids[::89] = -5; ids[::97] = 0; ids[::89] = 1
        else:
            data[:] = garbage; data[:] = clean
other = threading.Thread(target=write); other.start()
done = 0
stop = time.process_time() + 0.7
try:
    while time.process_time() < stop:
        try:
            calls[what](); done += 1
        except jittok.JittokError:
            done += 1
finally:
    on = False
print("calls", done)
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("what", "name"),
    [("ragged", "gpt-2"), ("arrow", "mistral"), ("numpy", "gpt-2"), ("align", "gpt-2"), ("decode", "gpt-2")],
)
def test_a_thread_that_writes_during_a_call_crashes_nothing(what: str, name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WRITER, what, name], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[1]) > 0


@pytest.mark.process
def test_a_saved_array_that_is_cut_leaves_those_who_loaded_it_alone(tmp_path: Any) -> None:
    TokenArray(np.arange(1 << 16, dtype=np.int32), np.arange((1 << 16) + 1)).save(tmp_path / "ids")
    code = """
import os, sys, jittok
rows = [jittok.TokenArray.load(sys.argv[1], **how) for how in ({}, {"mmap": True}, {"mmap": False})]
for name in ("ids.npy", "offsets.npy"):
    os.truncate(os.path.join(sys.argv[1], name), 128)
print(sum(int(each.ids.sum()) + int(each.offsets[-1]) for each in rows))
try:
    jittok.TokenArray.load(sys.argv[1])
except ValueError as error:
    print("refused", error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "ids")], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    size = 1 << 16
    assert int(done.stdout.split()[0]) == 3 * (size * (size - 1) // 2 + size)
    assert "refused" in done.stdout
