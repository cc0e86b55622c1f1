from collections.abc import Callable
from typing import Any

import pytest

from jittok.vocab import Vocab
from jittok.vocab.keys import pre_names
from jittok.vocab.types import type_of

USER_DEFINED = 16


def known_differences(vocab: Vocab) -> list[str]:
    return type_of(vocab).differences(vocab)


def test_every_pre_name_has_sentences_about_it(vocab_of: Callable[..., Any]) -> None:
    vocab = vocab_of([b"a"], None, "bpe", model="gpt2")
    for name in (None, *pre_names()):
        notes = known_differences(vocab._replace(pre=name))
        assert notes
        assert all(note and "\n" not in note for note in notes)


@pytest.mark.parametrize(
    ("pre", "says"),
    [
        ("tekken", r"lacks \p{M}): Thai"),
        ("gpt-4o", "2.5 % more tokens"),
        ("minimax-m2", "not done for this one"),
        ("default", "pre is default"),
        (None, "pre is absent"),
        ("llama-bpe", "no difference was found"),
        ("deepseek-coder", "ü"),
        ("qwen2", "NFC, as Qwen's does"),
    ],
)
def test_what_is_known_is_said(vocab_of: Callable[..., Any], pre: str | None, says: str) -> None:
    vocab = vocab_of([b"a"], None, "bpe", model="gpt2", pre=pre)
    assert any(says in note for note in known_differences(vocab))


def test_user_defined_tokens_that_share_a_first_byte_are_pointed_out(vocab_of: Callable[..., Any]) -> None:
    vocab = vocab_of(["▁<extra>".encode(), b"<t>"], [USER_DEFINED] * 2, "ugm")
    assert any("bytes E2" in note for note in known_differences(vocab))
    assert not any("bytes" in note for note in known_differences(vocab_of([b"<t>"], [USER_DEFINED], "ugm")))


def test_types_without_differences_say_nothing(vocab_of: Callable[..., Any]) -> None:
    assert known_differences(vocab_of([b"a"], None, "rwkv")) == []


@pytest.mark.parametrize(("kind", "says"), [("wpm", "100 characters"), ("rwkv", "id 0"), ("spm", "philosophy")])
def test_other_types_have_their_sentences(vocab_of: Callable[..., Any], kind: str, says: str) -> None:
    assert any(says in note for note in known_differences(vocab_of([b"<s>", b"b"], None, kind)))
