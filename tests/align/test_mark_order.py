"""Long rows of marks out of order: the spans of windows are those of the whole text."""

import json
import random
import re

import numpy as np
import pytest

import jittok
from jittok.align import files, windows
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.kernels.jit import CHECKED, JIT
from jittok.reference.pipeline import aligned

MARKS = "\u0301\u0323\u0327\u0344\u0f73\u093c\u302a\U0001d165\uff9e\u0338"
CLEFS = {"type": "BPE", "vocab": {chr(c): byte for byte, c in enumerate(CHARACTER_OF_BYTE)}, "merges": []}


def file_of(form, **changes):
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    made = {"normalizer": {"type": form}, "pre_tokenizer": byte_level, "model": CLEFS, **changes}
    return jittok.load(json.dumps(made).encode())


@pytest.fixture
def small(monkeypatch):
    """Windows and rows of a few bytes."""
    monkeypatch.setattr(windows, "FIRST_WINDOW_BYTES", 256)
    monkeypatch.setattr(windows, "LONG_ROW", 64)
    monkeypatch.setattr(windows, "_rows", lambda: re.compile(f"[{''.join(sorted(windows._marks()))}]{{64,}}"))


def whole(tok, raw):
    found = aligned(tok._encoder.vocab, raw, False, False)
    return [token.id for token in found], [(token.start, token.stop) for token in found]


def drawn(rng):
    """A text with rows of marks that are longer than a window."""
    texts = []
    for _ in range(rng.randint(2, 6)):
        texts.append("".join(rng.choices("ae <|Åの\u1100\u1161ﬁ ", k=rng.randint(0, 300))).encode())
        kinds = rng.sample(MARKS, rng.randint(1, 4))
        texts.append("".join(rng.choices(kinds, k=rng.choice([3, 70, 400, 1500]))).encode())
        texts.append(rng.choice([b"", b"\xff", b"\xe2\x96", b"<|a|>", b"x"]))
    return b"".join(texts)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_spans_of_rows_out_of_order_are_those_of_the_whole_text(form, monkeypatch):
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    tok = file_of(form, added_tokens=[{"id": 256, "content": "<|a|>", **special}])
    rng, used, ordered = random.Random(form), [], windows.ordered_document
    monkeypatch.setattr(windows, "ordered_document", lambda *args: used.append(ordered(*args)) or used[-1])
    monkeypatch.setattr(files, "aligned", None)  # nothing is seen whole
    for _ in range(4 if JIT and not CHECKED else 1):
        raw = drawn(rng)
        ids, spans = whole(tok, raw)
        found = tok.align(raw, errors="replace")
        assert found.ids.tolist() == ids
        assert found.spans.tolist() == [list(span) for span in spans]
    assert any(used)


@pytest.mark.usefixtures("small")
def test_a_row_out_of_order_is_one_stretch():
    tok = file_of("NFC")
    raw = ("ab" + "\u0301\u0323" * 400 + "c").encode()
    found = tok.align(raw)
    assert found.spans[0].tolist() == [0, 1]
    assert found.spans[-1].tolist() == [len(raw) - 1, len(raw)]
    assert np.unique(found.spans[1:-1], axis=0).tolist() == [[1, len(raw) - 1]]


@pytest.mark.usefixtures("small")
def test_files_that_put_nothing_in_order_first_have_no_such_rows():
    lower = {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, {"type": "NFC"}]}
    tok, raw = file_of("NFC", normalizer=lower), ("\u0301\u0323" * 400).encode()
    runner = files.runner(tok._encoder.vocab)
    assert windows.ordered_document(runner, raw, False) is None
    assert windows.ordered_document(files.runner(file_of("NFC")._encoder.vocab), b"no marks here " * 100, False) is None


def test_places_are_put_back():
    rows = [np.array(column) for column in ([2, 9], [6, 9], [2, 8], [5, 10])]
    found = windows.OrderedDocument(b"", *rows)
    spans = np.array([[0, 2], [2, 3], [5, 7], [2, 2], [7, 7], [6, 9], [9, 10], [8, 10]])
    found.put_back(spans)
    assert spans.tolist() == [[0, 2], [2, 5], [2, 6], [2, 2], [6, 6], [5, 8], [10, 11], [7, 11]]
