"""Keys, defaults and refusals of a whole vocabulary, as llama.cpp has them."""

import struct

import numpy as np
import pytest
from write_gguf import ARRAY, BOOL, I8, I16, I32, STRING, U8, U32, U64, Of, Raw, vocab_file, write_gguf

from jittok.errors import MalformedVocab, UnsupportedVocab
from jittok.tokenizer import Tokenizer
from jittok.vocab import load as loading
from jittok.vocab import read_vocab
from jittok.vocab.keys import pre_names

WORDS = [f"w{k}" for k in range(120)]
IDS = ["bos_id", "eos_id", "unk_id", "sep_id", "pad_id", "mask_id"]
FLAGS = ["add_bos", "add_eos", "add_sep", "add_space_prefix", "clean_spaces", "escape_whitespaces"]
MODELS = ["llama", "bert", "gpt2", "hybriddna", "whitespace", "gemma4", "t5", "rwkv", "plamo2", "plamo3", "test"]


def vocab(model="llama", tokens=WORDS, /, **settings):
    return read_vocab(vocab_file(model, tokens, **settings))


def malformed(message, model="llama", tokens=WORDS, /, **settings):
    with pytest.raises(MalformedVocab, match=message):
        vocab(model, tokens, **settings)


@pytest.mark.parametrize(
    ("model", "type", "ids", "flags"),
    [
        ("llama", "spm", (1, 2, 0, -1, -1, -1), "add_bos add_space_prefix escape_whitespaces"),
        ("bert", "wpm", (101, -1, 100, 102, 0, 103), "add_bos add_sep clean_spaces escape_whitespaces"),
        ("gpt2", "bpe", (11, 11, -1, -1, -1, -1), "clean_spaces"),
        ("hybriddna", "bpe", (11, 11, -1, -1, -1, -1), "clean_spaces"),
        ("whitespace", "bpe", (11, 11, -1, -1, -1, -1), "clean_spaces"),
        ("gemma4", "bpe", (-1, -1, -1, -1, -1, -1), "add_bos clean_spaces escape_whitespaces"),
        ("t5", "ugm", (-1, 1, 2, -1, 0, -1), "add_eos escape_whitespaces"),
        ("rwkv", "rwkv", (-1, -1, -1, -1, -1, -1), "escape_whitespaces"),
        ("plamo2", "plamo2", (1, 2, 0, -1, 3, -1), "escape_whitespaces"),
        ("plamo3", "plamo3", (1, 2, 0, -1, 3, -1), "escape_whitespaces"),
        ("test", "test", (-1, -1, -1, -1, -1, -1), "escape_whitespaces"),
    ],
)
def test_each_model_has_its_defaults(model, type, ids, flags):
    found = vocab(model)
    assert found.type == type
    assert tuple(getattr(found, name) for name in IDS) == ids
    assert {name for name in FLAGS if getattr(found, name)} == set(flags.split())
    assert (found.default_unk_id, found.default_pad_id) == (ids[2], ids[4])
    assert (found.lowercase, found.strip_accents, found.remove_extra_whitespaces) == (True, True, False)


@pytest.mark.parametrize("model", MODELS)
def test_a_default_outside_the_vocabulary_is_no_token(model):
    found = vocab(model, ["a"])
    assert all(getattr(found, name) in (-1, 0) for name in IDS)
    assert vocab(model, ["a"], bos_token_id=0).bos_id == 0


def test_a_key_outside_the_vocabulary_leaves_the_default():
    assert vocab(bos_token_id=120).bos_id == 1
    assert vocab(bos_token_id=2**32 - 1).bos_id == 1
    assert vocab(bos_token_id=119).bos_id == 119
    assert vocab("gemma4", eos_token_id=500).eos_id == -1


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("bos", "bos_id"), ("eos", "eos_id"), ("eot", "eot_id"), ("eom", "eom_id"), ("unknown", "unk_id"),
        ("seperator", "sep_id"), ("padding", "pad_id"), ("mask", "mask_id"), ("fim_pre", "fim_prefix_id"),
        ("fim_suf", "fim_suffix_id"), ("fim_mid", "fim_middle_id"), ("fim_pad", "fim_pad_id"),
        ("fim_rep", "fim_rep_id"), ("fim_sep", "fim_sep_id"), ("prefix", "fim_prefix_id"),
        ("suffix", "fim_suffix_id"), ("middle", "fim_middle_id"),
    ],
)  # fmt: skip
def test_each_id_has_its_key_which_is_a_u32(key, field):
    name = f"{key}_token_id"
    assert getattr(vocab(**{name: 7}), field) == 7
    malformed(f"{name}: found i32, expected a value of type u32", **{name: Of(I32, 7)})
    malformed(f"{name}: found u64", **{name: Of(U64, 7)})


def test_the_old_names_of_fill_in_the_middle_win():
    assert vocab(fim_pre_token_id=5, prefix_token_id=6).fim_prefix_id == 6
    assert vocab(fim_pre_token_id=5, prefix_token_id=600).fim_prefix_id == 5


@pytest.mark.parametrize("model", ["llama", "gpt2", "t5", "rwkv"])
@pytest.mark.parametrize("name", ["add_bos", "add_eos", "add_sep", "add_space_prefix"])
def test_flags_follow_their_keys_which_are_bools(model, name):
    key = name if name == "add_space_prefix" else f"{name}_token"
    for wanted in (True, False):
        assert getattr(vocab(model, **{key: wanted}), name) is wanted
    malformed(f"{key}: found u8, expected a value of type bool", model, **{key: Of(U8, 1)})


def test_other_settings_follow_their_keys():
    assert vocab("t5", remove_extra_whitespaces=True).remove_extra_whitespaces
    plain = vocab("bert", normalizer__lowercase=False)
    assert (plain.lowercase, plain.strip_accents) == (False, False)
    mixed = vocab("bert", normalizer__lowercase=False, normalizer__strip_accents=True)
    assert (mixed.lowercase, mixed.strip_accents) == (False, True)
    assert vocab(suppress_tokens=[3, -1, 119, 120]).suppressed_ids == (3, 119)


def test_gemma4_adds_bos_whatever_the_file_says():
    assert vocab("gemma4", add_bos_token=False).add_bos
    assert vocab("gpt2", pre="gemma4", add_bos_token=False).add_bos
    assert vocab("gemma4", pre="llama-bpe").pre_type == 50
    assert not vocab("gpt2", pre="llama-bpe", add_bos_token=False).add_bos


SETS = {
    "ignore_merges": "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano tekken glm4 glm5 youtu minicpm5 granite-embed-multi-97m",  # noqa: E501
    "add_bos": "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano tekken chameleon gemma4 granite-embed-multi-311m",  # noqa: E501
    "add_sep": "jina-v1-en jina-v2-code roberta-bpe",
    "escape_whitespaces": "gemma4 granite-embed-multi-311m sarvam-moe mmbert",
    "clean_spaces": "default falcon mpt starcoder llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano jina-v1-en jina-v2-code roberta-bpe gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert exaone4 refact stablelm2 megrez olmo dbrx smaug-bpe glm4 glm5 chatglm-bpe jais codeshell bloom gpt3-finnish exaone minerva-7b exaone-moe jais-2 gemma4 granite-embed-multi-311m minicpm5 whitespace mellum2 mmbert",  # noqa: E501
}


@pytest.mark.parametrize("name", sorted(pre_names()))
def test_each_pre_name_sets_its_flags_and_no_other(name):
    found = vocab("gpt2", pre=name or None)
    for flag, names in SETS.items():
        assert getattr(found, flag) == (name in names.split() or (flag == "clean_spaces" and not name)), flag
    assert found.lowercase == (name != "whitespace")
    assert found.bos_id == (-1 if name in ("chatglm-bpe", "glm4", "glm5") else 11)
    assert found.pre == (name or None)


@pytest.mark.parametrize(
    ("name", "number"),
    [("", 0), ("default", 0), ("llama-bpe", 1), ("deepseek-llm", 2), ("gpt-2", 7), ("qwen2", 11), ("tekken", 20),
     ("gpt-4o", 29), ("kimi-k2", 37), ("qwen35", 46), ("gemma4", 50), ("sarvam-moe", 51), ("whitespace", 53),
     ("ufakzeka", 59)],
)  # fmt: skip
def test_pre_names_have_the_numbers_of_llama_cpp(name, number):
    assert vocab("gpt2", pre=name).pre_type == number


def test_a_bos_key_counts_where_the_pre_name_takes_the_default_away():
    assert vocab("gpt2", pre="glm4", bos_token_id=11).bos_id == 11


@pytest.mark.parametrize("name", ["llama4x", "GPT-2", "gpt2", " "])
def test_unknown_pre_names_are_not_supported(name):
    with pytest.raises(UnsupportedVocab, match=f"tokenizer.ggml.pre: found '{name}', expected a name that"):
        vocab("gpt2", pre=name)


def test_only_bpe_looks_at_the_pre_name():
    assert vocab("llama", pre="nobody knows").pre == "nobody knows"


@pytest.mark.parametrize("model", ["", "gpt-2", "LLAMA", "bpe"])
def test_unknown_models_are_not_supported(model):
    with pytest.raises(UnsupportedVocab, match=f"tokenizer.ggml.model: found '{model}', expected a name that"):
        vocab(model)


def test_a_file_without_a_model_is_malformed():
    with pytest.raises(MalformedVocab, match=r"tokenizer.ggml.model: found nothing, .*a later part of a split model"):
        read_vocab(write_gguf({"general.architecture": "llama"}))


@pytest.mark.parametrize("name", ["none", "no_vocab"])
def test_a_vocabulary_of_type_none_has_as_many_tokens_as_its_key_says(name):
    pairs = {"general.architecture": "qwen2", "tokenizer.ggml.model": name}
    assert len(read_vocab(write_gguf(pairs))) == 0
    found = read_vocab(write_gguf({**pairs, "qwen2.vocab_size": 9}))
    assert (found.type, len(found), found.tokens) == ("none", 9, [b""] * 9)
    with pytest.raises(MalformedVocab, match=r"qwen2.vocab_size: found 4294967295, expected at most"):
        read_vocab(write_gguf({**pairs, "qwen2.vocab_size": 2**32 - 1}))


@pytest.mark.parametrize(
    ("key", "item", "found", "expected"),
    [
        ("model", Of(U32, 1), "u32", "a value of type string"),
        ("pre", ["gpt-2"], "an array of string", "a value of type string"),
        ("general__name", Of(U32, 1), "u32", "a value of type string"),
        ("general__architecture", Of(U32, 1), "u32", "a value of type string"),
        ("general__alignment", Of(I32, 32), "i32", "a value of type u32"),
        ("token_type_count", Of(I32, 2), "i32", "a value of type u32"),
        ("tokens", "abc", "string", "an array of string"),
        ("tokens", [1, 2], "an array of i32", "an array of string"),
        ("merges", [1], "an array of i32", "an array of string"),
        ("scores", Of(U8, [1] * 120), "an array of u8", "an array of f32 or i32"),
        ("token_type", Of(U32, [1] * 120), "an array of u32", "an array of i32"),
        ("suppress_tokens", Of(U32, [1]), "an array of u32", "an array of i32"),
        ("normalizer__lowercase", Of(U8, 1), "u8", "a value of type bool"),
        ("normalizer__strip_accents", "yes", "string", "a value of type bool"),
        ("remove_extra_whitespaces", Of(U32, 1), "u32", "a value of type bool"),
    ],
)
def test_wrong_types_are_malformed(key, item, found, expected):
    name = key.removeprefix("general__").replace("__", ".")
    malformed(f"{name}: found {found}, expected {expected}", "gpt2", **{key: item})


@pytest.mark.parametrize("alignment", [0, 3, 33, 2**32 - 1])
def test_an_alignment_is_a_power_of_two(alignment):
    malformed(f"general.alignment: found {alignment}, expected a power of two", general__alignment=alignment)
    assert vocab(general__alignment=64).type == "spm"


def test_merges_are_required_of_bpe_but_not_of_kimi():
    malformed("tokenizer.ggml.merges: found nothing, expected the list of merges", "gpt2", merges=None)
    malformed("tokenizer.ggml.merges: found nothing", "gemma4", merges=None, pre="kimi-k2")
    assert vocab("gpt2", merges=None, pre="kimi-k2").merges == {}


def test_merge_lines_are_cut_at_the_first_space_behind_the_first_byte():
    found = vocab("gpt2", merges=["a b", " c d", "e f g", "nospace", "a b", "a  b", "x "])
    assert found.merges[b"a", b"b"] == 0
    assert found.merges[b" c", b"d"] == 1
    assert found.merges[b"e", b"f g"] == 2
    assert found.merges[b"a", b" b"] == 5
    assert found.merges[b"x", b""] == 6


def test_missing_tokens_are_malformed():
    with pytest.raises(MalformedVocab, match=r"tokenizer.ggml.tokens: found nothing, expected the list of tokens"):
        read_vocab(write_gguf({"tokenizer.ggml.model": "llama"}))


@pytest.mark.parametrize("model", [model for model in MODELS if model not in ("test", "bert", "t5")])
def test_an_empty_vocabulary_is_one(model):
    assert len(vocab(model, [])) == 0


@pytest.mark.parametrize("model", ["test", "bert", "t5"])
def test_an_empty_vocabulary_is_malformed_where_llama_cpp_refuses_it(model):
    malformed("tokenizer.ggml.tokens: found 0 tokens, expected 1 to", model, [])


def test_a_token_of_100_kb_loads_and_is_found():
    long = "a" * 100_000
    for model, settings in (("llama", {}), ("t5", {}), ("rwkv", {}), ("gpt2", {"merges": []}), ("bert", {})):
        found = vocab(model, [*WORDS, long], token_type=[1] * 120 + [4], **settings)
        tok = Tokenizer(found)
        assert found.max_token_length == 100_000
        assert tok.encode(f"{long}", parse_special=True).tolist() == [120], model
        assert tok.decode([120]) == long


def test_tokens_are_c_strings_and_empty_ones_get_a_name():
    assert vocab(tokens=["", "a\0b", "\0", "c"]).tokens == [b"[EMPTY_0]", b"a", b"[EMPTY_2]", b"c"]


def test_equal_tokens_are_malformed_and_both_are_named():
    malformed(r"tokens\[3\]: found b'b', expected distinct texts: token 1 has the same", tokens=["a", "b", "c", "b"])
    malformed(r"tokens\[1\]: found b'a', .* token 0 has the same", tokens=["a", "a\0b"])
    malformed(r"tokens\[1\]: found b'\[EMPTY_0\]', .* token 0 has the same", tokens=["", "[EMPTY_0]"])


def test_too_many_and_too_long_tokens_are_malformed(monkeypatch):
    monkeypatch.setattr(loading, "MOST_TOKENS", 3)
    monkeypatch.setattr(loading, "MOST_MERGES", 1)
    monkeypatch.setattr(loading, "LONGEST_TOKEN", 5)
    assert len(vocab(tokens=["a", "b", "c"])) == 3
    malformed("found 4 tokens, expected 1 to 3 tokens", tokens=["a", "b", "c", "d"])
    malformed("found 2 merges, expected at most 1", "gpt2", ["a"], merges=["a b", "c d"])
    assert vocab(tokens=["12345"]).max_token_length == 5
    malformed(r"tokens\[1\]: found 6 bytes, expected at most 5 bytes", tokens=["a", "123456"])


@pytest.mark.parametrize("key", ["scores", "token_type"])
def test_lists_shorter_than_the_tokens_are_malformed_and_longer_ones_are_cut(key):
    item = [1.0] if key == "scores" else [1]
    malformed(f"{key}: found 119 values, expected one for each of 120 tokens", **{key: item * 119})
    assert len(vocab(**{key: item * 130}).scores) == 120


def test_scores_may_be_integers():
    assert vocab(tokens=["a", "b"], scores=[-3, 7]).scores.tolist() == [-3.0, 7.0]


def test_a_score_that_is_no_number_is_malformed_in_spm_alone():
    scores = [0.0] * 119 + [float("nan")]
    malformed(r"scores\[119\]: found not a number", scores=scores)
    assert np.isnan(vocab("t5", scores=scores).scores[119])
    assert vocab(scores=[float("-inf")] * 120).scores[0] == -np.inf


def test_a_charsmap_has_a_trie_of_the_length_it_says():
    for size, message in ((b"", "0 bytes"), (b"\1\0\0", "3 bytes"), (b"\1\0\0\0x", "5 bytes, length 1")):
        malformed(f"precompiled_charsmap: found {message}", "t5", precompiled_charsmap=Of(U8, list(size)))
    malformed("length 4294967295", "t5", precompiled_charsmap=Of(U8, [255] * 9))
    for kind in (U8, I8):
        found = vocab("t5", precompiled_charsmap=Of(kind, [1, 0, 0, 0, 65, 0]))
        assert found.charsmap.tobytes() == b"\1\0\0\0A\0"
    malformed("found an array of i16, expected an array of i8 or u8", "t5", precompiled_charsmap=Of(I16, [1]))
    assert vocab("llama", precompiled_charsmap=Of(U8, [])).charsmap.size == 0


def test_kmers_behind_oov_lose_their_mark_when_spelled_and_keep_it_when_found():
    mark = "\ue000"
    found = vocab("hybriddna", [f"AC{mark}", "<oov>", f"ACG{mark}", mark, "T"])
    assert found.tokens == [f"AC{mark}".encode(), b"<oov>", b"ACG", mark.encode(), b"T"]
    assert found.keys == [f"AC{mark}".encode(), b"<oov>", f"ACG{mark}".encode(), mark.encode(), b"T"]
    assert found.ids[f"ACG{mark}".encode()] == 2
    assert vocab("gpt2", ["<oov>", f"ACG{mark}"]).tokens[1] == f"ACG{mark}".encode()
    assert vocab("hybriddna", [f"ACG{mark}"]).tokens == [f"ACG{mark}".encode()]


def test_byte_tokens_need_a_text_to_read_the_byte_from():
    for model in ("llama", "t5", "gpt2"):
        malformed(r"tokens\[0\]: found b'ab', expected a text like <0x0A>", model, ["ab"], token_type=[6])
        assert len(vocab(model, ["abc"], token_type=[6])) == 1
    assert len(vocab("rwkv", ["ab"], token_type=[6])) == 1
    malformed("expected no byte token in a WordPiece vocabulary", "bert", ["<0x0A>"], token_type=[6])


def test_a_text_that_is_no_byte_is_refused_of_byte_tokens_alone():
    for kind in (2, 3, 4, 5):  # unknown, control, user-defined, unused
        assert len(vocab("llama", ["<unk>", "a"], token_type=[2, kind])) == 2


def test_tokens_beyond_unicode_were_malformed_where_their_piece_is_decoded():
    beyond, last = b"a\xf4\x90\x80\x80", b"\xf4\x8f\xbf\xbf"
    with pytest.raises(MalformedVocab, match=r"tokens\[1\]: found .*, expected no code point above U\+10FFFF"):
        read_vocab(vocab_file("gpt2", [last, beyond]), llama_cpp="0.3.36")
    marked = b"[UNK_BYTE_0xefbfbd" + beyond + b"]"
    assert Tokenizer(vocab("gpt2", [last, beyond])).token_to_piece(1) == b"a" + 4 * marked
    assert len(vocab("gpt2", [beyond], token_type=[4])) == 1  # user-defined: its text is its piece
    assert len(vocab("llama", [beyond])) == 1
    assert len(vocab("gemma4", [beyond])) == 1
    assert len(read_vocab(vocab_file("gemma4", [beyond]), llama_cpp="0.3.36")) == 1  # whose pieces are not decoded
    assert len(vocab("gpt2", [b"\xf4\x90\x80", b"\x80"])) == 2  # the sequence does not end in its token


def test_types_without_an_attribute_have_none():
    found = vocab("rwkv", list("abcdefghi"), token_type=[0, 1, 2, 3, 4, 5, 6, 7, -1])
    assert found.file_attributes.tolist() == [0, 4, 1, 8, 16, 2, 32, 0, 0]
    assert vocab("rwkv", ["a"]).file_attributes.tolist() == [4]


def test_arrays_of_a_vocabulary_are_read_only():
    found = vocab("gpt2")
    for name in ("token_bytes", "token_offsets", "scores", "attributes", "special_tokens", "merge_bytes"):
        assert not getattr(found, name).flags.writeable, name


def test_a_repr_says_what_it_is():
    assert repr(vocab("gpt2")) == "Vocab('vocabulary in memory', bpe, pre='gpt-2', 120 tokens)"


def test_names_that_are_no_utf8_do_no_harm():
    found = vocab("llama", general__name=b"\xff\xfe", pre=b"\xff")
    assert (found.name, found.pre) == ("\ufffd\ufffd", "\ufffd")


def test_a_wrong_value_among_tokens_is_found_wherever_it_stands():
    lying = Raw(ARRAY, struct.pack("<iQ", STRING, 2) + struct.pack("<Q", 1) + b"a" + struct.pack("<Q", 2**63))
    malformed("string 1 of 2 past the end of the file", tokens=WORDS, scores=None, zz=lying)
    assert vocab(add_bos_token=Raw(BOOL, b"\x09")).add_bos
