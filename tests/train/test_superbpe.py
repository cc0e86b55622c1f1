"""Tokens over spaces: the second stage against the plain reference, and in llama.cpp's words."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jittok
from jittok.errors import CorpusError
from jittok.kernels.jit import JIT
from jittok.reference.train import bpe as reference
from jittok.train.counting.count import How, count
from jittok.train.superbpe import second_stage, stretches, train_superbpe

ROOT = Path(__file__).parents[2]


@given(st.lists(st.text(st.sampled_from("aab  .1"), max_size=30), min_size=1, max_size=4), st.integers(1, 15))
@settings(max_examples=30 if JIT else 1)
def test_merges_over_spaces_are_those_of_the_reference(texts: list[str], more: int) -> None:
    first = jittok.train(texts, size=260, pre="gpt-2", threads=1)
    if not first.learned.merges.ids.size:
        return
    counts = count(texts, how=How(pre="gpt-2", runs=stretches(3), threads=1))
    made = second_stage(first, counts, len(first) + more)
    lines = Counter({tuple(first.tokenizer.encode(word).tolist()): 0 for word, _ in counts.items()})
    for word, number in counts.items():
        lines[tuple(first.tokenizer.encode(word).tolist())] += number
    wanted, steps = reference.merge_lines(lines, list(first.learned.texts), len(first) + more)
    assert made.learned.texts == wanted
    kept = first.learned.merges.ids.size
    assert made.learned.merges.pairs[kept:].tolist() == [[step.left, step.right] for step in steps]
    assert made.learned.merges.counts[kept:].tolist() == [step.times for step in steps]


def test_a_stretch_is_a_few_words_of_a_sentence() -> None:
    found = count(["one two three four five: six seven. at 12 eight\nnine"], how=How(runs=stretches(3), threads=1))
    words = {word.decode() for word, _ in found.items()}
    assert {"one two three", " four five", " six seven", " at", " eight", "nine"} <= words
    with pytest.raises(CorpusError, match="found 1, expected 2 to 8"):
        stretches(1)


@pytest.mark.skipif(not JIT, reason="encodes whole files")
def test_a_vocabulary_over_spaces_needs_fewer_tokens_and_keeps_the_first_ids(tmp_path: Path) -> None:
    texts = [path.read_text("utf-8") for path in sorted(ROOT.glob("*.md"))] * 2
    special = ["<|endoftext|>"]
    plain = jittok.train(texts, size=2000, threads=1, special=special)
    made = train_superbpe(texts, 2000, 1500, threads=1, special=special)
    assert len(made) == 2000
    assert made.tokens[:1500] == plain.tokens[:1500]
    several = [token for token in made.tokens[1500:] if b" " in token.strip()]
    assert len(several) > 150
    made.save(tmp_path / "x.gguf")
    tok = jittok.load(tmp_path / "x.gguf")
    assert (tok.vocab.pre, tok.vocab_size) == ("superbpe", 2000)
    ids = tok.encode_batch(texts)
    assert ids.ids.size < 0.97 * plain.tokenizer.encode_batch(texts).ids.size
    assert [tok.decode(row) for row in ids.to_list()] == texts
    llama = pytest.importorskip("llama_cpp")
    model = llama.Llama(model_path=str(tmp_path / "x.gguf"), vocab_only=True, verbose=False)
    found = [model.tokenize(text.encode(), add_bos=False, special=False) for text in texts]
    model.close()
    assert found == ids.to_list()


def test_what_cannot_be_is_refused() -> None:
    first = jittok.train(["a b"], size=257, threads=1)
    with pytest.raises(CorpusError, match=f"more than the {len(first)} ids of the first stage"):
        second_stage(first, count(["a b"], how=How(runs=stretches(), threads=1)), 100)
    with pytest.raises(CorpusError, match="texts that can be read twice"):
        train_superbpe(iter(["a b"]), 300)
