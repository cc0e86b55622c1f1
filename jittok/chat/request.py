"""What a call asks for besides the messages of a chat. Needs no Jinja."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

LIKE = ("transformers", "llama.cpp")
Like = Literal["transformers", "llama.cpp"]
"""Whose text a chat is rendered to."""


class Request(NamedTuple):
    """The arguments of `Tokenizer.render_chat` that are no variables of the template."""

    tools: Iterable[Any] | None = None
    documents: Any = None
    template: str | None = None
    add_generation_prompt: bool = False
    continue_final_message: bool = False
    like: Like = "transformers"
    now: datetime.datetime | None = None
