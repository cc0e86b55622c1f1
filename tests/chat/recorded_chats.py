"""Recorded chats: templates, chats, and answers of other libraries; the repository has a sample of a larger set."""

import datetime
import functools
import io
import json
import lzma
import tarfile
from pathlib import Path
from typing import Any

import jittok
from jittok.tokenizer import Tokenizer

HERE = Path(__file__).parents[1] / "data" / "chat"
NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)
LLAMA_NOW = datetime.datetime(2026, 11, 27, 12, 0, 0)
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


@functools.cache
def templates(folder: Path) -> dict[str, str]:
    """name -> text."""
    with tarfile.open(fileobj=io.BytesIO((folder / "templates.tar.xz").read_bytes())) as packed:
        files = [member for member in packed.getmembers() if member.isfile()]
        return {Path(each.name).stem: packed.extractfile(each).read().decode() for each in files}  # type: ignore[union-attr]


@functools.cache
def chats(folder: Path) -> dict[str, Any]:
    """name -> the arguments of a chat."""
    return json.loads((folder / "chats.json").read_text(encoding="utf-8"))


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a file."""
    return [json.loads(line) for line in lzma.decompress((folder / f"{name}.jsonl.xz").read_bytes()).splitlines()]


@functools.cache
def standin(tags: tuple[str, ...]) -> Tokenizer:
    """A tokenizer.json of GPT-2's tokens with these special tokens after them."""
    vocab = jittok.bundled("gpt-2").vocab
    texts = [text.decode() for text in vocab.tokens]
    merges = [
        vocab.merge_bytes[a:b].tobytes().decode()
        for a, b in zip(vocab.merge_offsets[:-1].tolist(), vocab.merge_offsets[1:].tolist(), strict=True)
    ]
    added = [{"id": texts.index("<|endoftext|>"), "content": "<|endoftext|>", **FLAGS}]
    others = [tag for tag in tags if tag != "<|endoftext|>"]
    added += [{"id": len(texts) + number, "content": tag, **FLAGS} for number, tag in enumerate(others)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {
        "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
        "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
        "vocab": {text: token for token, text in enumerate(texts)}, "merges": merges,
    }  # fmt: skip
    file = {"version": "1.0", "added_tokens": added, "pre_tokenizer": level, "decoder": level, "model": model}
    return jittok.load(json.dumps(file).encode())


def standin_tags(folder: Path, template: str) -> tuple[str, ...]:
    """The special tokens of the stand-in for a template."""
    return tuple(json.loads((folder / "standin.json").read_text(encoding="utf-8"))[template])


def special_of(row: dict[str, Any]) -> dict[str, str]:
    """The special tokens that the recorded template saw, as variables."""
    return {f"{role}_token": row[role] for role in ("bos", "eos") if row.get(role) is not None}
