"""Every command reads the same kinds, half a file is an error, and what is taken for another kind is refused."""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import jittok
from jittok.errors import CorpusError
from jittok.train.counting.splitters import named_pre

pytest.importorskip("pyarrow")
pytest.importorskip("orjson")
zstandard = pytest.importorskip("zstandard")

TEXTS = ["hi ab", "", "ab hi ab"]
ROWS = "".join(json.dumps({"text": text, "n": 1}) + "\n" for text in TEXTS).encode()


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
        assert run("trace", "-f", path)[2].endswith(
            "several documents, expected one (--document 1 selects the first)\n"
        )
        assert run("corpus", path, "--out", tmp_path / f"out-{name}", "--json")[0] == 0
        assert jittok.corpus.open(tmp_path / f"out-{name}").to_token_array().to_list() == expected, name


def test_a_folder_and_a_glob_are_read_as_the_compiler_does(run: Any, tmp_path: Path) -> None:
    paths = _write(tmp_path)
    (tmp_path / "b.exe").write_bytes(b"x")
    count = int(run("count", paths["jsonl"])[1])
    status, out, err = run("count", "--json", tmp_path)
    assert status == 0
    assert json.loads(out)["tokens"] == count * len(paths)
    assert (
        err == "skipped (unknown extension, hidden, a linked folder, a folder matched by a glob, or unreadable): "
        f"{tmp_path / 'b.exe'}\n"
    )
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
    assert f"{empty}: found an empty file, expected whole .{packing} data" in run(command, *more, empty)[2]
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
    b"\x04\x22\x4d\x18rest": ("lz4 data", "lz4cat"),
    b"%PDF-1.7\n%\xe2\xe3": ("a PDF", "pdftotext"),
}


@pytest.mark.parametrize("stdin", LOOKS, ids=[name for name, _ in LOOKS.values()])
def test_standard_input_that_looks_like_another_kind_is_refused(run: Any, tmp_path: Path, stdin: bytes) -> None:
    found, right = LOOKS[stdin]
    commands = [["count"], ["encode"], ["count", "--lines"], ["trace"], ["corpus", "-", "--out", tmp_path / "out"]]
    for command in commands:
        status, out, err = run(*command, stdin=stdin)
        assert (status, out) == (2, "")
        assert f"-: found {found}, expected plain text" in err
        assert right in err
        assert not (tmp_path / "out").exists()
    path = tmp_path / "without_ending"
    path.write_bytes(stdin)
    assert f"{path}: found {found}, expected" in run("count", path)[2]


@pytest.mark.parametrize(
    "stdin",
    [
        b'{\n  "text": "hi",\n  "n": 1\n}\n{\n  "text": "ab"\n}\n',
        b'{\n  "text": "hi',
        b'{"text": "hi"} {"text": "ab"}\n',
        b'{"text": "hi"}\r{"text": "ab"}\r',
    ],
    ids=["over lines", "cut off", "several a line", "carriage returns"],
)
def test_json_of_any_form_from_standard_input_is_refused(run: Any, tmp_path: Path, stdin: bytes) -> None:
    """A file that is named may be counted as it is: a package.json is a text."""
    for command in (["count"], ["corpus", "-", "--out", tmp_path / "out"]):
        status, out, err = run(*command, stdin=stdin)
        assert (status, out) == (2, "")
        assert "-: found JSON whose objects are not a line each, expected plain text" in err
        assert "jq -c" in err
    (tmp_path / "package.json").write_bytes(stdin)
    assert run("count", tmp_path / "package.json")[0] == 0


def test_json_that_nests_deeper_than_python_reads_is_an_error_in_words(run: Any, tmp_path: Path) -> None:
    deep = '{"a":' * 3000 + "1" + "}" * 3000
    path, out = tmp_path / "deep.json", tmp_path / "out"
    out.mkdir()
    for file in (path, out / "manifest.json"):
        file.write_text(deep)
    commands: dict[tuple[Any, ...], str] = {
        ("count",): "expected plain text",
        ("decode",): "expected token ids",
        ("verify", out): "expected JSON",
    }
    for command, expected in commands.items():
        status, _, err = run(*command, stdin=deep.encode())
        assert status == 2
        assert expected in err
    with pytest.raises(CorpusError, match=r"expected a tokenizer\.json"):
        named_pre(str(path))


def test_a_packed_file_whose_name_tells_no_kind_is_looked_at_too(run: Any, tmp_path: Path) -> None:
    for name, content, status in (
        ("data.gz", ROWS, 2),
        ("data.gz", zstandard.compress(ROWS), 2),
        ("data.gz", b"words", 0),
        ("data.txt.gz", ROWS, 0),
    ):
        (tmp_path / name).write_bytes(gzip.compress(content))
        assert run("count", tmp_path / name)[0] == status, (name, content)


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
        assert f"{path}, line 4: found fields body, expected a text in 'text' (--field)" in err
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
    taken = [0, 2, 2, 2, 2, 0, 0, 2, 2, 2]  # another field may hold anything
    assert status[: len(lines)] == status[len(lines) :] == taken


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
        assert "found no text in any" in err
        assert "fields text" in err
        assert "expected a text in 'txet' (--field)" in err
        assert not (out / "manifest.json").exists()
    assert run("corpus", path, "--out", out, "--on-error", on_error)[0] == 0  # nothing was read: it may begin again
    assert len(jittok.corpus.open(out)) == count


def test_a_field_that_few_documents_have_is_an_error_of_each_other_one(run: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"body": "x"}\n')
    (tmp_path / "b.jsonl").write_bytes(b'{"text": "hi"}\n')
    status, out, _ = run("corpus", tmp_path, "--out", tmp_path / "out", "--on-error", "skip", "--json")
    assert status == 0
    told = json.loads(out)
    assert (told["documents"], told["bad_documents"]) == (1, 1)
