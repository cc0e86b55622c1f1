"""A corpus of chats: ids and masks are those of encode_chat, in every format, however it is made, read or packed."""

from __future__ import annotations

import gzip
import json
import pickle
import random
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import dies_after

import jittok
from jittok.cli import main
from jittok.corpus import (
    Options,
    batches,
    compile_corpus,
    fields,
    finish_corpus,
    plan_corpus,
    run_corpus,
    sequences,
    verify,
)
from jittok.corpus import open as open_corpus
from jittok.corpus.formats import FORMATS
from jittok.corpus.inputs.sources import Source
from jittok.corpus.prediction import dry_run
from jittok.corpus.ranges.encoder import RangeEncoder
from jittok.corpus.ranges.split import is_training
from jittok.corpus.shards.plan import differences, make_plan
from jittok.errors import CorpusError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("jinja2")
pytest.importorskip("orjson")

SHOWN = (
    "{% if tools %}{{ tools | tojson }}<|endoftext|>{% endif %}{% for m in messages %}"
    "{% if m.role == 'nobody' %}{{ raise_exception('no such role') }}{% endif %}"
    "{{ m.role }}\n{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|endoftext|>{% endgeneration %}"
    "{% else %}{{ m.content }}<|endoftext|>{% endif %}{% endfor %}"
)
"""With what the assistant writes."""
BARE = "{% for m in messages %}{{ m.role }}: {{ m.content }}<|endoftext|>{% endfor %}"
WORDS = ["Hi", "Zürich", "<|endoftext|>", "<|end", "a < b", "\n\n", "日本", "0", '"', "\u017f", ""]
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"n": [1.5, 10**30, None, "<|endoftext|>"]}}}]


def some_chats(count: int, seed: int = 0) -> list[dict]:
    rng, found = random.Random(seed), []
    for number in range(count):
        said = [" ".join(rng.choices(WORDS, k=rng.randrange(8))) for _ in range(2 * rng.randint(1, 3))]
        roles = [{"role": ("user", "assistant")[k % 2], "content": text} for k, text in enumerate(said)]
        found.append({"messages": roles, "tools": TOOLS if rng.random() < 0.2 else None, "id": number})
    return found


def write(path: Path, chats: list, dumps=json.dumps) -> Path:
    path.write_text("".join(dumps(chat) + "\n" for chat in chats), "utf-8")
    return path


def expected(tok, chats, template):
    made = [tok.encode_chat(chat["messages"], tools=chat.get("tools"), template=template) for chat in chats]
    return [(each.ids.tolist(), each.assistant_mask.tolist()) for each in made]


def found(out, tok=None, format=None):
    corpus = open_corpus(out, tok, format=format)
    return [(ids.tolist(), mask.tolist()) for ids, mask in zip(corpus, corpus.masks, strict=True)]


def options(**more) -> Options:
    return Options(**{"messages": "messages", "learn": "assistant", "template": SHOWN, "tools": "tools", **more})


@pytest.fixture(scope="module")
def made(tmp_path_factory, tok):
    """Chats, and their corpus in every format, in several shards."""
    folder = tmp_path_factory.mktemp("chats")
    chats = some_chats(300)
    path = write(folder / "a.jsonl", chats)
    asked = options(formats=tuple(FORMATS), range_bytes=9_000, shard_bytes=20_000, keep=("id",))
    compile_corpus([path], tok, folder / "out", asked, threads=2)
    return path, chats, folder / "out", asked


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_the_ids_and_masks_of_encode_chat(made, tok, name):
    _, chats, out, _ = made
    assert found(out, tok, name) == expected(tok, chats, SHOWN)
    assert len(list((out / "loss_mask").iterdir())) > 1


def test_what_is_written_is_verified_by_kernels_and_reference(made, tok):
    *_, out, _ = made
    report = verify(out, tok, all=True)
    assert report.ok
    assert report.documents == report.of_documents == 300
    assert report.witnessed > 10
    assert [value.as_py() for value in fields(out)["id"]] == [str(k) for k in range(300)]


def test_other_masks_are_told(made, tok, tmp_path):
    *_, out, _ = made
    copy = shutil.copytree(out, tmp_path / "copy")
    file = sorted((copy / "loss_mask").iterdir())[1]
    raw = bytearray(file.read_bytes())
    raw[40] ^= 1
    file.write_bytes(raw)
    wrong = verify(copy, tok, all=True).differences
    assert {"SHA-256" in row["what"] for row in wrong if "file" in row} == {True}
    apart = [row for row in wrong if row.get("format") == "npy"]
    assert len(apart) == 1
    assert apart[0]["what"].startswith("mask of token ")


def test_bytes_are_the_same_after_any_crash_for_any_threads_and_parts(made, tok, tmp_path, monkeypatch):
    path, _, out, asked = made
    whole = {each.relative_to(out): each.read_bytes() for each in out.rglob("*") if each.is_file()}
    with monkeypatch.context() as patch:
        dies_after(patch, 3)
        with pytest.raises(KeyboardInterrupt):
            compile_corpus([path], tok, tmp_path / "crashed", asked, threads=1)
    compile_corpus([path], tok, tmp_path / "crashed", asked, threads=1)
    plan_corpus([path], tok, tmp_path / "parts", asked, parts=2)
    for part in ("1/2", "0/2"):
        assert not run_corpus(tmp_path / "parts", tok, part=part).failed
    finish_corpus(tmp_path / "parts")
    for other in (tmp_path / "crashed", tmp_path / "parts"):
        again = {each.relative_to(other): each.read_bytes() for each in other.rglob("*") if each.is_file()}
        assert again.keys() == whole.keys()
        assert [name for name in whole if name.name != "manifest.json" and whole[name] != again[name]] == []


@pytest.mark.parametrize("name", ["npy", "arrow", "parquet"])
@pytest.mark.parametrize("pack", ["split", "whole", "best"])
def test_sequences_and_batches_have_the_mask_of_their_ids(tok, tmp_path, name, pack):
    """Only the assistant says a word with b, so the ids tell the mask."""
    rng = random.Random(4)
    chats = [
        {
            "messages": [
                {"role": "user", "content": " a" * rng.randrange(30)},
                {"role": "assistant", "content": " b" * n},
            ]
        }
        for n in (rng.randrange(1, 40) for _ in range(60))
    ]
    asked = options(formats=(name,), tools=None, template=BARE, shard_bytes=1500, range_bytes=700)
    compile_corpus([write(tmp_path / "a.jsonl", chats)], tok, tmp_path / "out", asked)
    b = int(tok.encode(" b")[0])
    overlap = 3 if pack == "split" else 0
    shuffles = [None] if name == "parquet" else [None, "sequences", "documents"]
    for shuffle in shuffles:
        for length in (7, 64):
            few = min(overlap, length - 1)
            how = {"pack": pack, "pad_id": 0, "shuffle": shuffle, "overlap": few, "seed": 2}
            rows = sequences(tmp_path / "out", length, **how)
            batch = rows[: len(rows)]
            assert ((batch.ids == b) == (batch.loss_mask == 1)).all()
            assert batch.loss_mask.dtype == np.uint8
            assert (batch.labels == np.where(batch.ids == b, batch.ids, -100)).all()
            assert 0 < batch.loss_mask.sum() < batch.loss_mask.size
            aimed = sequences(tmp_path / "out", length, targets=True, **how)
            for row in aimed:
                assert set(row.targets.tolist()) <= {b, -100}
                learned = row.targets[:-1][(row.ids[1:] == b) & (row.segments[1:] == row.segments[:-1])]
                assert (learned == b).all()
            pickled = pickle.loads(pickle.dumps(rows))
            assert (pickled[1].loss_mask == rows[1].loss_mask).all()
    if pack != "best":
        corpus = open_corpus(tmp_path / "out")
        for some in (corpus, tmp_path / "out", corpus[10:50:3]):
            for each in batches(some, 16, 4, documents=pack, pad_id=0):
                assert ((each.ids == b) == (each.loss_mask == 1)).all()


def test_beside_masks_all_of_other_corpora_is_learned(tok, tmp_path):
    compile_corpus([write(tmp_path / "a.jsonl", some_chats(40))], tok, tmp_path / "chats", options(formats=("npy",)))
    (tmp_path / "b.txt").write_text("plain text " * 100, "utf-8")
    compile_corpus([tmp_path / "b.txt"], tok, tmp_path / "plain", Options(formats=("npy",)))
    plain = set(tok.encode("plain text " * 2).tolist())
    together = sequences([tmp_path / "plain", tmp_path / "chats"], 32)
    assert together[0].loss_mask.tolist() == [1] * 32
    assert 0 < np.mean([row.loss_mask.mean() for row in together]) < 1
    mix = sequences({tmp_path / "chats": 1, tmp_path / "plain": 1}, 32, shuffle="sequences")
    assert any(row.loss_mask.all() and set(row.ids.tolist()) <= plain for row in mix)
    assert any(not row.loss_mask.all() for row in mix)
    assert not hasattr(sequences(tmp_path / "plain", 32)[0], "loss_mask")


def test_a_corpus_in_a_bucket_has_its_masks(tok, tmp_path):
    pytest.importorskip("obstore")
    chats = some_chats(30, 3)
    path = write(tmp_path / "a.jsonl", chats)
    names = ("npy", "arrow", "parquet")
    compile_corpus([path], tok, "memory://of-chats/one", options(formats=names))
    for name in names:
        assert found("memory://of-chats/one", tok, name) == expected(tok, chats, SHOWN)
    local = sequences(compile_corpus([path], tok, tmp_path / "out", options(formats=("npy",))).out, 32)
    for name in names:
        rows = sequences("memory://of-chats/one", 32, format=name, cache=tmp_path / "cache")
        assert [row.loss_mask.tolist() for row in rows] == [row.loss_mask.tolist() for row in local]


# ---- where chats are


def as_table(chats: list[dict], as_text: bool) -> pa.Table:
    if as_text:
        return pa.table({
            "messages": [json.dumps(chat["messages"]) for chat in chats],
            "tools": [json.dumps(chat["tools"]) for chat in chats],
        })  # fmt: skip
    return pa.table({"messages": [chat["messages"] for chat in chats]})


@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream", "jsonl.gz"])
@pytest.mark.parametrize("as_text", [False, True], ids=["lists", "texts"])
def test_chats_of_tables_are_those_of_lines(tok, tmp_path, kind, as_text):
    chats = some_chats(90, 1)
    if not as_text:
        for chat in chats:
            chat["tools"] = None
    table, path = as_table(chats, as_text), tmp_path / f"a.{'arrow' if kind == 'stream' else kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=40)
    elif kind == "jsonl.gz":
        path.write_bytes(gzip.compress("".join(json.dumps(row) + "\r\n" for row in table.to_pylist()).encode()))
    else:
        opened = (pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file)(path, table.schema)
        with opened as file:
            file.write_table(table, max_chunksize=25)
    for size in (4_000, 8 << 20):
        asked = options(tools="tools" if as_text else None, range_bytes=size, formats=("npy",))
        compile_corpus([path], tok, tmp_path / f"out{size}", asked)
        assert found(tmp_path / f"out{size}") == expected(tok, chats, SHOWN)


def test_a_field_may_be_inside_another_and_lines_may_begin_with_a_mark(tok, tmp_path):
    chats = some_chats(5, 2)
    path = write(tmp_path / "a.jsonl", [{"data": {"chat": chat["messages"]}} for chat in chats])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().removesuffix(b"\n") + b"\n \n\n")
    summary = compile_corpus([path], tok, tmp_path / "out", replace(options(tools=None), messages="data.chat"))
    assert summary.blank_lines == 2
    assert [ids for ids, _ in found(tmp_path / "out")] == [
        tok.encode_chat(chat["messages"], template=SHOWN).ids.tolist() for chat in chats
    ]


def test_numbers_of_tools_are_as_they_are_written(tok, tmp_path):
    chat = {"messages": [{"role": "user", "content": "x"}], "tools": [{"a": [10**25, 0.1, 1e300, -0.0]}]}
    compile_corpus([write(tmp_path / "a.jsonl", [chat])], tok, tmp_path / "out", options(learn=None))
    assert tok.decode(open_corpus(tmp_path / "out")[0]).startswith(f'[{{"a": [{10**25}, 0.1, 1e+300, -0.0]}}]')


# ---- what is wrong


BAD = {
    "role": ({"messages": [{"role": "nobody", "content": "x"}]}, "no such role"),
    "no role": ({"messages": [{"from": "human", "value": "x"}]}, r"messages\[0\] with keys from, value"),
    "no messages": ({"messages": []}, "no messages"),
    "a text": ({"messages": "hello"}, "a text that is no JSON in 'messages'"),
    "no list": ({"messages": {"role": "user"}}, "dict in 'messages'"),
    "no field": ({"text": "x"}, "fields text"),
    "no message": ({"messages": ["x"]}, r"str as messages\[0\]"),
    "tools": ({"messages": [{"role": "user", "content": "x"}], "tools": 7}, "int in 'tools'"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_chat_is_named_left_out_or_empty(tok, tmp_path, what):
    bad, said = BAD[what]
    chats = some_chats(7, 5)
    lines = [*chats[:3], bad, *chats[3:]]
    path = write(tmp_path / "a.jsonl", lines)
    with pytest.raises(CorpusError, match=rf"a\.jsonl, line 4.*{said}"):
        compile_corpus([path], tok, tmp_path / "fails", options())
    left = compile_corpus([path], tok, tmp_path / "skipped", options(on_error="skip"))
    assert (left.documents, left.bad_documents) == (7, 1)
    assert found(tmp_path / "skipped") == expected(tok, chats, SHOWN)
    kept = compile_corpus([path], tok, tmp_path / "replaced", options(on_error="replace", keep=("id",)))
    assert (kept.documents, kept.bad_documents) == (8, 1)
    right = expected(tok, chats, SHOWN)
    assert found(tmp_path / "replaced") == [*right[:3], ([], []), *right[3:]]
    assert fields(tmp_path / "replaced")["id"].to_pylist() == ["0", "1", "2", None, "3", "4", "5", "6"]
    for name in ("skipped", "replaced"):
        report = verify(tmp_path / name, tok, all=True)
        assert report.ok
        assert report.witnessed > 1
    (line,) = (tmp_path / "skipped" / "errors" / "00000.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["line"] == 4


@pytest.mark.parametrize(
    ("inside", "said"), [(b"\xff", "byte 0xff at offset"), (b"\\ud800", "lone surrogate"), (b'"', "a JSON object")]
)
def test_bytes_that_are_no_text(tok, tmp_path, inside, said):
    path = tmp_path / "a.jsonl"
    good = b'{"messages": [{"role": "user", "content": "x"}]}\n'
    path.write_bytes(good + good.replace(b"x", b"x" + inside) + good)
    with pytest.raises(CorpusError, match=rf"line 2.*{said}"):
        compile_corpus([path], tok, tmp_path / "fails", options())
    compile_corpus([path], tok, tmp_path / "out", options(on_error="replace"))
    texts = [tok.decode(ids) for ids in open_corpus(tmp_path / "out")]
    assert texts[1] == ("" if inside == b'"' else "user\nx\ufffd")
    assert texts[0] == texts[2] == "user\nx"
    report = verify(tmp_path / "out", tok, all=True)
    assert report.ok
    assert report.witnessed == (2 if inside == b'"' else 3)


def test_messages_of_a_table_that_are_null_are_told_once(tok, tmp_path):
    chats = some_chats(4, 11)
    rows = [chat["messages"] for chat in chats]
    pq.write_table(pa.table({"messages": [rows[0], None, rows[1], None]}), tmp_path / "a.parquet")
    made = compile_corpus([tmp_path / "a.parquet"], tok, tmp_path / "out", options(tools=None, on_error="replace"))
    assert (made.documents, made.bad_documents) == (4, 2)
    bare = [{"messages": chat["messages"]} for chat in chats]
    right = expected(tok, bare, SHOWN)
    assert found(tmp_path / "out") == [right[0], ([], []), right[1], ([], [])]
    lines = (tmp_path / "out" / "errors" / "00000.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["line"] for line in lines] == [2, 4]
    assert verify(tmp_path / "out", tok, all=True).ok


def test_a_wrong_field_is_an_error_of_the_run(tok, tmp_path):
    path = write(tmp_path / "a.jsonl", some_chats(4))
    for on_error in ("fail", "skip", "replace"):
        with pytest.raises(CorpusError, match="messages in 'chat'"):
            compile_corpus([path], tok, tmp_path / "out", replace(options(on_error=on_error), messages="chat"))
    pq.write_table(pa.table({"messages": [1, 2]}), tmp_path / "a.parquet")
    with pytest.raises(CorpusError, match="column 'messages' of int64"):
        compile_corpus([tmp_path / "a.parquet"], tok, tmp_path / "out", options(tools=None))
    pq.write_table(pa.table({"messages": ["[]"]}), tmp_path / "b.parquet")
    with pytest.raises(CorpusError, match=r"a column 'tools' \(tools\)"):
        compile_corpus([tmp_path / "b.parquet"], tok, tmp_path / "out", options())


@pytest.mark.parametrize(
    "template",
    [
        "{% for m in messages if m.role != 'assistant' %}{{ m.content }}{% endfor %}<|endoftext|>",
        "{% for m in messages %}{{ m.content | length }}{% endfor %}",
        "{% generation %}{% endgeneration %}{% for m in messages %}{{ m.content }}{% endfor %}",
    ],
)
def test_a_template_that_cannot_tell_what_is_learned_is_an_error_at_once(tok, tmp_path, template):
    path = write(tmp_path / "a.jsonl", some_chats(4))
    for call in (compile_corpus, plan_corpus, dry_run):
        with pytest.raises(CorpusError, match="does not show what the assistant writes"):
            call([path], tok, tmp_path / "out", options(template=template, on_error="skip"))
    assert not list((tmp_path / "out").glob("*/*")) if (tmp_path / "out").exists() else True
    compile_corpus([path], tok, tmp_path / "ids", options(template=template, learn=None))
    assert open_corpus(tmp_path / "ids").masks is None


def test_a_template_that_refuses_the_probe_is_asked_chat_by_chat(tok, tmp_path):
    template = "{% if messages | length < 3 %}{{ raise_exception('three') }}{% endif %}{{ messages[0].content }}"
    chats = [{"messages": [{"role": role, "content": role} for role in ("system", "user", "assistant")]}]
    path = write(tmp_path / "a.jsonl", chats)
    with pytest.raises(CorpusError, match=r"line 1.*prints no assistant's text"):
        compile_corpus([path], tok, tmp_path / "out", options(template=template))


def test_a_clock_is_said(tok, tmp_path):
    template = BARE + "{{ strftime_now('%d %b %Y') }}"
    path = write(tmp_path / "a.jsonl", some_chats(2))
    with pytest.raises(CorpusError, match=r"now: found a chat template that reads the clock"):
        compile_corpus([path], tok, tmp_path / "out", options(template=template))
    compile_corpus([path], tok, tmp_path / "out", options(template=template, now="2026-01-31"))
    assert tok.decode(open_corpus(tmp_path / "out")[0]).endswith("31 Jan 2026")
    with pytest.raises(CorpusError, match="a date such as"):
        options(now="today")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"append_eos": True}, "writes all special tokens"), ({"lines": True}, "a chat a line or row"),
        ({"field": "x"}, "messages names the field"), ({"learn": "user"}, "one of assistant"),
        ({"keep": ("assistant_masks",)}, "the column of learn"), ({"messages": ""}, "the field of the messages"),
        ({"messages": None}, "it without chats, expected messages FIELD"),
        ({"template": "none"}, "the text of a template"),
        ({"template": "{% if %}"}, "a Jinja template"), ({"template": None}, "no chat template"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together(tok, tmp_path, more, said):
    path = write(tmp_path / "a.jsonl", some_chats(2))
    with pytest.raises(CorpusError, match=said):
        compile_corpus([path], tok, tmp_path / "out", Options(**{**vars(options()), **more}))


def test_plain_text_has_no_chats(tok, tmp_path):
    (tmp_path / "a.txt").write_text("x", "utf-8")
    with pytest.raises(CorpusError, match="a chat a line or row"):
        compile_corpus([tmp_path / "a.txt"], tok, tmp_path / "out", options())


# ---- the template is part of what a corpus is


@pytest.fixture
def folder(tmp_path):
    """A model's folder with a template."""
    made = tmp_path / "model"
    made.mkdir()
    tok = {"<s>": 0, "</s>": 1, "<|im|>": 2} | {chr(33 + k): 3 + k for k in range(94)} | {"Ġ": 97, "Ċ": 98}
    added = [
        {"id": k, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": True} for text, k in list(tok.items())[:3]
    ]  # fmt: skip
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    none = ("unk_token", "dropout", "continuing_subword_prefix", "end_of_word_suffix")
    model = {"type": "BPE", "vocab": tok, "merges": [], "byte_fallback": False, "fuse_unk": False}
    model |= dict.fromkeys(none)
    file = {"version": "1.0", "added_tokens": added, "pre_tokenizer": level, "decoder": level, "model": model}
    (made / "tokenizer.json").write_text(json.dumps(file), "utf-8")
    (made / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "</s>"}), "utf-8")
    template = "{{ bos_token }}" + BARE.replace("<|endoftext|>", "<|im|>")
    (made / "chat_template.jinja").write_text(template, "utf-8")
    (made / "additional_chat_templates").mkdir()
    (made / "additional_chat_templates" / "tool_use.jinja").write_text("with tools " + template, "utf-8")
    return made


def test_the_templates_of_a_folder_are_used_and_remembered(folder, tmp_path):
    tok, chats = jittok.load(folder), some_chats(20, 6)
    for chat in chats:
        chat["messages"] = [{**m, "content": "plain words"} for m in chat["messages"]]
    path = write(tmp_path / "a.jsonl", chats)
    compile_corpus([path], tok, tmp_path / "out", options(template=None))
    assert found(tmp_path / "out") == expected(tok, chats, None)
    texts = [tok.decode(ids, unparse_special=True) for ids in open_corpus(tmp_path / "out")]
    assert {text.startswith("with tools <s>") for text in texts} == {True, False}
    assert verify(tmp_path / "out", tok, all=True).ok
    plan_corpus([path], tok, tmp_path / "begun", options(template=None))
    (folder / "chat_template.jinja").write_text("{{ bos_token }}" + BARE, "utf-8")
    other = jittok.load(folder)
    for call in (
        lambda: compile_corpus([path], other, tmp_path / "out", options(template=None)),
        lambda: verify(tmp_path / "out", other),
        lambda: run_corpus(tmp_path / "begun"),
    ):
        with pytest.raises(CorpusError, match="other chat templates or special tokens"):
            call()


def test_trusted_roles_write_control_tokens(folder, tmp_path):
    tok = jittok.load(folder)
    chat = {"messages": [{"role": "user", "content": "<|im|>"}, {"role": "assistant", "content": "<|im|>"}]}
    path = write(tmp_path / "a.jsonl", [chat])
    for trusted, count in (((), 2), (("assistant",), 3)):
        out = tmp_path / f"out{count}"
        compile_corpus([path], tok, out, options(template=None, tools=None, trusted=trusted))
        assert open_corpus(out)[0].tolist().count(2) == count
        assert verify(out, tok, all=True).ok


def test_an_encoder_of_chats_can_be_sent_to_another_process(tok):
    encoder = RangeEncoder(tok, [Source("a.jsonl", 1, "", "jsonl", "")], options())
    again = pickle.loads(pickle.dumps(encoder))
    assert again.chats.options == encoder.chats.options


def test_train_val_and_a_dry_run(tok, tmp_path):
    chats = some_chats(200, 8)
    path = write(tmp_path / "a.jsonl", chats)
    sides = compile_corpus([path], tok, tmp_path / "sides", options(train_val=0.7)).sides
    assert sum(side.documents for side in sides.values()) == 200
    assert sides["val"].documents > 20
    whole = compile_corpus([path], tok, tmp_path / "out", options())
    assert sum(side.text_bytes for side in sides.values()) == whole.text_bytes
    assert sorted(found(tmp_path / "sides/train") + found(tmp_path / "sides/val")) == sorted(found(tmp_path / "out"))
    assert verify(tmp_path / "sides/val", tok, all=True).ok
    predicted = dry_run([path], tok, tmp_path / "dry", options()).prediction
    assert (predicted.documents, predicted.tokens) == (200, whole.tokens)
    assert 0 < predicted.seconds < 60


def contents(out, tok):
    return {tok.decode(ids, unparse_special=True) for ids in open_corpus(out)}


def test_equal_chats_are_on_one_side_however_they_are_written(tok, tmp_path):
    """Other ids, order of keys and spaces; as lines, and as rows of a table, where all have each key."""
    messages = [[{"role": "user", "content": f"number {k}"}, *([TURN] if k % 2 else [])] for k in range(60)]
    plain = write(tmp_path / "a.jsonl", [{"id": k, "messages": chat} for k, chat in enumerate(messages)])
    turned = [{"messages": [dict(reversed(m.items())) for m in chat], "id": -k} for k, chat in enumerate(messages)]
    write(tmp_path / "b.jsonl", turned, lambda chat: json.dumps(chat, indent=1).replace("\n", " "))
    pq.write_table(pa.table({"messages": messages}), tmp_path / "c.parquet")
    asked = options(tools=None, train_val=0.5)
    compile_corpus([plain, tmp_path / "b.jsonl", tmp_path / "c.parquet"], tok, tmp_path / "sides", asked)
    train, val = (contents(tmp_path / "sides" / side, tok) for side in ("train", "val"))
    assert not train & val
    assert len(train) + len(val) == 60
    assert min(len(train), len(val)) > 10
    texts = [tok.render_chat(chat, template=SHOWN) for chat in messages]
    assert train == {text for text in texts if is_training(text.encode(), 0.5)}
    assert len(open_corpus(tmp_path / "sides" / "val")) == 3 * len(val)
    for side in ("train", "val"):
        report = verify(tmp_path / "sides" / side, tok, all=True)
        assert report.ok
        assert report.witnessed
    plan, old = make_plan(tok, [], asked), make_plan(tok, [], asked)
    assert differences(old, plan) == []
    del old["rules"]["sides of chats"]  # as it was when lines and rows were hashed as they are
    (said,) = differences(old, plan)
    assert "whose sides of chats differ" in said


TURN = {"role": "assistant", "content": "yes", "name": "x"}


@pytest.mark.parametrize("as_text", [False, True], ids=["lists", "texts"])
def test_a_dry_run_looks_at_the_column_of_messages(tok, tmp_path, monkeypatch, as_text):
    monkeypatch.setattr("jittok.corpus.prediction.EXACT_BYTES", 100)
    monkeypatch.setattr("jittok.corpus.prediction.PROBE_BYTES", 8 << 10)
    chats = some_chats(1500, 12)
    table = as_table(chats, as_text).append_column("text", [[f"{k * 7919} words " * 40 for k in range(1500)]])
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=300, use_dictionary=False)
    asked = options(tools=None)
    found = dry_run([tmp_path / "a.parquet"], tok, tmp_path / "dry", asked).prediction
    made = compile_corpus([tmp_path / "a.parquet"], tok, tmp_path / "out", asked)
    assert found.error["tokens"] is not None
    for name in ("documents", "tokens", "text_bytes"):
        assert getattr(found, name) == pytest.approx(getattr(made, name), rel=0.1)


def test_masks_follow_their_ids_in_a_drawn_order(tok, tmp_path):
    chats = some_chats(150, 9)
    path = write(tmp_path / "a.jsonl", chats)
    drawn = options(formats=("npy", "arrow", "parquet"), shuffle_documents=5, range_bytes=3000, shard_bytes=9000)
    compile_corpus([path], tok, tmp_path / "out", drawn)
    right = expected(tok, chats, SHOWN)
    for name in drawn.formats:
        rows = found(tmp_path / "out", format=name)
        assert rows != right
        assert sorted(rows) == sorted(right)
    assert verify(tmp_path / "out", tok, all=True).ok


def test_the_command_line(tmp_path, capsys):
    (tmp_path / "t.jinja").write_text(SHOWN + "{{ end }}{{ strftime_now('%Y') if end is defined }}", "utf-8")
    path, out = write(tmp_path / "a.jsonl", some_chats(9)), tmp_path / "out"
    given = ["corpus", str(path), "--vocab", "gpt-2", "--out", str(out), "--messages", "messages", "--learn",
             "assistant", "--tools", "tools", "--template", str(tmp_path / "t.jinja"), "--trusted", "assistant",
             "--variable", 'end="END"', "--json"]  # fmt: skip
    assert main(given) == 2
    assert "--now: found a chat template that reads the clock" in capsys.readouterr().err
    assert main([*given, "--now", "2025-05-05"]) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == 9
    assert jittok.bundled("gpt-2").decode(open_corpus(out)[3]).endswith("END2025")
    assert main(["verify", str(out)]) == 0
    bare = ["corpus", str(path), "--vocab", "gpt-2", "--out", str(tmp_path / "none"), "--messages", "messages"]
    assert main(bare) == 2
    said = "--template: found none: the tokenizer's files have no chat template, expected one of your own"
    assert f"{said}: --template FILE" in capsys.readouterr().err
    assert main(["corpus", str(path), "--vocab", "gpt-2", "--out", str(out), "--learn", "assistant"]) == 2
    assert "--learn: found it without chats, expected --messages" in capsys.readouterr().err
