"""What aligning gives: slices, characters, the tokens of a place; rows of batches."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from write_gguf import write_gguf

import jittok
from jittok.align import Alignment, character_spans
from jittok.errors import EncodingFailed, UnsupportedVocab
from jittok.kernels.jit import JIT

pytestmark = pytest.mark.skipif(not JIT, reason="real vocabularies take minutes without the compiler")


@pytest.fixture(scope="module")
def gpt2(bundled):
    return bundled("gpt-2")


def alignment(text, spans):
    return Alignment(np.zeros(len(spans), np.int32), np.array(spans, np.int64).reshape(-1, 2), text)


def test_arrays_are_read_only_and_ids_are_those_of_encode(gpt2):
    found = gpt2.align("Hello world")
    assert (found.ids.dtype, found.spans.dtype, found.spans.shape) == (np.int32, np.int64, (2, 2))
    assert found.ids.tolist() == gpt2.encode("Hello world").tolist()
    assert not any(array.flags.writeable for array in (found.ids, found.spans, found.char_spans))
    assert list(found) == [(15496, (0, 5)), (995, (5, 11))]
    assert (found[1], found[-1], len(found)) == ((995, (5, 11)), (995, (5, 11)), 2)
    assert found.slices == ["Hello", " world"]
    with pytest.raises(IndexError):
        found[2]


def test_tokens_of_one_character_have_its_span_in_characters(gpt2):
    found = gpt2.align("a\U0001f600é")
    assert found.spans.tolist() == [[0, 1], [1, 4], [4, 5], [5, 7]]
    assert found.char_spans.tolist() == [[0, 1], [1, 2], [1, 2], [2, 3]]
    assert found.slices == ["a", "\U0001f600", "\U0001f600", "é"]
    assert gpt2.align("a\U0001f600é".encode()).slices == [b"a", b"\xf0\x9f\x98", b"\x80", "é".encode()]


def test_bytes_have_no_characters(gpt2):
    with pytest.raises(TypeError, match="char_spans: found a text of type bytes, expected str"):
        _ = gpt2.align(b"abc").char_spans
    assert isinstance(gpt2.align(bytearray(b"abc")).text, bytes)


def test_the_empty_text_has_no_tokens_and_a_frame_stands_at_its_ends(bundled):
    assert bundled("gpt-2").align("").spans.shape == (0, 2)
    found = bundled("bert").align("", add_special=True)
    assert (found.ids.tolist(), found.spans.tolist()) == ([101, 102], [[0, 0], [0, 0]])
    found = bundled("bert").align(" ab ", add_special=True)
    assert found.spans.tolist() == [[0, 0], [1, 3], [4, 4]]


def test_special_tokens_stand_for_their_text_if_they_are_looked_for(bundled):
    text = "a [MASK] b"
    assert [2, 8] in bundled("bert").align(text, parse_special=True).spans.tolist()
    assert [2, 8] not in bundled("bert").align(text).spans.tolist()


def test_the_tokens_of_a_place_and_of_a_stretch(gpt2):
    found = gpt2.align("a\U0001f600é")
    assert [*found.tokens_of(1)] == [1, 2]
    assert [*found.tokens_of(0, 2)] == [0, 1, 2]
    assert [*found.tokens_of(2, 3)] == [3]
    assert [*found.tokens_of(3)] == []
    assert [*gpt2.align("a\U0001f600é".encode()).tokens_of(4)] == [2]


@given(st.text("ab é😀\u0301", max_size=12), st.integers(0, 12), st.integers(0, 4))
def test_tokens_of_a_stretch_are_those_whose_slices_meet_it(bundled, text, start, size):
    for name in ("bert", "mistral"):
        found = bundled(name).align(text)
        meets = [k for k, (i, j) in enumerate(found.char_spans.tolist()) if i < start + size and start < j]
        assert [k for k in found.tokens_of(start, start + size) if found.spans[k, 0] < found.spans[k, 1]] == meets


def test_alignments_are_compared_by_content_and_can_be_pickled(gpt2):
    found = gpt2.align("some text")
    assert found == gpt2.align("some text")
    assert found != gpt2.align("some test")
    assert found != gpt2.align(b"some text")
    assert found != "some text"
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(TypeError, match="unhashable"):
        hash(found)


def test_they_show_themselves(gpt2):
    found = gpt2.align("<b> & é")
    assert repr(found) == f"Alignment({len(found)} ids)"
    shown = found._repr_html_()
    assert shown.startswith("<")
    assert f"{len(found)} ids over 8 bytes" in shown
    assert "<b> &" not in shown  # texts are escaped


def test_texts_that_cannot_be_encoded_say_where(gpt2, made_up):
    with pytest.raises(EncodingFailed, match="offset 1"):
        gpt2.align("a\ud800")
    assert gpt2.align("a\ud800b", errors="replace").char_spans.tolist()[0] == [0, 1]
    with pytest.raises(EncodingFailed, match="document 2, offset 1"):
        made_up("syn-spm-nobytes").align_batch(["a", "b", "a\U0001f600"])
    none = jittok.load(write_gguf({"general.architecture": "x", "tokenizer.ggml.model": "none"}))
    with pytest.raises(UnsupportedVocab, match="can tokenize"):
        none.align("a")


def test_rows_of_a_batch_are_the_alignments_of_its_texts_for_any_threads(bundled):
    texts = ["", "a b", "ÅÅ ﬁ", "x" * 1500, "中文 text", "  ", "\U0001f600"] * 10
    for name in ("gpt-2", "bert", "t5", "mistral"):
        tok = bundled(name)
        single = [tok.align(text) for text in texts]
        for threads in (1, 2, 5):
            rows = tok.align_batch(texts, threads=threads)
            assert rows.unit == "bytes"
            assert len(rows) == len(texts)
            assert rows.tokens == tok.encode_batch(texts)
            for row, one in zip(rows, single, strict=True):
                assert (row.ids.tolist(), row.spans.tolist()) == (one.ids.tolist(), one.spans.tolist())
            rows = tok.align_batch(texts, threads=threads, unit="characters")
            assert [row.spans.tolist() for row in rows] == [one.char_spans.tolist() for one in single]


def test_rows_are_found_from_both_ends_and_keep_no_text(gpt2):
    rows = gpt2.align_batch(["a b", "c"])
    assert (rows[-1].ids.tolist(), rows[0].spans.tolist()) == (gpt2.encode("c").tolist(), [[0, 1], [1, 3]])
    assert repr(rows) == "AlignmentBatch(2 texts, 3 ids, spans in bytes)"
    assert len(gpt2.align_batch([])) == 0
    for wrong in (2, -3):
        with pytest.raises(IndexError, match=f"row {wrong}: expected -2 <= row < 2"):
            rows[wrong]
    with pytest.raises(ValueError, match="slice your own"):
        rows[0].slice(0)
    with pytest.raises(ValueError, match="unit: found 'words', expected 'bytes' or 'characters'"):
        gpt2.align_batch(["a"], unit="words")


@given(st.lists(st.text("aé中😀", max_size=6), max_size=4), st.data())
def test_byte_spans_become_those_of_the_characters_they_touch(texts, data):
    raw = [text.encode() for text in texts]
    stops = np.cumsum([0, *map(len, raw)])
    spans, offsets, wanted = [], [0], []
    for text, part in zip(texts, raw, strict=True):
        ends = sorted(data.draw(st.lists(st.integers(0, len(part)), max_size=4)))
        begins = sorted(data.draw(st.integers(0, end)) for end in ends)
        for start, stop in zip(begins, ends, strict=True):
            spans.append((start, stop))
            places = np.cumsum([0, *(len(c.encode()) for c in text)])  # where each character begins
            wanted.append((int(np.searchsorted(places, start, "right")) - 1, int(np.searchsorted(places, stop))))
        offsets.append(len(spans))
    found = character_spans(
        np.frombuffer(b"".join(raw), np.uint8), stops[:-1], stops[1:], np.array(offsets),
        np.array(spans, np.int64).reshape(-1, 2),
    )  # fmt: skip
    assert [tuple(span) for span in found.tolist()] == wanted


def test_long_spans_are_counted_in_characters() -> None:
    text = ("\xe9" * 50 + "a" * 200 + "\u65e5" * 60 + "\U0001f44d" * 33) * 3
    raw = text.encode()
    for start in (0, 1, 63, 64, 300, len(text) - 1):
        places = len(text[:start].encode()), len(raw)
        spans = np.array([places], np.int64)
        found = character_spans(
            np.frombuffer(raw, np.uint8), *(np.array([k]) for k in (0, len(raw))), np.array([0, 1]), spans
        )
        assert found.tolist() == [[start, len(text)]]
