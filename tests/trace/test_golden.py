"""Traces of the recorded texts: the ids are those of llama.cpp and the spans those of the reference."""

import base64
import functools
import importlib.util
import json
import lzma
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import jittok
from jittok.reference.tokenize import align

DATA = Path(__file__).parents[1] / "data"
BUNDLED = {"gpt-2": "gpt-2", "bert-bge": "bert", "t5": "t5", "mistral-v1": "mistral"}
NAMES = sorted(
    str(path.relative_to(DATA / "golden")).removesuffix(".jsonl.xz")
    for path in (DATA / "golden").rglob("*.jsonl.xz")
    if path.name != "pre.jsonl.xz"
)
"""Recorded sets; those of later releases of llama.cpp than the first lie in folders of their names."""
SHARED = Path(os.environ.get("JITTOK_SHARED") or Path(__file__).resolve().parents[3] / "shared")
LARGE = sorted(path.name.removesuffix(".jsonl.xz") for path in (SHARED / "golden").glob("*.jsonl.xz"))
RULES = {"ff": (False, False), "tf": (True, False), "ft": (False, True), "tt": (True, True)}
"""(add_special, parse_special)"""
SIDE_BY_SIDE = 7
"""Spans are compared for one text of so many; the reference takes as long as the trace."""
ADDED_UP = 60
"""Of so many traces it is asked whether their stages add up."""


@functools.cache
def tokenizer(name: str) -> jittok.Tokenizer:
    *folder, vocab = name.split("/")
    release = folder[0] if folder else "0.3.36"
    if vocab in BUNDLED:
        return jittok.bundled(BUNDLED[vocab], llama_cpp=release)
    packed = (DATA / "vocabs" / f"{vocab}.gguf.xz").read_bytes()
    return jittok.load(lzma.decompress(packed), cache=False, llama_cpp=release)


@functools.cache
def cases(name: str) -> list[tuple[bytes, bool, Any]]:
    """(text, add_special and parse_special, ids or None where llama.cpp fails)."""
    found = []
    with lzma.open(DATA / "golden" / f"{name}.jsonl.xz", "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            if row["kind"] == "case":
                text = row["text"].encode() if "text" in row else base64.b64decode(row["b64"])
                for key, special in (("ff", False), ("tt", True)):
                    ids = row.get(key, row["ff"])
                    found.append((text, special, ids if isinstance(ids, list) else None))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_traces_have_the_ids_of_llama_cpp_the_spans_of_the_reference_and_stages_that_add_up(name):
    tok = tokenizer(name)
    for number, (text, special, ids) in enumerate(cases(name)[::8]):
        if ids is None:
            with pytest.raises(jittok.JittokError):
                tok.trace(text, add_special=special, parse_special=special)
            continue
        trace = tok.trace(text, add_special=special, parse_special=special)
        assert trace.ids.tolist() == ids, text
        if number % SIDE_BY_SIDE == 0:
            _, spans = align(tok.vocab, text, add_special=special, parse_special=special)
            assert trace.spans.tolist() == [list(span) for span in spans], text
        if number < ADDED_UP:
            adds_up(tok, trace, len(ids) - tok.encode(text, parse_special=special).size)


def adds_up(tok, trace, around):
    """around: how many tokens `add_special` has put around the text."""
    assert json.loads(trace.to_json())["tokens"] == trace.tokens.to_dict()
    assert len([*trace.steps()]) == sum(len(trace[stage]) for stage in trace.stages)
    buffer = trace.fragments[-1]["buffer"]
    assert [*trace.insertions()][-1] == buffer
    tokens = sum(part["type"] == "token" for part in buffer)
    of_text = [i for row in trace.symbols for part in row["final"] for i in part["ids"]]
    if trace.symbols and tok.vocab.model != "hybriddna":
        assert len(of_text) + tokens + around == len(trace.tokens)
    for word, offers, pops in queues(trace):
        assert sum(len(each["offers"]) for each in pops) + len(offers) == len(pops), word
    for row in trace.matches:
        if row["token_id"] is not None and not row["unk"]:
            assert row["tried"], row


def queues(trace):
    """(word, pairs offered first, pops) of each queue: everything that is offered is popped."""
    for row in trace.symbols:
        key = "word" if "word" in row else "fragment"
        yield row[key], row["offers"], [each for each in trace.merges if each[key] == row[key]]


@functools.cache
def large_sets() -> ModuleType:
    """The module that knows the vocabularies of the large sets."""
    spec = importlib.util.spec_from_file_location("large_sets", SHARED / "check" / "data.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.recorded_elsewhere
@pytest.mark.skipif(not LARGE, reason="no large recorded sets beside the checkout (or in $JITTOK_SHARED)")
@pytest.mark.parametrize("name", LARGE or ["none"])
def test_traces_of_a_large_set_have_the_ids_of_llama_cpp(name, tmp_path):
    """Each trace compares its ids with the kernels' as well."""
    tok = jittok.load(large_sets().vocab_bytes(name, Path(os.environ.get("JITTOK_VOCABS") or tmp_path)), cache=False)
    count = 0
    with lzma.open(SHARED / "golden" / f"{name}.jsonl.xz", "rt", encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if row["kind"] == "case"]
    for row in rows:
        text = row["text"] if "text" in row else base64.b64decode(row["b64"])
        for key, (add, parse) in RULES.items():
            if key != "ff" and key not in row:
                continue  # the same as "ff", or not asked
            expected = row[key]
            if not isinstance(expected, list):
                with pytest.raises(jittok.JittokError):
                    tok.trace(text, add_special=add, parse_special=parse)
            else:
                assert tok.trace(text, add_special=add, parse_special=parse).ids.tolist() == expected, (key, text)
            count += 1
    assert count >= len(rows)
    print(f"{count} traces")  # noqa: T201  shown with -rP
