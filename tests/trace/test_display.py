"""Traces as people see them. The markup of one trace of each type is kept in `markup/`, where it was looked at in a
browser; JITTOK_KEEP_MARKUP=1 writes what there is now, to be looked at again."""

import functools
import io
import json
import os
import pickle
import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import made_up_tokenizer

import jittok
from jittok.common.display.characters import readable, shares
from jittok.common.display.colours import alternate

KEPT = Path(__file__).with_name("markup")
DATA = Path(__file__).parents[1] / "data"
TEXTS = {
    "gpt-2": "Hello Worlds, it's 2024\n\t日<|endoftext|>",
    "bert": "ÅWhat is LoRA? unbelievably \U00012000x",
    "t5": "What is LoRA? ﬁ½",
    "mistral": "<s>What is LoRA?</s> é\U00013000",
    "syn-rwkv": "Hello, <b>world</b> 日",
    "syn-plamo2": "Hello, <b>world</b> 日",
    "syn-hybriddna": "a <dna>acgtacG</dna> b",
}
WORST = "<script>alert('x')</script> & \"quoted\" \x00\x1b[31m \u202e日本 " + "a" * 300
MOST = 200_000
"""Characters of the HTML of any trace."""


@functools.cache
def tokenizer(name: str) -> jittok.Tokenizer:
    if name in jittok.bundled_names():
        return jittok.bundled(name)
    return made_up_tokenizer(name)


class Check(HTMLParser):
    """Tags that close, no script, no style but inline ones, nothing from elsewhere."""

    EMPTY = ("br",)

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.backgrounds: list[list[str]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "style", "link", "img", "iframe", "svg")
        for name, value in attrs:
            assert name in ("style", "title", "colspan", "open"), name
            if name == "style":
                assert "url(" not in value
                for colour in re.findall(r"(?<!-)color:([^;]+)", value):
                    assert colour == "inherit"
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def checked(markup: str) -> Check:
    check = Check()
    check.feed(markup)
    check.close()
    assert not check.open
    assert len(markup) < MOST
    return check


@pytest.mark.parametrize("name", TEXTS)
def test_markup_is_the_one_that_was_looked_at(name):
    trace = tokenizer(name).trace(TEXTS[name], add_special=True, parse_special=True)
    markup = trace._repr_html_()
    checked(markup)
    assert markup == kept(f"{name}.html", markup)


@pytest.mark.parametrize("name", TEXTS)
def test_everyday_objects_have_the_markup_that_was_looked_at(name):
    tok, special = tokenizer(name), {"add_special": True, "parse_special": True}
    aligned = tok.align(TEXTS[name], **special)
    shown = [tok, aligned, tok.encode_batch([TEXTS[name], "short", "word " * 20], **special)]
    markup = "\n".join(each._repr_html_() for each in shown)
    check = checked(markup)
    assert f"{len(aligned)} ids over {len(TEXTS[name].encode())} bytes" in check.text
    assert markup == kept(f"{name}-objects.html", markup)


def kept(name: str, markup: str) -> str:
    """The markup that was looked at."""
    path = KEPT / name
    if os.environ.get("JITTOK_KEEP_MARKUP"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(markup + "\n", encoding="utf-8")
    return path.read_text(encoding="utf-8").removesuffix("\n")


@pytest.mark.parametrize("name", TEXTS)
def test_tokens_can_be_told_apart_where_a_site_takes_styles_away(name):
    trace = tokenizer(name).trace(TEXTS[name], add_special=True, parse_special=True)
    chips = trace._repr_html_().split("</div>")[1]
    bare = re.sub(r' (style|title)="[^"]*"|</?span>', "", re.sub(r' (style|title)="[^"]*"', "", chips))
    pieces = re.findall(r"(<b>)?<code>(.*?)</code>(?:</b>)?( |<br>|$)", bare)
    assert len(pieces) == len(trace.tokens)
    special = {"control", "unknown", "user_defined"}
    for (bold, text, gap), token in zip(pieces, trace.tokens, strict=True):
        assert text
        assert bool(bold) == bool(special & set(token["attributes"]))
        assert gap or token is trace.tokens[-1]


def test_an_alignment_tells_all_of_a_token():
    aligned = jittok.bundled("mistral").align("<s>Hé", parse_special=True)
    markup = aligned._repr_html_()
    for told in ("id 1\n", "control", "score -", "bytes 20 48", "bytes 0 to 3 of the text"):
        assert told in markup
    again = pickle.loads(pickle.dumps(aligned))
    assert again == aligned
    assert "control" not in again._repr_html_()
    row = jittok.bundled("mistral").align_batch(["Hé"])[0]
    assert "id 28769" in row._repr_html_() or str(int(row.ids[0])) in row._repr_html_()


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("text", [WORST, "", " ", "word " * 800, b"\xff\xfe\x80abc", "\n" * 500, "😀" * 600])
def test_any_text_is_shown_escaped_and_bounded(name, text):
    try:
        trace = tokenizer(name).trace(text)
    except jittok.EncodingFailed:
        return
    check = checked(trace._repr_html_())
    assert "<script>" not in trace._repr_html_()
    for stage in trace.stages:
        checked(trace.show(stage)._repr_html_())
        assert isinstance(repr(trace.show(stage)), str)
    assert f"{len(trace.text)} bytes, {len(trace.tokens)} tokens" in check.text


@given(st.lists(st.integers(-1, 20), max_size=50))
def test_equal_colours_never_stand_side_by_side(ids):
    hues = alternate(ids)
    assert len(hues) == len(ids)
    assert all(a != b for a, b in pairwise(hues))


def test_tokens_of_rows_keep_their_colours_apart():
    rows = jittok.bundled("gpt-2").encode_batch(["aaaa bbbb aaaa aaaa " * 10, "the the the the"])
    markup = rows._repr_html_()
    checked(markup)
    for row in markup.split("<tr>")[2:]:
        hues = re.findall(r"<code style=\"[^\"]*?(background:[^;\"]+)", row)
        assert len(hues) > 3
        assert all(a != b for a, b in pairwise(hues))
    assert "id 1 " not in markup
    assert "merge rank" in markup
    assert "described" not in repr(rows)


@given(st.text(max_size=20), st.data())
def test_pieces_say_what_they_hold_of_a_character(text, data):
    raw = text.encode("utf-8", "surrogatepass")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=5)))
    pieces = [raw[i:j] for i, j in pairwise([0, *cuts, len(raw)])]
    told = shares(pieces)
    for piece, said in zip(pieces, told, strict=True):
        try:
            piece.decode()
        except UnicodeDecodeError:
            continue
        assert said == ""


def test_white_space_and_lone_bytes_are_seen():
    assert readable(b"a b\n\t\xe6\x97\xa5\xe6") == "a·b↵⇥日⟨E6⟩"
    assert readable("\x1b\u202e\u2581".encode()) == "\\x1b\\u202e▁"


def test_a_terminal_gets_the_same_with_or_without_colours():
    trace = jittok.bundled("mistral").trace("<s>What is LoRA?</s>", parse_special=True)
    plain = io.StringIO()
    trace.print(stream=plain)
    shown = plain.getvalue()
    assert "\x1b" not in shown
    for stage in trace.stages:
        assert f"{stage}  {len(trace[stage])}" in shown
    assert "(3, 4) at  score -11" in shown
    from jittok.common.display.terminal import print_lines
    from jittok.trace.stages import trace_lines

    coloured = io.StringIO()
    print_lines(
        trace_lines(trace.facts(), {n: trace[n] for n in trace.stages}, trace.tokens.context), coloured, colour=True
    )
    assert "\x1b[" in coloured.getvalue()
    bare = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", coloured.getvalue()).splitlines()]
    assert bare == [line.rstrip() for line in shown.splitlines()]


def test_steps_are_sentences():
    trace = jittok.bundled("t5").trace("What is LoRA?")
    said = [str(step) for step in trace.steps("lattice")]
    assert said[5] == "lattice 5: position 7: best of 5 is '▁What' (id 363) from 0, sum -8.488649, on the best path"
    assert len([*trace.steps()]) == sum(map(len, map(trace.show, trace.stages)))


def test_stages_are_arrays_too():
    merges = jittok.bundled("mistral").trace("What is LoRA?").merges.array
    assert merges["score"].dtype == "float64"
    assert merges["left"].tolist()[:3] == [3, 6, 5]
    assert merges["applied"].sum() == 9
    charsmap = jittok.bundled("t5").trace("ﬁ").charsmap.array
    assert charsmap["value"].tolist() == [-1, -1, 2130]
    lattice = jittok.bundled("t5").trace("ﬁ").lattice
    assert {"position", "token_id", "input_offset", "score_sum", "challengers"} <= lattice[0].keys()
    assert json.loads(lattice.to_json()) == lattice.to_dict()


def test_a_stage_that_does_not_exist_is_named():
    trace = jittok.bundled("t5").trace("a")
    with pytest.raises(KeyError, match="found 'merge', expected one of fragments"):
        trace.show("merge")
    assert list(trace.show("merges")) == []
    assert "does without it" in trace.show("merges")._repr_html_()


def test_replaced_code_points_are_traced_as_they_are_encoded():
    text = b"a\xf4\x90\x80\x80b"
    for name in ("gpt-2", "bert"):
        newest, tok = jittok.bundled(name), jittok.bundled(name, llama_cpp="0.3.36")
        assert newest.trace(text).ids.tolist() == tok.encode(text, errors="replace").tolist()
        with pytest.raises(jittok.EncodingFailed):
            tok.trace(text)
        trace = tok.trace(text, errors="replace")
        assert trace.ids.tolist() == tok.encode(text, errors="replace").tolist()


@pytest.mark.parametrize("name", TEXTS)
def test_the_script_for_gdb_is_python_with_what_is_to_be_seen(name):
    from jittok.trace.gdb import stops

    trace = tokenizer(name).trace(TEXTS[name], parse_special=True)
    script = trace.gdb()
    blocks = re.findall(r"^python\n(.*?)\n^end$", script, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    for block in blocks:
        compile(block, "gdb", "exec")
    assert script.endswith("# expected ids: " + " ".join(map(str, trace.ids)) + "\n")
    found = list(stops(trace.vocab, {stage: trace[stage] for stage in ("fragments", *trace.stages)} | others(trace)))
    assert found[0].stage == "fragments"
    counts = {stop.stage: len(stop.expected) for stop in found}
    if trace.merges:
        assert counts["merges"] == counts["offers"] == len(trace.merges)
    if trace.lattice:
        assert counts["backtrack"] == sum(row["on_path"] for row in trace.lattice) - 1
    assert sum(counts.values()) > 1


def others(trace):
    return {stage: trace[stage] for stage in ("symbols", "merges", "words", "matches", "lattice", "charsmap", "path")}


def test_a_difference_asks_for_a_report():
    from jittok.trace import trace_text

    vocab = jittok.bundled("gpt-2").vocab
    with pytest.raises(
        AssertionError, match=r"disagree from token 1 on.*please report it with the text b'Hello World'"
    ):
        trace_text(vocab, b"Hello World", [15496, 1, 2])


@pytest.mark.parametrize("name", TEXTS)
def test_a_kernel_that_errs_is_found_by_every_trace(name, monkeypatch):
    tok = tokenizer(name)
    right = type(tok._encoder).one

    def wrong(encoder, *rest):
        ids = right(encoder, *rest).copy()
        ids[-1] += 1
        return ids

    tok.trace(TEXTS[name])
    monkeypatch.setattr(type(tok._encoder), "one", wrong)
    with pytest.raises(AssertionError, match=r"This is a bug of jittok; please report it with the text b.*fingerprint"):
        tok.trace(TEXTS[name])
    with pytest.raises(AssertionError, match=r"report it with the text, of 4000 bytes, around byte 399\d: b"):
        tok.trace("word" * 1000)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash reads what is quoted for it")
@pytest.mark.parametrize("text", [b"a'b\\c\n\xff\xe6\x97 \xc3\xa9\t1", "plain 日".encode(), b"it's", b""])
def test_a_shell_gives_llama_cpp_the_text_of_the_script(text):
    trace = jittok.bundled("mistral").trace(text)
    line = next(line for line in trace.gdb().splitlines() if line.startswith("#   gdb "))
    argument = line.split(" -p ", 1)[1]
    told = subprocess.run(["bash", "-c", f"printf %s {argument}"], capture_output=True, check=True).stdout
    assert told == text
    assert sum(row["length"] for row in trace.resegment) == sum(row["length"] for row in trace.normalized)
    assert ("RUNS = 2" in trace.gdb()) == (len(trace.tokens) > len(text))


def test_a_text_with_nul_goes_to_llama_cpp_by_a_file():
    assert " -f TEXT_FILE  # with the 3 bytes" in jittok.bundled("gpt-2").trace(b"a\0b").gdb()
