"""A tokenizer of transformers over jittok: transformers' own class with a backend of `jittok.compat.tokenizers`.

Padding, chat templates, batches and errors are transformers' own code.
"""

from __future__ import annotations

import json
import threading
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.pipeline import FIRST_TEXT
from jittok.compat.missing import TRAINING, not_there
from jittok.compat.tokenizers import Backend
from jittok.files.transformers.roles import USUAL_PADDING
from jittok.reference.pipeline import runner
from jittok.tokenizer import Tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
USUAL = {
    "cls": ("[CLS]", "<cls>"), "sep": ("[SEP]", "<sep>"), "mask": ("[MASK]", "<mask>"), "pad": USUAL_PADDING,
    "unk": ("[UNK]", "<unk>"), "bos": ("<s>",), "eos": ("</s>",),
}  # fmt: skip
"""Texts of added tokens with a role, where no file names one."""
OF_CONFIG = (
    "model_max_length", "padding_side", "truncation_side", "clean_up_tokenization_spaces", "model_input_names",
    "chat_template", "add_prefix_space", "additional_special_tokens", "extra_special_tokens",
)  # fmt: skip
"""What of a tokenizer_config.json next to the file is passed on, besides the texts of roles."""
LARGEST = 1 << 24
"""Bytes of a configuration that is read."""


def as_transformers(tok: Tokenizer, **named: Any) -> PreTrainedTokenizerFast:
    """A tokenizer of transformers (a `PreTrainedTokenizerFast`), for programs that expect one.

    Roles of tokens, the chat template and other settings are those of a tokenizer_config.json next to the file, else
    what the vocabulary says; `named` are keywords of transformers' class and go first: pad_token=, model_max_length=,
    chat_template=. Threads may share it: truncation and padding belong to a call.

    >>> import jittok
    >>> bert = as_transformers(jittok.bundled("bert"))
    >>> bert("Hello world", "Bye", padding="max_length", max_length=8)["input_ids"]
    [101, 7592, 2088, 102, 9061, 102, 0, 0]
    >>> bert.convert_ids_to_tokens([101, 7592])
    ['[CLS]', 'hello']
    """
    if not isinstance(tok, Tokenizer):
        raise TypeError(f"tok: found {type(tok).__name__}, expected a jittok.Tokenizer: jittok.load(path)")
    try:
        kind = _kind()
    except ImportError as error:
        raise ImportError("as_transformers: found no package transformers: pip install transformers") from error
    backend = OwnStateBackend(tok)
    made: PreTrainedTokenizerFast = kind(tokenizer_object=backend, **{**_settings(tok, backend), **named})
    return made


class OwnStateBackend(Backend):
    """A backend whose settings belong to the thread that makes them."""

    def _new_state(self, state: dict[str, Any]) -> Any:
        return _of_thread(**state)


def _of_thread(**state: Any) -> Any:
    class State(threading.local):
        def __init__(self) -> None:
            vars(self).update(state)

    return State()


def _settings(tok: Tokenizer, backend: Backend) -> dict[str, Any]:
    """Keywords of transformers' class that the vocabulary and the files next to it say."""
    config = _config(tok)
    found = {key: config[key] for key in OF_CONFIG if config.get(key) is not None}
    added = {token.content for token in backend._added.values()}
    for role in ROLES:
        text = config.get(f"{role}_token")
        text = text.get("content") if isinstance(text, dict) else text
        token = getattr(tok, f"{role}_id", None)
        usual = next((each for each in USUAL.get(role, ()) if each in added), None)
        text = text or (backend._names.get(token) if token is not None else None) or usual
        if isinstance(text, str) and text in added:
            found[f"{role}_token"] = text
    pair = tok.pipeline.pair
    between = pair[pair.index(FIRST_TEXT) + 1 : -1]
    if pair[0] >= 0 and pair[-1] in between:  # a text is between the two, as in BERT
        found = {"cls_token": backend._names[pair[0]], "sep_token": backend._names[pair[-1]]} | found
    if "model_input_names" not in found:
        segments = any(kind for _, kind in tok.pipeline.template(True)) and tok.type in ("wpm", "ugm")
        types = ["token_type_ids"] if segments else []
        found["model_input_names"] = ["input_ids", *types, "attention_mask"]
    template = getattr(tok, "chat_template", None)
    if "chat_template" not in found and isinstance(template, str):
        found["chat_template"] = template
    return found


def _config(tok: Tokenizer) -> dict[str, Any]:
    """The tokenizer_config.json next to a file, with a chat template of its own file; {} without one."""
    source = Path(tok.vocab.source)
    folder = source if source.is_dir() else source.parent
    if not source.exists() or not isinstance(tok.vocab, Pipeline):
        return {}
    found: dict[str, Any] = {}
    path, template = folder / "tokenizer_config.json", folder / "chat_template.jinja"
    if path.is_file() and path.stat().st_size <= LARGEST:
        read = json.loads(path.read_text(encoding="utf-8"))
        found = read if isinstance(read, dict) else {}
    if template.is_file() and template.stat().st_size <= LARGEST:
        found["chat_template"] = template.read_text(encoding="utf-8")
    return found


@lru_cache(maxsize=1)
def _kind() -> Any:
    """The class, made when transformers is first needed."""
    from transformers import PreTrainedTokenizerFast

    base: Any = PreTrainedTokenizerFast

    class JittokTokenizer(base):  # type: ignore[misc]
        """transformers' class over a jittok Tokenizer."""

        def __reduce__(self) -> tuple[Any, ...]:
            return _unpickled, (), self.__dict__

        def _encode_without_added_tokens(self, text: str) -> list[int]:
            """The ids of a text in which nothing is special: what `sanitize_control_tokens` asks for."""
            tok = self._tokenizer._tok
            if isinstance(tok.vocab, Pipeline):
                return runner(tok.vocab).fragment(text)
            return tok.encode(text).tolist()  # type: ignore[no-any-return]

        def train_new_from_iterator(self, *_: Any, **__: Any) -> Any:
            """NotImplementedError."""
            not_there("train_new_from_iterator", TRAINING)

    JittokTokenizer.__module__, JittokTokenizer.__qualname__ = __name__, "JittokTokenizer"
    globals()["JittokTokenizer"] = JittokTokenizer
    return JittokTokenizer


def _unpickled() -> Any:
    return object.__new__(_kind())
