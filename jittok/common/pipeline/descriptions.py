"""Descriptions of the steps of a tokenizer in words, for `jittok info` and `Tokenizer.explain`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jittok.common.pipeline.models import BPE, CHAR, MISSING, NO_TOKEN, UNIGRAM, WORD
from jittok.common.pipeline.steps import (
    ALWAYS,
    BYTE_ALPHABET,
    CONTIGUOUS,
    CRATE,
    ESCAPES,
    FIRST,
    ID,
    ISOLATED,
    MERGED_WITH_NEXT,
    MERGED_WITH_PREVIOUS,
    ONIG,
    REMOVED,
    SPACES,
    TEXT,
    Pattern,
)

MAPS = {
    "bert_clean": "remove control characters, white space becomes spaces",
    "bert_chinese": "spaces around Chinese characters",
    "bert_accents": "remove accents (combining marks)",
    "accents": "remove accents (combining marks)",
    "lowercase": "lowercase",
    "nmt": "remove control characters, unusual spaces become spaces",
}
KINDS = {
    UNIGRAM: "sentencepiece's Unigram: the tokens with the highest sum of scores",
    BPE: "sentencepiece's BPE: the pair with the highest score is merged first",
    WORD: "sentencepiece's word model: each word is a token, or unknown",
    CHAR: "sentencepiece's character model: each character is a token, or unknown",
}
CUTS = {
    ISOLATED: "matches and the text between them become pre-tokens",
    REMOVED: "matches are dropped, the text between them becomes pre-tokens",
    CONTIGUOUS: "adjacent matches become one pre-token, and so does the text between",
    MERGED_WITH_PREVIOUS: "a match is appended to the pre-token before it",
    MERGED_WITH_NEXT: "a match is prepended to the pre-token after it",
}
PUTS = {ALWAYS: ", one is prepended to each text", FIRST: ", one is prepended to the first text"}
PRINTS = {
    BYTE_ALPHABET: "characters of the byte alphabet become bytes",
    SPACES: "'▁' becomes a space, tokens such as <0x41> become bytes",
    ESCAPES: "escapes such as \\n become bytes",
    TEXT: "tokens print their text, those such as <0x41> bytes",
    ID: "each token prints its id",
}
LONGEST_TEXT = 500
"""Characters of a text that are shown."""


def in_words(step: Any) -> str:
    """What a normalizer, a splitter, a decoder or a model does."""
    return _WORDS[type(step).__name__](step)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…")


def _pattern(pattern: Pattern) -> str:
    if pattern.literal:
        return f"the text {_quoted(pattern.text)}"
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in pattern.text[:LONGEST_TEXT])
    engine = f" (llama.cpp's engine {pattern.engine})" if pattern.engine not in (ONIG, CRATE) else ""
    return f"the pattern `{text}{'…' if len(pattern.text) > LONGEST_TEXT else ''}`{engine}"


def _replace(step: Any) -> str:
    becomes = f"becomes {_quoted(step.content)}" if step.content else "is removed"
    return f"{_pattern(step.pattern)} {becomes}"


def _ends(step: Any) -> str:
    ends = [name for name, wanted in (("beginning", step.left), ("end", step.right)) if wanted]
    return f"strip white space at the {' and at the '.join(ends)}" if ends else "nothing"


def _squeeze(step: Any, name: str = "sentencepiece's normalizer", squeezed: str = "extra spaces are removed") -> str:
    parts = [name + (" with a character map" if step.charsmap.size else "")]
    if step.prefix:
        parts.append(f"a space is {'appended' if step.suffix else 'prepended'}")
    parts += [squeezed] * step.squeeze + ["a space becomes '▁'"] * step.escape
    return ", ".join(parts)


def _cut(step: Any) -> str:
    if step.invert and step.behavior == REMOVED:
        return f"split by {_pattern(step.pattern)}: matches become pre-tokens, the text between them is dropped"
    between = ", with matches and the text between exchanged" if step.invert else ""
    return f"split by {_pattern(step.pattern)}: {CUTS[step.behavior]}{between}"


def _metaspace(step: Any) -> str:
    split = f", split before each {step.mark!r}" if step.split else ""
    return f"spaces become {step.mark!r}{PUTS.get(step.scheme, '')}{split}"


def _unknown(model: Any) -> str:
    if model.unknown == MISSING:
        return "; text that needs the unknown token cannot be encoded, as there is none"
    return (
        "; characters without a token are dropped" if model.unknown == NO_TOKEN else f"; unknown: token {model.unknown}"
    )


def _fallback(model: Any) -> str:
    return "; characters without a token become byte tokens" if model.byte_fallback else ""


def _merges(model: Any) -> str:
    parts = [f"BPE with {model.left.size:,} merges, the lowest rank first"]
    parts += ["; a word that is a token is that token"] * model.whole_words
    parts += [f"; {model.prefix!r} is prepended to characters after the first"] * bool(model.prefix)
    parts += [f"; {model.suffix!r} is appended to the last character"] * bool(model.suffix)
    unknown = "" if model.byte_fallback and model.unknown == NO_TOKEN else _unknown(model)
    joined = ", adjacent ones become one" if model.fuse_unknown and model.unknown >= 0 else ""
    return "".join(parts) + _fallback(model) + unknown + joined


def _shortest(step: Any) -> str:
    return "" if step.shortest else ", except that overlong forms are decoded"


def _bert_words(step: Any) -> str:
    parts = ["lowercase"] * step.lowercase + ["remove accents (combining marks)"] * step.strip_accents
    return ", ".join([*parts, "split at white space, punctuation and ideographs, '▁' is prepended to each word"])


def _join_llama(step: Any) -> str:
    parts = [PRINTS[step.prints]]
    parts += ["a space at the beginning of the text is removed"] * step.strip_first
    parts += ["spaces before punctuation and contractions are removed"] * step.clean_spaces
    return ", ".join(parts)


def _pair_merges(model: Any) -> str:
    parts = [f"BPE with {model.offsets.size - 1:,} merges, the lowest rank first"]
    parts += ["; a word that is a token is that token"] * model.whole_words
    parts += ["; a word of newlines that is a token is that token"] * (model.whole_lines and not model.whole_words)
    return "".join(parts) + "; symbols without a token become byte tokens"


def _strip_each(step: Any) -> str:
    return (
        f"up to {step.start} {step.content!r} at the beginning of each token, and {step.stop} at its end, are removed"
    )


def _ctc(step: Any) -> str:
    return f"repeated tokens become one, {step.pad!r} is removed, {step.delimiter!r} becomes a space"


_WORDS: dict[str, Callable[[Any], str]] = {
    "Map": lambda step: MAPS[step.name],
    "Compose": lambda step: f"Unicode normalization {step.form}",
    "Clusters": lambda step: f"sentencepiece's character map of {step.charsmap.size:,} bytes",
    "Replace": _replace,
    "Prepend": lambda step: f"prepend {step.text!r}",
    "Strip": _ends,
    "SpellBytes": lambda _: "each byte becomes a character of the byte alphabet",
    "Squeeze": _squeeze,
    "PrefixSpace": lambda _: "prepend a space if there is none",
    "Cut": _cut,
    "CutClass": lambda step: f"split by characters of the class {step.name}: {CUTS[step.behavior]}",
    "CutScripts": lambda _: (
        "split between scripts (kana and ideographs count as one script); a space belongs to the pre-token before it, "
        "and is dropped if there is none"
    ),
    "Metaspace": _metaspace,
    "Chars": lambda step: f"split into pieces of {step.size} characters",
    "JoinBytes": lambda _: "characters of the byte alphabet become bytes",
    "JoinFallback": lambda _: "tokens such as <0x41> become bytes",
    "Fuse": lambda _: "all tokens are joined",
    "ReplaceEach": lambda step: f"in each token, {_replace(step)}",
    "Unmark": lambda step: f"{step.mark!r} becomes a space" + ("" if step.keep_first else ", the first one is removed"),
    "StripEach": _strip_each,
    "JoinWords": lambda step: (
        f"spaces between tokens, except before {step.prefix!r}, which is removed"
        + (", no space before punctuation" if step.cleanup else "")
    ),
    "Unsuffix": lambda step: f"{step.suffix!r} becomes a space, the last one is removed",
    "Ctc": _ctc,
    "Spaced": lambda _: "spaces between tokens",
    "JoinPieces": lambda step: f"sentencepiece's decoder: '▁' becomes a space, an unknown token {step.unknown!r}",
    "Trim": lambda _: "strip white space at both ends of each token",
    "JoinRaw": lambda _: "tokens are bytes",
    "JoinRawBetweenSpecial": lambda _: "tokens are bytes; runs between special tokens are decoded as UTF-8 separately",
    "ReadUtf8": lambda step: "invalid UTF-8 becomes U+FFFD" + _shortest(step),
    "PrependBehindSpecial": lambda step: f"prepend {step.text!r} at the beginning and after special tokens",
    "BeginLines": lambda step: f"prepend {step.text!r} to each line that does not begin with it",
    "Lowercase": lambda _: "lowercase",
    "ComposeAll": lambda _: "Unicode normalization NFC",
    "SqueezeLlama": lambda step: _squeeze(step, "llama.cpp's normalizer of Unigram", "adjacent spaces become one"),
    "CutWhite": lambda _: "split at white space",
    "BertWords": _bert_words,
    "Kmers": lambda step: f"between the tokens {step.begin} and {step.end}, every {step.size} letters are one token",
    "PlamoSegments": lambda step: (
        "split around control sequences and long runs of one character"
        if step.runs
        else "remove a leading byte order mark"
    ),
    "JoinLlama": _join_llama,
    "PairMerges": _pair_merges,
    "ScoredMerges": lambda _: (
        "BPE by scores: the pair that makes the token with the highest score is merged first; characters without a "
        "token become byte tokens"
    ),
    "Lattice": lambda model: "Unigram: the tokens with the highest sum of scores" + _unknown(model),
    "LongestText": lambda model: (
        "WordPiece: the longest token at each offset; a word without a match is unknown" + _unknown(model)
    ),
    "LongestEscaped": lambda model: "the longest token at each byte" + _unknown(model),
    "Suffixes": lambda _: (
        "the segmentation of the text into tokens with the lowest cost; characters without a token become byte tokens"
    ),
    "Hashed": lambda model: f"each {model.bytes} bytes are hashed to an id",
    "NoModel": lambda _: "none: no text can be encoded",
    "Merges": _merges,
    "Ranks": lambda _: "BPE by ranks: the pair that makes the token with the lowest rank is merged first",
    "Unigram": lambda model: "Unigram: the tokens with the highest sum of scores" + _fallback(model) + _unknown(model),
    "WordPiece": lambda model: (
        f"WordPiece: the longest token from the left, after the first with the prefix {model.prefix!r}"
        f"; a word of more than {model.longest} characters, or without a match, is unknown" + _unknown(model)
    ),
    "Words": lambda model: "each word is a token, or unknown" + _unknown(model),
    "Pieces": lambda model: KINDS[model.kind] + _fallback(model) + _unknown(model),
    "Longest": lambda _: "the longest token at each byte",
}
