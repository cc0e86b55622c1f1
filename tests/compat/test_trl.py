"""TRL's trainer takes a corpus of chats as it is: the labels are those of `encode_chat`."""

from __future__ import annotations

import json
import sys

import pytest

import jittok
from jittok.compat import as_transformers
from jittok.corpus import Options, compile_corpus

pytest.importorskip("torch")
pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")

TEMPLATE = (
    "{% for m in messages %}{{ m.role }}\n{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|endoftext|>"
    "{% endgeneration %}{% else %}{{ m.content }}<|endoftext|>{% endif %}{% endfor %}"
)
CHATS = [
    [{"role": "user", "content": "What is 2+2?"}, {"role": "assistant", "content": "4, Zürich"}],
    [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello there"},
        {"role": "user", "content": "?"},
    ],
]


@pytest.fixture(scope="module")
def tok():
    return jittok.bundled("gpt-2")


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(sys, "argv", ["test"])


def trainer(tok, dataset, out, **more):
    """A trainer of a random model of one small layer."""
    from transformers import GPT2Config, GPT2LMHeadModel
    from trl import SFTConfig, SFTTrainer

    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=16, n_positions=64))
    config = SFTConfig(
        output_dir=str(out), max_steps=1, per_device_train_batch_size=2, report_to=[], use_cpu=True, bf16=False,
        max_length=64, save_strategy="no", eos_token="<|endoftext|>", **more,
    )  # fmt: skip
    named = as_transformers(tok, pad_token="<|endoftext|>", chat_template=TEMPLATE)
    return SFTTrainer(model=model, args=config, train_dataset=dataset, processing_class=named)


def labels(tok):
    made = [tok.encode_chat(chat, template=TEMPLATE) for chat in CHATS]
    return [
        [
            token if learned else -100
            for token, learned in zip(each.ids.tolist(), each.assistant_mask.tolist(), strict=True)
        ]
        for each in made
    ]


def test_a_trainer_takes_a_corpus_of_chats_as_it_is(tok, tmp_path):
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps({"messages": chat}) + "\n" for chat in CHATS), "utf-8")
    compile_corpus([path], tok, tmp_path / "out", Options(messages="messages", learn="assistant", template=TEMPLATE))
    files = str(tmp_path / "out" / "arrow" / "*.arrow")
    dataset = datasets.load_dataset("arrow", data_files=files, split="train", cache_dir=str(tmp_path / "cache"))
    made = trainer(tok, dataset, tmp_path / "trained")
    assert [row["labels"] for row in made.train_dataset] == labels(tok)
    batch = next(iter(made.get_train_dataloader()))
    assert batch["labels"].shape == batch["input_ids"].shape
    assert made.train().training_loss > 0
