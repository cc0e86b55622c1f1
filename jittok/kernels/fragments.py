"""The protocol of model kernels, the same for all vocabulary types: fragments in, ids or a code out.

A text is cut around special tokens into *fragments* (llama.cpp's `fragment_buffer_variant`). A batch is a list of them,
those of all documents concatenated, in three arrays over one byte buffer:

    starts, stops: int64[fragments]   the fragment's bytes are data[starts[k]:stops[k]]
    tokens: int32[fragments]          >= 0: the fragment is this id; TEXT or TEXT_PREFIXED: bytes to be tokenized

Every type of `kernels/models` has

    Arrays, Work                      NamedTuples: the compiled vocabulary; the scratch memory of one thread
    compile_pipeline(pipeline) -> Arrays    raises MalformedVocab / UnsupportedVocab
    make_work(arrays, longest) -> Work    scratch for fragments of up to `longest` bytes
    IDS_PER_BYTE                      capacity for ids that is usually enough (else the kernel returns OUT_OF_CAPACITY)
    encode_fragments(arrays, work, data, starts, stops, tokens, first, last, count, ids, ends, report) -> int

`encode_fragments` writes the ids of fragments first .. last - 1 from ids[count] on, their ends (offsets in `ids`) to
ends[first:last], and returns the new count. A negative result is one of the codes below, with details in `report`.
Everything before report[FRAGMENT] is written and valid, so the caller provides what was missing and resumes there.
"""

from __future__ import annotations

from typing import NamedTuple

TEXT = -1
"""tokens[k]: the fragment is text."""
TEXT_PREFIXED = -2
"""tokens[k]: text at the start or after a special token; SPM writes a space before it if the vocabulary requires it."""

PAD = 72
"""Bytes that kernels may read after a fragment: a block of 64 that begins at its last byte, and 8 more. A fragment
that ends nearer to the end of `data` is copied first; batches avoid that by PAD bytes after the last one."""

FRAGMENT, OFFSET, NEED, FOUND = 0, 1, 2, 3
"""Indices of report, int64[4]: the fragment that failed, the offset in `data`, the size that is needed, what was
found."""
REPORT_SIZE = 4

OUT_OF_CAPACITY = -1
"""`ids` is full: capacity for report[NEED] more ids is certainly enough for the fragment."""
OUT_OF_WORK = -2
"""`Work` is too small: report[NEED] is the `longest` to make it for."""
LONG_WORD = -3
"""A pre-token is so long that the tables of left-to-right BPE should be built (`with_chain`), if their state is
BUILD_ON_DEMAND; or there are none, and the queue of the scratch memory is too small and must grow."""
BEYOND_UNICODE = -10
"""A four-byte sequence above U+10FFFF at report[OFFSET], which crashes llama.cpp (report[FOUND]: the number)."""
SPACE_IN_SYMBOL = -11
"""A space inside a pre-token of character-level BPE (report[OFFSET]), which crashes llama.cpp."""
NO_BYTE_TOKEN = -12
"""The byte report[FOUND] at report[OFFSET] has no token, and the vocabulary has no unknown token."""
NO_TOKEN_ON_PATH = -13
"""RWKV: a token begins with the byte at report[OFFSET], but none is a prefix of the rest; llama.cpp does not return."""
CHARSMAP_NODE = -14
"""UGM: the character map has a link to unit report[FOUND], which is outside of it, at report[OFFSET]."""
CHARSMAP_REPLACEMENT = -15
"""UGM: the character map's replacement at report[FOUND] is outside of it or not terminated."""
MIXED_TOKEN = -4
"""The search for special tokens: the text of one, whose id is report[FOUND], is literal in part, at report[OFFSET]."""
NOT_UTF8 = -16
"""A file other than GGUF: the text is invalid UTF-8 at report[OFFSET]."""

EXPECTED = {
    BEYOND_UNICODE: "no code point above U+10FFFF",
    SPACE_IN_SYMBOL: "no space inside a word (this vocabulary has no rule for it)",
    NO_BYTE_TOKEN: "a byte that the vocabulary has a token for",
    NO_TOKEN_ON_PATH: "text that some token is a prefix of",
    CHARSMAP_NODE: "a character map whose links stay inside it",
    CHARSMAP_REPLACEMENT: "a character map whose replacements stay inside it",
    NOT_UTF8: "UTF-8 (errors='replace' makes it U+FFFD)",
}
"""The expectation of each code, for EncodingFailed."""


class Failure(NamedTuple):
    """The reason why a fragment could not be encoded: one of the codes above, and where."""

    code: int
    fragment: int
    offset: int  # in the data
    found: int


def found_value(failure: Failure, there: bytes) -> object:
    """The value of `found` for EncodingFailed."""
    if failure.code == BEYOND_UNICODE:
        return f"U+{failure.found:X}"
    if failure.code == NO_BYTE_TOKEN:
        return bytes([failure.found & 0xFF])
    return there
