"""Whoever writes what another library has, or misspells a name, is told exactly what to write."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jittok


@pytest.fixture(scope="module")
def tok() -> Any:
    return jittok.bundled("gpt-2")


CALLS = {
    "encode": ("text", True),
    "encode_batch": (["text"], True),
    "count": ("text", True),
    "count_batch": (["text"], True),
    "align": ("text", True),
    "align_batch": (["text"], True),
    "trace": ("text", True),
    "encode_parts": ("text", True),
    "decode": ([1, 2], False),
    "decode_bytes": ([1, 2], False),
    "decode_batch": ([[1, 2]], False),
}
KEYWORDS = [
    ("add_special_tokens", True, True, "write add_special=True"),
    ("add_special_tokens", False, True, "write add_special=False"),
    ("allowed_special", "all", True, "parse_special=True"),
    ("disallowed_special", (), True, "parse_special=True"),
    ("bos", True, True, "add_special=True"),
    ("add_eos", True, True, "tok.bos_id, \\*ids"),
    ("special", True, True, "write parse_special=True"),
    ("return_tensors", "pt", True, "torch.tensor\\(ids\\)"),
    ("truncation", True, True, "ids\\[:n\\]"),
    ("max_length", 8, True, "truncate=True"),
    ("padding", True, True, "to_padded"),
    ("out_type", int, True, "ids.tolist\\(\\)"),
    ("return_offsets_mapping", True, True, "tok.align"),
    ("text_pair", "b", True, "encode_pair"),
    ("is_split_into_words", True, True, "join the words"),
    ("ad_special", True, True, "did you mean add_special=\\?"),
    ("zzz", 1, True, "expected .*add_special=, parse_special=, errors="),
    ("skip_special_tokens", True, False, "write skip_special=True"),
    ("special", True, False, "write unparse_special=True"),
    ("remov_special", True, False, "did you mean remove_special=\\?"),
]


@pytest.mark.parametrize(("name", "value", "encodes", "says"), KEYWORDS)
def test_every_call_says_what_to_write_for_another_librarys_keyword(
    tok: Any, name: str, value: Any, encodes: bool, says: str
) -> None:
    own = {"encode_batch": ("truncation", "max_length", "text_pair")}  # which it has, the last under another name
    for call, (given, encodes_too) in CALLS.items():
        if encodes_too is encodes and name not in own.get(call, ()):
            with pytest.raises(
                TypeError, match=rf"^Tokenizer\.{call}\(\) got an unexpected keyword argument '{name}': .*{says}"
            ):
                getattr(tok, call)(given, **{name: value})


def test_a_wrong_keyword_is_refused_whatever_else_is_asked(tok: Any) -> None:
    tok.encode("warm")
    for more in ({}, {"add_special": True}, {"threads": 2}, {"errors": "replace"}):
        with pytest.raises(TypeError, match="write add_special=False"):
            tok.encode("warm", add_special_tokens=False, **more)


def test_rows_say_what_to_write_for_the_words_of_transformers(tok: Any) -> None:
    for name, value, says in (
        ("stride", 3, "write overlap=3"),
        ("return_overflowing_tokens", True, "write windows=True"),
        ("truncation_side", "left", "write side='left'"),
        ("text_pair", ["b"], "write pairs="),
        ("padding", True, "to_padded"),
        ("return_token_type_ids", True, "rows.types"),
    ):
        with pytest.raises(TypeError, match=says):
            tok.encode_batch(["a"], max_length=4, **{name: value})
    rows = tok.encode_batch(["a"], max_length=4)
    for name, value, says in (("pad_to_multiple_of", 8, "write multiple_of=8"), ("pad_token_id", 0, "write pad_id=0")):
        with pytest.raises(TypeError, match=says):
            rows.to_padded(**{name: value})


def test_padding_says_what_to_write(tok: Any) -> None:
    rows = tok.encode_batch(["a", "b c"])
    with pytest.raises(TypeError, match=r"no padding token; expected an id: .*pad_id=tok.eos_id or pad_id=0"):
        rows.to_padded(pad_id=tok.pad_id)
    for name, value, says in (
        ("max_length", 3, "write length=3"),
        ("truncation", True, "write truncate=True"),
        ("padding_side", "left", "write side='left'"),
        ("return_tensors", "pt", "torch.tensor"),
    ):
        with pytest.raises(TypeError, match=says):
            rows.to_padded(pad_id=0, **{name: value})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["a"], "text: found list, expected str or bytes: encode_batch takes many texts"),
        (("a", "b"), "found tuple, .*encode_batch"),
        (np.array(["a"]), "found ndarray, .*encode_batch"),
        ((text for text in "ab"), "found generator, .*encode_batch"),
        (None, "text: found NoneType, expected str or bytes$"),
    ],
)
def test_one_text_is_asked_for_where_many_are_given(tok: Any, given: Any, says: str) -> None:
    for call in (tok.encode, tok.count, tok.align, tok.trace):
        with pytest.raises(TypeError, match=says):
            call(given)


def test_many_texts_are_asked_for_where_one_is_given(tok: Any) -> None:
    for call in (tok.encode_batch, tok.count_batch, tok.align_batch):
        with pytest.raises(TypeError, match=r"texts: found one str, .*: \[text\], or encode\(text\)"):
            call("a text")
        with pytest.raises(TypeError, match=r"document 1: found list, .*a batch is a flat sequence"):
            call(["a", ["b"]])


def test_what_is_no_row_of_ids_says_what_to_write(tok: Any) -> None:
    for given, says in (
        (tok.encode_batch(["Hello", "you"]), "a TokenArray of 2 rows, .*decode_batch\\(rows\\)"),
        (tok.encode_batch(["Hello you", "you"]), "a TokenArray of 2 rows, .*decode_batch\\(rows\\)"),
        (tok.align("Hello"), "found Alignment, .*decode\\(found.ids\\)"),
        ({"input_ids": [1]}, "found dict, .*\\['input_ids'\\]"),
        (15496, r"found int, .*write \[15496\]"),
        (np.int64(5), r"found int64, .*write \[5\]"),
        ("15496", "found str, .*encode takes text"),
        (None, "found NoneType, expected a sequence of integers"),
        ([[1], [2]], "decode_batch takes rows"),
        ([[1], [2, 3]], "decode_batch takes rows"),
    ):
        for call in (tok.decode, tok.decode_bytes):
            with pytest.raises(TypeError, match=says):
                call(given)
    for rows in ([15496, 11], tok.encode("Hello")):
        with pytest.raises(TypeError, match=r"rows: found an id as row 0, .*decode\(ids\) takes one row"):
            tok.decode_batch(rows)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpt-2", r"write jittok\.bundled\('gpt-2'\)"),
        ("gpt2", r"did you mean jittok\.bundled\('gpt-2'\)\?"),
        ("GPT_2", r"did you mean jittok\.bundled\('gpt-2'\)\?"),
        ("meta-llama/Llama-3.1-8B", r"repository of Hugging Face: jittok\.load\('hf:meta-llama/Llama-3\.1-8B'\)"),
        ("cl100k_base", r"from_tiktoken\(tiktoken\.get_encoding\('cl100k_base'\)\)"),
        ("https://host/tokenizer.json", "download it first"),
        ('{"version": "1.0"}', r"write load\(text\.encode\(\)\)"),
        ('{"version": "1.0"}' * 500, r"write load\(text\.encode\(\)\)"),
        ("tokeniser.json", r"did you mean 'tokenizer\.json'\?"),
        ("no/folder/of.gguf", "expected a tokenizer file, a folder with one"),
    ],
)  # fmt: skip
def test_a_name_of_no_file_says_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tokenizer.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match=says) as found:
        jittok.load(name)
    assert str(found.value.filename)[:200] == name[:200]


def test_a_name_of_no_bundled_vocabulary_says_what_to_write() -> None:
    for name in ("gpt2", "GPT-2", "gpt_2"):
        with pytest.raises(ValueError, match="did you mean 'gpt-2'"):
            jittok.bundled(name)
    with pytest.raises(ValueError, match=r"jittok\.load\(path\) reads other"):
        jittok.bundled("llama-3")
    for call in (jittok.load, jittok.bundled):
        with pytest.raises(TypeError, match="hf:org/name is a repository"):
            call("gpt-2", revision="main")
        with pytest.raises(TypeError, match=r"did you mean cache_bytes=\?"):
            call("gpt-2", cache_byte=1)


def test_a_name_of_other_packages_says_what_to_write() -> None:
    for name, says in (
        ("laod", "did you mean load"),
        ("get_encoding", "from_tiktoken"),
        ("AutoTokenizer", r"jittok\.load\(path\)"),
        ("from_pretrained", r"jittok\.load\(path\)"),
        ("tokenize", r"tok\.encode\(text\)"),
    ):
        with pytest.raises(AttributeError, match=f"module 'jittok' has no attribute '{name}'.*{says}"):
            getattr(jittok, name)


def test_a_tokenizer_that_is_called_says_what_to_write(tok: Any) -> None:
    with pytest.raises(TypeError, match=r"write tok\.encode\(text\)"):
        tok("text", return_tensors="pt")


def test_protocols_find_nothing_that_is_not_there(tok: Any) -> None:
    assert copy.copy(tok) == tok
    assert copy.deepcopy(tok) == tok
    assert pickle.loads(pickle.dumps(tok)) == tok
    assert getattr(tok, "__array__", None) is None
