"""Normal forms in linear time: Python's own exchanges neighbors until marks are in order."""

import random
import time
import unicodedata

import pytest

from jittok.common.unicode import libraries
from jittok.common.unicode.libraries import STRIDE, characters, non_starters, normal_form, normal_form_of_row

FORMS = ["NFC", "NFD", "NFKC", "NFKD"]
AROUND = ["", "a", "é", "ệ", "ｶ", " ", "中", "각", "\u1100", "\u00a8", "ﬃ", "\u0958", "\uff9e"]


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_marks_of_any_length_are_normalized_as_python_does(form):
    drawn = random.Random(form)
    marks = sorted(non_starters("NFKC"))
    for _ in range(300):
        lengths = [0, 1, 5, STRIDE - 1, STRIDE, STRIDE + 1, 5 * STRIDE]
        chosen = marks if drawn.random() < 0.7 else drawn.sample(marks, 3)
        text = "".join(
            drawn.choice(AROUND) * drawn.choice([1, 3, STRIDE])
            + "".join(drawn.choices(chosen, k=drawn.choice(lengths)))
            for _ in range(3)
        )
        assert normal_form(form, text) == unicodedata.normalize(form, text), ascii(text)


@pytest.mark.parametrize("form", FORMS)
def test_a_long_row_of_marks_takes_no_longer_a_character_than_a_short_one(form):
    def seconds(count: int) -> float:
        text = "e" + "\u0301\u0323" * count
        begin = time.process_time()
        normal_form(form, text)
        return time.process_time() - begin

    seconds(10)
    assert min(seconds(200_000) for _ in range(2)) < 3  # Python's own: two minutes


@pytest.mark.parametrize("form", FORMS)
def test_characters_that_the_library_does_not_know_stay_and_part_the_text(form):
    around = "e\u0301"
    for newer in sorted(characters("newer")):
        wanted = unicodedata.normalize(form, around)
        assert normal_form(form, around + newer + around) == wanted + newer + wanted


@pytest.mark.parametrize("form", FORMS)
def test_a_long_row_of_which_little_is_shown_has_its_normal_form(form, monkeypatch):
    monkeypatch.setattr(libraries, "MOST_BY_PYTHON", 100)
    rng = random.Random(form)
    for front in ("", "a", "u\u0308", "ﬁ", "가", "\u0915", "A"):
        for marks in (
            "\u0301\u0323",
            "\u0308\u0301\u0304",
            "\u0344\u0f73\u0327",
            "\u0323\uff9e",
            "\u3099\u093c",
            "\u0301",
        ):
            row = "".join(rng.choices(marks, k=700))
            assert normal_form_of_row(form, front, row) == normal_form(form, front + row)
