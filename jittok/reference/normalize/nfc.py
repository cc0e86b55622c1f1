"""NFC of Unicode 16.0, step by step: decompose, sort marks, compose.

>>> from jittok.reference.text import mapped
>>> raw = "e\u0301a".encode()  # e, an acute accent, a
>>> text = nfc(mapped(raw, 0, len(raw)))
>>> text.text.decode(), text.byte_units()
('éa', [(0, 3), (0, 3), (3, 4)])
"""

from __future__ import annotations

from jittok.common.unicode.nfc import begins_anew, combining_class, composition, decomposition
from jittok.common.unicode.tables import decode, utf8
from jittok.reference.text import Mapped

Point = tuple[int, int, int]
"""A code point, its start and its end."""


def nfc(source: Mapped) -> Mapped:
    """The text in NFC; a byte of invalid UTF-8 becomes U+FFFD. A segment that changes is one unit.

    Source: llama.cpp, `unicode_normalize_nfc`; the segments are ours.
    """
    out = Mapped()
    for stretch in stretches(source):
        after = composed(ordered([part for c, _, _ in stretch for part in decomposition(c)]))
        out.put(b"".join(map(utf8, after)), source, stretch[0][1], stretch[-1][2])
    return out


def stretches(source: Mapped) -> list[list[Point]]:
    """The code points of a text, in segments that cannot change each other."""
    found: list[list[Point]] = []
    for point in decode(source.text):
        if not found or begins_anew(point[0]):
            found.append([])
        found[-1].append(point)
    return found


def ordered(points: list[int]) -> list[int]:
    """Sort each run of marks by combining class; stable."""
    out: list[int] = []
    run: list[int] = []
    for c in points:
        if combining_class(c) == 0:
            out += sorted(run, key=combining_class)
            out.append(c)
            run = []
        else:
            run.append(c)
    return out + sorted(run, key=combining_class)


def composed(points: list[int]) -> list[int]:
    """Compose each mark, and each second half of a pair, with the last starter if nothing between them blocks it."""
    out: list[int] = []
    starter, last = -1, -1  # index of the last starter; class of the last code point after it, -1 if there is none
    for c in points:
        own = combining_class(c)
        if starter >= 0 and (last == -1 or last < own):
            whole = composition(out[starter], c)
            if whole is not None:
                out[starter] = whole
                continue
        if own == 0:
            starter, last = len(out), -1
        else:
            last = own
        out.append(c)
    return out
