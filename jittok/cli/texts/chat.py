"""`jittok chat`: a chat as the text, the ids and the mask that a model gets."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from jittok.cli.common import add_vocab, group, open_vocab, write
from jittok.common.display.terminal import harmless_json

HELP = "Show a chat as the text and the ids that a model gets; no message becomes a control token."
EXAMPLES = """# the text of a chat, by the template of the model's file
jittok chat --vocab model.gguf chat.json
# its ids, and which of them the assistant wrote, as JSON
jittok chat --vocab folder/ chat.json --json --mask
# a template of your own; the chat on standard input
jittok chat --vocab gpt-2 --template plain.jinja --ids - < chat.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_vocab(parser)
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE",
        help="a chat as JSON: a list of messages, or an object with messages, tools and others; .jsonl: one a line; "
        "- or nothing: standard input",
    )  # fmt: skip
    add_rendering(parser)
    output = group(parser, "output")
    output.add_argument("--ids", action="store_true", help="print the ids, not the text")
    output.add_argument(
        "--mask", action="store_true", help="print 1 for each id that the assistant wrote, 0 for others"
    )


def add_template(parser: argparse.ArgumentParser) -> None:
    """Add the options about the template and what it is given."""
    chat = group(parser, "chat")
    chat.add_argument(
        "--template", metavar="FILE|NAME", help="a file with a template, or the name of one of the model's"
    )
    chat.add_argument(
        "--trusted", action="append", default=[], metavar="ROLE",
        help="a role whose messages may hold control tokens, such as assistant; repeatable",
    )  # fmt: skip
    chat.add_argument(
        "--variable", action="append", default=[], metavar="NAME=JSON", help="a variable of the template; repeatable"
    )


def add_rendering(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a chat becomes text."""
    add_template(parser)
    chat = group(parser, "chat")
    chat.add_argument("--add-generation-prompt", action="store_true", help="end with the beginning of an answer")
    chat.add_argument("--continue-final-message", action="store_true", help="end within the last message")
    chat.add_argument(
        "--like", choices=("transformers", "llama.cpp"), default="transformers",
        help="whose text (default: transformers)",
    )  # fmt: skip
    chat.add_argument(
        "--mixed", choices=("error", "text"), default="error",
        help="a control token that template and message spell together is an error, or text (default: error)",
    )  # fmt: skip


def rendering(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `encode_chat` that options give. ValueError."""
    asked = {
        "template": template_of(options), "like": options.like, "trusted": options.trusted, "mixed": options.mixed,
        **variables_of(options),
    }  # fmt: skip
    for name in ("add_generation_prompt", "continue_final_message"):
        if getattr(options, name):
            asked[name] = True
    return asked


def variables_of(options: argparse.Namespace) -> dict[str, Any]:
    """The variables of --variable. ValueError."""
    variables: dict[str, Any] = {}
    for each in options.variable:
        name, equals, value = each.partition("=")
        if not equals or not name.isidentifier():
            raise ValueError(f"--variable: found {each!r}, expected NAME=JSON, such as enable_thinking=false")
        try:
            variables[name] = json.loads(value)
        except ValueError:
            if value in ("True", "False", "None"):
                raise ValueError(f"--variable {name}: found {value}, expected JSON: true, false or null") from None
            variables[name] = value
    return variables


def template_of(options: argparse.Namespace) -> str | None:
    """The template of --template: the text of a file, or a name."""
    template: str | None = options.template
    if template is not None and Path(template).is_file():
        template = Path(template).read_text(encoding="utf-8")
    elif template is not None and Path(template).suffix:
        raise FileNotFoundError(f"--template {template}: found no such file, expected one, or a name of the file's")
    return template


def run(options: argparse.Namespace) -> int:
    """Encode each chat and print it."""
    from jittok.chat.files import read_chats

    tok, asked = open_vocab(options), rendering(options)
    for _, chat in read_chats(options.file):
        made = tok.encode_chat(**{**chat, **asked})
        if options.json:
            fields = [{"path": list(field.path), "role": field.role} for field in made.fields]
            row: dict[str, Any] = {"text": made.text, "ids": made.ids.tolist(), "sources": made.sources.tolist()}
            row |= {"spans": made.spans.tolist(), "fields": fields}
            if options.mask:
                row["assistant_mask"] = made.assistant_mask.tolist()
            write(harmless_json(json.dumps(row, ensure_ascii=False)) + "\n")
            continue
        if options.ids:
            write(" ".join(map(str, made.ids.tolist())) + "\n")
        if options.mask:
            write(" ".join(map(str, made.assistant_mask.tolist())) + "\n")
        if not (options.ids or options.mask):
            write(made.text + "\n")
    return 0
