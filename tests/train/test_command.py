"""`jittok train` as a command."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import jittok
from jittok.cli import main
from jittok.corpus.options import Options as Reading
from jittok.kernels.jit import JIT
from jittok.train.counting.count import How
from jittok.train.counting.files import count_files

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not JIT, reason="encodes whole files")


def run(capsys: Any, *arguments: object) -> dict[str, Any]:
    assert main(["train", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_readme_becomes_a_vocabulary_that_encodes_it(tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "x.gguf"
    assert main(["train", str(ROOT / "README.md"), "--size", "300", "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert "300 tokens, 44 merges" in said.out
    assert main(["encode", "--vocab", str(out), "--ids", str(ROOT / "README.md")]) == 0
    ids = json.loads(capsys.readouterr().out)
    tok = jittok.load(out)
    assert tok.decode(ids) == (ROOT / "README.md").read_text("utf-8")


def test_the_same_file_with_any_threads_memory_and_order(tmp_path: Path, capsys: Any) -> None:
    files = sorted((ROOT / "jittok" / "reference").glob("*.py"))
    outs = [tmp_path / f"{k}.gguf" for k in range(3)]
    common = ["--input-format", "txt", "--size", 800, "--special", "<|endoftext|>"]
    run(capsys, *files, *common, "--threads", 1, "--out", outs[0])
    run(capsys, *files[::-1], *common, "--threads", 2, "--memory", "1M", "--out", outs[1])
    found = run(capsys, ROOT / "jittok" / "reference" / "*.py", *common, "--work", tmp_path / "work", "--out", outs[2])
    assert outs[0].read_bytes() == outs[1].read_bytes() == outs[2].read_bytes()
    assert not (tmp_path / "work").exists()
    assert found["vocabularies"][0]["merges"] == 800 - 257


def test_sizes_words_and_trace(tmp_path: Path, capsys: Any) -> None:
    words, out, trace = tmp_path / "words.tsv", tmp_path / "v.gguf", tmp_path / "trace.jsonl"
    assert run(capsys, ROOT / "README.md", "--save-words", words)["documents"] == 1
    found = run(capsys, "--words", words, "--words", words, "--sizes", "300,500", "--out", out, "--trace", trace)
    assert [vocab["size"] for vocab in found["vocabularies"]] == [300, 500]
    small, large = (jittok.read_vocab(tmp_path / f"v-{size}.gguf") for size in (300, 500))
    assert large.tokens[:300] == small.tokens
    rows = [json.loads(line) for line in trace.read_text("utf-8").splitlines()]
    assert len(rows) == 244
    assert all(a["count"] >= b["count"] for a, b in pairwise(rows))
    assert found["vocabularies"][1]["bytes_per_token"] == rows[-1]["bytes_per_token"]


def test_other_models_and_changed_vocabularies(tmp_path: Path, capsys: Any) -> None:
    readme, out = ROOT / "README.md", tmp_path / "x.gguf"
    kinds = {"spm": 500, "unigram": 300, "wordpiece": 400}
    for model, size in kinds.items():
        found = run(capsys, readme, "--model", model, "--size", size, "--out", out, "--overwrite")
        assert found["vocabularies"][0]["size"] == size
        assert jittok.load(out).type == {"spm": "spm", "unigram": "ugm", "wordpiece": "wpm"}[model]
    found = run(capsys, readme, "--extend", "gpt-2", "--size", 20, "--out", out, "--overwrite")["vocabularies"][0]
    assert (found["size"], found["new"], found["gone"]) == (50_277, 20, 0)
    few, more = tmp_path / "few.txt", tmp_path / "z.gguf"
    few.write_text("the the")
    assert main(["train", str(few), "--extend", "gpt-2", "--size", "5", "--out", str(more)]) == 0
    assert "0 of 5 new tokens: no pair is left to merge" in capsys.readouterr().err
    pruned = run(capsys, readme, "--prune", out, "--out", tmp_path / "y.gguf")["vocabularies"][0]
    assert pruned["size"] == jittok.load(tmp_path / "y.gguf").vocab_size < 3000
    assert pruned["gone"] == 50_277 - pruned["size"]


def test_tokens_over_spaces_and_maps_of_characters(tmp_path: Path, capsys: Any) -> None:
    out, common = tmp_path / "x.gguf", [ROOT / "README.md", ROOT / "docs" / "train.md", "--size", 700]
    run(capsys, *common, "--superbpe", 500, "--out", out, "--work", tmp_path / "work")
    tok = jittok.load(out)
    assert tok.vocab.pre == "superbpe"
    assert any(b" " in tok.decode_bytes([token]).strip() for token in range(500, 700))
    assert not (tmp_path / "work").exists()
    assert main(["train", "--words", "x", "--size", "700", "--superbpe", "500", "--out", "y.gguf"]) == 2
    assert "counts sequences of words in the documents" in capsys.readouterr().err
    pytest.importorskip("sentencepiece")
    pytest.importorskip("google.protobuf")
    unigram = ["--model", "unigram", "--normalization", "nmt_nfkc", "--slices", 2]
    found = run(capsys, *common, *unigram, "--out", out, "--overwrite")
    assert found["vocabularies"][0]["size"] == 700
    assert jittok.load(out).encode("\uff21").tolist() == jittok.load(out).encode("A").tolist()


@pytest.mark.parametrize("name", ["-", "data.log"])
def test_json_lines_are_not_learned_as_text_without_being_told(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    raw = b'{"text": "a b"}\n{"text": "c"}\n'
    monkeypatch.chdir(tmp_path)
    Path("data.log").write_bytes(raw)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    with pytest.raises(jittok.CorpusError, match=f"{name}: found JSON Lines, expected plain text; kind='jsonl'"):
        count_files([name], How())
    words = count_files([name], How(), Reading(kind="jsonl"))
    assert words.documents == 2


@pytest.mark.process
@pytest.mark.parametrize("documents", [60, 1])
def test_after_a_kill_the_same_command_goes_on_and_writes_the_same_file(
    tmp_path: Path, capsys: Any, documents: int
) -> None:
    data, work, out = tmp_path / "data", tmp_path / "work", tmp_path / "x.gguf"
    data.mkdir()
    draw = random.Random(5)
    letters = str.maketrans("0123456789", "ghijklmnop")
    words = [" ".join(f"{draw.getrandbits(40):x}".translate(letters) for _ in range(12_000)) for _ in range(60)]
    for k, text in enumerate(words if documents > 1 else []):
        (data / f"{k:02d}.jsonl").write_text(json.dumps({"text": text}) + "\n")
    if documents == 1:  # it goes on inside of it
        (data / "one.txt").write_text(" ".join(words))
    common = [data, "--size", 600, "--threads", 1]
    run(capsys, *common, "--out", tmp_path / "plain.gguf")
    command = [*map(str, common), "--memory", "1M", "--work", str(work), "--out", str(out)]
    for runs in (2, draw.randrange(6, 12)):
        started = subprocess.Popen([sys.executable, "-m", "jittok", "train", *command], stderr=subprocess.DEVNULL)
        while len(list(work.glob("run-*.words"))) < runs and started.poll() is None:
            time.sleep(0.002)
        started.kill()
        started.wait()
        kept = len(list(work.glob("run-*.words")))
        assert runs <= kept < 60
        assert not out.exists()
    assert main(["train", *command]) == 0
    assert out.read_bytes() == (tmp_path / "plain.gguf").read_bytes()
    assert not work.exists()


KILLED = """
import os, signal, sys
from jittok.cli import main
from jittok.train.counting.ledger import Ledger
from jittok.train.counting import files

files.RANGES_OF_MEMORY, files.LEAST_RANGE, files.KEEP_EVERY = 1 << 9, 1 << 11, 1 << 11
left, add = int(sys.argv[1]), Ledger.add

def killed(self, fact, sync=False):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    add(self, fact, sync=sync)

Ledger.add = killed
sys.exit(main(sys.argv[2:]))
"""
"""Trains; is killed after a run is written, before the ledger is told of it."""


@pytest.mark.process
@pytest.mark.parametrize(
    ("given", "kills"),
    [
        ("--size 400 --superbpe 330", (4, 24)),
        ("--sizes 300,400 --weight *0*=0.3 --by documents", (3,)),
        ("--model spm --size 400", (2, 7)),
        ("--model unigram --size 300 --weight *1*=7", (5,)),
        ("--model wordpiece --size 300", (7,)),
    ],
)
def test_training_of_any_kind_goes_on_after_kills(given: str, kills: tuple[int, ...], tmp_path: Path) -> None:
    draw = random.Random(given)
    for k in range(4):
        words = [
            "".join(draw.choices("abcdefghé", k=draw.randint(1, 7))) + draw.choice(["", "\n"]) for _ in range(3000)
        ]
        (tmp_path / f"{k}.txt").write_text(" ".join(words))
    work = tmp_path / "work"
    common = ["train", *(str(tmp_path / f"{k}.txt") for k in range(4)), *given.split()]
    assert main([*common, "--out", str(tmp_path / "plain.gguf"), "--threads", "2"]) == 0
    again = [*common, "--memory", "1M", "--work", str(work), "--out", str(tmp_path / "x.gguf")]
    for at in (*kills, 0):
        command = [sys.executable, "-c", KILLED, str(at), *again, "--threads", "1"]
        ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        assert ended.returncode == (-9 if at else 0), ended.stderr
    plain = sorted(tmp_path.glob("plain*.gguf"))
    assert len(plain) == (2 if "sizes" in given else 1)
    for path in plain:
        assert path.with_name(path.name.replace("plain", "x")).read_bytes() == path.read_bytes()
    assert not work.exists()


def test_explained_and_held_out(capsys: Any) -> None:
    given = ["--size", 500, "--explain", " the", "--held-out", ROOT / "DESIGN.md"]
    found = run(capsys, ROOT / "README.md", *given)
    assert found["explained"][0]["token"] == "Ġthe"
    assert found["held_out"]["500"] > found["held_out"]["300"]


def test_held_out_texts_are_read_as_the_documents_are(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("to be or not to be " * 30)
    rows = [json.dumps({"body": "to be or not"}), json.dumps({"body": " to be"})]
    Path("b.jsonl").write_text("\n".join(rows))
    Path("b.txt").write_text("to be or not to be")
    given = ["a.txt", "--size", 270, "--held-out"]
    names = ["b.jsonl", "--field", "body"], ["b.txt"]
    found = [run(capsys, *given, *name)["held_out"] for name in names]
    assert found[0] == found[1]
    run(capsys, "a.txt", "--save-words", "a.words")
    assert run(capsys, "--words", "a.words", *given[1:], *names[0])["held_out"] == found[0]
    Path("empty.txt").write_text("")
    for name, said in (("b.jsonl", "b.jsonl, line 1: found"), ("empty.txt", "--held-out: found no text")):
        assert main(["train", "a.txt", "--size", "270", "--held-out", name]) == 2
        assert said in capsys.readouterr().err


def test_each_of_several_sizes_is_of_the_kind_that_was_named(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("to be or not to be " * 30)
    run(capsys, "a.txt", "--sizes", "257,258", "--out", "my-vocab.json")
    names = {f"my-{size}-{end}" for size in (257, 258) for end in ("vocab.json", "merges.txt")}
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", *names}
    assert len(json.loads(Path("my-258-vocab.json").read_text())) == 258


def test_a_training_that_nobody_would_see_is_refused_before_it_begins(capsys: Any) -> None:
    assert main(["train", str(ROOT / "README.md"), "--size", "300"]) == 2
    assert "found no output, expected --out FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--size", "300"], "found none, expected files"),
        (["nowhere.txt", "--size", "300"], "no such file or directory"),
        (["README.md"], "expected --size N"),
        (["README.md", "--size", "300", "--sizes", "300"], "found --size and --sizes"),
        (["README.md", "--size", "10"], "found 10, expected 256 or more"),
        (["README.md", "--size", "300", "--pre", "x"], "jittok train: --pre: found 'x', expected one of"),
        (
            ["README.md", "--size", "300", "--eos", "x"],
            "--eos: found 'x', expected a special token: none is given (--special)",
        ),
        (["README.md", "--size", "300", "--min-frequency", "-1"], "jittok train: --min-frequency: found -1"),
        (["README.md", "--size", "10", "--extend", "bert"], "found 'bert', expected a vocabulary of byte-level BPE"),
        (["README.md", "--size", "300", "--memory", "1"], "1048576 bytes or more"),
        (["README.md", "--size", "300", "--out", "x.bin"], "a name that ends in one of"),
    ],
)
def test_wrong_use_is_told_in_one_line(arguments: list[str], said: str, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["train", "--held-out", "README.md", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sizes", "300,x"], "--sizes: found 'x', expected an integer, 1 or more"),
        (["--weight", "x"], "--weight: found 'x', expected GLOB=X"),
        (["--weight", "a=x"], "--weight: found 'a=x', expected GLOB=X"),
    ],
)
def test_a_list_that_is_none_is_told_with_its_option(arguments: list[str], said: str, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(["train", "README.md", *arguments])
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--size", "300", "--normalization", "nfkc"], "found --normalization and --model bpe"),
        (["--model", "spm", "--size", "300", "--trace", "t"], "found --trace and --model spm"),
        (["--model", "spm", "--size", "300", "--pre", "gpt-2"], "found --pre and --model spm"),
        (["--model", "wordpiece", "--size", "300", "--superbpe", "270"], "found --superbpe and --model wordpiece"),
        (["--extend", "gpt-2", "--sizes", "1,2"], "found --sizes and --extend"),
        (["--prune", "gpt-2", "--size", "300"], "found --size and --prune"),
        (["--size", "300", "--pre", "gpt-2", "--pre-regex", "a"], "found --pre-regex and --pre"),
        (["--save-words", "w"], "found --out without --size"),
        (["--size", "300", "--weight", "*=0"], "found no words in 1 documents"),
        (["--size", "300", "--sample", "1e-9"], "found no words in 0 documents"),
        (["--size", "300", "--model", "spm", "--lines"], "1 lines of more than 4,192 bytes are left out"),
        (["-", "--size", "300", "--superbpe", "270"], "found a stream and --superbpe"),
    ],
)
def test_what_would_do_nothing_is_refused(
    arguments: list[str], said: str, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("to be " * 1_000)
    assert main(["train", *(["a.txt"] if arguments[0] != "-" else []), *arguments, "--out", "x.gguf"]) == 2
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt"]


def test_counted_words_are_taken_for_what_they_are(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("to be <s> or not\n" * 9)
    jittok.train(["to be"], 260, special=["<s>"], eos="<s>").save("own.json")
    run(capsys, "a.txt", "--save-words", "plain.words")
    run(capsys, "a.txt", "--save-words", "own.words", "--pre", "own.json")
    run(capsys, "a.txt", "--save-words", "wp.words", "--model", "wordpiece")
    ours = ["--size", "270", "--out", "x.json", "--overwrite"]
    wrong = {
        ("--words", "plain.words", "--by", "documents"): "found --by and --words",
        ("--words", "plain.words", "--weight", "a=2"): "found --weight and --words",
        ("--words", "plain.words", "--pre", "gpt-2"): "found words split by qwen2, expected gpt-2",
        ("--words", "plain.words", "--like", "hf"): "expected --like hf",
        ("--words", "plain.words", "--model", "unigram"): "found words split by qwen2",
        ("--words", "wp.words"): "found words split by runs:",
    }
    for arguments, said in wrong.items():
        assert main(["train", *arguments, *ours]) == 2
        assert said in capsys.readouterr().err
    run(capsys, "--words", "own.words", "--pre", "own.json", *ours)
    assert main(["train", "--words", "plain.words", "--special", "<s>", *ours]) == 0
    assert "use the same --special when counting" in capsys.readouterr().err
    Path("hand.words").write_text("3\tto\n2\tbe\n")
    run(capsys, "--words", "hand.words", *ours, "--like", "hf")
    Path("strange.words").write_text('#jittok words 1 {"pre": "nope"}\n3\tto\n')
    assert main(["train", "--words", "strange.words", *ours]) == 2
    assert "'nope'" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
@pytest.mark.parametrize("name", ["pipe", "pipe.jsonl"])
@pytest.mark.parametrize("more", [[], ["--on-error", "skip"], ["--model", "unigram"]])
def test_a_pipe_with_a_name_is_read_once_as_standard_input_is(
    name: str, more: list[str], tmp_path: Path, capsys: Any
) -> None:
    text = "to be or not to be, \u2581that is the question\n" * 3000
    text = "".join(f"{json.dumps({'text': line})}\n" for line in text.splitlines()) if "json" in name else text
    file, pipe = tmp_path / f"whole-{name}", tmp_path / name
    file.write_text(text)
    os.mkfifo(pipe)
    outs = [tmp_path / "a.gguf", tmp_path / "b.gguf"]
    common = ["--size", "40" if "unigram" in more else "270", *more]
    wanted = run(capsys, file, *common, "--out", outs[0])
    writer = threading.Thread(target=pipe.write_text, args=(text,), daemon=True)
    writer.start()
    found = run(capsys, pipe, *common, "--out", outs[1])
    writer.join(60)
    assert [found[key] for key in ("documents", "bytes", "words")] == [
        wanted[key] for key in ("documents", "bytes", "words")
    ]
    assert outs[0].read_bytes() == outs[1].read_bytes()
    for option in ("--work", "--superbpe"):
        beside = [option, str(tmp_path / "work") if option == "--work" else "265"]
        if option == "--superbpe" and "unigram" in more:
            continue
        assert main(["train", str(pipe), *common, *beside, "--out", str(tmp_path / "c.gguf")]) == 2
        assert "stream" in capsys.readouterr().err
