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

from jittok.encode.limits import LONGEST_WITH_GIL
from jittok.encode.short_text import HOLDING, Cells, Copied, ShortCall, ShortTextFrame
from jittok.kernels.fragments import PAD
from jittok.kernels.jit import has_compiler
from jittok.kernels.memory.python_objects import encode_builtin
from jittok.kernels.memory.python_objects.texts import TEXT_OF_BYTES, StrLayout

GENERATION, UNCHANGED = 7, -3
CLEARED = 64
METHOD = functools.cache(encode_builtin._method.__wrapped__)


class Kernel:
    """Records what it is called with, and returns what `answer` is."""

    def __init__(self, name, log, seen):
        self.plan = {"number": None, "text": None}
        self._name, self._log, self._seen, self._frames = name, log, seen, {}
        self.answer, self.entry = 0, HOLDING(self._run)

    def call(self, *_args):
        """A frame: a status, the number of fragments, a text's address and size."""
        words = array("q", [0, 0, 0, 0])
        self._frames[words.buffer_info()[0]] = words, len(self._frames)
        return SimpleNamespace(words=words, slots=[1, 2])

    def _run(self, frame):
        words, which = self._frames[frame]
        text = ctypes.string_at(words[2], words[3]) if words[2] else None
        self._log.append((self._name, which, words[1], text, self._seen()))
        return self.answer


class Made:
    """A frame of such kernels, drawn: some are missing."""

    def __init__(self, draw):
        self.log, self.kernels, self.cells = [], {}, Cells()
        self.stop, self.copied = np.zeros(1, np.int64), None
        if draw.random() < 0.5:
            held, clear = np.zeros(LONGEST_WITH_GIL + PAD, np.uint8), np.zeros(draw.choice([0, CLEARED]), np.uint8)
            self.copied = Copied(held, clear)
        text, model = "" if self.copied else "text", [self.call("model", "")]
        calls = []
        if draw.random() < 0.5:
            calls.append(self.call("cut", "text", self.cells.number, least=1, number=""))
        if draw.random() < 0.5:
            change = self.call("change", "text", self.stop), *model
            other = change if draw.random() < 0.6 else ()
            calls.append(self.call("check", "text", None, UNCHANGED, UNCHANGED, other))
        if self.copied is not None:
            calls += [self.call("first", ""), self.call("second", "", None, 2, 5)][: draw.choice([0, 1, 2])]
        calls.append(self.call("model", text))
        if self.copied is not None and draw.random() < 0.5:
            calls.append(self.call("join", ""))
        self.ready, self.ids = array("q", [GENERATION]), np.arange(1000, dtype=np.int32) * 3
        workspace = SimpleNamespace(ids=self.ids, ready=self.ready, generation=GENERATION)
        self.frame = ShortTextFrame(tuple(calls), self.cells, workspace, copied=self.copied)

    def call(self, name, text, result=None, least=0, most=encode_builtin.NO_LIMIT, other=(), number="number"):
        kernel = self.kernels.setdefault(name, Kernel(name, self.log, self.seen))
        return ShortCall(kernel, (), text, number, result, least, most, other)

    def seen(self):
        """What kernels may read beside their frames."""
        copies = () if self.copied is None else (bytes(self.copied.held[:20]), bytes(self.copied.clear))
        return (*self.cells.size.tolist(), *self.stop.tolist(), *copies)

    def by_frame(self, text):
        """What the frame makes of a text: ids or None, and what its kernels were called with."""
        self.begin()
        count = self.frame.encode(id(text) + TEXT_OF_BYTES, len(text))
        return (self.ids[:count].tolist() if count >= 0 else None), [*self.log]

    def by_builtin(self, text):
        """The same by the builtin."""
        self.begin()
        found = self.frame.builtin(text)
        assert self.ready[0] == GENERATION
        return None if found is None else found.tolist(), [*self.log]

    def begin(self):
        self.log.clear()
        self.cells.size[:], self.cells.number[:], self.stop[:] = 99, 99, 99
        if self.copied is not None:
            self.copied.clear[:] = 1


@pytest.fixture
def builtins(monkeypatch):
    """Builtins can be made, also where the kernels of the package are not compiled."""
    if not has_compiler() or sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        pytest.skip("no builtin can be made here")
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        pytest.skip("no builtin can be made here")
    monkeypatch.setattr(encode_builtin, "may_be_made", lambda: True)
    monkeypatch.setattr(encode_builtin, "str_layout", lambda: StrLayout(sys.getsizeof("") - 1, (1 << 32) - 1))  # none
    monkeypatch.setattr(encode_builtin, "_method", METHOD)


@pytest.mark.usefixtures("builtins")
@pytest.mark.parametrize("seed", range(60))
def test_a_builtin_does_what_its_frame_does(seed):
    draw = random.Random(seed)
    made = Made(draw)
    made.frame.make_builtin()
    for size in [*draw.choices([1, 5, 20], k=20), LONGEST_WITH_GIL]:
        text = bytes(draw.choices(range(256), k=size))
        for name, kernel in made.kernels.items():
            kernel.answer = draw.choice([-1, 0, 1, 2, 5, 6, 200])
            if name == "check":
                kernel.answer = draw.choice([UNCHANGED, UNCHANGED, size, size, 0, -1])
        ways = made.by_frame, made.by_builtin
        one, other = (
            way(text) for way in (ways if draw.random() < 0.5 else ways[::-1])
        )  # they write to the same words
        assert one == other
    for text, generation in ((b"", GENERATION), (bytes(LONGEST_WITH_GIL + 1), GENERATION), (b"a text", GENERATION + 1)):
        made.ready[0] = generation
        made.log.clear()
        assert made.frame.builtin(text) is None
        assert made.log == []


@pytest.mark.parametrize("seed", range(20))
def test_a_long_text_is_neither_changed_nor_prepared_in_a_frame(seed):
    made = Made(random.Random(seed))
    text = bytes(LONGEST_WITH_GIL + 1)
    for kernel in made.kernels.values():
        kernel.answer = 5
    for seen in (UNCHANGED, len(text)) if "check" in made.kernels else (UNCHANGED,):
        if "check" in made.kernels:
            made.kernels["check"].answer = seen
        ids, log = made.by_frame(text)
        assert (ids is None) == (seen != UNCHANGED or made.copied is not None)
        assert {name for name, *_ in log} <= {"cut", "check", "model"}


def test_kernels_that_prepare_a_text_find_a_copy_of_it_and_zeros():
    log, copied = [], Copied(np.zeros(LONGEST_WITH_GIL + PAD, np.uint8), np.ones(CLEARED, np.uint8))
    kernel = Kernel("first", log, lambda: (bytes(copied.held[:8]), bytes(copied.clear)))
    workspace = SimpleNamespace(ids=np.zeros(9, np.int32), ready=array("q", [0]), generation=GENERATION)
    frame = ShortTextFrame((ShortCall(kernel, (), "", "number"),), Cells(), workspace, copied=copied)
    text = np.frombuffer(b"a text", np.uint8)
    assert frame.encode(text.ctypes.data, 6) == 0
    assert log == [("first", 0, 1, None, (b"a text\0\0", bytes(CLEARED)))]


def test_a_frame_without_the_kernel_that_changes_a_text_fits_until_there_is_one():
    arrays = SimpleNamespace(ids=1, scratch=2, starts=3, special_work=4, ready=None, generation=0)
    encoder, lacks = SimpleNamespace(arrays=5), SimpleNamespace(entry=None)
    assert ShortTextFrame((), Cells(), arrays, (1, 2, 5, 3, 4)).fits(encoder, arrays)
    frame = ShortTextFrame((), Cells(), arrays, (1, 2, 5, 3, 4), lacks=lacks)
    assert frame.fits(encoder, arrays)
    lacks.entry = HOLDING(lambda _: 0)
    assert not frame.fits(encoder, arrays)
