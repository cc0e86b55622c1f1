"""Every name that a docstring, a comment or a document has in backticks is there. One that was changed in the code and
not in a text, or is misspelt, leads a reader nowhere."""

from __future__ import annotations

import ast
import builtins
import importlib
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
NAME = re.compile(r"[A-Za-z_][\w.]*(?:/[\w.<>-]+)*/?")
ELSEWHERE = {
    "llama.cpp's": r"(llm|llama|unicode|tokenizer_st|xcda)_\w+|Llama\.\w+|fragment_buffer_variant|linefeed_id|"
    r"xllamacpp|gemma4|whitespace",
    "keys of GGUF files": r"(tokenizer|general)\.[\w.]+",
    "Hugging Face's: components of a tokenizer.json, classes, options": r"ByteLevel|Split|WordLevel|Whitespace(Split)?|"
    r"Punctuation|Digits|Nmt|Precompiled|FixedLength|CharDelimiterSplit|UnicodeScripts|StripAccents|Bert\w+|NFK[CD]|"
    r"AddedVocabulary|\w+Trainer|(Auto)?Tokenizer\.from_\w+|AutoTokenizer|offset_mapping|add_[be]os_token|datasets?(\.\w+)?|"
    r"clean_up_tokenization_spaces|denormalizer",
    "sentencepiece's": r"precompiled_charsmap|\w+_trainer\.cc|spm_train|SentencePieceProcessor|normalize_prefix|"
    r"sp\.encode",
    "tiktoken's": r"encode_ordinary(_batch)?|num_threads|disallowed_special|[\w-]+\.tiktoken",
    "files that a user has, or a corpus holds": r"\w+\.(json|txt|model|jsonl|gguf)|[\w/.-]*N{5}[\w.]*|"
    r"errors/0+\.jsonl",
    "pyarrow's": r"ParquetFile\.\w+",
    "programs that take a tokenizer": r"DataCollatorWithPadding|For\w+(Modeling|Classification)|SFTTrainer|HFLM|"
    r"(RecursiveCharacter|Token)TextSplitter|(Token|Recursive)Chunker|token_counter|semchunk\.chunkerify|model\.tokenizer",
    "loaders of torch and Grain": r"(torch\.utils\.data\.)?(Stateful)?DataLoader|IterableDataset|grain\.[\w.]+",
    "OLMo's and Kubernetes'": r"label_mask|OOMKilled",
    "made up, to be filled in": r".*<\w+>.*|vX\.Y\.Z|[A-Z]+|[\w.]+\.NAME",
    "what the environment sets": r"(JITTOK|PYTHON|NUMBA|RAY)_\w+",
    "characters of examples": r"[a-d]{2,4}|Hello|sop",
    "programs, and functions of C": r"cat|ci|cpuid|memset|details|notebook",
}
"""What is named and is not of this checkout, of Python or of a package that is installed: whose, and which."""


@cache
def files() -> frozenset[str]:
    """Every file of the checkout, and every folder that holds one."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):  # an unpacked source distribution
        listed = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if ".venv" not in path.parts]
    names = [name for name in listed if (ROOT / name).is_file()]
    return frozenset([*names, *(str(above) for name in names for above in Path(name).parents)])


@cache
def ends() -> frozenset[str]:
    """How those may be named: from any folder on, with or without `.py`."""
    found = set()
    for name in files():
        parts = name.split("/")
        every = ["/".join(parts[k:]) for k in range(len(parts))]
        found |= {*every, *(each.removesuffix(".py") for each in every)}
    return frozenset(found)


def sources() -> list[str]:
    return [name for name in sorted(files()) if name.startswith("jittok/") and name.endswith(".py")]


@cache
def tree(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(encoding="utf-8"))


@cache
def words(name: str) -> frozenset[str]:
    """All that one module calls by a name: what it binds and imports, attributes, keywords, words of short strings."""
    found: set[str] = set()
    for node in ast.walk(tree(name)):
        for field in ("id", "attr", "arg", "name", "asname", "module"):
            if isinstance(value := getattr(node, field, None), str):
                found |= {value, *value.split(".")}
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            found |= {*re.findall(r"[\w.-]+", node.value)}
    return frozenset(found)


@cache
def everywhere() -> frozenset[str]:
    """Names that any module defines, the modules among them, and strings that are names: of options, encodings."""
    found: set[str] = set()
    for name in sources():
        found |= {*Path(name).with_suffix("").parts}
        for node in ast.walk(tree(name)):
            match node:
                case ast.FunctionDef(name=own) | ast.ClassDef(name=own) | ast.arg(arg=own):
                    found.add(own)
                case ast.Name(id=own, ctx=ast.Store()) | ast.Attribute(attr=own, ctx=ast.Store()):
                    found.add(own)
                case ast.Constant(value=str(own)) if re.fullmatch(r"[\w.-]+", own) and ("_" in own or "-" in own):
                    found.add(own)
    return frozenset(found)


@cache
def strings() -> frozenset[str]:
    """Strings of the package that are one word: values of options, kinds, columns."""
    every = (ast.walk(tree(name)) for name in sources())
    found = {node.value for nodes in every for node in nodes if isinstance(node, ast.Constant)}
    return frozenset(value for value in found if isinstance(value, str) and re.fullmatch(r"\w+", value))


@cache
def outside(name: str) -> bool:
    """Whether this is Python's, or in an installed package."""
    parts = name.split(".")
    if hasattr(builtins, parts[0]) or (len(parts) == 1 and hasattr(np, name)):
        return True
    for k in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:k]).replace("np", "numpy", parts[0] == "np"))
        except (ImportError, ValueError):
            continue
        for part in parts[k:]:
            thing = getattr(thing, part, None)
        return thing is not None
    return False


def is_there(text: str, near: frozenset[str] = frozenset()) -> bool:
    """Whether a name is known: to the module that says it (`near`), to the package, as a file, to Python, elsewhere."""
    name = text.strip("./")
    parts = [part for part in re.split(r"[./]", name) if part]
    if name in near or all(part in near for part in parts) or all(part in everywhere() for part in parts):
        return True
    if name in ends() or any(re.fullmatch(known, text) for known in ELSEWHERE.values()):
        return True
    return outside(name)


def named(text: str) -> Iterator[tuple[int, str]]:
    """(line, name) of what is in backticks and reads like a name; of a call, what is called."""
    for number, line in enumerate(text.splitlines(), 1):
        for inside in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", line):
            name = re.split(r"[(\[=]", inside)[0]
            if NAME.fullmatch(name):
                yield number, name


def documents() -> list[str]:
    own = [name for name in files() if re.fullmatch(r"[A-Z]+\.md|docs/(moving/[\w-]+|[\w/]+)\.md", name)]
    return sorted(set(own) - {"CHANGELOG.md"})  # which names what was


def test_the_names_in_docstrings_and_comments_are_there() -> None:
    lost = []
    for source in sources():
        near = words(source)
        found = named((ROOT / source).read_text(encoding="utf-8"))
        lost += [f"{source}:{number}: {name}" for number, name in found if not is_there(name, near)]
    assert not lost, "\n".join(["no such name:", *lost])


def test_the_names_in_documents_are_there() -> None:
    assert len(documents()) > 5
    lost = []
    for document in documents():
        text = (ROOT / document).read_text(encoding="utf-8")
        if document.startswith("docs/moving/"):  # the first column has the names of another library
            text = re.sub(r"^\| .*? \|", "|", text, flags=re.M)
        found = named(text)
        lost += [f"{document}:{number}: {name}" for number, name in found if not is_there(name, strings())]
    assert not lost, "\n".join(["no such name:", *lost])


@pytest.mark.parametrize(
    "name", ["no_such_name", "jittok/no_such_file.py", "Tokenizer.no_such_method", "numpy.no_such"]
)
def test_a_name_that_is_nowhere_is_found(name: str) -> None:
    assert [*named(f"see `{name}(text)`.")] == [(1, name)]
    assert not is_there(name)


def test_each_name_from_elsewhere_is_still_in_some_text() -> None:
    texts = [*sources(), *documents()]
    every = {name for text in texts for _, name in named((ROOT / text).read_text(encoding="utf-8"))}
    assert [whose for whose, known in ELSEWHERE.items() if not any(re.fullmatch(known, name) for name in every)] == []


def test_the_glossary_says_once_what_a_term_is() -> None:
    lines = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    heads = [line.split(": ")[0] for line in lines if line.startswith("- ")]
    terms = [term for head in heads for term in re.findall(r"\*\*([^*]+)\*\*", head)]
    assert len(terms) >= 50
    assert sorted(terms) == sorted(set(terms))
