"""The example runs where its libraries are."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "datasets_map.py"


@pytest.mark.process
def test_the_example_of_datasets_runs_without_a_network(tmp_path):
    pytest.importorskip("datasets")
    pytest.importorskip("transformers")
    assert EXAMPLE.read_text().count("\n") < 20
    around = os.environ | {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, env=around, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[4 7 9]"
