"""Unigram files: kernels give what the plain reference gives, where sums round and where texts are odd."""

import random

import pytest
from drawn_unigram import drawn_model, drawn_unigram, drawn_words
from guarded import Guarded

import jittok
from jittok._jit import JIT
from jittok.files import read_pipeline
from jittok.reference.pipeline import Runner

KINDS = {"tokenizer.json": drawn_unigram, "model": drawn_model}
FILES, TEXTS = (10, 100) if JIT else (2, 12)
BEGINNINGS = ["\u200c\u0301", "\u200c\u0301a", "\u0301", "\U0001f3fba"]
"""Texts whose first character would join a space in front of it."""


@pytest.mark.parametrize("seed", range(FILES))
@pytest.mark.parametrize("kind", KINDS)
def test_a_drawn_file_gives_the_ids_of_the_reference(kind, seed):
    draw = random.Random(seed)
    content = KINDS[kind](draw)
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    assert tok.runs == "kernels"
    texts = [*BEGINNINGS, *(drawn_words(draw) for _ in range(TEXTS))]
    for parse in (False, True):
        wanted = [plain.encode(text, parse) for text in texts]
        assert tok.encode_batch(texts, parse_special=parse, threads=1).to_list() == wanted
        assert [tok.encode(text, parse_special=parse).tolist() for text in texts[::5]] == wanted[::5]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_utf_8_is_an_error_or_replaced(kind):
    draw = random.Random(5)
    content = KINDS[kind](draw)
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    for bad in (b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xe3\x81", b"\xf4\x90\x80\x80", b"\x80", b"\xf0\x8f\xbf\xbf"):
        for text in (b"ab " + bad + "각".encode(), bad, b"a" * 70 + bad, bad * 3 + b" b"):
            with pytest.raises(jittok.EncodingFailed):
                tok.encode(text)
            assert tok.encode(text, errors="replace").tolist() == plain.encode(text.decode("utf-8", "replace"), False)


@pytest.mark.skipif(not JIT, reason="a text of which the plain reference takes seconds")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_long_texts_round_as_those_of_the_reference(kind, seed):
    draw = random.Random(seed)
    content = KINDS[kind](draw)
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    text = " ".join(drawn_words(draw) for _ in range(1200))
    assert len(text.encode()) > 1 << 16
    for part in (text, text[:50_000], text[:10_000]):
        assert tok.encode(part).tolist() == plain.encode(part, False)


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_beside_a_text_change_nothing(kind):
    count = 60 if JIT else 6
    draw, guarded = random.Random(2), Guarded(count)
    tok = jittok.load(KINDS[kind](draw), cache=False)
    texts = [drawn_words(draw)[:150].encode() for _ in range(count)]
    wanted = [tok.encode(text).tolist() for text in texts]
    for at_end in (True, False):
        found = []
        for docs in guarded.documents(texts, at_end):
            found += tok.encode_batch(docs, threads=1).to_list()
        assert found == wanted
