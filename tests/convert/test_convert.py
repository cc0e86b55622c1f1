"""What is written says the same, by jittok and by the library that reads it; what cannot is refused with an example."""

import json
from pathlib import Path

import pytest
from conversions import made, recorded_path
from small_files import sentencepiece_of

import jittok
from jittok.cli import main
from jittok.convert.texts import TEXTS
from jittok.errors import UnsupportedVocab

FEW = [text for text in TEXTS if "\x00" not in text]


def ids(tok, texts=FEW, **options):
    return tok.encode_batch(texts, **options).to_list()


def test_a_gguf_becomes_a_tokenizer_json_that_tokenizers_reads(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    found = jittok.convert(jittok.bundled("gpt-2"), tmp_path / "t.json")
    assert (found.kind, found.differing) == ("tokenizer.json", 0)
    assert found.texts > 49_000
    other = tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
    other.encode_special_tokens = True
    own = ids(jittok.bundled("gpt-2"))
    assert [row.ids for row in other.encode_batch(FEW, add_special_tokens=False)] == own


def test_a_gguf_becomes_ranks_that_tiktoken_reads(tmp_path):
    tiktoken = pytest.importorskip("tiktoken")
    load = pytest.importorskip("tiktoken.load")
    found = jittok.convert(jittok.bundled("gpt-2"), tmp_path / "t.tiktoken", texts=["one more", "and another"])
    assert found.differing == 0
    tok = eval(found.call.replace("'t.tiktoken'", repr(str(tmp_path / "t.tiktoken"))), {"jittok": jittok})
    own = ids(jittok.bundled("gpt-2"))
    assert ids(tok) == own
    pattern = tok.vocab.split[0].pattern.text
    other = tiktoken.Encoding(
        "x", pat_str=pattern, mergeable_ranks=load.load_tiktoken_bpe(str(tmp_path / "t.tiktoken")), special_tokens={}
    )
    assert [other.encode_ordinary(text) for text in FEW] == own


@pytest.mark.parametrize("source", ["bytes", "mistral-v1", "rwkv-world"])
def test_a_file_becomes_a_gguf_that_llama_cpp_reads(source, tmp_path):
    llama_cpp = pytest.importorskip("llama_cpp")
    tok = made() if source == "bytes" else jittok.load(recorded_path(source), cache=False)
    out = tmp_path / "t.gguf"
    assert jittok.convert(tok, out).differing == 0
    model = llama_cpp.Llama(str(out), vocab_only=True, verbose=False)
    texts = [text for text in FEW if "<s>" not in text]
    assert [model.tokenize(text.encode(), add_bos=False, special=False) for text in texts] == ids(tok, texts)


def test_runs_of_what_a_token_repeats_are_tried(tmp_path):
    """Two paths through "qqq" are equally good but for rounding, which llama.cpp does otherwise than sentencepiece."""
    pieces = [("<unk>", 2, 0.0), ("<s>", 3, 0.0), ("</s>", 3, 0.0), ("▁", 1, -6.86), ("q", 1, -8.1), ("qq", 1, -1.84)]
    tok = jittok.load(sentencepiece_of(1, pieces, False), cache=False)
    with pytest.raises(UnsupportedVocab, match=r"'qqq+' is \[3, 5, 4.*would be \[3, 4, 5"):
        jittok.convert(tok, tmp_path / "t.gguf")


def test_a_gguf_becomes_a_model_that_sentencepiece_reads(tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
    assert jittok.convert(jittok.bundled("mistral"), tmp_path / "t.model").differing == 0
    other = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "t.model"))
    assert [other.encode(text) for text in FEW] == ids(jittok.load(tmp_path / "t.model", cache=False))


def test_a_model_becomes_a_tokenizer_json(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    tok = jittok.load(recorded_path("mistral-v1"), cache=False)
    assert jittok.convert(tok, tmp_path / "t.json").differing == 0
    other = tokenizers.Tokenizer.from_file(str(tmp_path / "t.json"))
    other.encode_special_tokens = True
    assert [row.ids for row in other.encode_batch(FEW, add_special_tokens=False)] == ids(tok)


def test_a_difference_is_an_error_with_its_example_and_leaves_no_file(tmp_path):
    tok = made(normalizer="NFC")
    with pytest.raises(UnsupportedVocab, match=r"texts with different ids, expected the same ids: '.*' is \["):
        jittok.convert(tok, tmp_path / "t.gguf")
    assert list(tmp_path.iterdir()) == []
    found = jittok.convert(tok, tmp_path / "t.gguf", allow_differences=True)
    text, before, after = found.examples[0]
    assert (
        tok.encode(text).tolist()
        == before
        != after
        == jittok.load(tmp_path / "t.gguf", cache=False).encode(text).tolist()
    )


@pytest.mark.parametrize(
    ("name", "to"), [("syn-wordlevel", "gguf"), ("bert-chinese", "tiktoken"), ("spm-test-ja", "tiktoken")]
)
def test_what_a_format_cannot_hold_is_refused_by_its_name(name, to, tmp_path):
    with pytest.raises(UnsupportedVocab, match="convert"):
        jittok.convert(recorded_path(name), tmp_path / "x", to=to)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flag", ["lstrip", "rstrip", "single_word"])
@pytest.mark.parametrize("to", ["gguf", "tiktoken"])
def test_a_flag_of_an_added_token_that_the_target_cannot_hold_is_a_difference(flag, to, tmp_path):
    tok = made(**{flag: True})
    with pytest.raises(UnsupportedVocab, match=r"with different ids.*<\|end\|>"):
        jittok.convert(tok, tmp_path / "t", to=to)
    assert list(tmp_path.iterdir()) == []


def test_a_tokenizer_json_holds_the_flags_of_added_tokens(tmp_path):
    tok = made(lstrip=True, single_word=True)
    assert jittok.convert(tok, tmp_path / "t.json").differing == 0
    (row,) = json.loads((tmp_path / "t.json").read_text("utf-8"))["added_tokens"]
    assert (row["lstrip"], row["rstrip"], row["single_word"]) == (True, False, True)


def test_a_splitter_of_no_pre_tokenizer_is_refused(tmp_path):
    with pytest.raises(UnsupportedVocab, match="splitter equal to one of llama"):
        jittok.convert(made(pattern=r"[\p{L}\p{M}]+|[^\p{L}\p{M}]"), tmp_path / "t.gguf")


def test_the_command_writes_and_tells(tmp_path, capfdbinary, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("docs.jsonl").write_text('{"text": "a document"}\n')
    assert main(["convert", "mistral", "--to", "tokenizer.json", "--corpus", "docs.jsonl", "--json"]) == 0
    told = json.loads(capfdbinary.readouterr().out)
    assert (told["path"], told["differing"]) == ("mistral.json", 0)
    assert (
        jittok.load("mistral.json").encode("a document").tolist()
        == jittok.bundled("mistral").encode("a document").tolist()
    )
    assert main(["convert", "mistral", "--to", "tiktoken", "--out", "x.tiktoken"]) == 2
    assert b"BPE over bytes" in capfdbinary.readouterr().err
    assert not Path("x.tiktoken").exists()
