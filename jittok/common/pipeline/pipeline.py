"""The record itself: the content of a tokenizer file, checked, as data."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from jittok.common.digest import blake2b
from jittok.common.locks import once
from jittok.common.pipeline.models import (
    BYTE,
    CONTROL,
    NO_TOKEN,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER,
    Longest,
    Merges,
    Model,
    Pieces,
    Ranks,
    Unigram,
    WordPiece,
)
from jittok.common.pipeline.steps import Compose, Ctc, Decoder, JoinLlama, JoinWords, Normalizer, Splitter
from jittok.common.record import Record

Step = TypeVar("Step")

FIRST_TEXT, SECOND_TEXT = -1, -2
"""In a template: the ids of the texts."""
SPECIAL, NORMALIZED, LSTRIP, RSTRIP, SINGLE_WORD, UNSEARCHED, PRINTED_NORMALIZED = (1 << k for k in range(7))
"""Flags of an added token."""
_VERSION = b"jittok pipeline 1"
_LATER = {"own_ids", "twins", "single_types", "pair_types", "trims_spans", "keeps_prefix"}
"""Fields that the fingerprint does not count, as those that were written down stay. Two of them it reads where they are
not empty; types of segments change no id."""
_ATTRIBUTES = {NORMAL: 4, UNKNOWN: 1, CONTROL: 8, USER: 16, UNUSED: 2, BYTE: 32}
"""sentencepiece's kind of a piece -> the attribute bit that a GGUF file would have."""


def read_only_array(values: Any, dtype: Any) -> NDArray[Any]:
    """A read-only array of its own."""
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array


class AddedToken(NamedTuple):
    """A token that is cut out of a text before anything else looks at it."""

    content: str
    id: int
    special: bool
    normalized: bool  # searched for in the normalized text, by its normalized content
    lstrip: bool
    rstrip: bool
    single_word: bool
    unsearched: bool = False  # never found in a text
    printed_normalized: bool = False  # prints its normalized content, although it is not searched for by that


class Pipeline(Record, eq=False):
    """A tokenizer as its file defines it, complete. All arrays are read-only.

    A text goes through these steps: cut at added tokens that are not normalized; each piece through `normalize`; cut at
    added tokens that are; `split`; each word alone through `model`; special tokens around, by `single` or `pair`. Raw
    files (`engine` "tiktoken") find added tokens only on request.
    """

    source: str
    format: str  # "tokenizer.json", "sentencepiece", "tiktoken", "tekken", "rwkv", "vocab.txt", "vocab.json"
    library: str  # whose answers these are
    model_bytes: NDArray[np.uint8]  # texts of the model's vocabulary, as it writes them
    model_offsets: NDArray[np.int64]  # [tokens + 1]
    holes: NDArray[np.int32]  # ids without a token
    model: Model
    normalize: tuple[Normalizer, ...] = ()
    split: tuple[Splitter, ...] = ()
    decode: tuple[Decoder, ...] = ()
    added_bytes: NDArray[np.uint8] = read_only_array([], np.uint8)
    added_offsets: NDArray[np.int64] = read_only_array([0], np.int64)
    added_ids: NDArray[np.int32] = read_only_array([], np.int32)
    added_flags: NDArray[np.uint8] = read_only_array([], np.uint8)
    single: tuple[int, ...] = (FIRST_TEXT,)  # ids, and where the text stands
    pair: tuple[int, ...] = (FIRST_TEXT, SECOND_TEXT)
    bos_id: int = NO_TOKEN
    eos_id: int = NO_TOKEN
    unk_id: int = NO_TOKEN
    pad_id: int = NO_TOKEN
    own_ids: tuple[int, ...] = ()  # bos, eos, unk and pad of the file itself, where files beside it name others
    twins: tuple[tuple[str, int], ...] = ()  # more texts of the model's vocabulary, with ids that others have too
    single_types: tuple[int, ...] = ()  # the segment of each part of `single`; empty: see `template`
    pair_types: tuple[int, ...] = ()
    trims_spans: bool = False  # the library leaves white space at the ends of tokens out of their spans
    keeps_prefix: bool = False  # but for one space of the first token, which is the prefix
    name: str = ""
    notes: tuple[str, ...] = ()  # what the file says that is not done, and who would answer otherwise

    def __len__(self) -> int:
        most = self.added_ids.max(initial=-1)
        return max(self.model_offsets.size - 1, int(most) + 1)

    def __repr__(self) -> str:
        return f"Pipeline({self.source!r}, {self.format}, {self.type}, {len(self)} tokens)"

    def step(self, kind: type[Step]) -> Step | None:
        """The first step of this kind, of the normalizer or the splitter."""
        return next((step for step in (*self.normalize, *self.split) if isinstance(step, kind)), None)

    def template(self, paired: bool, add_special: bool = True) -> tuple[tuple[int, int], ...]:
        """(id, FIRST_TEXT or SECOND_TEXT; type of its segment) of each part of a row, of one text or of a pair.

        A file without types: 0, and 1 from the second text on.
        """
        parts, types = (self.pair, self.pair_types) if paired else (self.single, self.single_types)
        if not types:
            second = parts.index(SECOND_TEXT) if paired else len(parts)
            first = parts.index(FIRST_TEXT)
            types = tuple(int(second <= k and (second > first or k < first)) for k in range(len(parts)))
        return tuple(part for part in zip(parts, types, strict=True) if add_special or part[0] < 0)

    @once
    def model_tokens(self) -> list[bytes | None]:
        """Texts of the model's vocabulary by id, None for a hole."""
        texts: list[bytes | None] = list(ragged_bytes(self.model_bytes, self.model_offsets))
        for hole in self.holes.tolist():
            texts[hole] = None
        return texts

    @once
    def vocabulary(self) -> dict[bytes, int]:
        """text -> id in the model; of equal texts the last."""
        found = {text: token for token, text in enumerate(self.model_tokens) if text is not None}
        return {**found, **{text.encode(): token for text, token in self.twins}}

    @once
    def added(self) -> tuple[AddedToken, ...]:
        """The added tokens, in order."""
        texts = ragged_bytes(self.added_bytes, self.added_offsets)
        rows = zip(texts, self.added_ids.tolist(), self.added_flags.tolist(), strict=True)
        bits = (SPECIAL, NORMALIZED, LSTRIP, RSTRIP, SINGLE_WORD, UNSEARCHED, PRINTED_NORMALIZED)
        return tuple(
            AddedToken(text.decode(), token, *(bool(flags & bit) for bit in bits)) for text, token, flags in rows
        )

    @once
    def ids(self) -> dict[bytes, int]:
        """text -> id, added tokens before the model's."""
        return {**self.vocabulary, **{token.content.encode(): token.id for token in self.added}}

    @once
    def tokens(self) -> list[bytes | None]:
        """id -> text, added tokens before the model's; None for an id without one."""
        texts = self.model_tokens + [None] * (len(self) - len(self.model_tokens))
        for token in self.added:
            texts[token.id] = token.content.encode()
        return texts

    @once
    def _flat_tokens(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        return packed([text or b"" for text in self.tokens])

    @property
    def token_bytes(self) -> NDArray[np.uint8]:
        """uint8[bytes]: the texts of all tokens one after the other."""
        return self._flat_tokens[0]

    @property
    def token_offsets(self) -> NDArray[np.int64]:
        """int64[n + 1]: where they begin and end."""
        return self._flat_tokens[1]

    @property
    def composes_alone(self) -> bool:
        """Whether NFC is the only normalizer."""
        steps = self.normalize
        return len(steps) == 1 and isinstance(steps[0], Compose) and steps[0].form == "NFC"

    @property
    def cleans_spaces(self) -> bool:
        """Whether decoding removes spaces before punctuation and contractions, unless asked not to."""
        return any(
            step.clean_spaces if isinstance(step, JoinLlama) else isinstance(step, JoinWords | Ctc) and step.cleanup
            for step in self.decode
        )

    @once
    def fingerprint(self) -> str:
        """32 hex digits of everything that can change an id or a text; not where it came from, nor which of the tokens
        files beside it name for a role."""
        digest = blake2b(_VERSION, digest_size=16)
        own = dict(zip(("bos_id", "eos_id", "unk_id", "pad_id"), self.own_ids, strict=False))
        for part in canonical(self._replace(**own), {"source", "name", "notes", "library", *_LATER}):
            digest.update(part)
        for part in canonical(self.twins) if self.twins else ():
            digest.update(part)
        return digest.hexdigest()

    # ---- what a tokenizer says of itself, under the names that a GGUF vocabulary has

    pre = None
    eot_id = eom_id = sep_id = mask_id = NO_TOKEN
    fim_prefix_id = fim_suffix_id = fim_middle_id = fim_pad_id = fim_rep_id = fim_sep_id = NO_TOKEN
    add_sep = add_space_prefix = False
    nfc = False  # that of a GGUF file; here it is a step

    @property
    def unknown_id(self) -> int:
        """The token of what the model does not know, whatever files beside it call unknown."""
        return self.own_ids[2] if self.own_ids else self.unk_id

    @property
    def type(self) -> str:
        """One of bpe, spm, ugm, wpm, words, rwkv, and sentencepiece's word and char."""
        if isinstance(self.model, Pieces):
            return {"bpe": "spm", "unigram": "ugm"}.get(self.model.kind, self.model.kind)
        kinds = {Merges: "bpe", Ranks: "bpe", Unigram: "ugm", WordPiece: "wpm", Longest: "rwkv"}
        return kinds.get(type(self.model), "words")

    @property
    def add_bos(self) -> bool:
        """Whether `add_special` puts anything before."""
        return self.single[:1] != (FIRST_TEXT,)

    @property
    def add_eos(self) -> bool:
        """Whether `add_special` puts anything after."""
        return self.single[-1:] != (FIRST_TEXT,)

    @property
    def eog_ids(self) -> frozenset[int]:
        """The end token, as far as the file names one."""
        return frozenset({self.eos_id} - {NO_TOKEN})

    @property
    def special_tokens(self) -> NDArray[np.int32]:
        """int32[k]: ids of the added tokens, and of what sentencepiece cuts out or adds."""
        own = np.zeros(0, np.int64)
        if isinstance(self.model, Pieces):
            own = np.flatnonzero(np.isin(self.model.types, (UNKNOWN, CONTROL, USER)))
        return read_only_array(np.unique(np.concatenate([self.added_ids, own])), np.int32)

    @property
    def merges(self) -> int:
        """How many merges."""
        return int(self.model.left.size) if isinstance(self.model, Merges) else 0

    @once
    def _merge_ranks(self) -> dict[int, int]:
        if not isinstance(self.model, Merges):
            return {}
        return {token: rank for rank, token in reversed(list(enumerate(self.model.merged.tolist())))}

    def merge_rank(self, token: int) -> int | None:
        """The lowest rank of a merge that makes a token, None when there is none."""
        return self._merge_ranks.get(token)

    @once
    def scores(self) -> NDArray[np.float32]:
        """float32[n]: the scores of all tokens, 0 where the model has none."""
        out = np.zeros(len(self), np.float32)
        if isinstance(self.model, Unigram | Pieces):
            out[: self.model.scores.size] = self.model.scores
        return read_only_array(out, np.float32)

    @once
    def attributes(self) -> NDArray[np.int32]:
        """int32[n]: the attribute bits that a GGUF file would have: normal, unknown, control, user-defined, byte."""
        out = np.full(len(self), _ATTRIBUTES[NORMAL], np.int32)
        if isinstance(self.model, Pieces):
            names = np.array([0, *(_ATTRIBUTES[kind] for kind in range(1, 7))], np.int32)
            out[: self.model.types.size] = names[self.model.types]
        out[self.added_ids] = np.where(self.added_flags & SPECIAL, _ATTRIBUTES[CONTROL], _ATTRIBUTES[USER])
        return read_only_array(out, np.int32)


def packed(texts: Iterable[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(bytes, offsets) of texts one after the other, read-only."""
    rows = list(texts)
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)), out=offsets[1:])
    data = np.frombuffer(b"".join(rows), np.uint8)
    offsets.flags.writeable = False
    return data, offsets


def packed_texts(texts: Collection[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """(bytes, offsets) of the UTF-8 of texts one after the other, read-only: cut at once where none has U+0000."""
    joined = np.frombuffer("\0".join(texts).encode(), np.uint8)
    ends = np.flatnonzero(joined == 0)
    if ends.size != len(texts) - 1:
        return packed([text.encode() for text in texts])
    offsets = np.zeros(len(texts) + 1, np.int64)
    offsets[1:-1] = ends - np.arange(ends.size)
    offsets[-1] = joined.size - ends.size
    return read_only_array(joined[joined != 0], np.uint8), read_only_array(offsets, np.int64)


def ragged_bytes(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> list[bytes]:
    """The rows of a flat byte array as bytes objects."""
    blob = data.tobytes()
    return [blob[i:j] for i, j in pairwise(offsets.tolist())]


def canonical(value: Any, without: set[str] | None = None) -> Iterable[bytes]:
    """The bytes of a structure, each part after its name and size, so that no two structures have the same."""
    if isinstance(value, np.ndarray):
        content = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<"), copy=False).tobytes()
        yield f"{value.dtype.str} {len(content)}\n".encode()
        yield content
    elif hasattr(value, "_fields"):
        names = value._fields
        yield f"{type(value).__name__} {len(names) - len(_LATER.intersection(names))}\n".encode()
        for name in names:
            if not without or name not in without:
                yield f"{name}\n".encode()
                yield from canonical(getattr(value, name))
    elif isinstance(value, tuple):
        yield f"tuple {len(value)}\n".encode()
        for item in value:
            yield from canonical(item)
    else:
        content = repr(value).encode()
        yield f"{len(content)}\n".encode() + content
