"""Tokenizers in the few forms that several file formats can represent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.known_patterns import greedy
from jittok.common.pipeline.models import (
    BPE,
    NO_TOKEN,
    UNIGRAM,
    Lattice,
    Longest,
    LongestText,
    Merges,
    Pieces,
    Ranks,
    ScoredMerges,
    WordPiece,
)
from jittok.common.pipeline.pipeline import FIRST_TEXT
from jittok.common.pipeline.steps import (
    ALWAYS,
    FIRST,
    REMOVED,
    Compose,
    Cut,
    Map,
    Metaspace,
    Prepend,
    Replace,
    SpellBytes,
    Squeeze,
)
from jittok.common.unicode.characters import SPACE_MARK as SPACE
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.common.writers import hf_file
from jittok.common.writers.gguf_file import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED
from jittok.kernels.jit import frozen
from jittok.kernels.models.bpe.files import pairs_of_ranks
from jittok.kernels.structures.bytes_table import build_bytes_table
from jittok.reference.tokenize import around
from jittok.vocab import Vocab

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

ALPHABET = [chr(c) for c in CHARACTER_OF_BYTE]
_TYPES = {1: UNKNOWN, 4: NORMAL, 8: CONTROL, 16: USER_DEFINED, 32: BYTE, 2: UNUSED}
"""llama.cpp's attributes -> types of a GGUF, which are those of sentencepiece."""
ROLES = ("bos", "eos", "unk", "sep", "pad", "mask")


@dataclass
class TokenizerForm:
    """Tokens by id. A text of None is an id without a token."""

    answered: ClassVar[str] = ""  # what messages call it

    tokens: list[str | None]
    types: list[int]  # GGUF's, which are sentencepiece's
    added: list[dict[str, Any]] = field(default_factory=list)  # as a tokenizer.json has them
    before: list[int] = field(default_factory=list)  # what is around a text with add_special
    after: list[int] = field(default_factory=list)
    roles: dict[str, int] = field(default_factory=dict)
    name: str = ""


@dataclass
class ByteBpeForm(TokenizerForm):
    """BPE over bytes, in the byte alphabet."""

    answered: ClassVar[str] = "BPE over bytes"

    merges: list[tuple[str, str]] = field(default_factory=list)
    whole_words: bool = False
    splits: list[dict[str, Any]] | None = None  # of a tokenizer.json; None where only a `pre` says it
    pre: str | None = None
    composed: bool = False  # NFC before
    ranked: bool = False  # ids are ranks


@dataclass
class ScoredForm(TokenizerForm):
    """Pieces with scores, U+2581 for a space."""

    answered: ClassVar[str] = "pieces with scores"

    scores: list[float] = field(default_factory=list)
    kind: str = BPE
    byte_fallback: bool = True
    prefix: bool = True
    squeeze: bool = False
    charsmap: bytes = b""


@dataclass
class WordPieceForm(TokenizerForm):
    """WordPiece in BERT's way; inner parts begin with ##."""

    answered: ClassVar[str] = "WordPiece"

    lowercase: bool = True
    strip_accents: bool = True


@dataclass
class LiteralForm(TokenizerForm):
    """RWKV: the longest token at each byte."""

    answered: ClassVar[str] = "RWKV"

    raw: list[bytes | None] = field(default_factory=list)


def form_of(tok: Tokenizer) -> TokenizerForm | None:
    """The form of a tokenizer, None for one that has none of these."""
    vocab = tok.vocab
    form = _of_file(vocab) if isinstance(vocab, Pipeline) else _of_gguf(vocab)
    if form is not None:
        form.name = tok.name
    return form


# ---- files


def _of_file(pipeline: Pipeline) -> TokenizerForm | None:
    model = pipeline.model
    if pipeline.twins:  # other kinds of files have one text of an id
        return None
    at = pipeline.single.index(FIRST_TEXT)
    ids = {"bos": pipeline.bos_id, "eos": pipeline.eos_id, "unk": pipeline.unknown_id, "pad": pipeline.pad_id}
    roles = {role: token for role, token in ids.items() if token != NO_TOKEN}
    shared: dict[str, Any] = {
        "before": list(pipeline.single[:at]), "after": list(pipeline.single[at + 1 :]), "roles": roles,
        "types": _types(pipeline), "added": _added(pipeline),
    }  # fmt: skip
    if isinstance(model, Pieces):
        return _of_pieces(pipeline, model, shared)
    if isinstance(model, Longest):
        return LiteralForm(tokens=[None] * len(pipeline), raw=pipeline.tokens, **shared)
    if isinstance(model, WordPiece):
        names = [step.name for step in pipeline.normalize if isinstance(step, Map)]
        return WordPieceForm(
            _texts(pipeline), lowercase="lowercase" in names, strip_accents="bert_accents" in names, **shared
        )
    if isinstance(model, Ranks):
        return _of_ranks(pipeline, shared)
    if isinstance(model, Merges) and not model.prefix and not model.suffix:
        return _of_merges(pipeline, model, shared)
    return None


def _texts(pipeline: Pipeline) -> list[str | None]:
    return [None if text is None else text.decode() for text in pipeline.tokens]


def _types(pipeline: Pipeline) -> list[int]:
    types = [_TYPES.get(bits, NORMAL) for bits in pipeline.attributes.tolist()]
    if 0 <= pipeline.unknown_id < len(types):
        types[pipeline.unknown_id] = UNKNOWN
    return types


def _added(pipeline: Pipeline) -> list[dict[str, Any]]:
    """The added tokens. One that goes on to print its normalized content is twice, normalized first."""
    return [
        dict(hf_file.added_token(
            token.id, token.content, special=token.special, normalized=normalized, lstrip=token.lstrip,
            rstrip=token.rstrip, single_word=token.single_word,
        ))
        for token in sorted(pipeline.added, key=lambda token: token.id)
        for normalized in ((True, False) if token.printed_normalized else (token.normalized,))
    ]  # fmt: skip


def _of_ranks(pipeline: Pipeline, shared: dict[str, Any]) -> ByteBpeForm:
    """One pair a token is enough: the last merge of its own text."""
    first = pipeline.model.first if isinstance(pipeline.model, Ranks) else 0
    raw = pipeline.model_tokens
    ids = pipeline.vocabulary
    byte_tokens = frozen([ids[bytes([byte])] for byte in range(256)], np.int32)
    pairs = pairs_of_ranks(build_bytes_table(pipeline.model_bytes, pipeline.model_offsets), byte_tokens)
    order = np.argsort(pairs.rank, kind="stable")
    texts: list[str | None] = [None if text is None else spelled(text) for text in raw]
    merges = [
        (texts[left] or "", texts[right] or "")
        for left, right in zip(pairs.left[order].tolist(), pairs.right[order].tolist(), strict=True)
    ]
    tokens = texts + [None] * (len(pipeline) - len(texts))
    for token in pipeline.added:
        tokens[token.id] = token.content
    return ByteBpeForm(
        tokens, merges=merges, whole_words=True, splits=_splits(pipeline), ranked=first == 0, **shared,
    )  # fmt: skip


def spelled(raw: bytes) -> str:
    """Bytes in the byte alphabet."""
    return "".join(ALPHABET[byte] for byte in raw)


def _splits(pipeline: Pipeline) -> list[dict[str, Any]] | None:
    """The stages as Splits; None where one is something else."""
    out = []
    for stage in pipeline.split:
        if isinstance(stage, SpellBytes):
            continue
        if not isinstance(stage, Cut) or stage.pattern.literal:
            return None
        removed = stage.behavior == REMOVED and stage.invert
        pattern = greedy(stage.pattern.text, stage.pattern.engine) or stage.pattern.text
        out.append(
            dict(
                hf_file.split(pattern, "Removed" if removed else stage.behavior.title().replace("_", ""), stage.invert)
            )
        )
    return out


def _of_merges(pipeline: Pipeline, model: Merges, shared: dict[str, Any]) -> TokenizerForm | None:
    texts = [text.decode() if text is not None else None for text in pipeline.model_tokens]
    pairs = zip(model.left.tolist(), model.right.tolist(), strict=True)
    merges = [(texts[left] or "", texts[right] or "") for left, right in pairs]
    tokens = _texts(pipeline)
    if any(isinstance(stage, SpellBytes) for stage in pipeline.split):
        composed = [isinstance(step, Compose) and step.form == "NFC" for step in pipeline.normalize]
        if composed not in ([], [True]):
            return None
        return ByteBpeForm(
            tokens,
            merges=merges,
            whole_words=model.whole_words,
            splits=_splits(pipeline),
            composed=bool(composed),
            **shared,
        )
    prefix = _escaping(pipeline)
    if prefix is None or not model.byte_fallback:
        return None
    scores = [0.0] * len(tokens)
    for rank, token in reversed(list(enumerate(model.merged.tolist()))):
        scores[token] = -float(rank)
    types = list(_types(pipeline))
    for token, text in enumerate(tokens):
        if text is not None and len(text) == 6 and text.startswith("<0x"):
            types[token] = BYTE
    return ScoredForm(tokens, scores=scores, prefix=prefix, **{**shared, "types": types})


def _escaping(pipeline: Pipeline) -> bool | None:
    """Whether a space is put before, where steps do nothing but write U+2581 for spaces; None for others."""
    prefix = False
    for step in (*pipeline.normalize, *pipeline.split):
        if isinstance(step, Prepend) and step.text == SPACE:
            prefix = True
        elif isinstance(step, Metaspace) and step.mark == SPACE:
            prefix = prefix or step.scheme in (ALWAYS, FIRST)
        elif isinstance(step, Replace) and step.pattern.literal and (step.pattern.text, step.content) == (" ", SPACE):
            pass
        elif isinstance(step, Cut) and step.pattern.literal and step.pattern.text == " ":
            pass  # no space is left
        else:
            return None
    return prefix


def _of_pieces(pipeline: Pipeline, model: Pieces, shared: dict[str, Any]) -> ScoredForm | None:
    (step,) = pipeline.normalize
    if not isinstance(step, Squeeze) or model.kind not in (BPE, UNIGRAM) or step.suffix or not step.escape:
        return None
    types = [*model.types.tolist(), *_types(pipeline)[model.types.size :]]
    return ScoredForm(
        _texts(pipeline), scores=pipeline.scores.tolist(), kind=model.kind, byte_fallback=model.byte_fallback,
        prefix=step.prefix, squeeze=step.squeeze, charsmap=step.charsmap.tobytes(), **{**shared, "types": types},
    )  # fmt: skip


# ---- GGUF


def _of_gguf(vocab: Vocab) -> TokenizerForm | None:
    before, after = around(vocab)
    types = [_TYPES.get(bits & 63, NORMAL) for bits in vocab.file_attributes.tolist()]
    tokens: list[str | None] = [text.decode("utf-8", "replace") for text in vocab.tokens]
    added = [
        dict(hf_file.added_token(token, tokens[token] or "", special=types[token] != USER_DEFINED))
        for token in sorted(vocab.special_tokens.tolist())
    ]
    shared: dict[str, Any] = {
        "before": [before] if before != NO_TOKEN else [], "after": [after] if after != NO_TOKEN else [],
        "roles": {role: token for role in ROLES if (token := getattr(vocab, f"{role}_id")) != NO_TOKEN},
        "types": types, "added": added,
    }  # fmt: skip
    model = vocab.pipeline.model
    if vocab.model == "gpt2":
        known = vocab.ids
        merges = [(a.decode(), b.decode()) for a, b in vocab.merges if a in known and b in known and a + b in known]
        return ByteBpeForm(tokens, merges=merges, whole_words=vocab.ignore_merges, pre=vocab.pre or "default", **shared)
    if isinstance(model, ScoredMerges | Lattice):
        return ScoredForm(
            tokens, scores=vocab.scores.tolist(), kind=BPE if isinstance(model, ScoredMerges) else UNIGRAM,
            byte_fallback=BYTE in types, prefix=vocab.add_space_prefix, squeeze=vocab.remove_extra_whitespaces,
            charsmap=vocab.charsmap.tobytes(), **shared,
        )  # fmt: skip
    if isinstance(model, LongestText):
        special = set(vocab.special_tokens.tolist())
        parts: list[str | None] = [
            text if token in special or text is None else text[1:] if text.startswith(SPACE) else f"##{text}"
            for token, text in enumerate(tokens)
        ]
        return WordPieceForm(parts, lowercase=vocab.lowercase, strip_accents=vocab.strip_accents, **shared)
    return None
