"""Whose ids are those of a file's own library: `python bench/exactness.py FOLDER`; `--docs` writes the table.

FOLDER has one folder, or one `.tar.xz` of a folder, for each set of files; without it the small sets of the tests are
taken. The own library of a set gives the right ids of some documents: tokenizers, sentencepiece, tiktoken,
mistral-common, pyrwkv-tokenizer, transformers. Every other program is asked for the same ids, each set in a process of
its own, as some crash. No special tokens are added, and documents that spell special tokens are left out. What a
file says of truncation and padding is taken out of it, as not all programs can be told to leave it. `--newer PYTHON`: a
Python that has tokenizers 1.0, which is asked beside the others.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import compare
import peers

HERE = Path(__file__).resolve().parent
MARKS = ("<!-- exactness -->\n", "<!-- /exactness -->")
CORPORA = ("english", "code", "multilingual")
LONGEST = 20_000
"""Bytes of a document that is asked."""
SECONDS = 600
"""What a program may take for one set."""
RANK_PATTERNS = {"llama-3-tiktoken": "llama-bpe", "qwen-tiktoken": "qwen2"}
"""Sets of ranks with a pattern of their own, which no file says -> the pattern's name in `peers.PATTERNS`."""
SPLINTR_NAMES = {
    "r50k_base": "GPT2_PATTERN", "cl100k_base": "CL100K_BASE_PATTERN", "o200k_base": "O200K_BASE_PATTERN",
}  # fmt: skip
GIGATOKEN_NAMES = {"llama-bpe": "cl100k", "qwen2": "qwen2"}
KINDS = ("tokenizer.json", ".model", "ranks", "tekken.json", "RWKV list", "vocab files")
OWN = {
    "tokenizer.json": "tokenizers", ".model": "sentencepiece", "ranks": "tiktoken", "tekken.json": "mistral-common",
    "RWKV list": "pyrwkv-tokenizer", "vocab files": "transformers",
}  # fmt: skip
PACKAGES = {"splintr": "splintr-rs", "iree": "iree-tokenizer"}
"""Program -> its package, where the names differ."""
Encode = Callable[[str], list[int]]


class Set(NamedTuple):
    """Files of one tokenizer."""

    name: str
    kind: str
    path: Path  # the file, or the folder of vocab files

    @property
    def pattern(self) -> str | None:
        """The pattern of ranks that no library knows by name."""
        return peers.PATTERNS[RANK_PATTERNS[self.name]] if self.name in RANK_PATTERNS else None


def kind_of(folder: Path) -> tuple[str, Path] | None:
    """(kind, what is loaded) of a folder of files; None for one that has no tokenizer."""
    for name in ("tokenizer.json", "tekken.json"):
        if (folder / name).exists():
            return name, folder / name
    for path in [*sorted(folder.glob("*.model")), *sorted(folder.glob("*.tiktoken"))]:
        return (".model" if path.read_bytes()[:1] == b"\n" else "ranks"), path
    for path in sorted(folder.glob("rwkv*.txt")):
        return "RWKV list", path
    return ("vocab files", folder) if {p.name for p in folder.iterdir()} & {"vocab.txt", "vocab.json"} else None


def sets_in(folder: Path, unpacked: Path) -> list[Set]:
    """All sets of a folder; archives are unpacked first."""
    for archive in sorted(folder.glob("*.tar.xz")):
        with tarfile.open(archive) as file:
            file.extractall(unpacked, filter="data") if hasattr(tarfile, "data_filter") else file.extractall(unpacked)
    found = []
    for each in sorted(path for base in (folder, unpacked) for path in base.iterdir() if path.is_dir()):
        known = None if each.name.startswith("malformed") else kind_of(each)
        if known:
            found.append(Set(each.name, *known))
    return found


def without_truncation(each: Set, folder: Path) -> Set:
    """The set with a copy of its tokenizer.json that neither truncates nor pads."""
    if each.kind != "tokenizer.json":
        return each
    content = json.loads(each.path.read_text("utf-8"))
    if content.get("truncation") is None and content.get("padding") is None:
        return each
    copy = folder / "plain" / each.name / each.path.name
    copy.parent.mkdir(parents=True)
    copy.write_text(json.dumps({**content, "truncation": None, "padding": None}, ensure_ascii=False), encoding="utf-8")
    return each._replace(path=copy)


def documents(count: int) -> list[str]:
    """Some documents of each corpus, at even distances."""
    chosen = []
    for name in CORPORA:
        texts = [text for text in compare.corpus(name) if len(text) <= LONGEST]
        chosen += texts[:: max(1, len(texts) // count)][:count]
    return [text.decode("utf-8", "replace") for text in chosen]


# ---- the libraries themselves


def _known_encoding(path: Path) -> dict[str, Any]:
    """What tiktoken knows of an encoding, with ranks from the file."""
    import tiktoken_ext.openai_public as public
    from tiktoken.load import load_tiktoken_bpe

    ranks = load_tiktoken_bpe(str(path))
    public.load_tiktoken_bpe = lambda *_args, **_options: ranks
    return public.ENCODING_CONSTRUCTORS[path.stem]()


def own_library(each: Set) -> tuple[Encode, Encode]:
    """The right ids of a text: without special tokens, and with those that the text spells."""
    if each.kind in ("tokenizer.json", "vocab files"):
        if each.kind == "tokenizer.json":
            from tokenizers import Tokenizer

            tok = Tokenizer.from_file(str(each.path))
        else:
            import transformers

            config = each.path / "tokenizer_config.json"
            default = "BertTokenizer" if (each.path / "vocab.txt").exists() else "GPT2Tokenizer"
            name = json.loads(config.read_text("utf-8")).get("tokenizer_class", default) if config.exists() else default
            tok = getattr(transformers, name.removesuffix("Fast")).from_pretrained(str(each.path)).backend_tokenizer
        tok.no_truncation()
        tok.no_padding()

        def plain(text: str, special: bool = False) -> list[int]:
            tok.encode_special_tokens = not special
            return tok.encode(text, add_special_tokens=False).ids

        return plain, lambda text: plain(text, True)
    if each.kind == ".model":
        from sentencepiece import SentencePieceProcessor

        model = SentencePieceProcessor(model_file=str(each.path))
        return (model.encode,) * 2
    if each.kind == "tekken.json":
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        tekken = Tekkenizer.from_file(each.path)
        return (lambda text: tekken.encode(text, bos=False, eos=False),) * 2
    if each.kind == "RWKV list":
        from pyrwkv_tokenizer import RWKVTokenizer

        return (RWKVTokenizer().encode,) * 2
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    if each.pattern:
        known = {"pat_str": each.pattern, "mergeable_ranks": load_tiktoken_bpe(str(each.path)), "special_tokens": {}}
        encoding = tiktoken.Encoding(each.name, **known)
    else:
        encoding = tiktoken.Encoding(**_known_encoding(each.path))
    return encoding.encode_ordinary, lambda text: encoding.encode(text, allowed_special="all")


# ---- the programs beside each other


def _jittok(each: Set) -> Encode:
    import jittok

    options = {"pattern": each.pattern} if each.pattern else {}
    tok = jittok.load(each.path, **options)
    return lambda text: tok.encode(text).tolist()


def _gigatoken(each: Set) -> Encode:
    from gigatoken import Tokenizer

    if each.kind == ".model":
        tok = Tokenizer.from_sentencepiece(str(each.path))
    elif each.kind == "ranks":
        named = GIGATOKEN_NAMES[RANK_PATTERNS[each.name]] if each.pattern else None
        tok = Tokenizer.from_tiktoken(str(each.path), pretokenizer=named)
    else:
        tok = Tokenizer(str(each.path))
    return lambda text: tok.encode(text).tolist()


def _tokie(each: Set) -> Encode:
    from tokie import Tokenizer

    tok = Tokenizer.from_json(str(each.path))
    return lambda text: tok.encode(text, add_special_tokens=False).ids


def _kitoken(each: Set) -> Encode:
    from kitoken import Kitoken

    tok = Kitoken.from_file(str(each.path))
    return lambda text: tok.encode(text, encode_specials=False)


def _splintr(each: Set) -> Encode:
    import splintr

    if each.kind == "ranks":
        pattern = each.pattern or getattr(splintr, SPLINTR_NAMES[each.path.stem])
        return splintr.Tokenizer.from_bytes(each.path.read_bytes(), pattern).encode_ordinary
    return splintr.from_json(str(each.path)).encode_raw


def _iree(each: Set) -> Encode:
    from iree.tokenizer import Tokenizer

    load = Tokenizer.from_file if each.kind == "tokenizer.json" else Tokenizer.from_tiktoken
    return load(str(each.path), *([each.path.stem] if each.kind == "ranks" else [])).encode


NEWER = "tokenizers 1.0"
NEWER_CHILD = """
import json, sys
from tokenizers import Tokenizer
path, source, target = sys.argv[1:]
tok = Tokenizer.from_file(path)
with open(target, "w") as file:
    file.write("loaded\\n")
    for text in json.load(open(source, encoding="utf-8")):
        try:
            ids = list(tok.encode(text, add_special_tokens=False, encode_special_tokens=True).ids)
        except Exception as error:
            ids = str(error)
        file.write(json.dumps(ids) + "\\n")
        file.flush()
"""
"""What the other Python runs: the work of `child`."""


def _not_here(_: Set) -> Encode:
    raise ImportError(f"{NEWER} is asked in a Python of its own: --newer PYTHON")


PROGRAMS: dict[str, tuple[Callable[[Set], Encode], tuple[str, ...]]] = {
    "jittok": (_jittok, KINDS),
    "gigatoken": (_gigatoken, ("tokenizer.json", ".model", "ranks")),
    "tokie": (_tokie, ("tokenizer.json",)),
    "kitoken": (_kitoken, ("tokenizer.json", ".model", "ranks", "tekken.json")),
    "splintr": (_splintr, ("tokenizer.json", "ranks")),
    "iree": (_iree, ("tokenizer.json", "ranks")),
    NEWER: (_not_here, ("tokenizer.json",)),
}
"""Program -> (loads a set, the kinds that it has a reader for)."""


def child(program: str, each: Set, source: Path, target: Path) -> None:
    """Write the ids of every document, one line each: the work of one process."""
    texts = json.loads(source.read_text("utf-8"))
    encode = PROGRAMS[program][0](each)
    with target.open("w") as file:
        file.write("loaded\n")
        for text in texts:
            try:
                ids: Any = [int(token) for token in encode(text)]
            except Exception as error:  # noqa: BLE001  the programs have errors of their own
                ids = str(error)
            file.write(json.dumps(ids) + "\n")
            file.flush()


def ask(program: str, each: Set, texts: list[str], right: list[list[int]], newer: str | None = None) -> dict[str, Any]:
    """Whether a program loads a set, and in how many documents its ids differ."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "texts.json", Path(folder) / "ids.txt"
        source.write_text(json.dumps(texts), encoding="utf-8")
        command = [sys.executable, __file__, "--child", program, each.name, each.kind]
        if program == NEWER:
            command = [str(newer), "-c", NEWER_CHILD]
        command += [str(each.path), str(source), str(target)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
            said = (done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"status {done.returncode}"])[-1]
        except subprocess.TimeoutExpired:
            said = f"more than {SECONDS} s"
        lines = target.read_text().splitlines() if target.exists() else []
    if lines[:1] != ["loaded"]:
        return {"loaded": False, "said": said[:200]}
    rows = [json.loads(line) for line in lines[1:]]
    rows += [None] * (len(right) - len(rows))  # where it crashed
    return {"loaded": True, "differ": sum(a != b for a, b in zip(rows, right, strict=True))}


def _version(name: str) -> str | None:
    if name == "jittok":
        return importlib.import_module(name).__version__  # of this checkout, whatever is installed
    try:
        return importlib.metadata.version(PACKAGES.get(name, name))
    except importlib.metadata.PackageNotFoundError:
        print(f"{name} is not installed", file=sys.stderr)
        return None


def version_of(python: str) -> str:
    """The version of tokenizers that another Python has."""
    command = [python, "-c", "import tokenizers; print(tokenizers.__version__)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def measure(
    folder: Path | None, count: int, programs: list[str], only: list[str], newer: str | None = None
) -> dict[str, Any]:
    """The report of all programs on all sets."""
    results: list[dict[str, Any]] = []
    asked = documents(count)
    with tempfile.TemporaryDirectory() as unpacked:
        for each in sets_in(folder or HERE.parent / "tests" / "data" / "files", Path(unpacked)):
            if only and each.name not in only:
                continue
            each = without_truncation(each, Path(unpacked))  # noqa: PLW2901
            try:
                plain, special = own_library(each)
            except ImportError as error:
                print(f"{each.name}: left out, {error}", file=sys.stderr)
                continue
            texts = [text for text in asked if plain(text) == special(text)]
            right = [list(map(int, plain(text))) for text in texts]
            row: dict[str, Any] = {"set": each.name, "kind": each.kind, "documents": len(texts), "programs": {}}
            for program in programs:
                if each.kind in PROGRAMS[program][1]:
                    row["programs"][program] = ask(program, each, texts, right, newer)
            results.append(row)
            print(json.dumps(row), flush=True)
    versions = {name: version for name in [*programs, *OWN.values()] if name != NEWER and (version := _version(name))}
    if newer:
        versions[NEWER] = version_of(newer)
    python = f"Python {platform.python_version()}"
    return {"date": time.strftime("%Y-%m-%d"), "python": python, "versions": versions, "results": results}


def table(report: dict[str, Any]) -> str:
    """The table of docs/exactness.md: sets with the right ids, of those that are loaded."""
    rows, installed = report["results"], report["versions"]
    sizes = {kind: sum(row["kind"] == kind for row in rows) for kind in KINDS}
    kinds = [kind for kind in KINDS if sizes[kind]]
    lines = ["| | " + " | ".join(f"{kind}: {sizes[kind]}" for kind in kinds) + f" | all: {len(rows)} |"]
    lines.append("|---" * (len(kinds) + 2) + "|")
    for program in PROGRAMS:
        said = [(row["kind"], row["programs"][program]) for row in rows if program in row["programs"]]
        if program not in installed or not said:
            continue
        cells = []
        for kind in (*kinds, None):
            loaded = [each for known, each in said if each["loaded"] and kind in (known, None)]
            cells.append(f"{sum(not each['differ'] for each in loaded)} / {len(loaded)}" if loaded else "")
        lines.append(f"| {program} | " + " | ".join(cells) + " |")
    lines.append("| right by definition | " + " | ".join(OWN[kind] for kind in kinds) + " | |")
    return "\n".join(lines) + "\n"


def write_page(report: dict[str, Any], path: Path) -> None:
    """Replace what is between the marks."""
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    most = max(row["documents"] for row in report["results"])
    about = f"{report['date']}, up to {most} documents a set, {report['python']}; " + ", ".join(
        f"{name} {version}" for name, version in report["versions"].items()
    )
    body = table(report) + "\n" + "\n".join(textwrap.wrap(f"{about}.", 120, break_on_hyphens=False))
    path.write_text(f"{before}{MARKS[0]}{body}\n\n{MARKS[1]}{after}", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Ask, write, and print the table."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["--child"]:
        program, name, kind, path, source, target = given[1:]
        child(program, Set(name, kind, Path(path)), Path(source), Path(target))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="folder of sets; without it the sets of the tests")
    parser.add_argument("--documents", type=int, default=80, help="of each corpus")
    parser.add_argument("--programs", nargs="+", default=list(PROGRAMS), choices=list(PROGRAMS))
    parser.add_argument("--sets", nargs="+", default=[], help="only these; the results of others stay")
    parser.add_argument("--newer", help="a Python that has tokenizers 1.0")
    parser.add_argument("--results", type=Path, help="file for the report, as JSON")
    parser.add_argument("--docs", action="store_true", help="write the table of docs/exactness.md")
    options = parser.parse_args(given)
    programs = [program for program in options.programs if program != NEWER or options.newer]
    report = measure(options.folder, options.documents, programs, options.sets, options.newer)
    if options.results:
        if options.sets and options.results.exists():
            before = json.loads(options.results.read_text("utf-8"))["results"]
            rows = {row["set"]: row for row in [*before, *report["results"]]}
            report["results"] = [rows[name] for name in sorted(rows)]
        options.results.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if options.docs:
        write_page(report, HERE.parent / "docs" / "exactness.md")
    print(table(report))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
