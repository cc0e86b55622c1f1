"""A long document that several threads encode in parts has the ids that one thread gives it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import jittok
from jittok import batch, parts
from jittok.desk import Desk
from jittok.errors import EncodingFailed
from jittok.inputs import Documents

WORDS = [
    b"word ",
    b"The next",
    b" of",
    b"  ",
    b"\n",
    b" letters",
    b"numbers 1 2 ",
    "\u00e9t\u00e9 ".encode(),
    b" it's",
    b"\xe4abcde f",
    b"abcd e",
]


def text_of(seed, size):
    random = np.random.default_rng(seed)
    return b"".join(WORDS[k] for k in random.integers(0, len(WORDS), size))


@pytest.fixture
def small(monkeypatch):
    """Documents of 1,000 bytes are shared, in parts of 300."""
    monkeypatch.setattr(batch, "LEAST", 1000)
    monkeypatch.setattr(batch, "PART", 300)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["gpt-2", "mistral", "bert", "t5"])
def test_parts_have_the_ids_of_the_whole(name):
    tok = jittok.bundled(name)
    for seed in range(6):
        text = text_of(seed, 900 + 4000 * (seed == 5)) + (
            b"<s>abcd efgh</s>[SEP]<|endoftext|> abcd efgh" * (1 + 200 * (seed & 2)) if seed & 1 else b""
        )
        whole = tok.encode_batch([text], threads=1, parse_special=True, add_special=True, errors="replace")
        for threads in (2, 3, 8):
            shared = tok.encode_batch([text], threads=threads, parse_special=True, add_special=True, errors="replace")
            assert shared == whole
            assert tok.count_batch([text], threads=threads).tolist() == tok.count_batch([text], threads=1).tolist()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["gpt-2", "mistral", "bert", "t5"])
def test_a_document_without_a_place_to_cut_has_its_ids(name, monkeypatch):
    monkeypatch.setattr(parts, "WINDOW", 100)
    tok = jittok.bundled(name)
    for text in (b"a" * 3000, "\u5b57\u00e9 ".encode() * 900, b" " * 4000, b"abcd efgh" + b"." * 4000 + b" abcd efgh"):
        for threads in (2, 3, 8):
            assert tok.encode_batch([text], threads=threads) == tok.encode_batch([text], threads=1)


def test_parts_begin_at_fragments_and_at_words_and_nowhere_twice():
    text = b"some plain words " * 100 + b"<s>" * 50 + b"x" * 700 + b" y"
    marks = [0, *range(1700, 1851, 3), 1850 + 702]
    ends = np.array(marks[1:])
    fragments = np.array(marks[:-1]), ends, np.where(np.diff(marks) == 3, 1, -1).astype(np.int32)
    docs = Documents(np.frombuffer(text, np.uint8), np.array([0]), np.array([len(text)]))
    for count in range(1, 400, 7):
        (starts, stops, tokens), first = parts.part_fragments(docs, fragments, count)
        assert starts[0] == 0
        assert stops[-1] == len(text)
        assert starts[1:].tolist() == stops[:-1].tolist()
        assert first[0] == 0
        assert first[-1] == starts.size
        assert (np.diff(first) > 0).all()
        assert len(first) <= count + 1
        new = np.setdiff1d(starts, fragments[0])
        assert all(text[at : at + 1] == b" " and text[at - 4 : at].isalpha() for at in new.tolist())
        assert new.size >= min(count // 2, 90)
        assert (tokens >= 0).sum() == 50


@pytest.mark.usefixtures("small")
def test_ids_beyond_the_room_that_was_thought_enough_are_in_order(monkeypatch):
    joined = []
    together = parts.together
    monkeypatch.setattr(parts, "together", lambda pool, arrays: joined.append(len(arrays)) or together(pool, arrays))
    monkeypatch.setattr(batch, "SPARE", 100)
    tok, text = jittok.bundled("gpt-2"), b"plain " * 3000 + b"q z j x " * 3000 + text_of(1, 3000)
    whole = tok.encode_batch([text], threads=1, errors="replace")
    for threads in (2, 3, 8):
        tok._encoder._ids_per_byte = 0.001
        assert tok.encode_batch([text], threads=threads, errors="replace") == whole
    assert len(joined) == 3
    assert min(joined) > 2


def test_several_threads_work_at_one_document(monkeypatch):
    monkeypatch.setattr(batch, "LEAST", 1000)
    counted = []
    encode = batch.Encoder._encode_fragments

    def count(self, *args):
        counted.append((args[6], threading.get_ident()))
        return encode(self, *args)

    monkeypatch.setattr(batch.Encoder, "_encode_fragments", count)
    text = b"some plain words " * 500_000
    jittok.bundled("gpt-2").encode_batch([text], threads=2)
    sizes = [size for size, _ in counted]
    assert len(sizes) == len(text) // batch.PART
    assert sum(sizes) == len(text)
    assert max(sizes) < 1.2 * batch.PART
    assert len({thread for _, thread in counted}) == 2


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("threads", [2, 3, 8])
def test_the_first_error_of_a_document_is_told(threads):
    tok, text = jittok.bundled("gpt-2"), b"some plain words " * 400
    bad = text[:2000] + b"\xf7\xbf\xbf\xbf" + text[2000:5000] + b"\xf7\xbf\xbf\xbf" + text
    for _ in range(20):
        with pytest.raises(EncodingFailed, match="document 0, offset 2000"):
            tok.encode_batch([bad], threads=threads)
    assert tok.encode_batch([text], threads=threads) == tok.encode_batch([text], threads=1)


@pytest.mark.parametrize("failing", [0, 1, 5, 9])
def test_parts_that_fail_late_do_not_stop_those_before_them(failing):
    """The part that fails is told, desks come back, and nobody waits for ever."""
    desks = [Desk() for _ in range(3)]
    free = list(desks)

    def encode(desk, part, at):
        if desk.ids.size < at + 10:
            desk.give_ids(at + 10, at)
        desk.ids[at : at + 10] = part
        time.sleep(0.002 * (part % 3))
        if part >= failing:
            raise ValueError(part)
        return at + 10

    with ThreadPoolExecutor(3) as pool:
        for room in (0, 1000, None):
            with pytest.raises(ValueError, match=f"^{failing}$"):
                parts.InOrder(10, room).run(pool, 3, encode, free.pop, free.append)
            assert set(free) == set(desks)


@pytest.mark.parametrize("room", [0, 35, 100, 1000])
def test_a_slow_part_delays_no_thread_and_changes_no_order(room):
    def encode(desk, part, at):
        if desk.ids.size < at + part:
            desk.give_ids(at + part, at)
        desk.ids[at : at + part] = part
        if part == 1:
            assert late.wait(20)
        if part == 39:
            late.set()
        return at + part

    late, expected = threading.Event(), np.repeat(np.arange(40), np.arange(40)).tolist()
    with ThreadPoolExecutor(3) as pool:
        line = parts.InOrder(40, room)
        assert line.run(pool, 3, encode, Desk, [].append).tolist() == expected
    assert line.count == len(expected)


def test_an_interrupt_stops_the_threads_behind_their_parts():
    begun = threading.Event()
    done = []

    def encode(_desk, part, at):
        begun.set()
        time.sleep(0.01)
        done.append(part)
        return at

    class Interrupted:
        """A pool whose results the caller does not live to see."""

        def submit(self, *args):
            threads.append(threading.Thread(target=args[0], args=args[1:]))
            threads[-1].start()
            return self

        def result(self):
            assert begun.wait(20)
            raise KeyboardInterrupt

    threads = []
    with pytest.raises(KeyboardInterrupt):
        parts.InOrder(10_000, 10).run(Interrupted(), 2, encode, Desk, [].append)
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    assert len(done) < 100


@pytest.mark.parametrize("name", ["gpt-2", "mistral", "bert", "t5"])
def test_one_long_document_is_read_where_it_is_to_its_end_and_no_further(name):
    """It may end anywhere in a page of memory."""
    tok, text = jittok.bundled(name), text_of(9, 100_000)
    for size in range(300_000, 304_200, 331):
        assert tok.encode_batch([text[:size]], threads=1) == tok.encode_batch([text[:size], b""], threads=1)[:1]


def test_ids_of_many_parts_are_put_together_in_order(monkeypatch):
    monkeypatch.setattr(batch, "MANY_IDS", 10)
    tok, texts = jittok.bundled("gpt-2"), [text_of(seed, 2000) for seed in range(40)]
    assert tok.encode_batch(texts, threads=3) == tok.encode_batch(texts, threads=1)
