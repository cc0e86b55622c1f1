"""llama.cpp's hand-written splitters, in Python, with the same steps.

Each takes one piece, as code points and their flags, and yields the ends of the parts that it is split into. Each
replaces a regex; where the two differ, the splitter decides. Source: llama.cpp, `unicode_regex_split_custom_*`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from jittok.common.unicode.characters import NEWLINE, SPACE_BYTE, SPACE_MARK_CODE
from jittok.common.unicode.tables import LETTER, MARK, NUMBER, WHITESPACE, lower

QUOTE, RETURN = 0x27, 0x0D
LONG_S, JOINERS = 0x17F, (0x200C, 0x200D)
HAN = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2CEB0, 0x2EBEF),
    (0x2F800, 0x2FA1F),
)
"""The blocks that kimi_k2 calls Han, code points without a character included."""

_Points = Sequence[int]
_Flags = Sequence[int]
Splitter = Callable[[_Points, _Flags], Iterator[int]]


def _is(f: _Flags, k: int, classes: int) -> bool:
    return 0 <= k < len(f) and bool(f[k] & classes)


def _is_other(f: _Flags, k: int, classes: int) -> bool:
    """Whether k is inside the piece, and its character in none of the classes and not white space."""
    return 0 <= k < len(f) and not f[k] & (classes | WHITESPACE)


def _run_end(f: _Flags, k: int, classes: int) -> int:
    while _is(f, k, classes):
        k += 1
    return k


def _other_end(f: _Flags, k: int, classes: int) -> int:
    while _is_other(f, k, classes):
        k += 1
    return k


def _newlines_end(c: _Points, k: int) -> int:
    while k < len(c) and c[k] in (NEWLINE, RETURN):
        k += 1
    return k


def _contraction(c: _Points, k: int, fold: Callable[[int], int]) -> int:
    """Length of 's 't 'm 'd 're 've 'll at k, 0 if there is none."""
    if c[k] != QUOTE or k + 1 >= len(c):
        return 0
    first, second = (chr(fold(x)) for x in (*c[k + 1 : k + 3], 0, 0)[:2])
    if first in "stmd":
        return 2
    return 3 if first + second in ("re", "ve", "ll") else 0


def _space_end(c: _Points, f: _Flags, k: int, *, after_newline: bool) -> int:
    """End of the part that begins with white space at k; k if there is none.

    It ends after the last newline of the run if `after_newline`; else it leaves one character for what follows.
    """
    end = _run_end(f, k, WHITESPACE)
    newlines = [i for i in range(k, end) if c[i] in (NEWLINE, RETURN)]
    if after_newline and newlines:
        return newlines[-1] + 1
    return end - 1 if end - k > 1 and end < len(c) else end


def gpt2(c: _Points, f: _Flags) -> Iterator[int]:
    """'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+."""
    k = 0
    while k < len(c):
        start, first = k, k + (c[k] == SPACE_BYTE)
        if size := _contraction(c, k, int):
            k += size
        elif _is(f, first, LETTER):
            k = _run_end(f, first, LETTER)
        elif _is(f, first, NUMBER):
            k = _run_end(f, first, NUMBER)
        elif _is_other(f, first, LETTER | NUMBER):
            k = _other_end(f, first, LETTER | NUMBER)
        else:
            k = _space_end(c, f, k, after_newline=False)
        k = max(k, start + 1)
        yield k


def _llama_like(c: _Points, f: _Flags, digits: int, word: int) -> Iterator[int]:
    """Words of the classes `word`, with one character before that is no number or newline; numbers by themselves."""
    k = 0
    while k < len(c):
        start, first = k, k + (c[k] == SPACE_BYTE)
        if size := _contraction(c, k, lower):
            k += size
        elif c[k] not in (NEWLINE, RETURN) and not f[k] & NUMBER and (f[k] & word or _is(f, k + 1, word)):
            k = _run_end(f, k + 1, word)
        elif f[k] & NUMBER:
            k = min(_run_end(f, k, NUMBER), k + digits)
        elif _is_other(f, first, word | NUMBER):
            k = _newlines_end(c, _other_end(f, first, word | NUMBER))
        else:
            k = _space_end(c, f, k, after_newline=True)
        k = max(k, start + 1)
        yield k


def llama3(c: _Points, f: _Flags) -> Iterator[int]:
    """Numbers in threes from the left."""
    return _llama_like(c, f, 3, LETTER)


def qwen2(c: _Points, f: _Flags) -> Iterator[int]:
    """Each number alone."""
    return _llama_like(c, f, 1, LETTER)


def qwen35(c: _Points, f: _Flags) -> Iterator[int]:
    """Each number alone, marks belong to words."""
    return _llama_like(c, f, 1, LETTER | MARK)


def is_han(c: int) -> bool:
    """Whether `c` lies in one of the blocks HAN."""
    return any(first <= c <= last for first, last in HAN)


def kimi_k2(c: _Points, f: _Flags) -> Iterator[int]:
    """Runs of Han by themselves, other words with their contraction, numbers in threes."""

    def is_word(k: int) -> bool:
        return _is(f, k, LETTER) and not is_han(c[k])

    k = 0
    while k < len(c):
        start, first = k, k + (c[k] == SPACE_BYTE)
        if is_han(c[k]):
            while k < len(c) and is_han(c[k]):
                k += 1
        elif is_word(k) or (c[k] not in (NEWLINE, RETURN) and not f[k] & (LETTER | NUMBER) and is_word(k + 1)):
            k += not is_word(k)
            while is_word(k):
                k += 1
            k += _contraction(c, k, lower) if k < len(c) else 0
        elif f[k] & NUMBER:
            k = min(_run_end(f, k, NUMBER), k + 3)
        elif _is_other(f, first, LETTER | NUMBER):
            k = _newlines_end(c, _other_end(f, first, LETTER | NUMBER))
        else:
            k = _space_end(c, f, k, after_newline=True)
        k = max(k, start + 1)
        yield k


def digit_groups(c: _Points, f: _Flags) -> Iterator[int]:
    """Runs of numbers in threes counted from the right; the first group includes the text before it."""
    k, done = 0, 0
    while k < len(c):
        end = _run_end(f, k, NUMBER)
        head = (end - k) % 3
        for stop in range(k + (head or 3), end + 1, 3):
            yield stop
            done = stop
        k = max(end, k + 1)
    if done < len(c):
        yield len(c)


def newlines(c: _Points, _f: _Flags) -> Iterator[int]:
    """Runs of newlines, and runs of other characters."""
    for k in range(1, len(c) + 1):
        if k == len(c) or (c[k] == NEWLINE) != (c[k - 1] == NEWLINE):
            yield k


def metaspace(c: _Points, _f: _Flags) -> Iterator[int]:
    """Cuts before each U+2581, as Hugging Face's `Metaspace`."""
    for k in range(1, len(c) + 1):
        if k == len(c) or c[k] == SPACE_MARK_CODE:
            yield k


def k2_horizon(c: _Points, f: _Flags) -> Iterator[int]:
    """As llama3, but words include marks and joiners, and so do runs of other characters."""
    k = 0
    while k < len(c):
        start, first = k, k + (c[k] == SPACE_BYTE)
        if size := _contraction(c, k, lambda x: ord("s") if x == LONG_S else lower(x)):
            k += size
        elif _is_joined(c, f, k) or (c[k] not in (NEWLINE, RETURN) and not f[k] & NUMBER and _is_joined(c, f, k + 1)):
            k += 1
            while _is_joined(c, f, k):
                k += 1
        elif f[k] & NUMBER:
            k = min(_run_end(f, k, NUMBER), k + 3)
        elif _is_other(f, first, LETTER | NUMBER):
            k = _newlines_end(c, _other_end(f, first, LETTER | NUMBER))
        else:
            k = _space_end(c, f, k, after_newline=True)
        k = max(k, start + 1)
        yield k


def _is_joined(c: _Points, f: _Flags, k: int) -> bool:
    """A letter, a mark or a joiner."""
    return _is(f, k, LETTER | MARK) or (k < len(c) and c[k] in JOINERS)


SPLITTERS: dict[str, Splitter] = {
    "gpt2": gpt2,
    "llama3": llama3,
    "qwen2": qwen2,
    "qwen35": qwen35,
    "kimi_k2": kimi_k2,
    "digit_groups": digit_groups,
    "newlines": newlines,
    "metaspace": metaspace,
    "k2_horizon": k2_horizon,
}
"""By the name of the engine, without `custom:`."""
