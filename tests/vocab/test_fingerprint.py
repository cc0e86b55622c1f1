"""Two vocabularies have one fingerprint if and only if nothing can tell their ids, pieces or special tokens apart."""

import re

import pytest
from write_gguf import I8, U8, U32, Of, file_of, pair, vocab_file, write_gguf

from jittok.vocab import bundled_vocab, read_vocab

TOKENS = ["<unk>", "<s>", "</s>", "a", "b", "ab", "<|x|>"]


def mark(model="gpt2", tokens=TOKENS, /, **settings):
    base = {"token_type": [2, 3, 3, 1, 1, 1, 4], "merges": ["a b", "b a"]} if model == "gpt2" else {"scores": [0.0] * 7}
    return read_vocab(vocab_file(model, tokens, **{**base, **settings})).fingerprint


def test_a_fingerprint_has_32_hex_digits():
    assert re.fullmatch("[0-9a-f]{32}", mark())


@pytest.mark.parametrize(
    "settings",
    [
        {"tokens": [*TOKENS[:5], "ba", "<|x|>"]},
        {"tokens": [*TOKENS, "more"], "token_type": [2, 3, 3, 1, 1, 1, 4, 1]},
        {"tokens": ["<unk>", "<s>", "</s>", "b", "a", "ab", "<|x|>"]},
        {"token_type": [2, 3, 3, 1, 1, 1, 3]},
        {"merges": ["b a", "a b"]}, {"merges": ["a b"]}, {"merges": ["a b", "b a", "a a"]},
        {"pre": "default"}, {"pre": "qwen2"}, {"pre": "llama-bpe"}, {"model": "whitespace"}, {"model": "gemma4"},
        {"scores": [1.0] + [0.0] * 6}, {"bos_token_id": 1}, {"eos_token_id": 1}, {"padding_token_id": 3},
        {"add_bos_token": True}, {"add_eos_token": True}, {"add_space_prefix": True},
        {"general__name": "modern-bert", "tokens": [*TOKENS[:6], "[MASK]"]},
    ],
    ids=" ".join,
)  # fmt: skip
def test_whatever_can_change_an_id_changes_it(settings):
    assert mark(**settings) != mark()


@pytest.mark.parametrize(
    "settings",
    [
        {"general__name": "another"}, {"general__architecture": "qwen3"}, {"chat_template": "{{ x }}"},
        {"general__alignment": 64}, {"suppress_tokens": [3]}, {"bos_token_id": 4000},
        {"scores": [0.0] * 7}, {"scores": [-0.0] * 7}, {"scores": [0] * 7},
        {"token_type": [2, 3, 3, 1, 1, 1, 4, 1, 1]},
        {"merges": ["a b", "a b", "b a"]}, {"merges": ["nospace", "a b", "b a", ""]},
        {"merges": ["a b", "b a", "b a"]}, {"merges": ["a b", " a b", "a b b", "x ", "b a"]},
    ],
    ids=" ".join,
)  # fmt: skip
def test_whatever_cannot_change_an_id_does_not_change_it(settings):
    assert mark(**settings) == mark()


def test_the_order_of_keys_and_what_stands_behind_them_do_not_count():
    pairs = {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["a", "b"], "tokenizer.ggml.bos_token_id": 1}
    backwards = dict(reversed(pairs.items()))
    one, other = read_vocab(write_gguf(pairs)), read_vocab(write_gguf(backwards) + b"tensors")
    assert one.fingerprint == other.fingerprint
    packed = [pair(key, item) for key, item in pairs.items()]
    assert read_vocab(file_of(*packed, pair("zz", Of(U32, 1)), version=2)).fingerprint == one.fingerprint


def test_a_file_and_its_bytes_have_one_fingerprint(tmp_path):
    data = vocab_file("gpt2", TOKENS)
    path = tmp_path / "v.gguf"
    path.write_bytes(data)
    assert read_vocab(path).fingerprint == read_vocab(data).fingerprint


def test_a_charsmap_counts_and_its_type_does_not():
    marks = [mark("t5", precompiled_charsmap=Of(kind, [0, 0, 0, 0, 65, last])) for kind in (U8, I8) for last in (0, 1)]
    assert marks[0] == marks[2] != marks[1] == marks[3]


def test_neighbouring_texts_do_not_run_into_each_other():
    assert mark("llama", ["ab", "c"], scores=[0.0] * 2) != mark("llama", ["a", "bc"], scores=[0.0] * 2)
    assert mark(merges=["a bc d"]) != mark(merges=["a b", "c d"])
    assert mark(merges=["a b\n1 c d"]) != mark(merges=["a b", "c d"])
    assert mark(merges=["a b\n1", "c d"]) != mark(merges=["a b", "1\n1 c"])


def test_bundled_vocabularies_keep_their_fingerprints():
    # What users have recorded beside their data: a change here is a change for them.
    names = ("bert", "gpt-2", "mistral", "t5")
    oldest = {name: bundled_vocab(name, llama_cpp="0.3.36").fingerprint[:8] for name in names}
    assert oldest == {"bert": "763f277c", "gpt-2": "4b37363f", "mistral": "fa102195", "t5": "db251080"}
    found = {name: bundled_vocab(name, llama_cpp="b11739").fingerprint[:8] for name in names}
    assert found == {"bert": "f164ccae", "gpt-2": "8161ef1c", "mistral": "fa102195", "t5": "04487700"}
