"""Programs that take a tokenizer give the same with a facade as with the real one: data sets, collators, splitters."""

import itertools
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from pairs import LONG, TEXTS, file_of, pair_of

import jittok
from jittok.compat import as_tiktoken, as_tokenizers, as_transformers

SIZES = [5, 17, 64]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("real")


@pytest.fixture(scope="module", params=["bert", "gpt-2"])
def both(request, folder):
    return pair_of(request.param, folder)


@pytest.fixture(scope="module")
def ranks(files):
    """(the facade of tiktoken, the real Encoding) of r50k_base."""
    tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is not installed")
    mine = as_tiktoken(jittok.load(files("r50k_base")))
    known = {"mergeable_ranks": mine._mergeable_ranks, "special_tokens": mine._special_tokens}
    return mine, tiktoken.Encoding("r50k_base", pat_str=mine._pat_str, **known)


# ---- datasets

MAP = """
import json, sys
from pathlib import Path
from datasets import Dataset
import jittok
from jittok.compat import as_transformers

file, data, cache = sys.argv[1:]
tok = as_transformers(jittok.load(file), pad_token="[PAD]")
asked = Path(cache, "asked")

def rows(batch):
    with asked.open("a") as said:
        said.write("once\\n")
    return dict(tok(batch["text"], truncation=True, max_length=12))

made = Dataset.from_json(data, cache_dir=cache).map(rows, batched=True, num_proc=2, batch_size=4)
print(json.dumps({"ids": made["input_ids"][:], "asked": asked.read_text().count("once"), "print": made._fingerprint}))
"""


@pytest.mark.process
def test_datasets_map_in_two_processes_and_a_second_run_finds_its_cache(folder, tmp_path):
    pytest.importorskip("datasets", reason="datasets is not installed")
    mine, theirs = pair_of("bert", folder)
    data, script = tmp_path / "rows.jsonl", tmp_path / "script.py"
    data.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS), "utf-8")
    script.write_text(MAP, "utf-8")
    around = os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(sys.path)}

    def run():
        command = [sys.executable, str(script), str(file_of("bert", folder)), str(data), str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, env=around, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    first, second = run(), run()
    want = theirs(TEXTS, truncation=True, max_length=12)["input_ids"]
    assert first["ids"] == second["ids"] == want == mine(TEXTS, truncation=True, max_length=12)["input_ids"]
    assert first["asked"] == second["asked"] > 1
    assert first["print"] == second["print"]


# ---- collators of transformers, with NumPy


def as_lists(batch):
    return {name: np.asarray(values).tolist() for name, values in batch.items()}


@pytest.mark.parametrize("multiple", [None, 8])
def test_data_collator_with_padding(both, multiple):
    from transformers import DataCollatorWithPadding

    made = [
        as_lists(DataCollatorWithPadding(tok, return_tensors="np", pad_to_multiple_of=multiple)(list(map(tok, TEXTS))))
        for tok in both
    ]
    assert made[0] == made[1]
    assert len({*map(len, made[0]["input_ids"])}) == 1


def test_data_collator_for_token_classification(both):
    from transformers import DataCollatorForTokenClassification

    def features(tok):
        return [dict(row) | {"labels": row["input_ids"]} for row in map(tok, TEXTS)]

    made = [as_lists(DataCollatorForTokenClassification(tok, return_tensors="np")(features(tok))) for tok in both]
    assert made[0] == made[1]


@pytest.mark.parametrize("masked", [False, True])
def test_data_collator_for_language_modeling(folder, masked):
    library = pytest.importorskip("transformers", reason="transformers is not installed")
    made = []
    for tok in pair_of("bert" if masked else "gpt-2", folder):
        options = {"mlm": masked, "return_tensors": "np"} | ({"seed": 7} if masked else {})
        collate = library.DataCollatorForLanguageModeling(tok, **options)
        made.append(as_lists(collate([tok(text, return_special_tokens_mask=True) for text in TEXTS])))
    assert made[0] == made[1]
    assert masked == any(103 in row for row in made[0]["input_ids"])


# ---- splitters of texts by a count


def test_langchain_splitters_by_count_are_those_of_the_real_tokenizer(both):
    splitters = pytest.importorskip("langchain_text_splitters", reason="langchain-text-splitters is not installed")
    mine, theirs = both
    own = mine.backend_tokenizer._tok
    for size in SIZES:
        options = {"chunk_size": size, "chunk_overlap": size // 4}
        kind = splitters.RecursiveCharacterTextSplitter
        want = kind.from_huggingface_tokenizer(theirs, **options).split_text(LONG)
        assert kind.from_huggingface_tokenizer(mine, **options).split_text(LONG) == want
        assert kind(length_function=own.count, **options).split_text(LONG) == want
        assert max(map(own.count, want)) <= size or size == SIZES[0]


def test_langchain_token_splitter_over_encode_and_decode(ranks, monkeypatch):
    splitters = pytest.importorskip("langchain_text_splitters", reason="langchain-text-splitters is not installed")
    import tiktoken

    def split(encoding, size):
        monkeypatch.setattr(tiktoken, "get_encoding", lambda _: encoding)
        return splitters.TokenTextSplitter(encoding_name="r50k_base", chunk_size=size, chunk_overlap=2).split_text(LONG)

    from langchain_text_splitters.base import Tokenizer, split_text_on_tokens

    own = ranks[0]._tok
    for size in SIZES:
        want = split(ranks[1], size)
        assert split(ranks[0], size) == want
        plain = Tokenizer(2, size, lambda ids: own.decode(ids, clean=False), lambda text: own.encode(text).tolist())
        assert split_text_on_tokens(text=LONG, tokenizer=plain) == want


def test_semchunk_by_count_and_by_each_facade(both, ranks):
    semchunk = pytest.importorskip("semchunk", reason="semchunk is not installed")
    mine, theirs = both
    own = mine.backend_tokenizer._tok
    for size in SIZES:
        want = semchunk.chunkerify(theirs, size)(LONG)
        assert want == semchunk.chunkerify(mine, size)(LONG) == semchunk.chunkerify(own.count, size)(LONG)
        assert want == semchunk.chunkerify(own, size)(LONG)
        assert semchunk.chunkerify(ranks[0], size)(LONG) == semchunk.chunkerify(ranks[1], size)(LONG)


def test_chonkie_takes_each_facade(both, ranks):
    chonkie = pytest.importorskip("chonkie", reason="chonkie is not installed")
    mine, theirs = both
    real = theirs.backend_tokenizer
    found = [mine, theirs], [as_tokenizers(mine.backend_tokenizer._tok), real], [*ranks]
    for kind, size, pair in itertools.product((chonkie.TokenChunker, chonkie.RecursiveChunker), SIZES[1:], found):
        made = [[(c.text, c.token_count) for c in kind(tokenizer=tok, chunk_size=size)(LONG)] for tok in pair]
        assert made[0] == made[1], (kind, pair)


def test_llama_index_takes_a_callable(ranks):
    pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    from llama_index.core.node_parser import TokenTextSplitter
    from llama_index.core.utilities.token_counting import TokenCounter

    mine, theirs = ranks
    for call in (mine.encode, lambda text: mine._tok.encode(text).tolist(), mine._tok.encode):
        made = [
            TokenTextSplitter(tokenizer=each, chunk_size=60, chunk_overlap=5).split_text(LONG)
            for each in (call, theirs.encode)
        ]
        assert made[0] == made[1]
        assert TokenCounter(call).get_string_tokens(LONG) == len(theirs.encode(LONG))


@pytest.mark.filterwarnings("ignore")  # its imports warn
def test_litellm_counts_messages(both, monkeypatch):
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = pytest.importorskip("litellm", reason="litellm is not installed")
    mine, theirs = both
    messages = [{"role": "user", "content": text} for text in TEXTS]
    facade = as_tokenizers(mine.backend_tokenizer._tok)
    counts = [
        litellm.token_counter(messages=messages, custom_tokenizer={"type": "huggingface_tokenizer", "tokenizer": tok})
        for tok in (facade, theirs.backend_tokenizer)
    ]
    assert counts[0] == counts[1] > sum(len(facade.encode(text).ids) for text in TEXTS)


def test_what_is_inside_is_found_by_type_names():
    """Programs look for "tokenizers" or "transformers" in the name of a class."""
    tok = jittok.bundled("gpt-2")
    assert "tiktoken" in str(type(as_tiktoken(tok)))
    assert "tokenizers" in str(type(as_tokenizers(tok)))
    pytest.importorskip("transformers", reason="transformers is not installed")
    assert "transformers" in str(type(as_transformers(tok)))
