"""Vocabularies and merges read from the bytes of a file: as a JSON library reads them, or not at all."""

import json
import random
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jittok.files
from jittok.errors import MalformedVocab, UnsupportedVocab
from jittok.files import scan
from jittok.files.numbers import as_read

sys.path.append(str(Path(__file__).parents[1] / "fuzz"))
import small_files
from mutated_files import changed_values, mutations

JSON_KINDS = ("byte_level", "characters", "unigram", "wordpiece", "wordlevel")
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
layouts = st.sampled_from([{}, {"indent": 1}, {"separators": (",", ":")}, {"indent": "\t"}])


def rows_of(found: scan.ScannedTexts) -> list[str]:
    blob, ends = found.data.tobytes(), found.offsets.tolist()
    return [blob[i:j].decode() for i, j in pairwise(ends)]


def parts_of(model: object, around: object = None, ascii_: bool = True, **layout: object) -> tuple[bytes, dict]:
    content = json.dumps({"a": around, "model": model, "z": around}, ensure_ascii=ascii_, **layout).encode()
    return content, scan.large_parts(content)


@given(st.dictionaries(words, st.integers(0, 10**9 - 1), min_size=1), st.booleans(), layouts, words)
def test_ids_are_those_of_the_file(vocab, ascii_, layout, around):
    content, found = parts_of({"x": [around, {}], "vocab": vocab, "y": 1.5}, {around: [around]}, ascii_, **layout)
    start, stop, texts = found["vocab"]
    assert json.loads(content[start:stop]) == vocab
    assert dict(zip(rows_of(texts), texts.numbers.tolist(), strict=True)) == vocab


@given(st.lists(st.tuples(words, words), min_size=1), st.booleans(), st.booleans(), layouts, st.booleans())
def test_merges_are_those_of_the_file(pairs, lines, ascii_, layout, first):
    pairs = [tuple(text.replace(" ", "_") for text in pair) for pair in pairs] if lines else pairs
    merges = [" ".join(pair) for pair in pairs] if lines else [list(pair) for pair in pairs]
    model = {"merges": merges, "vocab": {"a": 0}} if first else {"vocab": {"a": 0}, "merges": merges}
    _, found = parts_of(model, None, ascii_, **layout)
    if lines and any(line.startswith("#version") for line in merges):
        assert "merges" not in found
    else:
        assert rows_of(found["merges"][2]) == [text for pair in pairs for text in pair]
        assert rows_of(found["vocab"][2]) == ["a"]


def numbers(count: int) -> list[str]:
    """Numbers as JSON writes them, but for -0."""
    draw, found = random.Random(3), list[str]()
    while len(found) < count:
        whole = str(draw.choice([0, draw.randrange(20), draw.randrange(1, 10 ** draw.randrange(1, 12))]))
        fraction = draw.choice(["", ".0", "." + "".join(draw.choices("0123456789", k=draw.randrange(1, 9)))])
        power = draw.choice(["", "", draw.choice("eE") + draw.choice(["", "+", "-"]) + str(draw.randrange(290))])
        found.append(draw.choice(["", "-"] if fraction or whole != "0" else [""]) + whole + fraction + power)
    return found


def test_scores_are_read_as_tokenizers_reads_them():
    texts = numbers(500)
    content = ('{"model":{"vocab":[' + ",".join(f'["{k}", {text} ]' for k, text in enumerate(texts)) + "]}}").encode()
    found = scan.large_parts(content)
    expected = np.array([as_read(text) for text in texts])
    assert found["vocab"][2].numbers.view(np.uint64).tolist() == expected.view(np.uint64).tolist()


@pytest.mark.parametrize(
    "vocab",
    [
        '{"a":0,}', '{"a":0', '{"a" 0}', '{"a":}', '{"a":01}', '{"a":-1}', '{"a":1.0}', '{"a":1e1}', '{"a":1234567890}',
        '{"a":"0"}', '{"a\\x":0}',
        '{"\\ud800":0}', '{"\\udc00":0}', '{"\\ud800\\u0041":0}', '{"\\u00g0":0}', '{"a\n":0}',
        '{"\xff":0}', '{"\xc3":0,"\xa9":1}', '{a:0}', "{}", "[]", '[["a"]]', '[["a",1,2]]', '[["a",-]]', '[["a",1.]]',
        '[["a",.5]]', '[["a",1e]]', '[["a",1e400]]', '[["a",12345678901234567890]]', '[["a",00]]', '[["a",-0]]',
        '[["a",true]]', '[["a",1]', '[["a",1] ["b",2]]', '["a"]', "0", '{"a":0}}', '{"a":0]',
    ],
)  # fmt: skip
def test_what_is_not_known_is_left(vocab):
    content = f'{{"model": {{"vocab": {vocab}, "merges": ["a b c", "ab"]}}}}'.encode("latin-1")
    found = scan.large_parts(content)
    assert "merges" not in found
    if found:  # what is after it is no JSON
        assert jittok.files.contents.parse_around("f", content) is None


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"{}", b"[]", b'{"model"', b'{"model":', b'{"model":}', b'{"model":1}',
        b'{"model":[{"vocab":{"a":0}}]}',
        b'{"model":{"vocab"',
        b'{"model":{"vocab":', b'{"x":{"vocab":{"a":0}}}', b'{"x":"\\', b'{"x":"model":{}}',
        b'{"model":{"a":"b',
        b'{"model":{"merges":[["a",]]}}', b'{"model":{"merges":[["a" "b"]]}}', b'{"model":{"merges":[["a","b"',
    ],
)  # fmt: skip
def test_files_without_such_parts_have_none(content):
    assert scan.large_parts(content) == {}


def test_a_part_that_is_there_twice_is_the_last():
    content = b'{"model": {"vocab": {"a": 0}, "type": "WordLevel", "vocab": {"b": 0}}}'
    assert scan.large_parts(content)
    assert jittok.files.contents.parse_around("f", content) is None


def read(content: bytes) -> str:
    """A Pipeline, or a refusal, as a text."""
    try:
        return jittok.files.read_pipeline(content).fingerprint
    except (MalformedVocab, UnsupportedVocab) as error:
        return str(error)


@pytest.mark.parametrize("kind", JSON_KINDS)
def test_a_file_says_the_same_by_kernels_as_by_the_library(kind, monkeypatch):
    whole, draw = small_files.FILES[kind](), random.Random(7)
    files = [*mutations(whole, 25, draw.randrange(99)), *changed_values(whole, 25, draw.randrange(99)), whole]
    expected = [read(content) for content in files]
    monkeypatch.setattr(scan, "LEAST_BYTES", 0)
    monkeypatch.setattr(scan, "JIT", True)
    assert scan.worth_it(whole)
    assert jittok.files.contents.parse_around("f", whole) is not None
    assert [read(content) for content in files] == expected
