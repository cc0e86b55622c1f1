from collections.abc import Callable

import pytest

from jittok.errors import InvalidToken
from jittok.reference.decode import clean_spaces, decode_bytes, detokenize, full_piece, strtol16, token_to_piece
from jittok.reference.models.rwkv import unescape
from jittok.vocab import Vocab

UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 2, 4, 8, 16, 32
Make = Callable[..., Vocab]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a . b ! c ? d ,", "a. b! c? d,"),
        ("a ; b : c", "a ; b : c"),
        (" .", "."),
        ("  .", " ."),
        ("a ' b", "a'b"),
        (" ' ' ", "'' "),  # the space between is used up
        ("it 's I 'm we 're you 've", "it's I'm we're you've"),
        ("he 'd can 't we 'll do n't", "he 'd can 't we 'll do n't"),
        ("a 'sx", "a'sx"),
        ("", ""),
    ],
)
def test_cleaning_drops_spaces_in_three_passes(text: str, wanted: str) -> None:
    assert clean_spaces(bytearray(text.encode())).decode() == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [(b"41", 0x41), (b"4", 4), (b"zz", 0), (b" 7", 7), (b"-1", -1), (b"+f", 15), (b"0x", 0), (b"4g", 4), (b"", 0)],
)
def test_hex_digits_are_read_as_c_reads_them(text: bytes, wanted: int) -> None:
    assert strtol16(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (rb"a\t\n\r\\\'", b"a\t\n\r\\'"),
        (rb"\xe4\xb8\x80", b"\xe4\xb8\x80"),
        (rb"\xAB", b"\x22"),  # (17 << 4) + 18: upper-case digits are wrong
        (b"c\\", b"c"),
        (rb"b\x1", b"b"),
        (rb"e\x", b"e"),
    ],
)
def test_escapes_are_resolved_as_llama_cpp_does(text: bytes, wanted: bytes) -> None:
    assert unescape(text) == wanted


def test_a_character_that_stands_for_no_byte_gives_a_marker_with_the_whole_token() -> None:
    assert decode_bytes("Ġé".encode()) == b" \xe9"
    assert decode_bytes("a▁".encode()) == b"a[UNK_BYTE_0xe29681" + "a▁".encode() + b"]"


def test_pieces_follow_the_attributes(vocab_of: Make) -> None:
    tokens = ["▁a".encode()] * 3 + [b"<0x41>", b"<0xzz>"] + ["▁a".encode()] * 2
    vocab = vocab_of(tokens, [NORMAL, CONTROL, USER_DEFINED, BYTE, BYTE, UNUSED, 64])
    pieces = [full_piece(vocab, token) for token in range(len(vocab))]
    assert pieces == [b" a", "▁a".encode(), "▁a".encode(), b"A", b"\0", b"", b""]
    assert token_to_piece(vocab, 1) == b""
    assert token_to_piece(vocab, 1, special=True) == "▁a".encode()
    assert token_to_piece(vocab, 0, lstrip=3) == b"a"


def test_the_first_token_uses_up_the_stripping_even_if_it_prints_nothing(vocab_of: Make) -> None:
    vocab = vocab_of(
        [b"<s>", b"</s>", "▁a".encode()], [CONTROL, CONTROL, NORMAL], bos_id=0, eos_id=1, add_bos=True,
        add_space_prefix=True,
    )  # fmt: skip
    assert detokenize(vocab, [2, 2]) == b"a a"
    assert detokenize(vocab, [0, 2]) == b" a"
    assert detokenize(vocab, [0, 2], remove_special=True) == b" a"
    assert detokenize(vocab, [0, 0, 2, 1], remove_special=True, unparse_special=True) == b"<s> a</s>"


@pytest.mark.parametrize("token", [-1, 1])
def test_an_id_outside_the_vocabulary_is_named(vocab_of: Make, token: int) -> None:
    with pytest.raises(InvalidToken, match=f"token {token}: expected 0 <= id < 1"):
        detokenize(vocab_of([b"a"]), [0, token])
