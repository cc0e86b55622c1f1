"""What a tokenizer.json says twice, and in two ways: ids and texts as tokenizers 0.23 gives them, or a refusal."""

import importlib
import importlib.util
import json

import pytest

import jittok
from jittok.errors import UnsupportedVocab

FLAGS = {"single_word": False, "lstrip": False, "rstrip": False}


def words(*rows, normalizer=None):
    """A list of words, lower case or not, with added tokens: (text, special, normalized)."""
    added = [{"id": 3, "content": text, "special": special, "normalized": normalized, **FLAGS}
             for text, special, normalized in rows]  # fmt: skip
    return json.dumps({
        "added_tokens": added, "normalizer": normalizer, "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "u": 2}, "unk_token": "u"},
    }).encode()  # fmt: skip


LOWER = {"type": "Lowercase"}
BERT = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": None,
    "lowercase": True,
}


@pytest.mark.parametrize("normalizer", [None, LOWER])
@pytest.mark.parametrize("rows", [[("X", True, False), ("X", False, False)], [("X", False, False), ("X", True, False)]])
def test_an_added_token_that_was_special_once_stays_special(rows, normalizer):
    tok = jittok.load(words(*rows, normalizer=normalizer), cache=False)
    assert tok.encode("X a", parse_special=True).tolist() == [3, 0]
    assert tok.encode("X a").tolist() == [2, 0]
    assert tok.decode([3, 0], skip_special=True) == "a"
    assert tok.decode([3, 0], skip_special=False) == "X a"


def test_an_added_token_that_was_normalized_once_goes_on_to_print_that():
    rows = ("X", False, True), ("X", False, False)
    tok = jittok.load(words(*rows, normalizer=LOWER), cache=False)
    assert tok.decode([3, 0]) == "x a"
    assert tok.encode("X a").tolist() == [3, 0]
    assert tok.encode("x a").tolist() == [2, 0]
    assert jittok.load(words(*rows), cache=False).decode([3, 0]) == "X a"
    assert jittok.load(words(*rows[::-1], normalizer=LOWER), cache=False).decode([3, 0]) == "x a"


def test_a_token_that_prints_its_normalized_text_does_so_once_converted(tmp_path):
    out = tmp_path / "t.json"
    content = json.loads(words(("X", True, True), ("X", False, False), normalizer=BERT))
    content["pre_tokenizer"] = {"type": "BertPreTokenizer"}
    content["model"] |= {"type": "WordPiece", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    content["decoder"] = {"type": "WordPiece", "prefix": "##", "cleanup": True}
    assert jittok.convert(jittok.load(json.dumps(content).encode(), cache=False), out).differing == 0
    assert jittok.load(out, cache=False).decode([3, 0]) == "x a"
    if library := importlib.util.find_spec("tokenizers") and importlib.import_module("tokenizers"):
        other = library.Tokenizer.from_file(str(out))
        assert other.decode([3, 0], skip_special_tokens=False) == "x a"


def test_new_added_tokens_stand_behind_all_pieces_though_one_is_there_twice():
    pieces = [["<unk>", 0.0], ["a", -1.0], ["b", -1.0], ["a", -2.0]]
    added = {"id": 3, "content": "X", "special": False, "normalized": False, **FLAGS}
    content = {"added_tokens": [added], "model": {"type": "Unigram", "vocab": pieces, "unk_id": 0}}
    tok = jittok.load(json.dumps(content).encode(), cache=False)
    assert tok.encode("aXb").tolist() == [3, 4, 2]
    assert tok.decode([3, 4, 2]) == "a X b"


def test_of_added_tokens_that_come_to_one_id_the_last_row_is_found():
    """A model with a hole has an id above its size, which the next new token gets as well."""
    vocab = {"u": 0, "a": 1, "x": 3}
    rows = [{"id": 3, "content": text, "special": False, "normalized": False, **FLAGS} for text in ("x", "<>", "x")]
    model = {"type": "WordLevel", "vocab": vocab, "unk_token": "u"}
    content = {"added_tokens": rows, "pre_tokenizer": {"type": "WhitespaceSplit"}, "model": model}
    tok = jittok.load(json.dumps(content).encode(), cache=False)
    assert tok.encode("x <> a").tolist() == [3, 0, 1]
    content["added_tokens"] = rows[:2]
    tok = jittok.load(json.dumps(content).encode(), cache=False)
    assert tok.encode("ax <> a").tolist() == [0, 3, 1]
    assert tok.decode([3]) == "<>"


ENDS = {"cls": ["a", 0], "sep": ["b", 1]}


@pytest.mark.parametrize(
    ("said", "flags", "taken"),
    [
        ("RobertaProcessing", {}, "BertProcessing"),
        ("RobertaProcessing", {"trim_offsets": True}, "BertProcessing"),
        ("RobertaProcessing", {"trim_offsets": True, "add_prefix_space": None}, "BertProcessing"),
        ("BertProcessing", {"trim_offsets": True, "add_prefix_space": False}, "RobertaProcessing"),
        ("ByteLevel", {"trim_offsets": True, "add_prefix_space": False}, "RobertaProcessing"),
    ],
)
def test_a_post_processor_whose_keys_are_those_of_another_is_refused(said, flags, taken):
    content = json.loads(words())
    for part in (
        {"type": said, **ENDS, **flags},
        {"type": "Sequence", "processors": [{"type": said, **ENDS, **flags}]},
    ):
        content["post_processor"] = part
        with pytest.raises(UnsupportedVocab, match=f"found '{said}', expected {taken}, as"):
            jittok.load(json.dumps(content).encode(), cache=False)
    content["post_processor"] = {"type": taken, **ENDS, **flags}
    tok = jittok.load(json.dumps(content).encode(), cache=False)
    assert tok.encode_pair("b", "b").tolist() == [0, 1, *[1] * (1 + (taken == "RobertaProcessing")), 1, 1]


@pytest.mark.parametrize(
    "model",
    [
        {"type": "WordLevel", "vocab": {"u": 0, "a": 1, "b": 1, "c": 2}, "unk_token": "u"},
        {"type": "WordPiece", "vocab": {"u": 0, "a": 1, "##b": 1, "b": 2, "ab": 3, "c": 3}, "unk_token": "u",
         "continuing_subword_prefix": "##", "max_input_chars_per_word": 100},
        {"type": "BPE", "vocab": {"u": 0, "a": 1, "b": 1, "c": 2, "ab": 3, "cc": 2}, "merges": ["a b", "c c"],
         "unk_token": "u"},
    ],
)  # fmt: skip
def test_a_file_with_two_texts_of_one_id_has_its_ids_and_says_that_texts_are_not_certain(model):
    added = [{"id": 9, "content": "<x>", "special": False, "normalized": False, **FLAGS}]
    content = json.dumps({"added_tokens": added, "pre_tokenizer": {"type": "WhitespaceSplit"}, "model": model})
    tok = jittok.load(content.encode(), cache=False)
    (note,) = (note for note in tok.pipeline.notes if "shared with another text" in note)
    assert "ids are exact, but decoding is undefined" in note
    assert tok.runs.startswith("general path")
    tokenizers = pytest.importorskip("tokenizers")
    own = tokenizers.Tokenizer.from_str(content)
    for text in ("a b", "ab", "c cc abc", "b<x>a", "d", ""):
        assert tok.encode(text).tolist() == own.encode(text).ids
    with pytest.raises(UnsupportedVocab, match="a different id for each text"):
        jittok.from_tokenizers(own)


def test_texts_that_share_an_id_are_part_of_the_fingerprint():
    def fingerprint(text):
        model = {"type": "WordLevel", "vocab": {"u": 0, "a": 1, text: 1}, "unk_token": "u"}
        return jittok.load(json.dumps({"added_tokens": [], "model": model}).encode(), cache=False).fingerprint

    assert fingerprint("b") != fingerprint("c")
