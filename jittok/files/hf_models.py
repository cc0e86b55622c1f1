"""The model of a tokenizer.json: its vocabulary as flat arrays, merges as ids."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.models import MISSING, NO_TOKEN, Merges, Model, Unigram, WordPiece, Words
from jittok.common.pipeline.pipeline import packed_texts, read_only_array
from jittok.errors import InWords
from jittok.files.contents import not_json
from jittok.files.hf_merges import KnownTexts, NotAtOnce, Vocabulary, distinct_bytes_table, resolve_merges
from jittok.files.json_nodes import Node
from jittok.files.numbers import all_as_read, as_read
from jittok.files.scan import ScannedTexts
from jittok.kernels.jit import frozen

MOST_TOKENS = 1 << 23
MOST_HOLES = 1 << 16
"""Ids may leave this many holes, and as many again as there are tokens."""


def read_vocabulary(node: Node) -> Vocabulary:
    """Texts to ids of a JSON object. Holes are allowed, not far ones. Of texts with one id the first
    is the token's."""
    if isinstance(node.value, ScannedTexts):
        return _read_at_once(node.value)
    ids = node.of(dict)
    numbers = list(ids.values())
    if set(map(type, numbers)) - {int} or min(numbers, default=0) < 0:
        for text, number in ids.items():
            if type(number) is not int or number < 0:
                raise Node(node.file, f"{node.position}[{text!r}]", None).bad(number, "an id, 0 or more")
    most = max(numbers, default=-1)
    if most >= min(2 * len(numbers) + MOST_HOLES, MOST_TOKENS):
        raise node.bad(
            InWords(f"the id {most} in a list of {len(numbers)} tokens"), f"ids below {2 * len(numbers) + MOST_HOLES}"
        )
    if most + 1 == len(numbers) and numbers == list(range(len(numbers))):
        return Vocabulary(ids, *packed_texts(ids), read_only_array([], np.int32))
    texts: list[str | None] = [None] * (most + 1)
    twins = []
    for text, number in ids.items():
        if texts[number] is None:
            texts[number] = text
        else:
            twins.append((text, number))
    holes = [number for number, text in enumerate(texts) if text is None]
    return Vocabulary(
        ids, *packed_texts([text or "" for text in texts]), read_only_array(holes, np.int32), tuple(twins)
    )


def _read_at_once(found: ScannedTexts) -> Vocabulary:
    """The same of a vocabulary that `scan` has read. NotAtOnce where an id or a text is not as it should be."""
    if found.numbers.dtype != np.int64:
        raise NotAtOnce
    numbers, offsets = found.numbers, found.offsets
    data, order = found.data, np.arange(numbers.size)
    if not np.array_equal(numbers, order):
        order = np.argsort(numbers)
        if not np.array_equal(numbers[order], np.arange(numbers.size)):
            raise NotAtOnce
        data, offsets = _rows_in_order(data, offsets, order)
    table = distinct_bytes_table(frozen(data, np.uint8), frozen(offsets, np.int64))
    if table is None or numbers.size > MOST_TOKENS:
        raise NotAtOnce
    return Vocabulary(KnownTexts(table, numbers.size), table.data, table.offsets, read_only_array([], np.int32))


def _rows_in_order(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], order: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Texts in another order."""
    begins, sizes = offsets[order], np.diff(offsets)[order]
    ends = np.concatenate([[0], np.cumsum(sizes)])
    return data[np.arange(int(ends[-1])) + np.repeat(begins - ends[:-1], sizes)], ends


def read_model(node: Node, content: bytes) -> tuple[Vocabulary, Model]:
    """The vocabulary and the model of the part "model"; `content`: the whole file, for numbers as it writes them."""
    kind = node.get("type", str, None) or _old_type(node)
    if kind == "BPE":
        vocabulary = read_vocabulary(node.child("vocab"))
        return vocabulary, _bpe(node, vocabulary)
    if kind == "Unigram":
        return _unigram(node, content)
    if kind == "WordPiece":
        vocabulary = read_vocabulary(node.child("vocab"))
        unknown = vocabulary.ids.get(node.get("unk_token", str), NO_TOKEN)
        longest = node.count("max_input_chars_per_word")
        return vocabulary, WordPiece(unknown, node.get("continuing_subword_prefix", str), longest)
    if kind == "WordLevel":
        vocabulary = read_vocabulary(node.child("vocab"))
        return vocabulary, Words(vocabulary.ids.get(node.get("unk_token", str), NO_TOKEN))
    raise node.child("type").unknown(kind, "BPE, Unigram, WordPiece or WordLevel")


def _old_type(node: Node) -> str:
    """What a model without "type" is, by its keys."""
    if node.has("merges"):
        return "BPE"
    vocab = node.child("vocab").value
    if isinstance(vocab, list) or (isinstance(vocab, ScannedTexts) and vocab.numbers.dtype == np.float64):
        return "Unigram"
    return "WordPiece" if node.has("max_input_chars_per_word") else "WordLevel"


def _bpe(node: Node, vocabulary: Vocabulary) -> Merges:
    dropout = node.get("dropout", float, 0.0)
    if dropout:
        raise node.child("dropout").unknown(dropout, "0 or none: with dropout, ids change with each call")
    unknown_text = node.get("unk_token", str, None)
    unknown = NO_TOKEN if unknown_text is None else vocabulary.ids.get(unknown_text, MISSING)
    prefix = node.get("continuing_subword_prefix", str, "")
    left, right, merged = resolve_merges(node.child("merges"), vocabulary, prefix)
    return Merges(
        left, right, merged, unknown,
        node.get("fuse_unk", bool, False), node.get("byte_fallback", bool, False),
        node.get("ignore_merges", bool, False), prefix, node.get("end_of_word_suffix", str, ""),
    )  # fmt: skip


def _unigram(node: Node, content: bytes) -> tuple[Vocabulary, Unigram]:
    found = node.child("vocab").value
    if isinstance(found, ScannedTexts):
        table = distinct_bytes_table(frozen(found.data, np.uint8), frozen(found.offsets, np.int64))
        unknown = NO_TOKEN if node.child("unk_id").value is None else node.count("unk_id")
        count = found.numbers.size
        if table is None or unknown >= count or count > MOST_TOKENS or found.numbers.dtype != np.float64:
            raise NotAtOnce
        vocabulary = Vocabulary(KnownTexts(table, count), table.data, table.offsets, read_only_array([], np.int32))
        return vocabulary, Unigram(
            read_only_array(found.numbers, np.float64), unknown, node.get("byte_fallback", bool, False)
        )
    rows = node.child("vocab").of(list)
    for k, row in enumerate(rows):
        if type(row) is not list or len(row) != 2 or type(row[0]) is not str or type(row[1]) not in (int, float):
            raise Node(node.file, f"{node.position}.vocab[{k}]", None).bad(row, "a text and its score")
    if len(rows) > MOST_TOKENS:
        raise node.child("vocab").bad(InWords(f"{len(rows)} tokens"), f"at most {MOST_TOKENS}")
    scores = _scores(node, content, rows)
    unknown = NO_TOKEN if node.child("unk_id").value is None else node.count("unk_id")
    if unknown >= len(rows):
        raise node.child("unk_id").bad(unknown, f"an id below {len(rows)}")
    ids = {row[0]: k for k, row in enumerate(rows)}
    vocabulary = Vocabulary(ids, *packed_texts([row[0] for row in rows]), read_only_array([], np.int32))
    return vocabulary, Unigram(read_only_array(scores, np.float64), unknown, node.get("byte_fallback", bool, False))


def _scores(node: Node, content: bytes, rows: list[list[Any]]) -> Any:
    """The scores, each from its digits as tokenizers reads them; without the file, as an object holds them."""
    if not content or not any(type(row[1]) is float for row in rows):
        return [float(row[1]) for row in rows]
    try:
        again = json.loads(content, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise not_json(node.file, content, error) from None
    texts = [str(row[1]) for row in again["model"]["vocab"]]
    try:
        return all_as_read(texts)
    except (OverflowError, ValueError):
        scores: list[float] = []
        with contextlib.suppress(OverflowError, ValueError):
            scores.extend(map(as_read, texts))
        k = len(scores)
        raise Node(node.file, f"{node.position}.vocab[{k}]", None).bad(texts[k], "a finite score") from None
