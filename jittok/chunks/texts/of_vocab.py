"""What is known of a vocabulary's tokens before a text is cut: which characters they hold side by side, how many bytes
they cover."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from jittok.align.files import NO_TEXT, spelling_of
from jittok.align.lengths import build_lengths
from jittok.chunks.texts.adjacent import Adjacent, build_adjacent
from jittok.chunks.texts.cutter import TokenSizes
from jittok.common.pipeline import Pipeline, steps
from jittok.common.unicode.characters import SPACE_MARK_BYTES
from jittok.common.unicode.tables import BYTE_OF_CHARACTER
from jittok.kernels.jit import frozen
from jittok.vocab import Vocab
from jittok.vocab.types import type_of


def adjacent_of(vocab: Vocab | Pipeline) -> Adjacent:
    """The characters that tokens hold side by side."""
    return build_adjacent(vocab, token_texts(vocab))


def token_texts(vocab: Vocab | Pipeline) -> list[bytes]:
    """The texts of all tokens as they are written, and as they stand in a text where that differs."""
    offsets, data = vocab.token_offsets, vocab.token_bytes.tobytes()
    written = [data[start:stop] for start, stop in pairwise(offsets.tolist())]
    if not isinstance(vocab, Pipeline):
        from jittok.decode.pieces import build_pieces

        pieces = build_pieces(vocab)
        blob = pieces.blob.tobytes()
        printed = [blob[start:stop] for start, stop in pairwise(pieces.offsets.tolist())]
        return printed if vocab.pipeline.step(steps.SpellBytes) else printed + written
    if vocab.step(steps.SpellBytes):
        added = [token.content.encode() for token in vocab.added]
        return [_bytes_of(text) for text in written] + added
    return written


def _bytes_of(text: bytes) -> bytes:
    """The bytes that a text of the byte alphabet spells; another is as it is."""
    found = [BYTE_OF_CHARACTER.get(ord(c), -1) for c in text.decode("utf-8", "replace")]
    return text if -1 in found else bytes(found)


def sizes_of(vocab: Vocab | Pipeline) -> TokenSizes:
    """The bytes that tokens cover: the least, where steps do not change texts; else what they are about."""
    if not isinstance(vocab, Pipeline):
        lengths, way = build_lengths(vocab), type_of(vocab).alignment
        if lengths.direct and not vocab.nfc:
            return TokenSizes(lengths.source, int(way.prefix and vocab.add_space_prefix), 1)
        return guessed_sizes(vocab)
    spelling = None if vocab.normalize else spelling_of(vocab)
    if spelling is None or spelling.front:
        return guessed_sizes(vocab)
    return _sizes([0 if text == NO_TEXT else len(text) for text in spelling.texts], 1)


def guessed_sizes(vocab: Vocab | Pipeline) -> TokenSizes:
    """The bytes of tokens as they are written: U+2581 is a space, ## is none."""
    pipeline = vocab if isinstance(vocab, Pipeline) else vocab.pipeline
    data, offsets = vocab.token_bytes.tobytes(), vocab.token_offsets
    written = [data[start:stop] for start, stop in pairwise(offsets.tolist())]
    if pipeline.step(steps.SpellBytes):
        return _sizes([len(_bytes_of(text)) for text in written], 0)
    return _sizes([len(text.replace(SPACE_MARK_BYTES, b" ").removeprefix(b"##")) for text in written], 0)


def _sizes(sizes: list[int], exact: int) -> TokenSizes:
    return TokenSizes(frozen(np.minimum([0, *sizes], 0xFFFF), np.uint16), 0, exact)
