"""Added tokens that are found in plain text, inside words and across spaces: the counts of pieces are true."""

import json
import random
import tarfile
import zlib
from pathlib import Path

import pytest
from recorded_files import HERE, SHARED

import jittok
from jittok.chunks.texts.chunker import TooManyIds

TOKENS = ["new york", "zq", "<name>", "covid-19", " lead", "tail "]
FLAGS = ["plain", "normalized", "lstrip", "rstrip", "single_word"]
FILES = ["syn-bpe-affixes", "syn-bpe-prefix-space", "syn-unigram-bytes", "syn-wordlevel", "syn-wordpiece-flags"]
BESIDE = [  # the checkout
    "albert", "t5-sd3", "bert-base-uncased", "mistral-7b", "roberta-base", "gemma-3",
]  # fmt: skip
WORDS = [
    "the", "new york", "new", "York", "covid-19", "covid", "19", "-", "azqb", "zq", "a<name>b", "<name>", "lead", "x",
    "tail", "it's", "(foo)", "end.", "_zq_", "\n", "\n\n", "  ", "\u4e2d\u6587", "na\xefve",
]  # fmt: skip


def with_tokens(name: str, target: Path, flag: str) -> jittok.Tokenizer:
    """A recorded file with TOKENS, which have this flag."""
    packed = HERE / f"{name}.tar.xz"
    with tarfile.open(packed if packed.is_file() else SHARED / "tokenizer-files" / packed.name) as archive:
        read = archive.extractfile(f"{name}/tokenizer.json")
        assert read is not None
        data = json.load(read)
    plain = dict.fromkeys(["single_word", "lstrip", "rstrip", "normalized", "special"], False)
    first = max([len(data["model"]["vocab"]) - 1, *(token["id"] for token in data["added_tokens"])]) + 1
    for k, text in enumerate(TOKENS):
        own = {} if flag == "plain" else {flag: True}
        data["added_tokens"].append({"id": first + k, "content": text} | plain | own)
    target.write_text(json.dumps(data), "utf-8")
    return jittok.load(target)


def check(tok: jittok.Tokenizer, rng: random.Random, texts: int) -> None:
    for _ in range(texts):
        some, n = rng.sample(WORDS, rng.randrange(2, 12)), rng.choice([16, 17, 20, 31, 64])
        text = rng.choice([" ", " ", "", "  ", "\n"]).join(rng.choice(some) for _ in range(rng.choice([30, 100])))
        try:
            pieces = tok.chunks(text, n)
        except TooManyIds:
            continue
        assert "".join(piece.text for piece in pieces) == text
        for piece in pieces:
            assert tok.encode(piece.text).size == piece.count <= n, (text, n, piece)


def check_file(name: str, flag: str, target: Path, texts: int) -> None:
    check(with_tokens(name, target, flag), random.Random(zlib.crc32(f"{name} {flag}".encode())), texts)


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("name", FILES)
def test_counts_are_true_where_added_tokens_are_in_words(tmp_path: Path, name: str, flag: str) -> None:
    check_file(name, flag, tmp_path / "tokenizer.json", 12)


@pytest.mark.slow
@pytest.mark.recorded_elsewhere
@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("name", BESIDE)
def test_the_same_of_files_beside_the_checkout(tmp_path: Path, name: str, flag: str) -> None:
    if not (SHARED / "tokenizer-files" / f"{name}.tar.xz").is_file():
        pytest.skip("no recorded files beside the checkout")
    check_file(name, flag, tmp_path / "tokenizer.json", 20)
