"""Bytes that are invalid UTF-8 are an error with their place, or U+FFFD, in files of every family of splitters."""

import pytest
from drawn_files import byte_level_json

import jittok
from jittok.common.pipeline.known_patterns import GPT2, O200K
from jittok.errors import EncodingFailed

BAD = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe3\x81", b"\x80"]
PATTERNS = [GPT2, O200K, r"\s+|\S"]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("form", [None, "NFC"])
def test_a_bad_byte_is_named_or_replaced(pattern, form):
    tok = jittok.load(byte_level_json(pattern, form), cache=False)
    for bad in BAD:
        for before in (b"", b"ab " * 40, "é中".encode() * 30):
            text = before + bad + b" cd"
            with pytest.raises(EncodingFailed) as error:
                tok.encode_batch([b"fine", text, b"fine"])
            assert (error.value.document, error.value.offset) == (1, len(before))
            with pytest.raises(EncodingFailed):
                tok.encode(text)
            replaced = tok.encode_batch([b"fine", text, b"fine"], errors="replace").to_list()
            wanted = text.decode("utf-8", "replace")
            assert replaced == tok.encode_batch(["fine", wanted, "fine"]).to_list()
            assert tok.encode(text, errors="replace").tolist() == replaced[1]
