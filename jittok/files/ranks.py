"""Rank files: tiktoken's, and tekken.json, the same as JSON.

tiktoken's do not hold their patterns and special tokens: `ENCODINGS` has those of known files.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from jittok.common.pipeline.known_patterns import CL100K, GPT2, O200K, R50K
from jittok.common.pipeline.models import NO_TOKEN, Ranks
from jittok.common.pipeline.patterns import PatternError, check_pattern
from jittok.common.pipeline.pipeline import (
    FIRST_TEXT,
    SECOND_TEXT,
    SPECIAL,
    UNSEARCHED,
    Pipeline,
    packed,
    read_only_array,
)
from jittok.common.pipeline.steps import CRATE, REMOVED, Cut, JoinRaw, JoinRawBetweenSpecial, Pattern
from jittok.errors import InWords, MalformedVocab, UnsupportedVocab
from jittok.files.contents import parse_json
from jittok.files.json_nodes import Node

END, PREFIX, MIDDLE, SUFFIX = "<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"
PROMPT_END = "<|endofprompt|>"
_HARMONY = {
    199998: "<|startoftext|>", 199999: END, 200002: "<|return|>", 200003: "<|constrain|>", 200005: "<|channel|>",
    200006: "<|start|>", 200007: "<|end|>", 200008: "<|message|>", 200012: "<|call|>",
}  # fmt: skip
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN = LLAMA_3.replace(r"\p{N}{1,3}", r"\p{N}")
_RESERVED = "<|reserved_special_token_{}|>"
LANGUAGES = (
    "en", "zh", "de", "es", "ru", "ko", "fr", "ja", "pt", "tr", "pl", "ca", "nl", "ar", "sv", "it", "id", "hi", "fi",
    "vi", "he", "uk", "el", "ms", "cs", "ro", "da", "hu", "ta", "no", "th", "ur", "hr", "bg", "lt", "la", "mi", "ml",
    "cy", "sk", "te", "fa", "lv", "bn", "sr", "az", "sl", "kn", "et", "mk", "br", "eu", "is", "hy", "ne", "mn", "bs",
    "kk", "sq", "sw", "gl", "mr", "pa", "si", "km", "sn", "yo", "so", "af", "oc", "ka", "be", "tg", "sd", "gu", "am",
    "yi", "lo", "uz", "fo", "ht", "ps", "tk", "nn", "mt", "sa", "lb", "my", "bo", "tl", "mg", "as", "tt", "haw", "ln",
    "ha", "ba", "jw", "su", "yue",
)  # fmt: skip
"""Languages of Whisper, in the order of their tokens. Its third large model has all, the others all but the last."""

Encoding = tuple[str, dict[str, int]]


def _numbered(first: int, names: list[str]) -> dict[str, int]:
    return {name: first + k for k, name in enumerate(names)}


def _reserved(named: dict[int, str], size: int, pattern: str = _RESERVED) -> list[str]:
    """`size` names: the given ones, by index, and numbered ones between them."""
    numbers = iter(range(size))
    return [named[k] if k in named else pattern.format(next(numbers)) for k in range(size)]


def _llama_3(named: dict[int, str]) -> Encoding:
    known = {0: "<|begin_of_text|>", 1: "<|end_of_text|>", 6: "<|start_header_id|>", 7: "<|end_header_id|>",
             9: "<|eot_id|>", **named}  # fmt: skip
    return LLAMA_3, _numbered(128000, _reserved(known, 256))


_LATER = {4: "<|finetune_right_pad_id|>", 8: "<|eom_id|>", 10: "<|python_tag|>"}


def _llama_4() -> Encoding:
    own = {0: "<|header_start|>", 1: "<|header_end|>", 2: "<|eom|>", 3: "<|eot|>", 4: "<|step|>",
           11: "<|python_start|>", 12: "<|python_end|>", 13: "<|finetune_right_pad|>"}  # fmt: skip
    seen = {0: "<|image_start|>", 1: "<|image_end|>", 4: "<|tile_x_separator|>", 5: "<|tile_y_separator|>",
            10: "<|image|>", 12: "<|patch|>"}  # fmt: skip
    thought = {8: "<|reasoning_thinking_start|>", 9: "<|reasoning_thinking_end|>"}
    trained, vision, reasoning = (f"<|{name}{_RESERVED[2:]}" for name in ("text_post_train_", "vision_", "reasoning_"))
    names = ["<|begin_of_text|>", "<|end_of_text|>", PREFIX, MIDDLE, SUFFIX, *_reserved(own, 14, trained)]
    names += [trained.format(k) for k in range(8, 69)]  # none has the numbers 6 and 7
    names += _reserved(seen, 1054, vision) + _reserved(thought, 10, reasoning)
    return O200K, _numbered(200000, names + _reserved({}, 2048 - len(names)))


def _whisper(first: int, languages: int) -> Encoding:
    names = [END, "<|startoftranscript|>", *(f"<|{code}|>" for code in LANGUAGES[:languages])]
    names += ["<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
    return GPT2, _numbered(first, names + [f"<|{k * 0.02:.2f}|>" for k in range(1501)])


def _qwen() -> Encoding:
    return QWEN, _numbered(151643, [END, "<|im_start|>", "<|im_end|>", *(f"<|extra_{k}|>" for k in range(205))])


def _harmony() -> Encoding:
    special = {_HARMONY.get(token, f"<|reserved_{token}|>"): token for token in range(199998, 201088)}
    return O200K, {**special, PROMPT_END: 200018, "<|reserved_200018|>": 200018}


ENCODINGS: dict[str, Callable[[], Encoding]] = {
    "r50k_base": lambda: (R50K, {END: 50256}),
    "p50k_base": lambda: (R50K, {END: 50256}),
    "p50k_edit": lambda: (R50K, {END: 50256, PREFIX: 50281, MIDDLE: 50282, SUFFIX: 50283}),
    "cl100k_base": lambda: (
        CL100K, {END: 100257, PREFIX: 100258, MIDDLE: 100259, SUFFIX: 100260, PROMPT_END: 100276},
    ),
    "o200k_base": lambda: (O200K, {END: 199999, PROMPT_END: 200018}),
    "o200k_harmony": _harmony,
    "llama-models": lambda: _llama_3({**_LATER, 5: "<|step_id|>", 11: "<|image|>"}),
    "llama-3": lambda: _llama_3({}),
    "llama-3.1": lambda: _llama_3(_LATER),
    "llama-4": _llama_4,
    "qwen": _qwen,
    "whisper": lambda: _whisper(50257, 99),
    "whisper-v3": lambda: _whisper(50257, 100),
    "whisper-en": lambda: _whisper(50256, 99),
}  # fmt: skip
"""By tiktoken's names, or by names of models: pattern and special tokens. "llama-models" is Meta's package of that
name, which has special tokens of all models from Llama 3.1 on; "llama-3" and "llama-3.1" have those of the models."""
BY_SHA256 = {
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": ("r50k_base", "whisper-en"),
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": ("p50k_base", "p50k_edit"),
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": ("cl100k_base",),
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": ("o200k_base", "o200k_harmony"),
    "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55": ("llama-models", "llama-3", "llama-3.1"),
    "d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed": ("llama-4",),
    "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186": ("qwen",),
    "b34b360dbb493e781e479794586d661700670d65564001f23024971d1f2fa126": ("whisper", "whisper-v3"),
}
"""SHA-256 of a rank file -> the encodings that it is of, the usual one first."""


MOST_RANKS = 1 << 22
MOST_FILLERS = 1 << 16
"""Special tokens that a tekken.json has without naming them."""
RANK_DIGITS = 9
HOW = "jittok.load(file, pattern=r'...', special_tokens={'<|endoftext|>': 100257}) (--pattern, --special-token)"
FILLER = "<SPECIAL_{}>"
TEKKEN_SPECIAL = (
    "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]",
    "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]",
)  # fmt: skip
"""Special tokens of files up to version 7 that do not name their own."""


def read_ranks(
    file: str,
    content: bytes,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
    encoding: str | None = None,
) -> Pipeline:
    """The Pipeline of a file of lines `base64 rank`. Pattern and special tokens are known for tiktoken's own files
    and those of some models."""
    known = None if pattern is not None else _known(file, content, encoding)
    if known is not None:
        pattern, special = known
        special_tokens = special if special_tokens is None else special_tokens
    elif pattern is None:
        found = InWords("an unknown rank file")
        raise UnsupportedVocab(
            file, "pattern", found, f"its pattern and special tokens, which the file does not hold: {HOW}"
        )
    return ranked(file, "tiktoken", rank_lines(file, content), pattern, dict(special_tokens or {}), name=encoding or "")


def _known(file: str, content: bytes, encoding: str | None) -> tuple[str, dict[str, int]] | None:
    names = BY_SHA256.get(hashlib.sha256(content).hexdigest(), ())
    if encoding is None:
        return ENCODINGS[names[0]]() if names else None
    if encoding not in ENCODINGS or (names and encoding not in names):
        raise UnsupportedVocab(file, "encoding", encoding, f"one of {', '.join(names or ENCODINGS)}")
    return ENCODINGS[encoding]()


def rank_lines(file: str, content: bytes) -> dict[bytes, int]:
    """bytes -> rank of the lines. Whisper's file has a token of no bytes, written "=", as Python's base64 reads it."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        text, _, rank = line.strip().partition(b" ")
        try:
            raw = b"" if text == b"=" else base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise MalformedVocab(file, f"line {number}", line, "base64, a space and a rank") from None
        if not rank.isdigit() or len(rank) > RANK_DIGITS:
            raise MalformedVocab(file, f"line {number}", line, "one space and a rank below 10^9")
        if not text or raw in ranks:
            raise MalformedVocab(file, f"line {number}", raw, "no duplicates: an earlier line holds the same bytes")
        ranks[raw] = int(rank)
    return ranks


def _usual_base64(texts: list[bytes]) -> list[bytes] | None:
    """The bytes of texts in canonical base64; None if one is not."""
    try:
        raws = list(map(binascii.a2b_base64, texts))
    except binascii.Error:
        return None
    return raws if list(map(partial(binascii.b2a_base64, newline=False), raws)) == texts and all(raws) else None


def ranked(
    file: str, kind: str, ranks: dict[bytes, int], pattern: str, special: dict[str, int], name: str = "", first: int = 0
) -> Pipeline:
    """The Pipeline of ranks, a pattern and special tokens. `first`: the id of rank 0."""
    try:
        check_pattern(Pattern(pattern, engine=CRATE))
    except PatternError as error:
        raise UnsupportedVocab(file, "pattern", pattern, f"a supported pattern ({error})") from None
    size = max(ranks.values(), default=-1) + 1
    if not 256 <= size <= min(MOST_RANKS, 2 * len(ranks) + (1 << 16)):
        raise MalformedVocab(
            file, "ranks", InWords(f"{len(ranks)} ranks, up to {size - 1}"), "256 or more, with few gaps"
        )
    texts: list[bytes | None] = [None] * size
    for raw, rank in ranks.items():
        if texts[rank] is not None:
            raise MalformedVocab(file, f"rank {rank}", raw, f"distinct ranks: {texts[rank]!r} has the same")
        texts[rank] = raw
    for byte in range(256):
        if bytes([byte]) not in ranks:
            raise MalformedVocab(file, "ranks", InWords(f"none for {bytes([byte])!r}"), "a rank for each byte")
    rows = _special_rows(file, special, texts, first)
    data, offsets = packed([b""] * first + [text or b"" for text in texts])
    holes = [*range(first), *(first + rank for rank, text in enumerate(texts) if text is None)]
    added, added_offsets = packed([text.encode() for text, _ in rows])
    return Pipeline(
        source=file,
        format=kind,
        library="tiktoken",
        model_bytes=data,
        model_offsets=offsets,
        holes=read_only_array(holes, np.int32),
        model=Ranks(first),
        split=(Cut(Pattern(pattern, engine=CRATE), REMOVED, invert=True),),
        decode=(JoinRaw(),),
        added_bytes=added,
        added_offsets=added_offsets,
        added_ids=read_only_array([token for _, token in rows], np.int32),
        added_flags=read_only_array([SPECIAL] * len(rows), np.uint8),
        name=name,
    )


def _special_rows(file: str, special: dict[str, int], texts: list[bytes | None], first: int) -> list[tuple[str, int]]:
    seen: set[int] = set()
    for text, token in special.items():
        if not isinstance(text, str) or isinstance(token, bool) or not isinstance(token, int):
            raise TypeError(f"special_tokens: found {text!r}: {token!r}, expected texts and ids")
        taken = 0 <= token - first < len(texts) and texts[token - first] is not None
        if not text or taken or token in seen or not 0 <= token < MOST_RANKS:
            raise MalformedVocab(file, f"special_tokens[{text!r}]", token, "an id that no other token has")
        seen.add(token)
    return list(special.items())


def read_tekken(file: str, content: bytes) -> Pipeline:
    """The Pipeline of a tekken.json."""
    root = parse_json(file, content)
    config = root.child("config")
    special_count, size = config.count("default_num_special_tokens"), config.count("default_vocab_size")
    rows = root.child("vocab")
    count = len(rows.of(list))
    if not 0 <= size - special_count <= count:
        raise config.bad(size, f"a vocabulary size of {special_count} to {special_count + count}")
    ranks = _usual_rows(rows.value[: size - special_count])
    for number, row in enumerate(rows.items()[: size - special_count]) if ranks is None else ():
        ranks = ranks or {}
        try:
            raw = base64.b64decode(row.get("token_bytes", str), validate=True)
        except (binascii.Error, ValueError):
            raise row.child("token_bytes").bad(row.child("token_bytes").value, "base64") from None
        if row.count("rank") != number or not raw or raw in ranks:
            raise row.bad(row.value, f"rank {number} and bytes that no earlier row has")
        ranks[raw] = number
    names, numbers = _tekken_special(root, special_count)
    made = ranked(file, "tekken", ranks or {}, config.get("pattern", str), {}, first=special_count)
    data, offsets = packed([name.encode() for name in names])
    bos, eos, unk, pad = (numbers.get(name, NO_TOKEN) for name in ("<s>", "</s>", "<unk>", "<pad>"))
    before = (bos,) if bos != NO_TOKEN else ()
    return made._replace(
        library="mistral-common",
        decode=(JoinRawBetweenSpecial(),),
        added_bytes=data,
        added_offsets=offsets,
        added_ids=read_only_array(range(special_count), np.int32),
        added_flags=read_only_array([SPECIAL | UNSEARCHED] * special_count, np.uint8),
        single=(*before, FIRST_TEXT),
        pair=(*before, FIRST_TEXT, SECOND_TEXT),
        bos_id=bos,
        eos_id=eos,
        unk_id=unk,
        pad_id=pad,
    )


def _usual_rows(rows: list[Any]) -> dict[bytes, int] | None:
    """The ranks of tekken's vocabulary, all at once; None where a row is not as it should be."""
    try:
        raws = _usual_base64([row["token_bytes"].encode() for row in rows])
        numbers = [row["rank"] for row in rows]
    except (TypeError, KeyError, AttributeError, ValueError):
        return None
    if raws is None or {*map(type, numbers)} != {int} or numbers != list(range(len(rows))):
        return None
    ranks = dict(zip(raws, numbers, strict=True))
    return ranks if len(ranks) == len(rows) else None


def _tekken_special(root: Node, count: int) -> tuple[list[str], dict[str, int]]:
    """(texts of the special tokens, by id; the id that each name stands for). Those without a name get one.

    mistral-common prints an id by its index in the list and finds a name's id by its rank. They differ in files of
    another order.
    """
    rows = root.child("special_tokens")
    if rows.value is None:
        version = root.child("config").get("version", str)
        if not version.removeprefix("v").isdigit() or int(version.removeprefix("v")) > 7:
            raise rows.bad(None, f"special tokens in a file of version {version}")
        names = list(TEKKEN_SPECIAL)
        said = list(range(len(names)))
    else:
        names = [row.get("token_str", str) for row in rows.items()]
        said = [row.count("rank") for row in rows.items()]
        for row, number in zip(rows.items(), said, strict=True):
            if number >= count:
                raise row.bad(row.value, f"a rank below {count}, the number of special tokens")
    if len(names) > count or len(set(names)) != len(names):
        raise rows.bad(InWords(f"{len(names)} special tokens"), f"at most {count}, each once")
    if count > len(names) + MOST_FILLERS:
        raise (
            root.child("config")
            .child("default_num_special_tokens")
            .bad(count, f"at most {MOST_FILLERS} more than the {len(names)} that have a name")
        )
    more = range(len(names), count)
    names += [FILLER.format(k) for k in more]
    return names, dict(zip(names, [*said, *more], strict=True))
