"""The fast splitters cut texts of other files as the automata of their patterns do."""

import random

import numpy as np
import pytest

from jittok.common.pipeline.known_patterns import GREEDY_CL100K, O200K
from jittok.common.pipeline.steps import ISOLATED, Cut, Pattern
from jittok.kernels.jit import JIT, U8, OutI32, frozen, kernel
from jittok.kernels.memory import PAD, window
from jittok.kernels.pretokenize.compile import splitter_of_stages
from jittok.kernels.pretokenize.families import family_numbers, family_of, unicode_classes
from jittok.kernels.pretokenize.splitters.blocks import CharacterClasses, open_classes
from jittok.kernels.pretokenize.splitters.general import (
    Splitter,
    SplitWork,
    make_split_work,
    open_split,
    open_splitter,
    split_text,
)
from jittok.kernels.pretokenize.splitters.gpt2 import MALFORMED
from jittok.kernels.pretokenize.splitters.llama3 import split_llama3

TEKKEN = O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace(r"\p{N}{1,3}", r"\p{N}")
PARTS = [
    *"aAbBsleLR  ''!!..//\n\n\r1éÉǅああʰ\u0301\u0301\u0903яЯ中٣—\u2003\u00a0😀\U00010400\U00010428\u20dd", "'s", "'LL",
    "'re", "\n/", " !", "!!", "a" * 60, "\u0301" * 30, "あA" * 20, "\u017f", "'\u017f", "\u017fA\u017f'" * 20,
]  # fmt: skip
FILLING = b"a !\n\x81\xcc'"
WITHOUT_ENDS = GREEDY_CL100K.replace(r"\s+\z|", "")
"""Where a text ends with white space the family cuts in another place, which no id tells (`crosses`)."""


@kernel
def split_all(splitter: Splitter, text: U8, size: int, work: SplitWork) -> int:
    return split_text(open_splitter(splitter), window(text), 0, size, open_split(work), False)


@kernel
def cased_places(
    classes: CharacterClasses, text: U8, begin: int, end: int, size: int, places: OutI32, group: int, cased: int,
    contractions: int,
) -> int:  # fmt: skip
    return split_llama3(
        open_classes(classes), window(text), begin, end, size, window(places), group, cased, contractions
    )


@pytest.mark.parametrize("pattern", [O200K, TEKKEN, WITHOUT_ENDS])
def test_true_cases_marks_and_the_long_s_are_cut_as_the_pattern_says(pattern):
    stages, draw = (Cut(Pattern(pattern), ISOLATED),), random.Random(5)
    family, splitter = family_of(stages), splitter_of_stages(stages)
    classes, work = unicode_classes(family), make_split_work(1 << 14, splitter)
    known = 0
    for _ in range(300 if JIT else 25):
        parts = draw.sample(PARTS, draw.randrange(2, 9)) if draw.random() < 0.7 else PARTS
        raw = "".join(draw.choice(parts) for _ in range(draw.choice([3, 6, 12, 40]))).encode()
        text = frozen(np.frombuffer(raw + bytes(draw.choice(FILLING) for _ in range(PAD)), np.uint8), np.uint8)
        assert split_all(splitter, text, len(raw), work) == len(raw)
        bits = np.unpackbits(work.cuts[: len(raw) // 64 + 1].view(np.uint8), bitorder="little")
        wanted = np.flatnonzero(bits[: len(raw)]).tolist()
        places = np.empty(len(raw) + 128, np.int32)
        how = family_numbers(family, unicode=True)[2:5]
        count = cased_places(classes, text, 0, len(raw), len(raw), places, *how)
        if count == MALFORMED:  # left to the automaton
            continue
        known += 1
        assert places[:count].tolist() == wanted, raw.decode()
        begin = draw.choice(wanted)
        count = cased_places(classes, text, begin, len(raw), len(raw), places, *how)
        assert (places[:count] + begin).tolist() == [place for place in wanted if place >= begin], raw.decode()
    assert known > 20


@pytest.mark.parametrize("pattern", [O200K, GREEDY_CL100K])
def test_only_a_text_with_a_long_s_in_a_contraction_is_left_to_the_automaton(pattern):
    family = family_of((Cut(Pattern(pattern), ISOLATED),))
    for raw, left in (("Wa\u017f\u017fer 'a \u017f'", False), ("it'\u017f", True), (" " * 60 + "it'\u017f", True),
                      (" " * 61 + "it'\u017f", True), (" " * 62 + "it'\u017f", True), ("it'", False),
                      ("l'\u00e9 it'\u017f", True)):  # fmt: skip
        size, places = len(raw.encode()), np.empty(256, np.int32)
        text = frozen(np.frombuffer(raw.encode() + "\u017f".encode() * (PAD // 2), np.uint8), np.uint8)
        how = family_numbers(family, unicode=True)[2:5]
        assert (cased_places(unicode_classes(family), text, 0, size, size, places, *how) == MALFORMED) == left, raw


def test_a_run_of_letters_of_both_cases_and_capitals_is_cut_in_linear_time():
    family = family_of((Cut(Pattern(O200K), ISOLATED),))
    raw = "あA".encode() * (1 << 16 if JIT else 1 << 8)
    text = frozen(np.frombuffer(raw + bytes(PAD), np.uint8), np.uint8)
    places = np.empty(len(raw) + 128, np.int32)
    count = cased_places(
        unicode_classes(family), text, 0, len(raw), len(raw), places, *family_numbers(family, unicode=True)[2:5]
    )
    assert places[:count].tolist() == [0, len(raw) - 1]  # all but the last capital
