"""Every exception that jittok raises. A message gives the place, what was found, and what was expected.

A message ends with the page that says more, where one does (`PAGES`).

An option has two spellings: `append_eos` in Python, `--append-eos` on the command line. Code raises with the second;
`str(error)` translates to the first, and `error.on_command_line` keeps the second.

JittokError
├── MalformedVocab    (ValueError)  file, key, found, expected
├── UnsupportedVocab  (ValueError)  file, key, found, expected
├── EncodingFailed    (ValueError)  document, offset, found, expected
├── InvalidToken      (IndexError)  token, vocab_size
├── MalformedArray    (ValueError)  where, found, expected
├── CorpusError       (ValueError)  where, found, expected
├── ChatError         (ValueError)  where, found, expected
│   ├── MarksLost                   a step of a template makes text of unknown origin
│   ├── MixedToken                  offset, token: partly of literal text
│   └── TemplateError               line of the template
├── CompilerMissing   (ImportError) what, reason
└── UnsupportedMachine (ImportError) found, expected
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, NoReturn

PAGES = {
    "cache": "docs/questions.md#a-cache-folder-is-not-used",
    "compiler": "docs/install.md#images-without-the-compiler",
    "extra": "docs/install.md",
    "file": "docs/questions.md#a-file-is-refused",
    "release": "docs/questions.md#the-same-text-has-other-ids-since-an-upgrade",
    "template": "docs/questions.md#a-chat-template-is-refused",
    "unfinished": "docs/corpus.md#why-a-crash-loses-nothing",
}
"""What an error is about -> the page that says more of it, in a checkout and on the site. All others say all."""


def see(about: str) -> str:
    """The end of a message: its page.

    Examples:
        >>> see("extra")
        ' (see docs/install.md)'

    """
    return f" (see {PAGES[about]})"


IN_MEMORY = "vocabulary in memory"
"""The source that messages and fields show for a vocabulary that was not read from a file."""


# strings, not compiled patterns: compiling them would slow down every start
_OPTION = r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)"
_WITH_VALUE = r"(?<![\w-])--(engine|input-format|llama-cpp|on-error|pre) (\w[\w.]*\w)"
_SAME = (
    "alphabet append-eos bos by cache-bytes column dtype engine eos explain field join keep learn like "
    "limit-alphabet llama-cpp max-document-bytes max-token-length memory messages min-frequency normalization now "
    "on-error out pad pre pre-regex range-bytes sample separator shard-bytes shuffle-documents size special template "
    "tools train-val trusted unk weight work"
)
IN_PYTHON = {
    **{name: name.replace("-", "_") for name in _SAME.split()},
    "format": "formats",
    "hashes-only": "hashes_only=True",
    "held-out": "texts",
    "input-format": "kind",
    "lines": "lines=True",
    "no-space-check": "check_space=False",
    "part": "part",
    "parts": "parts",
    "save-words": "Counts.save",
    "variable": "variables",
    "vocab": "tok",
}
"""Command-line options that occur in messages -> their names in Python."""


# parameters of a query, or after #, whose values let others in
_PARAMETER = r"[?&#;][\w.%-]*(?:sig|signature|token|secret|passwd|password|key|auth|authorization|jwt|credentials?)="
_USER = r"(?<=\bhttp://)[^\s/?#]*@|(?<=\bhttps://)[^\s/?#]*@|(?<=://)[^\s/?#]*:[^\s/?#]*@"
_END = r"\S*?(?=[,:;)\]\"'>]*(?:\s|$))"


def has_secret(url: str) -> bool:
    """Whether a URL has what nobody else should see: a user or password of HTTP, or a parameter that lets others in.

    Examples:
        >>> has_secret("https://me@host/a.jsonl"), has_secret("https://host/a.jsonl?sig=x"), has_secret("s3://b/a")
        (True, True, False)

    """
    return re.search(f"{_USER}|{_PARAMETER}", "".join(url.split()), re.IGNORECASE) is not None


def masked(text: str) -> str:
    """A text whose URLs have no users and passwords, no queries of HTTP, and no parameters that let others in.

    Examples:
        >>> masked("https://me:secret@host/a.jsonl?sig=x, line 3")
        'https://…@host/a.jsonl?…, line 3'

    """
    if "://" not in text:
        return text
    text = re.sub(_USER, "…@", text, flags=re.IGNORECASE)
    text = re.sub(rf"(?i)(\bhttps?://[^\s?#]*[?#]){_END}", r"\1…", text)
    return re.sub(rf"(?i)(://\S*?{_PARAMETER}){_END}", r"\1…", text)


def in_python(text: str) -> str:
    """Replace the command-line options in a text with their Python names."""
    text = text.replace("--template FILE", "template=TEXT")
    text = re.sub(_WITH_VALUE, lambda found: f"{IN_PYTHON[found[1]]}={found[2]!r}", text)
    return re.sub(_OPTION, lambda found: IN_PYTHON.get(found[1], found[0]), text)


def _place_in_python(where: str) -> str:
    return in_python(where) if where.startswith("--") else where  # otherwise a file name, which is kept


class JittokError(Exception):
    """Base class of all exceptions of this package."""

    on_command_line: str | None = None
    """The message with command-line spellings of options; None if it is the same as `str(error)`."""


def check_local(out: str | os.PathLike[str], where: str) -> None:
    """Raise CorpusError if an output is a URL, which would otherwise become a local folder of that name."""
    name = os.fsdecode(out)
    if "://" in name or re.match(r"(s3|gs|gcs|az|abfss?|hdfs|https?|hf):/", name):  # pathlib turns // into /
        raise CorpusError(where, name, "a local path (write there, then copy it to the store)")


def missing(what: str, package: str, extra: str) -> ImportError:
    """The ImportError for a missing package of an optional extra."""
    said = f"{what} needs {package}: pip install '.[{extra}]' in a checkout of jittok"
    return ImportError(said + see("extra"), name=package)


class NotCalled(ModuleType):
    """A package that has the name of a method of `Tokenizer`."""

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raise a TypeError that says what to write."""
        from jittok.common.hints import ATTRIBUTES

        raise TypeError(
            f"{self.__name__} is a package, found it called: {ATTRIBUTES[self.__name__.rpartition('.')[2]]}"
        )


def refuse_keywords(call: Callable[..., Any], given: Mapping[str, object], more: Iterable[str] = ()) -> NoReturn:
    """Raise TypeError for unknown keywords, with a hint what to write instead. more: keywords that the call has and its
    signature does not list."""
    from jittok.common.hints import unknown_keyword  # not needed by `import jittok`

    raise TypeError(unknown_keyword(call, given, more))


def _clip(found: object, width: int = 120) -> str:
    shown = "nothing" if found is None else repr(found)
    return shown if len(shown) <= width else f"{shown[:width]}… ({len(shown)} characters)"


class InWords(str):
    """A description of what was found. Messages show it without quotes; unprintable characters are escaped."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in self)


class MalformedVocab(JittokError, ValueError):
    """An invalid vocabulary or tokenizer file, which its own library also rejects or crashes on."""

    def __init__(self, file: str, key: str, found: object, expected: str) -> None:
        super().__init__(f"{file}: {key}: found {_clip(found)}, expected {expected}")
        self.file, self.key, self.found, self.expected = file, key, found, expected

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.file, self.key, self.found, self.expected)


class UnsupportedVocab(JittokError, ValueError):
    """A vocabulary that may be valid, but that this version of jittok does not support.

    `file` is empty if an option is at fault; `key` is then the option.
    """

    def __init__(self, file: str, key: str, found: object, expected: str) -> None:
        self._given = file, key, found, expected
        where = f"{file}: {key}" if file else key
        location, right = _place_in_python(where), in_python(expected)
        page = see("file") if file else ""
        super().__init__(f"{location}: found {_clip(found)}, expected {right}{page}")
        self.on_command_line = f"{where}: found {_clip(found)}, expected {expected}{page}"
        self.file, self.key, self.found, self.expected = file, key if file else location, found, right

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


class EncodingFailed(JittokError, ValueError):
    """A document that cannot be encoded. `offset` counts bytes (characters for a lone surrogate in a str)."""

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
    """An array of texts or ids with offsets outside its buffer, or with a buffer that is too short."""

    def __init__(self, where: str, found: object, expected: str) -> None:
        super().__init__(f"{where}: found {_clip(found)}, expected {expected}")
        self.where, self.found, self.expected = where, found, expected

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.where, self.found, self.expected)


class CorpusError(JittokError, ValueError):
    """A corpus that cannot be read, written or resumed; `where` is a file, a line or an option."""

    def __init__(self, where: str, found: object, expected: str) -> None:
        where = masked(where)
        if isinstance(found, str):
            found = type(found)(masked(found))
        self._given = where, found, expected
        location, right = _place_in_python(where), in_python(expected)
        super().__init__(f"{location}: found {_clip(found)}, expected {right}")
        self.on_command_line = f"{where}: found {_clip(found)}, expected {expected}"
        self.where, self.found, self.expected = location, found, right

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


class ChatError(JittokError, ValueError):
    """A chat that cannot be rendered or encoded; `where` is a message, a template or an option."""

    about = ""
    """A key of PAGES."""

    def __init__(self, where: str, found: object, expected: str) -> None:
        self._given = where, found, expected
        location, right = _place_in_python(where), in_python(expected)
        page = see(self.about) if self.about else ""
        super().__init__(f"{location}: found {_clip(found)}, expected {right}{page}")
        self.on_command_line = f"{where}: found {_clip(found)}, expected {expected}{page}"
        self.where, self.found, self.expected = location, found, right

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


class MarksLost(ChatError):
    """A step of a chat template makes text of which it is not known from which message it came."""

    about = "template"


class TemplateError(ChatError):
    """A chat template that is invalid, that refuses a chat, or that goes beyond a bound. `line`: in the template."""

    about = "template"

    def __init__(self, where: str, found: object, expected: str, line: int | None = None) -> None:
        super().__init__(where, found, expected)
        self.line = line

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self._given, self.line)


class MixedToken(ChatError):
    """A special token whose text is partly literal (see `Tokenizer.encode`). `offset`: bytes; `token`: its text."""

    def __init__(self, offset: int, token: bytes) -> None:
        found = InWords(f"{token.decode(errors='replace')!r}, of which a part is literal text")
        super().__init__(f"byte {offset}", found, "special tokens whose text is all literal, or not at all")
        self.offset, self.token = offset, token

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.offset, self.token)


class CompilerMissing(JittokError, ImportError):
    """Code that must be compiled, while Numba and llvmlite are not installed."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(
            f"{what}: found neither precompiled machine code ({reason}) nor Numba, expected one of them: "
            "pip install numba" + see("compiler"),
            name="numba",
        )
        self.what, self.reason = what, reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.what, self.reason)


class UnsupportedMachine(JittokError, ImportError):
    """An unsupported platform: kernels need a little-endian machine and a 64-bit Python."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"jittok cannot run here: found {found}, expected {expected}", name="jittok")
        self.found, self.expected = found, expected

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.found, self.expected)


def check_machine(byteorder: str, maxsize: int) -> None:
    """Raise UnsupportedMachine unless `sys.byteorder` and `sys.maxsize` are those of a little-endian 64-bit platform.

    Tables hold little-endian 64-bit words; other platforms would silently read them wrongly.
    """
    if byteorder != "little":
        raise UnsupportedMachine(f"a {byteorder}-endian machine", "a little-endian one, such as x86-64 or arm64")
    if maxsize < 1 << 62:
        bits = maxsize.bit_length() + 1
        raise UnsupportedMachine(f"a {bits}-bit Python", "a 64-bit build of Python")
