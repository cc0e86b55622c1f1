"""Chats, and texts that users wrote: the methods of `Tokenizer` with which no message becomes a control token."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from numpy.typing import ArrayLike

from jittok.common.rows.ids import Ids
from jittok.errors import UnsupportedVocab
from jittok.kernels.inputs import Errors, OneText, check_options, to_bytes

if TYPE_CHECKING:
    from jittok.encode.literal import GuardedRule
    from jittok.tokenizer.tokenizer import Tokenizer


class Chatting:
    """Methods of `Tokenizer`."""

    def _encode_literal(
        self, text: OneText, literal: ArrayLike, add_special: bool, parse_special: bool, errors: Errors
    ) -> Ids:
        """`encode` with `literal`."""
        from jittok.encode.literal import encode_literal, literal_counts

        replace = check_options(add_special, parse_special, errors)
        if not parse_special:
            raise ValueError("literal: needs parse_special=True (without it, all of a text is literal)")
        raw = to_bytes(text, replace)
        counts = literal_counts(literal, text if isinstance(text, str) else raw, raw)
        return encode_literal(self._guarded_rule(None, add_special, replace), raw, counts).view(Ids)

    def _guarded_rule(self, guarded: frozenset[int] | None, add_special: bool, replace: bool) -> GuardedRule:
        """How texts with literal parts are encoded; see `encode.literal`. UnsupportedVocab for type "none"."""
        from jittok.encode.literal import guarded_rule

        tok = cast("Tokenizer", self)
        if tok._encoder is None:
            found = getattr(tok.vocab, "model", tok.vocab.source)
            raise UnsupportedVocab(tok.vocab.source, "tokenizer.ggml.model", found, "a vocabulary that can tokenize")
        return guarded_rule(tok._encoder, guarded, bool(add_special), bool(replace))
