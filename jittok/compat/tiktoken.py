"""`tiktoken.Encoding` over a jittok Tokenizer: the same methods, arguments, results and errors.

Any vocabulary whose tokens are bytes can be one: rank files, byte-level BPE of a GGUF or a tokenizer.json, tekken.json.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from jittok.common.locks import once
from jittok.common.pipeline import Pipeline, steps
from jittok.common.pipeline.models import Longest, LongestEscaped, PairMerges, Ranks
from jittok.common.pipeline.patterns import compiled
from jittok.compat.missing import Missing, not_there
from jittok.errors import EncodingFailed
from jittok.tokenizer import Tokenizer

Allowed = Literal["all"] | AbstractSet[str]
Disallowed = Literal["all"] | Collection[str]
"""Texts of special tokens."""
ENDS = ("<|endoftext|>", "<|end_of_text|>")
"""Texts of the token that ends a document."""
MOST_BYTE = 0x80, 0xC0
"""The first byte of those that continue a character in UTF-8, and the first after them."""


def as_tiktoken(tok: Tokenizer, name: str | None = None) -> Encoding:
    """A `tiktoken.Encoding` of a Tokenizer, for programs that expect one; `name` is its name, by default that of the
    file.

    >>> import jittok
    >>> enc = as_tiktoken(jittok.bundled("gpt-2"))
    >>> enc.encode("hello <|endoftext|>", allowed_special="all")
    [31373, 220, 50256]
    >>> enc.decode_with_offsets([31373, 995])
    ('hello world', [0, 5])

    TypeError for a vocabulary whose tokens are no bytes of a text: SentencePiece, WordPiece, Unigram.
    """
    if not isinstance(tok, Tokenizer):
        raise TypeError(f"tok: found {type(tok).__name__}, expected a jittok.Tokenizer: jittok.load(path)")
    if not _spells_bytes(tok.pipeline):
        raise TypeError(
            f"as_tiktoken: found a vocabulary of type {tok.type}, expected byte-level tokens (GPT-2, Llama 3, rank "
            "files): write jittok.compat.as_tokenizers(tok)"
        )
    own = tok.name or PurePath(tok.vocab.source).stem
    return Encoding(tok, own if name is None else name)


def _spells_bytes(pipeline: Pipeline) -> bool:
    """Whether the bytes of tokens, one after the other, are the text."""
    if isinstance(pipeline.model, Ranks | Longest | LongestEscaped):
        return True
    if isinstance(pipeline.model, PairMerges) and not pipeline.model.byte_alphabet:
        return False
    return any(isinstance(step, steps.SpellBytes) for step in (*pipeline.normalize, *pipeline.split))


class Encoding:
    """What `as_tiktoken` makes. Immutable and thread-safe; its pickle is that of the Tokenizer."""

    def __init__(self, tok: Tokenizer, name: str) -> None:
        self.name = name
        self._tok = tok

    def __repr__(self) -> str:
        return f"<Encoding {self.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Encoding, (self._tok, self.name)

    # ---- text to ids

    def encode_ordinary(self, text: str) -> list[int]:
        """The ids of a text, in which special tokens are text."""
        ids: list[int] = self._ids(text).tolist()
        return ids

    def encode(
        self, text: str, *, allowed_special: Allowed = frozenset(), disallowed_special: Disallowed = "all",
    ) -> list[int]:  # fmt: skip
        """The ids of a text. Special tokens of `allowed_special` are found; ValueError for one of `disallowed_special`,
        by default any other."""
        ids: list[int] = self._encoded(text, allowed_special, disallowed_special).tolist()
        return ids

    def encode_to_numpy(
        self, text: str, *, allowed_special: Allowed = frozenset(), disallowed_special: Disallowed = "all",
    ) -> NDArray[np.uint32]:  # fmt: skip
        """uint32[n]: what `encode` gives."""
        return np.array(self._encoded(text, allowed_special, disallowed_special), np.uint32)

    def encode_ordinary_batch(self, text: Sequence[str], *, num_threads: int = 8) -> list[list[int]]:
        """`encode_ordinary` of each text, on so many threads."""
        texts = [_as_text(each) for each in text]
        return self._tok.encode_batch(texts, threads=_threads(num_threads)).to_list()

    def encode_batch(
        self, text: Sequence[str], *, num_threads: int = 8, allowed_special: Allowed = frozenset(),
        disallowed_special: Disallowed = "all",
    ) -> list[list[int]]:  # fmt: skip
        """`encode` of each text, on so many threads."""
        allowed, refused = self._sets(allowed_special, disallowed_special)
        for each in text:
            _refuse(each, refused)
        found = _pattern(allowed) if allowed else None
        if found is None or not any(found.search(each) for each in text):
            return self.encode_ordinary_batch(text, num_threads=num_threads)
        _threads(num_threads)
        return [self.encode(each, allowed_special=allowed, disallowed_special=()) for each in text]

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """The id of one token, also a special one. KeyError if there is none."""
        raw = text_or_bytes.encode() if isinstance(text_or_bytes, str) else bytes(text_or_bytes)
        found = self._ranks.get(raw)
        if found is None:
            found = {text.encode(): token for text, token in self._special_tokens.items()}.get(raw)
        if found is None:
            raise KeyError(text_or_bytes)
        return found

    encode_with_unstable = Missing("encode the text without its end, or write tok.explain(text)")

    def _encode_bytes(self, text: bytes) -> list[int]:
        """The ids of bytes. Of invalid UTF-8 what is valid is split; its last pre-token is merged with the rest."""
        try:
            return self.encode_ordinary(text.decode())
        except UnicodeDecodeError as error:
            valid = text[: error.start].decode()
        pipeline = self._tok.pipeline
        if not isinstance(pipeline.model, Ranks) or not isinstance(pipeline.split[0], steps.Cut):
            not_there("_encode_bytes of invalid UTF-8", "write tok.encode(data), which takes bytes")
        last = max((match.start() for match in compiled(pipeline.split[0].pattern).finditer(valid)), default=0)
        rest = text[len(valid[:last].encode()) :]
        return [*self.encode_ordinary(valid[:last]), *_merged(rest, self._ranks)]

    def _ids(self, text: str) -> NDArray[np.int32]:
        if not isinstance(text, str):
            raise TypeError(f"text: found {type(text).__name__}, expected a str")
        try:
            return self._tok.encode(text)
        except EncodingFailed:  # surrogates
            return self._tok.encode(_as_text(text))

    def _sets(self, allowed: Any, disallowed: Any) -> tuple[frozenset[str], frozenset[str]]:
        """Special tokens that are found, and texts that are refused."""
        every = self.special_tokens_set
        allowed = every if allowed == "all" else frozenset(allowed)
        return allowed & every, every - allowed if disallowed == "all" else frozenset(disallowed)

    def _encoded(self, text: str, allowed_special: Any, disallowed_special: Any) -> NDArray[np.int32]:
        allowed, refused = self._sets(allowed_special, disallowed_special)
        _refuse(text, refused)
        if not allowed or _pattern(allowed).search(text) is None:
            return self._ids(text)
        ids: list[Any] = []
        for number, part in enumerate(_pattern(allowed).split(_as_text(text))):
            ids.append(np.array([self._special_tokens[part]], np.int32) if number % 2 else self._tok.encode(part))
        return np.concatenate(ids)

    # ---- ids to text

    def decode_bytes(self, tokens: Iterable[int]) -> bytes:
        """The bytes of ids. KeyError for an id that there is not."""
        return b"".join(self.decode_tokens_bytes(tokens))

    def decode(self, tokens: Iterable[int], errors: str = "replace") -> str:
        """The text of ids; `errors` as for bytes.decode."""
        return self.decode_bytes(tokens).decode("utf-8", errors)

    def decode_single_token_bytes(self, token: int) -> bytes:
        """The bytes of one id. KeyError for one that there is not."""
        return self.decode_tokens_bytes([token])[0]

    def decode_tokens_bytes(self, tokens: Iterable[int]) -> list[bytes]:
        """The bytes of each id."""
        try:
            return [self._bytes[token] for token in tokens]
        except KeyError as error:
            token = error.args[0]
            if token < 0:
                raise OverflowError(f"id: found {token}, expected 0 or more") from None
            raise KeyError(f"Invalid token for decoding: {token}") from None

    def decode_with_offsets(self, tokens: Iterable[int]) -> tuple[str, list[int]]:
        """The text of ids, and the offset of each in characters: of the character that its first byte belongs to.
        UnicodeDecodeError where the bytes are invalid UTF-8."""
        raws, at, offsets = self.decode_tokens_bytes(tokens), 0, []
        first, end = MOST_BYTE
        for raw in raws:
            offsets.append(max(0, at - (first <= raw[0] < end)))
            at += sum(not first <= byte < end for byte in raw)
        return b"".join(raws).decode("utf-8", "strict"), offsets

    def decode_batch(
        self, batch: Sequence[Iterable[int]], *, errors: str = "replace", num_threads: int = 8,
    ) -> list[str]:  # fmt: skip
        """`decode` of each row."""
        _threads(num_threads)
        return [self.decode(tokens, errors) for tokens in batch]

    def decode_bytes_batch(self, batch: Sequence[Iterable[int]], *, num_threads: int = 8) -> list[bytes]:
        """`decode_bytes` of each row."""
        _threads(num_threads)
        return [self.decode_bytes(tokens) for tokens in batch]

    # ---- itself

    def token_byte_values(self) -> list[bytes]:
        """The bytes of all tokens but the special ones, sorted."""
        return sorted(self._ranks)

    @property
    def eot_token(self) -> int:
        """The id of <|endoftext|>, or of what ends a document."""
        found = [self._special_tokens[text] for text in ENDS if text in self._special_tokens]
        if not found and self._tok.eos_id is not None:
            found = [self._tok.eos_id]
        if not found:
            raise KeyError(ENDS[0])
        return found[0]

    @once
    def special_tokens_set(self) -> frozenset[str]:
        """The texts of special tokens."""
        return frozenset(self._special_tokens)

    def is_special_token(self, token: int) -> bool:
        """Whether an id is a special token's. TypeError for what is no int."""
        if not isinstance(token, int | np.integer):
            raise TypeError(f"token: found {type(token).__name__}, expected int")
        return token in self._special_tokens.values()

    @once
    def max_token_value(self) -> int:
        """The highest id."""
        return max(self._bytes)

    @property
    def n_vocab(self) -> int:
        """One more than the highest id."""
        return self.max_token_value + 1

    @once
    def _special_tokens(self) -> dict[str, int]:
        tok = self._tok
        return {tok.token_to_piece(token, special=True).decode(): token for token in sorted(tok.special_ids)}

    @once
    def _mergeable_ranks(self) -> dict[bytes, int]:
        """The ranks, as `tiktoken.Encoding` takes them."""
        if not isinstance(self._tok.pipeline.model, Ranks):
            not_there("_mergeable_ranks", "only rank files have these: write tok.token_bytes, tok.token_offsets")
        return self._ranks

    @property
    def _pat_str(self) -> str:
        """The pattern that splits texts, as `tiktoken.Encoding` takes it."""
        stage = self._tok.pipeline.split[0] if self._tok.pipeline.split else None
        if not isinstance(self._tok.pipeline.model, Ranks) or not isinstance(stage, steps.Cut):
            not_there("_pat_str", "only rank files have one pattern: write tok.explain()")
        return stage.pattern.text

    @once
    def _ranks(self) -> dict[bytes, int]:
        special = self._tok.special_ids
        return {raw: token for token, raw in self._bytes.items() if token not in special}

    @once
    def _bytes(self) -> dict[int, bytes]:
        pieces = ((token, self._tok.token_to_piece(token, special=True)) for token in range(self._tok.vocab_size))
        return {token: raw for token, raw in pieces if raw}


@lru_cache(maxsize=128)
def _pattern(texts: frozenset[str]) -> re.Pattern[str]:
    return re.compile("(" + "|".join(map(re.escape, sorted(texts, key=len, reverse=True))) + ")")


def _refuse(text: str, refused: frozenset[str]) -> None:
    """ValueError for a text with one of these special tokens."""
    if not isinstance(text, str):
        raise TypeError(f"text: found {type(text).__name__}, expected a str")
    if refused and (found := _pattern(refused).search(text)):
        token = found.group()
        raise ValueError(
            f"Encountered text corresponding to disallowed special token {token!r}.\n"
            f"To encode it as that token: allowed_special={{{token!r}, ...}}. To encode it as text: "
            "disallowed_special=()."
        )


def _as_text(text: str) -> str:
    """A text without surrogates: pairs are the characters that they stand for, others U+FFFD."""
    if not isinstance(text, str):
        raise TypeError(f"text: found {type(text).__name__}, expected a str")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _threads(number: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError(f"num_threads: found {number!r}, expected 1 or more")
    return number


def _merged(raw: bytes, ranks: dict[bytes, int]) -> list[int]:
    """The ids of a few bytes as one pre-token, the lowest rank first."""
    if raw in ranks:
        return [ranks[raw]]
    parts = [raw[k : k + 1] for k in range(len(raw))]
    while len(parts) > 1:
        found = [(ranks[a + b], k) for k, (a, b) in enumerate(pairwise(parts)) if a + b in ranks]
        if not found:
            break
        _, k = min(found)
        parts[k : k + 2] = [parts[k] + parts[k + 1]]
    return [ranks[part] for part in parts]
