"""WordPiece: BERT's words, merged as BPE merges; the merges are then forgotten.

The first character of a word is a symbol, every other one is another symbol, written with `##` before. Ids: special
tokens, all characters by code point, the `##` ones by code point, merges. (Hugging Face's `WordPieceTrainer` numbers
the `##` characters in the order of a randomly seeded hash table, and ids decide ties: two runs of it differ.)
"""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from jittok.common.display.progress import Show
from jittok.common.unicode.characters import SPACE_MARK, SPACE_MARK_CODE
from jittok.common.unicode.tables import (
    CONTROL,
    MARK,
    PUNCTUATION,
    REPLACEMENT,
    SYMBOL,
    WHITESPACE,
    flags,
    lower,
    nfd,
)
from jittok.common.writers.atomic_files import atomic_file
from jittok.common.writers.gguf_file import GgufVocab, write_gguf
from jittok.errors import CorpusError, refuse_keywords
from jittok.train.bpe import loaded
from jittok.train.counting.characters import ALONE, ENDS, GONE, SAME, CharacterWords, WordParts
from jittok.train.counting.count import How, count
from jittok.train.counting.counts import Counts
from jittok.train.learner import LearnedMerges, MergeRules, WordCounts, learn

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROLES = {"[PAD]": "pad", "[UNK]": "unk", "[CLS]": "bos", "[SEP]": "sep", "[MASK]": "mask"}
CONTINUES = "##"
LONGEST_IN_BERT = 100
"""Characters of the longest word that BERT's tokenizer searches for in its vocabulary."""
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
    """Texts of ids, `##` before what continues a word."""

    texts: list[str]
    special: tuple[str, ...]
    merges: LearnedMerges
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
            with atomic_file(plain) as new:
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
        return loaded(self.save)


def classified(
    points: NDArray[np.int64], lowercase: bool = True, strip_accents: bool = True
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(class of each character, see `parts`; what it becomes), as llama.cpp cuts BERT's words. U+2581 ends a word: a
    GGUF writes it before tokens that begin words, so a token that held it would have the text of another."""
    kinds, others = np.full(points.size, SAME, np.int64), points.copy()
    for k, point in enumerate(points.tolist()):
        c = nfd(point) if strip_accents else point  # the first code point of the decomposition
        kind = flags(c)
        if kind & WHITESPACE or c == SPACE_MARK_CODE:
            kinds[k] = ENDS
        elif c in (0, REPLACEMENT) or kind & CONTROL or (strip_accents and kind & MARK):
            kinds[k] = GONE
        elif (
            kind & PUNCTUATION or (c < 0x7F and kind & SYMBOL) or any(first <= c <= last for first, last in IDEOGRAPHS)
        ):
            kinds[k] = ALONE
        others[k] = lower(c) if lowercase else c
    return kinds, others


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
    progress: Show = "auto",
    **others: NoReturn,
) -> WordPieceTrained:
    """A WordPiece vocabulary of texts, or of counted runs between spaces. progress: as for `jittok.train`."""
    if others:
        refuse_keywords(train_wordpiece, others)
    if words is None:
        words = count(texts, how=How(runs=RUNS, threads=threads, memory=memory), progress=progress)
    parts = WordParts(partial(classified, lowercase=lowercase, strip_accents=strip_accents))
    parts.add(words.words, words.starts, words.counts)
    found = parts.characters()
    made = learn_wordpiece(found, size, special, min_frequency, lowercase, strip_accents, progress)
    made.warnings += _other_in_bert(parts.points(), found, lowercase, strip_accents)
    return made


def _other_in_bert(points: NDArray[np.int64], words: CharacterWords, lowercase: bool, strip_accents: bool) -> list[str]:
    """Warnings about characters and words that llama.cpp reads in another way than BERT's own tokenizer."""
    others = []
    for c, kind, becomes in np.transpose([points, *classified(points, lowercase, strip_accents)]).tolist():
        text = chr(c)
        if strip_accents:
            text = "".join(d for d in unicodedata.normalize("NFD", text) if unicodedata.category(d) != "Mn")
        text = text.lower() if lowercase else text
        spacing = kind == GONE and unicodedata.category(chr(c)) in ("Mc", "Me")
        if spacing or (kind == SAME and text != chr(becomes) and unicodedata.category(chr(c)) != "Cn"):
            others.append(f"U+{c:04X}")
    said = []
    if others:
        what = f"{len(others)} of the {points.size:,} characters, such as {', '.join(others[:3])}"
        rule = "it drops combining marks after letters, and keeps only the first letter of a Hangul syllable"
        said.append(f"llama.cpp reads {what}, in another way than BERT's tokenizer ({rule}); tokens are learned as "
                    "llama.cpp reads, so BERT's tokenizer gives words with these characters other ids")  # fmt: skip
    long = int((np.diff(words.starts) > LONGEST_IN_BERT).sum())
    if long:
        said.append(
            f"{long:,} words have more than {LONGEST_IN_BERT} characters: BERT's tokenizer takes each for [UNK]"
        )
    return said


def learn_wordpiece(
    found: CharacterWords,
    size: int,
    special: tuple[str, ...] = SPECIAL,
    min_frequency: int = 0,
    lowercase: bool = True,
    strip_accents: bool = True,
    progress: Show = False,
) -> WordPieceTrained:
    """A WordPiece vocabulary of BERT's words. CorpusError when the size is below special tokens and characters."""
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
    lines = WordCounts(found.starts, found.counts, symbols=symbols.astype(np.int32))
    merges = learn(lines, base, size, MergeRules(min_frequency), progress)
    for a, b in merges.pairs.tolist():
        texts.append(texts[a] + texts[b].removeprefix(CONTINUES))
    said = [] if len(texts) == size else [f"{len(texts)} ids: no pair is left to merge (asked for {size})"]
    return WordPieceTrained(texts, special, merges, lowercase, strip_accents, said)
