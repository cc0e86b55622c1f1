"""WordPiece files: the kernels give what the plain reference gives, by each setting of BertNormalizer."""

import json
import random

import numpy as np
import pytest
from drawn_files import BERT, drawn_text, drawn_words

import jittok
from jittok.encode.fallback import reference_encoder
from jittok.files import read_pipeline
from jittok.kernels.jit import JIT
from jittok.kernels.models.wpm.alphabet import BLANK, DROPPED
from jittok.kernels.models.wpm.bert import characters
from jittok.reference.pipeline import Runner

SETTINGS = range(16) if JIT else [15]
PARTS = [
    "한국", "각", "ௌ", "কো", "\u1b44", "\u302e\u0591", "\U0001d15e", "\U0001d16e\u0301", "İ", "I\u0307", "≠", "\u037e",
    "豈", "▁", "▁a", "\U0010ffff", "\U0010fffe", "#", "##", "##a", "[UNK]", "\ufffd", "\u00ad", "\ue000", "\x0b",
    "\x1c", "Σς", "ẞ", "\u1e9b\u0323", "a" * 19, "b" * 20, "é" * 21, "각" * 9, "\u0301", "中文a中",
]  # fmt: skip


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_drawn_file_gives_the_ids_of_the_reference(settings):
    draw = random.Random(settings)
    content = drawn_words(draw, settings)
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    assert tok.runs == "kernels"
    texts = []
    for _ in range(120 if JIT else 20):
        parts = [draw.choice([drawn_text(draw)[:30], draw.choice(PARTS), "ab", " ", "cd.", "中"]) for _ in range(9)]
        texts.append("".join(parts[: draw.randrange(10)]))
    wanted = [plain.encode(text, False) for text in texts]
    assert tok.encode_batch(texts, threads=1).to_list() == wanted
    assert [tok.encode(text).tolist() for text in texts[::5]] == wanted[::5]
    with pytest.raises(jittok.EncodingFailed):
        tok.encode(b"ab \xed\xa0\x80")
    bad = b"ab \xff" + "각".encode()
    assert tok.encode(bad, errors="replace").tolist() == plain.encode(bad.decode("utf-8", "replace"), False)


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_a_character_becomes_stays_as_it_is(settings):
    kinds, points, becomes, several, odd = characters(settings)
    images = np.arange(kinds.size)
    images[points] = becomes
    more = np.zeros(kinds.size, bool)
    more[several.points], more[odd] = True, True
    stays = ~more & (kinds != BLANK) & (kinds != DROPPED)
    after = images[stays]
    assert (images[after] == after).all()
    assert (kinds[after] == kinds[stays]).all()
    assert not more[after].any()
    assert not kinds[several.points].any()  # all are letters
    assert not kinds[several.parts].any()
    assert several.counts.sum() == several.parts.size
    assert (several.counts <= [len(chr(c).encode()) for c in several.points.tolist()]).all()


def with_marks(marks: str) -> bytes:
    """A file that knows some marks: in a word with one it does not know, their order says nothing."""
    content = json.loads(drawn_words(random.Random(5), 15))
    vocab = content["model"]["vocab"]
    vocab |= {text: len(vocab) + k for k, text in enumerate([*marks, *(f"##{mark}" for mark in marks)])}
    return json.dumps(content).encode()


def test_odd_marks_in_texts_that_lie_far_apart():
    content = drawn_words(random.Random(5), 15)
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    texts = ["a\U0001d165 b " + "ab " * size for size in ((3, 9000, 7, 15000) if JIT else (3, 40))]
    assert tok.encode_batch(texts, threads=1).to_list() == [plain.encode(text) for text in texts]


def test_what_is_no_utf_8_behind_odd_marks_is_an_error_or_replaced_in_a_batch():
    content = with_marks("\u1baa\U00011446")
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    good = "\u1baa\U00011446 b ".encode()
    for bad in (good + b"\xe2\x80", *(good + b"ab " * size + b"\xff ab" for size in (1, 60, 200))):
        with pytest.raises(jittok.EncodingFailed, match="document 1, offset"):
            tok.encode_batch([good, bad])
        wanted = [plain.encode(text.decode("utf-8", "replace"), False) for text in (good, bad)]
        assert tok.encode_batch([good, bad], errors="replace").to_list() == wanted


def test_only_stretches_with_odd_marks_are_normalized_by_the_plain_reference(monkeypatch):
    content = with_marks("\U0001d165\u08d4\u1b44\u302e\u1b05\u1b35\U0001d158")
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    draw, asked, normalized = random.Random(3), [], reference_encoder.normalized
    monkeypatch.setattr(
        reference_encoder, "normalized", lambda own, text: asked.append(len(text)) or normalized(own, text)
    )
    marks = [
        *"\U0001d165\u08d4\u1b44\u302e\u0301\u0345\u0f71",
        "\u200d",
        "\U0001d15e",
        "\U0001d160",
        "\u1b06",
        "각",
        "é",
        "b",
        "中",
        " ",
    ]
    stretches = ["".join(draw.choices(marks, k=draw.randrange(1, 9))) for _ in range(300 if JIT else 20)]
    texts = ["ab 각 \u0301" * 30 + stretch + " 中é" * 30 + stretch for stretch in stretches]
    assert tok.encode_batch(texts, threads=1).to_list() == [plain.encode(text) for text in texts]
    assert asked
    assert max(asked) < 40


def test_a_word_with_an_unknown_character_needs_no_order_of_its_marks(monkeypatch):
    content = with_marks("\u1baa\U00011446")
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    asked, odd_ids = [], tok._encoder._odd_texts.ids
    monkeypatch.setattr(tok._encoder._odd_texts, "ids", lambda text: asked.append(text) or odd_ids(text))
    unknown = ["\u1baa\U00011446\ud7fb", "\ud7fb\u1baa\U00011446", "a\u1baa\U00011446" + "a" * 300, "\U0001d165" * 9]
    for texts, some in ((unknown, False), ([*unknown, "\U0001d165. \u1baa\U00011446\u1baa"], True)):
        long = [" ".join(texts), *texts, ".".join(texts) + "a", "".join(texts)]
        asked.clear()
        assert [tok.encode(text).tolist() for text in long] == [plain.encode(text) for text in long]
        assert bool(asked) == some


def test_marks_change_places_across_characters_that_are_removed():
    content = with_marks("\u1baa\U00011446")
    tok, vocab = jittok.load(content, cache=False), json.loads(content)["model"]["vocab"]
    swapped = [vocab["\U00011446"], vocab["##\u1baa"]]
    for between in ("", "\u200d", "\u200d\u200d", "\x00\u00ad\x02"):
        assert tok.encode(f"\u1baa{between}\U00011446").tolist() == swapped
        assert tok.encode(f"\U00011446{between}\u1baa").tolist() == swapped
    assert tok.encode("\u1baaa\U00011446").tolist()[0] != swapped[0]


@pytest.mark.parametrize(
    "normalizer", [None, {"type": "Lowercase"}, {"type": "BertNormalizer", **dict.fromkeys(BERT, True)}]
)
def test_an_unknown_word_is_an_error_where_the_unknown_token_is_missing(normalizer):
    content = json.dumps({
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 20, "vocab": {"a": 0, "b": 1}},
    }).encode()  # fmt: skip
    tok = jittok.load(content, cache=False)
    assert tok.encode("a b").tolist() == [0, 1]
    with pytest.raises(jittok.EncodingFailed, match="no unknown token"):
        tok.encode("a x")
    with pytest.raises(jittok.EncodingFailed, match="document 1"):
        tok.encode_batch(["a", "b x"])
