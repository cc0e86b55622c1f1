"""docs/files.md says which parts of a file run in kernels: each is loaded, and says so of itself."""

import base64
import json
import re
from pathlib import Path

import pytest
from charsmap import build_charsmap

import jittok
from jittok.encode.steps import PythonStep, normalizer
from jittok.files import read_pipeline

TEXT = (Path(__file__).parents[2] / "docs" / "files.md").read_text("utf-8")
ROWS = [line.split("|")[1:3] for line in TEXT.split("| part of a file |")[1].splitlines()[2:] if line.startswith("|")]
KERNELS, ENGINES, WORDS, ALL = (
    "kernels",
    "plain Python, text by text",
    "plain Python, word by word",
    "plain Python, all of it",
)
LETTERS = {"<unk>": 0, "a": 1, "b": 2, "##b": 3}
UNIGRAM = {"type": "Unigram", "unk_id": 0, "vocab": [[text, -1.0 - k] for text, k in LETTERS.items()]}
MODELS = {
    "BPE": {"type": "BPE", "vocab": LETTERS, "merges": [], "unk_token": "<unk>"},
    "WordPiece": {"type": "WordPiece", "vocab": LETTERS, "unk_token": "<unk>", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100},
    "Unigram": UNIGRAM,
    "WordLevel": {"type": "WordLevel", "vocab": LETTERS, "unk_token": "<unk>"},
}  # fmt: skip
RUNS = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
BERT = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": True,
        "lowercase": True}  # fmt: skip
MAP = base64.b64encode(build_charsmap({b"\t": b" "})).decode()
NORMALIZERS = {
    "NFC": {"type": "NFC"}, "Lowercase": {"type": "Lowercase"}, "StripAccents": {"type": "StripAccents"},
    "Nmt": {"type": "Nmt"},
    "Precompiled": {"type": "Precompiled", "precompiled_charsmap": MAP}, "Prepend": {"type": "Prepend", "prepend": "a"},
    "Strip": {"type": "Strip", "strip_left": True, "strip_right": True}, "Replace of runs of spaces": RUNS,
    "Replace of one character": {"type": "Replace", "pattern": {"String": "a"}, "content": "b"},
    "NFD": {"type": "NFD"}, "NFKC": {"type": "NFKC"}, "NFKD": {"type": "NFKD"},
    "BertNormalizer": BERT, "ByteLevel as a normalizer": {"type": "ByteLevel"},
    "Replace of any other pattern": {"type": "Replace", "pattern": {"Regex": "ab?"}, "content": "b"},
}  # fmt: skip
SPLIT = {"type": "Split", "pattern": {"Regex": "ab?"}, "behavior": "MergedWithNext", "invert": True}
SPLITTERS = {
    "Whitespace": {}, "WhitespaceSplit": {}, "BertPreTokenizer": {}, "Punctuation": {"behavior": "Contiguous"},
    "Digits": {"individual_digits": True}, "CharDelimiterSplit": {"delimiter": "a"}, "FixedLength": {"length": 2},
    "UnicodeScripts": {},
    "Metaspace": {"replacement": "▁", "prepend_scheme": "always", "split": True},
    "ByteLevel": {"add_prefix_space": True, "use_regex": True}, "Split": SPLIT,
}  # fmt: skip


def named(row):
    """The parts that a row names, each in backticks, with what is said of it up to the next comma."""
    return {f"{name}{more}".strip() for name, more in re.findall(r"`(\w+)`((?: (?:without|of|as)[^,;|`]*)?)", row)}


def rows(front, runs):
    """What rows that begin so name, of those that run so."""
    return set().union(*(named(part) for part, how in ROWS if part.strip().startswith(front) and runs in how))


def runs(**parts):
    found = {"model": MODELS["BPE"], **parts}
    return jittok.load(json.dumps(found).encode(), cache=False).runs


def test_the_table_names_every_normalizer_where_it_runs():
    for how in (KERNELS, ENGINES):
        assert rows("normalizers", how) <= {*NORMALIZERS}
        for name in rows("normalizers", how):
            content = json.dumps({"normalizer": NORMALIZERS[name], "model": MODELS["BPE"]}).encode()
            made = [normalizer(step) for step in read_pipeline(content).normalize]
            assert any(isinstance(step, PythonStep) for step in made) == (how == ENGINES), name
            assert runs(normalizer=NORMALIZERS[name]) == "kernels"
    assert rows("normalizers", KERNELS) | rows("normalizers", ENGINES) == {*NORMALIZERS}


def test_the_table_names_every_pre_tokenizer_and_every_model():
    named_here = {name.split()[0] for name in rows("pre-tokenizers", KERNELS)}
    assert named_here == {*SPLITTERS}
    assert rows("models", KERNELS) == {*MODELS}
    for name, settings in SPLITTERS.items():
        for model in MODELS.values():
            assert runs(pre_tokenizer={"type": name, **settings}, model=model) == "kernels"
    eight = {"type": "Sequence", "pretokenizers": [{"type": name, **SPLITTERS[name]} for name in SPLITTERS]}
    assert runs(pre_tokenizer=eight) == "kernels"
    asks = {**SPLIT, "pattern": {"Regex": r"\s+$"}}
    assert runs(pre_tokenizer=asks) == "kernels"


WITHOUT = {"unk_token": "missing"}
FIRST = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}
LATER = {"id": 4, "content": "c", "special": False, "normalized": True, "lstrip": False, "rstrip": False,
         "single_word": False}  # fmt: skip
BYTES = {f"<0x{byte:02X}>": byte + 4 for byte in range(256)}
PLAIN = {
    **{f"{kind} without its unknown token": {"model": MODELS[kind] | WITHOUT} for kind in
       ("BPE", "WordPiece", "WordLevel")},
    "Unigram without one": {"model": {**UNIGRAM, "unk_id": None}},
    "BPE with byte fallback and a suffix": {"model": MODELS["BPE"] | {
        "vocab": LETTERS | BYTES, "byte_fallback": True, "end_of_word_suffix": "</w>"}},
    "some tokens of bytes": {"model": MODELS["BPE"] | {"vocab": LETTERS | {"<0x00>": 4}, "byte_fallback": True}},
    "some of Unigram": {"model": UNIGRAM | {"vocab": [*UNIGRAM["vocab"], ["<0x00>", -9.0]], "byte_fallback": True}},
    "high scores": {"model": UNIGRAM | {"vocab": [["<unk>", 0.0], ["a", 17.0]]}},
    "the unknown token in others": {"model": UNIGRAM | {"vocab": [["a", 0.0], ["ab", -1.0]]}},
    "two texts of one id": {"model": MODELS["WordLevel"] | {"vocab": LETTERS | {"c": 2}}},
    "first behind another": {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "WhitespaceSplit"}, FIRST]}},
    "first behind a normalizer": {"pre_tokenizer": FIRST, "normalizer": {"type": "NFC"}, "added_tokens": [LATER]},
}  # fmt: skip


@pytest.mark.parametrize("parts", PLAIN.values(), ids=PLAIN)
def test_what_the_table_says_is_plain_python_is(parts):
    assert runs(**parts).startswith("general path")
    assert sum(how.strip() == ALL for _, how in ROWS) == 5


def test_without_any_one_reason_the_same_files_run_in_kernels():
    assert runs(pre_tokenizer=FIRST, normalizer={"type": "NFC"}) == "kernels"
    assert runs(pre_tokenizer=FIRST, added_tokens=[LATER]) == "kernels"
    assert runs(added_tokens=[{**LATER, "single_word": True, "lstrip": True}]) == "kernels"
    assert runs(model=MODELS["BPE"] | {"byte_fallback": True}) == "kernels"
    assert runs(model={**UNIGRAM, "byte_fallback": True}) == "kernels"
    assert runs(model={**UNIGRAM, "vocab": [["<unk>", 0.0], ["a", 16.0]]}) == "kernels"
