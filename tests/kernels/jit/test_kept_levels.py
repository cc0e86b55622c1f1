"""Code that is compiled for a level of processors runs on each of them, and on no other."""

import json
import os
import subprocess
import sys

import pytest
from small_package import environment, python

from jittok.kernels.jit import has_compiler, stamps

SHOW = """
import numpy as np
from jittok.climb import climb
out = np.zeros(3, np.int64)
climb(out)
print(out.tolist(), climb.origin)
"""
here = pytest.mark.skipif(not has_compiler() or not stamps.LEVELS, reason="it is compiled")


def process(test):
    return pytest.mark.process(here(test))


def whole(name):
    return dict.fromkeys(stamps.LEVELS[name].needs.split(), True)


@pytest.mark.skipif("v3" not in stamps.LEVELS, reason="levels of x86-64")
def test_a_processor_runs_the_levels_whose_needs_it_has():
    assert stamps.chosen(whole("v4")) == ["v4", "v3", "v2"]
    assert stamps.chosen(whole("v3") | {"avx512f": True}) == ["v3", "v2"]
    assert stamps.chosen(whole("v3") | {"bmi2": False}) == ["v2"]
    assert stamps.chosen({}) == []


@pytest.mark.skipif("v3" not in stamps.LEVELS, reason="levels of x86-64")
def test_a_level_that_cannot_be_run_here_is_refused(monkeypatch):
    monkeypatch.setattr(stamps, "runs", lambda: ["v2"])
    with pytest.raises(ValueError, match="level: found 'v3', expected one that this processor runs: v2"):
        stamps.settings("v3")


def test_who_asks_for_a_processor_of_his_own_is_given_no_level(monkeypatch):
    monkeypatch.delenv("JITTOK_PLAIN", raising=False)
    monkeypatch.setattr(stamps, "runs", lambda: [*stamps.LEVELS])
    monkeypatch.setattr(stamps, "ASKED", "")
    assert [level for _, level in stamps.modes()] == [*stamps.LEVELS]
    assert {mode for mode, level in stamps.modes() if stamps.LEVELS[level].plain} <= {"plain"}
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    assert stamps.modes() == []


def compiled_for(home, level):
    assert python(home, SHOW, **stamps.settings(level)) == "[1, 2, 3] compiled"


@process
def test_code_of_a_level_is_taken_where_there_is_none_of_the_processor(home):
    compiled_for(home, stamps.runs()[-1])
    assert python(home, SHOW) == "[1, 2, 3] cache"
    assert python(home, SHOW, NUMBA_BOUNDSCHECK="1") == "[1, 2, 3] compiled"


@process
def test_code_of_a_level_is_not_taken_by_a_processor_below_it(home):
    compiled_for(home, stamps.runs()[0])
    lower = f"from jittok.kernels.jit import stamps\nstamps.runs = lambda: {stamps.runs()[1:]}\n"
    assert python(home, lower + SHOW) == "[1, 2, 3] compiled"


def jittok(home, *arguments, **settings):
    command = [sys.executable, "-m", "jittok", "cache", *arguments]
    return subprocess.run(command, env=environment(home, **settings), capture_output=True, text=True, check=False)


@process
def test_the_command_compiles_for_a_level_in_a_process_of_its_own(tmp_path):
    assert "found --level, which only warm takes" in jittok(tmp_path, "list", "--level", "v2").stderr
    refused = jittok(tmp_path, "warm", "--level", "v9")
    assert refused.returncode == 2
    assert "found 'v9', expected one that this processor runs: v" in refused.stderr
    # the vocabulary without texts needs no kernel, so nothing takes long
    path = tmp_path / "none.gguf"
    write_none(path)
    done = jittok(tmp_path, "warm", "--level", stamps.runs()[-1], "--vocab", path, "--json")
    assert json.loads(done.stdout) == {"warm": [{"vocab": str(path), "type": "none", "ids": 0}]}, done.stderr


def write_none(path):
    from gguf import GGUFWriter

    writer = GGUFWriter(os.fspath(path), "llama")
    writer.add_tokenizer_model("no_vocab")
    writer.add_vocab_size(4)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
