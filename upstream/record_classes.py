"""Ask the installed transformers which class AutoTokenizer takes, and which classes put their own steps in place of a
tokenizer.json's: writes jittok/files/transformers/transformers_classes.json.

    python upstream/record_classes.py [--check]

`--check`: writes nothing; status 1 where the file is not what this transformers says.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.update(TRANSFORMERS_VERBOSITY="critical", HF_HUB_OFFLINE="1")

OUT = Path(__file__).resolve().parent.parent / "jittok" / "files" / "transformers" / "transformers_classes.json"
ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
TEXTS = [
    "<s>", "</s>", "<unk>", "<pad>", "<mask>", "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<|endoftext|>",
    "<|startoftext|>", "\u2581", "a", "b", "1", "2", "##b", "\u0120", "\u0120a", *(f"[{k}]" for k in range(120)),
]  # fmt: skip
"""Tokens of a vocabulary that is made up: what classes name of themselves, and a few letters."""
STEPS: dict[str, Any] = {
    "normalizer": {"type": "Replace", "pattern": {"String": "q"}, "content": "zz"},
    "pre_tokenizer": {"type": "Digits", "individual_digits": True},
}
"""Steps that no class has of its own."""


def models() -> list[dict[str, Any]]:
    """One model of each kind over the same tokens."""
    ids = {text: token for token, text in enumerate(TEXTS)}
    bpe: dict[str, Any] = {"type": "BPE", "vocab": ids, "merges": [], "unk_token": "<unk>"}
    rows = [[text, 0.0 if text == "<unk>" else -1.0 - token] for text, token in ids.items()]
    piece = {"unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    return [
        bpe, {"type": "Unigram", "unk_id": 2, "vocab": rows, "byte_fallback": False},
        {"type": "WordPiece", "vocab": ids, **piece}, {"type": "WordLevel", "vocab": ids, "unk_token": "<unk>"},
    ]  # fmt: skip


def steps_of(tokenizer: Any) -> dict[str, Any]:
    """The normalizer and pre-tokenizer that a tokenizer runs, as JSON."""
    whole = json.loads(tokenizer.backend_tokenizer.to_str())
    return {key: whole[key] for key in STEPS}


def own_steps(kind: Any) -> dict[str, Any] | None:
    """The steps that a class puts in place of a file's; None where it takes the file's. Of one that cannot be made
    here, but has a constructor of its own, nothing is known: {}."""
    found = None
    for model in models():
        whole = {"version": "1.0", "added_tokens": [], "post_processor": None, "decoder": None, **STEPS, "model": model}
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "tokenizer.json").write_text(json.dumps(whole), "utf-8")
            Path(folder, "tokenizer_config.json").write_text(json.dumps({"tags_dict": {}}), "utf-8")
            try:
                made = steps_of(kind.from_pretrained(folder))
            except Exception:  # noqa: BLE001  a class has its kind of model, and says in its own way that it has
                continue
        if made == STEPS:
            return None
        found = found or made
    return {} if found is None and "__init__" in vars(kind) else found


def named_tokens(kind: Any) -> dict[str, str]:
    """The special tokens that a class names where no file does: the defaults of its constructor."""
    import inspect

    said = inspect.signature(kind.__init__).parameters
    found = {role: said[role].default for role in ROLES if role in said}
    return {role: str(text) for role, text in found.items() if text not in (None, inspect.Parameter.empty)}


def classes_of_models(names: set[str]) -> dict[str, str]:
    """Model type -> the class of AutoTokenizer where nothing but the type is said; the general one is left out."""
    import transformers

    found = {}
    base, kept = transformers.PreTrainedTokenizerBase, vars(transformers.PreTrainedTokenizerBase)["from_pretrained"]
    base.from_pretrained = classmethod(lambda cls, *_, **__: cls)
    try:
        for name in sorted(names):
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "config.json").write_text(json.dumps({"model_type": name}), "utf-8")
                try:
                    kind = transformers.AutoTokenizer.from_pretrained(folder)
                except Exception:  # noqa: BLE001  a package that it needs is not there
                    continue
            if isinstance(kind, type) and kind.__name__ != "TokenizersBackend":
                found[name] = kind.__name__
    finally:
        base.from_pretrained = kept
    return found


def ask() -> dict[str, Any]:
    """All of it, of the transformers that is installed."""
    import transformers
    from transformers import PreTrainedTokenizerBase, TokenizersBackend
    from transformers.models.auto import tokenization_auto as auto

    logging.disable(logging.CRITICAL)
    models_of = {model: name for model, name in auto.TOKENIZER_MAPPING_NAMES.items() if name}
    endings = ("Tokenizer", "TokenizerFast", "Backend")
    names = {*models_of.values(), *(name for name in dir(transformers) if name.endswith(endings))}
    kinds = {}
    for name in sorted(names):
        try:
            kind = auto.tokenizer_class_from_name(name)
        except Exception:  # noqa: BLE001  a package that it needs is not there
            continue
        if isinstance(kind, type) and issubclass(kind, PreTrainedTokenizerBase):
            kinds[name] = kind
    real = {kind.__name__: kind for kind in kinds.values()}
    fast = {name: kind for name, kind in sorted(real.items()) if issubclass(kind, TokenizersBackend)}
    return {
        "transformers": transformers.__version__,
        "classes": {name: kind.__name__ for name, kind in kinds.items()},
        "models": dict(sorted(models_of.items())),
        "alone": classes_of_models({*models_of, *auto.CONFIG_MAPPING_NAMES}),
        "corrected": sorted(auto.MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS),
        "tokens": {name: named_tokens(kind) for name, kind in sorted(real.items()) if named_tokens(kind)},
        "steps": {name: steps for name, kind in fast.items() if (steps := own_steps(kind)) is not None},
    }


def main() -> int:
    """Write the file, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    text = json.dumps(ask(), indent=1, ensure_ascii=True) + "\n"
    if given.check:
        return int(not OUT.is_file() or OUT.read_text("utf-8") != text)
    OUT.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
