"""Key names and numbers of the GGUF format that a vocabulary needs, and the entries of `tokenizer.ggml.pre`.

Names are those of the package `gguf`, which llama.cpp's authors maintain, and of llama.cpp's llama-arch where that has
none. A test compares all of them, and files are written with that package. It is not imported to read a file: most of
its constants are names of tensors, and the import takes 26 ms, a tenth of the time from a new vocabulary to its first
ids.
"""

from __future__ import annotations

from enum import IntEnum

from jittok.kernels.pretokenize import records

_GGML = "tokenizer.ggml."
MAGIC = b"GGUF"
DEFAULT_ALIGNMENT = 32


class TokenizerKeys:
    """Key names of the tokenizer, by gguf's names for them."""

    MODEL, PRE = f"{_GGML}model", f"{_GGML}pre"
    LIST, MERGES, SCORES = f"{_GGML}tokens", f"{_GGML}merges", f"{_GGML}scores"
    TOKEN_TYPE, TOKEN_TYPE_COUNT = f"{_GGML}token_type", f"{_GGML}token_type_count"
    BOS_ID, EOS_ID, EOT_ID, EOM_ID = (f"{_GGML}{name}_token_id" for name in ("bos", "eos", "eot", "eom"))
    UNK_ID, SEP_ID, PAD_ID = f"{_GGML}unknown_token_id", f"{_GGML}seperator_token_id", f"{_GGML}padding_token_id"
    MASK_ID = f"{_GGML}mask_token_id"
    FIM_PRE_ID, FIM_SUF_ID, FIM_MID_ID = (f"{_GGML}fim_{name}_token_id" for name in ("pre", "suf", "mid"))
    FIM_PAD_ID, FIM_REP_ID, FIM_SEP_ID = (f"{_GGML}fim_{name}_token_id" for name in ("pad", "rep", "sep"))
    PREFIX_ID, SUFFIX_ID, MIDDLE_ID = (f"{_GGML}{name}_token_id" for name in ("prefix", "suffix", "middle"))
    ADD_BOS, ADD_EOS = f"{_GGML}add_bos_token", f"{_GGML}add_eos_token"
    ADD_PREFIX, REMOVE_EXTRA_WS = f"{_GGML}add_space_prefix", f"{_GGML}remove_extra_whitespaces"
    PRECOMPILED_CHARSMAP = f"{_GGML}precompiled_charsmap"


class GeneralKeys:
    """Key names outside of the tokenizer."""

    NAME, ARCHITECTURE, ALIGNMENT = "general.name", "general.architecture", "general.alignment"


class ValueType(IntEnum):
    """The types of values."""

    UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY, UINT64, INT64, FLOAT64 = range(13)


class TokenType(IntEnum):
    """Values of tokenizer.ggml.token_type."""

    NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


T = "tokenizer.ggml."
MODEL, PRE, TOKENS, TOKEN_TYPE = TokenizerKeys.MODEL, TokenizerKeys.PRE, TokenizerKeys.LIST, TokenizerKeys.TOKEN_TYPE
SCORES, MERGES, TOKEN_TYPE_COUNT = TokenizerKeys.SCORES, TokenizerKeys.MERGES, TokenizerKeys.TOKEN_TYPE_COUNT
CHARSMAP = TokenizerKeys.PRECOMPILED_CHARSMAP
ADD_BOS, ADD_EOS, ADD_SPACE_PREFIX = TokenizerKeys.ADD_BOS, TokenizerKeys.ADD_EOS, TokenizerKeys.ADD_PREFIX
REMOVE_EXTRA = TokenizerKeys.REMOVE_EXTRA_WS
NAME, ARCHITECTURE, ALIGNMENT = GeneralKeys.NAME, GeneralKeys.ARCHITECTURE, GeneralKeys.ALIGNMENT
# What llama.cpp reads and gguf, or an older one, does not name.
ADD_SEP, SUPPRESS = T + "add_sep_token", T + "suppress_tokens"
LOWERCASE, STRIP_ACCENTS = T + "normalizer.lowercase", T + "normalizer.strip_accents"
NFC = T + "normalizer.nfc"

ID_KEYS = (
    (TokenizerKeys.BOS_ID, "bos_id"),
    (TokenizerKeys.EOS_ID, "eos_id"),
    (TokenizerKeys.EOT_ID, "eot_id"),
    (TokenizerKeys.EOM_ID, "eom_id"),
    (TokenizerKeys.UNK_ID, "unk_id"),
    (TokenizerKeys.SEP_ID, "sep_id"),
    (TokenizerKeys.PAD_ID, "pad_id"),
    (TokenizerKeys.MASK_ID, "mask_id"),
    (TokenizerKeys.FIM_PRE_ID, "fim_prefix_id"),
    (TokenizerKeys.FIM_SUF_ID, "fim_suffix_id"),
    (TokenizerKeys.FIM_MID_ID, "fim_middle_id"),
    (TokenizerKeys.FIM_PAD_ID, "fim_pad_id"),
    (TokenizerKeys.FIM_REP_ID, "fim_rep_id"),
    (TokenizerKeys.FIM_SEP_ID, "fim_sep_id"),
    (TokenizerKeys.PREFIX_ID, "fim_prefix_id"),  # the old names are read last, so they win
    (TokenizerKeys.SUFFIX_ID, "fim_suffix_id"),
    (TokenizerKeys.MIDDLE_ID, "fim_middle_id"),
)
"""(key, field of Vocab)."""

pre_names = records.pre_names
"""The entry of each value of tokenizer.ggml.pre. "since": the first release that knows it; without it, all do."""
