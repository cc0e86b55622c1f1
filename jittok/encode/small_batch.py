"""Small batches: a few short texts take the fast path of single texts, which is faster than laying out a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jittok.common.rows.token_array import TokenArray

if TYPE_CHECKING:
    from jittok.encode.encoder import Encoder
    from jittok.encode.options import EncodeOptions
    from jittok.kernels.memory.encode_builtin import Builtin

MOST_TEXTS, MOST_CHARACTERS = 64, 1 << 15
"""Texts, and their characters together: less than half a millisecond."""


def encode_small_batch(
    encoder: Encoder, builtins: dict[tuple[bool, bool, str], Builtin | None], texts: Any, rule: EncodeOptions,
    asked: tuple[Any, Any, str],
) -> TokenArray | None:  # fmt: skip
    """One row per text of a list or tuple; None if a text does not take the fast path (`short_text`). The general path
    then raises the error, if there is one.

    builtins: those of single texts, by the options of calls; asked: the options of this call, compiled to `rule`
    """
    if type(texts) not in (list, tuple) or not 0 < len(texts) <= MOST_TEXTS:
        return None
    if not all(type(text) in (str, bytes) for text in texts) or sum(map(len, texts)) > MOST_CHARACTERS:
        return None
    key = bool(asked[0]), bool(asked[1]), asked[2]
    builtin, rows = builtins.get(key), []
    for text in texts:
        if type(text) is str and not text.isascii():
            try:
                text = text.encode()  # noqa: PLW2901
            except UnicodeEncodeError:
                return None
        ids = builtin(text) if builtin is not None else None
        if ids is None:
            ids = encoder.try_short_text(text, rule)
            if ids is None:
                return None
            builtin = builtins[key] = encoder.builtins[id(rule)]
        rows.append(ids)
    return TokenArray.of_rows(rows)
