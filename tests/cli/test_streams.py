"""Standard input and output as a shell gives them: closed, full, cut off by Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import jittok

pytest.importorskip("pyarrow")
pytest.importorskip("orjson")

CHILD = [sys.executable, "-m", "jittok"]


SETTINGS = {
    "of a user": {"PYTHONUNBUFFERED": "", "COLUMNS": "80"},
    "unbuffered, narrow, German": {"PYTHONUNBUFFERED": "1", "COLUMNS": "40", "LANG": "de_DE.UTF-8", "LANGUAGE": "de"},
}
"""What decides how streams are written and how wide lines are. An empty PYTHONUNBUFFERED is none."""


def shell(command: str, settings: str = "of a user", **more: Any) -> subprocess.CompletedProcess[str]:
    """The command as bash runs it, where `jittok` is the one of this environment."""
    return subprocess.run(
        ["bash", "-c", f'set -o pipefail; jittok() {{ "{sys.executable}" -m jittok "$@"; }}; {command}'],
        capture_output=True, text=True, check=False, timeout=100, env=os.environ | SETTINGS[settings], **more,
    )  # fmt: skip


CLOSED_OR_FULL = [
    ("jittok count --vocab gpt-2 -p hi >&-", 2, "standard output is closed"),
    ("jittok info --vocab gpt-2 >/dev/full", 2, "standard output: No space left on device"),
    ("jittok encode --vocab gpt-2 -p hi >/dev/full", 2, "standard output: No space left on device"),
    ("jittok --help >/dev/full", 2, "standard output: No space left on device"),
    ("jittok --help | true", 0, ""),
    ("jittok count --vocab gpt-2 <&-", 2, "closed standard input"),
    ("jittok count --vocab nobody -p hi 2>&-", 2, ""),
    ("touch x.exe a.txt; jittok count --vocab gpt-2 . 2>&-", 0, ""),
    ("touch x.exe a.txt; jittok count --vocab gpt-2 . 2>/dev/full", 0, ""),
    ("jittok encode --vocab gpt-2 -p hi 2>/dev/full", 0, ""),
    ("echo a b a b >a.txt; jittok train a.txt --size 258 --out a.gguf 2>&-", 0, ""),
    ("echo a b a b >a.txt; jittok train a.txt --size 258 --out a.gguf 2>/dev/full", 0, ""),
    ("echo a b a b >a.txt; jittok train a.txt --size 258 --out a.gguf 2>/dev/full >/dev/full", 2, ""),
]
"""Commands, their status, and what the one line of standard error has."""


@pytest.mark.process
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize(("command", "status", "says"), CLOSED_OR_FULL)
def test_streams_that_are_closed_or_full(tmp_path: Path, command: str, status: int, says: str, settings: str) -> None:
    done = shell(command, settings, cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert says in done.stderr
    assert done.stderr.count("\n") == bool(says)


ANSWERS = {
    "encode --vocab gpt-2 -p hi": 0,
    "decode --vocab gpt-2 17250": 0,
    "decode --vocab gpt-2 17250000": 2,
    "count --vocab nobody -p hi": 2,
    "info --vocab nobody": 2,
    "compare gpt-2 mistral": 1,
    "convert gpt-2 --to nothing": 2,
    "trace --vocab gpt-2 --nothing": 2,
    "corpus nowhere --vocab gpt-2 --out out": 2,
    "verify --vocab gpt-2 nowhere": 2,
    "train nowhere --size 300 --out a.gguf": 2,
    "cache nothing": 2,
    "nothing": 2,
    "--version": 0,
}
"""Each command, and its status where standard error takes what it says."""
UNHEARD = {
    "full": "{} 2>/dev/full",
    "closed": "{} 2>&-",
    "read-only": "{} 2</dev/null",
    "a pipe that nobody reads": "{{ sleep 0.2; {} 2>&1 >/dev/null; echo $? >status; }} | true; exit $(cat status)",
}
"""Ways to take nothing from standard error."""


@pytest.mark.process
@pytest.mark.parametrize(
    ("kind", "settings"), [*((kind, "of a user") for kind in UNHEARD), ("full", "unbuffered, narrow, German")]
)
def test_the_status_does_not_depend_on_standard_error(tmp_path: Path, kind: str, settings: str) -> None:
    for command, status in ANSWERS.items():
        done = shell(UNHEARD[kind].format(f"jittok {command}"), settings, cwd=tmp_path)
        assert done.returncode == status, (command, done)
        assert done.stderr == "", command


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
    monkeypatch.setattr("jittok.cli.texts.encode.LONG_DOCUMENT", 1000)
    monkeypatch.setattr("jittok.cli.texts.encode.IDS_PER_WRITE", 100)
    monkeypatch.setattr("jittok.encode.limits.PART_BYTES", 10_000)
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
sys.argv[:] = ["/usr/bin/jittok", "count", "--vocab", "gpt-2", "-p", "hi"]
from jittok.__main__ import run
raise SystemExit(run())
"""


@pytest.mark.process
def test_ctrl_c_is_one_line_also_while_modules_are_imported() -> None:
    for module in (
        "jittok.common.locks",
        "argparse",
        "jittok.cli",
        "jittok.cli.texts.encode",
        "jittok.tokenizer.loading",
        "numpy",
        "jittok.encode.threads.batch",
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
        "from jittok import cli\n"
        "from jittok.kernels.jit.compiling import compiling\n"
        "def told(*_):\n    with compiling('one'): pass\n    with compiling('two'): return 0\n"
        "cli.texts.encode.run, run = (lambda options: told() or run(options)), cli.texts.encode.run\n"
    )
    script = "import jittok.cli.texts.encode, jittok.cli\n" + code + "raise SystemExit(cli.main())"
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
    assert b"jittok: compiling kernel 2, two (once for this machine; 0 s so far) ..." in shown
    rows = [line.rsplit(b"\r", 1)[-1] for line in shown.replace(b"\r\n", b"\n").split(b"\n")[:-1]]
    assert rows == [b" 15496 -> 'Hello'", b"    11 -> ','", b"   995 -> ' world'"]
