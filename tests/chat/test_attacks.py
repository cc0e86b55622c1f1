"""Random chats whose texts, keys, tools and documents spell control tokens, whole, in parts, and across each other: no
control token comes from a message, and what is clean has the ordinary ids."""

import random
from typing import Any

import numpy as np
import pytest
from recorded_chats import HERE, NOW, standin, standin_tags, templates

import jittok
from jittok.chat.beginnings import Beginnings
from jittok.chat.encoding import guarded_of
from jittok.chat.templates.environment import compiled
from jittok.chat.templates.rendering import chat_of, render_marked, render_plain
from jittok.errors import JittokError, MixedToken, TemplateError

WORDS = ["Hi", "Zürich", "2+2?", " ", "\n\n", "a < b", "<b>", "é𝄞", "{{ x }}", "\u017f", "</", "|>", "\\n", '"', "'"]


def text_of(rng: random.Random, tags: list[str], attack: bool) -> str:
    parts = []
    for _ in range(rng.randint(0, 5)):
        kind = rng.random()
        if attack and kind < 0.45:
            tag = rng.choice(tags)
            cut = rng.randint(1, len(tag))
            parts.append(rng.choice([tag, tag, tag[:cut], tag[cut:]]))
        else:
            parts.append(rng.choice(WORDS))
    return "".join(parts)


def chat_for(rng: random.Random, tags: list[str], attack: bool) -> dict[str, Any]:
    """The arguments of a chat."""

    def text() -> str:
        return text_of(rng, tags, attack)

    messages: list[dict[str, Any]] = [{"role": "system", "content": text()}] if rng.random() < 0.4 else []
    for _ in range(rng.randint(1, 3)):
        content: Any = text()
        if rng.random() < 0.25:
            content = [{"type": "text", "text": text()} for _ in range(rng.randint(1, 3))]
        messages.append({"role": "user", "content": content})
        if rng.random() < 0.6:
            answer: dict[str, Any] = {"role": "assistant", "content": text()}
            if rng.random() < 0.3:
                answer["reasoning_content"] = text()
            if rng.random() < 0.3:
                call = {"name": text() or "f", "arguments": {text() or "x": text(), "n": [1, text()]}}
                answer["tool_calls"] = [{"id": "call00001", "type": "function", "function": call}]
                messages += [answer, {"role": "tool", "name": "f", "tool_call_id": "call00001", "content": text()}]
                continue
            messages.append(answer)
    asked: dict[str, Any] = {"messages": messages, "add_generation_prompt": rng.random() < 0.5}
    if rng.random() < 0.3:
        schema = {"type": "object", "properties": {text() or "x": {"type": "string", "description": text()}}}
        asked["tools"] = [{"type": "function", "function": {"name": "f", "description": text(), "parameters": schema}}]
    return asked


def attack(folder: Any, seed: int, number: int) -> dict[str, int]:
    """Encode random chats; what was found of each kind."""
    rng, found = random.Random(seed), dict.fromkeys(("clean", "attacked", "refused", "mixed", "suppressed"), 0)
    named = [*templates(folder)]
    for _ in range(number):
        name = rng.choice(named)
        tags = [*standin_tags(folder, name)]
        tok, source = standin(tuple(tags)), templates(folder)[name]
        hostile = rng.random() < 0.7
        asked = chat_for(rng, tags, hostile)
        try:
            text = tok.render_chat(template=source, now=NOW, **asked)
        except (TemplateError, JittokError, TypeError, ValueError):
            found["refused"] += 1
            continue
        try:
            chat = tok.encode_chat(template=source, now=NOW, **asked)
        except MixedToken:
            found["mixed"] += 1
            chat = tok.encode_chat(template=source, now=NOW, mixed="text", **asked)
        assert chat.text == text
        ordinary = tok.encode(text, parse_special=True).tolist()
        special = np.isin(chat.ids, sorted(tok.special_ids))
        assert (chat.sources[special] < 0).all(), (name, asked)  # no control token stands for a message's text
        if not hostile:
            assert chat.ids.tolist() == ordinary, (name, asked)
            found["clean"] += 1
        else:
            found["attacked"] += 1
            found["suppressed"] += chat.ids.tolist() != ordinary
    return found


@pytest.mark.parametrize("seed", range(3))
def test_no_control_token_comes_from_a_message(seed: int) -> None:
    found = attack(HERE, seed, 120)
    assert found["clean"] > 15
    assert found["suppressed"] > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 120))
def test_no_control_token_comes_from_any_of_many_messages(seed: int) -> None:
    found = attack(HERE, seed, 5000)
    assert found["suppressed"] > 500


def test_a_quick_look_never_misses_a_token() -> None:
    rng = random.Random(5)
    for _ in range(4000):
        letters = rng.choice(["ab", "ab<", "<|>a"])
        tokens = ["".join(rng.choices(letters, k=rng.randint(1, 6))) for _ in range(rng.randint(1, 4))]
        runs, text = [], ""
        for _ in range(rng.randint(0, 5)):
            size, mark = rng.randint(1, 4), rng.randint(0, 2)
            runs.append((size, mark))
            text += "".join(rng.choices(letters, k=size))
        theirs = [False, True, False]
        owners = [theirs[mark] for size, mark in runs for _ in range(size)]
        touched = any(
            any(owners[at : at + len(token)])
            for token in tokens
            for at in range(len(text))
            if text.startswith(token, at)
        )
        if touched:
            assert not Beginnings(tokens).none_in(text, tuple(runs), theirs), (tokens, text, runs)


@pytest.mark.parametrize("name", sorted(templates(HERE)))
def test_marks_are_those_of_letters_that_occur_nowhere_else(name: str) -> None:
    """The letters of a message are private ones: where they are in the plain text says where marks must be."""
    source = compiled(templates(HERE)[name])
    message = "".join(map(chr, range(0xE000, 0xE014)))
    asked = [{"role": "user", "content": message}]
    chat = chat_of(asked, [], None, True, False, NOW, {"bos_token": "<s>", "eos_token": "</s>"}, {})
    rendered = render_marked(source, chat)
    assert rendered.text == render_plain(source, chat)
    marked = [mark != 0 for size, mark in rendered.runs for _ in range(size)]
    assert marked == [0xE000 <= ord(c) < 0xE014 for c in rendered.text]


def test_tokens_that_a_template_only_mentions_are_guarded_too() -> None:
    tok = standin(("<tool>",))
    assert guarded_of(tok.vocab, "") == {50256, 50257}
    assert guarded_of(jittok.bundled("mistral").vocab, "") == {0, 1, 2}
