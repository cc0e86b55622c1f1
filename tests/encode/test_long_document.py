"""A long document that several threads encode in parts has the ids that one thread gives it."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from made_up import MADE_UP

import jittok
from jittok.encode import encoder, limits
from jittok.encode.buffers import Workspace
from jittok.encode.threads import batch, long_document, stretches
from jittok.errors import EncodingFailed, JittokError
from jittok.kernels.inputs import Documents, containers
from jittok.kernels.models import rwkv, ugm
from jittok.kernels.safe_cuts.rules import no_cuts

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

FOLDER = os.environ.get("JITTOK_VOCABS")
WHOLE = {
    *("syn-bpe-holes", "syn-hybriddna", "syn-kimi"),  # outside the families
    *("syn-whitespace", "syn-whitespace-lower", "syn-plamo2"),
    *("syn-plamo2-plain", "syn-plamo2-bos-eos", "syn-plamo3", "syn-plamo3-eos", "syn-mmbert", "syn-mmbert-ignore"),
    *("syn-ugm-space", "syn-ugm-user"),  # a space before each part; letters that are rewritten
    *("syn-ugm-space-nfc", "syn-ugm-user-nfc"),
}
"""Vocabularies whose documents no model says may be cut."""


def may_part(tok, size):
    model, arrays = tok._encoder.model, tok._encoder.arrays
    return hasattr(model, "can_split_at_spaces") and model.can_split_at_spaces(arrays, size)


def answer(tok, text, threads, rules):
    """Rows of ids, or what failed."""
    try:
        return tok.encode_batch([text], threads=threads, **rules).to_list()
    except EncodingFailed as error:
        return str(error)


def text_of(seed, size):
    random = np.random.default_rng(seed)
    return b"".join(WORDS[k] for k in random.integers(0, len(WORDS), size))


@pytest.fixture
def small(monkeypatch):
    """Documents of 1,000 bytes are shared, in parts of 300."""
    monkeypatch.setattr(limits, "LEAST_BYTES", 1000)
    monkeypatch.setattr(limits, "PART_BYTES", 300)


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
@pytest.mark.parametrize("name", MADE_UP)
def test_parts_of_every_made_up_vocabulary_have_the_ids_of_the_whole(name, made_up):
    tok = made_up(name)
    assert may_part(tok, 1 << 20) == (name not in WHOLE)
    for seed in range(3):
        text = text_of(seed, 400) + b"a b ab ABCD Efgh " * (40 * seed)
        for rules in ({}, {"parse_special": True, "errors": "replace"}):
            answers = [answer(tok, text, threads, rules) for threads in (1, 2, 3, 8)]
            assert answers[1:] == 3 * answers[:1]


@pytest.mark.usefixtures("small")
@pytest.mark.skipif(FOLDER is None, reason="JITTOK_VOCABS names no folder of vocabularies")
def test_parts_of_every_vocabulary_in_a_folder_have_the_ids_of_the_whole():
    for path in sorted(Path(FOLDER).glob("*.gguf")):
        tok = jittok.load(path)
        if may_part(tok, 1 << 20):
            text = text_of(7, 1500) + b"<s>the end</s><|endoftext|> of it " * 9 + text_of(8, 300)
            for rules in ({}, {"parse_special": True, "errors": "replace"}):
                assert answer(tok, text, 3, rules) == answer(tok, text, 1, rules), path.stem


def test_unigram_is_cut_only_where_that_is_proved():
    arrays = jittok.bundled("t5")._encoder.arrays
    assert ugm.can_split_at_spaces(arrays, arrays.cut_limit)
    assert not ugm.can_split_at_spaces(arrays, arrays.cut_limit + 1)
    assert not ugm.can_split_at_spaces(arrays._replace(spaces=arrays.spaces._replace(merge=0)), 9)
    assert ugm.can_split_at_spaces(arrays._replace(spaces=arrays.spaces._replace(merge=0, prepend=0)), 9)
    crossed = arrays.rules.crossings.copy()
    crossed[(ord("e") << 8 | ord(" ")) >> 6] |= np.uint64(1) << np.uint64((ord("e") << 8 | ord(" ")) & 63)
    assert not ugm.can_split_at_spaces(arrays._replace(rules=arrays.rules._replace(crossings=crossed)), 9)
    apart = arrays.rules.apart.copy()
    apart[-1] = ord("Q")
    assert not ugm.can_split_at_spaces(arrays._replace(rules=arrays.rules._replace(apart=apart)), 9)
    assert not ugm.can_split_at_spaces(arrays._replace(rules=no_cuts()), 9)


@pytest.mark.parametrize("token", [b"e t", b"Z ", b"\\x61\\x20b", b". q z"])
def test_rwkv_is_cut_only_where_no_token_reaches_across(token, vocab_of):
    assert rwkv.can_split_at_spaces(
        rwkv.compile_pipeline(vocab_of([b"a", b" the", b"  ", b". ", b"1 ", b"_ a"], type="rwkv").pipeline), 9
    )
    assert not rwkv.can_split_at_spaces(
        rwkv.compile_pipeline(vocab_of([b"a", b" the", token], type="rwkv").pipeline), 9
    )


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["gpt-2", "mistral", "bert", "t5"])
def test_a_document_without_a_place_to_cut_has_its_ids(name, monkeypatch):
    monkeypatch.setattr(long_document, "SEARCH_BYTES", 100)
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
        (starts, stops, tokens), first = long_document.part_fragments(docs, fragments, count)
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
    together = long_document.joined_parts
    monkeypatch.setattr(
        long_document, "joined_parts", lambda pool, arrays: joined.append(len(arrays)) or together(pool, arrays)
    )
    for module in (batch, encoder):
        monkeypatch.setattr(module, "SPARE_IDS", 100)
    tok, text = jittok.bundled("gpt-2"), b"plain " * 3000 + b"q z j x " * 3000 + text_of(1, 3000)
    whole = tok.encode_batch([text], threads=1, errors="replace")
    for threads in (2, 3, 8):
        tok._encoder.ids_per_byte = 0.001
        assert tok.encode_batch([text], threads=threads, errors="replace") == whole
    assert len(joined) == 3
    assert min(joined) > 2


def test_several_threads_work_at_one_document(monkeypatch):
    monkeypatch.setattr(limits, "LEAST_BYTES", 1000)
    counted = []
    encode = encoder.Encoder.encode_fragments

    def count(self, *args):
        counted.append((args[6], threading.get_ident()))
        return encode(self, *args)

    monkeypatch.setattr(encoder.Encoder, "encode_fragments", count)
    text = b"some plain words " * 500_000
    jittok.bundled("gpt-2").encode_batch([text], threads=2)
    sizes = [size for size, _ in counted]
    assert len(sizes) == 8
    assert sum(sizes) == len(text)
    assert max(sizes) < 1.1 * len(text) / 8
    assert len({thread for _, thread in counted}) == 2


@pytest.mark.parametrize("call", ["encode", "count"])
def test_one_long_text_is_shared_by_threads_as_well(monkeypatch, call):
    tok, text = jittok.bundled("gpt-2"), b"some plain words " * 260_000
    assert len(text) > limits.LEAST_BYTES
    seen, caller, both = [], threading.get_ident(), threading.Barrier(2, timeout=60)
    encode = encoder.Encoder.encode_fragments

    def see(self, *args):
        me = threading.get_ident()
        is_new = me not in seen
        seen.append(me)
        if is_new and me != caller:
            both.wait()  # one alone may be through with all parts before the other begins
        return encode(self, *args)

    monkeypatch.setattr(encoder.Encoder, "encode_fragments", see)
    whole = getattr(tok, call)(text, threads=1)
    assert set(seen) == {threading.get_ident()}
    seen.clear()
    assert np.array_equal(getattr(tok, call)(text, threads=2), whole)
    assert threading.get_ident() not in seen
    assert len(set(seen)) == 2
    seen.clear()
    getattr(tok, call)(text[: limits.LEAST_BYTES - 1], threads=2)
    assert set(seen) == {threading.get_ident()}  # a shorter one is not worth it


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["gpt-2", "mistral", "bert", "t5"])
def test_one_text_has_the_same_ids_for_any_number_of_threads(monkeypatch, name):
    monkeypatch.setattr(limits, "LONG_TEXT", 1000)
    monkeypatch.setattr(batch, "thread_count", lambda threads: threads or 3)
    tok = jittok.bundled(name)
    text = text_of(11, 900) + b"<s>abcd efgh</s>[SEP]<|endoftext|> abcd efgh"
    rules = {"parse_special": True, "add_special": True, "errors": "replace"}
    alone = tok.encode(text, threads=1, **rules)
    for threads in (None, 2, 8):
        found = tok.encode(text, threads=threads, **rules)
        assert found.dtype == alone.dtype
        assert found.tolist() == alone.tolist()
        assert found.flags.writeable == alone.flags.writeable
        assert tok.count(text, threads=threads, **rules) == alone.size


@pytest.mark.usefixtures("small")
def test_the_first_error_of_one_text_is_told():
    tok, text = jittok.bundled("gpt-2", llama_cpp="0.3.36"), b"some plain words " * 400
    bad = text[:2000] + b"\xf7\xbf\xbf\xbf" + text[2000:] + b"\xf7\xbf\xbf\xbf"
    for threads in (1, 3):
        with pytest.raises(EncodingFailed, match="document 0, offset 2000"):
            tok.encode(bad, threads=threads)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("threads", [2, 3, 8])
def test_the_first_error_of_a_document_is_told(threads):
    tok, text = jittok.bundled("gpt-2", llama_cpp="0.3.36"), b"some plain words " * 400
    bad = text[:2000] + b"\xf7\xbf\xbf\xbf" + text[2000:5000] + b"\xf7\xbf\xbf\xbf" + text
    for _ in range(20):
        with pytest.raises(EncodingFailed, match="document 0, offset 2000"):
            tok.encode_batch([bad], threads=threads)
    assert tok.encode_batch([text], threads=threads) == tok.encode_batch([text], threads=1)


@pytest.mark.parametrize("failing", [0, 1, 5, 9])
def test_parts_that_fail_late_do_not_stop_those_before_them(failing):
    """The part that fails is told, workspaces come back, and no one waits for ever."""
    workspaces = [Workspace() for _ in range(3)]
    free = list(workspaces)

    def encode(workspace, part, at):
        if workspace.ids.size < at + 10:
            workspace.grow_ids(at + 10, at)
        workspace.ids[at : at + 10] = part
        time.sleep(0.002 * (part % 3))
        if part >= failing:
            raise JittokError(part)
        return at + 10

    with ThreadPoolExecutor(3) as pool:
        for room in (0, 1000, None):
            with pytest.raises(JittokError, match=f"^{failing}$"):
                long_document.InOrder(None if room is None else lambda room=room: room).run(
                    pool, 3, range(10), encode, free.pop, free.append
                )
            assert set(free) == set(workspaces)


@pytest.mark.parametrize("room", [0, 35, 100, 1000])
def test_a_slow_part_delays_no_thread_and_changes_no_order(room):
    def encode(workspace, part, at):
        if workspace.ids.size < at + part:
            workspace.grow_ids(at + part, at)
        workspace.ids[at : at + part] = part
        if part == 1:
            assert late.wait(100)
        if part == 39:
            late.set()
        return at + part

    late, expected = threading.Event(), np.repeat(np.arange(40), np.arange(40)).tolist()
    with ThreadPoolExecutor(3) as pool:
        line = long_document.InOrder(lambda: room)
        assert line.run(pool, 3, range(40), encode, Workspace, [].append).tolist() == expected
    assert line.count == len(expected)


def test_an_interrupt_stops_the_threads_behind_their_parts():
    begun = threading.Event()
    done = []

    def encode(_desk, part, at):
        begun.set()
        time.sleep(0.01)
        done.append(part)
        return at

    class Pool:
        def submit(self, *args):
            threads.append(threading.Thread(target=args[0], args=args[1:]))
            threads[-1].start()

    def jobs():
        yield from range(100)
        assert begun.wait(100)
        raise KeyboardInterrupt

    threads = []
    with pytest.raises(KeyboardInterrupt):
        long_document.InOrder(lambda: 10).run(Pool(), 2, jobs(), encode, Workspace, [].append)
    for thread in threads:
        thread.join(100)
        assert not thread.is_alive()
    assert 90 < len(done) <= 100


@pytest.mark.parametrize("name", ["gpt-2", "mistral", "bert", "t5"])
def test_one_long_document_is_read_where_it_is_to_its_end_and_no_further(name):
    """It may end anywhere in a page of memory."""
    tok, text = jittok.bundled(name), text_of(9, 100_000)
    for size in range(300_000, 304_200, 331):
        assert tok.encode_batch([text[:size]], threads=1) == tok.encode_batch([text[:size], b""], threads=1)[:1]


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_ids_of_many_stretches_are_put_together_in_order(threads, monkeypatch):
    monkeypatch.setattr(limits, "STRETCH_MIN", 3000)
    monkeypatch.setattr(containers, "PART_BYTES", 40_000)
    tok, texts = jittok.bundled("gpt-2"), [b"", *(text_of(seed, 100 * seed) for seed in range(60)), b"", b""]
    texts[30:30] = [b""] * 2000
    rules = {"add_special": True, "errors": "replace"}
    whole = tok.encode_batch(texts, threads=1, **rules)
    for given in (texts, iter(texts), jittok.Ragged(b"".join(texts), np.cumsum([0, *map(len, texts)]))):
        assert tok.encode_batch(given, threads=threads, **rules) == whole
    tok._encoder.ids_per_byte = 0.0001
    assert tok.encode_batch(texts, threads=threads, progress=True, **rules) == whole


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_the_first_error_of_many_stretches_is_told(threads, monkeypatch):
    monkeypatch.setattr(limits, "STRETCH_MIN", 3000)
    monkeypatch.setattr(containers, "PART_BYTES", 40_000)
    tok, texts = jittok.bundled("gpt-2", llama_cpp="0.3.36"), [b"some plain words " * 100] * 200

    def broken(first):
        yield from first
        raise OSError("cannot be read")

    bad = [*texts[:90], b"x \xf7\xbf\xbf\xbf", *texts[:50], b"\xf7\xbf\xbf\xbf", *texts, *texts, *texts]
    for _ in range(5):
        with pytest.raises(EncodingFailed, match="document 90, offset 2"):
            tok.encode_batch(bad, threads=threads)
        with pytest.raises(EncodingFailed, match="document 90, offset 2"):
            tok.encode_batch(broken(bad), threads=threads)
        with pytest.raises(OSError, match="cannot be read"):
            tok.encode_batch(broken(4 * texts), threads=threads)
    assert tok.encode_batch(texts, threads=threads) == tok.encode_batch(texts, threads=1)


def test_a_model_is_not_asked_again_whether_documents_may_be_cut(monkeypatch):
    monkeypatch.setattr(limits, "LEAST_BYTES", 1000)
    tok, asked = jittok.bundled("gpt-2"), []

    def shorter_than_5000(_arrays, size):
        asked.append(size)
        return size < 5000

    monkeypatch.setattr(tok._encoder.model, "can_split_at_spaces", shorter_than_5000)
    for size, worth in ((3000, True), (2000, True), (999, False), (6000, False), (9000, False), (4999, True)):
        ends = np.array([size])
        docs = Documents(np.zeros(size, np.uint8), np.zeros(1, np.int64), ends)
        assert batch._is_long(tok._encoder, stretches.Stretch(docs, 0, 0, 1)) == worth
    assert asked == [3000, 6000, 4999]
