"""A facade of transformers and the real tokenizer of the same file, for tests of what programs do with them."""

from pathlib import Path
from typing import Any

import pytest

import jittok
from jittok.compat import as_transformers

ROLES: dict[str, dict[str, Any]] = {
    "gpt-2": {
        "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>",
        "model_input_names": ["input_ids", "attention_mask"],
    },
    "bert": {
        "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "mask_token": "[MASK]", "unk_token": "[UNK]",
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
    },
}  # fmt: skip
TEXTS = [
    "Hello world", "", "Tokenizers are compared by their ids, one by one.", "naïve café — 12,345.67 €",
    "def f(x):\n    return x ** 2\n", "日本語のテキスト 🙂", "  two  spaces  ", "a" * 40, "It's they'll, WE'RE; don't",
]  # fmt: skip
LONG = " ".join(TEXTS * 12)


def file_of(name: str, folder: Path) -> Path:
    """A tokenizer.json of a bundled vocabulary."""
    path = folder / f"{name}.json"
    if not path.exists():
        jittok.convert(jittok.bundled(name), path, allow_differences=True)  # from llama.cpp's, in some odd texts
    return path


def pair_of(name: str, folder: Path, **named: Any) -> tuple[Any, Any]:
    """(the facade, the real one); `named` are keywords of both."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    path = file_of(name, folder)
    said = {**ROLES[name], **named}
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), **said)
    return as_transformers(jittok.load(path), **said), theirs
