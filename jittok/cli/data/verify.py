"""`jittok verify`: check that the files of a corpus are unchanged, and that its ids are those of the tokenizer."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from jittok.cli.common import add_threads, add_vocab, group, open_vocab, tell, write

HELP = "Verify a corpus: check its files, and re-tokenize a sample of each shard with the reference implementation."
EXAMPLES = """# check the files, and re-tokenize a sample of the documents
jittok verify shards --vocab gpt-2
# check the files only, if the inputs are gone
jittok verify shards --vocab gpt-2 --hashes-only"""
if TYPE_CHECKING:
    from jittok.corpus.verifier import Report
    from jittok.tokenizer import Tokenizer

SHOWN = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_vocab(parser, required=False)
    parser.add_argument("folder", metavar="DIR", help="folder written by jittok corpus")
    checks = group(parser, "checks")
    checks.add_argument("--all", action="store_true", help="re-tokenize everything, and hash the inputs too")
    checks.add_argument(
        "--hashes-only", action="store_true", help="check only the hashes of the files; the inputs are not needed"
    )
    checks.add_argument(
        "--part", metavar="I/N", help="check each N-th shard, from shard I on: N processes share the work"
    )
    add_threads(parser, "checks")


def run(options: argparse.Namespace) -> int:
    """Verify; returns 1 if anything differs."""
    from jittok.corpus.compiler import REMEDY
    from jittok.corpus.verifier import STRANGER, verify

    found = verify(
        options.folder, _vocab(options), all=options.all, hashes_only=options.hashes_only, part=options.part,
        threads=options.threads,
    )  # fmt: skip
    if options.json:
        write(json.dumps({"ok": found.ok, **asdict(found)}) + "\n")
        return 0 if found.ok else 1
    for difference in found.differences[:SHOWN]:
        tell(
            ", ".join(f"{key} {value}" for key, value in difference.items() if key != "what")
            + f": {difference['what']}\n"
        )
    if len(found.differences) > SHOWN:
        tell(f"and {len(found.differences) - SHOWN} more\n")
    if any(difference["what"] != STRANGER for difference in found.differences):
        tell(f"to fix it: {REMEDY}\n")
    tell(
        f"{_verdict(found, options.hashes_only)}: {found.files} files, "
        f"{found.bytes / 1e6:,.1f} MB hashed; {found.documents:,} of {found.of_documents:,} documents re-tokenized "
        f"{_by(found)}{_witnessed(found)}\n"
    )
    return 0 if found.ok else 1


def _vocab(options: argparse.Namespace) -> Tokenizer:
    """The tokenizer of --vocab, or else the one that the manifest names."""
    if options.vocab is not None:
        return open_vocab(options)
    from jittok.corpus.shards.manifest import read_manifest
    from jittok.corpus.shards.plan import tokenizer_of
    from jittok.corpus.store import open_store

    store = open_store(options.folder)
    return tokenizer_of(read_manifest(store)["vocab"], store)


def _verdict(found: Report, hashes_only: bool) -> str:
    """A summary that claims no more than was checked."""
    if not found.ok:
        return f"{len(found.differences)} differences"
    if hashes_only:
        return "the files are unchanged"
    if found.witnessed_shards < found.of_shards:
        return "no differences, but the reference implementation has not checked every shard"
    return "no differences"


def _by(found: Report) -> str:
    """What re-tokenized the documents."""
    if found.runs in ("", "kernels"):
        return "by the kernels"
    return "by the reference implementation"


def _witnessed(found: Report) -> str:
    """What the reference implementation checked; empty if only files were hashed."""
    if not found.of_shards:
        return ""
    return (
        f", {found.witnessed:,} also by the reference implementation ({found.witnessed_bytes / 1e3:,.1f} KB, from "
        f"{found.witnessed_shards:,} of {found.of_shards:,} shards)"
    )
