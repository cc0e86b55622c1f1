"""Byte-level BPE: options, the alphabet, merges of counted words, and the vocabulary that they make.

The rule. Ids: special tokens in the given order, then the alphabet by the code points of GPT-2's alphabet of bytes,
then merges. Each step merges the pair of neighbors with the highest count; among these the smallest left id, then the
smallest right id. A pair of equal symbols counts at every offset where it is, and is merged from the left.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.display.progress import Show
from jittok.common.locks import once
from jittok.common.unicode.tables import BYTE_OF_CHARACTER, CHARACTER_OF_BYTE
from jittok.errors import CorpusError, check_local
from jittok.train.counting.counts import MOST_IDS, Counts, check_number, to_bytes
from jittok.train.counting.splitters import FILE, REGEX, cleans_spaces, is_unicode, lossless_names, special_texts
from jittok.train.learner import LearnedMerges, MergeRules, WordCounts, learn
from jittok.train.pairs import weigh_bytes

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer
    from jittok.vocab import Vocab

LIKE = ("jittok", "hf")
ALPHABETS = ("bytes", "seen")
WORDS_AT_ONCE = 1 << 20
"""Words a kernel takes at once, so that Python can handle signals."""
HF_MOST = (1 << 31) - 1
"""Hugging Face's trainer counts in 32 bits."""
FORMATS = ".gguf, .json, vocab.json (with merges.txt), .tiktoken"
END_NAMES = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eos|>", "<|im_end|>")
BEGIN_NAMES = ("<|begin_of_text|>", "<s>", "<bos>", "<|bos|>", *END_NAMES)
ROLES = ("bos", "eos", "pad", "unk")


@dataclass(frozen=True)
class Options:
    """What decides the merges, beside the words."""

    size: int  # ids in all
    pre: str = "qwen2"
    like: str = "jittok"
    min_frequency: int = 0  # a pair that counts less is not merged
    special: tuple[str, ...] = ()
    alphabet: str = "bytes"  # all 256, or those that are seen
    max_token_length: int | None = None  # bytes of the longest token; like "hf": one more than that
    limit_alphabet: int | None = None  # keep the most frequent bytes

    def __post_init__(self) -> None:
        _one_of("like", self.like, LIKE)
        _one_of("alphabet", self.alphabet, ALPHABETS)
        check_number("--size", self.size, MOST_IDS)
        check_number("--min-frequency", self.min_frequency)
        for name in ("max_token_length", "limit_alphabet"):
            if getattr(self, name) is not None:
                check_number(f"--{name.replace('_', '-')}", getattr(self, name))
        object.__setattr__(self, "special", special_texts(self.special))


@dataclass(frozen=True, eq=False)
class Learned:
    """The ids of a vocabulary in the alphabet of bytes, and its merges."""

    texts: list[str]  # by id: special tokens as they are, all others in the alphabet of bytes
    special: list[str]  # without doubles
    merges: LearnedMerges
    first: int  # ids before the first merge
    symbols: int  # bytes of all occurrences, each a symbol before the first merge
    unit: int = 1  # what one occurrence counts
    options: Options | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Ids in all."""
        return len(self.texts)

    def raw(self, token: int) -> bytes:
        """The bytes of an id."""
        text = self.texts[token]
        return text.encode() if token < len(self.special) else to_bytes(text)

    def cut(self, size: int) -> Learned:
        """The vocabulary of a smaller size: its merges are the first of these."""
        check_number("--size", size, MOST_IDS)
        if size >= self.size:
            return self
        made = np.flatnonzero(self.merges.ids >= size)
        count = int(made[0]) if made.size else self.merges.ids.size
        kept = LearnedMerges(
            *(column[:count] for column in (self.merges.pairs, self.merges.counts, self.merges.done, self.merges.ids))
        )
        options = None if self.options is None else replace(self.options, size=size)
        return replace(self, texts=self.texts[: max(size, self.first)], merges=kept, options=options)


def _one_of(name: str, found: str, allowed: tuple[str, ...]) -> None:
    if found not in allowed:
        raise CorpusError(f"--{name.replace('_', '-')}", found, f"one of {', '.join(allowed)}")


def alphabet_ids(counts: Counts, options: Options) -> tuple[Counts, list[str], NDArray[np.int32]]:
    """(the counts without bytes that are left out, texts of the first ids, int32[256] id of each byte or -1)."""
    weights = np.zeros(256, np.int64)
    if counts.words.size:
        weights = byte_weights(counts)
    seen = weights > 0
    kept = seen | (options.alphabet == "bytes")
    if options.limit_alphabet is not None and int(kept.sum()) > options.limit_alphabet:
        order = sorted(np.flatnonzero(kept).tolist(), key=lambda byte: (-weights[byte], CHARACTER_OF_BYTE[byte]))
        dropped = np.zeros(256, np.bool_)
        dropped[order[options.limit_alphabet :]] = True
        if options.like == "hf":  # the trainer splits words by all tokens that it has, special ones too
            dropped[[BYTE_OF_CHARACTER[ord(text)] for text in options.special if _is_character(text)]] = False
        kept &= ~dropped
        counts = counts.without_bytes(dropped)
    texts: dict[str, int] = {}
    for text in options.special:
        texts.setdefault(text, len(texts))
    for character in sorted(chr(CHARACTER_OF_BYTE[byte]) for byte in np.flatnonzero(kept).tolist()):
        texts.setdefault(character, len(texts))
    ids = np.full(256, -1, np.int32)
    for byte in np.flatnonzero(kept).tolist():
        ids[byte] = texts[chr(CHARACTER_OF_BYTE[byte])]
    return counts, list(texts), ids


def byte_weights(counts: Counts) -> NDArray[np.int64]:
    """int64[256]: how often each byte occurs."""
    sums = np.zeros(256, np.int64)
    for first in range(0, len(counts), WORDS_AT_ONCE):
        weigh_bytes(counts.words, counts.starts, counts.counts, sums, first, min(first + WORDS_AT_ONCE, len(counts)))
    return sums


def train_counts(
    counts: Counts, options: Options, forced: Any = None, threshold: int | None = None, progress: Show = False
) -> Learned:
    """The merges of counted words. CorpusError when the size is below special tokens and alphabet (own rule)."""
    counts, texts, ids = alphabet_ids(counts, options)
    special = list(dict.fromkeys(options.special))
    hf = options.like == "hf"
    if options.size < len(texts) and not hf:
        expected = f"{len(texts)} or more: {len(special)} special tokens and {len(texts) - len(special)} bytes"
        raise CorpusError("--size", options.size, expected)
    first = len(texts)
    longest = options.max_token_length
    if longest is not None and not hf:
        longest += 1
    target = first if longest is not None and longest < 3 and not hf else options.size
    known = {to_bytes(text): token for token, text in enumerate(texts) if len(text) > 1 and is_in_alphabet(text)}
    words = WordCounts(counts.starts, counts.counts, counts.words, ids)
    merges = learn(
        words, first, target,
        MergeRules(
            options.min_frequency * counts.unit, longest, known,
            [to_bytes(text) if is_in_alphabet(text) else b"" for text in texts], forced=forced, threshold=threshold,
        ),
        progress,
    )  # fmt: skip
    symbols = int((counts.lengths * counts.counts).sum())
    made = Learned(texts, special, merges, first, symbols, counts.unit, options)
    left, right = merges.pairs[:, 0].tolist(), merges.pairs[:, 1].tolist()  # no list a merge: those keep gc busy
    for a, b, token in zip(left, right, merges.ids.tolist(), strict=True):
        if token == len(texts):
            texts.append(texts[a] + texts[b])
        else:
            made.warnings.append(
                f"merge {texts[a]} {texts[b]} makes the text of a special token: they share id {token}"
            )
    _warn(made, options, counts)
    return made


def _warn(made: Learned, options: Options, counts: Counts) -> None:
    merges = made.merges
    if made.size < options.size:
        if options.min_frequency > 1 and merges.best_left:
            best, least = merges.best_left // counts.unit, options.min_frequency
            made.warnings.append(f"{made.size} ids: the best pair left counts {best}, below min_frequency {least}")
        else:
            made.warnings.append(f"{made.size} ids: no pair is left to merge (asked for {options.size})")
    if options.like == "hf" and merges.counts.size and int(merges.counts.max()) > HF_MOST:
        made.warnings.append("a pair counts more than 2^31: Hugging Face's trainer, of 32 bits, never merges it")


def check_name(name: Any) -> None:
    """ValueError for what cannot be written as the name of a vocabulary."""
    if not is_unicode(name):
        raise ValueError(f"name: found {name!r}, expected a text (str) in UTF-8")


def _is_character(text: str) -> bool:
    return len(text) == 1 and is_in_alphabet(text)


def is_in_alphabet(text: str) -> bool:
    """Whether each character stands for a byte."""
    return all(ord(c) in BYTE_OF_CHARACTER for c in text)


class Trained:
    """A byte-level BPE vocabulary that was learned."""

    def __init__(
        self, learned: Learned, pre: str, roles: Mapping[str, str | None] | None = None, name: str = ""
    ) -> None:
        self.learned, self.pre, self.name = learned, pre, name
        self._given = dict(roles or {})
        self.roles = roles_of(learned, self._given)

    def __len__(self) -> int:
        return self.learned.size

    def __repr__(self) -> str:
        return f"Trained({len(self)} tokens, {self.learned.merges.ids.size} merges, pre={self.pre!r})"

    @property
    def tokens(self) -> list[bytes]:
        """The bytes of each id."""
        return [self.learned.raw(token) for token in range(len(self))]

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """(left, right) of each merge, as bytes."""
        raw = self.tokens
        return [(raw[a], raw[b]) for a, b in self.learned.merges.pairs.tolist()]

    @property
    def warnings(self) -> list[str]:
        """What one should know: sizes that were not reached, shared ids, what llama.cpp's decoding loses."""
        said = list(self.learned.warnings)
        if not self.pre.startswith((REGEX, FILE)):
            if cleans_spaces(self.pre):
                names = ", ".join(lossless_names(self.pre)[:3])
                said.append(
                    f"pre {self.pre}: llama.cpp takes spaces before punctuation away when it decodes, so texts do not "
                    f"come back byte for byte; {names} cut alike or nearly so and lose nothing"
                )
            if "eos" not in self.roles:
                said.append("no end-of-text token: llama.cpp then takes id 11 for it; name one with special and eos")
        return said

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file of the kind that its name has: FORMATS. CorpusError for another name."""
        from jittok.train import export

        plain = os.fsdecode(path)
        check_local(plain, "--out")
        if plain.endswith(".gguf"):
            export.write_gguf(plain, self.learned, self.pre, self.roles, self.name)
        elif plain.endswith("vocab.json"):
            export.write_vocab_and_merges(plain, self.learned)
        elif plain.endswith(".json"):
            export.write_tokenizer_json(plain, self.learned, self.pre)
        elif plain.endswith(".tiktoken"):
            export.write_tiktoken(plain, self.learned)
        else:
            raise CorpusError("--out", plain, f"a name that ends in one of {FORMATS}")

    @once
    def tokenizer(self) -> Tokenizer:
        """Encodes and decodes with the vocabulary."""
        return loaded(self.save)

    @property
    def vocab(self) -> Vocab:
        """As jittok loads it from the GGUF."""
        return self.tokenizer.gguf("training")

    def cut(self, size: int) -> Trained:
        """The vocabulary of a smaller size, which is what training to that size would have given."""
        return Trained(self.learned.cut(size), self.pre, self._given, self.name)

    def trace(self) -> Iterator[dict[str, Any]]:
        """Each merge, as a record: its left and right symbol; the symbol that it makes; how often the two were
        neighbors; how often they were merged; the number of tokens that the corpus then has. bytes / tokens_left is
        the compression."""
        made = self.learned
        left = made.symbols
        columns = (
            made.merges.pairs.tolist(),
            made.merges.counts.tolist(),
            made.merges.done.tolist(),
            made.merges.ids.tolist(),
        )
        for number, ((a, b), count, done, token) in enumerate(zip(*columns, strict=True)):
            left -= done
            yield {
                "merge": number, "left": made.texts[a], "right": made.texts[b], "token": made.texts[token], "id": token,
                "count": _each(count, made.unit), "done": _each(done, made.unit),
                "bytes_per_token": round(made.symbols / left, 4) if left else 0.0,
            }  # fmt: skip

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """The trace as JSON Lines."""
        from jittok.common.writers.atomic_files import atomic_file

        check_local(os.fsdecode(path), "--trace")
        with atomic_file(os.fsdecode(path)) as new, new.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in self.trace())


def loaded(save: Callable[[Path], None]) -> Tokenizer:
    """The tokenizer of the GGUF that a function writes to a path."""
    import tempfile

    import jittok

    with tempfile.TemporaryDirectory(prefix="jittok-") as folder:
        path = Path(folder) / "trained.gguf"
        save(path)
        return jittok.load(path.read_bytes(), cache=False)


def _each(count: int, unit: int) -> float:
    """A count in occurrences: a whole number where documents have no weights."""
    return count / unit if unit > 1 else count


def roles_of(made: Learned, given: Mapping[str, str | None]) -> dict[str, int]:
    """Ids of the tokens that begin and end texts and so on: those given by their texts, or known by their names."""
    ids = {text: token for token, text in enumerate(made.special)}
    roles = {}
    for role in ROLES:
        text = given.get(role)
        if text is None:
            names = {"bos": BEGIN_NAMES, "eos": END_NAMES}.get(role, ())
            text = next((name for name in names if name in ids), None)
        elif text not in ids:
            known = ", ".join(made.special) or "none is given (--special)"
            raise CorpusError(f"--{role}", text, f"a special token: {known}")
        if text is not None:
            roles[role] = ids[text]
    return roles
