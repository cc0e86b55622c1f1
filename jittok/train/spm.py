"""sentencepiece's BPE (`bpe_model_trainer.cc`): the rule with the true maximum.

Sentences are lines. Words begin with U+2581 in place of a space; characters below the coverage become unknown,
and no piece has one. A pair is valid if its text is a piece: not too long, U+2581 only before, one script only, and
digits alone if asked for. The best pair has the highest count, of these the shortest text, of these the smallest. A
text that another pair made already is dropped without being merged. The score of piece k is -k; the characters follow
by count.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.display.progress import Show
from jittok.common.unicode.characters import SPACE_MARK_BYTES, SPACE_MARK_CODE
from jittok.common.writers.gguf_file import GgufVocab, write_gguf
from jittok.common.writers.sentencepiece_file import write_model
from jittok.errors import CorpusError, InWords, refuse_keywords
from jittok.train.bpe import loaded
from jittok.train.counting.characters import ALONE, BEGINS, BLOCK, CharacterWords, WordParts, blocks, scripts_of
from jittok.train.counting.count import How, count
from jittok.train.counting.counter import flat_words
from jittok.train.counting.counts import Counts
from jittok.train.counting.lines import IDENTITY, charsmap_bytes
from jittok.train.learner import LearnedMerges, MergeRules, PieceRules, WordCounts, learn
from jittok.train.pairs import ANY, SAME

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

UNKNOWN_MARK = 0x2585
BOUNDARY = b"\x1f"
"""What sentencepiece puts in place of symbols; no piece has it. A text's own is counted with it."""
RUNS = r"[^ \n]+"
NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6
NO_PIECE = (0x0, ord(BOUNDARY), 0x20, UNKNOWN_MARK)
FULL_WIDTH = (0xFF10, 0xFF19)
LONGEST_PIECE = 512
MOST_COUNT = (1 << 31) - 1


@dataclass(frozen=True)
class SpmOptions:
    """Names and defaults are sentencepiece's, but for `normalization`, whose default there is `nmt_nfkc` (llama.cpp's
    SPM has none)."""

    size: int
    character_coverage: float = 0.9995
    max_sentence_length: int = 4192  # bytes; longer lines are left out
    max_piece_length: int = 16
    byte_fallback: bool = True
    split_by_unicode_script: bool = True
    split_by_number: bool = True
    split_digits: bool = False
    control: tuple[str, ...] = ()
    user_defined: tuple[str, ...] = ()
    normalization: str = IDENTITY  # of lines, before anything else: a map of sentencepiece's
    slices: int = 16  # of Unigram: sentencepiece's num_threads, which its last digits depend on

    def __post_init__(self) -> None:
        for name, last in (
            ("max_piece_length", LONGEST_PIECE),
            ("max_sentence_length", MOST_COUNT),
            ("slices", MOST_COUNT),
        ):
            if not 1 <= getattr(self, name) <= last:
                raise CorpusError(name, getattr(self, name), f"a whole number from 1 to {last:,}")
        if not 0 < self.character_coverage <= 1:
            raise CorpusError("character_coverage", self.character_coverage, "a share above 0, at most 1")
        seen = {"", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256) if self.byte_fallback)}
        for text in (*self.control, *self.user_defined):
            if text in seen:
                raise CorpusError("symbols", text, "distinct texts other than <unk> and the byte tokens")
            seen.add(text)


@dataclass(eq=False)
class SpmTrained:
    """Pieces in the order of their ids."""

    pieces: list[str]
    scores: list[float]
    types: list[int]
    options: SpmOptions
    merges: LearnedMerges | None = None
    warnings: list[str] = field(default_factory=list)
    model: str = "bpe"

    def __len__(self) -> int:
        return len(self.pieces)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .gguf for llama.cpp, or a .model for sentencepiece."""
        plain = os.fspath(path)
        if plain.endswith(".gguf"):
            write_spm_gguf(plain, self)
        elif plain.endswith(".model"):
            write_spm_model(plain, self)
        else:
            raise CorpusError("--out", plain, "a name that ends in .gguf or .model")

    @property
    def tokenizer(self) -> Tokenizer:
        """Encodes and decodes with the vocabulary."""
        return loaded(self.save)


def train_spm(
    texts: Any = None, size: int = 32000, *, words: Counts | None = None, threads: int | None = None,
    memory: int | None = None, progress: Show = "auto", **options: Any,
) -> SpmTrained:  # fmt: skip
    """Train sentencepiece's BPE on texts (lines are sentences), or on runs of other characters than spaces that were
    counted with `runs_of`. progress: as for `jittok.train`. options: fields of `SpmOptions`."""
    check_keywords(train_spm, options)
    chosen = SpmOptions(size, **options)
    if words is None:
        words = count(texts, how=runs_of(chosen, threads, memory), progress=progress)
    return train_spm_counts(words, chosen, progress)


def check_keywords(call: Callable[..., Any], options: dict[str, Any]) -> None:
    """TypeError, with a hint, for options of a trainer that are no fields of `SpmOptions`."""
    own = [each.name for each in fields(SpmOptions) if each.name != "size"]
    unknown = {name: value for name, value in options.items() if name not in own}
    if unknown:
        refuse_keywords(call, unknown, own)


def runs_of(options: SpmOptions, threads: int | None = None, memory: int | None = None) -> How:
    """How words are counted for this trainer."""
    return How(
        runs=RUNS,
        lines=options.max_sentence_length,
        normalization=options.normalization,
        threads=threads,
        memory=memory,
    )


def marked_words(counts: Counts, options: SpmOptions) -> CharacterWords:
    """The parts of the words that pieces may lie in: U+2581 before each word, cut where scripts meet.

    Runs of separators are left out. Symbols, also `<s>` and those of bytes, become BOUNDARY: the longest that fits,
    from the left.
    """

    def classify(points: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        kinds = piece_kinds(points, options).astype(np.int64)
        found = np.where(kinds >> 17 & 1 == 1, ALONE, kinds >> 1 & 0xFF)
        return np.where(kinds & 1 == 1, BEGINS, found), points

    parts, symbols = WordParts(classify), WordSymbols(options)
    for first, last in blocks(counts.starts, BLOCK):
        ends = counts.starts[first : last + 1] - counts.starts[first]
        words = counts.words[counts.starts[first] : counts.starts[last]]
        parts.add(*symbols.replaced(*marked(words, ends, counts.counts[first:last])))
    return parts.characters()


Flat = tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]
"""Words one after the other, where each begins (and the end), counts."""


def marked(words: NDArray[np.uint8], starts: NDArray[np.int64], counts: NDArray[np.int64]) -> Flat:
    """The words with U+2581 before, without runs of separators."""
    words, starts, counts = picked(words, starts, counts, is_word(words, starts))
    sizes, mark = np.diff(starts), np.frombuffer(SPACE_MARK_BYTES, np.uint8)
    out = np.insert(words, np.repeat(starts[:-1], mark.size), np.tile(mark, sizes.size))
    return out, starts + mark.size * np.arange(starts.size), counts


def is_word(words: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[words]: whether a run is one of other characters than separators."""
    found = np.diff(starts) > 0
    heads = words[starts[:-1][found]]
    found[found] = (heads != ord(" ")) & (heads != ord("\n"))
    return found


def picked(
    words: NDArray[np.uint8], starts: NDArray[np.int64], counts: NDArray[np.int64], rows: NDArray[np.bool_]
) -> Flat:
    """Some of the words."""
    if rows.all():
        return words, starts, counts
    sizes = np.diff(starts)
    return words[np.repeat(rows, sizes)], np.append(0, np.cumsum(sizes[rows])), counts[rows]


class WordSymbols:
    """The texts of symbols, which are no text of words. Longer ones are found first."""

    def __init__(self, options: SpmOptions) -> None:
        texts = sorted((text.encode() for text in first_pieces(options)[0] if text), key=len, reverse=True)
        self.pattern = re.compile(b"|".join(map(re.escape, texts)))
        self._heads = np.zeros((256, 256), np.bool_)  # what they begin with: a byte, and that after it
        for text in texts:
            self._heads[text[0], slice(None) if len(text) == 1 else text[1]] = True

    def held(self, words: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The words that may have one: those with its first bytes."""
        found = np.flatnonzero(self._heads.reshape(-1)[words.astype(np.uint16) << 8 | np.append(words[1:], 0)])
        return np.unique(np.searchsorted(starts, found, "right") - 1)

    def replaced(self, words: NDArray[np.uint8], starts: NDArray[np.int64], counts: NDArray[np.int64]) -> Flat:
        """The words with BOUNDARY in place of symbols."""
        held, raw = self.held(words, starts), words.tobytes()
        if not held.size:
            return words, starts, counts
        parts = [self.pattern.sub(BOUNDARY, raw[starts[k] : starts[k + 1]]) for k in held.tolist()]
        others = np.ones(counts.size, np.bool_)
        others[held] = False
        words, ends, kept = picked(words, starts, counts, others)
        flat, more = flat_words(parts)
        return np.append(words, flat), np.append(ends, ends[-1] + more[1:]), np.append(kept, counts[held])


def required_characters(words: CharacterWords, options: SpmOptions) -> list[int]:
    """Code points that are kept, by (count falling, code point rising), until the coverage is reached."""
    points, sums = words.weights()
    points, sums = points[points > 0], sums[points > 0]  # NUL is not even counted
    order = np.lexsort((points, -sums))
    total, seen, kept = int(sums.sum()), 0, []
    for k in order.tolist():
        if np.float32(seen / total) >= np.float32(options.character_coverage):
            break
        seen += int(sums[k])
        if int(points[k]) not in NO_PIECE:
            kept.append(int(points[k]))
    return kept


def piece_kinds(points: NDArray[np.int64], options: SpmOptions) -> NDArray[np.int32]:
    """int32[n]: what `pairs.allowed_as_piece` looks at; see there."""
    scripts = scripts_of(points) if options.split_by_unicode_script else np.zeros(points.size, np.int64)
    digits = ((points >= 0x30) & (points <= 0x39)) | ((points >= FULL_WIDTH[0]) & (points <= FULL_WIDTH[1]))
    if not options.split_by_number:
        scripts[digits] = ANY
    marks = points == SPACE_MARK_CODE
    scripts[marks] = SAME
    alone = digits & options.split_digits
    return (alone * (1 << 17) | scripts << 9 | scripts << 1 | marks).astype(np.int32)


def train_spm_counts(counts: Counts, options: SpmOptions, progress: Show = False) -> SpmTrained:
    """The pieces of counted runs. CorpusError when the size is below symbols, bytes and characters."""
    words = marked_words(counts, options)
    required = required_characters(words, options)
    heads, scores, types = first_pieces(options)
    wanted = options.size - len(heads) - len(required)
    if wanted < 0:
        expected = f"{options.size - wanted} or more: {len(heads)} symbols and bytes, {len(required)} characters"
        raise CorpusError("--size", options.size, expected)
    ranks = np.array(sorted(required), np.int64)
    symbols = words.rows(ranks)
    base = ranks.size
    merges = learn(
        WordCounts(words.starts, words.counts, symbols=symbols), base, base + wanted,
        MergeRules(pieces=PieceRules(
            np.arange(base, dtype=np.int32), piece_kinds(ranks, options), options.max_piece_length,
        )),
        progress,
    )  # fmt: skip
    texts = [chr(c) for c in ranks.tolist()]
    for a, b in merges.pairs.tolist():
        texts.append(texts[a] + texts[b])
    made = texts[base:]
    pieces = [*heads, *made, *(chr(c) for c in required)]
    scores += [-float(k) for k in range(len(made) + len(required))]
    types += [NORMAL] * (len(made) + len(required))
    said = [f"{len(pieces)} pieces: no pair is left to merge (asked for {options.size})"] if len(made) < wanted else []
    return SpmTrained(pieces, scores, types, options, merges, said + too_long(counts, options.max_sentence_length))


def too_long(counts: Counts, most: int) -> list[str]:
    """The warning about lines that were left out, if there are any."""
    said = f"{counts.left_out:,} lines of more than {most:,} bytes are left out, as sentencepiece does"
    return [said] if counts.left_out else []


def first_pieces(options: SpmOptions) -> tuple[list[str], list[float], list[int]]:
    """(texts, scores, types) of unknown, BOS, EOS, symbols and bytes. A symbol `<s>` or `</s>` stays where it is."""
    kinds = {"<unk>": UNKNOWN, "<s>": CONTROL, "</s>": CONTROL}
    kinds |= dict.fromkeys(options.control, CONTROL) | dict.fromkeys(options.user_defined, USER)
    rows = list(kinds.items())
    if options.byte_fallback:
        rows += [(f"<0x{byte:02X}>", BYTE) for byte in range(256)]
    return [text for text, _ in rows], [0.0] * len(rows), [kind for _, kind in rows]


def write_spm_gguf(path: str, made: SpmTrained) -> None:
    """A GGUF of llama.cpp's model "llama", for Unigram of model "t5"."""
    unigram = made.model == "unigram"
    if not made.options.byte_fallback and not unigram:
        raise CorpusError(
            path, InWords("a vocabulary without byte tokens"), "byte_fallback: llama.cpp aborts on unknown text"
        )
    charsmap = charsmap_bytes(made.options.normalization)
    if charsmap and not unigram:
        raise CorpusError(
            path, InWords(f"normalization {made.options.normalization}"), "identity: llama.cpp's SPM has no other"
        )
    write_gguf(path, GgufVocab(
        model="t5" if unigram else "llama", tokens=[piece.encode() for piece in made.pieces], scores=made.scores,
        types=made.types, roles={"unk": 0, "bos": 1, "eos": 2}, add_bos=False, add_eos=False, add_space_prefix=True,
        remove_extra_whitespaces=unigram, charsmap=charsmap,
    ))  # fmt: skip


def write_spm_model(path: str, made: SpmTrained) -> None:
    """A sentencepiece .model."""
    options = made.options
    same = ("character_coverage", "max_sentence_length", "byte_fallback", "split_by_unicode_script", "split_by_number",
            "split_digits")  # fmt: skip
    trainer = {name: getattr(options, name) for name in same}
    trainer |= {
        "max_sentencepiece_length": options.max_piece_length, "control_symbols": options.control,
        "user_defined_symbols": options.user_defined, "pad_id": -1,
    }  # fmt: skip
    normalizer = {
        "name": options.normalization, "precompiled_charsmap": charsmap_bytes(options.normalization),
        "add_dummy_prefix": True, "remove_extra_whitespaces": True, "escape_whitespaces": True,
    }  # fmt: skip
    write_model(path, zip(made.pieces, made.scores, made.types, strict=True), made.model, trainer, normalizer)
