"""Each recorded release of llama.cpp: what it makes of tokens by their text, and what it does not know yet."""

import functools
import itertools
import json
import lzma
import pickle
from pathlib import Path

import pytest
from make_texts import SETS
from write_gguf import T, vocab_file, write_gguf

import jittok
from jittok.tokenizer.loading import of_release
from jittok.vocab import read_vocab
from jittok.vocab.attributes import EOG_TEXTS, ID_TEXTS
from jittok.vocab.keys import ID_KEYS, pre_names
from jittok.vocab.release_diff import release_differences
from jittok.vocab.releases import MODELS_SINCE, NEWEST, RELEASES, TEXTS_SINCE, has, release_named
from jittok.vocab.types import type_of_model

DATA = Path(__file__).parents[1] / "data"
IDS = sorted({field for _, field in ID_KEYS} - {"eom_id", "unk_id"})
"""Those that llama.cpp's interface tells."""
BYTES = ["<unk>", "<s>", "</s>", "<pad>", *(f"<0x{byte:02X}>" for byte in range(256)), "a", "b", "ab"]
KINDS = [2, 3, 3, 3, *[6] * 256, 1, 1, 1]


@functools.cache
def recorded():
    return [json.loads(line) for line in lzma.decompress((DATA / "texts.jsonl.xz").read_bytes()).splitlines()]


def file_of(row):
    values = {"general.architecture": "llama", T + "model": row["model"], T + "tokens": row["tokens"]}
    values |= {T + "pre": row.get("pre"), T + "token_type": row.get("types"), T + "merges": row.get("merges")}
    if "scores" in row:
        values[T + "scores"] = [-float(k) for k in range(len(row["tokens"]))]
    return write_gguf(values | {key if "." in key else T + key: value for key, value in row.get("keys", {}).items()})


def runs(attributes):
    return [[value, len(list(run))] for value, run in itertools.groupby(attributes.tolist())]


@pytest.mark.parametrize("release", SETS)
def test_every_text_is_treated_as_this_release_does(release):
    wrong, known = {}, 0
    for row in recorded():
        facts = row["answers"][release]
        if facts is None:
            with pytest.raises(jittok.JittokError):
                read_vocab(file_of(row), llama_cpp=release)
            continue
        vocab, known = read_vocab(file_of(row), llama_cpp=release), known + 1
        different = [name for name in IDS if getattr(vocab, name) != facts.get(name, -1)]
        different += ["eog_ids"] * (sorted(vocab.eog_ids) != facts["eog_ids"])
        different += ["attributes"] * ("attributes" in facts and runs(vocab.attributes) != facts["attributes"])
        if different:
            wrong[row["vocab"], row["about"]] = different
    assert not wrong
    assert known > 1300


def test_what_is_recorded_is_what_jittok_knows():
    assert [release.name for release in RELEASES] == [*SETS]
    assert sorted(SETS) == sorted({release.name for release in RELEASES})


def test_a_text_is_new_only_where_the_recorded_answers_differ():
    differ = {
        text for row in recorded() for text in row["tokens"] if len(set(map(json.dumps, row["answers"].values()))) > 1
    }
    assert differ >= set(TEXTS_SINCE)
    assert set(TEXTS_SINCE) <= {*EOG_TEXTS, *itertools.chain(*ID_TEXTS.values())}


def plamo(model, **settings):
    return vocab_file(model, BYTES, token_type=KINDS, scores=[0.0] * len(BYTES), **settings)


@pytest.mark.parametrize(("model", "since"), MODELS_SINCE.items())
def test_a_model_that_is_too_new_is_refused_by_its_release(model, since):
    file = plamo(model)
    assert read_vocab(file, llama_cpp=since).type == type_of_model(model).name
    for release in RELEASES:
        if not has(release, since):
            with pytest.raises(jittok.UnsupportedVocab, match=f"{release.name} knows; this one was added in {since}"):
                read_vocab(file, llama_cpp=release.name)


@pytest.mark.parametrize("pre", [name for name, entry in pre_names().items() if "since" in entry])
def test_a_pre_string_that_is_too_new_is_refused_by_its_release(pre):
    file = vocab_file("gpt2", ["a", "b"], merges=[], pre=pre)
    since = pre_names()[pre]["since"]
    assert read_vocab(file).pre == pre
    for release in RELEASES:
        if not has(release, since):
            with pytest.raises(jittok.UnsupportedVocab, match=f"{release.name} knows; this one was added in {since}"):
                read_vocab(file, llama_cpp=release.name)


def test_an_unknown_name_is_told_with_the_releases_and_what_to_do():
    with pytest.raises(jittok.UnsupportedVocab, match=r"llama.cpp b11739, 0.3.36 knows; .* pre='NAME'"):
        read_vocab(vocab_file("gpt2", ["a"], merges=[], pre="of-tomorrow"))
    with pytest.raises(jittok.UnsupportedVocab, match=r"llama.cpp b11739, 0.3.36 knows; .* pip install --upgrade"):
        read_vocab(vocab_file("plamo9", ["a"]))
    with pytest.raises(ValueError, match=r"found '0.3.37', expected one of b11739, 0.3.36"):
        jittok.load(vocab_file("llama", ["a"]), llama_cpp="0.3.37")


def test_another_pre_takes_the_place_of_the_files():
    unknown, known = (vocab_file("gpt2", ["a", "b"], merges=[], pre=pre) for pre in ("of-tomorrow", "llama-bpe"))
    tok = jittok.load(unknown, pre="llama-bpe")
    assert (tok.pre, tok.asked_pre) == ("llama-bpe", "llama-bpe")
    assert tok.fingerprint == jittok.load(known).fingerprint != jittok.load(known, pre="qwen2").fingerprint
    assert pickle.loads(pickle.dumps(tok)).asked_pre == "llama-bpe"


def test_fingerprints_differ_where_answers_do():
    files = {
        "bpe": (vocab_file("gpt2", ["a", "b"], merges=[], pre="gpt-2"), True),  # bytes that are invalid UTF-8
        "spm": (vocab_file("llama", ["a", "b"]), False),
        "rwkv": (vocab_file("rwkv", ["a", "b"]), False),
        "a new text": (vocab_file("llama", ["a", "<|eot|>"]), True),
    }
    for name, (file, differs) in files.items():
        marks = {jittok.load(file, llama_cpp=release.name, cache=False).fingerprint for release in RELEASES}
        assert (len(marks) > 1) == differs, name
        assert bool(release_differences(file)) == differs, name


def test_plamo_2_obeys_its_flags_since_b11739():
    file = plamo("plamo2", add_bos_token=True, add_eos_token=True)
    tokens = {release: jittok.load(file, llama_cpp=release).encode("ab", add_special=True).tolist() for release in SETS}
    assert tokens == {"0.3.36": [262], "b11739": [1, 262, 2]}
    assert any("obeys add_bos" in note for note in release_differences(file))
    assert not any("obeys add_bos" in note for note in release_differences(plamo("plamo2")))


def test_the_release_is_kept_by_pickles_and_asked_for_again():
    for tok in (jittok.load(plamo("plamo2"), llama_cpp="0.3.36"), jittok.bundled("bert", llama_cpp="0.3.36")):
        again = pickle.loads(pickle.dumps(tok))
        assert (again.llama_cpp, again.fingerprint) == ("0.3.36", tok.fingerprint)
        assert tok.encode("ab").tolist() == again.encode("ab").tolist()
    assert jittok.bundled("bert").llama_cpp == NEWEST == RELEASES[-1].name
    newer = of_release(jittok.bundled("bert", llama_cpp="0.3.36"), NEWEST)
    assert newer.fingerprint == jittok.bundled("bert").fingerprint


def test_two_releases_of_one_file_are_kept_apart(tmp_path):
    path = tmp_path / "v.gguf"
    path.write_bytes(vocab_file("gpt2", ["a", "b", "\u0122"], merges=[], pre="gpt-2"))
    for _ in range(2):  # the second time from the cache of compiled vocabularies
        old, new = (jittok.load(path, llama_cpp=release) for release in SETS)
        assert (old.llama_cpp, new.llama_cpp) == tuple(SETS)
        with pytest.raises(jittok.EncodingFailed):
            old.encode(b"a\xf4\x90\x80\x80b")
        assert new.encode(b"a\xf4\x90\x80\x80b").tolist() == [0, 1]
    assert release_named(None).name == NEWEST
