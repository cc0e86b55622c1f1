"""`jittok trace`: text, data, and a script for gdb."""

import io
import json
import sys

import pytest

from jittok.cli import main


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    try:
        status = main(["trace", *arguments])
    except SystemExit as left:
        status = int(left.code or 0)
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_all_stages_are_printed_without_colours_when_nobody_looks(capsys):
    status, out, err = run(capsys, "--vocab", "mistral", "What is LoRA?")
    assert (status, err) == (0, "")
    assert out.startswith("Mistral v1 (spm, pre default): 13 bytes, 5 tokens\n·What ·is ·Lo RA ?\n")
    for stage in ("fragments  1", "normalized  1", "merges  14", "resegment  5", "tokens  5"):
        assert f"\n{stage}\n" in out
    assert "\x1b" not in out


def test_json_is_the_trace_as_data(capsys):
    status, out, _ = run(capsys, "--vocab", "t5", "--json", "--add-special", "What is LoRA?")
    data = json.loads(out)
    assert status == 0
    assert data["ids"] == [363, 19, 1815, 4763, 58, 1]
    assert data["lattice"][-1]["score_sum"] == -41.343478679656982
    status, out, _ = run(capsys, "--vocab", "t5", "--json", "--stage", "tokens", "What")
    assert list(json.loads(out)) == ["tokens"]


def test_one_stage_and_all_of_its_lines(capsys):
    text = "word " * 200
    _, out, _ = run(capsys, "--vocab", "gpt-2", "--stage", "tokens", text)
    assert "… and 101 more" in out
    _, out, _ = run(capsys, "--vocab", "gpt-2", "--stage", "tokens", "--all", text)
    assert len(out.splitlines()) == 202


def test_gdb_prints_breakpoints_and_what_to_expect(capsys):
    status, out, _ = run(capsys, "--vocab", "gpt-2", "--gdb", "it's")
    assert status == 0
    assert "llama-tokenize" in out
    assert "llm_tokenizer_bpe_session::tokenize" in out
    assert out.endswith("# expected ids: 270 338\n")


def test_text_comes_from_standard_input_or_a_file(capsys, monkeypatch, tmp_path):
    (tmp_path / "text").write_bytes(b"\xffHi")
    _, out, _ = run(capsys, "--vocab", "mistral", "--file", str(tmp_path / "text"), "--stage", "tokens")
    assert "<0xFF>" in out or "⟨FF⟩" in out or "\\xff" in out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Hi")))
    _, out, _ = run(capsys, "--vocab", "mistral", "--stage", "tokens")
    assert "Hi" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ("--vocab", "nowhere", "a"),
        ("--vocab", "t5", "a", "--file", "b"),
        ("--vocab", "t5", "a", "--gdb", "--json"),
        ("--vocab", "t5", "a", "--stage", "merge"),
    ],
)
def test_wrong_use_is_one_line_and_status_2(capsys, arguments):
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
