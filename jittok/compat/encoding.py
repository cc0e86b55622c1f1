"""`tokenizers.Encoding`: one row of a batch. Lists are made when they are asked for, from what the batch shares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.pipeline import FIRST_TEXT, SECOND_TEXT
from jittok.compat.quick import quick_for
from jittok.compat.tracing import Span, Traced, traced, trimmed
from jittok.tokenizer import Tokenizer

Template = Sequence[tuple[int, int]]
"""(an id, FIRST_TEXT or SECOND_TEXT; type of its segment) of each part of a row."""
FIELDS = (
    "ids", "type_ids", "tokens", "offsets", "attention_mask", "special_tokens_mask", "word_ids", "sequence_ids",
)  # fmt: skip


class Source:
    """What is known of a vocabulary, for all rows that are made with it."""

    def __init__(self, tok: Tokenizer, names: dict[int, str], odd: frozenset[int]) -> None:
        self.tok, self.names = tok, names
        self.odd = odd  # ids whose text is not always their name
        self.quick = quick_for(tok, names)
        self.trims, self.keeps_prefix = tok.pipeline.trims_spans, tok.pipeline.keeps_prefix


class Side:
    """The first or the second texts of a batch, encoded. A text that was split into words is several texts."""

    def __init__(
        self, source: Source, texts: list[str], counts: list[int] | None, parse_special: bool, ids: list[int],
        offsets: NDArray[np.int64],
    ) -> None:  # fmt: skip
        self.source, self.parse_special, self.ids = source, parse_special, ids
        self._texts, self._counts = texts, counts
        self._starts = None if counts is None else np.cumsum([0, *counts]).tolist()
        self.offsets = offsets if self._starts is None else offsets[self._starts]  # of the ids of each text
        self._begins = self.offsets.tolist()
        self._traced: dict[int, Traced] = {}
        self._quick: dict[tuple[int, str], list[Any]] = {}

    def trace(self, text: int) -> Traced:
        """The tokens of one text."""
        found = self._traced.get(text)
        if found is None:
            found = self._traced[text] = self._trace(text)
        return found

    def _trace(self, text: int) -> Traced:
        if self._starts is None:
            return traced(self.source.tok, self._texts[text], self.parse_special, self.source.names)
        found = Traced([], [], [], [])
        for number, k in enumerate(range(self._starts[text], self._starts[text + 1])):
            part = traced(self.source.tok, self._texts[k], self.parse_special, self.source.names)
            found.ids.extend(part.ids)
            found.spans.extend(part.spans)
            found.words.extend([number] * len(part.ids))
            found.texts.extend(part.texts)
        return found

    def part(self, text: int, start: int, stop: int, column: str) -> list[Any]:
        """A column of `Traced` for the ids start .. stop - 1 of all texts, which are of one text."""
        begin, values = self._begins[text], self._quickly(text, column)
        if values is None:
            found = self.trace(text)
            if len(found.ids) != self._begins[text + 1] - begin:
                raise AssertionError(f"text {text}: the reference gives other ids than the kernels; please report it")
            values = getattr(found, column)
        values = values[start - begin : stop - begin]
        if column == "spans" and self.source.trims:
            return trimmed(values, self.names(text, start, stop), self.source.keeps_prefix)
        return values

    def _quickly(self, text: int, column: str) -> list[Any] | None:
        """The same of a whole text by the lengths of its tokens; None where these do not tell."""
        if self._starts is not None or self.source.quick is None or text in self._traced or column == "texts":
            return None
        found = self._quick.get((text, column))
        if found is None:
            tell = self.source.quick.spans if column == "spans" else self.source.quick.words
            found = tell(self._texts[text], self.ids[self._begins[text] : self._begins[text + 1]])
            if found is not None:
                self._quick[text, column] = found
        return found

    def names(self, text: int, start: int, stop: int) -> list[str]:
        """The texts of these tokens."""
        ids = self.ids[start:stop]
        if self.source.odd and not self.source.odd.isdisjoint(ids):
            return self.part(text, start, stop, "texts")
        return [self.source.names[token] for token in ids]


class Padding(NamedTuple):
    """How many ids are added on each side, and which."""

    left: int
    right: int
    id: int
    type: int
    token: str


class Encoding:
    """A row: ids, and for each the type of its segment, its name, its span in the text, and so on.

    Lists are new ones each time. `overflowing`: the other windows of the same text.
    """

    __slots__ = ("_lists", "_pad", "_row", "_sides", "_template", "overflowing")

    def __init__(
        self, sides: tuple[Side, Side | None], template: Template, row: tuple[int, int, int, int, int],
    ) -> None:  # fmt: skip
        self._sides, self._template, self._row = sides, template, row  # text, start and stop of its ids, of the second
        self._pad: Padding | None = None
        self._lists: dict[str, list[Any]] | None = None
        self.overflowing: list[Encoding] = []

    @classmethod
    def of_lists(cls, lists: dict[str, list[Any]]) -> Encoding:
        """A row that does not belong to a batch."""
        made = object.__new__(cls)
        made._pad, made._lists, made.overflowing = None, lists, []
        return made

    def __len__(self) -> int:
        if self._lists is not None:
            return len(self._lists["ids"])
        _, start, stop, second, end = self._row
        texts = 1 + (self._sides[1] is not None)
        pad = 0 if self._pad is None else self._pad.left + self._pad.right
        return len(self._template) - texts + stop - start + end - second + pad

    def __repr__(self) -> str:
        return f"Encoding(num_tokens={len(self)}, attributes=[{', '.join(FIELDS)}, overflowing])"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._made(), self.overflowing)

    # ---- columns

    @property
    def ids(self) -> list[int]:
        """The ids."""
        return self._column("ids", lambda s, _, a, b: s.ids[a:b], lambda part, _: part)

    @property
    def type_ids(self) -> list[int]:
        """The segment of each id."""
        return self._column("type_ids", None, lambda _, kind: kind)

    @property
    def tokens(self) -> list[str]:
        """The text of each token, as the vocabulary has it."""
        return self._column("tokens", lambda s, k, a, b: s.names(k, a, b), self._name)

    @property
    def offsets(self) -> list[Span]:
        """The characters of the text that each token covers; (0, 0) for special tokens."""
        return self._column("offsets", lambda s, k, a, b: s.part(k, a, b, "spans"), lambda *_: (0, 0))

    @property
    def attention_mask(self) -> list[int]:
        """1 for ids, 0 for padding."""
        return self._column("attention_mask", lambda _, __, a, b: [1] * (b - a), lambda *_: 1)

    @property
    def special_tokens_mask(self) -> list[int]:
        """1 for special tokens around texts and for padding, 0 for tokens of a text."""
        return self._column("special_tokens_mask", lambda _, __, a, b: [0] * (b - a), lambda *_: 1)

    @property
    def word_ids(self) -> list[int | None]:
        """The pre-token that each token is of, by its number in its text; None for special tokens and padding."""
        return self._column("word_ids", lambda s, k, a, b: s.part(k, a, b, "words"), lambda *_: None)

    words = word_ids

    @property
    def sequence_ids(self) -> list[int | None]:
        """0 or 1: which text each token is of; None for special tokens and padding."""
        return self._column("sequence_ids", None, lambda *_: None)

    def _name(self, part: int, _kind: int) -> str:
        return self._sides[0].source.names[part]

    def _column(
        self, name: str, of_text: Callable[[Side, int, int, int], list[Any]] | None,
        of_special: Callable[[int, int], Any],
    ) -> list[Any]:  # fmt: skip
        """One list. of_text(side, text, start, stop): of ids of a text; of_special(id, type): of a special token."""
        if self._lists is not None:
            return list(self._lists[name])
        text, *bounds = self._row
        found: list[Any] = []
        for part, kind in self._template:
            if part not in (FIRST_TEXT, SECOND_TEXT):
                found.append(of_special(part, kind))
                continue
            number = int(part == SECOND_TEXT)
            side, (start, stop) = self._sides[number], bounds[2 * number : 2 * number + 2]
            if of_text is None:
                found += [kind if name == "type_ids" else number] * (stop - start)
            elif side is not None:
                found += of_text(side, text, start, stop)
        return found if self._pad is None else _padded(found, name, self._pad)

    def _made(self) -> dict[str, list[Any]]:
        return {name: getattr(self, name) for name in FIELDS}

    # ---- look-ups

    @property
    def n_sequences(self) -> int:
        """How many texts the row has."""
        if self._lists is None:
            return 1 + (self._sides[1] is not None)
        return max(1, len({*self._lists["sequence_ids"]} - {None}))

    def _range(self, sequence: int) -> range:
        """The places of the tokens of a text."""
        places = [k for k, found in enumerate(self.sequence_ids) if found == sequence]
        return range(places[0], places[-1] + 1) if places else range(0)

    def token_to_sequence(self, token_index: int) -> int | None:
        """Which text a token is of."""
        if token_index < 0:
            raise OverflowError(f"token_index: found {token_index}, expected 0 or more")
        found = self.sequence_ids
        return found[token_index] if token_index < len(found) else None

    def token_to_chars(self, token_index: int) -> Span | None:
        """The characters that a token covers."""
        return None if self.token_to_sequence(token_index) is None else self.offsets[token_index]

    def token_to_word(self, token_index: int) -> int | None:
        """The pre-token that a token is of."""
        return None if self.token_to_sequence(token_index) is None else self.word_ids[token_index]

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The first token that covers a character of a text."""
        spans = self.offsets
        return next((k for k in self._range(sequence_index) if spans[k][0] <= char_pos < spans[k][1]), None)

    def char_to_word(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The pre-token that a character of a text is in."""
        token = self.char_to_token(char_pos, sequence_index)
        return None if token is None else self.token_to_word(token)

    def word_to_tokens(self, word_index: int, sequence_index: int = 0) -> Span | None:
        """The first token of a pre-token, and the first one after it."""
        words = self.word_ids
        places = [k for k in self._range(sequence_index) if words[k] == word_index]
        return (places[0], places[-1] + 1) if places else None

    def word_to_chars(self, word_index: int, sequence_index: int = 0) -> Span | None:
        """The characters of a pre-token."""
        places = self.word_to_tokens(word_index, sequence_index)
        return None if places is None else (self.offsets[places[0]][0], self.offsets[places[1] - 1][1])

    # ---- changes

    def pad(
        self, length: int, direction: str = "right", pad_id: int = 0, pad_type_id: int = 0, pad_token: str = "[PAD]",  # noqa: S107
    ) -> None:  # fmt: skip
        """Add padding up to a length; a longer row stays. `overflowing` likewise."""
        missing = max(0, length - len(self))
        if direction not in ("left", "right"):
            raise ValueError(f"Invalid padding direction: found {direction!r}, expected 'left' or 'right'")
        left, right = (missing, 0) if direction == "left" else (0, missing)
        padding = Padding(left, right, pad_id, pad_type_id, pad_token)
        if missing and (self._lists is not None or self._pad is not None):
            self._lists = {name: _padded(found, name, padding) for name, found in self._made().items()}
        elif missing:
            self._pad = padding
        for row in self.overflowing:
            row.pad(length, direction, pad_id, pad_type_id, pad_token)

    def truncate(self, max_length: int, stride: int = 0, direction: str = "right") -> None:
        """Keep so many tokens; the others become `overflowing`, in windows that share `stride` tokens."""
        from jittok.reference.chunks.windows import windows

        if max_length >= len(self):
            return
        if stride >= max_length > 0:
            raise ValueError(f"stride: found {stride}, expected less than max_length, {max_length}")
        if max_length == 0:
            self.overflowing = [Encoding.of_lists(self._made())]
            self._lists, self._pad = {name: [] for name in FIELDS}, None
            return
        lists = self._made() | {"sequence_ids": [0] * len(self)}  # as in tokenizers
        places = windows(range(len(self)), max_length, stride, direction)
        rows = [{name: [found[k] for k in part] for name, found in lists.items()} for part in places]
        self._lists, self.overflowing = rows[0], [Encoding.of_lists(row) for row in rows[1:]]

    def set_sequence_id(self, sequence_id: int) -> None:
        """Make all tokens those of one text."""
        self._lists = self._made() | {"sequence_ids": [sequence_id] * len(self)}

    @staticmethod
    def merge(encodings: Iterable[Encoding], growing_offsets: bool = True) -> Encoding:
        """One row of several; growing_offsets: spans count on from those of the row before."""
        made: dict[str, list[Any]] = {name: [] for name in FIELDS}
        for encoding in encodings:
            ends = made["offsets"][-1][1] if growing_offsets and made["offsets"] else 0
            for name, found in encoding._made().items():
                made[name] += [(a + ends, b + ends) for a, b in found] if name == "offsets" else found
        return Encoding.of_lists(made)


def _padded(found: list[Any], name: str, pad: Padding) -> list[Any]:
    fill: Any = {
        "ids": pad.id, "type_ids": pad.type, "tokens": pad.token, "offsets": (0, 0), "attention_mask": 0,
        "special_tokens_mask": 1,
    }.get(name)  # fmt: skip
    return [fill] * pad.left + found + [fill] * pad.right


def _again(lists: dict[str, list[Any]], overflowing: list[Encoding]) -> Encoding:
    made = Encoding.of_lists(lists)
    made.overflowing = overflowing
    return made
