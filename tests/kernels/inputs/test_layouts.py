"""Texts where they lie: which are joined, which are read in place, and what a list of ids may hold."""

from typing import Any

import pytest

from jittok.kernels.inputs import arrow, documents, to_ids
from jittok.kernels.jit import JIT


@pytest.mark.skipif(not JIT, reason="without the compiler all texts are joined")
def test_long_bytes_and_ascii_texts_are_read_where_they_are_and_short_ones_copied() -> None:
    for texts in ([b"ab" * 400, b"c" * 900], ["ab" * 400, "c" * 900]):
        (part,) = documents(texts, in_place=True)
        assert part.kept is not None
        assert part.between(int(part.starts[1]), int(part.stops[1])) == b"c" * 900
    for texts in ([b"ab", b"c"], ["ab", "c"]):
        (part,) = documents(texts, in_place=True)
        assert part.kept is None


@pytest.mark.parametrize("ids", [[0.5, 1.0], [-0.5, 1.0], [400.5]])
def test_numbers_with_a_fraction_are_no_ids(ids: Any) -> None:
    with pytest.raises(TypeError, match="found ids of float64, expected integers"):
        to_ids(ids, 400)


def test_small_chunks_are_joined_by_their_own_size_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    pa = pytest.importorskip("pyarrow")
    monkeypatch.setattr(arrow, "WHOLE_CHUNK", 10)
    whole = pa.array(["abcdefgh"] * 4)
    chunks = pa.chunked_array([whole[i : i + 1] for i in range(4)])
    assert len(list(documents(chunks))) == 1
    assert len(list(documents(pa.chunked_array([pa.array(["a" * 10]), pa.array(["b" * 10])])))) == 2
