"""Packs `texts.jsonl.xz` of larger recorded sets: tiny vocabularies and what llama.cpp made of each.

    python tests/data/make_texts.py [FOLDER]

FOLDER has `vocabs/texts.json.xz` (tokens, types and keys) and the answers, a file for each version in `SETS`; by
default `golden-newer` in $JITTOK_SHARED, or in a folder `shared_parts` beside the checkout. To add a version, add its
line to `SETS` and run this.
"""

from __future__ import annotations

import json
import lzma
import os
import sys
from pathlib import Path
from typing import Any

SETS = {
    "0.3.36": "many/texts-0.3.36.jsonl.xz",
    "b11739": "many/texts.jsonl.xz",
}
"""Version of llama.cpp (that of llama-cpp-python, or its build) -> its answers."""
HERE = Path(__file__).resolve().parent
FACTS = ("add_bos", "add_eos", "add_sep", "eog_ids", "attributes", "attributes_sha256", "undetermined")


def recorded(path: Path) -> dict[str, dict[str, Any]]:
    """Vocabulary -> its facts: special ids that are there, and `FACTS`."""
    found = {}
    for line in lzma.decompress(path.read_bytes()).splitlines():
        row = json.loads(line)
        if row["kind"] == "facts":
            keep = {key for key, value in row.items() if key in FACTS or (key.endswith("_id") and value is not None)}
            found[row["vocab"]] = {key: row[key] for key in sorted(keep)}
    return found


def main() -> None:
    shared = Path(os.environ.get("JITTOK_SHARED") or HERE.parents[2] / "shared") / "golden-newer"
    folder = Path(sys.argv[1]) if sys.argv[1:] else shared
    answers = {version: recorded(folder / name) for version, name in SETS.items()}
    vocabs = json.loads(lzma.decompress((folder / "vocabs" / "texts.json.xz").read_bytes()))
    lines = []
    for name, vocab in vocabs.items():  # no facts: that version refuses the vocabulary
        row = {"vocab": name, **vocab, "answers": {version: facts.get(name) for version, facts in answers.items()}}
        lines.append(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
    packed = lzma.compress("".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME)
    (HERE / "texts.jsonl.xz").write_bytes(packed)
    print(f"{len(lines)} vocabularies, {len(packed)} bytes")


if __name__ == "__main__":
    main()
