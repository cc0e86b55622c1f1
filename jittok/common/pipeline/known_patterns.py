"""Patterns that files do not hold, or hold in several forms."""

from __future__ import annotations

from jittok.common.pipeline.steps import ONIG

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The pattern of tokenizers' component ByteLevel."""
R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GREEDY_R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s"
GREEDY_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+\z|\s*[\r\n]"
    r"|\s+(?!\S)|\s"
)
_GREEDY = {R50K: GREEDY_R50K, CL100K: GREEDY_CL100K}
"""Patterns that cut the same words without keeping what they have taken. White space up to the end of the text is one
word in all of them: in R50K's `\\s+(?!\\S)` reaches there, in CL100K's `\\s*[\\r\\n]` is before it."""


def greedy(text: str, engine: str) -> str | None:
    """The same pattern without what it keeps, for the patterns above. In Ruby's syntax, and so in Oniguruma,
    `{1,3}+` does not keep: it repeats."""
    found = _GREEDY.get(text)
    return found.replace(r"\p{N}{1,3}", r"(?:\p{N}{1,3})+") if found and engine == ONIG else found
