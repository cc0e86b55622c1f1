"""`jittok cache`: the cache on disk, with machine code of kernels and compiled vocabularies."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

from jittok.cli.common import add_json, group, tell, write

HELP = "List, clear or fill the cache of machine code and compiled vocabularies."
EXAMPLES = """# the cached files, and where the machine code comes from
jittok cache list
# in a container image: compile now, for every processor of a level
jittok cache warm --vocab model.gguf --level v3"""
WARM_TEXT = "The first text.\n\u00e9\u4e2d\U0001f600 <|x|> 12345 \t it's"
"""A little of everything, so that all kernels for texts are compiled."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument(
        "action",
        choices=("list", "clear", "warm"),
        metavar="list|clear|warm",
        help="list or clear the cache; or warm: compile --vocab and its kernels now, as when building an image",
    )
    warm = group(parser, "warm")
    warm.add_argument(
        "--vocab", action="append", default=[], metavar="FILE|NAME",
        help="tokenizer file or bundled name; repeatable (default: every bundled vocabulary)",
    )  # fmt: skip
    warm.add_argument(
        "--level", metavar="v2|v3|v4",
        help="compile for every processor of this level, not only this one, so that an image built here compiles "
        "nothing elsewhere (arm64: v8)",
    )  # fmt: skip
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """List, clear or warm."""
    from jittok.kernels.jit.store import cache_dir

    if options.vocab and options.action != "warm":
        raise ValueError(f"{options.action}: found --vocab, which only warm takes")
    if options.level and options.action != "warm":
        raise ValueError(f"{options.action}: found --level, which only warm takes")
    if cache_dir() is None:
        raise FileNotFoundError("found no usable cache folder, expected JITTOK_CACHE_DIR to name one")
    return {"list": _list, "clear": _clear, "warm": _warm}[options.action](options)


def _list(options: argparse.Namespace) -> int:
    from jittok.kernels.jit.store import cache_dir
    from jittok.kernels.vocab_cache import entries

    found = entries()
    if options.json:
        rows = [{"path": str(row.path), "bytes": row.bytes, "kind": row.kind, "of": row.of} for row in found]
        write(json.dumps({"folder": str(cache_dir()), "bytes": sum(row.bytes for row in found), "files": rows}) + "\n")
        return 0
    for row in found:
        tell(f"{row.bytes / 1e6:9.3f} MB  {row.kind:10}  {row.of}\n")
    tell(f"{sum(row.bytes for row in found) / 1e6:9.3f} MB in {len(found)} files of {cache_dir()}\n")
    tell(f"machine code: {_in_use()}\n")
    return 0


def _in_use() -> str:
    """Where the machine code of the kernels comes from."""
    from jittok.kernels.jit import CHECKED, JIT, shipped

    if not JIT or CHECKED:
        return "compiled here, with bounds checks" if JIT else "none, plain Python instead (NUMBA_DISABLE_JIT)"
    kernels = shipped.manifest()["kernels"]
    reasons = {shipped.why_not(each["module"], each["name"]) for each in kernels.values()}
    used = shipped.library()
    if used is None or "" not in reasons:
        why = "; ".join(sorted(reasons)) or shipped.left_out() or "this installation ships none"
        return f"compiled here ({why})"
    void = [name for name, each in kernels.items() if shipped.why_not(each["module"], each["name"])]
    return f"shipped, {used[0]}, {len(kernels) - len(void)} kernels; edited and compiled here: {len(void)}"


def _clear(options: argparse.Namespace) -> int:
    from jittok.kernels.vocab_cache import clear

    count, size = clear()
    write(json.dumps({"files": count, "bytes": size}) + "\n" if options.json else f"{count} files, {size} bytes\n")
    return 0


def _warm(options: argparse.Namespace) -> int:
    """Encode, count and decode a little with each vocabulary, to compile what is not cached yet."""
    import jittok
    from jittok.cli.common import open_named
    from jittok.kernels.jit import need_compiler, stamps
    from jittok.vocab.types import type_named

    if options.level and options.level != stamps.ASKED:
        need_compiler("--level")
        return _warm_for(options)
    done = []
    for name in options.vocab or jittok.bundled_names():
        tok = open_named(name, cache=True)
        ids = 0
        if type_named(tok.type).has_tokens:
            tok._wait_for_kernels()
            for parse in (False, True):
                rows = tok.encode_batch(
                    [WARM_TEXT, WARM_TEXT.encode()], parse_special=parse, errors="replace", threads=1
                )
                ids = tok.encode(WARM_TEXT, parse_special=parse, errors="replace").size
            tok.decode(rows[0])
        done.append({"vocab": name, "type": tok.type, "ids": ids})
        if not options.json:
            tell(f"{name}: {tok.type}, {tok.vocab_size} tokens\n")
    if options.json:
        write(json.dumps({"warm": done}) + "\n")
    return 0


def _warm_for(options: argparse.Namespace) -> int:
    """The same in a process that compiles for a level: Numba fixes its target processor when it is imported."""
    from jittok.kernels.jit import stamps

    command = [sys.executable, "-m", "jittok", "cache", "warm", "--level", options.level]
    for name in options.vocab:
        command += ["--vocab", name]
    command += ["--json"] if options.json else []
    env = os.environ | stamps.settings(options.level)
    return subprocess.run(command, env=env, check=False).returncode  # noqa: S603  this very program
