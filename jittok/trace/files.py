"""Traces a text through the steps of a `Pipeline`: the result of each normalizer, splitter stage and model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jittok.common.pipeline import Pipeline, steps
from jittok.reference.models.watch import Watch
from jittok.reference.pipeline import aligned, runner
from jittok.reference.text import Piece, Token, read_text, rewritten
from jittok.trace.recorder import SYMBOL_ROWS, Record
from jittok.trace.stage import Stage
from jittok.trace.stages import STAGES
from jittok.trace.stages.matches import match_record
from jittok.trace.trace import Trace
from jittok.vocab.describe import described


def trace_file(
    pipeline: Pipeline, text: bytes, ids: Sequence[int], *, add_special: bool = False, parse_special: bool = False
) -> Trace:
    """All stages of tokenizing a text. ids: those of the kernels; AssertionError if the reference's differ."""
    tokens = aligned(pipeline, text, add_special, parse_special)
    if [token.id for token in tokens] != list(ids):
        raise AssertionError(f"kernels give other ids than the plain way for {text[:200]!r}, please report it")
    recorder = _Recorder(pipeline)
    recorder.run(text, parse_special)
    run = runner(pipeline)
    recorder.stages["tokens"] = [
        {"index": k, **described(pipeline, token.id, run.decode_bytes([token.id])), "span": [token.start, token.stop]}
        for k, token in enumerate(tokens)
    ]
    stages = {name: Stage(name, recorder.stages.get(name, [])) for name in STAGES}
    regexes = tuple(map(describe_step, pipeline.split))
    return Trace(pipeline, text, add_special=add_special, parse_special=parse_special, regexes=regexes, stages=stages)


def describe_step(step: Any) -> str:
    """A step for people: its name and its settings."""
    told = []
    for name, value in step._asdict().items():
        if isinstance(value, steps.Pattern):
            told.append(repr(value.text) if value.literal else value.text)
        elif isinstance(value, str | int | bool):
            told.append(f"{name}={value!r}")
        else:
            told.append(f"{name} of {len(value)} bytes")
    return f"{type(step).__name__}({', '.join(told)})"


class _Recorder:
    """The stages of a trace under construction."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline, self.run_ = pipeline, runner(pipeline)
        self.stages: dict[str, list[Record]] = {}
        self.fragment = 0
        self.text = ""  # of the fragment after the last step
        self.symbol_rows = 0

    def add(self, stage: str, **record: Any) -> Record:
        """Append a record, which names its fragment first."""
        whole = {"fragment": self.fragment, **record}
        self.stages.setdefault(stage, []).append(whole)
        return whole

    def run(self, raw: bytes, parse_special: bool) -> None:
        """All steps except the tokens themselves."""
        whole = read_text(raw)
        self._buffers(whole, parse_special)
        if self.run_.pieces:
            self.text, piece = whole.text, self.run_.squeezed(whole)
            self._normalized(self.pipeline.normalize[0], piece)
            self._word(piece)
            return
        self.fragment = -1
        for word in self.run_.words(whole, parse_special, self._see):
            if isinstance(word, Piece):
                self._word(word)

    def _buffers(self, text: Piece, parse_special: bool) -> None:
        """The text split at added tokens: by the search in the raw text, then by that in the normalized text."""
        size = len(text.source)
        records: list[Record] = [
            {"searched": 0, "special": None, "text": None, "found": 0, "buffer": _between([], size)}
        ]
        if not self.run_.pieces:
            found = [word for word in self.run_.words(text, parse_special) if isinstance(word, Token)]
            buffer = _between(found, size)
            for position, token in enumerate(dict.fromkeys(each.id for each in found), 1):
                count = sum(each.id == token for each in found)
                content = (self.pipeline.tokens[token] or b"").decode("utf-8", "backslashreplace")
                records.append(
                    {"searched": position, "special": token, "text": content, "found": count, "buffer": buffer}
                )
        self.stages["fragments"] = records

    def _see(self, step: Any, made: Piece | list[Piece]) -> None:
        """Record the result of a step; see `reference.pipeline.run.See`."""
        if step == "cut":
            assert isinstance(made, Piece)
            self.fragment += 1
            self.text = made.text
        elif isinstance(made, Piece):
            self._normalized(step, made)
        else:
            number = sum(row["fragment"] == self.fragment for row in self.stages.get("split", ()))
            number %= len(self.pipeline.split)
            self.add("split", number=number, step=describe_step(step), words=[word.text for word in made])

    def _normalized(self, step: Any, piece: Piece) -> None:
        units, changed = rewritten(piece.byte_units()), piece.text != self.text
        self.text, size = piece.text, len(piece.text.encode())
        self.add("normalized", step=describe_step(step), text=piece.text, length=size, map=units, changed=changed)

    def _word(self, word: Piece) -> None:
        assert word.units is not None
        number = len(self.stages.get("words", ()))
        start, stop = (word.units[0][0], word.units[-1][1]) if word.units else (0, 0)
        self.add("words", word=number, text=word.text, offset=start, length=stop - start, regex=None, matched=False)
        watch = _Watch(self, number, word.text)
        if self.run_.pieces:
            parts = self.run_.sentencepiece.tokens(word.text, watch)
        else:
            parts = self.run_.word(word.text, watch)
        watch.finish(parts)


class _Watch(Watch):
    """Records the steps of a model on one word."""

    def __init__(self, recorder: _Recorder, number: int, word: str) -> None:
        self.recorder, self.number, self.raw = recorder, number, word.encode()
        self.first: list[str] | None = None
        self.whole = False
        self.steps = 0
        self.tries: dict[int, list[tuple[int, int | None]]] = {}
        self.rivals: dict[int, list[Record]] = {}

    def symbols(self, texts: list[str]) -> None:
        """The symbols before any is merged."""
        self.first = texts

    def popped(self, pair: tuple[int, int], text: str, priority: float, applied: bool, after: list[int]) -> None:
        """A pair taken from the queue."""
        self.steps += 1
        rank = isinstance(priority, int)
        value = {"rank": priority} if rank else {"score": -priority, "id": None}
        self.recorder.add(
            "merges", word=self.number, step=self.steps, left=pair[0], right=pair[1], text=text, **value,
            stale=not applied, applied=applied, offers=[], symbols=self._rows(after) if applied else None,
        )  # fmt: skip

    def _rows(self, following: list[int]) -> list[Record] | None:
        first = self.first or []
        self.recorder.symbol_rows += len(first)
        if self.recorder.symbol_rows > SYMBOL_ROWS:
            return None
        rows: list[Record] = [{"text": "", "n": 0, "prev": -1, "next": -1} for _ in first]
        at, before = 0, -1
        while 0 <= at < len(first):
            after = following[at] if following[at] >= 0 else len(first)
            text = "".join(first[at:after])
            rows[at] = {"text": text, "n": len(text.encode()), "prev": before, "next": following[at]}
            before, at = at, following[at]
        return rows

    def tried(self, start: int, stop: int, token: int | None) -> None:
        """A part of the word that was looked up: characters, or bytes for a model over bytes."""
        self.tries.setdefault(start, []).append((stop, token))

    def rival(self, start: int, stop: int, token: int, score: float, total: float, won: bool) -> None:
        """A token on a path to an offset."""
        text = self.raw.decode()[start:stop]
        self.rivals.setdefault(stop, []).append({
            "token_id": token, "text": text, "input_offset": self._byte(start), "score": score, "score_sum": total,
            "won": won, "unknown": False,
        })  # fmt: skip

    def _byte(self, at: int) -> int:
        return len(self.raw.decode()[:at].encode())

    def finish(self, parts: list[tuple[int, int, int]]) -> None:
        """Record the tokens of the word."""
        final = [
            {"text": self.raw[start:stop].decode("utf-8", "backslashreplace"), "ids": [token], "is_token": True}
            for token, start, stop in parts
        ]
        if self.rivals:
            self._lattice(parts)
        elif self.tries:
            self._matches()
        else:
            whole = self.first is None
            first = [self.raw.decode()] if self.first is None else self.first
            self.recorder.add("symbols", word=self.number, whole=whole, symbols=first, offers=[], final=final)

    def _matches(self) -> None:
        for start, attempts in self.tries.items():
            unknown = attempts[-1][1] is None
            why = "no token begins here, so the whole word is unknown" if unknown else None
            record = match_record(self.raw, start, attempts, unknown=unknown, why=why)
            self.recorder.add("matches", word=self.number, **record)

    def _lattice(self, parts: list[tuple[int, int, int]]) -> None:
        on_path = {0, *(stop for _, _, stop in parts)}
        self.recorder.add(
            "lattice", word=self.number, position=0, token_id=-1, text="", input_offset=0, score_sum=0.0, on_path=True,
            challengers=[],
        )  # fmt: skip
        for offset in sorted(self.rivals):
            rivals = self.rivals[offset]
            best = [rival for rival in rivals if rival["won"]][-1]
            position = self._byte(offset)
            self.recorder.add(
                "lattice", word=self.number, position=position,
                **{name: best[name] for name in ("token_id", "text", "input_offset", "score_sum")},
                on_path=position in on_path, challengers=rivals,
            )  # fmt: skip


def _between(found: list[Token], size: int) -> list[Record]:
    """A buffer: tokens, and the text between them."""
    out: list[Record] = []
    at = 0
    for token in found:
        if at < token.start:
            out.append({"type": "raw_text", "offset": at, "length": token.start - at})
        out.append({"type": "token", "token": token.id, "offset": token.start, "length": token.stop - token.start})
        at = token.stop
    return out + ([{"type": "raw_text", "offset": at, "length": size - at}] if at < size else [])
