"""Profiles of hypothesis, vocabularies small enough to read, and those of files."""

import functools
import json
import lzma
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

# Tests are of kernels: where these are not compiled yet, the plain reference would encode a first short text.
os.environ.setdefault("JITTOK_COMPILE_FIRST", "1")  # in front of the import; processes that tests start inherit it

from made_up import made_up_tokenizer

import jittok
from jittok.tokenizer import Tokenizer
from jittok.vocab import read_vocab
from jittok.vocab.bundled import bundled_vocab
from jittok.vocab.vocab import Vocab

# The same examples each time: what new ones find is for `make fuzz` and `make examples` to tell.
settings.register_profile("default", max_examples=60, deadline=None, derandomize=True)  # the first call compiles
settings.register_profile(
    "checked", max_examples=10, deadline=None, derandomize=True
)  # each takes several times as long
settings.register_profile("slow", max_examples=5, deadline=None, derandomize=True)
settings.register_profile("fuzz", max_examples=50_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

VOCABS = Path(__file__).parent / "data" / "vocabs"
UNKNOWN, NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 4, 8, 16, 32
SPECIAL = UNKNOWN | CONTROL | USER_DEFINED
BUNDLED = {"t5": "t5", "bert-bge": "bert", "gpt-2": "gpt-2", "mistral-v1": "mistral"}
"""Names of vocabularies in recorded sets, and what the package calls them."""
SHARED = Path(os.environ.get("JITTOK_SHARED") or Path(__file__).parents[2] / "shared")


@functools.cache
def _vocab(name: str) -> Vocab:
    if name in BUNDLED:
        return bundled_vocab(BUNDLED[name])
    packed = SHARED / "vocabs" / f"{name}.gguf.xz"
    if not packed.is_file():
        pytest.skip(f"the vocabulary {name} is not bundled and not in {packed.parent}; set JITTOK_SHARED")
    return read_vocab(lzma.decompress(packed.read_bytes()))


@pytest.fixture(scope="session")
def named_vocab() -> Callable[[str], Vocab]:
    """named_vocab("t5"): a real vocabulary, bundled or from the shared folder; skips the test without it."""
    return _vocab


@pytest.fixture(scope="session")
def walkthroughs() -> dict[str, Any]:
    """Numbers of debugger sessions with llama.cpp, one key a session."""
    return json.loads((VOCABS.parent / "walkthroughs.json").read_text(encoding="utf-8"))


def fixed(values: Any, dtype: Any) -> Any:
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array


def flat(texts: Sequence[bytes]) -> tuple[Any, Any]:
    """(data, offsets) of byte strings."""
    return np.frombuffer(b"".join(texts), np.uint8), fixed(np.cumsum([0, *map(len, texts)]), np.int64)


@pytest.fixture(scope="session")
def vocab_of() -> Callable[..., Vocab]:
    """vocab_of(tokens, attributes=all normal, type="spm", **settings): a Vocab, special tokens longest first."""

    def make(
        tokens: Sequence[bytes], attributes: Sequence[int] | None = None, type: str = "spm", **settings: Any
    ) -> Vocab:
        bits = list(attributes or [NORMAL] * len(tokens))
        cut = sorted((i for i, each in enumerate(bits) if each & SPECIAL), key=lambda i: -len(tokens[i]))
        final, plain = fixed(bits, np.int32), fixed([each & 127 for each in bits], np.int32)
        given: dict[str, Any] = {
            "special_tokens": fixed(cut, np.int32),
            "max_token_length": max(map(len, tokens), default=0),
            "model": type,
            "pre": None,
            "pre_type": 0,
            "name": "tiny",
            "scores": np.zeros(len(tokens), np.float32),
            **settings,
        }
        scores = fixed(given.pop("scores"), np.float32)
        texts, merges = flat(tokens), flat(given.pop("merges", []))
        names = {"token_bytes": texts[0], "token_offsets": texts[1], "key_bytes": texts[0], "key_offsets": texts[1]}
        return Vocab(
            source="vocabulary in memory", type=type, architecture="", **names, scores=scores, attributes=final,
            file_attributes=plain, piece_attributes=plain, merge_bytes=merges[0], merge_offsets=merges[1],
            charsmap=fixed([], np.uint8), **given,
        )  # fmt: skip

    return make


@pytest.fixture(scope="session")
def spm(vocab_of: Callable[..., Vocab]) -> Tokenizer:
    """SPM with all bytes, some words, BOS, EOS and a user-defined token.

    0 <unk>  1 <s>  2 </s>  3 <tool>  4.. 259 bytes  then single characters and the words that merging makes of them
    """
    words = ["▁", "a", "b", "c", "h", "i", "é", "▁a", "ab", "▁ab", "hi", "▁hi", "abc"]
    tokens = [
        b"<unk>",
        b"<s>",
        b"</s>",
        b"<tool>",
        *(b"<0x%02X>" % b for b in range(256)),
        *(w.encode() for w in words),
    ]
    attributes = [UNKNOWN, CONTROL, CONTROL, USER_DEFINED, *[BYTE] * 256, *[NORMAL] * len(words)]
    return Tokenizer(
        vocab_of(
            tokens, attributes, bos_id=1, eos_id=2, unk_id=0, default_unk_id=0, add_bos=True, add_space_prefix=True,
            scores=[0.0] * 260 + [-float(i) for i in range(len(words))],
        )
    )  # fmt: skip


@pytest.fixture(scope="session")
def bundled() -> Callable[[str], Tokenizer]:
    """bundled(name): the Tokenizer of a vocabulary in the package, made once."""
    return functools.cache(jittok.bundled)


@pytest.fixture(scope="session")
def made_up() -> Callable[[str], Tokenizer]:
    """made_up(name): the Tokenizer of a vocabulary in data/vocabs, "syn-plamo2" for example, made once."""
    return made_up_tokenizer
