"""Only the field with the text decides about a line: what is in another field costs no text."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jittok.corpus import Options, compile_corpus
from jittok.corpus import open as open_corpus
from jittok.corpus.ranges import documents
from jittok.corpus.ranges.documents import read_texts
from jittok.corpus.ranges.units import Key, RawRange

pytest.importorskip("orjson")

DEEP = 100_000
OTHERS = {
    "NaN": b"NaN",
    "Infinity": b"[Infinity, {}]",
    "minus Infinity": b"-Infinity",
    "too large a number": b"1e400",
    "too small a number": b"-1E999",
    "an integer of many digits": b"9" * 10_000,
    "a lone surrogate": b'"\\ud800"',
    "the second half of a pair": b'["a\\udc00b"]',
    "bytes that are not UTF-8": b'"\xff\xfe"',
    "half a character": b'"caf\xc3"',
    "lists in lists": b"[" * DEEP + b"]" * DEEP,
    "objects in objects": b'{"a": ' * DEEP + b'"]"' + b"}" * DEEP,
}


@pytest.fixture(params=["kernel", "orjson", "json"])
def parser(request, monkeypatch):
    """The kernel, and both parsers: orjson is not installed everywhere."""
    monkeypatch.setattr("jittok.corpus.inputs.json_lines.usable", lambda _: request.param == "kernel")
    if request.param == "json":
        monkeypatch.setattr(documents, "_json", lambda: documents._loads)


def read(payload, **options):
    found = read_texts(RawRange(Key(0, 3, 0), 0, payload, 0, 0), "jsonl", Options(**options))
    data, starts, stops, *_ = found.docs
    texts = [data[i:j].tobytes() for i, j in zip(starts.tolist(), stops.tolist(), strict=True)]
    return texts, found.lines.tolist(), found.bad


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("on_error", ["fail", "skip", "replace"])
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_another_field_costs_no_text(other, on_error):
    text = "naïve \ud83d\ude42".encode("utf-16", "surrogatepass").decode("utf-16")
    lines = [
        b'{"text": "before"}',
        b'{"n": ' + other + b', "text": ' + json.dumps(text).encode() + b"}",
        b' { "text" : "after" , "n" : ' + other + b" } \r",
        b'{"n": ' + other + b', "\xff": 1, "text": "' + text.encode() + b'"}',
    ]
    texts, numbers, bad = read(b"\n".join(lines), on_error=on_error)
    assert (texts, numbers, bad) == ([b"before", text.encode(), b"after", text.encode()], [1, 2, 3, 4], [])


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_the_field_of_the_text_decides(other):
    for line in (b'{"text": ' + other + b"}", b'{"text": "a", "n": ' + other + b', "text": ' + other + b"}"):
        texts, _, bad = read(line, on_error="skip")
        assert (texts, len(bad)) == ([], 1)


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    "line",
    [
        b'{"text": "a", "n": NaN',
        b'{"text": "a", "n": NaN} {"text": "b"}',
        b'{"text": "a", "n": nan}',
        b'{"text": "a" "n": 1e400}',
        b'{"text": "a", "n": \xff}',
        b'{"text": "a", "n": ' + b"[" * DEEP + b"}" * DEEP + b"}",
        b'{"text": "a", "n": ' + b"[" * DEEP,
        b'{"text": "a", "n": ' + b"[" * DEEP + b"]" * DEEP + b"} x",
        b'{3: "a", "n": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        b"[" * DEEP + b"]" * DEEP,
    ],
    ids=range(10),
)
def test_what_is_no_json_is_an_error(line):
    texts, _, bad = read(line + b'\n{"text": "b"}', on_error="skip")
    assert (texts, [one.line for one in bad]) == ([b"b"], [1])


@pytest.mark.usefixtures("parser")
def test_a_byte_order_mark_where_a_file_of_cat_begins_is_one():
    mark = b"\xef\xbb\xbf"
    one, two = mark + b'{"text": "a"}\n', mark + b'{"text": "b"}\r\n'
    assert read(one + two + mark + b"\n" + mark) == ([b"a", b"b"], [1, 2], [])
    assert read(one + b'{"text": "' + mark + b'"}\n') == ([b"a", mark], [1, 2], [])


def test_a_corpus_of_such_lines_is_that_of_the_texts_alone(tmp_path, tok):
    lines = [b'{"text": "text %d", "n": ' % k + other + b"}" for k, other in enumerate(OTHERS.values())]
    (tmp_path / "odd.jsonl").write_bytes(b"\n".join(lines))
    options = Options(formats=("npy",), append_eos=True)
    assert compile_corpus([tmp_path / "odd.jsonl"], tok, tmp_path / "out", options).bad_documents == 0
    found = open_corpus(tmp_path / "out", tok)
    for k in range(len(OTHERS)):
        np.testing.assert_array_equal(found[k], [*tok.encode(f"text {k}"), tok.eos_id])
