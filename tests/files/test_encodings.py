"""Rank files that are known by their content."""

import base64
import hashlib

import pytest

import jittok
from jittok.errors import UnsupportedVocab
from jittok.files.ranks import BY_SHA256, ENCODINGS

LINES = b"".join(base64.b64encode(bytes([byte])) + b" %d\n" % byte for byte in range(256)) + b"= 256\n"
"""The last is a token of no bytes, as Whisper's file has it."""
KNOWN = {
    "llama-models": (256, {"<|begin_of_text|>": 128000, "<|reserved_special_token_1|>": 128003, "<|step_id|>": 128005,
                           "<|eom_id|>": 128008, "<|eot_id|>": 128009, "<|image|>": 128011,
                           "<|reserved_special_token_2|>": 128012, "<|reserved_special_token_245|>": 128255}),
    "llama-3": (256, {"<|reserved_special_token_3|>": 128005, "<|reserved_special_token_4|>": 128008,
                      "<|eot_id|>": 128009, "<|reserved_special_token_250|>": 128255}),
    "llama-3.1": (256, {"<|finetune_right_pad_id|>": 128004, "<|reserved_special_token_2|>": 128005,
                        "<|python_tag|>": 128010, "<|reserved_special_token_247|>": 128255}),
    "llama-4": (2048, {"<|fim_suffix|>": 200004, "<|header_start|>": 200005, "<|eot|>": 200008,
                       "<|finetune_right_pad|>": 200018, "<|text_post_train_reserved_special_token_8|>": 200019,
                       "<|image_start|>": 200080, "<|patch|>": 200092, "<|reasoning_thinking_end|>": 201143,
                       "<|reserved_special_token_0|>": 201144}),
    "qwen": (208, {"<|endoftext|>": 151643, "<|im_end|>": 151645, "<|extra_204|>": 151850}),
    "whisper": (1608, {"<|en|>": 50259, "<|su|>": 50357, "<|notimestamps|>": 50363, "<|30.00|>": 51864}),
    "whisper-v3": (1609, {"<|yue|>": 50358, "<|notimestamps|>": 50364, "<|0.02|>": 50366}),
    "whisper-en": (1608, {"<|endoftext|>": 50256, "<|startoftranscript|>": 50257, "<|30.00|>": 51863}),
}  # fmt: skip
"""Name -> how many special tokens, and some of their ids, as the models' packages have them."""


@pytest.mark.parametrize("name", KNOWN)
def test_special_tokens_are_those_of_the_models_packages(name):
    _, special = ENCODINGS[name]()
    count, some = KNOWN[name]
    assert len(special) == count
    assert sorted(special.values()) == list(range(min(special.values()), min(special.values()) + count))
    assert some.items() <= special.items()


def test_every_known_content_has_names_that_are_there():
    assert {name for names in BY_SHA256.values() for name in names} == set(ENCODINGS)


def test_a_known_content_needs_nothing_else(monkeypatch):
    with pytest.raises(UnsupportedVocab, match="unknown rank file"):
        jittok.load(LINES, cache=False)
    monkeypatch.setitem(BY_SHA256, hashlib.sha256(LINES).hexdigest(), ("whisper", "whisper-v3"))
    tok = jittok.load(LINES, cache=False)
    assert tok.runs == "kernels"
    assert tok.encode("<|30.00|> it's", parse_special=True).tolist() == [51864, *b" it's"]
    assert tok.decode([256, 97]) == "a"
    assert jittok.load(LINES, cache=False, encoding="whisper-v3").token_to_id("<|yue|>") == 50358
    with pytest.raises(UnsupportedVocab, match="whisper, whisper-v3"):
        jittok.load(LINES, cache=False, encoding="qwen")
