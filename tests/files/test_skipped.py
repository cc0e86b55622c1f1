"""`skip_special` leaves out what a tokenizer.json's library does: ids whose text is that of a special token."""

import json

import pytest

import jittok

FLAGS = {"lstrip": False, "rstrip": False, "single_word": False}


@pytest.mark.parametrize(("normalizer", "text"), [({"type": "Lowercase"}, "a k k"), (None, "a k")])
def test_special_tokens_are_told_by_their_text(normalizer, text):
    tokenizers = pytest.importorskip("tokenizers")
    added = [
        {"id": 1, "content": "K", "special": True, "normalized": True, **FLAGS},
        {"id": 2, "content": "k", "special": False, "normalized": False, **FLAGS},
    ]
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    content = json.dumps({"version": "1.0", "added_tokens": added, "normalizer": normalizer, "model": model})
    tok = jittok.load(content.encode(), cache=False)
    assert tokenizers.Tokenizer.from_str(content).decode([0, 1, 2], skip_special_tokens=True) == text
    assert tok.decode([0, 1, 2], skip_special=True) == text


def test_tokens_whose_normalized_text_is_the_same_both_print_it():
    tokenizers = pytest.importorskip("tokenizers")
    added = [
        {"id": k + 1, "content": text, "special": False, "normalized": True, **FLAGS} for k, text in enumerate("bB")
    ]
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    content = json.dumps({"version": "1.0", "added_tokens": added, "normalizer": {"type": "Lowercase"}, "model": model})
    tok = jittok.load(content.encode(), cache=False)
    assert tokenizers.Tokenizer.from_str(content).decode([0, 1, 2]) == "a b b"
    assert tok.decode([0, 1, 2]) == "a b b"


@pytest.mark.parametrize(("flags", "text"), [((True, False), "a k"), ((False, True), "a k"), ((False, False), "a K")])
def test_a_token_that_is_there_twice_prints_what_was_normalized_once(flags, text):
    tokenizers = pytest.importorskip("tokenizers")
    added = [{"id": 1, "content": "K", "special": True, "normalized": flag, **FLAGS} for flag in flags]
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    content = json.dumps({"version": "1.0", "added_tokens": added, "normalizer": {"type": "Lowercase"}, "model": model})
    tok, library = jittok.load(content.encode(), cache=False), tokenizers.Tokenizer.from_str(content)
    assert tok.decode([0, 1]) == library.decode([0, 1], skip_special_tokens=False) == text
    assert tok.decode([0, 1], skip_special=True) == library.decode([0, 1])
    for word in ("a K k", "k", "K"):
        assert tok.encode(word, parse_special=True).tolist() == library.encode(word).ids
