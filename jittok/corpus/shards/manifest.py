"""`manifest.json`: the description of a finished corpus directory. It is written last, atomically.

It names inputs and vocabulary relative to the corpus, so that it can be verified from any directory, and the release of
llama.cpp: a corpus continues with the one that it was begun with, unless another was requested.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.corpus.inputs.kinds import PACKINGS, READ_AS
from jittok.corpus.options import CUTS, FIRST_CUTS, SIDES, Options, below
from jittok.corpus.store import Store, disk, open_store
from jittok.corpus.store.disk import component, file_name
from jittok.errors import CorpusError, InWords, see
from jittok.tokenizer.loading import of_release
from jittok.vocab.releases import RELEASES

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

MANIFEST = "manifest.json"
WORK = ".jittok"
"""The folder of an unfinished corpus."""
VERSION = 3
WITHOUT_LABELS = 2
"""The version whose shards are named by their number, and whose inputs all have the digest of their bytes."""
WITHOUT_DIGEST = 1
"""The version of manifests without a version number."""
DIGEST = "manifest_sha256"
PLAN = "plan.json"
RANGE_FIELDS = 5
FIRST_RELEASE = RELEASES[0].name
"""Corpora without a release are older than this field."""
SIDE = "side"
"""Key of a manifest: which documents its corpus has, of SIDES, where they are divided."""
Manifest = dict[str, Any]


def manifest_text(manifest: Manifest) -> bytes:
    """The content of its file, with its digest: a line for each input, shard, file and range, so that people and `diff`
    can read it."""
    return _text({**manifest, DIGEST: _digest(manifest)})


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write it into a local folder."""
    disk.write_new(folder / MANIFEST, manifest_text(manifest))


def _text(manifest: Manifest) -> bytes:
    return (_lines(manifest) + "\n").encode()


def _digest(manifest: Manifest) -> str:
    """SHA-256 of the manifest without this digest."""
    return hashlib.sha256(_text({key: value for key, value in manifest.items() if key != DIGEST})).hexdigest()


def _lines(value: Any, depth: int = 0) -> str:
    """JSON with the outer levels on lines of their own."""
    pad = "  " * (depth + 1)
    if isinstance(value, dict) and any(isinstance(inner, list | dict) for inner in value.values()):
        rows = [f"{pad}{json.dumps(key)}: {_lines(inner, depth + 1)}" for key, inner in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + pad[2:] + "}"
    if isinstance(value, list) and any(isinstance(inner, list | dict) for inner in value):
        return "[\n" + ",\n".join(pad + _lines(inner, depth + 1) for inner in value) + "\n" + pad[2:] + "]"
    return json.dumps(value)


def read_manifest(place: str | os.PathLike[str] | Store) -> Manifest:
    """The manifest of a finished corpus in a folder, a bucket or a store, unchanged since it was written.

    Raises CorpusError if there is none, or if it is of a later version or was changed.
    """
    store = store_of(place)
    where = store.where(MANIFEST)
    try:
        content = store.read(MANIFEST)
    except FileNotFoundError:
        if len(sides := finished(store)) > 1:
            found = InWords(f"{len(sides)} corpora, of --train-val")
            raise CorpusError(store.place, found, f"one of them: {' or '.join(map(store.where, sides))}") from None
        if next(iter(store.objects(WORK)), None) is not None or (store.local and (store.local / WORK).is_dir()):
            expected = "a finished one: run the same jittok corpus command again to resume it" + see("unfinished")
            raise CorpusError(store.place, InWords("an unfinished corpus"), expected) from None
        raise CorpusError(where, InWords("no such file"), "the manifest of a finished corpus") from None
    return parsed(content, where)


def finished(store: Store) -> tuple[str, ...]:
    """The sides of the corpus in a store whose manifests are there; none unless all are. That of the first side is
    written last."""
    return next((sides for sides in (("",), SIDES) if store.head(below(sides[0], MANIFEST)) is not None), ())


def side_of(store: Store, side: str) -> Store:
    """The store of one side."""
    return open_store(store.where(side)) if side else store


def store_of(place: str | os.PathLike[str] | Store) -> Store:
    """The store of a folder or URL; a store is returned as it is."""
    return place if isinstance(place, Store) else open_store(place)


def parsed(content: bytes, path: str | Path) -> Manifest:
    """Parse a manifest; `path` is for errors. CorpusError unless all of it is as it was written."""
    try:
        manifest: Manifest = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CorpusError(str(path), str(error), "JSON, as it was written") from None
    version = manifest.get("manifest") if isinstance(manifest, dict) else None
    if type(version) is not int or version not in (WITHOUT_DIGEST, WITHOUT_LABELS, VERSION):
        raise CorpusError(str(path), InWords("another kind of file"), f"a manifest of version {VERSION}")
    digest = manifest.pop(DIGEST, None)
    right = {**manifest, DIGEST: _digest(manifest)} if version != WITHOUT_DIGEST else manifest
    if _text(right) != content or (digest is None) != (version == WITHOUT_DIGEST):
        raise CorpusError(
            str(path), InWords("other bytes"), "the manifest as it was written: it has been changed since"
        )
    _check_shape(manifest, path)
    return manifest


def _check_shape(manifest: Manifest, path: str | Path) -> None:
    """CorpusError unless names are valid and numbers are consistent, as other programs may have written them."""
    try:
        numbers = [manifest[key] for key in ("documents", "tokens", "text_bytes", "blank_lines", "bad_documents")]
        for shard in manifest["shards"]:
            numbers += [shard["documents"], shard["tokens"], *(n for row in shard["ranges"] for n in row)]
            if any(len(row) != RANGE_FIELDS for row in shard["ranges"]):
                raise TypeError("a range of another length")
            str.encode(label_of(shard, 0))
            for file in shard["files"]:
                file_name(file["name"], path)
                numbers.append(file["bytes"])
                str.encode(file["sha256"])
        sources = {row[0] for shard in manifest["shards"] for row in shard["ranges"]}
        known = all(_is_input(row) for row in manifest["inputs"]) and _are_words(manifest)
        numbers.append(manifest["vocab"]["tokens"])
        facts = manifest["vocab"]["fingerprint"], manifest["options"]["formats"]
        right = all(type(number) is int and 0 <= number < 1 << 63 for number in numbers)
        right &= known and all(source < len(manifest["inputs"]) for source in sources) and all(facts)
        right &= sum(shard["documents"] for shard in manifest["shards"]) == manifest["documents"]
    except (LookupError, TypeError, AttributeError, UnicodeError) as error:
        raise CorpusError(
            str(path), InWords(f"{type(error).__name__}: {error}"), "a manifest that jittok wrote"
        ) from None
    if not right:
        raise CorpusError(str(path), InWords("inconsistent numbers"), "a manifest that jittok wrote")


def label_of(shard: dict[str, Any], number: int) -> str:
    """What the names of a shard's files have. CorpusError for what is no part of a name; `number`: of the shard, which
    was its label before version 3."""
    return component(shard.get("shard", f"{number:05d}"), "manifest")


def _is_input(row: dict[str, Any]) -> bool:
    """Whether an input of a manifest can be read."""
    packings = ("", *PACKINGS.values())
    return isinstance(row["path"], str) and row["kind"] in READ_AS and row["packing"] in packings


def _are_words(manifest: Manifest) -> bool:
    """Check the types of names and options of a manifest. KeyError, TypeError."""
    vocab, options = manifest["vocab"], manifest["options"]
    texts = [manifest["jittok"], vocab["fingerprint"], *options["formats"], options["dtype"], *options.get("keep", ())]
    texts += [text for text in (vocab["name"], vocab.get("llama_cpp")) if text is not None]
    for name, version in manifest["writers"].items():
        texts += [name, version]
    defaults = Options().identity()
    kinds = {name: {str if default is None else type(default)} for name, default in defaults.items()}
    kinds["eos"].add(int)
    kinds |= {"train_val": {float}, "keep": {list}, "shuffle_documents": {int}}
    if manifest.get(SIDE, "") not in ("", *SIDES) or (SIDE in manifest) != (options.get("train_val") is not None):
        return False
    given = [(value, kinds[name]) for name, value in options.items() if name in kinds and value is not None]
    return all(isinstance(text, str) for text in texts) and all(type(value) in kind for value, kind in given)


def files_of(manifest: Manifest) -> Sequence[dict[str, Any]]:
    """Every file of every shard."""
    return [file for shard in manifest["shards"] for file in shard["files"]]


def with_recorded_release(tok: Tokenizer, place: str | os.PathLike[str] | Store) -> Tokenizer:
    """The tokenizer, or the one of the release that the corpus in `place` was begun with.

    The same if there is no corpus, if a release was requested, or if nothing differs. CorpusError where the vocabulary
    cannot be read again.
    """
    begun = _begun(place).get("vocab")
    if not isinstance(begun, dict) or tok.asked_llama_cpp is not None or begun.get("fingerprint") == tok.fingerprint:
        return tok
    release = begun.get("llama_cpp", FIRST_RELEASE)
    if release == tok.llama_cpp or not isinstance(release, str):  # reading the manifest raises the error
        return tok
    try:
        return of_release(tok, release)
    except ValueError as error:
        raise CorpusError(
            store_of(place).place, InWords(f"a corpus begun with llama.cpp {release} ({error})"),
            f"a vocabulary loaded for that release: --llama-cpp {release}",
        ) from None  # fmt: skip


def cuts_of(place: str | os.PathLike[str] | Store) -> int:
    """The rule that cuts the inputs of the corpus in `place`; today's where there is none."""
    options = _begun(place).get("options")
    cuts = options.get("cuts", FIRST_CUTS) if isinstance(options, dict) else CUTS
    return cuts if type(cuts) is int else CUTS


def _begun(place: str | os.PathLike[str] | Store) -> dict[str, Any]:
    """The facts in the manifest or the plan of a corpus; empty if neither can be read."""
    store = store_of(place)
    try:
        try:
            found = json.loads(store.read(below(next(iter(finished(store)), ""), MANIFEST)))
        except FileNotFoundError:
            found = json.loads(store.read(f"{WORK}/{PLAN}"))["plan"]
    except (CorpusError, OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}  # opening the corpus raises the error
    return found if isinstance(found, dict) else {}
