"""Each file of the reference opens with an example, which runs as it is written."""

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

from jittok import reference

FOLDER = Path(reference.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))


def module_of(path: Path) -> str:
    return ".".join(("jittok.reference", *path.relative_to(FOLDER).with_suffix("").parts)).removesuffix(".__init__")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_a_file_opens_with_an_example_that_is_true(path: Path) -> None:
    module = importlib.import_module(module_of(path))
    found = doctest.DocTestFinder().find(module)
    (opening,) = (test for test in found if test.name == module.__name__)
    assert opening.examples, "no example in the first docstring"
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL, verbose=False)
    for test in found:
        if test.examples:
            runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)


def test_a_file_without_an_example_would_be_found() -> None:
    assert len(FILES) > 20
    assert not doctest.DocTestParser().get_examples(
        inspect.getdoc(test_a_file_opens_with_an_example_that_is_true) or ""
    )
