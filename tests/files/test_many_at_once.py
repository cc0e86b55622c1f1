"""What is read of many numbers or characters at once is what is read of each alone."""

import random

import numpy as np
import pytest
import regex

from jittok.common.pipeline.steps import Compose, Map, Pattern, Replace
from jittok.common.unicode.libraries import mapping, member_flags, normal_form
from jittok.files.hf.models import all_as_read, as_read
from jittok.kernels.models.ugm.normalizer_tables import _images, _NormalizerParts

PLAIN = ["-0.0", "0.5", "-2.0122928619384766", "-13.999999999999999999", "7.000000000000000001", "-123456789.125"]
OTHERS = ["3", "-1e-5", "0.12345678901234567890123", "1234567890123.5", "-7.25E+3"]


def bits(numbers):
    return np.array(numbers, np.float64).view(np.int64).tolist()


@pytest.mark.parametrize("texts", [PLAIN, [*PLAIN, *OTHERS], [], ["0.0"]])
def test_numbers_are_read_together_as_one_by_one(texts):
    assert bits(all_as_read(texts)) == bits([*map(as_read, texts)])


def test_drawn_scores_are_read_as_one_by_one():
    draw = random.Random(5)
    texts = [f"-{draw.randrange(20)}.{draw.randrange(10 ** draw.randrange(1, 18))}" for _ in range(2000)]
    assert bits(all_as_read(texts)) == bits([*map(as_read, texts)])


@pytest.mark.parametrize("texts", [["1.5", "1e999"], ["0.1", "9" * 500]])
def test_a_number_that_is_too_large_is_told(texts):
    with pytest.raises(OverflowError):
        all_as_read(texts)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("cluster_control", r"[\p{GCB=Control}\p{GCB=CR}\p{GCB=LF}]"),
        ("cluster_prepend", r"\p{GCB=Prepend}"),
        ("cluster_hangul", r"[\p{GCB=L}\p{GCB=V}\p{GCB=T}\p{GCB=LV}\p{GCB=LVT}]"),
        ("pictographic", r"\p{Extended_Pictographic}"),
    ],
)
def test_sets_of_clusters_are_those_of_the_library(name, pattern):
    flags = member_flags(name)
    near = [c for c in range(0xE1000) if not 0xD800 <= c < 0xE000 and (c < 0x3400 or flags[c] or c % 61 == 0)]
    assert [c for c in near if regex.match(pattern, chr(c))] == [c for c in near if flags[c]]


def done(step, text):
    if isinstance(step, Map):
        return text.translate(mapping(step.name))
    return normal_form(step.form, text) if isinstance(step, Compose) else text.replace(step.pattern.text, step.content)


@pytest.mark.parametrize(
    "steps",
    [
        (),
        (Map("lowercase"),),
        (Compose("NFKC"), Map("lowercase")),
        (Compose("NFKD"), Map("accents"), Map("lowercase")),
        (Map("nmt"), Compose("NFC"), Replace(Pattern("'", True), '"')),
    ],
)
def test_each_character_becomes_what_the_steps_make_of_it(steps):
    found, _ = _images(_NormalizerParts([], None, list(steps), True, False))
    draw = random.Random(9)
    points = {
        *range(0x700),
        *range(0x1E00, 0x2200),
        *range(0xFB00, 0xFFFE),
        *draw.sample(range(0xE000, 0x110000), 3000),
    }
    for c in points:
        text = chr(c)
        for step in steps:
            text = done(step, text)
        assert found.get(c, chr(c)) == text, hex(c)
