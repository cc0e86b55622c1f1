"""`jittok chat` and `jittok count --chat`."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import jittok
from jittok.cli import main
from jittok.errors import ChatError

CHAT = [{"role": "user", "content": "Hi<|endoftext|>"}, {"role": "assistant", "content": "Hello"}]
TEMPLATE = "{% for m in messages %}{{ m.content }}<|endoftext|>{% endfor %}{{ x }}"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "t.jinja").write_text(TEMPLATE)
    (tmp_path / "a.json").write_text(json.dumps(CHAT))
    (tmp_path / "b.jsonl").write_text(json.dumps({"messages": CHAT}) + "\n\n" + json.dumps(CHAT[:1]) + "\n")
    (tmp_path / "bad.jsonl").write_text('{"messages": []}\n{"text": 1}\n')
    return {name: str(tmp_path / name) for name in ("t.jinja", "a.json", "b.jsonl", "bad.jsonl")}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main([*words])
    told = capsys.readouterr()
    return status, told.out, told.err


def test_a_chat_is_shown_as_text_ids_and_mask(capsys: pytest.CaptureFixture[str], files: dict[str, str]) -> None:
    words = ["chat", "--vocab", "gpt-2", "--template", files["t.jinja"], files["a.json"]]
    assert run(capsys, *words, "--variable", "x=7")[1] == "Hi<|endoftext|><|endoftext|>Hello<|endoftext|>7\n"
    ids, mask = run(capsys, *words, "--ids", "--mask")[1].splitlines()
    assert ids.split().count("50256") == 2
    assert mask.split() == ["0"] * 9 + ["1", "0"]
    row: dict[str, Any] = json.loads(run(capsys, *words, "--json", "--mask")[1])
    assert [str(each) for each in row["ids"]] == ids.split()
    assert row["fields"][1] == {"path": ["messages", 1, "content"], "role": "assistant"}
    assert len(row["assistant_mask"]) == len(row["sources"]) == len(row["spans"]) == len(row["ids"])
    trusted = run(capsys, *words, "--trusted", "user", "--ids")[1]
    assert trusted.split().count("50256") == 3


def test_without_a_template_the_option_is_named(capsys: pytest.CaptureFixture[str], files: dict[str, str]) -> None:
    said = "the tokenizer's files have no chat template, expected one of your own: "
    for words in (["chat"], ["count", "--chat"]):
        told = run(capsys, *words, "--vocab", "gpt-2", files["a.json"])
        assert told[0] == 2
        assert f"--template: found none: {said}--template FILE" in told[2]
    with pytest.raises(ChatError, match=f"^template: found none: {said}template=TEXT$") as caught:
        jittok.bundled("gpt-2").render_chat(CHAT)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.on_command_line) == (str(caught.value), caught.value.on_command_line)


def test_chats_are_counted_a_file_and_each(capsys: pytest.CaptureFixture[str], files: dict[str, str]) -> None:
    words = ["count", "--chat", "--vocab", "gpt-2", "--template", files["t.jinja"]]
    assert run(capsys, *words, files["a.json"])[1] == "11\n"
    assert run(capsys, *words, "--each", files["b.jsonl"])[1] == "11\n9\n"
    assert json.loads(run(capsys, *words, "--json", files["a.json"], files["b.jsonl"])[1])["tokens"] == 31


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("bad.jsonl", [], "messages: found none, expected one or more"),
        ("t.jinja", [], "expected a chat as JSON"),
        ("a.json", ["--variable", "1=2"], "--variable: found '1=2', expected NAME=JSON"),
        ("a.json", ["--like", "llama.cpp", "--template", "{{ raise_exception('no') }}"], "line 1: found no"),
    ],
)
def test_what_is_no_chat_is_one_line_on_standard_error(
    capsys: pytest.CaptureFixture[str], files: dict[str, str], name: str, more: list[str], words: str
) -> None:
    status, _, told = run(capsys, "chat", "--vocab", "gpt-2", "--template", files["t.jinja"], files[name], *more)
    assert status == 2
    assert words in told
    assert told.count("\n") == 1
