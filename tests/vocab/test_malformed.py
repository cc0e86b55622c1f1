"""What is no header, or lies about its sizes, is an error of ours that names the place, at no cost."""

import contextlib
import os
import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from write_gguf import ARRAY, F32, F64, I32, SMALL, STRING, U8, U64, Of, Raw, file_of, pair

from jittok.errors import MalformedVocab, UnsupportedVocab
from jittok.tokenizer import loading
from jittok.vocab import gguf as header_of
from jittok.vocab import keys
from jittok.vocab.gguf import FileBytes, read_header
from jittok.vocab.load import read_vocab

WHERE = "vocabulary in memory: "


@pytest.fixture(scope="module", autouse=True)
def _first_call():
    """What the first call imports is no memory that a file asked for."""
    with pytest.raises(MalformedVocab):
        read_vocab(SMALL[:-1])
    assert len(read_vocab(SMALL)) == 6


@contextlib.contextmanager
def little_memory(most: int = 1 << 20):
    """At most a megabyte at any time, or so many bytes."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()  # also when it failed: the next one counts from nothing
    assert peak < most


def malformed(data: bytes, message: str):
    with pytest.raises(MalformedVocab, match=message) as caught:
        read_header(data)
    assert str(caught.value).startswith(WHERE)


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
    assert len(read_header(fewer).values) == header_of.MOST_KEYS


def test_an_empty_key_and_a_key_twice_are_malformed():
    malformed(file_of(pair("", 1)), "key 0 .byte 32.: found an empty key, expected a name")
    malformed(file_of(pair("a", 1), pair("b", 1), pair("a", 2)), "found 'a' twice, expected each key once")


def test_arrays_in_arrays_are_malformed():
    nested = Raw(ARRAY, struct.pack("<iQ", ARRAY, 1) + struct.pack("<iQ", U8, 0))
    malformed(file_of(pair("a", nested)), "a nested array, expected an array of numbers or strings")


@pytest.mark.parametrize("kind", [-1, 13, 99, -(2**31), 2**31 - 1])
def test_unknown_types_are_malformed(kind):
    malformed(file_of(pair("a", Raw(kind, bytes(8)))), f"value type {kind}, expected a type from 0")
    malformed(file_of(pair("a", Raw(ARRAY, struct.pack("<iQ", kind, 0) + bytes(8)))), f"an array of type {kind},")


@pytest.mark.parametrize("length", [8, 2**20, header_of.LONGEST_STRING + 1, 2**31, 2**62, 2**63, 2**64 - 1])
@pytest.mark.parametrize("place", ["key", "value", "element"])
def test_lying_lengths_are_malformed_and_take_no_memory(length, place):
    cut = struct.pack("<Q", length) + b"1234567"
    data = {
        "key": file_of(cut + bytes(20), count=1) if length > 27 else file_of(cut[:15], count=1) + bytes(0),
        "value": file_of(pair("a", Raw(STRING, cut))),
        "element": file_of(pair("a", Raw(ARRAY, struct.pack("<iQ", STRING, 1) + cut))),
    }[place]
    with little_memory():
        malformed(data, "the end of the file|at most|past the end|key count")


@pytest.mark.parametrize("count", [3, 2**20, header_of.LONGEST_ARRAY + 1, 2**61, 2**63, 2**64 - 1])
@pytest.mark.parametrize("kind", [U8, I32, STRING, U64])
def test_lying_counts_are_malformed_and_take_no_memory(count, kind):
    data = file_of(pair("a", Raw(ARRAY, struct.pack("<iQ", kind, count) + b"\x01\0")))
    with little_memory():
        malformed(
            data, f"{count} elements in 2 bytes before the end of the file, expected fewer elements, or a complete file"
        )


@pytest.mark.parametrize(
    ("kind", "key"), [(STRING, "x"), (STRING, keys.TOKENS), (F32, keys.SCORES), (F64, "x"), (I32, keys.TOKEN_TYPE)]
)
def test_a_lying_count_takes_no_memory_of_a_file_that_has_the_bytes_for_it(tmp_path, kind, key):
    path = tmp_path / "model.gguf"
    tokens = [] if key == keys.TOKENS else [pair(keys.TOKENS, ["a"])]
    lie = pair(key, Raw(ARRAY, struct.pack("<iQ", kind, header_of.LONGEST_ARRAY)))
    with path.open("wb") as file:
        file.write(file_of(pair(keys.MODEL, "llama"), *tokens, lie))
        file.truncate(9 << 30)  # with holes: it takes no capacity
    with little_memory():
        if key == "x" and kind != STRING:
            assert len(read_vocab(path)) == 1  # no one asks for the array
        else:
            message = f"found {header_of.LONGEST_ARRAY} (strings|elements), expected at most"
            with pytest.raises(MalformedVocab, match=message):
                read_vocab(path)


def test_a_file_whose_header_claims_all_of_it_has_no_name_and_takes_little_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("JITTOK_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "model.gguf"
    size = 4 * loading.WHOLE
    with path.open("wb") as file:
        file.write(file_of(pair("x", Raw(ARRAY, struct.pack("<iQ", U8, size)))))
        file.truncate(file.tell() + size)
    assert read_header(path).stop == path.stat().st_size
    with little_memory(loading.WHOLE * 3 // 2):
        key, _ = loading._take_gguf(path, True, None, None)
    assert key() is None


@pytest.mark.parametrize("where", [(header_of._Walker, "value"), (header_of.StringArray, "packed")])
def test_a_file_that_is_cut_while_it_is_read_is_malformed(tmp_path, monkeypatch, where):
    """A process that had mapped it would be killed here."""
    path = tmp_path / "cut.gguf"
    tokens = [b"%040d" % k for k in range(2 * header_of.FIRST_BLOCK // 40)]
    path.write_bytes(file_of(pair(keys.MODEL, "llama"), pair(keys.TOKENS, tokens)))
    assert read_header(path).array(keys.TOKENS, STRING).packed()[1].size == len(tokens) + 1
    before = getattr(*where)

    def cut_first(self):
        os.truncate(path, 100)
        return before(self)

    monkeypatch.setattr(*where, cut_first)
    with pytest.raises(MalformedVocab, match=r"cut.gguf: byte \d+: found the end, expected .* while being read"):
        read_header(path).array(keys.TOKENS, STRING).packed()


def test_tensors_are_not_read(tmp_path, monkeypatch):
    path, reach = tmp_path / "model.gguf", []
    tokens = [b"%040d" % k for k in range(20 * header_of.FIRST_BLOCK // 40)]
    with path.open("wb") as file:
        file.write(file_of(pair(keys.TOKENS, tokens), pair("numbers", Raw(ARRAY, struct.pack("<iQ", U64, 1 << 27)))))
        stop = file.tell() + (8 << 27)
        file.truncate(9 << 30)  # with holes: it takes no capacity
    before = FileBytes.__getitem__

    def noted(self, part):
        reach.append((part.start or 0, part.stop))
        return before(self, part)

    monkeypatch.setattr(FileBytes, "__getitem__", noted)
    header = read_header(path)
    assert header.stop == stop
    assert sum(stop - start for start, stop in reach) < 2 * 50 * len(tokens)  # nor the numbers that no one asked for
    assert all(each < stop for _, each in reach)


def test_arrays_have_most_elements_and_most_bytes(monkeypatch):
    monkeypatch.setattr(header_of, "MOST_STRINGS", 3)
    monkeypatch.setattr(header_of, "MOST_STRING_BYTES", 5)
    monkeypatch.setattr(header_of, "MOST_NUMBERS", 2)
    assert len(read_header(file_of(pair("a", ["123", "", "45"]))).values["a"][1]) == 3
    malformed(file_of(pair("a", ["1", "2", "3", "4"])), "found 4 strings, expected at most 3")
    malformed(file_of(pair("a", ["123", "456"])), "found strings of 6 bytes, expected at most 5 in one array")
    header = read_header(file_of(pair("a", [1, 2]), pair("b", [1, 2, 3])))
    assert header.array("a", I32).tolist() == [1, 2]
    with pytest.raises(MalformedVocab, match="b: found 3 elements, expected at most 2"):
        header.array("b", I32)


def test_strings_may_be_as_long_as_the_longest_and_no_longer():
    longest = bytes(header_of.LONGEST_STRING)
    for item, found in ((longest, b""), ([longest, b"x"], None)):
        kind, value = read_header(file_of(pair("a", item))).values["a"]
        assert found is None or (kind, value) == (STRING, b"")
    malformed(file_of(pair("a", longest + b"x")), f"a string of {len(longest) + 1} bytes, expected at most")
    malformed(
        file_of(pair("a", [longest + b"x", b"y" * 20])), f"a string of {len(longest) + 1} bytes, expected at most"
    )
    malformed(file_of(pair("a", [b"", longest + b"x"])), f"a string of {len(longest) + 1} bytes, expected at most")


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


def test_what_is_no_file_is_malformed_and_not_waited_for(tmp_path):
    with pytest.raises(MalformedVocab, match="file: found a directory, expected a GGUF file"):
        read_header(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null", "/dev/zero"):
        with pytest.raises(MalformedVocab, match="file: found a device or pipe, expected a GGUF file"):
            read_vocab(path)
