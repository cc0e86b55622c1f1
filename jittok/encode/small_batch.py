"""A few short texts: one after the other as single texts are, which takes less time than laying a batch out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jittok.rows.token_array import TokenArray

if TYPE_CHECKING:
    from jittok._raw.encode_builtin import Builtin
    from jittok.encode.encoder import Encoder
    from jittok.encode.options import EncodeOptions

MOST_TEXTS, MOST_CHARACTERS = 64, 1 << 15
"""Texts, and their characters together: less than half a millisecond."""


def encode_small_batch(
    encoder: Encoder, builtins: dict[tuple[bool, bool, str], Builtin | None], texts: Any, rule: EncodeOptions,
    asked: tuple[Any, Any, str],
) -> TokenArray | None:  # fmt: skip
    """One row a text of a list or tuple; None where not all go the quick way (`short_text`). Then the ordinary way
    says what is wrong, if anything is.

    builtins: for single texts, by the options of calls; asked: these options, of which `rule` is the rule
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
