"""Safe cuts for Unigram texts, computed from the vocabulary and its character map.

A cut between two characters is used only if

1. no token that a best path can contain has them next to each other;
2. both are *inert*: each is normalized to itself, whatever is around it. A character that the map changes is not
   inert, nor is one inside a longer key. An ASCII character may begin longer keys that continue with a wide (non-ASCII)
   one; if a wide one follows in the text, it is not cut from the character before it;
3. one of the two is a token by itself. So a cut never separates a run of unknown characters, which becomes one id;
4. no path in the trie of user-defined tokens crosses it (their bytes are copied unchanged). Where rule 1 does not
   ensure this, the splitter searches the text for user-defined tokens, and for the few other tokens that are the only
   ones to join letters with another class. This requires that all characters near the cut are inert.

A file that folds case maps each capital letter. Such a letter is treated like the letter that it becomes: the mapping
does not depend on the text around it, and both are of one class.

Sums of scores start at zero in each span. All sums that are compared at an offset contain the best sum at the cut, so
the result of a comparison is the same if no addition rounds. `exact_bytes` is the fragment length up to which this is
certain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from jittok.common.unicode.characters import SPACE_BYTE, SPACE_MARK_BYTES, SPACE_MARK_CODE
from jittok.kernels.normalize.charsmap.keys import CharsmapKeys
from jittok.kernels.pretokenize.classes import UNICODE_SIZE, distinct
from jittok.kernels.safe_cuts import cuts, rules
from jittok.kernels.safe_cuts.cuts import BLANK, CLASSES, CONTROL, DIGIT, LETTER, LONGEST_PATH, OTHER, TIED, WIDE
from jittok.kernels.safe_cuts.rules import Neighbours

RARE_TOKENS = 256
"""See `dominated`."""
SHORT_TOKEN_BYTES = 64
"""The longest token, in bytes, that `dominated` tests."""
STEPS_PER_BYTE = 2
"""The most look-ups of `dominated` for each byte of all tokens, so that every file loads fast."""
LEAST_STEPS = 1 << 17
"""Look-ups of `dominated` that are allowed in any vocabulary."""
NEVER = -1
MOST_TYING_TOKENS = 16
"""See `to_look_for`."""


class TokenTexts(NamedTuple):
    """Concatenated byte strings."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return self.offsets.size - 1

    def text(self, k: int) -> bytes:
        """Text k."""
        return self.data[self.offsets[k] : self.offsets[k + 1]].tobytes()


class VocabLattice(NamedTuple):
    """The tokens that the lattice may contain."""

    texts: TokenTexts
    scores: NDArray[np.float32]
    ids: NDArray[np.int64]
    user: NDArray[np.bool_]
    unk_id: int
    unk_score: float


def span_rules(
    lattice: VocabLattice,
    user: TokenTexts,
    keys: CharsmapKeys | None,
    merge: bool,
    margin: float = 0.0,
    few: int = MOST_TYING_TOKENS,
) -> tuple[cuts.SpanRules, int]:
    """(the rules, the most bytes of a fragment for which they hold). NEVER: encode every fragment as a whole.

    merge: runs of spaces become one space before a word; margin: see `dominated`; few: see `to_look_for`
    """
    known = _single_characters(lattice)
    finite = np.isfinite(lattice.scores).all()
    if keys is None or SPACE_MARK_CODE not in known or lattice.unk_id in lattice.ids or not finite:
        return rules.no_cuts(), NEVER
    class_pairs = _class_pairs(lattice)
    left_out = dominated(lattice, class_pairs, margin)
    tokens = np.ones(len(lattice.texts), bool)
    tokens[left_out] = False
    source = _Source(keys)
    if not source.is_text:
        return rules.no_cuts(), NEVER
    sought = to_look_for(lattice, class_pairs, tokens, few)
    tokens &= ~sought
    # Spaces of a text are U+2581 in the lattice, so a token that contains a space never matches.
    spaces = np.concatenate([[0], np.cumsum(lattice.texts.data == SPACE_BYTE)])
    tokens &= spaces[lattice.texts.offsets[1:]] == spaces[lattice.texts.offsets[:-1]]
    pairs = rules.neighbours(lattice.texts.data, lattice.texts.offsets, tokens)
    if merge and np.any(pairs.right == SPACE_MARK_CODE):
        return rules.no_cuts(), NEVER
    # A user-defined text is copied unchanged, so a control character in one is not a blank.
    blanks = [b for b in range(1, 0x20) if source.image(b) == b" " and b not in user.data]
    odd_space = source.image(SPACE_BYTE) not in (None, b" ") or source.long_with([SPACE_BYTE, *blanks])
    if len(blanks) > cuts.BLANK_BYTES or odd_space:
        return rules.no_cuts(), NEVER
    limit = exact_bytes(lattice, left_out, source.steps_per_byte)
    if merge:  # U+2581 is before words only; one in the text itself is never cut from anything
        pairs = Neighbours(*(side[pairs.left != SPACE_MARK_CODE] for side in pairs))
    else:
        pairs = Neighbours(*(np.where(side == SPACE_MARK_CODE, SPACE_BYTE, side) for side in pairs))
    flags = _wide_flags(pairs, source, known, user, merge)
    folded = source.folded(user)
    cut, apart = _class_cuts(pairs, source, known, folded, blanks, merge)
    odd = np.append(np.flatnonzero(source.mapped()[:0x80]), np.arange(0x80, 0x100))
    more = [lattice.texts.text(k) for k in np.flatnonzero(sought).tolist()]
    classes = rules.class_of(apart, blanks)
    paths = _paths([user.text(k) for k in range(len(user))], more, folded, cut, classes, odd)
    if paths.pairs.size and int(np.diff(paths.offsets).max()) > LONGEST_PATH:
        return rules.no_cuts(), NEVER
    return rules.build_rules(cut, apart, blanks, flags, pairs, merge, True, paths), limit


def _paths(
    user: list[bytes],
    more: list[bytes],
    folded: dict[int, int],
    cut: NDArray[np.bool_],
    classes: NDArray[np.int64],
    odd: NDArray[np.int64],
) -> rules.Paths:
    """The texts to search for (user-defined ones and `more`), and the pairs of their bytes between which the classes
    allow a cut. odd: bytes that normalization may change into bytes of `more`; `folded` ones keep their class."""
    classes = np.append(classes[:0x80], np.full(0x80, WIDE))
    allowed = cut[classes[:, None], classes] | ((classes[:, None] == BLANK) & (classes == BLANK))
    starts: dict[int, int] = {}
    before: dict[int, set[int]] = {}
    for texts, odd_bit in ((user, 0), (more, 1)):
        for text in texts:
            for d in range(1, len(text)):
                if allowed[text[d - 1], text[d]]:
                    pair = text[d - 1] << 8 | text[d]
                    starts[pair] = starts.get(pair, 0) | 1 << min(d, 63) | odd_bit
                    # an odd byte may become any byte before the pair: then only `crosses_path` can decide
                    known = d > 1 and not odd_bit
                    before.setdefault(pair, set()).add(text[d - 2] if known else cuts.ANY_BYTE)
                    for other in _written(pair, folded) if odd_bit else ():
                        starts[other] = starts.get(other, 0) | odd_bit
                        before.setdefault(other, set()).add(cuts.ANY_BYTE)
    data = b"".join([*user, *more])
    offsets = np.cumsum([0, *map(len, user), *map(len, more)], dtype=np.int64)
    pairs = sorted(starts)
    return rules.Paths(
        np.frombuffer(data, np.uint8),
        offsets,
        np.array(pairs, np.int64),
        np.array([before[pair].pop() if len(before[pair]) == 1 else cuts.ANY_BYTE for pair in pairs], np.int64),
        np.array([starts[pair] for pair in pairs], np.uint64),
        odd,
    )


def _written(pair: int, folded: dict[int, int]) -> list[int]:
    """The other pairs of bytes that case folding changes to this one."""
    left, right = ([byte, *(b for b, image in folded.items() if image == byte)] for byte in divmod(pair, 256))
    return [a << 8 | b for a in left for b in right][1:]


def _single_characters(lattice: VocabLattice) -> set[int]:
    """The code points that are tokens by themselves."""
    lengths = np.diff(lattice.texts.offsets)
    code, owner, _ = rules.characters(*lattice.texts, (lengths > 0) & (lengths <= 4))
    return set(code[np.bincount(owner, minlength=lengths.size)[owner] == 1].tolist())


class _Source:
    """The facts about characters that follow from the keys of the character map."""

    def __init__(self, keys: CharsmapKeys) -> None:
        everything = np.ones(keys.offsets.size - 1, bool)
        code, owner, bad = rules.characters(keys.data, keys.offsets, everything)
        image, image_owner, bad_image = rules.characters(keys.images, keys.image_offsets, everything)
        self.is_text = not (bad.any() or bad_image.any())
        count, first = np.bincount(owner, minlength=everything.size), np.append(True, owner[1:] != owner[:-1])
        images = np.bincount(image_owner, minlength=everything.size)
        self.long = count > 1
        self._first = code[first[: code.size]] if code.size else code
        starts = np.concatenate([[0], np.cumsum(images)])[:-1]
        self._image = np.where(images > 0, np.append(image, -1)[starts], -1) if self.is_text else self._first
        self._images, self._image_count, self._image_starts = image, images, starts
        self._second = code[np.minimum(np.flatnonzero(first[: code.size]) + 1, code.size - 1)] if code.size else code
        self._inner = code[~first[: code.size]]
        self.steps_per_byte = int(np.max(-(-images // np.maximum(np.diff(keys.offsets), 1)), initial=1))

    def image(self, byte: int) -> bytes | None:
        """The normal form of an ASCII character by itself, or None if no key is just this character."""
        for k in np.flatnonzero(~self.long & (self._first == byte)).tolist():
            at = self._image_starts[k]
            return "".join(map(chr, self._images[at : at + self._image_count[k]].tolist())).encode("utf-8", "replace")
        return None

    def folded(self, user: TokenTexts) -> dict[int, int]:
        """{letter: other} of the ASCII letters that always become another letter, which itself stays unchanged. Empty
        if a user-defined text, which is copied unchanged, contains such a letter."""
        inner, alone = np.append(self._inner, self._first[self.long & (self._second < 0x80)]), np.ones(0x80, bool)
        alone[inner[inner < 0x80]] = False
        mapped, letters = self.mapped()[:0x80], rules.class_of()[:0x80] == LETTER
        found: dict[int, int] = {}
        for byte in np.flatnonzero(mapped & letters & alone).tolist():
            image = self.image(byte)
            if image is not None and len(image) == 1 and letters[image[0]] and not mapped[image[0]]:
                found[byte] = image[0]
        return {} if any(byte in user.data for byte in found) else found

    def long_with(self, some: Iterable[int]) -> bool:
        """Whether a key of two characters or more contains one of these characters."""
        return bool(np.isin(self._inner, list(some)).any() or np.isin(self._first[self.long], list(some)).any())

    def mapped(self) -> NDArray[np.bool_]:
        """bool[0x110000]: characters that the map changes, or that are inside a longer key or begin one. An ASCII
        character that begins only longer keys whose second character is wide does not count."""
        found = np.zeros(UNICODE_SIZE, bool)
        changed = ~self.long & ~((self._image_count == 1) & (self._image == self._first))
        found[self._first[changed]] = True
        found[self._inner] = True
        found[self._first[self.long & ((self._first >= 0x80) | (self._second < 0x80))]] = True
        return found


def _class_pairs(lattice: VocabLattice) -> NDArray[np.int64]:
    """int64[2, n]: (pair of the classes LETTER, DIGIT and OTHER; row that contains such neighbors), without
    duplicates."""
    data, offsets = lattice.texts
    table = bytes(c if c in (LETTER, DIGIT, OTHER) else CLASSES for c in rules.class_of()[:128].tolist())
    classes = np.frombuffer(data.tobytes().translate(table + bytes([CLASSES]) * 128), np.uint8)
    within = (classes[:-1] != CLASSES) & (classes[1:] != CLASSES)
    within[offsets[1:-1][(offsets[1:-1] > 0) & (offsets[1:-1] < data.size)] - 1] = False
    at = np.flatnonzero(within)
    pair = CLASSES * classes[at].astype(np.int64) + classes[at + 1]
    rows = max(len(lattice.texts), 1)
    owner = np.searchsorted(offsets, at, "right") - 1
    there = np.zeros(CLASSES**2 * rows, np.bool_)  # for each pair and row: sorting is slower
    there[pair * rows + owner] = True
    return np.stack(np.divmod(np.flatnonzero(there), rows))


def to_look_for(
    lattice: VocabLattice, class_pairs: NDArray[np.int64], tokens: NDArray[np.bool_], few: int
) -> NDArray[np.bool_]:
    """The rows that the splitter searches for: user-defined tokens, and those among `tokens` that join a letter with
    another class in a way that at most `few` tokens do. None with a space: normalization adds and removes spaces."""
    pair, row = class_pairs
    left, right = np.divmod(pair, CLASSES)
    chosen = tokens[row] & (left != right) & ((left == LETTER) | (right == LETTER))
    pair, row = pair[chosen], row[chosen]
    found = lattice.user.copy()
    found[row[np.bincount(pair, minlength=CLASSES**2)[pair] <= few]] = True
    for k in np.flatnonzero(found).tolist():
        text = lattice.texts.text(k)
        known = text.isascii() or bool(lattice.user[k])  # neighbors of wide characters are in their flags
        found[k] = known and len(text) <= LONGEST_PATH and b" " not in text and SPACE_MARK_BYTES not in text
    return found


def _wide_flags(
    pairs: Neighbours, source: _Source, known: set[int], user: TokenTexts, merge: bool
) -> NDArray[np.uint8]:
    """Flags of wide characters; STICKY for all that are not inert, are unknown, or may be split by a user-defined
    token."""
    flags = rules.wide_flags(pairs)
    sticky = np.ones(UNICODE_SIZE, bool)
    sticky[sorted(known)] = False
    sticky |= source.mapped()
    firsts = {byte for byte in user.data.tolist() if byte >= 0xC0}
    for byte in firsts:
        low, high = _range_of(byte)
        sticky[low:high] = True
    if merge:
        sticky[SPACE_MARK_CODE] = True
        flags |= cuts.LEFT_BLANK
    flags[sticky] |= cuts.JOINS | cuts.STICKY
    if not merge and not sticky[SPACE_MARK_CODE]:
        flags[SPACE_MARK_CODE] = cuts.LIKE_BLANK
    return flags


def _range_of(byte: int) -> tuple[int, int]:
    """Code points whose UTF-8 begins with this byte."""
    size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
    low = (byte & (0x7F >> size)) << 6 * (size - 1)
    return low, low + (1 << 6 * (size - 1))


def _class_cuts(
    pairs: Neighbours, source: _Source, known: set[int], folded: dict[int, int], blanks: list[int], merge: bool
) -> tuple[NDArray[np.bool_], list[int]]:
    """(bool[CLASSES, CLASSES] whether two classes may be cut apart, the bytes of class TIED)."""
    never = np.zeros((CLASSES, CLASSES), bool)
    mapped = np.flatnonzero(source.mapped()[:0x80])
    kinds = rules.class_of((), blanks)
    odd = [b for b in mapped.tolist() if kinds[b] in (LETTER, DIGIT, OTHER) and b not in folded]
    odd_control = any(kinds[b] == CONTROL for b in mapped.tolist())
    if merge:
        never[: WIDE + 1, BLANK] = True  # but blanks are never cut from what follows
        never[BLANK, BLANK] = False
    if len(odd) > cuts.APART_BYTES:
        return never, []
    table = rules.pair_table(pairs)
    apart = odd + rules.choose_apart(table, [*odd, *blanks])[: cuts.APART_BYTES - len(odd)]
    classes = rules.class_of(apart, blanks)
    tied = rules.tied_classes(table, classes)
    members = [np.flatnonzero(classes[:0x80] == c).tolist() for c in range(CLASSES)]
    whole = [known.issuperset(folded.get(b, b) for b in each) for each in members]
    plain = [LETTER, DIGIT, OTHER] + ([TIED] if not odd else []) + ([CONTROL] if not odd_control and not merge else [])
    cut = never.copy()
    for a in plain:
        for b in plain:
            cut[a, b] = not tied[a, b] and (whole[a] or whole[b])
    if not merge:
        for a in [*plain, WIDE]:
            cut[a, BLANK] = not tied[a, BLANK]
        for b in plain:
            cut[BLANK, b] = not tied[BLANK, b]
        # The blanks here are spaces; other characters that become spaces are never cut from anything.
        cut[BLANK, BLANK] = not tied[BLANK, BLANK]
    return cut, apart


def dominated(lattice: VocabLattice, class_pairs: NDArray[np.int64], margin: float = 0.0) -> NDArray[np.int64]:
    """Rows of tokens that no best path contains, among those that join ASCII classes which hardly any token joins.

    Such a token is dominated: other tokens spell the same text with a sum that is higher by more than `margin`, so any
    path with it can be improved. Examples are placeholders such as "[PAD250001]" with a score of -10000, which would
    prevent most cuts. Only tokens of up to SHORT_TOKEN_BYTES with a pair of classes that at most RARE_TOKENS have are
    tested, the shortest first. A token that is missed costs speed, but changes no id.
    """
    found, lengths = class_pairs, np.diff(lattice.texts.offsets)
    rare = np.flatnonzero(np.bincount(found[0], minlength=1) <= RARE_TOKENS)
    candidates = distinct(found[1][np.isin(found[0], rare)]).tolist()
    candidates = [k for k in candidates if 4 < lengths[k] <= SHORT_TOKEN_BYTES and lattice.texts.text(k).isascii()]
    candidates.sort(key=lambda k: int(lengths[k]))
    steps = np.cumsum(lengths[candidates] ** 2 // 2)
    candidates = candidates[: int(np.searchsorted(steps, STEPS_PER_BYTE * lattice.texts.data.size + LEAST_STEPS))]
    if not candidates:
        return np.zeros(0, np.int64)
    longest = int(lengths[candidates].max())
    blob, starts = lattice.texts.data.tobytes(), lattice.texts.offsets
    rows = np.flatnonzero(lengths <= longest)
    positions = zip(rows.tolist(), starts[rows].tolist(), starts[rows + 1].tolist(), strict=True)
    alive = {blob[start:stop]: k for k, start, stop in positions}
    gone = []
    for k in candidates:
        text = lattice.texts.text(k)
        best = [0.0] + [-np.inf] * len(text)
        for i in range(len(text)):
            for j in range(i + 1, len(text) + 1):
                row = alive.get(text[i:j])
                if row is not None and row != k and best[i] + float(lattice.scores[row]) > best[j]:
                    best[j] = best[i] + float(lattice.scores[row])
        if best[-1] > float(lattice.scores[k]) + margin:
            del alive[text]
            gone.append(k)
    return np.array(gone, np.int64)


def exact_bytes(lattice: VocabLattice, left_out: NDArray[np.int64], steps_per_byte: int) -> int:
    """The longest fragment, in bytes, for which no sum of scores rounds in float64.

    float32 scores are multiples of some 2 ** -q, and float64 holds multiples of 2 ** -q exactly below 2 ** (53 - q).
    Dominated tokens (`left_out`) are still added to some sums, but never twice on one path.
    """
    kept = np.ones(lattice.scores.size, bool)
    kept[left_out] = False
    every = np.abs(np.append(lattice.scores.astype(np.float64), lattice.unk_score))
    if not np.isfinite(every).all():
        return NEVER
    mantissa, exponent = np.frexp(every[every > 0])
    bits = (mantissa * 2**24).astype(np.int64)  # a float32 has 24 significant bits
    trailing = np.log2(bits & -bits).astype(np.int64)
    q = int(np.max(24 - exponent - trailing, initial=0))
    once = float(np.max(every[:-1][~kept], initial=0.0))
    most = max(1.0, float(np.max(every[:-1][kept], initial=0.0)), float(every[-1]))
    steps = (2.0 ** (53 - q) - once) / most - 1
    return max(NEVER, min(int(steps // (steps_per_byte + 1)), 1 << 31))
