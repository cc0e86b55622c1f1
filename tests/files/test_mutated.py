"""Small files of every kind with changes: read or refused, in bounded time and memory; no attack does more."""

import json
import time

import pytest
from mutated_kinds import FOLDERS, changed, check, told
from small_files import FILES, byte_level, folder, sentencepiece, tekken, wordpiece

import jittok
from jittok.errors import MalformedVocab, UnsupportedVocab
from jittok.files import read_pipeline


@pytest.fixture(autouse=True, scope="module")
def compiled():
    """What reading needs is compiled before any file is timed."""
    read_pipeline(byte_level())


@pytest.mark.parametrize("kind", [*FILES, *FOLDERS])
def test_changed_files_are_read_or_refused_and_encode_as_the_reference(kind, tmp_path):
    outcomes = [told(files, tmp_path, k % 10 == 0) for k, files in enumerate(changed(kind, 40, 11))]
    assert set(outcomes) <= {"read", "refused"}
    assert "refused" in outcomes or kind.startswith("vocab_txt")


@pytest.mark.parametrize("kind", [kind for kind in FILES if kind != "vocab_txt"])
def test_the_small_files_are_read_as_they_are(kind, tmp_path):
    (files,) = [next(iter(changed(kind, 2, 1)))]
    (name,) = files
    assert check({name: FILES[kind]()}, tmp_path, compile_it=True)


def with_value(content, path, value):
    whole = json.loads(content)
    part = whole
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return json.dumps(whole).encode()


def nested(levels):
    step = {"type": "NFC"}
    for _ in range(levels):
        step = {"type": "Sequence", "normalizers": [step]}
    return step


PATTERN = ["pre_tokenizer", "pretokenizers", 0, "pattern"]
ATTACKS = {
    "an id past the end": with_value(byte_level(), ["model", "vocab", "\u0120"], 1 << 30),
    "a merge of three parts": with_value(byte_level(), ["model", "merges"], ["t h e"]),
    "a template that names no token": with_value(byte_level(), ["post_processor", "special_tokens"], {}),
    "a template whose id is past the end": with_value(
        byte_level(), ["post_processor", "special_tokens", "<s>", "ids"], [1 << 20]
    ),
    "steps in steps": with_value(byte_level(), ["normalizer"], nested(50)),
    "a repeat of a repeat": with_value(
        byte_level(), PATTERN, {"Regex": "((a{1,50}){1,50}){1,50}"}
    ),
    "a giant count": with_value(byte_level(), PATTERN, {"Regex": "a{1,999}" * 99}),
    "a giant set": with_value(
        byte_level(), PATTERN, {"Regex": "[" + "a-z" * 200_000 + "]"}
    ),
    "a subroutine": with_value(byte_level(), PATTERN, {"Regex": r"(?<x>a\g<x>?)"}),
    "nesting in JSON": b'{"model": ' + b'{"a":' * 1_000_000,
    "a list of nothing": b'{"model": {"type": "BPE", "vocab": {}, "merges": [' + b"[]," * 100_000 + b"[]]}}",
    "a string of escapes": b'{"model": "' + b"\\u0000" * 1_000_000 + b'"}',
    "a number of a million digits": with_value(wordpiece(), ["model", "max_input_chars_per_word"], 1).replace(
        b'"max_input_chars_per_word": 1', b'"max_input_chars_per_word": ' + b"9" * 1_000_000
    ),
    "a length past the end": sentencepiece(2) + b"\x0a\xff\xff\xff\xff\x0f",
    "a varint without an end": b"\x0a" + b"\xff" * 1000,
    "a group": sentencepiece(2) + b"\x0b" * 100_000,
    "a rank past the end": with_value(tekken(), ["vocab", 300 - 45, "rank"], 1 << 31),
    "more special tokens than tokens": with_value(tekken(), ["config", "default_num_special_tokens"], 1 << 31),
    "special tokens without a name": with_value(
        with_value(tekken(), ["config", "default_num_special_tokens"], 1 << 22), ["config", "default_vocab_size"],
        (1 << 22) + 256,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_no_file_takes_long(name):
    took = []
    for _ in range(2):  # the first may compile a kernel
        start = time.process_time()
        with pytest.raises((MalformedVocab, UnsupportedVocab)):
            read_pipeline(ATTACKS[name])
        took.append(time.process_time() - start)
    assert took[1] < 1


@pytest.mark.parametrize("name", ["BPE", "WordPiece", "WordLevel"])
def test_a_file_with_many_texts_of_one_id_does_not_take_long(name):
    vocab = {"u": 0} | {f"x{k}": 1 for k in range(40_000)}
    model = {"type": name, "vocab": vocab, "unk_token": "u", "merges": [], "continuing_subword_prefix": "##",
             "max_input_chars_per_word": 99}  # fmt: skip
    content = json.dumps({"added_tokens": [], "model": model}).encode()
    took = []
    for _ in range(2):  # the first may compile a kernel
        start = time.process_time()
        assert jittok.load(content, cache=False).encode("x9").size > 0
        took.append(time.process_time() - start)
    assert took[1] < 1


def test_files_beside_others_are_looked_at_too(tmp_path):
    config = b'{"tokenizer_class": "RobertaTokenizer"}'  # without added_tokens_decoder, which is above the other file
    files = {**folder(), "tokenizer_config.json": config, "added_tokens.json": b'{"<z>": 4000000000}'}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises((MalformedVocab, UnsupportedVocab)):
        read_pipeline(tmp_path)
