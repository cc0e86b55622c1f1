"""Charsmaps (precompiled tries of replacements, as Unigram vocabularies have them) from a dict."""

from __future__ import annotations

import struct


def build_charsmap(rules: dict[bytes, bytes]) -> bytes:
    """A charsmap of {key: replacement}: each node takes the first base whose units are free."""
    blob, where = b"", dict[bytes, int]()
    for text in rules.values():
        if text not in where:
            where[text] = len(blob)
            blob += text + b"\0"
    units: dict[int, int] = {}
    taken, todo, bases = {0}, [(b"", 0)], set[int]()
    while todo:
        prefix, node = todo.pop()
        labels = sorted({key[len(prefix)] for key in rules if key.startswith(prefix) and key != prefix})
        labels += [0] if prefix in rules else []
        base = next(b for b in range(1, 1 << 16) if b not in bases and all(b ^ c not in taken for c in labels))
        bases.add(base)
        taken.update(base ^ c for c in labels)
        units[node] = (base ^ node) << 10 | (prefix in rules) << 8 | (prefix[-1] if prefix else 0)
        if prefix in rules:
            units[base] = 1 << 31 | where[rules[prefix]]
        todo += [(prefix + bytes([c]), base ^ c) for c in labels if c]
    size = (max(taken) | 255) + 1
    return struct.pack(f"<I{size}I", 4 * size, *(units.get(i, 0) for i in range(size))) + (blob or b"\0")
