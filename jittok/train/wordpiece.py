"""WordPiece: BERT's words, merged as BPE merges; the merges are then forgotten.

The first character of a word is a symbol, every other one is another symbol, written with `##` in front. Ids: special
tokens, all characters by code point, the `##` ones by code point, merges. (Hugging Face's `WordPieceTrainer` numbers
the `##` characters in the order of a randomly seeded hash table, and ids decide ties: two runs of it differ.)
"""

from __future__ import annotations

import os
from collections import Counter as Tally
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jittok.errors import CorpusError
from jittok.train.characters import characters_of_texts
from jittok.train.counting import How, count
from jittok.train.counts import Counts
from jittok.train.learn import Merges, Words, learn
from jittok.unicode.characters import SPACE_MARK
from jittok.unicode.tables import CONTROL, MARK, PUNCTUATION, REPLACEMENT, SYMBOL, WHITESPACE, decode, flags, lower, nfd
from jittok.writers.gguf_file import GgufVocab, write_gguf
from jittok.writers.whole import whole

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROLES = {"[PAD]": "pad", "[UNK]": "unk", "[CLS]": "bos", "[SEP]": "sep", "[MASK]": "mask"}
CONTINUES = "##"
RUNS = r"[^ \t-\r]+"
IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
"""Each is a word of its own. Source: llama.cpp, `is_chinese_char`."""


@dataclass(eq=False)
class WordPieceTrained:
    """Texts of ids, `##` in front of what continues a word."""

    texts: list[str]
    special: tuple[str, ...]
    merges: Merges
    lowercase: bool
    strip_accents: bool
    warnings: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.texts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .gguf for llama.cpp, or a vocab.txt as BERT's, a text a line."""
        plain = os.fspath(path)
        if plain.endswith(".gguf"):
            self._write_gguf(plain)
        elif plain.endswith(".txt"):
            with whole(plain) as new:
                new.write_text("".join(f"{text}\n" for text in self.texts), encoding="utf-8")
        else:
            raise CorpusError("--out", plain, "a name that ends in .gguf or .txt")

    def _write_gguf(self, path: str) -> None:
        texts = [self._in_gguf(token, text) for token, text in enumerate(self.texts)]
        roles = {ROLES[text]: token for token, text in enumerate(self.special) if text in ROLES}
        types = [3 if token < len(self.special) else 1 for token in range(len(texts))]
        write_gguf(path, GgufVocab(
            model="bert", architecture="bert", tokens=[text.encode() for text in texts], types=types, roles=roles,
            lowercase=self.lowercase, strip_accents=self.strip_accents,
        ))  # fmt: skip

    def _in_gguf(self, token: int, text: str) -> str:
        """U+2581 begins a word, what continues one is bare."""
        if token < len(self.special):
            return text
        return text.removeprefix(CONTINUES) if text.startswith(CONTINUES) and len(text) > 2 else SPACE_MARK + text

    @property
    def tokenizer(self) -> Tokenizer:
        """Encodes and decodes with the vocabulary."""
        import tempfile

        import jittok

        with tempfile.TemporaryDirectory(prefix="jittok-") as folder:
            path = Path(folder) / "trained.gguf"
            self.save(path)
            return jittok.load(path.read_bytes(), cache=False)


"""A GGUF writes it in front of tokens that begin words. A token may not hold it: it would have the text of another."""


def words_of(text: str, lowercase: bool = True, strip_accents: bool = True) -> list[str]:
    """BERT's words of a text, as llama.cpp cuts them."""
    found: list[list[str]] = []
    open_ = False
    for c, _, _ in decode(text.encode("utf-8", "replace")):
        if strip_accents:
            c = nfd(c)  # noqa: PLW2901  the first code point of the decomposition
        kind = flags(c)
        if kind & WHITESPACE:
            open_ = False
        elif c not in (0, REPLACEMENT) and not kind & CONTROL and not (strip_accents and kind & MARK):
            alone = (
                bool(kind & PUNCTUATION)
                or (c < 0x7F and bool(kind & SYMBOL))
                or any(a <= c <= b for a, b in IDEOGRAPHS)
            )
            if not open_ or alone:
                found.append([])
            found[-1].append(chr(lower(c) if lowercase else c))
            open_ = not alone
    return ["".join(word) for word in found]


def train_wordpiece(
    texts: Any = None,
    size: int = 30000,
    *,
    words: Counts | None = None,
    special: tuple[str, ...] = SPECIAL,
    min_frequency: int = 0,
    lowercase: bool = True,
    strip_accents: bool = True,
    threads: int | None = None,
    memory: int | None = None,
) -> WordPieceTrained:
    """A WordPiece vocabulary of texts, or of counted runs between spaces."""
    if words is None:
        words = count(texts, how=How(runs=RUNS, threads=threads, memory=memory))
    sums: Tally[str] = Tally()
    for run, number in words.items():
        for word in words_of(run.decode("utf-8", "replace"), lowercase, strip_accents):
            for part in word.split(SPACE_MARK):
                sums[part] += number
    del sums[""]
    return learn_wordpiece(sums, size, special, min_frequency, lowercase, strip_accents)


def learn_wordpiece(
    sums: Tally[str], size: int, special: tuple[str, ...] = SPECIAL, min_frequency: int = 0, lowercase: bool = True,
    strip_accents: bool = True,
) -> WordPieceTrained:  # fmt: skip
    """A WordPiece vocabulary of counted words. CorpusError when the size is below special tokens and characters."""
    found = characters_of_texts(list(sums), np.fromiter(sums.values(), np.int64, len(sums)))
    points, _ = found.weights()
    later = np.ones(found.points.size, np.bool_)
    later[found.starts[:-1]] = False
    inside = np.unique(found.points[later])
    texts = [*special, *(chr(c) for c in points.tolist()), *(CONTINUES + chr(c) for c in inside.tolist())]
    if size < len(texts):
        expected = f"{len(texts)} or more: special tokens and characters"
        raise CorpusError("--size", size, expected)
    base = len(texts)
    symbols = np.where(later, found.rows(inside) + len(special) + points.size, found.rows(points) + len(special))
    lines = Words(found.starts, found.counts, symbols=symbols.astype(np.int32))
    merges = learn(lines, base, size, min_frequency=min_frequency)
    for a, b in merges.pairs.tolist():
        texts.append(texts[a] + texts[b].removeprefix(CONTINUES))
    said = [] if len(texts) == size else [f"{len(texts)} ids: no pair is left to merge (asked for {size})"]
    return WordPieceTrained(texts, special, merges, lowercase, strip_accents, said)
