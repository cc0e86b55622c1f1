"""How loading treats tokens with certain texts: attributes, special ids, end of generation, strips.

An independent implementation of `jittok.vocab.attributes`, with its own texts and numbers: nothing is imported from
there. `loaded` takes a file's content and runs llama.cpp's steps one by one, each over all tokens.

>>> found = loaded([b"a", b"</s>", b"<|im_end|>"], [1, 3, 1], model="gpt2", keys={"eos_token_id": 1})
>>> found.ids["eos_id"], found.ids["eot_id"], sorted(found.end_of_generation)
(1, 2, [1, 2])
>>> found.attributes == [NORMAL, CONTROL, NORMAL | CONTROL]
True
>>> list(map_order([b"a", b"b", b"c"]))  # of std::unordered_map
[b'c', b'b', b'a']
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE, LSTRIP, RSTRIP = 1, 2, 4, 8, 16, 32, 128, 256
BIT_OF_TYPE = {1: NORMAL, 2: UNKNOWN, 3: CONTROL, 4: USER_DEFINED, 5: UNUSED, 6: BYTE}

TEXTS_OF_IDS = """
    eot_id         <|eot_id|> <|im_end|> <|end|> <end_of_turn> <|endoftext|> <|end_of_text|> <EOT> _<EOT> [EOT]
    eot_id         <｜end▁of▁sentence｜> <end_of_utterance>
    eom_id         <|eom_id|>
    fim_prefix_id  <|fim_prefix|> <fim-prefix> <fim_prefix> <｜fim▁begin｜> <PRE> ▁<PRE> <|code_prefix|> <|prefix|>
    fim_suffix_id  <|fim_suffix|> <fim-suffix> <fim_suffix> <｜fim▁hole｜> <SUF> ▁<SUF> <|code_suffix|> <|suffix|>
    fim_middle_id  <|fim_middle|> <fim-middle> <fim_middle> <｜fim▁end｜> <MID> ▁<MID> <|code_middle|> <|middle|>
    fim_pad_id     <|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD]
    fim_rep_id     <|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>
    fim_sep_id     <|file_sep|>
"""
END_OF_GENERATION = """
    <|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|flush|> <|calls|> <end_of_turn> <|endoftext|> </s> <|eom_id|>
    <EOT> _<EOT> [EOT] [EOS] <|end_of_text|> <end_of_utterance> <eos> <turn|> <|tool_response> <｜end▁of▁sentence｜>
    [e~[
"""
USER_DEFINED_ALONE = "<|channel|> <|message|> <|start|> <|constrain|>"
MASK_STRIPS_OF_PRE = "jina-v2-de", "jina-v2-es", "jina-v2-code"
MASK_STRIPS_OF_ARCHITECTURE = "nomic-bert-moe", "jina-bert-v3"

DEFAULTS = {
    "llama": {"bos_id": 1, "eos_id": 2, "unk_id": 0},
    "bert": {"bos_id": 101, "unk_id": 100, "sep_id": 102, "pad_id": 0, "mask_id": 103},
    "gpt2": {"bos_id": 11, "eos_id": 11},
    "hybriddna": {"bos_id": 11, "eos_id": 11},
    "whitespace": {"bos_id": 11, "eos_id": 11},
    "t5": {"eos_id": 1, "unk_id": 2, "pad_id": 0},
    "plamo2": {"bos_id": 1, "eos_id": 2, "unk_id": 0, "pad_id": 3},
}
"""Default special ids of a model."""
KEYS = """
    bos eos eot eom unknown:unk seperator:sep padding:pad mask fim_pre:fim_prefix fim_suf:fim_suffix fim_mid:fim_middle
    fim_pad fim_rep fim_sep prefix:fim_prefix suffix:fim_suffix middle:fim_middle
"""
"""tokenizer.ggml.<key>_token_id and the id it sets, if their names differ; the last one counts."""

SEED, FACTOR, WORD = 0xC70F6907, 0xC6A4A7935BD1E995, (1 << 64) - 1
SIZES = (
    13,
    29,
    59,
    127,
    257,
    541,
    1109,
    2357,
    5087,
    10273,
    20753,
    42043,
    85229,
    172933,
    351061,
    712697,
    1447153,
    2938679,
)
"""Buckets of the C++ library's map, smallest first."""


class Loaded(NamedTuple):
    """The state of llama.cpp after loading."""

    ids: dict[str, int]  # -1: none
    attributes: list[int]
    end_of_generation: set[int]


def loaded(
    tokens: Sequence[bytes],
    types: Sequence[int] | None,
    *,
    model: str,
    keys: Mapping[str, int],
    pre: str = "",
    name: str = "",
    architecture: str = "",
) -> Loaded:
    """Ids, attributes and end of generation of a vocabulary.

    keys: "bos_token_id" and the like, as far as the file has them. KeyError: phi-3 without its texts, which llama.cpp
    refuses.
    """
    bits = [NORMAL] * len(tokens) if types is None else [BIT_OF_TYPE.get(kind, 0) for kind in types]
    ids = _ids_of_keys(model, len(tokens), keys)
    token_of = {text: token for token, text in enumerate(tokens)}

    by_text = [(line.split()[0], text.encode()) for line in TEXTS_OF_IDS.split("\n") for text in line.split()[1:]]
    free = {field for field, _ in by_text if ids[field] == -1}
    for text in map_order(tokens):
        for field, known in by_text:
            if text == known and field in free:
                free.remove(field)
                ids[field] = token_of[text]
                bits[token_of[text]] |= CONTROL

    for token, text in enumerate(tokens):
        if bits[token] & CONTROL and b"unused" in text:
            bits[token] |= UNUSED

    end = {ids[field] for field in ("fim_pad_id", "fim_rep_id", "fim_sep_id")}
    for token, text in enumerate(tokens):
        if text in END_OF_GENERATION.encode().split():
            end.add(token)
            bits[token] |= CONTROL
        if text in USER_DEFINED_ALONE.encode().split():
            bits[token] = USER_DEFINED
    end |= {ids["eos_id"], ids["eot_id"], ids["eom_id"]}
    end.discard(-1)

    in_end = {tokens[token] for token in end}
    called = b"<|call|>" in in_end or b"<|calls|>" in in_end
    if called and (b"<|return|>" in in_end or b"<|flush|>" in in_end) and b"<|end|>" in in_end:
        end.remove(token_of[b"<|end|>"])
        bits[token_of[b"<|end|>"]] = USER_DEFINED
    if b"</s>" in in_end and (b"<|tool_response>" in in_end or b"<|plamo:eos|>" in in_end):
        end.remove(token_of[b"</s>"])
        bits[token_of[b"</s>"]] = NORMAL

    _strips(token_of, bits, pre, "".join(c.lower() if c.isascii() else c for c in name), architecture)
    return Loaded(ids, bits, end)


def _ids_of_keys(model: str, count: int, keys: Mapping[str, int]) -> dict[str, int]:
    """Every special id: the key's if that is a token, else the model's default if that is a token, else -1."""
    pairs = [(key, f"{field or key}_id") for key, _, field in (pair.partition(":") for pair in KEYS.split())]
    ids = {field: DEFAULTS.get(model, {}).get(field, -1) for _, field in pairs}
    ids = {field: token if token < count else -1 for field, token in ids.items()}
    for key, field in pairs:
        if keys.get(f"{key}_token_id", count) < count:
            ids[field] = keys[f"{key}_token_id"]
    return ids


def _strips(token_of: Mapping[bytes, int], bits: list[int], pre: str, name: str, architecture: str) -> None:
    """Apply the first of three rules that fits."""
    if any(part in pre for part in MASK_STRIPS_OF_PRE) or any(
        part in architecture for part in MASK_STRIPS_OF_ARCHITECTURE
    ):
        if b"<mask>" in token_of:
            bits[token_of[b"<mask>"]] |= LSTRIP
    elif "phi-3" in name or "phi3" in name:
        special = [token for token, bit in enumerate(bits) if bit & (CONTROL | USER_DEFINED | UNKNOWN)]
        for token in [*special, token_of[b"</s>"]]:
            bits[token] |= RSTRIP
        for text in (b"<unk>", b"<s>", b"<|endoftext|>"):
            bits[token_of[text]] &= ~RSTRIP
    elif "modern-bert" in name and b"[MASK]" in token_of:
        bits[token_of[b"[MASK]"]] |= LSTRIP


def map_order(texts: Sequence[bytes]) -> Iterator[bytes]:
    """The texts in the iteration order of libstdc++'s std::unordered_map<std::string, ...>, inserted in the given
    order.

    One linked list holds all nodes. A bucket points to the node before its first one (None: the list's head).
    """
    after: dict[bytes | None, bytes | None] = {None: None}
    front: dict[int, bytes | None] = {}
    hashes = {text: std_hash(text) for text in texts}
    size = 1

    def insert(text: bytes) -> None:
        bucket = hashes[text] % size
        if bucket not in front:
            front[bucket], first = None, after[None]
            if first is not None:
                front[hashes[first] % size] = text
        after[text] = after[front[bucket]]
        after[front[bucket]] = text

    def listed() -> Iterator[bytes]:
        text = after[None]
        while text is not None:
            yield text
            text = after[text]

    for count, text in enumerate(texts, 1):
        if count > size or size == 1:
            nodes = list(listed())
            size = next(each for each in SIZES if each > size)
            after = {None: None}
            front = {}
            for node in nodes:
                insert(node)
        insert(text)
    yield from listed()


def std_hash(text: bytes) -> int:
    """std::hash<std::string> of libstdc++ on 64-bit machines. Source: MurmurHash64A."""
    value = SEED ^ (len(text) * FACTOR & WORD)
    whole = len(text) // 8 * 8
    for at in range(0, whole, 8):
        part = int.from_bytes(text[at : at + 8], "little") * FACTOR & WORD
        part = (part ^ part >> 47) * FACTOR & WORD
        value = (value ^ part) * FACTOR & WORD
    if text[whole:]:
        value = (value ^ int.from_bytes(text[whole:], "little")) * FACTOR & WORD
    value = (value ^ value >> 47) * FACTOR & WORD
    return value ^ value >> 47
