"""`as_tiktoken` answers as `tiktoken.Encoding` does. Some cases are tiktoken's own tests in our words."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jittok
from jittok.compat import as_tiktoken

tiktoken = pytest.importorskip("tiktoken")


@pytest.fixture(scope="module")
def both(files):
    """A facade and what it stands for."""
    mine = as_tiktoken(jittok.load(files("r50k_base"), cache=False))
    theirs = tiktoken.Encoding(
        "r50k_base", pat_str=mine._pat_str, mergeable_ranks=mine._mergeable_ranks, special_tokens=mine._special_tokens
    )
    return mine, theirs


TEXTS = [
    "", "hello world", "0" * 17, " Ġ除", "我非常渴望与人工智能一起工作", "நடிகர் சூர்யா", "today\n  \n",
    "'rer", "👍", "\ud83d\udc4d", "\ud83d",
    "<|endoftext|>", "hello <|endoftext|> green cow", " \x850", "a" * 3000, "<|endoftext|><|endoftext|>",
]  # fmt: skip


@pytest.mark.parametrize(
    "call",
    [
        lambda enc, text: enc.encode(text),
        lambda enc, text: enc.encode_ordinary(text),
        lambda enc, text: enc.encode(text, allowed_special="all"),
        lambda enc, text: enc.encode(text, allowed_special={"<|endoftext|>", "<|no such|>"}),
        lambda enc, text: enc.encode(text, disallowed_special=()),
        lambda enc, text: enc.encode(text, disallowed_special={"hello"}),
        lambda enc, text: enc.encode_to_numpy(text.encode("utf-8", "ignore").decode(), disallowed_special=()).tolist(),
        lambda enc, text: enc.encode_batch([text, "a"], allowed_special="all"),
        lambda enc, text: enc.encode_ordinary_batch([text, "a"], num_threads=2),
        lambda enc, text: enc.decode(enc.encode(text, allowed_special="all")),
        lambda enc, text: enc.decode_tokens_bytes(enc.encode_ordinary(text)),
        lambda enc, text: enc.decode_with_offsets(enc.encode(text, allowed_special="all")),
        lambda enc, text: enc.decode_batch([enc.encode_ordinary(text)] * 2),
        lambda enc, text: enc.decode_bytes_batch([enc.encode_ordinary(text)] * 2),
        lambda enc, text: enc.encode_single_token(text),
    ],
)
def test_texts(both, same, call):
    for text in TEXTS:
        same(lambda enc, text=text: call(enc, text), *both)


@pytest.mark.parametrize(
    "call",
    [
        lambda enc: enc.encode(None), lambda enc: enc.encode(b"bytes"), lambda enc: enc.encode_ordinary(None),
        lambda enc: enc.encode_batch(["a"], num_threads=0), lambda enc: enc.decode([10**9]),
        lambda enc: enc.decode([-1]),
        lambda enc: enc.decode_single_token_bytes(10**9), lambda enc: enc.decode_single_token_bytes(50256),
        lambda enc: enc.encode_single_token(b" hello"), lambda enc: enc.encode_single_token("no token of it"),
        lambda enc: enc.decode([0xFF, 30]), lambda enc: enc.decode([128], "strict"),
        lambda enc: enc.decode([128], "ignore"),
        lambda enc: enc.decode_with_offsets([128]), lambda enc: enc.token_byte_values()[:300],
        lambda enc: enc.eot_token,
        lambda enc: sorted(enc.special_tokens_set), lambda enc: [enc.is_special_token(k) for k in (0, 50256)],
        lambda enc: (enc.n_vocab, enc.max_token_value), repr,
        lambda enc: enc.encode_to_numpy("a").dtype.name,
    ],
)  # fmt: skip
def test_vocabulary_and_errors(both, same, call):
    same(call, *both)


@given(st.binary(max_size=40))
def test_bytes_of_any_kind(both, raw):
    mine, theirs = both
    assert mine._encode_bytes(raw) == theirs._encode_bytes(raw)
    assert mine.decode_bytes(mine._encode_bytes(raw)) == raw


@given(st.text(max_size=60))
def test_any_text(both, text):
    mine, theirs = both
    assert mine.encode(text, allowed_special="all") == theirs.encode(text, allowed_special="all")
    assert mine.encode_ordinary(text) == mine.encode(text, disallowed_special=())
    assert mine.decode(mine.encode_ordinary(text)) == text


def test_each_token_has_its_bytes(both):
    mine, theirs = both
    for token in range(0, mine.n_vocab, 97):
        assert mine.decode_single_token_bytes(token) == theirs.decode_single_token_bytes(token)
        assert mine.encode_single_token(mine.decode_single_token_bytes(token)) == token


def test_the_message_names_the_token_and_both_ways_out(both):
    with pytest.raises(
        ValueError, match=r"Encountered text corresponding to disallowed special token '<\|endoftext\|>'"
    ) as told:
        both[0].encode("a <|endoftext|>")
    assert "allowed_special={'<|endoftext|>', ...}" in str(told.value)
    assert "disallowed_special=()" in str(told.value)


def test_a_pickle_is_the_same(both):
    again = pickle.loads(pickle.dumps(both[0]))
    assert again.encode("hello world") == both[0].encode("hello world")
    assert again.name == both[0].name


def test_what_is_not_there_names_the_call_instead(both):
    with pytest.raises(NotImplementedError, match=r"Encoding\.encode_with_unstable .*tok\.explain"):
        both[0].encode_with_unstable("hello")
    gguf = as_tiktoken(jittok.bundled("gpt-2"))
    with pytest.raises(NotImplementedError, match=r"_mergeable_ranks .*tok\.token_bytes"):
        _ = gguf._mergeable_ranks
    with pytest.raises(NotImplementedError, match=r"_pat_str .*tok\.explain"):
        _ = gguf._pat_str
    with pytest.raises(NotImplementedError, match=r"tok\.encode\(data\)"):
        gguf._encode_bytes(b"\xff")


def test_a_gguf_has_the_same_ids(both):
    gguf, mine = as_tiktoken(jittok.bundled("gpt-2")), both[0]
    for text in TEXTS:
        assert gguf.encode(text, allowed_special="all") == mine.encode(text, allowed_special="all")
    assert gguf.decode([15496, 50256]) == mine.decode([15496, 50256])
    assert gguf.eot_token == 50256


@pytest.mark.parametrize("name", ["t5", "bert", "mistral"])
def test_only_bytes_can_be_a_tiktoken_encoding(name):
    with pytest.raises(TypeError, match="expected byte-level tokens"):
        as_tiktoken(jittok.bundled(name))


@pytest.mark.parametrize("thing", [None, "gpt-2", 3])
def test_only_a_tokenizer_can(thing):
    with pytest.raises(TypeError, match=r"expected a jittok\.Tokenizer"):
        as_tiktoken(thing)


def test_types_of_results(both):
    ids = both[0].encode("hello world")
    assert {type(token) for token in ids} == {int}
    assert both[0].encode_to_numpy("hello").dtype == np.uint32
