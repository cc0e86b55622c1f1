"""Merges: against the plain reference, Hugging Face's recorded ones, and Hugging Face itself where it is installed."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import random
import sys
import time
import tracemalloc
from collections import Counter as Tally
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import jittok
from jittok.errors import CorpusError, UnsupportedVocab
from jittok.kernels.jit import CHECKED, JIT
from jittok.reference.train import bpe as train_bpe
from jittok.train.bpe import Learned, Options, byte_weights, train_counts
from jittok.train.counting.count import count
from jittok.train.counting.counts import Counts, to_bytes, to_text

RECORDED = Path(__file__).parents[1] / "data" / "training" / "hf-bpe.jsonl.xz"
SHARED = Path(os.environ.get("JITTOK_SHARED") or Path(__file__).resolve().parents[3] / "shared")
WHOLE = SHARED / "golden" / "training" / "hf-bpe.jsonl.xz"
interpreted_is_slow = pytest.mark.skipif(not JIT, reason="minutes without the compiler")


def learned(texts: Any, threshold: int | None = None, **options: Any) -> Learned:
    chosen = Options(**options)
    special = () if chosen.like == "hf" else chosen.special
    return train_counts(count(texts, pre=chosen.pre, special=special, threads=1), chosen, threshold=threshold)


def check_recorded(row: dict[str, Any], texts: list[str]) -> None:
    made, expected = learned(texts, like="hf", **row["options"]), row["expected"]
    pairs = made.merges.pairs.astype("<i4")
    if expected.get("pairs") is not None:
        assert pairs.reshape(-1).tolist() == expected["pairs"]
        assert made.merges.counts.tolist() == expected["counts"]
    assert len(pairs) == expected["merges"]
    assert hashlib.sha256(pairs.tobytes()).hexdigest() == expected["sha256_merges"]
    assert hashlib.sha256(json.dumps(made.texts).encode()).hexdigest() == expected["sha256_tokens"]


def rows(path: Path) -> list[dict[str, Any]]:
    with lzma.open(path, "rt") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize("row", rows(RECORDED), ids=lambda row: row["name"])
def test_merges_are_those_that_hugging_face_was_recorded_to_make(row: dict[str, Any]) -> None:
    if not JIT and row["expected"]["merges"] > 30:
        pytest.skip("slow without the compiler")
    check_recorded(row, row["texts"])


@pytest.mark.recorded_elsewhere
@pytest.mark.skipif(not WHOLE.exists(), reason="no large recorded sets beside the checkout (or in $JITTOK_SHARED)")
@pytest.mark.skipif(not JIT or CHECKED, reason="trains on whole corpora")
def test_merges_of_corpora_are_those_that_hugging_face_was_recorded_to_make() -> None:
    corpora: dict[str, list[str]] = {}
    seen = 0
    for row in rows(WHOLE):
        where = row.get("corpus")
        if not where:
            continue
        name = where["name"]
        if name not in corpora:
            corpora[name] = [line["text"] for line in rows(SHARED / "corpora" / f"{name}.jsonl.xz")]
        texts = corpora[name][where["first"] : where["last"]]
        check_recorded(row, [text for k, text in enumerate(texts, where["first"]) if k not in where["without"]])
        seen += 1
    assert seen > 30


def reference(texts: list[str], **options: Any) -> tuple[list[str], list[train_bpe.MergeStep]]:
    pre = options.pop("pre", "gpt-2")
    return train_bpe.learn(train_bpe.count_words([text.encode() for text in texts], pre), **options)


def check_reference(texts: list[str], threshold: int | None, **options: Any) -> None:
    made = learned(texts, threshold, like="hf", **options)
    options["longest"] = options.pop("max_token_length", None)
    names, steps = reference(texts, **options)
    assert made.texts == names
    found = zip(
        made.merges.pairs.tolist(),
        made.merges.ids.tolist(),
        made.merges.counts.tolist(),
        made.merges.done.tolist(),
        strict=True,
    )
    assert [(a, b, c, n, done) for (a, b), c, n, done in found] == [tuple(step) for step in steps]


TEXTS = st.lists(st.text(st.sampled_from("aab -1é日\n"), max_size=40), max_size=5)
SPECIAL = st.sampled_from([(), ("<s>",), ("aa", "ab"), ("Ġa", "aab", "b"), ("a", "a")])


@given(
    TEXTS, st.integers(0, 40), SPECIAL, st.integers(0, 3), st.sampled_from([None, 1, 2, 3, 5]),
    st.sampled_from(["bytes", "seen"]), st.sampled_from([None, 1, 2, 50]),
)  # fmt: skip
@settings(max_examples=max(4, settings.default.max_examples // 5))
@example(["abababab aaaa aaa", "aaaaaaa"], 30, (), 0, None, "seen", None)
@example(["ab" * 30], 12, ("ab",), 0, None, "seen", 50)
def test_merges_ids_and_counts_are_those_of_the_reference(
    texts: list[str], more: int, special: tuple[str, ...], least: int, longest: int | None, alphabet: str,
    threshold: int | None,
) -> None:  # fmt: skip
    size = more if alphabet == "seen" else 256 + len(special) + more
    check_reference(
        texts, threshold, size=size, pre="gpt-2", special=special, min_frequency=least, max_token_length=longest,
        alphabet=alphabet,
    )  # fmt: skip


@pytest.mark.parametrize("pre", ["llama-bpe", "qwen2", "deepseek-v3", "smollm"])
def test_merges_under_other_splitters_are_those_of_the_reference(pre: str) -> None:
    texts = ["Hello World, 12345 times: it's\n\n  done!\t", "日本語 and déjà vu " * 3, "x = [1, 2]\r\n    y"]
    check_reference(texts, None, size=290, pre=pre)


def test_hello_world() -> None:
    """The walkthrough's example: nine letters, pairs that all count one, so that ids decide; then ranks."""
    made = jittok.train(["Hello World!"], size=14, pre="gpt-2", alphabet="seen")
    facts = json.loads((Path(__file__).parents[1] / "data" / "walkthroughs.json").read_text("utf-8"))["bpe_training"]
    assert made.learned.texts[:9] == sorted("Ġ" if letter == " " else letter for letter in facts["alphabet"])
    words = dict(count(["Hello World!"], pre="gpt-2", threads=1).items())
    assert words == {b"Hello": 1, b" World": 1, b"!": 1}
    pairs = Tally((word[k : k + 1] + word[k + 1 : k + 2]) for word in words for k in range(len(word) - 1))
    within = {pair: n for pair, n in facts["pairs_within_words"].items() if "!" not in pair}
    assert {pair.decode(): n for pair, n in pairs.items() if pair != b" W"} == within
    assert made.merges == [(b"H", b"e"), (b"W", b"o"), (b"l", b"d"), (b"l", b"l"), (b"r", b"ld")]
    assert [row["count"] for row in made.trace()] == [1] * len(made.merges)
    ranks = made.tokenizer.vocab.merges
    assert [ranks[a, b] for a, b in ((b"H", b"e"), (b"W", b"o"))] == [0, 1]
    assert made.tokenizer.decode(made.tokenizer.encode("Hello World!").tolist()) == "Hello World!"


def test_a_smaller_size_is_a_prefix_of_a_larger_one() -> None:
    texts = ["the cat and the other cat sat on the mat " * 3, "there they are"]
    large = learned(texts, size=300, pre="qwen2")
    small = learned(texts, size=270, pre="qwen2")
    assert large.cut(270).texts == small.texts
    assert (large.cut(270).merges.pairs == small.merges.pairs).all()
    assert (np.diff(large.merges.counts) <= 0).all()


def test_thresholds_do_not_change_a_merge() -> None:
    texts = ["".join(random.Random(k).choices("abcd  ", k=300)) for k in range(20)]
    found = [learned(texts, threshold, size=400, pre="gpt-2") for threshold in (None, 1, 7, 500)]
    for other in found[1:]:
        assert (other.merges.pairs == found[0].merges.pairs).all()
        assert (other.merges.counts == found[0].merges.counts).all()
        assert (other.merges.done == found[0].merges.done).all()


def test_own_rule_takes_special_texts_out_and_means_the_longest_token() -> None:
    made = jittok.train(["<|end|>abab<|end|>abab"], size=270, special=["<|end|>"], max_token_length=2, threads=1)
    assert made.merges == [(b"a", b"b")]
    hf = jittok.train(["<|end|>abab<|end|>abab"], size=270, special=["<|end|>"], like="hf", pre="gpt-2", threads=1)
    assert any(b"<" in left + right for left, right in hf.merges)
    assert jittok.train(["abab"], size=270, max_token_length=1, threads=1).merges == []


def test_a_special_token_that_a_merge_makes_shares_its_id_and_is_told() -> None:
    made = jittok.train(["the the then"], size=262, special=["the"], like="hf", pre="gpt-2")
    assert made.learned.texts.count("the") == 1
    assert "share id 0" in " ".join(made.warnings)


def test_limit_alphabet_keeps_the_most_frequent_bytes_and_joins_what_stood_around_others() -> None:
    made = jittok.train(["abxab abab y"], size=20, alphabet="seen", limit_alphabet=3, pre="gpt-2")
    assert sorted(made.learned.texts[:3]) == sorted(["a", "b", "Ġ"])
    assert (b"ab", b"ab") in made.merges


def test_byte_weights_are_sums_over_occurrences() -> None:
    counts = Counts.of({b"aab": 3, b"b": 5, b"\xff": 1})
    assert {byte: int(n) for byte, n in enumerate(byte_weights(counts)) if n} == {97: 6, 98: 8, 255: 1}


@interpreted_is_slow
def test_byte_weights_take_little_memory_whatever_the_words() -> None:
    number, size = 100_000, 9
    words = np.frombuffer(random.Random(5).randbytes(number * size), np.uint8)
    counts = Counts(words, np.arange(number + 1) * size, np.full(number, 3))
    byte_weights(counts)  # a compiler would take more
    tracemalloc.start()
    sums = byte_weights(counts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sums.tolist() == (3 * np.bincount(words, minlength=256)).tolist()
    assert peak < 10 << 20


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"size": 100}, CorpusError, "found 100, expected 257 or more: 1 special tokens and 256 bytes"),
        ({"size": 300, "pre": "qwen9"}, UnsupportedVocab, "found 'qwen9', expected one of"),
        ({"size": 300, "pre": "gemma4"}, UnsupportedVocab, "expected a pre-tokenizer of byte-level BPE"),
        ({"size": -1}, CorpusError, "size: found -1"),
        ({"size": 300, "like": "spm"}, CorpusError, "one of jittok, hf"),
        ({"size": 300, "eos": "</s>"}, CorpusError, "eos: found '</s>', expected a special token: <s>"),
        ({"size": 300, "sample": 0}, CorpusError, "a share above 0"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        jittok.train(["some text"], special=["<s>"], **options)
    with pytest.raises(
        TypeError,
        match=r"^train\(\) got an unexpected keyword argument 'colour': expected size=, .*special=, .*threads=",
    ):
        jittok.train(["some text"], size=300, colour=1)


def test_what_ends_a_training_early_is_told() -> None:
    assert "no pair is left" in jittok.train(["ab"], size=300).warnings[0]
    said = jittok.train(["ab ab ab"], size=300, min_frequency=50).warnings[0]
    assert "the best pair left counts 3, below min_frequency 50" in said


def test_the_alphabet_of_bytes_goes_both_ways() -> None:
    every = bytes(range(256))
    assert to_bytes(to_text(every)) == every
    with pytest.raises(ValueError, match="encodes no byte"):
        to_bytes("日")


@interpreted_is_slow
@pytest.mark.parametrize(
    ("words", "size"),
    [
        (["a" * 10**6], 1000),
        (["ab" * 500_000], 1000),
        (["a" * n for n in range(1, 1000)], 2000),
        ([" ".join(f"{i * 2654435761 % 2**40:x}" for i in range(200_000))], 5000),
        (["".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=10**6))], 20_000),
        (["".join(chr(0x100 + a) + chr(0x100 + b) for a in range(256) for b in range(256))], 70_000),
    ],
    ids=["one letter", "two letters", "runs", "words of one count", "random letters", "all pairs"],
)
def test_worst_cases_end_and_no_count_rises(words: list[str], size: int) -> None:
    made = learned(words, size=size, pre="gpt-2")
    assert made.merges.ids.size > 8
    assert (np.diff(made.merges.counts) <= 0).all()


@interpreted_is_slow
def test_merges_are_those_that_hugging_face_makes() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    chosen = random.Random(2611)
    for _ in range(150):
        letters = chosen.choice(["ab", "aab", "abc", "aé", "日本語本", "aaaa", "abcdefgh", "ab1-"])
        texts = [
            chosen.choice([" ", "", " \n"]).join(
                "".join(chosen.choices(letters, k=chosen.choice([1, 2, 3, 6, 15])))
                for _ in range(chosen.randint(0, 20))
            )
            for _ in range(chosen.randint(1, 5))
        ]  # fmt: skip
        special = chosen.choice([(), ("<|end|>",), ("ab", "<x>"), ("Ġa", "abab")])
        size, least = 256 + len(special) + chosen.choice([0, 1, 5, 30, 80]), chosen.choice([0, 1, 2, 5])
        tok = tokenizers.Tokenizer(tokenizers.models.BPE())
        tok.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=size, min_frequency=least, special_tokens=list(special), show_progress=False,
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        )  # fmt: skip
        tok.train_from_iterator(texts, trainer)
        model = json.loads(tok.to_str())["model"]
        made = learned(texts, size=size, pre="gpt-2", like="hf", min_frequency=least, special=special)
        assert {text: token for token, text in enumerate(made.texts)} == model["vocab"]
        assert [[made.texts[a], made.texts[b]] for a, b in made.merges.pairs.tolist()] == [
            list(m) for m in model["merges"]
        ]


def test_importing_the_package_does_not_import_training() -> None:
    assert callable(jittok.train)
    assert "jittok.train" in sys.modules


def _all_pairs(size: int) -> dict[bytes, int]:
    return {bytes([a, b]) * (size >> 17): 1 for a in range(256) for b in range(256)}


WORST: dict[str, Any] = {
    "one word of one letter": lambda size: {b"a" * size: 1},
    "words of one count": lambda size: {b"%06x" % (k * 2654435761 % (1 << 24)): 7 for k in range(size // 4)},
    "random bytes": lambda size: {random.Random(1).randbytes(size): 1},
    "all pairs": _all_pairs,
}


@pytest.mark.skipif(not JIT or CHECKED, reason="time of machine code")
@pytest.mark.parametrize("name", WORST)
def test_time_is_linear_in_the_bytes_of(name: str) -> None:
    took = []
    for size in (1 << 18, 1 << 20):
        words = Counts.of(WORST[name](size))
        times = []
        for _ in range(2):
            start = time.process_time()
            train_counts(words, Options(4000))
            times.append(time.process_time() - start)
        took.append(min(times))
    assert took[1] < 10 * took[0] + 0.3  # four times the bytes; a square of them would be 16 times


@interpreted_is_slow
def test_learning_takes_little_more_memory_than_the_words_as_symbols() -> None:
    chosen = np.random.default_rng(5)
    starts = np.append(0, np.cumsum(chosen.integers(4, 12, 200_000)))
    words = chosen.integers(ord("0"), ord("z") + 1, int(starts[-1])).astype(np.uint8)
    counts = Counts(words, starts, chosen.integers(1, 9, 200_000))
    train_counts(counts, Options(size=9_000))  # a compiler would take more
    tracemalloc.start()
    made = train_counts(counts, Options(size=9_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert made.size == 9_000
    assert peak < 15 * (words.size + len(counts))
