"""Texts in which counts of ids rise and fall, and names of vocabularies of every kind."""

import random

from made_up import MADE_UP
from recorded_files import HERE, SHARED

PARTS = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "z", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", " ",
    " ", " ", " ", ".", ",", "-", "!", "?", "_", "'", "\n", "\n\n", "\t", "  ", "   ", "\r\n", "the", " and", "ing",
    "tion", "don't", " New York", "1234567", "xxxxxxxxxxxx", "supercalifragilistic", "\u6771\u4eac", "\uc548\ub155",
    "\u0939\u093f\u0928\u094d\u0926\u0940", "\u0915\u094d\u0937\u093f", "\u0e01\u0e33",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0644\u0639\u0631\u0628\u064a\u0629", "\xe9", "e\u0301", "\xdf",
    "\uff21", "\ufb01", "\u2603", "\U0001f44d\U0001f3fd", "\U0001f1e8\U0001f1ed",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u200d", "\u200b", "\xa0", "\u2026", "\u3002", "\uff0c", "</s>",
    "<s>", "[UNK]", "<|im_end|>", "<mask>", "\u0130", "\u3000", "ABC", "Hello", "\u2581", "\xb4", "\u304b\u3099",
    "\x00", "\x07",
]  # fmt: skip
FILES = sorted(path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz"))
LARGE = sorted(
    {path.name.removesuffix(".gguf.xz") for path in (SHARED / "vocabs").glob("*.gguf.xz")}
    | {path.name.removesuffix(".tar.xz") for path in (SHARED / "tokenizer-files").glob("[!m]*.tar.xz")}
)
"""Vocabularies that lie beside the checkout."""
BUNDLED = ["gpt-2", "bert", "t5", "mistral"]
ALL = [*BUNDLED, *MADE_UP, *FILES]


def random_text(rng: random.Random, most: int = 40) -> str:
    if rng.random() < 0.15:
        return rng.choice(PARTS) * rng.randrange(1, 2 * most)
    return "".join(rng.choice(PARTS) for _ in range(rng.randrange(1, rng.choice([3, 8, most // 2, most]))))
