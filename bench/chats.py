"""Chats to ids, beside transformers, and a corpus of chats: python bench/chats.py.

CPU time of one core, interleaved; ids are the same.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "chat")]

import tokenizers  # noqa: E402
import transformers  # noqa: E402
from recorded_chats import FLAGS, HERE, chats, standin, standin_tags, templates  # noqa: E402

PLAIN = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CASES = (
    ("plain", "turns"),
    ("HuggingFaceTB-SmolLM3-3B", "turns"),
    ("NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "tool_result"),
)
ROUNDS, CALLS = 15, 60
CHATS = 20_000
"""Of five messages each."""


def least(*calls: Callable[[], Any]) -> list[float]:
    """Microseconds of each call, the least of several rounds in turn."""
    found = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for k, call in enumerate(calls):
            begin = time.process_time()
            for _ in range(CALLS):
                call()
            found[k] = min(found[k], (time.process_time() - begin) / CALLS * 1e6)
    return found


def theirs_of(tok: Any, tags: tuple[str, ...]) -> Any:
    """The same tokenizer in transformers."""
    backend = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            {tok.id_to_token(k).decode(): k for k in range(50257)},
            [tuple(merge.split(" ")) for merge in json.loads(merges())],
        )
    )
    level = {"add_prefix_space": False}
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(**level)
    backend.add_special_tokens(["<|endoftext|>", *(tag for tag in tags if tag != "<|endoftext|>")])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend)


def merges() -> str:
    """The merges of GPT-2 as JSON."""
    import jittok

    vocab = jittok.bundled("gpt-2").vocab
    parts = zip(vocab.merge_offsets[:-1].tolist(), vocab.merge_offsets[1:].tolist(), strict=True)
    return json.dumps([vocab.merge_bytes[a:b].tobytes().decode() for a, b in parts])


def main() -> None:
    """Print a line a case."""
    assert FLAGS["special"]
    for name, chat in CASES:
        tags = ("<|im_start|>", "<|im_end|>") if name == "plain" else standin_tags(HERE, name)
        template = PLAIN if name == "plain" else templates(HERE)[name]
        tok, asked = standin(tags), dict(chats(HERE)[chat])
        theirs, messages = theirs_of(tok, tags), asked.pop("messages")

        def ours(
            mask: bool = False, tok: Any = tok, template: str = template, messages: Any = messages, asked: Any = asked
        ) -> Any:
            made = tok.encode_chat(messages, template=template, **asked)
            return made.assistant_mask if mask else made.ids

        def other(theirs: Any = theirs, template: str = template, messages: Any = messages, asked: Any = asked) -> Any:
            return theirs.apply_chat_template(messages, chat_template=template, **asked)["input_ids"]

        assert ours().tolist() == other(), name
        a, b, c = least(ours, other, lambda ours=ours: ours(True))
        print(f"{name:<48} {chat:<12} ids {a:7.1f} us, transformers {b:7.1f} us: {b / a:.2f}; with mask {c:7.1f} us")


def corpus() -> None:
    """Print a line a format: chats a second of `jittok corpus`, one thread, with and without masks."""
    import jittok.corpus

    tok, rng = standin(("<|im_start|>", "<|im_end|>")), random.Random(1)
    said = "the tokens of a text are what the model reads and the assistant says how many there are in Zürich"
    words = said.split(" ")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "chats.jsonl").open("w") as file:
            for _ in range(CHATS):
                roles = ("system", "user", "assistant", "user", "assistant")
                turns = [{"role": r, "content": " ".join(rng.choices(words, k=rng.randrange(5, 80)))} for r in roles]
                file.write(json.dumps({"messages": turns}) + "\n")
        for form in ("npy", "arrow"):
            for learn in (None, "assistant"):
                options = jittok.corpus.Options(formats=(form,), messages="messages", learn=learn, template=PLAIN)
                spent = float("inf")
                for number in range(3):
                    begin = time.process_time()
                    made = jittok.corpus.compile_corpus(
                        [folder / "chats.jsonl"], tok, folder / f"{form}{learn}{number}", options, threads=1,
                        check_space=False, progress=False,
                    )  # fmt: skip
                    spent = min(spent, time.process_time() - begin)
                told = "ids and masks" if learn else "ids"
                print(f"corpus, {form}, {told}: {CHATS / spent:,.0f} chats/s, {made.tokens / spent:,.0f} tokens/s")


if __name__ == "__main__":
    main()
    corpus()
