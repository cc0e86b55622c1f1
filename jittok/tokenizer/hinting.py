"""Names of other libraries' tokenizers, written on a `Tokenizer`: an error that says what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

Call = TypeVar("Call", bound=Callable[..., Any])


def hinted(call: Call) -> Call:
    """A method of `Tokenizer` whose unknown keywords raise TypeError with a hint, whatever else it lacks."""
    call.__qualname__ = f"Tokenizer.{call.__name__}"  # in Python's own messages
    code = call.__code__
    known = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])

    @wraps(call)
    def asked(*given: Any, **named: Any) -> Any:
        if given and not known.issuperset(named):
            from jittok.errors import refuse_keywords

            method = getattr(given[0], call.__name__)
            refuse_keywords(method, {name: value for name, value in named.items() if name not in known})
        return call(*given, **named)

    return cast(Call, asked)


class Elsewhere:
    """A method of another library's class: an AttributeError, on the class as well."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, holder: object, owner: type | None = None) -> NoReturn:
        raise _error(holder, self._name)


class Hinting:
    """What `Tokenizer` says of names that it does not have."""

    if not TYPE_CHECKING:  # a checker tells what is not there
        from_pretrained, from_file, from_str, from_buffer = (Elsewhere() for _ in range(4))
        from_transformers, from_tokenizers, from_tiktoken, from_sentencepiece = (Elsewhere() for _ in range(4))
        load = Elsewhere()

        def __dir__(self) -> list[str]:
            """The names that are there."""
            own = {name: it for kind in reversed(type(self).__mro__) for name, it in vars(kind).items()}
            return [name for name in super().__dir__() if not isinstance(own.get(name), Elsewhere)]

        def __getattr__(self, name: str) -> NoReturn:
            """Called only for names that are not there; a property that raised AttributeError raises it again."""
            if hasattr(type(self), name):
                object.__getattribute__(self, name)
            raise _error(self, name)

        def __setattr__(self, name: str, value: object) -> None:
            """Refuse settings of other libraries, which would change nothing."""
            if name[:1] != "_" and name != "vocab":
                _refuse_setting(self, name)
            object.__setattr__(self, name, value)


def _error(holder: object, name: str) -> AttributeError:
    from jittok.common.hints import no_attribute_of_tokenizer

    shown = "type object 'Tokenizer'" if holder is None else "'Tokenizer' object"
    message = no_attribute_of_tokenizer(name, lambda: dir(holder), shown)
    return AttributeError(message) if holder is None else AttributeError(message, name=name, obj=holder)


def _refuse_setting(holder: object, name: str) -> None:
    """AttributeError for a name of another library, unless the class is a user's own."""
    from jittok.common.hints import OF_TOKENIZERS

    if name in OF_TOKENIZERS and type(holder).__module__.partition(".")[0] == __name__.partition(".")[0]:
        raise AttributeError(f"Tokenizer.{name}: tokenizers are immutable; {OF_TOKENIZERS[name]}")
