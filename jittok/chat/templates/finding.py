"""Where the chat templates of a tokenizer are: keys of a GGUF, files beside a tokenizer file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jittok.errors import IN_MEMORY, ChatError, InWords, MalformedVocab
from jittok.vocab import Vocab

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

DEFAULT, FOR_TOOLS = "default", "tool_use"
"""Names of templates: the usual one, and one for chats with tools."""
KEY = "tokenizer.chat_template"
ROLES = ("bos", "eos", "unk", "sep", "pad", "mask")
"""Special tokens of a GGUF that a template sees, as bos_token and so on."""
NAMES_OF_FILES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
MOST_BYTES = 16 << 20
"""Bytes of a file that is read."""


class ChatFiles(NamedTuple):
    """What a tokenizer says of chats."""

    templates: dict[str, str]  # by name
    special: dict[str, str]  # bos_token and so on -> text


def chat_files(tok: Tokenizer) -> ChatFiles:
    """The templates of a tokenizer, read from its file or folder. Empty for one that came from memory."""
    source = tok.vocab.source
    if isinstance(tok.vocab, Vocab):
        special = {
            f"{role}_token": tok.id_to_token(token).decode("utf-8", "replace")
            for role in ROLES
            if (token := getattr(tok, f"{role}_id")) is not None
        }
        return ChatFiles(_of_gguf(source) if _is_file(source) else {}, special)
    if source == IN_MEMORY or not Path(source).exists():
        return ChatFiles({}, _ids_of_file(tok))
    folder = Path(source) if Path(source).is_dir() else Path(source).parent
    config = _json(folder / "tokenizer_config.json")
    named = _named(folder / "special_tokens_map.json", config)
    return ChatFiles(_of_folder(folder, config), {**_ids_of_file(tok), **named})


def _is_file(source: str) -> bool:
    return source != IN_MEMORY and Path(source).is_file()


def _ids_of_file(tok: Tokenizer) -> dict[str, str]:
    """bos_token and so on, by the ids of a file other than GGUF."""
    roles = ((role, getattr(tok, f"{role}_id")) for role in ROLES)
    return {f"{role}_token": tok.decode([token]) for role, token in roles if token is not None}


def _of_gguf(source: str) -> dict[str, str]:
    from jittok.vocab.gguf import STRING, read_header

    values = read_header(source).values
    found = {}
    for key, (kind, value) in values.items():
        if kind == STRING and (key == KEY or key.startswith(KEY + ".")):
            found[key[len(KEY) + 1 :] or DEFAULT] = bytes(value).decode("utf-8", "replace")
    return found


def _of_folder(folder: Path, config: Mapping[str, Any]) -> dict[str, str]:
    """The templates of a folder: files before what tokenizer_config.json says."""
    given = config.get("chat_template")
    found: dict[str, str] = {}
    if isinstance(given, str):
        found[DEFAULT] = given
    elif isinstance(given, list):
        for number, each in enumerate(given):
            if (
                not isinstance(each, dict)
                or not isinstance(each.get("name"), str)
                or not isinstance(each.get("template"), str)
            ):
                raise MalformedVocab(
                    str(folder / "tokenizer_config.json"),
                    f"chat_template[{number}]",
                    each,
                    "an object with name and template",
                )
            found[each["name"]] = each["template"]
    elif given is not None:
        raise MalformedVocab(
            str(folder / "tokenizer_config.json"), "chat_template", given, "a template, or a list of them"
        )
    if (folder / "chat_template.jinja").is_file():
        found[DEFAULT] = _read(folder / "chat_template.jinja")
    elif (folder / "chat_template.json").is_file():
        legacy = _json(folder / "chat_template.json").get("chat_template")
        if isinstance(legacy, str):
            found[DEFAULT] = legacy
    more = folder / "additional_chat_templates"
    for file in sorted(more.glob("*.jinja")) if more.is_dir() else ():
        found[file.stem] = _read(file)
    return found


def _named(special_map: Path, config: Mapping[str, Any]) -> dict[str, str]:
    """The special tokens that the files of a folder name."""
    nodes = [config] if "added_tokens_decoder" in config else [config, _json(special_map)]
    found = {}
    for node in nodes:
        for role in NAMES_OF_FILES:
            value = node.get(f"{role}_token")
            value = value.get("content") if isinstance(value, dict) else value
            if isinstance(value, str):
                found[f"{role}_token"] = value
    more = config.get("extra_special_tokens", {})
    if isinstance(more, dict):
        found |= {name: value for name, value in more.items() if isinstance(value, str)}
    return found


def _read(file: Path) -> str:
    if file.stat().st_size > MOST_BYTES:
        raise MalformedVocab(str(file), "file", InWords(f"{file.stat().st_size} bytes"), f"at most {MOST_BYTES}")
    return file.read_bytes().decode("utf-8", "replace")


def _json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        found = json.loads(_read(file))
    except (ValueError, RecursionError) as error:
        raise MalformedVocab(str(file), "file", InWords(str(error)), "JSON") from None
    return found if isinstance(found, dict) else {}


def choose(templates: Mapping[str, str], asked: str | None, tools: object) -> str:
    """The template of a call: the one asked for (a template, or its name), else that for tools, else the default.

    ChatError if there is none.
    """
    if asked is not None:
        if not isinstance(asked, str):
            raise TypeError(f"template: found {type(asked).__name__}, expected a template or its name")
        if asked in templates:
            return templates[asked]
        if "{" not in asked:
            names = ", ".join(sorted(templates)) or "none"
            raise ChatError("--template", asked, f"the text of a template, or a name of the file's: {names}")
        return asked
    if tools is not None and FOR_TOOLS in templates:
        return templates[FOR_TOOLS]
    if DEFAULT in templates:
        return templates[DEFAULT]
    if templates:
        raise ChatError("--template", InWords("none"), f"one of {', '.join(sorted(templates))}")
    raise ChatError(
        "--template", InWords("none: the tokenizer's files have no chat template"), "one of your own: --template FILE"
    )
