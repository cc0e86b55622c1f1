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

ROWS = "tok.encode_batch(texts).to_padded(length, pad_id=...)"
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
    "max_length": ("length",),
    "max_len": ("length", "max_length"),
    "seq_len": ("length", "max_length"),
    "padding_side": ("side",),
    "truncation_side": ("side",),
    "direction": ("side",),
    "pad_to_multiple_of": ("multiple_of",),
    "pad_token_type_id": ("pad_type",),
    "pad_type_id": ("pad_type",),
    "stride": ("overlap",),
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
    "pat_str": ("pattern",),
    "added_tokens": ("special_tokens",),
    "additional_special_tokens": ("special_tokens",),
}
"""Keywords of other libraries and of llama.cpp's bindings -> ours, where a call has it."""
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
    ("vocab_only n_ctx n_gpu_layers", "remove it: only the header of a GGUF is read"),
)
"""Other keywords -> what to write instead."""
FROM_FILE = "write jittok.load(path) for a file or folder, jittok.bundled(name) for a bundled vocabulary"
FROM_OBJECT = "write jittok.from_{0}(object) for a tokenizer of {0}, or jittok.load(path) for its file"
ATTRIBUTES = _by_name(
    ("from_pretrained from_file AutoTokenizer PreTrainedTokenizerFast Llama", FROM_FILE),
    ("get_encoding encoding_for_model Encoding", FROM_OBJECT.format("tiktoken")),
    ("SentencePieceProcessor", FROM_OBJECT.format("sentencepiece")),
    ("tokenize encode_batch decode_batch", "write tok = jittok.load(path), then tok.encode(text)"),
)
"""Attributes of other libraries' modules -> what to write instead."""
TIKTOKEN = ("r50k_base", "p50k_base", "p50k_edit", "cl100k_base", "o200k_base", "o200k_harmony")
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
"""The form of a repository name on a model hub."""
MISSING = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The known name closest to a misspelt one, ignoring case; None if none is close."""
    known = {each.lower(): each for each in names}
    found = difflib.get_close_matches(name.lower(), known, 1)
    return known[found[0]] if found else None


def unknown_keyword(call: Callable[..., Any], given: Mapping[str, object]) -> str:
    """The message for keywords that a call does not have, with a replacement for the first of them."""
    name = next(iter(given))
    own = [
        each.name
        for each in inspect.signature(call).parameters.values()
        if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    ]
    holder = getattr(call, "__self__", None)
    shown = call.__name__ if holder is None else f"{type(holder).__name__}.{call.__name__}"
    said = _keyword(name, given[name], own)
    return f"{shown}() got an unexpected keyword argument {name!r}: {said}"


def _keyword(name: str, value: object, own: list[str]) -> str:
    """What to write instead of a keyword, in a call that takes the keywords `own`."""
    for ours in RENAMED.get(name, ()):
        if ours in own:
            return f"write {ours}={value!r}" if isinstance(value, bool | int | str) else f"write {ours}="
    if name in EXPLAINED:
        return EXPLAINED[name]
    near = nearest(name, own)
    return f"did you mean {near}=?" if near else f"expected {', '.join(f'{each}=' for each in own[1:] or own)}"


def no_attribute(holder: str, name: str, names: Callable[[], Iterable[str]]) -> str:
    """The message of an AttributeError, with what to write instead. names(): the attributes that exist."""
    if name in ATTRIBUTES:
        said = f": {ATTRIBUTES[name]}"
    elif name.startswith("_"):  # protocols look these up on any object
        said = ""
    else:
        own = [each for each in names() if not each.startswith("_")]
        near = nearest(name, own)
        said = f"; did you mean {near}?" if near else ""
    return f"{holder} has no attribute {name!r}{said}"


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
