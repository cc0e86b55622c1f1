"""The splitter's scratch for a long rewritten text is where its ids go: same ids, with ids before it too."""

import json

import numpy as np
import pytest
from made_up import made_up_tokenizer

import jittok
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.kernels.jit import JIT
from jittok.kernels.models.bpe import general
from jittok.kernels.pretokenize.splitters.general import LEAST_BYTES

PIECES = [b"a", b"bc", b" ", b"  ", b"'s", b"12345", b"\n\n", "é".encode(), "这".encode(), b"\xff", b"\xff\xff"]


@pytest.mark.parametrize("name", ["syn-bpe-holes", "syn-bpe-lstrip", "syn-whitespace", "syn-sarvam"])
def test_a_long_text_with_malformed_bytes_has_the_ids_of_what_it_is_read_as(name, monkeypatch):
    monkeypatch.setattr(general, "LEAST_BYTES", LEAST_BYTES if JIT else 64)
    size = LEAST_BYTES // 2 if JIT else 150
    tok = made_up_tokenizer(name)
    random = np.random.default_rng(8)
    mixed = b"".join(PIECES[k] for k in random.integers(0, len(PIECES), size))
    for text in (mixed, b"\xff" * size, b"a" + b"\xff" * size + b" b"):
        read = text.decode("utf-8", "replace").encode()
        assert len(read) > general.LEAST_BYTES
        assert tok.encode(text).tolist() == tok.encode(read).tolist()
        rows = tok.encode_batch([b"a b", text, b"c"])
        assert rows[1].tolist() == tok.encode(read).tolist()
        assert rows[2].tolist() == tok.encode(b"c").tolist()
        assert tok.count(text) == len(rows[1])


def test_words_of_several_fragments_do_not_stand_where_a_splitter_works():
    letters = [chr(c) for c in CHARACTER_OF_BYTE]
    vocab = {text: k for k, text in enumerate([*letters, *(c + "</w>" for c in letters)])}
    model = {"type": "BPE", "vocab": vocab, "merges": [], "end_of_word_suffix": "</w>"}
    spelled = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    mark = {"id": 512, "content": "<longest>", "single_word": False, "lstrip": False, "rstrip": False}
    made = {"model": model, "pre_tokenizer": spelled, "added_tokens": [mark | {"normalized": False, "special": True}]}
    tok = jittok.load(json.dumps(made).encode())
    one, two = "ab 12 'll", "这 xyz"
    between = [*tok.encode(one).tolist(), 512, *tok.encode(two).tolist(), 512]
    assert tok.encode(f"{one}<longest>{two}<longest>", parse_special=True).tolist() == between
    assert len(between) > len(one + two)
