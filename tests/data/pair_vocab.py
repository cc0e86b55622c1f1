"""A BPE vocabulary that shows where words begin and end, whatever the script.

Real vocabularies hide a wrong border wherever they have no merge across it, which is most of the time outside of their
own languages. Here every two bytes merge, in an order without a pattern: a border that is missing or one too many
changes the pairs around it. A few whole words are tokens that no merge reaches, for the settings that look them up.
"""

from __future__ import annotations

import functools
import struct
import zlib

WHOLE = (
    b" the",
    b"the",
    b"Hello",
    b" you",
    b"123",
    b"1234",
    b"    ",
    b"\n\n\n",
    b"!!!",
    "我想".encode(),
    b"'ll",
    b"://",
)
CONTROL, NORMAL = 3, 1
UINT32, STRING, ARRAY, INT32 = 4, 8, 9, 5


def byte_alphabet() -> list[str]:
    """The character that stands for each byte in byte-level BPE: itself where it can be seen, else from U+0100 on."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = iter(range(0x100, 0x200))
    return [chr(b) if b in seen else chr(next(hidden)) for b in range(256)]


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _strings(texts: list[str]) -> bytes:
    return struct.pack("<IIQ", ARRAY, STRING, len(texts)) + b"".join(map(_string, texts))


@functools.cache
def _lists() -> tuple[int, bytes, bytes, bytes]:
    """How many tokens there are; their texts, types and merges as a file has them. The same for every pre string."""
    letters = byte_alphabet()
    order = sorted(range(1 << 16), key=lambda pair: zlib.crc32(struct.pack(">H", pair)))
    tokens = [
        *letters,
        *(a + b for a in letters for b in letters),
        *("".join(letters[b] for b in word) for word in WHOLE),
        "<|end|>",
    ]
    types = [NORMAL] * (len(tokens) - 1) + [CONTROL]
    kinds = struct.pack(f"<IIQ{len(types)}i", ARRAY, INT32, len(types), *types)
    merges = _strings([f"{letters[pair >> 8]} {letters[pair & 255]}" for pair in order])
    return len(tokens), _strings(tokens), kinds, merges


def pair_vocab(pre: str) -> bytes:
    """A GGUF file: id b is the byte b, 256 + 256 a + b the pair a b, then WHOLE, then a token that begins and ends."""
    count, tokens, kinds, merges = _lists()
    end = struct.pack("<II", UINT32, count - 1)
    pairs = {
        "general.architecture": struct.pack("<I", STRING) + _string("llama"),
        "general.name": struct.pack("<I", STRING) + _string("pairs of bytes"),
        "tokenizer.ggml.model": struct.pack("<I", STRING) + _string("gpt2"),
        "tokenizer.ggml.pre": struct.pack("<I", STRING) + _string(pre),
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": end,
        "tokenizer.ggml.eos_token_id": end,
    }
    header = struct.pack("<4sIQQ", b"GGUF", 3, 0, len(pairs))
    return header + b"".join(_string(key) + value for key, value in pairs.items())
