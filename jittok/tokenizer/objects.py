"""Tokenizers from objects of other libraries: each object is serialized and read back.

An object may differ from its serialized form: methods of a derived class, options of its constructor, ids that a file
would not get. An object whose ids cannot be reproduced is refused; the error names the difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import NO_TOKEN
from jittok.common.pipeline.pipeline import FIRST_TEXT, SECOND_TEXT
from jittok.common.pipeline.steps import Fuse, JoinBytes, Pattern, ReplaceEach, Trim
from jittok.errors import IN_MEMORY, InWords, UnsupportedVocab
from jittok.files import read_object, read_pipeline
from jittok.files.ranks import ranked
from jittok.files.transformers.roles import ROLES, with_ids
from jittok.tokenizer import Tokenizer

ENCODE, DECODE = ("encode", "encode_batch"), ("decode", "decode_batch")
OF_TIKTOKEN = (
    "encode", "encode_ordinary", "encode_batch", "encode_ordinary_batch", "decode", "decode_bytes", "decode_batch",
)  # fmt: skip
OF_SENTENCEPIECE = ("Encode", "Decode", "encode", "decode", "EncodeAsIds", "DecodeIds")
OF_TRANSFORMERS = (
    "__call__", "encode", "encode_plus", "batch_encode_plus", "_encode_plus", "_batch_encode_plus", "tokenize",
    "convert_tokens_to_ids", "_convert_token_to_id_with_added_voc", "convert_ids_to_tokens", "_convert_id_to_token",
    "get_vocab", "decode", "batch_decode", "_decode", "convert_tokens_to_string", "clean_up_tokenization",
)  # fmt: skip
"""Methods that determine the ids and texts of a class. A derived class that overrides one is refused."""
BACKENDS = ("TokenizersBackend", "PreTrainedTokenizerFast")
"""Classes of transformers that delegate everything to `tokenizers`, in different releases."""
CLEANED = (
    (" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"), (" 's", "'s"),
    (" 've", "'ve"), (" 're", "'re"),
)  # fmt: skip
"""What transformers' `clean_up_tokenization_spaces` replaces in a decoded text, in this order."""


def _check(found: Any, attribute: str, expected: str) -> None:
    """Raise TypeError for an object of another type."""
    if isinstance(found, type) or not hasattr(found, attribute):
        shown = repr(found) if isinstance(found, str) else type(found).__name__
        raise TypeError(f"found {shown}, expected {expected}")


def _refused(holder: Any, what: str, expected: str) -> UnsupportedVocab:
    """The error for an object that cannot be reproduced."""
    return UnsupportedVocab(IN_MEMORY, type(holder).__name__, InWords(what), expected)


def _own_method(holder: Any, package: str, names: Iterable[str], bases: Iterable[str] = ()) -> str | None:
    """The first method of the library that an object, or its derived class, overrides."""
    kinds = [kind for kind in type(holder).__mro__ if kind.__module__.split(".")[0] == package]
    library = next((kind for kind in kinds if kind.__name__ in bases or not bases), None)
    for name in names:
        if name in getattr(holder, "__dict__", {}):
            return name
        if library is not None and getattr(type(holder), name, None) is not getattr(library, name, None):
            return name
    return None


# ---- tokenizers


def from_tokenizers(tokenizer: object) -> Tokenizer:
    """The Tokenizer of a `tokenizers.Tokenizer`, from the tokenizer.json that it serializes to.

    UnsupportedVocab for an object whose ids or methods differ from those of that file.
    """
    return Tokenizer(_of_tokenizers(tokenizer, (*ENCODE, *DECODE)))


def _of_tokenizers(tokenizer: Any, methods: Iterable[str]) -> Pipeline:
    if not _is_of_1_0(tokenizer):
        _check(tokenizer, "to_str", "a tokenizers.Tokenizer (jittok.load reads files)")
    if name := _own_method(tokenizer, "tokenizers", methods):
        raise _refused(tokenizer, f"an overridden method {name}", "the methods of tokenizers.Tokenizer")
    if not hasattr(tokenizer, "get_vocab"):
        return read_object(_written(tokenizer))
    ids = _distinct_ids(tokenizer)
    made = read_object(_written(tokenizer))
    _check_ids(tokenizer, made, ids)
    return made


def _is_of_1_0(tokenizer: Any) -> bool:
    """Whether an object is a Tokenizer of tokenizers 1.0, which only serializes itself when pickled."""
    kind = type(tokenizer)
    return (
        kind.__name__ == "Tokenizer" and kind.__module__.split(".")[0] == "tokenizers" and not hasattr(kind, "to_str")
    )


def _written(tokenizer: Any) -> bytes:
    """The JSON of an object. UnsupportedVocab for one with a component in Python, which cannot be serialized."""
    try:
        text = tokenizer.__reduce__()[1][0] if _is_of_1_0(tokenizer) else tokenizer.to_str()
    except Exception as error:  # noqa: BLE001  the library raises a plain Exception
        raise _refused(
            tokenizer, f"a component that cannot be serialized ({error})", "components of the library only"
        ) from None
    return bytes(text, "utf-8") if isinstance(text, str) else bytes(text)


def _distinct_ids(tokenizer: Any) -> dict[bytes, int]:
    """text -> id of an object. UnsupportedVocab if two texts share an id: what it serializes is then undefined."""
    ids = {text.encode(): token for text, token in tokenizer.get_vocab().items()}
    if len(set(ids.values())) != len(ids):
        texts: dict[int, bytes] = {}
        for text, token in ids.items():
            if texts.setdefault(token, text) != text:
                pair = f"the id {token} for {texts[token].decode()!r} and {text.decode()!r}"
                raise _refused(tokenizer, pair, "a different id for each text (which one it decodes to is undefined)")
    return ids


def _check_ids(tokenizer: Any, made: Pipeline, ids: dict[bytes, int]) -> None:
    """Raise UnsupportedVocab if the object and its serialized form differ in an id."""
    for text in sorted({*ids, *made.ids}) if ids != made.ids else ():
        mine, its = made.ids.get(text, "none"), ids.get(text, "none")
        if mine != its:
            raise _refused(
                tokenizer, f"the id {its} for {text.decode()!r}, which is serialized as {mine}", "the serialized ids"
            )


# ---- tiktoken


def from_tiktoken(encoding: object) -> Tokenizer:
    """The Tokenizer of a `tiktoken.Encoding`: its ranks, pattern and special tokens."""
    _check(encoding, "_mergeable_ranks", "a tiktoken.Encoding: tiktoken.get_encoding(name)")
    if name := _own_method(encoding, "tiktoken", OF_TIKTOKEN, ("Encoding",)):
        raise _refused(encoding, f"an overridden method {name}", "the methods of tiktoken.Encoding")
    held: Any = encoding
    ranks, special = dict(held._mergeable_ranks), dict(held._special_tokens)
    return Tokenizer(ranked(IN_MEMORY, "tiktoken", ranks, held._pat_str, special, name=held.name))


# ---- sentencepiece


def from_sentencepiece(processor: object) -> Tokenizer:
    """The Tokenizer of a `sentencepiece.SentencePieceProcessor`: its model, with the `add_bos` and `add_eos`
    of its constructor as `add_special`.

    UnsupportedVocab for one that reverses ids, samples, or emits unknown pieces as text.
    """
    _check(processor, "serialized_model_proto", "a sentencepiece.SentencePieceProcessor (jittok.load reads files)")
    if name := _own_method(processor, "sentencepiece", OF_SENTENCEPIECE, ("SentencePieceProcessor",)):
        raise _refused(processor, f"an overridden method {name}", "the methods of SentencePieceProcessor")
    for option in ("reverse", "enable_sampling", "emit_unk_piece"):
        if getattr(processor, f"_{option}", False):
            raise _refused(processor, f"{option}=True", f"a processor without {option}")
    held: Any = processor
    made = read_pipeline(held.serialized_model_proto())
    before, after = (
        (token,) if getattr(processor, f"_add_{role}", False) and (token := getattr(processor, f"{role}_id")()) >= 0
        else ()
        for role in ("bos", "eos")
    )  # fmt: skip
    if before or after:
        single, pair = (*before, FIRST_TEXT, *after), (*before, FIRST_TEXT, SECOND_TEXT, *after)
        made = made._replace(single=single, pair=pair)
    return Tokenizer(made)


# ---- transformers


def from_transformers(tokenizer: object) -> Tokenizer:
    """The Tokenizer of a tokenizer of transformers, as the object runs, which may differ from its files.

    UnsupportedVocab for a slow tokenizer, which is not backed by `tokenizers`, and for a class that overrides methods.
    """
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        if getattr(tokenizer, "sp_model", None) is not None:
            expected = (
                "a fast tokenizer (backed by tokenizers); jittok.load of its model gives the ids of sentencepiece"
            )
            raise _refused(tokenizer, "a slow tokenizer with its own use of sp_model", expected)
        raise _refused(
            tokenizer, "no backend_tokenizer", "a fast tokenizer (backed by tokenizers); else load its files"
        )
    if name := _own_method(tokenizer, "transformers", OF_TRANSFORMERS, BACKENDS):
        raise _refused(tokenizer, f"an overridden method {name}", f"the methods of {BACKENDS[0]}; else load its files")
    clip = hasattr(type(tokenizer), "_wrap_decode_method_backend_tokenizer")
    made = _of_tokenizers(backend, ENCODE if clip else (*ENCODE, *DECODE))
    made = made._replace(decode=(*made.decode, *_printed(tokenizer, backend, made, clip)))
    said = {role: getattr(tokenizer, f"{role}_token_id", None) for role in ROLES}
    ids = {role: NO_TOKEN if token is None else int(token) for role, token in said.items()}
    found = Tokenizer(with_ids(made, ids) if hasattr(tokenizer, "eos_token_id") else made)
    found._chat_given = _chat_of(tokenizer)
    return found


def _chat_of(tokenizer: Any) -> Any:
    """The chat templates of an object, and the special tokens that these see."""
    from jittok.chat.templates.finding import DEFAULT, ChatFiles  # no text needs them

    given = getattr(tokenizer, "chat_template", None)
    templates = given if isinstance(given, dict) else {DEFAULT: given}
    special = getattr(tokenizer, "special_tokens_map", None) or {}
    return ChatFiles(
        {str(name): text for name, text in templates.items() if isinstance(text, str)},
        {str(name): str(token) for name, token in special.items() if not isinstance(token, list | tuple)},
    )


def _printed(tokenizer: Any, backend: Any, made: Pipeline, clip: bool) -> tuple[Any, ...]:
    """What transformers does to a text decoded by `tokenizers`, as further decoding steps."""
    steps: list[Any] = []
    if clip:  # the class replaces the decoding of the object
        if made.decode != (JoinBytes(),):
            raise _refused(tokenizer, "another decoder", "ByteLevel")
        steps += [ReplaceEach(Pattern(json.loads(_written(backend))["model"]["end_of_word_suffix"], literal=True), " ")]
        steps.append(Trim())
    if not getattr(tokenizer, "clean_up_tokenization_spaces", False):
        return tuple(steps)
    forced = "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"
    is_bpe = type(getattr(backend, "model", None)).__name__ == "BPE"
    if is_bpe and not getattr(tokenizer, forced, not hasattr(tokenizer, forced)):
        return tuple(steps)
    return (*steps, Fuse(), *(ReplaceEach(Pattern(a, literal=True), b) for a, b in CLEANED))
