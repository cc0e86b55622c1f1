"""From a GGUF header to a `Vocab`: keys, defaults and rewriting in llama.cpp's order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline.pipeline import packed, ragged_bytes
from jittok.common.unicode.characters import KMER_MARK
from jittok.errors import InWords, MalformedVocab, UnsupportedVocab
from jittok.kernels.pretokenize.records import pre_type
from jittok.vocab import attributes as attr
from jittok.vocab import gguf, keys
from jittok.vocab.gguf import Header, Source, StringArray
from jittok.vocab.keys import DEFAULT_ALIGNMENT
from jittok.vocab.releases import FLAGS_SINCE, MODELS_SINCE, TEXTS_SINCE, Release, has, release_named, release_names
from jittok.vocab.types import DefaultIds, type_named, type_of_model
from jittok.vocab.vocab import NO_TOKEN, Vocab

MOST_TOKENS, MOST_MERGES, LONGEST_TOKEN = 1 << 22, 1 << 23, (1 << 24) - 1
"""LONGEST_TOKEN: lengths of pieces are in 24 bits. llama.cpp has no bound of its own."""
_EMPTY = np.zeros(0, np.uint8)


def read_vocab(source: Source, *, llama_cpp: str | None = None, pre: str | None = None) -> Vocab:
    """The vocabulary of a GGUF file, of a whole model or on its own, or of bytes that begin with one's header.

    llama_cpp: the release whose ids are wanted, the newest if None; pre: replaces the file's tokenizer.ggml.pre.

    Raises MalformedVocab (what llama.cpp refuses or crashes on), UnsupportedVocab, OSError (no such file, no
    permission). Only the header is read, and no reference to the source is kept.
    """
    release = release_named(llama_cpp)
    return from_header(gguf.read_header(source), release, pre)


def from_header(header: Header, release: Release | None = None, pre_given: str | None = None) -> Vocab:
    """The vocabulary that a header describes, as a release of llama.cpp reads it (see `read_vocab`)."""
    release = release or release_named(None)
    alignment = header.scalar(keys.ALIGNMENT, gguf.U32, DEFAULT_ALIGNMENT)
    if alignment == 0 or alignment & (alignment - 1):
        raise MalformedVocab(header.file, keys.ALIGNMENT, alignment, "a power of two")
    if keys.MODEL not in header.values:
        raise MalformedVocab(
            header.file, keys.MODEL, None, "the tokenizer model (is this a later part of a split model?)"
        )
    model = _text(header.scalar(keys.MODEL, gguf.STRING, b""))
    pre = header.scalar(keys.PRE, gguf.STRING, None)
    pre = pre if pre_given is None else pre_given.encode()
    header.scalar(keys.TOKEN_TYPE_COUNT, gguf.U32, 0)
    kind = type_of_model(model)
    if kind is None or not has(release, MODELS_SINCE.get(model)):
        raise _unknown(header.file, keys.MODEL, model, release, MODELS_SINCE.get(model))
    about = {
        "pre": pre or b"",
        "name": header.scalar(keys.NAME, gguf.STRING, b""),
        "architecture": header.scalar(keys.ARCHITECTURE, gguf.STRING, b""),
    }
    facts: dict[str, Any] = {
        "source": header.file,
        "model": model,
        "type": kind.name,
        "pre": None if pre is None else _text(pre),
        "pre_type": 0,
        "name": _text(about["name"]),
        "architecture": _text(about["architecture"]),
        "llama_cpp": release.name,
        "shortest_utf8": release.shortest_utf8,
        "adds_around": has(release, FLAGS_SINCE.get(model)),
    }
    if not kind.has_tokens:
        return _without_tokens(header, facts)
    facts |= _flags(header, facts, release, pre_given)
    facts |= _tokens(header, facts)
    facts |= _ids(header, kind.gguf_models[model], len(facts["token_offsets"]) - 1, no_bos=facts.pop("no_bos"))
    facts["add_bos"] |= kind.has_merges and pre_type(facts["pre_type"]).always_bos
    _rewrite(header.file, facts, about, release)
    return Vocab(**{name: _frozen(value) for name, value in facts.items()})


def _unknown(
    file: str, key: str, found: str, release: Release, since: str | None, instead: str = ""
) -> UnsupportedVocab:
    """The error of a name that a release does not know: its likely cause, and what to do."""
    if since is not None:
        return UnsupportedVocab(
            file,
            key,
            found,
            f"a name that llama.cpp {release.name} knows; this one was added in {since}: use that release",
        )
    return UnsupportedVocab(
        file, key, found,
        f"a name that llama.cpp {release_names()} knows; a newer jittok may know it: "
        f"pip install --upgrade jittok{instead}",
    )  # fmt: skip


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return value


def _without_tokens(header: Header, facts: dict[str, Any]) -> Vocab:
    key = f"{facts['architecture']}.vocab_size"
    count = header.scalar(key, gguf.U32, 0)
    if count > MOST_TOKENS:
        raise MalformedVocab(header.file, key, count, f"at most {MOST_TOKENS} tokens")
    offsets, zeros = np.zeros(count + 1, np.int64), np.zeros(count, np.int32)
    arrays = {
        "token_bytes": _EMPTY,
        "token_offsets": offsets,
        "key_bytes": _EMPTY,
        "key_offsets": offsets,
        "scores": zeros.astype(np.float32),
        "attributes": zeros,
        "file_attributes": zeros,
        "piece_attributes": zeros,
        "merge_bytes": _EMPTY,
        "merge_offsets": np.zeros(1, np.int64),
        "charsmap": _EMPTY,
        "special_tokens": zeros[:0],
    }
    return Vocab(**facts, **{name: _frozen(value) for name, value in arrays.items()})


def _flags(header: Header, facts: dict[str, Any], release: Release, pre_given: str | None) -> dict[str, Any]:
    """Flags by type and pre name, then by keys; merges and charsmap where the type has them."""
    kind, model = type_named(facts["type"]), facts["model"]
    flags: dict[str, Any] = dict.fromkeys(
        ("add_bos", "add_eos", "add_sep", "add_space_prefix", "ignore_merges", "clean_spaces"), False
    )
    flags |= {"escape_whitespaces": True, "lowercase": True, "charsmap": _EMPTY}
    flags |= {"merge_bytes": _EMPTY, "merge_offsets": np.zeros(1, np.int64)}
    flags |= kind.flags
    if kind.has_merges:
        pre = "gemma4" if model == "gemma4" and pre_given is None else facts["pre"] or ""
        entry = keys.pre_names().get(pre)
        flags |= _merges(header, optional=entry is not None and entry.get("merges_optional", False))
        if entry is None or not has(release, entry.get("since")):
            since = None if entry is None else entry.get("since")
            if pre_given is not None:
                raise _unknown("", "--pre", pre, release, since)
            instead = ". Or split text as another model does: --pre NAME"
            raise _unknown(header.file, keys.PRE, pre, release, since, instead)
        flags["pre_type"] = entry["pre_type"]
        sets = dict(entry["sets"])
        flags["no_bos"] = sets.pop("bos", None) is not None
        flags |= sets
    if kind.has_charsmap:
        flags["charsmap"] = _charsmap(header)
    facts["no_bos"] = flags.pop("no_bos", False)
    for name, key in (
        ("add_bos", keys.ADD_BOS),
        ("add_eos", keys.ADD_EOS),
        ("add_sep", keys.ADD_SEP),
        ("add_space_prefix", keys.ADD_SPACE_PREFIX),
        ("lowercase", keys.LOWERCASE),
    ):
        flags[name] = header.scalar(key, gguf.BOOL, flags[name])
    flags["remove_extra_whitespaces"] = header.scalar(keys.REMOVE_EXTRA, gguf.BOOL, False)
    flags["strip_accents"] = header.scalar(keys.STRIP_ACCENTS, gguf.BOOL, flags["lowercase"])
    flags["nfc"] = release.nfc and header.scalar(keys.NFC, gguf.BOOL, False) and kind.has_charsmap
    return flags


def _merges(header: Header, *, optional: bool) -> dict[str, NDArray[Any]]:
    lines: StringArray | None = header.array(keys.MERGES, gguf.STRING)
    if lines is None:
        if optional:
            return {}
        raise MalformedVocab(header.file, keys.MERGES, None, "the list of merges")
    if len(lines) > MOST_MERGES:
        raise MalformedVocab(header.file, keys.MERGES, InWords(f"{len(lines)} merges"), f"at most {MOST_MERGES}")
    data, offsets = lines.packed()
    return {"merge_bytes": data, "merge_offsets": offsets}


def _charsmap(header: Header) -> NDArray[np.uint8]:
    values = header.array(keys.CHARSMAP, gguf.I8, gguf.U8)
    if values is None:
        return _EMPTY
    data: NDArray[np.uint8] = values.view(np.uint8)
    length = int.from_bytes(data[:4].tobytes(), "little")
    if data.size < 4 or length + 4 >= data.size:
        expected = "a 4-byte length, a trie of that many bytes, and replacements after it"
        raise MalformedVocab(header.file, keys.CHARSMAP, InWords(f"{data.size} bytes, length {length}"), expected)
    return data


def _tokens(header: Header, facts: dict[str, Any]) -> dict[str, Any]:
    """Texts, scores and attributes of the file."""
    texts: StringArray | None = header.array(keys.TOKENS, gguf.STRING)
    if texts is None:
        raise MalformedVocab(header.file, keys.TOKENS, None, "the list of tokens")
    count = len(texts)
    if count > MOST_TOKENS or (count == 0 and not type_named(facts["type"]).may_be_empty):
        raise MalformedVocab(header.file, keys.TOKENS, InWords(f"{count} tokens"), f"1 to {MOST_TOKENS} tokens")
    data, offsets = texts.packed()
    lengths = np.diff(offsets)
    if int(lengths.max(initial=0)) > LONGEST_TOKEN:
        token = int(lengths.argmax())
        raise MalformedVocab(
            header.file, f"{keys.TOKENS}[{token}]", InWords(f"{lengths[token]} bytes"), f"at most {LONGEST_TOKEN} bytes"
        )
    if count and int(lengths.min()) == 0:
        data, offsets = _name_empty(data, offsets)
    _refuse_twins(header.file, data, offsets)
    spelled = _without_marks(data, offsets) if facts["model"] == "hybriddna" else (data, offsets)
    scores = header.array(keys.SCORES, gguf.F32, gguf.I32)
    types = header.array(keys.TOKEN_TYPE, gguf.I32)
    for key, values in ((keys.SCORES, scores), (keys.TOKEN_TYPE, types)):
        if values is not None and values.size < count:
            raise MalformedVocab(header.file, key, InWords(f"{values.size} values"), f"one for each of {count} tokens")
    bits = np.full(count, attr.NORMAL, np.int32)
    if types is not None:
        known = (types[:count] >= 0) & (types[:count] < attr.OF_TYPE.size)
        bits = attr.OF_TYPE[np.where(known, types[:count], 0)]
    floats = np.zeros(count, np.float32) if scores is None else scores[:count].astype(np.float32)
    if type_named(facts["type"]).compares_scores and np.isnan(floats).any():
        # llama.cpp loads it, and merges in an undefined order: its queue of pairs needs comparable scores
        token = int(np.flatnonzero(np.isnan(floats))[0])
        raise MalformedVocab(header.file, f"{keys.SCORES}[{token}]", InWords("not a number"), "a number")
    return {
        "token_bytes": spelled[0],
        "token_offsets": spelled[1],
        "key_bytes": data,
        "key_offsets": offsets,
        "scores": floats,
        "file_attributes": bits,
        "max_token_length": int(np.diff(offsets).max(initial=0)),
    }


def _name_empty(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Tokens without a text are called [EMPTY_<id>]."""
    return packed([text or b"[EMPTY_%d]" % token for token, text in enumerate(ragged_bytes(data, offsets))])


def _refuse_twins(file: str, data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
    texts = ragged_bytes(data, offsets)
    if len(set(texts)) == len(texts):
        return
    first: dict[bytes, int] = {}
    for token, text in enumerate(texts):
        if first.setdefault(text, token) != token:
            raise MalformedVocab(
                file, f"{keys.TOKENS}[{token}]", text, f"distinct texts: token {first[text]} has the same"
            )


def _without_marks(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Model hybriddna: texts of k-mers lose their mark; they are after the token <oov>."""
    texts = ragged_bytes(data, offsets)
    if b"<oov>" not in texts:
        return data, offsets
    after = texts.index(b"<oov>") + 1
    for token in range(after, len(texts)):
        if len(texts[token]) > len(KMER_MARK):
            texts[token] = texts[token].removesuffix(KMER_MARK)
    return packed(texts)


def _ids(header: Header, defaults: DefaultIds, count: int, *, no_bos: bool) -> dict[str, Any]:
    """Special ids: the model's default if the vocabulary has it, then the key if it names a token.

    no_bos: the pre-tokenizer removes the default of BOS.
    """
    ids = dict.fromkeys((field for _, field in keys.ID_KEYS), NO_TOKEN)
    ids |= {f"{name}_id": token for name, token in defaults._asdict().items()}
    if no_bos:
        ids["bos_id"] = NO_TOKEN
    more: dict[str, Any] = {"default_unk_id": ids["unk_id"], "default_pad_id": ids["pad_id"]}
    for key, field in keys.ID_KEYS:
        value = header.scalar(key, gguf.U32, None)
        if ids[field] >= count:
            ids[field] = NO_TOKEN
        if value is not None and value < count:
            ids[field] = value
    suppressed = header.array(keys.SUPPRESS, gguf.I32)
    if suppressed is not None:
        more["suppressed_ids"] = tuple(suppressed[(suppressed >= 0) & (suppressed < count)].tolist())
    return ids | more


def _rewrite(file: str, facts: dict[str, Any], about: dict[str, Any], release: Release) -> None:
    """Attributes, ids found by text, the end-of-generation set, the partition's list, the checks of pieces, strips."""
    texts = attr.TextIndex(facts["key_bytes"], facts["key_offsets"])
    same = facts["token_bytes"] is facts["key_bytes"]
    spelled = texts if same else attr.TextIndex(facts["token_bytes"], facts["token_offsets"])
    bits = facts["file_attributes"].copy()
    later = frozenset(text for text, since in TEXTS_SINCE.items() if not has(release, since))
    attr.find_ids(texts, facts, bits, later)
    attr.mark_unused(texts, bits)
    facts["eog_ids"] = attr.end_of_generation(texts, facts, bits, spelled, later)
    special = attr.special_order(spelled.lengths, bits)
    facts["special_tokens"] = np.array(special, np.int32)
    _check_pieces(file, facts, spelled, bits)
    facts["piece_attributes"] = bits.copy()
    attr.mark_strips(file, texts, about, special, bits)
    facts["attributes"] = bits


def _check_pieces(file: str, facts: dict[str, Any], texts: attr.TextIndex, bits: NDArray[np.int32]) -> None:
    """llama.cpp computes every piece while loading, which fails for two kinds of token."""
    kind = type_named(facts["type"])
    if not kind.makes_pieces:
        return
    plain = bits & (attr.SPECIAL | attr.USER_DEFINED) == 0
    normal = plain & (bits & attr.NORMAL > 0)
    for token in np.flatnonzero(plain & ~normal & (bits & attr.BYTE > 0)).tolist():
        if not kind.byte_tokens or texts.lengths[token] < 3:
            expected = "a text like <0x0A>" if kind.byte_tokens else "no byte token in a WordPiece vocabulary"
            raise MalformedVocab(file, f"{keys.TOKENS}[{token}]", texts[token], expected)
    if not kind.has_merges or facts["escape_whitespaces"] or facts["shortest_utf8"]:
        return
    data, offsets = texts.data, texts.offsets
    high = np.flatnonzero((data[:-1] >= 0xF4) & (data[:-1] < 0xF8) & (data[1:] & 0xC0 == 0x80)) if data.size else data
    for token in np.unique(np.searchsorted(offsets, high, "right") - 1).tolist():
        if normal[token] and _beyond_unicode(texts[token]):
            raise MalformedVocab(file, f"{keys.TOKENS}[{token}]", texts[token], "no code point above U+10FFFF")


def _beyond_unicode(text: bytes) -> bool:
    """Whether permissive decoding finds a code point above U+10FFFF."""
    from jittok.common.unicode.tables import code_points

    return max(code_points(text, shortest=False)) > 0x10FFFF
