"""Fragments that touch are encoded together: their ids are those of fragments that stand apart."""

import importlib
import random
from functools import cache

import numpy as np
import pytest
from amounts import amount
from made_up import made_up_vocab

from jittok.kernels.fragments import FRAGMENT, NEED, OUT_OF_CAPACITY, OUT_OF_WORK, PAD, TEXT, TEXT_PREFIXED
from jittok.kernels.jit import JIT, frozen
from jittok.vocab import Vocab
from jittok.vocab.bundled import bundled_vocab
from jittok.vocab.keys import pre_names
from jittok.vocab.types import type_of

NAMES = [
    "syn-spm-user", "syn-spm-nobytes", "syn-ugm-user", "syn-ugm-space", "syn-ugm-plain", "syn-wpm-mixed", "syn-gemma4",
]  # fmt: skip
PRE_TYPES = {entry["pre_type"]: entry for entry in pre_names().values()}
ROUNDS = amount(12, 8, 6)
ROUNDS_OF_A_PRE_TYPE = amount(6, 2, 0)
PARTS = [
    b"the ", b"a", b" b", b"  ", b" ", b"\n", b"\n\n", b"word", b" words and", b"12", b"(x)", b"<x>", b"<unusedtoken>",
    "\u00e9t\u00e9".encode(), "\u4e2d\u6587".encode(), "\u2581".encode(), b"\xe4\xb8", b"\xff", b"\x80", b"", b"A" * 40,
    "\ufb01 \u00a0".encode(), "\U0001f600".encode(), b"'s",
]  # fmt: skip


gpt2 = cache(lambda: bundled_vocab("gpt-2"))


@cache
def compiled(name):
    if isinstance(name, int):
        entry = PRE_TYPES[name]
        flags = {key: value for key, value in entry["sets"].items() if key in Vocab._fields}
        vocab = gpt2()._replace(pre_type=name, **flags)
    else:
        vocab = made_up_vocab(name)
    model = importlib.import_module(type_of(vocab).module)
    return model, model.compile_pipeline(vocab.pipeline)


def encode(name, pieces, tokens, gap, chunk, room, longest=4096):
    """(code or count, ids, ends) of fragments that lie `gap` bytes apart, by a kernel with that memory at first."""
    model, arrays = compiled(name)
    data = frozen(np.frombuffer((b"." * gap).join([*pieces, bytes(PAD)]), np.uint8), np.uint8)
    starts = np.cumsum([0, *(len(piece) + gap for piece in pieces)])[:-1]
    stops = starts + [len(piece) for piece in pieces]
    fragments = frozen(starts, np.int64), frozen(stops, np.int64), frozen(tokens, np.int32)
    work = model.make_work(arrays, longest, 1 << 14, chunk)
    ids, ends, report, at, count = (
        np.zeros(room, np.int32),
        np.zeros(len(pieces), np.int64),
        np.zeros(4, np.int64),
        0,
        0,
    )
    for _ in range(4 * len(pieces) + 40):
        code = model.encode_fragments(arrays, work, data, *fragments, at, len(pieces), count, ids, ends, report)
        if code >= 0:
            return code, ids[:code].tolist(), ends.tolist()
        at = int(report[FRAGMENT])
        count = int(ends[at - 1]) if at else 0
        if code == OUT_OF_CAPACITY:
            ids = np.concatenate([ids, np.zeros(int(report[NEED]), np.int32)])
        elif code == OUT_OF_WORK:
            work = model.make_work(arrays, max(2 * int(report[NEED]), 64), 1 << 14, chunk)
        else:
            return code, ids[:count].tolist(), [at]
    raise AssertionError("a fragment asks for memory again and again")


@pytest.mark.parametrize("name", [*NAMES, *(sorted(PRE_TYPES) if JIT else [])])
def test_touching_fragments_give_the_ids_of_separate_ones(name):
    draw = random.Random(str(name))
    for number in range(ROUNDS_OF_A_PRE_TYPE if name in PRE_TYPES else ROUNDS):
        pieces = [b"".join(draw.choices(PARTS, k=draw.randint(0, 5))) for _ in range(draw.randint(2, 60))]
        if number % 2:  # well formed, so that runs hold
            pieces = [piece.decode("utf-8", "ignore").encode() for piece in pieces]
        kinds = [TEXT_PREFIXED, TEXT_PREFIXED, TEXT, 3] if str(name).startswith("syn-spm") else [TEXT_PREFIXED, 3]
        tokens = [draw.choice(kinds) for _ in pieces]
        chunk = draw.choice([64, 300, 1 << 14])
        together = encode(name, pieces, tokens, 0, chunk, draw.choice([1, 4096]), draw.choice([16, 4096]))
        assert together == encode(name, pieces, tokens, 1, 1 << 14, 4096), (pieces, tokens, chunk)


@pytest.mark.parametrize("name", NAMES)
def test_a_border_inside_a_character_ends_a_run(name):
    whole = "caf\u00e9 \u4e2d\u6587 \U0001f600 x".encode()
    for at in range(1, len(whole)):
        pieces, tokens = [b"in front", whole[:at], whole[at:], b" behind"], [TEXT_PREFIXED] * 4
        assert encode(name, pieces, tokens, 0, 1 << 14, 1) == encode(name, pieces, tokens, 1, 1 << 14, 1), at
