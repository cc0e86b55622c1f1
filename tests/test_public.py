"""The names that users and the outside checks call. A name that goes, or a default that changes, fails here."""

import inspect
import subprocess
import sys

import pytest

import jittok
from jittok.chunks.rows import Rows
from jittok.common.rows import TokenArray
from jittok.errors import CorpusError, EncodingFailed, InvalidToken, JittokError, MalformedVocab, UnsupportedVocab
from jittok.tokenizer import Tokenizer
from jittok.tokenizer.loading import bundled, load

ENCODING = {"add_special": False, "parse_special": False, "errors": "strict"}
BATCH = {**ENCODING, "threads": None, "progress": False}
ROWS = {"max_length": None, "overlap": 0, "truncation": None, "side": "right", "windows": False}
DECODING = {"remove_special": False, "unparse_special": False, "clean": True}
METHODS = {
    "encode": {**ENCODING, "threads": None, "literal": None},
    "encode_batch": {**BATCH, **ROWS},
    "encode_stream": BATCH,
    "count": {**ENCODING, "threads": None},
    "count_batch": BATCH,
    "encode_pair": {**ENCODING, "add_special": True},
    "decode_bytes": {**DECODING, "skip_special": None},
    "decode": {"errors": "replace", **DECODING, "skip_special": None},
    "decode_batch": {"errors": "replace", **DECODING, "skip_special": None, "progress": False},
    "stream_decoder": {"errors": "replace", **DECODING},
    "token_to_piece": {"lstrip": 0, "special": False},
    "id_to_token": {},
    "token_to_id": {},
}
FACTS = [
    "type", "pre", "name", "vocab_size", "fingerprint", "bos_id", "eos_id", "eot_id", "eom_id", "unk_id",
    "sep_id", "pad_id", "mask_id", "nl_id", "fim_prefix_id", "fim_suffix_id", "fim_middle_id", "fim_pad_id",
    "fim_rep_id", "fim_sep_id", "add_bos", "add_eos", "add_sep", "add_space_prefix", "eog_ids", "special_ids",
    "scores", "attributes", "token_bytes", "token_offsets",
]  # fmt: skip


def keywords(call: object) -> dict[str, object]:
    parameters = inspect.signature(call).parameters.values()  # type: ignore[arg-type]
    return {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}


@pytest.mark.parametrize("name", METHODS)
def test_methods_have_their_options_and_defaults(name: str) -> None:
    assert keywords(getattr(Tokenizer, name)) == METHODS[name]


def test_load_has_its_options() -> None:
    of_ranks = dict.fromkeys(("pattern", "special_tokens", "encoding"))
    assert keywords(load) == {"cache": True, "cache_bytes": None, "llama_cpp": None, "pre": None, **of_ranks}
    assert list(inspect.signature(bundled).parameters) == ["name", "cache_bytes", "llama_cpp", "pre", "others"]


@pytest.mark.parametrize("name", FACTS)
def test_facts_are_there(name: str) -> None:
    assert hasattr(Tokenizer, name)


def test_token_array_has_its_names() -> None:
    for name in ["lengths", "to_list", "to_padded", "to_arrow", "from_arrow", "concat", "save", "load", "_repr_html_"]:
        assert hasattr(TokenArray, name)
    assert keywords(TokenArray.to_padded) == {
        "pad_id": None,
        "side": "right",
        "truncate": False,
        "closing": None,
        "multiple_of": None,
    }
    assert keywords(Rows.to_padded) == {
        "pad_id": None, "side": "right", "multiple_of": None, "pad_type": 0,
    }  # fmt: skip
    for name in ["row_of", "types", "sequences", "spans", "take", "max_length"]:
        assert hasattr(Rows, name)


def test_errors_are_what_habits_expect() -> None:
    for error in (MalformedVocab, UnsupportedVocab, EncodingFailed, InvalidToken, CorpusError):
        assert issubclass(error, JittokError)
    assert issubclass(MalformedVocab, ValueError)
    assert issubclass(EncodingFailed, ValueError)
    assert issubclass(InvalidToken, IndexError)


def test_importing_brings_in_nothing_heavy() -> None:
    script = (
        "import sys, jittok; jittok.JittokError; "
        "print(sorted({'numba', 'llvmlite', 'regex', 'pyarrow', 'pandas', 'gguf'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = jittok.nothing
    assert set(jittok.__all__) <= set(dir(jittok))


HIDDEN = """
import sys
hidden = sys.argv[1].split(",")
class Hiding:
    @staticmethod
    def find_spec(name, *_):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hiding)
import inspect, pydoc, jittok
listed = dir(jittok)
for name in listed:
    getattr(jittok, name)
for name in ("arrow", "plot", "polars", "ray", "no_such_name"):
    assert hasattr(jittok, name) == (name in listed), name
assert [name for name, _ in inspect.getmembers(jittok)] == dir(jittok)  # more than before: what was imported
assert "encode_batch" in pydoc.render_doc(jittok)
print(" ".join(listed))
"""
EXTRAS = ("polars", "pyarrow", "pandas", "ray", "matplotlib", "rich", "zstandard", "filelock", "fsspec", "isal")


@pytest.mark.process
@pytest.mark.parametrize("hidden", [("polars",), (*EXTRAS, "numba", "llvmlite")])
def test_what_is_listed_is_there_whatever_is_not_installed(hidden: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-c", HIDDEN, ",".join(hidden)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    listed = done.stdout.split()
    assert "polars" not in listed
    assert {"Tokenizer", "arrow", "corpus", "load", "ray", "train"} <= set(listed)
