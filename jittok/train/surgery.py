"""Vocabularies changed: new merges for other texts, unused tokens taken away.

`extend`: words are encoded with the old vocabulary, and training continues from its tokens. Old ids and old merges
stay, new ones follow; a text whose words no new merge touches keeps its ids. A pair whose text is a token already is
passed over. `prune`: tokens that texts never use go, unless a token that stays is made of them; all others keep their
order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jittok.common.display.progress import Show
from jittok.common.pipeline.pipeline import ragged_bytes
from jittok.common.unicode.tables import BYTE_OF_CHARACTER
from jittok.common.writers.gguf_file import GgufVocab, write_gguf
from jittok.errors import UnsupportedVocab
from jittok.tokenizer import Tokenizer
from jittok.train.counting.count import How, count
from jittok.train.counting.counts import Counts
from jittok.train.learner import MergeRules, WordCounts, learn
from jittok.vocab.vocab import NO_TOKEN, Vocab

NORMAL = 4
ROLES = ("bos", "eos", "eot", "eom", "unk", "sep", "pad", "mask")
_TYPES = {1: 2, 4: 1, 8: 3, 16: 4, 32: 6, 2: 5}
"""llama.cpp's attributes -> token types of a GGUF."""


@dataclass(eq=False)
class Edited:
    """A vocabulary that was changed, and what changed."""

    base: Vocab
    tokens: list[bytes]
    types: list[int]
    merges: list[bytes]
    old_ids: list[int]  # of each id: its id in the base, -1 for a new token
    counts: list[int]  # of each new merge, or of each token that went
    warnings: list[str] = field(default_factory=list)

    def save(self, path: str) -> None:
        """Write a GGUF."""
        new = {old: token for token, old in enumerate(self.old_ids) if old >= 0}
        named = ((role, getattr(self.base, f"{role}_id")) for role in ROLES)
        write_gguf(path, GgufVocab(
            model="gpt2", architecture=self.base.architecture or "llama", name=self.base.name,
            pre=self.base.pre or "default", tokens=self.tokens, types=self.types,
            merges=[line.decode() for line in self.merges],
            roles={role: new[old] for role, old in named if old != NO_TOKEN and old in new},
            add_bos=self.base.add_bos, add_eos=self.base.add_eos,
        ))  # fmt: skip


def changeable(tok: Tokenizer) -> Vocab:
    """The vocabulary. UnsupportedVocab for one that cannot be extended or pruned."""
    vocab = tok.gguf("surgery")
    if vocab.type != "bpe" or vocab.model != "gpt2":
        expected = "a vocabulary of byte-level BPE (gpt2)"
        raise UnsupportedVocab(vocab.source, "tokenizer.ggml.model", vocab.model, expected)
    return vocab


def _words(tok: Tokenizer, texts: Any, words: Counts | None) -> tuple[Counts, Any, Any]:
    """(counted words, their tokens: int32 of all, int64[words + 1])."""
    vocab = changeable(tok)
    if words is None:
        words = count(texts, how=How(pre=vocab.pre or "default"))
    rows = tok.encode_batch([word for word, _ in words.items()])
    return words, rows.ids, np.concatenate([[0], np.cumsum(rows.lengths)])


def extend(
    tok: Tokenizer, texts: Any, more: int, *, words: Counts | None = None, min_frequency: int = 0,
    progress: Show = "auto",
) -> Edited:  # fmt: skip
    """`more` new tokens for texts (or counted words), after those of a vocabulary of byte-level BPE. progress: as for
    `jittok.train`."""
    vocab = tok.gguf("surgery")
    words, ids, ends = _words(tok, texts, words)
    base = len(vocab)
    first = [_in_bytes(text) for text in vocab.tokens]
    merges = learn(
        WordCounts(ends, words.counts, symbols=ids), base, base + more,
        MergeRules(min_frequency * words.unit, known={text: -1 for text in first if text}, first_texts=first,
                   watch_all=True),
        progress,
    )  # fmt: skip
    tokens, lines = list(vocab.tokens), ragged_bytes(vocab.merge_bytes, vocab.merge_offsets)
    for a, b in merges.pairs.tolist():
        lines.append(tokens[a] + b" " + tokens[b])
        tokens.append(tokens[a] + tokens[b])
    types = [*types_of(vocab), *([1] * (len(tokens) - base))]
    old = [*range(base), *([-1] * (len(tokens) - base))]
    made = Edited(vocab, tokens, types, lines, old, (merges.counts // words.unit).tolist())
    if (new := len(tokens) - base) < more:
        best = merges.best_left // words.unit
        left = f"the best pair left counts {best}, below min_frequency {min_frequency}"
        why = left if best and min_frequency > 1 else "no pair is left to merge"
        made.warnings.append(f"{new} of {more} new tokens: {why}")
    return made


def types_of(vocab: Vocab) -> list[int]:
    """The token types of a vocabulary as a GGUF has them."""
    return [_TYPES.get(bits & 63, 1) for bits in vocab.file_attributes.tolist()]


def _in_bytes(text: bytes) -> bytes:
    """A token's raw bytes; none if it is not in the alphabet of bytes."""
    try:
        return bytes(BYTE_OF_CHARACTER[ord(c)] for c in text.decode())
    except (KeyError, UnicodeDecodeError):
        return b""


def prune(tok: Tokenizer, texts: Any, *, words: Counts | None = None, least: int = 1) -> Edited:
    """The vocabulary without normal tokens that these texts use less than `least` times."""
    vocab = tok.gguf("surgery")
    words, ids, ends = _words(tok, texts, words)
    each = np.repeat(words.counts, np.diff(ends)) // words.unit
    used = np.bincount(ids, weights=each, minlength=len(vocab)).astype(np.int64)
    lines = ragged_bytes(vocab.merge_bytes, vocab.merge_offsets)
    kept = (used >= least) | ((vocab.attributes & NORMAL) == 0)
    makers: dict[bytes, list[tuple[bytes, bytes]]] = {}
    for line in lines:
        left, _, right = line.partition(b" ")
        makers.setdefault(left + right, []).append((left, right))
    todo = [
        token for token in range(len(vocab)) if kept[token] or len(vocab.tokens[token].decode("utf-8", "replace")) == 1
    ]
    kept[todo] = True
    while todo:  # what a token that stays is made of stays
        for pair in makers.get(vocab.tokens[todo.pop()], []):
            for part in pair:
                token = vocab.ids.get(part, -1)
                if token >= 0 and not kept[token]:
                    kept[token] = True
                    todo.append(token)
    old = np.flatnonzero(kept).tolist()
    tokens = [vocab.tokens[token] for token in old]
    there = set(tokens)
    left_lines = [
        line
        for line in lines
        if {line.partition(b" ")[0], line.partition(b" ")[2], line.replace(b" ", b"", 1)} <= there
    ]
    types = types_of(vocab)
    gone = np.flatnonzero(~kept)
    return Edited(vocab, tokens, [types[token] for token in old], left_lines, old, used[gone].tolist())


def dead_tokens(tok: Tokenizer) -> list[int]:
    """Normal tokens that their own text is not encoded as: no text ever gives them by merging it alone."""
    vocab = tok.gguf("surgery")
    normal = [token for token in range(len(vocab)) if vocab.attributes[token] & NORMAL]
    texts = [_in_bytes(vocab.tokens[token]) for token in normal]
    texts = [text if text.decode("utf-8", "ignore").encode() == text else b"" for text in texts]  # parts of characters
    rows = tok.encode_batch(texts).to_list()
    return [token for token, row, text in zip(normal, rows, texts, strict=True) if text and row != [token]]
