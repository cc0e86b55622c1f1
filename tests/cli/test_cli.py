"""The commands as a user runs them: `main` in this process, a child process where streams and signals matter."""

import bz2
import contextlib
import gzip
import io
import json
import lzma
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jittok
from jittok import cli
from jittok.cli import main
from jittok.cli.common.texts import ProgressOf
from jittok.common.rows import TokenArray
from jittok.tokenizer import Tokenizer


@pytest.fixture(autouse=True)
def tiny(spm: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """--vocab tiny is the vocabulary of the fixture."""
    monkeypatch.setattr(jittok, "bundled_names", lambda: ["tiny"], raising=False)
    monkeypatch.setattr(jittok, "bundled", lambda name, **_: {"tiny": spm}[name], raising=False)


@pytest.fixture
def run(capfdbinary: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    def go(*arguments: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            status = main([arguments[0], "--vocab", "tiny", *arguments[1:]])
        except SystemExit as leave:
            status = leave.code if isinstance(leave.code, int) else 1
        out, err = capfdbinary.readouterr()
        return status, out, err.decode()

    return go


def test_encode_prints_a_token_a_line_as_llama_tokenize_does(run: Any) -> None:
    assert run("encode", "-p", "hi\n") == (0, b"   271 -> ' hi'\n    14 -> '\n'\n", "")


def test_encode_prints_lists_and_counts(run: Any) -> None:
    assert run("encode", "--ids", "--show-count", "-p", "hi") == (0, b"[271]\nTotal number of tokens: 1\n", "")
    assert run("encode", "--json", "-p", "hi") == (0, b'{"document": 0, "ids": [271]}\n', "")
    assert run("encode", "--ids", "-p", "hi", "--add-special")[1] == b"[1, 271]\n"
    assert run("encode", "--ids", "-p", "<s>", "--parse-special")[1] == b"[1]\n"


def test_texts_come_from_standard_input_and_files(run: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"hi\n")
    assert run("encode", "--ids", stdin=b"hi")[1] == b"[271]\n"
    assert run("encode", "--ids", "-", str(tmp_path / "a.txt"), stdin=b"hi")[1] == b"[271]\n[271, 14]\n"
    assert run("encode", "--ids", "--lines", stdin=b"hi\r\nab\n\nhi")[1] == b"[271]\n[269]\n[]\n[271]\n"


@pytest.mark.parametrize(("ending", "opener"), [(".gz", gzip.open), (".xz", lzma.open), (".bz2", bz2.open), ("", open)])
def test_json_lines_packed_or_not(run: Any, tmp_path: Path, ending: str, opener: Any) -> None:
    path = tmp_path / f"a.jsonl{ending}"
    with opener(path, "wb") as file:
        file.write(b'{"text": "hi", "body": "ab"}\n\n{"text": "", "body": "hi"}\n')
    assert run("encode", "--ids", str(path))[1] == b"[271]\n[]\n"
    assert run("encode", "--ids", "--field", "body", str(path))[1] == b"[269]\n[271]\n"


def test_zstandard(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "a.txt.zst"
    path.write_bytes(zstandard.compress(b"hi"))
    assert run("encode", "--ids", str(path))[1] == b"[271]\n"
    monkeypatch.setitem(sys.modules, "zstandard", None)
    status, _, err = run("encode", "--ids", str(path))
    assert status == 2
    assert "reading .zst needs zstandard: pip install '.[cli]' in a checkout" in err


def test_output_is_a_saved_token_array(run: Any, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "ids"
    status, out, _ = run("encode", "--lines", "-o", str(target), "--json", stdin=b"hi\n\nab hi\n")
    assert status == 0
    assert json.loads(out) == {"output": str(target), "documents": 3, "tokens": 3}
    assert TokenArray.load(target).to_list() == [[271], [], [269, 271]]
    assert np.load(target / "ids.npy").dtype == np.int32
    assert np.load(target / "offsets.npy").dtype == np.int64
    assert run("decode", str(target))[1] == b"hi\n\nab hi"


def test_output_in_many_stretches_is_the_same(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join("ab hi" * (n % 7) for n in range(5000)).encode()
    assert run("encode", "--lines", "-o", str(tmp_path / "a"), stdin=text)[0] == 0
    monkeypatch.setattr("jittok.kernels.inputs.containers.PART_BYTES", 1000)
    monkeypatch.setattr("jittok.encode.limits.STRETCH_BYTES", 100)
    monkeypatch.setattr("jittok.encode.limits.STRETCH_MIN", 100)
    assert run("encode", "--lines", "-o", str(tmp_path / "b"), "--threads", "3", stdin=text)[0] == 0
    for name in ("ids.npy", "offsets.npy"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_failed_output_leaves_nothing_and_the_old_one_in_place(run: Any, tmp_path: Path) -> None:
    good, bad = b'{"text": "hi"}\n', b'{"text": 5}\n'
    assert run("encode", "--jsonl", "-o", str(tmp_path / "ids"), stdin=good)[0] == 0
    assert run("encode", "--jsonl", "-o", str(tmp_path / "ids"), stdin=good + bad)[0] == 2
    assert TokenArray.load(tmp_path / "ids").to_list() == [[271]]
    assert [entry.name for entry in tmp_path.iterdir()] == ["ids"]


def test_decode_reads_rows_of_all_kinds(run: Any) -> None:
    assert run("decode", stdin=b"[271, 14]")[1] == b"hi\n"
    assert run("decode", stdin=b'271\n269, 271\n\n{"ids": [271]}\n[]\n')[1] == b"hi\nab hi\nhi\n"
    assert json.loads(run("decode", "--json", stdin=b"259 271")[1]) == {"document": 0, "text": "\ufffd hi"}
    assert run("decode", "--unparse-special", stdin=b"1 271")[1] == b"<s> hi"
    assert run("decode", stdin=b"259")[1] == b"\xff"


def test_count_gives_a_number_or_a_table(run: Any, tmp_path: Path) -> None:
    for name, text in (("a", b"hi\nhi\n"), ("b", b"hi" * 100)):
        (tmp_path / name).write_bytes(text)
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    assert run("count", a)[1] == b"4\n"
    assert run("count", a, b)[1] == f"  4 {a}\n100 {b}\n104 total\n".encode()
    assert run("count", "--lines", "--each", a)[1] == b"1\n1\n"
    assert json.loads(run("count", "--json", "-p", "hi")[1])["tokens"] == 1
    assert json.loads(run("count", "--lines", "--json", a)[1])["sources"][0]["documents"] == 2


@pytest.mark.parametrize(("given", "found"), [([], "no vocabulary"), (["a", "--vocab", "b"], "a and --vocab b")])
def test_info_wants_one_vocabulary(given: list[str], found: str, capfd: Any) -> None:
    assert main(["info", *given]) == 2
    assert f"found {found}, expected one" in capfd.readouterr().err


def test_info_takes_a_vocabulary_without_an_option(capfd: Any, spm: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(spm.vocab.__dict__, "fingerprint", "f" * 32)
    shown = []
    for given in (["tiny"], ["--vocab", "tiny"]):
        assert main(["info", *given]) == 0
        shown.append(capfd.readouterr())
    assert shown[0] == shown[1]
    assert "tokens         273" in shown[0].out


def test_info_shows_facts_as_text_and_data(run: Any, spm: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(spm.vocab.__dict__, "fingerprint", "f" * 32)
    status, out, err = run("info")
    assert (status, err) == (0, "")
    assert b"tokens         273" in out
    assert b"'</s>'" in out
    assert b"from the model's own tokenizer" in out
    facts = json.loads(run("info", "--json")[1])
    assert (facts["type"], facts["bos_id"], facts["pad_id"], facts["nl_id"]) == ("spm", 1, None, 14)
    assert facts["attributes"]["byte"] == 256


@pytest.mark.parametrize(
    ("arguments", "stdin", "says"),
    [
        (["encode", "/nowhere/a.txt"], b"", "/nowhere/a.txt: found no such file or directory"),
        (["encode", "--jsonl"], b"{", "-, line 1: found "),
        (["encode", "--jsonl"], b"[]", "expected a JSON object with a text in 'text'"),
        (["encode", "--jsonl"], b'{"text": "\\ud800"}', "-, line 1: found "),
        (["encode", "-p", "a", "file"], b"", "found FILE and --prompt"),
        (["encode", "--threads", "0"], b"", "expected an integer, 1 or more"),
        (["encode", "--on-error", "ignore"], b"", "found 'ignore', expected fail or replace"),
        (["decode"], b"x y", "-, line 1: found b'x y', expected token ids"),
        (["decode"], b"[1.5]", "expected token ids"),
        (["decode"], b"999999", "token 999999: expected 0 <= id < 273"),
        (["count", "--vocab", "nobody"], b"", "or a bundled name: tiny"),
    ],
)
def test_bad_input_is_one_line_and_status_2(run: Any, arguments: list[str], stdin: bytes, says: str) -> None:
    status, _, err = run(*arguments, stdin=stdin)
    assert status == 2
    assert says in err
    assert err.count("\n") == 1
    assert err.startswith("jittok ")


def test_a_bug_says_so(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> None:
        raise AssertionError("proof")

    monkeypatch.setattr("jittok.cli.texts.encode.open_vocab", broken)
    assert run("encode", "-p", "hi") == (
        2,
        b"",
        "jittok encode: internal error (JITTOK_TRACEBACK=1 prints the traceback): proof\n",
    )
    monkeypatch.setenv("JITTOK_TRACEBACK", "1")
    with pytest.raises(AssertionError, match="proof"):
        run("encode", "-p", "hi")


def test_an_interrupt_is_one_line(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jittok.cli.texts.encode.open_vocab", interrupted)
    assert run("encode", "-p", "hi") == (130, b"", "jittok encode: interrupted\n")


def test_an_interrupt_that_python_wraps_is_one(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Named:
        def __set_name__(self, *_: object) -> None:
            raise KeyboardInterrupt

    def interrupted(_: Any) -> None:
        try:
            type("Body", (), {"name": Named()})  # until Python 3.11 a RuntimeError comes of it
        except KeyboardInterrupt as error:
            raise RuntimeError from error

    monkeypatch.setattr("jittok.cli.texts.encode.open_vocab", interrupted)
    assert run("encode", "-p", "hi") == (130, b"", "jittok encode: interrupted\n")


def test_an_interrupt_that_another_error_hides_is_one(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy's part in C says only that it could not be imported."""

    def interrupted(_: Any) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise ImportError("the extension failed")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr("jittok.cli.texts.encode.open_vocab", interrupted)
    try:
        assert run("encode", "-p", "hi") == (130, b"", "jittok encode: interrupted\n")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_wrong_use_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["nothing"], ["encode"], ["encode", "--vocab"]):
        with pytest.raises(SystemExit) as leave:
            main(arguments)
        assert leave.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_help_of_every_command_imports_no_numba() -> None:
    script = "import sys; from jittok.cli import main\ntry: main(sys.argv[1:])\nfinally: print('numba' in sys.modules)"
    for command in ([], *([name] for name in cli.COMMANDS)):
        done = subprocess.run(
            [sys.executable, "-c", script, *command, "--help"], capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith("usage: jittok")
        assert done.stdout.endswith("False\n")


CHILD = """
import sys
from jittok.cli import main
from jittok.cli import common
class Tok:
    def encode_stream(self, texts, **how):
        import numpy as np
        from jittok.common.rows import TokenArray
        print("started", file=sys.stderr, flush=True)
        for _ in range(50_000):  # 2 GB, should nobody stop it
            yield TokenArray(np.zeros(10_000, np.int32), [0, 10_000])
import jittok.cli.texts.encode as encode
encode.open_vocab = lambda options: Tok()
sys.exit(main(["encode", "--vocab", "x", "--ids", "-p", "hi", *sys.argv[1:]]))
"""


def test_a_reader_that_stops_is_no_error() -> None:
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.read(3) == b"[0,"
    child.stdout.close()
    assert child.wait(100) == 0
    assert child.stderr.read() == b"started\n"
    child.stderr.close()


def test_ctrl_c_leaves_no_half_written_output(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, "-o", str(tmp_path / "ids")],
        stderr=subprocess.PIPE,
        # whoever runs the tests may ignore it; there is one thread here
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    assert child.stderr is not None
    try:
        assert child.stderr.readline() == b"started\n"
        deadline = time.monotonic() + 100
        while not any(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        assert child.wait(100) == cli.INTERRUPTED
    finally:
        child.kill()  # it would write for ever
    assert child.stderr.read() == b"jittok encode: interrupted\n"
    child.stderr.close()
    assert list(tmp_path.iterdir()) == []


def test_progress_is_silent_where_nobody_looks_and_for_what_is_done_in_a_second(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")  # a narrow terminal shows less
    with ProgressOf(100) as progress:
        progress.add(5, 6, 7)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with ProgressOf(100) as progress:
        progress.add(5, 6, 7)
    assert capsys.readouterr().err == ""
    clock = time.monotonic()
    monkeypatch.setattr("time.monotonic", lambda: clock)
    with ProgressOf(100) as progress:
        clock += 1.1
        progress.add(5000, 1_234_567, 50)
        shown = capsys.readouterr().err
        assert " 50 %  5,000 documents  1,234,567 tokens" in shown
    assert capsys.readouterr().err.endswith("\r")  # wiped
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    with ProgressOf(100, answers=True) as progress:
        clock += 2
        progress.add(5, 6, 7)
    assert capsys.readouterr().err == ""


@pytest.mark.process
def test_info_says_where_releases_part_and_commands_take_a_release_and_a_pre():
    def told(*arguments):
        command = [sys.executable, "-m", "jittok", *arguments, "--vocab", "gpt-2"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    notes = json.loads(told("info", "--json", "--llama-cpp", "0.3.36").stdout)
    assert notes["llama_cpp"] == "0.3.36"
    assert any(note.startswith("b11739: each byte of an overlong form") for note in notes["releases"])
    assert json.loads(told("info", "--json", "--pre", "k2-horizon").stdout)["pre"] == "k2-horizon"
    wrong = told("encode", "-p", "a", "--llama-cpp", "b1")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "jittok encode: --llama-cpp: found 'b1', expected one of b11739, 0.3.36\n",
    )
