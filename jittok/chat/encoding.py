"""A rendered chat to ids: control tokens are the template's alone, and each id knows whose text it stands for."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.chat.beginnings import Beginnings
from jittok.chat.messages import Source
from jittok.chat.spans import Spans
from jittok.chat.templates.marked import GENERATED, SOURCE
from jittok.chat.templates.rendering import Rendered
from jittok.common.locks import once
from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import Pieces
from jittok.common.pipeline.pipeline import read_only_array
from jittok.common.rows.ids import Ids
from jittok.encode.literal import GuardedRule, LiteralIds, counts_of, encode_documents, parsed_only
from jittok.errors import ChatError, EncodingFailed, InWords
from jittok.kernels.inputs import PADDING, Documents, to_bytes
from jittok.kernels.jit import frozen
from jittok.vocab import Vocab

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

TEMPLATE = -1
"""`ChatIds.sources` of an id that stands for the template's own text."""
ASSISTANT = frozenset({"assistant", "model"})
"""Roles whose messages a model writes."""
Mixed = Literal["error", "text"]


def guarded_of(vocab: Vocab | Pipeline, literal: str) -> frozenset[int]:
    """The ids that no message may become: special tokens, and other added or user-defined tokens that stand in the
    template's own texts and are not white space."""
    found = set(parsed_only(vocab))
    if isinstance(vocab, Pipeline):
        found |= {token.id for token in vocab.added if _stands(token.content, literal)}
        others: Collection[int] = vocab.special_tokens.tolist() if isinstance(vocab.model, Pieces) else ()
    else:
        others = vocab.special_tokens.tolist()
    return frozenset(found.union(token for token in others if _stands(_text(vocab, token), literal)))


def _text(vocab: Vocab | Pipeline, token: int) -> str:
    begin, end = vocab.token_offsets[token : token + 2].tolist()
    return vocab.token_bytes[begin:end].tobytes().decode("utf-8", "replace")


def _stands(text: str, literal: str) -> bool:
    return bool(text) and not text.isspace() and text in literal


def searched_as_written(vocab: Vocab | Pipeline, guarded: frozenset[int]) -> bool:
    """Whether all these tokens are searched for in the text as it is, not in normalized text."""
    if not isinstance(vocab, Pipeline):
        return True
    if isinstance(vocab.model, Pieces):
        return False
    return not vocab.normalize or not any(token.normalized for token in vocab.added if token.id in guarded)


def makes_guarded(tok: Tokenizer, rule: GuardedRule) -> bool:
    """Whether the model may make a guarded id of plain text: of the text of one, or of what it does not know."""
    unknown = -1 if tok.unk_id is None else tok.unk_id
    if rule.options is None or (unknown in rule.guarded and tok.type != "bpe"):
        return True
    ids = sorted(rule.guarded)
    texts = [tok.id_to_token(token) for token in ids]
    stops = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = frozen(np.concatenate([np.zeros(1, np.int64), stops[:-1]])[: stops.size], np.int64)
    data = b"".join(texts)
    docs = Documents(np.frombuffer(data + PADDING, np.uint8), starts, frozen(stops, np.int64))
    try:
        found = encode_documents(rule, docs, counts_of(np.ones(len(data), np.bool_)))
    except EncodingFailed:
        return True
    return bool(rule.is_guarded[found.ids].any())


class Places(NamedTuple):
    """The runs of a text, in bytes."""

    ends: NDArray[np.int64]  # [runs]
    marks: NDArray[np.int64]  # [runs] without GENERATED
    generated: NDArray[np.bool_]


def places_of(rendered: Rendered, raw: bytes) -> Places:
    """The runs of a rendered text, whose UTF-8 is `raw`."""
    runs = np.array(rendered.runs, np.int64).reshape(-1, 2)
    ends = np.cumsum(runs[:, 0])
    if len(raw) != len(rendered.text):
        data = np.frombuffer(raw, np.uint8)
        ends = np.append(np.flatnonzero(data & 0xC0 != 0x80), data.size)[ends]
    return Places(ends, runs[:, 1] & SOURCE, runs[:, 1] & GENERATED != 0)


class ChatIds:
    """The ids of a chat.

    `ids`: int32[n]
    `text`: the rendered text
    `fields`: the texts of the chat, `Source`: where each is (`path`: ("messages", 0, "content")), its message's `role`
    `spans`: int64[n, 2], offsets in the UTF-8 of the text; `sources`: int32[n], the number of the field that each id
    stands for, -1 for the template's own; `assistant_mask`: uint8[n], 1 for the ids that the assistant wrote. These
    three are found when they are asked for. Arrays are read-only.
    """

    def __init__(
        self, ids: NDArray[np.int32], rendered: Rendered, generates: bool,
        find: Callable[[], NDArray[np.int64]],
    ) -> None:  # fmt: skip
        ids.flags.writeable = False
        self.ids = ids.view(Ids)
        self.text: str = rendered.text
        self._rendered, self._generates, self._find = rendered, generates, find

    @once
    def fields(self) -> tuple[Source, ...]:
        """The texts of the chat."""
        return tuple(Source(*each) for each in self._rendered.sources)

    @once
    def _places(self) -> Places:
        return places_of(self._rendered, self.text.encode())

    @once
    def spans(self) -> NDArray[np.int64]:
        """int64[n, 2]: the bytes of the text that each id stands for, spans[k, 0] up to spans[k, 1]."""
        return frozen(self._find(), np.int64)

    @once
    def sources(self) -> NDArray[np.int32]:
        """int32[n]: the number in `fields` of the text that each id stands for: that of its first character which is
        not the template's; -1 where all are."""
        return frozen(first_marked(self._places, self.spans) - 1, np.int32)

    @once
    def assistant_mask(self) -> NDArray[np.uint8]:
        """uint8[n]: 1 for each id that stands for a character that the assistant wrote.

        By {% generation %} of the template; without that, by the texts of the assistant's messages: then what the
        template writes after them, such as the token that ends a turn, is 0. ChatError if the template prints none of
        them.
        """
        if not self._generates and any(own := are_assistants(self._rendered)):
            check_written(self._rendered, own)
        return self.written()

    def written(self) -> NDArray[np.uint8]:
        """`assistant_mask`, also where the template prints no assistant's text: then all are 0."""
        places = self._places
        if self._generates:
            return frozen(overlaps(places, places.generated, self.spans), np.uint8)
        written = np.array([False, *are_assistants(self._rendered)])[places.marks]
        return frozen(overlaps(places, written, self.spans), np.uint8)

    def __len__(self) -> int:
        return self.ids.size

    def __repr__(self) -> str:
        return f"ChatIds({self.ids.size} ids, {len(self.fields)} texts)"


def are_assistants(rendered: Rendered) -> list[bool]:
    """Whether each text of a chat is of an assistant's message."""
    return [role in ASSISTANT and path[0] == "messages" for path, role in rendered.sources]


def check_written(rendered: Rendered, own: list[bool]) -> None:
    """ChatError if none of the texts that are the assistant's is in a rendered chat."""
    if not any(mark & SOURCE and own[(mark & SOURCE) - 1] for _, mark in rendered.runs):
        raise ChatError(
            "assistant_mask", InWords("a template without {% generation %} that prints no assistant's text"),
            "a template that says what the assistant writes",
        )  # fmt: skip


def overlaps(places: Places, wanted: NDArray[np.bool_], spans: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[n]: whether a span overlaps a run that is wanted."""
    if not places.ends.size:
        return np.zeros(len(spans), np.bool_)
    count = np.concatenate([[0], np.cumsum(np.where(wanted, np.diff(places.ends, prepend=0), 0))])
    starts = np.concatenate([[0], places.ends])

    def before(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        run = np.minimum(np.searchsorted(places.ends, offsets, "right"), places.ends.size - 1)
        inside = np.where(wanted[run], np.minimum(offsets, places.ends[run]) - starts[run], 0)
        found: NDArray[np.int64] = count[run] + inside
        return found

    return before(spans[:, 1]) > before(spans[:, 0])


def first_marked(places: Places, spans: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n]: the mark of the first character of each span that has one, else 0."""
    if not places.ends.size:
        return np.zeros(len(spans), np.int64)
    number = places.ends.size
    following = np.minimum.accumulate(np.where(places.marks != 0, np.arange(number), number)[::-1])[::-1]
    following = np.append(following, number)
    run = following[np.searchsorted(places.ends, spans[:, 0], "right")]
    starts = np.concatenate([[0], places.ends])
    marks = np.append(places.marks, 0)
    here = np.maximum(starts[run], spans[:, 0]) < spans[:, 1]
    return np.where(here, marks[run], 0)


# ---- ids


class Encoding(NamedTuple):
    """How the chats of one template are encoded."""

    rule: GuardedRule
    beginnings: Beginnings | None  # of the guarded tokens; None: the search with literal text is always needed
    generates: bool  # whether the template has {% generation %}
    encode: Callable[[str], NDArray[np.int32]]  # the ids of a text, with all its special tokens
    all_spans: Callable[[str, NDArray[np.int32]], NDArray[np.int64]]  # and their spans
    spans: Spans

    def ids(self, rendered: Rendered, trusted: Collection[str], mixed: Mixed) -> ChatIds:
        """The ids of a rendered chat. trusted: roles whose texts count as the template's.

        Raises MixedToken, EncodingFailed; ChatError where the vocabulary's model makes a control token of a message's
        text.
        """
        theirs = [False, *[role not in trusted for _, role in rendered.sources]]
        if self.beginnings is not None and self.beginnings.none_in(rendered.text, rendered.runs, theirs):
            ids = self.encode(rendered.text)
            return ChatIds(ids, rendered, self.generates, lambda: self.all_spans(rendered.text, ids))
        return self._searched(rendered, theirs, mixed)

    def _searched(self, rendered: Rendered, theirs: list[bool], mixed: Mixed) -> ChatIds:
        raw = to_bytes(rendered.text)
        places = places_of(rendered, raw)
        counts = counts_of(np.repeat(np.array(theirs)[places.marks], np.diff(places.ends, prepend=0)))
        docs = Documents(
            np.frombuffer(raw + PADDING, np.uint8), read_only_array([0], np.int64),
            read_only_array([len(raw)], np.int64),
        )  # fmt: skip
        found = encode_documents(self.rule, docs, counts, mixed == "text")
        made = ChatIds(found.ids, rendered, self.generates, lambda: self.spans(docs, counts, found, mixed == "text"))
        suspects = self.suspects(found)
        if suspects.any():
            check_model(suspects, found, made.spans, counts, raw, self.rule.options is not None)
        return made

    def suspects(self, found: LiteralIds) -> NDArray[np.bool_]:
        """bool[ids]: guarded ids that the vocabulary's model may have made of literal text."""
        suspects: NDArray[np.bool_] = self.rule.is_guarded[found.ids]
        if self.rule.options is not None:
            suspects[found.ends[found.tokens >= 0] - 1] = False  # cut out of the text, so checked
        return suspects


def check_model(
    suspects: NDArray[np.bool_], found: LiteralIds, spans: NDArray[np.int64], counts: NDArray[np.uint32], raw: bytes,
    by_kernels: bool,
) -> None:  # fmt: skip
    """Raise ChatError if a suspect stands for literal text: then the vocabulary's model makes it of plain text."""
    for k in np.flatnonzero(suspects).tolist():
        begin, end = spans[k].tolist()
        literal = np.diff(counts[begin : end + 1].astype(np.int64)).astype(bool)
        own = bytes(byte for byte, theirs in zip(raw[begin:end], literal.tolist(), strict=True) if not theirs)
        if literal.any() and (by_kernels or own.strip() != raw[begin:end].strip()):
            what = f"a message's text {raw[begin:end]!r} that the vocabulary's model makes token {int(found.ids[k])}"
            raise ChatError(f"byte {begin}", InWords(what), "a text without this control token")
