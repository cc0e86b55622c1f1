"""What the documents say is so."""

import doctest
import re
from pathlib import Path

import pytest

import jittok

ROOT = Path(__file__).parents[1]


def test_the_readme_shows_what_python_prints():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    session = doctest.DocTestParser().get_doctest("".join(blocks), {}, "README.md", "README.md", 0)
    assert session.examples
    shown: list[str] = []
    failed = doctest.DocTestRunner().run(session, out=shown.append).failed
    assert not failed, "".join(shown)


def test_the_changelog_has_this_version():
    assert f"## {jittok.__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "DESIGN.md"])
def test_documents_name_files_that_are_there(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    links = [part.split(")")[0] for part in text.split("](")[1:]]
    quoted = [part for part in text.split("`") if "/" in part and part.endswith((".py", ".md", ".ipynb", ".toml"))]
    missing = [link for link in [*links, *quoted] if not link.startswith("http") and not (ROOT / link).exists()]
    assert not [link for link in missing if "<" not in link and "*" not in link]
