"""tokenizer.json, as Hugging Face's `tokenizers` writes it, to a Pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np

from jittok.common.pipeline.models import NO_TOKEN, Model
from jittok.common.pipeline.pipeline import (
    FIRST_TEXT,
    LSTRIP,
    NORMALIZED,
    PRINTED_NORMALIZED,
    RSTRIP,
    SECOND_TEXT,
    SINGLE_WORD,
    SPECIAL,
    UNSEARCHED,
    AddedToken,
    Pipeline,
    packed,
    read_only_array,
)  # fmt: skip
from jittok.common.pipeline.steps import Spaced
from jittok.errors import InWords
from jittok.files.hf.models import Vocabulary, read_model
from jittok.files.hf.steps import (
    MOST_AROUND,
    Growth,
    check_empty_texts,
    decoders,
    flat,
    normalizers,
    splitters,
    without_empty,
)
from jittok.files.hf.tokenizers_1_0 import otherwise
from jittok.files.json_nodes import Node

LIBRARY = "tokenizers"
VERSION = "1.0"
MOST_ADDED = 1 << 20
NAMES = ("bos", "eos", "unk", "pad")


def pipeline_of(root: Node, content: bytes, notes: tuple[str, ...] = ()) -> Pipeline:
    """The Pipeline of the JSON object of a tokenizer.json. MalformedVocab, UnsupportedVocab."""
    version = root.of(dict).get("version", VERSION)  # the library reads a file without one
    if version != VERSION:
        raise root.child("version").unknown(version, f"{VERSION!r}")
    vocabulary, model = read_model(root.child("model"), content)
    added, moved = read_added(root.child("added_tokens"), vocabulary, root.has("normalizer"))
    around = read_template(root.child("post_processor"))
    single, pair = around["single"], around["pair"]
    growth = Growth()
    normalize = normalizers(root.child("normalizer"), growth)
    split = splitters(root.child("pre_tokenizer"), growth)
    check_empty_texts(root, normalize, split)
    made = make_pipeline(
        root.file,
        "tokenizer.json",
        vocabulary,
        model,
        added,
        normalize=without_empty(normalize, split),
        split=split,
        decode=decoders(root.child("decoder")) if root.has("decoder") else (Spaced(),),
        **around,
        **read_trimming(root.child("post_processor")),
        notes=(*notes, *moved, *_not_certain(vocabulary), *_not_applied(root), *otherwise(root)),
    )
    if max(*single, *pair) >= len(made):
        raise root.child("post_processor").bad(InWords(f"the id {max(*single, *pair)}"), f"ids below {len(made)}")
    return made


def make_pipeline(
    file: str, kind: str, vocabulary: Vocabulary, model: Model, added: list[AddedToken], **parts: Any
) -> Pipeline:
    """A Pipeline with added tokens as arrays."""
    data, offsets = packed([token.content.encode() for token in added])
    bits = ((SPECIAL, "special"), (NORMALIZED, "normalized"), (LSTRIP, "lstrip"), (RSTRIP, "rstrip"),
            (SINGLE_WORD, "single_word"), (UNSEARCHED, "unsearched"),
            (PRINTED_NORMALIZED, "printed_normalized"))  # fmt: skip
    flags = [sum(bit for bit, name in bits if getattr(token, name)) for token in added]
    return Pipeline(
        source=file,
        format=kind,
        library=LIBRARY,
        model_bytes=vocabulary.token_bytes,
        model_offsets=vocabulary.token_offsets,
        holes=vocabulary.holes,
        twins=vocabulary.twins,
        model=model,
        added_bytes=data,
        added_offsets=offsets,
        added_ids=read_only_array([token.id for token in added], np.int32),
        added_flags=read_only_array(flags, np.uint8),
        unk_id=max(getattr(model, "unknown", NO_TOKEN), NO_TOKEN),
        **parts,
    )


def read_added(node: Node, vocabulary: Vocabulary, is_normalized: bool) -> tuple[list[AddedToken], tuple[str, ...]]:
    """(the added tokens, notes on those whose id differs from the file's).

    A token has the id that the model's vocabulary has for its text, else the next free one from the vocabulary's size
    on; the file's own is only compared. Of a token that is there twice the last flags hold, but it stays special.

    is_normalized: whether the file has a normalizer
    """
    found: dict[str, AddedToken] = {}
    one_an_id: dict[int, AddedToken] = {}  # a token that is new may have an id of the model
    moved, ids = [], vocabulary.ids
    top = (
        vocabulary.token_offsets.size - 1 - vocabulary.holes.size + len(vocabulary.twins)
    )  # a piece of Unigram may be there twice
    rows = [] if node.value is None else node.items()
    if len(rows) > MOST_ADDED:
        raise node.bad(InWords(f"{len(rows)} added tokens"), f"at most {MOST_ADDED}")
    for row in rows:
        content, said = row.get("content", str), row.count("id")
        flags = [row.get(name, bool) for name in ("special", "normalized", "lstrip", "rstrip", "single_word")]
        if not content:
            continue
        before = found.get(content)
        token = ids.get(content) if before is None else before.id
        if before is not None:
            flags[0] |= before.special
        was_normalized = before is not None and (before.normalized or before.printed_normalized)
        printed = is_normalized and was_normalized and not flags[1]  # the library goes on to print that
        if token is None:
            token, top = top, top + 1
        if token != said:
            moved.append(f"{content!r} is {token}, not {said}")
        found[content] = one_an_id[token] = AddedToken(content, token, *flags)._replace(printed_normalized=printed)
    shown = "; ".join(moved[:3]) + (f" and {len(moved) - 3} more" if len(moved) > 3 else "")
    return list(one_an_id.values()), (f"added tokens have other ids than in the file: {shown}",) if moved else ()


# ---- post-processors


def read_template(node: Node) -> dict[str, tuple[int, ...]]:
    """Fields of a Pipeline: the templates of the file's post-processor, and the types of their segments."""
    every = [(part, _checked_type(part)) for part in flat(node, "processors")]
    parts = [(part, kind) for part, kind in every if kind != "ByteLevel"]
    if len(parts) > 1:
        raise node.unknown([kind for _, kind in parts], "one post-processor that adds tokens")
    if not parts:
        return {"single": (FIRST_TEXT,), "pair": (FIRST_TEXT, SECOND_TEXT)}
    ((part, kind),) = parts
    if kind == "TemplateProcessing":
        (single, single_types), (pair, pair_types) = _template(part, "single"), _template(part, "pair")
        return {"single": single, "pair": pair, "single_types": single_types, "pair_types": pair_types}
    if kind not in ("BertProcessing", "RobertaProcessing"):
        raise part.child("type").unknown(kind, "a supported post-processor")
    cls, sep = (_named_id(part.child(name)) for name in ("cls", "sep"))
    if kind == "BertProcessing":
        return {"single": (cls, FIRST_TEXT, sep), "pair": (cls, FIRST_TEXT, sep, SECOND_TEXT, sep)}
    pair = (cls, FIRST_TEXT, sep, sep, SECOND_TEXT, sep)
    return {"single": (cls, FIRST_TEXT, sep), "pair": pair, "pair_types": (0,) * len(pair)}  # one segment


def read_trimming(node: Node) -> dict[str, bool]:
    """Fields of a Pipeline: what the file's post-processor does to spans."""
    for part in flat(node, "processors"):
        absent = part.type() == "ByteLevel" or None
        if part.type() in ("ByteLevel", "RobertaProcessing") and part.get("trim_offsets", bool, absent):
            return {"trims_spans": True, "keeps_prefix": bool(part.get("add_prefix_space", bool, absent))}
    return {}


def _checked_type(part: Node) -> str:
    """The type of a post-processor. UnsupportedVocab if its keys contradict it: the library uses the keys alone."""
    kind = by_keys = part.type()
    if part.has("cls") and part.has("sep"):
        flags = [type(part.child(name).value) is bool for name in ("trim_offsets", "add_prefix_space")]
        by_keys = "RobertaProcessing" if all(flags) else "BertProcessing"
    if kind != by_keys:
        raise part.child("type").unknown(kind, f"{by_keys}, as tokenizers takes an object with these keys")
    return kind


def _named_id(node: Node) -> int:
    """The id of ["</s>", 2]."""
    row = node.of(list)
    if len(row) != 2 or type(row[0]) is not str or type(row[1]) is not int or not 0 <= row[1] < 1 << 31:
        raise node.bad(row, "a token's text and id")
    return int(row[1])


def _template(part: Node, key: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The parts of a template, and their types."""
    out: list[int] = []
    types: list[int] = []
    for item in part.child(key).items():
        if set(item.of(dict)) == {"Sequence"}:
            inner = item.child("Sequence")
            name = inner.one_of("id", ("A", "B"))
            if name == "B" and key == "single":
                raise item.bad(item.value, "the sequence A alone")
            out.append(FIRST_TEXT if name == "A" else SECOND_TEXT)
        elif set(item.of(dict)) == {"SpecialToken"}:
            inner = item.child("SpecialToken")
            out += _special_ids(part, inner)
            if len(out) > MOST_AROUND:
                raise item.unknown(InWords(f"more than {MOST_AROUND} ids around a text"), f"at most {MOST_AROUND}")
        else:
            raise item.bad(item.value, "a Sequence or a SpecialToken")
        types += [inner.count("type_id", 0)] * (len(out) - len(types))
    if out.count(FIRST_TEXT) != 1 or out.count(SECOND_TEXT) != (key == "pair"):
        raise part.child(key).unknown(part.child(key).value, "the sequence A once" + ", and B once" * (key == "pair"))
    return tuple(out), tuple(types)


def _special_ids(part: Node, item: Node) -> list[int]:
    name = item.get("id", str)
    known = part.child("special_tokens")
    if name not in known.of(dict):
        raise item.bad(name, f"one of special_tokens: {', '.join(sorted(known.value)[:20])}")
    ids = known.child(name).child("ids")
    for each in ids.items():
        if not 0 <= each.of(int) < 1 << 31:
            raise each.bad(each.value, "an id, 0 or more, below 2^31")
    return list(ids.value)


def _not_certain(vocabulary: Vocabulary) -> tuple[str, ...]:
    """What is said of ids that have two texts."""
    if not vocabulary.twins:
        return ()
    text, token = vocabulary.twins[0]
    more = f", and {len(vocabulary.twins) - 1} more such texts" if len(vocabulary.twins) > 1 else ""
    return (f"{text!r} has the id {token}, shared with another text{more}: ids are exact, but decoding is undefined",)


def _not_applied(root: Node) -> tuple[str, ...]:
    """What the file asks for that jittok leaves to its callers."""
    notes = []
    if root.has("truncation"):
        notes.append(f"the file asks for truncation ({root.child('truncation').value}); not applied")
    if root.has("padding"):
        notes.append(f"the file asks for padding ({root.child('padding').value}); not applied")
    return tuple(notes)
