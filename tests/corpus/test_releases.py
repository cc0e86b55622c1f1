"""A corpus continues with the release of llama.cpp that it was begun with, and says which that is."""

import json

import pytest

import jittok
from jittok.corpus import compile_corpus, verify
from jittok.corpus import open as open_corpus
from jittok.corpus.options import Options
from jittok.corpus.shards.manifest import write_manifest
from jittok.errors import CorpusError

TEXT = b"plain text\nand \xc0\xa0 what is no UTF-8\nmore\n"
OPTIONS = Options(formats=("npy",), lines=True, on_error="replace")


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.txt"
    path.write_bytes(TEXT)
    return path


def manifest(out):
    return json.loads((out / "manifest.json").read_text())


def test_a_corpus_says_its_release_and_pre(tmp_path, source):
    compile_corpus([source], jittok.bundled("gpt-2", pre="qwen2"), tmp_path / "out", OPTIONS)
    vocab = manifest(tmp_path / "out")["vocab"]
    assert (vocab["llama_cpp"], vocab["pre"], vocab["asked_pre"]) == ("b11739", "qwen2", "qwen2")


def test_a_corpus_of_an_older_release_goes_on_with_it(tmp_path, source):
    out, newest = tmp_path / "out", jittok.bundled("gpt-2")
    old = jittok.bundled("gpt-2", llama_cpp="0.3.36")
    compile_corpus([source], old, out, OPTIONS)
    again = compile_corpus([source], newest, out, OPTIONS)  # no one asked for a release
    assert again.resumed == again.documents == 3
    assert manifest(out)["vocab"]["llama_cpp"] == "0.3.36"
    assert verify(out, newest, all=True).ok
    assert open_corpus(out, newest).tok.llama_cpp == "0.3.36"


def test_a_release_that_is_asked_for_must_be_the_one_that_it_was_begun_with(tmp_path, source):
    out = tmp_path / "out"
    compile_corpus([source], jittok.bundled("gpt-2", llama_cpp="0.3.36"), out, OPTIONS)
    with pytest.raises(CorpusError, match=r"as llama.cpp b11739 reads it \(begun with .* as llama.cpp 0.3.36 reads it"):
        compile_corpus([source], jittok.bundled("gpt-2", llama_cpp="b11739"), out, OPTIONS)


def test_a_corpus_without_a_release_is_of_the_first(tmp_path, source):
    out = tmp_path / "out"
    compile_corpus([source], jittok.bundled("gpt-2", llama_cpp="0.3.36"), out, OPTIONS)
    told = manifest(out)
    del told["vocab"]["llama_cpp"]
    write_manifest(out, told)
    assert open_corpus(out, jittok.bundled("gpt-2")).tok.llama_cpp == "0.3.36"


def test_a_vocabulary_in_memory_cannot_be_read_again(tmp_path, source):
    from jittok.vocab.bundled import bundled_source

    out, header = tmp_path / "out", bundled_source("gpt-2")
    compile_corpus([source], jittok.load(header, llama_cpp="0.3.36"), out, OPTIONS)
    with pytest.raises(CorpusError, match=r"loaded for that release: llama_cpp='0.3.36'"):
        compile_corpus([source], jittok.load(header), out, OPTIONS)
