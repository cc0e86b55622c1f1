"""What the page shows of a text: its tokens, how one word came to be, a chat with its template. Plain data in and out.

>>> import jittok
>>> session = Session({"gpt-2": jittok.bundled("gpt-2")})
>>> session.answer({"kind": "encode", "text": "a b", "vocabularies": ["gpt-2"]})["gpt-2"]["tokens"]
[[64, 0, 1, 1, '61', 'normal'], [275, 1, 3, 2, '2062', 'normal']]
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jittok.common.display.colours import alternate
from jittok.errors import JittokError

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

SHOWN = 3000
"""Tokens that are sent and drawn; counts are those of the whole text."""
CHARACTERS = 12 * SHOWN
"""Characters of a text whose tokens are drawn."""
REACH = 120
"""Characters of a word on either side of a token that is looked into."""
STAGES = ("charsmap", "merges", "resegment", "matches", "lattice", "path")
"""Stages that show how a word came to be; those that have records are shown."""
TITLES = {
    "charsmap": "the character map's walk",
    "merges": "the merges, in order",
    "resegment": "from symbols to tokens, or to bytes where there is none",
    "matches": "the longest matches",
    "lattice": "the lattice, with the paths that lost",
    "path": "the best path",
}
MOST_LOADED = 32
FIELDS = {"encode": ("vocabularies",), "word": ("vocabulary", "start", "stop"), "chat": ("vocabulary", "messages")}
"""Kinds of questions -> what each has, besides options."""


class Session:
    """The tokenizers of a page, by name, and answers about texts."""

    def __init__(self, tokenizers: Mapping[str, Tokenizer]) -> None:
        self.tokenizers = dict(tokenizers)

    def names(self) -> list[tuple[str, str, int]]:
        """(name, type, number of tokens) of each tokenizer."""
        return [(name, tok.type, tok.vocab_size) for name, tok in self.tokenizers.items()]

    def load(self, name: str, content: bytes) -> str:
        """Add the tokenizer of the bytes of a file; returns the name that it has here. Errors as `jittok.load`."""
        import jittok

        if len(self.tokenizers) >= MOST_LOADED:
            raise ValueError(f"found {MOST_LOADED} tokenizers on this page, expected fewer: start another page")
        made = jittok.load(content)
        name = free = name[:80] or "file"
        number = 1
        while free in self.tokenizers:
            number += 1
            free = f"{name} ({number})"
        self.tokenizers[free] = made
        return free

    def answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a question of the page; {"error": ...} for what cannot be answered."""
        kind = question.get("kind")
        if kind not in FIELDS:
            return {"error": f"kind: found {kind!r}, expected one of {', '.join(FIELDS)}"}
        if missing := [name for name in FIELDS[kind] if name not in question]:
            return {"error": f"question of kind {kind}: found no {missing[0]}, expected {', '.join(FIELDS[kind])}"}
        try:
            if kind == "encode":
                text, special = str(question.get("text", "")), bool(question.get("special"))
                wanted = [name for name in question["vocabularies"] if name in self.tokenizers]
                return {name: tokens_of(self.tokenizers[name], text, special) for name in wanted}
            tok = self.tokenizers.get(str(question["vocabulary"]))
            if tok is None:
                return {"error": f"found no tokenizer {question['vocabulary']!r} on this page"}
            if kind == "word":
                return word_of(tok, str(question.get("text", "")), int(question["start"]), int(question["stop"]))
            return chat_of(tok, question["messages"], bool(question.get("prompt")))
        except (JittokError, ImportError, TypeError, ValueError) as error:
            return {"error": str(error)}


def tokens_of(tok: Tokenizer, text: str, parse_special: bool = False) -> dict[str, Any]:
    """The tokens of a text: [id, start, stop, hue, bytes as hex digits, attributes] of the first ones, spans in
    characters; and counts of the whole text."""
    whole = text[:CHARACTERS]
    found = tok.align(whole, parse_special=parse_special, errors="replace")
    rows = _rows(tok, found.ids[:SHOWN].tolist(), found.char_spans[:SHOWN].tolist())
    count = len(found.ids)
    if len(whole) < len(text):
        count = int(tok.count(text, parse_special=parse_special, errors="replace"))
    return {
        "tokens": rows,
        "count": count,
        "characters": len(text),
        "bytes": len(text.encode("utf-8", "surrogatepass")),
    }


def _rows(tok: Tokenizer, ids: list[int], spans: list[list[int]]) -> list[list[Any]]:
    return [
        [token, *span, hue, record.get("bytes", ""), ", ".join(record.get("attributes", ()))]
        for token, span, hue, record in zip(ids, spans, alternate(ids), tok.describe(ids), strict=True)
    ]


def word_of(tok: Tokenizer, text: str, start: int, stop: int) -> dict[str, Any]:
    """How the word around characters start to stop came to be: stages of its trace as HTML.

    The word is traced alone, with the space before it or without, whichever gives the ids that it has in the text;
    `alone` says that neither does.
    """
    start = max(0, min(start, len(text)))
    stop = max(start, min(stop, len(text), start + REACH))
    first = max(
        (k + 1 for k in range(max(0, start - REACH), start) if text[k].isspace()), default=max(0, start - REACH)
    )
    if text[start:stop].strip() == "" or text[start : start + 1].isspace():
        first = start
    last = next(
        (k for k in range(stop, min(len(text), stop + REACH)) if text[k].isspace()), min(len(text), stop + REACH)
    )
    near = tok.align(text[max(0, first - REACH) : last + REACH], errors="replace")
    shift = max(0, first - REACH)
    inside = [
        token
        for token, (a, b) in zip(near.ids.tolist(), near.char_spans.tolist(), strict=True)
        if a + shift < last and b + shift > first
    ]
    tried = [text[first:last], text[first - 1 : last]] if first and text[first - 1].isspace() else [text[first:last]]
    word = next((each for each in tried if tok.encode(each, errors="replace").tolist() == inside), None)
    trace = tok.trace(tried[-1] if word is None else word, errors="replace")
    parts = [{"title": TITLES[name], "html": trace.show(name)._repr_html_()} for name in STAGES if name in trace.stages]
    return {"word": tried[-1] if word is None else word, "alone": word is None, "parts": parts}


def chat_of(tok: Tokenizer, messages: object, prompt: bool = False) -> dict[str, Any]:
    """A chat as its template writes it: text and tokens, each with what it stands for. messages: a list, or its JSON.

    A token has two more values than in `tokens_of`: -1 for the template, else the message, counted from 0 (-2: a tool
    or document); and whether it is learned when one trains on the assistant's words. `injections`: control tokens that
    stand in a message as text, and would be found if the text were encoded without knowing who wrote what.
    """
    if isinstance(messages, str):
        try:
            messages = json.loads(messages)
        except json.JSONDecodeError as error:
            raise ValueError(f"messages: found no JSON ({error}), expected a list of messages") from None
    if not isinstance(messages, list):
        raise ValueError(f"messages: found {type(messages).__name__}, expected a list of messages")
    made = tok.encode_chat(messages, add_generation_prompt=prompt)
    text, fields = made.text, list(made.fields)
    starts = np.cumsum([0, *(len(c.encode("utf-8", "surrogatepass")) for c in text)])  # of each character, in bytes
    spans = np.searchsorted(starts, made.spans, "right") - 1
    spans[:, 1] += (starts[spans[:, 1]] < made.spans[:, 1]).astype(np.int64)  # a token that ends inside a character
    rows = _rows(tok, made.ids[:SHOWN].tolist(), spans[:SHOWN].tolist())
    for row, source, learned in zip(rows, made.sources.tolist(), made.assistant_mask.tolist(), strict=False):
        row += [_message(fields[source].path) if source >= 0 else -1, bool(learned)]
    return {
        "tokens": rows, "count": len(made.ids), "text": text, "characters": len(text), "bytes": int(starts[-1]),
        "injections": _injections(tok, text, made.ids.tolist(), spans.tolist()),
    }  # fmt: skip


def _message(path: Sequence[object]) -> int:
    """The number of the message that a field is in; that of no message is one of tools or documents: -2."""
    return path[1] if len(path) > 1 and path[0] == "messages" and isinstance(path[1], int) else -2


def _injections(tok: Tokenizer, text: str, ids: list[int], spans: list[list[int]]) -> list[list[Any]]:
    """[start, stop, text] of control tokens that encoding the whole text would have found in what people wrote."""
    ours = {(token, *span) for token, span in zip(ids, spans, strict=True)}
    plain = tok.align(text, parse_special=True, errors="replace")
    found = zip(plain.ids.tolist(), plain.char_spans.tolist(), strict=True)
    special = tok.special_ids
    return [[a, b, text[a:b]] for token, (a, b) in found if token in special and b > a and (token, a, b) not in ours]
