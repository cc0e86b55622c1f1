"""Many chats at once: each is rendered, their texts are encoded together, with the mask of what the assistant wrote.

The ids and masks are those of `encode_chat`. A chat that cannot be rendered or encoded has an error in place of ids.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.chat.encoding import ASSISTANT, Encoding, Places, are_assistants, check_model, check_written, overlaps
from jittok.chat.request import Request
from jittok.chat.templates.marked import GENERATED, SOURCE
from jittok.chat.templates.rendering import Rendered
from jittok.encode.literal import counts_of, encode_documents, literal_tokens
from jittok.errors import ChatError, InWords, JittokError
from jittok.kernels.inputs import PADDING, Documents
from jittok.kernels.jit import U32, frozen

if TYPE_CHECKING:
    from jittok.chat.conversation import Conversations

OF_A_CHAT = (JittokError, TypeError, ValueError)
"""Errors that are about one chat."""
PROBE = "jittok probe"


class Asked(NamedTuple):
    """A chat: its messages and tools."""

    messages: Any
    tools: Any = None


class Rule(NamedTuple):
    """How many chats are rendered and encoded alike."""

    request: Request
    variables: dict[str, Any]
    trusted: tuple[str, ...] = ()
    masked: bool = False  # whether what the assistant wrote is wanted


class Made(NamedTuple):
    """The ids of many chats, one after the other."""

    ids: NDArray[np.int32]
    lengths: NDArray[np.int64]  # [chats] 0 where there is an error
    mask: NDArray[np.uint8]  # [ids] 1 for what the assistant wrote; empty where it is not wanted
    texts: list[bytes]  # [chats] as they are rendered; empty where there is an error
    errors: dict[int, Exception]  # by the number of the chat


def encode_many(conversations: Conversations, asked: Sequence[Asked], rule: Rule) -> Made:
    """Encode chats. Errors of single chats are in the result."""
    errors: dict[int, Exception] = {}
    groups: dict[int, tuple[Encoding, list[int], list[Rendered]]] = {}
    for number, (messages, tools) in enumerate(asked):
        try:
            request = rule.request if tools is None else rule.request._replace(tools=tools)
            encoding, rendered = conversations.rendered(messages, request, rule.variables)
            if rule.masked and not encoding.generates and _says(messages):
                check_written(rendered, are_assistants(rendered))
        except OF_A_CHAT as error:
            errors[number] = error
            continue
        _, numbers, texts = groups.setdefault(id(encoding), (encoding, [], []))
        numbers.append(number)
        texts.append(rendered)
    parts: list[tuple[list[int], Made]] = []
    for encoding, numbers, texts in groups.values():
        made = _encoded(encoding, texts, rule)
        errors |= {numbers[k]: error for k, error in made.errors.items()}
        parts.append((numbers, made))
    return _in_order(len(asked), parts, errors)


def _says(messages: Any) -> bool:
    """Whether an assistant's message has a text that no template trims away."""
    for message in messages:
        if message.get("role") in ASSISTANT:
            content = message.get("content")
            parts = content if isinstance(content, list) else [{"text": content}]
            texts = [part.get("text") for part in parts if isinstance(part, dict)]
            if any(isinstance(text, str) and text.strip() for text in texts):
                return True
    return False


def _in_order(count: int, parts: list[tuple[list[int], Made]], errors: dict[int, Exception]) -> Made:
    """The results of the groups in the order of the chats."""
    lengths = np.zeros(count, np.int64)
    for numbers, made in parts:
        lengths[numbers] = made.lengths
    texts = [b""] * count
    for numbers, made in parts:
        for number, text in zip(numbers, made.texts, strict=True):
            texts[number] = text
    if len(parts) == 1:
        return Made(parts[0][1].ids, lengths, parts[0][1].mask, texts, errors)
    rows: list[tuple[Any, Any]] = [(np.zeros(0, np.int32), np.zeros(0, np.uint8))] * count
    for numbers, made in parts:
        ends = np.cumsum(made.lengths).tolist()
        for number, end, length in zip(numbers, ends, made.lengths.tolist(), strict=True):
            rows[number] = made.ids[end - length : end], made.mask[end - length : end]
    ids = np.concatenate([np.zeros(0, np.int32), *(ids for ids, _ in rows)])
    return Made(ids, lengths, np.concatenate([np.zeros(0, np.uint8), *(mask for _, mask in rows)]), texts, errors)


def _encoded(encoding: Encoding, texts: list[Rendered], rule: Rule) -> Made:
    """The ids of rendered chats of one template: together, or one by one where any of them has an error."""
    try:
        return _together(encoding, texts, rule)
    except OF_A_CHAT:
        return _one_by_one(encoding, texts, rule)


class _Laid(NamedTuple):
    """Texts one after the other, as encoders take them, with their runs."""

    docs: Documents
    texts: list[bytes]
    raw: bytes  # all of them
    places: Places  # of all bytes; marks of each text follow those of the texts before it
    counts: U32  # see `encode.literal`
    bases: list[int]  # [texts] marks before those of each


def _laid(texts: list[Rendered], trusted: Collection[str]) -> _Laid:
    raws = [each.text.encode() for each in texts]
    raw = b"".join(raws)
    data = np.frombuffer(raw + PADDING, np.uint8)
    doc_ends = np.cumsum(np.fromiter(map(len, raws), np.int64, len(raws)))
    runs = np.fromiter(chain.from_iterable(chain.from_iterable(each.runs for each in texts)), np.int64).reshape(-1, 2)
    ends = np.cumsum(runs[:, 0])
    if len(raw) != sum(len(each.text) for each in texts):  # from characters to bytes
        ends = np.append(np.flatnonzero(data[: len(raw)] & 0xC0 != 0x80), len(raw))[ends]
    marks = runs[:, 1] & SOURCE
    bases, theirs = [], [False]
    for each in texts:
        bases.append(len(theirs) - 1)
        theirs += [role not in trusted for _, role in each.sources] if trusted else [True] * len(each.sources)
    shifts = np.repeat(np.array(bases, np.int64), np.fromiter((len(each.runs) for each in texts), np.int64))
    marks = np.where(marks > 0, marks + shifts, 0)
    places = Places(ends, marks, runs[:, 1] & GENERATED != 0)
    counts = counts_of(np.repeat(np.array(theirs)[marks], np.diff(ends, prepend=0)))
    starts = np.concatenate([np.zeros(1, np.int64), doc_ends[:-1]])
    return _Laid(
        Documents(data, frozen(starts, np.int64), frozen(doc_ends, np.int64)), raws, raw, places, counts, bases
    )


def _together(encoding: Encoding, texts: list[Rendered], rule: Rule) -> Made:
    laid = _laid(texts, rule.trusted)
    found = encode_documents(encoding.rule, laid.docs, laid.counts)
    offsets = np.concatenate([np.zeros(1, np.int64), found.ends])[found.document_ends]
    lengths = np.diff(offsets, prepend=0)
    none = np.zeros(0, np.uint8)
    suspects = encoding.suspects(found)
    if not rule.masked and not suspects.any():
        return Made(found.ids, lengths, none, laid.texts, {})
    spans = encoding.spans(laid.docs, laid.counts, found, False)
    spans = spans + np.repeat(laid.docs.starts, lengths)[:, None]
    check_model(suspects, found, spans, laid.counts, laid.raw, encoding.rule.options is not None)
    if not rule.masked:
        return Made(found.ids, lengths, none, laid.texts, {})
    if encoding.generates:
        wanted = laid.places.generated
    else:
        wanted = np.array([False, *chain.from_iterable(map(are_assistants, texts))])[laid.places.marks]
    return Made(found.ids, lengths, overlaps(laid.places, wanted, spans).view(np.uint8), laid.texts, {})


def _one_by_one(encoding: Encoding, texts: list[Rendered], rule: Rule) -> Made:
    ids, masks = [np.zeros(0, np.int32)], [np.zeros(0, np.uint8)]
    lengths, errors, made_of = np.zeros(len(texts), np.int64), dict[int, Exception](), [b""] * len(texts)
    for k, rendered in enumerate(texts):
        try:
            made = encoding.ids(rendered, rule.trusted, "error")
            mask = made.written() if rule.masked else masks[0]
        except OF_A_CHAT as error:
            errors[k] = error
            continue
        ids.append(made.ids)
        masks.append(mask)
        lengths[k] = made.ids.size
        made_of[k] = rendered.text.encode()
    return Made(np.concatenate(ids), lengths, np.concatenate(masks), made_of, errors)


def literal_ids(conversations: Conversations, asked: Asked, rule: Rule) -> list[int]:
    """The ids of a chat by the plain reference. Raises the errors of `encode_chat`."""
    request = rule.request if asked.tools is None else rule.request._replace(tools=asked.tools)
    encoding, rendered = conversations.rendered(asked.messages, request, rule.variables)
    laid = _laid([rendered], rule.trusted)
    marked = np.diff(laid.counts).astype(np.uint8).tobytes()
    return [
        token for token, _, _ in literal_tokens(encoding.rule.encoder.vocab, laid.raw, encoding.rule, marked, False)
    ]


def check_masks(conversations: Conversations, rule: Rule) -> None:
    """ChatError where the template of these chats cannot tell what the assistant writes."""
    probe = [{"role": "user", "content": PROBE}, {"role": "assistant", "content": f"{PROBE} answered"}]
    try:
        encoding, rendered = conversations.rendered(probe, rule.request, rule.variables)
    except OF_A_CHAT:  # a template that wants other chats, each of which will be asked
        return
    marks = {mark & SOURCE for _, mark in rendered.runs}
    written = any(own and k in marks for k, own in enumerate(are_assistants(rendered), 1))
    if encoding.generates:
        written = any(mark & GENERATED for _, mark in rendered.runs)
    if not written:
        what = "a chat template that does not show what the assistant writes"
        raise ChatError(
            "--learn", InWords(what), "one with {% generation %} around it (--template FILE), or no --learn"
        )
