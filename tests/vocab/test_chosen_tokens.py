"""A file whose tokens were chosen to collide in a hash table loads in ordinary time."""

import time

import numpy as np
import pytest
from chosen_tokens import chosen
from write_gguf import vocab_file

import jittok
from jittok.kernels.jit import JIT

NUMBER = 60_000


def seconds_to_load(path, model, tokens):
    first = ["<unk>", "<s>", "</s>"] if model == "llama" else []
    types = [2, 3, 3][: len(first)] + [1] * len(tokens)
    scores = [0.0] * len(types) if model == "llama" else None
    path.write_bytes(vocab_file(model, [*first, *tokens], scores=scores, token_type=types))
    begin = time.process_time()
    tok = jittok.load(path)
    spent = time.process_time() - begin
    assert len(tok) == len(types)
    return spent


@pytest.mark.skipif(not JIT, reason="sixty thousand tokens without the compiler")
@pytest.mark.parametrize("model", ["llama", "gpt2"])
def test_chosen_tokens_load_in_the_time_of_drawn_ones(model, tmp_path):
    tokens = chosen(NUMBER)
    assert len(set(tokens)) == NUMBER
    drawn = np.random.default_rng(0).integers(65, 91, (NUMBER, len(tokens[0])), np.uint8)
    seconds_to_load(tmp_path / "few.gguf", model, [b"a", b"b"])
    ordinary = seconds_to_load(tmp_path / "drawn.gguf", model, [row.tobytes() for row in drawn])
    assert seconds_to_load(tmp_path / "chosen.gguf", model, tokens) < 3 * ordinary + 0.5
