"""Arguments of the wrong kind are a TypeError that says what is expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import jittok
from jittok.cli import ABOUT, build_parser


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: jittok.load(5), "found int, expected the name of a file"),
        (lambda: jittok.from_tokenizers(5), "found int, expected a tokenizers.Tokenizer"),
        (lambda: jittok.from_tiktoken("cl100k_base"), "found 'cl100k_base', expected a tiktoken.Encoding"),
        (lambda: jittok.from_sentencepiece(None), "found NoneType, expected a sentencepiece"),
        (lambda: jittok.corpus.compile_corpus("texts", None, "out"), r"found one name, expected a list: \['texts'\]"),
        (lambda: jittok.corpus.Options(formats="npy"), r"found a text, expected a tuple: \('npy',\)"),
    ],
    ids=["load", "tokenizers", "tiktoken", "sentencepiece", "inputs", "formats"],
)
def test_an_argument_of_the_wrong_kind_says_what_is_expected(call: Callable[[], Any], said: str) -> None:
    pytest.importorskip("filelock")
    with pytest.raises(TypeError, match=said):
        call()


def test_help_names_what_is_bundled() -> None:
    names = ", ".join(jittok.bundled_names())
    assert names in ABOUT
    shown = " ".join(build_parser()._subparsers._group_actions[0].choices["encode"].format_help().split())  # type: ignore[union-attr,index]
    assert names in shown
