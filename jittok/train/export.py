"""A trained byte-level vocabulary as files: GGUF, tokenizer.json, vocab.json with merges.txt, .tiktoken.

Each is what the library that reads it writes itself. The GGUF is written by the `gguf` package.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jittok.errors import CorpusError, UnsupportedVocab
from jittok.pretokenize.definition import pre_type
from jittok.pretokenize.program import GPT2 as GPT2_PATTERN
from jittok.train.bpe import Learned
from jittok.vocab.keys import pre_names

NORMAL, CONTROL = 1, 3
END_NAMES = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>", "<|im_end|>")
BEGIN_NAMES = ("<|begin_of_text|>", "<s>", "<bos>", "<|bos|>", *END_NAMES)
ROLES = ("bos", "eos", "pad", "unk")
REGEX = "regex:"
"""Begins a `pre` that is a pattern of one's own."""
_UNEXACT = ("custom:kimi_k2", "custom:digit_groups")
_CASED = (r"\p{Lu}", r"\p{Ll}", r"\p{Han}")


def roles_of(made: Learned, given: Mapping[str, str | None]) -> dict[str, int]:
    """Ids of the tokens that begin and end texts and so on: those given by their texts, or known by their names."""
    ids = {text: token for token, text in enumerate(made.special)}
    roles = {}
    for role in ROLES:
        text = given.get(role)
        if text is None:
            names = {"bos": BEGIN_NAMES, "eos": END_NAMES}.get(role, ())
            text = next((name for name in names if name in ids), None)
        elif text not in ids:
            raise CorpusError(
                f"train: {role}", text, f"one of the special tokens {', '.join(made.special) or '(none)'}"
            )
        if text is not None:
            roles[role] = ids[text]
    return roles


def write_gguf(path: str | os.PathLike[str], made: Learned, pre: str, roles: Mapping[str, int], name: str = "") -> None:
    """A GGUF that holds nothing but the vocabulary."""
    import gguf

    if pre.startswith(REGEX):
        expected = "a `pre` that llama.cpp knows (a pattern of one's own can be written as .json)"
        raise UnsupportedVocab(os.fspath(path), "tokenizer.ggml.pre", pre.removeprefix(REGEX), expected)
    if not made.merges.ids.size:
        raise CorpusError(
            os.fspath(path), "no merges", "one or more, which llama.cpp asks for (a larger size, more text)"
        )
    writer = gguf.GGUFWriter(path, "llama")
    if name:
        writer.add_name(name)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([text.encode() for text in made.texts])
    control = set(range(len(made.special)))
    writer.add_token_types([CONTROL if token in control else NORMAL for token in range(made.size)])
    writer.add_token_merges(merge_lines(made))
    for role in roles:
        getattr(writer, f"add_{role}_token_id")(roles[role])
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(False)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def merge_lines(made: Learned) -> list[str]:
    """The merges as "left right"."""
    return [f"{made.texts[a]} {made.texts[b]}" for a, b in made.merges.pairs.tolist()]


def split_patterns(pre: str) -> list[str]:
    """The patterns that cut words, one after the other, as Hugging Face's Split and tiktoken understand them.

    UnsupportedVocab for a pre type whose splitter no pattern says exactly.
    """
    if pre.startswith(REGEX):
        return [pre.removeprefix(REGEX)]
    kind = pre_type(pre_names()[pre]["pre_type"])
    patterns = []
    for pattern, engine in kind.patterns:
        if engine in _UNEXACT or any(part in pattern for part in _CASED) or pattern.startswith("(?="):
            raise UnsupportedVocab("train", "pre", pre, "for this format a pre-tokenizer such as qwen2 or gpt-2")
        patterns.append(GPT2_PATTERN if engine == "custom:gpt2" else pattern)
    return patterns


def hf_pre_tokenizer(pre: str) -> dict[str, Any]:
    """`pre_tokenizer` of a tokenizer.json that cuts as this pre type."""
    bytes_only = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    patterns = split_patterns(pre)
    if patterns == [GPT2_PATTERN]:
        return {**bytes_only, "use_regex": True}
    splits = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        for pattern in patterns
    ]
    return {"type": "Sequence", "pretokenizers": [*splits, bytes_only]}


def write_tokenizer_json(path: str | os.PathLike[str], made: Learned, pre: str) -> None:
    """A tokenizer.json of Hugging Face's tokenizers."""
    added = [
        {"id": token, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for token, text in enumerate(made.special)
    ]  # fmt: skip
    model = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": _ids(made),
        "merges": [[made.texts[a], made.texts[b]] for a, b in made.merges.pairs.tolist()],
    }  # fmt: skip
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    whole = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": hf_pre_tokenizer(pre), "post_processor": None, "decoder": byte_level, "model": model,
    }  # fmt: skip
    Path(path).write_text(json.dumps(whole, ensure_ascii=False), encoding="utf-8")


def _ids(made: Learned) -> dict[str, int]:
    return {text: token for token, text in enumerate(made.texts)}


def write_vocab_and_merges(path: str | os.PathLike[str], made: Learned) -> None:
    """vocab.json at `path`, and merges.txt beside it."""
    path = Path(path)
    path.write_text(json.dumps(_ids(made), ensure_ascii=False), encoding="utf-8")
    lines = "".join(f"{line}\n" for line in merge_lines(made))
    (path.parent / path.name.replace("vocab.json", "merges.txt")).write_text(f"#version: 0.2\n{lines}", "utf-8")


def write_tiktoken(path: str | os.PathLike[str], made: Learned) -> None:
    """A .tiktoken file: base64 of each token's bytes, a space, its rank. Special tokens are not in it, so a rank is the
    id less the number of special tokens."""
    count = len(made.special)
    rows = (base64.b64encode(made.raw(token)) + b" %d\n" % (token - count) for token in range(count, made.size))
    Path(path).write_bytes(b"".join(rows))
