"""What training writes: each form loaded by the library that it is for, ids equal on real documents."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import jittok
from jittok.errors import CorpusError, UnsupportedVocab
from jittok.kernels.jit import JIT
from jittok.train.counting.splitters import cleans_spaces, lossless_names
from jittok.train.export import hf_pre_tokenizer, split_patterns

ROOT = Path(__file__).parents[2]
SPECIAL = ["<|endoftext|>", "<|im_start|>"]
PRES = ["qwen2", "gpt-2", "llama-bpe", "deepseek-v3", "gpt-4o"]

pytestmark = pytest.mark.skipif(not JIT, reason="encodes whole files")


@pytest.fixture(scope="module")
def documents() -> list[str]:
    files = [*sorted((ROOT / "jittok" / "reference").glob("*.py")), *sorted(ROOT.glob("*.md"))]
    texts = [path.read_text("utf-8").replace("<|", "< |") for path in files]  # no texts of special tokens
    return [*texts, "日本語のテキスト、déjà vu! Ünïcödé… 12345 naïve\u00a0x\u3000y", "", " \n\n  \t", "👩‍🚀🎉"]


@pytest.fixture(scope="module", params=PRES)
def trained(request: Any, documents: list[str]) -> Any:
    return jittok.train(documents, size=900, pre=request.param, special=SPECIAL, name="tiny", threads=1)


def test_gguf_says_what_was_trained(trained: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.gguf"
    trained.save(path)
    vocab = jittok.read_vocab(path)
    assert vocab.tokens == [text.encode() for text in trained.learned.texts]
    assert (vocab.pre, vocab.name, len(vocab)) == (trained.pre, "tiny", 900)
    assert (vocab.bos_id, vocab.eos_id, vocab.add_bos, vocab.add_eos) == (0, 0, False, False)
    assert vocab.special_tokens.tolist() == [0, 1]
    assert len(vocab.merges) == len(trained.merges)
    again = tmp_path / "again.gguf"
    trained.save(again)
    assert path.read_bytes() == again.read_bytes()


def test_training_says_how_many_tokens_encoding_gives(trained: Any, documents: list[str]) -> None:
    rows = trained.tokenizer.encode_batch(documents)
    *_, last = trained.trace()
    size = sum(len(text.encode()) for text in documents)
    assert last["bytes_per_token"] == pytest.approx(size / rows.ids.size, abs=1e-4)


def test_tokenizers_gives_the_same_ids(trained: Any, documents: list[str], tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    trained.save(tmp_path / "t.json")
    tok = tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
    texts = [*documents, "a<|endoftext|>b"]
    own = trained.tokenizer.encode_batch(texts, parse_special=True).to_list()
    assert [row.ids for row in tok.encode_batch(texts)] == own


def test_tokenizers_reads_vocab_and_merges(trained: Any, documents: list[str], tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    trained.save(tmp_path / "vocab.json")
    model = tokenizers.models.BPE.from_file(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    tok = tokenizers.Tokenizer(model)
    tok.pre_tokenizer = _pre_tokenizer(tokenizers, trained.pre)
    own = trained.tokenizer.encode_batch(documents).to_list()
    assert [row.ids for row in tok.encode_batch(documents)] == own


def _pre_tokenizer(tokenizers: Any, pre: str) -> Any:
    bare = {
        "version": "1.0",
        "pre_tokenizer": hf_pre_tokenizer(pre),
        "model": {"type": "BPE", "vocab": {}, "merges": []},
    }
    return tokenizers.Tokenizer.from_str(json.dumps(bare)).pre_tokenizer


def test_tiktoken_gives_the_same_ids(trained: Any, documents: list[str], tmp_path: Path) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    if len(split_patterns(trained.pre)) > 1:
        pytest.skip("tiktoken has one pattern")
    trained.save(tmp_path / "t.tiktoken")
    ranks = {}
    for line in (tmp_path / "t.tiktoken").read_bytes().splitlines():
        text, rank = line.split()
        ranks[base64.b64decode(text)] = int(rank)
    (pattern,) = split_patterns(trained.pre)
    encoding = tiktoken.Encoding("t", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    own = trained.tokenizer.encode_batch(documents).to_list()
    assert [[rank + len(SPECIAL) for rank in encoding.encode_ordinary(text)] for text in documents] == own


def test_llama_cpp_gives_the_same_ids(trained: Any, documents: list[str], tmp_path: Path) -> None:
    llama_cpp = pytest.importorskip("llama_cpp")
    path = tmp_path / "t.gguf"
    trained.save(path)
    model = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)
    own = trained.tokenizer.encode_batch(documents).to_list()
    assert [model.tokenize(text.encode(), add_bos=False, special=False) if text else [] for text in documents] == own


def test_texts_come_back_under_the_default_and_others_are_warned_of(documents: list[str]) -> None:
    made = jittok.train(documents, size=400, special=SPECIAL)
    assert made.pre == "qwen2"
    assert made.warnings == []
    rows = made.tokenizer.encode_batch(documents)
    assert [made.tokenizer.decode(row.tolist()) for row in rows] == documents
    said = " ".join(jittok.train(documents[:2], size=300, pre="gpt-2").warnings)
    assert "takes spaces before punctuation away" in said
    assert "id 11" in said
    assert all(not cleans_spaces(name) for name in lossless_names("gpt-2"))


def test_forms_that_cannot_say_a_vocabulary_are_refused(documents: list[str], tmp_path: Path) -> None:
    own = jittok.train(documents[:3], size=300, pre_regex=r"\w+|\W")
    with pytest.raises(UnsupportedVocab, match=r"a `pre` that llama.cpp knows"):
        own.save(tmp_path / "x.gguf")
    own.save(tmp_path / "x.json")
    with pytest.raises(CorpusError, match="found no merges"):
        jittok.train(["abc"], size=256).save(tmp_path / "x.gguf")
    kimi = jittok.train(documents[:3], size=300, pre="kimi-k2")
    with pytest.raises(UnsupportedVocab, match="for this format a pre-tokenizer such as qwen2"):
        kimi.save(tmp_path / "k.json")
    with pytest.raises(CorpusError, match=r"found .*x.bin"):
        own.save(tmp_path / "x.bin")


def test_a_pattern_of_ones_own_gives_hugging_faces_ids(documents: list[str], tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    pattern = r" ?\p{L}+| ?\p{N}|[^\p{L}\p{N}]"
    made = jittok.train(documents, size=400, pre_regex=pattern, like="hf")
    made.save(tmp_path / "x.json")
    loaded = tokenizers.Tokenizer.from_file(str(tmp_path / "x.json"))
    bare = tokenizers.Tokenizer(tokenizers.models.BPE())
    bare.pre_tokenizer = loaded.pre_tokenizer
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, show_progress=False, initial_alphabet=alphabet)
    bare.train_from_iterator(documents, trainer)
    assert bare.get_vocab() == loaded.get_vocab()
