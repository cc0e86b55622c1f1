"""How wide ids are written: by the size of the vocabulary, or as asked for where the layout and the ids allow it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from jittok.corpus.formats import FORMATS, make_formats
from jittok.corpus.formats.base import Facts, Rows
from jittok.corpus.options import DTYPES
from jittok.errors import CorpusError

pytest.importorskip("pyarrow")

WIDTHS = [
    ("npy", 65_536, "uint16"),
    ("npy", 65_537, "int32"),
    ("nanogpt", 65_536, "uint16"),
    ("nanogpt", 65_537, "uint32"),
    ("llmc", 65_537, "uint32"),
    ("megatron", 65_499, "uint16"),
    ("megatron", 65_500, "int32"),
    ("datatrove", 65_536, "uint16"),
    ("datatrove", 65_537, "uint32"),
    ("olmo", 65_537, "uint32"),
]


@pytest.mark.parametrize(("name", "size", "dtype"), WIDTHS)
def test_the_width_follows_the_size_of_the_vocabulary(name, size, dtype):
    (form,) = make_formats([name], Facts(size, "v", "f", "auto", []))
    assert form.dtype == np.dtype(dtype)
    ids = np.array([0, size - 1], np.int32)
    rows = Rows(ids, np.array([2]), np.zeros(1, np.int64), np.ones(1, np.int64))
    streams = [stream for stream in form.streams() if stream.key not in ("lengths", "olmo.rows")]
    assert np.frombuffer(streams[0].data(rows), form.dtype).tolist() == ids.tolist()


@pytest.mark.parametrize(
    ("name", "size", "dtype"),
    [("nanogpt", 65_537, "uint16"), ("npy", 70_000, "uint16"), ("megatron", 65_500, "uint16"), ("arrow", 9, "uint16"),
     ("megatron", 9, "uint32"), ("olmo", 9, "int32")],
)  # fmt: skip
def test_a_width_that_cannot_be_is_refused(name, size, dtype):
    with pytest.raises(CorpusError, match=f"^dtype, format {name}"):
        make_formats([name], Facts(size, "v", "f", dtype, []))


@pytest.mark.parametrize("size", [9, 65_500, 65_537])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMATS)
def test_each_width_that_is_named_instead_is_taken(name, dtype, size):
    try:
        make_formats([name], Facts(size, "v", "f", dtype, []))
    except CorpusError as error:
        named = re.findall("|".join(DTYPES), error.expected)
        assert len(set(named)) == len(named)
        for each in named:
            assert make_formats([name], Facts(size, "v", "f", each, []))
