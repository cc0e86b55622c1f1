"""Whoever writes what another library has, or misspells a name, is told exactly what to write."""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import pickle
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

import jittok
from jittok.common.hints import OF_PADDED, OF_ROWS, OF_TOKENIZERS
from jittok.train.spm import train_spm
from jittok.train.unigram import train_unigram
from jittok.train.wordpiece import train_wordpiece


@pytest.fixture(scope="module")
def tok() -> Any:
    return jittok.bundled("gpt-2")


CALLS = {
    "encode": ("text", True),
    "encode_batch": (["text"], True),
    "count": ("text", True),
    "count_batch": (["text"], True),
    "align": ("text", True),
    "align_batch": (["text"], True),
    "trace": ("text", True),
    "encode_parts": ("text", True),
    "decode": ([1, 2], False),
    "decode_bytes": ([1, 2], False),
    "decode_batch": ([[1, 2]], False),
}
KEYWORDS = [
    ("add_special_tokens", True, True, "write add_special=True"),
    ("add_special_tokens", False, True, "write add_special=False"),
    ("allowed_special", "all", True, "parse_special=True"),
    ("disallowed_special", (), True, "parse_special=True"),
    ("bos", True, True, "add_special=True"),
    ("add_eos", True, True, "tok.bos_id, \\*ids"),
    ("special", True, True, "write parse_special=True"),
    ("return_tensors", "pt", True, "torch.tensor\\(ids\\)"),
    ("truncation", True, True, "ids\\[:n\\]"),
    ("max_length", 8, True, "truncate=True"),
    ("padding", True, True, "to_padded"),
    ("out_type", int, True, "ids.tolist\\(\\)"),
    ("return_offsets_mapping", True, True, "tok.align"),
    ("text_pair", "b", True, "encode_pair"),
    ("is_split_into_words", True, True, "join the words"),
    ("ad_special", True, True, "did you mean add_special=\\?"),
    ("zzz", 1, True, "expected .*add_special=, parse_special=, errors="),
    ("skip_special_tokens", True, False, "write skip_special=True"),
    ("special", True, False, "write unparse_special=True"),
    ("remov_special", True, False, "did you mean remove_special=\\?"),
]


@pytest.mark.parametrize(("name", "value", "encodes", "says"), KEYWORDS)
def test_every_call_says_what_to_write_for_another_librarys_keyword(
    tok: Any, name: str, value: Any, encodes: bool, says: str
) -> None:
    own = {"encode_batch": ("truncation", "max_length", "text_pair")}  # which it has, the last under another name
    for call, (given, encodes_too) in CALLS.items():
        if encodes_too is encodes and name not in own.get(call, ()):
            with pytest.raises(
                TypeError, match=rf"^Tokenizer\.{call}\(\) got an unexpected keyword argument '{name}': .*{says}"
            ):
                getattr(tok, call)(given, **{name: value})


def test_a_wrong_keyword_is_refused_whatever_else_is_asked(tok: Any) -> None:
    tok.encode("warm")
    for more in ({}, {"add_special": True}, {"threads": 2}, {"errors": "replace"}):
        with pytest.raises(TypeError, match="write add_special=False"):
            tok.encode("warm", add_special_tokens=False, **more)


def test_rows_say_what_to_write_for_the_words_of_transformers(tok: Any) -> None:
    for name, value, says in (
        ("stride", 3, "write overlap=3"),
        ("return_overflowing_tokens", True, "write windows=True"),
        ("truncation_side", "left", "write side='left'"),
        ("text_pair", ["b"], "write pairs="),
        ("padding", True, "to_padded"),
        ("return_token_type_ids", True, "rows.types"),
    ):
        with pytest.raises(TypeError, match=says):
            tok.encode_batch(["a"], max_length=4, **{name: value})
    rows = tok.encode_batch(["a"], max_length=4)
    for name, value, says in (("pad_to_multiple_of", 8, "write multiple_of=8"), ("pad_token_id", 0, "write pad_id=0")):
        with pytest.raises(TypeError, match=says):
            rows.to_padded(**{name: value})


def test_padding_says_what_to_write(tok: Any) -> None:
    rows = tok.encode_batch(["a", "b c"])
    with pytest.raises(
        TypeError,
        match=r"these rows know no padding token; expected an id: pad_id=tok.pad_id .*pad_id=tok.eos_id or pad_id=0",
    ):
        rows.to_padded(pad_id=tok.pad_id)
    for name, value, says in (
        ("max_length", 3, "write length=3"),
        ("truncation", True, "write truncate=True"),
        ("padding_side", "left", "write side='left'"),
        ("return_tensors", "pt", "torch.tensor"),
    ):
        with pytest.raises(TypeError, match=says):
            rows.to_padded(pad_id=0, **{name: value})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["a"], "text: found list, expected str or bytes: encode_batch takes many texts"),
        (("a", "b"), "found tuple, .*encode_batch"),
        (np.array(["a"]), "found ndarray, .*encode_batch"),
        ((text for text in "ab"), "found generator, .*encode_batch"),
        (None, "text: found NoneType, expected str or bytes$"),
    ],
)
def test_one_text_is_asked_for_where_many_are_given(tok: Any, given: Any, says: str) -> None:
    for call in (tok.encode, tok.count, tok.align, tok.trace):
        with pytest.raises(TypeError, match=says):
            call(given)


def test_many_texts_are_asked_for_where_one_is_given(tok: Any) -> None:
    for call in (tok.encode_batch, tok.count_batch, tok.align_batch):
        with pytest.raises(TypeError, match=r"texts: found one str, .*: \[text\], or encode\(text\)"):
            call("a text")
        with pytest.raises(TypeError, match=r"document 1: found list, .*a batch is a flat sequence"):
            call(["a", ["b"]])


def test_what_is_no_row_of_ids_says_what_to_write(tok: Any) -> None:
    for given, says in (
        (tok.encode_batch(["Hello", "you"]), "a TokenArray of 2 rows, .*decode_batch\\(rows\\)"),
        (tok.encode_batch(["Hello you", "you"]), "a TokenArray of 2 rows, .*decode_batch\\(rows\\)"),
        (tok.align("Hello"), "found Alignment, .*decode\\(found.ids\\)"),
        ({"input_ids": [1]}, "found dict, .*\\['input_ids'\\]"),
        (15496, r"found int, .*write \[15496\]"),
        (np.int64(5), r"found int64, .*write \[5\]"),
        ("15496", "found str, .*encode takes text"),
        (None, "found NoneType, expected a sequence of integers"),
        ([[1], [2]], "decode_batch takes rows"),
        ([[1], [2, 3]], "decode_batch takes rows"),
    ):
        for call in (tok.decode, tok.decode_bytes):
            with pytest.raises(TypeError, match=says):
                call(given)
    for rows in ([15496, 11], tok.encode("Hello")):
        with pytest.raises(TypeError, match=r"rows: found an id as row 0, .*decode\(ids\) takes one row"):
            tok.decode_batch(rows)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpt-2", r"write jittok\.bundled\('gpt-2'\)"),
        ("gpt2", r"did you mean jittok\.bundled\('gpt-2'\)\?"),
        ("GPT_2", r"did you mean jittok\.bundled\('gpt-2'\)\?"),
        ("meta-llama/Llama-3.1-8B", r"repository of Hugging Face: jittok\.load\('hf:meta-llama/Llama-3\.1-8B'\)"),
        ("cl100k_base", r"from_tiktoken\(tiktoken\.get_encoding\('cl100k_base'\)\)"),
        ("https://host/tokenizer.json", "download it first"),
        ('{"version": "1.0"}', r"write load\(text\.encode\(\)\)"),
        ('{"version": "1.0"}' * 500, r"write load\(text\.encode\(\)\)"),
        ("tokeniser.json", r"did you mean 'tokenizer\.json'\?"),
        ("no/folder/of.gguf", "expected a tokenizer file, a folder with one"),
    ],
)  # fmt: skip
def test_a_name_of_no_file_says_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tokenizer.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match=says) as found:
        jittok.load(name)
    assert str(found.value.filename)[:200] == name[:200]


def test_a_name_of_no_bundled_vocabulary_says_what_to_write() -> None:
    for name in ("gpt2", "GPT-2", "gpt_2"):
        with pytest.raises(ValueError, match="did you mean 'gpt-2'"):
            jittok.bundled(name)
    with pytest.raises(ValueError, match=r"jittok\.load\(path\) reads other"):
        jittok.bundled("llama-3")
    for call in (jittok.load, jittok.bundled):
        with pytest.raises(TypeError, match="hf:org/name is a repository"):
            call("gpt-2", revision="main")
        with pytest.raises(TypeError, match=r"did you mean cache_bytes=\?"):
            call("gpt-2", cache_byte=1)


def test_a_name_of_other_packages_says_what_to_write() -> None:
    for name, says in (
        ("laod", "did you mean load"),
        ("get_encoding", "from_tiktoken"),
        ("AutoTokenizer", r"jittok\.load\(path\)"),
        ("from_pretrained", r"jittok\.load\(path\)"),
        ("tokenize", r"tok\.encode\(text\)"),
    ):
        with pytest.raises(AttributeError, match=f"module 'jittok' has no attribute '{name}'.*{says}"):
            getattr(jittok, name)


def test_a_tokenizer_that_is_called_says_what_to_write(tok: Any) -> None:
    with pytest.raises(TypeError, match=r"write tok\.encode\(text\)"):
        tok("text", return_tensors="pt")


def test_a_package_that_is_called_as_a_method_says_what_to_write() -> None:
    for call, says in (
        ("encode('x')", "tok.encode(text)"), ("decode([1])", "tok.decode(ids)"), ("trace('x')", "tok.trace(text)"),
        ("chunks('x', 4)", "tok.chunks(text, n)"), ("align('x')", "tok.align(text)"), ("count('x')", "tok.count(text)"),
    ):  # fmt: skip
        name = call.partition("(")[0]
        if name != "count":
            importlib.import_module(f"jittok.{name}")
        with pytest.raises((TypeError, AttributeError), match=re.escape(f"then {says}")):
            eval(f"jittok.{call}", {"jittok": jittok})


CLASS_NAMES = (
    "from_pretrained", "from_file", "from_str", "from_buffer", "load", "from_transformers", "from_tokenizers",
    "from_tiktoken", "from_sentencepiece",
)  # fmt: skip


@pytest.mark.parametrize("name", CLASS_NAMES)
def test_a_name_asked_of_the_class_is_told_by_that_name(tok: Any, name: str) -> None:
    for holder, shown in ((jittok.Tokenizer, "type object 'Tokenizer'"), (tok, "'Tokenizer' object")):
        with pytest.raises(AttributeError, match=rf"^{shown} has no attribute '{name}': write jittok\.(load|{name})\("):
            getattr(holder, name)
    assert name not in dir(tok)


def test_arguments_that_are_missing_name_the_class_of_the_user(tok: Any) -> None:
    with pytest.raises(TypeError, match=r"^Tokenizer\.chunks\(\) missing 1 required positional argument: 'n'$"):
        tok.chunks("a b")
    with pytest.raises(TypeError, match=r"^Tokenizer\.chunks\(\) missing 3 .*'self', 'text', and 'n'$"):
        jittok.Tokenizer.chunks()


def test_a_tokenizer_can_be_inspected_and_mocked(tok: Any, tmp_path: Path) -> None:
    jittok.convert(tok, tmp_path / "a.json", texts=[])
    for each, lacks in ((tok, "_general"), (jittok.load(tmp_path / "a.json", cache=False), "_aligner")):
        assert {"encode", "vocab_size"} <= dict(inspect.getmembers(each)).keys()
        Mock(spec=each).encode("a")
        assert not hasattr(each, lacks)


def test_rows_say_what_to_write_for_the_names_of_other_batches(tok: Any) -> None:
    rows = tok.encode_batch(["a", "b c"])
    for each in (rows, tok.encode_batch(["a"], max_length=4)):
        for name, says in OF_ROWS.items():
            with pytest.raises(AttributeError, match=re.escape(f"has no attribute {name!r}: {says}")):
                getattr(each, name)
    padded = rows.to_padded(pad_id=0)
    for name, says in OF_PADDED.items():
        with pytest.raises(AttributeError, match=re.escape(f"'Padded' object has no attribute {name!r}: {says}")):
            getattr(padded, name)
        eval(says.removeprefix("write "), {"padded": padded})
    with pytest.raises(AttributeError, match=r"'TokenArray' .*did you mean lengths\?"):
        _ = rows.length
    assert pickle.loads(pickle.dumps(rows)) == copy.copy(rows) == rows
    assert pickle.loads(pickle.dumps(padded)).ids.tolist() == padded.ids.tolist()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("vocab_size", 300, "write size=300"),
        ("special_tokens", ["<s>"], "write (special|control)="),
        ("min_freq", 2, "write min_frequency=2|expected "),
        ("show_progress", False, "write progress=False"),
        ("zzz", 1, "expected size=, .*threads="),
    ],
)
def test_trainers_say_what_to_write(name: str, value: Any, says: str) -> None:
    for call in (jittok.train, train_spm, train_unigram, train_wordpiece):
        with pytest.raises(TypeError, match=rf"^train\w*\(\) got an unexpected keyword argument '{name}': ({says})"):
            call(["a b"], **{name: value})


def test_convert_says_what_to_write(tok: Any, tmp_path: Path) -> None:
    for name in ("format", "zzz"):
        with pytest.raises(TypeError, match=rf"convert\(\) .*'{name}': (write to='gguf', |expected out=, to=)"):
            jittok.convert(tok, tmp_path / "a.json", **{name: "json"})
    assert list(tmp_path.iterdir()) == []


def _executable(advice: str) -> str | None:
    """The beginning of what a hint says to write, up to where an expression of Python ends."""
    said = advice.removeprefix("write ")
    for end in range(1, len(said) + 1):
        if said[end:][:1] in ("", ",", ":", " "):
            try:
                ast.parse(said[:end], mode="eval")
            except SyntaxError:
                continue
            return said[:end]
    return None


@pytest.mark.parametrize("vocab", ["gpt-2", "mistral", "bert"])
def test_what_a_hint_says_to_write_runs(vocab: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tok = jittok.bundled(vocab)
    text = "a text"
    ids = tok.encode(text)
    rows = tok.encode_batch([text, text])
    pieces = [tok.id_to_token(i) for i in ids]
    known = {
        "tok": tok, "jittok": jittok, "text": text, "texts": [text], "ids": ids, "id": int(ids[0]), "rows": rows,
        "token": pieces[0], "pieces": pieces, "messages": [{"role": "user", "content": "a"}], "n": 4,
    }  # fmt: skip
    ran = 0
    for name, advice in OF_TOKENIZERS.items():
        call = _executable(advice) if advice.startswith("write ") else None
        role = re.search(r"unless tok\.(\w+) is None", advice)
        if call is None or (role and getattr(tok, role[1]) is None) or "..." in call or not call.startswith("tok."):
            continue
        if ("_chat" in call and not tok.chat_template) or ("to_padded" in call and tok.pad_id is None):
            continue
        assert eval(call, {**known}) is not Ellipsis, name
        ran += 1
    assert ran > 60


def test_protocols_find_nothing_that_is_not_there(tok: Any) -> None:
    assert copy.copy(tok) == tok
    assert copy.deepcopy(tok) == tok
    assert pickle.loads(pickle.dumps(tok)) == tok
    assert getattr(tok, "__array__", None) is None


ROOT = Path(__file__).parents[2]
IDIOMS = {
    "transformers": (
        "tok.encode_plus('a')", "tok.batch_encode_plus(['a'])", "tok('a', truncation=True)", "tok.tokenize('a')",
        "tok.apply_chat_template([])", "tok.batch_decode([[1]])", "tok.convert_tokens_to_ids('a')",
        "tok.convert_ids_to_tokens(1)", "tok.pad_token_id", "tok.eos_token_id", "tok.bos_token_id", "tok.get_vocab()",
        "tok.encode('a', add_special_tokens=False)", "tok.encode('a', return_tensors='np')", "tok.all_special_ids",
        "tok.decode([1], skip_special_tokens=True)", "tok.train_new_from_iterator(['a'], 9)",
        "tok.save_pretrained('f')",
        "tok.encode_batch(['a'], return_overflowing_tokens=True)", "tok.encode('a', text_pair='b')", "tok.pad({})",
        "tok.add_tokens(['a'])", "tok.encode('a').input_ids", "tok.encode('a', return_offsets_mapping=True)",
        "type(tok).from_pretrained('gpt2')", "tok.eos_token", "tok.model_max_length",
    ),
    "tokenizers": (
        "type(tok).from_file('tokenizer.json')", "type(tok).from_str('{}')", "tok.encode('a').ids",
        "tok.encode('a', add_special_tokens=False).ids", "tok.enable_truncation(512, stride=64)",
        "tok.enable_padding(length=512)", "tok.encode('a').type_ids", "tok.encode('a').offsets",
        "tok.encode('a').tokens", "tok.decode([1], skip_special_tokens=False)", "tok.get_vocab_size()",
        "tok.normalizer", "tok.pre_tokenizer", "tok.train_from_iterator(['a'])", "tok.get_vocab()", "tok.to_str()",
        "tok.encode('a', is_pretokenized=True)", "tok.encode_batch(['a'], is_pretokenized=True)", "tok.save('f')",
        "tok.post_process(None)", "tok.encode('a', pair='b')", "tok.no_padding()",
    ),
    "tiktoken": (
        "tok.encode_ordinary('a')", "tok.encode('a', disallowed_special=())", "tok.encode('a', allowed_special='all')",
        "tok.encode_ordinary_batch(['a'])", "tok.encode_to_numpy('a')", "tok.decode_single_token_bytes(1)",
        "tok.encode_single_token('a')", "tok.decode_with_offsets([1])", "tok.n_vocab", "tok.eot_token",
        "tok.special_tokens_set", "tok.encode_batch(['a'], num_threads=2)", "tok.decode_tokens_bytes([1])",
        "tok.token_byte_values()",
    ),
    "sentencepiece": (
        "tok.encode('a', out_type=str)", "tok.encode('a', add_bos=True)", "tok.id_to_piece(1)", "tok.piece_to_id('a')",
        "tok.get_piece_size()", "tok.encode_as_ids('a')", "tok.EncodeAsIds('a')", "tok.encode_as_pieces('a')",
        "tok.DecodeIds([1])", "tok.normalize('a')", "tok.encode('a', out_type='proto')", "tok.nbest_encode_as_ids('a')",
        "tok.encode('a', enable_sampling=True)", "tok.encode(['a', 'b'])", "tok.GetPieceSize()", "tok.get_score(1)",
    ),
    "llama-cpp-python": (
        "tok.tokenize(b'a', add_bos=False)", "tok.detokenize([1])", "tok.n_vocab()", "tok.token_bos()",
        "tok.token_eos()", "tok.token_nl()", "tok.encode('a', special=True)", "tok.decode([1], special=True)",
        "tok.encode('a', add_bos=True)", "tok.token_get_text(1)",
    ),
    "gigatoken": ("tok.encode_files(['a'])", "tok.encode('a', num_threads=2)", "type(tok).from_file('f')"),
    "splitters": (
        "tok.chunks('a', chunk_size=512)", "tok.chunks('a', 5, chunk_overlap=2)", "tok.chunks('a', max_tokens=5)",
        "tok.chunks_batch(['a'], chunk_size=5)", "tok.truncate('a', max_length=5)", "tok.chunks('a', 5, separators=[])",
        "tok.count_tokens('a')", "tok.truncate('a', 5, truncation_side='left')",
    ),
}  # fmt: skip
"""What someone writes who comes from a library, on a `Tokenizer`."""
REPLACED = (
    r"write |tok\.|\[|encode_batch takes|join the words|these are the ids|remove it|by= is|add_special|parse_special|"
    r"did you mean"
)


@pytest.mark.parametrize("library", IDIOMS)
def test_what_is_written_elsewhere_is_an_error_that_names_the_call(tok: Any, library: str) -> None:
    for call in IDIOMS[library]:
        with pytest.raises((AttributeError, TypeError), match=REPLACED):
            eval(call, {"tok": tok})  # the calls above


@pytest.mark.parametrize("page", sorted(path.stem for path in (ROOT / "docs" / "moving").glob("*.md")))
def test_each_method_on_a_page_about_moving_has_its_replacement(tok: Any, page: str) -> None:
    """The names of a table's first column: those that a Tokenizer has, and those that it tells what to write for."""
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "moving" / f"{page}.md").read_text("utf-8"), re.M)
    names = {name for row in rows for name in re.findall(r"`(?:tok|enc|sp|llm)\.(\w+)", row)}
    names |= {name for row in rows for name in re.findall(r"`(\w+)(?:\(\))?`", row)} - {"decoders"}
    assert len(names) >= 3
    said = OF_TOKENIZERS.keys() | {name for name in dir(type(tok)) if not name.startswith("_")}
    assert {name for name in names if name not in said} <= {"overflow_to_sample_mapping", "token_type_ids"}


def test_no_hint_is_for_what_a_tokenizer_has(tok: Any) -> None:
    assert [name for name in OF_TOKENIZERS if hasattr(tok, name)] == []
    own = [name for text in OF_TOKENIZERS.values() for name in re.findall(r"\btok\.(\w+)", text)]
    assert [name for name in {*own} if not hasattr(tok, name)] == []


@pytest.mark.parametrize(
    "name", ["padding_side", "pad_token", "model_max_length", "encode_special_tokens", "add_bos_token"]
)
def test_a_setting_of_another_library_is_refused(tok: Any, name: str) -> None:
    with pytest.raises(AttributeError, match=rf"Tokenizer\.{name}: tokenizers are immutable; "):
        setattr(tok, name, "left")


def test_a_derived_class_may_have_attributes_of_such_names(tok: Any) -> None:
    class Own(jittok.Tokenizer):
        pad_token = "x"

        @property
        def broken(self) -> int:
            raise AttributeError("what is inside failed")

    own = Own(tok.vocab)
    own.padding_side = "left"
    assert (own.padding_side, own.pad_token) == ("left", "x")
    with pytest.raises(AttributeError, match="what is inside failed"):
        _ = own.broken
    own.tag = 3
    assert own.tag == 3


def test_a_name_that_is_nearly_one_is_told(tok: Any) -> None:
    with pytest.raises(AttributeError, match="did you mean encode_batch"):
        tok.encode_bach(["a"])
    with pytest.raises(AttributeError, match=r"has no attribute '_repr_json_'$"):
        _ = tok._repr_json_
