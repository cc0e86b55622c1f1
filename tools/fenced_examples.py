"""Sessions of `>>>` in docstrings become blocks of code on the documentation site: an extension of griffe, which reads
the docstrings for mkdocstrings (mkdocs.yml names this file)."""

from __future__ import annotations

import re
from typing import Any

import griffe

SESSION = re.compile(r"(?m)^([ \t]*)>>> (?:.*\n?)+?(?=^\s*$|\Z)")


def fenced(text: str) -> str:
    """The text with a fence around each session, which a blank line ends."""

    def fence(found: re.Match[str]) -> str:
        space = found[1]
        return f"{space}```python\n{found[0].rstrip()}\n{space}```\n"

    return SESSION.sub(fence, text)


class FencedExamples(griffe.Extension):
    """Rewrites the docstring of every object that is documented."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring is not None and ">>>" in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)
