"""`Tokenizer.explain` shows the plan that the encoder runs: every step of the file once, kernels that are there, ids of
`encode`."""

import json
import re
from pathlib import Path

import pytest
import small_files
from small_files import sentencepiece, sentencepiece_of

import jittok
from jittok.cli import main
from jittok.common.pipeline.descriptions import in_words

ROOT = Path(jittok.__file__).parents[1]
PREPARED = {
    "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}, {"type": "Lowercase"}, {"type": "NFC"}]},
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "WhitespaceSplit"},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    ]},
    "model": {"type": "Unigram", "unk_id": 0, "vocab": [["?", 0.0], ["▁", -1.0], ["h", -2.0], ["é", -2.0]]},
}  # fmt: skip
GENERAL = {
    "model": {"type": "WordPiece", "unk_token": "missing", "vocab": {"?": 0, "ab": 1}, "max_input_chars_per_word": 9,
              "continuing_subword_prefix": "##"},
    "pre_tokenizer": {"type": "WhitespaceSplit"},
}  # fmt: skip
FILES = {
    "byte level": small_files.byte_level, "characters": small_files.characters, "unigram": small_files.unigram,
    "WordPiece": small_files.wordpiece, "ranks": small_files.ranks, "tekken": small_files.tekken,
    "RWKV": small_files.rwkv, "pieces": lambda: sentencepiece(1),
    "merged pieces": lambda: sentencepiece(2), "prepared": lambda: json.dumps(PREPARED).encode(),
    "general": lambda: json.dumps(GENERAL).encode(),
}  # fmt: skip
BUNDLED = ["gpt-2", "mistral", "t5", "bert"]
TEXT = "ab Hé 12"


def tokenizer(name):
    if name in BUNDLED:
        return jittok.bundled(name)
    return jittok.load(FILES[name](), cache=False, **({"pattern": r"\w+|\W+"} if name == "ranks" else {}))


@pytest.mark.parametrize("name", [*BUNDLED, *FILES])
def test_every_step_of_a_file_is_explained_once_and_is_where_it_says(name):
    tok = tokenizer(name)
    text = "ab" if name == "general" else TEXT
    explained, pipeline = tok.explain(text), tok.pipeline
    said = " ; ".join(step.does for step in explained)
    for record in (*pipeline.normalize, *pipeline.split, pipeline.model):
        assert in_words(record) in said or type(record).__name__ == "Metaspace", said
    parts = [step.part for step in explained if step.part not in ("cut", "check")]
    assert parts == sorted(parts, key=["normalize", "split", "model", "join"].index)
    for step in explained:
        names = re.findall(r"kernel (\w+)", step.by)
        places = step.where.split(", ")
        assert len(names) == len(places) or step.by == "plain Python"
        for kernel, place in zip(names, places, strict=False):
            path, line = place.split(":")
            lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
            assert any(f"def {kernel}(" in near for near in lines[int(line) - 1 : int(line) + 3]), place
    (model,) = [step for step in explained if step.part == "model"]
    assert model.example == [str(token) for token in tok.encode(text).tolist()]
    assert (tok.runs == "kernels") == model.by.startswith("kernel")


def test_an_example_changes_from_step_to_step():
    tok = jittok.load(FILES["prepared"](), cache=False)
    shown = [(step.part, step.example) for step in tok.explain("Hé  h") if step.part in ("normalize", "split")]
    assert shown[:2] == [("normalize", ["Hé  h"]), ("normalize", ["hé  h"])] or shown[0] == ("normalize", ["hé  h"])
    assert shown[-1] == ("split", ["▁hé", "▁h"])


def test_ids_around_a_text_are_a_step_when_they_are_added():
    tok = jittok.bundled("mistral")
    assert [step.part for step in tok.explain("a")].count("join") == 0
    *_, model, join = tok.explain("a", add_special=True)
    assert (join.part, join.example) == ("join", [str(token) for token in tok.encode("a", add_special=True).tolist()])
    assert model.example == [str(token) for token in tok.encode("a").tolist()]


def test_special_tokens_cut_the_example():
    found = jittok.bundled("gpt-2").explain("a<|endoftext|>b", parse_special=True)
    assert (found[0].part, found[0].example) == ("cut", ["a", "<|endoftext|>", "b"])


def test_pieces_that_kernels_repair_are_named():
    rows = [("<unk>", 2, 0.0), ("▁", 1, -9.0), ("a", 1, -9.0), ("aa", 5, -1.0)]
    tok = jittok.load(sentencepiece_of(2, rows, False, True, False), cache=False)
    assert [step.does for step in tok.explain("aé b") if step.part == "join"] == [
        "pieces of type UNUSED become the pieces that they were merged from",
        "repeats of the unknown token become one",
    ]


def test_it_is_shown_as_text_and_as_a_table_for_light_and_dark_pages():
    explained = jittok.bundled("gpt-2").explain("<b>\x1b[31m 1234")
    lines = repr(explained).splitlines()
    assert lines[0].startswith("gpt-2")
    assert len(explained) == len([line for line in lines if re.match(r" +\d+ \w", line)])
    assert "\x1b" not in repr(explained)
    page = explained._repr_html_()
    assert "<b>\x1b" not in page
    assert "&lt;b&gt;" in page
    assert not re.search(r"background|color:#\w{3,6}\b|<script|<img", page)
    assert json.loads(json.dumps(explained.to_dicts()))[-1]["part"] == "model"


def test_the_command_prints_the_same(capsys):
    tok = jittok.bundled("gpt-2")
    assert main(["info", "gpt-2", "--steps", "--text", "Hello 1234"]) == 0
    assert capsys.readouterr().out == repr(tok.explain("Hello 1234")) + "\n"
    assert main(["info", "gpt-2", "--steps", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == tok.explain().to_dicts()
    assert main(["info", "gpt-2", "--text", "a"]) == 2
    assert capsys.readouterr().err == "jittok info: found --text without --steps, expected both or neither\n"


def test_tokens_that_are_searched_for_in_text_without_a_normalizer_are_a_cut():
    flags = {"lstrip": False, "rstrip": False, "single_word": False, "special": False, "normalized": True}
    model = {"type": "BPE", "vocab": {letter: k for k, letter in enumerate("abcd")}, "merges": []}
    content = {"version": "1.0", "added_tokens": [{"id": 4, "content": "<x>", **flags}], "model": model}
    steps = jittok.load(json.dumps(content).encode(), cache=False).explain("ab<x>cd")
    assert (steps[0].part, steps[0].does) == ("cut", "cut around 1 special token")
