"""Steps of a Pipeline as data: of normalizers, of splitters, of decoders.

Normalizers rewrite a piece of text. Splitters cut pieces into words; each stage gets every word of the stage before as
a text of its own. Decoders turn a list of token texts to a list of texts, which are joined at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from jittok.common.record import Record

if TYPE_CHECKING:
    from jittok.common.unicode.libraries import Form

ONIG, CRATE = "onig", "crate"
"""Engines of regular expressions: Oniguruma (tokenizers; tiktoken's fancy-regex agrees), and Rust's regex crate. Those
of llama.cpp are named in `jittok.kernels.pretokenize.records`."""
ISOLATED, REMOVED, CONTIGUOUS = "isolated", "removed", "contiguous"
MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT = "merged_with_previous", "merged_with_next"
BEHAVIORS = (ISOLATED, REMOVED, CONTIGUOUS, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT)
"""What becomes of the matches of a pattern that words are cut by."""
ALWAYS, FIRST, NEVER = "always", "first", "never"
SCHEMES = (ALWAYS, FIRST, NEVER)
"""When U+2581 is put before a piece."""
BYTE_ALPHABET, SPACES, ESCAPES, TEXT, ID = "byte alphabet", "spaces", "escapes", "text", "id"
"""What a token of llama.cpp prints."""


class Pattern(Record):
    """What is searched for: a literal text, or a regular expression."""

    text: str
    literal: bool = False
    engine: str = ONIG


# ---- normalizers


class Map(Record):
    """Each character becomes a text, by a map of `jittok.common.unicode.libraries`."""

    name: str


class Compose(Record):
    """A normal form, by tables that leave alone what is newer than Unicode 10."""

    form: Form


class Clusters(Record):
    """sentencepiece's character map as tokenizers applies it: grapheme clusters of under 6 bytes by the shortest key
    that they begin with, else each character so."""

    charsmap: NDArray[np.uint8]


class Replace(Record):
    """All matches, from the left. Nothing is found in a piece without characters."""

    pattern: Pattern
    content: str


class Prepend(Record):
    """A text before each piece that is not empty. Before an empty text, the first character counts as what the
    document begins with."""

    text: str


class Strip(Record):
    """White space at the ends."""

    left: bool
    right: bool


class SpellBytes(Record):
    """Each byte becomes a character of the byte alphabet. A normalizer, or the last stage of a splitter."""


class Squeeze(Record):
    """sentencepiece's normalizer: user-defined pieces, then the longest key of the character map, then spaces."""

    charsmap: NDArray[np.uint8]
    prefix: bool  # a space before, or after with `suffix`
    squeeze: bool  # leading, doubled and trailing spaces go
    escape: bool  # a space becomes U+2581
    suffix: bool


# ---- normalizers of llama.cpp, over bytes that need not be UTF-8


class ReadUtf8(Record):
    """Bytes are read as code points, and what is invalid UTF-8 becomes U+FFFD. With `shortest`, each byte of an
    overlong form is invalid UTF-8, too; without it, such a form is the code point that it stands for."""

    shortest: bool


class PrependBehindSpecial(Record):
    """A text before a piece that is at the beginning or after a special token."""

    text: str


class BeginLines(Record):
    """A text before each line that does not begin so."""

    text: str


class Lowercase(Record):
    """Lower case by the tables of llama.cpp."""


class ComposeAll(Record):
    """NFC by the tables of llama.cpp."""


class SqueezeLlama(Record):
    """llama.cpp's normalizer of Unigram: user-defined tokens, the longest key of the character map, then spaces."""

    charsmap: NDArray[np.uint8]
    prefix: bool  # a space before, or after with `suffix`
    squeeze: bool  # spaces in a row are one; the text begins with one
    escape: bool  # a space becomes U+2581
    suffix: bool
    shortest: bool  # as for ReadUtf8


# ---- splitters


class PrefixSpace(Record):
    """A space before a piece that does not begin with one."""


class Cut(Record):
    """Words by a pattern."""

    pattern: Pattern
    behavior: str
    invert: bool = False  # matches and what lies between change places


class CutClass(Record):
    """Words by the characters of a set of `jittok.common.unicode.libraries`, each a match."""

    name: str
    behavior: str


class CutScripts(Record):
    """Words of one script each, by `libraries.scripts`. A character of any script belongs to the word before it, and is
    dropped where there is none."""


class CutSomeScripts(CutScripts):
    """The same as kernels run it, in two stages: each knows the scripts from `first` on and below `stop`, and takes all
    others for one. After each other they cut as CutScripts."""

    first: int
    stop: int


class Metaspace(Record):
    """Spaces become `mark`, one is put before by `scheme`, and `split` cuts before each."""

    mark: str
    scheme: str
    split: bool


class Chars(Record):
    """Words of so many characters."""

    size: int


# ---- splitters of llama.cpp


class CutWhite(Record):
    """Words are what is between white space."""


class BertWords(Record):
    """BERT's words: code points normalized one by one, words at white space, punctuation and ideographs, each with
    U+2581 before."""

    lowercase: bool
    strip_accents: bool
    shortest: bool  # as for ReadUtf8


class Kmers(Record):
    """Between `begin` and `end` each `size` letters are a token, `unknown` if there is none of them."""

    begin: int
    end: int
    unknown: int
    size: int


class PlamoSegments(Record):
    """What is searched alone. PLaMo-2: all but a byte order mark before. PLaMo-3 (`runs`): what is around control
    sequences and long runs of one character."""

    runs: bool
    shortest: bool  # as for ReadUtf8


# ---- decoders


class JoinBytes(Record):
    """Tokens in the byte alphabet to bytes, read as UTF-8; one with another character stands for its UTF-8."""


class JoinFallback(Record):
    """Runs of <0xXX> to text; U+FFFD a byte where the run is invalid UTF-8."""


class Fuse(Record):
    """All tokens to one."""


class ReplaceEach(Record):
    """All matches in each token. Nothing is found in a token without characters."""

    pattern: Pattern
    content: str


class Unmark(Record):
    """`mark` becomes a space; in the first token nothing, unless `keep_first`."""

    mark: str
    keep_first: bool


class StripEach(Record):
    """Up to so many `content` characters at the ends of each token."""

    content: str
    start: int
    stop: int


class JoinWords(Record):
    """WordPiece: a space between tokens, but for those with the prefix, which goes."""

    prefix: str
    cleanup: bool


class Unsuffix(Record):
    """The suffix becomes a space, in the last token nothing."""

    suffix: str


class Ctc(Record):
    """Equal neighbors are one, padding goes, the delimiter is a space."""

    pad: str
    delimiter: str
    cleanup: bool


class Spaced(Record):
    """No decoder: tokens joined by spaces."""


class JoinPieces(Record):
    """sentencepiece's."""

    trim_first: bool  # a U+2581 that the text begins with goes
    squeezed: bool  # every U+2581 until there is text
    unknown: str  # what an unknown piece prints


class Trim(Record):
    """White space at the ends of each token goes."""


class JoinRaw(Record):
    """Tokens are bytes."""


class JoinRawBetweenSpecial(JoinRaw):
    """The same, but what is between special tokens is read as UTF-8 alone."""


class JoinLlama(Record):
    """llama.cpp's detokenizer: what each token prints, one after the other."""

    prints: str  # BYTE_ALPHABET, SPACES (U+2581 is one), ESCAPES (of RWKV), TEXT or ID
    strip_first: bool  # a space that the text begins with goes
    clean_spaces: bool  # spaces before punctuation and contractions go


Normalizer = (
    Map | Compose | Clusters | Replace | Prepend | Strip | SpellBytes | Squeeze
    | ReadUtf8 | PrependBehindSpecial | BeginLines | Lowercase | ComposeAll | SqueezeLlama
)  # fmt: skip
Splitter = (
    PrefixSpace | Cut | CutClass | CutScripts | Metaspace | Chars | SpellBytes
    | CutWhite | BertWords | Kmers | PlamoSegments | BeginLines | ReadUtf8
)  # fmt: skip
Decoder = (
    JoinBytes | JoinFallback | Fuse | ReplaceEach | Unmark | StripEach | JoinWords | Unsuffix | Ctc | Spaced
    | JoinPieces | Trim | JoinRaw | JoinRawBetweenSpecial | JoinLlama
)  # fmt: skip
