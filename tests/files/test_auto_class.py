"""Which class reads a folder: that of transformers' AutoTokenizer, as a script has recorded it of transformers."""

import json
import os
from pathlib import Path

import pytest

from jittok.files.transformers.auto_class import class_of, known, own_steps

CLASSES = (None, "GPT2Tokenizer", "RobertaTokenizerFast", "LlamaTokenizerFast", "PreTrainedTokenizer",
           "PreTrainedTokenizerFast", "MBartTokenizer", "DistilBertTokenizerFast", "NobodysTokenizer")  # fmt: skip
ORIGINAL: list[object] = []
BYTE_LEVEL = {
    "added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "decoder": {"type": "ByteLevel"},
}  # fmt: skip


@pytest.fixture(scope="module")
def auto():
    """AutoTokenizer whose classes make nothing, and say only which they are."""
    os.environ.update(TRANSFORMERS_VERBOSITY="critical", HF_HUB_OFFLINE="1")
    transformers = pytest.importorskip("transformers", minversion=known()["transformers"])
    if transformers.__version__ != known()["transformers"]:
        pytest.skip(f"recorded of transformers {known()['transformers']}, found {transformers.__version__}")
    ORIGINAL[:] = [vars(transformers.PreTrainedTokenizerBase)["from_pretrained"]]
    with pytest.MonkeyPatch.context() as patch:
        own = classmethod(lambda cls, *_, **__: cls)
        patch.setattr(transformers.PreTrainedTokenizerBase, "from_pretrained", own)
        yield transformers.AutoTokenizer


def lay(folder, said, model, byte_level=False):
    for name, value in (("tokenizer_config.json", said), ("config.json", model)):
        if value is not None:
            (folder / name).write_text(json.dumps(value))
    if byte_level:
        (folder / "tokenizer.json").write_text(json.dumps(BYTE_LEVEL))
    return folder


@pytest.mark.parametrize("said", CLASSES)
@pytest.mark.parametrize("byte_level", [False, True])
def test_the_class_of_a_folder_is_that_of_autotokenizer_for_every_model_type(said, byte_level, auto, tmp_path):
    wrong = {}
    for number, kind in enumerate([*known()["models"], "nobodys"][:: 7 if said else 1]):
        folder = tmp_path / str(number)
        folder.mkdir()
        lay(folder, {"tokenizer_class": said} if said else None, {"model_type": kind}, byte_level)
        want = auto.from_pretrained(folder)
        found = class_of(folder, byte_level)
        if isinstance(want, type) and found != want.__name__:  # RAG's is an object with two of them
            wrong[kind] = found, want.__name__
    assert not wrong


@pytest.mark.parametrize("model", [None, {}, {"tokenizer_class": "RobertaTokenizer"}, {"model_type": 5}])
def test_a_folder_without_a_model_type_has_the_class_that_it_names(model, tmp_path):
    assert class_of(lay(tmp_path, {"tokenizer_class": "GPT2TokenizerFast"}, model)) == "GPT2Tokenizer"


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff"])
def test_a_config_json_of_another_program_says_nothing(content, tmp_path):
    (tmp_path / "config.json").write_bytes(content)
    assert class_of(tmp_path) is None


def test_steps_that_classes_put_in_place_of_a_file_s_are_noted():
    digits = {"normalizer": None, "pre_tokenizer": {"type": "Digits"}}
    assert len(known()["steps"]) > 45
    assert all(own_steps(name, digits) for name in known()["steps"])
    assert not any(own_steps(name, steps) for name, steps in known()["steps"].items() if steps)
    assert not own_steps("TokenizersBackend", digits)
    assert not own_steps("FNetTokenizer", digits)


@pytest.mark.usefixtures("auto")
def test_what_was_recorded_is_what_transformers_says(monkeypatch):
    """Asked again of the classes whose files are the most frequent; `--check` of the script asks all."""
    import transformers

    monkeypatch.syspath_prepend(Path(__file__).resolve().parents[2] / "upstream")
    record_classes = pytest.importorskip("record_classes")
    monkeypatch.setattr(transformers.PreTrainedTokenizerBase, "from_pretrained", ORIGINAL[0])
    for name in ("T5Tokenizer", "LlamaTokenizer", "BertTokenizer", "Qwen2Tokenizer", "PegasusTokenizer"):
        kind = getattr(transformers, name)
        assert record_classes.own_steps(kind) == known()["steps"][name]
        assert record_classes.named_tokens(kind) == known()["tokens"][name]
    assert record_classes.own_steps(transformers.TokenizersBackend) is None
