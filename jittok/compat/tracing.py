"""What tokenizers says of the tokens of a text besides ids: the span, the pre-token and the text of each.

Spans follow the rules of tokenizers, which are not those of `jittok.align`: a character that a step adds has the span
of the character before it (of the first one, if it is put before the text), one that it replaces that of the replaced
character, of several the first; bytes of a character have its span. So tokens may overlap, and a prefix is not empty.
For vocabularies that tokenizers does not read, spans are those of `jittok.align`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from typing import NamedTuple

from jittok.common.pipeline import AddedToken, Pipeline
from jittok.common.pipeline.models import NO_TOKEN, Merges, Pieces, Unigram
from jittok.common.unicode.characters import SPACE_MARK
from jittok.common.unicode.libraries import characters
from jittok.reference.pipeline import Runner, runner
from jittok.reference.special import partition
from jittok.reference.steps import words as words_of_gguf
from jittok.reference.text import Piece, Token, mapped
from jittok.tokenizer import Tokenizer
from jittok.vocab import Vocab

Span = tuple[int, int]
Part = tuple[int, int, int]
"""An id and its bytes of a pre-token."""
_BYTE = re.compile(rb"<0x[0-9A-F]{2}>")
SPACE = "\u0120"
"""A space in the byte alphabet."""


class Traced(NamedTuple):
    """The tokens of one text, in order."""

    ids: list[int]
    spans: list[Span]  # in characters
    words: list[int]  # which pre-token each is of
    texts: list[str]  # the name of each; what it stands for, where that is not its name


def traced(tok: Tokenizer, text: str, parse_special: bool, names: dict[int, str]) -> Traced:
    """What each id of `tok.encode(text, parse_special=parse_special)` is."""
    vocab = tok.vocab
    if isinstance(vocab, Vocab) or isinstance(vocab.model, Pieces):
        return _aligned(tok, text, parse_special, names)
    rows = list(_walked(vocab, text, parse_special, names))
    ids, spans, words, texts = [list(column) for column in zip(*rows, strict=True)] if rows else [[], [], [], []]
    return Traced(ids, spans, words, texts)


def _walked(
    pipeline: Pipeline, text: str, parse_special: bool, names: dict[int, str]
) -> Iterator[tuple[int, Span, int, str]]:
    run = runner(pipeline)
    added = {token.id: token for token in pipeline.added}
    unknown = pipeline.model.unknown if isinstance(pipeline.model, Unigram) else None
    for number, word in enumerate(run.words(Piece(text, list(range(len(text)))), parse_special)):
        if isinstance(word, Token):
            shown = _matched(text[word.start : word.stop], added[word.id], run)
            yield word.id, (word.start, word.stop), number, shown
            continue
        places, ends = word.positions or [], _character_ends(word.text)
        for token_id, start, stop in _as_counted(pipeline, run.word(word.text), len(word.text.encode())):
            first = start if ends is None else bisect_right(ends, start)
            last = stop - 1 if ends is None else bisect_right(ends, stop - 1)
            shown = names[token_id] if token_id != unknown else word.text[first : last + 1]
            yield token_id, (places[first], places[last] + 1), number, shown


def _as_counted(pipeline: Pipeline, parts: list[Part], size: int) -> list[Part]:
    """The tokens of a pre-token with the bytes that tokenizers counts for each.

    Byte tokens of a run of unknown characters have the whole run (Unigram). Characters without any token are not
    counted: what follows them has their bytes (BPE).
    """
    model = pipeline.model
    if isinstance(model, Unigram) and model.byte_fallback:
        found: list[Part] = []
        for is_byte, group in groupby(parts, lambda part: _stands_for_a_byte(pipeline, part)):
            run = [*group]
            found += [(token, run[0][1], run[-1][2]) for token, _, _ in run] if is_byte else run
        return found
    if (
        not isinstance(model, Merges)
        or model.unknown != NO_TOKEN
        or model.byte_fallback
        or model.prefix
        or model.suffix
    ):
        return parts
    sizes = [len(pipeline.tokens[token] or b"") for token, _, _ in parts]
    if sum(sizes) == size:
        return parts
    ends = [*accumulate(sizes, initial=0)]
    return [(token, start, stop) for (token, _, _), start, stop in zip(parts, ends, ends[1:], strict=False)]


def _stands_for_a_byte(pipeline: Pipeline, part: Part) -> bool:
    text = pipeline.tokens[part[0]] or b""
    return _BYTE.fullmatch(text) is not None and part[2] - part[1] < len(text)


def _matched(part: str, token: AddedToken, run: Runner) -> str:
    """The text that an added token was found as, with the white space that it takes."""
    if not token.normalized or not run.pipeline.normalize:
        return part
    ends = part[: len(part) - len(part.lstrip())], part[len(part.rstrip()) :]
    before, after = (run.normalized(end) if len(run.normalized(end)) == len(end) else end for end in ends)
    return before + run.normalized(token.content) + after


def _character_ends(text: str) -> list[int] | None:
    """Where each character of a text ends in its UTF-8; None where each has one byte."""
    if text.isascii():
        return None
    ends, at = [], 0
    for c in text:
        at += len(c.encode())
        ends.append(at)
    return ends


def _aligned(tok: Tokenizer, text: str, parse_special: bool, names: dict[int, str]) -> Traced:
    found = tok.align(text, parse_special=parse_special)
    ids = found.ids.tolist()
    texts = [names[token] for token in ids]
    spans = [(start, stop) for start, stop in found.char_spans.tolist()]
    if tok.type in ("spm", "ugm", "word", "char"):
        words, word = [], -1
        for k, shown in enumerate(texts):
            word += k == 0 or shown.startswith(SPACE_MARK)
            words.append(word)
        return Traced(ids, spans, words, texts)
    starts = _word_starts(tok, text.encode(), parse_special)
    words = [max(0, bisect_right(starts, start) - 1) for start in found.spans[:, 0].tolist()]
    return Traced(ids, spans, words, texts)


def _word_starts(tok: Tokenizer, raw: bytes, parse_special: bool) -> list[int]:
    """Where the pre-tokens and the special tokens of a text begin, in bytes."""
    vocab, starts = tok.vocab, list[int]()
    if not isinstance(vocab, Vocab):
        return starts
    for fragment in partition(vocab, raw, parse_special):
        if fragment.token is not None:
            starts.append(fragment.start)
            continue
        for word in words_of_gguf(vocab, mapped(raw, fragment.start, fragment.stop), fragment.start == 0):
            starts.append(word.start if isinstance(word, Token) else word.starts[0])
    return starts


def trimmed(spans: Sequence[Span], texts: Sequence[str], keeps_prefix: bool) -> list[Span]:
    """Spans without the white space at the ends of byte-level tokens, by tokenizers' rule `trim_offsets`.

    keeps_prefix: one space of the first token, or of one at the start of the text, is the prefix and stays
    """
    found, white = [], SPACE + "".join(characters("whitespace"))
    for k, ((start, stop), text) in enumerate(zip(spans, texts, strict=True)):
        leading, trailing = (len(text) - len(bare) for bare in (text.lstrip(white), text.rstrip(white)))
        if leading == 1 and keeps_prefix and (k == 0 or start == 0):
            leading = 0
        begin = min(start + leading, stop)
        end = max(stop - trailing, begin) if trailing and stop >= trailing else stop
        found.append((begin, end))
    return found
