"""Spaces that crash llama.cpp: those inside a pre-token, where pre-tokens are not byte-level.

With errors="replace" each of their bytes is read as U+FFFD. `definition` finds them; few texts have any.
"""

from __future__ import annotations

from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_CODE
from jittok.common.unicode.tables import decode, utf8
from jittok.kernels.pretokenize.definition import pre_type, split
from jittok.vocab import Vocab
from jittok.vocab.types import type_named


def spaces_in_words(vocab: Vocab, text: bytes) -> list[tuple[int, int]]:
    """(start, stop) of each space of a text between special tokens that is not a pre-token by itself; a space has
    several bytes in an overlong form. Source: llama.cpp, the assertion in `llm_tokenizer_bpe_session::tokenize`.
    """
    pre = pre_type(vocab.pre_type)
    if pre.byte_encode or not type_named(vocab.type).has_merges or vocab.model in ("hybriddna", "whitespace"):
        return []
    source = text.replace(b" ", utf8(SPACE_MARK_CODE)) if vocab.escape_whitespaces else text
    source = b"".join(utf8(c) for c, _, _ in decode(source, vocab.shortest_utf8))
    points, found = decode(text, vocab.shortest_utf8), []
    for word in split(source, pre):
        size, spaces = 0, []
        while size < len(word):
            c, start, stop = next(points)
            escaped = c == SPACE_BYTE and stop - start == 1 and vocab.escape_whitespaces
            if c == SPACE_BYTE and not escaped:
                spaces.append((start, stop))
            size += len(utf8(SPACE_MARK_CODE if escaped else c))
        if size > 1 and not (vocab.ignore_merges and word in vocab.ids):
            found += spaces
    return found


def without_spaces(text: bytes, spaces: list[tuple[int, int]]) -> bytes:
    """The text with U+FFFD for each byte of these spaces."""
    parts, at = [], 0
    for start, stop in spaces:
        parts += [text[at:start], utf8(0xFFFD) * (stop - start)]
        at = stop
    return b"".join([*parts, text[at:]])
