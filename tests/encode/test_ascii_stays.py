"""A short ASCII text of a file with NFC: NFC changes none, so no one asks."""

import json

import jittok
from jittok.common.unicode.tables import ENCODED_BYTE
from jittok.kernels.jit import CHECKED

FILE = {
    "model": {"type": "BPE", "vocab": {text.decode(): byte for byte, text in enumerate(ENCODED_BYTE)}, "merges": []},
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
    "decoder": {"type": "ByteLevel"},
}


def test_at_most_texts_beyond_ascii_are_asked_whether_nfc_changes_them(monkeypatch):
    tok, asked = jittok.load(json.dumps(FILE).encode(), cache=False), []
    encoder = tok._encoder
    texts = ["a", "ab ab", "e\u0301", "ab\n" * 30, "", "é"]
    wanted = tok.encode_batch(texts).to_list()
    changed = encoder.plan.compose.changed

    def noted(texts):
        asked.append(texts.data[texts.starts[0] : texts.stops[0]].tobytes().decode())
        return changed(texts)

    monkeypatch.setattr(encoder.plan.compose, "changed", noted)
    for text, ids in zip(texts * 2, wanted * 2, strict=True):
        assert tok.encode(text).tolist() == ids
        assert tok.encode(text.encode()).tolist() == ids
    # the quick way asks alone, once it has the kernels that it needs (see `test_quick`)
    assert {text for text in asked if not text.isascii()} <= {"e\u0301", "é"}
    # before there is any scratch, and where a check knows where memory ends, all are
    assert CHECKED or len([text for text in asked if text.isascii()]) <= 1
