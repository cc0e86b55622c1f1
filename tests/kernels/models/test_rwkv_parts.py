"""Which RWKV vocabularies let a text be cut before a space."""

import pytest

from jittok.kernels.models import rwkv


@pytest.mark.parametrize(
    ("token", "parts"),
    [
        (b" b", True),
        (b"1 ", True),
        (b". ", True),
        (b"\xc3\xa9 ", True),
        (b"a ", False),
        (b"xZ y", False),
        (b"@ ", True),
    ],
)
def test_a_text_is_cut_unless_a_token_holds_a_letter_in_front_of_a_space(vocab_of, token, parts):
    vocab = vocab_of([b"<unk>", b"a", b" ", b"ab", token], type="rwkv", unk_id=0)
    assert rwkv.can_split_at_spaces(rwkv.compile_pipeline(vocab.pipeline), 100) == parts
