"""Boundaries of grapheme clusters are those of the package regex."""

import random

import numpy as np
import regex

from jittok.chunks.texts.clusters import cluster_table, mark_clusters
from jittok.common.unicode.graphemes import CLASSES, grapheme_classes
from jittok.kernels.jit import frozen


def marks(texts):
    """The boundaries of each text, in bytes."""
    raws = [text.encode() for text in texts]
    data = np.frombuffer(b"".join(raws) + bytes(80), np.uint8)
    offsets = np.cumsum([0, *map(len, raws)])
    found = []
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        bits = np.zeros(data.size // 64 + 2, np.uint64)
        where = frozen([start], np.int64), frozen([stop], np.int64)
        assert mark_clusters(cluster_table(), data, *where, bits) == 1
        found.append((np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little")) - start).tolist())
    return found


def expected(text):
    return [0, *(len(text[: match.end()].encode()) for match in regex.finditer(r"\X", text))]


def test_every_class_has_characters():
    assert set(np.unique(grapheme_classes()).tolist()) == set(range(len(CLASSES)))


def test_boundaries_between_characters_of_all_classes():
    rng, classes = random.Random(5), grapheme_classes()
    some = [np.flatnonzero(classes == k) for k in range(len(CLASSES))]
    members = [[chr(c) for c in of.tolist() if not 0xD800 <= c < 0xE000] for of in some]
    texts = ["".join(rng.choice(rng.choice(members)) for _ in range(rng.randrange(1, 9))) for _ in range(1500)]
    pairs = ["".join((rng.choice(a), rng.choice(b), rng.choice(c))) for a in members for b in members for c in members]
    texts += pairs[:: 1 + len(pairs) // 3000]
    for text, found in zip(texts, marks(texts), strict=True):
        assert found == expected(text), [CLASSES[classes[ord(c)]] for c in text]


def test_long_runs_of_ascii():
    texts = [
        "x\r\n" * 70,
        "\r" * 63 + "\r\n" + "a" * 200,
        "a" * 127 + "e\u0301" + "b" * 64,
        "\u0600" + "a" * 130,
        "🇨🇭" * 40,
    ]
    for text, found in zip(texts, marks(texts), strict=True):
        assert found == expected(text)
