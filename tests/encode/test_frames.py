"""A frame and its builtin call the same kernels with the same texts, whatever these answer. The kernels here are
functions of Python, so this needs no compiled ones."""

import ctypes
import functools
import random
import sys
from array import array
from types import SimpleNamespace

import numpy as np
import pytest

from jittok.encode.call_sequence import BoundKernel, CallSequence, TextBuffer
from jittok.encode.precheck import HOLDING, LONGEST_WITH_GIL, PreCheck, PreCheckCall
from jittok.encode.short_text import ShortTextFrame
from jittok.kernels.fragments import PAD
from jittok.kernels.jit import frozen, has_compiler
from jittok.kernels.memory import encode_builtin
from jittok.kernels.memory.objects import TEXT_OF_BYTES, StrLayout

NUMBER, DATA = 0, 1
"""The arguments of all kernels here."""
GENERATION, AS_IT_IS, NO_LIMIT = 7, -3, (1 << 62) - 1
MARKS = 256
"""Bytes of the prepared text, and a bit for each after them."""
METHOD = functools.cache(encode_builtin._method.__wrapped__)


class Kernel:
    """Notes what it is called with, and answers as it is told."""

    def __init__(self, name, log, held=None):
        self._name, self._log, self._held, self._frames = name, log, held, {}
        self.answer, self.entry = 0, HOLDING(self._run)

    def call(self, *_args):
        """A frame: a status, the number of fragments, which is 1 at first, a text's address and size."""
        words = array("q", [0, 1, 0, 0])
        self._frames[words.buffer_info()[0]] = words, len(self._frames)
        return SimpleNamespace(words=words, slots=[1, 2])

    def _run(self, frame):
        words, which = self._frames[frame]
        text = ctypes.string_at(words[2], words[3]) if words[2] else None
        self._log.append((self._name, which, words[1], text, self._held and self._held()))
        return self.answer


class Made:
    """A frame of such kernels, drawn: some are not there."""

    def __init__(self, draw):
        self.log = log = []
        self.kernels = {}

        def entry(name, held=None):
            kernel = self.kernels.setdefault(name, Kernel(name, log, held))
            return PreCheckCall(kernel, kernel.call(), DATA, NUMBER)

        frame = self.frame = ShortTextFrame.__new__(ShortTextFrame)
        frame._keep, frame._generation, frame._ready = None, GENERATION, array("q", [GENERATION])
        frame._ids = self.ids = np.arange(1000, dtype=np.int32) * 3
        self.stops = stops = np.zeros(2, np.int64)  # of the text, and of what becomes of it
        frame._stop, frame._stop_at = memoryview(stops[:1]), stops.ctypes.data
        frame._cut = entry("cut") if draw.random() < 0.5 else None
        frame._model = entry("model", lambda: (*stops.tolist(), *self.prepared()))
        frame._precheck = self.looked(entry, draw) if draw.random() < 0.5 else None
        frame._chain = self.chain(draw) if draw.random() < 0.5 else None

    def looked(self, entry, draw):
        looked = PreCheck.__new__(PreCheck)
        looked._lacks, looked.change, looked.stop_at, looked.unchanged = None, None, 0, AS_IT_IS
        looked._look = entry("look")
        if draw.random() < 0.6:
            looked.change, looked.changed = entry("change"), entry("model")
            looked._stop, looked.stop_at = memoryview(self.stops[1:]), self.stops[1:].ctypes.data
        return looked

    def chain(self, draw):
        readies = []
        for name in ("first", "second", "join")[: draw.choice([1, 2, 3])]:
            kernel = self.kernels[name] = Kernel(name, self.log, self.prepared)
            readies.append(BoundKernel(kernel, (), NUMBER, *((2, 5) if name == "second" else (0, NO_LIMIT))))
        self.held = np.zeros(LONGEST_WITH_GIL + PAD, np.uint8)
        out, places = np.zeros(2 * MARKS, np.uint8), np.zeros(1, np.int64)
        self.out, self.marks = out, draw.choice([0, MARKS])
        texts = TextBuffer(frozen(out, np.uint8), places, places, np.zeros(1, np.int32), MARKS)
        join = readies.pop() if len(readies) > 2 else None
        return CallSequence(readies, texts, self.held, self.marks, join)

    def prepared(self):
        """What kernels see of a text that is prepared: where it is copied to, and the marks."""
        if self.frame._chain is None:
            return ()
        return bytes(self.held[:20]), bytes(self.out)

    def asked(self, text):
        """What the frame makes of a text: ids or None, and what its kernels were called with."""
        self.begin()
        count = self.frame.encode(id(text) + TEXT_OF_BYTES, len(text))
        return (self.ids[:count].tolist() if count >= 0 else None), [*self.log]

    def asked_at_once(self, text):
        """The same by the builtin."""
        self.begin()
        found = self.frame.builtin(text)
        assert self.frame._ready[0] == GENERATION
        return None if found is None else found.tolist(), [*self.log]

    def begin(self):
        self.log.clear()
        self.stops[:] = 99
        if self.frame._chain is not None:
            self.out[:] = 1


@pytest.fixture
def at_once(monkeypatch):
    """Builtins can be made, also where the kernels of the package are not compiled."""
    if not has_compiler() or sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        pytest.skip("no builtin can be made here")
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        pytest.skip("no builtin can be made here")
    monkeypatch.setattr(encode_builtin, "may_be_made", lambda: True)
    monkeypatch.setattr(encode_builtin, "str_layout", lambda: StrLayout(sys.getsizeof("") - 1, (1 << 32) - 1))  # none
    monkeypatch.setattr(encode_builtin, "_method", METHOD)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("seed", range(40))
def test_a_builtin_does_what_its_frame_does(seed):
    draw = random.Random(seed)
    made = Made(draw)
    made.frame.make_builtin()
    for size in [*draw.choices([1, 5, 20], k=20), LONGEST_WITH_GIL]:
        text = bytes(draw.choices(range(256), k=size))
        for name, kernel in made.kernels.items():
            kernel.answer = draw.choice([-1, 0, 1, 2, 5, 6, 200])
            if name == "look":
                kernel.answer = draw.choice([AS_IT_IS, AS_IT_IS, size, size, 0, -1])
        ways = made.asked, made.asked_at_once
        one, other = (
            way(text) for way in (ways if draw.random() < 0.5 else ways[::-1])
        )  # they write to the same words
        assert one == other
    for text, generation in ((b"", GENERATION), (bytes(LONGEST_WITH_GIL + 1), GENERATION), (b"a text", GENERATION + 1)):
        made.frame._ready[0] = generation
        made.log.clear()
        assert made.frame.builtin(text) is None
        assert made.log == []


@pytest.mark.parametrize("seed", range(20))
def test_a_long_text_is_neither_changed_nor_prepared_in_a_frame(seed):
    made = Made(random.Random(seed))
    text = bytes(LONGEST_WITH_GIL + 1)
    for kernel in made.kernels.values():
        kernel.answer = 5
    for seen in (AS_IT_IS, len(text)) if made.frame._precheck else (AS_IT_IS,):
        if made.frame._precheck:
            made.kernels["look"].answer = seen
        ids, log = made.asked(text)
        assert (ids is None) == (seen != AS_IT_IS or made.frame._chain is not None)
        assert {name for name, *_ in log} <= {"cut", "look", "model"}


def test_a_prepared_text_begins_without_marks():
    log, out, held = [], np.ones(2 * MARKS, np.uint8), np.zeros(LONGEST_WITH_GIL + PAD, np.uint8)
    first, places = Kernel("first", log, lambda: bytes(out)), np.zeros(1, np.int64)
    texts = TextBuffer(frozen(out, np.uint8), places, places, np.zeros(1, np.int32), MARKS)
    chain, text = (
        CallSequence([BoundKernel(first, (), NUMBER)], texts, held, MARKS, None),
        np.frombuffer(b"a text", np.uint8),
    )
    assert chain.prepare(text.ctypes.data, 6, 1)
    assert bytes(held[:8]) == b"a text\0\0"
    assert log == [("first", 0, 1, None, b"\1" * MARKS + bytes(MARKS // 8) + b"\1" * (MARKS - MARKS // 8))]


def test_a_frame_without_the_kernel_that_changes_a_text_fits_until_there_is_one():
    looked = PreCheck.__new__(PreCheck)
    looked._lacks = None
    assert looked.fits()
    looked._lacks = SimpleNamespace(entry=None)
    assert looked.fits()
    looked._lacks.entry = HOLDING(lambda _: 0)
    assert not looked.fits()
