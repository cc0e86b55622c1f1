"""The pre-tokenizer UnicodeScripts: words of one script each, as tokenizers cuts them, and what is said of it."""

import json
import random

import numpy as np
import pytest
from drawn_splitters import MODELS, drawn_model

import jittok
from jittok.common.pipeline.descriptions import in_words
from jittok.common.pipeline.steps import CutScripts
from jittok.common.unicode.libraries import scripts
from jittok.encode.file_plan import raw_marking
from jittok.files import read_pipeline
from jittok.kernels.jit import JIT
from jittok.kernels.pretokenize.automaton import compile_pattern
from jittok.kernels.pretokenize.compile import automaton_of_scripts, halves
from jittok.reference.pipeline import Runner
from jittok.reference.split import splitter
from jittok.reference.text import Piece

SCRIPTS = {"type": "UnicodeScripts"}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
ADDED = {"id": 900, "content": "[X]", "special": False, "normalized": False, "lstrip": False, "rstrip": False,
         "single_word": False}  # fmt: skip
WORDS = [
    ("", []), (" ", []), (" a", ["a"]), ("a ", ["a "]), ("a b", ["a b"]), ("1a", ["1", "a"]), ("1 2", ["1 2"]),
    ("どこで生れ。Yes", ["どこで生れ", "。", "Yes"]), ("Apples are りんご 林檎", ["Apples are ", "りんご 林檎"]),
    ("a. ж", ["a", ". ", "ж"]), ("  aж  ", ["a", "ж  "]), ("\u0301a", ["\u0301", "a"]), ("aー b", ["a", "ー ", "b"]),
    ("漢ーかカ", ["漢ーかカ"]), ("\u0378a", ["a"]), ("a\u0378ж", ["a\u0378", "ж"]), ("\u0378 ", []),
    ("\nж", ["\n", "ж"]), ("a\U0001f600b", ["a", "\U0001f600", "b"]),
    ("\U00012000\U0001e900", ["\U00012000", "\U0001e900"]),
    ("a\u20bfb", ["a\u20bfb"]), ("a\ue000\U0010ffffж", ["a\ue000\U0010ffff", "ж"]),
]  # fmt: skip
"""Texts, and the words of tokenizers 0.23.3."""


def cut(text):
    return [word.text for word in splitter(CutScripts())(Piece(text, None))]


def table():
    starts, numbers = scripts()
    return np.repeat(numbers, np.diff(starts, append=0x110000))


def drawn_texts(draw, count):
    """Texts of characters of all scripts, the first and the last ones of each, and of any."""
    numbers = table()
    numbers[0xD800:0xE000] = 255
    ends = [np.flatnonzero(numbers == k)[[0, -1]].tolist() for k in range(136)]
    found = []
    for _ in range(count):
        few = [draw.choice(draw.choice(ends)) for _ in range(draw.randrange(1, 4))] + [0x20, 0x61, 0xE9]
        parts = [chr(draw.choice(few)) * draw.choice([1, 1, 2, 70]) for _ in range(draw.randrange(12))]
        found.append("".join(parts))
    return found


def file(*stages, kind="WordLevel", **parts):
    pre = {"type": "Sequence", "pretokenizers": [*stages]}
    model = drawn_model(random.Random(1), kind)
    return json.dumps({"pre_tokenizer": pre, "model": model, **parts}).encode()


@pytest.mark.parametrize(("text", "words"), WORDS)
def test_words_are_those_of_tokenizers(text, words):
    assert cut(text) == words
    vocab = {"?": 0} | {word: k for k, word in enumerate(dict.fromkeys(w for _, ws in WORDS for w in ws), 1)}
    model = {"type": "WordLevel", "vocab": vocab, "unk_token": "?"}
    tok = jittok.load(json.dumps({"pre_tokenizer": SCRIPTS, "model": model}).encode(), cache=False)
    assert tok.runs == "kernels"
    assert tok.encode(text).tolist() == [vocab[word] for word in words]


def test_every_character_is_of_the_script_that_tokenizers_says():
    library = pytest.importorskip("tokenizers").pre_tokenizers.UnicodeScripts()
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    for at in range(0, len(points), 300 if JIT else 30_000):
        text = "a".join(map(chr, points[at : at + 300])) + "漢"
        assert cut(text) == [word for word, _ in library.pre_tokenize_str(text)], hex(points[at])


def test_scripts_are_numbered_as_they_come_and_kana_are_ideographs():
    starts, numbers = scripts()
    assert starts[0] == 0
    assert (np.diff(starts) > 0).all()
    assert (numbers[1:] != numbers[:-1]).all()
    firsts = [int(np.flatnonzero(numbers == k)[0]) for k in range(1, 136)]
    assert firsts == sorted(firsts)
    assert int(numbers.max()) == 135
    own = table()
    assert len({int(own[ord(c)]) for c in "漢かカー々"}) == 1
    assert own[ord(" ")] == 0 < own[ord("\t")] == own[ord("1")]


def test_the_two_automata_tell_all_scripts_apart_and_are_those_of_patterns():
    one, other = halves()
    assert (one.first, one.stop, other.stop) == (1, other.first, 136)
    small = automaton_of_scripts(type(one)(1, 3))
    numbers = table()
    sets = {}
    for name, inside in (("any", numbers == 0), ("1", numbers == 1), ("2", numbers == 2), ("rest", numbers > 2)):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], inside, [0]])))
        sets[name] = "".join(f"\\U{a:08x}-\\U{b - 1:08x}" for a, b in edges.reshape(-1, 2).tolist())
    written = "|".join(f"[{sets[k]}][{sets[k]}{sets['any']}]*" for k in ("1", "2", "rest"))
    wanted = compile_pattern(written, 0x110000)
    width = small.width
    assert (wanted.width, wanted.transitions.size) == (width, small.transitions.size)
    kinds = [k.classes[k.starts.searchsorted([0x378, 0x0, 0x61, 0x3B1], "right") - 1] for k in (small, wanted)]

    def matches(automaton, classes, symbols):
        state, said = 1, []
        for symbol in symbols:
            entry = int(automaton.transitions[state * width + (width - 1 if symbol == 4 else classes[symbol])])
            said.append(entry & 1)
            state = entry >> 1
        return said, state == 0

    draw = random.Random(2)
    for _ in range(500):
        symbols = [draw.randrange(4) for _ in range(draw.randrange(6))] + [4]
        assert matches(small, kinds[0], symbols) == matches(wanted, kinds[1], symbols)


@pytest.mark.parametrize("kind", MODELS)
def test_kernels_give_the_ids_of_the_reference(kind):
    draw = random.Random(kind)
    texts = drawn_texts(draw, 60 if JIT else 6)
    chains = [[SCRIPTS], [{"type": "WhitespaceSplit"}, SCRIPTS, {"type": "Digits", "individual_digits": True}],
              [SCRIPTS, SCRIPTS, BYTES]]  # fmt: skip
    for stages in chains:
        content = file(*stages, kind=kind, added_tokens=[ADDED])
        tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
        assert tok.runs == "kernels"
        marked = [a + "[X]" + b for a, b in zip(texts[::5], texts[1::5], strict=False)]
        wanted = [plain.encode(text) for text in (*texts, *marked)]
        assert tok.encode_batch([*texts, *marked], threads=1).to_list() == wanted
        assert [tok.encode(text).tolist() for text in texts[::9]] == wanted[: len(texts) : 9]


def test_each_two_scripts_are_cut_apart_by_kernels():
    numbers = table()
    firsts = [chr(int((numbers == k).argmax())) for k in range(1, 136)]
    vocab = {"?": 0} | {c: k for k, c in enumerate(firsts, 1)} | {firsts[0] + firsts[0]: 200}
    model = {"type": "WordLevel", "vocab": vocab, "unk_token": "?"}
    tok = jittok.load(json.dumps({"pre_tokenizer": SCRIPTS, "model": model}).encode(), cache=False)
    for k in range(0, 135, 1 if JIT else 40):
        others = [c for c in firsts if c != firsts[k]]
        got = tok.encode(firsts[k].join(others)).tolist()
        assert got == [vocab[c] for c in firsts[k].join(others)]
    assert all(raw_marking((half,)) is not None for half in halves())


def test_spans_leave_out_what_is_dropped():
    vocab = {"?": 0, "a ": 1, "ж": 2, "é": 3}
    content = {"pre_tokenizer": SCRIPTS, "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "?"}}
    tok = jittok.load(json.dumps(content).encode(), cache=False)
    found = tok.align("  a жé")
    assert found.ids.tolist() == [1, 2, 3]
    assert found.spans.tolist() == [[2, 4], [4, 6], [6, 8]]


def test_trace_and_info_say_what_it_does():
    tok = jittok.load(file(SCRIPTS), cache=False)
    said = in_words(CutScripts())
    assert said.startswith("split between scripts")
    found = tok.trace(" a\u0436 中")
    assert [row["words"] for row in found.split] == [["a", "\u0436 ", "中"]]


def test_a_file_read_again_from_the_cache_has_the_same_ids(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(file(SCRIPTS, BYTES, kind="BPE"))
    ids = [jittok.load(path).encode("the ab é 中文 жшю").tolist() for _ in range(2)]
    assert ids[0] == ids[1]
    assert jittok.load(path).fingerprint != jittok.load(file(BYTES, kind="BPE"), cache=False).fingerprint
