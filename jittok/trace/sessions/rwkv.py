"""RWKV: at each offset the texts that are a prefix of some token, and the longest that is a token."""

from __future__ import annotations

from collections.abc import Iterator

from jittok.reference.models import rwkv
from jittok.reference.text import Mapped, Token
from jittok.trace.gdb import Breakpoint
from jittok.trace.recorder import Recorder
from jittok.trace.stages.base import Stages
from jittok.vocab.describe import shown


def session(recorder: Recorder, fragment: Mapped, after_special: bool) -> list[Token]:  # noqa: ARG001
    """The tokens of one fragment."""
    text = bytes(fragment.text)
    tried: dict[int, list[tuple[int, int | None]]] = {}
    tokens = list(
        rwkv.tokens(
            recorder.vocab, fragment, lambda start, stop, token: tried.setdefault(start, []).append((stop, token))
        )
    )
    first = fragment.starts[0] if fragment.starts else 0
    for token, start, stop in tokens:
        at, end = start - first, stop - first
        attempts = tried.get(at, [])
        recorder.add(
            "matches",
            start=at,
            stop=end if attempts else None,
            text=shown(text[at:end]),
            token_id=token,
            tried=[position for position, _ in attempts],
            tokens_met=[known for _, known in attempts if known is not None],
            unk=not attempts,
            why=None if attempts else f"no token begins with the byte {text[at]:02x}",
        )
    return tokens


def breakpoints(stages: Stages) -> Iterator[Breakpoint]:
    """The stops of a debugger in llama.cpp, with the values of these stages."""
    yield Breakpoint(
        "matches",
        "the longest token at an offset, and where it ends",
        "llm_tokenizer_rwkv_session::tokenize",
        "output.push_back(token_id)",
        ("token_id", "token_length"),
        [(row["token_id"], row["stop"]) for row in stages["matches"] if row["stop"] is not None],
    )
