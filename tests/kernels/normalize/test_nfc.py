"""NFC: the kernels are the plain reference, which is Unicode's own algorithm; and Python's where its version agrees."""

import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nfc_tables import VERSION, build_nfc

from jittok.common.unicode import nfc as data
from jittok.common.unicode.tables import utf8
from jittok.kernels.jit import JIT, frozen
from jittok.kernels.normalize.nfc.fragments import changed_fragments, nfc, nfc_tables
from jittok.reference.normalize.nfc import nfc as reference
from jittok.reference.text import mapped

MARKS = np.flatnonzero(data.class_table()).tolist()
PARTS = sorted({*data.decompositions(), *data.seconds()})
CODES = st.one_of(
    st.sampled_from(MARKS),
    st.sampled_from(PARTS),
    st.integers(0x1100, 0x11FF),
    st.integers(0xAC00, 0xAC40),
    st.integers(0x20, 0x24F),
    st.sampled_from([0x9AC, 0x9BE, 0x9C7, 0x105D2, 0x307, 0x113C2, 0xD800, 0xFFFD]),
)
TEXTS = st.lists(CODES.map(utf8) | st.sampled_from([b"a" * 64, b"\xff", b"\xc0\x80", b"\xf4\x90\x80\x80"]), max_size=12)


def mapped_by_kernel(text):
    """(bytes, starts, stops) of one fragment that is after another one."""
    both = b"e\xcc\x81" + text
    starts, stops = frozen([0, 3], np.int64), frozen([3, len(both)], np.int64)
    tokens = frozen([-1, -1], np.int32)
    found = changed_fragments(
        nfc_tables(), frozen(np.frombuffer(both, np.uint8), np.uint8), starts, stops, tokens, 2, True
    )
    assert found.data[: found.stops[0]].tobytes() == b"\xc3\xa9"
    if found.changes[1] < 0:
        return text, [*range(len(text))], [*range(1, len(text) + 1)]
    start, stop = int(found.starts[1]), int(found.stops[1])
    places = (column[start:stop] - 3 for column in (found.map_starts, found.map_stops))
    return found.data[start:stop].tobytes(), *(column.tolist() for column in places)


@given(TEXTS.map(b"".join))
@example("e\u0301".encode() * 30)
@example(b"a" + "\u0323\u0301\u0315".encode() * 20)  # more marks than are put in order by insertion
@example("\u1100\u1161\u11a8\u11a8".encode())
@example("\u0344\u0f73".encode())
@example(b"\xed\xa0\x80\xcc\x81")
def test_the_kernel_gives_what_the_reference_gives(text):
    expected = reference(mapped(text, 0, len(text)))
    assert mapped_by_kernel(text) == (bytes(expected.text), expected.starts, expected.stops)


@given(TEXTS.map(b"".join), TEXTS.map(b"".join))
def test_texts_may_be_cut_where_a_stretch_begins(text, more):
    assert nfc(nfc(text)) == nfc(text)
    second = more.decode("utf-8", "replace")
    if second and data.begins_anew(ord(second[0])):
        assert nfc(text + more) == nfc(text) + nfc(more)


@pytest.mark.skipif(not JIT, reason="a million code points without the compiler")
def test_each_code_point_that_python_knows_is_normalized_as_by_python():
    known = [c for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]
    for low in range(0, len(known), 4096):
        text = "a".join(map(chr, known[low : low + 4096]))
        assert nfc(text.encode()).decode() == unicodedata.normalize("NFC", text)


def test_it_is_unicode_16_whatever_python_has():
    for text, expected in (("\U000105d2\u0307", "\U000105c9"), ("\U000113c2\U000113c2", "\U000113c5")):
        assert nfc(text.encode()).decode() == expected
    assert data.combining_class(0x1ACF) == 0  # a mark since Unicode 17


def test_ascii_and_composed_text_is_not_copied():
    for text in (b"", b"plain " * 100, "caf\u00e9 \u4e2d\u6587 \uac00 \u09ac\u09be".encode() * 20):
        assert nfc(text) is text


def test_the_tables_are_those_that_the_script_makes():
    if unicodedata.unidata_version != VERSION:
        pytest.skip(f"this Python has Unicode {unicodedata.unidata_version}")
    made = build_nfc(unicodedata)
    assert {name: array.tolist() for name, array in data.load_nfc().items()} == {
        name: array.tolist() for name, array in made.items()
    }


def test_many_marks_take_linear_time():
    many = 50_000 if JIT else 300
    text = b"a" + "\u0301\u0323".encode() * many  # the first to be composed is after, in order of classes
    assert nfc(text) == b"\xe1\xba\xa1" + "\u0323".encode() * (many - 1) + "\u0301".encode() * many
