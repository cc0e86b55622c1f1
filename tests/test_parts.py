"""A long document that several threads encode in parts has the ids that one thread gives it."""

import numpy as np
import pytest

import jittok
from jittok import batch
from jittok.errors import EncodingFailed

WORDS = [
    b"word ",
    b"The next",
    b" of",
    b"  ",
    b"\n",
    b" letters",
    b"numbers 1 2 ",
    "\u00e9t\u00e9 ".encode(),
    b" it's",
    b"\xe4abcde f",
    b"abcd e",
]


def text_of(seed, size):
    random = np.random.default_rng(seed)
    return b"".join(WORDS[k] for k in random.integers(0, len(WORDS), size))


@pytest.mark.parametrize("name", ["gpt-2", "mistral", "bert", "t5"])
def test_parts_have_the_ids_of_the_whole(name, monkeypatch):
    monkeypatch.setattr(batch, "LEAST", 1000)
    tok = jittok.bundled(name)
    for seed in range(6):
        text = text_of(seed, 900 + 4000 * (seed == 5)) + (
            b"<s>abcd efgh</s>[SEP]<|endoftext|> abcd efgh" if seed & 1 else b""
        )
        whole = tok.encode_batch([text], threads=1, parse_special=True, add_special=True, errors="replace")
        for threads in (2, 3, 7):
            parts = tok.encode_batch([text], threads=threads, parse_special=True, add_special=True, errors="replace")
            assert parts == whole
            assert tok.count_batch([text], threads=threads).tolist() == tok.count_batch([text], threads=1).tolist()


def test_several_threads_work_at_one_document(monkeypatch):
    monkeypatch.setattr(batch, "LEAST", 1000)
    counted = []
    encode = batch.Encoder._encode_fragments

    def count(self, *args):
        counted.append(args[6])
        return encode(self, *args)

    monkeypatch.setattr(batch.Encoder, "_encode_fragments", count)
    text = b"some plain words " * 100_000
    jittok.bundled("gpt-2").encode_batch([text], threads=2)
    assert len(counted) == 2
    assert sum(counted) == len(text)
    assert max(counted) < 0.52 * len(text)


def test_the_first_error_of_a_document_is_told(monkeypatch):
    monkeypatch.setattr(batch, "LEAST", 1000)
    text = b"some plain words " * 400
    bad = text[:2000] + b"\xf7\xbf\xbf\xbf" + text[2000:5000] + b"\xf7\xbf\xbf\xbf" + text
    with pytest.raises(EncodingFailed, match="document 0, offset 2000"):
        jittok.bundled("gpt-2").encode_batch([bad], threads=3)


@pytest.mark.parametrize("name", ["gpt-2", "mistral", "bert", "t5"])
def test_one_long_document_is_read_where_it_is_to_its_end_and_no_further(name):
    """It may end anywhere in a page of memory."""
    tok, text = jittok.bundled(name), text_of(9, 100_000)
    for size in range(300_000, 304_200, 331):
        assert tok.encode_batch([text[:size]], threads=1) == tok.encode_batch([text[:size], b""], threads=1)[:1]


def test_ids_of_many_parts_are_put_together_in_order(monkeypatch):
    monkeypatch.setattr(batch, "MANY_IDS", 10)
    tok, texts = jittok.bundled("gpt-2"), [text_of(seed, 2000) for seed in range(40)]
    assert tok.encode_batch(texts, threads=3) == tok.encode_batch(texts, threads=1)
