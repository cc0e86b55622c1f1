"""The differential run finds a cache that gives wrong ids, and tells the texts that it takes."""

import lzma
from itertools import islice
from pathlib import Path

import differential
import pytest

from jittok.common.rows import TokenArray
from jittok.encode.threads.batch import encode_batch
from jittok.vocab import read_vocab

VOCAB = Path(__file__).with_name("data") / "vocabs" / "syn-spm-user.gguf.xz"


@pytest.fixture(scope="module")
def vocab():
    return read_vocab(lzma.decompress(VOCAB.read_bytes()))


def test_nothing_is_told_where_all_agree(vocab, capsys):
    run = differential.Run(1, 0.01)
    run.vocabulary("drawn", vocab, 4_500, 7)
    assert (run.counts["spm"], run.failures, capsys.readouterr().out) == (4_500, 0, "")
    assert 30 <= run.referred["spm"] <= 60


def test_a_cache_that_mixes_texts_up_is_found_with_the_texts_that_it_takes(vocab, monkeypatch, capsys):
    seen = {}

    def forgetful(encoder, texts, *rest):
        """Once `ab` was seen, the first token of texts with `ba` is wrong."""
        rows = encode_batch(encoder, texts, *rest)
        ids = rows.ids.copy()
        for k, text in enumerate(texts):
            if b"ba" in text and id(encoder) in seen:
                ids[rows.offsets[k]] += 1
            if b"ab" in text:
                seen[id(encoder)] = encoder  # kept, so that no other encoder gets this id
        return TokenArray(ids, rows.offsets)

    monkeypatch.setattr(differential, "encode_batch", forgetful)
    run = differential.Run(1, 0)
    run.vocabulary("syn", vocab, 4_000, 7)
    assert run.failures == 1
    assert "after [b'ab'], b'ba' gets other ids than alone" in capsys.readouterr().out


def test_kernels_that_differ_from_the_reference_are_found(vocab, monkeypatch, capsys):
    right = differential.tokenize
    monkeypatch.setattr(
        differential, "tokenize", lambda vocab, text, **rules: right(vocab, text.replace(b"ab", b"ba"), **rules)
    )
    run = differential.Run(1, 1)
    run.vocabulary("syn", vocab, 2_000, 7)
    assert run.failures == 1
    assert ": b'ab': reference, kernel: [" in capsys.readouterr().out


def test_every_pre_type_has_a_vocabulary_and_the_same_seed_gives_the_same_texts(vocab):
    names = {name for name, _, _ in islice(differential.vocabularies(1, None), 1_000)}
    assert {f"gpt-2 with pre {pre!r}" for pre in differential.pre_names()} <= names
    texts = [[source.one() for _ in range(50)] for source in [differential.Source(3, vocab) for _ in range(2)]]
    assert texts[0] == texts[1]
