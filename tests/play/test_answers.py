"""What the page is told, and who is told anything."""

from __future__ import annotations

import json
import re
import tarfile
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from recorded_files import HERE

import jittok
from jittok.cli import main
from jittok.play.answers import CHARACTERS, SHOWN, Session, tokens_of, word_of
from jittok.play.server import MOST_ASKED
from jittok.play.still import still_page

TEXTS = ["", "Hello, world", "naïve 東京 👩‍👩‍👧", "\ud800 lone", "<|endoftext|>", "a\tb\n\n c", "x" * 400]


@pytest.fixture(scope="module")
def session() -> Session:
    return Session({name: jittok.bundled(name) for name in ("gpt-2", "t5", "mistral", "bert")})


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_are_those_of_the_text(text: str, session: Session) -> None:
    found = session.answer({"kind": "encode", "text": text, "vocabularies": list(session.tokenizers)})
    for name, tok in session.tokenizers.items():
        ids = [row[0] for row in found[name]["tokens"]]
        assert ids == tok.encode(text, errors="replace").tolist()
        assert found[name]["count"] == len(ids)
        assert all(0 <= start <= stop <= len(text) for _, start, stop, *_ in found[name]["tokens"])
    json.dumps(found)


def test_a_long_text_is_counted_whole_and_drawn_in_part(session: Session) -> None:
    tok = session.tokenizers["gpt-2"]
    text = "some words and more of them " * (CHARACTERS // 10)
    found = tokens_of(tok, text)
    assert len(found["tokens"]) == SHOWN
    assert found["count"] == tok.count(text)
    assert found["bytes"] == found["characters"] == len(text)


@pytest.mark.parametrize("name", ["gpt-2", "t5", "mistral", "bert"])
def test_each_token_has_a_word_that_shows_how_it_came_to_be(name: str, session: Session) -> None:
    tok, text = session.tokenizers[name], "Hello  incompatibility!\n\tnightmares ﬁne 東京"
    shown = set()
    for _, start, stop, *_ in tokens_of(tok, text)["tokens"]:
        found = word_of(tok, text, start, stop)
        assert text[start:stop].strip() in found["word"] or found["alone"]
        shown |= {part["title"].split(",")[0] for part in found["parts"]}
        assert all(part["html"].startswith("<") for part in found["parts"])
    wanted = {"gpt-2": "the merges", "mistral": "the merges", "t5": "the lattice", "bert": "the longest matches"}
    assert wanted[name] in shown
    assert ("the character map's walk" in shown) == (name == "t5")


def test_a_word_is_short_whatever_the_text(session: Session) -> None:
    found = session.answer(
        {"kind": "word", "vocabulary": "gpt-2", "text": "y" * 100_000, "start": 50_000, "stop": 90_000}
    )
    assert len(found["word"]) < 500
    assert "error" not in session.answer({"kind": "word", "vocabulary": "gpt-2", "text": "ab", "start": -5, "stop": 99})


@pytest.mark.parametrize(
    "question",
    [{}, {"kind": "no such"}, {"kind": "word", "vocabulary": "none", "start": 0, "stop": 1}, {"kind": "encode"},
     {"kind": "word", "vocabulary": "gpt-2", "start": "x", "stop": 1, "text": "a"},
     {"kind": "chat", "vocabulary": "gpt-2", "messages": "{"},
     {"kind": "chat", "vocabulary": "gpt-2", "messages": "{}"},
     {"kind": "chat", "vocabulary": "gpt-2", "messages": [{"role": "user", "content": "a"}]}],
)  # fmt: skip
def test_what_cannot_be_answered_is_an_error_and_no_crash(question: dict[str, Any], session: Session) -> None:
    assert session.answer(question)["error"]


def test_files_are_loaded_under_names_of_their_own() -> None:
    from jittok.vocab.bundled import bundled_source

    mine = Session({})
    content = bundled_source("gpt-2")
    assert [mine.load("gpt-2.gguf", content) for _ in range(2)] == ["gpt-2.gguf", "gpt-2.gguf (2)"]
    assert [name for name, *_ in mine.names()] == ["gpt-2.gguf", "gpt-2.gguf (2)"]
    with pytest.raises(jittok.JittokError):
        mine.load("x", b"no tokenizer")
    mine.tokenizers |= {str(number): mine.tokenizers["gpt-2.gguf"] for number in range(30)}
    with pytest.raises(ValueError, match="expected fewer"):
        mine.load("x", content)


def asked(address: str, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, str, Any]:
    """(status, body, headers) of a request to the server."""
    where = urlsplit(address)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=30)
    connection.request(method, path, body or None, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), answer.headers
    connection.close()
    return found


@pytest.mark.process
def test_only_this_machine_with_the_key_is_answered(address: str) -> None:
    key = parse_qs(urlsplit(address).query)["key"][0]
    question = json.dumps({"kind": "encode", "text": "a", "vocabularies": ["gpt-2"]}).encode()
    status, page, headers = asked(address, "GET", f"/?key={key}")
    assert (status, "page.js" in page) == (200, True)
    assert "script-src 'self'" in headers["content-security-policy"]
    for wrong in ("", "?key=", f"?key={key}x", f"?key={key[:-1]}", "?key=%C3%A4"):
        assert asked(address, "GET", f"/{wrong}")[0] == 403
    assert asked(address, "GET", "/names")[0] == 403
    assert asked(address, "POST", "/ask", question)[0] == 403
    assert asked(address, "POST", "/load", b"x")[0] == 403
    assert json.loads(asked(address, "POST", "/ask", question, x_key=key)[1])["gpt-2"]["count"] == 1
    assert asked(address, "GET", "/names", x_key=key, host="evil.example")[0] == 400
    for path in ("/asset/answers.py", "/asset/..%2fserver.py", "/asset/page.html"):
        assert asked(address, "GET", path, x_key=key)[0] == 404
    assert json.loads(asked(address, "POST", "/ask", b"[" * 100_000, x_key=key)[1]) == {"error": "no JSON"}
    assert "expected" in json.loads(asked(address, "POST", "/load?name=x", b"nothing", x_key=key)[1])["error"]
    assert asked(address, "POST", "/ask", b" " * (MOST_ASKED + 1), x_key=key)[0] == 413


def test_a_saved_page_holds_all_it_needs(tmp_path: Path) -> None:
    text = "incompatible </script><script>alert(1)</script> \u2028"
    page = still_page({"gpt-2": jittok.bundled("gpt-2")}, text)
    assert "/asset/" not in page
    assert page.count("</script>") == 2
    assert not re.search(r'(src|href)="(?!data:)', page)
    out = tmp_path / "page.html"
    assert main(["play", "gpt-2", "--static", str(out), "Hello"]) == 0
    assert main(["play", "gpt-2", "--static", str(out), "Hello"]) == 2  # it is there
    assert "Hello" in out.read_text("utf-8")
    assert main(["play", "--port", "70000"]) == 2


def test_a_widget_is_made_and_answers_messages() -> None:
    pytest.importorskip("anywidget")
    tok = jittok.bundled("gpt-2")
    made = tok.explore("Hello")
    sent: list[Any] = []
    made.send = sent.append
    made._asked(made, {"kind": "encode", "text": "a b", "vocabularies": ["gpt-2"], "number": 7}, [])
    assert sent == [{"number": 7, "answer": {"gpt-2": tokens_of(tok, "a b")}}]
    data, _ = made._repr_mimebundle_()
    assert "Hello" in data["text/html"]
    with pytest.raises(TypeError, match="expected a str"):
        tok.explore(b"x")  # type: ignore[arg-type]


def test_a_chat_shows_who_wrote_what_and_what_stays_text(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="needs the extra chat")
    with tarfile.open(HERE / "syn-wordpiece-flags.tar.xz") as file:
        file.extractall(tmp_path, filter="data") if hasattr(tarfile, "data_filter") else file.extractall(tmp_path)
    folder = tmp_path / "syn-wordpiece-flags"
    template = "{% for m in messages %}{{ bos_token }}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}"
    config = {"chat_template": template, "bos_token": "[CLS]", "eos_token": "[SEP]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    session = Session({"mine": jittok.load(folder)})
    messages = [{"role": "user", "content": "why [SEP] now"}, {"role": "assistant", "content": "because"}]
    found = session.answer({"kind": "chat", "vocabulary": "mine", "messages": json.dumps(messages)})
    text = found["text"]
    assert text == "[CLS]user: why [SEP] now[SEP][CLS]assistant: because[SEP]"
    assert found["injections"] == [[text.index("[SEP]"), text.index("[SEP]") + 5, "[SEP]"]]
    rows = [(text[start:stop], message, learned) for _, start, stop, _, _, _, message, learned in found["tokens"]]
    assert {message for part, message, _ in rows if part == "[CLS]"} == {-1}
    assert "".join(part for part, _, learned in rows if learned).strip() == "because"
    first, last = text.index("why"), text.index(" now") + 4
    inside = [row for row in found["tokens"] if first <= row[1] and row[2] <= last]
    assert inside
    assert {row[6] for row in inside} == {0}
