from collections.abc import Callable

from jittok.reference.special import Fragment, partition
from jittok.vocab import Vocab

CONTROL, USER_DEFINED, LSTRIP, RSTRIP = 8, 16, 128, 256
Make = Callable[..., Vocab]


def test_a_longer_token_is_cut_out_first_even_if_it_starts_later(vocab_of: Make) -> None:
    vocab = vocab_of([b"ab", b"bcd"], [USER_DEFINED] * 2)
    assert partition(vocab, b"abcd", False) == [Fragment(None, 0, 1), Fragment(1, 1, 4)]


def test_control_tokens_are_text_unless_asked_for(vocab_of: Make) -> None:
    vocab = vocab_of([b"<s>", b"<u>"], [CONTROL, USER_DEFINED])
    assert partition(vocab, b"<s><u>", False) == [Fragment(None, 0, 3), Fragment(1, 3, 6)]
    assert partition(vocab, b"<s><u>", True) == [Fragment(0, 0, 3), Fragment(1, 3, 6)]


def test_stripped_blanks_belong_to_nothing(vocab_of: Make) -> None:
    vocab = vocab_of([b"<mask>", b"<r>"], [USER_DEFINED | LSTRIP, USER_DEFINED | RSTRIP])
    assert partition(vocab, b"a \t<mask> b", False) == [Fragment(None, 0, 1), Fragment(0, 3, 9), Fragment(None, 9, 11)]
    assert partition(vocab, b" <r>\v\f\r\n b", False) == [
        Fragment(None, 0, 1),
        Fragment(1, 1, 4),
        Fragment(None, 9, 10),
    ]


def test_only_six_blanks_are_stripped(vocab_of: Make) -> None:
    vocab = vocab_of([b"<mask>"], [USER_DEFINED | LSTRIP])
    assert partition(vocab, b"\xa0<mask>", False)[0] == Fragment(None, 0, 1)
    assert partition(vocab, b"\x1c<mask>", False)[0] == Fragment(None, 0, 1)


def test_an_empty_text_has_no_fragment(vocab_of: Make) -> None:
    assert partition(vocab_of([b"a"]), b"", True) == []
