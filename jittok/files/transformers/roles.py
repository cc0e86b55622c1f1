"""The BOS, EOS, padding and unknown tokens, as the files of a folder specify them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jittok.common.pipeline.models import NO_TOKEN
from jittok.common.pipeline.pipeline import Pipeline
from jittok.files.json_nodes import Node
from jittok.files.transformers.auto_class import beside, model_files, named_tokens

ROLES = ("bos", "eos", "unk", "pad")
USUAL_PADDING = ("[PAD]", "<pad>")
"""Texts of the added token that pads, where no file names one."""


def named_beside(folder: Path) -> dict[str, str | None]:
    """Role -> text, or None for one that is said to be absent, of tokenizer_config.json and special_tokens_map.json.

    transformers does not read the map where tokenizer_config.json holds the added tokens; else the map comes first.
    """
    config = beside(folder, "tokenizer_config.json")
    nodes = [config] if config.has("added_tokens_decoder") else [beside(folder, "special_tokens_map.json"), config]
    found: dict[str, str | None] = {}
    for role in ROLES:
        for node in nodes:
            if f"{role}_token" in node.of(dict):
                found[role] = _text(node.child(f"{role}_token"))
                break
    return found


def _text(node: Node) -> str | None:
    """A token that is a text, an object with one, or null."""
    if isinstance(node.value, dict):
        return str(node.get("content", str))
    if node.value is not None and not isinstance(node.value, str):
        raise node.bad(node.value, "a text, or an object with content")
    return node.value


def _number(said: Any, size: int) -> int | None:
    """The id of a model's own files, which may be a list: then the first counts. None for what is no id of it."""
    first = said[0] if isinstance(said, list) and said else said
    return first if type(first) is int and 0 <= first < size else None


def token_of(made: Pipeline, text: str) -> int:
    """The id of a text, without the dictionary of all texts; NO_TOKEN where it is none."""
    for token in made.added:
        if token.content == text:
            return token.id
    raw = np.frombuffer(text.encode(), np.uint8)
    begins, sizes = made.model_offsets[:-1], np.diff(made.model_offsets)
    alike = np.flatnonzero(sizes == raw.size) if raw.size else sizes[:0]
    rows = made.model_bytes[begins[alike][:, None] + np.arange(raw.size)]
    found = alike[(rows == raw).all(axis=1)]
    return int(found[-1]) if found.size else NO_TOKEN


def with_roles(made: Pipeline, folder: Path, name: str | None) -> Pipeline:
    """A tokenizer whose special ids are those that its folder names, by text before by number.

    First comes what tokenizer_config.json and special_tokens_map.json say, then the file itself, then the class `name`
    of transformers, at last the numbers of generation_config.json and config.json.
    """
    texts, by_class, models = named_beside(folder), named_tokens(name), model_files(folder)
    found: dict[str, int] = {}
    notes: list[str] = []
    for role in ROLES:
        text = texts.get(role)
        if role in texts:
            found[role] = NO_TOKEN if text is None else token_of(made, text)
            if text is not None and found[role] == NO_TOKEN:
                notes.append(f"{role}_token {text!r} is not a token of this file, so it has no id")
        elif getattr(made, f"{role}_id") == NO_TOKEN:
            numbers = (_number(model.get(f"{role}_token_id"), len(made)) for model in models)
            token = token_of(made, by_class.get(f"{role}_token", ""))
            found[role] = next((number for number in (token, *numbers) if number not in (None, NO_TOKEN)), NO_TOKEN)
    made = with_ids(made, found)._replace(notes=(*made.notes, *notes))
    return made if "pad" in texts else with_padding(made)


def with_padding(made: Pipeline) -> Pipeline:
    """A tokenizer.json whose padding token is an added one with a usual text, where no file names one. Other formats
    say themselves that they have none."""
    if made.pad_id != NO_TOKEN or made.library not in ("tokenizers", "transformers"):
        return made
    added = {token.content: token.id for token in made.added}
    return with_ids(made, {"pad": next((added[text] for text in USUAL_PADDING if text in added), NO_TOKEN)})


def with_ids(made: Pipeline, found: Mapping[str, int]) -> Pipeline:
    """A tokenizer with other special ids than its own file names; its fingerprint stays that of the file."""
    own = made.own_ids or tuple(getattr(made, f"{role}_id") for role in ROLES)
    changed = {f"{role}_id": token for role, token in found.items() if token != getattr(made, f"{role}_id")}
    return made._replace(**changed, own_ids=own) if changed else made
