"""jittok: exact and fast tokenization of large corpora with the tokenizers of open models.

Names and modules are imported when first used. The first load of a vocabulary imports NumPy, but not numba, llvmlite,
regex or pyarrow; the first text imports the encoder; Numba is imported only if something must be compiled.
"""

import sys  # built-in modules only, until the command line handles Ctrl-C

TYPE_CHECKING = False  # as in typing, which is slow to import


def _told(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    """Excepthook of the command line: report Ctrl-C in one line."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    if sys.stderr is not None:
        sys.stderr.write("jittok: interrupted\n")
    raise SystemExit(130)


def _is_command() -> bool:
    """Whether this process is the command line: `jittok ...` or `python -m jittok ...`. Others keep their hooks.

    While Python searches for the module of -m, argv is "-m" and what follows the module's name; orig_argv has the
    name."""
    argv, given = getattr(sys, "argv", None), sys.orig_argv
    if not argv:
        return False
    if argv[0] == "-m":
        module = given[-len(argv)] if len(argv) <= len(given) else ""
        return module in ("jittok", "jittok.__main__") or (module[:1] == "-" and module.endswith("mjittok"))
    return argv[0].replace("\\", "/").rpartition("/")[2] in ("jittok", "jittok.exe")


if _is_command():
    sys.excepthook = _told  # Python imports the package before it runs a line of __main__

if sys.byteorder != "little" or sys.maxsize < 1 << 62:
    from jittok.errors import check_machine

    check_machine(sys.byteorder, sys.maxsize)
if not getattr(sys, "_is_gil_enabled", lambda: True)():
    from jittok.errors import UnsupportedMachine

    raise UnsupportedMachine(
        "a free-threaded Python without the GIL", "the GIL (jittok is not tested without it): set PYTHON_GIL=1"
    )

import jittok.common.locks  # noqa: E402, F401  a fork may come amid the first call of another thread

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Protocol, overload

    from jittok.common.display.progress import Show as _Show
    from jittok.common.rows import Ragged, TokenArray
    from jittok.compare import Comparison as _Comparison
    from jittok.compare import Parting as _Parting
    from jittok.compare import compare as _compare
    from jittok.compare.api import Named as _Named
    from jittok.compare.machines import Machines as _Machines
    from jittok.convert import Converted as _Converted
    from jittok.convert import convert as _convert
    from jittok.errors import (
        CompilerMissing,
        CorpusError,
        EncodingFailed,
        InvalidToken,
        JittokError,
        MalformedArray,
        MalformedVocab,
        UnsupportedMachine,
        UnsupportedVocab,
    )
    from jittok.kernels.inputs import Errors as _Errors
    from jittok.kernels.inputs import Texts as _Texts
    from jittok.tokenizer import Tokenizer
    from jittok.tokenizer.loading import bundled, load
    from jittok.tokenizer.objects import from_sentencepiece, from_tiktoken, from_tokenizers, from_transformers
    from jittok.train import Counts as _Counts
    from jittok.train import How as _How
    from jittok.train import Options as _Options
    from jittok.train import Trained as _Trained
    from jittok.train import count as _count
    from jittok.train import train as _train
    from jittok.train.counting.files import count_files as _count_files
    from jittok.vocab import Vocab, bundled_names, read_vocab

    class _Comparing(Protocol):
        @overload
        def __call__(
            self,
            a: _Named,
            b: _Named,
            texts: None = None,
            *,
            by_id: bool = ...,
            threads: int | None = ...,
            progress: _Show = ...,
        ) -> _Machines: ...
        @overload
        def __call__(
            self, a: _Named, b: _Named, texts: _Texts, *, by_id: bool = ..., add_special: bool = ...,
            parse_special: bool = ..., errors: _Errors = ...,  # noqa: F811
            threads: int | None = ..., progress: _Show = ...,
        ) -> _Comparison: ...  # fmt: skip

    class _Compare(_Comparing):
        """The module `jittok.compare`, which can be called."""

        Comparison = _Comparison
        Parting = _Parting
        compare = staticmethod(_compare)

    class _Convert:
        """The module `jittok.convert`, which can be called."""

        Converted = _Converted
        convert = staticmethod(_convert)
        __call__ = staticmethod(_convert)

    class _Train:
        """The module `jittok.train`, which can be called."""

        Counts = _Counts
        How = _How
        Options = _Options
        Trained = _Trained
        count = staticmethod(_count)
        count_files = staticmethod(_count_files)
        train = staticmethod(_train)
        __call__ = staticmethod(_train)

    compare: _Compare
    convert: _Convert
    train: _Train

    from jittok import arrow, chat, compat, corpus, errors, plot, polars, ray, tokenizer, vocab  # noqa: F401

__version__ = "0.2.0"
__all__ = [
    "CompilerMissing",
    "CorpusError",
    "EncodingFailed",
    "InvalidToken",
    "JittokError",
    "MalformedArray",
    "MalformedVocab",
    "Ragged",
    "TokenArray",
    "Tokenizer",
    "UnsupportedMachine",
    "UnsupportedVocab",
    "Vocab",
    "bundled",
    "bundled_names",
    "compare",
    "convert",
    "from_sentencepiece",
    "from_tiktoken",
    "from_tokenizers",
    "from_transformers",
    "load",
    "read_vocab",
    "train",
]
_HOME = {
    "errors": (
        "CompilerMissing",
        "CorpusError",
        "EncodingFailed",
        "InvalidToken",
        "JittokError",
        "MalformedArray",
        "MalformedVocab",
        "UnsupportedMachine",
        "UnsupportedVocab",
    ),
    "tokenizer.loading": ("bundled", "load"),
    "tokenizer.objects": ("from_sentencepiece", "from_tiktoken", "from_tokenizers", "from_transformers"),
    "common.rows": ("Ragged", "TokenArray"),
    "tokenizer": ("Tokenizer",),
    "vocab": ("Vocab", "bundled_names", "read_vocab"),
}
_MODULES = (
    "arrow", "chat", "compare", "compat", "convert", "corpus", "errors", "plot", "polars", "ray", "tokenizer", "train",
    "vocab",
)  # fmt: skip
"""Public modules, as jittok.NAME; some need an extra. `jittok.compare`, `convert` and `train` are callable."""
_NEEDS = {"polars": "polars"}
"""Modules that cannot be imported without a package. The others import theirs on the first call."""


if not TYPE_CHECKING:  # a checker must not take a misspelt name for one of these

    def __getattr__(name):
        import importlib

        for module, names in _HOME.items():
            if name in names:
                found = globals()[name] = getattr(importlib.import_module(f"jittok.{module}"), name)
                return found
        if name in _MODULES:
            try:
                return importlib.import_module(f"jittok.{name}")
            except ImportError as error:  # help(), hasattr() and inspect know only AttributeError
                raise AttributeError(str(error)) from error
        if name.startswith("__"):  # protocols look these up on any module
            raise AttributeError(f"module 'jittok' has no attribute {name!r}")
        from jittok.common.hints import no_attribute

        raise AttributeError(no_attribute("module 'jittok'", name, lambda: [*__all__, *_MODULES]))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES} - {name for name, needs in _NEEDS.items() if not _installed(needs)})


def _installed(package: str) -> bool:
    """Whether a package can be imported. It is not imported."""
    import importlib.util

    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):  # ValueError: sys.modules has None for it
        return False
