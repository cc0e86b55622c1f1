"""Arguments of chats that a template never reads are refused, and files that are not there."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import jittok
from jittok.cli import main
from jittok.errors import ChatError

pytest.importorskip("jinja2", reason="needs the extra chat")
PLAIN = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
CHAT = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize("asked", ["no-such.jinja", "tool_use", ""])
def test_what_is_no_template_and_no_name_of_one_is_refused(asked: str) -> None:
    with pytest.raises(ChatError, match="expected the text of a template, or a name of the file's: none"):
        jittok.bundled("gpt-2").encode_chat(CHAT, template=asked)


@pytest.mark.parametrize(
    "given",
    [{"chat_template": PLAIN}, {"tokenize": False}, {"max_length": 3}, {"return_tensors": "np"}, {"add_special": True}],
)
def test_keywords_of_other_calls_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(given))):
        jittok.bundled("gpt-2").encode_chat(CHAT, template=PLAIN, **given)
    with pytest.raises(TypeError, match="trusted"):
        jittok.bundled("gpt-2").render_chat(CHAT, template=PLAIN, trusted=("user",))


def test_the_command_line_says_what_it_did_not_find(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chat, template = tmp_path / "chat.json", tmp_path / "plain.jinja"
    chat.write_text(json.dumps(CHAT), "utf-8")
    template.write_text(PLAIN, "utf-8")
    ask = ["chat", "--vocab", "gpt-2", str(chat), "--template"]
    assert main([*ask, str(template)]) == 0
    assert "user: hi" in capsys.readouterr().out
    assert main([*ask, "nope.jinja"]) == 2
    assert "found no such file" in capsys.readouterr().err
    assert main([*ask, str(template), "--variable", "enable_thinking=False"]) == 2
    assert "expected JSON: true, false or null" in capsys.readouterr().err
    assert main(["count", "--vocab", "gpt-2", "--template", str(template), "-p", "hi"]) == 2
    assert "found without --chat" in capsys.readouterr().err


def test_chats_one_a_line_come_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    template = tmp_path / "plain.jinja"
    template.write_text(PLAIN, "utf-8")
    lines = [json.dumps({"messages": [{"role": "user", "content": word}]}) for word in ("one", "two")]
    whole = json.dumps(CHAT, indent=1)
    for text, shown in (
        ("\n".join(lines) + "\n", ["user: one", "user: two"]),
        (whole, ["user: hi"]),
        (lines[0], ["user: one"]),
    ):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8"))
        assert main(["chat", "--vocab", "gpt-2", "-", "--template", str(template)]) == 0
        assert [line for line in capsys.readouterr().out.splitlines() if line] == shown
