"""Rename modules, classes, functions, constants, attributes and parameters across the whole repository, from a table.

    python tools/rename TABLE [--dry-run]

One rename a line; `#` begins a comment. The left side is always an *old* name:

    jittok.a.b -> jittok.a.c              a module or a package, with its test file (tests/a/test_b.py, if there is one)
    jittok.a.b:Name -> New                a class, function or constant of a module
    jittok.a.b:Class.member -> new        a field or method; all classes of the package with a member of that name must
    *.member -> new                       be renamed alike, which `*` does: without types, `x.member` may be any of them
    jittok.a.b:function(name) -> new      a parameter (or local) of a function or, as Class.method(name), of a method
    jittok.a.*(name) -> new               every parameter and local of this name in these modules; `one|two` tries one
    first text path/or/glob: "old" -> "new"     plain text, for what nothing else finds
    leave name                            a word that is no name of code where a document has it in backticks

Python is edited by its syntax tree (standard library alone): scopes, imports and re-exports are followed, keyword
arguments, `__all__`, `getattr` and `monkeypatch.setattr` too. Strings, comments, documents, pyproject.toml and the
Makefile get dotted names, paths of files, and names in backticks. `tests/mutants/*.txt` quote lines of sources, which
change as the lines do. Notebooks are edited cell by cell. A rename that would meet a name already in that scope is left
out and told. At the end ruff formats and sorts imports. Entries that match nothing are told: the table may be older
than the sources, and the rest is still done. Status 1 if something was told.
"""

from __future__ import annotations

import argparse
import fnmatch
import io
import json
import shutil
import subprocess
import sys
import tokenize
from collections import defaultdict
from pathlib import Path, PurePosixPath

from project import ROOT, Project
from table import Table
from texts import Words, notebook, rewrite_mutants, rewrite_python

OWN = ("tools/rename/", "CHANGELOG.md", "bench/LOG.md", "bench/log/")
"""What is left alone: this program, and what tells of the past."""
TEXTS = {".md", ".toml", ".txt", ".cfg", ".yml", ".yaml", ".h", ".c", ".json", ".sh", ".in"}
MOST = 120
"""Characters of a line."""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--dry-run", action="store_true", help="change nothing; show what would be told")
    options = parser.parse_args()
    table = Table(options.table.read_text(encoding="utf-8"))
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.splitlines() if not name.startswith(OWN) and (ROOT / name).is_file()]
    project = Project(table, names)
    project.run()
    moves = project.moves()
    words = Words(project, moves)
    results: dict[str, str] = {}
    new_lines = {name: project.edited(name) for name in project.sources}
    for name, source in project.sources.items():
        if "#" not in name:
            results[name] = rewrite_python(source, [*new_lines[name]], words)
    for name, book in project.cells.items():
        results[name] = notebook(name, book, project, new_lines, words)
    for name in names:
        path = ROOT / name
        if path.suffix not in TEXTS and path.name not in ("Makefile", "run"):
            continue
        text = path.read_text(encoding="utf-8")
        if name.startswith("tests/mutants/"):
            results[name] = rewrite_mutants(text, project, new_lines, words)
        else:
            words.for_users = not name.startswith(("DESIGN", "docs/internals/"))
            results[name] = words.plain(text, None)
    for pattern, old, new in table.texts:
        hits = [name for name in names if fnmatch.fnmatchcase(name, pattern)]
        for name in hits:
            text = results.get(name) or (ROOT / name).read_text(encoding="utf-8")
            if old in text:
                table.matched[f'text {pattern}: "{old}" -> "{new}"'] = True
                results[name] = text.replace(old, new)
    for line in sorted({*project.told}):
        print(line)
    missing = [entry for entry, hit in table.matched.items() if not hit]
    for entry in missing:
        print(f"matches nothing: {entry}")
    if not options.dry_run:
        write(results, moves)
    return int(bool(project.told or missing))


def write(results: dict[str, str], moves: dict[str, str]) -> None:
    """Files written, moved, formatted."""
    for name, text in results.items():
        path = ROOT / name
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for old, new in moves.items():
        (ROOT / new).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", old, new], cwd=ROOT, check=True)
    for old in {str(PurePosixPath(old).parent) for old in moves}:
        left = ROOT / old
        if left.is_dir() and not [each for each in left.iterdir() if each.name != "__pycache__"]:
            shutil.rmtree(left)
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run(
        [*ruff, "check", "--quiet", "--exit-zero", "--fix", "--select", "I,RUF022,RUF023", "."], cwd=ROOT, check=True
    )
    subprocess.run([*ruff, "format", "--quiet", "."], cwd=ROOT, check=True)
    for _ in range(8):
        asked = [*ruff, "check", "--exit-zero", "--select", "E501", "--output-format", "json", "."]
        found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        long: dict[str, list[int]] = defaultdict(list)
        for each in json.loads(found):
            if each["filename"].endswith(".py"):
                long[each["filename"]].append(each["location"]["row"])
        if not sum([wrapped(Path(name), rows) for name, rows in long.items()]):
            break
    subprocess.run([*ruff, "format", "--quiet", "."], cwd=ROOT, check=True)


def wrapped(path: Path, rows: list[int]) -> int:
    """Breaks long lines of docstrings, comments and what the formatter skips; how many there were."""
    text = path.read_text(encoding="utf-8")
    lines, done = text.split("\n"), 0
    tokens = [*tokenize.generate_tokens(io.StringIO(text).readline)]
    kinds: dict[int, tuple[str, int]] = {}  # row -> what it is, its last row
    depth, begin = 0, 1
    for token in tokens:
        several = token.type == tokenize.STRING and token.start[0] != token.end[0]
        if several or token.string.startswith(('"""', 'r"""')):
            for row in range(token.start[0], token.end[0] + 1):
                kinds[row] = ("text", token.end[0])
        elif token.type == tokenize.COMMENT:
            alone = lines[token.start[0] - 1].lstrip().startswith("#")
            if token.string == "# fmt: skip":
                kinds |= dict.fromkeys(range(begin, token.end[0] + 1), ("code", token.end[0]))
            else:
                kinds[token.start[0]] = ("comment" if alone else "trailing", token.start[1])
        if token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        if token.type == tokenize.NEWLINE:
            begin = token.end[0] + 1
    for row in sorted(rows, reverse=True):
        kind, last = kinds.get(row, ("", 0))
        line = lines[row - 1]
        indent = line[: len(line) - len(line.lstrip())]
        if kind == "trailing":
            lines[row - 1 : row] = [indent + line[last:], line[:last].rstrip()]
        elif kind:
            mark = "# " if kind == "comment" else ""
            at = line.rfind(", " if kind == "code" else " ", len(indent) + len(mark) + 4, MOST - 1)
            if at < 0:
                continue
            head, rest = line[: at + (kind == "code")], line[at + (2 if kind == "code" else 1) :]
            below = lines[row] if row < len(lines) else ""
            own = below[len(indent) :]
            joins = below.startswith(indent) and own[:1] not in ("", " ", ")", "}", "]", "-", "*", "|")
            goes_on = (kind == "text" and row < last and not own.startswith(('"""', ">>>"))) or (
                kind == "comment" and own.startswith("# ")
            )
            if kind == "code":
                goes_on = row < last and not line.rstrip().endswith(("(", "[", "{"))
            if joins and goes_on:
                lines[row - 1 : row + 1] = [head, f"{indent}{mark}{rest.strip()} {own.removeprefix(mark)}"]
            else:
                lines[row - 1 : row] = [head, f"{indent}{mark}{rest.strip()}"]
        else:
            continue
        done += 1
    path.write_text("\n".join(lines), encoding="utf-8")
    return done


if __name__ == "__main__":
    sys.exit(main())
