"""Small vocabularies of every type, drawn so that what real ones never do is common."""
# ruff: noqa: E501  lists of characters

from __future__ import annotations

import random
from typing import Any

from charsmap import build_charsmap
from write_gguf import I8, U8, Of, T, vocab_file

from jittok.common.unicode.tables import ENCODED_BYTE
from jittok.vocab.attributes import EOG_TEXTS, ID_TEXTS, USER_TEXTS
from jittok.vocab.keys import ID_KEYS, pre_names

BYTES = [b"<0x%02X>" % byte for byte in range(256)]
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
SPACE = "\u2581"
KNOWN = sorted({text for texts in ID_TEXTS.values() for text in texts} | {*EOG_TEXTS, *USER_TEXTS})
ODD = [
    "<unused1>",
    "<unk>",
    "<s>",
    "[MASK]",
    "<mask>",
    "<dna>",
    "</dna>",
    "<oov>",
    "▁",
    "▁a",
    "é",
    "中",
    "<0x41>",
    "  ",
    " a",
    "\n",
    "\n\n",
]
KMER = "\ue000".encode()
"""After a k-mer of model "hybriddna"."""
KEYS = ["a", "A", "ab", "é", "\u0301", "ﬁ", "\u3000", "\t", "  ", SPACE, "\ufffd", "一", "一二", "#", "e\u0301"]
REPLACEMENTS = [b"", b" ", b"a", b"fi", b"  _ ", b"\xff", " 一 ".encode(), b"a b", SPACE.encode()]
"""Of the charsmap of type "ugm"."""
LONG_PIECES = ["superbpe", "exaone-moe", "bloom"]
"""Pre strings that leave pieces which are cut once more."""
WITH_BLANKS = [b"\t", b"\n", b"a\t", b"\tb", b"a\nb", b" ", b"a b", b" \t", b"\n\n", "一\t".encode()]
"""Tokens of type "ugm", which a charsmap may take the blanks of."""
FLAGS = ["add_bos_token", "add_eos_token", "add_sep_token", "add_space_prefix", "remove_extra_whitespaces"]


def random_vocab(seed: int) -> tuple[str, bytes]:
    """(type, file) of one drawn vocabulary."""
    rng = random.Random(seed)
    kind = rng.choice([*KINDS, "bpe", "bpe"])
    return kind, _MAKERS[kind](rng)


def drawn_vocab(kind: str, seed: int) -> bytes:
    """The file of a drawn vocabulary of one of KINDS."""
    return _MAKERS[kind](random.Random(seed))


def _maybe(rng: random.Random, *values: Any) -> Any:
    return rng.choice([None, *values])


def _bodies(rng: random.Random, count: int, space: str = SPACE) -> list[bytes]:
    """Short texts over few letters, many of them parts of each other."""
    letters = rng.choice(["ab", "abc", "abcdeh", "abé一", "aA\u0301e#", "一二😀a", "acgt", "a1'/"])
    parts = (
        [c.encode() for c in letters]
        + [space.encode()] * rng.choice([0, 1])
        + rng.choice([[], [], [b"\xff"], [b"\xe2\x96"]])
    )
    found = list(parts)
    while len(found) < count:
        text = rng.choice(found) + rng.choice(found if rng.random() < 0.5 else parts)
        if len(text) < 24:
            found.append(text)
    rng.shuffle(found)
    return found


def _unique(tokens: list[bytes]) -> list[bytes]:
    return list(dict.fromkeys(token for token in tokens if token and 0 not in token))


def _scores(rng: random.Random, count: int) -> list[float]:
    draw = rng.choice([
        lambda: float(rng.randint(-3, 0)), lambda: rng.uniform(-15, 0), lambda: rng.choice([-0.1, -0.10000000149, 0.1, 0.2]),
        lambda: rng.choice([0.0, -0.0, -1e30, 1e30, float("-inf"), -1e-40]),
    ])  # fmt: skip
    return [draw() for _ in range(count)]


def _flags(rng: random.Random) -> dict[str, Any]:
    return {name: _maybe(rng, True, False) for name in FLAGS}


def _types(rng: random.Random, tokens: list[bytes]) -> list[int]:
    kinds = [NORMAL] * 12 + [UNUSED, USER, CONTROL]
    return [BYTE if token in BYTES and rng.random() < 0.95 else rng.choice(kinds) for token in tokens]


def _bpe(rng: random.Random) -> bytes:
    """With the alphabet of bytes: missing bytes, merges of and to anything, lines that are none."""
    whole = rng.random() < 0.5
    tokens = [encoded for encoded in ENCODED_BYTE if whole or rng.random() < 0.98]
    letters = [ENCODED_BYTE[b] for b in rng.choice([b"abc ", b"the ", b"a1' \n", "é一 a".encode(), b" \n\t/"])]
    ends = [*letters, *letters]
    lines = []
    for _ in range(rng.choice([5, 40, 150])):
        left, right = rng.choice(ends), rng.choice(ends)
        if len(left + right) < 40:
            lines.append(left + b" " + right)
            ends.append(left + right)
            if rng.random() < 0.9:  # else a merge to what is no token
                tokens.append(left + right)
    if rng.random() < 0.3:
        rng.shuffle(lines)
    if rng.random() < 0.4:  # as in most vocabularies of today
        lines.insert(0, ENCODED_BYTE[0x20] + b" " + ENCODED_BYTE[0x20])
    lines += rng.choice([[], [], [b"nospace", b"", b" ", b"  a", b"a ", b"a b c"]])
    special = [text.encode() for text in rng.sample(KNOWN + ODD, rng.choice([0, 5, 30]))]
    model = rng.choice(["gpt2"] * 6 + ["whitespace", "hybriddna"])
    if model == "hybriddna" and rng.random() < 0.8:
        special += [b"<dna>", b"</dna>", b"<oov>"]
        tokens += ["".join(rng.choices("ACGT", k=6)).encode() + KMER for _ in range(20)] + [
            b"ACGTAC" + KMER,
            b"AAAAAA" + KMER,
        ]
    tokens = _unique(tokens + special + [b"".join(rng.choices(letters, k=3)) for _ in range(6)])
    types = [rng.choice([NORMAL, CONTROL, USER, UNKNOWN, UNUSED]) if token in special else NORMAL for token in tokens]
    settings: dict[str, Any] = {
        "pre": rng.choice(sorted(pre_names()) if rng.random() < 0.7 else LONG_PIECES),
        "merges": lines,
        "token_type": types,
        **_flags(rng),
    }
    for key, _ in ID_KEYS:
        settings[key.removeprefix(T)] = _maybe(rng, None, None, rng.randrange(len(tokens)))
    return vocab_file(model, tokens, **settings)


def _raw_bpe(rng: random.Random) -> bytes:
    """Without it: gemma4 and its like."""
    tokens = BYTES if rng.random() < 0.7 else rng.sample(BYTES, 100)
    bodies = _bodies(rng, 60)
    tokens = _unique([b"<pad>", b"<bos>", *tokens, *bodies, b"\n", b"\n\n", b"\n" * 3])
    lines = [rng.choice(bodies) + b" " + rng.choice(bodies) for _ in range(80)] + [b"\n \n", b"\n\n \n"]
    model = rng.choice(["gemma4", "gpt2", "gpt2", "whitespace", "hybriddna"])
    if model == "hybriddna":
        letters = ["".join(rng.choices(["A", "C", "a", "b", SPACE], k=6)).encode()[:6] for _ in range(20)]
        tokens = _unique([*tokens, b"<dna>", b"</dna>", b"<oov>", *(text + KMER for text in letters)])
    settings = {
        "merges": lines,
        "token_type": _types(rng, tokens),
        "bos_token_id": 1,
        "pre": rng.choice(["gemma4", "sarvam-moe", "whitespace", "mmbert"]),
    }
    return vocab_file(model, tokens, **settings)


def _spm(rng: random.Random) -> bytes:
    fallback = rng.choice([BYTES, BYTES, [], rng.sample(BYTES, 200)])
    tokens = _unique(
        [b"<unk>", b"<s>", b"</s>", *fallback, *_bodies(rng, rng.randint(5, 60)), b"<tool>", b"<a b>", b"a<"]
    )
    types = [UNKNOWN, CONTROL, CONTROL, *_types(rng, tokens)[3:]]
    return vocab_file("llama", tokens, scores=_scores(rng, len(tokens)), token_type=types, **_flags(rng))


def _wpm(rng: random.Random) -> bytes:
    bodies = _bodies(rng, rng.randint(10, 80))
    tokens = _unique(
        [b"[PAD]", b"[UNK]", b"[CLS]", b"[SEP]", b"[MASK]", *(SPACE.encode() + text for text in bodies), *bodies, b"!"]
    )
    types = [CONTROL] * 5 + [NORMAL if kind == BYTE else kind for kind in _types(rng, tokens)[5:]]
    ids = {"bos_token_id": 2, "unknown_token_id": 1, "seperator_token_id": 3, "padding_token_id": 0}
    lower = {"normalizer__lowercase": _maybe(rng, True, False), "normalizer__strip_accents": _maybe(rng, True, False)}
    return vocab_file("bert", tokens, token_type=types, **ids, **lower)


def _ugm(rng: random.Random) -> bytes:
    blanks = rng.sample(WITH_BLANKS, rng.choice([0, 0, 1, 4]))
    tokens = _unique([b"<pad>", b"</s>", b"<unk>", *_bodies(rng, rng.randint(5, 60)), b"<extra>", *blanks])
    types = [CONTROL, CONTROL, UNKNOWN, *(NORMAL if kind == BYTE else kind for kind in _types(rng, tokens)[3:])]
    types = [rng.choice([kind, USER]) if token in blanks else kind for token, kind in zip(tokens, types, strict=True)]
    charsmap = None
    if rng.random() < 0.6:
        pairs = {key.encode(): rng.choice(REPLACEMENTS) for key in rng.sample(KEYS, rng.randint(1, len(KEYS)))}
        raw = build_charsmap(pairs)
        charsmap = rng.choice([Of(U8, [*raw]), Of(I8, [*memoryview(raw).cast("b")])])
    scores = _scores(rng, len(tokens))
    nfc = {"normalizer__nfc": _maybe(rng, True, None)}
    more = nfc | _flags(rng)
    return vocab_file("t5", tokens, scores=scores, token_type=types, precompiled_charsmap=charsmap, **more)


def _rwkv(rng: random.Random) -> bytes:
    whole = rng.random() < 0.7  # else some bytes begin no token, and some of these tokens cannot be come to
    tokens = [b"<s>", *(b"\\x%02x" % byte for byte in range(256) if whole or rng.random() < 0.97)]
    tokens += [b"".join(b"\\x%02x" % c for c in text) if rng.random() < 0.5 else text for text in _bodies(rng, 50, " ")]
    tokens = _unique([token for token in tokens if b"\\" in token or len(token) > 1])
    return vocab_file("rwkv", tokens, unknown_token_id=_maybe(rng, 0, rng.randrange(len(tokens))))


def _plamo2(rng: random.Random) -> bytes:
    tokens = _unique([b"<|plamo:unk|>", b"<|plamo:bos|>", b"<|plamo:eos|>", b"<|plamo:pad|>", *BYTES, *(
        text for text in _bodies(rng, rng.randint(5, 60)) if b"\xff" not in text and b"\xe2\x96" not in text.replace(SPACE.encode(), b"")
    )])  # fmt: skip
    types = [UNKNOWN, CONTROL, CONTROL, CONTROL, *_types(rng, tokens)[4:]]
    types = [BYTE if token in BYTES else kind for token, kind in zip(tokens, types, strict=True)]  # else it is refused
    model = rng.choice(["plamo2", "plamo3"])
    flags = {"add_bos_token": _maybe(rng, True, None), "add_eos_token": _maybe(rng, True, None)}
    return vocab_file(model, tokens, scores=_scores(rng, len(tokens)), token_type=types, **flags)


def _test(rng: random.Random) -> bytes:
    return vocab_file("test", [b"%d" % k for k in range(rng.choice([1, 7, 300]))])


_MAKERS = {
    "bpe": _bpe, "raw_bpe": _raw_bpe, "spm": _spm, "wpm": _wpm, "ugm": _ugm, "rwkv": _rwkv, "plamo2": _plamo2,
    "test": _test,
}  # fmt: skip
KINDS = list(_MAKERS)
"""Types, with BPE over characters as one of its own."""
