"""A chat to its text: plain, or with the origin of each character."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import jinja2

from jittok.chat.messages import STRUCTURE, Marker, Path, plain_data, prepared, tool_schemas
from jittok.chat.templates.environment import Compiled, begin
from jittok.chat.templates.marked import MOST_CHARACTERS, Marked, Runs, make, plain
from jittok.errors import ChatError, InWords, JittokError, TemplateError

CONTINUE = "CONTINUE_FINAL_MESSAGE_TAG "
"""Written after the last message, to find its end in the text. With a space, as templates may trim the message."""


SPECIAL_NAMES = frozenset(f"{role}_token" for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))
"""Variables that hold special tokens: those of a call replace those of the tokenizer."""


class Chat(NamedTuple):
    """A chat, and how to render it."""

    messages: list[dict[str, Any]]
    tools: list[Any] | None
    documents: Any
    add_generation_prompt: bool
    continue_final_message: bool
    now: datetime.datetime | None
    special: Mapping[str, Any]  # the special tokens by name
    variables: dict[str, Any]
    absent: tuple[str, ...] = ()  # variables that the template does not get


class Rendered(NamedTuple):
    """The text of a chat, and which text of the chat its characters came from."""

    text: str
    runs: Runs  # (characters, mark): 0 for the template's, else 1 + the number of the source; see `marked`
    sources: list[tuple[Path, str]]  # as `messages.Source`

    def part(self, start: int, stop: int) -> Rendered:
        """The characters from `start` up to `stop`."""
        if start == 0 and stop == len(self.text):
            return self
        text = make(self.text, self.runs).part(start, stop)
        return Rendered(self.text[start:stop], text.runs, self.sources)


def chat_of(
    messages: Any, tools: Iterable[Any] | None, documents: Any, add_generation_prompt: bool,
    continue_final_message: bool, now: datetime.datetime | None, special: Mapping[str, str], variables: dict[str, Any],
) -> Chat:  # fmt: skip
    """A chat from the arguments of a call. TypeError, ValueError, ChatError."""
    if continue_final_message and add_generation_prompt:
        raise ValueError(
            "continue_final_message: found add_generation_prompt, too, expected one of them: the last message goes on, "
            "or a new one begins"
        )
    if now is not None and not isinstance(now, datetime.datetime):
        raise TypeError(f"now: found {type(now).__name__}, expected a datetime.datetime")
    own = {name: plain_data(value) for name, value in variables.items() if name in SPECIAL_NAMES}
    return Chat(
        prepared(messages), tool_schemas(tools), None if documents is None else plain_data(documents),
        add_generation_prompt, continue_final_message, now, {**special, **own},
        {name: plain_data(value) for name, value in variables.items() if name not in own},
    )  # fmt: skip


def render_plain(template: Compiled, chat: Chat) -> str:
    """The text of a chat. Raises ChatError, TemplateError."""
    final = _final_text(chat.messages) if chat.continue_final_message else None
    messages = chat.messages if final is None else _tagged(chat.messages)
    text: str = _run(template.plain, chat, messages, chat.tools, chat.documents, chat.variables)
    return text if final is None else text[: _end_of_final(text, final)]


def render_marked(template: Compiled, chat: Chat) -> Rendered:
    """The text of a chat, with marks. Raises ChatError, TemplateError, MarksLost."""
    marker = Marker()
    final = _final_text(chat.messages) if chat.continue_final_message else None
    messages = marker.messages(chat.messages)
    if final is not None:
        messages = _tagged(messages)
    tools = None if chat.tools is None else marker.mark(chat.tools, ("tools",))
    documents = None if chat.documents is None else marker.mark(chat.documents, ("documents",))
    variables = {
        name: marker.mark(value, ("variables", name), form=name in STRUCTURE) for name, value in chat.variables.items()
    }
    text = _run(template.marking, chat, messages, tools, documents, variables)
    if not isinstance(text, Marked):
        text = Marked(text)
    if final is not None:
        text = text.part(0, _end_of_final(text, final))
    return Rendered(plain(text), text.runs, marker.sources)


def _run(template: jinja2.Template, chat: Chat, messages: Any, tools: Any, documents: Any, variables: Any) -> Any:
    """The text that a template makes."""
    begin(chat.now)
    named = {
        "messages": messages, "tools": tools, "documents": documents,
        "add_generation_prompt": chat.add_generation_prompt, **chat.special, **variables,
    }  # fmt: skip
    for name in chat.absent:
        if name not in chat.variables:
            del named[name]
    context = template.new_context(named)
    try:
        return template.environment.concat(template.root_render_func(context))
    except JittokError:
        raise
    except RecursionError:
        raise TemplateError("template", InWords("macros nested too deep"), "a template that ends") from None
    except MemoryError:
        raise TemplateError("template", InWords("too much text"), f"at most {MOST_CHARACTERS:,} characters") from None
    except Exception as error:
        raise _refused(error) from error


def _refused(error: Exception) -> TemplateError:
    """The error of a template that does not render a chat, with the line in it."""
    line, trace = None, error.__traceback__
    while trace is not None:
        code = trace.tb_frame
        template = code.f_globals.get("__jinja_template__")
        if template is not None:
            line = template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    kind = "" if type(error) is jinja2.TemplateError else f"{type(error).__name__}: "
    where = "template" if line is None else f"template, line {line}"
    return TemplateError(where, InWords(f"{kind}{error}"), "a chat that the template renders", line)


# ---- the last message goes on


def _final_text(messages: list[dict[str, Any]]) -> str:
    """The text that the last message ends with."""
    content = messages[-1].get("content")
    if isinstance(content, list | tuple):
        content = next((part["text"] for part in reversed(content) if isinstance(part, dict) and "text" in part), None)
    if not isinstance(content, str):
        raise ChatError(
            f"messages[{len(messages) - 1}]", InWords("no text"), "a text that continue_final_message continues"
        )
    return content


def _tagged(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with CONTINUE after the last text."""
    last = dict(messages[-1])
    content = last["content"]
    if isinstance(content, str):
        last["content"] = content + CONTINUE
    else:
        parts = [*content]
        at = max(k for k, part in enumerate(parts) if isinstance(part, dict) and "text" in part)
        parts[at] = {**parts[at], "text": parts[at]["text"] + CONTINUE}
        last["content"] = parts
    return [*messages[:-1], last]


def _end_of_final(text: str, final: str) -> int:
    """Where the last message ends in a text."""
    tag = CONTINUE.strip()
    at = str.rfind(text, tag)
    if at < 0 or final.strip() not in text:
        raise ChatError("continue_final_message", InWords("a template that leaves it out"), "one that prints it")
    if str.startswith(text, CONTINUE, at):
        return at
    return len(str.rstrip(str.__getitem__(text, slice(0, at))))  # the template has trimmed the message
