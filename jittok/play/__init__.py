"""A page and a widget to play with tokenizers: `jittok play`, `tok.explore(text)`.

`answers` says what there is to see of a text, as plain data; `page.js` draws it, on the page of `server` and in the
widget alike; `still` writes both into one file that needs no server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jittok.play.server import serve
    from jittok.play.still import still_page

__all__ = ["serve", "still_page"]
_HOME = {"serve": "server", "still_page": "still"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        import importlib

        return getattr(importlib.import_module(f"jittok.play.{_HOME[name]}"), name)
    raise AttributeError(f"module 'jittok.play' has no attribute {name!r}")
