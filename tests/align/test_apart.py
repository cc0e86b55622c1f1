"""A document with very many fragments is aligned a few of them at a time, with the same answer."""

import random

import pytest
from made_up import made_up_tokenizer

from jittok.encode import limits
from jittok.kernels.jit import JIT

PARTS = ["<bos>", "<unk>", " ", "   ", "\n\n", "a", "hello", "é", "½"]


@pytest.mark.parametrize("name", ["syn-gemma4", "syn-ugm-plain"])
def test_fragments_a_few_at_a_time_have_the_spans_of_all_together(name, monkeypatch):
    tok = made_up_tokenizer(name)
    draw, asked = random.Random(name), []
    for k in range(30 if JIT else 4):
        text = "".join(draw.choices(PARTS, k=draw.randint(1, 40)))
        rules = {"parse_special": k % 3 > 0, "add_special": bool(k & 1)}
        monkeypatch.setattr(limits, "LEAST_FRAGMENTS", 1 << 60)
        whole = tok.align(text, **rules)
        monkeypatch.setattr(limits, "LEAST_FRAGMENTS", 1)
        monkeypatch.setattr(limits, "FRAGMENTS_PER_STEP", draw.randint(1, 4))
        assert tok.align(text, **rules) == whole, text
        assert tok.align_batch([text], **rules).spans.tolist() == whole.spans.tolist(), text
        asked.append(len(whole) > 4)
    assert any(asked)
