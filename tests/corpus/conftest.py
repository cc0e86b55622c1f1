from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

import jittok

sys.path.insert(0, str(Path(__file__).parent))  # victim.py, which a fork server imports by name

WORDS = ["the", "tokens", "of", "a", "text", "naïve", "日本語", "мир", "foo_bar", "  ", "\n", "1234", "🙂", "end."]


@pytest.fixture(scope="session")
def tok():
    return jittok.bundled("gpt-2")


def make_texts(count, seed=0, longest=200):
    rng = random.Random(seed)
    texts = [" ".join(rng.choices(WORDS, k=rng.randrange(longest))) for _ in range(count)]
    texts[1::17] = [""] * len(texts[1::17])
    return texts


def write_jsonl(path, texts):
    path.write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)), "utf-8")
    return path


@pytest.fixture
def jsonl(tmp_path):
    texts = make_texts(300)
    return write_jsonl(tmp_path / "a.jsonl", texts), texts
