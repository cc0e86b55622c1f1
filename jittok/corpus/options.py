"""The options that determine the bytes of a corpus directory. Threads, engine and progress do not, so they are not
here."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from jittok.errors import CorpusError, InWords

RANGE_BYTES = 8 << 20
SHARD_BYTES = 1 << 30
MAX_DOCUMENT_BYTES = 1 << 30
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
MOST_BYTES = 1 << 62
"""Larger than any file. Sums with a number below this fit in 64 bits."""
ON_ERROR = ("fail", "skip", "replace")
KINDS = ("txt", "jsonl", "parquet", "arrow")
CUTS, FIRST_CUTS = 2, 1
"""Versions of the rule that cuts inputs into ranges (see `ranges`): the current one, and that of corpora that do not
record it."""
KEPT_IDS = "input_ids"
"""The column of ids in a table, which no kept field may be named after."""
MASKS = "assistant_masks"
"""The column of what is to be learned in a table: the name that transformers and TRL give it."""
LEARN = ("assistant",)
"""What of a chat can be learned."""
MOST_KEPT = 50
SIDES = ("train", "val")
"""What `train_val` makes two corpora of, below the output: for training, for validation."""
OF_CHATS = {
    "tools": "tools", "learn": "learn", "template": "template", "trusted": "trusted", "variables": "variable",
    "now": "now",
}  # fmt: skip
"""What is about chats alone: the field of Options -> the option of the command line."""
NOT_OF_CHATS = {
    **dict.fromkeys(("lines", "separator", "join"), "JSON Lines or tables, a chat a line or row"),
    **dict.fromkeys(
        ("add_special", "parse_special", "append_eos", "eos"), "none: the chat template writes all special tokens"
    ),
}
LATER = ("keep", "train_val", "shuffle_documents", "messages", *OF_CHATS)
"""Options that only those corpora record which use them."""
DTYPES = ("auto", "uint16", "int32", "uint32")


@dataclass(frozen=True)
class Options:
    """How inputs are read, encoded and laid out. Two runs with equal options and inputs write equal bytes."""

    formats: tuple[str, ...] = ("arrow",)
    kind: str | None = None  # of KINDS: of inputs, whatever their extensions
    field: str = "text"
    column: str = "text"
    join: str | None = None  # between the texts of a list; None: a list is no text
    keep: tuple[str, ...] = ()  # fields of rows that stand beside the ids
    train_val: float | None = None  # the share of documents that is for training
    shuffle_documents: int | None = None  # the seed of a drawn order of documents
    messages: str | None = None  # each document is a chat: the field or column of its messages
    tools: str | None = None  # that of its tools
    learn: str | None = None  # of LEARN: beside the ids a mask of what is to be learned
    template: str | None = None  # the text of a chat template, or a name of the vocabulary's; None: the usual one
    trusted: tuple[str, ...] = ()  # roles whose messages may hold control tokens
    variables: Mapping[str, Any] | None = None  # of the template
    now: str | None = None  # the clock that the template sees: 2026-01-31, or with a time
    lines: bool = False
    separator: str | None = None
    add_special: bool = False
    parse_special: bool = False
    append_eos: bool = False
    eos: int | str | None = (
        None  # the token that ends each document, by id or text; None: with append_eos, `tok.eos_id`
    )
    on_error: str = "fail"
    dtype: str = "auto"
    range_bytes: int = RANGE_BYTES
    shard_bytes: int = SHARD_BYTES
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    cuts: int = CUTS  # which rule cuts inputs: a corpus continues with the one that it was begun with

    def __post_init__(self) -> None:
        if isinstance(self.formats, str):
            raise TypeError(f"formats: found a text, expected a tuple: ({self.formats!r},)")
        if isinstance(self.keep, str):
            raise TypeError(f"keep: found a text, expected a tuple: ({self.keep!r},)")
        if len(set(self.keep)) != len(self.keep) or KEPT_IDS in self.keep or len(self.keep) > MOST_KEPT:
            raise CorpusError(
                "--keep", ",".join(self.keep), f"up to {MOST_KEPT} fields, each once, and none named {KEPT_IDS}"
            )
        self._check_chats()
        if self.train_val is not None and not 0 < self.train_val < 1:
            raise CorpusError("--train-val", self.train_val, "more than 0 and less than 1")
        seed = self.shuffle_documents
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < MOST_BYTES):
            raise CorpusError("--shuffle-documents", seed, "a seed: a whole number from 0")
        _check_names([("--field", self.field), ("--column", self.column), *(("--keep", each) for each in self.keep)])
        _one_of("--on-error", self.on_error, ON_ERROR)
        _one_of("--dtype", self.dtype, DTYPES)
        if self.kind is not None:
            _one_of("--input-format", self.kind, KINDS)
        if self.lines and self.separator is not None:
            raise CorpusError("--separator", self.separator, "--lines or --separator, not both")
        if self.separator == "":
            raise CorpusError("--separator", "", "a text of one character or more")
        if not FIRST_CUTS <= self.cuts <= CUTS:
            raise CorpusError("cuts", self.cuts, f"{FIRST_CUTS} to {CUTS}: a later version of jittok cut these inputs")
        for name, size, least, expected in (
            ("--range-bytes", self.range_bytes, 1, "1 or more"),
            ("--max-document-bytes", self.max_document_bytes, 1, "1 or more"),
            ("--shard-bytes", self.shard_bytes, 0, "0 (one shard) or more"),
        ):
            if size < least:
                raise CorpusError(name, size, expected)
        if self.eos is not None and (isinstance(self.eos, bool) or not isinstance(self.eos, int | str)):
            raise TypeError(f"eos: found {type(self.eos).__name__}, expected the id or the text of a token")
        if not self.formats:
            raise CorpusError("--format", InWords("none"), "one or more")
        if len(set(self.formats)) != len(self.formats):
            raise CorpusError("--format", ",".join(self.formats), "each format once")

    def _check_chats(self) -> None:
        """What belongs to chats, and what does not go with them."""
        if isinstance(self.trusted, str):
            raise TypeError(f"trusted: found a text, expected a tuple: ({self.trusted!r},)")
        if self.messages is None:
            given = [name for name in OF_CHATS if getattr(self, name)]
            if given:
                raise CorpusError(f"--{OF_CHATS[given[0]]}", InWords("it without chats"), "--messages FIELD, too")
            return
        if not self.messages:
            raise CorpusError("--messages", self.messages, "the field of the messages of a chat")
        if self.learn is not None:
            _one_of("--learn", self.learn, LEARN)
        if self.learn and MASKS in self.keep:
            raise CorpusError("--keep", ",".join(self.keep), f"none named {MASKS}, which is the column of --learn")
        for name, usual in (("field", "text"), ("column", "text")):
            if getattr(self, name) != usual:
                raise CorpusError(f"--{name}", getattr(self, name), "no such option: --messages names the field")
        for name, why in NOT_OF_CHATS.items():
            if getattr(self, name) not in (None, False):
                raise CorpusError(f"--{name.replace('_', '-')}", InWords("it with --messages"), why)
        if self.now is not None:
            self.clock()

    def clock(self) -> datetime.datetime | None:
        """`now` as a time. CorpusError for what is none."""
        try:
            return None if self.now is None else datetime.datetime.fromisoformat(self.now)
        except ValueError:
            raise CorpusError("--now", self.now, "a date such as 2026-01-31, or with a time") from None

    @property
    def of_lines(self) -> str:
        """The field of JSON Lines that a document is in."""
        return self.field if self.messages is None else self.messages

    @property
    def of_tables(self) -> str:
        """The column of tables that a document is in."""
        return self.column if self.messages is None else self.messages

    def identity(self) -> dict[str, Any]:
        """The options as plain data, for the plan and the manifest."""
        found = {**asdict(self), "formats": list(self.formats), "keep": list(self.keep), "trusted": list(self.trusted)}
        return {name: value for name, value in found.items() if name not in LATER or value not in (None, [], {})}

    @property
    def sides(self) -> tuple[str, ...]:
        """The folders of the corpora that are made, below the output: "" is the output itself."""
        return ("",) if self.train_val is None else SIDES


def below(side: str, name: str) -> str:
    """The name of an object of a side, from the output on."""
    return f"{side}/{name}" if side else name


def from_identity(data: Mapping[str, Any]) -> Options:
    """The Options that `identity` wrote."""
    known = {key: data[key] for key in {field.name for field in fields(Options)} & data.keys()}
    return Options(
        **{"cuts": FIRST_CUTS, **known, **{name: tuple(data.get(name, ())) for name in ("formats", "keep", "trusted")}}
    )


def _check_names(named: Sequence[tuple[str, str]]) -> None:
    for option, text in named:
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise CorpusError(option, text, "a name that is valid UTF-8")


def _one_of(name: str, found: str, allowed: tuple[str, ...]) -> None:
    if found not in allowed:
        raise CorpusError(name, found, f"one of {', '.join(allowed)}")


def parse_bytes(text: str, where: str) -> int:
    """A number of bytes with an optional suffix K, M, G or T (powers of 1024). The CorpusError names `where`."""
    number, unit = text.strip().upper().removesuffix("B").removesuffix("I"), ""
    if number[-1:] in UNITS and number[-1:]:
        number, unit = number[:-1], number[-1]
    try:
        count = float(number) * UNITS[unit]
    except ValueError:
        count = math.nan
    if not abs(count) < MOST_BYTES:
        raise CorpusError(where, text, "a number of bytes such as 500000, 64M or 1G")
    return int(count)
