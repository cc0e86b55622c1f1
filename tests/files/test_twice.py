"""What stands in a tokenizer.json twice, or is missing between: ids and texts as tokenizers 0.23 gives them."""

import json

import pytest

import jittok
from jittok.errors import UnsupportedVocab

FLAGS = {"single_word": False, "lstrip": False, "rstrip": False}


def words(*rows, normalizer=None):
    """A list of words, lower case or not, with added tokens: (text, special, normalized)."""
    added = [{"id": 3, "content": text, "special": special, "normalized": normalized, **FLAGS}
             for text, special, normalized in rows]  # fmt: skip
    return json.dumps({
        "added_tokens": added, "normalizer": normalizer, "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "u": 2}, "unk_token": "u"},
    }).encode()  # fmt: skip


LOWER = {"type": "Lowercase"}


@pytest.mark.parametrize("normalizer", [None, LOWER])
@pytest.mark.parametrize("rows", [[("X", True, False), ("X", False, False)], [("X", False, False), ("X", True, False)]])
def test_an_added_token_that_was_special_once_stays_special(rows, normalizer):
    tok = jittok.load(words(*rows, normalizer=normalizer), cache=False)
    assert tok.encode("X a", parse_special=True).tolist() == [3, 0]
    assert tok.encode("X a").tolist() == [2, 0]
    assert tok.decode([3, 0], skip_special=True) == "a"
    assert tok.decode([3, 0], skip_special=False) == "X a"


def test_an_added_token_that_was_normalized_once_is_refused_where_it_would_print_otherwise():
    rows = ("X", False, True), ("X", False, False)
    with pytest.raises(UnsupportedVocab, match=r"added_tokens\[1\].normalized: found False, expected true"):
        jittok.load(words(*rows, normalizer=LOWER), cache=False)
    assert jittok.load(words(*rows), cache=False).decode([3, 0]) == "X a"
    assert jittok.load(words(*rows[::-1], normalizer=LOWER), cache=False).decode([3, 0]) == "x a"


def test_new_added_tokens_stand_behind_all_pieces_though_one_is_there_twice():
    pieces = [["<unk>", 0.0], ["a", -1.0], ["b", -1.0], ["a", -2.0]]
    added = {"id": 3, "content": "X", "special": False, "normalized": False, **FLAGS}
    content = {"added_tokens": [added], "model": {"type": "Unigram", "vocab": pieces, "unk_id": 0}}
    tok = jittok.load(json.dumps(content).encode(), cache=False)
    assert tok.encode("aXb").tolist() == [3, 4, 2]
    assert tok.decode([3, 4, 2]) == "a X b"
