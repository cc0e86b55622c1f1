"""Hints for misspelt names and names of other libraries. Only imported when an error is raised."""

from __future__ import annotations

import difflib
import errno
import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

ROWS = "tok.encode_batch(texts).to_padded(length)"
BOS = "add_special=True adds BOS and EOS as the file specifies; for a BOS alone: [tok.bos_id, *ids.tolist()]"
SPECIAL_TEXT = "parse_special=True parses special tokens in the text; the default treats them as plain text"
LOCAL = "load reads local files; hf:org/name is a repository of Hugging Face"
PADDED = "for rows of equal length and their mask: " + ROWS
NO_SAMPLING = "remove it: tokenization is deterministic, sampling is not supported"
PRINTS = "skip_special=True omits special tokens, unparse_special=True prints their text"
CUT = f"ids[:n] truncates one row; tok.encode_batch(texts, max_length=n) cuts many; {PADDED}, with truncate=True"
TENSORS = f"ids are NumPy arrays: torch.tensor(ids) copies them; for a 2-D array: {ROWS}"


def _by_name(*said: tuple[str, str]) -> dict[str, str]:
    """A mapping of each name to the hint of its group."""
    return {name: text for names, text in said for name in names.split()}


RENAMED = {
    "add_special_tokens": ("add_special",),
    "special": ("parse_special", "unparse_special"),
    "split_special_tokens": ("parse_special",),
    "allow_special": ("parse_special",),
    "skip_special_tokens": ("skip_special",),
    "clean_up_tokenization_spaces": ("clean",),
    "pad_token_id": ("pad_id",),
    "pad": ("pad_id",),
    "max_length": ("length", "n"),
    "max_len": ("length", "max_length", "n"),
    "seq_len": ("length", "max_length"),
    "padding_side": ("side",),
    "truncation_side": ("side",),
    "direction": ("side",),
    "pad_to_multiple_of": ("multiple_of",),
    "pad_token_type_id": ("pad_type",),
    "pad_type_id": ("pad_type",),
    "stride": ("overlap",),
    "chunk_size": ("n",),
    "chunk_overlap": ("overlap",),
    "size": ("n",),
    "max_tokens": ("n", "max_length"),
    "return_overflowing_tokens": ("windows",),
    "text_pair": ("pairs",),
    "text_pairs": ("pairs",),
    "truncation": ("truncate",),
    "num_threads": ("threads",),
    "num_workers": ("threads",),
    "num_proc": ("threads",),
    "n_threads": ("threads",),
    "n_jobs": ("threads",),
    "show_progress": ("progress",),
    "verbose": ("progress",),
    "pat_str": ("pattern", "pre_regex"),
    "added_tokens": ("special_tokens",),
    "additional_special_tokens": ("special_tokens", "special"),
    "special_tokens": ("special", "control"),
    "control_symbols": ("control",),
    "user_defined_symbols": ("user_defined",),
    "normalization_rule_name": ("normalization",),
    "vocab_size": ("size",),
    "min_freq": ("min_frequency",),
    "pattern": ("pre_regex",),
    "format": ("to",),
}
"""Keywords of other libraries and of llama.cpp's bindings -> ours, where a call has it."""
VALUES = {"to": "'gguf', 'tokenizer.json', 'tiktoken' or 'model', or leave it out: the end of the file's name tells it"}
"""Keywords of ours whose values are others than those libraries'."""
EXPLAINED = _by_name(
    ("add_special_tokens special_tokens_mask", "add_special is an option of encode"),
    ("bos eos add_bos add_eos add_bos_token add_eos_token prepend append ignore_merges", BOS),
    ("allowed_special disallowed_special parse_special_tokens", SPECIAL_TEXT),
    ("skip_special", "special tokens of a GGUF file are omitted unless unparse_special=True"),
    ("skip_special_tokens spaces_between_special_tokens special", PRINTS),
    ("padding pad pad_id pad_to_max_length pad_to_multiple_of padding_side return_attention_mask", PADDED),
    ("truncation truncation_side truncation_strategy max_length max_len stride overlap windows", CUT),
    ("return_tensors return_type return_dict", TENSORS),
    ("return_offsets_mapping return_offsets with_offsets", "tok.align(text) gives ids and their spans"),
    ("return_token_type_ids", "rows = tok.encode_batch(texts, pairs) have segments: rows.types, rows.to_padded()"),
    ("pair text_pair text_pairs pairs", "tok.encode_pair(first, second) or tok.encode_batch(texts, pairs)"),
    ("return_overflowing_tokens", "tok.encode_batch(texts, max_length=n, windows=True) gives windows of long texts"),
    ("out_type return_tokens", "ids.tolist() is a list of int, [tok.id_to_token(i) for i in ids] are the tokens"),
    ("is_pretokenized is_split_into_words", "pre-tokenized input is not supported: join the words first"),
    ("enable_sampling sampling nbest_size alpha dropout", NO_SAMPLING),
    ("clean_up_tokenization_spaces", "decode_bytes gives the bytes of the tokens"),
    ("trust_remote_code revision use_fast token use_auth_token cache_dir subfolder force_download", LOCAL),
    ("local_files_only repo_id filename", LOCAL),
    ("separator separators strategy mode", "by= is 'token', 'line' or 'sentence', which tells where pieces may end"),
    ("length_function tokenizer token_counter", "remove it: pieces are counted in ids of this tokenizer"),
    ("vocab_only n_ctx n_gpu_layers", "remove it: only the header of a GGUF is read"),
)
"""Other keywords -> what to write instead."""
FROM_FILE = "write jittok.load(path) for a file or folder, jittok.bundled(name) for a bundled vocabulary"
LOADED = "write tok = jittok.load(path), then tok.{0}"
FROM_OBJECT = "write jittok.from_{0}(object) for a tokenizer of {0}, or jittok.load(path) for its file"
ATTRIBUTES = _by_name(
    ("from_pretrained from_file AutoTokenizer PreTrainedTokenizerFast Llama", FROM_FILE),
    ("get_encoding encoding_for_model Encoding", FROM_OBJECT.format("tiktoken")),
    ("SentencePieceProcessor", FROM_OBJECT.format("sentencepiece")),
    ("tokenize", LOADED.format("encode(text)")),
    *((name, LOADED.format(f"{name}(text)")) for name in ("encode", "trace", "align", "count")),
    *((f"{name}_batch", LOADED.format(f"{name}_batch(texts)")) for name in ("encode", "align", "count")),
    ("chunks", LOADED.format("chunks(text, n)")),
    ("decode", LOADED.format("decode(ids)")),
    ("decode_batch", LOADED.format("decode_batch(rows)")),
)
"""Attributes of other libraries' modules -> what to write instead."""
ENCODES = "write tok.encode(text, add_special=True, parse_special=True); many: tok.encode_batch(texts, ...)"
NAMES = "write [tok.id_to_token(i) for i in tok.encode(text)] for the tokens, tok.encode(text) for ids"
FIXED = "write jittok.convert(tok, path), change that file and load it: a Tokenizer does not change"
CUTS = "write tok.encode_batch(texts, max_length=n, side=, overlap=, windows=) for each call"
PADS = "write rows.to_padded(length, side=, multiple_of=, pad_id=) for each call"
SPECIALS = "write [tok.id_to_token(i) for i in sorted(tok.special_ids)]"
FACADE = "write jittok.compat.as_{0}(tok), which has it"
OF_TOKENIZERS = _by_name(
    ("encode_plus batch_encode_plus prepare_for_model encode_batch_fast async_encode_batch", ENCODES),
    ("build_inputs_with_special_tokens create_token_type_ids_from_sequences", ENCODES),
    ("num_special_tokens_to_add", "write tok.encode('', add_special=True).size"),
    ("tokenize Tokenize encode_as_pieces EncodeAsPieces", NAMES),
    ("encode_as_ids EncodeAsIds encode_as_numpy encode_ordinary encode_to_numpy Encode", "write tok.encode(text)"),
    ("encode_ordinary_batch", "write tok.encode_batch(texts)"),
    ("encode_with_unstable", "encode the text without its end, or write tok.explain(text)"),
    ("encode_batch_list", "write tok.encode_batch(texts).to_list()"),
    ("encode_batch_padded", "write tok.encode_batch(texts).to_padded()"),
    ("as_hf", FACADE.format("transformers")),
    ("as_tiktoken", FACADE.format("tiktoken")),
    ("encode_files", "write jittok corpus files --vocab FILE --out shards, or tok.encode_stream(texts)"),
    ("apply_chat_template", "write tok.encode_chat(messages).ids, or tok.render_chat(messages) for the text"),
    ("count_tokens num_tokens get_num_tokens n_tokens", "write tok.count(text), or tok.count_batch(texts)"),
    ("batch_decode decode_bytes_batch DecodeIdsBatch", "write tok.decode_batch(rows)"),
    ("detokenize Detokenize decode_ids DecodeIds Decode convert_tokens_to_string", "write tok.decode(ids)"),
    ("decode_pieces DecodePieces", "write tok.decode([tok.token_to_id(piece) for piece in pieces])"),
    ("decode_tokens_bytes", "write [tok.id_to_token(i) for i in ids]"),
    ("decode_with_offsets char_to_token token_to_chars word_ids offset_mapping offsets", "write tok.align(text)"),
    ("DecodeStream", "write out = tok.stream_decoder(), then out.push(id), out.finish()"),
    ("convert_tokens_to_ids piece_to_id PieceToId encode_single_token", "write tok.token_to_id(token)"),
    (
        "convert_ids_to_tokens id_to_piece IdToPiece decode_single_token_bytes token_get_text",
        "write tok.id_to_token(id)",
    ),
    ("get_vocab token_byte_values get_added_vocab", "write {tok.id_to_token(i): i for i in range(tok.vocab_size)}"),
    ("get_vocab_size get_piece_size GetPieceSize piece_size n_vocab max_token_value", "write tok.vocab_size"),
    ("get_score GetScore", "write tok.scores[id]"),
    ("is_unknown is_control is_unused is_byte IsUnknown IsControl IsUnused IsByte", "write tok.describe([id])"),
    ("all_special_ids is_special_token get_special_tokens_mask", "write tok.special_ids, or tok.eog_ids"),
    ("all_special_tokens special_tokens_set special_tokens_map additional_special_tokens", SPECIALS),
    ("added_tokens_decoder added_tokens_encoder get_added_tokens_decoder", SPECIALS),
    *(
        (f"{role}_token_id token_{role}", f"write tok.{role}_id")
        for role in ("bos", "eos", "unk", "sep", "pad", "mask", "nl")
    ),
    ("cls_token_id cls_id", "write tok.bos_id"),
    ("eot_token", "write tok.eos_id, or tok.token_to_id('<|endoftext|>')"),
    *(
        (f"{role}_token", f"write tok.id_to_token(tok.{role}_id), unless tok.{role}_id is None")
        for role in ("bos", "eos", "unk", "sep", "pad", "mask")
    ),
    ("cls_token", "write tok.id_to_token(tok.bos_id), unless tok.bos_id is None"),
    ("add_tokens add_special_tokens set_vocabulary load_vocabulary set_encode_extra_options", FIXED),
    ("encode_special_tokens split_special_tokens", SPECIAL_TEXT),
    ("add_bos_token add_eos_token add_prefix_space", BOS),
    ("enable_truncation no_truncation truncation truncation_side model_max_length", CUTS),
    ("pad enable_padding no_padding padding padding_side", PADS),
    (
        "save save_pretrained save_vocabulary to_str push_to_hub serialized_model_proto",
        "write jittok.convert(tok, path)",
    ),
    ("from_pretrained from_file from_str from_buffer", FROM_FILE),
    ("load Load LoadFromFile load_from_serialized_proto", FROM_FILE),
    *(
        (f"from_{library}", FROM_OBJECT.format(library))
        for library in ("transformers", "tokenizers", "tiktoken", "sentencepiece")
    ),
    ("train train_from_iterator train_new_from_iterator", "write jittok.train(texts, size=32000)"),
    ("normalizer pre_tokenizer decoder model post_processor post_process", "write tok.pipeline, or tok.explain()"),
    ("normalize Normalize", "write tok.trace(text).normalized, the text after each step: empty where none changes it"),
    ("backend_tokenizer is_fast name_or_path init_kwargs", FACADE.format("transformers")),
    ("nbest_encode NBestEncode nbest_encode_as_ids nbest_encode_as_pieces", FACADE.format("sentencepiece")),
    ("NBestEncodeAsIds NBestEncodeAsPieces", FACADE.format("sentencepiece")),
    ("sample_encode_as_ids sample_encode_as_pieces SampleEncodeAsIds SampleEncodeAsPieces", NO_SAMPLING),
    ("encode_as_immutable_proto encode_as_serialized_proto", "write tok.align(text)"),
)
"""Attributes of other libraries' tokenizers -> what to write with a `Tokenizer`."""
OF_ROWS = _by_name(
    ("input_ids", "write rows.to_padded().ids for a 2-D array, rows.to_list() for lists"),
    ("attention_mask", "write rows.to_padded().mask"),
    ("token_type_ids type_ids", "write tok.encode_batch(texts, pairs, max_length=n).to_padded().types"),
)
OF_PADDED = _by_name(
    ("input_ids", "write padded.ids"),
    ("attention_mask", "write padded.mask"),
    ("token_type_ids type_ids", "write padded.types"),
)
"""Names of other libraries' rows -> what to write with a `TokenArray`, with `Padded`."""
TIKTOKEN = ("r50k_base", "p50k_base", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony")
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
"""The form of a repository name on a model hub."""
MISSING = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The known name closest to a misspelt one, ignoring case; None if none is close."""
    known = {each.lower(): each for each in names}
    found = difflib.get_close_matches(name.lower(), known, 1)
    return known[found[0]] if found else None


def unknown_keyword(call: Callable[..., Any], given: Mapping[str, object], more: Iterable[str] = ()) -> str:
    """The message for keywords that a call does not have, with a replacement for the first of them. more: keywords
    that it has and its signature does not list."""
    name = next(iter(given))
    own = [
        each.name
        for each in inspect.signature(call).parameters.values()
        if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    ] + [*more]
    holder = getattr(call, "__self__", None)
    shown = call.__name__ if holder is None else f"{type(holder).__name__}.{call.__name__}"
    said = _keyword(name, given[name], own)
    return f"{shown}() got an unexpected keyword argument {name!r}: {said}"


def _keyword(name: str, value: object, own: list[str]) -> str:
    """What to write instead of a keyword, in a call that takes the keywords `own`."""
    for ours in RENAMED.get(name, ()):
        if ours in VALUES and ours in own:
            return f"write {ours}={VALUES[ours]}"
        if ours in own:
            return f"write {ours}={value!r}" if isinstance(value, bool | int | str) else f"write {ours}="
    if name in EXPLAINED:
        return EXPLAINED[name]
    near = nearest(name, own)
    return f"did you mean {near}=?" if near else f"expected {', '.join(f'{each}=' for each in own[1:] or own)}"


def no_attribute(holder: str, name: str, names: Callable[[], Iterable[str]]) -> str:
    """The message of an AttributeError, with what to write instead. names(): the attributes that exist."""
    if name in ATTRIBUTES and holder.startswith("module"):
        said = f": {ATTRIBUTES[name]}"
    elif name.startswith("_"):  # protocols look these up on any object
        said = ""
    else:
        own = [each for each in names() if not each.startswith("_")]
        near = nearest(name, own)
        said = f"; did you mean {near}?" if near else ""
    return f"{holder} has no attribute {name!r}{said}"


def no_attribute_of_tokenizer(name: str, names: Callable[[], Iterable[str]], holder: str = "'Tokenizer' object") -> str:
    """The same for a `Tokenizer`, or for the class."""
    if name in OF_TOKENIZERS:
        return f"{holder} has no attribute {name!r}: {OF_TOKENIZERS[name]}"
    return no_attribute(holder, name, names)


def no_attribute_of_rows(kind: str, name: str, names: Iterable[str]) -> str:
    """The same for rows of ids: a `TokenArray`, or `Padded`."""
    said = OF_PADDED if kind == "Padded" else OF_ROWS
    if name in said:
        return f"{kind!r} object has no attribute {name!r}: {said[name]}"
    return no_attribute(f"{kind!r} object", name, lambda: names)


def not_there(path: str, error: OSError, bundled: Iterable[str]) -> OSError:
    """The error for a missing tokenizer file, with what to write instead; any other error unchanged."""
    if error.errno not in MISSING:
        return error
    shown = path if len(path) < 200 else f"{path[:200]}…"
    return FileNotFoundError(errno.ENOENT, f"No such file or directory ({_place(path, list(bundled))})", shown)


def _place(path: str, bundled: list[str]) -> str:
    """What to write instead of the name of a missing file."""
    start = path.lstrip()[:1]
    if start in ("{", "[") or "\n" in path:
        return "this looks like the content of a file: write load(text.encode())"
    if "://" in path:
        return f"{LOCAL}: download it first"
    base, name = os.path.split(path.rstrip("/"))
    stem, _, ending = name.rpartition(".")
    if path in bundled:
        return f"write jittok.bundled({path!r}) for the bundled vocabulary"
    if path in TIKTOKEN:
        return f"write jittok.from_tiktoken(tiktoken.get_encoding({path!r}))"
    near = nearest(path, bundled) if not base and not (stem and ending.isalpha()) else None
    if near:
        return f"did you mean jittok.bundled({near!r})?"
    try:
        beside = nearest(name, [each.name for each in Path(base or ".").iterdir()])
    except OSError:
        beside = None
    if beside:
        return f"did you mean {str(Path(base, beside))!r}?"
    if REPOSITORY.fullmatch(path) and not Path(base).is_dir():
        return f"for that repository of Hugging Face: jittok.load('hf:{path}')"
    return f"expected a tokenizer file, a folder with one, or jittok.bundled(name): {', '.join(bundled)}"
