"""Bytes beside a text change nothing and are never needed, after NFC, in cased splitters, in WordPiece, in
what is prepared for kernels."""

import random

import pytest
from drawn_files import byte_level_json, drawn_text, drawn_words
from drawn_pipelines import drawn_pipeline
from guarded import Guarded

import jittok
from jittok.common.pipeline.known_patterns import GPT2, O200K
from jittok.kernels.jit import JIT

COUNT = 60 if JIT else 6
FILES = [
    byte_level_json(GPT2, "NFC"), byte_level_json(O200K, None), drawn_words(random.Random(1), 15),
    *(drawn_pipeline(random.Random(seed)) for seed in (2, 3, 8)),
    *(byte_level_json(pattern, None) for pattern in
      (r"a*b|\s+$", r"\d{1,3}(?=(?:\d{3})*\b)|(?<=[a-z])(?=[A-Z])", r"\w+(?=.*[ab])|(?<!\p{L})\p{M}")),
]  # fmt: skip
ENDS = ["", "e", "\u0301", "각", "\u0bca", "!", "!\u0301", "'", "'l", "A", "あ", "\n/", " ", "7", "1234", "a", "b"]


@pytest.mark.parametrize("content", FILES)
def test_a_text_in_front_of_memory_that_cannot_be_read_has_the_ids_of_the_text_alone(content):
    tok, draw, guarded = jittok.load(content, cache=False), random.Random(2), Guarded(COUNT)
    texts = [(drawn_text(draw)[:150] + draw.choice(ENDS)).encode() for _ in range(COUNT)]
    wanted = [tok.encode(text).tolist() for text in texts]
    for at_end in (True, False):
        found = []
        for docs in guarded.documents(texts, at_end):
            found += tok.encode_batch(docs, threads=1).to_list()
        assert found == wanted
