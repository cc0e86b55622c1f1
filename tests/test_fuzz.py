"""The fuzz run finds what is wrong, and tells it with the shortest text that shows it."""

import json
import lzma
import random
from pathlib import Path

import cases
import file_rounds
import pytest
import run
from hypothesis import given
from hypothesis import strategies as st

from jittok.errors import InvalidToken
from jittok.vocab import read_vocab

VOCABS = Path(__file__).with_name("data") / "vocabs"


@pytest.fixture(scope="module")
def case():
    return cases.Case("syn-spm-user", read_vocab(lzma.decompress((VOCABS / "syn-spm-user.gguf.xz").read_bytes())))


@given(st.binary(max_size=60), st.binary(min_size=1, max_size=5))
def test_the_shortest_text_is_what_the_failure_needs(text, needed):
    assert run.shrink(text + needed + text, lambda less: needed in less) == needed


def test_characters_and_marks_are_left_out_as_a_whole():
    text = ("é\u0301" * 9 + "\U0001f600" * 9).encode()
    assert run.shrink(text, lambda less: len(less.decode("utf-8", "ignore").encode()) == len(less) > 12) == text[-16:]
    assert run.shrink(b"abc", lambda _less: True) == b""


def test_nothing_is_reported_where_all_agree(case):
    for text in (b"", b"Hello <tool> world", b"\xff\xfe", " é中😀".encode()):
        for add, parse in ((False, False), (True, True)):
            assert case.differs(text, add, parse) is None


@pytest.mark.parametrize(
    ("wrong", "question"),
    [
        (lambda ids, spans: (ids[::-1], spans), "ids"),
        (lambda ids, spans: (ids, [(i, j + 1) for i, j in spans]), "spans"),
    ],
)
def test_a_difference_is_shown_with_the_shortest_text(case, monkeypatch, capsys, wrong, question):
    right = cases.align

    def align(vocab, text, **rules):
        answer = right(vocab, text, **rules)
        return wrong(*answer) if b"ab" in text else answer

    monkeypatch.setattr(cases, "align", align)
    assert case.differs(b"x" * 30, False, False) is None
    run.show(case, b"x" * 30 + b" ab " + b"y" * 30, False, False)
    told, *answers = capsys.readouterr().out.splitlines()
    assert told.startswith("syn-spm-user: b'")
    assert told.endswith(f"' add_special=False parse_special=False: {question}")
    shown = told.removeprefix("syn-spm-user: b'").split("'")[0]
    assert "ab" in shown
    assert len(shown) <= 4
    assert [line.split(":")[0].strip() for line in answers][:2] == ["reference", "kernel"]


def test_wrong_texts_and_streams_are_told(case, monkeypatch):
    monkeypatch.setattr(cases, "detokenize", lambda *_, **__: b"wrong")
    assert case.differs(b"a", False, False)[0] == "text, remove=False unparse=False"
    monkeypatch.undo()
    stream = type(case.tok.stream_decoder())
    monkeypatch.setattr(stream, "finish", lambda _: "more")
    question, answers = case.differs(b"a", False, False)
    assert question == "text, remove=False unparse=False"
    assert answers["stream"] != answers["reference"] == answers["kernel"]


def test_a_round_of_drawn_files_tells_other_ids_with_the_file_and_a_text(monkeypatch):
    monkeypatch.setattr(file_rounds, "TEXTS", 8)
    assert file_rounds.drawn_round(random.Random("1 1")) is None
    right = file_rounds.Runner.encode
    monkeypatch.setattr(
        file_rounds.Runner, "encode", lambda plain, text, parse: right(plain, text, parse) + [0] * bool(text)
    )
    said = file_rounds.drawn_round(random.Random("1 1"))
    assert said.startswith("drawn file: '")
    assert "model" in json.loads(Path(said.split(": ")[-1]).read_text("utf-8"))


def test_a_round_of_changed_files_tells_an_error_that_comes_after_loading(monkeypatch):
    monkeypatch.setattr(file_rounds, "CHANGES", 8)

    def one(*_):
        raise InvalidToken(7, 5)

    monkeypatch.setattr("jittok.encode.fallback.reference_encoder.ReferenceEncoder.one", one)
    said = list(file_rounds.changed_round("vocab_txt", 3))
    assert said
    assert all(line.startswith("changed vocab_txt: InvalidToken token 7") for line in said)
    assert "vocab.txt" in json.loads(Path(said[0].split(": ")[-1]).read_text("utf-8"))
