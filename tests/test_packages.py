"""What the package imports is declared, and what is declared is imported."""

import ast
import re
import sys
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib", reason="reads pyproject.toml with the standard library of Python 3.11")
ROOT = Path(__file__).resolve().parents[1]
COMES_WITH = {"llvmlite": "numba", "traitlets": "anywidget"}
"""Imported packages that a declared one pins."""
BROUGHT = {"IPython", "huggingface_hub", "boto3", "pandas", "torch"}
"""Imported only for objects of theirs that the caller hands over or asks for, or for the credentials that it has."""
JUDGES = {"llama_cpp", "mistral_common", "pyrwkv_tokenizer", "sentencepiece", "tiktoken", "tokenizers", "transformers"}
"""Libraries that a tokenizer file is compared with, where the user has them."""
OF_FACADES = {"jittok/compat/tokenizers.py", "jittok/compat/transformers.py"}
"""Where classes of such a library are used, for programs that have it."""
ASKED_BY_SCRIPTS: set[str] = set()
"""Imported only by scripts that make tables of the package, for one who changes them."""
ONLY_DECLARED = {"ipykernel"}
"""What runs the notebooks."""
WRITES_FILES = {"gguf"}
"""Imported to write files; jittok/vocab/keys.py says why not to read them."""


def imported():
    """Top-level package -> files that import it."""
    found = {}
    for path in sorted((ROOT / "jittok").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in names:
                found.setdefault(name.partition(".")[0], set()).add(str(path.relative_to(ROOT)))
    return {name: files for name, files in found.items() if name != "jittok" and name not in sys.stdlib_module_names}


def declared():
    """(packages of the core, those of all extras that are for users)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lists = [project["dependencies"], [line for name, of in extras.items() for line in of if name not in NOT_FOR_USERS]]
    core, more = ({re.match(r"[\w-]+", line)[0] for line in lines} - {"jittok"} for lines in lists)
    return core, more


NOT_FOR_USERS = {"test", "bench", "dev", "docs"}


def test_every_package_that_is_imported_is_declared():
    core, more = declared()
    found = imported()
    assert found.keys() >= {"numpy", "numba", "regex", "pyarrow", "rich"}  # the search finds something
    undeclared = {name: files for name, files in found.items() if COMES_WITH.get(name, name) not in core | more}
    assert undeclared.keys() == BROUGHT | JUDGES | ASKED_BY_SCRIPTS, undeclared
    for name in JUDGES:
        asked = {"jittok/compat/proof/libraries.py", *OF_FACADES}
        assert "jittok/compat/proof/libraries.py" in undeclared[name] <= asked, undeclared[name]
    for name in ASKED_BY_SCRIPTS:
        assert all(Path(file).name.startswith("make_") for file in undeclared[name]), undeclared[name]


def test_every_package_that_is_declared_is_imported():
    core, more = declared()
    assert core == {"gguf", "numba", "numpy", "orjson", "regex"}
    assert (core | more) - imported().keys() == ONLY_DECLARED
    importers = {file for name in WRITES_FILES for file in imported()[name]}
    assert all(file.startswith("jittok/common/writers/") for file in importers), importers


def test_the_libraries_whose_ids_are_promised_are_installed_for_the_tests():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    judges = {"mistral-common", "sentencepiece", "tiktoken", "tokenizers"}
    assert judges <= {re.match(r"[\w-]+", line)[0] for line in extras["test"]}
    # installed in every environment that the extra has made: a test that asks for one is never skipped there
    asked = {
        line for path in (ROOT / "tests").rglob("*.py") for line in re.findall(IMPORTORSKIP, path.read_text("utf-8"))
    }
    assert {name.partition(".")[0].replace("_", "-") for name in asked} & judges == judges


IMPORTORSKIP = r'importorskip\("([\w.]+)"'


def test_the_build_needs_what_the_package_depends_on_and_lists_none_of_it():
    hook = (ROOT / "hatch_build.py").read_text(encoding="utf-8")
    core, _ = declared()
    listed = {name for name in core if re.search(rf"['\"]{name}\b", hook)}
    assert not listed, "a second list of dependencies grows old"
    assert "metadata.core.dependencies" in hook
