"""Messages name an option as their reader writes it: `on_error` in Python, `--on-error` on the command line."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path

import pytest

import jittok
from jittok.corpus import Options
from jittok.errors import (
    IN_PYTHON,
    PAGES,
    ChatError,
    CompilerMissing,
    CorpusError,
    InWords,
    MalformedVocab,
    MarksLost,
    TemplateError,
    UnsupportedVocab,
    in_python,
    missing,
    see,
)
from jittok.train.bpe import Options as TrainOptions

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("given", "python"),
    [
        ("1 or more (--max-document-bytes)", "1 or more (max_document_bytes)"),
        ("--input-format jsonl for a document a line", "kind='jsonl' for a document a line"),
        ("another --out", "another out"),
        ("--pre NAME. Or none", "pre='NAME'. Or none"),
        ("--no-space-check goes on", "check_space=False goes on"),
        ("a text--with strokes -- and more", "a text--with strokes -- and more"),
        ("pip install --upgrade jittok", "pip install --upgrade jittok"),
    ],
)
def test_options_have_their_names_of_python(given: str, python: str) -> None:
    assert in_python(given) == python


@pytest.mark.parametrize(
    "error",
    [
        CorpusError("--append-eos", InWords("a vocabulary"), "no --append-eos"),
        UnsupportedVocab("", "--pre", "x", "another --pre"),
    ],
)
def test_an_error_knows_both_names_and_a_pickle_keeps_them(error: CorpusError | UnsupportedVocab) -> None:
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert "--" not in str(each)
        assert each.on_command_line is not None
        assert each.on_command_line.startswith("--")
        assert "--" not in each.expected
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_every_option_that_an_error_names_has_a_name_in_python() -> None:
    named = set()
    for path in sorted((Path(jittok.__file__).parent).rglob("*.py")):
        if path.parent.name != "cli":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("CorpusError", "UnsupportedVocab"):
                    named |= set(re.findall(r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)", ast.unparse(node)))
    assert len(named) > 20
    assert named - {"upgrade"} <= set(IN_PYTHON)


def test_a_file_may_be_called_like_an_option_and_what_was_found_stays() -> None:
    error = CorpusError("data/--out", "--out", "another name")
    assert str(error) == "data/--out: found '--out', expected another name" == error.on_command_line


def test_python_hears_pythons_names() -> None:
    with pytest.raises(CorpusError, match=r"^on_error: found 'x', expected one of fail, skip, replace$"):
        Options(on_error="x")
    with pytest.raises(CorpusError, match=r"^kind: found 'x', expected one of txt"):
        Options(kind="x")
    with pytest.raises(CorpusError, match=r"^min_frequency: found -1, expected a whole number"):
        TrainOptions(size=300, min_frequency=-1)
    with pytest.raises(UnsupportedVocab, match=r"^pre: found 'x', expected a name that llama.cpp"):
        jittok.bundled("gpt-2", pre="x")


@pytest.mark.parametrize("about", PAGES)
def test_every_page_that_a_message_names_exists_and_is_named_by_one(about: str) -> None:
    path, _, anchor = PAGES[about].partition("#")
    text = (ROOT / path).read_text("utf-8")
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    slugs = {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", head.lower()).strip()) for head in heads}
    assert not anchor or anchor in slugs
    sources = "\n".join(each.read_text("utf-8") for each in sorted((ROOT / "jittok").rglob("*.py")))
    assert f'see("{about}")' in sources or f'about = "{about}"' in sources


@pytest.mark.parametrize(
    ("error", "about"),
    [
        (UnsupportedVocab("a.json", "model", "x", "y"), "file"),
        (UnsupportedVocab("", "--pre", "x", "y"), None),
        (MalformedVocab("a.json", "model", "x", "y"), None),
        (CorpusError("a", "x", "y"), None),
        (ChatError("a", "x", "y"), None),
        (TemplateError("a", "x", "y", 3), "template"),
        (MarksLost("a", "x", "y"), "template"),
        (CompilerMissing("a", "x"), "compiler"),
        (missing("a", "b", "c"), "extra"),
    ],
    ids=str,
)
def test_a_message_ends_with_its_page_where_there_is_one(error: Exception, about: str | None) -> None:
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert str(each).endswith("y" if about is None else see(about))
        assert "docs/" not in getattr(each, "expected", "")


def test_words_need_no_quotes_and_print_nothing_that_moves_a_terminal() -> None:
    assert str(CorpusError("a", InWords("3 rows"), "2")) == "a: found 3 rows, expected 2"
    assert str(CorpusError("a", InWords("columns \x1b[2J\n"), "2")) == "a: found columns \\x1b[2J\\n, expected 2"
    assert str(MalformedVocab("a", "b", None, "c")) == "a: b: found nothing, expected c"
