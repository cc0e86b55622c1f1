"""A small file of every kind changed very often: read or refused, in bounded time and memory, and by kernels as by the
reference.

    python tests/fuzz/mutated_kinds.py COUNT [SEED] [KIND ...]

Prints what failed, with the content's place on disk, and continues; status 1 if anything did.
"""

import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import small_files
from mutated_files import TEXT, changed_values, mutations

import jittok
import jittok.files
from jittok.encode.fallback.reference_encoder import ReferenceEncoder
from jittok.errors import EncodingFailed, MalformedVocab, UnsupportedVocab

SECONDS, MEGABYTES = 1.0, 100
"""What a file may take, beside its own size."""
JSON_PARTS = 0.4
"""Share of changes of a JSON file that change values."""
FOLDERS = {
    "folder": small_files.folder, "vocab_txt_folder": small_files.bert_folder,
    "whisper_folder": small_files.whisper_folder,
}  # fmt: skip
Files = dict[str, bytes]


def changed(kind: str, count: int, seed: int) -> Iterator[Files]:
    """Folders with one file of them changed."""
    files = FOLDERS[kind]() if kind in FOLDERS else {name_of(kind): small_files.FILES[kind]()}
    draw = random.Random(seed)
    for name, content in files.items():
        share = count // len(files)
        values = int(JSON_PARTS * share) if content[:1] == b"{" else 0
        sources = [mutations(content, share - values, draw.randrange(1 << 30))]
        if values:
            sources.append(changed_values(content, values, draw.randrange(1 << 30)))
        for source in sources:
            for new in source:
                yield {**files, name: new}


def name_of(kind: str) -> str:
    return {"vocab_txt": "vocab.txt", "ranks": "x.tiktoken", "rwkv": "rwkv.txt", "tekken": "tekken.json"}.get(
        kind, "tokenizer.model" if kind.startswith("sentencepiece") else "tokenizer.json"
    )


def check(files: Files, folder: Path, compile_it: bool) -> bool:
    """Whether the files are read. AssertionError, or what is no JittokError, where something is wrong."""
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    options = {"pattern": r"\p{L}+|[^\p{L}]", "special_tokens": {"<s>": 300}} if "x.tiktoken" in files else {}
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        pipeline = jittok.files.read_pipeline(folder, **options)
    except (MalformedVocab, UnsupportedVocab):
        pipeline = None
    except TypeError:  # options for a file that does not take them
        assert options, "a TypeError"
        assert files["x.tiktoken"].lstrip()[:1] == b"{", "a TypeError of a rank file"
        pipeline = None
    took = time.process_time() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert took < SECONDS, f"{took} seconds"
    assert grown < MEGABYTES + sum(map(len, files.values())) / 1e6, f"{grown} MB"
    if pipeline is None:
        return False
    general = ReferenceEncoder(pipeline)
    rule = general.rule(add_special=True, parse_special=True, replace=False)
    try:
        ids = general.one(TEXT.encode(), rule).tolist()
    except EncodingFailed:
        return True
    if compile_it:
        try:
            tok = jittok.tokenizer.Tokenizer(pipeline, cache_bytes=1 << 16)
        except UnsupportedVocab:  # a pattern that some texts make slow
            return False
        found = tok.encode(TEXT, add_special=True, parse_special=True).tolist()
        assert found == ids, f"kernels {found}, reference {ids}"
        tok.decode(found)
    return True


def told(files: Files, folder: Path, compile_it: bool) -> str:
    """ "read", "refused", or what was wrong."""
    try:
        return "read" if check(files, folder, compile_it) else "refused"
    except Exception as error:  # noqa: BLE001  whatever it is, it is what is looked for
        return f"{type(error).__name__} {str(error)[:300]}"


def run(count: int, seed: int, kinds: list[str]) -> int:
    """How many failures; each is told and kept."""
    failures = 0
    with tempfile.TemporaryDirectory(prefix="mutated-") as name:
        folder = Path(name)
        for kind in kinds:
            read = 0
            for k, files in enumerate(changed(kind, count, seed)):
                said = told(files, folder, k % 7 == 0)
                read += said == "read"
                if said not in ("read", "refused"):
                    failures += 1
                    kept = Path(tempfile.gettempdir()) / f"mutated-{kind}-{seed}-{k}.json"
                    kept.write_text(json.dumps({name: content.decode("latin-1") for name, content in files.items()}))
                    sys.stdout.write(f"{kind} {k}: {said}: {kept}\n")
            sys.stdout.write(f"{kind}: {read} of {count} are still read\n")
            sys.stdout.flush()
    return failures


if __name__ == "__main__":
    numbers = [int(text) for text in [*sys.argv[1:3], "1"][:2]]
    sys.exit(run(*numbers, sys.argv[3:] or [*small_files.FILES, *FOLDERS]) > 0)
