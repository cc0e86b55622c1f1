"""Chats as llama.cpp's server renders them (`/apply-template`, `--jinja`), as far as its Jinja is the ordinary one.

It passes some variables always and leaves out others, removes from the text what its tokenizer adds around it, goes on
with a last message of the assistant, and rewrites messages for what a template takes, which it finds by rendering
probes. Here are: parts that are all text joined to one, arguments of tool calls as an object, a content beside tool
calls that is null, `developer` as `system`, a system message that a template refuses. What it does for some templates
alone is not here: a chat that ends with the assistant is an error where the template reasons.
"""

from __future__ import annotations

import datetime
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from jittok.chat.templates.environment import Compiled, compiled
from jittok.chat.templates.filters import ESCAPES
from jittok.chat.templates.rendering import Chat, render_plain
from jittok.errors import ChatError, InWords, JittokError

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

PROBE = "jittok-probe"
OWN_ENDS = (
    "think", "THINK", "reason", "<|channel", "to=self", "<|content|>", "<|im_middle|>", "<|tool_list_start|>",
    "followed by a json-formatted list", "{{ eos_token }}{% endif %}", "{{- eos_token -}}",
)  # fmt: skip
"""What stands in templates of which llama.cpp goes on in ways of its own: of models that reason, and some others."""
CLOCK = datetime.datetime(2026, 1, 1)


OWN_PARTS = "[THINK]", "macro parse_content(content)"
"""What stands in templates that get parts joined, although they take them apart."""


class Takes(NamedTuple):
    """What a template takes."""

    parts: bool  # a content of parts
    objects: bool  # arguments of a tool call as an object
    system: bool  # a system message


@lru_cache(256)
def takes(source: str) -> Takes:
    """What a template takes, by probes."""
    template, user = compiled(source), {"role": "user", "content": PROBE}
    call = {"name": "probe", "arguments": {PROBE: "value"}}
    calls = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "probe0000", "type": "function", "function": call}],
    }
    result = {"role": "tool", "content": "done", "name": "probe", "tool_call_id": "probe0000"}
    return Takes(
        _prints(template, [user | {"content": [{"type": "text", "text": PROBE}]}], PROBE, not_shown='"type"'),
        _prints(template, [user | {"content": "hi"}, calls, result], PROBE),
        _prints(template, [{"role": "system", "content": PROBE}, user | {"content": "hi"}], PROBE),
    )


def _prints(template: Compiled, messages: list[dict[str, Any]], text: str, not_shown: str = "\0") -> bool:
    variables = _always(template.source, CLOCK)
    chat = Chat(
        messages, None, None, True, False, CLOCK, {"bos_token": "", "eos_token": ""}, variables, ("documents", "tools")
    )
    try:
        made = render_plain(template, chat)
        return text in made and not_shown not in made.replace("'", '"')
    except JittokError:
        return False


def _always(source: str, now: datetime.datetime) -> dict[str, Any]:
    return {
        "enable_thinking": "Deliberation: " not in source,
        "date_string": now.strftime("%d %b %Y"),
        "datetime": now.strftime("%b %d %Y"),
    }


def as_llama_cpp(chat: Chat, template: Compiled) -> Chat:
    """The chat that llama.cpp gives to a template. ChatError where it has a way of its own for this template."""
    now, found = chat.now or datetime.datetime.now(), takes(template.source)
    messages = [_rewritten(message, found) for message in chat.messages]
    messages = messages if found.system else _merged(messages)
    last = messages[-1]
    prefill = last.get("role") == "assistant" and "tool_calls" not in last
    _refuse_own_ways(template, messages, prefill)
    generates = chat.add_generation_prompt and not prefill
    absent = ["documents"] if chat.tools else ["documents", "tools"]
    return chat._replace(
        messages=messages, tools=chat.tools or None, documents=None, add_generation_prompt=generates,
        continue_final_message=chat.continue_final_message or prefill, now=now,
        variables={**_always(template.source, now), **chat.variables},
        absent=tuple(absent if generates else [*absent, "add_generation_prompt"]),
    )  # fmt: skip


def _refuse_own_ways(template: Compiled, messages: list[dict[str, Any]], prefill: bool) -> None:
    """ChatError where llama.cpp does something for this template that is not done here."""
    if prefill and any(word in template.source for word in OWN_ENDS):
        raise ChatError(
            f"messages[{len(messages) - 1}]", InWords("an assistant's message at the end, for a template that reasons"),
            "a chat that ends with a user: llama.cpp goes on in a way of its own (like='transformers' closes it)",
        )  # fmt: skip
    what = None
    if "[SYSTEM_PROMPT]" in template.source and any("reasoning_content" in message for message in messages):
        what = "reasoning of a message, for a template with [SYSTEM_PROMPT]"
    if any(word in template.source for word in OWN_PARTS) and any(_several(message) for message in messages):
        what = "a content of several parts"
    if "<|turn>" in template.source and "<|tool_response>" not in template.source.split("<|turn>")[0]:
        what = (
            "a tool's result, for an old template of gemma-4"
            if any(m.get("role") == "tool" for m in messages)
            else what
        )
    if what is not None:
        raise ChatError("template", InWords(what), "a chat that llama.cpp gives to the template as it is")


def _several(message: dict[str, Any]) -> bool:
    return isinstance(message.get("content"), list) and len(message["content"]) > 1


def check_escapes(template: Compiled, text: str) -> None:
    """ChatError for a text that may be escaped for HTML, as the filter `safe` makes Jinja do: llama.cpp does not."""
    if "safe" in template.filters and any(mark in text for mark in ESCAPES.values()):
        raise ChatError("template", InWords("escapes for HTML, by the filter `safe`"), "a template without them")


def _rewritten(message: dict[str, Any], found: Takes) -> dict[str, Any]:
    made = dict(message)
    if made.get("role") == "developer":
        made["role"] = "system"
    content = made.get("content")
    if (
        isinstance(content, list)
        and not found.parts
        and all(isinstance(p, dict) and isinstance(p.get("text"), str) for p in content)
    ):
        made["content"] = "\n".join(part["text"] for part in content)
    calls = made.get("tool_calls")
    if isinstance(calls, list):
        made.setdefault("content", "")
        if found.objects:
            made["tool_calls"] = [_with_object(call) for call in calls]
    return made


def _with_object(call: Any) -> Any:
    """A tool call whose arguments are an object, not its JSON."""
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(arguments, str) or function is None:
        return call
    try:
        return {**call, "function": {**function, "arguments": json.loads(arguments)}}
    except (ValueError, RecursionError):
        return call


def _merged(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages, with a system message in the one after it."""
    made: list[dict[str, Any]] = []
    waiting = ""
    for message in messages:
        content = message.get("content")
        if message.get("role") == "system" and isinstance(content, str):
            waiting += content + "\n"
        elif waiting and isinstance(content, str):
            made.append({**message, "content": waiting + content})
            waiting = ""
        else:
            made.append(message)
    return made or messages


def without_around(tok: Tokenizer, text: str) -> tuple[int, int]:
    """Where a text begins and ends without the tokens that `add_special` puts around it."""
    start, stop = 0, len(text)
    if tok.add_bos and tok.bos_id is not None:
        bos = tok.id_to_token(tok.bos_id).decode("utf-8", "replace")
        start = len(bos) if bos and text.startswith(bos) else 0
    if tok.add_eos and tok.eos_id is not None:
        eos = tok.id_to_token(tok.eos_id).decode("utf-8", "replace")
        stop -= len(eos) if eos and text.endswith(eos) and stop - len(eos) >= start else 0
    return start, stop
