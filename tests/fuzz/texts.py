"""Texts made to trip tokenizers: each kind of trouble has a generator; a text mixes a few of them."""
# ruff: noqa: E501, RUF001  lists of characters

from __future__ import annotations

import random
from functools import cache

from jittok.common.unicode.characters import SPACE_MARK
from jittok.common.unicode.tables import LAST_CODE_POINT, flag_table, utf8
from jittok.kernels.pretokenize.definition import pre_types
from jittok.vocab import Vocab

BLANKS = [9, 10, 11, 12, 13, 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
ALMOST_BLANKS = [0, 8, 14, 0x1C, 0x1F, 0x7F, 0x180E, 0x200B, 0x200D, 0x2060, 0xFEFF]
CLASSES = (
    "  \n\r\t\v\f\0'\"aAsStTdDmMrReEvVlLzZ0179_/.,!?$+<=>^~|`(){}[]\\-#@%&*:;"
    "éÉßſKµªʰǅλΛжЖאا\u0301\u0308\u0903\u20dd½²Ⅷ٣५。、，！？…“”‘’।·€№中一龥鿿㐀豈々あアｱー한ㄱᄀก๓ທက꧑"
    "\u0085\u00a0\u2003\u2028\u3000\u200b\u200d\ufeff\ue000\u0378😀🇦🏻\U00020000\U0002ceb0\U0002f800"
    "\U00010400\U0001e900\U0001d7ce\U00030000\U000e0001\U0010ffff\ud7ff\ufffd\uffff▁ĠĊ"
)
SCRIPTS = [
    "abcdefgh", "aeiou tnshr", "ABCXYZ Åéüİẞǅ", "0123456789 .,", "!#$%&'()*+,-./:;<=>?@[]^_`{|}~", "e\u0301a\u030ao\u0308\u0345\u20dd",
    "一二㐀\U00020000豈あア한", "абЖאاअก", "ab ▁", "😀👨\u200d👩❤\ufe0f🏽", "ﬁ①½™㎡Ａｶ가", "ACGTacgtN", "¿¡‘”。！€", "ÄäÖöÜüß ",
]  # fmt: skip
WORDS = [
    "the",
    "The",
    "THE",
    "of",
    "and",
    "I'm",
    "don't",
    "WE'LL",
    "they're",
    "l'été",
    "naïve",
    "Straße",
    "İstanbul",
    "x1",
    "a2b3",
    "1,234.56",
    "0xFF",
    "snake_case",
    "camelCase",
    "HTTPServer",
]
CODE = ["def f(x):\n", "    ", "\t", "return ", "+=", "//", "/*", "*/\n", "\n\n", "{", "};\n", "foo_bar", "'c'", "0x1F", "1e-5", "</p>\r\n", "&amp;", "://", "\\n", "/", "\n/", "!\n\n/"]  # fmt: skip
NAMED = ["<sentinel:12>", "IMGIMGABCIZ", "<dna>ACGTACGTNN</dna>", "<dna>", "</dna>", "'Dad", "1234567", "a/", "!/\n", "ABc", "abC", "ÀÉî", "中A", "aあ", "a\u0301 b\u0301"]  # fmt: skip
BROKEN = [b"\xff", b"\xc0\x80", b"\xc1\xbf", b"\xc3", b"\xe4\xb8", b"\xf0\x9f\x98", b"\x80", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xf0\x80\x80\x80", b"\xf4\x8f\xbf\xbf", b"\xc3(", b"\xc0\xa7", b"\xf0\x80\x80\xb1", b"\xe2\x96"]  # fmt: skip
FATAL = [b"\xf4\x90\x80\x80", b"\xf7\xbf\xbf\xbf", b"\xc0\xa0"]
LENGTHS = [3, 17, 33, 63, 64, 65, 129, 300, 700]


@cache
def edges() -> tuple[int, ...]:
    """Both sides of every change of class and of every range that a pattern names."""
    flags = flag_table()
    points = {c + d for c in (flags[1:] != flags[:-1]).nonzero()[0].tolist() for d in (0, 1)}
    points |= {
        ord(c) + d for pre in pre_types() for regex in pre.regexes for c in regex if ord(c) > 127 for d in (-1, 0, 1)
    }
    return tuple(sorted(c for c in points if c <= LAST_CODE_POINT))


class Texts:
    """Seeded texts; tokens of the vocabulary are part of them."""

    def __init__(self, seed: int, vocab: Vocab) -> None:
        self.random = random.Random(seed)
        self.tokens = vocab.tokens or [b"a"]
        self.special = [vocab.tokens[token] for token in vocab.special_tokens.tolist()] or [b"<s>"]
        self.kinds = [getattr(self, name) for name in dir(type(self)) if name.startswith("_text_")]

    def one(self) -> bytes:
        """One to four parts, each of one kind; now and then a byte is spoiled or many are repeated."""
        text = b"".join(self.random.choice(self.kinds)() for _ in range(self.random.choice([1, 1, 2, 4])))
        chance = self.random.random()
        if chance < 0.05:
            at = self.random.randint(0, len(text))
            text = text[:at] + self.random.choice([*BROKEN, b"\0", b""]) + text[at + self.random.randint(0, 2) :]
        elif chance < 0.055:
            at = self.random.randint(0, len(text))
            text = text[:at] + self.random.choice(FATAL) + text[at:]
        elif chance < 0.07:
            text *= self.random.choice([2, 5, 20])
        return text

    def some(self, items: object, low: int, high: int) -> bytes:
        parts = [self.random.choice(items) for _ in range(self.random.randint(low, high))]  # type: ignore[arg-type]
        return b"".join(
            part if isinstance(part, bytes) else utf8(part) if isinstance(part, int) else part.encode()
            for part in parts
        )

    def _text_ascii(self) -> bytes:
        return self.some(range(128), 1, 60)

    def _text_classes(self) -> bytes:
        return self.some([c for c in CLASSES if not 0xD800 <= ord(c) < 0xE000], 1, self.random.choice([14, 80]))

    def _text_few_classes(self) -> bytes:
        members = [self.random.choice(CLASSES).encode("utf-8", "replace") for _ in range(self.random.randint(1, 4))]
        return b"".join(
            self.random.choice(members) * self.random.choice([1, 1, 1, 2, 3, 9, 64])
            for _ in range(self.random.randint(2, 16))
        )

    def _text_blanks(self) -> bytes:
        kinds = ["  \n", " \t\n\r", "\n", ["\r\n"], " ", BLANKS, BLANKS + ALMOST_BLANKS]
        return b"".join(
            self.some(self.random.choice(kinds), 0, 7) + self.some(["a", "1", ".", "中", "\u0301", "'s", "/"], 0, 2)
            for _ in range(self.random.randint(1, 8))
        )

    def _text_long_run(self) -> bytes:
        unit = self.random.choice(
            [" ", "\n", "\t", "7", "a", "A", "=", "中", "\u3000", " \n", "12", "- ", "/", "é", "\u0301"]
        )
        return (
            self.some(["", "a", " ", "x "], 1, 1)
            + unit.encode() * self.random.choice(LENGTHS)
            + self.some(["", "b", "\n", " "], 1, 1)
        )

    def _text_script(self) -> bytes:
        return self.some("".join(self.random.sample(SCRIPTS, self.random.choice([1, 1, 2]))), 1, 40)

    def _text_digits(self) -> bytes:
        return b"".join(
            self.some(self.random.choice(["0123456789", "٠١٢٣", "0१２½"]), 1, 14)
            + self.some([" ", ",", ".", "a", "\n", "_"], 0, 1)
            for _ in range(self.random.randint(1, 4))
        )

    def _text_contractions(self) -> bytes:
        fronts = ["", " ", "I", "we", "ÉTÉ", "1", "\n", "中", "'", "\u0301", "."]
        ends = [
            "s",
            "S",
            "t",
            "T",
            "d",
            "D",
            "m",
            "M",
            "re",
            "RE",
            "rE",
            "ve",
            "VE",
            "ll",
            "LL",
            "lL",
            "r",
            "v",
            "l",
            "ſ",
            "sx",
            "reX",
            "K",
        ]
        return b"".join(
            self.some(fronts, 1, 1) + self.some(["'", "'", "’", "ʼ", "''", " '"], 1, 1) + self.some(ends, 0, 1)
            for _ in range(self.random.randint(1, 6))
        )

    def _text_points(self) -> bytes:
        pool = self.random.choice([edges(), range(0x10000), range(LAST_CODE_POINT + 1)])
        return self.some(pool, 1, 20)

    def _text_broken(self) -> bytes:
        return self.some([*BROKEN, b"a", b" ", "é".encode(), "中".encode(), b"1", b"\n", b"'s"], 1, 12)

    def _text_bytes(self) -> bytes:
        return self.random.randbytes(self.random.randint(1, 24))

    def _text_special(self) -> bytes:
        parts = []
        for _ in range(self.random.randint(1, 5)):
            text = self.random.choice(self.special)
            at = self.random.randrange(len(text) + 1)
            text = self.random.choice(
                [text, text, text, text[:at], text[at:], text[:at] + text[at + 1 :], text.upper()]
            )
            parts += [text, self.some(["", " ", "  ", "\n", "\t ", "a", "x y", "<", SPACE_MARK, "\u00a0"], 0, 2)]
        return b"".join(parts)

    def _text_tokens(self) -> bytes:
        chosen = [self.random.choice(self.tokens) for _ in range(self.random.randint(1, 10))]
        plain = [text.replace(SPACE_MARK.encode(), b" ").replace("Ġ".encode(), b" ") for text in chosen]
        return b"".join(plain if self.random.random() < 0.8 else chosen)

    def _text_words(self) -> bytes:
        return b"".join(
            self.some(WORDS, 1, 1) + self.some([" ", " ", ", ", "\n", ".  ", " - ", ""], 1, 1)
            for _ in range(self.random.randint(1, 12))
        )

    def _text_code(self) -> bytes:
        return self.some(CODE + NAMED, 1, 14)
