"""What the documents say is so."""

import doctest
import json
import re
import shlex
from pathlib import Path

import pytest

import jittok
from jittok.cli import main

ROOT = Path(__file__).parents[1]


def test_the_readme_shows_what_python_prints():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    # a blank line between blocks: what one shows does not go on in the next
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "README.md", "README.md", 0)
    assert session.examples
    shown: list[str] = []
    failed = doctest.DocTestRunner().run(session, out=shown.append).failed
    assert not failed, "".join(shown)


def test_the_commands_for_a_corpus_work_as_the_readme_shows_them(tmp_path, monkeypatch, capfd):
    pytest.importorskip("filelock", reason="needs the extra corpus")
    pytest.importorskip("pyarrow", reason="needs the extra corpus")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    rows = [json.dumps({"text": f"text {i} of many words"}) + "\n" for i in range(5000)]
    (tmp_path / "data" / "a.jsonl").write_text("".join(rows), "utf-8")
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## A corpus\n")[1].split("```sh\n")[1]
    commands = [shlex.split(line, comments=True) for line in section.split("```")[0].splitlines()]
    assert [command[1] for command in commands] == ["corpus", "corpus", "corpus", "verify", "-c"]
    shown = []
    for command in commands:
        if command[0] == "jittok":
            assert main(command[1:]) == 0
        else:
            exec(command[2], {})
        shown.append(capfd.readouterr().out)
    assert "5,000" in shown[0]
    assert "5,000 documents" in shown[1]
    assert "5,000 of them from an earlier run" in shown[2]
    assert "no differences" in shown[3]
    first = jittok.bundled("gpt-2").encode("text 0 of many words")
    assert shown[4].strip() == f"{first} (8, 2048)"


def test_the_line_for_datasets_gives_ids():
    class Dataset:  # what Hugging Face's does with a function and batched=True
        def map(self, function, batched):
            assert batched
            return function({"text": ["one", "", "two texts"]})

    (line,) = [row for row in (ROOT / "README.md").read_text(encoding="utf-8").splitlines() if "dataset.map(" in row]
    tok = jittok.bundled("gpt-2")
    (call,) = re.findall(r"`(dataset\.map\(.*)`", line)
    found = eval(call, {"dataset": Dataset(), "tok": tok})
    assert found == {"input_ids": [tok.encode(text).tolist() for text in ("one", "", "two texts")]}


def test_the_changelog_has_this_version():
    assert f"## {jittok.__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


PAGES = ["README.md", "CONTRIBUTING.md", "DESIGN.md", "CHANGELOG.md", "bench/WHAT_WORKED.md"]
PAGES += [str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))]
SIZES = {"README.md": 7_000, "DESIGN.md": 12_500, "CHANGELOG.md": 9_600, "bench/WHAT_WORKED.md": 8_000}
"""Bytes: what a reader of each page has time for."""


def there(link, page):
    """Whether a file is there, from its page, the root or the package, and the heading after a `#` in it."""
    name, _, heading = link.partition("#")
    folders = ((ROOT / page).parent, ROOT, ROOT / "jittok")
    path = next((folder / name for folder in folders if (folder / name).exists()), None) if name else ROOT / page
    if path is None or not heading:
        return path is not None
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    return heading in [
        "".join(c for c in line.lower().strip("# ") if c.isalnum() or c in " -").replace(" ", "-") for line in lines
    ]


@pytest.mark.parametrize("page", PAGES)
def test_documents_name_files_that_are_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    prose = "".join(text.split("```")[::2])
    links = re.findall(r"\]\(([^)\s]+)\)", prose)
    ends = (".py", ".md", ".ipynb", ".toml", ".json")
    # of a command, its last word
    quoted = [part.split()[-1] for part in re.findall(r"`([^`\n]+)`", prose) if "/" in part and part.endswith(ends)]
    missing = [link for link in [*links, *quoted] if not link.startswith("http") and not there(link, page)]
    assert not [link for link in missing if "<" not in link and "*" not in link]


@pytest.mark.parametrize("page", SIZES)
def test_documents_have_the_size_that_their_reader_has_time_for(page):
    assert len((ROOT / page).read_bytes()) <= SIZES[page]


def test_the_design_names_recipes_that_are_there():
    recipes = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## Recipes\n")[1]
    named = re.findall(r"CONTRIBUTING, \*Recipes\*: \*(.+?)\*", (ROOT / "DESIGN.md").read_text(encoding="utf-8"))
    assert len(named) >= 3
    assert [name for name in named if f"\n**{name}**" not in recipes] == []
