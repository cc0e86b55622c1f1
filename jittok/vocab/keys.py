"""Key names and defaults by `tokenizer.ggml.model` and `tokenizer.ggml.pre`. Source: llama.cpp, llama-arch and
llama-vocab."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from jittok.vocab.vocab import NO_TOKEN

T = "tokenizer.ggml."
MODEL, PRE = T + "model", T + "pre"
TOKENS, TOKEN_TYPE, SCORES, MERGES = T + "tokens", T + "token_type", T + "scores", T + "merges"
TOKEN_TYPE_COUNT = T + "token_type_count"
CHARSMAP = T + "precompiled_charsmap"
ADD_BOS, ADD_EOS, ADD_SEP = T + "add_bos_token", T + "add_eos_token", T + "add_sep_token"
ADD_SPACE_PREFIX, REMOVE_EXTRA = T + "add_space_prefix", T + "remove_extra_whitespaces"
LOWERCASE, STRIP_ACCENTS = T + "normalizer.lowercase", T + "normalizer.strip_accents"
NFC = T + "normalizer.nfc"
SUPPRESS = T + "suppress_tokens"
NAME, ARCHITECTURE, ALIGNMENT = "general.name", "general.architecture", "general.alignment"

TYPE_OF_MODEL = {
    "llama": "spm",
    "bert": "wpm",
    "gpt2": "bpe",
    "hybriddna": "bpe",
    "whitespace": "bpe",
    "gemma4": "bpe",
    "t5": "ugm",
    "rwkv": "rwkv",
    "plamo2": "plamo2",
    "plamo3": "plamo3",
    "test": "test",
    "none": "none",
    "no_vocab": "none",
}
DEFAULT_IDS = {
    "llama": (1, 2, 0, -1, -1, -1),
    "bert": (101, -1, 100, 102, 0, 103),
    "gpt2": (11, 11, -1, -1, -1, -1),
    "hybriddna": (11, 11, -1, -1, -1, -1),
    "whitespace": (11, 11, -1, -1, -1, -1),
    "t5": (-1, 1, 2, -1, 0, -1),
    "plamo2": (1, 2, 0, -1, 3, -1),
    "plamo3": (1, 2, 0, -1, 3, -1),
}
"""bos, eos, unk, sep, pad, mask; models that are not listed have none."""
NO_IDS = (NO_TOKEN,) * 6

ID_KEYS = (
    ("bos", "bos_id"),
    ("eos", "eos_id"),
    ("eot", "eot_id"),
    ("eom", "eom_id"),
    ("unknown", "unk_id"),
    ("seperator", "sep_id"),  # so spelled in the files
    ("padding", "pad_id"),
    ("mask", "mask_id"),
    ("fim_pre", "fim_prefix_id"),
    ("fim_suf", "fim_suffix_id"),
    ("fim_mid", "fim_middle_id"),
    ("fim_pad", "fim_pad_id"),
    ("fim_rep", "fim_rep_id"),
    ("fim_sep", "fim_sep_id"),
    ("prefix", "fim_prefix_id"),  # the old names are read last, so they win
    ("suffix", "fim_suffix_id"),
    ("middle", "fim_middle_id"),
)
"""(key, field of Vocab): the key is tokenizer.ggml.<key>_token_id."""

GEMMA4 = 50
"""The pre type that adds BOS whatever the file says."""


@functools.cache
def pre_names() -> dict[str, dict[str, Any]]:
    """tokenizer.ggml.pre -> {"pre_type": number, "pre_type_name": name, "sets": flags}; "" when the key is absent.

    "since": the first release that knows it; without it, all do.
    """
    names: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("pre_names.json").read_text("utf-8"))
    return names
