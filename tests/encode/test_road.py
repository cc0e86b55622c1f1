"""The road of a first text is short: how many functions, in how many files, run before machine code does."""

import sys
from pathlib import Path

import pytest

import jittok
from jittok.encode.fallback import first_texts
from jittok.kernels.jit import CHECKED, JIT
from jittok.kernels.jit.frame import Call

MOST_FUNCTIONS, MOST_FILES = 30, 10
PACKAGE = Path(jittok.__file__).parent


@pytest.mark.skipif(not JIT or CHECKED, reason="other kernels")
@pytest.mark.parametrize("name", ["gpt-2", "mistral"])
def test_a_first_text_reaches_its_kernel_by_few_functions_in_few_files(name, monkeypatch):
    tok = jittok.Tokenizer(jittok.bundled(name).vocab, cache=False)
    tok._encoder.compiled()  # as it is written to the cache of vocabularies, or read from there
    monkeypatch.setattr(first_texts, "COMPILE_FIRST", True)
    jittok.Tokenizer(tok.vocab, cache=False).encode("Hello 1234")  # the kernels are at hand, and nobody compiles
    called, again = {}, Call.again

    def note(frame, event, _argument):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            called.setdefault(path.relative_to(PACKAGE).as_posix(), set()).add(frame.f_code.co_name)

    def kernel(self, *args):
        sys.setprofile(None)
        return again(self, *args)

    monkeypatch.setattr(Call, "again", kernel)
    sys.setprofile(note)
    try:
        ids = tok.encode("Hello 1234")
    finally:
        sys.setprofile(None)
    assert ids.tolist() == jittok.bundled(name).encode("Hello 1234").tolist()
    assert "encode" in called["tokenizer/tokenizer.py"]
    assert sum(map(len, called.values())) <= MOST_FUNCTIONS, called
    assert len(called) <= MOST_FILES, called
