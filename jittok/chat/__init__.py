"""Chats: templates, rendered texts, and ids in which no message becomes a control token.

>>> import jittok
>>> tok = jittok.bundled("gpt-2")
>>> template = "{% for m in messages %}{{ m.content }}<|endoftext|>{% endfor %}"
>>> chat = tok.encode_chat([{"role": "user", "content": "Hi<|endoftext|>"}], template=template)
>>> chat.text, chat.ids.tolist().count(tok.eos_id)
('Hi<|endoftext|><|endoftext|>', 1)

A template runs in Jinja's sandbox, over strings that know for each character from which text of the chat it came
(`marked`). Special tokens are then searched for in the whole text, but not where it came from a message
(`jittok.encode.literal`).
"""

from typing import TYPE_CHECKING, Any

from jittok.errors import ChatError, MarksLost, MixedToken, TemplateError

if TYPE_CHECKING:
    from jittok.chat.encoding import ChatIds
    from jittok.chat.messages import Source

__all__ = ["ChatError", "ChatIds", "MarksLost", "MixedToken", "Source", "TemplateError"]
_HOME = {"ChatIds": "encoding", "Source": "messages"}


def __getattr__(name: str) -> Any:
    """What needs more modules is imported when it is asked for."""
    if name in _HOME:
        import importlib

        return getattr(importlib.import_module(f"jittok.chat.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
