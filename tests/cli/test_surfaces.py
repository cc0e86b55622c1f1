"""Every command reads the same kinds, half a file is an error, and what is taken for another kind is refused."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import jittok
from jittok.cli import main

pytest.importorskip("pyarrow")
pytest.importorskip("orjson")
zstandard = pytest.importorskip("zstandard")

TEXTS = ["hi ab", "", "ab hi ab"]
ROWS = "".join(json.dumps({"text": text, "n": 1}) + "\n" for text in TEXTS).encode()


@pytest.fixture
def run(capfdbinary: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    def go(*arguments: object, stdin: bytes | None = b"") -> tuple[int, str, str]:
        given = None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin))
        monkeypatch.setattr("sys.stdin", given)
        try:
            status = main([*map(str, arguments), "--vocab", "gpt-2"])
        except SystemExit as leave:
            status = leave.code if isinstance(leave.code, int) else 1
        out, err = capfdbinary.readouterr()
        assert err.count(b"\n") <= 1
        return status, out.decode(), err.decode()

    return go


def _write(folder: Path) -> dict[str, Path]:
    """The same three documents in every kind that has several."""
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    table = pa.table({"n": [1, 2, 3], "text": TEXTS})
    paths = {
        name: folder / f"a.{name}"
        for name in ("jsonl", "ndjson", "jsonl.zst", "jsonl.gz", "parquet", "arrow", "feather")
    }
    for name in ("jsonl", "ndjson"):
        paths[name].write_bytes(ROWS)
    paths["jsonl.zst"].write_bytes(zstandard.compress(ROWS))
    paths["jsonl.gz"].write_bytes(__import__("gzip").compress(ROWS))
    pyarrow.parquet.write_table(table, paths["parquet"])
    with pa.OSFile(str(paths["arrow"]), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    pyarrow.feather.write_feather(table, str(paths["feather"]))
    return paths


def test_every_command_reads_every_kind(run: Any, tmp_path: Path) -> None:
    tok = jittok.bundled("gpt-2")
    expected = [tok.encode(text).tolist() for text in TEXTS]
    for name, path in _write(tmp_path).items():
        status, out, err = run("encode", "--ids", path)
        assert (status, err) == (0, ""), name
        assert [json.loads(line) for line in out.splitlines()] == expected, name
        assert run("count", "--each", path)[1].split() == [str(len(row)) for row in expected], name
        assert run("count", path)[1] == f"{sum(map(len, expected))}\n", name
        status, out, err = run("trace", "--json", "--stage", "tokens", "--document", "3", "-f", path)
        assert (status, err) == (0, ""), name
        assert [row["id"] for row in json.loads(out)["tokens"]] == expected[2], name
        assert run("trace", "-f", path)[2].endswith("several documents, expected one; --document 1 takes the first\n")
        assert run("corpus", path, "--out", tmp_path / f"out-{name}", "--json")[0] == 0
        assert jittok.corpus.open(tmp_path / f"out-{name}").to_token_array().to_list() == expected, name


def test_a_folder_and_a_glob_are_read_as_the_compiler_does(run: Any, tmp_path: Path) -> None:
    paths = _write(tmp_path)
    (tmp_path / "b.exe").write_bytes(b"x")
    count = int(run("count", paths["jsonl"])[1])
    status, out, err = run("count", "--json", tmp_path)
    assert status == 0
    assert json.loads(out)["tokens"] == count * len(paths)
    assert err == f"left out, of a kind that is not read: {tmp_path / 'b.exe'}\n"
    assert json.loads(run("count", "--json", f"{tmp_path}/*.json*")[1])["tokens"] == 3 * count


@pytest.mark.parametrize("kind", ["txt", "jsonl"])
@pytest.mark.parametrize("packing", ["zst", "gz", "bz2", "xz"])
@pytest.mark.parametrize("command", ["count", "encode", "trace", "decode", "corpus"])
def test_half_a_packed_file_is_an_error_of_every_command(
    run: Any, tmp_path: Path, command: str, packing: str, kind: str
) -> None:
    pack = {"zst": zstandard.compress, "gz": "gzip", "bz2": "bz2", "xz": "lzma"}[packing]
    empty = tmp_path / f"empty.{kind}.{packing}"
    empty.touch()
    more: list[Any] = {"trace": ["-f"], "corpus": ["--out", tmp_path / "out"]}.get(command, [])
    assert f"{empty}: found 'an empty file', expected whole .{packing} data" in run(command, *more, empty)[2]
    whole = (pack if callable(pack) else __import__(str(pack)).compress)(os.urandom(99).hex().encode() * 3)
    path = tmp_path / f"a.{kind}.{packing}"
    path.write_bytes(whole[: len(whole) // 2])
    status, out, err = run(command, *more, path)
    assert (status, out) == (2, "")
    assert f"{path}: found " in err
    assert f"expected whole .{packing} data" in err


LOOKS = {
    b'{"text": "hi"}\n{"text": "ab"}\n': ("JSON Lines", "--input-format jsonl"),
    b'\xef\xbb\xbf\n {"content": "hi"}': ("JSON Lines", "--input-format jsonl"),
    b'{"text": "' + b"a" * (1 << 17) + b'"}\n': ("JSON Lines", "--input-format jsonl"),
    zstandard.compress(b"hi"): ("zstandard data", "zstdcat"),
    b"\x1f\x8b\x08rest": ("gzip data", "zcat"),
    b"PAR1\x15\x04": ("a Parquet file", ".parquet"),
    b"ARROW1\0\0": ("an Arrow file", ".arrow"),
    b"GGUF\x03\0\0\0": ("a GGUF file", "--vocab"),
    b'\n[\n  {"text": "hi"},\n': ("a JSON array of objects", "jq -c"),
    b"\x7fELF\x02\x01\0\0": ("binary data (NUL bytes)", "--input-format txt"),
    "hi".encode("utf-16"): ("text in UTF-16", "iconv"),
}


@pytest.mark.parametrize("stdin", LOOKS, ids=[name for name, _ in LOOKS.values()])
def test_standard_input_that_looks_like_another_kind_is_refused(run: Any, tmp_path: Path, stdin: bytes) -> None:
    found, right = LOOKS[stdin]
    commands = [["count"], ["encode"], ["count", "--lines"], ["trace"], ["corpus", "-", "--out", tmp_path / "out"]]
    for command in commands:
        status, out, err = run(*command, stdin=stdin)
        assert (status, out) == (2, "")
        assert f"-: found '{found}', expected plain text" in err
        assert right in err
        assert not (tmp_path / "out").exists()
    path = tmp_path / "without_ending"
    path.write_bytes(stdin)
    assert f"{path}: found '{found}'" in run("count", path)[2]


def test_whoever_says_the_kind_is_believed(run: Any, tmp_path: Path) -> None:
    assert run("count", "--input-format", "txt", stdin=ROWS)[1] == f"{jittok.bundled('gpt-2').count(ROWS)}\n"
    for option in (["--jsonl"], ["--input-format", "jsonl"]):
        assert run("count", "--each", *option, stdin=ROWS)[1].split() == ["2", "0", "3"]
    out = tmp_path / "out"
    assert run("corpus", "-", "--input-format", "jsonl", "--out", out, stdin=ROWS)[0] == 0
    assert len(jittok.corpus.open(out)) == 3
    for text in (b"{", b"{}", b'{"a"', b'{"a": }\n', b"{text}\n", b"[1]\n", b"\x1f", b"BZ", b"", b"{\n"):
        status, _, err = run("count", stdin=text)
        assert (status, err) == (0, ""), text


def test_texts_need_not_be_utf8_and_are_what_the_tokenizer_gives(run: Any, tmp_path: Path) -> None:
    tok, text = jittok.bundled("gpt-2"), b"caf\xe9 \xff\n\xe9"
    (tmp_path / "a.txt").write_bytes(text)
    assert json.loads(run("encode", "--ids", tmp_path / "a.txt")[1]) == tok.encode(text).tolist()
    lines = [tok.encode(line).tolist() for line in text.split(b"\n")]
    assert [json.loads(line) for line in run("encode", "--ids", "--lines", stdin=text)[1].splitlines()] == lines


def test_a_pipe_has_a_name_and_is_read(tmp_path: Path, run: Any) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(b"hi\nab\n"))
    writer.start()
    assert run("count", "--each", "--lines", path)[1] == "1\n1\n"
    writer.join()


def test_errors_name_file_and_line(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(ROWS + b'{"body": "x"}\n')
    for errors in ("strict", "replace"):  # there is nothing to put in its place
        status, _, err = run("count", "--errors", errors, path)
        assert status == 2
        assert f"{path}, line 4: found 'fields body', expected a text in 'text' (--field)" in err
    path.write_bytes(b'{"text": "x\\ud800"}\n')
    assert run("count", path)[0] == 2
    assert run("encode", "--ids", "--errors", "replace", path)[1].startswith("[87")


def test_without_orjson_the_same_lines_are_taken_and_refused(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [b'{"text": "\\u00e9"}', b'{"text": NaN}', b'{"text": "\\ud800"}', b'{"text": "\xff"}', b'{"text": 1e999}']
    lines += [
        b'{"text": "a", "n": Infinity}',
        b'{"text": "a", "b": "\\ud800"}',
        b"[",
        b'{"text": "a"} x',
        b'{"text": "\n',
    ]
    status = []
    for _ in range(2):
        for line in lines:
            (tmp_path / "a.jsonl").write_bytes(line)
            status.append(run("count", tmp_path / "a.jsonl")[0])
        monkeypatch.setitem(sys.modules, "orjson", None)
    assert status[: len(lines)] == status[len(lines) :] == [0, *[2] * (len(lines) - 1)]


# ---- the compiler


@pytest.mark.parametrize("on_error", ["skip", "replace"])
@pytest.mark.parametrize("count", [1, 3000])
def test_a_wrong_field_is_an_error_of_the_run(run: Any, tmp_path: Path, on_error: str, count: int) -> None:
    path, out = tmp_path / "a.jsonl", tmp_path / "out"
    path.write_bytes(b'{"text": "hi"}\n' * count)
    for more in ([], ["--dry-run"]):
        status, said, err = run("corpus", path, "--field", "txet", "--out", out, "--on-error", on_error, *more)
        assert (status, said) == (2, "")
        assert f"{path}" in err
        assert "found 'no text in any" in err
        assert "fields text" in err
        assert "expected a text in 'txet' (--field)" in err
        assert not (out / "manifest.json").exists()
    assert run("corpus", path, "--out", out, "--on-error", on_error)[0] == 0  # nothing was read: it may begin anew
    assert len(jittok.corpus.open(out)) == count


def test_a_field_that_few_documents_have_is_an_error_of_each_other_one(run: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"body": "x"}\n')
    (tmp_path / "b.jsonl").write_bytes(b'{"text": "hi"}\n')
    status, out, _ = run("corpus", tmp_path, "--out", tmp_path / "out", "--on-error", "skip", "--json")
    assert status == 0
    told = json.loads(out)
    assert (told["documents"], told["bad_documents"]) == (1, 1)


def test_object_storage_is_refused_as_output(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"hi")
    for more in ([], ["--dry-run"]):
        status, _, err = run("corpus", "a.txt", "--out", "s3://bucket/x", *more)
        assert status == 2
        assert "found 's3://bucket/x', expected a folder of this machine" in err
    assert "expected a folder of this machine" in run("encode", "-o", "s3://bucket/x", "a.txt")[2]
    with pytest.raises(jittok.CorpusError, match="a folder of this machine"):
        jittok.corpus.compile_corpus(["a.txt"], jittok.bundled("gpt-2"), "s3://bucket/x")
    with pytest.raises(ValueError, match="a folder of this machine"):
        jittok.bundled("gpt-2").encode_batch(["a"]).save("s3://bucket/x")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_folder_that_may_not_be_read_is_an_error(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data" / "closed").mkdir(parents=True)
    (tmp_path / "data" / "a.txt").write_bytes(b"hi")
    scandir = os.scandir

    def refusing(path: Any) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    for command in (["count"], ["corpus", "--out", tmp_path / "out"]):
        status, _, err = run(*command, tmp_path / "data")
        assert status == 2
        assert err.endswith("closed: Permission denied\n")


# ---- messages

MESSAGES = [
    (["corpus", "typo/", "--out", "out"], "typo/: found 'nothing of this name', expected a file, a directory"),
    (["count", "typo.txt"], "typo.txt: found 'nothing of this name'"),
    (
        ["count", "--vocab", "tokenizer.json"],
        "file: found \"JSON with 'version'\", expected a GGUF file, tokenizer.json",
    ),
    (["count", "--vocab", "."], "tokenizer.json: file: found"),
    (["count", "--vocab", "empty"], "empty: magic: found b'', expected the bytes 'GGUF'"),
    (["count", "--vocab", "half.gguf"], "half.gguf: header (byte 4): found"),
    (["encode", "-o", "a.txt/ids", "-p", "x"], "a.txt"),
    (["corpus", "a.txt", "--out", "a.txt"], "a.txt: found 'a file', expected a folder"),
]


@pytest.mark.parametrize(("arguments", "says"), MESSAGES, ids=[" ".join(arguments) for arguments, _ in MESSAGES])
def test_a_message_says_what_was_found_and_what_would_be_right(
    capfd: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "tokenizer.json": '{"version": "1.0"}',
        "empty": "",
        "half.gguf": "GGUF",
        "a.txt": "x",
    }.items():
        (tmp_path / name).write_text(content)
    vocab = [] if "--vocab" in arguments else ["--vocab", "gpt-2"]
    assert main([*arguments, *vocab]) == 2
    err = capfd.readouterr().err
    assert says in err
    assert err.count("\n") == 1


def test_a_place_that_cannot_be_written_is_named_itself(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = Path.mkdir

    def refusing(path: Path, *given: Any, **options: Any) -> None:
        if path.name.startswith("."):
            raise PermissionError(13, "Permission denied", str(path))
        mkdir(path, *given, **options)

    monkeypatch.setattr(Path, "mkdir", refusing)
    assert (
        run("encode", "-o", tmp_path / "out", "-p", "hi")[2]
        == f"jittok encode: {tmp_path / 'out'}: Permission denied\n"
    )
    with pytest.raises(PermissionError, match=r"Permission denied: '[^.]*/out'"):
        jittok.bundled("gpt-2").encode_batch(["a"]).save(tmp_path / "out")


@pytest.mark.parametrize(
    ("module", "arguments"),
    [("filelock", []), ("pyarrow", []), ("fsspec", ["s3://bucket/*.txt"]), ("ray", ["--engine", "ray"])],
)
def test_a_missing_extra_is_named(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, arguments: list[str]
) -> None:
    (tmp_path / "a.txt").write_bytes(b"hi")
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, module, None)
    status, _, err = run("corpus", tmp_path / "a.txt", *arguments, "--out", tmp_path / "out")
    assert status == 2
    assert "needs" in err
    assert "pip install '.[" in err
    assert "in a checkout of jittok" in err


def test_closed_standard_input_is_told(run: Any) -> None:
    for command in ("count", "encode", "trace", "decode"):
        status, _, err = run(command, stdin=None)
        assert status == 2
        assert "standard input that is closed" in err


# ---- streams, as a shell gives them

CHILD = [sys.executable, "-m", "jittok"]


def shell(command: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command.replace("jittok", f"{sys.executable} -m jittok")],
        capture_output=True, text=True, check=False, timeout=100, **more,
    )  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "status", "says"),
    [
        ("jittok count --vocab gpt-2 -p hi >&-", 2, "standard output is closed"),
        ("jittok info --vocab gpt-2 >/dev/full", 2, "standard output: No space left on device"),
        ("jittok encode --vocab gpt-2 -p hi >/dev/full", 2, "standard output: No space left on device"),
        ("jittok --help >/dev/full", 2, "standard output: No space left on device"),
        ("jittok --help | true", 0, ""),
        ("jittok count --vocab gpt-2 <&-", 2, "standard input that is closed"),
        ("jittok count --vocab nobody -p hi 2>&-", 2, ""),
        ("touch x.exe a.txt; jittok count --vocab gpt-2 . 2>&-", 0, ""),
        ("jittok encode --vocab gpt-2 -p hi 2>/dev/full", 0, ""),
    ],
)
def test_streams_that_are_closed_or_full(tmp_path: Path, command: str, status: int, says: str) -> None:
    done = shell(f"set -o pipefail; {command}", cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert says in done.stderr
    assert done.stderr.count("\n") == bool(says)


@pytest.mark.process
def test_the_first_ids_of_a_long_document_come_before_the_last(tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("The quick brown fox jumps over the lazy dog. " * 200_000)
    for option in ("", "--ids", "--json"):
        script = f"jittok encode --vocab gpt-2 {option} {path} 2>&1 | head -c 20; times"
        done = shell(script)
        assert done.stdout[:20].strip(), done
        user = done.stdout.splitlines()[-1].split()[0]
        assert user.startswith("0m")
        assert float(user[2:-1]) < 5, "all 9 MB were printed"


def test_a_long_document_is_printed_as_it_is_encoded(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tok, path = jittok.bundled("gpt-2"), tmp_path / "long.txt"
    text = "The quick brown fox <|endoftext|> jumps\nover <|endoftext|>it. " * 3000
    path.write_text(text)
    plain = run("encode", path)[1]
    monkeypatch.setattr("jittok.cli.encode.LONG", 1000)
    monkeypatch.setattr("jittok.cli.encode.AT_ONCE", 100)
    monkeypatch.setattr("jittok.encode.batch.PART", 10_000)
    assert run("encode", path)[1] == plain
    for option in ("--ids", "--json"):
        ids = json.loads(run("encode", option, "--parse-special", "--add-special", path)[1])
        ids = ids["ids"] if option == "--json" else ids
        assert ids == tok.encode(text, parse_special=True, add_special=True).tolist()
    parts = list(tok.encode_parts(text, parse_special=True))
    assert len(parts) > 10
    assert [token for part in parts for token in part.tolist()] == tok.encode(text, parse_special=True).tolist()


INTERRUPTED = """
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from jittok.__main__ import run
sys.argv[1:] = ["count", "--vocab", "gpt-2", "-p", "hi"]
raise SystemExit(run())
"""


@pytest.mark.process
def test_ctrl_c_is_one_line_also_while_modules_are_imported() -> None:
    for module in (
        "argparse",
        "jittok.cli",
        "jittok.cli.encode",
        "jittok.loading",
        "numpy",
        "jittok.encode.batch",
        "jittok.corpus",
    ):
        done = subprocess.run(
            [sys.executable, "-c", INTERRUPTED.replace("MODULE", repr(module))],
            capture_output=True, text=True, check=False, timeout=100,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (130, ""), (module, done.stderr)
        assert done.stderr in ("jittok: interrupted\n", "jittok count: interrupted\n"), module


@pytest.mark.process
def test_compiling_is_told_on_a_terminal_and_leaves_a_clean_answer() -> None:
    import pty

    master, slave = pty.openpty()
    code = (
        "import sys; sys.argv[1:] = ['encode', '--vocab', 'gpt-2', '-p', 'Hello, world']\n"
        "from jittok import _jit, cli\n"
        "def told(*_):\n    for tell in _jit.on_compile: tell(True); tell(False)\n    return 0\n"
        "cli.encode.run, run = (lambda options: told() or run(options)), cli.encode.run\n"
    )
    script = "import jittok.cli.encode, jittok.cli\n" + code + "raise SystemExit(cli.main())"
    child = subprocess.Popen([sys.executable, "-c", script], stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    try:
        while piece := os.read(master, 4096):
            shown += piece
    except OSError:  # the terminal is gone with the child
        pass
    assert child.wait(60) == 0
    os.close(master)
    assert b"compiling kernels for this machine, once ..." in shown
    rows = [line.rsplit(b"\r", 1)[-1] for line in shown.replace(b"\r\n", b"\n").split(b"\n")[:-1]]
    assert rows == [b" 15496 -> 'Hello'", b"    11 -> ','", b"   995 -> ' world'"]
