"""`manifest.json`: what a finished corpus directory is made of and holds. It is written last, at one instant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jittok.corpus import disk
from jittok.corpus.state import RANGE_FIELDS, State
from jittok.errors import CorpusError

NAME = "manifest.json"
VERSION = 1
Manifest = dict[str, Any]


def make_manifest(state: State) -> Manifest:
    """The manifest of a run that has come to its end. Nothing in it tells when or how often it was taken up."""
    plan = state.plan
    inputs = []
    for i, row in enumerate(plan["inputs"]):
        size, digest = state.inputs[i]
        inputs.append(
            {"path": row["path"], "bytes": size, "sha256": digest, "kind": row["kind"], "packing": row["packing"]}
        )
    shards = []
    for fact, numbers in zip(state.shards, state.shard_ranges, strict=True):
        files = [{key: file[key] for key in ("name", "bytes", "sha256")} for file in fact["files"]]
        rows = [numbers[i : i + RANGE_FIELDS].tolist() for i in range(0, len(numbers), RANGE_FIELDS)]
        shards.append({"documents": fact["documents"], "tokens": fact["tokens"], "files": files, "ranges": rows})
    return {
        "manifest": VERSION,
        "jittok": plan["jittok"],
        "vocab": plan["vocab"],
        "options": plan["options"],
        "writers": plan["writers"],
        "documents": state.documents,
        "tokens": state.tokens,
        "text_bytes": state.text_bytes,
        "blank_lines": state.blank,
        "bad_documents": state.bad,
        "inputs": inputs,
        "shards": shards,
    }


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write it, one line for each input, shard, file and range so that people and `diff` can read it."""
    disk.write_new(folder / NAME, (_lines(manifest) + "\n").encode())


def _lines(value: Any, depth: int = 0) -> str:
    """JSON with the outer levels on lines of their own."""
    pad = "  " * (depth + 1)
    if isinstance(value, dict) and any(isinstance(inner, list | dict) for inner in value.values()):
        rows = [f"{pad}{json.dumps(key)}: {_lines(inner, depth + 1)}" for key, inner in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + pad[2:] + "}"
    if isinstance(value, list) and any(isinstance(inner, list | dict) for inner in value):
        return "[\n" + ",\n".join(pad + _lines(inner, depth + 1) for inner in value) + "\n" + pad[2:] + "]"
    return json.dumps(value)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a finished directory. Raises CorpusError where there is none, or one of a later kind."""
    path = folder / NAME
    try:
        manifest: Manifest = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise CorpusError(str(path), "no such file", "the manifest of a finished corpus") from None
    except ValueError as error:
        raise CorpusError(str(path), str(error), "JSON") from None
    if not isinstance(manifest, dict) or manifest.get("manifest") != VERSION:
        raise CorpusError(str(path), "another kind of file", f"a manifest of version {VERSION}")
    return manifest


def files_of(manifest: Manifest) -> Sequence[dict[str, Any]]:
    """Every file of every shard."""
    return [file for shard in manifest["shards"] for file in shard["files"]]
