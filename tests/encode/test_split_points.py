"""Long texts that are normalized, in parts: the same ids wherever they are cut, and no cut where a match continues."""

import json
import random

import pytest

import jittok
from jittok.common.pipeline.steps import Cut, Pattern
from jittok.encode import limits, prepared_texts
from jittok.kernels.jit import JIT
from jittok.reference.pipeline import Runner

PARTS = ["a", "ab", "b", " ", "  ", "\n", "1", "22", ".", "!?", "é", "e\u0301\u0323", "\ufdfa", "中",
         "\U0001f468\u200d", "'s", "[X]", "\xa0", "_"]  # fmt: skip
CUTS = {
    "Whitespace": [{"type": "Whitespace"}],
    "WhitespaceSplit": [{"type": "WhitespaceSplit"}, {"type": "Punctuation"}],
    "BertPreTokenizer": [{"type": "BertPreTokenizer"}],
    "Digits": [{"type": "Digits", "individual_digits": False}, {"type": "Whitespace"}],
    "a pattern": [
        {"type": "Split", "pattern": {"Regex": r"\s?\w+|\s+(?!\S)|\s+"}, "behavior": "Isolated", "invert": False}
    ],
}


def made(cuts: str) -> jittok.Tokenizer:
    words = ["?", "a", "b", "ab", "aba", " ", " a", "1", "122", ".", "e", "\u0635\u0644\u0649", "中"]
    flags = dict.fromkeys(["lstrip", "rstrip", "single_word"], False)
    file = {
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKD"}, {"type": "StripAccents"}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": CUTS[cuts]},
        "model": {"type": "WordLevel", "vocab": {word: k for k, word in enumerate(words)}, "unk_token": "?"},
        "added_tokens": [{"id": 13, "content": "[X]", "special": True, "normalized": False, **flags}],
    }
    tok = jittok.load(json.dumps(file).encode(), cache=False)
    assert tok.runs == "kernels"
    return tok


@pytest.mark.parametrize("cuts", CUTS)
def test_parts_of_a_text_have_the_ids_that_they_have_in_it(cuts, monkeypatch):
    tok, draw = made(cuts), random.Random(cuts)
    plain = Runner(tok.pipeline)
    texts = ["".join(draw.choices(PARTS, k=draw.randrange(60))) for _ in range(40 if JIT else 4)]
    wanted = [plain.encode(text, False) for text in texts]
    assert tok._encoder._prepared.points is not None
    monkeypatch.setattr(limits, "GROWN_TEXT", 8)
    monkeypatch.setattr(limits, "MOST_GROWTH", 0)
    tok._wait_for_kernels()
    for part, look in ((1, 8), (5, 64)):
        monkeypatch.setattr(limits, "GROWN_PART", part)
        monkeypatch.setattr(prepared_texts, "SEARCH_BYTES", look)
        assert tok.encode_batch(texts).to_list() == wanted


@pytest.mark.parametrize(
    ("pattern", "pair", "cut"),
    [
        (r"\w+|[^\w\s]+", "a ", True),
        (r"\w+|[^\w\s]+", " a", False),  # a gap continues with the spaces before it
        (r"\s?\w+|\s+(?!\S)|\s+", "a ", True),
        (r"\s?\w+|\s+(?!\S)|\s+", " a", False),
        (r"\w+\.", "a ", False),  # no match ends there
        (r"\w+( b)?", "a ", False),  # one may go on
        (r"\w+(?! )|\w", "a ", False),  # what is after decides
        (r"\w(?= )|\W", "a ", False),  # at the end of a text none would end there
    ],
)
def test_a_cut_is_where_every_match_ends_and_none_looks_further(pattern, pair, cut):
    table = prepared_texts.split_points((Cut(Pattern(pattern), "isolated"),))
    kinds = [
        None if table is None else table.classes[table.starts.searchsorted(ord(c), "right") - 1] for c in pair
    ]  # fmt: skip
    assert (table is not None and bool(table.between[kinds[0], kinds[1]])) == cut
