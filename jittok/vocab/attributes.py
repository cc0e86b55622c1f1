"""Attribute bits, and how llama.cpp rewrites them after loading: ids found by text, end of generation, strips.

Two orders in llama.cpp are unstable and determined by its C++ library (libstdc++); here they are exact. `std_sort`
orders special tokens of equal length; `unordered_map_order` decides which of several texts names an id. The latter
reads every token of the vocabulary, so it is vectorized.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.errors import InWords, MalformedVocab
from jittok.vocab.keys import TokenType
from jittok.vocab.vocab import NO_TOKEN

BUCKETS = (
    13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061, 712697, 1447153,
    2938679, 5967347,
)  # fmt: skip
"""Bucket counts that an unordered_map grows through."""
INSERTION = 16
"""Ranges up to this length are left to the final insertion sort."""
_MUL, _SEED, _SHIFT = np.uint64(0xC6A4A7935BD1E995), np.uint64(0xC70F6907), np.uint64(47)


def std_hashes(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.uint64]:
    """uint64[n]: std::hash<std::string> of each text on 64-bit machines, which is MurmurHash64A.

    data: uint8[bytes], offsets: int64[n + 1]. Takes one step per eight bytes of the longest text, for all texts that
    still have eight bytes at once.
    """
    lengths = np.diff(offsets)
    longest_first = np.argsort(-lengths, kind="stable")
    lengths, starts = lengths[longest_first], offsets[:-1][longest_first]
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    words, eight = lengths // 8, np.arange(8)

    def load(positions: NDArray[np.int64]) -> NDArray[np.uint64]:
        loaded: NDArray[np.uint64] = padded[positions[:, None] + eight].view("<u8").ravel()
        return loaded

    h = _SEED ^ (lengths.astype(np.uint64) * _MUL)
    for word in range(int(words.max(initial=0))):
        count = int(np.searchsorted(-words, -word))  # texts of more than `word` words
        k = load(starts[:count] + 8 * word) * _MUL
        h[:count] = (h[:count] ^ ((k ^ (k >> _SHIFT)) * _MUL)) * _MUL
    rest = np.flatnonzero(lengths % 8)
    past = (64 - 8 * (lengths[rest] % 8)).astype(np.uint64)  # bits after the text
    h[rest] = (h[rest] ^ (load(starts[rest] + 8 * words[rest]) << past >> past)) * _MUL
    h = (h ^ (h >> _SHIFT)) * _MUL
    hashes = np.empty_like(h)
    hashes[longest_first] = h ^ (h >> _SHIFT)
    return hashes


def unordered_map_order(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n]: the texts (distinct, inserted in order) in the iteration order of the map.

    All nodes form one list. A node whose bucket is empty goes to the list's front; another one goes to the front of its
    bucket's run. So the list holds the buckets from the last one that was first filled to the first one, and in
    each the nodes from the last to the first. Growing re-inserts all nodes in list order.
    """
    hashes = std_hashes(data, offsets)
    order = np.zeros(0, np.int64)
    for count in BUCKETS:  # at most one element a bucket
        inserted = np.concatenate([order, np.arange(order.size, min(count, hashes.size))])
        buckets = (hashes[inserted] % np.uint64(count)).astype(np.int64)
        times = np.arange(inserted.size)
        first = np.empty(count, np.int64)  # of a bucket: the time of its first node
        first[buckets[::-1]] = times[::-1]  # of equal indices the last assignment counts
        order = inserted[np.argsort(-(first[buckets] * inserted.size + times))]
        if order.size == hashes.size:
            break
    return order


def std_sort(items: list[int], less: Callable[[int, int], bool]) -> None:
    """Sort in place with the permutation of std::sort: introsort, then one insertion sort."""
    if len(items) > 1:
        _introsort(items, 0, len(items), 2 * (len(items).bit_length() - 1), less)
        for i in range(1, len(items)):
            _insert(items, i, less, guarded=i < INSERTION)


def _introsort(a: list[int], low: int, high: int, depth: int, less: Callable[[int, int], bool]) -> None:
    while high - low > INSERTION:
        if depth == 0:
            _heap_sort(a, low, high, less)
            return
        depth -= 1
        cut = _partition(a, low, high, less)
        _introsort(a, cut, high, depth, less)
        high = cut


def _partition(a: list[int], low: int, high: int, less: Callable[[int, int], bool]) -> int:
    """Median of three to the front, then scan from both ends."""
    x, y, z = low + 1, low + (high - low) // 2, high - 1
    if less(a[x], a[y]):
        middle = y if less(a[y], a[z]) else z if less(a[x], a[z]) else x
    else:
        middle = x if less(a[x], a[z]) else z if less(a[y], a[z]) else y
    a[low], a[middle] = a[middle], a[low]
    left, right, pivot = low + 1, high, a[low]
    while True:
        while less(a[left], pivot):
            left += 1
        right -= 1
        while less(pivot, a[right]):
            right -= 1
        if left >= right:
            return left
        a[left], a[right] = a[right], a[left]
        left += 1


def _insert(a: list[int], i: int, less: Callable[[int, int], bool], *, guarded: bool) -> None:
    value = a[i]
    if guarded and less(value, a[0]):
        a[1 : i + 1] = a[0:i]
        a[0] = value
        return
    while less(value, a[i - 1]):
        a[i] = a[i - 1]
        i -= 1
    a[i] = value


def _heap_sort(a: list[int], low: int, high: int, less: Callable[[int, int], bool]) -> None:
    n = high - low
    for parent in range((n - 2) // 2, -1, -1):
        _adjust_heap(a, low, parent, n, a[low + parent], less)
    for end in range(n - 1, 0, -1):
        value, a[low + end] = a[low + end], a[low]
        _adjust_heap(a, low, 0, end, value, less)


def _adjust_heap(a: list[int], low: int, hole: int, n: int, value: int, less: Callable[[int, int], bool]) -> None:
    top = child = hole
    while child < (n - 1) // 2:
        child = 2 * (child + 1)
        if less(a[low + child], a[low + child - 1]):
            child -= 1
        a[low + hole] = a[low + child]
        hole = child
    if n % 2 == 0 and child == (n - 2) // 2:
        child = 2 * child + 1
        a[low + hole] = a[low + child]
        hole = child
    parent = (hole - 1) // 2
    while hole > top and less(a[low + parent], value):
        a[low + hole] = a[low + parent]
        hole, parent = parent, (parent - 1) // 2
    a[low + hole] = value


UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE, NORMALIZED, LSTRIP, RSTRIP, SINGLE_WORD = (
    1 << i for i in range(10)
)
"""llama.cpp's llama_token_attr."""
SPECIAL = UNKNOWN | CONTROL
"""Tokens with an empty piece, unless special tokens are printed."""
OF_TYPE = np.zeros(1 + max(TokenType), np.int32)
OF_TYPE[[TokenType.NORMAL, TokenType.UNKNOWN, TokenType.CONTROL]] = NORMAL, UNKNOWN, CONTROL
OF_TYPE[[TokenType.USER_DEFINED, TokenType.UNUSED, TokenType.BYTE]] = USER_DEFINED, UNUSED, BYTE
"""Attribute of token_type 0 .. 6; every other number has no bit."""

_LONE = "<|eot_id|> <|im_end|> <|end|> <end_of_turn> <|endoftext|> <|end_of_text|> <EOT> _<EOT> [EOT]"
ID_TEXTS = {
    "eot_id": [*_LONE.split(), "<｜end▁of▁sentence｜>", "<end_of_utterance>"],
    "eom_id": ["<|eom_id|>"],
    "fim_prefix_id": [
        "<|fim_prefix|>",
        "<fim-prefix>",
        "<fim_prefix>",
        "<｜fim▁begin｜>",
        "<PRE>",
        "▁<PRE>",
        "<|code_prefix|>",
        "<|prefix|>",
        "<|plamo:fim_prefix|>",
    ],
    "fim_suffix_id": [
        "<|fim_suffix|>",
        "<fim-suffix>",
        "<fim_suffix>",
        "<｜fim▁hole｜>",
        "<SUF>",
        "▁<SUF>",
        "<|code_suffix|>",
        "<|suffix|>",
        "<|plamo:fim_suffix|>",
    ],
    "fim_middle_id": [
        "<|fim_middle|>",
        "<fim-middle>",
        "<fim_middle>",
        "<｜fim▁end｜>",
        "<MID>",
        "▁<MID>",
        "<|code_middle|>",
        "<|middle|>",
        "<|plamo:fim_middle|>",
    ],
    "fim_pad_id": ["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"],
    "fim_rep_id": ["<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"],
    "fim_sep_id": ["<|file_sep|>", "<|plamo:file_separator|>"],
}
"""Texts by which a special id is found if no key names it. `releases.TEXTS_SINCE` lists which texts here and below are
new."""
EOG_TEXTS = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    "<|ifm|im_end|>",
    "<|eot|>",
]
"""Texts of tokens that end generation; they become control tokens, whatever their type in the file."""
USER_TEXTS = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"]
"""Texts of tokens that become user-defined, whatever their type in the file."""
PHI3_TEXTS = ["</s>", "<unk>", "<s>", "<|endoftext|>"]
"""Texts that a vocabulary with phi-3 in its name must have."""


class TextIndex:
    """Finds texts among all tokens without an object per token: by length, then by first byte."""

    def __init__(self, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.data, self.offsets = data, offsets
        self.lengths = np.diff(offsets)
        self.blob = data.tobytes()

    def __len__(self) -> int:
        return self.lengths.size

    def __getitem__(self, token: int) -> bytes:
        return self.blob[self.offsets[token] : self.offsets[token + 1]]

    def find(self, texts: Sequence[bytes]) -> dict[bytes, int]:
        """Those of `texts` that are tokens, and their ids."""
        wanted = set(texts)
        found: dict[bytes, int] = {}
        for length in {len(text) for text in wanted}:
            rows = np.flatnonzero(self.lengths == length)
            if length:  # not np.isin: for few rows it imports np.ma, 5 to 8 ms and a megabyte
                first = np.zeros(256, np.bool_)
                first[[text[0] for text in wanted if len(text) == length]] = True
                rows = rows[first[self.data[self.offsets[rows]]]]
            for token in rows.tolist():
                text = self[token]
                if text in wanted:
                    found[text] = token
        return found


def find_ids(texts: TextIndex, ids: dict[str, int], attributes: NDArray[np.int32], later: Collection[str] = ()) -> None:
    """Special ids that no key named, by their texts; each one found becomes a control token.

    later: texts that the release in question does not know yet.
    """
    rank: NDArray[np.int64] | None = None
    known = texts.find([text.encode() for names in ID_TEXTS.values() for text in names if text not in later])
    for name, names in ID_TEXTS.items():
        rivals = [known[text.encode()] for text in names if text.encode() in known]
        if ids[name] != NO_TOKEN or not rivals:
            continue
        if len(rivals) > 1:  # the one that llama.cpp's hash map shows first
            if rank is None:
                rank = np.empty(len(texts), np.int64)
                rank[unordered_map_order(texts.data, texts.offsets)] = np.arange(len(texts))
            rivals.sort(key=rank.__getitem__)
        ids[name] = rivals[0]
        attributes[rivals[0]] |= CONTROL


def mark_unused(texts: TextIndex, attributes: NDArray[np.int32]) -> None:
    """Control tokens whose text holds "unused" are unused."""
    for token in np.flatnonzero(attributes & CONTROL).tolist():
        if b"unused" in texts[token]:
            attributes[token] |= UNUSED


def end_of_generation(
    texts: TextIndex,
    ids: dict[str, int],
    attributes: NDArray[np.int32],
    spelled: TextIndex,
    later: Collection[str] = (),
) -> frozenset[int]:
    """The ids that end generation; attributes of some texts are rewritten on the way.

    spelled: id -> text; later: texts that the release in question does not know yet.
    """
    eog = {ids[name] for name in ("fim_pad_id", "fim_rep_id", "fim_sep_id")}
    known = texts.find([text.encode() for text in (*EOG_TEXTS, *USER_TEXTS) if text not in later])
    for text in EOG_TEXTS:
        token = known.get(text.encode(), NO_TOKEN)
        if token != NO_TOKEN:
            eog.add(token)
            attributes[token] |= CONTROL
    for text in USER_TEXTS:
        token = known.get(text.encode(), NO_TOKEN)
        if token != NO_TOKEN:
            attributes[token] = USER_DEFINED
    eog |= {ids[name] for name in ("eos_id", "eot_id", "eom_id")}
    eog.discard(NO_TOKEN)
    held = {spelled[token]: token for token in sorted(eog)}
    if b"<|end|>" in held and {b"<|call|>", b"<|calls|>"} & held.keys() and {b"<|return|>", b"<|flush|>"} & held.keys():
        eog.discard(held[b"<|end|>"])
        attributes[held[b"<|end|>"]] = USER_DEFINED
    if b"</s>" in held and {b"<|tool_response>", b"<|plamo:eos|>"} & held.keys():
        eog.discard(held[b"</s>"])
        attributes[held[b"</s>"]] = NORMAL
    return frozenset(eog)


def special_order(lengths: NDArray[np.int64], attributes: NDArray[np.int32]) -> list[int]:
    """Ids that the partition searches for: longest text first, ties as libstdc++'s std::sort leaves them."""
    special: list[int] = np.flatnonzero(attributes & (CONTROL | USER_DEFINED | UNKNOWN)).tolist()
    sizes = dict(zip(special, lengths[special].tolist(), strict=True))
    std_sort(special, lambda a, b: sizes[a] > sizes[b])
    return special


def mark_strips(
    file: str, texts: TextIndex, about: dict[str, Any], special: Sequence[int], attributes: NDArray[np.int32]
) -> None:
    """LSTRIP and RSTRIP: the first rule that applies. about: pre, name and architecture as bytes."""
    name = bytes(c + 32 if 65 <= c <= 90 else c for c in about["name"])
    if any(s in about["pre"] for s in (b"jina-v2-de", b"jina-v2-es", b"jina-v2-code", b"mmbert")) or any(
        s in about["architecture"] for s in (b"nomic-bert-moe", b"jina-bert-v3")
    ):
        for token in texts.find([b"<mask>"]).values():
            attributes[token] |= LSTRIP
    elif b"phi-3" in name or b"phi3" in name:
        known = texts.find([text.encode() for text in PHI3_TEXTS])
        for text in PHI3_TEXTS:
            if text.encode() not in known:
                raise MalformedVocab(
                    file,
                    "tokenizer.ggml.tokens",
                    InWords(f"no token {text!r}"),
                    "this token, because general.name says phi-3",
                )
        attributes[list(special)] |= RSTRIP
        attributes[known[b"</s>"]] |= RSTRIP
        for text in PHI3_TEXTS[1:]:
            attributes[known[text.encode()]] &= ~RSTRIP
    elif b"modern-bert" in name:
        for token in texts.find([b"[MASK]"]).values():
            attributes[token] |= LSTRIP
