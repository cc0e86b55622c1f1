"""Writes forms in other file formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

from jittok.common.pipeline.models import BPE, UNIGRAM
from jittok.common.pipeline.pipeline import Pipeline
from jittok.common.pipeline.steps import Splitter
from jittok.common.unicode import tables
from jittok.common.unicode.characters import SPACE_MARK as SPACE
from jittok.common.unicode.tables import BYTE_OF_CHARACTER
from jittok.common.writers import gguf_file, hf_file, ranks_file, sentencepiece_file
from jittok.common.writers.gguf_file import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER_DEFINED, GgufVocab
from jittok.compare.product import compare_splitters
from jittok.convert.forms import ByteBpeForm, LiteralForm, ScoredForm, TokenizerForm, WordPieceForm
from jittok.errors import InWords, UnsupportedVocab
from jittok.kernels.pretokenize.compile import automata_of, stages_of_patterns
from jittok.kernels.pretokenize.definition import LONG_S, pre_type
from jittok.kernels.pretokenize.tables import Stage
from jittok.train.export import split_patterns
from jittok.vocab.keys import pre_names

Path = str | os.PathLike[str]
_ROLES = ("bos", "eos", "unk", "sep", "pad", "mask")


def _refused(path: Path, form: TokenizerForm, expected: str) -> UnsupportedVocab:
    return UnsupportedVocab(os.fspath(path), "convert", InWords(form.answered), expected)


def _whole(form: TokenizerForm) -> list[str]:
    """All tokens; an id without one gets a text of its own."""
    return [f"[UNUSED{token}]" if text is None else text for token, text in enumerate(form.tokens)]


def _around(form: TokenizerForm) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    texts = _whole(form)
    return [(token, texts[token]) for token in form.before], [(token, texts[token]) for token in form.after]


# ---- GGUF


def pre_types_that_cut_alike(pipeline: Pipeline) -> list[str]:
    """Names of `tokenizer.ggml.pre` whose splitter is proved to cut as the file's, one for each splitter and way of
    whole words. Texts of characters that llama.cpp knows are looked at, but for U+017F, which no text has after an
    apostrophe."""
    return list(_pre_types(pipeline.split))


@lru_cache(maxsize=16)  # seconds for each splitter, and many models share one
def _pre_types(split: tuple[Splitter, ...]) -> tuple[str, ...]:
    own = automata_of(split)
    if own is None:
        return ()
    known = (tables.flag_table() & tables.UNDEFINED) == 0
    known[LONG_S] = False  # `(?i:'s)` matches it, which llama.cpp's do not
    found: dict[tuple[int, bool], str] = {}
    for name, record in pre_names().items():
        key = record["pre_type"], bool(record["sets"].get("ignore_merges"))
        if not name or key in found:
            continue
        if any(number == key[0] for number, _ in found) or _cut_alike(own, key[0], known):
            found[key] = name
    return tuple(found.values())


def _cut_alike(own: list[Stage], number: int, known: Any) -> bool:
    try:
        stages = stages_of_patterns(pre_type(number).patterns)
    except ValueError:
        return False
    return compare_splitters(own, stages, known).same is True


def ggufs(path: Path, form: TokenizerForm, pipeline: object, pre: str | None) -> Iterator[Callable[[], None]]:
    """Ways to write a form as GGUF, to be tried in order."""
    if not isinstance(form, ByteBpeForm):
        yield partial(gguf_file.write_gguf, path, _plain_gguf(path, form))
        return
    names = [pre] if pre is not None else [form.pre] if form.pre is not None else []
    if not names and isinstance(pipeline, Pipeline):
        names = pre_types_that_cut_alike(pipeline)
    if not names:
        expected = "a splitter equal to one of llama.cpp's pre-tokenizers (--pre NAME tries a similar one)"
        raise _refused(path, form, expected)
    for name in names:
        yield partial(gguf_file.write_gguf, path, _bpe_gguf(form, name))


def _bpe_gguf(form: ByteBpeForm, pre: str | None) -> GgufVocab:
    types = [UNUSED if text is None else kind for text, kind in zip(form.tokens, _types(form), strict=True)]
    return GgufVocab(
        model="gpt2", name=form.name, pre=pre, tokens=[text.encode() for text in _whole(form)], types=types,
        merges=[f"{a} {b}" for a, b in form.merges], **_edges(form),
    )  # fmt: skip


def _types(form: TokenizerForm) -> list[int]:
    """GGUF's types: added tokens that are special are control tokens, others are user-defined."""
    types = list(form.types)
    for row in form.added:
        token = int(str(row["id"]))
        if types[token] != UNKNOWN:
            types[token] = CONTROL if row["special"] else USER_DEFINED
    return types


def _edges(form: TokenizerForm) -> dict[str, Any]:
    """Roles, and whether BOS and EOS are added: one token before and one after at most."""
    roles = {role: token for role, token in form.roles.items() if role in _ROLES}
    if form.before:
        roles["bos"] = form.before[0]
    if form.after:
        roles["eos"] = form.after[0]
    return {"roles": roles, "add_bos": bool(form.before), "add_eos": bool(form.after)}


def _plain_gguf(path: Path, form: TokenizerForm) -> GgufVocab:
    tokens = [text.encode() for text in _whole(form)]
    if isinstance(form, ScoredForm):
        if form.kind == BPE and not form.byte_fallback:
            raise _refused(path, form, "a token for each byte (without them, llama.cpp aborts on unknown text)")
        if form.kind == BPE and form.charsmap:
            raise _refused(path, form, "no character map: llama.cpp's SPM has none")
        return GgufVocab(
            model="t5" if form.kind == UNIGRAM else "llama", name=form.name, tokens=tokens, types=_types(form),
            scores=form.scores, add_space_prefix=form.prefix, remove_extra_whitespaces=form.squeeze,
            charsmap=form.charsmap, **_edges(form),
        )  # fmt: skip
    if isinstance(form, WordPieceForm):
        special = {int(str(row["id"])) for row in form.added}
        texts = [
            text
            if token in special or text is None
            else text[2:]
            if text.startswith("##") and len(text) > 2
            else SPACE + text
            for token, text in enumerate(form.tokens)
        ]
        edges = _edges(form)
        roles = {role: token for role, token in dict(edges["roles"]).items() if role != "eos"}
        for name, role in (("[PAD]", "pad"), ("[UNK]", "unk"), ("[MASK]", "mask"), ("[CLS]", "bos"), ("[SEP]", "sep")):
            if name in form.tokens:
                roles.setdefault(role, form.tokens.index(name))
        return GgufVocab(
            model="bert", architecture="bert", name=form.name, roles=roles, types=_types(form),
            tokens=[(text or f"[UNUSED{k}]").encode() for k, text in enumerate(texts)],
            lowercase=form.lowercase, strip_accents=form.strip_accents,
        )  # fmt: skip
    if isinstance(form, LiteralForm):
        raws = [_escaped(text) if text is not None else f"[UNUSED{k}]".encode() for k, text in enumerate(form.raw)]
        types = [UNUSED if text is None else kind for text, kind in zip(form.raw, _types(form), strict=True)]
        return GgufVocab(model="rwkv", name=form.name, tokens=raws, types=types, **_edges(form))
    raise _refused(path, form, "a form that a GGUF can hold")


def _escaped(raw: bytes) -> bytes:
    """Bytes as RWKV's GGUFs write them."""
    named = {9: b"\\t", 10: b"\\n", 13: b"\\r", 92: b"\\\\"}
    return b"".join(named.get(byte, bytes([byte]) if 32 <= byte < 127 else b"\\x%02x" % byte) for byte in raw)


# ---- tokenizer.json


def write_json(path: Path, form: TokenizerForm) -> None:
    """A tokenizer.json."""
    texts = _whole(form)
    added = list(form.added)
    post = hf_file.template(*_around(form))
    if isinstance(form, ByteBpeForm):
        split = hf_file.byte_level(split_patterns(form.pre)) if form.pre is not None else None
        if split is None and form.splits is not None:
            split = hf_file.byte_level_splits(form.splits)
        if split is None:
            raise _refused(path, form, "a splitter of patterns")
        vocab = {text: token for token, text in enumerate(form.tokens) if text is not None}
        hf_file.write_tokenizer_json(
            path, hf_file.bpe(vocab, form.merges, ignore_merges=form.whole_words), added,
            normalizer={"type": "NFC"} if form.composed else None, pre_tokenizer=split, post_processor=post,
            decoder=hf_file.BYTE_DECODER,
        )  # fmt: skip
    elif isinstance(form, ScoredForm):
        _scored_json(path, form, texts, added, post)
    elif isinstance(form, WordPieceForm):
        unknown = next((texts[row] for row in [form.roles.get("unk", -1)] if row >= 0), "[UNK]")
        model = {
            "type": "WordPiece", "unk_token": unknown, "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": {text: token for token, text in enumerate(texts)},
        }  # fmt: skip
        normalizer = {
            "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
            "strip_accents": form.strip_accents, "lowercase": form.lowercase,
        }  # fmt: skip
        hf_file.write_tokenizer_json(
            path, model, added, normalizer=normalizer, pre_tokenizer={"type": "BertPreTokenizer"}, post_processor=post,
            decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
        )  # fmt: skip
    else:
        raise _refused(path, form, "a form that a tokenizer.json can hold")


def _scored_json(
    path: Path, form: ScoredForm, texts: list[str], added: list[dict[str, Any]], post: dict[str, Any] | None
) -> None:
    if form.charsmap:
        raise _refused(path, form, "no character map (tokenizers and sentencepiece apply it differently)")
    known = {int(str(row["id"])) for row in added}
    rows = [
        hf_file.added_token(token, text, special=kind in (UNKNOWN, CONTROL))
        for token, (text, kind) in enumerate(zip(texts, form.types, strict=True))
        if kind in (UNKNOWN, CONTROL, USER_DEFINED) and token not in known
    ]
    unknown = form.roles.get("unk", form.types.index(UNKNOWN) if UNKNOWN in form.types else -1)
    space = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    steps = [*([{"type": "Prepend", "prepend": SPACE}] if form.prefix else []), space]
    decoders = [
        {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        *([{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if form.prefix else []),
    ]  # fmt: skip
    if form.kind == BPE:
        vocab = {text: token for token, text in enumerate(texts)}
        name = texts[unknown] if unknown >= 0 else None
        model = hf_file.bpe(vocab, _pairs(form, texts), unknown=name, byte_fallback=form.byte_fallback)
    else:
        model = {
            "type": "Unigram", "unk_id": unknown if unknown >= 0 else None, "byte_fallback": form.byte_fallback,
            "vocab": [[text, score] for text, score in zip(texts, form.scores, strict=True)],
        }  # fmt: skip
    hf_file.write_tokenizer_json(
        path, model, [*added, *rows], normalizer={"type": "Sequence", "normalizers": steps}, post_processor=post,
        decoder={"type": "Sequence", "decoders": decoders},
    )  # fmt: skip


def _pairs(form: ScoredForm, texts: list[str]) -> list[tuple[str, str]]:
    """All pairs of pieces that make a piece, the highest score first."""
    usable = {text: token for token, text in enumerate(texts) if form.types[token] in (NORMAL, USER_DEFINED)}
    rows = []
    for text, token in usable.items():
        for k in range(1, len(text)):
            left, right = usable.get(text[:k]), usable.get(text[k:])
            if left is not None and right is not None:
                rows.append((-form.scores[token], token, left, right, (text[:k], text[k:])))
    rows.sort(key=lambda row: row[:4])
    return [row[4] for row in rows]


# ---- ranks, sentencepiece


def write_ranks(path: Path, form: TokenizerForm) -> None:
    """A .tiktoken file: ids are ranks."""
    if not isinstance(form, ByteBpeForm):
        raise _refused(path, form, "BPE over bytes")
    special = {int(str(row["id"])) for row in form.added}
    rows = []
    for token, text in enumerate(form.tokens):
        if text is None or token in special or form.types[token] in (CONTROL, USER_DEFINED, UNUSED):
            continue
        try:
            rows.append((bytes(BYTE_OF_CHARACTER[ord(c)] for c in text), token))
        except KeyError:
            raise _refused(path, form, f"tokens in the byte alphabet, not {text!r}") from None
    ranks_file.write_ranks(path, rows)


def write_model(path: Path, form: TokenizerForm) -> None:
    """A sentencepiece model."""
    if not isinstance(form, ScoredForm):
        raise _refused(path, form, "pieces with scores")
    types = [CONTROL if kind == USER_DEFINED and _is_special(form, k) else kind for k, kind in enumerate(form.types)]
    if UNKNOWN not in types:
        raise _refused(path, form, "an unknown piece, which sentencepiece requires")
    pieces = zip(_whole(form), form.scores, types, strict=True)
    ids = {f"{role}_id": form.roles.get(role, -1) for role in ("bos", "eos", "pad")}
    trainer = {"byte_fallback": form.byte_fallback and BYTE in types, "unk_id": types.index(UNKNOWN), **ids}
    normalizer = {
        "name": "identity", "precompiled_charsmap": form.charsmap, "add_dummy_prefix": form.prefix,
        "remove_extra_whitespaces": form.squeeze, "escape_whitespaces": True,
    }  # fmt: skip
    sentencepiece_file.write_model(path, pieces, form.kind, trainer, normalizer)


def _is_special(form: TokenizerForm, token: int) -> bool:
    return any(row["id"] == token and row["special"] for row in form.added)
