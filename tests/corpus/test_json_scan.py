"""The kernel finds in a plain line what the reference, orjson and Python's json find there, and leaves every other line
to Python."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jittok.corpus.inputs import json_scan
from jittok.corpus.inputs.json_lines import BLANK, OTHER, TEXT, lines_of_block, paths_of
from jittok.corpus.inputs.json_scan import MOST_DEPTH, NO_CAPACITY, find_fields
from jittok.corpus.options import Options
from jittok.corpus.ranges import documents
from jittok.corpus.ranges.documents import read_texts
from jittok.corpus.ranges.units import Key, RawRange
from jittok.kernels.jit import JIT, frozen
from jittok.reference.corpus.json_lines import plain_fields

FIELDS = [["text"], ["id"], ["meta", "url"], ["meta"], ["text"], ["meta", "a", "text"]]
NAMES = ["text", "id", "meta", "url", "a", "te\\u0078t", "text ", "", "é", "ide"]
STRINGS = [
    "a", r"\n", r"\"", r"\\", r"\/", r"\b\f\r\t", r"\u0041", r"\u00e9", r"\u4e2d", r"\ud83d\ude00", r"\uD83D\uDE00",
    r"\u0000", "é", "这", "😀", "{", "}", "[", "]", ":", ",", " NaN ",
    "0123456789abcdefghijklmnopqrstuvwxyz" * 2, "\x7f",
]  # fmt: skip
BROKEN = [
    rb"\ud800", rb"\ude00\ud83d", rb"\ud83d\ud83d\ude00", rb"\u12", rb"\x", rb"\U0041", rb"\u00g0", b"\xff",
    b"\xe4\xb8", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80", b"\t", b"\0", b'"', b"\\",
]  # fmt: skip
SCALARS = [
    "0", "-1", "1.5", "-0.0e+10", "1E-7", "12345678901234567890123", "1e400", "-1e999", "NaN", "Infinity", "-Infinity",
    "true", "false", "null", "01", "1.", ".5", "1e", "-", "+1", "nan", "-NaN", "tru", "nulll", "0x1", "1_0",
]  # fmt: skip
SPACES = ["", "", "", " ", "  ", "\t", "\r", " \r "]


def drawn_string(draw: random.Random, broken: float) -> bytes:
    parts = [draw.choice(STRINGS).encode() for _ in range(draw.randint(0, draw.choice([0, 3, 12])))]
    if draw.random() < broken:
        parts.insert(draw.randint(0, len(parts)), draw.choice(BROKEN))
    return b'"' + b"".join(parts) + b'"'


def drawn_value(draw: random.Random, depth: int, broken: float) -> bytes:
    kind = draw.random()
    if kind < 0.6 or depth > 3:
        return drawn_string(draw, broken)
    if kind < 0.75:
        return draw.choice(SCALARS[: 14 if draw.random() > broken else None]).encode()
    if kind < 0.85:
        rows = [drawn_value(draw, depth + 1, broken) for _ in range(draw.randint(0, 3))]
        return b"[" + b",".join(rows) + b"]"
    return drawn_object(draw, depth + 1, broken)


def drawn_object(draw: random.Random, depth: int, broken: float) -> bytes:
    def space() -> bytes:
        return draw.choice(SPACES).encode()

    rows = []
    for _ in range(draw.randint(0, 5)):
        name = b'"' + draw.choice(NAMES[:5] if draw.random() < 0.7 else NAMES).encode() + b'"'
        rows.append(space() + name + space() + b":" + space() + drawn_value(draw, depth, broken) + space())
    return b"{" + b",".join(rows) + b"}"


def drawn_line(draw: random.Random) -> bytes:
    broken = draw.choice([0, 0, 0.05])
    line = drawn_object(draw, 0, broken)
    if draw.random() < 0.6 and line != b"{}":  # with a text, most often
        line = line[:-1] + b',"text":' + drawn_string(draw, broken) + b"}"
    if draw.random() < 0.05:
        cut = draw.randint(0, len(line))
        line = line[:cut] + draw.choice([b"", b"", *BROKEN, b" ", b"{", b"}", b"[", b"]", b","]) + line[cut + 1 :]
    if draw.random() < 0.1:
        line = draw.choice([b"\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf", b"\xef\xbb", b" "]) + line
    return b" \r" * draw.randint(0, 1) if draw.random() < 0.03 else line + draw.choice(SPACES).encode()


def found_in(block: bytes, fields: list[list[str]]) -> tuple[list[int], list[list[bytes | None]]]:
    """(codes, [text, values of the other fields]) of each line, by the kernel."""
    data, paths = frozen(np.frombuffer(block, np.uint8), np.uint8), paths_of(fields)
    assert paths is not None
    room, width = block.count(b"\n") + 1, 2 * len(fields) - 2
    starts, ends, codes = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.uint8)
    texts, spans = np.zeros(data.size, np.uint8), np.zeros(room * width, np.int64)
    state = np.zeros(2 * len(fields), np.int64)
    count = find_fields(data, 0, data.size, paths, 0, starts, ends, codes, texts, spans, state)
    assert count == room
    assert state[0] == data.size + 1
    rows: list[list[bytes | None]] = []
    for k, end in enumerate(ends.tolist()):
        others = spans[k * width : k * width + width].reshape(-1, 2).tolist()
        rows.append(
            [texts[ends[k - 1] if k else 0 : end].tobytes(), *(block[i:j] if i >= 0 else None for i, j in others)]
        )
    return codes.tolist(), rows


def agrees(lines: list[bytes], fields: list[list[str]]) -> int:
    """Compare the kernel and the reference; how many lines were plain."""
    while lines and not lines[-1]:  # nothing is no line
        lines = lines[:-1]
    if not lines:
        return 0
    codes, rows = found_in(b"\n".join(lines), fields)
    names = [[name.encode() for name in path] for path in fields]
    plain = 0
    for line, code, row in zip(lines, codes, rows, strict=True):
        expected = plain_fields(line, names)
        if not line.removeprefix(b"\xef\xbb\xbf").strip(b" \t\r"):
            assert code == BLANK, line
        elif expected is None:
            assert code == OTHER, line
        else:
            plain += 1
            assert (code, row) == (TEXT, expected), line
    return plain


@pytest.mark.parametrize("seed", range(4))
def test_drawn_lines_have_the_fields_that_the_reference_finds(seed):
    draw = random.Random(seed)
    lines = [drawn_line(draw) for _ in range(500 if not JIT else 4000)]
    assert agrees(lines, FIELDS) > len(lines) // 3
    agrees(lines, [["a", "url"], ["text"]])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_a_million_drawn_lines_have_the_texts_of_orjson(seed):
    check_texts(random.Random(seed), 50_000)


@pytest.mark.parametrize("seed", range(2))
def test_drawn_lines_have_the_texts_of_orjson(seed):
    check_texts(random.Random(seed), 300 if not JIT else 5000)


def check_texts(draw: random.Random, count: int) -> None:
    """Plain lines have the text that the parsers find."""
    lines = [drawn_line(draw) for _ in range(count)]
    codes, rows = found_in(b"\n".join(lines), [["text"]])
    strict = 0
    for line, code, row in zip(lines, codes, rows, strict=True):
        rest = line.removeprefix(b"\xef\xbb\xbf")
        if code == OTHER:
            continue
        if code == BLANK:
            assert not rest.strip()
            continue
        assert documents._json_text(rest, "text") == (row[0], None), line
        try:
            assert documents._json()(rest)["text"].encode() == row[0], line
            strict += 1
        except ValueError:  # something is in another field
            pass
    assert strict > count // 4


@given(st.lists(st.sampled_from([b"{", b"}", b"[", b"]", b'"', b'"text"', b":", b",", b"\\", b"1", b" ", b"a", b"\n"])))
@example([b'{"text":"', b"a" * 53, b'"}'])
@example([b'{"text":"', b"a" * 54, b"\\", b'"}'])
def test_any_bytes_are_lines_of_which_the_reference_says_the_same(parts):
    agrees(b"".join(parts).split(b"\n"), [["text"], ["a"]])


@given(st.integers(0, 140), st.sampled_from([r"\n", r"\u00e9", r"\ud83d\ude00", "é", "😀", "\\", "\n", "\0", '"', ""]))
def test_every_position_in_64_bytes_is_read_alike(shift, what):
    rest = b"b" * 130
    agrees((b'{"text":"' + b"a" * shift + what.encode() + rest + b'"}').split(b"\n"), [["text"], ["x"]])
    agrees((b'{"x":"' + b"a" * shift + what.encode() + rest + b'","text":"y"}').split(b"\n"), [["text"], ["x"]])
    agrees([(b'{"text":"' + b"a" * shift + what.encode())[:-1]], [["text"]])


HOSTILE = {
    "the last of equal names": (b'{"text":"a","text":"b"}', b"b"),
    "a last one that is no text": (b'{"text":"a","text":null}', None),
    "a list after the text": (b'{"text":"a","text":["b"]}', None),
    "the same name inside": (b'{"o":{"text":"a"},"text":"b","l":[{"text":"c"}]}', b"b"),
    "only inside": (b'{"o":{"text":"a"}}', None),
    "a name with an escape": (b'{"te\\u0078t":"a"}', None),
    "a name with an escape elsewhere": (b'{"text":"a","o":{"\\u0078":1}}', b"a"),
    "NaN": (b'{"n":[NaN,-Infinity,1e400],"text":"a"}', b"a"),
    "a lone surrogate": (b'{"text":"\\ud800"}', None),
    "two second halves": (b'{"text":"\\ude00\\ude00"}', None),
    "one in another field": (b'{"n":"\\ud800","text":"a"}', b"a"),
    "bytes that are not UTF-8": (b'{"text":"\xff"}', None),
    "those in another field": (b'{"n":"\xff","text":"a"}', b"a"),
    "a mark": (b'\xef\xbb\xbf{"text":"a"}', b"a"),
    "two marks": (b'\xef\xbb\xbf\xef\xbb\xbf{"text":"a"}', None),
    "a carriage return": (b'{"text":"a"}\r', b"a"),
    "cut off": (b'{"text":"a"', None),
    "something after it": (b'{"text":"a"} 1', None),
    "a list": (b'["text"]', None),
    "a control character": (b'{"text":"a\tb"}', None),
    "as deep as can be": (b'{"text":"a","n":' + b"[" * (MOST_DEPTH - 1) + b"]" * (MOST_DEPTH - 1) + b"}", b"a"),
    "deeper": (b'{"text":"a","n":' + b"[" * MOST_DEPTH + b"]" * MOST_DEPTH + b"}", None),
    "the wrong bracket": (b'{"text":"a","n":[}', None),
    "a comma too many": (b'{"text":"a",}', None),
    "NUL": (b'{"text":"a\\u0000b"}', b"a\0b"),
    "every short escape": (rb'{"text":"\"\\\/\b\f\n\r\t"}', b'"\\/\b\f\n\r\t'),
}


@pytest.mark.parametrize(("line", "text"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_lines(line, text):
    codes, rows = found_in(line, [["text"]])
    assert (codes, rows) == (([TEXT], [[text]]) if text is not None else ([OTHER], [[b""]]))
    agrees([line], [["text"]])


def test_the_value_of_the_last_of_equal_names_and_of_no_other_is_kept():
    line = b'{"meta":{"url":"a","x":{"url":3}},"id":[1,{"id":2}],"meta":{"url":{"b": 1}},"text":"t","id":7}'
    assert found_in(line, FIELDS)[1] == [[b"t", b"7", b'{"b": 1}', b'{"url":{"b": 1}}', b'"t"', None]]
    gone = b'{"meta":{"url":"a"},"text":"t","meta":0}'
    assert found_in(gone, FIELDS)[1] == [[b"t", None, None, b"0", b'"t"', None]]


def test_a_call_stops_at_its_limit_and_where_there_is_no_capacity_and_the_next_goes_on():
    block = b"".join(b'{"text":"%d"}\n\n' % k for k in range(50))
    data, paths = frozen(np.frombuffer(block, np.uint8), np.uint8), paths_of([["text"]])
    texts, state, found, begin, at = np.zeros(data.size, np.uint8), np.zeros(2, np.int64), [], 0, 0
    while begin < data.size:
        starts, ends, codes = np.zeros(7, np.int64), np.zeros(7, np.int64), np.zeros(7, np.uint8)
        limit = begin + 60
        count = find_fields(data, begin, limit, paths, at, starts, ends, codes, texts, np.empty(0, np.int64), state)
        assert 0 < count <= 7
        assert starts[count - 1] < limit
        found += codes[:count].tolist()
        begin, at = state.tolist()
    assert found == [TEXT, BLANK] * 50
    assert texts[:at].tobytes() == b"".join(b"%d" % k for k in range(50))


@pytest.mark.parametrize("short", ["texts", "ends", "codes", "spans", "state", "begin"])
def test_arrays_that_are_too_short_are_refused(short):
    data, paths = frozen(np.frombuffer(b'{"text":"a"}', np.uint8), np.uint8), paths_of([["text"], ["id"]])
    sizes = {"ends": 2, "codes": 2, "texts": data.size, "spans": 4, "state": 4, "begin": 1}
    sizes[short] -= 1
    arrays = {
        name: np.zeros(size, np.uint8 if name in ("texts", "codes") else np.int64) for name, size in sizes.items()
    }
    found = find_fields(
        data, sizes["begin"] - 1, data.size, paths, 0, np.zeros(2, np.int64), arrays["ends"], arrays["codes"],
        arrays["texts"], arrays["spans"], arrays["state"],
    )  # fmt: skip
    assert found == NO_CAPACITY


@pytest.mark.parametrize("on_error", ["fail", "skip", "replace"])
def test_a_block_is_read_alike_with_the_kernel_and_without(monkeypatch, on_error):
    draw = random.Random(11)
    lines = [drawn_line(draw) for _ in range(800)]
    for end in (b"", b"\n", b"\n\n"):
        found = []
        for usable in (True, False):
            monkeypatch.setattr("jittok.corpus.inputs.json_lines.usable", lambda _, usable=usable: usable)
            raw = RawRange(Key(0, 0, 0), 0, b"\n".join(lines) + end, 0, 0)
            texts = read_texts(raw, "jsonl", Options(on_error=on_error))
            docs = zip(texts.docs.starts.tolist(), texts.docs.stops.tolist(), strict=True)
            found.append(([texts.docs.data[i:j].tobytes() for i, j in docs], texts.lines.tolist(), texts.seen,
                          texts.blank, texts.bad))  # fmt: skip
        assert found[0] == found[1]
        assert len(found[0][0]) > 200


def test_a_name_that_no_line_can_have_is_left_to_python():
    line = json.dumps({"text": "a"}).encode() + b"\n"
    assert paths_of([["\udcff"]]) is None
    assert lines_of_block(line * 3, "\udcff").codes.tolist() == [OTHER] * 3
    assert lines_of_block(b"", "text").codes.size == 0


def test_a_line_that_is_too_long_is_left_to_python(monkeypatch):
    if JIT:
        line = b'{"text":"' + b"a" * json_scan.LONGEST + b'"}'
    else:
        monkeypatch.setattr(json_scan, "LONGEST", 64)
        line = b'{"text":"' + b"a" * 64 + b'"}'
    assert found_in(line + b'\n{"text":"b"}', [["text"]]) == ([OTHER, TEXT], [[b""], [b"b"]])
