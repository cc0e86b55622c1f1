"""Files whose texts are normalized, cut or marked before the kernels: the ids are those of the plain reference."""

import base64
import json
import random
import tracemalloc

import numpy as np
import pytest
from charsmap import build_charsmap
from drawn_files import drawn_text
from drawn_pipelines import drawn_pipeline
from drawn_unigram import LETTERS, MAP, drawn_unigram, drawn_words

import jittok
from jittok.common.pipeline import steps
from jittok.common.pipeline.growth import MOST_UNMEASURED
from jittok.encode import steps as prepare
from jittok.encode.buffers import Workspace
from jittok.files import read_pipeline
from jittok.kernels.jit import JIT
from jittok.reference import normalize as reference_normalize
from jittok.reference.pipeline import Runner, aligned

FILES, TEXTS = (60, 40) if JIT else (6, 12)


@pytest.mark.parametrize("seed", range(FILES))
def test_a_drawn_file_gives_the_ids_of_the_reference(seed):
    draw = random.Random(seed)
    content = drawn_pipeline(draw)
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    texts = [drawn_text(draw) for _ in range(TEXTS)]
    assert tok.runs == "kernels"
    for parse in (False, True):
        rows = tok.encode_batch(texts, parse_special=parse, threads=1).to_list()
        for text, ids in zip(texts, rows, strict=True):
            assert ids == plain.encode(text, parse), text
        assert [tok.encode(text, parse_special=parse).tolist() for text in texts[::7]] == rows[::7]


MAP_BYTES = build_charsmap(MAP)
MAPPED = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(MAP_BYTES).decode()}
RUNS = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
STRIP = {"type": "Strip", "strip_left": True, "strip_right": True}
MARKS = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
BEFORE = {
    "deberta": [STRIP],
    "deberta uncased": [{"type": "Lowercase"}, STRIP],
    "albert": [{"type": "Replace", "pattern": {"String": "``"}, "content": '"'}, {"type": "NFKD"},
               {"type": "StripAccents"}, {"type": "Lowercase"}],
}  # fmt: skip
"""What is before a character map, by the models that have it so."""


@pytest.mark.parametrize("kind", BEFORE)
def test_a_character_map_behind_other_steps_gives_the_ids_of_the_reference(kind):
    for seed in range(3 if JIT else 1):
        draw = random.Random(seed)
        content = {**json.loads(drawn_unigram(draw)), "pre_tokenizer": MARKS}
        content["normalizer"] = {"type": "Sequence", "normalizers": [*BEFORE[kind], MAPPED, RUNS]}
        _as_the_reference(json.dumps(content).encode(), [drawn_words(draw) for _ in range(3 * TEXTS)])


@pytest.mark.parametrize("fallback", [False, True])
def test_pieces_that_merge_behind_a_character_map_give_the_ids_of_the_reference(fallback):
    draw = random.Random(3)
    texts = ["<unk>", "▁", *LETTERS, *(f"<0x{byte:02X}>" for byte in range(256 if fallback else 0))]
    merges = {(draw.choice(["▁", *LETTERS]), draw.choice(LETTERS)) for _ in range(60)}
    vocab = dict.fromkeys([*texts, *sorted(a + b for a, b in merges)])
    content = {
        "normalizer": {"type": "Sequence", "normalizers": [MAPPED, RUNS]}, "pre_tokenizer": MARKS,
        "model": {"type": "BPE", "vocab": {text: k for k, text in enumerate(vocab)}, "merges": sorted(merges),
                  "unk_token": "<unk>", "fuse_unk": True, "byte_fallback": fallback},
    }  # fmt: skip
    _as_the_reference(json.dumps(content).encode(), [drawn_words(draw) for _ in range(5 * TEXTS)])


@pytest.mark.parametrize("unknown", ["x", "<u>"])
def test_an_unknown_token_that_the_text_itself_has_is_not_joined(unknown):
    texts = ["<u>", "x", "<", "u", ">", "▁", "a", "b", "ab", "u>"]
    content = {
        "pre_tokenizer": MARKS,
        "model": {"type": "BPE", "vocab": {text: k for k, text in enumerate(texts)}, "unk_token": unknown,
                  "merges": [["a", "b"], ["u", ">"], ["<", "u>"]], "fuse_unk": True},
    }  # fmt: skip
    plain = Runner(read_pipeline(json.dumps(content).encode()))
    assert len(plain.encode(2 * unknown)) == 1 + 2
    _as_the_reference(json.dumps(content).encode(), ["xx", "<u><u>", "axx☃☃x", "ab☃<u><u>☃☃", "<u x <u", "☃☃ ☃"])


@pytest.mark.parametrize("kind", ["BPE", "WordPiece"])
def test_a_file_whose_first_step_is_a_character_map_loads_and_is_aligned(kind):
    """Steps are compared with others, and looked up."""
    texts = ["<unk>", "▁", "a", "##a", "##b", "b", "ab"]
    model = {"type": kind, "vocab": {text: k for k, text in enumerate(texts)}, "unk_token": "<unk>"}
    own = {
        "BPE": {"merges": [["a", "b"]]},
        "WordPiece": {"max_input_chars_per_word": 100, "continuing_subword_prefix": "##"},
    }
    words = None if kind == "BPE" else {"type": "BertPreTokenizer"}
    content = {"normalizer": MAPPED, "pre_tokenizer": words, "model": model | own[kind]}
    tok = jittok.load(json.dumps(content).encode(), cache=False)
    found, plain = tok.align("ab ab"), aligned(tok.vocab, b"ab ab", False, False)
    assert found.ids.tolist() == tok.encode("ab ab").tolist() == [token.id for token in plain]
    assert found.spans.tolist() == [[token.start, token.stop] for token in plain]


def test_steps_with_arrays_are_compared_by_what_they_hold():
    step, same = (steps.Clusters(np.frombuffer(MAP_BYTES, np.uint8)) for _ in range(2))
    other = steps.Clusters(step.charsmap[:-1])
    assert step == same
    assert (step != same) is False
    assert hash(step) == hash(same)
    assert step != other
    assert step != steps.Prepend("▁")


def test_a_longer_token_with_the_unknown_ones_text_is_only_itself():
    rows = [["<unk>", 0.0], ["<unk>ABC", -100.0], ["A", -2.0], ["▁", -3.0], ["a", -2.0]]
    model = {"type": "Unigram", "vocab": rows, "unk_id": 0}
    content = {"normalizer": RUNS, "pre_tokenizer": MARKS, "model": model}
    _as_the_reference(json.dumps(content).encode(), ["<unk>ABC", "a<unk>", "<unk>ABCa <unk>AB", "ABC<unk>ABC", "a b"])


def _as_the_reference(content: bytes, texts: list[str]) -> None:
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    assert tok.runs == "kernels"
    wanted = [plain.encode(text, False) for text in texts]
    assert tok.encode_batch(texts, threads=1).to_list() == wanted
    assert [tok.encode(text).tolist() for text in texts[::9]] == wanted[::9]


def test_texts_that_lie_far_apart_are_normalized_as_they_are_alone():
    content = json.dumps({
        "normalizer": {"type": "NFKD"},
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": {"<unk>": 0, "...": 1, "A": 2}, "unk_token": "<unk>"},
    })  # fmt: skip
    tok = jittok.load(content.encode(), cache=False)
    texts = [f"{'A ' * size}\u2026 \uff21 {'b' * 20}" for size in (3, 9000, 5, 20000)]
    rows = tok.encode_batch(texts, threads=1).to_list()
    assert rows == [[2] * size + [1, 2, 0] for size in (3, 9000, 5, 20000)]


@pytest.mark.parametrize("split", [True, False])
def test_a_mark_that_was_replaced_and_is_put_in_again_cuts(split):
    texts = [f"<0x{byte:02X}>" for byte in range(256)] + ["▁", "a", "b", "_", "▁a", "a▁", "▁a▁", "▁b", "_a"]
    merges = [["a", "▁"], ["▁", "a▁"], ["▁", "a"], ["▁", "b"], ["_", "a"]]
    front = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": split}
    cut = {"type": "Split", "pattern": {"String": "▁"}, "behavior": "MergedWithNext", "invert": False}
    stages = [front] if split else [front, cut]
    content = json.dumps({
        "normalizer": {"type": "Replace", "pattern": {"String": "▁"}, "content": "_"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": stages},
        "model": {"type": "BPE", "vocab": {text: k for k, text in enumerate(texts)}, "merges": merges,
                  "byte_fallback": True},
    })  # fmt: skip
    tok = jittok.load(content.encode(), cache=False)
    assert tok.runs == "kernels"
    assert [texts[token] for token in tok.encode("a a▁ b").tolist()] == ["▁a", "▁a", "_", "▁b"]


def test_a_byte_whose_spelling_has_tokens_of_bytes_becomes_these():
    texts = ["?", "a", "<0xC3>", "<0xA9>", "<0xC4>"]  # \u00e9 is the byte E9, and U+0120 a space
    content = json.dumps({
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
        "model": {"type": "BPE", "vocab": {text: k for k, text in enumerate(texts)}, "merges": [], "unk_token": "?",
                  "byte_fallback": True},
    })  # fmt: skip
    assert jittok.load(content.encode(), cache=False).encode("a \u9000").tolist() == [1, 2, 3, 0, 0, 0]


def test_a_word_that_is_a_token_only_without_its_unknown_characters_is_none():
    vocab = {"a": 0, "b": 1, "c": 2, "abc": 3, "ab": 4}
    model = {"type": "BPE", "vocab": vocab, "merges": [["a", "b"]], "ignore_merges": True}
    tok = jittok.load(json.dumps({"model": model}).encode(), cache=False)
    assert [tok.encode(text).tolist() for text in ("abc", "ab\u00e9c", "abc\u00e9")] == [[3], [4, 2], [4, 2]]


def test_of_added_tokens_that_are_normalized_to_one_text_the_last_is_found():
    flags = {"special": False, "normalized": True, "single_word": False, "lstrip": False, "rstrip": False}
    content = json.dumps({
        "added_tokens": [{"id": k + 1, "content": text, **flags} for k, text in enumerate(["AB", "ab", "x\u0301"])],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}, {"type": "StripAccents"}]},
        "model": {"type": "BPE", "vocab": {"c": 0}, "merges": []},
    })  # fmt: skip
    assert jittok.load(content.encode(), cache=False).encode("cABcAb\u0301cX").tolist() == [0, 2, 0, 2, 0, 3]


FIRST = {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": True}
DIGITS = {"type": "Digits", "individual_digits": True}


def precompiled(**rules):
    charsmap = build_charsmap({key.encode(): image.encode() for key, image in rules.items()})
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}


@pytest.mark.parametrize(
    ("normalizer", "text", "wanted"),
    [
        ({"type": "NFKD"}, "\u00bd a", "_1_\u2044_2_a"),  # all of one character that is first
        ({"type": "NFKC"}, "\u00bda\u00bd", "_1_\u2044_2a1\u20442"),
        ({"type": "NFC"}, "a\u03011", "_\u00e11"),
        (precompiled(x="", y="a"), "x1", "_1"),  # the library forgets what vanishes before anything is written
        (precompiled(x="", y="a"), "xxy1x1", "_a11"),
        ({"type": "Replace", "pattern": {"String": "x"}, "content": ""}, "x1", "1"),
    ],
)
def test_a_mark_is_put_in_front_of_what_came_from_the_beginning_of_a_text(normalizer, text, wanted):
    vocab = {c: k for k, c in enumerate("_12a\u2044\u00e1")}
    content = json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": normalizer,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [DIGITS, FIRST]},
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    })  # fmt: skip
    tok = jittok.load(content.encode(), cache=False)
    assert tok.encode(text).tolist() == [vocab[c] for c in wanted]
    tokenizers = pytest.importorskip("tokenizers")
    assert tokenizers.Tokenizer.from_str(content).encode(text).ids == [vocab[c] for c in wanted]


@pytest.mark.parametrize("rules", [{"\u0301": "a"}, {"\u0301": ""}, {"x": "1"}, {"\u2581": "1"}, {"\u2581\u0301": "2"}])
def test_marks_behind_a_mark_of_spaces_are_mapped_alone(rules):
    vocab = {c: k for k, c in enumerate("_12a\u2581\u0301")}
    content = json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": precompiled(**rules),
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    }).encode()  # fmt: skip
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    for text in ("\u2581\u0301", "a\u2581\u0301\u2581", "\u2581\u0301\u0301", "\u2581x"):
        assert tok.encode(text).tolist() == plain.encode(text)
    library = pytest.importorskip("tokenizers").Tokenizer.from_buffer(content)
    assert tok.encode("\u2581\u0301").tolist() == library.encode("\u2581\u0301").ids


def test_a_character_that_becomes_much_takes_no_room_where_it_is_not():
    content = json.dumps({
        "normalizer": {"type": "Replace", "pattern": {"String": "\u00e9"}, "content": "a" * 2 * MOST_UNMEASURED},
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": {"<unk>": 0, "b": 1}, "unk_token": "<unk>"},
    })  # fmt: skip
    tok = jittok.load(content.encode(), cache=False)
    assert tok.runs == "kernels"
    tok.encode("b")
    text = "b " * 100_000
    tracemalloc.start()
    ids = tok.encode(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MOST_UNMEASURED * len(text) / 2
    assert ids.tolist() == [1] * 100_000
    assert tok.encode("b \u00e9").tolist() == [1, 0]


@pytest.mark.skipif(not JIT, reason="a real vocabulary takes long in the interpreter")
@pytest.mark.parametrize("name", ["syn-bpe-affixes", "syn-bpe-metaspace-first", "syn-wordlevel", "pix2tex"])
def test_hard_texts_of_a_real_file_give_the_ids_of_the_reference(recorded, name):
    draw, found = random.Random(3), recorded(name)
    tok, plain = jittok.load(found.path, cache=False), Runner(read_pipeline(found.path))
    texts = [drawn_text(draw) for _ in range(100)]
    assert tok.runs == "kernels"
    assert tok.encode_batch(texts).to_list() == [plain.encode(text) for text in texts]


def test_a_prepared_file_is_kept_and_recalled(tmp_path, monkeypatch):
    monkeypatch.setenv("JITTOK_CACHE_DIR", str(tmp_path / "cache"))
    draw = random.Random(4)
    for k in range(3):
        path = tmp_path / f"{k}.json"
        path.write_bytes(drawn_pipeline(draw))
        first = jittok.load(path)
        texts = [drawn_text(draw) for _ in range(12)]
        rows = first.encode_batch(texts).to_list()
        again = jittok.load(path)
        assert again.runs == first.runs == "kernels"
        assert again.encode_batch(texts).to_list() == rows


def test_a_line_break_of_two_characters_is_one_cluster_of_a_character_map():
    texts = {text: k for k, text in enumerate(["<unk>", "a", "b", " "])}
    model = {"type": "WordLevel", "vocab": texts, "unk_token": "<unk>"}
    content = {"normalizer": MAPPED, "pre_tokenizer": {"type": "FixedLength", "length": 1}, "model": model}
    _as_the_reference(json.dumps(content).encode(), ["a\r\nb", "\r\n", "\r \n", "a\n\rb", "\r\n\r\n\t b"])


LINE_MAPS = [
    {"\r": " ", "\n": " "}, {"\r": "x", "\n": "y"}, {"\n": " "}, {"\r": " "}, {"\r\n": "z"}, {"\r\n": "", "a": "b"},
    {"\r\n": " ", "\r": "x"}, {"\r": "", "\n": " "},
]  # fmt: skip
"""Character maps of line ends: tokenizers looks up CR LF as one cluster, by its shortest key."""


@pytest.mark.parametrize("rules", LINE_MAPS, ids=repr)
@pytest.mark.parametrize("kind", ["Unigram", "BPE"])
def test_a_line_break_is_one_cluster_for_every_model(kind, rules):
    pieces = ["<unk>", *"abxyz", " ", "\r", "\n", "\u2581", "\u2581a", "\r\n", "a\r", "ab"]
    if kind == "Unigram":
        model = {"type": kind, "unk_id": 0, "vocab": [[text, -k / 10] for k, text in enumerate(pieces)]}
    else:
        vocab = {text: k for k, text in enumerate(pieces) if len(text) == 1 or text == "<unk>"}
        model = {"type": kind, "unk_token": "<unk>", "vocab": vocab, "merges": []}
    stripped = {"type": "Strip", "strip_left": False, "strip_right": True}
    draw = random.Random(5)
    texts = ["".join(draw.choices(["a", "b", " ", "\r\n", "\r", "\n"], k=draw.randrange(1, 8))) for _ in range(40)]
    for behind in ([RUNS], [stripped, RUNS]):
        normalizer = {"type": "Sequence", "normalizers": [precompiled(**rules), *behind]}
        content = {"normalizer": normalizer, "pre_tokenizer": MARKS, "model": model}
        _as_the_reference(json.dumps(content).encode(), [*texts, *(text * 40 for text in texts[:5])])


def test_no_text_with_line_breaks_leaves_the_kernels(monkeypatch):
    content = {"normalizer": MAPPED, "pre_tokenizer": MARKS, "model": {
        "type": "BPE", "unk_token": "<unk>", "vocab": {"<unk>": 0, "a": 1, "b": 2, "\u2581": 3}, "merges": [],
    }}  # fmt: skip
    tok = jittok.load(json.dumps(content).encode(), cache=False)
    monkeypatch.setattr(prepare, "by_python", None)
    assert len(tok.encode("a b\r\n" * 100)) > 100


def test_a_character_map_is_read_once_for_all_texts_that_the_reference_normalizes(monkeypatch):
    made, own = [], reference_normalize.character_map

    def counted(data, lenient):
        made.append(len(data))
        return own(data, lenient)

    monkeypatch.setattr(reference_normalize, "character_map", counted)
    rows = [["<unk>", 0.0], ["a", -1.0], ["\u2581", -2.0]]
    content = {
        "normalizer": {"type": "Sequence", "normalizers": [precompiled(**{"a": "a", "\u0600": "a"}), RUNS]},
        "pre_tokenizer": MARKS, "model": {"type": "Unigram", "unk_id": 0, "vocab": rows},
    }  # fmt: skip
    tok = jittok.load(json.dumps(content).encode(), cache=False)
    for _ in range(5):
        tok.encode("a\u0600a")
    assert len(made) <= 1


@pytest.mark.parametrize("count", [100, 3200])
def test_text_with_many_tokens_is_searched_a_few_times(count, monkeypatch):
    """Each search begins at the start of the text again, with more capacity."""
    flags = {"lstrip": False, "rstrip": False, "single_word": False, "special": False, "normalized": True}
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    content = {"added_tokens": [{"id": 1, "content": "<x>", **flags}], "normalizer": {"type": "Lowercase"},
               "pre_tokenizer": {"type": "WhitespaceSplit"}, "model": model}  # fmt: skip
    tok = jittok.load(json.dumps(content).encode(), cache=False)
    asked, search = [], prepare.cut_leftmost
    tok.encode_batch(["a"])
    run = Workspace.run
    monkeypatch.setattr(Workspace, "run", lambda self, kernel, *args: asked.append(kernel) or run(self, kernel, *args))
    assert tok.encode_batch(["a <X> " * count])[0].tolist() == [0, 1] * count
    assert 0 < asked.count(search) < 16
