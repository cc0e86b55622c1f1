"""WordPiece: the normalization of each code point, the words, and the texts looked up in each of them."""

from __future__ import annotations

from collections.abc import Iterator

from jittok.common.unicode.characters import SPACE_MARK_BYTES
from jittok.common.unicode.tables import WHITESPACE, decode, flags, lower, nfd
from jittok.reference import wpm
from jittok.reference.mapped_text import Mapped, Token
from jittok.trace.gdb import Breakpoint, Stages
from jittok.trace.recorder import Recorder, units
from jittok.trace.stage import Record
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
        map=units(text),
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
        stop, token = attempts[-1]
        why = None
        if token is None:
            rest = shown(text[start:])
            whole = shown(text[len(SPACE_MARK_BYTES) :])
            why = f"no token is a prefix of {rest!r}, so the whole word {whole!r} is unknown"
        elif found is None:
            why = "discarded: a later offset of the word has no token"
        recorder.add(
            "matches",
            word=number,
            start=start,
            stop=None if token is None else stop,
            text=None if token is None else shown(text[start:stop]),
            token_id=token,
            tried=[end for end, _ in attempts],
            unk=found is None,
            why=why,
        )
    if found is None:
        return [word.token(vocab.unk_id, 0, len(text))]
    return [word.token(token, start, stop) for token, start, stop in found]


def breakpoints(stages: Stages) -> Iterator[Breakpoint]:
    """The stops of a debugger in llama.cpp, with the values of these stages."""
    yield Breakpoint(
        "matches",
        "the longest token at a place of a word with U+2581 in front",
        "llm_tokenizer_wpm_session::tokenize",
        "output.push_back(id)",
        ("i", "j", "id"),
        [(row["start"], row["stop"], row["token_id"]) for row in stages["matches"] if row["token_id"] is not None],
    )
