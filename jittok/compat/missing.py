"""What a facade does not have: an error that says what to write instead."""

from __future__ import annotations

from typing import NoReturn


def not_there(name: str, instead: str) -> NoReturn:
    """Raise NotImplementedError for a method or an option of another library."""
    raise NotImplementedError(f"{name} is not in jittok.compat: {instead}")


class Missing:
    """A method of another library that a facade refuses: NotImplementedError when it is called."""

    def __init__(self, instead: str) -> None:
        self.instead = instead
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"{owner.__name__}.{name}"

    def __get__(self, holder: object, owner: type | None = None) -> Missing:
        return self

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raise the error."""
        not_there(self.name, self.instead)


SAMPLING = "jittok is deterministic and does not sample"
TRAINING = "write jittok.train(texts, ...)"
CHANGES = "a jittok.Tokenizer cannot change: write jittok.convert(tok, path), change that file, load it"
