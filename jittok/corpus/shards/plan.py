"""The plan of a corpus: all that decides its bytes, as plain data; and whether two plans are of the same run.

Paths of inputs and vocabulary are relative to the corpus, so that it can be verified from any directory.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok import __version__
from jittok.corpus.formats import format_class
from jittok.corpus.inputs.remote import is_url
from jittok.corpus.inputs.sources import STDIN, Source
from jittok.corpus.options import FIRST_CUTS, Options
from jittok.corpus.ranges.chats import templates_of
from jittok.corpus.store import Store
from jittok.errors import CorpusError, InWords, see

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

Fact = dict[str, Any]
INPUTS_FROM = "inputs_from"
"""Key of the manifest: the directory that relative input names start from, relative to the corpus."""


VOCAB_FILE = "file"
"""Key of its vocabulary: the file, relative to the corpus; absent for a bundled one."""


CHAT = "chat"
"""Key of its vocabulary: `chat_facts`."""


def _relative(path: str, out: Path | None) -> str:
    if out is None:
        return Path(os.path.realpath(path)).as_posix()
    try:
        return Path(os.path.relpath(os.path.realpath(path), os.path.realpath(out))).as_posix()
    except ValueError:  # another drive
        return Path(os.path.realpath(path)).as_posix()


def _paths(tok: Tokenizer, sources: Sequence[Source], store: Store | None) -> tuple[dict[str, str], dict[str, str]]:
    """The directory that relative input names start from, if there are any, and the file of the vocabulary, if it was
    loaded from one: relative to a local directory that is to be written, else absolute; empty without an output."""
    if store is None:
        return {}, {}
    out = store.local
    relative = (s.path != STDIN and not is_url(s.path) and not os.path.isabs(s.path) for s in sources)  # noqa: PTH117
    source = tok.vocab.source
    return (
        {INPUTS_FROM: _relative("", out)} if any(relative) else {},
        {VOCAB_FILE: _relative(source, out)} if os.path.exists(source) else {},  # noqa: PTH110
    )


def input_path(path: str, manifest: Mapping[str, Any], folder: Path | None) -> str:
    """The path of an input: relative to where the corpus was made if it exists there, else unchanged."""
    base = manifest.get(INPUTS_FROM)
    if isinstance(base, str) and not is_url(path):
        seen = os.path.normpath(os.path.join(os.path.realpath(folder or ""), base, path))  # noqa: PTH118
        if os.path.exists(seen):  # noqa: PTH110
            return seen
    return path


def tokenizer_of(vocab: Mapping[str, Any], store: Store) -> Tokenizer:
    """The tokenizer that a plan or manifest names. CorpusError if its file is missing or has changed."""
    from jittok.tokenizer.loading import bundled, load
    from jittok.vocab.bundled import bundled_names

    name, file, pre = vocab.get("name"), vocab.get(VOCAB_FILE), vocab.get("asked_pre")
    tok = None
    if isinstance(file, str):
        path = os.path.normpath(os.path.join(os.path.realpath(store.local or ""), file))  # noqa: PTH118
        tok = load(path, pre=pre) if os.path.exists(path) else None  # noqa: PTH110
    elif name in bundled_names():
        tok = bundled(str(name), pre=pre)
    if tok is None:
        shown = f"{name or 'without a name'} {str(vocab.get('fingerprint'))[:12]}"
        raise CorpusError(
            "--vocab", InWords(f"none, and the vocabulary {shown} is no longer where it was"), "its file or name"
        )
    return tok


ANSWERS = 1
"""Incremented with each change to the ids of any text that the fingerprint of a vocabulary does not reflect."""


SIDES_OF_CHATS = 2
"""Incremented with each change to which side a chat is on. By 1 it was its line or row that was hashed."""
OF_SIDES = "sides of chats"


def writers_of(options: Options) -> dict[str, str]:
    """The packages whose version decides the bytes of a format, and these versions."""
    packages = {format_class(name).writer for name in options.formats} - {""}
    return {name: importlib.import_module(name).__version__ for name in sorted(packages)}


def make_plan(tok: Tokenizer, sources: Sequence[Source], options: Options, store: Store | None = None) -> Fact:
    """All that decides the bytes of a corpus, as plain data."""
    writers = writers_of(options)
    inputs_from, vocab_file = _paths(tok, sources, store)
    names = ("fingerprint", "llama_cpp", "name", "type", "pre", "asked_pre", "bos_id", "eos_id")
    facts = {name: getattr(tok, name) for name in names}
    return {
        "jittok": __version__,
        "vocab": {**facts, "tokens": tok.vocab_size, **vocab_file, **chat_facts(tok, options)},
        **inputs_from,
        "options": options.identity(),
        "writers": writers,
        "rules": rules_of(options),
        "inputs": [
            {"path": s.path, "bytes": s.size, "kind": s.kind, "packing": s.packing, "stamp": s.stamp} for s in sources
        ],
    }


def chat_facts(tok: Tokenizer, options: Options) -> dict[str, str]:
    """Of chats, the digest of the templates and special tokens in the files of a vocabulary, which its fingerprint does
    not reflect."""
    return {} if options.messages is None else {CHAT: templates_of(tok, options)}


def rules_of(options: Options) -> Fact:
    """What decides, beside the fingerprint of the vocabulary, whether a corpus may be resumed: whether ids and
    layouts are those of the version that started it. Versions that differ in neither write the same bytes."""
    layouts = {f"layout of {name}": format_class(name).layout for name in options.formats}
    sides = {OF_SIDES: SIDES_OF_CHATS} if options.messages is not None and options.train_val is not None else {}
    return {"answers": ANSWERS, **layouts, **sides}


def differences(old: Fact, new: Fact, on_error_may_change: bool = False) -> list[str]:
    """The differences between the plan a directory was started with and the present one, in words."""
    said = []
    was_asked, asked = old["options"], new["options"]
    layouts = [f"layout of {name}" for name in was_asked["formats"] if name in asked["formats"]]
    sides = [OF_SIDES] if {"messages", "train_val"} <= was_asked.keys() & asked.keys() else []
    rules = dict.fromkeys(["answers", *layouts, *sides], 1)
    was_ruled, is_ruled = ({**rules, **plan.get("rules", {})} for plan in (old, new))
    other = [key for key in rules if was_ruled[key] != is_ruled.get(key)]
    if other:
        said.append(f"jittok {new['jittok']} (begun with {old['jittok']}, whose {other[0]} differ)" + see("release"))
    if old["vocab"]["fingerprint"] != new["vocab"]["fingerprint"]:
        said.append(f"vocabulary {named(new['vocab'])} (begun with {named(old['vocab'])})")
    if old["vocab"].get(CHAT) != new["vocab"].get(CHAT):
        said.append("other chat templates or special tokens in the files of the vocabulary")
    ends = [plan["vocab"].get("eos_id") for plan in (old, new)]
    if new["options"].get("append_eos") and new["options"].get("eos") is None and ends[0] != ends[1]:
        said.append(f"end-of-text token {ends[1]} (begun with {ends[0]})")
    for part in ("options", "writers"):
        free = {"max_document_bytes", *(["on_error"] if on_error_may_change else [])}
        for key in sorted({*old[part], *new[part]} - free):
            first = {"cuts": FIRST_CUTS}.get(key)
            was, now = old[part].get(key, first), new[part].get(key)
            said += [f"{key} {now!r} (begun with {was!r})"] if was != now else []
    before, after = ([row["path"] for row in plan["inputs"]] for plan in (old, new))
    if before != after:
        gone, more = [path for path in before if path not in set(after)], [p for p in after if p not in set(before)]
        said += [_first_of("no input", gone), _first_of("a new input", more)]
        said += ["inputs in another order"] if not gone and not more else []
    else:
        changes: list[str] = []
        for was, now in zip(old["inputs"], new["inputs"], strict=True):
            known = (key for key in ("bytes", "kind", "packing") if was[key] != now[key] and was[key] is not None)
            changes += [
                f"{now['path']}: {key} {now[key]!r} (begun with {was[key]!r})" for key in known if now[key] is not None
            ]
        said += [*changes[:1], *([f"{len(changes) - 1:,} more such changes"] if len(changes) > 1 else [])]
    return [clause for clause in said if clause]


def _first_of(what: str, paths: Sequence[str]) -> str:
    """The first of some paths and how many more there are; nothing where there is none."""
    return "" if not paths else f"{what} {paths[0]}" + (f" and {len(paths) - 1:,} more" if len(paths) > 1 else "")


def different(folder: str, said: Sequence[str]) -> CorpusError:
    """A directory that was begun with something else."""
    expected = "the same vocabulary, options and inputs, or another --out"
    return CorpusError(folder, InWords("another corpus"), f"{expected}; now {'; '.join(said)}")


def named(vocab: Fact) -> str:
    """A vocabulary of a plan or a manifest, in words."""
    release = f" as llama.cpp {vocab['llama_cpp']} reads it" if vocab.get("llama_cpp") else ""
    return f"{vocab['name'] or 'without a name'} {vocab['fingerprint'][:12]}{release}"
