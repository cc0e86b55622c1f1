"""Draw the small recorded sets of this folder from the big ones: golden/<name>.jsonl.xz and vocabs/<name>.gguf.xz.

    python tests/data/make_golden.py SHARED

SHARED holds golden/, vocabs/ and the README that says what a row means. golden-newer/ is the same of a later release of
llama.cpp: what it answers otherwise, and what is new in it (golden/<release>/<name>.jsonl.xz). All made-up vocabularies
are drawn, and the real ones that the package ships. Of each come the facts, some pieces and decodings, and cases of
every group. Rows are copied, never edited.
"""

from __future__ import annotations

import json
import lzma
import random
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

from write_gguf import BOOL, pair, string

HERE = Path(__file__).resolve().parent
BUNDLED = ("gpt-2", "bert-bge", "t5", "mistral-v1")
"""Recorded sets of the vocabularies in the package."""
NEWER = "b11739"
CASES, PIECES, DECODES = 100, 60, 12
LONGEST = 1500
"""Characters of a text: longer ones are left to the big sets."""


def read(path: Path) -> list[dict[str, Any]]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    with lzma.open(path, "wt", encoding="utf-8", newline="\n", preset=9) as file:
        file.writelines(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    print(f"{path.parent.name}/{path.name:32} {len(rows):4} rows {path.stat().st_size:7} bytes")


def draw(rows: list[dict[str, Any]], seed: str) -> list[dict[str, Any]]:
    """A few rows of each kind, in the file's order."""
    pick = random.Random(seed)
    kinds: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        kinds.setdefault(row["kind"], []).append(row)
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in kinds["case"]:
        if len(row.get("text", row.get("b64"))) <= LONGEST:
            groups.setdefault(row["group"], []).append(row)
    for group in groups.values():
        pick.shuffle(group)
    cases: list[dict[str, Any]] = []
    while len(cases) < CASES and any(groups.values()):  # in turns, so that small groups are whole
        cases += [group.pop() for group in groups.values() if group][: CASES - len(cases)]
    order = {id(row): place for place, row in enumerate(rows)}
    cases.sort(key=lambda row: order[id(row)])
    about = kinds["about"][0] | {"cases": len(cases), "drawn_by": "make_golden.py"}
    pieces = [
        {
            key: column[:: -(-len(column) // PIECES)] if isinstance(column, list) else column
            for key, column in row.items()
        }
        for row in kinds["pieces"]
    ]
    return [about, *kinds["facts"], *pieces, *cases, *kinds["decode"][:DECODES]]


def with_flag(file: bytes, key: str, flag: bool) -> bytes:
    """A GGUF file with another value of a boolean key, which it may not have yet."""
    at = file.find(string(key) + struct.pack("<i", BOOL))
    if at >= 0:
        last = at + len(pair(key, flag)) - 1
        return file[:last] + bytes([flag]) + file[last + 1 :]
    return file[:16] + struct.pack("<Q", int.from_bytes(file[16:24], "little") + 1) + pair(key, flag) + file[24:]


def newer(shared: Path) -> None:
    """The sets of a later release, of made-up vocabularies; those that are another one with other keys are made."""
    names = sorted(path.name.removesuffix(".jsonl.xz") for path in (shared / "golden-newer").glob("syn-*.jsonl.xz"))
    recipes = json.loads((shared / "golden-newer" / "vocabs" / "recipes.json").read_text())
    for name in names:
        rows = read(shared / "golden-newer" / f"{name}.jsonl.xz")
        place = HERE / "vocabs" / f"{name}.gguf.xz"
        if name in recipes:
            file = lzma.decompress((shared / "vocabs" / f"{recipes[name]['base']}.gguf.xz").read_bytes())
            for key, (_, flag) in recipes[name]["set"].items():
                file = with_flag(file, key, flag)
            place.write_bytes(lzma.compress(file, preset=9))
        elif not place.exists():
            shutil.copyfile(shared / "golden-newer" / "vocabs" / f"{name}.gguf.xz", place)
        write(HERE / "golden" / NEWER / f"{name}.jsonl.xz", draw(rows, name))


def main(shared: Path) -> None:
    made_up = sorted(path.name.removesuffix(".gguf.xz") for path in (shared / "vocabs").glob("syn-*.gguf.xz"))
    for name in made_up:
        shutil.copyfile(shared / "vocabs" / f"{name}.gguf.xz", HERE / "vocabs" / f"{name}.gguf.xz")
    for name in (*BUNDLED, *made_up):
        rows = draw(read(shared / "golden" / f"{name}.jsonl.xz"), name)
        write(HERE / "golden" / f"{name}.jsonl.xz", rows)
    newer(shared)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
