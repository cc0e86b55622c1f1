"""Paths that rounding decides are kept for sums that round alike: kernels give what the plain reference gives."""

import random

import numpy as np
import pytest
from amounts import amount
from hypothesis import given
from hypothesis import strategies as st
from small_files import sentencepiece_of

import jittok
from jittok.kernels.jit import JIT, OutI64, frozen, kernel
from jittok.kernels.models.ugm.file_arrays import F64
from jittok.kernels.models.ugm.rounding import ANY, NO_CONTEXT
from jittok.kernels.models.ugm.rounding import context_of as _context_of
from jittok.reference.pipeline import Runner

UNIGRAM, NORMAL, UNKNOWN, USER = 1, 1, 2, 4
SCORES = st.integers(-(1 << 24), 1 << 18).flatmap(
    lambda m: st.integers(10, 23).map(lambda k: float(np.float32(m / 2**k)))
)
BASES = st.tuples(st.integers(1 << 23, (1 << 24) - 1), st.integers(7, 16), st.sampled_from([-1.0, 1.0]))


@kernel
def contexts(bases: F64, reach: int, out: OutI64) -> int:
    """int64[bases] the context of each."""
    for k in range(bases.size):
        out[k] = _context_of(bases[k], reach)
    return bases.size


def context_of(base, reach):
    out = np.zeros(1, np.int64)
    contexts(frozen([base], np.float64), reach, out)
    return int(out[0])


def base_of(units, e, sign):
    return sign * units * 2.0 ** (e - 23)


def far(base, scores):
    """The distances of all sums from their base, added as floats are."""
    total, found = np.float32(base), []
    for score in scores:
        total = np.float32(np.float64(total) + score)
        found.append(float(total) - base)
    return found


@given(BASES, st.integers(1 << 23, (1 << 24) - 1), st.lists(SCORES, max_size=6))
def test_sums_of_one_context_are_as_far_from_their_base(first, other, scores):
    units, e, sign = first
    beside = (other & ~1) | (units & 1)
    reach = int(sum(map(abs, scores))) + 2
    own = context_of(base_of(units, e, sign), reach), context_of(base_of(beside, e, sign), reach)
    if NO_CONTEXT not in own:
        assert own[0] == own[1]
        assert far(base_of(units, e, sign), scores) == far(base_of(beside, e, sign), scores)


@pytest.mark.parametrize("base", [0.0, 1.0, -127.9, 2.0**17, -1e9, 130.0, -140.0, -245.0, 65520.0])
def test_where_sums_may_leave_their_power_of_two_there_is_no_context(base):
    assert context_of(base, 20) == NO_CONTEXT


def test_contexts_tell_sign_power_and_parity_apart():
    every = [base_of((3 << 22) + odd, e, sign) for e in range(7, 17) for sign in (-1.0, 1.0) for odd in (0, 1)]
    found = {context_of(base, 0) for base in every}
    assert len(found) == len(every)
    assert all(0 < context < 256 and context & ANY == 0 for context in found)


HALVES = (-2.00006103515625, -9.3, -30.0, -9.4, -9.5, -1.5001220703125, -9.6)
"""Half units of sums from 1024 on: of five spaces an even base and an odd one make another path."""


def loaded(scores):
    pieces = [("<unk>", UNKNOWN, 0.0), ("▁▁", USER, 0.0), ("▁▁▁▁", USER, 0.0)]
    pieces += [
        (text, NORMAL, scores[k % len(scores)]) for k, text in enumerate(["▁", "a", "▁a", "b", "ab", "▁▁▁", "c"])
    ]
    return jittok.load(sentencepiece_of(UNIGRAM, pieces, False, False, False), cache=False)


@pytest.mark.parametrize(
    "scores", [(-3.0,), (-2.3, -7.1, -9.9), (-2.0000002384185791, -1.0, -5.5), (-40.1, -0.3), HALVES]
)
def test_runs_of_user_defined_spaces_give_the_ids_of_the_reference_at_every_sum(scores):
    tok, draw = loaded(scores), random.Random(7)
    plain = Runner(tok._encoder.vocab)
    words, texts = ["a", "ab", "b", "ca", "x"], []
    for length in amount((9, 300, 1200), (9, 300, 700), (9, 40)):
        for _ in range(5 if JIT else 2):
            runs = draw.choices([1, 3, 5, 6, 7, 8, 9, 11, 12, 14, 27], k=3)
            texts.append("".join(" " * draw.choice(runs) + draw.choice(words) for _ in range(length)))
    assert tok.encode_batch(texts, threads=1).to_list() == [plain.encode(text, False) for text in texts]
    assert [tok.encode(text).tolist() for text in texts[::4]] == [plain.encode(text, False) for text in texts[::4]]


def test_even_and_odd_sums_have_paths_of_their_own():
    tok = loaded(HALVES)
    plain = Runner(tok._encoder.vocab)
    texts = ["a" * k + "b" * (130 - k) + "     a" for k in range(115, 130)]
    wanted = [plain.encode(text, False) for text in texts]
    assert len({tuple(ids[-5:]) for ids in wanted}) > 1
    assert tok.encode_batch(texts, threads=1).to_list() == wanted
    assert tok.encode_batch(texts[::-1], threads=1).to_list() == wanted[::-1]


def test_a_path_that_rounding_decides_is_kept():
    tok = loaded((-3.0,))
    text = "aaaaaaaab" * 40 + "       a" * 9
    assert tok.encode(text).tolist() == Runner(tok._encoder.vocab).encode(text, False)
    with tok._encoder.workspace() as workspace:
        slots = workspace.scratch.doubts.reshape(-1, 8)
        kept = np.flatnonzero(slots[:, 4])
        assert b"       a" in {slots[k, :2].tobytes().rstrip(b"\0\x08") for k in kept}
