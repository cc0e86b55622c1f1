"""Everything jittok raises. Messages say where, what was found, and what would be right.

An option has two names: `append_eos` in Python, `--append-eos` on the command line. Whoever raises writes the second.
`str(error)` has the first, `error.on_command_line` the second.

JittokError
├── MalformedVocab    (ValueError)  file, key, found, expected
├── UnsupportedVocab  (ValueError)  file, key, found, expected
├── EncodingFailed    (ValueError)  document, offset, found, expected
├── InvalidToken      (IndexError)  token, vocab_size
├── MalformedArray    (ValueError)  where, found, expected
├── CorpusError       (ValueError)  where, found, expected
├── CompilerMissing   (ImportError) what, reason
└── UnsupportedMachine (ImportError) found, expected
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

IN_MEMORY = "vocabulary in memory"
"""The source of a vocabulary that came from no file, where a message or a field names it."""


# as texts: every start would wait for compiling them
_OPTION = r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)"
_WITH_VALUE = r"(?<![\w-])--(engine|input-format|llama-cpp|on-error|pre) (\w[\w.]*\w)"
_SAME = (
    "alphabet append-eos bos by cache-bytes column dtype engine eos explain field like limit-alphabet llama-cpp "
    "max-document-bytes max-token-length memory min-frequency normalization on-error out pad pre pre-regex range-bytes "
    "sample separator shard-bytes size special unk weight work"
)
IN_PYTHON = {
    **{name: name.replace("-", "_") for name in _SAME.split()},
    "format": "formats",
    "hashes-only": "hashes_only=True",
    "held-out": "texts",
    "input-format": "kind",
    "lines": "lines=True",
    "no-space-check": "check_space=False",
    "save-words": "Counts.save",
}
"""Options of the command line that messages name, and what Python calls them."""


def in_python(text: str) -> str:
    """A text with the options of the command line under the names that they have in Python."""
    text = re.sub(_WITH_VALUE, lambda found: f"{IN_PYTHON[found[1]]}={found[2]!r}", text)
    return re.sub(_OPTION, lambda found: IN_PYTHON.get(found[1], found[0]), text)


def _place_in_python(where: str) -> str:
    return in_python(where) if where.startswith("--") else where  # else it is a file, whose name stays


class JittokError(Exception):
    """Base of every error of this package."""

    on_command_line: str | None = None
    """What it says with the options of the command line; None: what `str` says."""


def check_local(out: str | os.PathLike[str], where: str) -> None:
    """CorpusError for an output that is no place of this machine, where a URL would become a folder of that name."""
    name = os.fsdecode(out)
    if "://" in name or re.match(r"(s3|gs|gcs|az|abfss?|hdfs|https?|hf):/", name):  # pathlib makes one stroke of two
        raise CorpusError(where, name, "a local path (write there, then copy it to the store)")


def missing(what: str, package: str, extra: str) -> ImportError:
    """The error for something that needs a package of an extra that is not installed."""
    return ImportError(f"{what} needs {package}: pip install '.[{extra}]' in a checkout of jittok", name=package)


def refuse_keywords(call: Callable[..., Any], given: Mapping[str, object]) -> NoReturn:
    """TypeError for keywords that a call does not have; it says what to write."""
    from jittok.hints import unknown_keyword  # which an import of jittok does without

    raise TypeError(unknown_keyword(call, given))


def _clip(found: object, width: int = 120) -> str:
    shown = "nothing" if found is None else repr(found)
    return shown if len(shown) <= width else f"{shown[:width]}… ({len(shown)} characters)"


class InWords(str):
    """Something found that is told in words already: messages show it without quotes, and print what can be printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in self)


class MalformedVocab(JittokError, ValueError):
    """A vocabulary or tokenizer file that cannot be right: its own library refuses it too, or dies on it."""

    def __init__(self, file: str, key: str, found: object, expected: str) -> None:
        super().__init__(f"{file}: {key}: found {_clip(found)}, expected {expected}")
        self.file, self.key, self.found, self.expected = file, key, found, expected

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.file, self.key, self.found, self.expected)


class UnsupportedVocab(JittokError, ValueError):
    """A vocabulary that may be right but is of a kind this version does not know, or cannot tokenize at all.

    `file` is empty where an option is at fault: `key` is the option.
    """

    def __init__(self, file: str, key: str, found: object, expected: str) -> None:
        self._given = file, key, found, expected
        where = f"{file}: {key}" if file else key
        location, right = _place_in_python(where), in_python(expected)
        super().__init__(f"{location}: found {_clip(found)}, expected {right}")
        self.on_command_line = f"{where}: found {_clip(found)}, expected {expected}"
        self.file, self.key, self.found, self.expected = file, key if file else location, found, right

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


class EncodingFailed(JittokError, ValueError):
    """A document that cannot be encoded. `offset`: bytes from its start (characters for a lone surrogate in a str)."""

    def __init__(self, document: int, offset: int, found: object, expected: str) -> None:
        super().__init__(f"document {document}, offset {offset}: found {_clip(found)}, expected {expected}")
        self.document, self.offset, self.found, self.expected = document, offset, found, expected

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.document, self.offset, self.found, self.expected)


class InvalidToken(JittokError, IndexError):
    """An id outside the vocabulary."""

    def __init__(self, token: int, vocab_size: int) -> None:
        super().__init__(f"token {token}: expected 0 <= id < {vocab_size}")
        self.token, self.vocab_size = token, vocab_size

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.token, self.vocab_size)


class MalformedArray(JittokError, ValueError):
    """An array of texts or ids whose places lead outside of its memory, or whose memory is too short."""

    def __init__(self, where: str, found: object, expected: str) -> None:
        super().__init__(f"{where}: found {_clip(found)}, expected {expected}")
        self.where, self.found, self.expected = where, found, expected

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.where, self.found, self.expected)


class CorpusError(JittokError, ValueError):
    """A corpus that cannot be read, written or continued; `where` is a file, a line or an option."""

    def __init__(self, where: str, found: object, expected: str) -> None:
        self._given = where, found, expected
        location, right = _place_in_python(where), in_python(expected)
        super().__init__(f"{location}: found {_clip(found)}, expected {right}")
        self.on_command_line = f"{where}: found {_clip(found)}, expected {expected}"
        self.where, self.found, self.expected = location, found, right

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


class CompilerMissing(JittokError, ImportError):
    """Something that must be compiled, where Numba and llvmlite are not installed."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(
            f"{what}: found neither precompiled machine code ({reason}) nor Numba, expected one of them: "
            "pip install numba",
            name="numba",
        )
        self.what, self.reason = what, reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.reason)


class UnsupportedMachine(JittokError, ImportError):
    """A machine, or a Python, whose words are not those that the kernels are written for."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"jittok cannot run here: found {found}, expected {expected}", name="jittok")
        self.found, self.expected = found, expected

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.found, self.expected)


def check_machine(byteorder: str, maxsize: int) -> None:
    """UnsupportedMachine for what `sys.byteorder` and `sys.maxsize` of the kernels' machines are not.

    Tables hold words of 64 bits whose first byte is the least; elsewhere they would be read wrongly, without a word.
    """
    if byteorder != "little":
        raise UnsupportedMachine(f"a {byteorder}-endian machine", "a little-endian one, such as x86-64 or arm64")
    if maxsize < 1 << 62:
        bits = maxsize.bit_length() + 1
        raise UnsupportedMachine(f"a {bits}-bit Python", "a 64-bit build of Python")
