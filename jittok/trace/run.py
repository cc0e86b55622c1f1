"""Traces a text through the reference, step by step, and compares the ids with those of the kernels."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from jittok.errors import EncodingFailed, UnsupportedVocab
from jittok.kernels.pretokenize.definition import pre_type
from jittok.reference.decode import full_piece
from jittok.reference.special import Fragment
from jittok.reference.text import Mapped, Token, mapped
from jittok.reference.tokenize import around, replaced
from jittok.reference.tokenize import session as plain_session
from jittok.trace.recorder import Record, Recorder
from jittok.trace.stage import Stage
from jittok.trace.stages import STAGES
from jittok.trace.stages.fragments import record_partition
from jittok.trace.trace import Trace
from jittok.vocab import NO_TOKEN, Vocab
from jittok.vocab.describe import describe
from jittok.vocab.types import type_of

NEAR = 100
"""Bytes on each side of a difference that a report shows for a long text."""


def trace_text(
    vocab: Vocab,
    text: bytes,
    ids: Sequence[int],
    *,
    add_special: bool = False,
    parse_special: bool = False,
    replace: bool = False,
) -> Trace:
    """All stages of tokenizing a text. ids: those of the kernels.

    `replace`: each byte of a code point above U+10FFFF, and of a space inside a word, is read as U+FFFD, a byte without
    a token as the unknown one. Raises EncodingFailed and UnsupportedVocab as encoding does, and AssertionError if the
    ids of the reference differ: then one of the two has a bug.
    """
    if not type_of(vocab).has_tokens:
        raise UnsupportedVocab(vocab.source, "tokenizer.ggml.model", vocab.model, "a vocabulary that can tokenize")
    recorder = Recorder(vocab, replace)
    before, after = around(vocab) if add_special else (NO_TOKEN, NO_TOKEN)
    fragments, buffers = record_partition(vocab, text, parse_special)
    tokens = [Token(before, 0, 0)] if before != NO_TOKEN else []
    for number, (fragment, after_special) in enumerate(zip(fragments, _after_special(fragments), strict=True)):
        recorder.fragment = number
        if fragment.token is not None:
            tokens.append(Token(fragment.token, fragment.start, fragment.stop))
        else:
            tokens += _session(recorder, mapped(text, fragment.start, fragment.stop), after_special)
    if after != NO_TOKEN:
        tokens.append(Token(after, len(text), len(text)))
    found = [token.id for token in tokens]
    if found != list(ids):
        raise AssertionError(_difference(vocab, text, tokens, list(ids), add_special, parse_special))
    recorder.stages["fragments"] = buffers
    recorder.stages["tokens"] = [_token_record(vocab, k, token) for k, token in enumerate(tokens)]
    stages = {name: Stage(name, recorder.stages.get(name, [])) for name in STAGES}
    regexes = tuple(pre_type(vocab.pre_type).regexes) if type_of(vocab).has_merges else ()
    return Trace(vocab, text, add_special=add_special, parse_special=parse_special, regexes=regexes, stages=stages)


def _after_special(fragments: list[Fragment]) -> list[bool]:
    """Whether each fragment is at the start or after a special token."""
    return [k == 0 or fragments[k - 1].token is not None for k in range(len(fragments))]


def _session(recorder: Recorder, fragment: Mapped, after_special: bool) -> list[Token]:
    """The tokens of one fragment; with `replace`, repeated with replacements if it cannot be encoded."""
    mark = recorder.mark()
    try:
        return _session_once(recorder, fragment, after_special)
    except EncodingFailed:
        found = replaced(recorder.vocab, fragment)
        if not recorder.replace or found.text == fragment.text:
            raise
    recorder.back_to(mark)
    return _session(recorder, found, after_special)


def _session_once(recorder: Recorder, fragment: Mapped, after_special: bool) -> list[Token]:
    stages = type_of(recorder.vocab).stages
    if not stages:
        return list(plain_session(recorder.vocab, fragment, after_special))
    return list(importlib.import_module(stages).session(recorder, fragment, after_special))


def _token_record(vocab: Vocab, number: int, token: Token) -> Record:
    """One token as shown to users: the facts of `describe`, its number, and its span."""
    raw = full_piece(vocab, token.id) if 0 <= token.id < len(vocab) else b""
    return {"index": number, **describe(vocab, token.id, raw), "span": [token.start, token.stop]}


def _difference(vocab: Vocab, text: bytes, tokens: list[Token], ids: list[int], *options: Any) -> str:
    found = [token.id for token in tokens]
    position = next((k for k, (a, b) in enumerate(zip(found, ids, strict=False)) if a != b), min(len(found), len(ids)))
    start = tokens[position].start if position < len(tokens) else len(text)
    add, parse = options
    what = f"the text {text!r}"
    if len(text) > 2 * NEAR:
        what = f"the text, of {len(text)} bytes, around byte {start}: {text[max(start - NEAR, 0) : start + NEAR]!r}"
    return (
        f"the reference and the kernels disagree from token {position} on: {found[position : position + 8]} and "
        f"{ids[position : position + 8]}. This is a bug of jittok; please report it with {what}, "
        f"add_special={add}, parse_special={parse}, and the vocabulary {vocab.name or vocab.source!r} "
        f"(type {vocab.type}, pre {vocab.pre!r}, fingerprint {vocab.fingerprint})"
    )
