"""Small corpora in every format, and their documents."""

from __future__ import annotations

import json
import random

import pytest

import jittok.corpus
from jittok.corpus import Options, compile_corpus

FORMATS = ("npy", "nanogpt", "llmc", "megatron", "datatrove", "olmo", "arrow", "parquet")


def compiled(folder, tok, texts, shard_bytes=0, formats=FORMATS, range_bytes=500):
    """A corpus of these texts; where it lies, and its documents as lists."""
    folder.mkdir()
    given = folder / "given.jsonl"
    given.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")
    options = Options(formats=formats, shard_bytes=shard_bytes, range_bytes=range_bytes)
    compile_corpus([given], tok, folder / "out", options, check_space=False)
    return folder / "out", [ids.tolist() for ids in jittok.corpus.open(folder / "out")]


@pytest.fixture(scope="session")
def corpora(tmp_path_factory):
    """name -> (folder, documents): many shards with short documents, one with long ones, one with almost nothing."""
    tok, base, rng = jittok.bundled("gpt-2"), tmp_path_factory.mktemp("corpora"), random.Random(5)
    words = ["the", "tokens", "of", "naïve", "日本語", "  ", "\n", "1234"]
    short = [" ".join(rng.choices(words, k=rng.randrange(12))) for _ in range(150)]
    short[3:6] = short[60:64] = [""] * 3
    long = [" ".join(rng.choices(words, k=k)) for k in (300, 1, 0, 70, 2, 150)]
    return {
        "short": compiled(base / "short", tok, short, 900),
        "long": compiled(base / "long", tok, long),
        "tiny": compiled(base / "tiny", tok, ["", "a b c", ""]),
    }
