"""Records what one build of llama.cpp does for every pre string: tests/data/golden/RELEASE/pre.jsonl.xz.

    python upstream/record.py LIBRARY RELEASE [SET ...]

Asked are the texts of tests/data/golden/pre.jsonl.xz, and of each SET (recorded answers in .jsonl.xz, for a pre string
that is new) the first MORE short ones. RELEASE must be one that jittok knows; its rows are written as that file's are.
"""

from __future__ import annotations

import base64
import json
import lzma
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "tests" / "data"
sys.path[:0] = [str(HERE), str(DATA)]

from asking import Side, packed  # noqa: E402  beside this file
from pair_vocab import pair_vocab  # noqa: E402

from jittok.vocab.keys import pre_names  # noqa: E402
from jittok.vocab.releases import has, release_named  # noqa: E402

MORE, LONGEST = 24, 90
SPACED = b"a , b ! it 's  fine ? no n't"


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a recorded set."""
    return [json.loads(line) for line in lzma.decompress(path.read_bytes()).splitlines()]


def text_of(row: dict[str, Any]) -> bytes:
    """The text of a row, which is stored in base64 where it is invalid UTF-8."""
    text = row.get("text", row)
    return text.encode() if isinstance(text, str) else base64.b64decode(text["b64"])


def shown(text: bytes) -> Any:
    """A text as it is stored."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return {"b64": packed(text)}


def main(library: str, release: str, sets: list[str]) -> None:
    """Ask and write."""
    texts = [text_of(row) for row in rows_of(DATA / "golden" / "pre.jsonl.xz") if row["kind"] == "text"]
    for place in sets:
        short = [text_of(row) for row in rows_of(Path(place)) if row["kind"] == "case"]
        texts += [text for text in short if 2 < len(text) <= LONGEST and text not in texts][:MORE]
    known = sorted(pre for pre, entry in pre_names().items() if has(release_named(release), entry.get("since")))
    answers: dict[str, list[Any]] = {}
    rows: list[dict[str, Any]] = [{"kind": "about", "llama_cpp": release, "vocabulary": "pair_vocab.py"}]
    with Side(Path(sys.executable), library) as side, tempfile.TemporaryDirectory() as folder:
        for pre in known:
            file = Path(folder) / "v.gguf"
            file.write_bytes(pair_vocab(pre))
            steps: list[list[Any]] = [["encode", packed(text), False, False] for text in [*texts, SPACED]]
            *answers[pre], spaced, special = side.answers(file, [*steps, ["encode", packed(b"Hello"), True, False]])
            spaced = None if isinstance(spaced, dict) else spaced  # it ends llama.cpp
            rows.append({"kind": "settings", "pre": pre, "ids": spaced, "with_special": special})
    for k, text in enumerate(texts):
        alike: dict[str, list[str]] = {}
        for pre in known:
            answer = answers[pre][k]
            alike.setdefault(json.dumps(None if isinstance(answer, dict) else answer), []).append(pre)
        found = [{"pre": pres, "ids": json.loads(ids)} for ids, pres in alike.items()]
        rows.append({"kind": "text", "text": shown(text), "answers": found})
    place = DATA / "golden" / release / "pre.jsonl.xz"
    place.parent.mkdir(exist_ok=True)
    with lzma.open(place, "wt", encoding="utf-8", newline="\n", preset=9) as out:
        out.writelines(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    print(f"{len(known)} pre strings, {len(texts)} texts, {place.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
