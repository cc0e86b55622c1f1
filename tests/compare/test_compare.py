"""What a comparison counts, and what it says of the machines."""

import json
import random
from itertools import pairwise

import numpy as np
import pytest
from drawn_files import byte_level_json

import jittok
from jittok.align import files
from jittok.cli import main
from jittok.compare import Comparison, tally
from jittok.compare.cells import FIRST_A, FIRST_B, LAST_A, LAST_B, START, STOP, Side, partings
from jittok.compare.machines import _WitnessSearch
from jittok.compare.tally import script_of
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import frozen

TEXTS = ["abc the cat", "", "e\u0301q\u0301 abc", "th<x>ab", "\u043f\u0440\u0438\u0432\u0435\u0442 ab"]


def literal_cells(spans_a, spans_b):
    """Cells by the definition: between places that lie within no token of either."""
    size = max([stop for _, stop in spans_a + spans_b], default=0)
    borders = [p for p in range(size + 1) if not any(start < p < stop for start, stop in spans_a + spans_b)]
    return list(pairwise(borders))


def test_partings_are_the_cells_in_which_tokens_differ():
    draw = random.Random(3)
    for _ in range(60):
        size = draw.randrange(1, 12)

        def side(size=size):
            cuts = sorted({0, size, *(draw.randrange(size + 1) for _ in range(draw.randrange(6)))})
            return list(pairwise(cuts))

        spans = side(), side()
        numbers = [[draw.randrange(2) for _ in each] for each in spans]
        docs = Documents(frozen(np.zeros(size, np.uint8), np.uint8), frozen([0], np.int64), frozen([size], np.int64))
        sides = [
            Side(
                frozen([0, len(each)], np.int64), frozen(kinds, np.int32), frozen(np.array(each).reshape(-1), np.int64)
            )
            for each, kinds in zip(spans, numbers, strict=True)
        ]
        expected = []
        for low, high in literal_cells(*spans):
            inside = [[k for k, (start, stop) in enumerate(each) if low <= start and stop <= high] for each in spans]
            tokens = [[numbers[k][token] for token in inside[k]] for k in range(2)]
            if tokens[0] != tokens[1]:
                expected.append([low, high, *(p for k in range(2) for p in (inside[k][0], inside[k][-1] + 1))])
        found = partings(docs, *sides)
        assert found[:, [START, STOP, FIRST_A, LAST_A, FIRST_B, LAST_B]].tolist() == expected


def test_tokens_of_no_text_belong_to_the_cell_that_begins_there():
    docs = Documents(frozen(np.zeros(4, np.uint8), np.uint8), frozen([0], np.int64), frozen([4], np.int64))
    a = Side(frozen([0, 3], np.int64), frozen([9, 1, 2], np.int32), frozen([0, 0, 0, 2, 2, 4], np.int64))
    b = Side(frozen([0, 2], np.int64), frozen([1, 2], np.int32), frozen([0, 2, 2, 4], np.int64))
    assert partings(docs, a, b)[:, :7].tolist() == [[0, 0, 2, 0, 2, 0, 1]]


@pytest.mark.parametrize(
    ("change", "cause", "differing"),
    [
        ({"pattern": r"\p{L}+|[^\p{L}]"}, "split", [2]),
        ({"normalizer": "NFC"}, "normalizer", [2]),
        ({"added": ("<x>",)}, "added", [3]),
        ({"merges": (("a", "b"), ("b", "c"), ("t", "h"))}, "model", [0, 2]),
    ],
)
def test_a_parting_has_its_cause(small, change, cause, differing):
    found = jittok.compare(small(), small(**change), TEXTS)
    assert isinstance(found, Comparison)
    assert found.first_differing == differing
    assert found.documents == 5
    assert set(found.causes) == {cause}
    assert found.partings == sum(found.causes.values()) == sum(found.scripts.values())
    assert found.a.tokens == sum(small().count_batch(TEXTS))
    assert cause in str(found)
    assert "<table" in found._repr_html_()
    assert json.loads(found.to_json())["differing"] == len(differing)


def test_equal_partings_are_counted_together(small):
    found = jittok.compare(small(), small(merges=(("a", "b"),)), ["abc", "abcth", "x abc"])
    assert [(row.text, row.a, row.b, row.count, row.document, row.byte) for row in found.frequent] == [
        ("abc", ["abc"], ["ab", "c"], 3, 0, 0),
        ("th", ["th"], ["t", "h"], 1, 1, 3),
    ]
    assert jittok.compare(small(), small(), TEXTS).same


@pytest.mark.parametrize("change", [{"pattern": r"\p{L}+|[^\p{L}]"}, {"added": ("<x>",)}])
def test_documents_that_their_tokens_spell_are_not_aligned_the_slow_way(small, change, monkeypatch):
    wanted = jittok.compare(small(), small(**change), TEXTS)
    monkeypatch.setattr(files.FileAligner, "spans", None)
    assert jittok.compare(small(), small(**change), TEXTS) == wanted


def test_only_so_much_is_aligned_the_slow_way_and_a_note_says_so(small, monkeypatch):
    texts = ["e\u0301q\u0301 abc", "abc the cat", "th<x>ab", "the e\u0301"]
    changed = {"normalizer": "NFC", "added": ("<x>",)}
    whole = jittok.compare(small(), small(**changed), texts)
    assert (whole.differing, whole.notes) == (3, [])
    monkeypatch.setattr(tally, "MOST_ALIGNED", len(texts[0].encode()))
    found = jittok.compare(small(), small(**changed), texts)
    assert found.differing == 3
    assert {parting.text for parting in found.frequent} == {parting.text for parting in whole.frequent}
    assert found.partings == whole.partings - 1
    assert found.causes == {"added": 1, "normalizer": 1} != whole.causes
    assert "in 1 more documents" in found.notes[0]
    assert found.notes[0] in str(found)


def test_tokens_are_compared_by_text_or_by_id(small):
    a, b = small(merges=(("a", "b"), ("t", "h"))), small(merges=(("t", "h"), ("a", "b")))
    assert jittok.compare(a, b, ["ab th"]).same
    assert jittok.compare(a, b, ["ab th"], by_id=True).partings == 2


def test_a_gguf_is_compared_with_the_file_of_the_same_model(recorded_path):
    found = jittok.compare(jittok.bundled("mistral"), recorded_path("mistral-v1"), ["Hello, world", "  two\n\nlines é"])
    assert found.same
    assert found.a.tokens == found.b.tokens > 5


@pytest.mark.parametrize(
    ("text", "script"),
    [("abc", "Latin"), (" да", "Cyrillic"), ("中文", "Han"), ("12", "digits"), (" \n", "white space"), ("", "no text"),
     ("\u0301", "marks"), ("!", "punctuation"), ("\u3042", "Hiragana"), ("1a", "Latin")],
)  # fmt: skip
def test_scripts_are_those_of_the_first_letter(text, script):
    assert script_of(text.encode()) == script


@pytest.mark.parametrize(
    ("change", "proved"),
    [
        ({"pattern": r"(?:\p{M}|\p{L})+|[^\p{M}\p{L}]"}, True),  # the same words, written otherwise
        ({"pattern": r"\p{L}+|[^\p{L}]"}, False),
        ({"merges": (("t", "h"), ("a", "b"), ("ab", "c"))}, False),
        ({"added": ("<x>",)}, False),
        ({"normalizer": "NFC"}, False),
    ],
)
def test_without_texts_sameness_is_proved_or_a_text_is_found(small, change, proved, monkeypatch):
    from jittok.compare import machines

    few = [*map(chr, range(0x60, 0x80)), "\u0340"]
    monkeypatch.setattr(machines._WitnessSearch, "_characters", lambda _: iter(few))
    a, b = small(), small(**change)
    found = jittok.compare(a, b)
    assert found.proved == proved
    if found.witness is not None:
        text = found.witness.text
        assert [a.id_to_token(token) for token in a.encode(text)] != [b.id_to_token(token) for token in b.encode(text)]
        assert found.witness.text in str(found) or repr(found.witness.text) in str(found)
    if proved:
        assert found.witness is None
    elif "merges" not in change:
        assert found.witness is not None
    assert "<table" in found._repr_html_()


def test_the_command_says_1_where_something_differs(tmp_path, recorded_path, capfdbinary):
    texts = tmp_path / "texts.jsonl"
    texts.write_text('{"text": "Hello"}\n{"text": "12 e\\u0301"}\n')
    page = tmp_path / "page.html"
    names = ["mistral", str(recorded_path("mistral-v1"))]
    assert main(["compare", *names, "--corpus", str(texts), "--html", str(page)]) == 0
    assert b"0 of 2 documents differ" in capfdbinary.readouterr().out
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert main(["compare", "gpt-2", "mistral", "--corpus", str(texts), "--json"]) == 1
    told = json.loads(capfdbinary.readouterr().out)
    assert told["differing"] == 2
    assert told["frequent"][0]["where"].endswith("texts.jsonl, line 1")


def words_json(vocab, splits):
    whole = {
        "version": "1.0", "added_tokens": [], "normalizer": {"type": "Lowercase"}, "post_processor": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": splits},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {text: k for k, text in enumerate(vocab)}},
    }  # fmt: skip
    return jittok.load(json.dumps(whole).encode(), cache=False)


WORDS = ["[UNK]", "the", "cat", "##s", "-", "sat"]
SPACES, HYPHENS = {"type": "WhitespaceSplit"}, {"type": "Punctuation", "behavior": "Isolated"}


@pytest.mark.parametrize(
    ("vocab", "splits", "text", "cause"),
    [
        (WORDS[:3] + WORDS[4:], [SPACES], "the cats sat", "model"),  # one of the two has no token for a word
        ([*WORDS, "zq"], [SPACES], "xy the zq sat cats", "model"),
        ([*WORDS, "zq"], [SPACES], "the wv zq sat", "model"),
        (WORDS, [SPACES, HYPHENS], "the xy-cat sat", "split"),
    ],
)
def test_partings_of_unknown_tokens_have_their_cause(vocab, splits, text, cause):
    found = jittok.compare(words_json(WORDS, [SPACES]), words_json(vocab, splits), [text])
    assert set(found.causes) == {cause}


def test_without_documents_the_status_is_1_where_only_a_part_differs(tmp_path, capfdbinary, monkeypatch):
    monkeypatch.setattr(_WitnessSearch, "_characters", lambda _: iter("ab 1"))  # a million of them take seconds
    places = [tmp_path / "a.json", tmp_path / "b.json"]
    for place, pattern in zip(places, (r"\p{L}+|[^\p{L}]", r"\p{L}|[^\p{L}]+"), strict=True):
        place.write_bytes(byte_level_json(pattern, None))
    assert main(["compare", *map(str, places), "--json"]) == 1
    told = json.loads(capfdbinary.readouterr().out)
    assert told["witness"] is None
    assert [part["name"] for part in told["parts"] if part["verdict"] == "differs"] == ["splitter"]
    assert main(["compare", str(places[0]), str(places[0])]) == 0
