"""A header is read as it was written, and whatever else the bytes say is a MalformedVocab, at no cost."""

import array
import contextlib
import itertools
import mmap
import os
import struct
import tracemalloc

import gguf
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from write_gguf import (
    ARRAY,
    BOOL,
    CODES,
    F32,
    F64,
    I32,
    STRING,
    U8,
    U32,
    U64,
    Of,
    Raw,
    file_of,
    pair,
    string,
    vocab_file,
)

from jittok.errors import MalformedVocab, UnsupportedVocab
from jittok.vocab import gguf as header_of
from jittok.vocab import keys
from jittok.vocab.gguf import StringArray, read_header
from jittok.vocab.load import read_vocab

SMALL = vocab_file(
    "llama",
    ["<unk>", "<s>", "</s>", "<0x0A>", "▁a", "b"],
    scores=[0.0, 0.0, 0.0, 0.0, -1.0, -2.0],
    token_type=[2, 3, 3, 6, 1, 1],
    bos_token_id=1,
    add_bos_token=True,
)
WHERE = "vocabulary in memory: "


def values_of(data: bytes):
    return read_header(data).values


def malformed(data: bytes, message: str):
    with pytest.raises(MalformedVocab, match=message) as caught:
        read_header(data)
    assert str(caught.value).startswith(WHERE)


def test_type_numbers_and_names_are_those_of_the_gguf_package():
    names = {"u8": "UINT8", "i8": "INT8", "u16": "UINT16", "i16": "INT16", "u32": "UINT32", "i32": "INT32"}
    names |= {"f32": "FLOAT32", "bool": "BOOL", "string": "STRING", "array": "ARRAY"}
    names |= {"u64": "UINT64", "i64": "INT64", "f64": "FLOAT64"}
    for number, name in enumerate(header_of.TYPE_NAMES):
        assert gguf.GGUFValueType[names[name]] == number
    assert len(gguf.GGUFValueType) == len(header_of.TYPE_NAMES)
    assert struct.unpack("<I", header_of.MAGIC)[0] == gguf.constants.GGUF_MAGIC


def test_key_names_are_those_of_the_gguf_package():
    theirs = gguf.constants.Keys.Tokenizer
    ours = {
        "MODEL": keys.MODEL, "PRE": keys.PRE, "LIST": keys.TOKENS, "TOKEN_TYPE": keys.TOKEN_TYPE,
        "TOKEN_TYPE_COUNT": keys.TOKEN_TYPE_COUNT, "SCORES": keys.SCORES, "MERGES": keys.MERGES,
        "PRECOMPILED_CHARSMAP": keys.CHARSMAP, "ADD_BOS": keys.ADD_BOS, "ADD_EOS": keys.ADD_EOS,
        "ADD_PREFIX": keys.ADD_SPACE_PREFIX, "REMOVE_EXTRA_WS": keys.REMOVE_EXTRA,
    }  # fmt: skip
    for name, key in ours.items():
        assert getattr(theirs, name) == key
    general = gguf.constants.Keys.General
    assert (general.NAME, general.ARCHITECTURE, general.ALIGNMENT) == (keys.NAME, keys.ARCHITECTURE, keys.ALIGNMENT)
    written = {f"{keys.T}{name}_token_id" for name, _ in keys.ID_KEYS}
    assert written == {getattr(theirs, name) for name in dir(theirs) if name.endswith("_ID")}


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


@pytest.mark.parametrize("version", [0, 1, 4, 77, 0x10001])
def test_other_versions_are_not_supported(version):
    with pytest.raises(UnsupportedVocab, match=f"version: found {version}, expected GGUF version 2 or 3"):
        read_header(file_of(version=version))


def test_a_big_endian_file_is_called_one():
    with pytest.raises(UnsupportedVocab, match=r"expected a little-endian file .this one is big-endian."):
        read_header(b"GGUF" + struct.pack(">IQQ", 3, 0, 0))


@pytest.mark.parametrize("start", [b"", b"G", b"GGU", b"GGML" + bytes(20), b"FUGG" + bytes(20), b"\x80\x04pickle"])
def test_other_magic_is_malformed(start):
    malformed(start, "magic: found .*, expected the bytes 'GGUF'")


def test_negative_counts_are_malformed():
    malformed(file_of(tensors=-1), "tensor count: found -1, expected 0 or more")
    malformed(file_of(count=-1), "key count: found -1, expected 0 to 0 keys in 24 bytes")


@pytest.mark.parametrize("count", [2, 1000, header_of.MOST_KEYS + 1, 2**62, 2**63 - 1])
def test_more_keys_than_there_are_bytes_for_are_malformed(count):
    malformed(file_of(pair("a", 1), count=count), "key count|bytes left")


def test_more_keys_than_most_keys_are_malformed():
    data = file_of(*(pair(b"%d" % k, Of(U8, 1)) for k in range(header_of.MOST_KEYS + 1)))
    malformed(data, f"key count: found {header_of.MOST_KEYS + 1}, expected 0 to {header_of.MOST_KEYS} keys")
    fewer = data[:16] + struct.pack("<q", header_of.MOST_KEYS) + data[24:]
    assert len(values_of(fewer)) == header_of.MOST_KEYS


def test_an_empty_key_and_a_key_twice_are_malformed():
    malformed(file_of(pair("", 1)), "key 0 .byte 32.: found 'an empty key', expected a name")
    malformed(file_of(pair("a", 1), pair("b", 1), pair("a", 2)), "found 'a', expected no key twice")


def test_a_key_ends_at_its_first_nul_and_the_first_of_equal_ones_counts():
    assert values_of(file_of(pair(b"a\0x", 1), pair(b"a\0y", 2))) == {"a": (U32, 1)}


def test_arrays_in_arrays_are_malformed():
    nested = Raw(ARRAY, struct.pack("<iQ", ARRAY, 1) + struct.pack("<iQ", U8, 0))
    malformed(file_of(pair("a", nested)), "an array of arrays', expected no nested arrays")


@pytest.mark.parametrize("kind", [-1, 13, 99, -(2**31), 2**31 - 1])
def test_unknown_types_are_malformed(kind):
    malformed(file_of(pair("a", Raw(kind, bytes(8)))), f"value type {kind}', expected a type from 0")
    malformed(file_of(pair("a", Raw(ARRAY, struct.pack("<iQ", kind, 0) + bytes(8)))), f"an array of type {kind}'")


@pytest.mark.parametrize("length", [8, 2**20, header_of.LONGEST_STRING + 1, 2**31, 2**62, 2**63, 2**64 - 1])
@pytest.mark.parametrize("place", ["key", "value", "element"])
def test_lying_lengths_are_malformed_and_take_no_memory(length, place):
    cut = struct.pack("<Q", length) + b"1234567"
    data = {
        "key": file_of(cut + bytes(20), count=1) if length > 27 else file_of(cut[:15], count=1) + bytes(0),
        "value": file_of(pair("a", Raw(STRING, cut))),
        "element": file_of(pair("a", Raw(ARRAY, struct.pack("<iQ", STRING, 1) + cut))),
    }[place]
    tracemalloc.start()
    malformed(data, "bytes left|at most|ends behind the file|key count")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("count", [3, 2**20, header_of.LONGEST_ARRAY + 1, 2**61, 2**63, 2**64 - 1])
@pytest.mark.parametrize("kind", [U8, I32, STRING, U64])
def test_lying_counts_are_malformed_and_take_no_memory(count, kind):
    data = file_of(pair("a", Raw(ARRAY, struct.pack("<iQ", kind, count) + b"\x01\0")))
    tracemalloc.start()
    malformed(data, f"{count} elements with 2 bytes left', expected as many elements as there are bytes for")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("kind", "key"), [(STRING, "x"), (STRING, keys.TOKENS), (F32, keys.SCORES), (F64, "x"), (I32, keys.TOKEN_TYPE)]
)
def test_a_lying_count_takes_no_memory_of_a_file_that_has_the_bytes_for_it(tmp_path, kind, key):
    path = tmp_path / "model.gguf"
    tokens = [] if key == keys.TOKENS else [pair(keys.TOKENS, ["a"])]
    lie = pair(key, Raw(ARRAY, struct.pack("<iQ", kind, header_of.LONGEST_ARRAY)))
    with path.open("wb") as file:
        file.write(file_of(pair(keys.MODEL, "llama"), *tokens, lie))
        file.truncate(9 << 30)  # with holes: it takes no room
    tracemalloc.start()
    if key == "x" and kind != STRING:
        assert len(read_vocab(path)) == 1  # nobody asks for the array
    else:
        with pytest.raises(
            MalformedVocab, match=f"found '{header_of.LONGEST_ARRAY} (strings|elements)', expected at most"
        ):
            read_vocab(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_arrays_have_most_elements_and_most_bytes(monkeypatch):
    monkeypatch.setattr(header_of, "MOST_STRINGS", 3)
    monkeypatch.setattr(header_of, "MOST_STRING_BYTES", 5)
    monkeypatch.setattr(header_of, "MOST_NUMBERS", 2)
    assert len(values_of(file_of(pair("a", ["123", "", "45"])))["a"][1]) == 3
    malformed(file_of(pair("a", ["1", "2", "3", "4"])), "found '4 strings', expected at most 3")
    malformed(file_of(pair("a", ["123", "456"])), "found 'strings of 6 bytes', expected at most 5 in one array")
    header = read_header(file_of(pair("a", [1, 2]), pair("b", [1, 2, 3])))
    assert header.array("a", I32).tolist() == [1, 2]
    with pytest.raises(MalformedVocab, match="b: found '3 elements', expected at most 2"):
        header.array("b", I32)


def test_strings_may_be_as_long_as_the_longest_and_no_longer():
    longest = bytes(header_of.LONGEST_STRING)
    for item, found in ((longest, b""), ([longest, b"x"], None)):
        kind, value = values_of(file_of(pair("a", item)))["a"]
        assert found is None or (kind, value) == (STRING, b"")
    malformed(file_of(pair("a", longest + b"x")), f"a string of {len(longest) + 1} bytes', expected at most")
    malformed(
        file_of(pair("a", [longest + b"x", b"y" * 20])), f"a string of {len(longest) + 1} bytes', expected at most"
    )
    malformed(file_of(pair("a", [b"", longest + b"x"])), f"a string of {len(longest) + 1} bytes', expected at most")


def test_every_cut_of_a_file_is_malformed():
    assert len(read_vocab(SMALL)) == 6
    for size in range(len(SMALL)):
        with pytest.raises((MalformedVocab, UnsupportedVocab), match=WHERE):
            read_vocab(SMALL[:size])


def test_a_cut_file_on_disk_is_malformed_and_names_its_path(tmp_path):
    path = tmp_path / "cut.gguf"
    for size in (0, 1, 4, 23, 24, 60, len(SMALL) - 1):
        path.write_bytes(SMALL[:size])
        with pytest.raises(MalformedVocab, match=r"cut.gguf: "):
            read_header(path)
    path.write_bytes(SMALL)
    assert len(read_vocab(path)) == 6


@given(st.lists(st.tuples(st.integers(0, len(SMALL) - 1), st.integers(1, 255)), min_size=1, max_size=4))
def test_flipped_bytes_give_a_vocabulary_or_an_error_of_ours(flips):
    data = bytearray(SMALL)
    for at, bits in flips:
        data[at] ^= bits
    try:
        vocab = read_vocab(data)
    except (MalformedVocab, UnsupportedVocab) as error:
        assert str(error).startswith(WHERE)  # noqa: PT017
    else:
        assert len(vocab.tokens) == len(vocab) == vocab.attributes.size


def test_every_single_flipped_bit_gives_a_vocabulary_or_an_error_of_ours():
    refused = 0
    for at in range(len(SMALL)):
        for bit in range(8):
            data = SMALL[:at] + bytes([SMALL[at] ^ 1 << bit]) + SMALL[at + 1 :]
            try:
                read_vocab(data)
            except (MalformedVocab, UnsupportedVocab):
                refused += 1
    assert refused > len(SMALL)


@given(st.binary(max_size=200))
def test_arbitrary_pairs_give_a_header_or_an_error_of_ours(rest):
    for count in (1, 3):
        with contextlib.suppress(MalformedVocab, UnsupportedVocab):
            read_header(file_of(rest, count=count))


def test_tensors_behind_the_pairs_are_not_read():
    assert values_of(file_of(pair("a", 1), tensors=2**40) + b"anything") == {"a": (U32, 1)}


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        read_header(tmp_path / "nothing.gguf")
    with pytest.raises(OSError, match="nothing"):
        read_vocab(str(tmp_path / "nothing.gguf"))


def test_what_is_no_file_is_malformed_and_not_waited_for(tmp_path):
    with pytest.raises(MalformedVocab, match="file: found 'a directory', expected a GGUF file"):
        read_header(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null", "/dev/zero"):
        with pytest.raises(MalformedVocab, match="file: found 'a device or pipe', expected a GGUF file"):
            read_vocab(path)


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
    numbers = np.frombuffer(SMALL + bytes(len(SMALL) % 2), np.uint8)  # what stands behind the pairs does not count
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
    with pytest.raises(MalformedVocab, match="a: found 'u32', expected a value of type i32"):
        header.scalar("a", I32, 0)
    with pytest.raises(MalformedVocab, match="b: found 'array of i32', expected a value of type u32"):
        header.scalar("b", U32, 0)
    with pytest.raises(MalformedVocab, match="a: found 'u32', expected an array of string"):
        header.array("a", STRING)
    with pytest.raises(MalformedVocab, match="b: found 'array of i32', expected an array of i8 or u8"):
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
