"""What spans must be like whatever the vocabulary, told without a tokenizer: the rules of alignment as predicates."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jittok.common.unicode.characters import SPACE_MARK
from jittok.common.unicode.tables import ENCODED_BYTE, decode, is_whitespace, nfd
from jittok.kernels.pretokenize.definition import pre_type
from jittok.reference.decode import decode_bytes
from jittok.reference.models import ugm
from jittok.reference.models.wpm import is_dropped
from jittok.reference.normalize.nfc import nfc
from jittok.reference.special import partition
from jittok.reference.text import Mapped, mapped
from jittok.reference.vocab_tables import per_vocab
from jittok.vocab import Vocab

MARK = SPACE_MARK.encode()
BYTE_ORDER_MARK, BOUNDARY = 0xFEFF, 0xEE00
MMBERT = 60
BYTE_TOKEN = re.compile(rb"<0x([0-9A-F]{2})>")
OWN_BYTES = ("gpt2", "gemma4", "llama")
"""Models that cut a text into tokens without rewriting more than its spaces."""
Span = tuple[int, int]


def broken_rule(
    vocab: Vocab, text: bytes, ids: Sequence[int], spans: Sequence[Span], *, add_special: bool, parse_special: bool
) -> str | None:
    """The first rule that these ids and spans of a text break, None if they keep all of them."""
    if len(ids) != len(spans):
        return f"{len(ids)} ids have {len(spans)} spans"
    units = _units(vocab, text, parse_special)
    for k, (start, stop) in enumerate(spans):
        if not 0 <= start <= stop <= len(text):
            return f"span {k}, {start} .. {stop}, is not one of the text"
        if k and (start < spans[k - 1][0] or stop < spans[k - 1][1]):
            return f"span {k} begins or ends before the one in front of it"
        if k and start < spans[k - 1][1] and (start, spans[k - 1][1]) not in units:
            return f"spans {k - 1} and {k} share {start} .. {spans[k - 1][1]}, which did not become one stretch"
    lost = _uncovered(text, spans) - _removed(vocab, text, parse_special)
    if lost:
        return f"byte {min(lost)} belongs to no token and was not removed"
    if vocab.model in OWN_BYTES:
        rewritten = _malformed(vocab, text, parse_special)
        for k, (token, (start, stop)) in enumerate(zip(ids, spans, strict=True)):
            if any(start < j and i < stop for i, j in rewritten):
                continue
            added = add_special and k in (0, len(ids) - 1) and start == stop
            if not added and not _is_own(vocab, token, text[start:stop], (start, stop) in units):
                return f"id {token} stands for {text[start:stop]!r}, which is not its text"
    return None


def _units(vocab: Vocab, text: bytes, parse_special: bool) -> set[Span]:
    """The stretches that are rewritten as a whole, so that several tokens may come of one."""
    if vocab.type == "ugm":
        units = set()
        for token, start, stop in partition(vocab, text, parse_special):
            if token is None:
                out = ugm.normalize(vocab, source_of(vocab, text, start, stop))
                units |= set(zip(out.starts, out.stops, strict=True))
        return units
    if vocab.type == "spm":
        return {(i, i + 1) for i, byte in enumerate(text) if byte == 0x20}
    units = {(i, j) for _, i, j in decode(text, vocab.shortest_utf8)}
    return units | {(i, i + 1) for i in range(len(text))}  # inside a fragment, or with bad bytes


def source_of(vocab: Vocab, text: bytes, start: int, stop: int) -> Mapped:
    """What Unigram normalizes."""
    source = mapped(text, start, stop)
    return nfc(source) if vocab.nfc else source


def _uncovered(text: bytes, spans: Sequence[Span]) -> set[int]:
    return set(range(len(text))).difference(*(range(start, stop) for start, stop in spans))


def _removed(vocab: Vocab, text: bytes, parse_special: bool) -> set[int]:
    """Bytes that normalization removes, or may: all white space."""
    gone: set[int] = set()
    fragments = partition(vocab, text, parse_special)
    for token, start, stop in fragments:
        if token is not None:
            continue
        for c, i, j in decode(text[start:stop], vocab.shortest_utf8):
            dropped = is_whitespace(c) or (vocab.type == "plamo2" and i == 0 and c == BYTE_ORDER_MARK)
            dropped = dropped or (vocab.type == "plamo3" and c == BOUNDARY)
            if vocab.type == "wpm":
                dropped = dropped or is_dropped(vocab, nfd(c) if vocab.strip_accents else c)
            if dropped:
                gone.update(range(start + i, start + j))
        if vocab.type == "ugm":
            out = ugm.normalize(vocab, source_of(vocab, text, start, stop))
            kept = set().union(*(range(i, j) for i, j in zip(out.starts, out.stops, strict=True)))
            gone |= set(range(start, stop)) - kept
        if vocab.type == "bpe" and not keeps_all(vocab):  # a symbol without a token leaves no trace
            gone.update(range(start, stop))
    inside = set().union(*(range(start, stop) for _, start, stop in fragments))
    return gone | {i for i in set(range(len(text))) - inside if text[i : i + 1].isspace()}  # LSTRIP and RSTRIP


@per_vocab
def keeps_all(vocab: Vocab) -> bool:
    """Whether every byte, and whatever bytes are merged to, is a token."""
    raw, ids = [b"<0x%02X>" % byte for byte in range(256)], vocab.ids
    merged = all(left + right in ids for left, right in vocab.merges if left and right)
    return merged and all(text in ids for text in (ENCODED_BYTE if pre_type(vocab.pre_type).byte_encode else raw))


def _malformed(vocab: Vocab, text: bytes, parse_special: bool) -> list[Span]:
    """The fragments with bytes that are invalid UTF-8, which SPM leaves as they are: special tokens may cut a
    character."""
    if vocab.type == "spm":
        return []
    fragments = partition(vocab, text, parse_special)
    return [(i, j) for token, i, j in fragments if token is None and not _is_well_formed(text[i:j])]


def _is_well_formed(text: bytes) -> bool:
    try:
        text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _is_own(vocab: Vocab, token: int, found: bytes, is_unit: bool) -> bool:
    """Whether a token can stand for these bytes; spaces and U+2581 are one."""
    raw = vocab.tokens[token]
    own = {raw, raw.replace(MARK, b" "), decode_bytes(raw)}
    if match := BYTE_TOKEN.fullmatch(raw):
        own.add(bytes([int(match[1], 16)]))
    found = found.replace(MARK, b" ")
    own = {each.replace(MARK, b" ") for each in own}
    added = (vocab.type == "spm" and vocab.add_space_prefix) or vocab.pre_type == MMBERT  # a space of nothing
    in_front = {each[1:] for each in own if each[:1] == b" "} if added else set()
    part_of_mark = (found in (b" ", b"") and is_unit | (found == b"")) and own & {MARK[k : k + 1] for k in range(3)}
    return found in own | in_front or bool(part_of_mark) or (vocab.type == "spm" and _holds_part(own, found))


def _holds_part(own: set[bytes], found: bytes) -> bool:
    """Whether one of `own` is these bytes, but for a part of the first or last U+2581, if they are spaces. After a
    character that ends too early, SPM counts some bytes of U+2581 to that character."""
    whole = found.replace(b" ", MARK)
    fronts, backs = range(3 if found[:1] == b" " else 1), range(3 if found[-1:] == b" " else 1)
    parts = {whole[i : len(whole) - j] for i in fronts for j in backs} - {b""}
    return not parts.isdisjoint(each.replace(b" ", MARK) for each in own)
