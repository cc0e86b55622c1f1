"""BPE: the words and the regexes that cut them, the queue of each word, and the tokens; with its two variants."""

from __future__ import annotations

from collections.abc import Iterator

from jittok.common.unicode.tables import code_points
from jittok.kernels.pretokenize.definition import PreType, pre_type, stages
from jittok.reference import steps
from jittok.reference.merging import Symbols, characters
from jittok.reference.models import bpe
from jittok.reference.text import Mapped, Token, rewritten
from jittok.trace.gdb import Breakpoint, queue_breakpoints
from jittok.trace.recorder import Record, Recorder
from jittok.trace.stages.base import Stages
from jittok.trace.stages.merges import Merging
from jittok.vocab import Vocab
from jittok.vocab.describe import shown


def session(recorder: Recorder, fragment: Mapped, after_special: bool) -> list[Token]:  # noqa: ARG001
    """The tokens of one fragment."""
    vocab, tokens = recorder.vocab, list[Token]()
    for part in steps.written(vocab, fragment):
        if isinstance(part, Token):
            _found(recorder, fragment, part)
            tokens.append(part)
            continue
        if vocab.model == "whitespace":
            recorder.add("normalized", text=shown(part.text), length=len(part.text), map=rewritten(part.byte_units()))
        words = [word for word in steps.cut_words(vocab, part) if isinstance(word, Mapped)]
        tokens += _of_words(recorder, part, words)
    return tokens


def _found(recorder: Recorder, fragment: Mapped, token: Token) -> None:
    """A token that a splitter has found is a word without a regex."""
    first = fragment.starts[0]
    recorder.add(
        "words",
        word=recorder.count("words"),
        text=shown(fragment.text[token.start - first : token.stop - first]),
        offset=token.start,
        length=token.stop - token.start,
        regex=None,
        matched=False,
    )


def _of_words(recorder: Recorder, text: Mapped, words: list[Mapped]) -> list[Token]:
    """The tokens of the words that the regexes have cut a text into."""
    cuts = cut_by(pre_type(recorder.vocab.pre_type), code_points(text.text, shortest=False))
    tokens, at = list[Token](), text.starts[0] if text.starts else 0
    for word, (regex, matched) in zip(words, cuts, strict=True):
        start, stop = word.span(0, len(word.text)) if word.text else (at, at)
        at = stop
        number = recorder.count("words")
        recorder.add(
            "words",
            word=number,
            text=shown(word.text),
            offset=start,
            length=stop - start,
            regex=regex,
            matched=matched,
        )
        tokens += _merged(recorder, word, number)
    return tokens


def cut_by(pre: PreType, points: list[int]) -> list[tuple[int, bool]]:
    """(regex, matched) of each word: the first regex that gave it its final bounds, and whether it matched there.

    A word that is not a match is a gap between two matches.
    """
    after = stages(points, pre)
    known: list[dict[tuple[int, int], bool]] = [{(p.start, p.stop): p.matched for p in pieces} for pieces in after]
    cuts = []
    for piece in after[-1]:
        bounds = piece.start, piece.stop
        first = next(k for k, pieces in enumerate(known) if bounds in pieces)
        cuts.append((first, known[first][bounds]))
    return cuts


def _merged(recorder: Recorder, word: Mapped, number: int) -> list[Token]:
    """The tokens of one word."""
    vocab, text = recorder.vocab, bytes(word.text)
    whole = bpe.is_whole(vocab, text)
    position: Record = {"word": number}
    log = Merging(recorder, position, "rank")
    first = Symbols(characters(text))
    if whole:
        pieces = [text]
    else:
        log.start(first)
        pieces = bpe.merge(vocab, bpe.checked(word), log).pieces()
    tokens, final, at = [], [], 0
    for piece in pieces:
        found = _tokens_of(vocab, word, piece, at)
        tokens += found
        final.append({"text": shown(piece), "ids": [token.id for token in found], "is_token": piece in vocab.ids})
        at += len(piece)
    recorder.add(
        "symbols",
        **position,
        whole=whole,
        symbols=[shown(piece) for piece in first.pieces()],
        offers=log.offers,
        final=final,
    )
    return tokens


def _tokens_of(vocab: Vocab, word: Mapped, piece: bytes, at: int) -> list[Token]:
    """The token of a symbol, else those of its bytes; a byte without a token disappears."""
    token = vocab.ids.get(piece)
    if token is not None:
        return [word.token(token, at, at + len(piece))]
    known = [(k, bpe.byte_token(vocab, byte)) for k, byte in enumerate(piece, at)]
    return [word.token(token, k, k + 1) for k, token in known if token is not None]


def breakpoints(stages: Stages) -> Iterator[Breakpoint]:
    """The stops of a debugger in llama.cpp, with the values of these stages."""
    session = "llm_tokenizer_bpe_session"
    yield Breakpoint(
        "words",
        "a word of the pre-tokenizer begins",
        f"{session}::tokenize",
        "int index = 0",
        ("word._M_string_length",),
        [(len(row["text"].encode()),) for row in stages["words"] if row["regex"] is not None],
    )
    yield from queue_breakpoints(stages, session, "add_new_bigram", "left_symbol", "rank")
