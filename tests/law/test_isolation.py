"""The law of isolation: bytes outside a text never change its ids, its spans or what ids print, and are never needed.

Each text is in memory whose neighbors cannot be read; among random bytes; and before what a longer text would
continue with: the rest of a word, of a special token, of a character, of a contraction. Its answers must be those of
the plain reference, which gets the text alone.
"""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest
from amounts import amount
from guarded import PAGE, Guarded
from made_up import MADE_UP, made_up_tokenizer
from pair_vocab import pair_vocab
from texts import Texts

import jittok
from jittok.common.rows import Ragged, TokenArray
from jittok.encode.encoder import Encoder
from jittok.encode.threads.batch import encode_batch
from jittok.errors import EncodingFailed
from jittok.kernels.inputs import Documents
from jittok.kernels.jit import JIT, frozen
from jittok.kernels.models import bpe
from jittok.kernels.pretokenize.compile import splitter_of
from jittok.kernels.pretokenize.definition import pre_type, pre_types
from jittok.kernels.pretokenize.families import family_numbers
from jittok.kernels.pretokenize.splitters.blocks import character_classes
from jittok.kernels.pretokenize.splitters.llama3 import WITHOUT
from jittok.reference.tokenize import align as reference_align
from jittok.reference.tokenize import tokenize
from jittok.vocab import read_vocab

BUNDLED = ["bert", "gpt-2", "mistral", "t5"] if JIT else []
AROUND = MADE_UP[:: amount(1, 1, 2)]
COUNT = amount(28, 9, 2)
"""Texts a vocabulary; those of the pre types are short."""
ENDS = [
    b"'", b"'l", b"'r", b"'v", b"I'", b"I'l", b"I'L", b"x'V", b" '", b" ", b"  ", b"\n", b"\r", b" \n", b"1", b"12",
    b"123", b"a", b"A", b"Ab", b"..", b"/", b"<", b"<|e", b"\xe2\x96", b"\xe2\x96\x81", b"\xc2", b"\xc2\xa0",
    b"\xf0\x9f\x91", b"e\xcc\x81", b"ing", b" th", b"-", b"0x", b"\xff", b"\xc3\x89", b"!\n", b"\xe4\xb8\xad",
]  # fmt: skip
REST = [
    b"l", b"ll", b"L", b"e", b"E", b"s", b"ve", b"re all", b" ", b"  x", b"\n", b"\r\n", b"0", b"9", b"a", b"A", b".",
    b"'s", b"/", b"/\n", b"|>", b"nd|>", b"\x80", b"\x81", b"\xa0", b"\x8d\xff", b"\xcc\x81", b"\xe2\x96\x81",
    b"\xe4\xb8\xad", b"\xff", b"\0", b"the quick brown fox jumps over the lazy dog, and so on, and so on, and so on",
]  # fmt: skip
"""What texts that end like ENDS might continue with."""
FILLING = [b"a", b" b", b"word ", b"1", b". ", "中".encode(), "é".encode(), b"\n"]
BORDERS = [14, 15, 16, 17, 31, 32, 62, 63, 64, 65, 66, 126, 127, 128, 129, 191]
"""Sizes at which blocks of 64 bytes, and pieces of the cache, end."""


@pytest.fixture(scope="module")
def guarded():
    return Guarded(max(2 * COUNT, len(SHORT) + COUNT))


def texts_of(vocab, count, seed):
    """Texts made to trip a vocabulary, many of them cut anywhere, or ending at a border like one of ENDS."""
    source, rng = Texts(seed, vocab), random.Random(seed)
    for k in range(count):
        text = source.one()[: PAGE // 2]
        if k % 2:
            text = text[: rng.randint(0, len(text))]
        if k % 3:
            text += rng.choice(ENDS)
        if k % 4 == 0:
            text = (rng.choice(FILLING) * 200)[: max(0, rng.choice(BORDERS) - len(text))] + text
        yield text


def alone(vocab, texts, **rules):
    """(those texts that can be encoded, what the reference says of each)."""
    found = [(text, answer) for text in texts if (answer := of_reference(vocab, text, rules)) is not None]
    return [text for text, _ in found], [answer for _, answer in found]


def of_reference(vocab, text, rules):
    try:
        return reference_align(vocab, text, **rules)
    except EncodingFailed:
        return None


def ragged(parts):
    return Ragged(np.frombuffer(b"".join(parts), np.uint8), np.cumsum([0, *map(len, parts)]).astype(np.int64))


def surrounded(texts, rng):
    """Every second document is one of the texts; after it stands what it might continue with, or random bytes."""
    parts = [rng.choice(REST)]
    for text in texts:
        rest = rng.choice([rng.choice(REST), rng.choice(REST) * 8, rng.choice(texts)[1:]])
        parts += [text, rest]
    return parts


def tokenizer(name):
    return jittok.bundled(name) if name in BUNDLED else made_up_tokenizer(name)


def pairs(spans):
    return [(i, j) for i, j in spans.tolist()]


@pytest.mark.parametrize("name", [*BUNDLED, *AROUND])
def test_bytes_around_a_text_are_never_needed(name, guarded):
    tok = tokenizer(name)
    for parse in (False, True):
        texts, expected = alone(tok.vocab, texts_of(tok.vocab, COUNT, len(name)), parse_special=parse)
        for at_end in (True, False):
            found, counts = [], []
            for docs in guarded.documents(texts, at_end):
                found += tok.encode_batch(docs, parse_special=parse, threads=1).to_list()
                counts += tok.count_batch(docs, parse_special=parse, threads=1).tolist()
            for text, (ids, _), row, count in zip(texts, expected, found, counts, strict=True):
                assert (row, count) == (ids, len(ids)), text
            for text, (ids, spans) in zip(texts, expected, strict=True):
                data = guarded.one(text, at_end)
                ends = np.array([0, len(text)])
                aligned = tok.align_batch(Ragged(data, ends), parse_special=parse, threads=1)[0]
                assert (aligned.ids.tolist(), pairs(aligned.spans)) == (ids, spans), text


@pytest.mark.parametrize("name", [*BUNDLED, *AROUND])
def test_what_stands_around_a_text_changes_nothing(name):
    tok, rng = tokenizer(name), random.Random(name)
    texts, expected = alone(tok.vocab, texts_of(tok.vocab, COUNT, 7 + len(name)))
    parts = [part if can_be_encoded(tok, part) else b"ll" for part in surrounded(texts, rng)]
    rows = tok.encode_batch(ragged(parts), threads=1).to_list()[1::2]
    glued = tok.encode_batch(ragged(texts), threads=2).to_list()
    spans = [pairs(each.spans) for each in tok.align_batch(ragged(parts), threads=1)][1::2]
    for k, (text, (ids, places)) in enumerate(zip(texts, expected, strict=True)):
        assert (rows[k], glued[k], spans[k]) == (ids, ids, places), (text, parts[2 * k + 2])
    behind = random.Random(1)
    for text, (ids, _) in zip(texts, expected, strict=True):  # single texts are where longer ones stood
        longer = text + behind.choice(REST)
        if can_be_encoded(tok, longer):
            assert tok.encode(text).tolist() == ids, longer


def can_be_encoded(tok, text):
    try:
        return tok.encode(text) is not None
    except EncodingFailed:
        return False


@pytest.mark.parametrize("name", [*BUNDLED, *AROUND])
def test_a_text_cut_in_two_gives_the_ids_of_both_parts(name):
    tok, rng = tokenizer(name), random.Random(3)
    parts = []
    for text in texts_of(tok.vocab, COUNT, 11 + len(name)):
        at = rng.randint(0, len(text))
        parts += [text[:at], text[at:]]
    parts, expected = alone(tok.vocab, parts, parse_special=True)
    rows = tok.encode_batch(ragged(parts), parse_special=True, threads=1).to_list()
    for part, (ids, _), row in zip(parts, expected, rows, strict=True):
        assert row == ids, part


@functools.cache
def pair_arrays():
    vocab = read_vocab(pair_vocab("gpt-2"))
    return vocab, bpe.compile_pipeline(vocab.pipeline), vocab.ids, vocab.merges


def of_pre_type(number):
    """(vocab, encoder) of the vocabulary with a token for every pair of bytes: a wrong cut changes the ids around it.

    What does not depend on the pre type is compiled once.
    """
    vocab, arrays, ids, merges = pair_arrays()
    vocab = vocab._replace(pre_type=number)
    vars(vocab).update(ids=ids, merges=merges)
    if not pre_type(number).byte_encode:
        return vocab, Encoder(vocab, cache_bytes=1 << 14)
    family, alone_, group, cased, contractions, letters = family_numbers(pre_type(number).family)
    arrays = arrays._replace(
        splitter=splitter_of(pre_type(number).patterns), family=family, digits_alone=alone_, group=group, cased=cased,
        contractions=contractions, classes=character_classes(letters),
    )  # fmt: skip
    return vocab, Encoder(vocab, arrays, cache_bytes=1 << 14)


ROUNDS = amount(4, 2, 0)
"""How often what is after a text is drawn again."""
SHORT = [lead + end for lead in (b"", b"I", b"x" * 61, b" b" * 31, b"1" * 14) for end in ENDS]
SOME = amount(2, 4, 4)
"""Of so many of these one is taken for a pre type."""


@pytest.mark.skipif(not JIT, reason="its tables take too long to build")
@pytest.mark.parametrize("number", [pre.number for pre in pre_types()])
def test_every_pair_of_bytes_a_token_and_no_cut_depends_on_what_is_behind(number, guarded):
    vocab, encoder = of_pre_type(number)
    rng, rule = random.Random(number), encoder.rule(False, False, False)
    texts, expected = alone(vocab, [*SHORT[number % SOME :: SOME], *texts_of(vocab, COUNT // 2, number)])
    rests = {rest for rest in REST if of_reference(vocab, 9 * rest, {}) is not None}
    for _ in range(ROUNDS):
        behind = [rng.choice(sorted(rests)) * rng.choice([1, 1, 9]) for _ in texts]
        parts = [part for both in zip(texts, behind, strict=True) for part in both]
        rows = encode_batch(encoder, ragged(parts), rule, 1, False).to_list()[::2]
        for text, (ids, _), row, rest in zip(texts, expected, rows, behind, strict=True):
            assert row == ids, (text, rest)
    for at_end in (True, False):
        found = [
            row for docs in guarded.documents(texts, at_end) for row in encode_batch(encoder, docs, rule, 1, False)
        ]
        for text, (ids, _), row in zip(texts, expected, found, strict=True):
            assert row.tolist() == ids, text


CHUNKED = ["bert", "gpt-2", "mistral", "syn-gemma4", "syn-kimi", "syn-spm-user", "syn-ugm-user", "syn-wpm-mixed", "t5"]


@pytest.mark.parametrize("name", [name for name in CHUNKED if name in [*BUNDLED, *MADE_UP]])
def test_chunks_of_any_size_give_the_same_ids(name):
    tok, rng = tokenizer(name), random.Random(5)
    encoder = Encoder(tok.vocab, tok.arrays)
    rule, bare = encoder.bare_rule(), tok.vocab._replace(special_tokens=tok.vocab.special_tokens[:0])
    for seed in range(max(COUNT // 5, 1)):
        text = b"".join(texts_of(tok.vocab, 8, seed))
        for ids, _ in alone(bare, [text])[1]:
            for chunk in (64, 65, rng.randint(66, 300)):
                assert in_chunks(encoder, rule, text, chunk) == ids, (chunk, text)


def in_chunks(encoder, rule, text, chunk):
    """The ids of a text that is cut into words so many bytes at a time."""
    workspace = encoder.acquire()
    workspace.longest = len(text) + 64
    workspace.scratch = encoder.model.make_work(encoder.arrays, workspace.longest, 1 << 14, chunk)
    start, stop = (frozen([place], np.int64) for place in (0, len(text)))
    docs = Documents(np.frombuffer(text, np.uint8), start, stop)
    count = encoder.encode(workspace, docs, 0, 1, encoder.cut(workspace, docs, 0, 1, rule), rule, 0)
    return workspace.ids[:count].tolist()


def pages(texts):
    """The texts as Arrow lays them out, the last one before a page that cannot be read."""
    import pyarrow as pa

    memory = Guarded(1)
    start, stop = memory.position(0, b"".join(texts), True)
    data = pa.py_buffer(memory.bytes[start:stop])
    offsets = pa.py_buffer(np.cumsum([0, *map(len, texts)]).astype(np.int64))
    return pa.Array.from_buffers(pa.large_binary(), len(texts), [None, offsets, data])


def doors(strings):
    """(name, the texts in one of the containers that are taken)."""
    texts = [text.encode() for text in strings]
    yield "list of str", strings
    yield "list of bytes", texts
    yield (
        "tuple of both",
        tuple(text if k % 2 else string for k, (text, string) in enumerate(zip(texts, strings, strict=True))),
    )
    yield "iterator", iter(texts)
    yield "NumPy bytes", np.array(texts)
    yield "NumPy bytes, all of one size", np.array([text.ljust(40, b"l") for text in texts])
    yield "NumPy str", np.array(strings)
    yield "NumPy objects", np.array(texts, object)
    yield "Ragged", ragged(texts)
    pa, pd, pl = (pytest.importorskip(name) for name in ("pyarrow", "pandas", "polars"))
    yield "Arrow, where memory ends", pages(texts)
    yield "Arrow strings", pa.array(strings)
    yield "Arrow, the middle of an array", pa.array([*strings, *strings, *strings])[len(strings) : 2 * len(strings)]
    yield "Arrow views", pa.array(strings, pa.string_view())
    yield "Arrow chunks", pa.chunked_array([strings[:3], strings[3:]])
    yield "Arrow dictionary", pa.array(strings).dictionary_encode()
    yield "pandas", pd.Series(strings)
    yield "polars", pl.Series(strings)


@pytest.mark.skipif(not JIT, reason="its vocabularies take too long to compile")
@pytest.mark.parametrize("name", ["gpt-2", "mistral", "t5", "bert", "gpt-4o"])
def test_every_door_keeps_texts_apart(name):
    tok = jittok.load(pair_vocab(name), cache=False) if name == "gpt-4o" else tokenizer(name)
    strings = [
        " I'",
        "m",
        "x'v",
        "e",
        "I'l",
        "l",
        "",
        "'",
        "re",
        "1",
        "23",
        "word ",
        " ",
        "é",
        "\u0301",
        "\n",
        "/",
        "a",
    ]
    for what, texts in doors(strings):
        rows = list(texts) if what.startswith("NumPy bytes, all") else strings
        expected = [reference_align(tok.vocab, row if isinstance(row, bytes) else row.encode()) for row in rows]
        ids = [each for each, _ in expected]
        if what == "iterator":
            assert tok.encode_batch(texts).to_list() == ids
            continue
        assert tok.encode_batch(texts).to_list() == ids, what
        assert [row.tolist() for part in tok.encode_stream(texts) for row in part] == ids, what
        assert tok.count_batch(texts).tolist() == [*map(len, ids)], what
        assert [pairs(each.spans) for each in tok.align_batch(texts)] == [spans for _, spans in expected], what
    for string, (each, spans) in zip(strings, expected, strict=True):
        assert tok.encode(string).tolist() == tok.encode(string.encode()).tolist() == each
        assert pairs(tok.align(string).spans) == spans


@pytest.mark.parametrize("name", [*BUNDLED, *MADE_UP])
def test_what_ids_print_does_not_depend_on_other_rows(name, guarded):
    tok, rng = tokenizer(name), random.Random(9)
    rows = [np.array(rng.choices(range(tok.vocab_size), k=rng.randint(0, 9)), np.int32) for _ in range(COUNT)]
    rows += [tok.encode(text, errors="replace") for text in (b"it 's , a . b ! ' s", b" x ' ", b"I 'm")]
    rows = [row for row in rows if (row >= 0).all()]
    ends = np.cumsum([0, *map(len, rows)])
    for flags in ({}, {"remove_special": True}, {"unparse_special": True}):
        alone_ = []
        for row in rows:
            stream = tok.stream_decoder(**flags)
            alone_.append("".join([*map(stream.push, row.tolist()), stream.finish()]))
        flat = guarded.one(np.concatenate(rows).tobytes(), True).view(np.int32)
        assert tok.decode_batch(TokenArray(flat, ends), **flags) == alone_
        assert [tok.decode(row, **flags) for row in rows] == alone_


def test_a_letter_behind_the_text_ends_no_contraction():
    """What was found: the masks of contractions were read up to two bytes after the text."""
    for pre in pre_types():
        if JIT and family_numbers(pre.family).contractions != WITHOUT:
            vocab, encoder = of_pre_type(pre.number)
            rule = encoder.rule(False, False, False)
            texts = [b" I'", b"m", b"x'l", b"l", b"x'R", b"E", b"'v", b"e"]
            rows = encode_batch(encoder, ragged(texts), rule, 1, False).to_list()
            assert rows == [tokenize(vocab, text) for text in texts], pre.name
