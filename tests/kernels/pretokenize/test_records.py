"""Adding a pre-tokenizer is adding one record: nothing else in the package has to know of it."""

import json
from itertools import count, product
from pathlib import Path

import numpy as np
import pytest
from pair_vocab import byte_alphabet
from write_gguf import vocab_file

from jittok import Tokenizer
from jittok.errors import UnsupportedVocab
from jittok.kernels import vocab_cache
from jittok.kernels.pretokenize import records
from jittok.kernels.pretokenize.splitters import GENERAL, LINES, LLAMA3
from jittok.reference.tokenize import tokenize
from jittok.vocab import read_vocab
from jittok.vocab.types import type_of

NUMBERS = count(1000)
LETTERS = "ab1A' .\n"
LLAMA3_SINGLE = (
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
RECORDS = {
    "made-up": (
        GENERAL,
        {
            "patterns": [
                {"engine": "wide", "regex": "[ab]{1,3}|[0-9]"},
                {"engine": "collapsed", "regex": r"\s?\p{P}+|\s+"},
            ],
            "names": {"made-up": {"sets": {"ignore_merges": True}, "notes": ["{case}", "made up"]}, "another": {}},
        },
    ),
    "of a family": (
        LLAMA3,
        {
            "family": {"splitter": "llama3", "group": 1},
            "patterns": [{"engine": "collapsed", "regex": LLAMA3_SINGLE}],
            "names": {"made-up": {}},
        },
    ),
    "of lines": (
        LINES,
        {
            "byte_encode": False,
            "family": {"splitter": "lines"},
            "newlines_whole": True,
            "always_bos": True,
            "patterns": [{"engine": "custom:newlines", "regex": r"[^\n]+|[\n]+"}],
            "names": {"made-up": {"sets": {"escape_whitespaces": True}}},
        },
    ),
}


def forget() -> None:
    for kept in (records._data, records._all, records.families, records.pre_names):
        kept.cache_clear()


@pytest.fixture
def with_record(tmp_path, monkeypatch):
    """with_record(fields) adds a record to those of the package; its number is returned."""

    def add(fields):
        data = json.loads(Path(records.FILE).read_bytes())
        number = next(NUMBERS)
        data["pre_types"].append({"number": number, "name": "MADE_UP", "byte_encode": True, **fields})
        place = tmp_path / "pre_types.json"
        place.write_text(json.dumps(data))
        monkeypatch.setattr(records, "FILE", place)
        forget()
        return number

    yield add
    monkeypatch.undo()
    forget()


def file_with(pre, encoded=True):
    """A GGUF file in which every two of LETTERS merge, and some lines are tokens."""
    alphabet = byte_alphabet()
    spelled = {c: alphabet[ord(c)] if encoded else "▁" if c == " " else c for c in LETTERS}
    singles = alphabet if encoded else [*spelled.values(), *(f"<0x{byte:02X}>" for byte in range(256))]
    pairs = [(spelled[a], spelled[b]) for a, b in product(LETTERS, repeat=2)]
    order = np.random.default_rng(5).permutation(len(pairs)).tolist()
    whole = [] if encoded else ["\n\n\n"]
    tokens = [*singles, *(a + b for a, b in pairs), *whole, "<|end|>"]
    merges = [" ".join(pairs[k]) for k in order]
    end = len(tokens) - 1
    return vocab_file("gpt2", tokens, pre=pre, merges=merges, bos_token_id=end, eos_token_id=end)


def texts():
    random = np.random.default_rng(11)
    yield from ("", "a", "aaa11 b'sA..", "\n\n\n", "\n\n\n\na \n\n\n")
    for size in (5, 20, 70, 300):
        for _ in range(6):
            yield "".join(random.choice([*LETTERS, "é", "漢"], size).tolist())


def test_records_with_equal_patterns_have_equal_families():
    for pre in records.pre_types():
        assert records.families().get(pre.patterns) == pre.family, pre.name


@pytest.mark.parametrize("which", RECORDS)
def test_a_record_that_was_added_is_a_pre_tokenizer(which, with_record):
    family, fields = RECORDS[which]
    number = with_record(fields)
    vocab = read_vocab(file_with("made-up", fields.get("byte_encode", True)))
    assert vocab.pre_type == number
    assert vocab.ignore_merges == (which == "made-up")
    assert vocab.add_bos == (which == "of lines")
    tok = Tokenizer(vocab)
    assert tok._encoder.arrays.family == family
    for text in texts():
        assert tok.encode(text, add_special=False).tolist() == tokenize(vocab, text.encode()), text


def test_names_and_notes_of_a_record_are_known_everywhere(with_record):
    with pytest.raises(UnsupportedVocab, match="made-up"):
        read_vocab(file_with("made-up"))
    number = with_record(RECORDS["made-up"][1])
    found = read_vocab(file_with("another"))
    assert (found.pre_type, found.ignore_merges) == (number, False)
    vocab = read_vocab(file_with("made-up"))
    notes = type_of(vocab).differences(vocab)
    assert "made up" in notes
    assert any("where the case changes" in note for note in notes)


@pytest.mark.parametrize(
    ("field", "wrong"), [("pattern", {"pattern": []}), ("groups", {"family": {"splitter": "llama3", "groups": 3}})]
)
def test_a_misspelt_field_of_a_record_is_refused(field, wrong, with_record):
    with_record({"names": {}, "patterns": [], **wrong})
    with pytest.raises(TypeError, match=field):
        records.pre_types()


def test_compiled_vocabularies_that_are_kept_depend_on_the_records(with_record):
    vocab_cache.stamp.cache_clear()
    before = vocab_cache.stamp()
    with_record(RECORDS["of a family"][1])
    vocab_cache.stamp.cache_clear()
    after = vocab_cache.stamp()
    vocab_cache.stamp.cache_clear()
    assert after != before
