"""One vocabulary, and all questions about one text that its kernels and its references must answer alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from span_rules import broken_rule

from jittok.encode.encoder import Encoder
from jittok.errors import EncodingFailed
from jittok.reference.decode import detokenize
from jittok.reference.tokenize import align
from jittok.tokenizer import Tokenizer
from jittok.vocab import Vocab

TINY_CACHE = 1 << 14
UNDO = [(False, False), (True, False), (False, True), (True, True)]
"""(remove_special, unparse_special)"""
Answers = dict[str, Any]
"""Who said what; all must be the same."""


class Case:
    """One vocabulary with its ways of encoding: a cache that saw the texts before, a tiny one, none, the reference."""

    def __init__(self, name: str, vocab: Vocab, tok: Tokenizer | None = None) -> None:
        """tok: the Tokenizer of this vocabulary, None to make one."""
        self.name, self.vocab = name, vocab
        self.tok = tok or Tokenizer(vocab)
        self.tiny = Encoder(vocab, self.tok.arrays, cache_bytes=TINY_CACHE)

    def differs(self, text: bytes, add: bool, parse: bool) -> tuple[str, Answers] | None:
        """The first question that is not answered alike, with its answers."""
        for question, answers in self.questions(text, add, parse):
            first, *others = answers.values()
            if any(other != first for other in others):
                return question, answers
        return None

    def questions(self, text: bytes, add: bool, parse: bool) -> Iterator[tuple[str, Answers]]:
        """(question, answers): ids, spans, batches, characters, and what ids print."""
        tok, vocab = self.tok, self.vocab
        rules = {"add_special": add, "parse_special": parse}
        reference = _or_failure(lambda: align(vocab, text, **rules))
        failed = isinstance(reference, str)
        fresh = Encoder(vocab, tok.arrays, cache_bytes=TINY_CACHE)
        yield (
            "ids",
            {
                "reference": reference if failed else reference[0],
                "kernel": _or_failure(lambda: tok.encode(text, **rules).tolist()),
                "kernel, tiny cache": _or_failure(lambda: _one(self.tiny, text, rules)),
                "kernel, new cache": _or_failure(lambda: _one(fresh, text, rules)),
            },
        )
        if failed:
            yield "failing spans", {"reference": reference, "kernel": _or_failure(lambda: tok.align(text, **rules))}
            yield from self._replaced(text, rules)
            return
        ids, spans = reference
        found = _pairs(tok.align(text, **rules).spans)
        yield "spans", {"reference": spans, "kernel": found}
        yield "a rule of spans", {"none": None, "broken": broken_rule(vocab, text, ids, found, **rules)}
        rows = tok.encode_batch([text, b"", text], threads=2, **rules)
        several = tok.align_batch([b"", text, text], threads=2, **rules)
        yield (
            "rows",
            {
                "reference": ids,
                "first": rows[0].tolist(),
                "last": rows[2].tolist(),
                "aligned": several[1].ids.tolist(),
            },
        )
        yield "spans of rows", {"reference": spans, "first": _pairs(several[1].spans), "last": _pairs(several[2].spans)}
        yield from self._in_characters(text, spans, rules)
        if -1 not in ids:
            for remove, unparse in UNDO:
                for order in (ids, ids[::-1]):
                    yield f"text, {remove=} {unparse=}", self._texts(order, remove, unparse)

    def _replaced(self, text: bytes, rules: dict[str, bool]) -> Iterator[tuple[str, Answers]]:
        """Where a text cannot be encoded as it is, no reference says what errors="replace" gives."""
        if isinstance(_or_failure(lambda: self.tok.encode(text, errors="replace", **rules)), str):
            return  # add_special wants a token that the vocabulary does not have
        again = self.tok.encode_batch([text, text], errors="replace", threads=2, **rules)
        aligned = self.tok.align(text, errors="replace", **rules)
        ids = self.tok.encode(text, errors="replace", **rules).tolist()
        yield (
            "replaced",
            {
                "one": ids,
                "tiny": _one(self.tiny, text, rules, replace=True),
                "rows": again[1].tolist(),
                "aligned": aligned.ids.tolist(),
            },
        )
        starts, stops = aligned.spans.T.tolist() or ([], [])
        inside = all(0 <= i <= j <= len(text) for i, j in zip(starts, stops, strict=True))
        yield "replaced spans", {"ascend": (True, starts, stops), "found": (inside, sorted(starts), sorted(stops))}

    def _in_characters(self, text: bytes, spans: list[tuple[int, int]], rules: dict[str, bool]) -> Iterator[Any]:
        """Spans of a str: from where the first character begins to where the last one ends."""
        try:
            string = text.decode()
        except UnicodeDecodeError:
            return
        begins = [0]  # of each byte: the character it belongs to
        for k, character in enumerate(string):
            begins += [k] * (len(character.encode()) - 1) + [k + 1]
        ends = [begins[i] if i == len(text) or text[i] & 0xC0 != 0x80 else begins[i] + 1 for i in range(len(text) + 1)]
        yield (
            "characters",
            {
                "literally": [(begins[i], ends[j]) for i, j in spans],
                "kernel": _pairs(self.tok.align(string, **rules).char_spans),
                "rows": _pairs(self.tok.align_batch(["", string], unit="characters", **rules)[1].spans),
            },
        )

    def _texts(self, ids: list[int], remove: bool, unparse: bool) -> Answers:
        flags = {"remove_special": remove, "unparse_special": unparse}
        raw = detokenize(self.vocab, ids, **flags)
        stream = self.tok.stream_decoder(**flags)
        streamed = "".join([*map(stream.push, ids), stream.finish()])
        rows = self.tok.decode_batch([ids, [], ids], **flags)
        texts = [streamed, self.tok.decode(ids, **flags), rows[0], rows[2]]
        if self.tok.decode_bytes(ids, **flags) != raw:
            texts.append(repr(self.tok.decode_bytes(ids, **flags)))
        return {"reference": raw.decode(errors="replace")} | dict(
            zip(("stream", "kernel", "first row", "last row", "bytes"), texts, strict=False)
        )


def _one(encoder: Encoder, text: bytes, rules: dict[str, bool], replace: bool = False) -> list[int]:
    return encoder.one(text, encoder.rule(*rules.values(), replace)).tolist()


def _or_failure(answer: Callable[[], Any]) -> Any:
    try:
        return answer()
    except EncodingFailed as error:
        return f"fails at {error.offset}"


def _pairs(spans: Any) -> list[tuple[int, int]]:
    return [(i, j) for i, j in spans.tolist()]
