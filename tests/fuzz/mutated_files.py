"""Tokenizer files with a few bytes changed: each is read, or refused by an error that says where.

    python tests/fuzz/mutated_files.py FILE [COUNT] [SEED]

A file that is still read also encodes a text. Anything but a JittokError is a failure; the seed makes it again.
"""

import copy
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from jittok.decode.reference_decoder import ReferenceDecodeFrame, ReferenceDecoder
from jittok.encode.fallback.reference_encoder import ReferenceEncoder
from jittok.errors import JittokError
from jittok.files import read_pipeline

TEXT = "The quick (brown) fox's 12345 été\n\n 中文 <s>\u200d"
SLOW = 2.0
"""Seconds."""


def mutations(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Contents with one to four changes: bytes replaced, put in, left out, doubled, digits changed, the end cut off."""
    draw = random.Random(seed)
    for _ in range(count):
        new = bytearray(content)
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(new) or 1)
            near = draw.choice([at, draw.randrange(min(len(new), 400) or 1), len(new) - draw.randrange(1, 400)])
            at = max(0, min(near, len(new) - 1))
            kind = draw.randrange(7)
            if kind == 0:
                new[at : at + 1] = bytes([draw.randrange(256)])
            elif kind == 1:
                new[at:at] = draw.choice(
                    [b"\x00", b"\xff", b'"', b"9", b"[", b"{", b"]", b",", b"-1", b"null", b" ", b"\n"]
                )
            elif kind == 2:
                del new[at : at + draw.randrange(1, 20)]
            elif kind == 3:
                size = draw.randrange(1, 60)
                new[at:at] = new[at : at + size]
            elif kind == 4:
                del new[at:]
            elif kind == 5:
                digits = [k for k in range(at, min(at + 200, len(new))) if 48 <= new[k] <= 57]
                if digits:
                    new[draw.choice(digits)] = draw.randrange(48, 58)
            else:
                word = draw.choice([b"true", b"false", b"null", b"[]", b"{}", b'""', b"1e999", b"99999999999999999999"])
                new[at : at + len(word)] = word
        yield bytes(new)


VALUES = [
    None,
    True,
    False,
    0,
    -1,
    1 << 40,
    1.5,
    "",
    "a",
    "\u2581",
    [],
    {},
    [[]],
    "(a+)+",
    "[",
    "(?<=a)b",
    {"type": "Sequence"},
]


def changed_values(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """The same of JSON, by values: one or two of them replaced, left out, or put elsewhere. Small parts come as often
    as the vocabulary."""
    draw = random.Random(seed)
    whole = json.loads(content)
    for _ in range(count):
        new = copy.deepcopy(whole)
        for _ in range(draw.randint(1, 2)):
            parent, key = new, draw.choice(list(new))
            while isinstance(parent[key], dict | list) and parent[key] and draw.random() < 0.8:
                parent = parent[key]
                key = draw.choice(list(parent)) if isinstance(parent, dict) else draw.randrange(len(parent))
            if draw.random() < 0.2:
                del parent[key]
            else:
                parent[key] = copy.deepcopy(draw.choice([*VALUES, draw.choice(list(whole.values()))]))
            if not new:
                break
        yield json.dumps(new).encode()


def check(content: bytes, options: dict[str, object]) -> bool:
    """Whether a file is read. Raises what is no JittokError, and AssertionError for one that takes long."""
    start = time.process_time()
    try:
        pipeline = read_pipeline(content, **options)
    except JittokError:
        pipeline = None
    took = time.process_time() - start
    assert took < SLOW, f"{took} seconds"
    if pipeline is None:
        return False
    general = ReferenceEncoder(pipeline)
    try:
        ids = general.one(TEXT.encode(), general.rule(add_special=True, parse_special=True, replace=False))
        assert ids.size == 0 or ids.min() >= 0
        ReferenceDecoder(pipeline).one(ids, ReferenceDecodeFrame(False, False))
    except JittokError:
        pass
    return True


def main() -> None:
    """Check so many mutations of a file."""
    path = Path(sys.argv[1])
    count, seed = (int(text) for text in [*sys.argv[2:], "1000", "1"][:2])
    options = {"pattern": r"\p{L}+|[^\p{L}]", "special_tokens": {}} if path.suffix == ".tiktoken" else {}
    read = 0
    kinds = [mutations, changed_values] if path.suffix == ".json" else [mutations]
    changed = (each for kind in kinds for each in kind(path.read_bytes(), count // len(kinds), seed))
    for content in changed:
        Path("mutated").write_bytes(content)  # what a failure leaves after
        read += check(content, options)
    Path("mutated").unlink()
    sys.stdout.write(f"{path.name}: {read} of {count} are still read\n")


if __name__ == "__main__":
    main()
