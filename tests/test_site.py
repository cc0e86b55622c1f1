"""The documentation site: every public name has a place in it, every page a place in the navigation, every link leads
somewhere. `make docs` builds it; here its pages are staged."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import jittok

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
site = importlib.import_module("site_pages")
REFERENCE = ROOT / "docs" / "reference"
INSIDE = {"tokenizer": "class Tokenizer, named by itself"}
"""Public modules that are not documented as modules."""


def documented() -> tuple[set[str], set[str]]:
    """(objects and modules that reference pages name, names that they list as members of modules)."""
    text = "\n".join(path.read_text("utf-8") for path in REFERENCE.glob("*.md"))
    objects = set(re.findall(r"^::: ([\w.]+)$", text, re.M))
    members = {name for found in re.findall(r"members: \[([^\]]*)\]", text) for name in re.split(r",\s*", found)}
    return objects, members


def test_every_public_name_is_in_the_reference() -> None:
    objects, members = documented()
    last = {name.rpartition(".")[2] for name in objects}
    errors = {
        name
        for name in jittok.__all__
        if isinstance(getattr(jittok, name), type) and issubclass(getattr(jittok, name), Exception)
    }
    assert "jittok.errors" in objects
    missing = set(jittok.__all__) - last - errors
    for module in jittok._MODULES:
        if module in INSIDE or f"jittok.{module}" in objects:
            continue
        missing |= {
            f"{module}.{name}"
            for name in getattr(importlib.import_module(f"jittok.{module}"), "__all__", ())
            if name not in last | members
        }
    chat = importlib.import_module("jittok.chat")
    missing -= {
        f"chat.{name}" for name in chat.__all__ if issubclass(getattr(chat, name), Exception)
    }  # of jittok.errors
    corpus = set(importlib.import_module("jittok.corpus").__all__)
    train = set(importlib.import_module("jittok.train").__all__)
    missing |= (corpus | train) - members
    assert not missing, f"name them in docs/reference: {sorted(missing)}"


def test_what_the_reference_names_exists() -> None:
    for name in documented()[0]:
        found: object = jittok
        parts = name.split(".")
        for k, part in enumerate(parts[1:], 2):
            found = getattr(found, part) if hasattr(found, part) else importlib.import_module(".".join(parts[:k]))
        assert found is not None, name


def test_every_page_is_staged_in_the_navigation_and_its_links_lead_somewhere() -> None:
    names = set(site.stage())
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").split("\nnav:\n")[1]
    listed = set(re.findall(r"[\w/-]+\.md", navigation))
    assert listed <= names
    assert names - listed <= {"contributing.md", "release.md"}
    for name in names:
        text = (site.PAGES / name).read_text("utf-8")
        for target in re.findall(
            r"\]\(([^)\s]+)\)", re.sub(r"(?ms)^```.*?^```$|`[^`\n]*`|<pre.*?</pre>|<div.*?</div>", "", text)
        ):
            path, _, anchor = target.partition("#")
            if re.match(r"[a-z]+:", path):
                continue
            page = (site.PAGES / name).parent / path if path else site.PAGES / name
            assert page.exists(), f"{name}: {target}"
            if anchor:
                heads = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
                slugs = {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", head.lower()).strip()) for head in heads}
                assert anchor in slugs, f"{name}: {target}"
    told = (site.PAGES / "llms.txt").read_text("utf-8")
    assert all(f"({name})" in told for name in names)


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="x"><a href="b.html#y"><a href="#x"><img src="https://else.where/p.png"><a href="c.html">', "utf-8"
    )
    (tmp_path / "b.html").write_text('<p id="z"><a href="/a.html#x"><a href="https://else.where/">', "utf-8")
    assert site.broken(tmp_path) == [
        "a.html: no anchor b.html#y",
        "a.html: fetches https://else.where/p.png",
        "a.html: no c.html",
    ]


@pytest.mark.process
def test_the_site_is_built_without_a_remark() -> None:
    program = shutil.which("zensical", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("zensical is not installed: make docs")
    site.stage()
    done = subprocess.run(
        [program, "build", "--strict"], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert site.broken(ROOT / "build" / "site" / "html") == []
    page = (ROOT / "build" / "site" / "html" / "reference" / "tokenizer.html").read_text("utf-8")
    assert "encode_batch" in page
    assert "stream_decoder" in page
