"""The files for schedulers in examples/cluster are those of docs/cluster.md, and what they call exists."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from jittok.cli import build_parser
from jittok.corpus.tasks.shares import INDEXES

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "examples" / "cluster").iterdir())
PAGE = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")


def calls(text: str) -> list[list[str]]:
    """The arguments of each call of jittok."""
    shell = re.findall(r'(?:^|exec |--wrap ")jittok (corpus [^"\n]*(?:"\$\w+")?)', text, re.M)
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
