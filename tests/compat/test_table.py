"""The table of docs/compat.md is what the facades have."""

import re

import pytest

import jittok
from jittok.compat import as_sentencepiece, as_tiktoken, as_tokenizers
from jittok.compat.missing import Missing

MADE = {
    "as_tokenizers": lambda: as_tokenizers(jittok.bundled("gpt-2")),
    "as_tiktoken": lambda: as_tiktoken(jittok.bundled("gpt-2")),
    "as_sentencepiece": lambda: as_sentencepiece(jittok.bundled("mistral")),
}


def table():
    for name in ("transformers", "tokenizers", "tiktoken", "sentencepiece"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    return pytest.importorskip("facade_table")


def test_the_page_shows_what_the_facades_have():
    facade_table = table()
    page = facade_table.PAGE.read_text("utf-8")
    shown = page.split(facade_table.MARKS[0])[1].split(facade_table.MARKS[1])[0]
    if facade_table.versions() not in shown:
        pytest.skip(f"the page is of other releases than {facade_table.versions()}")
    assert shown == facade_table.section(), "run python tools/facade_table.py"


def test_every_public_name_is_there_or_refused():
    for row in table().rows():
        assert row.absent == [], row
        assert len(row.present) > 15


@pytest.mark.parametrize("name", MADE)
def test_a_refused_name_raises_and_says_what_to_write(name):
    facade = MADE[name]()
    refused = [each for each in dir(type(facade)) if isinstance(getattr(type(facade), each), Missing)]
    assert refused
    for each in refused:
        with pytest.raises(
            NotImplementedError, match=r"\.\w+ is not in jittok\.compat: .*\b(jittok|tok|add_bos|backend|text)\b"
        ):
            getattr(facade, each)("a", 1)


def test_a_name_that_is_missing_would_be_found():
    facade_table = table()
    row = facade_table.row_of("x", as_tiktoken(jittok.bundled("gpt-2")), "tokenizers", "Encoding")
    assert "word_ids" in row.absent
    assert re.search(r"\| x \| tokenizers\.Encoding \| \d+ of \d+ \|  \| .*word_ids", facade_table.table([row]))
