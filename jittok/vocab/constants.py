"""Key names and numbers of the GGUF format that a vocabulary needs.

They are those of the package `gguf`, which llama.cpp's authors maintain. A test compares all of them, and files are
written with that package. It is not imported to read a file: most of its constants are names of tensors, and the import
takes 26 ms, a tenth of the time from a new vocabulary to its first ids.
"""

from __future__ import annotations

from enum import IntEnum

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
