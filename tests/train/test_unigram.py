"""Unigram: its parts and the whole against the plain reference and against sentencepiece."""

from __future__ import annotations

import io
import math
import random
import re
from collections import Counter as Tally
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import jittok
from jittok.errors import CorpusError
from jittok.kernels.jit import F32, JIT, OutF32, OutF64, kernel
from jittok.reference.train import unigram as reference
from jittok.train import unigram
from jittok.train.counting.count import count
from jittok.train.counting.counter import flat_words
from jittok.train.counting.counts import Counts
from jittok.train.counting.lines import normalized, read_charsmap
from jittok.train.spm import UNKNOWN_MARK, SpmOptions, piece_kinds, train_spm
from jittok.train.unigram import UnigramStep, followed_of, lattice, sentences, train_unigram
from jittok.train.unigram.sentences import Sentences, sentences_of, text_order

ROOT = Path(__file__).parents[2]
ODD = (
    "\ufb01ne \uff21\uff22\uff23 \xbd \u2460\u2461 \xc5\u0308 \uff76\uff9e\uff77\uff9e \ud55c\uad6d Stra\xdfe "
    "\u0130stanbul\tx\u200b y\xa0z \u2177 \ufdfa\u1c89\u1c8a \ua66e\u1cf7a\u0301 x\u3000y\n"
) * 9
"""Characters that the maps change, and some newer than sentencepiece's table of scripts."""
LINES = st.lists(st.text(st.sampled_from("aabcé1è "), min_size=1, max_size=25), min_size=1, max_size=5)


def read(lines: list[str]) -> list[str]:
    """Sentences of lines, in the order sentencepiece has them."""
    found = ["".join("▁" + word for word in line.split(" ") if word) for line in lines if line]
    at = 0
    while at < len(found):
        if found[at]:
            at += 1
        else:
            found[at] = found[-1]
            found.pop()
    return found


def valid(text: str) -> bool:
    kinds = {"digit" if c.isdigit() else "latin" for c in text if c != "▁"}
    return len(text) <= 16 and "▁" not in text[1:] and len(kinds) < 2


def options_of(size: int, **more: Any) -> SpmOptions:
    return SpmOptions(size, byte_fallback=False, character_coverage=1.0, **more)


@given(LINES)
@example(["ab ab", " ", "ab", "  "])
@example(["xé", "xè", "xé", "xè"])
@settings(max_examples=60 if JIT else 15)
def test_seeds_are_those_of_the_reference(lines: list[str]) -> None:
    sentences = read(lines)
    if not sentences:
        return
    options = options_of(0)
    model = unigram.seed_model(sentences_of(count(lines, how=followed_of(options, 1)), options), options)
    found = list(zip(model.texts(), model.scores.tolist(), strict=True))
    assert found == reference.seeds(sentences, valid)


@given(LINES, st.integers(1, 5), st.integers(0, 12))
@settings(max_examples=40 if JIT else 8)
def test_pieces_and_scores_are_those_of_the_reference(lines: list[str], slices: int, more: int) -> None:
    sentences = read(lines)
    if not sentences:
        return
    required = sorted(set("".join(sentences)), key=lambda c: (-sum(map(c.__class__.count, sentences, [c] * 5)), c))
    counts = {c: sum(sentence.count(c) for sentence in sentences) for c in required}
    required.sort(key=lambda c: (-counts[c], c))
    size, steps, log = 3 + len(required) + more, [], []
    wanted = reference.train(sentences, size, valid, required, slices=slices, log=log)
    made = train_unigram(lines, size, threads=1, slices=slices, character_coverage=1.0, log=steps.append)
    assert list(zip(made.pieces, made.scores, strict=True))[3:] == wanted
    assert [tuple(step) for step in steps] == log


@kernel
def log_sums(tables: lattice.ExponentTables, x: F32, y: F32, out: OutF32) -> int:
    """Of all pairs."""
    for k in range(x.size):
        out[k] = lattice.log_sum(tables, x[k], y[k])
    return 0


@kernel
def exps(tables: lattice.ExponentTables, x: F32, out: OutF64) -> int:
    """Of all numbers."""
    for k in range(x.size):
        out[k] = lattice.exp(tables, x[k])
    return 0


def test_tables_are_as_good_as_the_c_library() -> None:
    draw = np.random.default_rng(1)
    size = 20000 if JIT else 200
    x = (-60 * draw.random(size)).astype(np.float32)
    y = np.where(draw.random(size) < 0.5, x - 3 * draw.random(size), -90 * draw.random(size)).astype(np.float32)
    out, whole = np.empty(size, np.float32), np.empty(size)
    log_sums(lattice.tables(), x, y, out)
    assert out.tolist() == [float(reference.log_sum(a, b)) for a, b in zip(x, y, strict=True)]
    exps(lattice.tables(), x, whole)
    assert whole == pytest.approx([math.exp(a) for a in x.tolist()], rel=5e-16)


def test_digamma_is_the_derivative_of_log_gamma() -> None:
    x = np.array([0.5, 1.0, 3.7, 50.0])
    step = 1e-5
    slope = [(math.lgamma(each + step) - math.lgamma(each - step)) / (2 * step) for each in x.tolist()]
    assert unigram.digamma(x) == pytest.approx(slope, abs=1e-6)
    assert unigram.digamma(x).tolist() == [reference.digamma(each) for each in x.tolist()]


def test_a_size_below_the_characters_is_refused_and_too_large_a_one_is_told() -> None:
    with pytest.raises(CorpusError, match=r"found 5, expected 11 or more: 3 symbols and 8 characters"):
        train_unigram(["abcdefg"], 5)
    made = train_unigram(["ab ab ab abc"], 500, threads=1)
    assert "no others are left" in made.warnings[0]
    assert made.scores[3:] == sorted(made.scores[3:], reverse=True)


def test_the_last_line_is_kept_with_counts(tmp_path: Path) -> None:
    options = options_of(0)
    lines = ["xy ab", "ab", " ", "cd ab  ", "last one", "\t", "  ", ""]
    found = count(lines, how=followed_of(options, 1))
    assert found.last == read(lines)[-1].rpartition("▁")[2].encode()
    found.save(tmp_path / "x.words")
    assert Counts.load(tmp_path / "x.words").last == found.last
    assert (found + count(["new"], how=followed_of(options, 1))).last == b"new"


def test_lines_are_read_as_sentencepiece_reads_them() -> None:
    lines = ["a b  \r\r", "is ▅ left out", "x" * 5000, "ends ▁▁ ▁", "nul\0 \x1f here", "   ", "<s>b ▁c"]
    found = sentences_of(count(["\n".join(lines)], how=followed_of(options_of(0), 1)), options_of(0))
    words = [
        "".join(map(chr, found.characters[found.text[i:j]])) for i, j in zip(found.ends, found.ends[1:], strict=False)
    ]
    assert sorted(words) == sorted(["▁a", "▁b", "▁ends", "▁nul▅", "▁▅", "▁here", "▁▅b", "▁", "▁c"])


def trained_there(spm: Any, lines: list[str], capfd: Any, **more: Any) -> tuple[Any, list[tuple[str, ...]]]:
    """sentencepiece's model, and the lines of its log."""
    out = io.BytesIO()
    capfd.readouterr()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, model_type="unigram", minloglevel=0, **more
    )
    log = re.findall(r"sub_iter=(\d+) size=(\d+) obj=(\S+) num_tokens=(\d+)", capfd.readouterr().err)
    return spm.SentencePieceProcessor(model_proto=out.getvalue()), log


@pytest.mark.skipif(not JIT, reason="trains on whole files")
@pytest.mark.parametrize(
    ("size", "slices", "normalization"), [(1500, 16, "identity"), (700, 1, "nmt_nfkc"), (900, 3, "nfkc_cf")]
)
def test_pieces_scores_and_log_are_sentencepieces(
    size: int, slices: int, normalization: str, capfd: Any, tmp_path: Path
) -> None:
    spm = pytest.importorskip("sentencepiece")
    if spm.__version__ < "0.2.3":
        pytest.skip("older versions train by other rules")
    pytest.importorskip("google.protobuf")
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "jittok").rglob("*.py"))[:70]]
    texts.append(ODD)
    random.Random(1).shuffle(texts)
    train, held = texts[:60], texts[60:]
    lines = [line for text in train for line in text.split("\n")]
    theirs, log = trained_there(
        spm, lines, capfd, vocab_size=size, num_threads=slices, normalization_rule_name=normalization
    )
    steps: list[UnigramStep] = []
    made = train_unigram(train, size, threads=1, slices=slices, normalization=normalization, log=steps.append)
    assert made.pieces == [theirs.id_to_piece(k) for k in range(size)]
    assert made.scores == [theirs.get_score(k) for k in range(size)]
    told = [(str(a), str(b), f"{c:.6g}", str(d)) for a, b, c, d in steps]
    assert told == log
    made.save(tmp_path / "x.model")
    ours = spm.SentencePieceProcessor(model_file=str(tmp_path / "x.model"))
    lines = [line for text in held for line in text.split("\n")]
    assert ours.encode(lines) == theirs.encode(lines)
    made.save(tmp_path / "x.gguf")
    tok = jittok.load(tmp_path / "x.gguf")
    assert tok.type == "ugm"
    known = [line for line in lines if 0 not in ours.encode(line)]
    for row, their_row in zip(tok.encode_batch(known).to_list(), ours.encode(known), strict=True):
        if row != their_row:  # llama.cpp adds in 64 bits, so ties may fall otherwise
            scores = [sum(made.scores[k] for k in each) for each in (row, their_row)]
            assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    last = train[-1:]  # which line is the last one counts in sentencepiece, so it counts here
    again = train_unigram(
        train[-2::-1] + last, size, threads=2, memory=1 << 20, slices=slices, normalization=normalization
    )
    assert (again.pieces, again.scores) == (made.pieces, made.scores)


@pytest.mark.skipif(not JIT, reason="trains on whole files")
def test_spm_with_a_map_is_sentencepieces(tmp_path: Path) -> None:
    spm = pytest.importorskip("sentencepiece")
    pytest.importorskip("google.protobuf")
    text = (ROOT / "README.md").read_text("utf-8") + ODD
    out, lines = io.BytesIO(), text.split("\n")
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, vocab_size=900, model_type="bpe", byte_fallback=True,
        num_threads=1, minloglevel=2,
    )  # fmt: skip
    theirs = spm.SentencePieceProcessor(model_proto=out.getvalue())
    made = train_spm([text], 900, threads=1, normalization="nmt_nfkc")
    assert made.pieces == [theirs.id_to_piece(k) for k in range(900)]
    made.save(tmp_path / "x.model")
    again = spm.SentencePieceProcessor(model_file=str(tmp_path / "x.model"))
    assert again.encode(lines) == theirs.encode(lines)
    with pytest.raises(CorpusError, match=r"llama\.cpp's SPM has no other"):
        made.save(tmp_path / "x.gguf")


def test_maps_and_names_that_cannot_be_are_refused() -> None:
    with pytest.raises(CorpusError, match="found 'nfc', expected one of identity, nfkc"):
        train_unigram(["a b"], 10, normalization="nfc")
    broken = np.array([4, 0, 0, 0, 0, 0xFC, 0xFF, 0xFF, 0], np.uint8)
    text = np.frombuffer(b"a\xe9\xffb", np.uint8)
    with pytest.raises(jittok.MalformedVocab, match="charsmap"):
        normalized(read_charsmap(broken, "x"), text, np.array([0]), np.array([4]))
    none = read_charsmap(np.array([0, 4, *[0] * 1027], np.uint8), "x")
    data, starts, stops = normalized(none, text, np.array([0, 1]), np.array([4, 2]))
    assert data[starts[0] : stops[0]].tobytes() == "a\ufffd\ufffdb".encode()
    assert data[starts[1] : stops[1]].tobytes() == "\ufffd".encode()


@given(LINES)
@settings(max_examples=40 if JIT else 15)
def test_shared_parts_are_what_no_piece_reaches_across(lines: list[str]) -> None:
    options = options_of(0)
    words = sentences_of(count(lines, how=followed_of(options, 1)), options)
    points = words.characters.tolist()
    kinds, leads = piece_kinds(words.characters, options), np.array([chr(c).encode()[0] for c in points], np.int32)
    kinds[words.characters == UNKNOWN_MARK] |= sentences.NO_PIECE
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sentences, "FIRST_SLOTS", 2)
        found = sentences.shared_parts(words, kinds, leads)
    assert found.text[found.where].tolist() == words.text.tolist()
    wanted: Tally[str] = Tally()
    behind: dict[str, set[int]] = {}
    for w, (i, j) in enumerate(pairwise(words.ends.tolist())):
        own = re.findall(r"▁?\d+|▁?[^\d▁]+|▁", "".join(chr(points[c]) for c in words.text[i:j]))
        for part, after in pairwise([*own, ""]):
            flags = int(words.flags[w])
            ends = {byte for flag, byte in ((1, 0), (2, 0xE2)) if flags & flag}
            wanted[part] += int(words.counts[w])
            behind.setdefault(part, set()).update({after.encode()[0]} if after else ends)
    for part, i, j in zip(range(len(wanted)), found.ends, found.ends[1:], strict=False):
        text = "".join(chr(points[c]) for c in found.text[i:j])
        assert found.counts[part] == wanted.pop(text)
        several = len(behind[text]) > 1
        assert found.after[part] == (sentences.SEVERAL if several else behind[text].pop())
    assert not wanted


def test_a_character_that_stands_alone_is_parted_from_both_sides() -> None:
    text, none = np.array([0, 1, 0], np.int32), np.zeros(0, np.int32)
    words = Sentences(text, np.array([0, 3]), np.array([2]), np.array([0]), np.array([97, 98]), [], none)
    kinds = np.array([sentences.ANY << 1, 1 << 17], np.int32)
    found = sentences.shared_parts(words, kinds, np.array([97, 98], np.int32))
    assert (found.text.tolist(), found.ends.tolist(), found.counts.tolist()) == ([0, 1], [0, 1, 2], [4, 2])


@given(st.lists(st.binary(max_size=3).map(lambda raw: raw * 5) | st.text("ab\0\xff", max_size=20).map(str.encode)))
@example([b"", b"\0", b"a" * 8, b"a" * 8 + b"\0", b"a" * 8, b"a" * 16, b"a" * 17, b"a" * 7 + b"b"])
@settings(max_examples=max(4, settings.default.max_examples // 5))
def test_words_are_ordered_by_all_their_bytes(words: list[bytes]) -> None:
    order, new = text_order(*flat_words(words))
    found = [words[k] for k in order.tolist()]
    assert found == sorted(words)
    assert new.tolist() == [k == 0 or found[k - 1] != word for k, word in enumerate(found)]


def test_a_symbol_with_the_mark_of_a_word_may_begin_it() -> None:
    lines = ["the theory of them", "a\u2581b the", "<s>x", "a\u2581b", "a\u2581b"]
    options = options_of(0, user_defined=("\u2581the",))
    found = sentences_of(count(lines, how=followed_of(options, 1)), options)
    texts = ["".join(chr(found.characters[c]) for c in found.text[i:j]) for i, j in pairwise(found.ends.tolist())]
    assert dict(zip(texts, found.counts.tolist(), strict=True)) == {
        "▅": 2, "▅ory": 1, "▁of": 1, "▅m": 1, "▁a": 3, "▁b": 3, "▁▅x": 1
    }  # fmt: skip
    assert texts[:3] == ["▁a", "▁b", "▅"]
    assert texts[3:] == sorted(texts[3:], key=str.encode)


def test_lines_without_a_word_are_refused() -> None:
    for texts in (["   "], ["", "\n"], [], ["▅ is left out"]):
        with pytest.raises(CorpusError, match="no characters to learn from"):
            train_unigram(texts, 20, threads=1)


def test_more_characters_than_places_of_32_bits_tell_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MOST_CHARACTERS", 5), ("STEP", 1)):
        monkeypatch.setattr(sentences, name, value)
    with pytest.raises(CorpusError, match=r"found parts of words of [\d,]+ characters, expected"):
        train_unigram(["\n".join(f"{k:05d}" for k in range(17_000 if JIT else 30))], 20, threads=1)
