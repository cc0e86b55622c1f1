"""A second stage of training, over spaces (SuperBPE): tokens of several words after those of words.

The first stage is byte-level BPE with a splitter of words. The second continues from its tokens: its words are
stretches of a few words in a line, without digits, sentence ends and colons, counted once. Each step merges as in the
first stage. llama.cpp cuts texts of such a vocabulary at digits only (pre `superbpe`), so first merges come first there
too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jittok.common.display.progress import Show
from jittok.errors import CorpusError
from jittok.train.bpe import Options, Trained, train_counts
from jittok.train.counting.count import How, count
from jittok.train.counting.counts import Counts
from jittok.train.learner import LearnedMerges, MergeRules, WordCounts, learn

PRE = "superbpe"
MOST_WORDS = 8


def stretches(words: int = 4) -> str:
    """The pattern of a stretch: up to this many words. CorpusError for less than 2 or more than MOST_WORDS."""
    if not 2 <= words <= MOST_WORDS:
        raise CorpusError("words", words, f"2 to {MOST_WORDS}")
    word = r"[^ \n\r\t.:;!?0-9]+"
    return f" ?{word}(?: {word}){{0,{words - 1}}}"


def train_superbpe(
    texts: Any, size: int, first_size: int | None = None, *, words: int = 4, special: Any = (),
    progress: Show = "auto", **options: Any,
) -> Trained:  # fmt: skip
    """Byte-level BPE to `first_size` ids (three quarters of `size`), then tokens of up to `words` words.

    texts are read twice, so not an iterator. progress, options: as those of `jittok.train`
    """
    if iter(texts) is texts:
        raise CorpusError("texts", type(texts).__name__, "texts that can be read twice, such as a list")
    first_size = 3 * size // 4 if first_size is None else first_size
    roles = {role: options.pop(role) for role in ("bos", "eos", "pad", "unk") if role in options}
    named = {name: options.pop(name) for name in ("min_frequency", "alphabet", "like") if name in options}
    how = How(special=tuple(special), **options)
    chosen = Options(first_size, pre=how.pre, special=tuple(special), **named)
    counts = count(texts, how=how, progress=progress)
    first = Trained(train_counts(counts, chosen, progress=progress), how.name, roles)
    counts = count(texts, how=replace(how, runs=stretches(words)), progress=progress)
    return second_stage(first, counts, size, progress)


def second_stage(first: Trained, counts: Counts, size: int, progress: Show = False) -> Trained:
    """More merges, of tokens in counted stretches. CorpusError for a size that is no larger than the first one."""
    base = len(first)
    if size <= base:
        raise CorpusError("--size", size, f"more than the {base} ids of the first stage")
    learned = first.learned
    rows = first.tokenizer.encode_batch([stretch for stretch, _ in counts.items()])
    raw = first.tokens
    made = learn(
        WordCounts(np.concatenate([[0], np.cumsum(rows.lengths)]), counts.counts, symbols=rows.ids), base, size,
        MergeRules((learned.options.min_frequency if learned.options else 0) * counts.unit,
                   known={text: -1 for text in raw if text}, first_texts=raw, watch_all=True),
        progress,
    )  # fmt: skip
    texts = list(learned.texts)
    for a, b in made.pairs.tolist():
        texts.append(texts[a] + texts[b])
    old = learned.merges
    scale = counts.unit // learned.unit
    merges = LearnedMerges(
        np.concatenate([old.pairs, made.pairs]), np.concatenate([old.counts * scale, made.counts]),
        np.concatenate([old.done * scale, made.done]), np.concatenate([old.ids, made.ids]), made.best_left,
    )  # fmt: skip
    said = [text for text in learned.warnings if not text.endswith(")") or "no pair" not in text]
    if len(texts) < size:
        said.append(f"{len(texts)} ids: no pair is left to merge (asked for {size})")
    options = None if learned.options is None else replace(learned.options, size=size, pre=PRE)
    second = replace(
        learned, texts=texts, merges=merges, symbols=learned.symbols * scale, unit=counts.unit, options=options,
        warnings=said,
    )  # fmt: skip
    return Trained(second, PRE, {role: learned.texts[token] for role, token in first.roles.items()}, first.name)
