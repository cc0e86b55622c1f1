"""What comes from outside: numbers are bounded or refused, and of names nothing is printed that a terminal obeys."""

import json
import os

import numpy as np
import pytest

import jittok
from jittok.compare.result import Comparison, Parting, Side
from jittok.encode.threads.stretches import thread_count
from jittok.errors import CorpusError
from jittok.train.counting.count import How
from jittok.train.counting.counts import MOST_COUNT, Counts, summed
from jittok.train.counting.files import count_files


@pytest.mark.parametrize("size", [1 << 40, (1 << 63) - 1, 1 << 63, 1 << 200])
def test_a_cache_is_never_larger_than_the_machine(size):
    tok = jittok.bundled("gpt-2", cache_bytes=size)
    assert tok.decode(tok.encode("any text at all")) == "any text at all"


@pytest.mark.parametrize("threads", [3000, 1 << 62, 1 << 80])
def test_no_more_threads_work_than_there_are_cores(threads):
    assert thread_count(threads) == thread_count(None)
    tok = jittok.bundled("gpt-2")
    texts = ["a text of some words " * 3000] * 40
    assert tok.encode_batch(texts, threads=threads) == tok.encode_batch(texts, threads=1)


def test_counts_whose_pairs_do_not_fit_64_bits_are_refused(tmp_path):
    word = b"a" * 1000
    assert Counts.of({word: MOST_COUNT // 1000 - 1}).total == MOST_COUNT // 1000 - 1
    with pytest.raises(ValueError, match=r"bytes in all occurrences together, expected fewer than"):
        Counts.of({word: MOST_COUNT // 1000 + 1000})
    with pytest.raises(ValueError, match="together"):
        Counts(np.frombuffer(word * 2, np.uint8), np.array([0, 1000, 2000]), np.full(2, MOST_COUNT // 1500))
    (tmp_path / "words.txt").write_text(f"{MOST_COUNT // 100}\t{'a' * 1000}\n")
    with pytest.raises(CorpusError, match="together"):
        Counts.load(tmp_path / "words.txt")
    half = Counts.of({word: MOST_COUNT // 1500})
    with pytest.raises(CorpusError, match="together"):
        summed([half, half])
    with pytest.raises(CorpusError, match="together"):
        half + half


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_work_folder_that_is_a_link_is_not_followed(tmp_path):
    """Whoever may write beside it lets it lead to a folder of the user, whose files would be deleted at the end."""
    (tmp_path / "text.txt").write_text("a text")
    (tmp_path / "mine").mkdir()
    (tmp_path / "work").symlink_to("mine")
    with pytest.raises(CorpusError, match=r"work: found a link, expected a folder"):
        count_files([tmp_path / "text.txt"], How(), work=tmp_path / "work")
    assert list((tmp_path / "mine").iterdir()) == []


RAW = "\x1b]0;owned\x07\x1b[2J\u202e"


def test_nothing_that_is_printed_of_a_comparison_is_a_command_to_a_terminal():
    side = Side(f"name{RAW}\nsecond", f"llama.cpp{RAW}", RAW, 1, 1.0)
    parting = Parting(RAW, [RAW], [RAW], [1], [2], 1, f"cause{RAW}", f"script{RAW}", 0, f"file{RAW}\n", 0)
    found = Comparison(side, side, 1, 1, 1, [0], 1, {RAW: 1}, {RAW: 1}, [parting], notes=[RAW])
    for printed in (str(found), repr(found)):
        assert not set(printed) & set("\x1b\x07\u202e")
    assert "name\\x1b]0;owned\\x07\\x1b[2J\\u202e\\nsecond" in str(found)


def test_nothing_that_is_printed_of_tokenizers_made_of_foreign_names_is_a_command():
    tok = jittok.bundled("gpt-2")
    odd = jittok.Tokenizer(tok.vocab._replace(name=f"x{RAW}", architecture=RAW))
    texts = ["Hello world", f"a {RAW} b"]
    for printed in (
        repr(odd),
        str(jittok.compare(odd, tok, texts)),
        str(odd.trace(texts[1])),
        repr(odd.trace(texts[1])),
    ):
        assert not set(printed) & set("\x1b\x07\u202e"), printed


class BytesPath:
    """A path of a class of one's own."""

    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return os.fsencode(self.path)


def test_what_is_no_argument_of_load_is_told_so():
    tokens = [5, [1], {"a": "b"}, {1: 2}, {"a": True}]
    for wrong in ({"pre": 5}, {"pattern": 5}, {"encoding": []}, *({"special_tokens": each} for each in tokens)):
        (name,) = wrong
        for source in (b"YQ== 0\n", b"GGUF"):
            with pytest.raises(TypeError, match=f"{name}: found .*, expected"):
                jittok.load(source, **wrong)
    with pytest.raises(ValueError, match="expected a name without NUL"):
        jittok.load("a\0b")


def test_a_path_that_is_bytes_is_a_path(tmp_path):
    model = {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "b"}
    (tmp_path / "a.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))
    for cache in (True, False):
        assert jittok.load(BytesPath(tmp_path / "a.json"), cache=cache).encode("a").tolist() == [0]


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="no file that cannot be read")  # noqa: PTH110
@pytest.mark.parametrize("cache", [True, False])
def test_an_error_of_the_system_names_the_file(cache):
    with pytest.raises((OSError, jittok.MalformedVocab), match="/proc/self/mem"):
        jittok.load("/proc/self/mem", cache=cache)
