"""Long odd texts of Unigram files are normalized by Python, and kernels do the rest: the ids of the plain reference."""

import json
import random

import pytest

import jittok
from jittok.encode import limits
from jittok.encode.fallback import reference_encoder
from jittok.encode.fallback.reference_encoder import fragment_ids

MARK = "\u2581"
ROWS = ["?", MARK, "a", "b", "aa", MARK + "a", "\u0301", "\u0323", "\u1ea1", "\u00e1", "a\u0301", "\u00e9", " "]
RUNS = {"type": "Replace", "pattern": {"Regex": " {2,}"}}
WAYS = {
    "spaces stay": ([{"type": "NFKC"}, RUNS | {"content": " "}], [True]),
    "runs become marks": ([{"type": "NFD"}, {"type": "Lowercase"}, RUNS | {"content": MARK}], [True]),
    "stripped": (
        [{"type": "NFC"}, {"type": "Strip", "strip_left": False, "strip_right": True}, RUNS | {"content": " "}],
        [True],
    ),
    "white space cuts first": ([{"type": "NFKD"}, RUNS | {"content": " "}], [False, True]),
}
PARTS = [
    "a",
    "b",
    "A",
    "\u00c9",
    "a\u0323\u0301",
    "a\u0301\u0323",
    "\u0301\u0323\u0301",
    " ",
    "  ",
    "\u00a0",
    "½",
    MARK,
    "𐐀",
]


def file_of(steps, cuts):
    marks = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always", "split": True}
    split = marks if cuts == [True] else {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, marks]}
    model = {"type": "Unigram", "unk_id": 0, "vocab": [[text, -1.0 - 0.1 * k] for k, text in enumerate(ROWS)]}
    made = {"normalizer": {"type": "Sequence", "normalizers": steps}, "pre_tokenizer": split, "model": model}
    return json.dumps(made).encode()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_long_odd_texts_have_the_ids_of_the_plain_reference(way, monkeypatch):
    monkeypatch.setattr(limits, "VALIDATED_AT_ONCE", 1)
    tok = jittok.load(file_of(*way))
    assert tok.runs == "kernels"
    r, asked = random.Random(3), []
    own = reference_encoder.OddTexts.ids_of_normalized

    def noted(self, text):
        asked.append(text)
        return own(self, text)

    monkeypatch.setattr(reference_encoder.OddTexts, "ids_of_normalized", noted)
    for _ in range(300):
        text = "".join(r.choices(PARTS, k=r.randrange(1, 30)))
        assert tok.encode(text).tolist() == fragment_ids(tok.pipeline, text.encode()), text
    assert asked
