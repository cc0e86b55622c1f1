"""Long texts are rewritten and walked in pieces: where a piece ends shows nowhere."""

import numpy as np
import pytest

import jittok
from jittok.kernels.jit import CHECKED, JIT

pytestmark = pytest.mark.skipif(CHECKED or not JIT, reason="hundreds of kilobytes take long in plain Python")

UNIT = "hello \ufdfa, 这是 naïve ".encode() + b"\xff\xfe w\xe2\x96 \xc2\xa0end "
TIMES = 12_000
"""As many as give several pieces for each way of spans."""


@pytest.mark.parametrize("name", ["t5", "mistral", "gpt-2", "bert"])
def test_ids_and_spans_of_a_repeated_text_repeat(name):
    tok = jittok.bundled(name)
    four, five = (tok.align(UNIT * times) for times in (4, 5))
    each = len(five) - len(four)
    found = tok.align(UNIT * TIMES)
    assert len(found) == len(five) + (TIMES - 5) * each
    head, tail = 2 * each, len(found) - 2 * each
    units = (tail - head) // each
    spans = found.spans[head : head + units * each].reshape(units, each, 2)
    shifts = len(UNIT) * np.arange(units)[:, None, None]
    assert (spans - shifts == spans[0]).all()
    assert (found.ids[head : head + units * each].reshape(units, each) == found.ids[head : head + each]).all()
    assert np.array_equal(found.spans[:head], five.spans[:head])
    assert np.array_equal(found.ids, tok.encode(UNIT * TIMES))


@pytest.mark.parametrize("text", ["\ufdfa", "这", "a", "\u2581", "ab"])
def test_a_whole_fragment_in_pieces_has_the_ids_of_its_spans(text):
    """The bundled T5 with its rules for cuts, and without: the second takes pieces of a whole fragment."""
    cut, whole = jittok.bundled("t5"), jittok.bundled("t5")
    whole._encoder.arrays = whole._encoder.arrays._replace(cut_limit=-1)
    whole._encoder._settled = True
    for times in (10, 40_000):
        long = (text + " ") * times + text * times
        assert np.array_equal(cut.encode(long), whole.encode(long))
