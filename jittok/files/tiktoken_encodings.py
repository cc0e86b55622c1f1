"""Patterns and special tokens of known rank files, which do not hold them: tiktoken's own, and those of models."""

from __future__ import annotations

from collections.abc import Callable

from jittok.common.pipeline.known_patterns import CL100K, GPT2, O200K, R50K

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
    """So many names: those that are given, by place, and numbered ones between them."""
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
