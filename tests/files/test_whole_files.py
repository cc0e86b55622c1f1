"""Files that kernels run as they are: RWKV's list, BPE without tokens for bytes that no text has, tokens after NFC."""

import json
import random

import pytest
from drawn_files import ALPHABET, drawn_text

import jittok
from jittok.common.pipeline.known_patterns import GPT2
from jittok.files import read_pipeline
from jittok.kernels.jit import JIT
from jittok.kernels.models.bpe.files import IN_NO_TEXT
from jittok.reference.pipeline import Runner

COUNT = 150 if JIT else 20


def agree(content: bytes, texts: list[str]) -> None:
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    assert tok.runs == "kernels"
    for parse in (False, True):
        rows = tok.encode_batch(texts, parse_special=parse, threads=1).to_list()
        for text, ids in zip(texts, rows, strict=True):
            assert ids == plain.encode(text, parse), text
        assert [tok.encode(text, parse_special=parse).tolist() for text in texts[::9]] == rows[::9]


def written(raw: bytes) -> str:
    """A token as the list has it: a text where it is one."""
    try:
        return repr(raw.decode())
    except UnicodeDecodeError:
        return repr(raw)


def test_a_list_of_longest_tokens():
    draw = random.Random(1)
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += list({drawn_text(draw).encode()[: draw.randrange(2, 9)] for _ in range(60)} - {b""} - set(tokens))
    rows = [f"{token} {written(raw)} {len(raw)}" for token, raw in enumerate(tokens, 1)]
    agree("\n".join(rows).encode() + b"\n", [drawn_text(draw) for _ in range(COUNT)])


@pytest.mark.parametrize("form", [None, "NFC"])
def test_bytes_that_no_text_has_need_no_token_and_ascii_tokens_may_stand_behind_nfc(form):
    draw = random.Random(2)
    vocab = {c: k for k, c in enumerate(c for byte, c in enumerate(ALPHABET) if byte not in IN_NO_TEXT)}
    merges = [["a", "b"], ["Ġ", "ab"], ["Ã", "©"], ["t", "h"], ["th", "e"], ["ab", "a"], ["a", "ba"]]
    for left, right in merges:
        vocab.setdefault(left + right, len(vocab))
    vocab.setdefault("ba", len(vocab))
    flags = {"special": False, "normalized": True, "single_word": False, "lstrip": False, "rstrip": False}
    added = [{"id": 300 + k, "content": text, **flags} for k, text in enumerate(["|||IP|||", "  ", "a.", "<x>|"])]
    content = json.dumps({
        "added_tokens": added,
        "normalizer": form and {"type": form},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": GPT2}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
        ]},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    }).encode()  # fmt: skip
    parts = ["|||IP|||", "|||IP||", "\u0301", "a.", "<x>|", "\u0338", "\u037e", "the", " ab"]
    texts = ["".join(draw.choice([*parts, drawn_text(draw)]) for _ in range(5)) for _ in range(COUNT)]
    agree(content, texts)


@pytest.mark.parametrize("text", ["<", "K", "a;", "`"])
def test_a_token_that_nfc_could_make_or_change_is_looked_for_behind_it(text):
    flags = {"special": False, "normalized": True, "single_word": False, "lstrip": False, "rstrip": False}
    content = json.dumps({
        "added_tokens": [{"id": 300, "content": text, **flags}],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
        "model": {"type": "BPE", "vocab": {c: k for k, c in enumerate(ALPHABET)}, "merges": []},
    }).encode()  # fmt: skip
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    for each in ("<\u0338 x", "\u212a", "a\u037e", "\u1fef.", "<K`;"):
        assert tok.encode(each).tolist() == plain.encode(each)
