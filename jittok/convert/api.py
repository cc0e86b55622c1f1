"""`jittok.convert`, and the check that the written file gives the same ids."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from jittok.common.display.progress import Bar, Show
from jittok.common.writers.atomic_files import atomic_file, is_stream
from jittok.convert.forms import ByteBpeForm, TokenizerForm, form_of
from jittok.convert.targets import ggufs, write_json, write_model, write_ranks
from jittok.convert.texts import TEXTS
from jittok.errors import InWords, UnsupportedVocab, refuse_keywords
from jittok.kernels.inputs import documents
from jittok.tokenizer import Tokenizer
from jittok.tokenizer.loading import load

if TYPE_CHECKING:
    from jittok.kernels.inputs import Texts

KINDS = {".gguf": "gguf", ".json": "tokenizer.json", ".tiktoken": "tiktoken", ".model": "model"}
"""Ends of names -> what is written."""
Kind = Literal["gguf", "tokenizer.json", "tiktoken", "model"]
SHOWN = 5
AT_ONCE = 1 << 14
"""Texts that are compared at once."""
NO_SPECIALS = ("sentencepiece", "tekken")
"""Formats whose library never finds special tokens in a text."""


@dataclass(frozen=True)
class Converted:
    """What was written, and what it was tried with."""

    path: str
    kind: str
    texts: int
    differing: int
    examples: list[tuple[str, list[int], list[int]]]  # text, ids of the source, ids of what was written
    call: str = ""  # how to load it, where a file does not say all


def convert(
    source: Tokenizer | str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    to: Kind | None = None,
    texts: Texts | None = None,
    pre: str | None = None,
    allow_differences: bool = False,
    overwrite: bool = False,
    progress: Show = "auto",
    **others: NoReturn,
) -> Converted:
    """Write a tokenizer as a file of another kind: "gguf", "tokenizer.json", "tiktoken" or "model".

    What is written is loaded and encodes a sample as the source does: hard texts, the text of every token, and `texts`
    (as for `encode_batch`). A difference is an UnsupportedVocab with its example, and nothing stays at `out`, unless
    `allow_differences`. A file that is at `out` already is a FileExistsError, unless `overwrite`. to: told by the
    name's end if left out; pre: llama.cpp's pre-tokenizer of a GGUF. progress: "auto" shows how far it is when it
    lasts.
    """
    if others:
        refuse_keywords(convert, others)
    tok = source if isinstance(source, Tokenizer) else load(source)
    path = Path(os.fspath(out))
    kind = to or KINDS.get(path.suffix, "")
    if kind not in KINDS.values():
        raise ValueError(f"to: found {to or path.name!r}, expected one of {', '.join(KINDS.values())}")
    if pre is not None and kind != "gguf":
        raise ValueError(f"pre: found {pre!r} for a {kind}, expected none (only GGUF files name a pre-tokenizer)")
    if not overwrite and os.path.lexists(path) and not is_stream(path):
        raise FileExistsError(f"{path}: found an existing file or folder, expected a new name, or overwrite=True")
    form = form_of(tok)
    if form is None:
        raise UnsupportedVocab(
            tok.vocab.source, "convert", tok.type, "BPE over bytes, pieces with scores, WordPiece or RWKV"
        )
    with tempfile.TemporaryDirectory(prefix="jittok-") as folder:
        made = Path(folder) / f"{kind}{path.suffix}"
        try:
            with Bar("convert", None, "texts", progress) as bar:
                best = _best(tok, form, kind, made, pre, _Sample(tok, texts, bar))
        except UnsupportedVocab as error:
            if error.file != os.fspath(made):
                raise
            raise UnsupportedVocab(os.fspath(out), error.key, error.found, error.expected) from None
        if best.differing and not allow_differences:
            text, ids, made_ids = best.examples[0]
            raise UnsupportedVocab(
                tok.vocab.source, f"convert to {kind}",
                InWords(f"{best.differing} of {best.texts} texts with different ids"),
                f"the same ids: {text!r} is {ids[:20]} and would be {made_ids[:20]}",
            )  # fmt: skip
        with atomic_file(path) as new:
            new.write_bytes(made.read_bytes())
    return Converted(os.fspath(out), kind, best.texts, best.differing, best.examples, _call(tok, form, kind, path))


def _best(tok: Tokenizer, form: TokenizerForm, kind: str, path: Path, pre: str | None, sample: _Sample) -> Converted:
    """What is written, the way that differs least where there are several."""
    if kind == "gguf":
        best, way_of_best = None, None
        for way in ggufs(path, form, tok.vocab, pre):
            way()
            found = _checked(tok, form, kind, path, sample)
            if best is None or found.differing < best.differing:
                best, way_of_best = found, way
            if not found.differing:
                return found
        assert best is not None
        assert way_of_best is not None
        way_of_best()
        return best
    {"tokenizer.json": write_json, "tiktoken": write_ranks, "model": write_model}[kind](path, form)
    return _checked(tok, form, kind, path, sample)


def _checked(tok: Tokenizer, form: TokenizerForm, kind: str, path: Path, sample: _Sample) -> Converted:
    """The sample through both; where both can search for special tokens, hard texts once more with them."""
    options = rank_options(tok, form) if kind == "tiktoken" else {}
    made = load(path, cache=False, **options)
    count = differing = 0
    examples: list[tuple[str, list[int], list[int]]] = []
    for rows, given in sample.of(made):
        found = [each.encode_batch(rows, errors="replace", **given) for each in (tok, made)]
        count += len(found[0])
        sample.bar.update(len(found[0]))
        for k in _unequal(found[0], found[1]):
            differing += 1
            if len(examples) < SHOWN:
                text = (
                    rows[k]
                    if isinstance(rows, list)
                    else rows.between(int(rows.starts[k]), int(rows.stops[k])).decode()
                )
                examples.append((text, found[0][k].tolist(), found[1][k].tolist()))
    return Converted(os.fspath(path), kind, count, differing, examples)


class _Sample:
    """What is tried with all that is written: hard texts, the texts of tokens, special tokens, texts of the caller's;
    some at a time with options of `encode_batch`."""

    def __init__(self, tok: Tokenizer, texts: Texts | None, bar: Bar) -> None:
        self._tok, self._texts, self.bar = tok, texts, bar

    def of(self, made: Tokenizer) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Those for a tokenizer that was read again."""
        tok = self._tok
        own = [text.decode("utf-8", "ignore") for text in _own_texts(tok)]
        rows = [text for text in dict.fromkeys((*own, *_runs(own))) if text]
        yield list(TEXTS), {}
        for first in range(0, len(rows), AT_ONCE):
            yield rows[first : first + AT_ONCE], {}
        if all(getattr(each.vocab, "format", "") not in NO_SPECIALS for each in (tok, made)):
            yield [*TEXTS, *_with_special(tok), *_with_special(made)], {"parse_special": True}
        yield [*_with_special(tok), *_with_special(made)], {}
        if self._texts is not None:
            for docs in documents(self._texts):
                yield docs, {}


AROUND = ("{} a", " {} ", "a {}b", "a{} b", "a  {}  b", "a{}b", "({}).", "\n{}\n{}", "a_{}_1", "\u00e9{}\u00e9")
"""Where a special token is in a text: flags of added tokens take white space beside it, or ask for words' edges."""
MOST_SPECIAL = 1000
"""So many special tokens of a file are in each of AROUND, the others in the first."""


def _with_special(tok: Tokenizer) -> list[str]:
    """Texts with the tokens that a tokenizer cuts out of them."""
    vocab = tok.vocab
    added = getattr(vocab, "added", None)
    if added is None:
        contents = [vocab.tokens[token].decode("utf-8", "ignore") for token in vocab.special_tokens.tolist()]
    else:
        flagged = [each for each in added if each.lstrip or each.rstrip or each.single_word or each.normalized]
        contents = [each.content for each in (*flagged, *added)]
    contents = [text for text in dict.fromkeys(contents) if text]
    return [
        form.format(text, text)
        for k, text in enumerate(contents)
        for form in (AROUND if k < MOST_SPECIAL else AROUND[:1])
    ]


def _own_texts(tok: Tokenizer) -> list[bytes]:
    from jittok.compare.spelling import UNKNOWN, spellings

    return [text for text in spellings(tok) if text != UNKNOWN]


def _runs(texts: list[str]) -> Iterator[str]:
    """Longer runs of what tokens repeat: several paths through them are equally good, and libraries choose between such
    paths in ways of their own."""
    units = dict.fromkeys(text[: (text + text).find(text, 1)] for text in texts)
    whole = set(texts)
    for unit in [unit for unit in units if unit + unit in whole][:MOST_SPECIAL]:
        yield from (unit * count for count in range(3, 10))


def _unequal(a: Any, b: Any) -> list[int]:
    """Rows that differ."""
    longer = np.flatnonzero(a.lengths != b.lengths).tolist()
    if not longer and np.array_equal(a.ids, b.ids):
        return []
    known = set(longer)
    return [k for k in range(len(a)) if k in known or not np.array_equal(a[k], b[k])]


def rank_options(tok: Tokenizer, form: TokenizerForm) -> dict[str, Any]:
    """What `load` must be told beside a file of ranks."""
    assert isinstance(form, ByteBpeForm)
    splits = form.splits
    if form.pre is not None:
        from jittok.train.export import split_patterns

        patterns = split_patterns(form.pre)
    else:
        patterns = [row["pattern"]["Regex"] for row in splits or []]
    if len(patterns) != 1 or form.composed:
        raise UnsupportedVocab(
            tok.vocab.source,
            "convert to tiktoken",
            InWords(f"{len(patterns)} patterns"),
            "one pattern, and no normalizer",
        )
    special = {str(row["content"]): int(str(row["id"])) for row in form.added}
    return {"pattern": patterns[0], "special_tokens": special}


def _call(tok: Tokenizer, form: TokenizerForm, kind: str, path: Path) -> str:
    if kind != "tiktoken":
        return ""
    options = rank_options(tok, form)
    return f"jittok.load({path.name!r}, pattern={options['pattern']!r}, special_tokens={options['special_tokens']!r})"


__all__ = ["KINDS", "Converted", "convert"]
