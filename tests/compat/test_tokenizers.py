"""`as_tokenizers` answers as `tokenizers.Tokenizer` 0.23: rows and all that is said of their tokens, errors, state."""

import copy
import pickle
import random

import numpy as np
import pytest

import jittok
from jittok.compat import as_tokenizers
from jittok.compat.encoding import FIELDS

tokenizers = pytest.importorskip("tokenizers")
if not tokenizers.__version__.startswith("0.2"):
    pytest.skip("tokenizers 1.0 has other classes", allow_module_level=True)

HERE = [
    "syn-bpe-prefix-space",
    "syn-bpe-metaspace-first",
    "syn-unigram-bytes",
    "syn-wordpiece-flags",
    "syn-wordlevel",
    "pix2tex",
]
ELSEWHERE = ["bert-base-uncased", "roberta-base", "llama-3", "t5-sd3", "albert", "gemma-3", "mistral-7b"]
WORDS = [
    "the", "quick", "Zürich", "é", "ﬁ", "supercalifragilistic", "don't", "12345", "東京", "👍🏽", "<mask>", "[MASK]",
    "</s>", " ", "\n", "\t", "  ", "a\u0301", "½", "…", "\u00a0", "<|endoftext|>", "𓀀", "x", ".", "<0x41>", "▁", "Ġ",
]  # fmt: skip


def loaded(files, name):
    """A facade, and what it stands for."""
    path = files(name)
    theirs = tokenizers.Tokenizer.from_file(str(path))
    theirs.no_truncation()
    theirs.no_padding()
    return as_tokenizers(jittok.load(path)), theirs


@pytest.fixture(scope="module", params=HERE)
def both(request, files):
    return loaded(files, request.param)


@pytest.fixture(scope="module")
def bert(files):
    return loaded(files, "syn-wordpiece-flags")


def row(encoding):
    """All that an encoding says, with the rows that overflow."""
    own = [getattr(encoding, name) for name in FIELDS] + [len(encoding)]
    return own + [[getattr(each, name) for name in FIELDS] for each in encoding.overflowing]


def texts(seed, count):
    draw = random.Random(seed)
    for _ in range(count):
        first = draw.choice(["", " "]).join(draw.choices(WORDS, k=draw.randint(0, 9)))
        yield first, draw.choice([None, " ".join(draw.choices(WORDS, k=draw.randint(1, 5)))])


def check_rows(mine, theirs, seed, count):
    for first, second in texts(seed, count):
        for special in (True, False):
            want = theirs.encode(first, second, add_special_tokens=special)
            assert row(mine.encode(first, second, add_special_tokens=special)) == row(want), (first, second)


@pytest.mark.every_set
def test_rows_of_one_text_and_of_two(both):
    check_rows(*both, 1, 60)


@pytest.mark.parametrize("name", ELSEWHERE)
def test_the_same_of_large_vocabularies(files, name):
    check_rows(*loaded(files, name), 2, 60)


PLAIN = [
    "Hello world, this is plain.",
    "two  spaces\n\nand lines\t.",
    "é",
    "",
    " x",
    "x ",
    "a b\nc",
    "caf\u00e9 au lait",
    "日本 x",
]


@pytest.mark.parametrize("name", ["bert-base-uncased", "roberta-base", "llama-3", "t5-sd3", "albert", "mistral-7b"])
def test_spans_by_lengths_are_those_of_the_rules(files, name):
    mine, theirs = loaded(files, name)
    told = 0
    for text in PLAIN:
        quick = mine._source.quick.spans(text, mine.encode(text, add_special_tokens=False).ids)
        told += quick is not None
        assert mine.encode(text).offsets == theirs.encode(text).offsets, text
        assert mine.encode(text).word_ids == theirs.encode(text).word_ids, text
    assert told >= 3  # the quick way was taken


def test_texts_that_were_split_into_words(both):
    mine, theirs = both
    for first, second in texts(3, 25):
        words, more = first.split(), second.split() if second else None
        want = theirs.encode(words, more, is_pretokenized=True)
        assert row(mine.encode(words, more, is_pretokenized=True)) == row(want), (words, more)


def test_batches_truncated_and_padded(both):
    mine, theirs = both
    draw = random.Random(4)
    for _ in range(60):
        items = [
            text or "x" if pair is None else (text, pair) for text, pair in texts(draw.random(), draw.randint(1, 4))
        ]
        said = draw.randint(0, 14), draw.randint(0, 4), draw.choice(["longest_first", "only_first", "only_second"])
        sides = draw.choices(["left", "right"], k=2)
        fixed = {"length": draw.choice([None, 12]), "pad_to_multiple_of": draw.choice([None, 4])}
        special = draw.random() < 0.8
        answers = []
        for tok in (mine, theirs):
            tok.no_truncation()
            tok.no_padding()
            try:
                tok.enable_truncation(said[0], stride=said[1], strategy=said[2], direction=sides[0])
                tok.enable_padding(direction=sides[1], pad_id=1, pad_type_id=3, pad_token="<pad>", **fixed)
                rows = tok.encode_batch(items, add_special_tokens=special)
                answers.append([row(each)[: len(FIELDS) - 1] for each in rows])
            except BaseException as error:  # noqa: BLE001  theirs panics
                answers.append(isinstance(error, BaseException))
        assert answers[0] == answers[1], (items, said, sides, fixed, special)
        assert mine.truncation == theirs.truncation
        assert mine.padding == theirs.padding
    for tok in both:
        tok.no_truncation()
        tok.no_padding()


CALLS = [
    lambda t: t.encode(None), lambda t: t.encode(b"x"), lambda t: t.encode("\ud800"), lambda t: t.encode("a", 3),
    lambda t: t.encode_batch("abc"), lambda t: t.encode_batch([("a", "b", "c")]), lambda t: t.encode_batch([1]),
    lambda t: [e.ids for e in t.encode_batch([("a", "b"), "c"])], lambda t: t.encode(["a"]),
    lambda t: t.encode_batch([]), lambda t: t.encode("a", is_pretokenized=True), lambda t: t.decode([10**6]),
    lambda t: t.decode([-1]), lambda t: t.decode([]), lambda t: t.decode([1, 2, 30]),
    lambda t: t.decode([1, 2, 30], skip_special_tokens=False), lambda t: t.decode_batch([[30, 31], []]),
    lambda t: t.token_to_id("zz no"), lambda t: t.id_to_token(10**7), lambda t: t.id_to_token(30),
    lambda t: t.id_to_token(-1), lambda t: t.get_vocab_size(), lambda t: t.get_vocab_size(False),
    lambda t: sorted(t.get_vocab().items()), lambda t: sorted(t.get_vocab(False).items()),
    lambda t: t.num_special_tokens_to_add(True),
    lambda t: {k: repr(v) for k, v in t.get_added_tokens_decoder().items()},
    lambda t: [t.truncation, t.padding, t.encode_special_tokens], lambda t: t.enable_truncation(3, strategy="x"),
    lambda t: t.enable_truncation(3, direction="x"), lambda t: t.enable_padding(direction="x"),
    lambda t: t.add_tokens([]), lambda t: type(t.model).__name__,
    lambda t: [t.normalizer is None, t.pre_tokenizer is None],
    lambda t: t.normalizer and t.normalizer.normalize_str("Héllo  ﬁ"),
    lambda t: t.decoder and t.decoder.decode(["a", "b"]),
    lambda t: t.pre_tokenizer and t.pre_tokenizer.pre_tokenize_str("hello world's"),
    lambda t: t.encode_batch_fast(["a b"])[0].ids, lambda t: t.model.token_to_id("a"),
    lambda t: t.model.id_to_token(5),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_calls(both, same, call):
    same(call, *both)


LOOKUPS = [(name, (k,)) for name in ("token_to_chars", "token_to_word", "token_to_sequence") for k in range(-1, 11)]
LOOKUPS += [
    (name, (k, sequence))
    for name in ("char_to_token", "char_to_word", "word_to_tokens", "word_to_chars")
    for k in range(12)
    for sequence in (0, 1)
]


def test_look_ups(bert, same):
    for special in (True, False):
        rows = [tok.encode("a b ab", "b a ba", add_special_tokens=special) for tok in bert]
        assert rows[0].n_sequences == rows[1].n_sequences == 2
        for name, given in LOOKUPS:
            same(lambda encoding, name=name, given=given: getattr(encoding, name)(*given), *rows)


def test_an_encoding_is_cut_padded_and_merged(bert, same):
    def changed(tok, change):
        found = tok.encode("a b ab ba a", add_special_tokens=True)
        change(found)
        return row(found)

    for given in ((3,), (2, 1), (2, 1, "left"), (0,), (99,)):
        same(lambda tok, given=given: changed(tok, lambda found: found.truncate(*given)), *bert)
    for size, how in (
        (9, {"pad_id": 7}),
        (9, {"direction": "left", "pad_token": "P"}),
        (9, {"direction": "up"}),
        (2, {}),
    ):
        same(lambda tok, size=size, how=how: changed(tok, lambda found: found.pad(size, **how)), *bert)
        same(lambda tok, size=size, how=how: changed(tok, lambda found: (found.pad(size, **how), found.pad(12))), *bert)
    mine, theirs = bert
    for growing in (True, False):
        own = mine.encode("a b"), mine.encode("ab")
        made = type(own[0]).merge(own, growing_offsets=growing)
        other = tokenizers.Encoding.merge([theirs.encode("a b"), theirs.encode("ab")], growing_offsets=growing)
        assert [made.ids, made.offsets, made.word_ids] == [other.ids, other.offsets, other.word_ids]


def test_post_process_makes_the_row_of_encodings(bert):
    mine, theirs = bert
    mine.enable_padding(length=12)
    theirs.enable_padding(length=12)
    parts = [[tok.encode(text, add_special_tokens=False) for text in ("a b", "ab")] for tok in bert]
    for one, other in ((mine.post_process(*parts[0]), theirs.post_process(*parts[1])),):
        assert row(one)[:5] == row(other)[:5]
    mine.no_padding()
    theirs.no_padding()


def test_special_tokens_of_a_text_are_text_if_asked(bert):
    mine, theirs = bert
    before = mine.encode("[MASK] a").ids
    mine.encode_special_tokens = theirs.encode_special_tokens = True
    assert mine.encode("[MASK] a").ids == theirs.encode("[MASK] a").ids
    mine.encode_special_tokens = theirs.encode_special_tokens = False
    assert mine.encode("[MASK] a").ids == before == theirs.encode("[MASK] a").ids


def test_copies_and_pickles_have_the_state(bert):
    mine = bert[0]
    mine.enable_truncation(3)
    for again in (copy.copy(mine), copy.deepcopy(mine), pickle.loads(pickle.dumps(mine))):
        assert again.truncation == mine.truncation
        assert again.encode("a b ab").ids == mine.encode("a b ab").ids
        again.no_truncation()
        assert mine.truncation is not None
    mine.no_truncation()
    encoding = mine.encode("a b")
    assert row(pickle.loads(pickle.dumps(encoding))) == row(encoding)


def test_a_saved_file_has_the_same_ids(tmp_path):
    mine, path = as_tokenizers(jittok.bundled("gpt-2")), str(tmp_path / "tokenizer.json")
    mine.save(path)
    for again in (tokenizers.Tokenizer.from_file(path), tokenizers.Tokenizer.from_str(mine.to_str())):
        assert again.encode("Hello worlds").ids == mine.encode("Hello worlds").ids


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (lambda t: t.add_tokens(["<new>"]), "jittok.convert"),
        (lambda t: t.add_special_tokens(["a"]), "jittok.convert"),
        (lambda t: t.train(["x"]), "jittok.train"), (lambda t: t.from_pretrained("bert"), 'jittok.load("hf:org/name")'),
        (lambda t: t.from_file("x.json"), "jittok.load(path)"),
        (lambda t: t.normalizer.normalize("x"), "tok.explain()"),
        (lambda t: t.model.train(), "jittok.train"), (lambda t: t.post_processor.process("x"), "backend.post_process"),
    ],
)  # fmt: skip
def test_what_is_not_there_names_the_call_instead(bert, call, instead):
    with pytest.raises(NotImplementedError, match=r"is not in jittok\.compat") as told:
        call(bert[0])
    assert instead in str(told.value)


@pytest.mark.parametrize(
    ("name", "text", "tokens", "words"),
    [
        ("bert", "Hello worlds", ["[CLS]", "hello", "worlds", "[SEP]"], [None, 0, 1, None]),
        ("bert", "unaffable", ["[CLS]", "una", "##ffa", "##ble", "[SEP]"], [None, 0, 0, 0, None]),
        ("gpt-2", "Hello wörld", ["Hello", "Ġw", "Ã¶r", "ld"], [0, 1, 1, 1]),
        ("mistral", "Hello wörld", ["<s>", "▁Hello", "▁w", "ör", "ld"], [None, 0, 1, 1, 1]),
        ("t5", "Hello worlds", ["▁Hello", "▁world", "s", "</s>"], [0, 1, 1, None]),
    ],
)  # fmt: skip
def test_a_gguf_has_names_spans_and_words(name, text, tokens, words):
    tok = jittok.bundled(name)
    found = as_tokenizers(tok).encode(text)
    assert found.tokens == tokens
    assert found.word_ids == words
    assert found.ids == tok.encode(text, add_special=True).tolist()
    assert found.offsets[-1] in ((0, 0), (len(text) - 2, len(text)))
    backend = as_tokenizers(tok)
    assert [backend.token_to_id(token) for token in tokens] == found.ids
    assert backend.decode(found.ids) == (text.lower() if name == "bert" else text)


def test_a_gguf_has_pairs_with_segments():
    found = as_tokenizers(jittok.bundled("bert")).encode("hello", "world")
    assert (found.ids, found.type_ids) == ([101, 7592, 102, 2088, 102], [0, 0, 0, 1, 1])
    assert found.sequence_ids == [None, 0, None, 1, None]


def test_lists_are_new_each_time(bert):
    found = bert[0].encode("a b")
    found.ids.append(7)
    found.offsets.clear()
    assert len(found.ids) == len(found.offsets) == len(found)


def test_ids_of_arrays_are_decoded(bert):
    mine = bert[0]
    assert mine.decode(np.array([5, 6])) == mine.decode([5, 6])


@pytest.mark.parametrize("thing", [None, "gpt-2"])
def test_only_a_tokenizer_can_be_one(thing):
    with pytest.raises(TypeError, match=r"expected a jittok\.Tokenizer"):
        as_tokenizers(thing)
