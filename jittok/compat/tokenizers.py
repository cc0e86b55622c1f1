"""`tokenizers.Tokenizer` over a jittok Tokenizer: its methods, arguments, results and errors.

These are those of release 0.23.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from jittok.chunks.windows import (
    LONGEST_FIRST,
    NO_STEP,
    ONLY_FIRST,
    ONLY_SECOND,
    ROW,
    TOO_SHORT,
    Cutting,
    cut_rows,
)
from jittok.common.locks import once
from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import Pieces, Unigram
from jittok.common.pipeline.pipeline import FIRST_TEXT, SECOND_TEXT
from jittok.common.rows import TokenArray
from jittok.compat.components import Component, components
from jittok.compat.encoding import Encoding, Side, Source, Template
from jittok.compat.missing import CHANGES, TRAINING, Missing, not_there
from jittok.compat.names import added_of, names_of
from jittok.errors import EncodingFailed
from jittok.tokenizer import Tokenizer
from jittok.vocab import Vocab

Sequenced = str | Sequence[str]
"""A text; with `is_pretokenized` its words."""
Input = Sequenced | tuple[Sequenced, Sequenced]
STRATEGIES = {"longest_first": LONGEST_FIRST, "only_first": ONLY_FIRST, "only_second": ONLY_SECOND}
DEFAULTS: dict[str, Any] = {"truncation": None, "padding": None, "encode_special_tokens": False}
NOT_TEXT = "TextInputSequence must be str"
WAITS = "write await asyncio.to_thread(backend.encode_batch, texts)"
Line = tuple[int, int, int, int, int]
"""A row: its text, and where the ids of the first and of the second text begin and end."""
NOT_WORDS = "PreTokenizedInputSequence must be Union[List[str], Tuple[str]]"
NOT_INPUT = "TextEncodeInput must be Union[TextInputSequence, Tuple[InputSequence, InputSequence]]"
TOO_SHORT_TEXT = "Truncation error: Sequence to truncate too short to respect the provided max_length"
NO_SECOND = "Truncation error: Second sequence not provided"


def as_tokenizers(tok: Tokenizer) -> Backend:
    """A `tokenizers.Tokenizer` of a Tokenizer, for programs that expect one.

    >>> import jittok
    >>> backend = as_tokenizers(jittok.bundled("bert"))
    >>> row = backend.encode("Hello world", "Bye")
    >>> row.ids, row.type_ids
    ([101, 7592, 2088, 102, 9061, 102], [0, 0, 0, 0, 1, 1])
    >>> row.tokens, row.offsets
    (['[CLS]', 'hello', 'world', '[SEP]', 'bye', '[SEP]'], [(0, 0), (0, 5), (6, 11), (0, 0), (0, 3), (0, 0)])
    """
    if not isinstance(tok, Tokenizer):
        raise TypeError(f"tok: found {type(tok).__name__}, expected a jittok.Tokenizer: jittok.load(path)")
    return Backend(tok)


class Inputs(NamedTuple):
    """The texts of a batch."""

    texts: list[str]
    counts: list[int] | None  # how many of them are one input, if they were split into words


class Backend:
    """What `as_tokenizers` makes.

    Truncation, padding and `encode_special_tokens` are state of the object, as in tokenizers; the vocabulary never
    changes. Its pickle is that of the Tokenizer, and copies share it.
    """

    def __init__(self, tok: Tokenizer, state: dict[str, Any] | None = None) -> None:
        self._tok = tok
        self._state = self._new_state({**DEFAULTS, **(state or {})})

    def _new_state(self, state: dict[str, Any]) -> Any:
        return SimpleNamespace(**state)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._tok!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._tok, {name: getattr(self._state, name) for name in DEFAULTS})

    def __deepcopy__(self, memo: Any) -> Backend:
        made: Backend = type(self)(*self.__reduce__()[1])
        shared = ("_names", "_ids", "_source", "_added")
        vars(made).update({name: vars(self)[name] for name in shared if name in vars(self)})
        return made

    def __copy__(self) -> Backend:
        return self.__deepcopy__({})

    # ---- the vocabulary

    @once
    def _names(self) -> dict[int, str]:
        return names_of(self._tok)

    @once
    def _ids(self) -> dict[str, int]:
        ids = {name: token for token, name in reversed([*self._names.items()])}
        return ids | {token.content: token.id for token in self._added.values()}

    @once
    def _added(self) -> dict[int, Any]:
        return added_of(self._tok, self._names)

    @once
    def _source(self) -> Source:
        vocab = self._tok.vocab
        if isinstance(vocab, Vocab) or isinstance(vocab.model, Pieces):
            return Source(self._tok, self._names, frozenset())
        odd = {token.id for token in vocab.added if token.normalized or token.lstrip or token.rstrip}
        if isinstance(vocab.model, Unigram):
            odd.add(vocab.model.unknown)
        return Source(self._tok, self._names, frozenset(odd))

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """name -> id."""
        if with_added_tokens:
            return dict(self._ids)
        added = self._added
        own = self._tok.vocab.model_tokens if isinstance(self._tok.vocab, Pipeline) else self._tok.vocab.tokens
        return {name: token for name, token in self._ids.items() if token not in added or token < len(own)}

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """How many tokens there are."""
        return len(self.get_vocab(with_added_tokens))

    def token_to_id(self, token: str) -> int | None:
        """The id of a name."""
        return self._ids.get(token)

    def id_to_token(self, id: int) -> str | None:  # noqa: A002
        """The name of an id."""
        if id < 0:
            raise OverflowError(f"id: found {id}, expected 0 or more")
        return self._names.get(id)

    def get_added_tokens_decoder(self) -> dict[int, Any]:
        """id -> AddedToken of tokenizers; without that package, of jittok."""
        try:
            from tokenizers import AddedToken
        except ImportError:
            return dict(sorted(self._added.items()))
        return {
            token.id: AddedToken(
                token.content, single_word=token.single_word, lstrip=token.lstrip, rstrip=token.rstrip,
                normalized=token.normalized, special=token.special,
            ) for _, token in sorted(self._added.items())
        }  # fmt: skip

    def add_tokens(self, tokens: Iterable[Any]) -> int:
        """0 for tokens that are cut out of texts already. NotImplementedError for others: a Tokenizer cannot change."""
        known = {token.content for token in self._added.values()}
        new = [text for text in (str(getattr(token, "content", token)) for token in tokens) if text not in known]
        if new:
            not_there(f"add_tokens of {', '.join(map(repr, new[:5]))}", CHANGES)
        return 0

    add_special_tokens = add_tokens

    # ---- settings

    @property
    def truncation(self) -> dict[str, Any] | None:
        """The options of `enable_truncation`."""
        found: dict[str, Any] | None = self._state.truncation
        return None if found is None else dict(found)

    @property
    def padding(self) -> dict[str, Any] | None:
        """The options of `enable_padding`."""
        found: dict[str, Any] | None = self._state.padding
        return None if found is None else dict(found)

    @property
    def encode_special_tokens(self) -> bool:
        """Whether special tokens in a text are text."""
        return bool(self._state.encode_special_tokens)

    @encode_special_tokens.setter
    def encode_special_tokens(self, value: bool) -> None:
        self._state.encode_special_tokens = bool(value)

    def enable_truncation(
        self, max_length: int, stride: int = 0, strategy: str = "longest_first", direction: str = "right"
    ) -> None:
        """Cut rows to `max_length` ids; what is cut is in `overflowing`, in windows that share `stride` ids.

        As in tokenizers nothing is cut where `max_length` is less than the special tokens. ValueError for a stride
        greater than what they leave.
        """
        if strategy not in STRATEGIES or direction not in ("left", "right"):
            raise ValueError(f"found {strategy!r}, {direction!r}, expected one of {[*STRATEGIES]}, 'left' or 'right'")
        added = self.num_special_tokens_to_add(False)
        if 0 <= max_length - added < stride:
            raise ValueError(
                f"tokenizer stride set to {stride}, which is greater than or equal to its effective max length of "
                f"{max_length - added} (= {max_length} original max length - {added} added special tokens)"
            )
        self._state.truncation = {
            "max_length": max_length, "stride": stride, "strategy": strategy, "direction": direction,
        }  # fmt: skip

    def no_truncation(self) -> None:
        """Cut nothing."""
        self._state.truncation = None

    def enable_padding(
        self, direction: str = "right", pad_id: int = 0, pad_type_id: int = 0, pad_token: str = "[PAD]",  # noqa: S107
        length: int | None = None, pad_to_multiple_of: int | None = None,
    ) -> None:  # fmt: skip
        """Make rows as long as the longest of a batch, or `length`, rounded up to a multiple."""
        if direction not in ("left", "right"):
            raise ValueError(f"direction: found {direction!r}, expected 'left' or 'right'")
        self._state.padding = {
            "length": length, "pad_to_multiple_of": pad_to_multiple_of, "pad_id": pad_id, "pad_token": pad_token,
            "pad_type_id": pad_type_id, "direction": direction,
        }  # fmt: skip

    def no_padding(self) -> None:
        """Pad nothing."""
        self._state.padding = None

    def num_special_tokens_to_add(self, is_pair: bool = False) -> int:
        """How many ids the template puts around one text, or around two."""
        return len(self._template(is_pair, True)) - 1 - is_pair

    def _template(self, paired: bool, add_special: bool) -> Template:
        return self._tok.pipeline.template(paired, add_special)

    # ---- texts

    def encode(
        self, sequence: Sequenced, pair: Sequenced | None = None, is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> Encoding:  # fmt: skip
        """The row of one text or of two."""
        item: Any = sequence if pair is None else (sequence, pair)
        _check(item, is_pretokenized, pair is not None)
        return self._rows([item], [pair is not None], is_pretokenized, add_special_tokens)[0]

    def encode_batch(
        self, input: Sequence[Input], is_pretokenized: bool = False, add_special_tokens: bool = True,  # noqa: A002
    ) -> list[Encoding]:  # fmt: skip
        """The rows of many texts, or pairs (tuples) of texts."""
        if isinstance(input, str) or not isinstance(input, Sequence):
            raise TypeError(f"argument 'input': found {type(input).__name__}, expected a list of texts or pairs")
        items = list(input)
        pairs = [_is_pair(item, is_pretokenized) for item in items]
        for item, paired in zip(items, pairs, strict=True):
            _check(item, is_pretokenized, paired)
        return self._rows(items, pairs, is_pretokenized, add_special_tokens)

    def encode_batch_fast(self, *given: Any, **named: Any) -> list[Encoding]:
        """`encode_batch`: spans are made when they are asked for, so leaving them out saves nothing."""
        return self.encode_batch(*given, **named)

    def _rows(self, items: list[Any], pairs: list[bool], split: bool, add_special: bool) -> list[Encoding]:
        """The rows of inputs, which are checked; those of one kind at a time."""
        rows: list[Any] = [None] * len(items)
        for paired in {*pairs}:
            chosen = [k for k, kind in enumerate(pairs) if kind == paired]
            some = [items[k] for k in chosen]
            found = self._of_kind(some, paired, split, add_special)
            for k, row in zip(chosen, found, strict=True):
                rows[k] = row
        self._pad(rows)
        return rows

    def _of_kind(self, items: list[Any], paired: bool, split: bool, add_special: bool) -> list[Encoding]:
        columns = [[item[0] for item in items], [item[1] for item in items]] if paired else [items]
        sides = [self._side(_inputs(column, split)) for column in columns]
        template = self._template(paired, add_special)
        both = sides[0], sides[1] if paired else None
        rows: list[Encoding] = []
        for line in self._cut(both, template, paired):
            row = Encoding(both, template, line)
            if line[0] == len(rows):
                rows.append(row)
            else:
                rows[line[0]].overflowing.append(row)
        return rows

    def _side(self, inputs: Inputs) -> Side:
        parse = not self._state.encode_special_tokens
        try:
            rows: TokenArray = self._tok.encode_batch(inputs.texts, parse_special=parse)
        except EncodingFailed:
            if any(_has_surrogate(text) for text in inputs.texts):
                raise TypeError(NOT_TEXT) from None
            raise
        return Side(self._source, inputs.texts, inputs.counts, parse, rows.ids.tolist(), rows.offsets)

    def _cut(self, sides: tuple[Side, Side | None], template: Template, paired: bool) -> Iterator[Line]:
        """The text, and the ids of the first and of the second text, of each row."""
        first = sides[0].offsets
        second = first[:0] if sides[1] is None else sides[1].offsets
        how = self._cutting(template, paired)
        if how is None:
            texts = range(first.size - 1)
            ends = second.tolist() if paired else [0] * (first.size)
            begins = first.tolist()
            yield from zip(texts, begins, begins[1:], ends, ends[1:], strict=False)
            return
        for row in self._table(how, first, second).tolist():
            yield (row[0], row[1], row[2], *(row[3:5] if paired else (0, 0)))

    def _cutting(self, template: Template, paired: bool) -> Cutting | None:
        """How rows are cut; None if they are not, as where there is no room for the special tokens."""
        said = self._state.truncation
        around = len(template) - 1 - paired
        if said is None or said["max_length"] < around:
            return None
        parts = [part for part, _ in template]
        before, strategy = parts.index(FIRST_TEXT), STRATEGIES[said["strategy"]]
        return Cutting(
            strategy, said["max_length"] - around, said["stride"], int(said["direction"] == "left"), 1, int(paired),
            int(SECOND_TEXT in parts[:before]), len(parts), before, 0,
        )  # fmt: skip

    def _table(self, how: Cutting, first: Any, second: Any) -> Any:
        capacity, report = 2 * first.size + 64, np.zeros(3, np.int64)
        while True:
            table = np.empty(ROW * capacity, np.int64)
            rows = cut_rows(how, first, second, table, report)
            if rows == TOO_SHORT:
                lacks = how.strategy == ONLY_SECOND and not how.paired
                raise Exception(NO_SECOND if lacks else TOO_SHORT_TEXT)  # the library's
            if rows == NO_STEP:
                raise ValueError(f"stride: found {how.overlap}, expected less than {report[1]}, the ids of a window")
            if rows <= capacity:
                return table[: ROW * rows].reshape(-1, ROW)
            capacity = rows

    def _pad(self, rows: list[Encoding]) -> None:
        said = self._state.padding
        if said is None or not rows:
            return
        size = max(map(len, rows)) if said["length"] is None else said["length"]
        size += -size % (said["pad_to_multiple_of"] or 1)
        for row in rows:
            row.pad(size, said["direction"], said["pad_id"], said["pad_type_id"], said["pad_token"])

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """The text of ids; those that the vocabulary does not have are skipped."""
        return self.decode_batch([ids], skip_special_tokens)[0]

    def decode_batch(self, sequences: Sequence[Sequence[int]], skip_special_tokens: bool = True) -> list[str]:
        """The texts of rows of ids."""
        size, rows = self._tok.vocab_size, []
        for ids in sequences:
            row = np.asarray(ids if isinstance(ids, np.ndarray) else list(ids), np.int64)
            if row.size and row.min() < 0:
                raise OverflowError(f"id: found {row.min()}, expected 0 or more")
            rows.append(row[row < size].astype(np.int32))
        if not isinstance(self._tok.vocab, Vocab):
            return self._tok.decode_batch(rows, skip_special=skip_special_tokens)
        if skip_special_tokens:
            special = [token.id for token in self._added.values() if token.special]
            rows = [row[~np.isin(row, special)] for row in rows]
        wordpiece = self._tok.type == "wpm"
        texts = self._tok.decode_batch(rows, clean=wordpiece, unparse_special=True)
        return [text.removeprefix(" ") for text in texts] if wordpiece else texts

    def post_process(
        self, encoding: Encoding, pair: Encoding | None = None, add_special_tokens: bool = True
    ) -> Encoding:
        """The row of encodings without special tokens: truncated, with special tokens, padded."""
        if self._state.truncation is not None:
            not_there("post_process with truncation", "write backend.encode(text, pair), which does both")
        parts = []
        for part, kind in self._template(pair is not None, add_special_tokens):
            if part >= 0:
                made: dict[str, list[Any]] = {
                    "ids": [part], "type_ids": [kind], "tokens": [self._names[part]], "offsets": [(0, 0)],
                    "attention_mask": [1], "special_tokens_mask": [1], "word_ids": [None], "sequence_ids": [None],
                }  # fmt: skip
            else:
                number, own = (0, encoding) if part == FIRST_TEXT else (1, pair)
                assert own is not None
                made = own._made() | {"type_ids": [kind] * len(own), "sequence_ids": [number] * len(own)}
            parts.append(Encoding.of_lists(made))
        row = Encoding.merge(parts, growing_offsets=False)
        self._pad([row])
        return row

    # ---- files and components

    def save(self, path: str, pretty: bool = True) -> None:  # noqa: ARG002
        """Write a tokenizer.json."""
        from jittok.convert import convert

        convert(self._tok, path, to="tokenizer.json")

    def to_str(self, pretty: bool = False) -> str:  # noqa: ARG002
        """The content of a tokenizer.json."""
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tokenizer.json"
            self.save(str(path))
            return path.read_text(encoding="utf-8")

    @once
    def _components(self) -> dict[str, Component | None]:
        return components(self._tok, self)

    normalizer = property(lambda self: self._components["normalizer"])
    pre_tokenizer = property(lambda self: self._components["pre_tokenizer"])
    model = property(lambda self: self._components["model"])
    decoder = property(lambda self: self._components["decoder"])
    post_processor = property(lambda self: self._components["post_processor"])

    train = train_from_iterator = Missing(TRAINING)
    async_encode = async_encode_batch = async_encode_batch_fast = async_decode_batch = Missing(WAITS)
    from_file = from_str = from_buffer = Missing("write jittok.compat.as_tokenizers(jittok.load(path))")
    from_pretrained = Missing('write jittok.compat.as_tokenizers(jittok.load("hf:org/name"))')


def _is_pair(item: Any, split: bool) -> bool:
    """Whether an input is two texts."""
    if not isinstance(item, tuple | list) or len(item) != 2:
        return False
    return not split or not any(isinstance(each, str) for each in item)


def _check(item: Any, split: bool, paired: bool) -> None:
    """TypeError for what is no text, or no list of words."""
    parts = item if paired else (item,)
    for part in parts:
        if split:
            if not isinstance(part, list | tuple) or not all(isinstance(word, str) for word in part):
                raise TypeError(NOT_WORDS)
        elif not isinstance(part, str):
            raise TypeError(NOT_TEXT if paired or not isinstance(part, list | tuple) else NOT_INPUT)


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _inputs(column: list[Any], split: bool) -> Inputs:
    if not split:
        return Inputs(column, None)
    return Inputs([word for words in column for word in words], [len(words) for words in column])
