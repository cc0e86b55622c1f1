"""Every model after every chain of splitter stages runs in kernels, with the ids of the plain reference."""

import json
import lzma
import random
from pathlib import Path

import pytest
from drawn_files import drawn_text
from drawn_splitters import BEHAVIORS, MANY_CLASSES, MODELS, drawn_file, drawn_model, metaspace, split

import jittok
from jittok.common.pipeline.steps import REMOVED, Cut, Pattern
from jittok.files import read_pipeline
from jittok.kernels.jit import JIT
from jittok.kernels.pretokenize.compile import chain_of
from jittok.reference.pipeline import Runner

FILES, TEXTS = (12, 30) if JIT else (2, 8)


def check(content, texts, parse=True):
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    assert tok.runs == "kernels"
    wanted = [plain.encode(text, parse) for text in texts]
    assert tok.encode_batch(texts, parse_special=parse, threads=1).to_list() == wanted
    assert [tok.encode(text, parse_special=parse).tolist() for text in texts[::7]] == wanted[::7]


@pytest.mark.parametrize("kind", MODELS)
def test_a_drawn_file_gives_the_ids_of_the_reference(kind):
    for seed in range(FILES):
        draw = random.Random(f"{kind} {seed}")
        content = drawn_file(draw, kind)
        check(content, [drawn_text(draw) for _ in range(TEXTS)], bool(seed % 2))


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("behavior", BEHAVIORS)
@pytest.mark.parametrize("pattern", [r"ab|\d\d", r"(?<=c|b)(?=\d)|b(?!c)", r"a*b|\b", r"(?:ab)*c$|\d"])
def test_every_behavior_of_a_pattern_of_several_characters(pattern, behavior, invert):
    """Such as one that looks around, reads on from every place, or matches the empty text."""
    draw = random.Random(3)
    texts = ["?", "ab", "abab", "abc", "cab", "abcab", "c", "cc", "ccab", "abcc", "ababc", "cabab", "12", "c12", "12c"]
    model = {"type": "WordLevel", "unk_token": "?", "vocab": {text: k for k, text in enumerate(texts)}}
    stage = split({"Regex": pattern}, behavior, invert)
    content = json.dumps({"pre_tokenizer": stage, "model": model}).encode()
    check(content, ["".join(draw.choices(["ab", "c", "12", "1", " "], k=draw.randrange(9))) for _ in range(40)])


def test_words_longer_than_a_block_of_64_bytes_behave_as_short_ones():
    model = {
        "type": "WordLevel",
        "unk_token": "?",
        "vocab": {"?": 0, "a" * 70: 1, "b" * 200: 2, "a" * 70 + "b" * 200: 3},
    }
    text = ("a" * 70 + "b" * 200) * 5
    for behavior, each in [("Removed", [2]), ("MergedWithNext", [3]), ("Isolated", [1, 2])]:
        stage = split({"Regex": "a+"}, behavior)
        tok = jittok.load(json.dumps({"pre_tokenizer": stage, "model": model}).encode(), cache=False)
        assert tok.encode(text).tolist() == each * 5


def test_a_stage_that_no_automaton_runs_is_run_by_the_reference():
    draw = random.Random(5)
    assert chain_of((Cut(Pattern(MANY_CLASSES + r"\s+$"), REMOVED),)) is None
    for kind in MODELS:
        stages = [split({"Regex": MANY_CLASSES + r"\s+$"}, "Removed"), metaspace("always")]
        pre = {"type": "Sequence", "pretokenizers": stages}
        content = json.dumps({"pre_tokenizer": pre, "model": drawn_model(draw, kind)}).encode()
        check(content, [drawn_text(draw) + "  " * draw.randrange(2) for _ in range(TEXTS)])


def test_added_tokens_between_words_that_are_texts_for_the_next_stage_stay_where_they_are():
    words = ["?", "▁", "a", "▁a", "b", "▁b", "Ġ", "Ġa", "ab", "▁ab"]
    model = {"type": "WordLevel", "unk_token": "?", "vocab": {word: k for k, word in enumerate(words)}}
    token = {"id": len(words), "content": "<x>", "special": False, "normalized": False, "single_word": False}
    token |= {"lstrip": False, "rstrip": False}
    letters = split({"Regex": "b"}, "Isolated")
    spelled = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    for stages in ([{"type": "WhitespaceSplit"}, metaspace("always")], [letters, metaspace("always"), letters],
                   [spelled, split({"String": "Ġ"}, "MergedWithNext")]):  # fmt: skip
        file = {"pre_tokenizer": {"type": "Sequence", "pretokenizers": stages}, "model": model, "added_tokens": [token]}
        check(json.dumps(file).encode(), ["a b<x> <x><x>ab", "<x>", " <x> a", "", "  ", "ab<x>", "<x>b a<x>a", "aba"])


@pytest.mark.parametrize("size", [1, 5, 4094, 4095, 4096, 4097, 9000])
def test_the_best_path_of_a_long_word_is_that_of_the_reference(size):
    rows = [["<unk>", 0.0], ["a", -1.0], ["aa", -1.5], ["aaa", -2.75], ["b", -3.0], ["ab", -2.0], ["é", -1.0]]
    content = json.dumps({"model": {"type": "Unigram", "unk_id": 0, "vocab": rows}}).encode()
    draw = random.Random(size)
    check(content, ["".join(draw.choices("aaaabé中", k=size if JIT else min(size, 40))) for _ in range(3)])


def test_a_word_of_more_characters_than_wordpiece_looks_at_is_unknown():
    model = {"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "##", "max_input_chars_per_word": 3,
             "vocab": {"?": 0, "é": 1, "##é": 2, "##a": 3, "##": 4}}  # fmt: skip
    content = json.dumps({"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": model}).encode()
    tok = jittok.load(content, cache=False)
    assert tok.runs == "kernels"
    assert tok.encode("é éé ééa éééé ##a ## a").tolist() == [1, 1, 2, 1, 2, 3, 0, 3, 4, 0]


RECORDED = Path(__file__).parents[1] / "data" / "splitters.jsonl.xz"


def test_the_ids_are_those_that_tokenizers_gave():
    rows = [json.loads(line) for line in lzma.decompress(RECORDED.read_bytes()).splitlines()]
    assert len(rows) > 30
    for row in rows[:: 1 if JIT else 15]:
        tok = jittok.load(row["file"].encode(), cache=False)
        assert tok.runs == "kernels"
        assert tok.encode_batch(row["texts"], parse_special=True, threads=1).to_list() == row["ids"]
