"""A header is read as it was written, wherever it lies."""

import array
import itertools
import mmap
import os
import struct

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_package import python
from write_gguf import (
    ARRAY,
    BOOL,
    CODES,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    SMALL,
    STRING,
    U8,
    U16,
    U32,
    U64,
    Of,
    Raw,
    file_of,
    pair,
    string,
    vocab_file,
)

from jittok.errors import MalformedVocab
from jittok.vocab import gguf as header_of
from jittok.vocab import keys
from jittok.vocab.gguf import StringArray, read_header
from jittok.vocab.load import read_vocab

TYPES = ["u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"]


def values_of(data: bytes):
    return read_header(data).values


def test_types_of_values_have_the_numbers_of_the_format():
    ours = [getattr(header_of, name.upper()) for name in TYPES]
    assert ours == [U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64] == list(range(13))
    assert all(type(number) is int for number in ours)
    assert [header_of.TYPE_NAMES[number] for number in range(13)] == TYPES
    assert header_of.MAGIC == b"GGUF"


def test_keys_have_the_names_of_the_files():
    names = (
        "model pre tokens token_type token_type_count scores merges precompiled_charsmap add_bos_token add_eos_token"
    )
    names += " add_sep_token add_space_prefix remove_extra_whitespaces normalizer.lowercase normalizer.strip_accents"
    ours = keys.MODEL, keys.PRE, keys.TOKENS, keys.TOKEN_TYPE, keys.TOKEN_TYPE_COUNT, keys.SCORES, keys.MERGES
    ours += keys.CHARSMAP, keys.ADD_BOS, keys.ADD_EOS, keys.ADD_SEP, keys.ADD_SPACE_PREFIX, keys.REMOVE_EXTRA
    assert [*ours, keys.LOWERCASE, keys.STRIP_ACCENTS] == [f"tokenizer.ggml.{name}" for name in names.split()]
    assert keys.SUPPRESS == "tokenizer.ggml.suppress_tokens"
    general = keys.NAME, keys.ARCHITECTURE, keys.ALIGNMENT
    assert general == ("general.name", "general.architecture", "general.alignment")
    ids = "bos eos eot eom unknown seperator padding mask fim_pre fim_suf fim_mid fim_pad fim_rep fim_sep prefix suffix"
    assert [name for name, _ in keys.ID_KEYS] == [
        f"tokenizer.ggml.{name}_token_id" for name in [*ids.split(), "middle"]
    ]


def test_names_and_numbers_are_those_of_the_gguf_package():
    for ours, theirs in ((keys.TokenizerKeys, gguf.Keys.Tokenizer), (keys.GeneralKeys, gguf.Keys.General)):
        named = {name: value for name, value in vars(ours).items() if name.isupper()}
        assert len(named) >= 3
        assert named == {name: getattr(theirs, name) for name in named}
    for ours, theirs in ((keys.ValueType, gguf.GGUFValueType), (keys.TokenType, gguf.TokenType)):
        assert {each.name: each.value for each in ours} == {each.name: each.value for each in theirs}
    assert gguf.GGUF_MAGIC.to_bytes(4, "little") == keys.MAGIC
    assert gguf.GGUF_DEFAULT_ALIGNMENT == keys.DEFAULT_ALIGNMENT


@pytest.mark.process
def test_a_file_is_read_without_the_gguf_package(tmp_path):
    code = """
import lzma, pathlib, sys
import jittok
packed = pathlib.Path(jittok.__file__).parent / "vocab" / "data" / "bert.gguf.xz"
jittok.read_vocab(lzma.decompress(packed.read_bytes()))
print(sorted({"gguf", "yaml", "requests"} & set(sys.modules)))
"""
    assert python(tmp_path, code) == "[]"


def test_what_the_gguf_package_writes_is_read_back(tmp_path):
    path = tmp_path / "written.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list([b"a", "\u00e9".encode(), b"\xff"])
    writer.add_token_scores([0.5, -1.0, 2.0])
    writer.add_token_types([1, 3, 6])
    writer.add_bool("flag", True)
    for k, kind in enumerate(("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")):
        getattr(writer, f"add_{kind}")(f"n.{kind}", k + 1)
    writer.add_float32("n.float32", 1.5)
    writer.add_float64("n.float64", 2.5)
    writer.add_array("some.numbers", [1, 2, 3])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    header = read_header(path)
    assert header.file == str(path)
    assert header.scalar(keys.MODEL, STRING, b"") == b"llama"
    assert header.scalar("flag", BOOL, False) is True
    found = {key: value for key, (_, value) in header.values.items() if key.startswith("n.")}
    assert list(found.values()) == [1, 2, 3, 4, 5, 6, 7, 8, 1.5, 2.5]
    data, offsets = header.array(keys.TOKENS, STRING).packed()
    assert (data.tobytes(), offsets.tolist()) == ("a\u00e9".encode() + b"\xff", [0, 1, 3, 4])
    assert header.array(keys.SCORES, F32).tolist() == [0.5, -1.0, 2.0]
    assert header.array(keys.TOKEN_TYPE, I32).tolist() == [1, 3, 6]
    assert header.array("some.numbers", I32).tolist() == [1, 2, 3]


def test_a_header_without_keys_is_empty():
    assert values_of(file_of()) == {}


one_value = st.sampled_from(sorted(CODES)).flatmap(
    lambda kind: st.tuples(
        st.just(kind),
        {"?": st.booleans(), "f": st.floats(width=32, allow_nan=False), "d": st.floats(allow_nan=False)}.get(
            CODES[kind],
            st.integers(0, 2 ** (8 * struct.calcsize(CODES[kind]) - (CODES[kind].islower())) - 1),
        ),
    )
)
plain_keys = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=6)


@given(
    st.dictionaries(plain_keys, one_value, max_size=6),
    st.dictionaries(plain_keys, st.lists(st.binary(max_size=5)), max_size=3),
)
def test_drawn_values_are_read_back(numbers, lists):
    lists = {key: texts for key, texts in lists.items() if key not in numbers}
    data = file_of(
        *(pair(key, Of(kind, number)) for key, (kind, number) in numbers.items()),
        *(pair(key, texts) for key, texts in lists.items()),
    )
    header = read_header(data)
    assert set(header.values) == numbers.keys() | lists.keys()
    for key, (kind, number) in numbers.items():
        assert header.scalar(key, kind, None) == number
    for key, texts in lists.items():
        packed, offsets = header.array(key, STRING).packed()
        ended = [text.split(b"\0")[0] for text in texts]  # a C string ends at its first NUL
        assert [packed[i:j].tobytes() for i, j in itertools.pairwise(offsets)] == ended


@pytest.mark.parametrize("version", [2, 3])
def test_versions_2_and_3_are_read(version):
    assert values_of(file_of(pair("a", 1), version=version)) == {"a": (U32, 1)}


def test_a_key_ends_at_its_first_nul_and_the_first_of_equal_ones_counts():
    assert values_of(file_of(pair(b"a\0x", 1), pair(b"a\0y", 2))) == {"a": (U32, 1)}


def test_tensors_behind_the_pairs_are_not_read():
    assert values_of(file_of(pair("a", 1), tensors=2**40) + b"anything") == {"a": (U32, 1)}


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_header(tmp_path / "nothing.gguf")
    with pytest.raises(OSError, match="nothing"):
        read_vocab(str(tmp_path / "nothing.gguf"))


def test_a_vocabulary_keeps_nothing_of_its_file(tmp_path):
    path = tmp_path / "a.gguf"
    path.write_bytes(SMALL)
    vocab = read_vocab(path)
    path.write_bytes(b"\xff" * len(SMALL))
    assert vocab.token_bytes.tobytes() == "<unk><s></s><0x0A>▁ab".encode()
    assert vocab.scores.tolist() == [0, 0, 0, 0, -1, -2]


def test_a_vocabulary_keeps_nothing_of_its_bytes():
    charsmap = [1, 0, 0, 0, 65, 0]
    source = bytearray(vocab_file("t5", ["a", "b"], precompiled_charsmap=Of(U8, charsmap), scores=[1.0, 2.0]))
    vocab = read_vocab(source)
    source[:] = bytes(len(source))
    source.clear()  # a BufferError while anything looks at it
    assert (vocab.charsmap.tolist(), vocab.scores.tolist(), vocab.tokens) == (charsmap, [1.0, 2.0], [b"a", b"b"])


def test_bytes_like_objects_are_files_in_memory():
    numbers = np.frombuffer(SMALL + bytes(len(SMALL) % 2), np.uint8)  # what is after the pairs does not count
    apart = np.repeat(numbers, 2)[::2]
    mapped = mmap.mmap(-1, len(SMALL))
    mapped[:] = SMALL
    in_place = SMALL, bytearray(SMALL), memoryview(SMALL), numbers, array.array("B", SMALL), mapped
    for source in (*in_place, apart, memoryview(apart), numbers.reshape(2, -1)):
        vocab = read_vocab(source)
        assert (vocab.source, len(vocab)) == ("vocabulary in memory", 6)


@pytest.mark.parametrize("source", [None, 3, ["a.gguf"], object()])
def test_other_sources_are_a_type_error_that_names_theirs(source):
    with pytest.raises(
        TypeError, match=f"source: found {type(source).__name__}, expected a path or a bytes-like object"
    ):
        read_vocab(source)


def test_a_scalar_of_another_type_is_malformed_and_names_both():
    header = read_header(file_of(pair("a", 1), pair("b", [1, 2])))
    with pytest.raises(MalformedVocab, match="a: found u32, expected a value of type i32"):
        header.scalar("a", I32, 0)
    with pytest.raises(MalformedVocab, match="b: found an array of i32, expected a value of type u32"):
        header.scalar("b", U32, 0)
    with pytest.raises(MalformedVocab, match="a: found u32, expected an array of string"):
        header.array("a", STRING)
    with pytest.raises(MalformedVocab, match="b: found an array of i32, expected an array of i8 or u8"):
        header.array("b", header_of.I8, U8)
    assert header.scalar("c", I32, 7) == 7
    assert header.array("c", I32) is None


def test_any_byte_but_zero_is_a_true_bool():
    assert values_of(file_of(pair("a", Raw(BOOL, b"\x02")), pair("b", Raw(BOOL, b"\0")))) == {
        "a": (BOOL, True),
        "b": (BOOL, False),
    }


@given(st.lists(st.binary(max_size=6), max_size=12))
def test_packed_strings_end_at_their_first_nul(texts):
    data = np.frombuffer(b"".join(map(string, texts)), np.uint8)
    starts = np.cumsum([8, *(8 + len(text) for text in texts)])[:-1] if texts else np.zeros(0, np.int64)
    packed, offsets = StringArray(data, np.asarray(starts, np.int64), np.array([*map(len, texts)], np.int64)).packed()
    cut = [text.split(b"\0")[0] for text in texts]
    assert packed.tobytes() == b"".join(cut)
    assert offsets.tolist() == np.cumsum([0, *map(len, cut)]).tolist()


def raw_header(keys, rest):
    return b"GGUF" + struct.pack("<Iqq", 3, 0, keys) + rest


def test_more_keys_than_there_are_bytes_for_are_refused_before_they_are_read():
    rest = bytes(14 * 5)
    with pytest.raises(MalformedVocab, match="found 6, expected 0 to 5 keys"):
        read_header(raw_header(6, rest))
    with pytest.raises(MalformedVocab, match="an empty key"):
        read_header(raw_header(5, rest))


@pytest.mark.parametrize("more", [0, 1])
def test_an_array_has_as_many_elements_as_llama_cpp_takes(tmp_path, more):
    """In a file with a hole, which takes no capacity."""
    count, key = (1 << 30) + more, b"some.numbers"
    head = raw_header(1, struct.pack("<Q", len(key)) + key + struct.pack("<IIQ", 9, 0, count))
    path = tmp_path / "long.gguf"
    path.write_bytes(head)
    os.truncate(path, len(head) + count)
    if more:
        with pytest.raises(MalformedVocab, match=r"some.numbers.*1073741825 elements"):
            read_header(path)
    else:
        read_header(path)
