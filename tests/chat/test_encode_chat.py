"""`render_chat`, `encode_chat`, `count_chat`: what they take, what they give, what they refuse."""

import dataclasses
import datetime
import json
import pickle
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded_chats import standin

import jittok
from jittok.chat import ChatError, MixedToken, TemplateError

PLAIN = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TAGS = "<|user|>", "<|assistant|>", "<|system|>", "<|end|>", "<think>"
CHAT = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "<think>hm"}]


@pytest.fixture
def tok() -> jittok.Tokenizer:
    return standin(TAGS)


def names(tok: jittok.Tokenizer, ids: Any) -> list[str]:
    return [tok.id_to_token(token).decode() for token in ids.tolist()]


def test_a_chat_has_ids_sources_spans_and_a_mask(tok: jittok.Tokenizer) -> None:
    chat = tok.encode_chat(CHAT, template=PLAIN)
    assert chat.text == "<|user|>Hi<|end|><|assistant|><think>hm<|end|>"
    assert names(tok, chat.ids) == ["<|user|>", "Hi", "<|end|>", "<|assistant|>", "<", "think", ">", "hm", "<|end|>"]
    assert chat.sources.tolist() == [-1, 0, -1, -1, 1, 1, 1, 1, -1]
    assert [source.path for source in chat.fields] == [("messages", 0, "content"), ("messages", 1, "content")]
    assert chat.fields[1].role == "assistant"
    assert chat.assistant_mask.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 0]
    assert [chat.text[start:stop] for start, stop in chat.spans.tolist()][4:7] == ["<", "think", ">"]
    assert (chat.ids.dtype, chat.sources.dtype, chat.spans.dtype, chat.assistant_mask.dtype) == (
        np.int32, np.int32, np.int64, np.uint8,
    )  # fmt: skip
    assert tok.count_chat(CHAT, template=PLAIN) == len(chat) == 9
    assert not chat.ids.flags.writeable


def test_a_trusted_role_writes_control_tokens(tok: jittok.Tokenizer) -> None:
    chat = tok.encode_chat(CHAT, template=PLAIN, trusted=("assistant",))
    assert chat.ids.tolist() == tok.encode(chat.text, parse_special=True).tolist()
    assert chat.assistant_mask.tolist() == [0, 0, 0, 0, 1, 1, 0]
    assert (
        tok.encode_chat([{"role": "user", "content": "<think>"}], template=PLAIN, trusted={"assistant"}).ids.size == 5
    )


def test_what_the_template_and_a_message_spell_together(tok: jittok.Tokenizer) -> None:
    template = "{{ '<|' + messages[0].content }}"
    chat = [{"role": "user", "content": "end|>"}]
    with pytest.raises(MixedToken, match="byte 0"):
        tok.encode_chat(chat, template=template)
    assert tok.encode_chat(chat, template=template, mixed="text").ids.tolist() == tok.encode("<|end|>").tolist()
    assert names(tok, tok.encode_chat(CHAT[:1], template="{{ '<|' + messages[0].role + '|>' }}").ids) == ["<|user|>"]


def test_generation_blocks_say_what_the_assistant_writes(tok: jittok.Tokenizer) -> None:
    template = (
        "{% for m in messages %}{% set x %}<|{{ m.role }}|>{% if m.role == 'assistant' %}"
        "{% generation %}{{ m.content }}<|end|>{% endgeneration %}{% else %}{{ m.content }}{% endif %}"
        "{% endset %}{{ x }}{% endfor %}"
    )
    chat = tok.encode_chat(CHAT, template=template)
    assert chat.assistant_mask.tolist() == [0, 0, 0, 1, 1, 1, 1, 1]


def test_a_template_that_prints_no_assistant_has_no_mask(tok: jittok.Tokenizer) -> None:
    chat = tok.encode_chat(CHAT, template="{{ messages[0].content }}")
    with pytest.raises(ChatError, match="prints no assistant's text"):
        chat.assistant_mask  # noqa: B018
    assert tok.encode_chat(CHAT[:1], template="{{ messages[0].content }}").assistant_mask.tolist() == [0]


def test_continue_final_message_ends_with_it(tok: jittok.Tokenizer) -> None:
    text = tok.render_chat(CHAT, template=PLAIN, continue_final_message=True)
    assert text == "<|user|>Hi<|end|><|assistant|><think>hm"
    assert tok.encode_chat(CHAT, template=PLAIN, continue_final_message=True).text == text
    with pytest.raises(ValueError, match="add_generation_prompt, too"):
        tok.render_chat(CHAT, template=PLAIN, continue_final_message=True, add_generation_prompt=True)
    with pytest.raises(ChatError, match=r"messages\[0\]: found no text"):
        tok.render_chat([{"role": "user"}], template=PLAIN, continue_final_message=True)


def test_messages_may_be_objects_and_none_is_no_key(tok: jittok.Tokenizer) -> None:
    @dataclasses.dataclass
    class Message:
        role: str
        content: Any
        name: Any = None

    template = "{{ messages[0].content }}{{ messages[0].name is defined }}{{ x }}"
    assert tok.render_chat([Message("user", "a")], template=template, x=object()) == "aFalse<object>"
    assert tok.render_chat([{"role": "user", "content": None}], template=template, x=1) == "False1"


@pytest.mark.parametrize(
    ("messages", "kind", "words"),
    [
        ("Hi", TypeError, "found str, expected a list of messages"),
        ({"role": "user"}, TypeError, "found dict"),
        ([["role"]], TypeError, r"messages\[0\]: found list, expected a dict"),
        ([], ChatError, "messages: found none, expected one or more"),
        ([1], TypeError, r"messages\[0\]: found int"),
    ],
)
def test_what_is_no_chat_is_refused(tok: jittok.Tokenizer, messages: Any, kind: Any, words: str) -> None:
    for call in (tok.render_chat, tok.encode_chat, tok.count_chat):
        with pytest.raises(kind, match=words):
            call(messages, template=PLAIN)


@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        ({"like": "vllm"}, ValueError, "like: found 'vllm'"),
        ({"now": "today"}, TypeError, "now: found str"),
        ({"tools": {"a": 1}}, TypeError, "tools: found dict"),
        ({"tools": [1]}, TypeError, r"tools\[0\]: found int"),
        ({"trusted": "assistant"}, TypeError, "trusted: found a str"),
        ({"mixed": "maybe"}, ValueError, "mixed: found 'maybe'"),
        ({"template": 3}, TypeError, "template: found int"),
        ({"template": "{% if %}"}, TemplateError, "line 1"),
    ],
)
def test_bad_arguments_are_refused(tok: jittok.Tokenizer, asked: dict[str, Any], kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        tok.encode_chat(CHAT, **{"template": PLAIN, **asked})


def test_a_tokenizer_without_a_template_asks_for_one(tok: jittok.Tokenizer) -> None:
    assert tok.chat_template is None
    assert dict(tok.chat_templates) == {}
    with pytest.raises(ChatError, match="template: found none"):
        tok.render_chat(CHAT)


def test_the_clock_and_variables_are_the_callers(tok: jittok.Tokenizer) -> None:
    now = datetime.datetime(2026, 1, 2)
    text = tok.render_chat(CHAT, template="{{ strftime_now('%d %B') }}{{ bos_token }}{{ word }}", now=now, word="x")
    assert text == "02 Januaryx"


def test_the_text_of_llama_cpp_leaves_its_bos_to_the_tokenizer() -> None:
    tok = jittok.bundled("mistral")
    template = "{{ bos_token }}{% for m in messages %}[{{ m.content }}]{% endfor %}"
    chat = [{"role": "user", "content": "<s>"}]
    assert tok.render_chat(chat, template=template) == "<s>[<s>]"
    assert tok.render_chat(chat, template=template, like="llama.cpp") == "[<s>]"
    ids = tok.encode_chat(chat, template=template, like="llama.cpp").ids.tolist()
    assert ids == [tok.bos_id, *tok.encode("[<s>]").tolist()]
    assert tok.encode_chat(chat, template=template).ids.tolist()[0] == tok.bos_id


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a tokenizer.json and chat templates."""
    made = standin(TAGS)
    (tmp_path / "tokenizer.json").write_bytes(_file_of(made))
    config = {
        "bos_token": {"content": "<|system|>"}, "eos_token": "<|end|>",
        "chat_template": [{"name": "default", "template": "old"}, {"name": "tool_use", "template": "tools"}],
    }  # fmt: skip
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "chat_template.jinja").write_text("{{ bos_token }}new")
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "rag.jinja").write_text("{{ documents[0].text }}")
    return tmp_path


def _file_of(tok: jittok.Tokenizer) -> bytes:
    from recorded_chats import FLAGS

    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    texts = [tok.id_to_token(token).decode() for token in range(256)]
    added = [{"id": 256 + k, "content": tag, **FLAGS} for k, tag in enumerate(TAGS)]
    vocab = {text: token for token, text in enumerate(texts)}
    model = {"type": "BPE", "vocab": vocab, "merges": [], "unk_token": None, "byte_fallback": False, "fuse_unk": False}
    return json.dumps({"added_tokens": added, "pre_tokenizer": level, "decoder": level, "model": model}).encode()


def test_templates_are_read_from_the_files_of_a_folder(folder: Path) -> None:
    for source in (folder, folder / "tokenizer.json"):
        tok = jittok.load(source)
        assert dict(tok.chat_templates) == {
            "default": "{{ bos_token }}new",
            "tool_use": "tools",
            "rag": "{{ documents[0].text }}",
        }
        assert tok.chat_template == "{{ bos_token }}new"
        assert names(tok, tok.encode_chat(CHAT).ids)[0] == "<|system|>"
        assert tok.render_chat(CHAT, tools=[]) == "tools"
        chat = tok.encode_chat(CHAT, template="rag", documents=[{"text": "<|end|>"}])
        assert chat.ids.size == 7
        assert chat.fields[chat.sources[0]].path == ("documents", 0, "text")
        assert pickle.loads(pickle.dumps(tok)).render_chat(CHAT) == "<|system|>new"


def test_a_template_of_a_folder_that_is_none_is_an_error(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text('{"chat_template": [{"name": 1}]}')
    with pytest.raises(jittok.MalformedVocab, match=r"chat_template\[0\]"):
        jittok.load(folder).chat_templates  # noqa: B018


def test_templates_are_read_from_a_gguf(tmp_path: Path) -> None:
    from write_gguf import write_gguf

    file = tmp_path / "model.gguf"
    file.write_bytes(gguf_with_templates(write_gguf))
    tok = jittok.load(file)
    assert dict(tok.chat_templates) == {"default": "a{{ eos_token }}", "tool_use": "b"}
    assert tok.render_chat(CHAT) == "a</s>"


def gguf_with_templates(write: Any) -> bytes:
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256))]
    kinds = [2, 3, 3, *[6] * 256]
    return write(
        {
            "general.architecture": "llama", "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens,
            "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.scores": [0.0] * len(tokens),
            "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
            "tokenizer.chat_template": "a{{ eos_token }}", "tokenizer.chat_template.tool_use": "b",
        }
    )  # fmt: skip


def test_the_example_of_a_data_set_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "chat_masks.py"))
    assert "to learn: '4</s>'" in capsys.readouterr().out


def test_an_object_of_transformers_brings_its_template(tok: jittok.Tokenizer) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    backend = tokenizers.Tokenizer.from_str(_file_of(tok).decode())
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>")
    theirs.chat_template = PLAIN + "{{ eos_token }}"
    made = jittok.from_transformers(theirs)
    assert made.chat_template == theirs.chat_template
    for each in (made, pickle.loads(pickle.dumps(made))):
        chat = each.encode_chat(CHAT, trusted=("assistant",))
        assert chat.text == theirs.apply_chat_template(CHAT, tokenize=False)
        assert chat.ids.tolist() == theirs.apply_chat_template(CHAT)["input_ids"]


GENERATING = (
    "{% for m in messages %}<|{{ m.role }}|>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|end|>"
    "{% endgeneration %}{% else %}{{ m.content }}<|end|>{% endif %}{% endfor %}"
)


def test_the_mask_is_that_of_transformers(tok: jittok.Tokenizer) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    backend = tokenizers.Tokenizer.from_str(_file_of(tok).decode())
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=backend)
    made = jittok.from_tokenizers(backend)
    for answer in ("a", "", "\u00e9\U0001d11e b", "two\nlines "):
        chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": answer}, *CHAT[:1]]
        expected = theirs.apply_chat_template(chat, chat_template=GENERATING, return_assistant_tokens_mask=True)
        found = made.encode_chat(chat, template=GENERATING)
        assert found.ids.tolist() == expected["input_ids"]
        assert found.assistant_mask.tolist() == expected["assistant_masks"]
