"""What Python encodes once more to find spans: a long fragment in parts gives what all of it gives."""

import random

import numpy as np
import pytest

import jittok
from jittok.align import replay


@pytest.mark.parametrize("missing", [b"", b"b\xc3"])
def test_a_long_fragment_is_encoded_once_more_in_parts(monkeypatch, missing):
    vocab = jittok.bundled("gpt-2").vocab
    draw = random.Random(4)
    for name, size in (("LONG_FRAGMENT", 0), ("PART_BYTES", 3)):
        monkeypatch.setattr(replay, name, size)
    parted = 0
    for _ in range(40):
        text = "".join(draw.choices(["a word", " b", " ", "  ", "\n", "é", "中", "1", "."], k=30)).encode() + missing
        wanted = replay.replayed_tokens(vocab, text, 7, True)
        ids, spans = np.array([token for token, _, _ in wanted], np.int32), np.zeros((len(wanted), 2), np.int64)
        assert replay.replayed_parts(vocab, text, 7, True, ids, spans)
        assert spans.tolist() == [[start, stop] for _, start, stop in wanted]
        parted += replay.BETWEEN_WORDS.search(text) is not None
        ids[draw.randrange(ids.size)] += 1
        assert not replay.replayed_parts(vocab, text, 7, True, ids, spans)
    assert parted > 20
