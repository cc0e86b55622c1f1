"""Components without "type", as old files have them: what their keys say, as tokenizers takes them."""

import json
from typing import Any

import pytest

import jittok
from jittok.errors import MalformedVocab
from jittok.files import read_pipeline

REGEX = {"Regex": "x+"}
TEMPLATE = [{"SpecialToken": {"id": "a", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
PAIR = [*TEMPLATE, {"Sequence": {"id": "B", "type_id": 0}}]
TYPED: list[tuple[str, dict[str, Any]]] = [
    ("normalizer", {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": False, "lowercase": True}),
    ("normalizer", {"type": "Strip", "strip_left": True, "strip_right": False}),
    ("normalizer", {"type": "Replace", "pattern": REGEX, "content": "a"}),
    ("normalizer", {"type": "Prepend", "prepend": "a"}),
    ("decoder", {"type": "BPEDecoder", "suffix": "</w>"}),
    ("decoder", {"type": "WordPiece", "prefix": "##", "cleanup": True}),
    ("decoder", {"type": "CTC", "pad_token": "a", "word_delimiter_token": "|", "cleanup": False}),
    ("decoder", {"type": "Replace", "pattern": REGEX, "content": "a"}),
    ("decoder", {"type": "Strip", "content": "a", "start": 1, "stop": 0}),
    ("post_processor", {"type": "BertProcessing", "cls": ["a", 0], "sep": ["b", 1]}),
    ("post_processor", {"type": "RobertaProcessing", "cls": ["a", 0], "sep": ["b", 1], "trim_offsets": True,
                        "add_prefix_space": False}),
    ("post_processor", {"type": "TemplateProcessing", "single": TEMPLATE, "pair": PAIR,
                        "special_tokens": {"a": {"id": "a", "ids": [0], "tokens": ["a"]}}}),
]  # fmt: skip
PARTS = {"normalizer": "normalizers", "decoder": "decoders", "post_processor": "processors"}


def written(part: str, component: dict[str, Any]) -> str:
    return json.dumps({"model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "a"}, part: component})


def taken_by_the_library(content: str, part: str, kind: str) -> bool:
    tokenizers = pytest.importorskip("tokenizers")
    return bool(json.loads(tokenizers.Tokenizer.from_str(content).to_str())[part]["type"] == kind)


@pytest.mark.parametrize(("part", "typed"), TYPED)
@pytest.mark.parametrize("within", [False, True])
def test_a_component_without_a_type_is_what_its_keys_say(part, typed, within):
    plain = {key: value for key, value in typed.items() if key != "type"}
    wrapped = [{"type": "Sequence", PARTS[part]: [each]} if within else each for each in (typed, plain)]
    first, second = (read_pipeline(written(part, each).encode()) for each in wrapped)
    for name in ("normalize", "decode", "single", "pair"):
        assert getattr(first, name) == getattr(second, name)
    if not within:
        assert taken_by_the_library(written(part, plain), part, typed["type"])


def test_of_several_kinds_the_library_s_first_is_taken():
    both = {"prepend": "x", "strip_left": True, "strip_right": True}
    content = written("normalizer", both)
    assert jittok.load(content.encode(), cache=False).encode(" b ").tolist() == [1]
    assert taken_by_the_library(content, "normalizer", "Strip")


@pytest.mark.parametrize(("part", "component"), [("normalizer", {}), ("decoder", {"prefix": "##"}),
                                                 ("pre_tokenizer", {"individual_digits": True})])  # fmt: skip
def test_an_object_that_says_nothing_is_refused(part, component):
    with pytest.raises(MalformedVocab, match=f"{part}.type"):
        read_pipeline(written(part, component).encode())
