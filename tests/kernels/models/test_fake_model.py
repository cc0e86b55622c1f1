"""The type "test": the kernel gives the ids of the reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jittok.errors import MalformedVocab
from jittok.kernels.models import fake_model


@given(st.integers(1, 300), st.binary(max_size=40))
def test_kernel_equals_reference(make_vocab, witnesses, size, text):
    kernel, reference = witnesses(make_vocab("test", [b"%d" % i for i in range(size)]), text)
    assert kernel == reference


@given(st.lists(st.binary(max_size=20) | st.integers(0, 6), max_size=6))
def test_memory_is_asked_for_until_it_suffices(make_vocab, witnesses, starved, fragments):
    vocab = make_vocab("test", [b"%d" % i for i in range(7)])
    answers = [[f] if isinstance(f, int) else witnesses(vocab, f)[0] for f in fragments]
    ids, ends = starved(fake_model, vocab, fragments)
    assert ids == [token for answer in answers for token in answer]
    assert ends == np.cumsum([len(answer) for answer in answers]).tolist()


def test_a_vocabulary_without_tokens_is_refused(make_vocab):
    with pytest.raises(MalformedVocab, match="found 0, expected at least one token"):
        fake_model.compile_pipeline(make_vocab("test", []).pipeline)
