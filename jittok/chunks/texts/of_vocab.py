"""What is known of a vocabulary's tokens before a text is cut: which characters they hold side by side, how many bytes
they cover."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from jittok.align.files import NO_TEXT, spelling_of
from jittok.align.lengths import build_lengths
from jittok.chunks.texts.adjacent import BLANKS, WORDS, Adjacent, build_adjacent, plain_tokens
from jittok.chunks.texts.cutter import NO_JOINS, Cutter, Joins, TokenSizes, boundaries, one_document
from jittok.chunks.texts.search.sections import (
    AFTER_SPACE,
    AFTER_WHITE,
    ANYWHERE,
    BEFORE_SPACE,
    BEFORE_WHITE,
    BY_ASKING,
    BY_SIZES,
    BY_SPACES,
    BY_WORDS,
)
from jittok.common.pipeline import Pipeline, steps
from jittok.common.pipeline.models import Pieces, Unigram
from jittok.common.unicode.characters import SPACE_MARK_BYTES
from jittok.common.unicode.tables import BYTE_OF_CHARACTER
from jittok.errors import EncodingFailed
from jittok.kernels.jit import frozen
from jittok.vocab import Vocab
from jittok.vocab.types import type_of

_NO_FLAGS: NDArray[np.uint8] = frozen([], np.uint8)
PROBE = (
    'The cat sat on (the) mat. "Who is it?" he said: f(x, y) = {a + b} or <br> and C++ -- then: A "B" '
    "c's don't we'll "
    "Ünïcode é ñandú, ça va Straße fi naïve Ελληνικά κείμενο, русский текст ещё раз; 123 apples 4 x 5 y2 z3 #tag @me "
    "if (x):\n    return a;\n\n\tdef f(self) -> int:\n\t\tpass\nyes\nno,\n- item\n  * {\n}\n   x  =  y\n\n\nend\n"
    "/path/to some.thing ___ a_b CamelCase lowerUPPER x1y2 end.\nNew line here,\tand a tab there  twice   thrice \n\n "
    "x <s> </s> [CLS] one [SEP] two | three\\n four ~ five ` six $7 %8 ^9 &amp; (nine) 中文 字 "
    "日本語 の 한국어 문장 antidisestablishmentarianism xyzzyqwrtp kkkkkk last words"
    + "".join(
        f" one{white}two{white}Three{white}(four)"
        for a in " \n\t"
        for b in ("", *" \n\t")
        for white in (a + b, a + b + " ")
    )
    + " last"
)
"""A text on which it is tried whether ids of sections are those of a text."""


WHITE = b" ", b"\n", b"\t", b" \n", b"\n\t "


def joins_of(cutter: Cutter) -> Joins:
    """Whether ids of sections that end after spaces, or before them, are those of the text, and alone."""
    vocab = cutter.encoder.vocab
    pipeline = vocab if isinstance(vocab, Pipeline) else vocab.pipeline
    words = any(not isinstance(step, steps.Metaspace) or step.split for step in pipeline.split)
    if cutter.encoder.in_python or (cutter.sizes.rounds and not words):
        return NO_JOINS
    docs = one_document(PROBE.encode())
    try:
        ids = cutter.encoder.one(PROBE.encode(), cutter.rule)
        last = [cutter.encoder.one(PROBE.encode() + white, cutter.rule).size > ids.size for white in (b" ", b"\n")]
        before = (BEFORE_WHITE, BEFORE_SPACE) if all(last) else (BEFORE_SPACE,) if last[0] else ()
        spaced, *others = (cutter.encoder.one(b"The%scat%ssat" % (each, each), cutter.rule).tolist() for each in WHITE)
        after = (AFTER_WHITE, AFTER_SPACE) if all(each == spaced for each in others) else (AFTER_SPACE,)
        white = (*map(bytes, zip(BLANKS)), SPACE_MARK_BYTES)
        if any(text.startswith(white) for text in plain_tokens(pipeline)):  # one would begin before such a place
            after = ()
        for where in (*after, *before):
            with cutter.encoder.workspace() as workspace:
                whole = cutter.is_whole(workspace, docs)
                found, _ = cutter.sections(workspace, docs, boundaries(docs), Joins(where, 1), 1, whole)
            if found.starts.size > 1 and np.array_equal(found.ids, ids):
                texts = [
                    docs.between(*place) for place in zip(found.starts.tolist(), found.stops.tolist(), strict=True)
                ]
                alone = np.concatenate([cutter.encoder.one(text, cutter.rule) for text in texts])
                return Joins(where, int(np.array_equal(alone, ids)))
    except EncodingFailed:
        pass
    return NO_JOINS


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


def token_sizes(vocab: Vocab | Pipeline, adjacent: Adjacent) -> TokenSizes:
    """What tokens cover, and which of them begin words, where that tells where words are."""
    sizes = sizes_of(vocab)._replace(rounds=int(rounds(vocab)))
    if sizes.exact:
        return sizes._replace(way=BY_SIZES)
    offsets, data = vocab.token_offsets, vocab.token_bytes.tobytes()
    written = [data[start:stop] for start, stop in pairwise(offsets.tolist())]
    marked = [text.startswith(SPACE_MARK_BYTES) for text in written]
    if adjacent.bert:  # a GGUF marks what begins a word, a file what does not
        begins = marked if not isinstance(vocab, Pipeline) else [not text.startswith(b"##") for text in written]
        if not isinstance(vocab, Pipeline) and vocab.unk_id >= 0:
            begins[vocab.unk_id] = True
        return sizes._replace(begins=_begins(vocab, begins), way=BY_WORDS)
    if adjacent.mode != WORDS and not any(text.find(SPACE_MARK_BYTES, 1) > 0 for text in written):
        return sizes._replace(begins=_begins(vocab, marked), way=BY_SPACES)
    return sizes


def rounds(vocab: Vocab | Pipeline) -> bool:
    """Whether sums of scores are rounded, so that a tie of two spellings may be broken otherwise where more is before:
    sentencepiece adds in 32 bits, tokenizers in 64, which is exact for scores of 32."""
    model = vocab.model if isinstance(vocab, Pipeline) else None
    if isinstance(model, Unigram):
        return not np.array_equal(model.scores, model.scores.astype(np.float32))
    return isinstance(model, Pieces) and model.kind == "unigram"


def _begins(vocab: Vocab | Pipeline, values: list[bool]) -> NDArray[np.uint8]:
    """`TokenSizes.begins`."""
    flags = np.array([False, *values], np.uint8)
    flags.resize(1 + len(vocab))
    for token in plain_tokens(vocab if isinstance(vocab, Pipeline) else vocab.pipeline).values():
        flags[token + 1] = ANYWHERE
    return frozen(flags, np.uint8)


def sizes_of(vocab: Vocab | Pipeline) -> TokenSizes:
    """The bytes that tokens cover: the least, where steps do not change texts; else what they are about."""
    if not isinstance(vocab, Pipeline):
        lengths, way = build_lengths(vocab), type_of(vocab).alignment
        if lengths.direct and not vocab.nfc:
            return TokenSizes(lengths.source, int(way.prefix and vocab.add_space_prefix), 1, _NO_FLAGS, BY_ASKING)
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
    return TokenSizes(frozen(np.minimum([0, *sizes], 0xFFFF), np.uint16), 0, exact, _NO_FLAGS, BY_ASKING)
