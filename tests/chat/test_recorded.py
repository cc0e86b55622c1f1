"""Recorded chats: the texts and ids of transformers, the texts of llama.cpp's server, as this package renders them."""

import collections
import functools
import json
import lzma
import os
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest
from recorded_chats import HERE, LLAMA_NOW, NOW, chats, rows, special_of, standin, standin_tags, templates

import jittok
from jittok.chat.templates.environment import compiled
from jittok.chat.templates.rendering import chat_of, render_marked, render_plain
from jittok.errors import JittokError
from jittok.tokenizer import Tokenizer

SHARED = Path(os.environ.get("JITTOK_SHARED") or Path(__file__).parents[3] / "shared")
WHOLE = SHARED / "golden-people" / "chat"


@functools.cache
def tokenizer_of(folder: Path, vocab: str, template: str) -> Tokenizer:
    if vocab == "standin":
        return standin(standin_tags(folder, template))
    kind, name = vocab.split(":")
    if kind == "gguf":
        return jittok.load(lzma.decompress((SHARED / "vocabs" / f"{name}.gguf.xz").read_bytes()))
    with tempfile.TemporaryDirectory() as made, tarfile.open(SHARED / "tokenizer-files" / f"{name}.tar.xz") as packed:
        packed.extractall(made, filter="data")
        return jittok.load(next(Path(made).rglob("tokenizer.json")).read_bytes())


def arguments(folder: Path, row: dict[str, Any]) -> dict[str, Any]:
    return {**chats(folder)[row["chat"]], "template": templates(folder)[row["template"]], **special_of(row)}


def check_transformers(folder: Path, given: list[dict[str, Any]]) -> None:
    for row in given:
        tok = tokenizer_of(folder, row["vocab"], row["template"] if row["vocab"] == "standin" else "")
        asked, where = arguments(folder, row), (row["template"], row["chat"])
        if "error" in row:
            for call in (tok.render_chat, tok.encode_chat):
                with pytest.raises((JittokError, ValueError, TypeError)):
                    call(now=NOW, **asked)
            continue
        assert tok.render_chat(now=NOW, **asked) == row["text"], where
        chat = tok.encode_chat(now=NOW, **asked)
        safe = row.get("safe", "same")
        assert chat.text == row["text"], where
        assert chat.ids.tolist() == (row["ids"] if safe == "same" else safe), where
        assert (chat.spans[:, 0] <= chat.spans[:, 1]).all(), where
        assert chat.spans[-1, 1] <= len(row["text"].encode()), where


@pytest.mark.parametrize("template", sorted(templates(HERE)))
def test_texts_and_ids_are_those_of_transformers(template: str) -> None:
    check_transformers(HERE, [row for row in rows(HERE, "transformers") if row["template"] == template])


def rendered_like_llama_cpp(row: dict[str, Any], folder: Path, bos: str, eos: str) -> str | JittokError:
    """What `like="llama.cpp"` gives, with the special tokens of the vocabulary that was recorded."""
    from jittok.chat.templates.llama_cpp import as_llama_cpp, check_escapes

    asked = dict(chats(folder)[row["chat"]])
    given = [asked.pop(name, None) for name in ("messages", "tools", "documents")]
    prompt, final = asked.pop("add_generation_prompt", False), asked.pop("continue_final_message", False)
    template = compiled(templates(folder)[row["template"]])
    try:
        chat = chat_of(*given, prompt, final, LLAMA_NOW, {"bos_token": bos, "eos_token": eos}, asked)
        chat = as_llama_cpp(chat, template)
        text = render_plain(template, chat)
        check_escapes(template, text)
        assert render_marked(template, chat).text == text
    except JittokError as error:
        return error
    return text.removeprefix(bos)


def check_llama_cpp(folder: Path, special: dict[tuple[str, str], tuple[str, str]]) -> collections.Counter[str]:
    found: collections.Counter[str] = collections.Counter()
    for row in rows(folder, "llama_cpp"):
        bos, eos = special.get((row["template"], row["chat"]), ("<s>", "</s>"))
        if row["vocab"] == "llama-spm":
            bos, eos = "<s>", "</s>"
        text = rendered_like_llama_cpp(row, folder, bos, eos)
        refused = isinstance(text, JittokError)
        if "error" in row:
            assert refused, (row["template"], row["chat"])
            found["both refuse"] += 1
        else:
            found["refused" if refused else "same" if text == row["text"] else "other"] += 1
            assert refused or text == row["text"] or row["chat"] in ("injection_tools",), (row["template"], row["chat"])
    return found


def specials(folder: Path) -> dict[tuple[str, str], tuple[str, str]]:
    return {
        (row["template"], row["chat"]): (row["bos"] or "", row["eos"] or "") for row in rows(folder, "transformers")
    }


def test_texts_are_those_of_llama_cpp_or_an_error() -> None:
    found = check_llama_cpp(HERE, specials(HERE))
    assert found["same"] >= 0.9 * (found["same"] + found["refused"]), found


@pytest.mark.recorded_elsewhere
@pytest.mark.skipif(not WHOLE.is_dir(), reason=f"no recorded chats in {WHOLE}")
@pytest.mark.parametrize("part", range(8))
def test_texts_and_ids_of_every_template(part: int) -> None:
    names = sorted(templates(WHOLE))[part::8]
    check_transformers(WHOLE, [row for row in rows(WHOLE, "transformers") if row["template"] in names])


@pytest.mark.recorded_elsewhere
@pytest.mark.skipif(not WHOLE.is_dir(), reason=f"no recorded chats in {WHOLE}")
def test_texts_of_every_template_are_those_of_llama_cpp_or_an_error() -> None:
    found = check_llama_cpp(WHOLE, specials(WHOLE))
    assert found["same"] >= 0.9 * (found["same"] + found["refused"]), found


@functools.cache
def gguf(name: str) -> Tokenizer:
    raw = lzma.decompress((SHARED / "vocabs" / f"{name}.gguf.xz").read_bytes())
    if name == "phi-3":  # the model that was recorded had another name, and no rule that goes by it
        raw = raw.replace(b"Phi3", b"Made", 1)
    return jittok.load(raw)


@pytest.mark.recorded_elsewhere
@pytest.mark.skipif(not WHOLE.is_dir(), reason=f"no recorded chats in {WHOLE}")
def test_ids_of_every_template_are_those_of_llama_cpp() -> None:
    """Chats that spell a control token have other ids: they have fewer control tokens."""
    found: collections.Counter[str] = collections.Counter()
    for row in rows(WHOLE, "llama_cpp"):
        if "error" in row:
            continue
        tok, where = gguf(row["vocab"]), (row["template"], row["chat"])
        ids = json.loads(row["ids"]) if isinstance(row["ids"], str) else row["ids"]
        assert tok.encode(row["text"], add_special=True, parse_special=True).tolist() == ids, where
        asked = {**chats(WHOLE)[row["chat"]], "template": templates(WHOLE)[row["template"]]}
        try:
            chat = tok.encode_chat(now=LLAMA_NOW, like="llama.cpp", **asked)
        except JittokError:
            found["refused"] += 1
            continue
        same = chat.ids.tolist() == ids
        found["same" if same else "safe" if chat.text == row["text"] else "other"] += 1
        if not same and chat.text == row["text"]:
            special = [sum(token in tok.special_ids for token in some) for some in (chat.ids.tolist(), ids)]
            assert special[0] < special[1] or row["chat"] in ("reasoning", "injection", "injection_tools"), where
    assert found["same"] >= 830, found
    assert found["other"] <= 2, found
    assert found["refused"] <= 98, found
