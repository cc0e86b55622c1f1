"""Records what tokenizers makes of drawn files of every model after every splitter:

    PYTHONPATH=tests/fuzz:tests/data python tests/data/record_splitters.py

Rows of splitters.jsonl.xz: a file, texts, the ids of each. Two added tokens that are one text when it is normalized are
left out: tokenizers then takes either, by chance.
"""

import json
import lzma
import random
from pathlib import Path

from drawn_files import drawn_text
from drawn_splitters import MODELS, drawn_file
from tokenizers import Tokenizer

FILES, TEXTS = 12, 24
OUT = Path(__file__).with_name("splitters.jsonl.xz")


def main() -> None:
    """Write all rows."""
    rows = []
    for kind in MODELS:
        for seed in range(FILES):
            draw = random.Random(f"recorded {kind} {seed}")
            content = drawn_file(draw, kind).decode()
            texts = ["", *(drawn_text(draw)[:200] for _ in range(TEXTS))]
            added = [token["content"].lower() for token in json.loads(content)["added_tokens"]]
            if len({*added}) == len(added):
                tok = Tokenizer.from_str(content)
                rows.append({"file": content, "texts": texts, "ids": [tok.encode(text).ids for text in texts]})
    OUT.write_bytes(lzma.compress("".join(f"{json.dumps(row)}\n" for row in rows).encode(), preset=9))


if __name__ == "__main__":
    main()
