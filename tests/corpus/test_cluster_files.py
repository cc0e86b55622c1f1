"""The files for schedulers in examples/cluster are those of docs/cluster.md, and what they call exists."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import make_texts, write_jsonl

from jittok.cli import build_parser
from jittok.corpus.tasks.shares import INDEXES

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "examples" / "cluster").iterdir())
PAGE = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")


def calls(text: str) -> list[list[str]]:
    """The arguments of each call of jittok."""
    shell = re.findall(r'(?:^ *|--wrap ")jittok (corpus [^"\n]*(?:"\$\w+")?)', text, re.M)
    listed = re.findall(r'\["jittok", (.*?)\]', text)
    joined = re.findall(r'--command jittok --args "([^"]*)"', text)
    return [
        *map(shlex.split, shell),
        *(re.findall(r'"([^"]*)"', each) for each in listed),
        *(each.split(",") for each in joined),
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_file_is_on_the_page_and_its_calls_parse(path):
    text = path.read_text(encoding="utf-8")
    assert text in PAGE
    found = calls(text)
    assert found
    for words in found:
        given = build_parser().parse_args(["4" if word.startswith("$") else word for word in words])
        assert given.command == "corpus"
        assert given.inputs[0] in ("plan", "run", "finish")


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".sh"], ids=lambda path: path.name)
def test_scripts_are_scripts(path):
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    assert subprocess.run([bash, "-n", str(path)], capture_output=True, check=False).returncode == 0


def test_the_job_of_kubernetes_is_an_indexed_job():
    yaml = pytest.importorskip("yaml")
    job = yaml.safe_load((ROOT / "examples" / "cluster" / "kubernetes.yaml").read_text(encoding="utf-8"))
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    spec = job["spec"]
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] >= spec["parallelism"] > 0
    (container,) = spec["template"]["spec"]["containers"]
    assert container["command"][:3] == ["jittok", "corpus", "run"]
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


def test_the_page_names_every_variable_that_is_read():
    assert all(name in PAGE for name in INDEXES)


STUBS = {
    "sbatch": """
        case "$1" in --dependency=afterok:7) eval "$3"; exit;; esac
        for k in 0 1 2; do
          export SLURM_ARRAY_TASK_ID=$k SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=0 SLURM_CPUS_PER_TASK=1
          SLURM_JOB_ID=$((8 + k)) bash slurm.sh >&2 || echo "$k ended with $?" >> ended
        done
        echo 7""",
    "srun": """
        shift
        if [ "$SLURM_ARRAY_TASK_ID" = 1 ] && [ ! -e signaled ]; then touch signaled; exit 143; fi
        "$@" """,
    "scontrol": """
        [ "$1" = requeue ] && echo "$2" >> requeued && bash slurm.sh >&2""",
}
"""A Slurm of one machine: jobs one after the other, the second of which is stopped before its time is over."""


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="scripts of bash")
def test_the_files_of_slurm_make_a_corpus_also_of_a_job_that_was_stopped_for_its_time(tmp_path):
    pytest.importorskip("filelock")
    (tmp_path / "data").mkdir()
    write_jsonl(tmp_path / "data" / "a.jsonl", make_texts(50))
    for name in ("slurm.sh", "slurm-corpus.sh"):
        text = (ROOT / "examples" / "cluster" / name).read_text("utf-8").replace("/shared/tokenizer.json", "gpt-2")
        text = text.replace("/shared", str(tmp_path)).replace("--parts 100", "--parts 3").replace("0-99", "0-2")
        (tmp_path / name).write_text(text, "utf-8")
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in {**STUBS, "jittok": f'exec {shlex.quote(sys.executable)} -m jittok "$@"'}.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n", "utf-8")
        (folder / name).chmod(0o755)
    environ = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "slurm-corpus.sh"], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "shards" / "manifest.json").is_file()
    assert (tmp_path / "requeued").read_text().split() == ["9"]
    assert (tmp_path / "ended").read_text() == "1 ended with 143\n"
