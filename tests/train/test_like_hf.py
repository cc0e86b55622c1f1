"""`like="hf"` cuts words as tokenizers does: its Unicode is newer than llama.cpp's. And the pre-tokenizers of files."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import jittok.train
from jittok.errors import CorpusError, UnsupportedVocab
from jittok.kernels.jit import JIT
from jittok.train import Counts, count
from jittok.train.counting import counter, splitters
from jittok.train.export import hf_pre_tokenizer

NEWER = "\u1c89\U00010d41\U00010d70"
"""A letter, a digit and a letter of Unicode 16.0, which llama.cpp's tables do not have."""
LETTERS = [*"aab b  's'1\n.,é漢\u017f", *NEWER]
PRES = ("gpt-2", "qwen2", "gpt-4o", "bloom")


def texts_of(seed: int, number: int = 6) -> list[str]:
    chosen = random.Random(seed)
    return ["".join(chosen.choices(LETTERS, k=60)) for _ in range(number)]


def theirs(texts: list[str], described: Any, size: int) -> list[list[str]]:
    tokenizers = pytest.importorskip("tokenizers")
    tok = tokenizers.Tokenizer(tokenizers.models.BPE())
    tok = tokenizers.Tokenizer.from_str(json.dumps({**json.loads(tok.to_str()), "pre_tokenizer": described}))
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=alphabet)
    tok.train_from_iterator(texts, trainer)
    found: list[list[str]] = json.loads(tok.to_str())["model"]["merges"]
    return found


def ours(texts: list[str], size: int, **options: Any) -> list[list[str]]:
    made = jittok.train.train(texts, size=size, threads=1, **options).learned
    return [[made.texts[a], made.texts[b]] for a, b in made.merges.pairs.tolist()]


@pytest.mark.parametrize("pre", PRES)
def test_merges_are_those_of_tokenizers_whatever_characters_there_are(pre: str) -> None:
    for seed in range(4 if JIT else 1):
        texts = texts_of(seed)
        expected = theirs(texts, hf_pre_tokenizer(pre), 300)
        assert ours(texts, 300, pre=pre, like="hf") == expected


def test_a_special_character_stays_where_the_alphabet_is_limited() -> None:
    """The trainer splits words by every token that it has, and a special one may be a single character."""
    tokenizers = pytest.importorskip("tokenizers")
    texts, size, special = ["bab aab caab " * 3], 12, ["c", "a", "z"]
    tok = tokenizers.Tokenizer(tokenizers.models.BPE())
    tok.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size, show_progress=False, special_tokens=special, limit_alphabet=1
    )
    tok.train_from_iterator(texts, trainer)
    made = jittok.train.train(
        texts, size, pre="gpt-2", like="hf", special=special, alphabet="seen", limit_alphabet=1, threads=1
    )
    assert {text: token for token, text in enumerate(made.learned.texts)} == tok.get_vocab()


@pytest.mark.parametrize("described", [None, {"type": "Sequence", "pretokenizers": []}, "Split"])
def test_a_pre_tokenizer_that_spells_no_bytes_is_refused(described: Any, tmp_path: Path) -> None:
    """tokenizers would learn characters there, and lose those that are not ASCII with what is learned here."""
    path = tmp_path / "a.json"
    if described == "Split":
        described = {"type": "Split", "pattern": {"String": " "}, "behavior": "Isolated", "invert": False}
    path.write_text(json.dumps({"pre_tokenizer": described}))
    for like in ("hf", "jittok"):
        with pytest.raises(UnsupportedVocab, match="ends in ByteLevel"):
            jittok.train.train(["a é"], 300, pre=str(path), like=like)


def test_a_newer_letter_is_none_to_llama_cpp() -> None:
    found = [count(["a" + NEWER[0]], pre="gpt-2", like=like, threads=1) for like in ("jittok", "hf")]
    assert [len(counts) for counts in found] == [2, 1]
    with pytest.raises(CorpusError, match="like hf"):
        found[0] + found[1]


def test_counts_remember_whose_characters_cut_them(tmp_path: Path) -> None:
    counts = count(["a" + NEWER], pre="gpt-2", like="hf", threads=1)
    counts.save(tmp_path / "a.words")
    assert Counts.load(tmp_path / "a.words").like == "hf"
    assert (counts + Counts.load(tmp_path / "a.words")).like == "hf"


def test_long_documents_and_bytes_that_are_no_text_are_cut_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = "".join(random.Random(9).choices(LETTERS, k=1_500)).encode()
    odd = raw[:700] + b"\xff\xed\xa0\x80" + raw[700:]
    for pre in PRES[1:3]:
        whole = [count([text], pre=pre, like="hf", threads=1).to_dict() for text in (raw, odd)]
        assert whole[1] == count([odd.decode("utf-8", "replace")], pre=pre, like="hf", threads=1).to_dict()
        with monkeypatch.context() as patch:
            for module in (splitters, counter):
                patch.setattr(module, "CHUNK_BYTES", 128)
            assert [count([text], pre=pre, like="hf", threads=1).to_dict() for text in (raw, odd)] == whole


DESCRIBED = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "Digits", "individual_digits": True},
        {"type": "Split", "pattern": {"Regex": r"\s?\p{L}+|\s+"}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
    ],
}


def test_the_pre_tokenizer_of_a_file_cuts_and_is_written(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"normalizer": None, "pre_tokenizer": DESCRIBED}))
    texts = texts_of(3)
    assert ours(texts, 300, pre=str(path), like="hf") == theirs(texts, DESCRIBED, 300)
    made = jittok.train.train(texts, size=300, pre=str(path), threads=1)
    made.save(tmp_path / "made.json")
    assert json.loads((tmp_path / "made.json").read_text())["pre_tokenizer"] == DESCRIBED
    with pytest.raises(UnsupportedVocab, match=r"that llama\.cpp knows"):
        made.save(tmp_path / "made.gguf")
    path.write_text(json.dumps({"normalizer": {"type": "NFC"}, "pre_tokenizer": DESCRIBED}))
    with pytest.raises(CorpusError, match="with a normalizer"):
        count(texts, pre=str(path))
    path.write_text("{}")
    with pytest.raises(CorpusError, match="with a pre_tokenizer"):
        count(texts, pre=str(path))
