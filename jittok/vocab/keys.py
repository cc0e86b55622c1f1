"""Key names, and defaults by `tokenizer.ggml.model` and `tokenizer.ggml.pre`. Source: the package gguf, and llama.cpp's
llama-arch and llama-vocab."""

from __future__ import annotations

from jittok.kernels.pretokenize import records
from jittok.vocab.constants import GeneralKeys
from jittok.vocab.constants import TokenizerKeys as Names
from jittok.vocab.vocab import NO_TOKEN

T = "tokenizer.ggml."
MODEL, PRE, TOKENS, TOKEN_TYPE = Names.MODEL, Names.PRE, Names.LIST, Names.TOKEN_TYPE
SCORES, MERGES, TOKEN_TYPE_COUNT = Names.SCORES, Names.MERGES, Names.TOKEN_TYPE_COUNT
CHARSMAP = Names.PRECOMPILED_CHARSMAP
ADD_BOS, ADD_EOS, ADD_SPACE_PREFIX = Names.ADD_BOS, Names.ADD_EOS, Names.ADD_PREFIX
REMOVE_EXTRA = Names.REMOVE_EXTRA_WS
NAME, ARCHITECTURE, ALIGNMENT = GeneralKeys.NAME, GeneralKeys.ARCHITECTURE, GeneralKeys.ALIGNMENT
# What llama.cpp reads and gguf, or an older one, does not name.
ADD_SEP, SUPPRESS = T + "add_sep_token", T + "suppress_tokens"
LOWERCASE, STRIP_ACCENTS = T + "normalizer.lowercase", T + "normalizer.strip_accents"
NFC = T + "normalizer.nfc"

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
    (Names.BOS_ID, "bos_id"),
    (Names.EOS_ID, "eos_id"),
    (Names.EOT_ID, "eot_id"),
    (Names.EOM_ID, "eom_id"),
    (Names.UNK_ID, "unk_id"),
    (Names.SEP_ID, "sep_id"),
    (Names.PAD_ID, "pad_id"),
    (Names.MASK_ID, "mask_id"),
    (Names.FIM_PRE_ID, "fim_prefix_id"),
    (Names.FIM_SUF_ID, "fim_suffix_id"),
    (Names.FIM_MID_ID, "fim_middle_id"),
    (Names.FIM_PAD_ID, "fim_pad_id"),
    (Names.FIM_REP_ID, "fim_rep_id"),
    (Names.FIM_SEP_ID, "fim_sep_id"),
    (Names.PREFIX_ID, "fim_prefix_id"),  # the old names are read last, so they win
    (Names.SUFFIX_ID, "fim_suffix_id"),
    (Names.MIDDLE_ID, "fim_middle_id"),
)
"""(key, field of Vocab)."""

pre_names = records.pre_names
"""The entry of each value of tokenizer.ggml.pre. "since": the first release that knows it; without it, all do."""
