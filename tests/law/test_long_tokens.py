"""Long tokens: the ids are those of the plain reference, and no walk costs the text times the length of a token."""

import json
import random
import time

import numpy as np
import pytest
from small_files import sentencepiece_of
from write_gguf import vocab_file

import jittok
from jittok.files import read_pipeline
from jittok.kernels.jit import JIT, U8, OutI32, OutI64, frozen, kernel
from jittok.kernels.memory import get_i32, window
from jittok.kernels.structures import long_keys
from jittok.kernels.structures.long_keys import LONG, NONE, find_long, long_value, next_long, open_long
from jittok.reference.pipeline import Runner
from jittok.reference.tokenize import tokenize

A = LONG + 40
TEXTS = ["a" * A, "a" * (A + 1), "b" + "ab" * A, "ab" * A, "a" * 3 * A + "b", "ba" * A + "c"]
"""Long tokens that overlap, begin one another, and have little between them and others."""


def load(**parts):
    return jittok.load(json.dumps({"version": "1.0", "added_tokens": [], **parts}).encode(), cache=False)


def drawn(draw):
    parts = [*TEXTS, "a" * (A - 1), "a", "b", "c", " ", "ab" * 20, "é"]
    return "".join(draw.choice(parts) for _ in range(draw.randrange(1, 7)))


WORDS = {"type": "WhitespaceSplit"}
MARK = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
RUNS = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
BERT = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True}
PIECES = ["?", "a", "b", "c", "▁", "aa", "ab", *TEXTS, "▁" + TEXTS[0]]
UNIGRAM = {"type": "Unigram", "unk_id": 0, "vocab": [[text, -1.0 - k / 8] for k, text in enumerate(PIECES)]}
WORDPIECE = {
    "type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "##", "max_input_chars_per_word": 1 << 30,
    "vocab": {text: k for k, text in enumerate([*PIECES, *("##" + text for text in PIECES)])},
}  # fmt: skip
LEVEL = {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1}}
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "special": False}


def added(normalized):
    return [{"id": 2 + k, "content": text, "normalized": normalized, **FLAGS} for k, text in enumerate(TEXTS)]


FILES = {
    "wordpiece": {"normalizer": BERT, "pre_tokenizer": {"type": "BertPreTokenizer"}, "model": WORDPIECE},
    "wordpiece of words": {"pre_tokenizer": WORDS, "model": WORDPIECE},
    "unigram": {"normalizer": RUNS, "pre_tokenizer": MARK, "model": UNIGRAM},
    "unigram of words": {"pre_tokenizer": WORDS, "model": UNIGRAM},
    "added": {"added_tokens": added(False), "model": LEVEL},
    "normalized added": {"added_tokens": added(True), "normalizer": {"type": "Lowercase"}, "model": LEVEL},
}


@pytest.mark.parametrize("kind", FILES)
def test_files_with_long_tokens_give_the_ids_of_the_reference(kind):
    content = json.dumps({"version": "1.0", **FILES[kind]}).encode()
    tok, plain, draw = jittok.load(content, cache=False), Runner(read_pipeline(content)), random.Random(kind)
    assert tok.runs == "kernels"
    texts = [drawn(draw) for _ in range(30 if JIT else 3)]
    wanted = [plain.encode(text) for text in texts]
    assert tok.encode_batch(texts, threads=1).to_list() == wanted
    assert [tok.encode(text).tolist() for text in texts[::5]] == wanted[::5]


def gguf(kind):
    if kind == "rwkv":
        tokens = [*(f"\\x{byte:02x}" for byte in range(256)), *TEXTS]
        return vocab_file(kind, tokens)
    if kind.startswith("wpm"):
        part = ["\xe9"] if kind != "wpm" else []  # of a character, so that the tokens have no alphabet
        tokens = ["[UNK]", "a", "b", "c", "▁a", "▁b", *TEXTS, *("▁" + text for text in TEXTS)]
        return vocab_file("bert", [*(text.encode() for text in tokens), *(text.encode("latin-1") for text in part)])
    scores = [-1.0 - k / 8 for k in range(len(PIECES))]
    return vocab_file("t5", PIECES, scores=scores, token_type=[2] + [1] * (len(PIECES) - 1))


@pytest.mark.parametrize("kind", ["rwkv", "wpm", "wpm without an alphabet", "ugm"])
def test_ggufs_with_long_tokens_give_the_ids_of_the_reference(kind):
    content, draw = gguf(kind), random.Random(kind)
    tok = jittok.load(content, cache=False)
    texts = [drawn(draw) for _ in range(20 if JIT else 2)]
    wanted = [tokenize(tok.vocab, text.encode()) for text in texts]
    assert tok.encode_batch(texts, threads=1).to_list() == wanted


NORMAL, UNKNOWN, CONTROL, USER = 1, 2, 3, 4
USERS = [text for text in TEXTS if "c" not in text] + ["a" * 20, "ab" * 20]


def pieces(kind, users, squeeze=True):
    """A sentencepiece model with user-defined pieces: kind 1 is Unigram, 2 BPE."""
    head = [("<unk>", UNKNOWN, 0.0), ("<s>", CONTROL, 0.0), ("</s>", CONTROL, 0.0)]
    normal = [(text, NORMAL, -1.0 - k / 8) for k, text in enumerate(["▁", "a", "b", "c", "é", "▁a", "aa"])]
    return sentencepiece_of(kind, [*head, *normal, *((text, USER, 0.0) for text in users)], False, True, squeeze)


@pytest.mark.parametrize("squeeze", [False, True])
@pytest.mark.parametrize("kind", [1, 2])
def test_sentencepiece_models_with_long_user_defined_pieces_give_the_ids_of_the_reference(kind, squeeze):
    content = pieces(kind, USERS, squeeze)
    tok, plain, draw = jittok.load(content, cache=False), Runner(read_pipeline(content)), random.Random(kind)
    assert (tok.runs == "kernels") == (kind == 2)
    texts = [drawn(draw) + drawn(draw) for _ in range(20 if JIT else 2)]
    wanted = [plain.encode(text) for text in texts]
    assert tok.encode_batch(texts, threads=1).to_list() == wanted
    assert [tok.encode(text).tolist() for text in texts[::5]] == wanted[::5]
    library = pytest.importorskip("sentencepiece")
    assert library.SentencePieceProcessor(model_proto=content).encode(texts) == wanted


@pytest.mark.skipif(not JIT, reason="seconds in the interpreter")
@pytest.mark.parametrize("size", [10_000, 100_000])
@pytest.mark.parametrize("kind", ["Unigram", "BPE", "wpm without an alphabet"])
def test_other_models_take_linear_time_of_beginnings_of_a_long_token(kind, size):
    """Of 10 and 100 KB, at every place."""
    long = "a" * size + "b"
    if kind.startswith("wpm"):
        tokens = [b"[UNK]", *(text.encode() for text in ("▁a", "a", long, "▁" + long)), b"\xe9"]
        tok, own = jittok.load(vocab_file("bert", tokens), cache=False), 3
    else:
        tok, own = jittok.load(pieces(1 if kind == "Unigram" else 2, [long]), cache=False), 10
    tok.encode("a" * (1000 if kind == "Unigram" else 100_000))  # its kernels are loaded
    text = "a" * (100_000 if kind == "Unigram" else 500_000)  # no kernel takes scores as high as that of a long piece
    start = time.process_time()
    assert tok.encode(text).size > 0
    assert tok.encode(text + long)[-1] == own
    assert time.process_time() - start < 4


@kernel
def list_found(own: long_keys.LongKeys, data: U8, found: OutI32, pairs: OutI64, width: int) -> int:
    """(value, bytes) of the tokens at each place, longest first; `width` numbers a place."""
    opened, places = open_long(own), window(found)
    find_long(opened, window(data), 0, data.size, places, 0)
    for at in range(data.size):
        node, k = get_i32(places, at), at * width
        while node != NONE:
            value, size = long_value(opened, node)
            pairs[k], pairs[k + 1] = value, size
            node, k = next_long(opened, node), k + 2
    return 0


def test_what_begins_at_each_place_is_found_longest_first():
    draw = random.Random(1)
    texts = {draw.choice((b"a", b"b")) * (LONG + draw.randrange(1, 5)): k for k in range(6)}
    texts |= {bytes(draw.choices(b"ab", k=LONG + 1)): 6, (b"ab" * LONG)[: LONG + 3]: 7, b"short": 8}
    own, text = long_keys.long_keys(texts), b"b" * 300 + b"ab" * 300 + b"a" * 300 + list(texts)[-3] + b"c"
    data, found = frozen(np.frombuffer(text, np.uint8), np.uint8), np.zeros(len(text), np.int32)
    pairs = np.zeros(len(text) * 2 * len(texts), np.int64)
    list_found(own, data, found, pairs, 2 * len(texts))
    for at, row in enumerate(pairs.reshape(len(text), -1, 2).tolist()):
        seen = [(value, size) for value, size in row if size]
        wanted = [(value, len(key)) for key, value in texts.items() if len(key) > LONG and text.startswith(key, at)]
        assert seen == sorted(wanted, key=lambda pair: -pair[1])


@pytest.mark.skipif(not JIT, reason="seconds in the interpreter")
@pytest.mark.parametrize("kind", FILES)
def test_a_text_of_beginnings_of_a_long_token_takes_linear_time(kind):
    """A token of 100 KB, of which the text nearly has one at every place: it took 12 to 90 s."""
    size = 100_000
    long = "a" * size + "b"
    parts = json.loads(json.dumps(FILES[kind]).replace(TEXTS[4], long))
    tok = load(**parts)
    tok.encode("a" * 1000)
    start = time.process_time()
    assert tok.encode("a" * (3 * size)).size > 0
    assert time.process_time() - start < 3
