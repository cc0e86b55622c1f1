"""The class that transformers' AutoTokenizer selects for a folder, and how it reads the files.

`transformers_classes.json` beside this file holds what transformers' own sources define; `python
upstream/record_classes.py` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jittok.errors import JittokError
from jittok.files.contents import exists, parse_json, read_file
from jittok.files.json_nodes import Node

GENERAL = "TokenizersBackend"
"""The class that takes a tokenizer.json as it is, and reads no other file."""
OF_MISTRAL = "MistralCommonBackend"
BASES = (GENERAL, "PythonBackend", OF_MISTRAL)
"""Names that a model type is registered under where a class of the files' choice is meant."""


@cache
def known() -> dict[str, Any]:
    """What was recorded of transformers: classes by every name, model types, special tokens and steps of classes."""
    return dict(json.loads(Path(__file__).with_name("transformers_classes.json").read_bytes()))


def beside(folder: Path, name: str) -> Node:
    """A JSON object that lies in a folder, empty where there is none. MalformedVocab for what is no object."""
    path = exists(folder, name)
    node = parse_json(str(path), read_file(path)) if path else Node(str(folder / name), "", {})
    node.of(dict)
    return node


def model_files(folder: Path) -> list[dict[str, Any]]:
    """generation_config.json and config.json, as far as they are JSON objects: other programs have files of these
    names too."""
    found = []
    for name in ("generation_config.json", "config.json"):
        path = exists(folder, name)
        try:
            value = path and parse_json(str(path), read_file(path)).value
        except JittokError:
            value = None
        found.append(value if isinstance(value, dict) else {})
    return found


def class_of(folder: Path, byte_level: bool = False) -> str | None:
    """The class of the files in a folder; None where no file names one, which AutoTokenizer refuses.

    byte_level: whether there is a tokenizer.json whose steps spell bytes
    """
    config, model = beside(folder, "tokenizer_config.json"), model_files(folder)[1]
    kind, by_model = (
        text if isinstance(text := model.get(key), str) else None for key in ("model_type", "tokenizer_class")
    )
    said = config.get("tokenizer_class", str, None) or by_model
    if config.has("auto_map"):  # code of its own comes first; without it, the class beside it
        return said and _real(said)
    registered = known()["models"].get(kind)
    real = None if registered is None else registered.removesuffix("Fast")
    corrected = not {kind, str(model.get("model_name"))}.isdisjoint(known()["corrected"])
    llama = said is not None and said.removesuffix("Fast") == "LlamaTokenizer"
    if llama and byte_level and real != OF_MISTRAL and not corrected:
        return GENERAL
    if said is None:
        if kind is None:
            return None
        return str(known()["alone"].get(kind, GENERAL))
    if real is not None and real != said.removesuffix("Fast"):
        if real in BASES:
            return GENERAL
        chosen = _real(real if corrected else said)
        return GENERAL if chosen in BASES else chosen
    return _real(said)


def _real(name: str) -> str:
    """The class of a name; the general one for an unknown name."""
    classes: Mapping[str, str] = known()["classes"]
    found = classes.get(name) or classes.get(name.removesuffix("Fast"), GENERAL)
    return GENERAL if found == "PythonBackend" else found


def own_steps(name: str, root: Mapping[str, Any]) -> bool:
    """Whether a class puts a normalizer or a pre-tokenizer of its own in place of those of a tokenizer.json."""
    steps = known()["steps"].get(name)
    return steps is not None and any(
        root.get(key) != steps.get(key, "unknown") for key in ("normalizer", "pre_tokenizer")
    )


def named_tokens(name: str | None) -> dict[str, str]:
    """The special tokens that a class names where no file does: "eos_token" -> text."""
    return dict(known()["tokens"].get(name, {}))
