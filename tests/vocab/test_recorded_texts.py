"""Tokens that llama.cpp treats by their text: the vocabulary = its plain reference = what was recorded.

1,394 tiny vocabularies (tests/data/make_texts.py), all of them in each model: every such text as each of the eight
kinds of token; texts that only resemble one; every pair of rivals in both orders; keys beside them.
"""

import functools
import hashlib
import itertools
import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from make_texts import SETS
from write_gguf import T, vocab_file, write_gguf

import jittok
from jittok.common.pipeline.pipeline import packed
from jittok.reference import attributes as reference
from jittok.vocab import attributes, read_vocab
from jittok.vocab import attributes as product
from jittok.vocab.releases import TEXTS_SINCE

DATA = Path(__file__).parents[1] / "data"
RUNS = "0.3.36"
"""The version that jittok follows."""
NOT_ASKED = {"eom_id", "unk_id"}
"""Ids that llama.cpp's interface does not tell."""


@functools.cache
def recorded():
    rows = [json.loads(line) for line in lzma.decompress((DATA / "texts.jsonl.xz").read_bytes()).splitlines()]
    assert len(rows) == 1394
    assert all(row["answers"].keys() == SETS.keys() for row in rows)
    return rows


def file_of(row):
    values = {"general.architecture": "llama", T + "model": row["model"], T + "tokens": row["tokens"]}
    values |= {T + "pre": row.get("pre"), T + "token_type": row.get("types"), T + "merges": row.get("merges")}
    if "scores" in row:
        values[T + "scores"] = [-float(k) for k in range(len(row["tokens"]))]
    return write_gguf(values | {key if "." in key else T + key: value for key, value in row.get("keys", {}).items()})


def by_reference(row):
    keys = row.get("keys", {})
    return reference.loaded(
        [token.encode() for token in row["tokens"]],
        row.get("types"),
        model=row["model"],
        keys=keys,
        pre=row.get("pre", ""),
        name=keys.get("general.name", ""),
        architecture=keys.get("general.architecture", "llama"),
    )


def attributes_are(facts, found):
    """Runs of equal attributes, or only their checksum."""
    if "attributes" in facts:
        return [[value, len(list(run))] for value, run in itertools.groupby(found)] == facts["attributes"]
    return hashlib.sha256(np.array(found, "<i4").tobytes()).hexdigest() == facts["attributes_sha256"]


def differences(facts, ids, found, end):
    """What differs from the recorded facts."""
    asked = [name for name in ids if name not in NOT_ASKED and name != "nl_id"]
    wrong = [name for name in asked if ids[name] != facts.get(name, -1)]
    return wrong + ["eog_ids"] * (sorted(end) != facts["eog_ids"]) + ["attributes"] * (not attributes_are(facts, found))


def test_the_vocabulary_is_what_llama_cpp_made_of_each_text():
    wrong, known = {}, 0
    for row in recorded():
        facts = row["answers"][RUNS]
        if facts is None:
            with pytest.raises(jittok.JittokError):
                read_vocab(file_of(row), llama_cpp=RUNS)
            continue
        known += 1
        vocab = read_vocab(file_of(row), llama_cpp=RUNS)
        ids = {name: getattr(vocab, name) for name in by_reference(row).ids}
        flags = [name for name in ("add_bos", "add_eos", "add_sep") if getattr(vocab, name) != facts[name]]
        found = flags + differences(facts, ids, vocab.attributes.tolist(), vocab.eog_ids)
        if found:
            wrong[row["vocab"], row["about"]] = found
    assert not wrong
    assert known == 1374


def test_the_reference_is_what_llama_cpp_made_of_each_text():
    wrong, ruled, seen = {}, 0, set()
    for row in recorded():
        facts = row["answers"][RUNS]
        if facts is None:
            continue
        found = by_reference(row)
        different = differences(facts, found.ids, found.attributes, found.end_of_generation)
        if different:
            wrong[row["vocab"], row["about"]] = different
        kinds = row.get("types") or [1] * len(row["tokens"])
        ruled += [reference.BIT_OF_TYPE.get(kind, 0) for kind in kinds] != found.attributes
        seen |= {name for name in facts if name.endswith("_id")}
    assert not wrong
    assert ruled > 1000  # most vocabularies have a token that is rewritten
    assert seen >= {name for name in found.ids if name not in NOT_ASKED}  # and each id is somewhere found


def test_phi_3_without_its_texts_is_refused_by_the_reference_as_well():
    (row,) = [row for row in recorded() if row["about"] == "strip phi-3 without s"]
    assert row["answers"] == dict.fromkeys(SETS)
    with pytest.raises(KeyError):
        by_reference(row)


def test_the_newline_is_the_recorded_one():
    found = 0
    for row in recorded():
        facts = row["answers"][RUNS]
        if facts is not None and row["about"].startswith("newline"):
            tok = jittok.load(file_of(row), cache=False, llama_cpp=RUNS)
            assert tok.nl_id == facts.get("nl_id"), row["about"]
            found += 1
    assert found > 50


def test_each_list_of_texts_is_that_of_the_reference():
    lines = [line.split() for line in reference.TEXTS_OF_IDS.strip().split("\n")]
    theirs = {field: {text for row in lines if row[0] == field for text in row[1:]} for field in product.ID_TEXTS}
    later = set(TEXTS_SINCE)  # what later releases know besides: see test_releases
    assert {field: set(texts) - later for field, texts in product.ID_TEXTS.items()} == theirs
    assert set(product.EOG_TEXTS) - later == set(reference.END_OF_GENERATION.split())
    assert set(product.USER_TEXTS) == set(reference.USER_DEFINED_ALONE.split())


ALL = sorted(
    {*reference.TEXTS_OF_IDS.split(), *reference.END_OF_GENERATION.split(), *reference.USER_DEFINED_ALONE.split()}
    | {"<unk>", "<s>", "<mask>", "[MASK]", "<|plamo:eos|>", "<unused0>", "a", "\u2581a", "<0x41>", "\n"}
)
NAMES = [f"{pair.partition(':')[0]}_token_id" for pair in reference.KEYS.split()]
abouts = st.fixed_dictionaries(
    {},
    optional={
        "pre": st.sampled_from(["jina-v2-de", "jina-v2-es", "jina-v2-code", "jina-v1-en", "llama-bpe", "gpt-2"]),
        "general__name": st.sampled_from(["Phi-3 x", "phi3", "modern-bert", "Modern-BERT", "other"]),
        "general__architecture": st.sampled_from(["nomic-bert-moe", "jina-bert-v3", "bert"]),
    },
)


@given(
    st.lists(st.sampled_from(ALL), min_size=1, max_size=60, unique=True),
    st.lists(st.sampled_from([0, 1, 1, 2, 3, 4, 5, 7]), min_size=60, max_size=60),
    st.dictionaries(st.sampled_from(NAMES), st.integers(0, 70), max_size=4),
    abouts,
    st.sampled_from(["gpt2", "llama", "t5", "plamo2"]),
)
@example(["</s>", "<unk>", "<s>", "<|endoftext|>", "<|end|>"], [3] * 60, {}, {"general__name": "Phi-3"}, "gpt2")
def test_drawn_mixtures_are_treated_as_by_the_reference(tokens, types, ids, about, model):
    types = types[: len(tokens)]
    file = vocab_file(model, tokens, token_type=types, **({"pre": "gpt-2"} if model == "gpt2" else {}) | about | ids)
    pre, name, architecture = (about.get(key, "") for key in ("pre", "general__name", "general__architecture"))
    if model == "gpt2":
        pre = pre or "gpt-2"

    def by_plain_steps():
        return reference.loaded(
            [token.encode() for token in tokens], types, model=model, keys=ids, pre=pre, name=name,
            architecture=architecture,
        )  # fmt: skip

    try:
        expected = by_plain_steps()
    except KeyError:
        with pytest.raises(jittok.errors.MalformedVocab, match="says phi-3"):
            read_vocab(file, llama_cpp=RUNS)
        return
    found = read_vocab(file, llama_cpp=RUNS)
    assert {name: getattr(found, name) for name in expected.ids} == expected.ids
    assert found.attributes.tolist() == expected.attributes
    assert found.eog_ids == expected.end_of_generation


@given(st.lists(st.binary(min_size=1, max_size=20), unique=True, max_size=150))
def test_a_map_is_walked_as_by_the_reference(texts):
    walked = [texts.index(text) for text in reference.map_order(texts)]
    assert attributes.unordered_map_order(*packed(texts)).tolist() == walked
