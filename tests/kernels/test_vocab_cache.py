"""Compiled vocabularies on disk: what comes back is what was written, and damage is never believed."""

import contextlib
import json
import logging
import lzma
import mmap
import os
import pydoc
import re
import shutil
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import jittok
from jittok.cli import main
from jittok.errors import IN_MEMORY
from jittok.kernels import vocab_cache
from jittok.tokenizer import loading

VOCABS = Path(__file__).parents[1] / "data" / "vocabs"
NAMES = ["syn-wpm-cased", "syn-spm-user", "syn-ugm-plain", "syn-rwkv", "syn-bpe-rstrip", "syn-plamo2"]
TEXT = "the tokenizer, the abc \u00e9 <s> \u2581 12345"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, empty; files count as settled at once."""
    monkeypatch.setattr(vocab_cache, "cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(vocab_cache, "SETTLED", -1.0)
    return tmp_path / "cache" / "vocabularies"


def unpacked(name: str, to: Path) -> Path:
    to.write_bytes(lzma.decompress((VOCABS / f"{name}.gguf.xz").read_bytes()))
    return to


def same(a, b) -> bool:
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes() and not b.flags.writeable  # bytes: NaN too
    if isinstance(a, tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return a == b


@pytest.mark.parametrize("name", NAMES)
def test_a_kept_vocabulary_is_the_one_that_was_compiled(name, tmp_path, monkeypatch):
    path = unpacked(name, tmp_path / "a.gguf")
    first = jittok.load(path)
    expected = first.encode(TEXT, errors="replace").tolist(), first.decode(first.encode("the abc"))
    monkeypatch.setattr("jittok.vocab.load.read_vocab", None)  # nothing may read the file now
    second = jittok.load(path)
    assert (second.encode(TEXT, errors="replace").tolist(), second.decode(second.encode("the abc"))) == expected
    assert second.fingerprint == first.fingerprint
    assert second.vocab.source == str(path)
    assert same(first.arrays, second.arrays)
    for field, value in first.vocab._asdict().items():
        assert same(value, getattr(second.vocab, field)), field
    assert (second.vocab.key_bytes is second.vocab.token_bytes) == (first.vocab.key_bytes is first.vocab.token_bytes)


@pytest.mark.parametrize(
    ("name", "maker"),
    [
        ("syn-wpm-cased", "jittok.align.wordpiece.word_rules"),
        ("syn-ugm-plain", "jittok.align.unigram_normalizer.build_inert"),
    ],
)
def test_what_spans_need_is_made_once(name, maker, tmp_path, monkeypatch):
    path, text = unpacked(name, tmp_path / "a.gguf"), "the tokenizer, the \u00c9 12345  "
    expected = jittok.load(path).align(text).spans.tolist()
    monkeypatch.setattr(maker, None)  # nothing may make them now
    assert jittok.load(path).align(text).spans.tolist() == expected


def test_the_tables_of_a_normalizer_are_kept_with_a_files_encoder(tmp_path, monkeypatch):
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##a\nb")
    texts = ["aa b \u00e1 \ud55c", "\u0130a"]
    expected = [jittok.load(tmp_path).encode(text).tolist() for text in texts]
    monkeypatch.setattr("jittok.kernels.models.wpm.bert.characters", None)
    assert [jittok.load(tmp_path).encode(text).tolist() for text in texts] == expected


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says how many pages of a file a process has")
def test_pages_that_were_only_summed_are_given_back(tmp_path):
    jittok.bundled("gpt-2")
    kept = jittok.bundled("gpt-2")  # mapped now
    _, _, mapping = Path("/proc/self/smaps").read_text().partition(str(tmp_path))
    size, there = re.search(r"Size: +([0-9]+) kB.*?Rss: +([0-9]+) kB", mapping, re.DOTALL).groups()
    assert int(size) > 4000
    assert int(there) < int(size) / 4
    assert kept.encode("Hello, world").tolist() == [15496, 11, 995]


def test_threads_may_share_a_kept_vocabulary_from_its_first_text_on(tmp_path):
    path = unpacked("syn-bpe-rstrip", tmp_path / "a.gguf")
    expected = jittok.load(path).encode(TEXT, errors="replace").tolist()
    shared, together = jittok.load(path), threading.Barrier(8)
    found = []

    def encode() -> None:
        together.wait()
        found.append(shared.encode(TEXT, errors="replace").tolist())

    threads = [threading.Thread(target=encode) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_the_same_bytes_elsewhere_and_in_memory_are_the_same_vocabulary(tmp_path, monkeypatch):
    path = unpacked("syn-wpm-cased", tmp_path / "a.gguf")
    content = path.read_bytes()
    jittok.load(path)
    (tmp_path / "b.gguf").write_bytes(content)
    monkeypatch.setattr("jittok.vocab.load.read_vocab", None)
    assert jittok.load(tmp_path / "b.gguf").vocab.source == str(tmp_path / "b.gguf")
    assert jittok.load(content).vocab.source == IN_MEMORY


def test_a_changed_file_is_another_vocabulary(tmp_path):
    path = unpacked("syn-wpm-cased", tmp_path / "a.gguf")
    first = jittok.load(path)
    assert jittok.load(unpacked("syn-spm-user", path)).type == "spm"
    assert jittok.load(unpacked("syn-wpm-cased", path)) == first


def taken(source) -> str | None:
    """The key of a GGUF file that is read."""
    return loading._take_gguf(source, True, None, None)[0]()


def test_a_larger_file_is_known_by_its_header(tmp_path, monkeypatch):
    path = unpacked("syn-wpm-cased", tmp_path / "a.gguf")
    key, size = taken(path), path.stat().st_size
    with path.open("ab") as file:
        file.write(b"weights")
    assert taken(path) == taken(path.read_bytes()) != key
    monkeypatch.setattr(loading, "WHOLE", size)
    assert taken(path) == taken(path.read_bytes()) == taken(bytearray(path.read_bytes())) == key
    monkeypatch.setattr(loading, "WHOLE", size - 1)
    assert taken(path) is taken(path.read_bytes()) is None, "a larger header is read each time"


def kept_file(folder: Path) -> Path:
    (found,) = folder.glob("*-encoder.vocab")
    return found


@pytest.mark.parametrize("where", [0, 30, 40, 100, 0.3, 0.5, 0.999])
def test_a_flipped_bit_is_noticed_and_mended(where, tmp_path, folder, caplog):
    path = unpacked("syn-wpm-cased", tmp_path / "a.gguf")
    ids = jittok.load(path).encode(TEXT).tolist()
    place = kept_file(folder)
    whole = place.read_bytes()
    at = where if isinstance(where, int) else int(where * len(whole))
    place.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
    with caplog.at_level(logging.WARNING):
        assert jittok.load(path).encode(TEXT).tolist() == ids
    assert "compiled vocabulary ignored" in caplog.text
    assert place.read_bytes() == whole


@pytest.mark.parametrize("length", [0, 10, 60, 2000, -64, -1])
def test_a_file_cut_short_is_noticed_and_mended(length, tmp_path, folder):
    path = unpacked("syn-wpm-cased", tmp_path / "a.gguf")
    ids = jittok.load(path).encode(TEXT).tolist()
    place = kept_file(folder)
    whole = place.read_bytes()
    place.write_bytes(whole[:length])
    assert jittok.load(path).encode(TEXT).tolist() == ids
    assert place.read_bytes() == whole


def test_exchanged_pages_are_noticed():
    block = np.arange(1 << 20, dtype=np.uint64).view(np.uint8)
    other = block.copy()
    other[4096:8192], other[8192:12288] = block[8192:12288], block[4096:8192]
    assert vocab_cache._sum([(0, block)]) != vocab_cache._sum([(0, other)])


def test_parts_have_the_sum_of_the_block_that_they_make():
    draw = np.random.default_rng(5)
    sizes = [0, 3, 8, 64, 8 * vocab_cache.ROW, 8 * vocab_cache.ROW + 5, 100_003, 8]
    parts = [draw.integers(0, 256, size).astype(np.uint8) for size in sizes]
    places = np.cumsum([0, *(-(-size // 64) * 64 for size in sizes)]).tolist()
    block = np.zeros(places.pop(), np.uint8)
    for part, start in zip(parts, places, strict=True):
        block[start : start + part.size] = part
    assert vocab_cache._sum(zip(places, parts, strict=True)) == vocab_cache._sum([(0, block)])


@pytest.mark.parametrize("kind", ["subprocess:Popen", "jittok.tokenizer.loading:load", "jittok.errors:JittokError"])
def test_only_structures_of_this_package_are_built(kind):
    with pytest.raises(vocab_cache.Damaged):
        vocab_cache._build({"type": kind, "fields": {}}, [])


def test_another_version_of_the_package_compiles_anew(tmp_path, folder, monkeypatch):
    path = unpacked("syn-wpm-cased", tmp_path / "a.gguf")
    jittok.load(path)
    old = kept_file(folder).read_bytes()
    monkeypatch.setattr(vocab_cache, "stamp", lambda: "another")
    jittok.load(path)
    assert kept_file(folder).read_bytes() != old


def test_without_the_cache_nothing_is_written(tmp_path, folder):
    jittok.load(unpacked("syn-wpm-cased", tmp_path / "a.gguf"), cache=False).encode(TEXT)
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_bytes(b"")
    path = unpacked("syn-wpm-cased", tmp_path / "a.gguf")
    monkeypatch.setattr(vocab_cache, "cache_dir", lambda: tmp_path / "file" / "below")
    with caplog.at_level(logging.WARNING):
        assert jittok.load(path).type == "wpm"
    assert "not kept" in caplog.text
    monkeypatch.setattr(vocab_cache, "cache_dir", lambda: None)
    assert jittok.load(path).type == "wpm"


def test_the_command_lists_and_clears(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("jittok.kernels.jit.store.cache_dir", vocab_cache.cache_dir)
    path = unpacked("syn-wpm-cased", tmp_path / "a.gguf")
    assert main(["cache", "warm", "--vocab", str(path)]) == 0
    assert "wpm" in capsys.readouterr().out
    assert main(["cache", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["files"]
    kinds = {row["kind"] for row in rows}
    assert kinds - {"kernel"} == {"vocabulary", "path"}  # a kernel too where one had to be compiled
    assert [row["of"].split()[0] for row in rows if row["path"].endswith("-encoder.vocab")] == ["wpm"]
    assert main(["cache", "list"]) == 0
    listed = capsys.readouterr().out
    assert f"{len(rows)} files" in listed
    assert "\nmachine code: " in listed
    assert main(["cache", "clear"]) == 0
    assert f"{len(rows)} files" in capsys.readouterr().out
    assert vocab_cache.entries() == []
    assert main(["cache", "list", "--vocab", "gpt-2"]) == 2


def words_file(path: Path, words: str, padding: int = 0) -> Path:
    """A tokenizer.json whose words have the ids 0, 1, ..."""
    model = {"type": "WordLevel", "vocab": {word: token for token, word in enumerate(words)}, "unk_token": words[-1]}
    root = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "WhitespaceSplit"}, "model": model}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(root) + " " * padding)
    return path


CONTENTS = {"gguf": ("syn-wpm-cased", "syn-spm-user"), "json": ("abu", "bau"), "folder": ("abu", "bau")}


def two_sources(kind: str, home: Path) -> list[Path]:
    """Two files, or folders, in folders of their own."""
    made = []
    for k, name in enumerate(CONTENTS[kind]):
        (home / str(k)).mkdir(parents=True)
        if kind == "gguf":
            made.append(unpacked(name, home / str(k) / "a.gguf"))
        elif kind == "json":
            made.append(words_file(home / str(k) / "a.json", name))
        else:
            made.append(words_file(home / str(k) / "a" / "tokenizer.json", name).parent)
            (made[-1] / "tokenizer_config.json").write_text("{}")
    return made


OPENED = (
    "jittok.vocab.gguf.os.open",
    "jittok.vocab.gguf.os.preadv",
    "jittok.tokenizer.loading.load_arrays",
)
"""Where a file may be exchanged: when it is opened, when it is read, when the cache is asked."""


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("moment", OPENED)
def test_what_is_kept_under_a_name_was_made_of_these_bytes(kind, number, moment, tmp_path, monkeypatch):
    """The folder above is exchanged, A, B, A, which changes no time of a file: at one moment and back at the next."""
    first, other = two_sources(kind, tmp_path)
    link, count = tmp_path / "now", 0
    link.symlink_to(first.parent)
    path, original = link / first.name, pydoc.locate(moment)
    text = "a b Hello"
    right = [jittok.load(each, cache=False).encode(text).tolist() for each in (first, other)]
    assert right[0] != right[1]

    def lead_to(source):
        link.unlink()
        link.symlink_to(source.parent)

    def exchanging(*args, **kwargs):
        nonlocal count
        count += 1
        lead_to(other if count > number else first)
        try:
            return original(*args, **kwargs)
        finally:
            lead_to(first)

    with monkeypatch.context() as patch:
        patch.setattr(moment, exchanging)
        with contextlib.suppress(jittok.MalformedVocab, OSError):
            assert jittok.load(path).encode(text).tolist() in right
    for source, ids in zip((first, other), right, strict=True):
        lead_to(source)
        assert jittok.load(source).encode(text).tolist() == ids
        assert jittok.load(path).encode(text).tolist() == ids


@pytest.mark.parametrize("kind", ["gguf", "json"])
def test_a_file_written_to_while_it_is_loaded_is_kept_as_it_was_read(kind, tmp_path, monkeypatch):
    first, other = (path.read_bytes() for path in two_sources(kind, tmp_path / "sources"))
    path, recall = tmp_path / f"a.{kind}", loading.load_arrays
    path.write_bytes(first)

    def written(key, name):
        path.write_bytes(other)
        return recall(key, name)

    with monkeypatch.context() as patch:
        patch.setattr(loading, "load_arrays", written)
        answer = jittok.load(path).encode("a b").tolist()
    assert answer == jittok.load(first, cache=False).encode("a b").tolist()
    for content in (first, other):
        path.write_bytes(content)
        assert jittok.load(path).encode("a b").tolist() == jittok.load(content, cache=False).encode("a b").tolist()


@pytest.mark.parametrize("kind", ["gguf", "json"])
@pytest.mark.parametrize("larger", [False, True])
def test_memory_that_others_write_to_is_copied_before_it_is_hashed(kind, larger, tmp_path, monkeypatch):
    """Such as a mapped file, or shared memory."""
    first, other = (path.read_bytes() for path in two_sources(kind, tmp_path))
    size = max(len(first), len(other))
    first, other = first.ljust(size, b" "), other.ljust(size, b" ")
    memory, recall = mmap.mmap(-1, size), loading.load_arrays
    memory[:] = first
    if larger and kind == "gguf":
        monkeypatch.setattr(loading, "WHOLE", size - 1)

    def written(key, name):
        memory[:] = other
        return recall(key, name)

    with monkeypatch.context() as patch:
        patch.setattr(loading, "load_arrays", written)
        answer = jittok.load(memory).encode("a b").tolist()
    assert answer == jittok.load(first, cache=False).encode("a b").tolist()
    assert jittok.load(first).encode("a b").tolist() == answer
    assert jittok.load(other).encode("a b").tolist() == jittok.load(other, cache=False).encode("a b").tolist()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no modes of files")
def test_a_file_that_others_can_write_to_is_not_known_by_its_times(tmp_path, monkeypatch):
    """Who has mapped it changes it without changing its times, on some file systems for as long as it is mapped."""
    path = unpacked("syn-wpm-cased", tmp_path / "a.gguf")
    monkeypatch.setattr(vocab_cache, "SETTLED", -1e9)
    for mode, known in ((0o644, True), (0o664, False), (0o646, False), (0o600, True)):
        path.chmod(mode)
        jittok.load(path)
        assert (vocab_cache.known_name(str(path)) is not None) == known


def test_folders_with_a_file_too_large_to_be_kept_are_read_each_time(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "WHOLE", 1000)
    folders = [words_file(tmp_path / words / "tokenizer.json", words, 1000).parent for words in ("abu", "bau")]
    for _ in range(2):
        assert [jittok.load(folder).encode("a b").tolist() for folder in folders] == [[0, 1], [1, 0]]


def test_of_a_folder_only_the_files_of_a_tokenizer_are_looked_at(tmp_path, folder):
    words_file(tmp_path / "model" / "tokenizer.json", "abu")
    (tmp_path / "model" / "notes.txt").write_text("private")
    jittok.load(tmp_path / "model")
    assert list(folder.glob("*-encoder.vocab")), "a folder is kept"
    assert not any(b"notes.txt" in link.read_bytes() for link in folder.glob("*.path"))


def test_a_file_that_is_exchanged_while_it_is_hashed_gets_no_name_of_the_other(tmp_path, monkeypatch):
    """The folder around it comes back to its place, which changes no time of the file."""
    monkeypatch.setattr(vocab_cache, "SETTLED", -1e9)
    first, other = two_sources("gguf", tmp_path)
    link, remember = tmp_path / "now", loading.remember
    link.symlink_to(other.parent)

    def back(*args):
        link.unlink()
        link.symlink_to(first.parent)
        remember(*args)

    monkeypatch.setattr(loading, "remember", back)
    path = str(link / first.name)
    assert taken(path) == vocab_cache.name_of(other.read_bytes())
    assert vocab_cache.known_name(path) is None
    assert taken(path) == vocab_cache.known_name(path) == vocab_cache.name_of(first.read_bytes())


def test_the_tables_of_characters_are_part_of_the_stamp(tmp_path, monkeypatch):
    tables = shutil.copytree(vocab_cache.TABLES, tmp_path / "unicode")
    monkeypatch.setattr(vocab_cache, "TABLES", tables)
    before = vocab_cache.stamp.__wrapped__()
    assert before == vocab_cache.stamp()
    for path in sorted(tables.glob("*.npz")):
        path.write_bytes(path.read_bytes() + b" ")
        after = vocab_cache.stamp.__wrapped__()
        assert after != before
        before = after


def test_the_sum_of_words_wraps_around_without_a_warning():
    """Warnings are errors here; a part that ends within a word adds its last bytes to one column."""
    full = np.full(8 * vocab_cache.ROW, 255, np.uint8)
    odd = np.full(7, 255, np.uint8)
    twice = [(0, full), (0, odd), (0, full), (0, odd)]
    assert vocab_cache._sum(twice) == vocab_cache._sum(reversed(twice)) != vocab_cache._sum(twice[:2])
