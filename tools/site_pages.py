"""Stages the pages of the documentation site, and checks the site that was built: make docs runs

    python tools/site_pages.py && zensical build --strict && python tools/site_pages.py --check

build/site/pages gets docs/, DESIGN.md and CHANGELOG.md, the lessons of notebooks/ as pages with their saved results,
the help of every command, and llms.txt. Links to files that are no pages become their names.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build" / "site" / "pages"
MOVED = {
    "DESIGN.md": "design.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "bench/WHAT_WORKED.md": "what-worked.md",
    "README.md": "index.md",
}
"""File of the repository -> its page."""
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
FENCED = re.compile(r"(^```.*?^```$)", re.M | re.S)
CSS = """
.jittok-output { overflow-x: auto; font-size: .75rem; margin-bottom: 1em }
.md-typeset table:not([class]) { display: table; font-size: .7rem }
[data-md-color-scheme] { --jittok-link: #2a3fb8; --jittok-soft: #595f68 }
[data-md-color-scheme=slate] { --jittok-link: #a9b8ff; --jittok-soft: #a3a9b3 }
.md-typeset a, .md-nav__link--active, .md-nav__link--active .md-ellipsis { color: var(--jittok-link) }
.md-typeset .doc-label { opacity: 1 }
.jittok-output [style*="opacity:.55"] { opacity: .8 !important }
.md-typeset .doc-label code,
.md-typeset .highlight :is(.c, .c1, .gp, .o, .p), .md-footer a { color: var(--jittok-soft) }
"""

JS = """
// Landmarks of the theme get names of their own, and what scrolls sideways is reached by the keyboard.
const mend = () => {
  document.querySelectorAll("nav.md-nav[aria-labelledby]").forEach(nav => {
    const title = nav.querySelector(":scope > .md-nav__title")
    nav.setAttribute("aria-label", `pages: ${title ? title.textContent.trim() : "all"}`)
    nav.removeAttribute("aria-labelledby")
  })
  document.querySelectorAll("nav.md-code__nav").forEach((nav, k) => nav.setAttribute("aria-label", `code ${k + 1}`))
  document.querySelectorAll(".md-typeset__scrollwrap, .jittok-output").forEach(box => {
    if (box.scrollWidth > box.clientWidth) box.setAttribute("tabindex", "0")
  })
}
let waiting = 0
const later = () => { clearTimeout(waiting); waiting = setTimeout(mend, 50) }
new MutationObserver(later).observe(document.documentElement, { childList: true, subtree: true })
addEventListener("resize", later)
addEventListener("load", mend)
"""


def page_of(path: Path) -> str | None:
    """The page of a file of the repository, from the root of the site; None where there is none."""
    try:
        name = path.resolve().relative_to(ROOT).as_posix()
    except ValueError:
        return None
    if name in MOVED:
        return MOVED[name]
    if name.startswith("docs/") and path.exists():
        return name.removeprefix("docs/")
    if name.startswith("notebooks") and path.exists():
        return "lessons/index.md" if path.is_dir() else f"lessons/{path.stem}.md"
    return None


def relinked(text: str, source: Path, page: str) -> str:
    """A page with its links to other pages; links to other files of the repository become their names."""

    def link(found: re.Match[str]) -> str:
        picture, label, target = found.groups()
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path:
            return found[0]
        other = page_of(source.parent / path)
        if other is None and (PAGES / page).parent.joinpath(path).exists():
            return found[0]
        if other is None:
            return label if picture else f"{label} (`{(source.parent / path).resolve().relative_to(ROOT).as_posix()}`)"
        relative = os.path.relpath(other, PurePosixPath(page).parent).replace(os.sep, "/")
        return f"{picture}[{label}]({relative}{'#' + anchor if anchor else ''})"

    parts = FENCED.split(text)
    parts[::2] = [LINK.sub(link, part) for part in parts[::2]]
    return "".join(parts)


def lesson(path: Path) -> str:
    """A notebook as a page, with the results that are saved in it."""
    return "\n\n".join(_cells(json.loads(path.read_text("utf-8")))) + "\n"


def _cells(notebook: dict[str, list[dict[str, object]]]) -> Iterator[str]:
    for cell in notebook["cells"]:
        source = "".join(cell["source"])  # type: ignore[arg-type]
        if cell["cell_type"] == "markdown":
            yield source
        elif source.strip():
            yield f"```python\n{source}\n```"
            for output in cell.get("outputs", ()):  # type: ignore[attr-defined]
                yield from _output(output)


def _output(output: dict[str, object]) -> Iterator[str]:
    data = output.get("data", {})
    assert isinstance(data, dict)
    if "text/html" in data:
        shown = "".join(data["text/html"]).replace("\n", "&#10;")
        yield f'<div class="jittok-output">{shown}</div>'
    elif "image/svg+xml" in data:
        yield f'<div class="jittok-output">{"".join(data["image/svg+xml"])}</div>'
    elif "image/png" in data:
        packed = "".join(data["image/png"]).replace("\n", "")
        yield f'<div class="jittok-output"><img alt="figure" src="data:image/png;base64,{packed}"></div>'
    else:
        text = "".join(output.get("text", data.get("text/plain", "")))  # type: ignore[arg-type]
        if text.strip():
            yield f'<pre class="jittok-output"><code>{html.escape(text)}</code></pre>'


def commands() -> str:
    """A page with the help of every command."""
    from jittok.cli import TASKS, build_parser

    parser = build_parser()
    subs = next(action for action in parser._actions if hasattr(action, "choices") and action.choices)
    lines = ["# Commands", "", "`jittok COMMAND --help` prints the same.", ""]
    for task, names in TASKS.items():
        lines += [f"## {task.capitalize()}", ""]
        for name in names:
            lines += [f"### jittok {name}", "", "```text", _help(subs.choices[name]), "```", ""]
    return "\n".join(lines)


def _help(parser: argparse.ArgumentParser) -> str:
    """The help of a command, 90 columns wide."""
    kind = parser.formatter_class
    parser.formatter_class = partial(kind, width=90)  # type: ignore[assignment]
    return parser.format_help().rstrip()


def llms(pages: list[str]) -> str:
    """llms.txt: what jittok is, and one line a page."""
    lines = [
        "# jittok",
        "",
        "> The tokenizer of any open model, with exactly its ids, at the speed of a corpus. For Python.",
        "",
    ]
    lines += ["## Pages", ""]
    for page in pages:
        text = (PAGES / page).read_text("utf-8")
        title = next((line[2:] for line in text.splitlines() if line.startswith("# ")), page)
        prose = FENCED.sub("", text.split("\n", 1)[1] if text.startswith("# ") else text)
        first = next(
            (
                " ".join(part.split())
                for part in prose.split("\n\n")
                if part.strip() and part.strip()[0] not in "|#<:!-"
            ),
            "",
        )
        lines.append(f"- [{title}]({page}): {first[:160]}")
    return "\n".join(lines) + "\n"


def stage() -> list[str]:
    """Write all pages; returns their names."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES, ignore=shutil.ignore_patterns("*.py", "*.1"))
    for source in sorted((ROOT / "docs").rglob("*.md")):
        name = source.relative_to(ROOT / "docs").as_posix()
        (PAGES / name).write_text(relinked(source.read_text("utf-8"), source, name), "utf-8")
    for name, page in MOVED.items():
        if name != "README.md":
            (PAGES / page).write_text(relinked((ROOT / name).read_text("utf-8"), ROOT / name, page), "utf-8")
    (PAGES / "lessons").mkdir()
    listed = [
        "# Lessons",
        "",
        "Twelve notebooks of ten minutes each; run them from `notebooks/` to change what they show.",
        "",
    ]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        text = relinked(lesson(path), path, f"lessons/{path.stem}.md")
        (PAGES / "lessons" / f"{path.stem}.md").write_text(text, "utf-8")
        title = next(line[2:] for line in text.splitlines() if line.startswith("# "))
        listed.append(f"{len(listed) - 3}. [{title}]({path.stem}.md)")
    (PAGES / "lessons" / "index.md").write_text("\n".join(listed) + "\n", "utf-8")
    (PAGES / "reference" / "commands.md").write_text(commands(), "utf-8")
    (PAGES / "site.css").write_text(CSS, "utf-8")
    (PAGES / "site.js").write_text(JS, "utf-8")
    names = sorted(path.relative_to(PAGES).as_posix() for path in PAGES.rglob("*.md"))
    (PAGES / "llms.txt").write_text(llms(names), "utf-8")
    return names


def broken(site: Path) -> list[str]:
    """Links of a built site that lead nowhere, anchors that no page has, and what would be fetched from elsewhere."""
    pages = {path.relative_to(site).as_posix(): path.read_text("utf-8") for path in site.rglob("*.html")}
    ids = {name: set(re.findall(r'\sid="([^"]*)"', text)) for name, text in pages.items()}
    found = []
    for name, text in pages.items():
        for kind, target in re.findall(r'\s(href|src)="([^"]*)"', text):
            where, _, anchor = html.unescape(target).partition("#")
            if re.match(r"[a-z+]+:|//", where):
                if kind == "src" and not where.startswith("data:"):
                    found.append(f"{name}: fetches {target}")
                continue
            base = PurePosixPath("" if where.startswith("/") else name).parent
            path = os.path.normpath(base / unquote(where).lstrip("/")) if where else name
            if not (site / path).exists():
                found.append(f"{name}: no {target}")
            elif anchor and path in ids and unquote(anchor) not in ids[path]:
                found.append(f"{name}: no anchor {target}")
    return found


def main(arguments: list[str]) -> int:
    """Stage, or check with --check; returns the exit status."""
    if arguments == ["--check"]:
        wrong = broken(PAGES.parent / "html")
        print("\n".join(wrong) if wrong else "every link and anchor is there")
        return 1 if wrong else 0
    print(f"{len(stage())} pages staged in {PAGES.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
