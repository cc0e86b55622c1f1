"""Compares two tokenizers without texts: their components, and the shortest text found on which they differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jittok.common.display.terminal import harmless, one_name, table
from jittok.common.pipeline import Pipeline
from jittok.compare import page
from jittok.compare.cells import differing
from jittok.compare.components import DIFFERS, SAME, Part, compare_parts, plain_bytes, plainly_cut
from jittok.compare.product import REPRESENTATIVES, Verdict
from jittok.compare.result import shown
from jittok.compare.spelling import SpelledTokens, shared_numbers, spelled
from jittok.kernels.jit import frozen

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

MOST_SLOW_TEXTS = 20_000
"""Limit of texts that are encoded with a tokenizer without kernels."""
TEXTS_PER_BATCH = 1 << 16
MOST_TEXTS = 40_000
"""Limit of texts derived from those that the splitters cut differently."""


@dataclass(frozen=True)
class Witness:
    """A text on which two tokenizers differ."""

    text: str
    a: list[str]
    b: list[str]
    a_ids: list[int]
    b_ids: list[int]
    shortest: bool  # no shorter text does: known for texts of one character


@dataclass(frozen=True)
class Machines:
    """Two tokenizers, component by component."""

    a: str
    b: str
    parts: list[Part]
    witness: Witness | None
    proved: bool  # no text distinguishes them
    tried: list[str] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """Whether no text was found on which they differ."""
        return self.witness is None

    @property
    def differs(self) -> bool:
        """Whether a text was found on which they differ, or a component differs."""
        return self.witness is not None or (not self.proved and any(part.verdict == DIFFERS for part in self.parts))

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return asdict(self)

    def to_json(self) -> str:
        """The same as one line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_html(self) -> str:
        """A standalone HTML page, for light and dark."""
        return page.whole(f"{self.a} and {self.b}", self._repr_html_())

    def _repr_html_(self) -> str:
        return page.machines(self.to_dict(), self.verdict)

    @property
    def verdict(self) -> str:
        """The verdict in a sentence."""
        if self.proved:
            return "identical: no text distinguishes them, which the parts above prove"
        if self.witness is None:
            return "no differing text found (this is not a proof)"
        how = "the shortest text" if self.witness.shortest else "the shortest text found"
        return f"{how} on which they differ: {self.witness.text!r}"

    def __str__(self) -> str:
        lines = [f"A  {one_name(self.a)}", f"B  {one_name(self.b)}"]
        lines.append(table("parts", [(part.name, f"{part.verdict}: {part.says}") for part in self.parts]))
        for part in self.parts:
            lines += [f"    {part.name}: {text}" for text in part.examples]
        lines += [self.verdict]
        if self.witness is not None:
            lines += [f"  A  {' | '.join(self.witness.a)}", f"  B  {' | '.join(self.witness.b)}"]
        lines += [f"  tried: {text}" for text in self.tried]
        return harmless("\n".join(lines)) + "\n"


def machines(a: Tokenizer, b: Tokenizer, by_id: bool = False) -> Machines:
    """The components of two tokenizers, and a text on which they differ."""
    toks, known = (a, b), (spelled(a), spelled(b))
    parts, verdict = compare_parts(toks, known)
    verdicts = {part.name.partition(" ")[0]: part.verdict for part in parts}
    proved = a.fingerprint == b.fingerprint or _proved(toks, verdicts, by_id)
    names = [tok.name or Path(tok.vocab.source).name for tok in toks]
    if proved:
        return Machines(names[0], names[1], parts, None, True)
    search = _WitnessSearch(toks, known, by_id)
    witness = search.find(verdict)
    return Machines(names[0], names[1], parts, witness, False, search.tried)


def _proved(toks: tuple[Tokenizer, Tokenizer], verdicts: dict[str, str], by_id: bool) -> bool:
    """Whether equal components imply equal tokens, without a search for special tokens."""
    vocabs = [tok.vocab for tok in toks]
    needed = ["normalizer", "splitter", "model", *(["tokens"] if by_id else [])]
    if any(verdicts[name] != SAME for name in needed):
        return False
    if all(isinstance(vocab, Pipeline) for vocab in vocabs):
        return verdicts["added"] == SAME
    # llama.cpp and other files search for tokens in different orders: the same only if there are none
    return all(map(plain_bytes, vocabs)) and not plainly_cut(toks[0]) and not plainly_cut(toks[1])


class _WitnessSearch:
    """Searches for a text on which two tokenizers differ."""

    def __init__(
        self, toks: tuple[Tokenizer, Tokenizer], known: tuple[SpelledTokens, SpelledTokens], by_id: bool
    ) -> None:
        self.toks, self.known, self.tried = toks, known, list[str]()
        self.numbers = (
            tuple(np.arange(tok.vocab_size, dtype=np.int32) for tok in toks)
            if by_id
            else shared_numbers(known[0].texts, known[1].texts)
        )
        self.slow = any(tok.runs != "kernels" for tok in toks)

    def find(self, verdict: Verdict) -> Witness | None:
        """The shortest text found."""
        single = self._first(self._characters(), "characters, each alone")
        if single is not None:
            return self._witness(single, shortest=True)
        found = [
            self._first(texts, what)
            for texts, what in (
                (self._of_splitters(verdict), "texts that the splitters cut differently"),
                (self._own(), "texts of tokens of both, and of added tokens in a sentence"),
            )
        ]
        texts = [text for text in found if text is not None]
        if not texts:
            return None
        return self._witness(min((self._smaller(text) for text in texts), key=_length), shortest=False)

    def _characters(self) -> Iterator[str]:
        every = (chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)
        if not self.slow:
            yield from every
            return
        for _, c in zip(range(MOST_SLOW_TEXTS), every, strict=False):
            yield c

    def _own(self) -> Iterator[str]:
        """Texts of tokens, shortest first."""
        texts = {text for known in self.known for text in known.texts if text and text[0] != 0xFF}
        ordered = sorted((text.decode("utf-8", "ignore") for text in texts), key=_length)
        added = sorted({text.decode() for tok in self.toks for text in plainly_cut(tok)}, key=_length)
        rows = [
            *ordered[: MOST_SLOW_TEXTS if self.slow else None],
            *added,
            *(f"a{text}b" for text in added),
            *(f" {t} " for t in added),
        ]
        yield from sorted((text for text in rows if text), key=_length)

    def _of_splitters(self, verdict: Verdict) -> Iterator[str]:
        """Texts that the two cut differently, with other characters of the same classes."""
        count = 0
        for text in verdict.texts:
            few = [members[: REPRESENTATIVES if len(text) < 4 else 2] for members in text]
            for characters in product(*few):
                count += 1
                if count > MOST_TEXTS:
                    return
                yield "".join(map(chr, characters))

    def _first(self, texts: Iterator[str], what: str) -> str | None:
        """The first text on which the two differ, the shortest of its block."""
        count = 0
        while block := [text for text, _ in zip(texts, range(TEXTS_PER_BATCH), strict=False)]:
            count += len(block)
            found = self._differing(block)
            if found:
                return min((block[k] for k in found), key=_length)
        self.tried.append(f"{count} {what}")
        return None

    def _differing(self, texts: list[str]) -> list[int]:
        rows = [tok.encode_batch(texts, errors="replace") for tok in self.toks]
        offsets = [frozen(row.offsets, np.int64) for row in rows]
        mapped = [frozen(number[row.ids], np.int32) for number, row in zip(self.numbers, rows, strict=True)]
        out = np.empty(len(texts), np.int64)
        found: list[int] = out[: differing(offsets[0], mapped[0], offsets[1], mapped[1], out)].tolist()
        return found

    def _smaller(self, text: str) -> str:
        """The text without characters that are not needed for the difference."""
        while True:
            shorter = [text[:k] + text[k + 1 :] for k in range(len(text))] if len(text) > 1 else []
            found = self._differing(shorter)
            if not found:
                return text
            text = shorter[found[0]]

    def _witness(self, text: str, shortest: bool) -> Witness:
        ids = [tok.encode(text, errors="replace").tolist() for tok in self.toks]
        texts = [[shown(known.texts[token]) for token in row] for known, row in zip(self.known, ids, strict=True)]
        return Witness(text, texts[0], texts[1], ids[0], ids[1], shortest)


def _length(text: str) -> tuple[int, int]:
    return len(text), len(text.encode("utf-8", "replace"))


__all__ = ["DIFFERS", "SAME", "Machines", "Witness", "machines"]
