"""The steps of a tokenizer file in words, for `jittok info`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jittok.pipeline.models import BPE, CHAR, MISSING, NO_TOKEN, UNIGRAM, WORD
from jittok.pipeline.steps import (
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
    "bert_clean": "control characters go, white space becomes spaces",
    "bert_chinese": "spaces around Chinese characters",
    "bert_accents": "marks go (accents)",
    "accents": "marks go (accents)",
    "lowercase": "lower case",
    "nmt": "control characters go, odd spaces become spaces",
}
KINDS = {
    UNIGRAM: "Unigram of sentencepiece: the tokens with the best sum of scores",
    BPE: "BPE of sentencepiece: the neighbours with the best score are joined first",
    WORD: "words of sentencepiece: each word is a token, or unknown",
    CHAR: "characters of sentencepiece: each character is a token, or unknown",
}
CUTS = {
    ISOLATED: "each match is a word, and so is what stands between",
    REMOVED: "what matches is dropped, what stands between are the words",
    CONTIGUOUS: "matches in a row are one word, and so is what stands between",
    MERGED_WITH_PREVIOUS: "a match ends the word before it",
    MERGED_WITH_NEXT: "a match begins the word behind it",
}
PUTS = {ALWAYS: ", one in front of each text", FIRST: ", one in front of the first text"}
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
    becomes = f"becomes {_quoted(step.content)}" if step.content else "goes"
    return f"{_pattern(step.pattern)} {becomes}"


def _ends(step: Any) -> str:
    ends = [name for name, wanted in (("beginning", step.left), ("end", step.right)) if wanted]
    return f"white space at the {' and at the '.join(ends)} goes" if ends else "nothing"


def _squeeze(step: Any, name: str = "sentencepiece's normalizer", squeezed: str = "extra spaces go") -> str:
    parts = [name + (" with a character map" if step.charsmap.size else "")]
    if step.prefix:
        parts.append(f"a space {'behind' if step.suffix else 'in front'}")
    parts += [squeezed] * step.squeeze + ["a space becomes '▁'"] * step.escape
    return ", ".join(parts)


def _cut(step: Any) -> str:
    if step.invert and step.behavior == REMOVED:
        return f"words by {_pattern(step.pattern)}: the matches are the words, what stands between is dropped"
    between = ", matches and what stands between exchanged" if step.invert else ""
    return f"words by {_pattern(step.pattern)}: {CUTS[step.behavior]}{between}"


def _metaspace(step: Any) -> str:
    split = f", words begin at each {step.mark!r}" if step.split else ""
    return f"spaces become {step.mark!r}{PUTS.get(step.scheme, '')}{split}"


def _unknown(model: Any) -> str:
    if model.unknown == MISSING:
        return "; a text that needs the unknown token cannot be encoded, for it is missing"
    return (
        "; a character without a token vanishes" if model.unknown == NO_TOKEN else f"; unknown: token {model.unknown}"
    )


def _fallback(model: Any) -> str:
    return "; characters without a token become their bytes" if model.byte_fallback else ""


def _merges(model: Any) -> str:
    parts = [f"BPE with {model.left.size:,} merges, the lowest rank first"]
    parts += ["; a word that is a token is that token"] * model.whole_words
    parts += [f"; characters but the first have {model.prefix!r} in front"] * bool(model.prefix)
    parts += [f"; the last character has {model.suffix!r} behind"] * bool(model.suffix)
    unknown = "" if model.byte_fallback and model.unknown == NO_TOKEN else _unknown(model)
    joined = ", several in a row are one" if model.fuse_unknown and model.unknown >= 0 else ""
    return "".join(parts) + _fallback(model) + unknown + joined


def _shortest(step: Any) -> str:
    return "" if step.shortest else ", but an overlong form is the character that it stands for"


def _bert_words(step: Any) -> str:
    parts = ["lower case"] * step.lowercase + ["marks go (accents)"] * step.strip_accents
    return ", ".join([*parts, "words at white space, punctuation and ideographs, each with '▁' in front"])


def _join_llama(step: Any) -> str:
    parts = [PRINTS[step.prints]]
    parts += ["a space that the text begins with goes"] * step.strip_first
    parts += ["spaces in front of punctuation and contractions go"] * step.clean_spaces
    return ", ".join(parts)


def _pair_merges(model: Any) -> str:
    parts = [f"BPE with {model.offsets.size - 1:,} merges, the lowest rank first"]
    parts += ["; a word that is a token is that token"] * model.whole_words
    parts += ["; a word of newlines that is a token is that token"] * (model.whole_lines and not model.whole_words)
    return "".join(parts) + "; what is no token becomes the tokens of its bytes"


def _strip_each(step: Any) -> str:
    return f"up to {step.start} {step.content!r} at the beginning of each token, and {step.stop} at its end, go"


def _ctc(step: Any) -> str:
    return f"equal neighbours are one, {step.pad!r} goes, {step.delimiter!r} becomes a space"


_WORDS: dict[str, Callable[[Any], str]] = {
    "Map": lambda step: MAPS[step.name],
    "Compose": lambda step: f"the normal form {step.form}",
    "Clusters": lambda step: f"sentencepiece's character map of {step.charsmap.size:,} bytes",
    "Replace": _replace,
    "Prepend": lambda step: f"{step.text!r} in front",
    "Strip": _ends,
    "SpellBytes": lambda _: "each byte becomes a character of the byte alphabet",
    "Squeeze": _squeeze,
    "PrefixSpace": lambda _: "a space in front, if there is none",
    "Cut": _cut,
    "CutClass": lambda step: f"words by the characters of the set {step.name}: {CUTS[step.behavior]}",
    "CutScripts": lambda _: (
        "words of one script each (kana and ideographs count as one script); a space belongs to the word before it, "
        "and is dropped where there is none"
    ),
    "Metaspace": _metaspace,
    "Chars": lambda step: f"words of {step.size} characters",
    "JoinBytes": lambda _: "characters of the byte alphabet become bytes",
    "JoinFallback": lambda _: "tokens such as <0x41> become bytes",
    "Fuse": lambda _: "all tokens are joined",
    "ReplaceEach": lambda step: f"in each token, {_replace(step)}",
    "Unmark": lambda step: f"{step.mark!r} becomes a space" + ("" if step.keep_first else ", the first one goes"),
    "StripEach": _strip_each,
    "JoinWords": lambda step: (
        f"spaces between tokens, but in front of {step.prefix!r}, which goes"
        + (", no space in front of punctuation" if step.cleanup else "")
    ),
    "Unsuffix": lambda step: f"{step.suffix!r} becomes a space, the last one goes",
    "Ctc": _ctc,
    "Spaced": lambda _: "spaces between tokens",
    "JoinPieces": lambda step: f"sentencepiece's decoder: '▁' becomes a space, an unknown token {step.unknown!r}",
    "Trim": lambda _: "white space at the ends of each token goes",
    "JoinRaw": lambda _: "tokens are bytes",
    "JoinRawBetweenSpecial": lambda _: "tokens are bytes; those between special tokens are read as UTF-8 by themselves",
    "ReadUtf8": lambda step: "what is no UTF-8 becomes U+FFFD" + _shortest(step),
    "PrependBehindSpecial": lambda step: f"{step.text!r} in front, at the beginning and behind special tokens",
    "BeginLines": lambda step: f"{step.text!r} in front of each line that does not begin so",
    "Lowercase": lambda _: "lower case",
    "ComposeAll": lambda _: "the normal form NFC",
    "SqueezeLlama": lambda step: _squeeze(step, "llama.cpp's normalizer of Unigram", "spaces in a row are one"),
    "CutWhite": lambda _: "words are what stands between white space",
    "BertWords": _bert_words,
    "Kmers": lambda step: f"between tokens {step.begin} and {step.end} each {step.size} letters are a token",
    "PlamoSegments": lambda step: (
        "text is cut around control sequences and long runs of one character"
        if step.runs
        else "a byte order mark in front goes"
    ),
    "JoinLlama": _join_llama,
    "PairMerges": _pair_merges,
    "ScoredMerges": lambda _: (
        "BPE by scores: the neighbours that make the token of the highest score are joined first; characters without a "
        "token become their bytes"
    ),
    "Lattice": lambda model: "Unigram: the tokens with the best sum of scores" + _unknown(model),
    "LongestText": lambda model: (
        "WordPiece: the longest token at each place; a word without such tokens is unknown" + _unknown(model)
    ),
    "LongestEscaped": lambda model: "the longest token at each byte" + _unknown(model),
    "Suffixes": lambda _: "the cheapest way to cut the text into tokens; characters without a token become their bytes",
    "Hashed": lambda model: f"each {model.bytes} bytes are hashed to an id",
    "NoModel": lambda _: "none: no text can be encoded",
    "Merges": _merges,
    "Ranks": lambda _: "BPE by ranks: neighbours that make the token of the lowest rank are joined first",
    "Unigram": lambda model: "Unigram: the tokens with the best sum of scores" + _fallback(model) + _unknown(model),
    "WordPiece": lambda model: (
        f"WordPiece: the longest token from the left, behind the first with {model.prefix!r} in "
        f"front; a word of more than {model.longest} characters, or without such tokens, is unknown" + _unknown(model)
    ),
    "Words": lambda model: "each word is a token, or unknown" + _unknown(model),
    "Pieces": lambda model: KINDS[model.kind] + _fallback(model) + _unknown(model),
    "Longest": lambda _: "the longest token at each byte",
}
