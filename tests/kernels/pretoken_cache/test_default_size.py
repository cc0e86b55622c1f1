"""The bound of the piece cache: by the machine's memory, or as it was asked for."""

import os
import pickle

import pytest

import jittok
from jittok.cli import main
from jittok.kernels.jit import JIT
from jittok.kernels.pretoken_cache import default_size
from jittok.kernels.pretoken_cache.tables import SHORT_MOST


@pytest.mark.parametrize(("pages", "wanted"), [(1 << 30, 256 << 20), (1 << 18, 32 << 20), (-1, 256 << 20)])
def test_small_machines_get_a_part_of_their_memory(pages, wanted, monkeypatch):
    told = {"SC_PHYS_PAGES": pages, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", told.__getitem__, raising=False)
    assert default_size.default_cache_bytes() == wanted


def test_a_system_that_does_not_tell_its_memory_gets_all(monkeypatch):
    def sysconf(_name):
        raise ValueError

    monkeypatch.setattr(os, "sysconf", sysconf, raising=False)
    assert default_size.default_cache_bytes() == default_size.CACHE_BYTES


def most(tok):
    tok.encode("a few words")
    (workspace,) = tok._encoder._workspaces
    return workspace.scratch.cache.state[SHORT_MOST]


compiled_only = pytest.mark.skipif(not JIT, reason="takes minutes without the compiler")


@compiled_only
def test_a_bundled_vocabulary_takes_a_bound_and_keeps_it_in_a_pickle():
    tok = jittok.bundled("gpt-2", cache_bytes=1 << 20)
    assert most(tok) == most(pickle.loads(pickle.dumps(tok))) == 13
    assert most(jittok.bundled("gpt-2")) > 13
    with pytest.raises(ValueError, match="cache_bytes: found -1"):
        jittok.bundled("gpt-2", cache_bytes=-1)


@compiled_only
def test_a_corpus_takes_a_bound(tmp_path, capsys, monkeypatch):
    pytest.importorskip("filelock", reason="needs the extra corpus")
    (tmp_path / "a.txt").write_text("some words")
    asked = []
    original = jittok.bundled
    monkeypatch.setattr(jittok, "bundled", lambda name, **options: asked.append(options) or original(name, **options))
    given = ["corpus", str(tmp_path / "a.txt"), "--vocab", "gpt-2", "--dry-run", "--out", str(tmp_path / "out")]
    assert main([*given, "--cache-bytes", "2M"]) == 0
    assert [options["cache_bytes"] for options in asked] == [2 << 20]
    assert main([*given, "--cache-bytes", "-1"]) != 0
    assert "--cache-bytes" in capsys.readouterr().err
