"""Commands with tokenizer files other than GGUF: their steps in words, ranks with a pattern."""

import base64
import json
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from jittok.cli import main
from jittok.common.pipeline.descriptions import _WORDS, in_words
from jittok.common.pipeline.models import Model
from jittok.common.pipeline.steps import REMOVED, Cut, Decoder, Normalizer, Pattern, Replace, Splitter, Squeeze, Strip

RANKS = [bytes([k]) for k in range(256)] + [b"th", b"he", b"the"]


@pytest.fixture
def ranks(tmp_path):
    path = tmp_path / "x.tiktoken"
    path.write_bytes(b"".join(base64.b64encode(text) + b" %d\n" % k for k, text in enumerate(RANKS)))
    return path


def test_every_kind_of_step_has_words():
    kinds = {kind for union in (Normalizer, Splitter, Decoder, Model) for kind in get_args(union)}
    assert {kind.__name__ for kind in kinds} == set(_WORDS)


def test_a_step_is_told_in_words():
    assert in_words(Replace(Pattern(" {2,}"), "\u2581")) == "the pattern ` {2,}` becomes '\u2581'"
    assert in_words(Replace(Pattern("a", literal=True), "")) == "the text 'a' is removed"
    assert in_words(Strip(True, True)) == "strip white space at the beginning and at the end"
    assert "matches become pre-tokens" in in_words(Cut(Pattern("a+\n"), REMOVED, invert=True))
    assert "`a+\\n`" in in_words(Cut(Pattern("a+\n"), REMOVED))
    squeeze = Squeeze(np.zeros(0, np.uint8), prefix=True, squeeze=False, escape=True, suffix=False)
    assert in_words(squeeze) == "sentencepiece's normalizer, a space is prepended, a space becomes '\u2581'"


def test_ranks_take_their_pattern_and_special_tokens(ranks, tmp_path, capsysbinary):
    text = tmp_path / "text.txt"
    text.write_text("the them<|x|>")
    given = ["--vocab", str(ranks), "--pattern", r"\p{L}+|[^\p{L}]+", "--special-token", "<|x|>=300"]
    assert main(["encode", *given, "--parse-special", "--json", str(text)]) == 0
    assert json.loads(capsysbinary.readouterr().out)["ids"] == [258, 32, 258, 109, 300]
    assert main(["info", *given]) == 0
    shown = capsysbinary.readouterr().out.decode()
    assert r"`\p{L}+|[^\p{L}]+`" in shown
    assert "added tokens  1, 1 of them special" in shown
    assert "Cut(" not in shown


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["--pattern", "(a"], "pattern"),
        (["--pattern", "a*+a"], "a*+a"),
        ([], "expected its pattern"),
        (["--pattern", ".", "--special-token", "x"], "TEXT=ID"),
        (["--vocab", "gpt-2", "--pattern", "."], "expected a file of tiktoken ranks (which --pattern is for)"),
    ],
)
def test_what_is_wrong_with_them_is_told(ranks, given, found, capfd):
    try:
        status = main(["encode", "--vocab", str(ranks), *given, __file__])
    except SystemExit as leave:
        status = leave.code
    assert status == 2
    assert found in capfd.readouterr().err


def test_two_files_take_what_the_ranks_among_them_need(ranks, tmp_path, monkeypatch, capsysbinary):
    monkeypatch.chdir(tmp_path)
    given = ["--pattern", r"\p{L}+|[^\p{L}]+", "--special-token", "<|x|>=300", "--no-cache"]
    assert main(["convert", str(ranks), "--to", "tokenizer.json", "--out", "other.json", *given]) == 0
    assert main(["compare", str(ranks), "other.json", *given]) in (0, 1)
    Path("text.txt").write_text("the them<|x|>")
    capsysbinary.readouterr()
    assert main(["compare", str(ranks), "other.json", "--corpus", "text.txt", "--parse-special", *given]) == 0
    assert main(["compare", "gpt-2", str(ranks), "--corpus", "text.txt", *given, "--json"]) == 1
    capsysbinary.readouterr()


def test_what_is_said_of_ranks_must_be_of_a_file(capfd):
    assert main(["compare", "gpt-2", "mistral", "--pattern", "a"]) == 2
    assert "--pattern: found no file of tiktoken ranks, expected one for A or B" in capfd.readouterr().err
    assert main(["convert", "gpt-2", "--to", "tiktoken", "--encoding", "qwen", "--special-token", "a=1"]) == 2
    assert "--special-token, --encoding: found no file" in capfd.readouterr().err
