"""One thread, stage by stage, so that a change shows where it acts. The first call compiles, outside of the timing."""

import pytest

import jittok
import jittok.tokenizer
import jittok.vocab
from jittok.reference.tokenize import align as align_literally

VOCABULARIES = ["gpt-2", "bert", "t5", "mistral"]
CORPORA = ["english", "code", "multilingual"]


@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_encode_batch(benchmark, rate, bundled, corpus, vocabulary, name):
    tok, texts = bundled(vocabulary), corpus(name)
    tok.encode_batch(texts, threads=1)
    benchmark.pedantic(tok.encode_batch, (texts,), {"threads": 1}, rounds=5)
    rate(sum(map(len, texts)))


@pytest.mark.parametrize("name", CORPORA)
@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_align_batch(benchmark, rate, bundled, corpus, vocabulary, name):
    """Beside `test_encode_batch`: what spans cost."""
    tok, texts = bundled(vocabulary), corpus(name)
    rows = tok.align_batch(texts, threads=1)
    assert rows.tokens == tok.encode_batch(texts, threads=1)
    for text in texts[:: max(len(texts) // 8, 1)]:
        ids, spans = align_literally(tok.vocab, text[:2000])
        found = tok.align(text[:2000])
        assert (found.ids.tolist(), list(map(tuple, found.spans.tolist()))) == (ids, spans)
    del rows
    benchmark.pedantic(tok.align_batch, (texts,), {"threads": 1}, rounds=5)
    rate(sum(map(len, texts)))


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_decode_batch(benchmark, rate, bundled, corpus, vocabulary):
    tok = bundled(vocabulary)
    rows = tok.encode_batch(corpus("english"), threads=1)
    size = sum(len(text.encode()) for text in tok.decode_batch(rows))
    benchmark.pedantic(tok.decode_batch, (rows,), rounds=5)
    rate(size)


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_encode_short_text(benchmark, bundled, vocabulary):
    tok = bundled(vocabulary)
    tok.encode("The first text.")
    benchmark(tok.encode, "A short text, as a chat has them.")


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_load_kept(benchmark, vocabulary):
    """From the cache on disk, where the first call has put it."""
    kept = jittok.bundled(vocabulary)
    compiled = jittok.tokenizer.Tokenizer(jittok.vocab.bundled_vocab(vocabulary), cache=False)
    text = "The first text, a\u0301 \u4e2d 123."
    assert kept == compiled
    assert kept.encode(text).tolist() == compiled.encode(text).tolist()
    benchmark.pedantic(jittok.bundled, (vocabulary,), rounds=9)


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_load_and_compile(benchmark, vocabulary):
    benchmark.pedantic(
        lambda: jittok.tokenizer.Tokenizer(jittok.vocab.bundled_vocab(vocabulary), cache=False),
        rounds=3,
        warmup_rounds=1,
    )


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
def test_one_long_word(benchmark, rate, bundled, vocabulary):
    tok, text = bundled(vocabulary), b"pneumonoultramicroscopicsilicovolcanoconiosis" * 2000
    tok.encode(text)
    benchmark.pedantic(tok.encode, (text,), rounds=3)
    rate(len(text))
