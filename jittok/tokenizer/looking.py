"""What a `Tokenizer` shows of itself and of a text: its steps, a trace, a card in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, cast

from jittok.common.pipeline import Pipeline
from jittok.errors import refuse_keywords
from jittok.kernels.inputs import Errors, OneText, to_bytes
from jittok.tokenizer.facts import SPECIAL_IDS
from jittok.vocab import Vocab

if TYPE_CHECKING:
    from anywidget import AnyWidget

    from jittok.tokenizer.tokenizer import Tokenizer
    from jittok.trace import Trace
    from jittok.trace.explain import Explanation

EXAMPLE = "Hello 1234"
"""The text that steps are shown on."""
SHOWN_SPECIAL = 300
"""Special tokens that a tokenizer shows of itself in a notebook."""


class Looking:
    """Methods of `Tokenizer`."""

    def explain(
        self, text: OneText = EXAMPLE, *, add_special: bool = False, parse_special: bool = False,
        errors: Errors = "strict", **others: NoReturn,
    ) -> Explanation:  # fmt: skip
        """The steps of this tokenizer from a text to its ids, as a table: what each does in the file's own words, the
        kernel or plain Python that does it and where that is, and an example after it. Raises as `encode` does."""
        if others:
            refuse_keywords(self.explain, others)
        from jittok.encode.plan import rows_of
        from jittok.trace.explain import explain

        tok = cast("Tokenizer", self)
        encoder, rule = tok._rule(add_special, parse_special, errors)
        raw = to_bytes(text, rule.replace)
        ids = encoder.one(raw, rule).tolist()
        return explain(tok.vocab, rows_of(encoder, rule), raw, ids, rule.around, bool(parse_special))

    def trace(
        self, text: OneText, *, add_special: bool = False, parse_special: bool = False, errors: Errors = "strict",
        **others: NoReturn,
    ) -> Trace:  # fmt: skip
        """Every stage of encoding one text, as data and as pictures; slow. Raises as `encode` does."""
        if others:
            refuse_keywords(self.trace, others)
        from jittok.trace import trace_file, trace_text

        tok = cast("Tokenizer", self)
        encoder, rule = tok._rule(add_special, parse_special, errors)
        raw = to_bytes(text, rule.replace)
        ids = encoder.one(raw, rule).tolist()
        asked = {"add_special": add_special, "parse_special": parse_special}
        if isinstance(tok.vocab, Pipeline):
            return trace_file(tok.vocab, raw, ids, **asked)
        return trace_text(tok.vocab, raw, ids, replace=rule.replace, **asked)

    def explore(self, text: str = EXAMPLE) -> AnyWidget:
        """The page of `jittok play` as a widget of a notebook: tokens as one types, and how a word came to be. A saved
        notebook keeps a picture of `text`. ImportError without the extra `notebook`."""
        if not isinstance(text, str):
            raise TypeError(f"text: found {type(text).__name__}, expected a str")
        from jittok.play.widget import explore

        tok = cast("Tokenizer", self)
        return explore(tok, text, tok.name or tok.type)

    def _repr_html_(self) -> str:
        from jittok.common.display import html

        tok = cast("Tokenizer", self)
        ids = {name: token for name in SPECIAL_IDS if (token := getattr(tok, name)) is not None}
        merges = tok.vocab.merge_offsets.size - 1 if isinstance(tok.vocab, Vocab) else tok.vocab.merges
        rows = [("type", tok.type), ("pre", tok.pre), ("tokens", tok.vocab_size), ("merges", merges or None)]
        flags = [(name, getattr(tok, name)) for name in ("add_bos", "add_eos", "add_space_prefix")]
        facts = [(name, value) for name, value in [*rows, *ids.items(), *flags] if value is not None]
        shown = tok.describe(sorted(tok.special_ids)[:SHOWN_SPECIAL])
        return html.facts(tok.name or tok.vocab.source, facts, shown)
