"""What a build of llama.cpp answers, beside what jittok answers for each release that it knows.

Answers that the newest release does not give are asked of the one before, and so on; what none gives is new.
"""

from __future__ import annotations

import base64
import fnmatch
import json
import lzma
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from asking import Side, packed
from library import header
from pair_vocab import pair_vocab
from texts import Texts

import jittok
from jittok.vocab import read_vocab
from jittok.vocab.bundled import bundled_source
from jittok.vocab.keys import pre_names
from jittok.vocab.releases import MODELS_SINCE, RELEASES, has, release_named
from jittok.vocab.types import TYPES

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests" / "data"
SHARED = Path(os.environ.get("JITTOK_SHARED") or ROOT.parent / "shared")
RELEASE_NAMES = tuple(release.name for release in reversed(RELEASES))
BUNDLED = {"gpt-2": "gpt-2", "bert-bge": "bert", "t5": "t5", "mistral-v1": "mistral"}
RULES = ((False, False), (True, False), (False, True), (True, True))
"""(add_special, parse_special)"""
FEW_TOKENS = 4000
"""Vocabularies of up to so many tokens are asked for their facts: of each token."""
MORE = ("pad_id", "sep_id", "mask_id", "nl_id", "bos_id", "eos_id", "eot_id")
PRE_PATTERNS = ["*"]
"""Which pre strings are asked for on all byte pairs."""
T = "tokenizer.ggml."
_WORD = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]{1,39}")
_MODEL = re.compile(r"[a-z][a-z0-9_-]{2,15}")
_TOKEN = re.compile(rb"[<\[_|][\x21-\x7e]{1,40}[>\]|]|\xe2\x96\x81<[A-Z]+>|<\xef\xbd\x9c[^\s>]{1,40}>")
_RUN = re.compile(rb"[\x20-\x7e\x80-\xff]{2,400}")


class Check(NamedTuple):
    """One thing that was asked."""

    name: str
    asked: int
    differing: Counter[str]  # release -> answers that are neither its own nor those of a later one
    new: list[str]  # answers that no release gives, in words


def check_answers(
    side: Side, name: str, file: bytes, texts: list[bytes], pre: str | None = None, facts: bool = True
) -> Check:
    """A vocabulary on texts: ids with all settings, decodings, and facts."""
    steps: list[list[Any]] = [["encode", packed(text), *rule] for text in texts for rule in RULES]
    steps += [["facts"]] if facts else []
    with tempfile.NamedTemporaryFile(suffix=".gguf") as place:
        place.write(file)
        place.flush()
        theirs = [_plain(answer) for answer in side.answers(Path(place.name), steps)]
    differing, left, newest = Counter[str](), [*range(len(steps))], []
    for release in RELEASE_NAMES:  # an older one is asked for what the newer ones do not answer so
        if left:
            ours = dict(zip(left, _ours(file, [steps[k] for k in left], release, pre), strict=True))
            left = [k for k in left if not _same(theirs[k], ours[k])]
            newest = newest or [ours]
        differing[release] = len(left)
    new = [f"{name}: {_shown(steps[k])}: {_clip(theirs[k])}, jittok {_clip(newest[0][k])}" for k in left]
    return Check(name, len(steps), differing, new)


def _ours(file: bytes, steps: list[list[Any]], release: str, pre: str | None) -> list[Any]:
    """What jittok answers. An error is an error, whatever it says."""
    try:
        tok = jittok.load(file, llama_cpp=release, pre=pre, cache=False)
    except jittok.JittokError:
        return [{"error": "refused"}] * len(steps)
    found: list[Any] = []
    for name, *arguments in steps:
        if name == "facts":
            ids = {key: getattr(tok, key) for key in MORE}
            found.append({**ids, "eog_ids": sorted(tok.eog_ids), "attributes": tok.attributes.tolist()})
            continue
        try:
            add, parse = arguments[1:]
            found.append(tok.encode(base64.b64decode(arguments[0]), add_special=add, parse_special=parse).tolist())
        except jittok.JittokError:
            found.append({"error": "EncodingFailed"})
    return found


def _plain(answer: Any) -> Any:
    if isinstance(answer, dict) and "eog_ids" in answer:
        return {key: answer[key] for key in (*MORE, "eog_ids", "attributes") if key in answer}
    return answer


def _same(theirs: Any, ours: Any) -> bool:
    failed = [isinstance(answer, dict) and "error" in answer for answer in (theirs, ours)]
    return all(failed) if any(failed) else bool(theirs == ours)


def _shown(step: list[Any]) -> str:
    if step[0] == "facts":
        return "facts"
    return f"{base64.b64decode(step[1])[:60]!r}, add_special={step[2]}, parse_special={step[3]}"


def _clip(answer: Any) -> str:
    shown = json.dumps(answer)
    return shown if len(shown) < 160 else shown[:160] + " ..."


# ---- what is asked


def recorded(side: Side, texts: int) -> Iterator[Check]:
    """The texts of the recorded sets: those of the repository, and the large ones if they lie near."""
    del texts
    for place, name in sorted(_sets()):
        rows = [json.loads(line) for line in lzma.decompress(place.read_bytes()).splitlines()]
        cases = [row for row in rows if row["kind"] == "case"]
        asked = [base64.b64decode(row["b64"]) if "b64" in row else row["text"].encode() for row in cases]
        file = _vocabulary(name)
        few = read_vocab(file).token_offsets.size <= FEW_TOKENS if file else False
        if file:
            yield check_answers(side, f"{place.parent.name}/{name}", file, asked, facts=few)


def _sets() -> set[tuple[Path, str]]:
    near = [SHARED / "golden"] if (SHARED / "golden").is_dir() else []
    places = [DATA / "golden", *(path for path in (DATA / "golden").glob("*") if path.is_dir()), *near]
    found = {(path, path.name.removesuffix(".jsonl.xz")) for place in places for path in place.glob("*.jsonl.xz")}
    return {(path, name) for path, name in found if not name.startswith("pre")}


def _vocabulary(name: str) -> bytes | None:
    for folder in (DATA / "vocabs", SHARED / "vocabs"):
        if (folder / f"{name}.gguf.xz").is_file():
            return lzma.decompress((folder / f"{name}.gguf.xz").read_bytes())
    return bundled_source(BUNDLED[name]) if name in BUNDLED else None


def byte_pairs(side: Side, texts: int) -> Iterator[Check]:
    """Every pre string on a vocabulary of all byte pairs, with the recorded texts and drawn ones."""
    rows = [json.loads(line) for line in lzma.decompress((DATA / "golden" / "pre.jsonl.xz").read_bytes()).splitlines()]
    told = [row["text"] for row in rows if row["kind"] == "text"]
    asked = [text.encode() if isinstance(text, str) else base64.b64decode(text["b64"]) for text in told]
    draw = Texts(1, read_vocab(pair_vocab("gpt-2")))
    asked += [draw.one()[:400] for _ in range(texts)]
    chosen = [pre for pre in sorted(pre_names()) if any(fnmatch.fnmatchcase(pre, each) for each in PRE_PATTERNS)]
    for pre in chosen:
        yield check_answers(side, f"byte pairs, pre {pre!r}", pair_vocab(pre), asked, facts=False)


def names(side: Side, texts: int) -> Iterator[Check]:
    """Words in the library's own strings as pre strings and as models."""
    del texts
    words = sorted(words_of(Path(side.library).read_bytes()))
    since: dict[str, dict[str, Any]] = {
        "pre": {name: entry.get("since") for name, entry in pre_names().items() if name},
        "model": {name: MODELS_SINCE.get(name) for kind in TYPES.values() for name in kind.gguf_models},
    }
    for kind, known in since.items():
        likely = [word for word in words if kind == "pre" or _MODEL.fullmatch(word)]
        theirs = side.accepted(kind, sorted({*likely, *known}))
        differing, left = Counter[str](), theirs ^ {name for name in known if _at(known[name], 0)}
        for k, release in enumerate(RELEASE_NAMES):
            left &= theirs ^ {name for name in known if _at(known[name], k)}
            differing[release] = len(left)
        new = [f"{T}{kind} {name!r} is known to it" for name in sorted(theirs - known.keys())]
        gone = sorted(set(known) - theirs - {name for name, first in known.items() if first})
        new += [f"{T}{kind} {name!r} is not known to it any more" for name in gone]
        yield Check(f"words as {kind} strings", len(likely), differing, new)


def _at(since: str | None, k: int) -> bool:
    """Whether the k-th release, the newest being number 0, knows what came with another."""
    return has(release_named(RELEASE_NAMES[k]), since)


def tokens(side: Side, texts: int) -> Iterator[Check]:
    """Texts like tokens in the library's own strings, all in one vocabulary: which of them are treated specially?"""
    del texts
    found = sorted(tokens_of(Path(side.library).read_bytes()))
    file = header({
        "general.architecture": (8, "llama"), T + "model": (8, "gpt2"), T + "pre": (8, "gpt-2"),
        T + "tokens": (9, (8, ["a", "b", "ab", *found])), T + "merges": (9, (8, ["a b"])),
    })  # fmt: skip
    check = check_answers(side, "texts as tokens", file, [])
    if check.new:  # which of them
        (theirs,) = _of_tokens(side, file)
        ours = jittok.load(file, cache=False)
        mine = [*zip(ours.attributes.tolist(), (token in ours.eog_ids for token in range(len(ours))), strict=True)]
        its = [*zip(theirs["attributes"], (token in theirs["eog_ids"] for token in range(len(ours))), strict=True)]
        apart = [text for text, a, b in zip(["a", "b", "ab", *found], its, mine, strict=True) if a != b]
        check = check._replace(new=[f"the text {text!r} is treated otherwise" for text in apart] or check.new)
    yield check


def _of_tokens(side: Side, file: bytes) -> list[Any]:
    with tempfile.NamedTemporaryFile(suffix=".gguf") as place:
        place.write(file)
        place.flush()
        return side.answers(Path(place.name), [["facts"]])


def words_of(library: bytes) -> set[str]:
    """Words in what a file holds as text: candidates for names."""
    runs = (run for run in _RUN.findall(library) if len(run) <= 60)
    return {word.decode("ascii") for run in runs for word in _WORD.findall(run)}


def tokens_of(library: bytes) -> set[str]:
    """The same for texts of tokens."""
    found = {text for run in _RUN.findall(library) for text in _TOKEN.findall(run)}
    return {text.decode() for text in found if _is_text(text)}


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def header_keys(side: Side, texts: int) -> Iterator[Check]:
    """Keys of tokenizers in the library's strings that jittok has no name for."""
    del texts
    held = {key.decode() for key in re.findall(rb"tokenizer\.ggml\.[a-z0-9_.]{2,60}", Path(side.library).read_bytes())}
    new = [f"the key {key} is in its strings" for key in sorted(held - KNOWN_KEYS)]
    yield Check("keys in its strings", len(held), Counter(dict.fromkeys(RELEASE_NAMES, len(new))), new)


def _known_keys() -> set[str]:
    from jittok.vocab import keys

    own = {value for value in vars(keys).values() if isinstance(value, str) and value.startswith(T)}
    return own | {key for key, _ in keys.ID_KEYS} | {T + name for name in NOT_READ}


NOT_READ = (
    "hf_json",
    "cls_token_id",
    "rwkv.world",
    "token_type_count",
    "normalizer.",
    "chat_template",
    "eos_token_ids",
)
"""Keys that it names and that change no answer, or parts of names."""
KNOWN_KEYS = _known_keys()
CHECKS: tuple[Callable[[Side, int], Iterator[Check]], ...] = (names, header_keys, tokens, byte_pairs, recorded)
