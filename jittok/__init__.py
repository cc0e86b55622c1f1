"""jittok: the tokenizers of open models for large corpora, exactly and fast, from GGUF or a model's own file.

Names and modules are loaded when first used. The first load of a vocabulary brings in NumPy, but neither numba,
llvmlite, regex nor pyarrow. The first text imports what encodes. A vocabulary that was not compiled before imports what
compiles.
"""

import sys  # and nothing that Python has not built in, until the command tells Ctrl-C

TYPE_CHECKING = False  # as typing has it, which takes a while to import


def _told(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    """What the command tells of an exception that nobody took: Ctrl-C in a line."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    if sys.stderr is not None:
        sys.stderr.write("jittok: interrupted\n")
    raise SystemExit(130)


def _is_command() -> bool:
    """Whether this process is the command: `jittok ...` or `python -m jittok ...`. Another program's hooks are its own.

    While Python looks for the module of -m, argv is "-m" and what follows the module's name; orig_argv has the name."""
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
        "a free-threaded Python without its lock", "the lock, as jittok is not tested without it: set PYTHON_GIL=1"
    )

import jittok.locks  # noqa: E402, F401  a fork may come amid the first call of another thread

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

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
    from jittok.loading import bundled, load
    from jittok.objects import from_sentencepiece, from_tiktoken, from_tokenizers, from_transformers
    from jittok.rows import Ragged, TokenArray
    from jittok.tokenizer import Tokenizer
    from jittok.vocab import Vocab, bundled_names, read_vocab

    compare: Any  # the modules `jittok.compare`, `convert` and `train`, which can be called
    convert: Any
    train: Any

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
    "loading": ("bundled", "load"),
    "objects": ("from_sentencepiece", "from_tiktoken", "from_tokenizers", "from_transformers"),
    "rows": ("Ragged", "TokenArray"),
    "tokenizer": ("Tokenizer",),
    "vocab": ("Vocab", "bundled_names", "read_vocab"),
}
_MODULES = ("arrow", "compare", "convert", "corpus", "errors", "plot", "polars", "ray", "tokenizer", "train", "vocab")
"""What people use as jittok.NAME; some need an extra. `jittok.compare`, `convert` and `train` can be called."""
_NEEDS = {"polars": "polars"}
"""Modules that cannot be imported without a package. The others import theirs at the first call."""


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
        if name.startswith("__"):  # what protocols ask of any module
            raise AttributeError(f"module 'jittok' has no attribute {name!r}")
        from jittok.hints import no_attribute

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
