"""`str` of all scripts in batches: kernels read them where Python keeps them, with the ids of their UTF-8."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jittok
from jittok.encode import limits, short_text
from jittok.encode.threads import batch
from jittok.errors import EncodingFailed
from jittok.kernels.inputs import containers, documents, reads_wide
from jittok.kernels.memory.python_objects import encode_builtin, wide_texts

pytestmark = pytest.mark.skipif(not wide_texts.FAST, reason="no text is read in place")
UNKNOWN, NORMAL = 1, 4
PARTS = [
    "word ",
    "caf\xe9 ",
    "\u0441\u043b\u043e\u0432\u043e ",
    "\u4e2d\u6587",
    "\U0001f600",
    "\0",
    "x" * 31,
    "\x7f\x80",
]


def drawn(rng: random.Random, longest: int) -> Any:
    """A text of one width or another, sometimes as bytes."""
    parts = PARTS[: rng.randint(1, len(PARTS))]
    text = "".join(rng.choice(parts) for _ in range(rng.randint(0, longest)))
    return text.encode() if rng.random() < 0.1 else text


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels read wide texts, also where they would have to be compiled."""
    monkeypatch.setattr(batch, "reads_wide", lambda: True)
    monkeypatch.setattr(limits, "LEAST_WIDE_BYTES", 1)


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["gpt-2", "bert"])
def test_ids_of_wide_texts_are_those_of_their_utf8(name: str, threads: int) -> None:
    tok, rng = jittok.bundled(name), random.Random(threads)
    for longest, count in ((3, 40), (60, 300), (3000, 40)):
        texts = [drawn(rng, longest) for _ in range(count)]
        plain = [text.encode() if isinstance(text, str) else text for text in texts]
        found, expected = (tok.encode_batch(each, threads=threads, add_special=True) for each in (texts, plain))
        assert found.to_list() == expected.to_list()
        assert tok.count_batch(texts, threads=threads).tolist() == np.diff(tok.encode_batch(plain).offsets).tolist()


@pytest.mark.usefixtures("wide")
def test_a_part_with_wide_texts_alone_is_copied() -> None:
    asked = [["a \u20ac", "b"], ["a", b"b"]]
    (some,), (none,) = (list(documents(texts, in_place=True, wide=True)) for texts in asked)
    assert some.to_copy
    assert not none.to_copy
    copy = some.own(0, 2)
    assert [copy.between(*ends) for ends in zip(copy.starts, copy.stops, strict=True)] == ["a \u20ac".encode(), b"b"]
    assert not copy.data[copy.stops[-1] : copy.stops[-1] + 72].any()


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_lone_surrogate_is_named_behind_the_failures_before_it(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tok = jittok.bundled("gpt-2")
    monkeypatch.setattr("jittok.encode.limits.STRETCH_MIN", 500)
    monkeypatch.setattr("jittok.encode.limits.BYTES_PER_COPY", 700)
    texts = ["fine \u20ac words"] * 200
    for bad in (0, 11, 19):
        texts[bad] = "\u20ac \ud800"
        with pytest.raises(EncodingFailed, match=rf"document {bad}, offset 2: found '.ud800'"):
            tok.encode_batch(texts, threads=threads)
        replaced = tok.encode_batch(texts, threads=threads, errors="replace")
        assert replaced[bad].tolist() == tok.encode("\u20ac \ufffd").tolist()
        texts[bad] = "fine"


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("threads", [1, 2])
def test_of_two_texts_that_fail_the_first_is_named(vocab_of: Callable[..., Any], threads: int) -> None:
    vocab = vocab_of([b"<unk>", "\u2581".encode(), b"a"], [UNKNOWN, NORMAL, NORMAL], unk_id=0, add_space_prefix=True)
    tok = jittok.Tokenizer(vocab)
    for texts, first in ((["a", "\u20ac", "\ud800"], 1), (["a", "\u20ac\ud800", "b"], 1), (["a", "b", "\xe9"], 1)):
        with pytest.raises(EncodingFailed, match=f"document {first},"):
            tok.encode_batch(texts, threads=threads)


def test_kernels_are_compiled_for_wide_texts_once_there_was_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(wide_texts.join_utf8), "at_hand", lambda _kernel: False)
    monkeypatch.setattr(containers, "_encoded", 0)
    assert not reads_wide()
    list(documents(["\u20ac" * 1000] * 4, in_place=True))
    assert containers._encoded == 12000
    monkeypatch.setattr(containers, "_encoded", containers.WORTH_COMPILING)
    assert reads_wide()


def test_one_text_of_any_script_goes_the_quick_way_by_its_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    if not encode_builtin.may_be_made():
        pytest.skip("no builtin can be made here")
    tok = jittok.bundled("bert")
    texts = ["caf\xe9 na\xefve", "\u0441\u043b\u043e\u0432\u043e", "\u4e2d\u6587", "a\U0001f600b"]
    expected = [tok._encoder.one(text.encode(), tok._rule(False, False, "strict")[1]).tolist() for text in texts]
    tok.encode("warm")
    monkeypatch.setattr(short_text, "CALLS_BEFORE_FIRST_BUILTIN", 2)
    monkeypatch.setattr(type(tok._encoder), "one", None)
    for _ in range(3):  # by a frame, then by its builtin
        assert [tok.encode(text).tolist() for text in texts] == expected
    monkeypatch.undo()
    with pytest.raises(EncodingFailed):
        tok.encode("a\ud800")
    assert tok.encode("a\ud800", errors="replace").tolist() == tok.encode("a\ufffd").tolist()


def test_texts_read_in_place_are_copied_one_after_the_other() -> None:
    texts = ["x" * 300, b"y" * 400, "", "\u20ac" * 200]
    (docs,) = documents(texts, in_place=True)
    assert docs.kept is not None
    copy = docs.own(1, 4)
    raw = [b"y" * 400, b"", "\u20ac".encode() * 200]
    assert [copy.between(*ends) for ends in zip(copy.starts, copy.stops, strict=True)] == raw
    assert copy.data[:1000].tobytes() == b"".join(raw)
    assert not copy.data[1000:1072].any()
