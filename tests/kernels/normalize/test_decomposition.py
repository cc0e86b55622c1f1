"""Normal forms that take characters apart, alone and with maps, are those of the plain way, mark order included."""

import random

import numpy as np
import pytest

from jittok.common.pipeline.steps import Compose, Map
from jittok.common.unicode.libraries import mapping, normal_form
from jittok.encode.buffers import Workspace
from jittok.encode.plan import FragmentTexts
from jittok.encode.steps import combined
from jittok.kernels.jit import JIT, frozen

ACCENTS, LOWER, CLEAN, NMT = (Map(name) for name in ("accents", "lowercase", "bert_clean", "nmt"))
CHAINS = [
    (Compose("NFD"),), (Compose("NFKD"),), (Compose("NFKC"),), (Compose("NFD"), LOWER, ACCENTS),
    (LOWER, Compose("NFKC")),
    (CLEAN, Compose("NFD"), Map("bert_accents"), LOWER), (NMT, Compose("NFKD")), (Compose("NFD"), NMT), (CLEAN, LOWER),
]  # fmt: skip
HARD = [
    *"aZe\x00\x01 \t1İßﬁ가각ㄱΩéǖẹ̈Å", "\u0301",
    "\u0323", "\u0327", "\u0345", "\u0334", "\u05b0", "\u302e", "\u1100", "\u1161",
    "\u11a8", "\u0f73", "\u0344", "\u2adc", "\U0001d15e", "\U0001d165", "\u0897", "\U00016d68", "\u1ac1", "\u200d", "ﷺ",
    "\u093c", "\u0958", "\u3099", "が", "x" * 70,
]  # fmt: skip


def through(step, texts):
    """Each text as a step makes it."""
    raw = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, raw)])
    data = frozen(np.frombuffer(b"".join(raw) + bytes(80), np.uint8), np.uint8)
    tokens = frozen(np.full(len(raw), -1), np.int32)
    made = step.run(Workspace(), FragmentTexts(data, frozen(ends[:-1], np.int64), frozen(ends[1:], np.int64), tokens))
    return [made.data[a:b].tobytes().decode() for a, b in zip(made.starts, made.stops, strict=True)]


def plainly(steps, text):
    for step in steps:
        text = text.translate(mapping(step.name)) if isinstance(step, Map) else normal_form(step.form, text)
    return text


@pytest.mark.parametrize("steps", CHAINS, ids=str)
def test_a_drawn_text_becomes_what_the_steps_make_of_it_one_by_one(steps):
    draw = random.Random(3)
    texts = ["".join(draw.choices(HARD, k=draw.randrange(14))) for _ in range(2000 if JIT else 40)]
    texts += ["\u0301\x01\u0323", "a\u0301" + "x" * 64 + "\u0323", "", "\u0323\u0301"]
    assert through(combined(steps), texts) == [plainly(steps, text) for text in texts]


@pytest.mark.skipif(not JIT, reason="every character takes long in the interpreter")
@pytest.mark.parametrize("form", ["NFD", "NFKD", "NFKC"])
def test_every_character_becomes_its_normal_form(form):
    points = [*range(0xD800), *range(0xE000, 0x110000)]
    texts = ["".join(map(chr, points[k : k + 997])) for k in range(0, len(points), 997)]
    assert through(combined((Compose(form),)), texts) == [normal_form(form, text) for text in texts]
