"""Chats, and texts that users wrote: the methods of `Tokenizer` with which no message becomes a control token."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast

from numpy.typing import ArrayLike

from jittok.common.locks import once
from jittok.common.rows.ids import Ids
from jittok.errors import UnsupportedVocab, missing
from jittok.kernels.inputs import Errors, OneText, check_options, to_bytes

if TYPE_CHECKING:
    from jittok.chat.conversation import Conversations
    from jittok.chat.encoding import ChatIds
    from jittok.encode.literal import GuardedRule
    from jittok.tokenizer.tokenizer import Tokenizer

Tools = Iterable[Mapping[str, Any] | Callable[..., Any]]
"""Tools of a chat: JSON schemas, or functions."""


class Chatting:
    """Methods of `Tokenizer`."""

    # ---- texts of which a part is literal

    def _encode_literal(
        self, text: OneText, literal: ArrayLike, add_special: bool, parse_special: bool, errors: Errors
    ) -> Ids:
        """`encode` with `literal`."""
        from jittok.encode.literal import encode_literal, literal_counts

        replace = check_options(add_special, parse_special, errors)
        if not parse_special:
            raise ValueError("literal: needs parse_special=True (without it, all of a text is literal)")
        raw = to_bytes(text, replace)
        counts = literal_counts(literal, text if isinstance(text, str) else raw, raw)
        return encode_literal(self._guarded_rule(None, add_special, replace), raw, counts).view(Ids)

    def _guarded_rule(self, guarded: frozenset[int] | None, add_special: bool, replace: bool) -> GuardedRule:
        """How texts with literal parts are encoded; see `encode.literal`. UnsupportedVocab for type "none"."""
        from jittok.encode.literal import guarded_rule

        tok = cast("Tokenizer", self)
        if tok._encoder is None:
            found = getattr(tok.vocab, "model", tok.vocab.source)
            raise UnsupportedVocab(tok.vocab.source, "tokenizer.ggml.model", found, "a vocabulary that can tokenize")
        return guarded_rule(tok._encoder, guarded, bool(add_special), bool(replace))

    # ---- chats

    @once
    def _conversations(self) -> Conversations:
        try:
            from jittok.chat.conversation import Conversations
        except ImportError as error:
            if (error.name or "").split(".")[0] not in ("jinja2", "markupsafe"):
                raise
            raise missing("jittok.chat", "jinja2", "chat") from error
        return Conversations(cast("Tokenizer", self), self._chat_given)

    _chat_given: Any = None
    """Templates and special tokens, of a tokenizer made of an object."""

    @property
    def chat_templates(self) -> Mapping[str, str]:
        """The chat templates by name, of a GGUF or of files beside a tokenizer file; "default" is the usual one."""
        return MappingProxyType(self._conversations.files.templates)

    @property
    def chat_template(self) -> str | None:
        """The usual chat template, None if there is none."""
        return self._conversations.files.templates.get("default")

    def render_chat(
        self, messages: Iterable[object], *, tools: Tools | None = None, documents: object = None,
        template: str | None = None, add_generation_prompt: bool = False, continue_final_message: bool = False,
        like: Literal["transformers", "llama.cpp"] = "transformers", now: datetime.datetime | None = None,
        **variables: object,
    ) -> str:  # fmt: skip
        """The text of a chat by its template.

        `messages`: dicts with `role` and `content`, dataclasses or objects with `model_dump`; `tools`: JSON schemas, or
        functions with docstring and hints; `template`: one, or the name of one in `chat_templates`; `now`: the clock
        that it sees. Every other keyword is a variable of the template.

        `like`: "transformers" renders as that library does; "llama.cpp" as its server does, without the BOS
        that its tokenizer adds, or raises ChatError. Encoding this text with `parse_special=True` makes control tokens
        of what messages say, too: `encode_chat` does not.

        Raises TemplateError (with the line), ChatError, TypeError, ValueError; ImportError without Jinja.
        """
        from jittok.chat.request import Request

        request = Request(tools, documents, template, add_generation_prompt, continue_final_message, like, now)
        return self._conversations.render(messages, request, variables)

    def encode_chat(
        self, messages: Iterable[object], *, tools: Tools | None = None, documents: object = None,
        template: str | None = None, add_generation_prompt: bool = False, continue_final_message: bool = False,
        like: Literal["transformers", "llama.cpp"] = "transformers", now: datetime.datetime | None = None,
        trusted: Collection[str] = (), mixed: Literal["error", "text"] = "error", **variables: object,
    ) -> ChatIds:  # fmt: skip
        """The ids of a chat, a `jittok.chat.ChatIds`: `ids`, `text`, `spans`, `sources`, `assistant_mask`.

        Arguments as for `render_chat`. Control tokens come from the template alone: where a message, a tool, a document
        or a variable spells one, it is text. If no text of the chat spells one, the ids are those of the rendered text.

        `trusted`: roles whose texts count as the template's, so that an assistant's own <think> is its token.
        `mixed`: a token that template and message spell together is an error (MixedToken), or text.

        Raises what `render_chat` does; MarksLost where a template makes text of unknown origin; EncodingFailed.
        """
        from jittok.chat.request import Request

        request = Request(tools, documents, template, add_generation_prompt, continue_final_message, like, now)
        return self._conversations.encode(messages, request, variables, trusted, mixed)

    def count_chat(
        self, messages: Iterable[object], *, tools: Tools | None = None, documents: object = None,
        template: str | None = None, add_generation_prompt: bool = False, continue_final_message: bool = False,
        like: Literal["transformers", "llama.cpp"] = "transformers", now: datetime.datetime | None = None,
        trusted: Collection[str] = (), mixed: Literal["error", "text"] = "error", **variables: object,
    ) -> int:  # fmt: skip
        """How many ids `encode_chat` gives. Raises as it does."""
        from jittok.chat.request import Request

        request = Request(tools, documents, template, add_generation_prompt, continue_final_message, like, now)
        return self._conversations.encode(messages, request, variables, trusted, mixed).ids.size
