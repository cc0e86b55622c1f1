"""WordPiece: the normalization of each code point, the words, and the texts looked up in each of them."""

from __future__ import annotations

from collections.abc import Iterator

from jittok.common.unicode.characters import SPACE_MARK_BYTES
from jittok.common.unicode.tables import WHITESPACE, decode, flags, lower, nfd
from jittok.reference.models import wpm
from jittok.reference.text import Mapped, Token, rewritten
from jittok.trace.gdb import Breakpoint
from jittok.trace.recorder import Record, Recorder
from jittok.trace.stages.base import Stages
from jittok.trace.stages.matches import match_record
from jittok.vocab import Vocab
from jittok.vocab.describe import shown


def session(recorder: Recorder, fragment: Mapped, after_special: bool) -> list[Token]:  # noqa: ARG001
    """The tokens of one fragment."""
    words = wpm.words(recorder.vocab, fragment)
    text = Mapped()
    for word in words:
        text.put(bytes(word.text), word, 0, len(word.text))
    recorder.add(
        "normalized",
        text=shown(text.text),
        length=len(text.text),
        map=rewritten(text.byte_units()),
        steps=_steps(recorder.vocab, fragment),
    )
    tokens = []
    for word in words:
        start, stop = word.span(0, len(word.text))
        number = recorder.count("words")
        recorder.add("words", word=number, text=shown(word.text), offset=start, length=stop - start)
        tokens += _matched(recorder, word, number)
    return tokens


def _steps(vocab: Vocab, fragment: Mapped) -> list[Record]:
    """The normalization of each code point. `rule`: "kept", "alone" (a word of its own), "space" or "dropped"."""
    steps = []
    for c, i, j in decode(fragment.text, vocab.shortest_utf8):
        first = nfd(c) if vocab.strip_accents else c
        if flags(first) & WHITESPACE:
            rule = "space"
        elif wpm.is_dropped(vocab, first):
            rule = "dropped"
        else:
            rule = "alone" if wpm.is_alone(first) else "kept"
        start, stop = fragment.span(i, j)
        small = lower(first) if vocab.lowercase else first
        steps.append(
            {
                "offset": start,
                "length": stop - start,
                "code_point": c,
                "first_of_nfd": first,
                "lower": small,
                "rule": rule,
            }
        )
    return steps


def _matched(recorder: Recorder, word: Mapped, number: int) -> list[Token]:
    """The tokens of one word, with a record per offset where a token was searched for."""
    vocab, text = recorder.vocab, bytes(word.text)
    tried: dict[int, list[tuple[int, int | None]]] = {}
    found = wpm.match(vocab, text, lambda start, stop, token: tried.setdefault(start, []).append((stop, token)))
    for start, attempts in tried.items():
        why = None
        if attempts[-1][1] is None:
            rest = shown(text[start:])
            whole = shown(text[len(SPACE_MARK_BYTES) :])
            why = f"no token is a prefix of {rest!r}, so the whole word {whole!r} is unknown"
        elif found is None:
            why = "discarded: a later offset of the word has no token"
        recorder.add("matches", word=number, **match_record(text, start, attempts, unknown=found is None, why=why))
    if found is None:
        return [word.token(vocab.unk_id, 0, len(text))]
    return [word.token(token, start, stop) for token, start, stop in found]


def breakpoints(stages: Stages) -> Iterator[Breakpoint]:
    """The stops of a debugger in llama.cpp, with the values of these stages."""
    yield Breakpoint(
        "matches",
        "the longest token at an offset of a word, which begins with U+2581",
        "llm_tokenizer_wpm_session::tokenize",
        "output.push_back(id)",
        ("i", "j", "id"),
        [(row["start"], row["stop"], row["token_id"]) for row in stages["matches"] if row["token_id"] is not None],
    )
