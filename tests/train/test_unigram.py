"""Unigram: its parts against the plain reference, the whole against sentencepiece."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jittok
from jittok._jit import JIT
from jittok.errors import CorpusError
from jittok.reference import train_unigram as reference
from jittok.train import unigram
from jittok.train.counting import How, count
from jittok.train.spm import SpmOptions
from jittok.train.unigram import FOLLOWED, train_unigram

ROOT = Path(__file__).parents[2]
LINES = st.lists(st.text(st.sampled_from("aabc "), min_size=1, max_size=25), min_size=1, max_size=5)


def begun(lines: list[str]) -> tuple[Any, Any, Any]:
    """(what training begins with: texts, ranks; the model of seeds)."""
    options = SpmOptions(0, byte_fallback=False, character_coverage=1.0)
    counts = count(lines, how=How(runs=FOLLOWED, lines=4192, threads=1))
    texts, ranks, _, kinds = unigram._texts(counts, options)
    return texts, ranks, unigram._seeds(texts, kinds, options)


def named(model: Any, ranks: Any) -> list[str]:
    rows = zip(model.starts.tolist(), model.sizes.tolist(), strict=True)
    return ["".join(chr(c) for c in ranks[model.text[start : start + size]]) for start, size in rows]


@given(LINES)
@settings(max_examples=60)
def test_seeds_are_those_of_the_reference(lines: list[str]) -> None:
    sentences = [" ".join(line.split()) for line in lines]
    sentences = ["▁" + sentence.replace(" ", "▁") for sentence in sentences if sentence]
    if not sentences:
        return
    _, ranks, model = begun([" ".join(line.split()) for line in lines])
    texts = named(model, ranks)
    expected = reference.seeds(sentences, lambda text: "▁" not in text[1:])
    assert sorted(text for text in texts if len(text) > 1) == sorted(expected)
    single = {c: sum(sentence.count(c) for sentence in sentences) for c in set("".join(sentences))}
    weights = np.array([expected.get(text) or single[text] for text in texts], np.float64)
    assert model.scores == pytest.approx(np.log(weights) - np.log(weights.sum()))


@given(LINES)
@settings(max_examples=40)
def test_expected_counts_and_best_paths_are_those_of_the_reference(lines: list[str]) -> None:
    lines = [line for line in (" ".join(line.split())[:12] for line in lines) if line]
    if not lines:
        return
    texts, ranks, model = begun(lines)
    words = unigram._distinct_words(texts)
    model.keep(np.arange(model.starts.size) % 3 != 1)  # some characters go: unknown ones
    if not model.starts.size:
        return
    edges = unigram._edges(model, words)
    names = named(model, ranks)
    scores = dict(zip(names, model.scores.tolist(), strict=True))
    unknown = float(model.unknown[0])
    plain = {
        "".join(chr(c) for c in ranks[words.text[i:j]]): n
        for i, j, n in zip(words.ends.tolist(), words.ends[1:].tolist(), words.counts.tolist(), strict=False)
    }
    assert list(plain.values()) == sorted(plain.values(), reverse=True)
    found = unigram._expected(model, words, edges)
    wanted = reference.expected(plain, scores, unknown)
    assert found == pytest.approx([wanted[name] for name in names])
    _, _, totals = unigram._paths(model, words, edges, False)
    best = [max(score for _, score in reference.segmentations(word, scores, unknown)) for word in plain]
    assert totals == pytest.approx(best)


def test_digamma_is_the_derivative_of_log_gamma() -> None:
    import math

    x = np.array([0.5, 1.0, 3.7, 50.0])
    step = 1e-5
    slope = [(math.lgamma(each + step) - math.lgamma(each - step)) / (2 * step) for each in x.tolist()]
    assert unigram._digamma(x) == pytest.approx(slope, abs=1e-6)


def test_a_size_below_the_characters_is_refused_and_too_large_a_one_is_told() -> None:
    with pytest.raises(CorpusError, match=r"found 5, expected 11 or more: 3 symbols and 8 characters"):
        train_unigram(["abcdefg"], 5)
    made = train_unigram(["ab ab ab abc"], 500, threads=1)
    assert "no others are left" in made.warnings[0]
    assert made.scores[3:] == sorted(made.scores[3:], reverse=True)


@pytest.mark.skipif(not JIT, reason="encodes whole files")
def test_pieces_are_sentencepieces_but_for_few_and_as_good(tmp_path: Path) -> None:
    spm = pytest.importorskip("sentencepiece")
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "jittok").rglob("*.py"))[:70]]
    random.Random(1).shuffle(texts)
    train, held = texts[:60], texts[60:]
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in train for line in text.split("\n")]), model_writer=out,
        vocab_size=1500, model_type="unigram", normalization_rule_name="identity", num_threads=1, minloglevel=2,
    )  # fmt: skip
    theirs = spm.SentencePieceProcessor(model_proto=out.getvalue())
    made = train_unigram(train, 1500, threads=1)
    assert len(made) == 1500
    pieces = {theirs.id_to_piece(k) for k in range(1500)}
    assert len(pieces & set(made.pieces)) >= 0.96 * 1500
    pytest.importorskip("google.protobuf")
    made.save(tmp_path / "x.model")
    ours = spm.SentencePieceProcessor(model_file=str(tmp_path / "x.model"))
    lines = [line for text in held for line in text.split("\n")]

    def score(model: Any) -> float:
        return float(sum(model.get_score(token) for row in model.encode(lines) for token in row))

    assert score(ours) >= 1.005 * score(theirs)  # sums of logarithms: below zero
    made.save(tmp_path / "x.gguf")
    tok = jittok.load(tmp_path / "x.gguf")
    assert tok.type == "ugm"
    known = [line for line in lines if 0 not in ours.encode(line)]
    assert tok.encode_batch(known).to_list() == ours.encode(known)
    again = train_unigram(train[::-1], 1500, threads=2, memory=1 << 20)
    assert again.pieces == made.pieces
    assert again.scores == made.scores
