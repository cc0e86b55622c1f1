"""Short first texts do not wait for the compiler, and have the ids that the kernel gives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import jittok
from jittok.encode import meanwhile
from jittok.errors import EncodingFailed
from jittok.reference import tokenize as plain

TEXTS = ["", "a first text of 123 words", "Über \U0001f600\n\n\t<s> [CLS] </s>", b"\xff\xc3(", "x" * 300]
OPTIONS = [{}, {"add_special": True}, {"parse_special": True}, {"add_special": True, "parse_special": True}]


@pytest.fixture
def asked(monkeypatch):
    """The texts that the reference is asked for; no kernel of a model seems to be at hand."""
    asked = []

    def noted(vocab, text, **options):
        asked.append(text)
        return plain_tokenize(vocab, text, **options)

    class Missing:
        at_hand = staticmethod(lambda: False)

    plain_tokenize = plain.tokenize
    monkeypatch.setattr(plain, "tokenize", noted)
    monkeypatch.setattr(meanwhile, "_first_kernel", lambda _encoder: Missing)
    monkeypatch.setattr(meanwhile, "COMPILE_FIRST", False)
    monkeypatch.setattr(meanwhile, "CHECKED", False)
    monkeypatch.setattr(meanwhile, "_spent", 0)
    return asked


@pytest.mark.parametrize("name", ["gpt-2", "bert", "t5", "mistral"])
def test_the_reference_gives_what_the_kernel_gives(asked, name):
    tok, kernels = jittok.bundled(name), jittok.bundled(name)
    kernels._may_wait = False
    for text in TEXTS:
        for options in OPTIONS:
            ids = tok.encode(text, **options)
            assert type(ids) is type(kernels.encode(text, **options))
            assert ids.dtype == "int32"
            assert ids.tolist() == kernels.encode(text, **options).tolist()
    assert len(asked) == len(TEXTS) * len(OPTIONS)


def test_what_a_text_is_wrong_in_is_said_by_the_kernel(asked, made_up):
    tok = jittok.Tokenizer(made_up("syn-spm-nobytes").vocab, cache=False)
    with pytest.raises(EncodingFailed) as kernel_says:
        tok.encode_batch(["\U0001f600"])
    with pytest.raises(EncodingFailed) as said:
        tok.encode("\U0001f600")
    assert asked == ["\U0001f600".encode()]
    assert str(said.value) == str(kernel_says.value)


def test_longer_texts_and_many_go_to_the_kernel(asked, monkeypatch):
    tok = jittok.bundled("bert")
    tok.encode("x" * (meanwhile.LONGEST + 1))
    tok.encode("now it is there")
    assert asked == []
    monkeypatch.setattr(meanwhile, "WORTH_COMPILING", 3 * (4 + meanwhile.EACH))
    tok = jittok.bundled("bert")
    for _ in range(5):
        tok.encode("four")
    assert len(asked) == 3
    for setting in ("COMPILE_FIRST", "CHECKED"):
        monkeypatch.setattr(meanwhile, "_spent", 0)
        with monkeypatch.context() as patch:
            patch.setattr(meanwhile, setting, True)
            jittok.bundled("bert").encode("four")
    monkeypatch.setattr(meanwhile, "has_compiler", lambda: False)
    jittok.bundled("bert").encode("four")
    assert len(asked) == 3


@pytest.mark.process
def test_a_first_text_of_an_empty_cache_does_not_wait_for_its_kernel(tmp_path):
    code = """
import jittok
from jittok.models.test_model import encode_fragments
from jittok.vocab import read_vocab
from write_gguf import T, write_gguf
tok = jittok.load(write_gguf({T + "model": "test", T + "tokens": [str(k) for k in range(50)]}))
ids = tok.encode("a text").tolist()
print(encode_fragments.entry is None, tok.encode_batch(["a text"]).to_list() == [ids], encode_fragments.origin)
"""
    env = os.environ | {"JITTOK_CACHE_DIR": str(tmp_path), "JITTOK_SHIPPED": "0", "JITTOK_COMPILE_FIRST": "0"}
    env["PYTHONPATH"] = os.pathsep.join([env.get("PYTHONPATH", ""), str(Path(__file__).parents[1] / "data")])
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "True True compiled\n"
