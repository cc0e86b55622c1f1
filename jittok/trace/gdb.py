"""A trace as a gdb script: breakpoints in llama.cpp, expressions to print, and their expected values.

Lines are found by a few words of llama.cpp's source inside a function, so that the script survives changes elsewhere in
the file. Each breakpoint prints its values next to the expected ones and continues.
"""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jittok.trace.recorder import Record
from jittok.trace.stages.base import Stages
from jittok.vocab import Vocab
from jittok.vocab.types import type_of

SCRIPT = '''\
# The steps of a trace of jittok, in llama.cpp itself. Build llama.cpp with -DCMAKE_BUILD_TYPE=Debug, then
#   gdb -q -batch -x THIS_FILE --args llama-tokenize -m {model} {options}
# Every stop prints what is seen; what differs from the trace is marked. To look around, run gdb without -batch and set
# a breakpoint of your own at one of the lines below.
set pagination off
set confirm off
set breakpoint pending on
break main
run
# the newline is tokenized while the vocabulary is loaded: begin after that
tbreak llama_tokenize
continue
python
import gdb

RUNS = {runs}  # llama-tokenize tokenizes once more if the first buffer, one token per byte, was too small


class Seen(gdb.Breakpoint):
    """Prints values each time a line is reached, beside the expected ones, and goes on."""

    def __init__(self, stage, function, words, values, expected):
        start = gdb.decode_line(function)[1][0]
        path = start.symtab.fullname()
        lines = open(path, encoding="utf-8").read().split("\\n")
        line = next(k for k in range(start.line - 1, len(lines)) if words in lines[k]) + 1
        super().__init__("%s:%d" % (path, line))
        self.silent = True
        self.stage, self.values, self.expected, self.count = stage, values, expected, 0

    def stop(self):
        found = []
        for value in self.values:
            number = gdb.parse_and_eval(value)
            if number.type.strip_typedefs().code == gdb.TYPE_CODE_REF:
                number = number.referenced_value()
            found.append(float(number) if number.type.strip_typedefs().code == gdb.TYPE_CODE_FLT else int(number))
        wanted = (self.expected * RUNS)[self.count] if self.count < len(self.expected) * RUNS else None
        self.count += 1
        same = wanted is not None and all(abs(a - b) <= 1e-9 * max(1, abs(b)) for a, b in zip(found, wanted))
        shown = ", ".join("%s = %s" % pair for pair in zip(self.values, found))
        print("%s %d: %s%s" % (self.stage, self.count, shown, "" if same else "   <-- expected %s" % (wanted,)))
        return False


stops = []
{stops}
end
continue
python
for stop in stops:
    print("%s: %d stops, %d expected" % (stop.stage, stop.count, len(stop.expected) * RUNS))
end
# expected ids: {ids}
'''
STOP = """\
# {about}
stops.append(Seen({stage!r}, {function!r},
    {words!r},
    {values!r},
    {expected}))"""
PER_LINE = 6
"""Limit of expected values on one line."""


class Breakpoint(NamedTuple):
    """A breakpoint and its expected values, one per hit."""

    stage: str
    about: str
    function: str
    words: str  # of the source line, which is the first with them after the start of the function
    values: tuple[str, ...]
    expected: list[tuple[Any, ...]]


def gdb_script(vocab: Vocab, text: bytes, facts: Record, stages: Stages) -> str:
    """The script. facts: the arguments of the trace, from `Trace.facts`."""
    options = ["--ids", "--no-escape"]
    options += [] if facts["add_special"] else ["--no-bos"]
    options += [] if facts["parse_special"] else ["--no-parse-special"]
    written = "\n".join(
        STOP.format(**{**stop._asdict(), "values": list(stop.values), "expected": _listed(stop.expected)})
        for stop in stops(vocab, stages)
    )
    capacity = len(text) + 2 * facts["add_special"]  # as common_tokenize reckons
    return SCRIPT.format(
        runs=2 if len(stages["tokens"]) > capacity else 1,
        model=_quoted(vocab.source if vocab.source.endswith(".gguf") else "VOCAB.gguf"),
        options=" ".join([*options, *_given(text)]),
        stops=written,
        ids=" ".join(str(token["id"]) for token in stages["tokens"]),
    )


def stops(vocab: Vocab, stages: Stages) -> Iterator[Breakpoint]:
    """The breakpoints of this type of vocabulary."""
    found = [
        (part["token"], part["offset"])
        for record in stages["fragments"]
        if record["found"]
        for part in record["buffer"]
        if part["type"] == "token" and part["token"] == record["special"]
    ]
    yield Breakpoint(
        "fragments",
        "a special token is cut out of a raw fragment",
        "llama_vocab::impl::tokenizer_st_partition",
        "buffer.emplace_after(it, special_id)",
        ("special_id", "match"),
        found,
    )
    if module := type_of(vocab).stages:
        yield from importlib.import_module(module).breakpoints(stages)


def queue_breakpoints(stages: Stages, session: str, offer: str, left: str, value: str) -> Iterator[Breakpoint]:
    """The breakpoints of a queue. `left`: the name of the left symbol in the loop; `value`: "rank" or "score"."""
    key = "word" if value == "rank" else "fragment"
    later: dict[Any, list[Record]] = {}
    for row in stages["merges"]:
        later.setdefault(row[key], []).extend(row["offers"])
    offers = [pair for symbols in stages["symbols"] for pair in [*symbols["offers"], *later.get(symbols[key], [])]]
    values = ("bigram.left", "bigram.right", f"bigram.{value}")
    yield Breakpoint(
        "offers",
        "a pair is put into the queue",
        f"{session}::{offer}",
        "work_queue.push(bigram)",
        values,
        [(row["left"], row["right"], row[value]) for row in offers],
    )
    yield Breakpoint(
        "merges",
        "a pair is taken from the queue; it may be stale",
        f"{session}::tokenize",
        f"auto & {left} = symbols[bigram.left]",
        values,
        [(row["left"], row["right"], row[value]) for row in stages["merges"]],
    )


def _given(text: bytes) -> tuple[str, str]:
    """A text as an option for a shell."""
    if b"\0" in text:
        return "-f", f"TEXT_FILE  # with the {len(text)} bytes of the text, as no argument can hold NUL"
    return "-p", _quoted(text.decode("utf-8", "surrogateescape"))


def _quoted(shown: str) -> str:
    """A text as one word of a shell, for a comment of the script. Characters that do not print become escapes in $'..':
    after a line end, gdb would read commands."""
    if shown.isprintable():
        return shlex.quote(shown)
    parts = []
    for c in shown:
        raw = c.encode("utf-8", "surrogateescape")
        parts.append("\\" + c if c in "\\'" else c if c.isprintable() else "".join(f"\\x{byte:02x}" for byte in raw))
    return f"$'{''.join(parts)}'"


def _listed(expected: Sequence[tuple[Any, ...]]) -> str:
    if not expected:
        return "[]"
    lines = [", ".join(map(repr, expected[k : k + PER_LINE])) for k in range(0, len(expected), PER_LINE)]
    return "[\n        " + ",\n        ".join(lines) + ",\n    ]"
