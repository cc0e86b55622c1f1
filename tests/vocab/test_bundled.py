"""The vocabularies in the package are there under their names, and other names say which there are."""

import pytest

from jittok.vocab import bundled_names, bundled_vocab, read_vocab
from jittok.vocab.bundled import bundled_source


def test_the_names_are_sorted_and_these():
    assert bundled_names() == ["bert", "gpt-2", "mistral", "t5"]


@pytest.mark.parametrize(
    ("name", "type", "size"),
    [("bert", "wpm", 30522), ("gpt-2", "bpe", 50257), ("mistral", "spm", 32000), ("t5", "ugm", 32128)],
)
def test_each_has_its_type_and_size(name, type, size):
    vocab = bundled_vocab(name)
    assert (vocab.type, len(vocab)) == (type, size)
    assert read_vocab(bundled_source(name)).fingerprint == vocab.fingerprint


@pytest.mark.parametrize("name", ["", "gpt2", "../data/gpt-2", "GPT-2", "gpt-2.gguf.xz", "*"])
def test_other_names_are_a_value_error_that_lists_the_names(name):
    with pytest.raises(ValueError, match=r"bundled vocabulary: found .*, expected one of bert, gpt-2, mistral, t5"):
        bundled_vocab(name)
