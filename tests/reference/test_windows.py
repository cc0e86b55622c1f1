"""A word in windows has the tokens that it has as a whole."""

import json
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jittok.files import read_pipeline
from jittok.reference import merging
from jittok.reference.models import word_model as models

SYMBOLS = st.lists(st.integers(0, 2), min_size=1, max_size=60)
RULES = st.dictionaries(st.tuples(st.integers(0, 6), st.integers(0, 6)), st.integers(3, 6), max_size=12)


@given(SYMBOLS, RULES, st.integers(1, 9), st.booleans())
def test_a_word_merged_in_windows_is_the_whole_one(symbols, rules, window, repeated):
    ranks = {pair: (rank, made) for rank, (pair, made) in enumerate(rules.items())}
    symbols = symbols * 9 if repeated else symbols
    whole = merging.merged(symbols, lambda left, right: ranks.get((left, right)))
    by_parts = merging.by_windows(
        lambda i, j: merging.merged(symbols[i:j], lambda left, right: ranks.get((left, right))), len(symbols), window
    )
    try:
        found = list(by_parts)
    except merging.UndecidedError:
        return
    assert found == whole


def test_a_long_run_is_not_merged_at_once(monkeypatch):
    monkeypatch.setattr(merging, "WINDOW_SYMBOLS", 64)
    asked, plain = [], merging.merged

    def counted(symbols: Any, *rest: Any) -> Any:
        asked.append(len(symbols))
        return plain(symbols, *rest)

    monkeypatch.setattr(merging, "merged", counted)
    pairs = {(0, 0): (0, 1), (1, 1): (1, 2)}
    out = array("i")
    merging.merged_ids(array("i", [0] * 4003), lambda left, right: pairs.get((left, right)), out)
    assert out.tolist() == [2] * 1000 + [1, 0]
    assert max(asked) == 64


LETTERS = st.lists(st.sampled_from(["a", "b", "ab", "aab", "c", "é", "a" * 40]), min_size=1, max_size=12).map("".join)
PIECES = ["?", "a", "b", "##a", "##b", "##aab", "aab", "##ba", "ab", "<0x63>", "##ab", "aa", "##aa"]
MERGES = [["a", "##b"], ["##a", "##b"], ["a", "##ab"], ["##a", "##ab"], ["##b", "##a"], ["a", "##a"], ["##a", "##a"]]
BPE = {
    "type": "BPE", "vocab": {text: token for token, text in enumerate(PIECES)}, "merges": MERGES, "unk_token": "?",
    "continuing_subword_prefix": "##",
}  # fmt: skip
MODELS = {
    "BPE": BPE,
    "joined unknown": {**BPE, "fuse_unk": True, "byte_fallback": True},
    "whole words": {**BPE, "unk_token": None, "ignore_merges": True},
    "WordPiece": {
        "type": "WordPiece", "vocab": {text: token for token, text in enumerate([*PIECES, "c", "##c"])},
        "unk_token": "?", "continuing_subword_prefix": "##", "max_input_chars_per_word": 90,
    },
}  # fmt: skip


@given(LETTERS, st.sampled_from(sorted(MODELS)))
def test_the_ids_of_a_long_word_are_those_that_have_spans(word, name):
    content = json.dumps({"model": MODELS[name], "pre_tokenizer": {"type": "WhitespaceSplit"}}).encode()
    model, out = models.word_model(read_pipeline(content)), array("i")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "WINDOW_SYMBOLS", 3)
        patch.setattr(models, "LONG_WORD", 2)
        model.ids(word, out)
    assert out.tolist() == [token for token, _, _ in model(word)]
