"""Profiles of hypothesis, vocabularies small enough to read, and those of files."""

import functools
import json
import lzma
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

# Tests are of kernels: where these are not compiled yet, the plain reference would encode a first short text.
os.environ.setdefault("JITTOK_COMPILE_FIRST", "1")  # before the import; processes that tests start inherit it

from made_up import made_up_tokenizer

import jittok
from jittok.kernels.jit import kernel
from jittok.tokenizer import Tokenizer
from jittok.vocab import read_vocab
from jittok.vocab.bundled import bundled_vocab
from jittok.vocab.vocab import Vocab

# The same examples each time: what new ones find is for `make fuzz` and `make examples` to tell.
settings.register_profile("default", max_examples=60, deadline=None, derandomize=True)  # the first call compiles
settings.register_profile(
    "checked", max_examples=10, deadline=None, derandomize=True
)  # each takes several times as long
settings.register_profile("sample", max_examples=12, deadline=None, derandomize=True)
settings.register_profile("slow", max_examples=5, deadline=None, derandomize=True)
settings.register_profile("fuzz", max_examples=50_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

VOCABS = Path(__file__).parent / "data" / "vocabs"
UNKNOWN, NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 4, 8, 16, 32
SPECIAL = UNKNOWN | CONTROL | USER_DEFINED
BUNDLED = {"t5": "t5", "bert-bge": "bert", "gpt-2": "gpt-2", "mistral-v1": "mistral"}
"""Names of vocabularies in recorded sets, and what the package calls them."""
SHARED = Path(os.environ.get("JITTOK_SHARED") or Path(__file__).parents[2] / "shared")


@functools.cache
def _vocab(name: str) -> Vocab:
    if name in BUNDLED:
        return bundled_vocab(BUNDLED[name])
    packed = SHARED / "vocabs" / f"{name}.gguf.xz"
    if not packed.is_file():
        pytest.skip(f"the vocabulary {name} is not bundled and not in {packed.parent}; set JITTOK_SHARED")
    return read_vocab(lzma.decompress(packed.read_bytes()))


@pytest.fixture(scope="session")
def named_vocab() -> Callable[[str], Vocab]:
    """named_vocab("t5"): a real vocabulary, bundled or from the shared folder; skips the test without it."""
    return _vocab


@pytest.fixture(scope="session")
def walkthroughs() -> dict[str, Any]:
    """Numbers of debugger sessions with llama.cpp, one key a session."""
    return json.loads((VOCABS.parent / "walkthroughs.json").read_text(encoding="utf-8"))


def fixed(values: Any, dtype: Any) -> Any:
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array


def flat(texts: Sequence[bytes]) -> tuple[Any, Any]:
    """(data, offsets) of byte strings."""
    return np.frombuffer(b"".join(texts), np.uint8), fixed(np.cumsum([0, *map(len, texts)]), np.int64)


@pytest.fixture(scope="session")
def vocab_of() -> Callable[..., Vocab]:
    """vocab_of(tokens, attributes=all normal, type="spm", **settings): a Vocab, special tokens longest first."""

    def make(
        tokens: Sequence[bytes], attributes: Sequence[int] | None = None, type: str = "spm", **settings: Any
    ) -> Vocab:
        bits = list(attributes or [NORMAL] * len(tokens))
        cut = sorted((i for i, each in enumerate(bits) if each & SPECIAL), key=lambda i: -len(tokens[i]))
        final, plain = fixed(bits, np.int32), fixed([each & 127 for each in bits], np.int32)
        given: dict[str, Any] = {
            "special_tokens": fixed(cut, np.int32),
            "max_token_length": max(map(len, tokens), default=0),
            "model": type,
            "pre": None,
            "pre_type": 0,
            "name": "tiny",
            "scores": np.zeros(len(tokens), np.float32),
            **settings,
        }
        scores = fixed(given.pop("scores"), np.float32)
        texts, merges = flat(tokens), flat(given.pop("merges", []))
        names = {"token_bytes": texts[0], "token_offsets": texts[1], "key_bytes": texts[0], "key_offsets": texts[1]}
        return Vocab(
            source="vocabulary in memory", type=type, architecture="", **names, scores=scores, attributes=final,
            file_attributes=plain, piece_attributes=plain, merge_bytes=merges[0], merge_offsets=merges[1],
            charsmap=fixed([], np.uint8), **given,
        )  # fmt: skip

    return make


@pytest.fixture(scope="session")
def spm(vocab_of: Callable[..., Vocab]) -> Tokenizer:
    """SPM with all bytes, some words, BOS, EOS and a user-defined token.

    0 <unk>  1 <s>  2 </s>  3 <tool>  4.. 259 bytes  then single characters and the words that merging makes of them
    """
    words = ["▁", "a", "b", "c", "h", "i", "é", "▁a", "ab", "▁ab", "hi", "▁hi", "abc"]
    tokens = [
        b"<unk>",
        b"<s>",
        b"</s>",
        b"<tool>",
        *(b"<0x%02X>" % b for b in range(256)),
        *(w.encode() for w in words),
    ]
    attributes = [UNKNOWN, CONTROL, CONTROL, USER_DEFINED, *[BYTE] * 256, *[NORMAL] * len(words)]
    return Tokenizer(
        vocab_of(
            tokens, attributes, bos_id=1, eos_id=2, unk_id=0, default_unk_id=0, add_bos=True, add_space_prefix=True,
            scores=[0.0] * 260 + [-float(i) for i in range(len(words))],
        )
    )  # fmt: skip


@pytest.fixture(scope="session")
def bundled() -> Callable[[str], Tokenizer]:
    """bundled(name): the Tokenizer of a vocabulary in the package, made once."""
    return functools.cache(jittok.bundled)


@pytest.fixture(scope="session")
def made_up() -> Callable[[str], Tokenizer]:
    """made_up(name): the Tokenizer of a vocabulary in data/vocabs, "syn-plamo2" for example, made once."""
    return made_up_tokenizer


# ---- a sample of the tests, and what they report to tests/run/parts.py

SAMPLE = os.environ.get("JITTOK_TESTS", "") == "sample"
"""As `make test` runs them: of each test, a few of its parameters. `make test-all` runs all of them."""
KEPT = 2
"""Parameters of a test that a sample keeps; a test with the marker `every_set` keeps all."""
COSTS = Path(__file__).parent / "run" / "costs.json"
"""Most CPU seconds of each test that takes more than one; `tests/run/parts.py test-all --costs` writes it."""
DEAR = 2.0
"""A sample has one parameter of the tests of COSTS, and leaves out those above this, unless a file has no other."""
REPORT = os.environ.get("JITTOK_TESTS_REPORT", "")
"""A file to which each test appends a line of JSON: its name, outcome, wall seconds and CPU seconds."""
MATTERS = ("HYPOTHESIS_PROFILE", "JITTOK_TESTS", "JITTOK_SHARED", "NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT", "NUMBA_OPT",
           "PYTHONUNBUFFERED", "LANG", "LANGUAGE", "COLUMNS")  # fmt: skip
"""Variables that may decide whether a test passes."""


def sampled(size: int, kept: int) -> list[bool]:
    """Which of the parameters of a test a sample keeps: so many, evenly spread from the first to the last."""
    chosen = {k * (size - 1) // max(kept - 1, 1) for k in range(kept)} if size > kept else {*range(size)}
    return [place in chosen for place in range(size)]


@functools.cache
def _costs() -> dict[str, float]:
    return json.loads(COSTS.read_text("utf-8")) if COSTS.exists() else {}


def _report(**facts: object) -> None:
    if REPORT:
        with Path(REPORT).open("a", encoding="utf-8") as file:
            file.write(json.dumps(facts) + "\n")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before an order is drawn
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    if SAMPLE:
        kept = every_test_of_a_sample(items, _costs())
        chosen = {*kept}
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = kept
    return (yield)


def every_test_of_a_sample(items: Sequence[pytest.Item], costs: dict[str, float]) -> list[pytest.Item]:
    """What `make test` runs of these tests."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    dear = {name for name, seconds in costs.items() if seconds > DEAR and name in tests}
    dear -= {name for name, same in tests.items() if same[0].get_closest_marker("every_set") is not None}
    for file in {name.partition("::")[0] for name in dear}:
        of_file = [name for name in tests if name.partition("::")[0] == file]
        if dear.issuperset(of_file):
            dear.remove(min(of_file, key=lambda name: costs[name]))
    kept = []
    for name, same in tests.items():
        if same[0].get_closest_marker("every_set") is not None:
            kept += same
        elif name not in dear:
            keep = sampled(len(same), 1 if name in costs else KEPT)
            kept += [item for item, this in zip(same, keep, strict=True) if this]
    return kept


def pytest_collection_finish(session: pytest.Session) -> None:
    _report(total=len(session.items), left=session.config.stash.get(LEFT, 0))


def pytest_sessionfinish() -> None:
    ran = sorted(".".join(each._name) for each in kernel.registry if each.origin is not None)
    _report(kernels=[name for name in ran if name.startswith("jittok.")])


LEFT = pytest.StashKey[int]()


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    if items:
        stash = items[0].config.stash
        stash[LEFT] = stash.get(LEFT, 0) + len(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    begin, cpu = time.perf_counter(), sum(os.times()[:4])
    try:
        return (yield)
    finally:
        reports = item.stash.get(SAID, [])
        outcome = next(
            (each for each in ("failed", "skipped") if each in [report.outcome for report in reports]), "passed"
        )
        reason = next((str(report.longrepr[2]) for report in reports if isinstance(report.longrepr, tuple)), "")
        spent = sum(os.times()[:4]) - cpu
        _report(
            name=item.nodeid,
            outcome=outcome,
            reason=reason,
            seconds=round(time.perf_counter() - begin, 3),
            cpu=round(spent, 2),
        )


SAID = pytest.StashKey[list[pytest.TestReport]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    item.stash.setdefault(SAID, []).append(report)
    return report


def alone(nodeid: str, order: object) -> str:
    """The command that runs one test as it ran here."""
    given = [f"{name}={shlex.quote(os.environ[name])}" for name in MATTERS if os.environ.get(name)]
    seed = f"--randomly-seed={order} " if isinstance(order, int) else ""
    return " ".join([*given, shlex.quote(sys.executable), "-m pytest", f"{seed}{shlex.quote(nodeid)}"])


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """A failing test names the command that runs it alone."""
    stats = terminalreporter.stats
    names = dict.fromkeys(report.nodeid for kind in ("failed", "error") for report in stats.get(kind, []))
    if names:
        terminalreporter.section("one test alone")
    for name in names:
        terminalreporter.write_line(alone(name, config.getoption("randomly_seed", None)))
