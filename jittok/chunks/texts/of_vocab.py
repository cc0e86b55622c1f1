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
from jittok.common.unicode.tables import BYTE_OF_CHARACTER
from jittok.kernels.jit import frozen
from jittok.vocab import Vocab
from jittok.vocab.types import type_of

NOT_KNOWN = TokenSizes(frozen(np.zeros(0, np.uint16), np.uint16), 0)


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
    """The least bytes that tokens cover, where steps do not change texts."""
    if not isinstance(vocab, Pipeline):
        lengths, way = build_lengths(vocab), type_of(vocab).alignment
        if not lengths.direct or vocab.nfc:
            return NOT_KNOWN
        return TokenSizes(lengths.source, int(way.prefix and vocab.add_space_prefix))
    spelling = None if vocab.normalize else spelling_of(vocab)
    if spelling is None or spelling.front:
        return NOT_KNOWN
    least = [0 if text == NO_TEXT else len(text) for text in spelling.texts]
    return TokenSizes(frozen(np.minimum([0, *least], 0xFFFF), np.uint16), 0)
