"""A trace as a gdb script: breakpoints in llama.cpp, expressions to print, and their expected values.

Lines are found by a few words of llama.cpp's source inside a function, so that the script survives changes elsewhere in
the file. Each breakpoint prints its values next to the expected ones and continues.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jittok.vocab import Vocab

Record = dict[str, Any]
Stages = Mapping[str, Sequence[Record]]

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
        place = gdb.decode_line(function)[1][0]
        path = place.symtab.fullname()
        lines = open(path, encoding="utf-8").read().split("\\n")
        line = next(k for k in range(place.line - 1, len(lines)) if words in lines[k]) + 1
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
    by_type = {"bpe": _bpe, "spm": _spm, "wpm": _wpm, "ugm": _ugm, "rwkv": _rwkv, "plamo2": _plamo2, "plamo3": _plamo2}
    if vocab.type in by_type:
        yield from by_type[vocab.type](stages)


def _queue(stages: Stages, session: str, offer: str, left: str, value: str) -> Iterator[Breakpoint]:
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


def _bpe(stages: Stages) -> Iterator[Breakpoint]:
    session = "llm_tokenizer_bpe_session"
    yield Breakpoint(
        "words",
        "a word of the pre-tokenizer begins",
        f"{session}::tokenize",
        "int index = 0",
        ("word._M_string_length",),
        [(len(row["text"].encode()),) for row in stages["words"] if row["regex"] is not None],
    )
    yield from _queue(stages, session, "add_new_bigram", "left_symbol", "rank")


def _spm(stages: Stages) -> Iterator[Breakpoint]:
    session = "llm_tokenizer_spm_session"
    yield from _queue(stages, session, "try_add_bigram", "left_sym", "score")
    yield Breakpoint(
        "resegment",
        "a symbol becomes a token, or bytes",
        f"{session}::resegment",
        "auto token = vocab.text_to_token",
        ("symbol.n",),
        [(row["length"],) for row in stages["resegment"]],
    )


def _wpm(stages: Stages) -> Iterator[Breakpoint]:
    yield Breakpoint(
        "matches",
        "the longest token at a place of a word with U+2581 in front",
        "llm_tokenizer_wpm_session::tokenize",
        "output.push_back(id)",
        ("i", "j", "id"),
        [(row["start"], row["stop"], row["token_id"]) for row in stages["matches"] if row["token_id"] is not None],
    )


def _ugm(stages: Stages) -> Iterator[Breakpoint]:
    session = "llm_tokenizer_ugm_session"
    yield Breakpoint(
        "charsmap",
        "a byte of a walk through the character map: is the node a child?",
        f"{session}::normalize_prefix",
        "xcda_view.get_lcheck(node_index) != c",
        ("c", "node_index"),
        [(row["byte"], row["node"]) for row in stages["charsmap"]],
    )
    rivals: list[tuple[Any, ...]] = []
    for number in dict.fromkeys(row["fragment"] for row in stages["lattice"]):
        rivals += sorted(
            (rival["input_offset"], row["position"], rival["token_id"], rival["score_sum"])
            for row in stages["lattice"]
            if row["fragment"] == number
            for rival in row["challengers"]
            if not rival["unknown"]
        )
    yield Breakpoint(
        "lattice",
        "a token challenges the best way to its end",
        f"{session}::tokenize",
        "struct best_tokenization & current_champ = tokenization_results[prefix_offset]",
        ("input_offset", "prefix_offset", "token_id", "challenger_score"),
        rivals,
    )
    path: list[tuple[Any, ...]] = []
    for number in dict.fromkeys(row["fragment"] for row in stages["lattice"]):
        way = [row for row in stages["lattice"] if row["fragment"] == number and row["on_path"] and row["position"]]
        path += [(row["token_id"], row["input_offset"]) for row in reversed(way)]
    yield Breakpoint(
        "backtrack",
        "the best path, from its end",
        f"{session}::tokenize",
        "if (!(is_prev_unknown && is_unknown))",
        ("tokenization.token_id", "tokenization.input_offset"),
        path,
    )


def _rwkv(stages: Stages) -> Iterator[Breakpoint]:
    yield Breakpoint(
        "matches",
        "the longest token at a place, and where it ends",
        "llm_tokenizer_rwkv_session::tokenize",
        "output.push_back(token_id)",
        ("token_id", "token_length"),
        [(row["token_id"], row["stop"]) for row in stages["matches"] if row["stop"] is not None],
    )


def _plamo2(stages: Stages) -> Iterator[Breakpoint]:
    yield Breakpoint(
        "path",
        "a piece is compared with the cheapest way to the end",
        "llm_tokenizer_plamo2::encode",
        "if (s < scores[i])",
        ("i", "piece_length", "s"),
        [(row["position"], rival["length"], rival["cost"]) for row in stages["path"] for rival in row["challengers"]],
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
