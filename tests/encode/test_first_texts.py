"""Short first texts do not wait for the compiler, and have the ids that the kernel gives."""

import contextlib
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jittok
from jittok.encode import limits
from jittok.encode.fallback import first_texts
from jittok.errors import EncodingFailed, InvalidToken, MalformedVocab
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import WouldCompile, frozen, kernel, without_compiling
from jittok.reference import decode as plain_text
from jittok.reference import tokenize as plain
from jittok.tokenizer import python_fallback as decoding
from jittok.vocab.bundled import bundled_path

TEXTS = ["", "a first text of 123 words", "Über \U0001f600\n\n\t<s> [CLS] </s>", b"\xff\xc3(", "x" * 300]
OPTIONS = [{}, {"add_special": True}, {"parse_special": True}, {"add_special": True, "parse_special": True}]


@pytest.fixture
def asked(monkeypatch):
    """The texts that the reference is asked for; no kernel of a model seems to be at hand."""
    asked = []

    def noted(vocab, text, **options):
        asked.append(text)
        return plain_tokenize(vocab, text, **options)

    plain_tokenize = plain.tokenize
    monkeypatch.setattr(plain, "tokenize", noted)
    monkeypatch.setattr(jittok.Tokenizer, "_lacks_kernels", True)
    monkeypatch.setattr(first_texts, "COMPILE_FIRST", False)
    monkeypatch.setattr(first_texts, "CHECKED", False)
    monkeypatch.setattr(first_texts, "_spent", 0)
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


@pytest.mark.parametrize("name", ["gpt-2", "bert", "t5", "mistral"])
def test_the_id_of_a_newline_needs_no_kernel(asked, name):
    tok, kernels = jittok.bundled(name), jittok.bundled(name)
    kernels._may_wait = False
    assert tok.nl_id == kernels.nl_id
    assert asked == ([b"\n"] if name in ("gpt-2", "t5") else [])  # the others have it in the file


@pytest.mark.parametrize("name", ["gpt-2", "t5"])
def test_a_small_batch_goes_that_way_too(asked, name):
    tok, kernels = jittok.bundled(name), jittok.bundled(name)
    kernels._may_wait = False
    places = (frozen(place, np.int64) for place in ([0, 3], [3, 8]))
    read = Documents(frozen(np.frombuffer(b"one, two", np.uint8), np.uint8), *places)
    for texts in ([], TEXTS, tuple(TEXTS), read):
        for options in OPTIONS:
            rows, found = kernels.encode_batch(texts, **options), tok.encode_batch(texts, **options)
            assert found.to_list() == rows.to_list()
            assert (found.ids.dtype, found.offsets.dtype) == (rows.ids.dtype, rows.offsets.dtype)
            assert found.to_padded(pad_id=0)[0].tolist() == rows.to_padded(pad_id=0)[0].tolist()
            assert tok.count_batch(texts, **options).tolist() == rows.lengths.tolist()
            assert [row.tolist() for some in tok.encode_stream(texts, **options) for row in some] == rows.to_list()
    assert len(asked) == 3 * len(OPTIONS) * (2 * len(TEXTS) + 2)


def test_other_batches_go_to_the_kernel(asked):
    for texts in (["four"] * 200, ["x" * 9000], np.array(["four"]), iter(["four"]), ["\udc80"], [4]):
        tok = jittok.bundled("bert")
        with contextlib.suppress(EncodingFailed, TypeError):
            tok.encode_batch(texts)
        assert not tok._may_wait
    assert asked == []


@pytest.fixture
def joined(monkeypatch, request):
    """How many rows the reference has joined; no kernel that joins pieces seems to be at hand."""
    request.getfixturevalue("asked")
    joined = []

    def noted(vocab, ids, **options):
        joined.append(ids)
        return plain_join(vocab, ids, **options)

    plain_join = plain_text.detokenize
    monkeypatch.setattr(plain_text, "detokenize", noted)
    monkeypatch.setattr(decoding, "_at_hand", lambda: False)
    return joined


@pytest.mark.parametrize("name", ["gpt-2", "bert", "t5", "mistral"])
def test_a_few_ids_are_joined_by_the_reference(joined, name):
    tok, kernels = jittok.bundled(name), jittok.bundled(name)
    kernels._text_may_wait = False
    rows = kernels.encode_batch(["It 's a first text , is it ?", "", " two <s> words"], add_special=True)
    choices = ("remove_special", "unparse_special", "skip_special")
    for chosen in ({}, *({name: True} for name in choices), {"errors": "strict", "skip_special": False}):
        assert tok.decode_batch(rows, **chosen) == kernels.decode_batch(rows, **chosen)
        assert [tok.decode(row, **chosen) for row in rows] == kernels.decode_batch(rows, **chosen)
    assert len(joined) == 5 * 2 * len(rows)
    for token in (0, 1, 2, 100, len(tok.vocab) - 1):
        for special in (False, True):
            piece = tok.token_to_piece(token, lstrip=1, special=special)
            assert piece == kernels.token_to_piece(token, lstrip=1, special=special)
    assert tok._text_may_wait
    with pytest.raises(InvalidToken) as said:
        tok.decode(np.array([1, -1], np.int32))
    with pytest.raises(InvalidToken) as kernel_says:
        kernels.decode(np.array([1, -1], np.int32))
    assert str(said.value) == str(kernel_says.value)


def test_many_ids_are_joined_by_the_kernel(joined):
    tok = jittok.bundled("bert")
    assert tok.decode([1000] * 1500)
    assert not tok._text_may_wait
    assert joined == []


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
    tok.encode("x" * (limits.FALLBACK_TEXT + 1))
    tok.encode("now it is there")
    assert asked == []
    monkeypatch.setattr(first_texts, "WORTH_COMPILING", 3 * (4 + first_texts.COST_PER_TEXT))
    tok = jittok.bundled("bert")
    for _ in range(5):
        tok.encode("four")
    assert len(asked) == 3
    for setting in ("COMPILE_FIRST", "CHECKED"):
        monkeypatch.setattr(first_texts, "_spent", 0)
        with monkeypatch.context() as patch:
            patch.setattr(first_texts, setting, True)
            jittok.bundled("bert").encode("four")
    with monkeypatch.context() as patch:
        patch.setattr(first_texts, "has_compiler", lambda: False)
        jittok.bundled("bert").encode("four")
    monkeypatch.setattr(jittok.Tokenizer, "_lacks_kernels", False)
    monkeypatch.setattr(first_texts, "_spent", 0)
    jittok.bundled("bert").encode("four")
    assert len(asked) == 3


FILES = {
    "BPE": (
        {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3}, "merges": [["a", "b"]]},
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}},
    ),
    "WordPiece": (
        {"type": "WordPiece", "unk_token": "u", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9,
         "vocab": {"u": 0, "ab": 1, "##b": 2}},
        {"pre_tokenizer": {"type": "BertPreTokenizer"},
         "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}},
    ),
    "Unigram": (
        {"type": "Unigram", "unk_id": 0, "vocab": [["<u>", 0.0], ["▁ab", -1.0], ["b", -2.0], ["▁", -3.0]]},
        {"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}},
    ),
}  # fmt: skip


@pytest.fixture(params=FILES)
def file(request, tmp_path):
    model, others = FILES[request.param]
    parts = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder", "pre_tokenizer"))
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"version": "1.0", **parts, **others, "added_tokens": [], "model": model}))
    return path


@pytest.mark.usefixtures("asked")
def test_a_file_of_another_library_goes_that_way_too(file):
    tok, kernels = jittok.load(file, cache=False), jittok.load(file, cache=False)
    kernels._may_wait = False
    texts = ["", "ab abb", "x" * 300, b"ab \xff", b"a\xc3\xa9"]
    for options in ({}, {"add_special": True}, {"parse_special": True}):
        how = {**options, "errors": "replace"}
        assert [tok.encode(text, **how).tolist() for text in texts] == kernels.encode_batch(texts, **how).to_list()
        assert tok.encode_batch(texts, **how).to_list() == kernels.encode_batch(texts, **how).to_list()
        assert tok.count_batch(texts, **how).tolist() == kernels.count_batch(texts, **how).tolist()
    assert tok._may_wait
    with pytest.raises(EncodingFailed) as said:
        tok.encode(b"ab \xff")
    with pytest.raises(EncodingFailed) as kernel_says:
        kernels.encode(b"ab \xff")
    assert str(said.value) == str(kernel_says.value)
    assert not tok._may_wait


NO_COMPILER = """
import sys, jittok
from jittok.kernels.jit import kernel
def refused(self):
    raise AssertionError(f"{self._name} is compiled")
kernel._compile = refused
tok = jittok.load(sys.argv[1]) if sys.argv[1:] else jittok.bundled("gpt-2")
ids = tok.encode("ab abb, ab")
assert tok.encode_batch(["ab abb, ab"]).to_list() == [ids.tolist()] and tok.count("ab abb, ab") == ids.size
stream, nl = tok.stream_decoder(), tok.nl_id
assert "".join([*map(stream.push, ids.tolist()), stream.finish()]) == tok.decode(ids)
print(ids.tolist(), "numba" in sys.modules)
del kernel._compile
"""


def first_ids(folder, *arguments):
    env = os.environ | {"JITTOK_CACHE_DIR": str(folder / "cache"), "JITTOK_SHIPPED": "0", "JITTOK_COMPILE_FIRST": "0"}
    done = subprocess.run(
        [sys.executable, "-c", NO_COMPILER, *map(str, arguments)], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.process
def test_first_ids_of_an_empty_cache_compile_nothing(tmp_path, file):
    assert first_ids(tmp_path, file) == f"{jittok.load(file, cache=False).encode('ab abb, ab').tolist()} False\n"


@pytest.mark.process
def test_what_was_read_is_kept_until_something_is_compiled(tmp_path, file):
    found = first_ids(tmp_path, file)
    (kept,) = (tmp_path / "cache" / "vocabularies").glob("*.vocab")  # tables of few tokens need no kernel
    written = kept.stat().st_mtime_ns
    assert first_ids(tmp_path, file) == found
    assert kept.stat().st_mtime_ns == written


@pytest.mark.process
@pytest.mark.parametrize("name", ["gpt-2", "bert", "t5", "mistral"])
def test_first_ids_of_a_gguf_compile_nothing(tmp_path, name):
    path = tmp_path / "vocab.gguf"
    path.write_bytes(lzma.decompress(Path(bundled_path(name)).read_bytes()))
    assert first_ids(tmp_path, path) == f"{jittok.bundled(name).encode('ab abb, ab').tolist()} False\n"


def test_a_kernel_that_is_not_at_hand_is_not_compiled_where_none_is_to_be():
    @kernel
    def of_a_test(number: int) -> int:
        return number + 1

    with without_compiling():
        if of_a_test.compiled:
            assert of_a_test.waits()
            with pytest.raises(WouldCompile):
                of_a_test(3)
    assert of_a_test(3) == 4
    with without_compiling():
        assert of_a_test(3) == 4


def test_a_damaged_charsmap_is_refused_before_anything_is_compiled():
    vocab = jittok.bundled("t5").vocab
    (size,) = np.frombuffer(vocab.charsmap[:4].tobytes(), np.uint32)
    damaged = vocab.charsmap.copy()
    damaged[:4] = np.frombuffer(np.uint32(size + (1 << 20)).tobytes(), np.uint8)
    with pytest.raises(MalformedVocab, match="charsmap"):
        first_texts.may_compile_later(vocab._replace(charsmap=damaged))
    first_texts.may_compile_later(vocab)


@pytest.mark.process
def test_a_first_text_of_an_empty_cache_does_not_wait_for_its_kernel(tmp_path):
    code = """
import jittok
from jittok.kernels.models.fake_model import encode_fragments
from jittok.vocab import read_vocab
from write_gguf import T, write_gguf
tok = jittok.load(write_gguf({T + "model": "test", T + "tokens": [str(k) for k in range(50)]}))
ids = tok.encode("a text").tolist()
few = [tok.encode_batch(["a text"]).to_list() == [ids], tok.decode(ids) == "".join(f"{i:x}" for i in ids)]
print(few, encode_fragments.entry is None)
print(tok.encode_batch(["a text"] * 200)[7].tolist() == ids, encode_fragments.origin)
"""
    env = os.environ | {"JITTOK_CACHE_DIR": str(tmp_path), "JITTOK_SHIPPED": "0", "JITTOK_COMPILE_FIRST": "0"}
    env["PYTHONPATH"] = os.pathsep.join([env.get("PYTHONPATH", ""), str(Path(__file__).parents[1] / "data")])
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "[True, True] True\nTrue compiled\n"


@pytest.mark.process
@pytest.mark.parametrize("command", ["encode", "count"])
def test_a_command_with_one_short_text_does_not_wait_but_to_warm_does(tmp_path, command):
    code = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv.pop())
from write_gguf import T, write_gguf
from jittok.cli import main
from jittok.kernels.jit import kernel
path = Path(os.environ["JITTOK_CACHE_DIR"], "vocab.gguf")
path.write_bytes(write_gguf({T + "model": "test", T + "tokens": [str(k) for k in range(50)]}))
main([sys.argv[1], "--vocab", str(path)])
print([each.__name__ for each in kernel.registry if each.origin])
main(["cache", "warm", "--vocab", str(path)])
print({"encode_fragments", "join_rows"} <= {each.__name__ for each in kernel.registry if each.origin == "compiled"})
"""
    env = os.environ | {"JITTOK_CACHE_DIR": str(tmp_path), "JITTOK_SHIPPED": "0", "JITTOK_COMPILE_FIRST": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, command, str(Path(__file__).parents[1] / "data")],
        env=env, input=b"a text", capture_output=True, check=True,
    )  # fmt: skip
    assert b"\n[]\n" in done.stdout
    assert done.stdout.endswith(b"\nTrue\n")
