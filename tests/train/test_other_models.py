"""SPM-BPE and WordPiece: against sentencepiece, Hugging Face and plain references."""

from __future__ import annotations

import io
import json
import random
from collections import Counter as Tally
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jittok
from jittok.errors import CorpusError
from jittok.kernels.jit import JIT
from jittok.reference.train import spm as reference
from jittok.train.counting.characters import characters_of_texts
from jittok.train.spm import CONTROL, SpmOptions, train_spm
from jittok.train.unigram import train_unigram
from jittok.train.wordpiece import SPECIAL, learn_wordpiece, train_wordpiece

ROOT = Path(__file__).parents[2]
interpreted_is_slow = pytest.mark.skipif(not JIT, reason="encodes whole files")


def documents() -> list[str]:
    files = [*sorted((ROOT / "jittok" / "reference").glob("*.py")), *sorted(ROOT.glob("*.md"))]
    return [path.read_text("utf-8") for path in files] + [
        "日本語のテキスト、日本語 déjà vu déjà 12345 naïve ナイーブ\tx\n" * 4,
        "a▁mark ends▁ a ▁ word ▁▁mark\n<s>symbols</s> are<unk>no text<0x0A>here\n" * 9,
    ]


@pytest.mark.parametrize(
    ("size", "more"),
    [
        (700, {}),
        (1500, {"split_digits": True, "character_coverage": 0.995}),
        (900, {"split_by_number": False}),
        (900, {"split_by_unicode_script": False, "user_defined": ("token",)}),
    ],
)
@interpreted_is_slow
def test_pieces_and_scores_are_sentencepieces(size: int, more: dict[str, Any], tmp_path: Path) -> None:
    spm = pytest.importorskip("sentencepiece")
    texts = documents()
    given_: dict[str, Any] = {{"user_defined": "user_defined_symbols"}.get(k, k): v for k, v in more.items()}
    given_ = {k: ",".join(v) if isinstance(v, tuple) else v for k, v in given_.items()}
    out, lines = io.BytesIO(), [line for text in texts for line in text.split("\n")]
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, vocab_size=size, model_type="bpe", byte_fallback=True,
        normalization_rule_name="identity", num_threads=1, minloglevel=2, **given_,
    )  # fmt: skip
    theirs = spm.SentencePieceProcessor(model_proto=out.getvalue())
    ours = train_spm(texts, size, threads=1, **more)
    assert ours.pieces == [theirs.id_to_piece(k) for k in range(theirs.get_piece_size())]
    assert ours.scores == [theirs.get_score(k) for k in range(size)]
    pytest.importorskip("google.protobuf")
    ours.save(tmp_path / "x.model")
    again = spm.SentencePieceProcessor(model_file=str(tmp_path / "x.model"))
    lines = [line for text in texts[:4] for line in text.split("\n") if "  " not in line and line.strip() == line]
    assert again.encode(lines) == theirs.encode(lines)
    if not more.get("user_defined"):
        assert ours.tokenizer.encode_batch(lines).to_list() == theirs.encode(lines)


@pytest.mark.parametrize("model", ["bpe", "unigram"])
@pytest.mark.parametrize("coverage", [0.98, 0.9995])
def test_symbols_and_their_character_are_counted_as_sentencepiece_does(model: str, coverage: float) -> None:
    """What is for a symbol is a character, before all others that are as frequent; a text's own is that, too."""
    spm = pytest.importorskip("sentencepiece")
    symbols = {"control": ("<pad>", "qq"), "user_defined": ("zz", "##")}
    given_ = {f"{name}_symbols": ",".join(texts) for name, texts in symbols.items()}
    for seed in (24, *range(6), 43) if JIT else (24,):
        chosen = random.Random(seed)
        rare = ["zz", "qq", "<s>", "##", "\x1f", *"xyéè漢"]
        text = "".join(chosen.choices([*"aab  bc1\n" * 9, *rare], k=chosen.choice((100, 300)))) + "\nab ab"
        size, out = 278 if model == "bpe" else 20, io.BytesIO()
        spm.SentencePieceTrainer.train(
            sentence_iterator=iter(text.split("\n")), model_writer=out, vocab_size=size, model_type=model,
            byte_fallback=model == "bpe", normalization_rule_name="identity", num_threads=1, minloglevel=3,
            character_coverage=coverage, hard_vocab_limit=False, **given_,
        )  # fmt: skip
        theirs = spm.SentencePieceProcessor(model_proto=out.getvalue())
        train: Any = train_spm if model == "bpe" else partial(train_unigram, slices=1)
        ours = train([text], size, threads=1, character_coverage=coverage, **symbols)
        assert ours.pieces == [theirs.id_to_piece(k) for k in range(len(theirs))]
        assert ours.scores == [theirs.get_score(k) for k in range(len(theirs))]


@given(st.lists(st.text(st.sampled_from("aab 1"), max_size=30), max_size=5), st.integers(0, 25))
@settings(max_examples=max(4, settings.default.max_examples // 5))
def test_pieces_are_those_of_the_reference(texts: list[str], more: int) -> None:
    words = Tally("▁" + word for text in texts for word in text.split(" ") if word)
    characters = {c for word in words for c in word}
    made = train_spm(texts, 3 + len(characters) + more, threads=1, byte_fallback=False, character_coverage=1.0)

    def valid(text: str) -> bool:
        return len(text) <= 16 and "▁" not in text[1:] and len({c.isdigit() for c in text if c != "▁"}) < 2

    assert made.pieces[3 : len(made) - len(characters)] == reference.learn(words, more, valid)


def test_a_text_that_another_pair_made_is_dropped() -> None:
    texts = ["abc" * 3, "xab bcx c ab bc abc"] * 3
    words = Tally("▁" + word for text in texts for word in text.split(" ") if word)
    made = train_spm(texts, 30, threads=1, byte_fallback=False, character_coverage=1.0, max_piece_length=3)
    assert len(set(made.pieces)) == len(made.pieces)
    assert made.pieces[3 : len(made) - 5] == reference.learn(words, 22, lambda t: len(t) <= 3 and "▁" not in t[1:])


def test_options_of_pieces_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"found 100, expected 26\d or more: 259 symbols and bytes"):
        train_spm(["some text"], 100)
    made = train_spm(["some text"], 20, byte_fallback=False)
    with pytest.raises(CorpusError, match="byte_fallback"):
        made.save(tmp_path / "x.gguf")
    assert SpmOptions(5).max_piece_length == 16


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("max_piece_length", 0, "from 1 to 512"),
        ("max_piece_length", 70_000, "from 1 to 512"),
        ("max_sentence_length", -1, "from 1 to"),
        ("slices", 0, "from 1 to"),
        ("character_coverage", float("nan"), "above 0, at most 1"),
        ("character_coverage", 2.0, "above 0, at most 1"),
        ("user_defined", ("a", "a"), "found 'a', expected distinct texts"),
        ("control", ("",), "found '', expected distinct texts"),
        ("control", ("<unk>",), "found '<unk>', expected distinct texts other than <unk>"),
        ("user_defined", ("<0x0A>",), "found '<0x0A>', expected distinct texts other than .* byte tokens"),
    ],
)
def test_an_option_of_pieces_that_cannot_be_is_refused(name: str, value: Any, said: str) -> None:
    with pytest.raises(CorpusError, match=said):
        SpmOptions(300, **{name: value})


@pytest.mark.parametrize("name", ["control", "user_defined"])
def test_a_symbol_that_is_there_already_is_there_once(name: str) -> None:
    """`--special '<s>'` made a second one."""
    spm = pytest.importorskip("sentencepiece")
    text, out, symbols = "ab ab<s>abc " * 4, io.BytesIO(), ("</s>", "<x>", "<s>")
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter([text]), model_writer=out, vocab_size=267, model_type="bpe", byte_fallback=True,
        normalization_rule_name="identity", minloglevel=3, **{f"{name}_symbols": ",".join(symbols)},
    )  # fmt: skip
    theirs = spm.SentencePieceProcessor(model_proto=out.getvalue())
    ours = train_spm([text], 267, threads=1, **{name: symbols})
    assert ours.pieces == [theirs.id_to_piece(k) for k in range(len(theirs))]
    assert [k for k, kind in enumerate(ours.types) if kind == CONTROL] == [*filter(theirs.is_control, range(len(ours)))]


@interpreted_is_slow
def test_wordpiece_is_hugging_faces_where_no_tie_is_decided_by_its_random_ids() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    compared = 0
    for seed in range(40):
        chosen = random.Random(seed)
        words = ["".join(chosen.choices("abcdefgh", k=chosen.randint(1, 7))) for _ in range(60)]
        texts = [" ".join(chosen.choices(words, weights=range(1, 61), k=4000))]
        ours = train_wordpiece(texts, 30, special=("[UNK]",), threads=1)
        if len(set(ours.merges.counts.tolist())) < len(ours.merges.counts):
            continue
        tok = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
        tok.normalizer = tokenizers.normalizers.BertNormalizer()
        tok.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=30, special_tokens=["[UNK]"], show_progress=False)
        tok.train_from_iterator(texts, trainer)
        assert set(ours.texts) == set(tok.get_vocab())
        compared += 1
    assert compared > 3


@interpreted_is_slow
def test_wordpiece_files_are_read_and_cut_words_alike(tmp_path: Path) -> None:
    texts = documents()
    made = train_wordpiece(texts, 1200, threads=1)
    made.save(tmp_path / "vocab.txt")
    made.save(tmp_path / "x.gguf")
    tok = jittok.load(tmp_path / "x.gguf")
    assert (tok.type, tok.vocab_size) == ("wpm", len(made))
    assert (tok.vocab.bos_id, tok.vocab.unk_id, tok.vocab.pad_id) == (2, 1, 0)
    known = {text: token for token, text in enumerate((tmp_path / "vocab.txt").read_text("utf-8").splitlines())}
    assert [known[text] for text in SPECIAL] == [0, 1, 2, 3, 4]
    tokenizers = pytest.importorskip("tokenizers")
    theirs = tokenizers.Tokenizer(tokenizers.models.WordPiece(known, unk_token="[UNK]", max_input_chars_per_word=10**6))
    theirs.normalizer = tokenizers.normalizers.BertNormalizer()
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    plain = [text for text in texts if text.isascii()]
    assert len(plain) > 5
    assert [row.ids for row in theirs.encode_batch(plain)] == tok.encode_batch(plain).to_list()


@given(st.dictionaries(st.text(st.sampled_from("abc"), min_size=1, max_size=8), st.integers(1, 9), max_size=8))
@settings(max_examples=max(4, settings.default.max_examples // 5))
def test_wordpiece_merges_are_plain_ones(words: dict[str, int]) -> None:
    found = characters_of_texts(list(words), np.fromiter(words.values(), np.int64, len(words)))
    made = learn_wordpiece(found, 40, ("[UNK]",))
    lines = [([word[0], *("##" + c for c in word[1:])], n) for word, n in words.items()]
    ids = {text: k for k, text in enumerate(made.texts)}
    for a, b in made.merges.pairs.tolist():
        pairs: Tally[tuple[str, str]] = Tally()
        for line, n in lines:
            for pair in pairwise(line):
                pairs[pair] += n
        best = min(pairs, key=lambda pair: (-pairs[pair], ids[pair[0]], ids[pair[1]]))
        assert best == (made.texts[a], made.texts[b])
        for line, _ in lines:
            at = 0
            while at < len(line) - 1:
                if (line[at], line[at + 1]) == best:
                    line[at : at + 2] = [best[0] + best[1].removeprefix("##")]
                at += 1
    assert json.dumps(made.texts)


def test_what_berts_tokenizer_reads_in_another_way_is_told(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    plain, odd = "déjà vu x+y, 日本 naïve", ["हिन्दी", "한국", "x" * 101]
    made = train_wordpiece([plain, "x" * 100], 120, threads=1)
    assert all("no pair is left" in said for said in made.warnings)
    made = train_wordpiece([plain, *odd], 150, threads=1)
    said = "\n".join(made.warnings)
    assert "such as U+093F, U+0940, U+AD6D" in said
    assert "4 of the " in said
    assert "1 words have more than 100 characters" in said
    made.save(tmp_path / "vocab.txt")
    theirs = tokenizers.BertWordPieceTokenizer(str(tmp_path / "vocab.txt"))
    ours = made.tokenizer
    same = [theirs.encode(text, add_special_tokens=False).ids == ours.encode(text).tolist() for text in [plain, *odd]]
    assert same == [True, False, False, False]
    kept = train_wordpiece(["한국 हि"], 60, threads=1, strip_accents=False)
    assert all("no pair is left" in told for told in kept.warnings)


def test_a_word_start_in_the_text_is_in_no_wordpiece_token(tmp_path: Path) -> None:
    made = train_wordpiece(["mark \u2581mark a\u2581mark x\u2581", "mark mark"], 60, threads=1)
    assert not any("\u2581" in text for text in made.texts)
    made.save(tmp_path / "x.gguf")
    assert jittok.load(tmp_path / "x.gguf").vocab_size == len(made)
