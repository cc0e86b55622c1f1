"""Objects of tokenizers 1.0, of what they were recorded to write: its own answers, or a refusal."""

import json
import lzma
from pathlib import Path

import pytest

import jittok
from jittok.errors import UnsupportedVocab
from jittok.reference.pipeline import runner

RECORDED = Path(__file__).parents[1] / "data" / "tokenizers-1.0.jsonl.xz"
ROWS = [json.loads(line) for line in lzma.decompress(RECORDED.read_bytes()).splitlines()]
PLAIN = [row for row in ROWS if '"normalized":true' not in row["json"].replace(" ", "")]
MARKS = {"type": "MetaspaceNormalizer", "replacement": "\u2581", "prepend": "always"}


def written(text):
    """An object as that library makes it: it writes itself only where it is pickled."""
    reduced = lambda _: (json.loads, (text, None, None))  # noqa: E731
    return type("Tokenizer", (), {"__module__": "tokenizers", "__reduce__": reduced})()


def test_an_id_of_an_added_token_that_releases_before_would_not_give_is_refused():
    content = json.loads(PLAIN[0]["json"])
    content["added_tokens"] = [{**token, "id": 40} for token in content["added_tokens"][:1]] or [
        {"id": 40, "content": "<y>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": True}
    ]  # fmt: skip
    with pytest.raises(UnsupportedVocab, match=r"added_tokens\[0\]: found the id 40 for"):
        jittok.from_tokenizers(written(json.dumps(content)))


def test_a_suffix_of_words_is_refused():
    content = json.loads(next(row["json"] for row in PLAIN if '"BPE"' in row["json"]))
    content["model"]["end_of_word_suffix"] = "</w>"
    with pytest.raises(UnsupportedVocab, match=r"model\.end_of_word_suffix: found '</w>'"):
        jittok.from_tokenizers(written(json.dumps(content)))


def test_objects_of_tokenizers_1_0_give_their_own_answers_or_are_refused_by_name(monkeypatch):
    monkeypatch.setattr("jittok.tokenizer.objects.Tokenizer", lambda made: made)  # the plain reference is enough
    refused = []
    for row in ROWS:
        try:
            run = runner(jittok.from_tokenizers(written(row["json"])))
        except UnsupportedVocab as error:
            refused.append(str(error))
            continue
        for answer in row["answers"]:
            ids = run.encode(answer["text"], parse_special=True)
            second = run.encode("a b", parse_special=True)
            assert ids == answer["plain"], (row["json"][:900], answer)
            assert run.around(ids) == answer["ids"]
            assert run.around(ids, second) == answer["pair"]
            assert [run.decode_text(answer["ids"], skip) for skip in (False, True)] == answer["decoded"]
    assert all("added_tokens: found added tokens that match normalized text" in said for said in refused)
    assert len(refused) < len(ROWS) / 4 < len(ROWS) - 150


@pytest.mark.parametrize("number", [0, 40, len(PLAIN) - 4, len(PLAIN) - 1])
def test_the_kernels_give_the_same_of_some_of_them(number):
    tok, answers = jittok.from_tokenizers(written(PLAIN[number]["json"])), PLAIN[number]["answers"]
    rows = tok.encode_batch([answer["text"] for answer in answers], add_special=True, parse_special=True)
    assert rows.to_list() == [answer["ids"] for answer in answers]


@pytest.mark.parametrize(
    ("parts", "place"),
    [({"version": "3.0"}, "version"), ({"normalizer": {"type": MARKS["type"]}, "added_tokens": []}, "normalizer"),
     ({"post_processor": {"type": "TemplateProcessing", "single": [{"ids": ["a"]}], "pair": []}}, "post_processor"),
     ({"normalizer": {"type": "Sequence", "normalizers": [MARKS, {"type": "NFC"}]}, "added_tokens": []}, "normalizer")],
)  # fmt: skip
def test_what_is_not_known_of_such_an_object_is_refused_with_its_place(parts, place):
    content = {**json.loads(ROWS[0]["json"]), **parts}
    with pytest.raises(jittok.errors.JittokError, match=f"in memory: {place}"):
        jittok.from_tokenizers(written(json.dumps(content)))


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


@pytest.mark.parametrize(
    ("splitter", "model", "note"),
    [
        (BYTES, {}, None),
        ({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, BYTES]}, {}, None),
        ({"type": "Sequence", "pretokenizers": [BYTES, {"type": "Digits", "individual_digits": True}]}, {}, "refuses"),
        ({**BYTES, "add_prefix_space": True}, {}, "refuses"),
        ({"type": "Whitespace"}, {"end_of_word_suffix": "</w>"}, "gives other ids"),
    ],
)
def test_a_file_that_1_0_reads_in_another_way_has_a_note(splitter, model, note):
    content = {
        "version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": splitter, "post_processor": None,
        "decoder": None, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [], **model},
    }  # fmt: skip
    notes = jittok.load(json.dumps(content).encode(), cache=False).pipeline.notes
    assert len(notes) == (note is not None)
    assert all(each.startswith(f"tokenizers 1.0 {note}") for each in notes)
