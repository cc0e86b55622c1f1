"""Records where tokenizers says that tokens stand: tests/data/files/offsets.jsonl.xz. Needs tokenizers.

    python tests/data/make_offsets.py

A row: the set, a text, and [start, stop] of each id of `ft`, in characters.
"""

import json
import lzma
import tarfile
import tempfile
from pathlib import Path

import tokenizers

FILES = Path(__file__).parent / "files"


def main() -> None:
    """Ask and write."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for packed in sorted(FILES.glob("*.tar.xz")):
            name = packed.name.removesuffix(".tar.xz")
            with tarfile.open(packed) as archive:
                archive.extractall(folder, filter="data")
            with lzma.open(FILES / f"{name}.jsonl.xz", "rt", encoding="utf-8", errors="surrogatepass") as file:
                load, *told = [json.loads(line) for line in file]
            place = Path(folder) / load["load"]
            place = place if place.suffix == ".json" else place / "tokenizer.json"
            if not place.is_file():
                continue
            asked = tokenizers.Tokenizer.from_file(str(place))
            asked.no_truncation()
            asked.no_padding()
            for row in told:
                if row["kind"] == "case" and row["text"].isprintable() and len(row["text"]) < 80:
                    found = asked.encode(row["text"], add_special_tokens=False)
                    rows.append({"set": name, "text": row["text"], "ids": found.ids, "offsets": found.offsets})
    with lzma.open(FILES / "offsets.jsonl.xz", "wt", encoding="utf-8", newline="\n", preset=9) as out:
        out.writelines(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    print(f"{len(rows)} texts of {len({row['set'] for row in rows})} sets")


if __name__ == "__main__":
    main()
