"""Time grows with the text and not faster, whatever the text."""

import time

import pytest

import jittok

UNITS = [
    b"a",
    b"ab",
    b" ",
    b"7",
    b"-",
    b"'",
    "\u2581".encode(),
    "\u0301".encode(),
    b"<s<s<",
    "\u6f22\u5b57".encode(),
    b"\xff",
]


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", ["gpt-2", "mistral", "bert", "t5"])
def test_twice_the_text_takes_no_more_than_about_twice_the_time(name, unit):
    """In CPU time, the best of several; other processes can only make it look worse, so one good try is enough."""
    tok = jittok.bundled(name)
    texts = [unit * (size // len(unit)) for size in (1 << 20, 4 << 20)]
    best = [float("inf")] * 2
    for _ in range(10):
        for k, text in enumerate(texts):
            start = time.process_time()
            tok.encode(text, errors="replace", parse_special=True)
            best[k] = min(best[k], time.process_time() - start)
        if best[1] <= 4.8 * best[0]:
            return
    pytest.fail(f"4 MB took {best[1]:.3f} s, 1 MB {best[0]:.3f} s")
