"""The steps of a GGUF vocabulary, run literally: the text between two special tokens becomes pre-tokens for its model.

`jittok.vocab.as_pipeline` defines which steps a vocabulary has. Each normalizer and splitter takes every part that the
step before has made, and yields parts or tokens. Bytes need not be UTF-8, so this is next to `reference.pipeline`,
which runs the steps of other libraries over characters.

>>> import jittok
>>> from jittok.reference.text import mapped
>>> vocab = jittok.bundled("gpt-2").vocab
>>> [type(step).__name__ for step in (*vocab.pipeline.normalize, *vocab.pipeline.split)]
['ReadUtf8', 'Cut', 'SpellBytes']
>>> [word.text.decode() for word in words(vocab, mapped(b"Hello 1234", 0, 10))]
['Hello', 'Ġ1234']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jittok.common.pipeline import steps
from jittok.common.unicode.characters import KMER_MARK, NEWLINE
from jittok.common.unicode.tables import ENCODED_BYTE, LAST_CODE_POINT, code_points, decode, is_whitespace, lower, utf8
from jittok.errors import EncodingFailed
from jittok.kernels.pretokenize.definition import cut
from jittok.reference.models import plamo2, ugm, wpm
from jittok.reference.normalize.nfc import nfc
from jittok.reference.text import Mapped, Token
from jittok.vocab import Vocab

Part = Mapped | Token
Step = Callable[[Vocab, Any, Mapped], Iterator[Part]]
BEGIN, END = b"<dna>", b"</dna>"
"""Around DNA sequences ("hybriddna")."""


def words(vocab: Vocab, fragment: Mapped, after_special: bool = True) -> list[Part]:
    """The pre-tokens of one fragment for the model, and tokens that a splitter has found itself.

    after_special: it is at the start or after a special token.
    EncodingFailed: a code point above U+10FFFF, a corrupt character map.
    """
    return [word for text in written(vocab, fragment, after_special) for word in cut_words(vocab, text)]


def written(vocab: Vocab, fragment: Mapped, after_special: bool = True) -> list[Part]:
    """The same before any pattern splits it."""
    parts: list[Part] = [fragment]
    for step in _steps(vocab)[: _first_pattern(vocab)]:
        if not isinstance(step, steps.PrependBehindSpecial) or after_special:
            parts = [made for part in parts for made in _run(vocab, step, part)]
    return parts


def cut_words(vocab: Vocab, part: Part) -> list[Part]:
    """The words of one part, from the first pattern on."""
    parts = [part]
    for step in _steps(vocab)[_first_pattern(vocab) :]:
        parts = [made for part in parts for made in _run(vocab, step, part)]
    return parts


def after_each_step(vocab: Vocab, fragment: Mapped, after_special: bool = True) -> Iterator[tuple[Any, list[Part]]]:
    """Yields each step and the parts that it makes of one fragment; see `words`."""
    parts: list[Part] = [fragment]
    for step in _steps(vocab):
        if not isinstance(step, steps.PrependBehindSpecial) or after_special:
            parts = [made for part in parts for made in _run(vocab, step, part)]
        yield step, parts


def _steps(vocab: Vocab) -> list[Any]:
    pipeline = vocab.pipeline
    return [*pipeline.normalize, *pipeline.split]


def _first_pattern(vocab: Vocab) -> int:
    return next((k for k, step in enumerate(_steps(vocab)) if isinstance(step, steps.Cut)), len(_steps(vocab)))


def _run(vocab: Vocab, step: Any, part: Part) -> Iterator[Part]:
    if isinstance(part, Token):
        yield part
    else:
        yield from DOES[type(step)](vocab, step, part)


def _prepend(_: Vocab, step: steps.PrependBehindSpecial, part: Mapped) -> Iterator[Part]:
    out = Mapped()
    out.add(step.text.encode(), part.starts[0], part.starts[0])
    out.put(bytes(part.text), part, 0, len(part.text))
    yield out


def _replace(_: Vocab, step: steps.Replace, part: Mapped) -> Iterator[Part]:
    """All matches of a literal text of one byte. Source: llama.cpp, `llama_escape_whitespace`."""
    (wanted,) = step.pattern.text.encode()
    out = Mapped()
    for k, byte in enumerate(part.text):
        out.put(step.content.encode() if byte == wanted else bytes([byte]), part, k, k + 1)
    yield out


def _begin_lines(_: Vocab, step: steps.BeginLines, part: Mapped) -> Iterator[Part]:
    """The prefix of a run of bytes other than newlines has an empty span."""
    mark = step.text.encode()
    out, begins = Mapped(), True
    for k, byte in enumerate(part.text):
        if begins and byte != NEWLINE and bytes(part.text[k : k + len(mark)]) != mark:
            out.add(mark, part.starts[k], part.starts[k])
        begins = byte == NEWLINE
        out.put(bytes([byte]), part, k, k + 1)
    yield out


def _read(_: Vocab, step: steps.ReadUtf8, part: Mapped) -> Iterator[Part]:
    out = Mapped()
    for c, i, j in decode(part.text, step.shortest):
        if c > LAST_CODE_POINT:
            raise EncodingFailed(0, part.starts[i], f"U+{c:X}", "no code point above U+10FFFF")
        out.put(utf8(c), part, i, j)
    yield out


def _lowercase(_: Vocab, __: steps.Lowercase, part: Mapped) -> Iterator[Part]:
    out = Mapped()
    for c, i, j in decode(part.text, shortest=False):
        out.put(utf8(lower(c)), part, i, j)
    yield out


def _compose(_: Vocab, __: steps.ComposeAll, part: Mapped) -> Iterator[Part]:
    yield nfc(part)


def _squeeze(vocab: Vocab, _: steps.SqueezeLlama, part: Mapped) -> Iterator[Part]:
    yield ugm.normalize(vocab, part)


def _cut(_: Vocab, step: steps.Cut, part: Mapped) -> Iterator[Part]:
    """Matches, and the gaps between them. A match may be empty. Source: llama.cpp, `unicode_regex_split`."""
    points = code_points(bytes(part.text), shortest=False)
    positions = [0]
    for c in points:
        positions.append(positions[-1] + len(utf8(c)))
    for piece in cut(points, step.pattern.text, step.pattern.engine):
        yield part.part(positions[piece.start], positions[piece.stop])


def _spell(_: Vocab, __: steps.SpellBytes, part: Mapped) -> Iterator[Part]:
    out = Mapped()
    for k, byte in enumerate(part.text):
        out.add(ENCODED_BYTE[byte], part.starts[k], part.stops[k])
    yield out


def _cut_white(_: Vocab, __: steps.CutWhite, part: Mapped) -> Iterator[Part]:
    """Source: llama.cpp, `llm_tokenizer_whitespace_session`."""
    start = 0
    for c, i, j in decode(part.text, shortest=False):
        if is_whitespace(c):
            if start < i:
                yield part.part(start, i)
            start = j
    if start < len(part.text):
        yield part.part(start, len(part.text))


def _bert(vocab: Vocab, _: steps.BertWords, part: Mapped) -> Iterator[Part]:
    yield from wpm.words(vocab, part)


def _kmers(vocab: Vocab, step: steps.Kmers, part: Mapped) -> Iterator[Part]:
    """The tokens of DNA and of its marks, and the text around. Between <dna> and </dna> each six letters are a token.

    Source: llama.cpp, `llm_tokenizer_hybriddna_session`.
    """
    text = bytes(part.text)
    at = 0
    while at < len(text):
        start = text.find(BEGIN, at)
        if start < 0:
            yield part.part(at, len(text))
            return
        if start > at:
            yield part.part(at, start)
        inner = start + len(BEGIN)
        yield part.token(step.begin, start, inner)
        stop = text.find(END, inner)
        last = stop if stop >= 0 else len(text)
        for i in range(inner, last, step.size):
            letters = text[i : min(i + step.size, last)]
            kmer = letters.upper().ljust(step.size, b"A") + KMER_MARK
            yield part.token(vocab.ids.get(kmer, step.unknown), i, i + len(letters))
        if stop < 0:
            return
        at = stop + len(END)
        yield part.token(step.end, stop, at)


def _segments(vocab: Vocab, _: steps.PlamoSegments, part: Mapped) -> Iterator[Part]:
    for text in plamo2.segments(vocab, part):
        yield part.part(text[0][1], text[-1][2])


DOES: dict[type, Step] = {
    steps.PrependBehindSpecial: _prepend,
    steps.Replace: _replace,
    steps.BeginLines: _begin_lines,
    steps.ReadUtf8: _read,
    steps.Lowercase: _lowercase,
    steps.ComposeAll: _compose,
    steps.SqueezeLlama: _squeeze,
    steps.Cut: _cut,
    steps.SpellBytes: _spell,
    steps.CutWhite: _cut_white,
    steps.BertWords: _bert,
    steps.Kmers: _kmers,
    steps.PlamoSegments: _segments,
}
