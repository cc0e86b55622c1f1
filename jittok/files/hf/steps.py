"""The normalizers, pre-tokenizers and decoders of a tokenizer.json as steps of a Pipeline.

How long a text may become is bounded before anything runs (`Growth`): a step that doubles a text is harmless, and forty
of them need a terabyte for one character. So each step has a bound for what a byte may become, and the step at which
the product is too large is refused. A step may also write something once for each pre-token; that has a byte at least.

Normalizers that prepend or match the empty text are checked (`check_empty_texts`): tokenizers keeps which characters of
the document each character comes from. A text put before the empty text, and what replaces it, come from none. A later
step that maps characters then fails, or writes the first character twice. Such files are refused.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from typing import TypeVar, get_args

from jittok.common.pipeline.growth import GrowthProduct
from jittok.common.pipeline.known_patterns import GPT2
from jittok.common.pipeline.patterns import PatternError, check_pattern, matches_empty
from jittok.common.pipeline.steps import (
    ALWAYS,
    BEHAVIORS,
    CONTIGUOUS,
    CRATE,
    FIRST,
    ISOLATED,
    NEVER,
    REMOVED,
    SCHEMES,
    Chars,
    Clusters,
    Compose,
    Ctc,
    Cut,
    CutClass,
    CutScripts,
    Decoder,
    Fuse,
    JoinBytes,
    JoinFallback,
    JoinWords,
    Map,
    Metaspace,
    Normalizer,
    Pattern,
    PrefixSpace,
    Prepend,
    Replace,
    ReplaceEach,
    SpellBytes,
    Splitter,
    Strip,
    StripEach,
    Unmark,
    Unsuffix,
)  # fmt: skip
from jittok.common.unicode.characters import SPACE_MARK
from jittok.common.unicode.libraries import Form
from jittok.errors import InWords
from jittok.files.charsmap import checked_charsmap
from jittok.files.json_nodes import Node

MOST_GROWTH = 1 << 16
"""Bytes that one byte of a text may become. The steps of real models make less than 2,000 of it."""
MOST_AROUND = 1 << 12
"""Ids that a template may put around a text."""


class Growth(GrowthProduct):
    """What one byte of a text may have become, step after step of a file."""

    def add(self, node: Node, step: Normalizer | Splitter | Decoder) -> None:
        """Count one step. node: its component in the file. Raises UnsupportedVocab where the product is too large."""
        most = self.count(step)
        if most > MOST_GROWTH:
            name = type(step).__name__
            raise node.unknown(
                InWords(f"{name}, which may expand one byte of text to {most:,.0f}"),
                f"steps that make at most {MOST_GROWTH:,} bytes of one, all together",
            )


MAPS = (Map, Compose, Clusters, SpellBytes)
"""Steps that map characters one by one."""


def check_empty_texts(root: Node, normalize: tuple[Normalizer, ...], split: tuple[Splitter, ...]) -> None:
    """UnsupportedVocab where a step maps characters after the empty text was prepended or replaced."""
    for k, step in enumerate(normalize):
        after: tuple[Normalizer | Splitter, ...] = (*normalize[k + 1 :], *split)
        bad: tuple[type, ...]
        if step == Prepend(""):
            bad, what = (*MAPS, Strip), "the empty text is prepended"
        elif isinstance(step, Replace) and step.content and matches_empty(step.pattern):
            bad, what = MAPS, "the empty text is replaced"
        else:
            continue
        for later in after:
            if isinstance(later, bad):
                raise root.child("normalizer").unknown(
                    root.child("normalizer").value,
                    f"no step that maps characters ({type(later).__name__}) after {what}: tokenizers fails on texts "
                    "there, or writes characters twice",
                )


def without_empty(normalize: tuple[Normalizer, ...], split: tuple[Splitter, ...]) -> tuple[Normalizer, ...]:
    """Normalizers without one that prepends the empty text, which matters only to a step that uses document offsets."""
    asked = any(isinstance(stage, Metaspace) and stage.scheme == FIRST for stage in split)
    return normalize if asked else tuple(step for step in normalize if step != Prepend(""))


Step = TypeVar("Step", Normalizer, Splitter, Decoder)
MOST_STEPS = 100
DEEPEST = 16
UNTYPED: dict[str, dict[str, tuple[str, ...]]] = {
    "normalizers": {
        "BertNormalizer": ("clean_text", "handle_chinese_chars", "lowercase"), "Strip": ("strip_left", "strip_right"),
        "Sequence": ("normalizers",), "Replace": ("pattern", "content"), "Prepend": ("prepend",),
    },
    "decoders": {
        "BPEDecoder": ("suffix",), "WordPiece": ("prefix", "cleanup"),
        "CTC": ("pad_token", "word_delimiter_token", "cleanup"), "Replace": ("pattern", "content"),
        "Strip": ("content", "start", "stop"),
    },
    "processors": {
        "RobertaProcessing": ("cls", "sep", "trim_offsets", "add_prefix_space"), "BertProcessing": ("cls", "sep"),
        "TemplateProcessing": ("single", "pair", "special_tokens"),
    },
}  # fmt: skip
"""What tokenizers takes an object without "type" for: the first kind all of whose keys it has."""


def flat(node: Node, key: str, depth: int = 0) -> Iterator[Node]:
    """The components of a part of the file, Sequences unfolded; `key` is under which a Sequence has its own."""
    if node.value is None:
        return
    if depth > DEEPEST:
        raise node.bad(InWords(f"Sequences nested more than {DEEPEST} deep"), f"at most {DEEPEST}")
    node = _typed(node, UNTYPED.get(key, {}))
    if node.type() == "Sequence":
        parts = node.child(key).items()
        if len(parts) > MOST_STEPS:
            raise node.bad(InWords(f"{len(parts)} components"), f"at most {MOST_STEPS}")
        for part in parts:
            yield from flat(part, key, depth + 1)
    else:
        yield node


def _typed(node: Node, untyped: dict[str, tuple[str, ...]]) -> Node:
    """A component with its type, which old files may leave out."""
    if "type" not in node.of(dict):
        for kind, keys in untyped.items():
            if all(key in node.value for key in keys):
                return Node(node.file, node.position, {"type": kind, **node.value})
    return node


def read_pattern(node: Node) -> Pattern:
    """{"String": text} or {"Regex": pattern}. The empty text is found at every offset, as by the empty pattern."""
    if set(node.of(dict)) == {"String"}:
        return Pattern(node.get("String", str), literal=True)
    if set(node.of(dict)) != {"Regex"}:
        raise node.bad(node.value, '{"String": text} or {"Regex": pattern}')
    text = node.get("Regex", str)
    try:
        check_pattern(Pattern(text), empty=True)
    except PatternError as error:
        raise node.unknown(text, f"a supported pattern ({error})") from None
    return Pattern(text)


# ---- normalizers


def normalizers(node: Node, growth: Growth) -> tuple[Normalizer, ...]:
    """The steps of the file's normalizer. growth: what a text may become in them."""
    return _counted(node, "normalizers", _normalizer, growth)


def _counted(node: Node, key: str, steps_of: Callable[[Node], list[Step]], growth: Growth) -> tuple[Step, ...]:
    """The steps of all components, not too many and none that lets a text grow too much."""
    found: list[Step] = []
    for part in flat(node, key):
        for step in steps_of(part):
            growth.add(part, step)
            found.append(step)
        if len(found) > MOST_STEPS:
            raise part.bad(InWords(f"more than {MOST_STEPS} steps in total"), f"at most {MOST_STEPS}")
    return tuple(found)


def _normalizer(node: Node) -> list[Normalizer]:
    kind = node.type()
    for form in get_args(Form):
        if kind == form:
            return [Compose(form)]
    if kind == "Lowercase":
        return [Map("lowercase")]
    if kind == "StripAccents":
        return [Map("accents")]
    if kind == "Nmt":
        return [Map("nmt")]
    if kind == "ByteLevel":
        return [SpellBytes()]
    if kind == "Strip":
        return [Strip(node.get("strip_left", bool), node.get("strip_right", bool))]
    if kind == "Prepend":
        return [Prepend(node.get("prepend", str))]
    if kind == "Replace":
        step = Replace(read_pattern(node.child("pattern")), node.get("content", str))
        return [] if step.pattern.text == step.content == "" else [step]
    if kind == "BertNormalizer":
        return _bert(node)
    if kind == "Precompiled":
        return _precompiled(node)
    raise node.child("type").unknown(kind, "a supported normalizer")


def _bert(node: Node) -> list[Normalizer]:
    lowercase = node.get("lowercase", bool)
    steps: list[Normalizer] = []
    if node.get("clean_text", bool):
        steps.append(Map("bert_clean"))
    if node.get("handle_chinese_chars", bool):
        steps.append(Map("bert_chinese"))
    if node.get("strip_accents", bool, lowercase):
        steps += [Compose("NFD"), Map("bert_accents")]
    return [*steps, Map("lowercase")] if lowercase else steps


def _precompiled(node: Node) -> list[Normalizer]:
    text = node.get("precompiled_charsmap", str, "")
    if not text:
        return []
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise node.child("precompiled_charsmap").bad(text, "base64") from None
    return [Clusters(checked_charsmap(data, node.bad))]


# ---- pre-tokenizers


def splitters(node: Node, growth: Growth) -> tuple[Splitter, ...]:
    """The stages of the file's pre-tokenizer. growth: of the normalizers, which continues."""
    return _counted(node, "pretokenizers", _splitter, growth)


def _behavior(node: Node, default: str | None = None) -> str:
    found = node.get("behavior", str) if default is None else node.get("behavior", str, default)
    wanted = found.lower().replace("_", "")
    for name in BEHAVIORS:
        if name.replace("_", "") == wanted:
            return name
    raise node.child("behavior").bad(found, "one of " + ", ".join(BEHAVIORS))


def _splitter(node: Node) -> list[Splitter]:
    kind = node.type()
    known: dict[str, Callable[[], list[Splitter]]] = {
        "ByteLevel": lambda: _byte_level(node),
        "Metaspace": lambda: [_metaspace(node)],
        "Split": lambda: [_split(node)],
        "Whitespace": lambda: [Cut(Pattern(r"\w+|[^\w\s]+", engine=CRATE), REMOVED, invert=True)],
        "WhitespaceSplit": lambda: [CutClass("whitespace", REMOVED)],
        "BertPreTokenizer": lambda: [CutClass("whitespace", REMOVED), CutClass("punctuation", ISOLATED)],
        "Punctuation": lambda: [CutClass("punctuation", _behavior(node, ISOLATED))],
        "Digits": lambda: [CutClass("numeric", ISOLATED if node.get("individual_digits", bool) else CONTIGUOUS)],
        "CharDelimiterSplit": lambda: [Cut(Pattern(_character(node, "delimiter"), literal=True), REMOVED)],
        "UnicodeScripts": lambda: [CutScripts()],
        "FixedLength": lambda: [Chars(_length(node))],
    }
    if kind not in known:
        raise node.child("type").unknown(kind, "a supported pre-tokenizer")
    return known[kind]()


def _split(node: Node) -> Splitter:
    """The empty text is found before every character and at the end: each character is a word, by any behavior. Only
    where what lies between matches is removed, nothing stays."""
    pattern, behavior, invert = read_pattern(node.child("pattern")), _behavior(node), node.get("invert", bool)
    if pattern.text:
        return Cut(pattern, behavior, invert)
    return Cut(Pattern(r"[\s\S]"), REMOVED) if behavior == REMOVED and invert else Chars(1)


def _byte_level(node: Node) -> list[Splitter]:
    stages: list[Splitter] = [PrefixSpace()] if node.get("add_prefix_space", bool, True) else []
    if node.get("use_regex", bool, True):
        stages.append(Cut(Pattern(GPT2), ISOLATED))
    return [*stages, SpellBytes()]


def _metaspace(node: Node) -> Metaspace:
    scheme = node.one_of("prepend_scheme", SCHEMES, ALWAYS)
    if node.get("add_prefix_space", bool, True) is False:
        if node.has("prepend_scheme") and scheme != NEVER:
            raise node.bad(
                InWords(f"add_prefix_space false and prepend_scheme {scheme}"),
                "prepend_scheme never, or add_prefix_space true",
            )
        scheme = NEVER
    return Metaspace(_character(node, "replacement", SPACE_MARK), scheme, node.get("split", bool, True))


def _character(node: Node, key: str, default: str | None = None) -> str:
    found = node.get(key, str) if default is None else node.get(key, str, default)
    if len(found) != 1:
        raise node.child(key).bad(found, "one character")
    return str(found)


def _length(node: Node) -> int:
    length = node.count("length", 5)
    if length < 1:
        raise node.child("length").bad(length, "1 or more")
    return length


# ---- decoders


def decoders(node: Node) -> tuple[Decoder, ...]:
    """The steps of the file's decoder."""
    return _counted(node, "decoders", lambda part: [_decoder(part)], Growth())


def _decoder(node: Node) -> Decoder:
    kind = node.type()
    if kind == "ByteLevel":
        return JoinBytes()
    if kind == "ByteFallback":
        return JoinFallback()
    if kind == "Fuse":
        return Fuse()
    if kind == "Replace":
        return ReplaceEach(read_pattern(node.child("pattern")), node.get("content", str))
    if kind == "Metaspace":
        stage = _metaspace(node)
        return Unmark(stage.mark, stage.scheme == NEVER)
    if kind == "Strip":
        return StripEach(_character(node, "content"), node.count("start"), node.count("stop"))
    if kind == "WordPiece":
        return JoinWords(node.get("prefix", str), node.get("cleanup", bool))
    if kind == "BPEDecoder":
        return Unsuffix(node.get("suffix", str))
    if kind == "CTC":
        return Ctc(node.get("pad_token", str), node.get("word_delimiter_token", str), node.get("cleanup", bool))
    raise node.child("type").unknown(kind, "a supported decoder")
