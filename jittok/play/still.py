"""One file with a text, its tokens and how its words came to be: no server, nothing is fetched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.play.answers import Session

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

HERE = Path(__file__).parent
MOST_WORDS = 300
"""Tokens whose words are looked into and saved, for each tokenizer."""


def still_page(tokenizers: Mapping[str, Tokenizer], text: str) -> str:
    """A page of HTML, complete in itself, of one text. tokenizers: by the name that is shown."""
    session = Session(tokenizers)
    encoded = session.answer({"kind": "encode", "text": text, "vocabularies": list(tokenizers)})
    words: dict[str, dict[str, Any]] = {}
    for name, found in encoded.items():
        known: dict[str, Any] = {}
        for _, start, stop, *_ in found["tokens"][:MOST_WORDS]:
            question = {"kind": "word", "vocabulary": name, "text": text, "start": start, "stop": stop}
            known[f"{start}-{stop}"] = session.answer(question)
        words[name] = known
    data = {"names": session.names(), "text": text, "encoded": encoded, "words": words}
    page = (HERE / "page.html").read_text("utf-8")
    style, script = ((HERE / name).read_text("utf-8") for name in ("page.css", "page.js"))
    parts = {
        '<link rel="stylesheet" href="/asset/page.css">': f"<style>\n{style}</style>",
        '<script type="module" src="/asset/page.js"></script>': (
            f'<script type="application/json" id="saved">{_inert(json.dumps(data))}</script>\n'
            f'<script type="module">\n{script}</script>'
        ),
    }
    for old, new in parts.items():
        assert old in page
        page = page.replace(old, new)
    return page


def _inert(data: str) -> str:
    """JSON that cannot end the element it stands in."""
    return data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
