"""Other tokenizers with the tokens and merges of a jittok vocabulary, so that all encode with the same vocabulary.

`peers(tok)` gives those that are installed and can load it, each with all ways to call it that might be its fastest:
many texts at once or one after the other, of bytes or of str. Texts are made ready before the clock starts. Which way
is the fastest is measured (`compare.fastest`). `ids` makes a list of lists of what a way gives.
"""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import jittok

CONTROL, NORMAL = 8, 4
TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PATTERNS = {
    "gpt-2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama-bpe": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL,
    "qwen2": CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + TAIL,
    "gpt-4o": (
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{CONTRACTIONS}?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{CONTRACTIONS}?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + TAIL
    ),
}
"""The published patterns; llama.cpp's of gpt-4o differs on what is neither capital nor small."""
KINDS = {4: 1, 1: 2, 8: 3, 16: 4, 2: 5, 32: 6}
"""Attribute bit -> kind of a SentencePiece piece."""


class Way(NamedTuple):
    """One way to call a tokenizer: `run` takes what `ready` makes of documents, outside the clock."""

    name: str
    ready: Callable[[list[bytes]], Any]
    run: Callable[[Any], Any]
    single: bool = False  # one text at a time


class Peer(NamedTuple):
    """One other tokenizer, loaded."""

    name: str
    ways: tuple[Way, ...]
    ids: Callable[[Any], list[list[int]]]


def as_bytes(documents: list[bytes]) -> list[bytes]:
    """The documents as they are."""
    return documents


def rows(result: Any) -> list[list[int]]:
    """Ids of a result that is a sequence of rows."""
    return [np.asarray(getattr(row, "ids", row)).astype(np.int64).tolist() for row in result]


def _text(token: bytes) -> str:
    return token.decode("utf-8", "replace")


def as_texts(documents: list[bytes]) -> list[str]:
    """The documents as str."""
    return [document.decode("utf-8", "replace") for document in documents]


def tokenizer_json(tok: jittok.Tokenizer) -> dict[str, Any]:
    """The vocabulary as `tokenizers` writes it. KeyError for a pattern that is not written down here."""
    vocab, attributes = tok.vocab, tok.attributes.tolist()
    words: dict[str, int] = {}
    special = [
        {"id": i, "content": _text(text), "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for i, text in enumerate(vocab.tokens) if attributes[i] & CONTROL
    ]  # fmt: skip
    made: dict[str, Any] = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
                            "normalizer": None, "pre_tokenizer": None, "post_processor": None,
                            "decoder": None}  # fmt: skip
    if tok.type == "bpe":
        level = {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": vocab.pre == "gpt-2",
        }
        split = {"type": "Split", "pattern": {"Regex": PATTERNS[vocab.pre]}, "behavior": "Isolated", "invert": False}
        plain = vocab.pre == "gpt-2"
        made["pre_tokenizer"] = level if plain else {"type": "Sequence", "pretokenizers": [split, level]}
        for i, text in enumerate(vocab.tokens):
            if not attributes[i] & CONTROL:
                words.setdefault(_text(text), i)
        merges = sorted(vocab.merges, key=vocab.merges.__getitem__)
        made["model"] = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                         "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                         "ignore_merges": vocab.ignore_merges, "vocab": words,
                         "merges": [[_text(a), _text(b)] for a, b in merges]}  # fmt: skip
    elif tok.type == "wpm":  # llama.cpp marks where words begin, the usual form where they go on
        for i, text in enumerate(map(_text, vocab.tokens)):
            inner = text[1:] if text.startswith("\u2581") else "##" + text
            words.setdefault(inner if attributes[i] & NORMAL else text, i)
        made["normalizer"] = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                              "strip_accents": None, "lowercase": True}  # fmt: skip
        made["pre_tokenizer"] = {"type": "BertPreTokenizer"}
        made["model"] = {"type": "WordPiece", "unk_token": _text(vocab.tokens[tok.unk_id]),
                         "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                         "vocab": words}  # fmt: skip
    elif tok.type == "ugm":
        charsmap = base64.b64encode(vocab.charsmap.tobytes()).decode()
        steps: list[dict[str, Any]] = [{"type": "Precompiled", "precompiled_charsmap": charsmap}] if charsmap else []
        if vocab.remove_extra_whitespaces:
            steps += [{"type": "Strip", "strip_left": True, "strip_right": True},
                      {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]  # fmt: skip
        made["normalizer"] = {"type": "Sequence", "normalizers": steps}
        made["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581", "split": True,
                                 "prepend_scheme": "always" if vocab.add_space_prefix else "never"}  # fmt: skip
        scored = [[_text(text), score] for text, score in zip(vocab.tokens, tok.scores.tolist(), strict=True)]
        made["model"] = {"type": "Unigram", "unk_id": tok.unk_id, "byte_fallback": False, "vocab": scored}
    else:
        raise KeyError(tok.type)
    return made


def _json_file(tok: jittok.Tokenizer, folder: Path) -> str:
    path = folder / "tokenizer.json"
    if not path.exists():
        path.write_text(json.dumps(tokenizer_json(tok), ensure_ascii=False), encoding="utf-8")
    return str(path)


def _sentencepiece_model(tok: jittok.Tokenizer) -> bytes:
    from sentencepiece import sentencepiece_model_pb2 as proto

    vocab, made = tok.vocab, proto.ModelProto()
    trainer, normalizer = made.trainer_spec, made.normalizer_spec
    trainer.model_type = proto.TrainerSpec.UNIGRAM if tok.type == "ugm" else proto.TrainerSpec.BPE
    trainer.byte_fallback = tok.type == "spm"
    trainer.unk_id, trainer.bos_id, trainer.eos_id, trainer.pad_id = tok.unk_id, -1, tok.eos_id, -1
    normalizer.precompiled_charsmap = vocab.charsmap.tobytes()
    normalizer.name = "nmt_nfkc" if vocab.charsmap.size else "identity"
    normalizer.add_dummy_prefix = bool(vocab.add_space_prefix)
    normalizer.remove_extra_whitespaces = bool(vocab.remove_extra_whitespaces)
    normalizer.escape_whitespaces = True
    for text, score, bits in zip(vocab.tokens, tok.scores.tolist(), tok.attributes.tolist(), strict=True):
        made.pieces.add(piece=_text(text), score=score, type=KINDS[bits & 63])
    return made.SerializeToString()


def _gigatoken(tok: jittok.Tokenizer, threads: int, folder: Path) -> Peer:
    import gigatoken

    if tok.type == "spm":
        path = folder / "model"
        path.write_bytes(_sentencepiece_model(tok))
        giga = gigatoken.Tokenizer.from_sentencepiece(str(path))
    else:
        giga = gigatoken.Tokenizer(_json_file(tok, folder))

    def batch(documents: Any) -> Any:
        return giga.encode_batch(documents, parallel=threads > 1)

    def one_by_one(documents: Any) -> Any:
        return [giga.encode(document) for document in documents]

    ways = [Way("batch of bytes", as_bytes, batch), Way("batch of str", as_texts, batch)]
    if threads == 1:
        ways += [Way("each bytes", as_bytes, one_by_one, True), Way("each str", as_texts, one_by_one, True)]
    return Peer("gigatoken", tuple(ways), rows)


def _tokie(tok: jittok.Tokenizer, _threads: int, folder: Path) -> Peer:
    import tokie

    other = tokie.Tokenizer.from_json(_json_file(tok, folder))

    def run(texts: list[str]) -> Any:  # from bytes it would leave the normalizer out
        return other.encode_batch_flat(texts, add_special_tokens=False)

    def ids(result: Any) -> list[list[int]]:
        flat, lengths = result
        return [row.tolist() for row in np.split(flat, np.cumsum(lengths)[:-1].astype(np.int64))]

    return Peer("tokie", (Way("batch of str", as_texts, run),), ids)


def _tokenizers(tok: jittok.Tokenizer, _threads: int, folder: Path) -> Peer:
    import tokenizers

    other = tokenizers.Tokenizer.from_file(_json_file(tok, folder))
    encode = getattr(other, "encode_batch_fast", other.encode_batch)  # 1.0 has one way

    def batch(texts: list[str]) -> Any:
        return encode(texts, add_special_tokens=False)

    def one_by_one(texts: list[str]) -> Any:
        return [other.encode(text, add_special_tokens=False) for text in texts]

    ways = Way("batch of str", as_texts, batch), Way("each str", as_texts, one_by_one, True)
    return Peer("tokenizers", ways, rows)


def _tiktoken(tok: jittok.Tokenizer, threads: int, _folder: Path) -> Peer:
    import tiktoken

    merged = [tok.token_to_id(a + b) for a, b in sorted(tok.vocab.merges, key=tok.vocab.merges.__getitem__)]
    if any(a > b for a, b in pairwise(merged)):
        raise KeyError("it merges by id, and the ids of this vocabulary are in another order")
    pieces = [tok.token_to_piece(i, special=True) for i in range(tok.vocab_size)]
    ranks: dict[bytes, int] = {}
    for i, bits in enumerate(tok.attributes.tolist()):
        if bits & NORMAL:
            ranks.setdefault(pieces[i], i)
    other = tiktoken.Encoding("peer", pat_str=PATTERNS[tok.vocab.pre], mergeable_ranks=ranks, special_tokens={})

    def batch(texts: list[str]) -> Any:
        return other.encode_ordinary_batch(texts, num_threads=threads)

    def one_by_one(texts: list[str]) -> Any:
        return [other.encode_ordinary(text) for text in texts]

    def arrays(texts: list[str]) -> Any:
        return [other.encode_to_numpy(text, disallowed_special=()) for text in texts]

    each = Way("each str", as_texts, one_by_one, True), Way("each str to NumPy", as_texts, arrays, True)
    return Peer("tiktoken", each if threads == 1 else (Way("batch of str", as_texts, batch),), rows)


def _sentencepiece(tok: jittok.Tokenizer, threads: int, _folder: Path) -> Peer:
    import sentencepiece

    if tok.type not in ("spm", "ugm"):
        raise KeyError(tok.type)
    other = sentencepiece.SentencePieceProcessor(model_proto=_sentencepiece_model(tok))

    def batch(texts: list[str]) -> Any:
        return other.encode(texts, num_threads=threads)

    def one_by_one(texts: list[str]) -> Any:
        return [other.encode(text) for text in texts]

    each = (Way("each str", as_texts, one_by_one, True),) if threads == 1 else ()
    return Peer("sentencepiece", (Way("batch of str", as_texts, batch), *each), rows)


LOADERS = (_gigatoken, _tokie, _tokenizers, _tiktoken, _sentencepiece)


def peers(tok: jittok.Tokenizer, threads: int, names: list[str]) -> Iterator[Peer | str]:
    """Each wanted peer, or a line that says why there is none."""
    with tempfile.TemporaryDirectory() as folder:
        for load in LOADERS:
            name = load.__name__[1:]
            if name not in names:
                continue
            try:
                yield load(tok, threads, Path(folder))
            except ImportError:
                yield f"{name} is not installed"
            except KeyError as error:
                yield f"{name} has no such vocabulary: {error.args[0]}"
            except Exception as error:  # noqa: BLE001  the peers have errors of their own
                yield f"{name} refuses the vocabulary: {str(error).splitlines()[0]}"
