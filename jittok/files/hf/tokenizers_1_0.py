"""The serialization of tokenizers 1.0 (release candidates), converted to the tokenizer.json of earlier releases.

It has other parts: U+2581 for spaces is a step of the normalizer, bytes are spelled by the model, and a template holds
ids in place of names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jittok.errors import InWords
from jittok.files.hf.steps import flat
from jittok.files.json_nodes import Node

VERSION = "2.0"
MARKS = "MetaspaceNormalizer"
ALIKE = ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "BertNormalizer")
"""Normalizers after which added tokens are searched for as before."""


def as_before(root: Node) -> Node:
    """The same object in the form of version 1.0. UnsupportedVocab for what that form cannot say."""
    if root.of(dict).get("version") != VERSION:
        return root
    _check_added(root)
    normalizers, splitters = _marks(root, *(_parts(root, *names) for names in (
        ("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers"),
    )))  # fmt: skip
    model, decoder = root.child("model"), root.child("decoder").value
    if model.get("end_of_word_suffix", str, ""):
        raise model.child("end_of_word_suffix").unknown(
            model.value["end_of_word_suffix"], "none: tokenizers 1.0 reads it differently"
        )
    if model.get("byte_level", bool, False):
        splitters = [*splitters, {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]
        decoder = decoder or {"type": "ByteLevel"}
    made = {
        **root.value, "decoder": decoder, "version": "1.0", "post_processor": _template(root.child("post_processor")),
        "normalizer": {"type": "Sequence", "normalizers": normalizers} if normalizers else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": splitters} if splitters else None,
    }  # fmt: skip
    return Node(root.file, root.position, made)


def otherwise(root: Node) -> tuple[str, ...]:
    """Where tokenizers 1.0 (1.0.0rc3 was asked) gives other ids for a file than the releases before, or refuses it. A
    byte-level vocabulary without a token for some byte is refused as well, which is not looked for here."""
    said = "tokenizers 1.0 {}; the ids here are those of 0.23"
    steps = _parts(root, "pre_tokenizer", "pretokenizers")
    spelled = [number for number, step in enumerate(steps) if step.get("type") == "ByteLevel"]
    if root.child("model").of(dict).get("end_of_word_suffix"):
        return (said.format("gives other ids, as it reads the suffix of words differently"),)
    if any(number != len(steps) - 1 for number in spelled):
        return (said.format("refuses this file: ByteLevel is not its last pre-tokenizer"),)
    if any(steps[number].get("add_prefix_space") for number in spelled):
        return (said.format("refuses this file: ByteLevel adds a space"),)
    return ()


def check_ids(root: Node, ids: Mapping[bytes, int]) -> None:
    """UnsupportedVocab for added tokens whose ids are not those that 1.0 writes, and has."""
    for row in root.child("added_tokens").items() if root.of(dict).get("version") == VERSION else ():
        text, token = row.get("content", str), row.get("id", int)
        if ids.get(text.encode()) != token:
            raise row.unknown(InWords(f"the id {token} for {text!r}"), f"{ids.get(text.encode())}, as releases before")


def _check_added(root: Node) -> None:
    """UnsupportedVocab for added tokens that 1.0 searches for in a text which it normalizes in its own way."""
    others = [part["type"] for part in _parts(root, "normalizer", "normalizers") if part.get("type") not in ALIKE]
    if others and any(row.get("normalized", bool, False) for row in root.child("added_tokens").items()):
        found = InWords("added tokens that match normalized text")
        raise root.child("added_tokens").unknown(found, f"none of these with the normalizer {others[0]}")


def _parts(root: Node, name: str, key: str) -> list[Any]:
    return [part.value for part in flat(root.child(name), key)]


def _marks(root: Node, normalizers: list[Any], splitters: list[Any]) -> tuple[list[Any], list[Any]]:
    """Both parts with Metaspace where it was before: before the splitters."""
    kinds = [part.get("type") for part in normalizers]
    if MARKS not in kinds:
        return normalizers, splitters
    node = root.child("normalizer")
    if kinds.index(MARKS) != len(kinds) - 1:
        raise node.unknown(kinds, f"{MARKS} at the end")
    marks = Node(node.file, f"{node.position}[{len(kinds) - 1}]", normalizers[-1])
    mark, scheme = marks.get("replacement", str), marks.one_of("prepend", ("always", "first", "never"))
    cut = {"type": "Split", "pattern": {"String": mark}, "behavior": "MergedWithNext", "invert": False}
    is_cut = splitters[:1] == [cut]
    stages = [{"type": "Metaspace", "replacement": mark, "prepend_scheme": scheme, "split": is_cut}]
    if marks.get("drop_whitespace", bool, False):
        stages.insert(0, {"type": "WhitespaceSplit"})
    return normalizers[:-1], [*stages, *splitters[is_cut:]]


def _template(node: Node) -> Any:
    """A template with a name for each row of ids."""
    if node.value is None or node.type() != "TemplateProcessing":
        return node.value
    special: dict[str, Any] = {}

    def item(part: Node) -> dict[str, Any]:
        if "seq" in part.of(dict):
            return {"Sequence": {"id": part.get("seq", str), "type_id": 0}}
        ids = [each.of(int) for each in part.child("ids").items()]
        name = repr(ids)
        special[name] = {"id": name, "ids": ids, "tokens": [str(each) for each in ids]}
        return {"SpecialToken": {"id": name, "type_id": 0}}

    rows = {key: [item(part) for part in node.child(key).items()] for key in ("single", "pair")}
    return {"type": "TemplateProcessing", **rows, "special_tokens": special}
