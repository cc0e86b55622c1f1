"""The steps of GGUF vocabularies as data. That they are llama.cpp's is shown where the reference, which runs them, is
compared with recorded answers (`tests/reference`, `tests/trace`) and with kernels (`tests/fuzz`)."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from vocabs import KINDS, drawn_vocab

import jittok
from jittok.cli import main
from jittok.common.pipeline import models, steps
from jittok.common.pipeline.descriptions import in_words
from jittok.common.pipeline.pipeline import FIRST_TEXT, SECOND_TEXT
from jittok.errors import EncodingFailed
from jittok.reference.tokenize import around, tokenize
from jittok.vocab import NO_TOKEN, bundled_names
from jittok.vocab.load import read_vocab


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
def test_a_pipeline_says_what_the_vocabulary_says(kind: str, seed: int) -> None:
    """Tokens, ids, special tokens and what is around a text; every step has words."""
    vocab = read_vocab(drawn_vocab(kind, seed))
    made = vocab.pipeline
    assert made is vocab.pipeline
    assert made.model_tokens == vocab.tokens
    special = vocab.special_tokens.tolist()
    assert made.added_ids.tolist() == special
    offsets = made.added_offsets.tolist()
    raw = made.added_bytes.tobytes()
    assert [raw[i:j] for i, j in pairwise(offsets)] == [vocab.tokens[t] for t in special]
    try:
        before, after = around(vocab)
    except EncodingFailed:
        assert len(made.single) < 3
    else:
        front = [] if before == NO_TOKEN else [before]
        assert [*made.single] == [*front, FIRST_TEXT, *([] if after == NO_TOKEN else [after])]
    for step in (*made.normalize, *made.split, *made.decode, made.model):
        assert in_words(step)


@pytest.mark.parametrize("name", bundled_names())
def test_what_a_pipeline_says_of_itself_is_the_vocabularys(name: str) -> None:
    """A Pipeline of another file has these names, too; the steps of a GGUF make no tokenizer."""
    tok = jittok.bundled(name)
    made, vocab = tok.pipeline, tok.vocab
    assert (made.type, made.pre, made.fingerprint) == (vocab.type, vocab.pre, vocab.fingerprint)
    assert (made.merges, made.tokens, made.ids) == (vocab.merge_offsets.size - 1, vocab.tokens, vocab.ids)
    assert made.attributes is vocab.attributes
    assert made.scores is vocab.scores
    assert repr(made).startswith(f"Pipeline({vocab.source!r}, gguf, {vocab.type}, ")
    with pytest.raises(TypeError, match=r"found the steps of a GGUF, expected a Vocab: write jittok.load\(path\)"):
        jittok.Tokenizer(made)


SETTINGS = [
    ("gpt-2", steps.ReadUtf8, "shortest"), ("bert", steps.BertWords, "shortest"),
    ("t5", steps.SqueezeLlama, "squeeze"), ("t5", steps.SqueezeLlama, "escape"), ("t5", models.Lattice, "unknown"),
    ("bert", steps.BertWords, "lowercase"), ("bert", steps.BertWords, "strip_accents"),
    ("bert", models.LongestText, "longest"), ("bert", models.LongestText, "unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind", "setting"), SETTINGS)
def test_the_reference_goes_by_the_settings_of_steps(name: str, kind: type, setting: str) -> None:
    """Another setting gives other ids of some text."""
    vocab = jittok.bundled(name).vocab
    text = "Ünïted  Ænigmas ☃ \u2603hello\xff".encode() + b" antidisestablishmentarianism\xc1\xa1\xe2\x98 \xff"
    made = vocab.pipeline

    def changed(step: Any) -> Any:
        if not isinstance(step, kind):
            return step
        value = getattr(step, setting)
        return step._replace(**{setting: not value if isinstance(value, bool) else value // 8})

    other = vocab._replace()
    vars(other)["pipeline"] = made._replace(
        vocab=other,
        normalize=tuple(map(changed, made.normalize)),
        split=tuple(map(changed, made.split)),
        model=changed(made.model),
    )
    assert tokenize(other, text) != tokenize(vocab, text)


def test_the_steps_of_the_bundled_vocabularies() -> None:
    """By name: what llama.cpp does to a text of each."""
    found = {}
    for name in bundled_names():
        made = jittok.bundled(name).pipeline
        found[name] = [type(step) for step in (*made.normalize, *made.split, made.model)]
    assert found == {
        "bert": [steps.BertWords, models.LongestText],
        "gpt-2": [steps.ReadUtf8, steps.Cut, steps.SpellBytes, models.PairMerges],
        "mistral": [steps.PrependBehindSpecial, steps.Replace, models.ScoredMerges],
        "t5": [steps.SqueezeLlama, models.Lattice],
    }


def test_info_shows_the_steps_of_a_gguf(capsys: pytest.CaptureFixture[str]) -> None:
    """In words, and with --json as data."""
    assert main(["info", "--vocab", "mistral"]) == 0
    shown = capsys.readouterr().out
    assert "steps" in shown
    assert "prepend '▁' at the beginning and after special tokens" in shown
    assert main(["info", "--vocab", "mistral", "--json"]) == 0
    known = json.loads(capsys.readouterr().out)["steps"]
    assert known["normalize"][0] == "PrependBehindSpecial(text='▁')"
    assert known["around"] == [1, "text"]


def test_a_pair_has_the_separator_of_its_vocabulary(vocab_of):
    tokens = [b"<s>", b"</s>", b"|", b"a"]
    ids = {"bos_id": 0, "eos_id": 1, "sep_id": 2}
    of_server = vocab_of(tokens, type="ugm", add_bos=True, add_eos=True, add_sep=True, **ids).pipeline
    assert of_server.template(True) == ((0, 0), (FIRST_TEXT, 0), (1, 0), (2, 0), (SECOND_TEXT, 0), (1, 0))
    bert = vocab_of(tokens, type="wpm", add_bos=True, **ids).pipeline
    assert bert.template(True) == ((0, 0), (FIRST_TEXT, 0), (2, 0), (SECOND_TEXT, 1), (2, 1))
    plain = vocab_of(tokens, type="ugm", add_bos=True, **ids).pipeline
    assert plain.template(True) == plain.template(True, False) == ((FIRST_TEXT, 0), (SECOND_TEXT, 1))
    assert bert.template(False) == ((0, 0), (FIRST_TEXT, 0), (2, 0))
