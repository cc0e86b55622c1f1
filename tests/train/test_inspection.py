"""Looking into a training, and changing vocabularies."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jittok
from jittok.errors import CorpusError, UnsupportedVocab
from jittok.kernels.jit import JIT
from jittok.train.counting.count import count
from jittok.train.inspection import curve, explain, find_token
from jittok.train.surgery import dead_tokens, extend, prune

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not JIT, reason="encodes whole files")
FRENCH = "Il était une fois une petite fille que tout le monde aimait bien, surtout sa grand-mère. " * 40


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [path.read_text("utf-8") for path in sorted((ROOT / "jittok" / "reference").glob("*.py"))]


@pytest.fixture(scope="module")
def trained(texts: list[str]) -> Any:
    return jittok.train(texts, size=900, special=["<|endoftext|>"], threads=1)


def test_the_curve_is_what_encoding_with_each_size_gives(trained: Any) -> None:
    held = [(ROOT / "README.md").read_text("utf-8"), FRENCH]
    sizes = [258, 300, 555, 900]
    found = curve(trained, held, sizes)
    total = sum(len(text.encode()) for text in held)
    for size in sizes:
        ids = trained.cut(size).tokenizer.encode_batch(held).ids.size
        assert found[size] == pytest.approx(total / ids)
    assert list(curve(trained, held)) == [300, 600, 900]


def test_a_token_is_explained_by_the_merges_and_words_that_made_it(texts: list[str], trained: Any) -> None:
    words = count(texts, special=("<|endoftext|>",), threads=1)
    told = explain(trained, words, " return")
    assert told["token"] == "Ġreturn"
    last = told["steps"][-1]
    assert last["left"] + last["right"] == "Ġreturn"
    assert all(a["count"] >= b["count"] for a, b in pairwise(told["steps"]))
    assert ["Ġreturn", words.to_dict()[b" return"]] in told["words"]
    assert "were adjacent" in told["text"]
    assert explain(trained, words, "a")["words"] == []
    assert explain(trained, words, 0)["text"].endswith("a special token")
    with pytest.raises(CorpusError, match="a token of the vocabulary"):
        find_token(trained, "no such token")


def test_extending_keeps_old_ids_and_makes_other_texts_shorter(tmp_path: Path) -> None:
    base = jittok.bundled("gpt-2")
    made = extend(base, [FRENCH], 10)
    assert made.tokens[: base.vocab_size] == base.vocab.tokens
    assert made.merges[:50_000] == [b" ".join(pair) for pair in base.vocab.merges]
    assert len(set(made.tokens)) == len(made.tokens) == base.vocab_size + 10
    assert (np.diff(made.counts) <= 0).all()
    made.save(str(tmp_path / "more.gguf"))
    more = jittok.load(tmp_path / "more.gguf")
    assert more.encode(FRENCH).size < base.encode(FRENCH).size
    assert more.decode(more.encode(FRENCH).tolist()) == base.decode(base.encode(FRENCH).tolist())
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    old, new = base.encode_batch(lines).to_list(), more.encode_batch(lines).to_list()
    untouched = [a for a, b in zip(old, new, strict=True) if max(b, default=0) < base.vocab_size]
    assert untouched == [b for b in new if max(b, default=0) < base.vocab_size]
    assert len(untouched) > len(lines) // 2
    with pytest.raises(UnsupportedVocab, match="byte-level BPE"):
        extend(jittok.bundled("mistral"), [FRENCH], 5)


def test_extending_goes_on_where_training_stopped(texts: list[str], trained: Any) -> None:
    words = count(texts, special=("<|endoftext|>",), threads=1)
    small = trained.cut(700)
    more = extend(small.tokenizer, None, 200, words=words)
    assert [token.decode() for token in more.tokens] == trained.learned.texts


@pytest.mark.parametrize(
    ("least", "said"),
    [(0, "0 of 5 new tokens: no pair is left to merge"),
     (9, "0 of 5 new tokens: the best pair left counts 3, below min_frequency 9")],
)  # fmt: skip
def test_extending_says_when_there_is_too_little_text(least: int, said: str) -> None:
    text = "the the" if least == 0 else "qzxqzx qzxqzx"
    assert extend(jittok.bundled("gpt-2"), [text], 5, min_frequency=least).warnings == [said]


def test_pruning_takes_away_what_texts_do_not_use(tmp_path: Path) -> None:
    base = jittok.bundled("gpt-2")
    made = prune(base, [FRENCH, "Hello World!"])
    made.save(str(tmp_path / "few.gguf"))
    few = jittok.load(tmp_path / "few.gguf")
    assert 256 < few.vocab_size < 1500
    for text in (FRENCH, "Hello World!"):
        assert [made.old_ids[token] for token in few.encode(text).tolist()] == base.encode(text).tolist()
    assert few.eos_id is not None
    assert made.old_ids[few.eos_id] == base.eos_id
    assert len(made.counts) == base.vocab_size - few.vocab_size
    assert not any(made.counts)
    assert few.decode(few.encode("anything else, 日本").tolist()) == "anything else, 日本"


def test_dead_tokens_are_those_no_text_gives() -> None:
    made = jittok.train(["aaab aaab ab"], size=262, threads=1)
    assert dead_tokens(made.tokenizer) == []
