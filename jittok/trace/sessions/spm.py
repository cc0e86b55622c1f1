"""SPM: the escaped text, one queue for all of it, and the tokens of the symbols."""

from __future__ import annotations

from collections.abc import Iterator

from jittok.errors import EncodingFailed
from jittok.reference import steps
from jittok.reference.merging import Symbols, characters
from jittok.reference.models import spm
from jittok.reference.text import Mapped, Token, rewritten
from jittok.trace.gdb import Breakpoint, queue_breakpoints
from jittok.trace.recorder import Recorder
from jittok.trace.stages.base import Stages
from jittok.trace.stages.merges import Merging
from jittok.vocab.describe import shown


def session(recorder: Recorder, fragment: Mapped, after_special: bool) -> list[Token]:
    """The tokens of one fragment. `after_special`: it is at the start or after a special token."""
    vocab = recorder.vocab
    (text,) = steps.words(vocab, fragment, after_special)
    assert isinstance(text, Mapped)
    recorder.add("normalized", text=shown(text.text), length=len(text.text), map=rewritten(text.byte_units()))
    raw = bytes(text.text)
    first = Symbols(characters(raw))
    log = Merging(recorder, {}, "score")
    log.start(first)
    symbols = spm.merge(vocab, raw, log)
    tokens, final, at = [], [], 0
    i = 0 if symbols.values else -1
    while i >= 0:
        piece = symbols.piece(i)
        ids = []
        for token, size in spm.resegment(vocab, piece):
            known = vocab.unk_id if token is None and recorder.replace and vocab.unk_id >= 0 else token
            if known is None:
                found, expected = raw[at : at + 1], "a byte that the vocabulary has a token for"
                raise EncodingFailed(0, text.starts[at], found, expected)
            ids.append(known)
            tokens.append(text.token(known, at, at + size))
            at += size
        is_token = piece in vocab.ids
        by = "token" if is_token else "bytes"
        recorder.add("resegment", symbol=i, text=shown(piece), length=len(piece), by=by, ids=ids)
        final.append({"text": shown(piece), "ids": ids, "is_token": is_token})
        i = symbols.next[i]
    recorder.add(
        "symbols",
        whole=False,
        symbols=[shown(piece) for piece in first.pieces()],
        offers=log.offers,
        final=final,
    )
    return tokens


def breakpoints(stages: Stages) -> Iterator[Breakpoint]:
    """The stops of a debugger in llama.cpp, with the values of these stages."""
    session = "llm_tokenizer_spm_session"
    yield from queue_breakpoints(stages, session, "try_add_bigram", "left_sym", "score")
    yield Breakpoint(
        "resegment",
        "a symbol becomes a token, or bytes",
        f"{session}::resegment",
        "auto token = vocab.text_to_token",
        ("symbol.n",),
        [(row["length"],) for row in stages["resegment"]],
    )
