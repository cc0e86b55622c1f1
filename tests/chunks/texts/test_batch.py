"""Many texts at once, in any container, on any number of threads; what is refused."""

import numpy as np
import pyarrow as pa
import pytest

import jittok

TEXTS = ["", "one two three four", "Héllo wörld. " * 30, "东京" * 40, "a" * 500, "line\r\nline\n" * 20]


@pytest.fixture(scope="module")
def tok():
    return jittok.bundled("gpt-2")


@pytest.mark.parametrize("options", [{}, {"overlap": 3}, {"by": "sentence"}, {"by": "line", "overlap": 2}])
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_are_the_pieces_of_each_text(tok, options, threads):
    rows = tok.chunks_batch(TEXTS, 8, threads=threads, **options)
    assert list(rows) == [tok.chunks(text, 8, **options) for text in TEXTS]
    assert rows[-1] == rows[len(TEXTS) - 1]
    assert rows[1:3] == [rows[1], rows[2]]
    assert rows.texts() == [piece.text for row in rows for piece in row]
    assert rows.row_of.tolist() == [k for k, row in enumerate(rows) for _ in row]


def test_texts_enough_for_several_stretches(tok):
    texts = [f"{k} words and more words. " * 400 for k in range(300)]
    one, two = (tok.chunks_batch(texts, 200, threads=threads) for threads in (1, 2))
    assert one.columns.tolist() == two.columns.tolist()
    assert one.offsets.tolist() == two.offsets.tolist()
    assert one[299] == tok.chunks(texts[299], 200)


def test_arrow_in_arrow_out(tok):
    found = tok.chunks_batch(pa.array([*TEXTS, None]), 8)
    assert found.to_pylist() == [[piece._asdict() for piece in tok.chunks(text, 8)] for text in TEXTS] + [[]]
    assert tok.chunks_batch(pa.chunked_array([TEXTS[:2], TEXTS[2:]]), 8).to_pylist() == found.to_pylist()[:-1]


def test_special_ids_count_where_they_are_added():
    tok = jittok.bundled("bert")
    for text in TEXTS[1:]:
        pieces = tok.chunks(text, 8, add_special=True)
        assert "".join(piece.text for piece in pieces) == text
        assert all(piece.count == tok.count(piece.text, add_special=True) <= 8 for piece in pieces)
    assert tok.truncate("text", 1, add_special=True) == ""


def test_text_of_special_tokens_is_text(tok):
    assert tok.truncate("<|endoftext|>", 1) == "<"


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda tok: tok.chunks("a", 0), ValueError, "n: found 0, expected 1 or more"),
        (lambda tok: tok.chunks("a", 2, overlap=2), ValueError, "overlap: found 2, expected 0 to 1"),
        (lambda tok: tok.chunks("a", 2, overlap=-1), ValueError, "overlap: found -1"),
        (lambda tok: tok.chunks("a", 2.0), TypeError, "n: found float, expected an integer"),
        (lambda tok: tok.chunks("a", True), TypeError, "n: found bool"),
        (lambda tok: tok.chunks("a", 2, by="word"), ValueError, "by: found 'word', expected 'token', 'sentence' or"),
        (lambda tok: tok.chunks(b"a\xff", 2), jittok.EncodingFailed, "document 0, offset 1: .* valid UTF-8"),
        (lambda tok: tok.chunks("a\ud800", 2), jittok.EncodingFailed, "no lone surrogate"),
        (lambda tok: tok.chunks(["a"], 2), TypeError, "text: found list"),
        (lambda tok: tok.chunks_batch("a", 2), TypeError, "texts: found one str"),
        (lambda tok: tok.chunks_batch(["a", b"\xff"], 2), jittok.EncodingFailed, "document 1, offset 0"),
        (
            lambda tok: tok.chunks_batch(["a", "b안"], 2),
            ValueError,
            "document 1: n: found 2, but .* at 1 alone has 3 ids",
        ),
        (lambda tok: tok.truncate("a", -1), ValueError, "n: found -1, expected 0 or more"),
        (lambda tok: tok.truncate("a", 1, side="both"), ValueError, "side: found 'both'"),
    ],
)
def test_what_cannot_be_cut_is_refused(tok, call, error, said):
    with pytest.raises(error, match=said):
        call(tok)


def test_nothing_is_kept_where_nothing_fits(tok):
    assert [tok.truncate("안녕", n) for n in (0, 1, 2, 3)] == ["", "", "", "안"]
    assert [tok.truncate("안녕", n, side="left") for n in (0, 3)] == ["", "녕"]
    assert tok.chunks("", 5) == []


def test_arrays_are_read_only(tok):
    rows = tok.chunks_batch(TEXTS, 8)
    with pytest.raises(ValueError, match="read-only"):
        rows.counts[0] = 1
    assert rows.counts.dtype == np.int64
