"""A trained byte-level vocabulary as files: GGUF, tokenizer.json, vocab.json with merges.txt, .tiktoken.

Each is what the library that reads it writes itself. The GGUF is written by the `gguf` package.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jittok.common.pipeline.known_patterns import GPT2 as GPT2_PATTERN
from jittok.common.writers import gguf_file, hf_file, ranks_file
from jittok.common.writers.atomic_files import atomic_file
from jittok.common.writers.gguf_file import CONTROL, NORMAL
from jittok.errors import CorpusError, InWords, UnsupportedVocab
from jittok.kernels.pretokenize.definition import pre_type
from jittok.train.bpe import Learned
from jittok.train.counting.splitters import FILE, REGEX
from jittok.vocab.keys import pre_names

_UNEXACT = ("custom:kimi_k2", "custom:digit_groups")
_CASED = (r"\p{Lu}", r"\p{Ll}", r"\p{Han}")


def write_gguf(path: str | os.PathLike[str], made: Learned, pre: str, roles: Mapping[str, int], name: str = "") -> None:
    """A GGUF that holds nothing but the vocabulary."""
    if pre.startswith((REGEX, FILE)):
        expected = "a `pre` that llama.cpp knows (write a custom pattern as .json)"
        raise UnsupportedVocab(os.fspath(path), "tokenizer.ggml.pre", pre.partition(":")[2], expected)
    if not made.merges.ids.size:
        raise CorpusError(
            os.fspath(path),
            InWords("no merges"),
            "one or more, as llama.cpp requires: train with a larger size or more text",
        )
    control = set(range(len(made.special)))
    gguf_file.write_gguf(path, gguf_file.GgufVocab(
        model="gpt2", name=name, pre=pre, tokens=[text.encode() for text in made.texts],
        types=[CONTROL if token in control else NORMAL for token in range(made.size)], merges=merge_lines(made),
        roles=roles, add_bos=False, add_eos=False,
    ))  # fmt: skip


def merge_lines(made: Learned) -> list[str]:
    """The merges as "left right"."""
    return [f"{made.texts[a]} {made.texts[b]}" for a, b in made.merges.pairs.tolist()]


def split_patterns(pre: str) -> list[str]:
    """The patterns that cut words, one after the other, as Hugging Face's Split and tiktoken understand them.

    UnsupportedVocab for a pre type whose splitter no pattern expresses exactly.
    """
    if pre.startswith(REGEX):
        return [pre.removeprefix(REGEX)]
    if pre.startswith(FILE):
        raise UnsupportedVocab("train", "pre", pre, "for this format a pre-tokenizer such as qwen2 or gpt-2")
    kind = pre_type(pre_names()[pre]["pre_type"])
    patterns = []
    for pattern, engine in kind.patterns:
        if engine in _UNEXACT or any(part in pattern for part in _CASED) or pattern.startswith("(?="):
            raise UnsupportedVocab("", "--pre", pre, "for this format a pre-tokenizer such as qwen2 or gpt-2")
        patterns.append(GPT2_PATTERN if engine == "custom:gpt2" else pattern)
    return patterns


def hf_pre_tokenizer(pre: str) -> dict[str, Any]:
    """`pre_tokenizer` of a tokenizer.json that cuts as this pre type."""
    if pre.startswith(FILE):
        described: dict[str, Any] = json.loads(pre.removeprefix(FILE))
        return described
    return hf_file.byte_level(split_patterns(pre))


def write_tokenizer_json(path: str | os.PathLike[str], made: Learned, pre: str) -> None:
    """A tokenizer.json of Hugging Face's tokenizers."""
    hf_file.write_tokenizer_json(
        path,
        hf_file.bpe(_ids(made), [[made.texts[a], made.texts[b]] for a, b in made.merges.pairs.tolist()]),
        [hf_file.added_token(token, text) for token, text in enumerate(made.special)],
        pre_tokenizer=hf_pre_tokenizer(pre),
        decoder=hf_file.BYTE_DECODER,
    )


def _ids(made: Learned) -> dict[str, int]:
    return {text: token for token, text in enumerate(made.texts)}


def write_vocab_and_merges(path: str | os.PathLike[str], made: Learned) -> None:
    """vocab.json at `path`, and merges.txt beside it."""
    path = Path(path)
    lines = "".join(f"{line}\n" for line in merge_lines(made))
    with atomic_file(path) as ids, atomic_file(path.with_name(path.name.replace("vocab.json", "merges.txt"))) as merges:
        ids.write_text(json.dumps(_ids(made), ensure_ascii=False), encoding="utf-8")
        merges.write_text(f"#version: 0.2\n{lines}", "utf-8")


def write_tiktoken(path: str | os.PathLike[str], made: Learned) -> None:
    """A .tiktoken file: base64 of each token's bytes, a space, its rank. Special tokens are not in it, so a rank is the
    id less the number of special tokens."""
    count = len(made.special)
    ranks_file.write_ranks(path, ((made.raw(token), token - count) for token in range(count, made.size)))
