"""The documentation site: every public name has a place in it, every page a place in the navigation, every link leads
somewhere. `make docs` builds it; here its pages are staged."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import shutil
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import jittok
from jittok.common.rows import TokenArray
from jittok.decode.stream import StreamDecoder
from jittok.tokenizer import Tokenizer

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


KINDS = {"tok": Tokenizer, "rows": TokenArray, "out": StreamDecoder}
"""Names in tables of moving over -> what they are."""


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "moving").glob("*.md")), ids=lambda path: path.stem)
def test_what_replaces_a_call_is_there_with_its_arguments(path: Path) -> None:
    cells = [line.split(" | ", 1)[1] for line in path.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert len(cells) > 9
    spans = [
        span for cell in cells for span in re.findall(r"`([^`]+)`", cell) if not span.startswith(("jittok ", "--"))
    ]
    checked = 0
    for node in (node for span in spans if "..." not in span for node in ast.walk(ast.parse(span))):
        if isinstance(node, ast.Attribute):
            checked += called(node) is not None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and callable(called(node.func)):
            its = inspect.signature(called(node.func)).parameters  # type: ignore[arg-type]
            known = {name for name, each in its.items() if each.kind is not each.VAR_KEYWORD}
            if called(node.func) is jittok.train.train:
                known |= typing.get_type_hints(jittok.train.TrainOptions).keys()
            elif called(node.func) is jittok.load:
                known |= {"pattern", "special_tokens", "llama_cpp", "cache_bytes"}
            assert {each.arg for each in node.keywords} <= known, ast.unparse(node)
    assert checked >= 8


def called(node: ast.Attribute) -> object:
    """What a name with a dot is, of jittok's; None for others. AttributeError where it is not there."""
    names = ast.unparse(node).split(".")
    if names[0] in KINDS and len(names) == 2:
        if hasattr(KINDS[names[0]], names[1]):
            return getattr(KINDS[names[0]], names[1])  # type: ignore[no-any-return]
        rows = jittok.bundled("bert").encode_batch(["a"], max_length=9, windows=True, add_special=True)
        return getattr(rows, names[1])  # type: ignore[no-any-return]
    if names[0] == "jittok":
        found: object = jittok
        for name in names[1:]:
            found = getattr(found, name)
        return found.train if found is jittok.train else found  # type: ignore[attr-defined]
    return None


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
