"""Patterns and special tokens of tiktoken's own rank files, which do not hold them."""

from __future__ import annotations

from collections.abc import Callable

from jittok.pipeline.known_patterns import CL100K, O200K, R50K

END, PREFIX, MIDDLE, SUFFIX = "<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"
PROMPT_END = "<|endofprompt|>"
_HARMONY = {
    199998: "<|startoftext|>", 199999: END, 200002: "<|return|>", 200003: "<|constrain|>", 200005: "<|channel|>",
    200006: "<|start|>", 200007: "<|end|>", 200008: "<|message|>", 200012: "<|call|>",
}  # fmt: skip

Encoding = tuple[str, dict[str, int]]


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
}  # fmt: skip
"""By tiktoken's names: pattern and special tokens."""
BY_SHA256 = {
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": ("r50k_base",),
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": ("p50k_base", "p50k_edit"),
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": ("cl100k_base",),
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": ("o200k_base", "o200k_harmony"),
}
"""SHA-256 of a rank file -> the encodings that it is of, the usual one first."""
