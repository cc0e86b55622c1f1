"""Counted words cut into parts: against plain Python, and in little memory."""

from __future__ import annotations

import io
import time
import tracemalloc
from collections import Counter as Tally
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jittok.common.unicode.tables import code_points
from jittok.kernels.jit import JIT
from jittok.train.counting import characters, table
from jittok.train.counting.characters import (
    ALONE,
    ANY,
    BEGINS,
    ENDS,
    GONE,
    SAME,
    CharacterWords,
    WordParts,
    characters_of,
    characters_of_texts,
)
from jittok.train.counting.counter import flat_words
from jittok.train.counting.counts import Counts
from jittok.train.spm import SpmOptions, marked_words, train_spm
from jittok.train.wordpiece import classified, learn_wordpiece, train_wordpiece

KINDS = {"a": 1, "é": 1, "я": 2, "1": ANY, "́": SAME, "!": ALONE, "日": ALONE, "▁": BEGINS, "\0": GONE, " ": ENDS}
BECOMES = {"a": "A", "я": "\U0001f600"}
WORDS = st.dictionaries(st.text(st.sampled_from([*KINDS]), max_size=9), st.integers(1, 1 << 40), max_size=30)


def plain(word: str) -> list[str]:
    """The parts of a word."""
    found, last = [""], SAME
    for c in word:
        kind = KINDS[c]
        if kind == GONE:
            continue
        free = {ANY, SAME}
        if kind in (ENDS, ALONE, BEGINS) or last == ALONE or (last != kind and not {last, kind} & (free | {BEGINS})):
            found.append("")
        last = SAME if kind == ENDS else kind
        found[-1] += "" if kind == ENDS else BECOMES.get(c, c)
    return [part for part in found if part]


@given(WORDS, st.integers(1, 40))
@settings(max_examples=100 if JIT else 40)
def test_parts_of_words_are_those_of_plain_python(words: dict[str, int], block: int) -> None:
    wanted: Tally[bytes] = Tally()
    for word, number in words.items():
        for part in plain(word):
            wanted[part.encode()] += number
    given_ = Counts.of(words)
    asked: list[int] = []

    def classify(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        asked.extend(points.tolist())
        texts = [chr(c) for c in points.tolist()]
        return np.array([KINDS[c] for c in texts]), np.array([ord(BECOMES.get(c, c)) for c in texts])

    made = WordParts(classify)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(characters, "BLOCK", block)
        made.add(given_.words, given_.starts, given_.counts)
    assert made.found().to_dict() == wanted
    assert sorted(asked) == sorted(map(ord, set("".join(words))))
    weights = dict(zip(*(column.tolist() for column in made.characters().weights()), strict=True))
    assert weights == Tally({c: n for c, n in _characters(wanted).items() if n})


def _characters(words: dict[bytes, int]) -> Tally[int]:
    found: Tally[int] = Tally()
    for word, number in words.items():
        for c in word.decode():
            found[ord(c)] += number
    return found


def test_half_a_character_at_the_end_of_a_word_is_not_joined_with_the_next_word() -> None:
    halves = [b"a\xc3", b"\xa9b", b"c"]
    wanted = ["a\ufffd", "\ufffdb", "c"]
    made = WordParts(lambda points: (np.full(points.size, SAME), points))
    made.add(*flat_words(halves), np.array([1, 2, 3]))
    assert made.found().to_dict() == {text.encode(): n for n, text in enumerate(wanted, 1)}
    found = characters_of(Counts.of(dict.fromkeys(halves, 1)))
    assert "".join(map(chr, found.points.tolist())) == "".join(wanted)
    assert found.starts.tolist() == [0, 2, 4, 5]


@pytest.mark.skipif(not JIT, reason="a million characters")
def test_words_are_cut_in_little_memory_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "RESERVED", 1 << 14)  # addresses, which are no memory
    names = ["".join(letters) for letters in product("abcdefgh", repeat=3)]
    texts = [f"call_{a}(value_{b},{a})" for a, b in product(names, names)]
    words = Counts.of(Tally(texts))
    options = SpmOptions(1000)
    marked_words(words, options)  # compiled, and caches filled
    tracemalloc.start()
    found = marked_words(words, options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.points.size < words.words.size
    assert peak < 8 * words.words.size  # 28 times if all are cut at once
    train_wordpiece(None, 300, words=words)
    start = time.process_time()
    made = train_wordpiece(None, 300, words=words)
    assert time.process_time() - start < 3  # 0.3; 13 with a loop of Python over characters
    assert "value" in made.texts


def words_of(text: str, lowercase: bool = True, strip_accents: bool = True) -> list[str]:
    """BERT's words of a text that has no U+2581, one character after the other."""
    points = np.array(code_points(text.encode("utf-8", "replace")), np.int64)
    found, open_ = list[str](), False
    for kind, c in np.transpose(classified(points, lowercase, strip_accents)).tolist():
        if kind == GONE:
            continue
        if kind not in (ALONE, ENDS) and open_:
            found[-1] += chr(c)
        elif kind != ENDS:
            found.append(chr(c))
        open_ = kind not in (ALONE, ENDS)
    return found


def counted_words(words: list[str]) -> CharacterWords:
    sums = Tally(words)
    return characters_of_texts(list(sums), np.fromiter(sums.values(), np.int64, len(sums)))


@given(st.text(st.sampled_from("aÉ b,日\u0301\0x+")))
@settings(max_examples=max(4, settings.default.max_examples // 5))
def test_words_of_bert_are_the_parts(text: str) -> None:
    made = train_wordpiece([text], 80, special=("[UNK]",), threads=1)
    assert made.texts == learn_wordpiece(counted_words(words_of(text)), 80, ("[UNK]",)).texts


def test_words_of_bert() -> None:
    assert words_of("Déjà vu,日本 x+y") == ["deja", "vu", ",", "日", "本", "x", "+", "y"]
    assert words_of("Déjà", lowercase=False, strip_accents=False) == ["Déjà"]


def test_a_symbol_with_the_mark_of_a_word_is_taken_out_as_in_sentencepiece() -> None:
    spm = pytest.importorskip("sentencepiece")
    lines, size = ["the theory of the thing, then", "another the there", "these <s> and </s>b"] * 5, 34
    out = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, vocab_size=size, model_type="bpe", byte_fallback=False,
        normalization_rule_name="identity", num_threads=1, minloglevel=2, user_defined_symbols=["▁the", "h"],
    )  # fmt: skip
    theirs = spm.SentencePieceProcessor(model_proto=out.getvalue())
    ours = train_spm(lines, size, threads=1, byte_fallback=False, user_defined=("▁the", "h"))
    assert ours.pieces == [theirs.id_to_piece(k) for k in range(theirs.get_piece_size())]
