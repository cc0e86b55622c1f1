"""The JSON schema of a function, from its docstring and type hints, as transformers makes it for chat templates.

>>> def weather(city: str, days: int = 1) -> str:
...     '''The weather of a city.
...
...     Args:
...         city: its name
...         days: how many days (choices: [1, 3])
...     '''
>>> schema_of(weather)["function"]["parameters"]["properties"]["days"]
{'type': 'integer', 'enum': [1, 3], 'description': 'how many days'}
"""

from __future__ import annotations

import enum
import inspect
import json
import re
import types
import typing
from collections.abc import Callable
from typing import Any, Literal

from jittok.errors import ChatError, InWords

KINDS: dict[Any, str] = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
"""Types whose values can be written in JSON."""
OTHERS: dict[Any, dict[str, Any]] = {
    list: {"type": "array"}, tuple: {"type": "array"}, dict: {"type": "object"}, Any: {},
}  # fmt: skip
SECTIONS = "(?:Args|Returns|Raises):"
"""Headings of a docstring in Google's style."""
_DESCRIPTION = re.compile(rf"(.*?)\s*(?:{SECTIONS}|\Z)", re.DOTALL)
_ARGUMENTS = re.compile(r"\n\s*Args:\n(.*?)\s*(?:Returns:|Raises:|\Z)", re.DOTALL)
_RETURNS = re.compile(r"\n\s*Returns:\n\s*(.*?)\s*(?:Raises:|\Z)", re.DOTALL)
_NAME = re.compile(r"([ \t]*)(\w+)(?:[ \t]*\([^()\n]*\))?:")
_CHOICES = re.compile(r"\(choices:\s*(.*?)\)\s*$", re.IGNORECASE)


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The schema of a function. ChatError if it has no docstring, or an argument no hint or no description."""
    name = getattr(function, "__name__", "operation")
    where = f"tools: {name}"
    doc = inspect.getdoc(function)
    if not doc or not doc.strip():
        raise ChatError(where, InWords("no docstring"), "a docstring that says what it does, with Args:")
    doc = doc.strip()
    texts, returned = _arguments(doc), _RETURNS.search(doc)
    parameters, result = _parameters(function, where)
    for argument, schema in parameters["properties"].items():
        if argument not in texts:
            raise ChatError(where, InWords(f"no description of {argument}"), "one for each argument, below Args:")
        text = texts[argument]
        choices = _CHOICES.search(text)
        if choices:
            try:
                found = json.loads(choices[1])
            except ValueError:
                raise ChatError(f"{where}: {argument}", choices[1], "choices as a JSON list") from None
            schema["enum"] = [each.strip() if isinstance(each, str) else each for each in found]
            text = text[: choices.start()].strip()
        schema["description"] = text
    described = _DESCRIPTION.match(doc)
    made = {"name": name, "description": described[1].strip() if described else None, "parameters": parameters}
    if result is not None:
        if returned is not None:
            result["description"] = returned[1].strip()
        made["return"] = result
    return {"type": "function", "function": made}


def _arguments(doc: str) -> dict[str, str]:
    """argument -> its description, of the Args: block of a docstring."""
    block = _ARGUMENTS.search(doc)
    found: dict[str, list[str]] = {}
    indent, lines = None, found.setdefault("", [])
    for line in block[1].split("\n") if block else ():
        if not line.strip():
            continue
        begins = _NAME.match(line)
        if begins and (indent is None or not begins[1].startswith(indent) or len(begins[1]) <= len(indent)):
            indent, lines = begins[1], found.setdefault(begins[2], [])
            lines.clear()
            line = line[begins.end() :]  # noqa: PLW2901
        lines.append(line.strip())
    return {name: " ".join(filter(None, lines)) for name, lines in found.items() if name}


def _parameters(function: Callable[..., Any], where: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """(the schema of all arguments, that of the result: None without a hint that has one)."""
    hints, signature = typing.get_type_hints(function), inspect.signature(function)
    required, properties, result = [], {}, None
    for number, (name, parameter) in enumerate(signature.parameters.items()):
        if number == 0 and name in ("self", "cls") and parameter.annotation is inspect.Parameter.empty:
            continue
        if parameter.annotation is inspect.Parameter.empty:
            raise ChatError(where, InWords(f"no type hint of {name}"), "one for each argument")
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
        properties[name] = _schema(hints[name], f"{where}: {name}")
    if "return" in hints:
        try:
            result = _schema(hints["return"], where)
        except ChatError:  # templates do not need it
            result = None
    made: dict[str, Any] = {"type": "object", "properties": properties}
    return (made | {"required": required} if required else made), result


def _schema(hint: Any, where: str) -> dict[str, Any]:
    """The schema of one type hint."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is None and isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _of_values([member.value for member in hint], where)
    if origin is None and (hint in KINDS or hint in OTHERS):
        return {"type": KINDS[hint]} if hint in KINDS else dict(OTHERS[hint])
    if origin in (typing.Union, types.UnionType):
        return _union([_schema(each, where) for each in args if each is not type(None)], type(None) in args)
    if origin is Literal:
        return _of_values(list(args), where)
    if origin is list:
        return {"type": "array", "items": _schema(args[0], where)} if args else {"type": "array"}
    if origin is tuple and len(args) > 1 and ... not in args:
        return {"type": "array", "prefixItems": [_schema(each, where) for each in args]}
    if origin is dict:
        more = {"additionalProperties": _schema(args[1], where)} if len(args) == 2 else {}
        return {"type": "object", **more}
    expected = "int, float, str, bool, an Enum, Literal, or list, tuple, dict and unions of these; or a JSON schema"
    raise ChatError(where, InWords(f"the type hint {hint}"), expected)


def _of_values(values: list[Any], where: str) -> dict[str, Any]:
    if not values or any(type(value) not in KINDS for value in values):
        raise ChatError(where, InWords(f"the values {values}"), "one or more of int, float, str, bool and None")
    kinds = [*dict.fromkeys(KINDS[type(value)] for value in values)]
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values}


def _union(parts: list[dict[str, Any]], nullable: bool) -> dict[str, Any]:
    if len(parts) == 1:
        made = parts[0]
    elif all(part.keys() == {"type"} and isinstance(part["type"], str) for part in parts):
        kinds = sorted({part["type"] for part in parts})
        made = {"type": kinds[0] if len(kinds) == 1 else kinds}
    else:
        made = {"anyOf": parts}
    return made | {"nullable": True} if nullable else made
