"""Traces of other files than GGUF: each step's effect, and ids and spans as encoding and aligning give them."""

import io
import json

import pytest
from recorded_files import HERE

import jittok
from jittok.trace.stages import STAGES

SETS = sorted(path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz"))


@pytest.mark.parametrize("name", SETS)
def test_traces_have_the_ids_and_spans_of_the_tokenizer(recorded, name):
    found = recorded(name)
    tok = jittok.load(found.path, cache=False, **found.options)
    for row in [row for row in found.rows if row["kind"] == "case"][::17]:
        if len(row["text"]) > 400:
            continue
        trace = tok.trace(row["text"], add_special=True, parse_special=True)
        aligned = tok.align(row["text"], add_special=True, parse_special=True)
        assert trace.ids.tolist() == aligned.ids.tolist()
        assert trace.spans.tolist() == aligned.spans.tolist()
        assert len([*trace.steps()]) == sum(len(trace[stage]) for stage in trace.stages)
        assert json.loads(trace.to_json())["ids"] == aligned.ids.tolist()
        words = {word["word"] for word in trace.words}
        for stage in ("symbols", "merges", "matches", "lattice"):
            assert {record["word"] for record in trace[stage]} <= words
        if trace.split:
            last = [record for record in trace.split if record["number"] == len(tok.vocab.split) - 1]
            assert [word for record in last for word in record["words"]] == [word["text"] for word in trace.words]


def test_each_normalizer_shows_what_it_changes(recorded):
    trace = jittok.load(recorded("syn-wordpiece-flags").path, cache=False).trace("Hé\u0301llo [SEP]x")
    texts = [record["text"] for record in trace.normalized]
    assert [record["changed"] for record in trace.normalized] == [
        text != before for before, text in zip(["Hé\u0301llo [SEP]x", *texts], texts, strict=False)
    ]
    assert {record["changed"] for record in trace.normalized} == {True, False}
    (record,) = [record for record in trace.normalized if record["step"].startswith("Compose")][:1]
    assert [0, 1, 0, 1] in record["map"] or record["map"][0][2:] == [0, 1]
    assert trace.words
    assert trace.matches


def test_pairs_are_merged_best_first(recorded):
    tok = jittok.load(recorded("r50k_base").path, cache=False)
    trace = tok.trace(" lower qwzxv")
    applied = [record for record in trace.merges if record["applied"]]
    assert [record["text"] for record in applied]
    assert trace.symbols[-1]["symbols"] == list(" qwzxv")
    assert [part["text"] for part in trace.symbols[-1]["final"]] == [
        tok.token_to_piece(token).decode() for token in tok.encode(" qwzxv").tolist()
    ]
    for record in applied:
        assert record["symbols"][record["left"]]["text"] == record["text"]


def test_the_best_path_of_a_lattice_is_the_answer(recorded):
    tok = jittok.load(recorded("spm-test-ja").path, cache=False)
    trace = tok.trace("今日は tokenizer")
    assert [record["token_id"] for record in trace.lattice if record["on_path"]][1:] == trace.ids.tolist()
    assert all(record["challengers"] for record in trace.lattice if record["position"])


def test_added_tokens_are_cut_out_of_the_buffer():
    added = [{"id": 5, "content": "<m>", "special": True, "normalized": False, "lstrip": False, "rstrip": True,
              "single_word": False}]  # fmt: skip
    file = {"added_tokens": added, "model": {"type": "WordLevel", "vocab": {"?": 0, "a": 1}, "unk_token": "?"}}
    tok = jittok.load(json.dumps(file).encode(), cache=False)
    trace = tok.trace("a<m> <m>a", parse_special=True)
    start, found = trace.fragments
    assert start["buffer"] == [{"type": "raw_text", "offset": 0, "length": 9}]
    assert (found["text"], found["found"]) == ("<m>", 2)
    assert [part.get("token") for part in found["buffer"]] == [None, trace.ids[1], trace.ids[2], None]
    assert [(part["offset"], part["length"]) for part in found["buffer"]] == [(0, 1), (1, 4), (5, 3), (8, 1)]
    assert [*trace.insertions()] == [start["buffer"], found["buffer"]]
    with pytest.raises(jittok.UnsupportedVocab, match="a GGUF vocabulary"):
        trace.gdb()


@pytest.mark.parametrize("name", ["syn-unigram-bytes", "bert-chinese", "mistral-v1", "pix2tex", "rwkv-world"])
def test_traces_show_themselves(recorded, name):
    found = recorded(name)
    trace = jittok.load(found.path, cache=False, **found.options).trace("some text é中 <s>", parse_special=True)
    out = io.StringIO()
    trace.print(stream=out)
    html = trace._repr_html_()
    for stage in trace.stages:
        assert stage in out.getvalue()
        assert stage in html
        assert repr(trace[stage]).splitlines()[1:]
        assert trace[stage]._repr_html_()
    assert set(trace.stages) <= set(STAGES)
    assert "tokens" in trace.stages
