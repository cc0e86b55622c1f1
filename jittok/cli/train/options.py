"""Reject combinations of `jittok train` options that would silently have no effect."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from jittok.common.writers.atomic_files import is_stream

if TYPE_CHECKING:
    from jittok.train.counting.count import How
    from jittok.train.counting.counts import Counts

STDIN = "-"
COUNTING = ("weight", "by", "sample", "seed", "pre_regex")
"""Options for counting documents; without effect on words that are already counted."""
READING = ("input_format", "jsonl", "field", "column", "lines", "on_error", "max_document_bytes")
"""Options for reading documents; without effect on counted words, unless --held-out names documents."""
LOOKING = ("trace", "explain", "held_out")
OF_BPE = (
    "pre", "pre_regex", "like", "bos", "eos", "pad", "unk", "alphabet", "max_token_length", "limit_alphabet",
    "superbpe", "name", *LOOKING,
)  # fmt: skip
OF_CHANGING = ("pre", "min_frequency")
IDLE = {
    "bpe": ("normalization", "slices"),
    "spm": (*OF_BPE, "min_frequency", "slices"),
    "unigram": (*OF_BPE, "min_frequency"),
    "wordpiece": (*OF_BPE, "normalization", "slices"),
    "extend": ("sizes", "model", "normalization", "slices", *(name for name in OF_BPE if name not in OF_CHANGING)),
}
IDLE["prune"] = ("size", *IDLE["extend"])
"""Options without effect, by model or by edit."""


def check_options(options: argparse.Namespace, add_arguments: Callable[[argparse.ArgumentParser], None]) -> None:
    """Raise ValueError for an option that was given and has no effect in combination with the others."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)

    def refuse(names: Iterable[str], beside: str) -> None:
        for name in names:
            if getattr(options, name) != parser.get_default(name):
                option = f"--{name.replace('_', '-')}"
                raise ValueError(f"found {option} and {beside}, expected no {option}: it has no effect there")

    from jittok.train.bpe import check_name

    check_name(options.name or "")  # now, not after hours of learning
    if options.pre_regex == "":
        raise ValueError("pre_regex: found '', which never splits, expected a regular expression")
    changing = "extend" if options.extend else "prune" if options.prune else ""
    refuse(IDLE[changing or options.model], f"--{changing}" if changing else f"--model {options.model}")
    if options.words:
        refuse([*COUNTING, *(() if options.held_out else READING)], "--words, whose words are already counted")
    if options.pre is not None and options.pre_regex is not None:
        raise ValueError("found --pre-regex and --pre, expected only one of them")
    if not changing and options.size is None and options.sizes is None:
        wanted = ["out", *LOOKING]
        for name in wanted:
            if getattr(options, name):
                raise ValueError(f"found --{name.replace('_', '-')} without --size, expected --size N")
    if options.superbpe and any(name == STDIN or is_stream(name) for name in options.inputs):
        raise ValueError("found a stream and --superbpe, expected files, as they are read twice")


def check_words(words: Counts, options: argparse.Namespace, how: How) -> None:
    """Raise ValueError if there are no counted words, or if they were split differently than the options specify."""
    from jittok.train.spm import SpmOptions, too_long

    if not len(words):
        found = [f"no words in {words.documents:,} documents", *too_long(words, SpmOptions(0).max_sentence_length)]
        expected = "some (check --input-format, --field, --column, --weight and --sample)"
        raise ValueError(f"found {'; '.join(found)}, expected {expected}")
    if not options.words or not words.pre:
        return
    other = options.model != "bpe" or words.pre.startswith("runs:") or options.pre is not None
    if other and words.pre != how.name:
        raise ValueError(f"found words split by {words.pre}, expected {how.name} (see --model, --pre, --normalization)")
    if options.model == "bpe" and words.like != options.like:
        raise ValueError(f"found words counted with --like {words.like}, expected --like {options.like}")


def not_cut_out(words: Counts, options: argparse.Namespace) -> str | None:
    """A warning about special tokens that were not split off when the words were counted."""
    left = [text for text in options.special if text not in words.special]
    if not left or not options.words or not words.pre or options.like == "hf":
        return None
    return f"the words may contain the text of {', '.join(left)}: use the same --special when counting"
