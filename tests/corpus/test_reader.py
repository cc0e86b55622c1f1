"""Lines and documents that cannot be read: counted, named with their line, handled as asked; never silent."""

from __future__ import annotations

import json

import pytest

from jittok.corpus.options import Options
from jittok.corpus.ranges.documents import read_texts
from jittok.corpus.ranges.units import Key, RawRange

pytest.importorskip("orjson")


def read(payload, kind, **options):
    found = read_texts(RawRange(Key(0, 0, 0), 0, payload, 0, 0), kind, Options(**options))
    data, starts, stops, *_ = found.docs
    texts = [data[i:j].tobytes() for i, j in zip(starts.tolist(), stops.tolist(), strict=True)]
    assert len(texts) == found.sources.size == found.lines.size
    return texts, found.lines.tolist(), [(bad.line, bad.found) for bad in found.bad], found


GOOD = b'{"text": "a"}\n{"n": [1, {}], "text": "\\u00e9\\n"}\n{"text": ""}\n'
BAD = {
    b"{}": "fields none",
    b"[1]": "[1]",
    b"3": "3",
    b'{"text": 3}': "int in 'text'",
    b'{"text": null}': "NoneType in 'text'",
    b'{"text": ["a"]}': "list in 'text'",
    b'{"text": "a"': "unexpected",
    b'{"text": "a"} {"text": "b"}': "after document",
    b'{"text": "\\ud800"}': "ud800",
    b'{"text": "\xff"}': "xff",
    b'{"text": NaN}': "",
    b"not json": "not json",
    b'{"other": "a"}': "fields other",
}


def test_json_lines():
    texts, lines, bad, found = read(GOOD, "jsonl")
    assert (texts, lines, bad) == ([b"a", "é\n".encode(), b""], [1, 2, 3], [])
    assert (found.seen, found.blank) == (3, 0)


@pytest.mark.parametrize("line", BAD, ids=[repr(line) for line in BAD])
@pytest.mark.parametrize("on_error", ["fail", "skip", "replace"])
def test_bad_json_lines_are_named(line, on_error):
    texts, lines, bad, found = read(b'{"text": "a"}\n' + line + b'\n\n{"text": "b"}', "jsonl", on_error=on_error)
    assert [number for number, _ in bad] == [2]
    assert BAD[line].lower() in bad[0][1].lower()
    assert (found.seen, found.blank) == (4, 1)
    if on_error == "replace":
        assert lines == [1, 2, 4]
        assert texts[0::2] == [b"a", b"b"]
    else:
        assert (texts, lines) == ([b"a", b"b"], [1, 4])


@pytest.mark.parametrize(
    ("line", "text"),
    [(b'{"text": "x\xffy"}', "x\ufffdy"), (b'{"text": "x\\ud800y"}', "x\ufffdy"), (b'{"text": "a", "n": NaN}', "a")],
)
def test_replace_keeps_what_can_be_read(line, text):
    assert read(line, "jsonl", on_error="replace")[0] == [text.encode()]


def test_blank_lines_carriage_returns_and_a_byte_order_mark():
    payload = b"\xef\xbb\xbf" + GOOD.replace(b"\n", b"\r\n") + b"  \r\n"
    texts, lines, bad, found = read(payload, "jsonl")
    assert (len(texts), lines, bad, found.blank) == (3, [1, 2, 3], [], 1)


def test_another_field():
    assert read(b'{"content": "x", "text": 1}', "jsonl", field="content")[0] == [b"x"]


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\r\nb\n\nc", [b"a", b"b", b"", b"c"]),
        (b"\r\n\r", [b"", b""]),
        ("é\n日本".encode(), ["é".encode(), "日本".encode()]),
    ],
)
def test_lines(payload, expected):
    assert read(payload, "lines")[0] == expected


@pytest.mark.parametrize("on_error", ["fail", "skip", "replace"])
def test_lines_that_are_not_utf8(on_error):
    texts, lines, bad, _ = read(b"a\n\xe9t\xe9\n\xc3\xa9\n", "lines", on_error=on_error)
    assert bad == [(2, "byte 0xe9 at offset 0")]
    good = ["a", "\ufffdt\ufffd", "é"] if on_error == "replace" else ["a", "é"]
    assert texts == [text.encode() for text in good]
    assert lines == ([1, 2, 3] if on_error == "replace" else [1, 3])


def test_whole_files_name_their_source():
    payload = [(4, b"a"), (5, b"\xff"), (6, b"")]
    texts, lines, bad, found = read(payload, "txt", on_error="skip")
    assert (texts, lines, found.sources.tolist()) == ([b"a", b""], [1, 1], [4, 6])
    assert [(one.source, one.line) for one in found.bad] == [(5, 1)]
    assert len(bad) == 1


@pytest.mark.parametrize("kind", ["string", "large_string", "binary", "large_binary"])
@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_rows_with_nulls_and_bad_bytes(kind, on_error):
    pa = pytest.importorskip("pyarrow")
    raw = pa.array([b"a", None, b"\xc3", b"\xa9", "é".encode()], pa.large_binary() if "large" in kind else pa.binary())
    column = raw.view(getattr(pa, kind)())
    texts, lines, bad, _ = read(pa.chunked_array([column.slice(0, 2), column.slice(2)]), "parquet", on_error=on_error)
    assert [row for row, _ in bad] == [2, 3, 4]
    if on_error == "skip":
        assert (texts, lines) == ([b"a", "é".encode()], [1, 5])
    else:
        assert texts == [b"a", b"", "\ufffd".encode(), "\ufffd".encode(), "é".encode()]


def test_a_block_of_many_characters_is_checked_in_pieces():
    text = "日本語" * 500_000
    assert read(text.encode(), "lines")[0] == [text.encode()]
    assert read(text.encode() + b"\xff", "lines", on_error="skip")[0] == []


def test_json_lines_are_those_of_the_standard_library():
    rows = [{"text": text} for text in ("\u2028", '"\\/\b\f', "\x7f", "🙂", "a" * 100_000)]
    for ascii_only in (True, False):
        payload = "\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in rows).encode()
        assert read(payload, "jsonl")[0] == [row["text"].encode() for row in rows]
