"""What a tokenizer knows of chats: its templates, compiled, with the tables that keep control tokens apart."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any

from jittok.chat.beginnings import Beginnings
from jittok.chat.encoding import ChatIds, Encoding, Mixed, guarded_of, makes_guarded, searched_as_written
from jittok.chat.request import LIKE, Request
from jittok.chat.spans import plain_spans, spans_of
from jittok.chat.templates.environment import Compiled, compiled
from jittok.chat.templates.finding import ChatFiles, chat_files, choose
from jittok.chat.templates.llama_cpp import as_llama_cpp, check_escapes, without_around
from jittok.chat.templates.rendering import Chat, Rendered, chat_of, render_marked, render_plain

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer


NOT_VARIABLES = {
    "chat_template": "expected template=",
    "tokenize": "expected render_chat for the text, encode_chat for ids",
    "return_tensors": "expected none: ids are an array",
    "return_dict": "expected none: ids, text and mask are attributes of the result",
    "return_assistant_tokens_mask": "expected none: the result has assistant_mask",
    **dict.fromkeys(
        ("padding", "truncation", "max_length"), "expected none: see docs/windows.md for rows of one length"
    ),
    **dict.fromkeys(
        ("add_special", "add_special_tokens", "parse_special"), "expected none: the template writes special tokens"
    ),
    **dict.fromkeys(("trusted", "mixed"), "which only encode_chat takes"),
}
"""Keywords of other calls, which would be passed to a template that does not read them."""


class Conversations:
    """Renders and encodes chats for one tokenizer. Shared by threads."""

    def __init__(self, tok: Tokenizer, files: ChatFiles | None = None) -> None:
        self._tok = tok
        self.files = chat_files(tok) if files is None else files
        self._encodings: dict[tuple[str, bool], Encoding] = {}

    def render(self, messages: Any, request: Request, variables: dict[str, Any]) -> str:
        """The text of a chat. Raises ChatError, TemplateError."""
        template, chat = self._prepared(messages, request, variables)
        text = render_plain(template, chat)
        if request.like == "transformers":
            return text
        check_escapes(template, text)
        start, stop = without_around(self._tok, text)
        return text[start:stop]

    def encode(
        self, messages: Any, request: Request, variables: dict[str, Any], trusted: Collection[str], mixed: Mixed
    ) -> ChatIds:
        """The ids of a chat. Raises what `render` does, MarksLost, MixedToken, EncodingFailed."""
        if isinstance(trusted, str):
            raise TypeError(f"trusted: found a str, expected a collection of roles: ({trusted!r},)")
        if mixed not in ("error", "text"):
            raise ValueError(f"mixed: found {mixed!r}, expected 'error' or 'text'")
        encoding, rendered = self.rendered(messages, request, variables)
        return encoding.ids(rendered, trusted, mixed)

    def rendered(self, messages: Any, request: Request, variables: dict[str, Any]) -> tuple[Encoding, Rendered]:
        """The text of a chat with the origin of its characters, and how it is encoded. Raises what `render` does,
        MarksLost."""
        template, chat = self._prepared(messages, request, variables)
        rendered = render_marked(template, chat)
        adds = request.like == "llama.cpp"
        if adds:
            check_escapes(template, rendered.text)
            start, stop = without_around(self._tok, rendered.text)
            rendered = rendered.part(start, stop)
        return self._encoding(template, adds), rendered

    def sources(self, request: Request) -> list[str]:
        """The templates that chats may be rendered by: of those without tools, and of those with, if it is another.
        Raises what `render` does."""
        some: tuple[Any, ...] = (None, [])
        return [*dict.fromkeys(choose(self.files.templates, request.template, tools) for tools in some)]

    def _prepared(self, messages: Any, request: Request, variables: dict[str, Any]) -> tuple[Compiled, Chat]:
        for name in NOT_VARIABLES.keys() & variables.keys():
            raise TypeError(f"{name}: found a keyword that is no variable of a template, {NOT_VARIABLES[name]}")
        if request.like not in LIKE:
            raise ValueError(f"like: found {request.like!r}, expected 'transformers' or 'llama.cpp'")
        template = compiled(choose(self.files.templates, request.template, request.tools))
        chat = chat_of(
            messages, request.tools, request.documents, bool(request.add_generation_prompt),
            bool(request.continue_final_message), request.now, self.files.special, variables,
        )  # fmt: skip
        return template, chat if request.like == "transformers" else as_llama_cpp(chat, template)

    def _encoding(self, template: Compiled, add_special: bool) -> Encoding:
        key = template.source, add_special
        found = self._encodings.get(key)
        if found is None:
            found = self._encodings[key] = self._make_encoding(template, add_special)
        return found

    def _make_encoding(self, template: Compiled, add_special: bool) -> Encoding:
        tok = self._tok
        guarded = guarded_of(tok.vocab, template.literal)
        rule = tok._guarded_rule(guarded, add_special, False)
        quick = searched_as_written(tok.vocab, guarded) and not makes_guarded(tok, rule)
        texts = (tok.id_to_token(token).decode("utf-8", "replace") for token in guarded)
        return Encoding(
            rule, Beginnings(texts) if quick else None, template.generates,
            partial(tok.encode, add_special=add_special, parse_special=True), partial(plain_spans, tok, add_special),
            spans_of(tok, rule),
        )  # fmt: skip
