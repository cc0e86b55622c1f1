"""sentencepiece models of odd pieces: kernels = plain reference = sentencepiece 0.2.3, whose answers are recorded."""

import random
import time
from itertools import pairwise

import numpy as np
import pytest
from charsmap import build_charsmap
from small_files import sentencepiece, sentencepiece_of

import jittok
from jittok.encode import limits, prepared_texts
from jittok.files import read_pipeline
from jittok.kernels.jit import JIT
from jittok.kernels.models.spm.unused_pieces import halves, parts_of
from jittok.kernels.safe_cuts.cuts import CLASSES, LETTER, OTHER
from jittok.reference.models import sentencepiece as plain_pieces
from jittok.reference.pipeline import Runner

UNIGRAM, BPE, WORD, CHAR = range(1, 5)
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
HEAD = [("<unk>", UNKNOWN, 0.0), ("<s>", CONTROL, 0.0), ("</s>", CONTROL, 0.0)]
BYTES = [(f"<0x{byte:02X}>", BYTE, 0.0) for byte in range(256)]
TEXTS = ["▁", "a", "b", "c", "é", "ab", "▁a", "bc", "abc", "▁ab", "ca", "<", "aa"]
PARTS = ["a", "b", "c", "é", " ", "▁", "<s>", "<0x41>", "<", "x", "\n", "ab", "  "]
ODD = [("▁", NORMAL, -1), ("a", NORMAL, -2), ("b", NORMAL, -3), ("c", UNUSED, -1), ("▁ab", NORMAL, -1),
       ("d", USER, -1), ("ab", UNUSED, -1), ("<c>", CONTROL, 0)]  # fmt: skip


def test_the_small_file_is_what_it_was():
    assert jittok.load(sentencepiece(BPE), cache=False).encode("the ant").size


@pytest.mark.parametrize(
    ("kind", "fallback", "text", "wanted"),
    [
        (BPE, False, "ac b", [4, 0, 3, 5]),
        (BPE, True, "ac b", [260, 102, 259, 261]),
        (CHAR, False, "c", [0]),
        (WORD, False, "<s>", [0]),
        (WORD, False, "ab", [0]),
        (WORD, True, "<0x41>", [63, 51, 123, 55, 52, 65]),
    ],
)
def test_texts_of_pieces_that_are_not_for_texts_are_unknown(kind, fallback, text, wanted):
    content = sentencepiece_of(kind, [*HEAD, *(BYTES if fallback else []), *ODD], fallback, False, False)
    assert jittok.load(content, cache=False).encode(text).tolist() == wanted


def test_characters_without_a_piece_merge_to_pieces():
    content = sentencepiece_of(BPE, [*HEAD, *BYTES, ("▁", NORMAL, -1), ("ab", NORMAL, -2)], True, False, False)
    tok = jittok.load(content, cache=False)
    assert tok.runs == "kernels"
    assert tok.encode("cab a").tolist() == [102, 260, 259, 100]


@pytest.mark.parametrize("kind", [UNIGRAM, BPE, WORD, CHAR])
@pytest.mark.parametrize("type_", [NORMAL, CONTROL, USER, UNUSED])
def test_beside_pieces_of_bytes_a_piece_of_nul_is_not_used(kind, type_):
    pieces = [*HEAD, *BYTES, ("\0", type_, 9.0), ("a", NORMAL, -1.0)]
    tok = jittok.load(sentencepiece_of(kind, pieces, True, False, False), cache=False)
    assert tok.encode("\0").tolist() == [3]
    assert tok.encode("a\0").tolist() == [260 if kind != WORD else 100, 3]


REFUSED = [
    ([*HEAD, ("\0", NORMAL, 0.0)], False, "NUL"),
    ([*HEAD, *BYTES, ("a\0", UNUSED, 0.0)], True, "NUL"),
    ([*HEAD, BYTES[65]], False, "byte_fallback"),
]


@pytest.mark.parametrize(("pieces", "fallback", "expected"), REFUSED)
def test_pieces_that_sentencepiece_refuses_are_refused(pieces, fallback, expected):
    content = sentencepiece_of(BPE, pieces, fallback)
    with pytest.raises(jittok.MalformedVocab, match=expected):
        jittok.load(content, cache=False)
    library = pytest.importorskip("sentencepiece").SentencePieceProcessor()
    with pytest.raises(RuntimeError, match=r"null character|byte piece"):
        library.LoadFromSerializedProto(content)


SPACES = [("▁", NORMAL, -1.0), ("a", NORMAL, -2.0), ("b", NORMAL, -2.0), ("▁a", NORMAL, -2.5), ("▁▁", NORMAL, -1.5)]
"""Beside what asks where spaces come from: keys that begin with one, characters and pieces with two in a row."""
WHERE_FROM = [({" ": "b"}, []), ({" a": "b"}, []), ({"b": "  "}, []), ({"b": "a  a"}, []), ({}, [("a  ", USER, 0.0)])]


@pytest.mark.parametrize("squeeze", [True, False])
@pytest.mark.parametrize(("rules", "users"), WHERE_FROM)
def test_unigram_knows_which_spaces_a_map_sees_and_which_are_merged(rules, users, squeeze):
    charsmap = build_charsmap({key.encode(): image.encode() for key, image in rules.items()}) if rules else b""
    content = sentencepiece_of(UNIGRAM, [*HEAD, *SPACES, *users], False, True, squeeze, charsmap)
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    texts = ["a", "aa", " a", "a a", "b", "aba", "ab a", "a  a", "a  ", "ba  b", "c b c"]
    wanted = [plain.encode(text, False) for text in texts]
    assert tok.encode_batch(texts, threads=1).to_list() == wanted
    library = pytest.importorskip("sentencepiece").SentencePieceProcessor()
    library.LoadFromSerializedProto(content)
    assert wanted == [library.encode(text) for text in texts]


def drawn(draw: random.Random) -> tuple[int, bytes]:
    kind, fallback = draw.choice([BPE, BPE, UNIGRAM, WORD, CHAR]), draw.random() < 0.6
    odd = draw.random() < 0.5
    types = [NORMAL, CONTROL, USER, UNUSED] if odd else [NORMAL, CONTROL]
    pieces = [
        (text, draw.choices(types, [9, 1, 1, 1][: len(types)])[0], -round(draw.random() * 9, 3))
        for text in TEXTS
        if draw.random() < 0.75
    ]
    every = [*HEAD, *(BYTES if fallback else []), *pieces]
    return kind, sentencepiece_of(kind, every, fallback, draw.random() < 0.5, odd and draw.random() < 0.5)


@pytest.mark.parametrize("seed", range(60 if JIT else 4))
def test_drawn_models_give_the_ids_of_the_reference_and_of_sentencepiece(seed):
    draw = random.Random(seed)
    _, content = drawn(draw)
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    texts = ["".join(draw.choices(PARTS, k=draw.randrange(11))) for _ in range(20)]
    found = tok.encode_batch(texts, threads=1).to_list()
    assert found == [plain.encode(text, False) for text in texts]
    library = pytest.importorskip("sentencepiece").SentencePieceProcessor()
    library.LoadFromSerializedProto(content)
    assert found == [library.encode(text) for text in texts]


LATER = [("ab", UNUSED, -4.0), ("abc", UNUSED, -2.0), ("bc", NORMAL, -3.0), ("bcab", UNUSED, -1.0), ("é", UNUSED, -9.0),
         ("aé", UNUSED, -1.0), ("▁▁", UNUSED, -1.0), ("cé", NORMAL, -6.0), ("bcé", NORMAL, -5.0)]  # fmt: skip


@pytest.mark.parametrize("fallback", [True, False])
@pytest.mark.parametrize("users", [[], [("ca", USER, 0.0), ("▁a", USER, 0.0)]])
def test_pieces_that_are_not_used_are_what_they_are_merged_of(fallback, users, monkeypatch):
    letters = [("▁", NORMAL, -9.0), ("a", NORMAL, -9.0), ("b", NORMAL, -9.0), ("c", NORMAL, -9.0)]
    pieces = [*HEAD, *(BYTES if fallback else []), *letters, *LATER, *users]
    content = sentencepiece_of(BPE, pieces, fallback, True, False)
    tok, plain, draw = jittok.load(content, cache=False), Runner(read_pipeline(content)), random.Random(3)
    assert tok.runs == "kernels"
    tok._wait_for_kernels()
    texts = ["".join(draw.choices("abcé x", k=draw.randrange(60 if JIT else 20))) for _ in range(60 if JIT else 6)]
    wanted = [plain.encode(text, False) for text in texts]
    assert tok.encode_batch(texts, threads=1).to_list() == wanted
    monkeypatch.setattr(limits, "WINDOWED_TEXT", 8)
    monkeypatch.setattr(limits, "WINDOW", 16)
    monkeypatch.setattr(prepared_texts, "OVERLAP_TOKENS", 3)
    assert tok.encode_batch(texts, threads=1).to_list() == wanted
    library = pytest.importorskip("sentencepiece").SentencePieceProcessor()
    library.LoadFromSerializedProto(content)
    assert wanted == [library.encode(text) for text in texts]


def test_long_pieces_that_are_not_used_are_taken_apart_in_linear_time():
    """Each is made of the one before, and the last one of thousands of halves."""
    rows = [("a" * size, UNUSED, float(size)) for size in range(2, 1200)]
    pieces = [*HEAD, ("a", NORMAL, -1.0), *rows, ("bb", NORMAL, 1.0), ("b" * 8_000, UNUSED, 2.0), ("b", NORMAL, -1.0)]
    begun = time.process_time()
    table = parts_of(read_pipeline(sentencepiece_of(BPE, pieces, False, False, False)))
    assert time.process_time() - begun < 5
    sizes = np.diff(table.offsets)
    number = len(HEAD) + len(rows)
    assert table.ids[table.offsets[number] :][: sizes[number]].tolist() == [number - 101, *[len(HEAD)] * 101]
    assert sizes[number + 2] == 4_000


def test_the_last_merge_of_a_piece_is_that_of_all_neighbours_looked_at_each_time():
    draw = random.Random(4)
    for _ in range(300):
        texts = {"".join(draw.choices("ab", k=draw.randint(2, 5))) for _ in range(draw.randint(1, 9))}
        ranks, piece = {text: draw.randrange(4) for text in texts}, "".join(draw.choices("ab", k=draw.randint(2, 12)))
        symbols = [*piece]
        while True:
            joined = [
                (ranks[a + b], k) for k, (a, b) in enumerate(pairwise(symbols)) if a + b in ranks and a + b != piece
            ]
            if not joined:
                break
            k = min(joined)[1]
            symbols[k : k + 2] = [symbols[k] + symbols[k + 1]]
        assert halves(piece, ranks) == symbols, (piece, ranks)


@pytest.mark.parametrize("size", [101, 102, 103, 140])
def test_pieces_that_are_not_used_are_taken_apart_a_hundred_times_at_most(size):
    """As sentencepiece does: what is left then is a token, though it is not used."""
    rows = [("a" * k, UNUSED, float(k)) for k in range(2, 200)]
    content = sentencepiece_of(BPE, [*HEAD, ("a", NORMAL, -1.0), *rows], False, False, False)
    wanted = [size - 99, *[3] * 101] if size > 102 else [3] * size
    tok = jittok.load(content, cache=False)
    tok._wait_for_kernels()
    assert tok.encode("a" * size).tolist() == wanted
    assert Runner(read_pipeline(content)).encode("a" * size, False) == wanted
    library = pytest.importorskip("sentencepiece").SentencePieceProcessor()
    library.LoadFromSerializedProto(content)
    assert library.encode("a" * size) == wanted


USERS = [("[A]", USER, 0.0), ("[A][A]", USER, 0.0), ("ab", USER, 0.0), ("é", USER, 0.0), ("[", USER, 0.0)]
MADE = [
    ("a", NORMAL, -1),
    ("b", NORMAL, -2),
    ("c", NORMAL, -3),
    ("▁a", NORMAL, -1),
    ("ca", NORMAL, -1),
    ("bc", NORMAL, -2),
]
CUT = ["[A]", "[", "ab", "é", "a", "b", "c", " ", "▁", "\0", "x", "[A"]


@pytest.mark.parametrize("prefix", [True, False])
@pytest.mark.parametrize("mark", [[("▁", NORMAL, -4)], []], ids=["a mark", "no mark"])
def test_user_defined_pieces_of_bpe_are_cut_out_by_a_kernel(prefix, mark):
    content = sentencepiece_of(BPE, [*HEAD, *BYTES, *USERS, *MADE, *mark], True, prefix, False)
    tok, plain, draw = jittok.load(content, cache=False), Runner(read_pipeline(content)), random.Random(3)
    assert tok.runs == "kernels"
    texts = ["", " ", "ab", "[A]", "[A][A] a", " [A]", "▁ab", "a[A", "ab" * 300]
    texts += ["".join(draw.choices(CUT, k=draw.randrange(12))) for _ in range(160 if JIT else 30)]
    wanted = [plain.encode(text, False) for text in texts]
    assert tok.encode_batch(texts, threads=1).to_list() == wanted
    assert [tok.encode(text).tolist() for text in texts] == wanted
    assert tok.encode_batch([text.encode() for text in texts], threads=2, parse_special=True).to_list() == wanted
    behind = "".join(texts).encode()  # the rest of a piece may be after a text
    ends = [len("".join(texts[: k + 1]).encode()) for k in range(len(texts))]
    ragged = jittok.Ragged(np.frombuffer(behind, np.uint8), np.array([0, *ends], np.int64))
    assert tok.encode_batch(ragged).to_list() == wanted
    library = pytest.importorskip("sentencepiece").SentencePieceProcessor()
    library.LoadFromSerializedProto(content)
    assert wanted == [library.encode(text) for text in texts]


MAP = {"é": "e", "\u3000": " ", "\t": " ", "\u200b": "", "ﬁ": "fi", "¨": " \u0308", "a\u0301": "á", "x": "  ",
       "X": " a ", "bb": "b", "bbb": "c", "\u2581\u2581": " "}  # fmt: skip
LETTERS = [
    (text, NORMAL, -float(k))
    for k, text in enumerate(["▁", "a", "b", "c", "ca", "▁a", "▁ab", "ab", "á", "e", "aa", "fi"])
]
RAW = [*MAP, "a", "a", "b", "c", " ", " ", "▁", "中", "文", "zz", "e", "\u0301", "I"]


OWN = ["ab", "<x>", "ﬁ\u200b", "中", "\u3000x", "e", "bbc", "\u0301"]
"""User-defined pieces of characters that the map changes, and of the beginnings and ends of its keys."""
SPACED = ["▁", "▁▁", "▁▁▁", "▁a", "a▁", "a▁b", " b", "a c", "b ", " ", "  "]
"""Such with U+2581, which is what a space becomes, as Gemma's have, and with a space."""


@pytest.mark.parametrize("seed", [k for k in range(64) if k.bit_count() % 2] if JIT else [0, 2, 23, 22, 32, 39, 58])
def test_bpe_behind_sentencepieces_normalizer_runs_in_kernels(seed):
    """From 16 on with user-defined pieces, from 32 on with spaces in them."""
    draw = random.Random(seed)
    own = draw.sample(OWN, 5) if seed & 16 else []
    own += draw.sample(SPACED, 4) if seed & 32 else []
    fallback, prefix, squeeze = (bool(seed & bit) for bit in (1, 2, 4))
    rules = {} if seed & 8 else {key.encode(): MAP[key].encode() for key in MAP if draw.random() < 0.8}
    kept = [piece for piece in LETTERS if draw.random() < 0.85 and piece[0] not in own]
    content = sentencepiece_of(
        BPE,
        [*HEAD, *(BYTES if fallback else []), *kept, *((text, USER, 0.0) for text in own)],
        fallback,
        prefix,
        squeeze,
        build_charsmap(rules) if rules else b"",
    )
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    assert tok.runs == "kernels"
    texts = [
        "",
        " ",
        "   ",
        "▁",
        " ▁ ",
        "\u3000",
        "\u200b",
        "中文",
        "zz 中",
        "a ",
        " a",
        "a▁",
        "aa" * 40,
        "中" * 70 + " " * 70,
    ]
    parts = [*RAW, *own, *own, *(["  ", "▁", " "] if seed & 32 else [])]
    texts += [*own, *("".join(draw.choices(parts, k=draw.randrange(14))) for _ in range(160 if JIT else 30))]
    wanted = [plain.encode(text, False) for text in texts]
    assert tok.encode_batch(texts, threads=1).to_list() == wanted
    assert [tok.encode(text).tolist() for text in texts] == wanted
    library = pytest.importorskip("sentencepiece").SentencePieceProcessor()
    library.LoadFromSerializedProto(content)
    assert wanted == [library.encode(text) for text in texts]


@pytest.mark.parametrize("squeeze", [True, False])
def test_what_stays_is_copied_up_to_where_a_key_begins(squeeze):
    charsmap = build_charsmap({key.encode(): image.encode() for key, image in {**MAP, "中\u0301": "b"}.items()})
    tok = jittok.load(sentencepiece_of(BPE, [*HEAD, *BYTES, *LETTERS], True, True, squeeze, charsmap), cache=False)
    plain = Runner(tok._encoder.vocab)
    tails = [
        "a\u0301",
        "a\u0302",
        "  cccccccccc",
        " ",
        " \u3000c",
        "é",
        "ê",
        "中\u0301",
        "bb",
        "bbb",
        "▁▁",
        "▁",
        "\u05d0 \u05d0",
    ]
    texts = [own * k + tail for k in range(18) for own in "cd"[: 2 if JIT else 1] for tail in tails]
    texts += [f"c {'d c ' * k}{tail}" for k in range(5) for tail in tails]
    assert tok.encode_batch(texts, threads=1).to_list() == [plain.encode(text, False) for text in texts]


LOWER = [chr(c) for c in range(0x61, 0x7B)]
FOLDS = {c.upper().encode(): c.encode() for c in LOWER} | {"A\u0301".encode(): "á".encode(), b"Z\xe2\x84\xab": b"a"}
FOLDED = [*((c, NORMAL, -9.0) for c in [*LOWER, *"123,.<>", "▁", "á"]), ("▁ab", NORMAL, -4.0), ("b.c", NORMAL, -5.0),
          ("abc", NORMAL, -3.5), ("a1", NORMAL, -7.0), ("<sep>", USER, 0.0), ("c,a", USER, 0.0)]  # fmt: skip


@pytest.mark.parametrize("user", ["", "aB"], ids=["all fold", "not in a user-defined piece"])
def test_letters_that_fold_are_cut_as_what_they_become(user):
    pieces = [*HEAD, *FOLDED, *([(user, USER, 0.0)] if user else [])]
    content = sentencepiece_of(UNIGRAM, pieces, False, True, True, build_charsmap(FOLDS))
    tok, plain, draw = jittok.load(content, cache=False), Runner(read_pipeline(content)), random.Random(7)
    cut = tok._encoder.arrays.rules.cuts.reshape(CLASSES, CLASSES)
    assert bool(cut[OTHER, LETTER]) == bool(cut[LETTER, OTHER]) == (not user)
    parts = [*"abcABC", ".", ",", "<", ">", "<sep>", "<SEP>", "<sEp>", "1", " ", "b.c", "B.c", "b.C", "C,A", "c,a",
             "aB", "AB", "\u0301", "Z\u212b", "k", "K", "é"]  # fmt: skip
    texts = ["".join(draw.choices(parts, k=draw.randrange(16))) for _ in range(300 if JIT else 40)]
    wanted = [plain.encode(text, False) for text in texts]
    assert tok.encode_batch(texts, threads=1).to_list() == wanted
    library = pytest.importorskip("sentencepiece").SentencePieceProcessor()
    library.LoadFromSerializedProto(content)
    assert wanted == [library.encode(text) for text in texts]


@pytest.mark.parametrize("prefix", [True, False])
def test_sections_of_a_text_whose_spaces_are_kept_have_the_ids_of_the_whole(prefix):
    rows = [(text, NORMAL, score) for text, score in
            (("▁", -70.1), ("a", -60.3), ("b", -61.7), ("ab", -99.9), ("▁a", -90.25), ("▁▁", -80.7))]  # fmt: skip
    content = sentencepiece_of(UNIGRAM, [*HEAD, *rows], False, prefix, False)
    tok, plain, draw = jittok.load(content, cache=False), Runner(read_pipeline(content)), random.Random(5)
    assert tok._encoder.arrays.parts
    text = "".join(draw.choices([" a", "ab", "b ", "a b", "  ", "c"], [9, 5, 5, 5, 1, 1], k=2500))
    assert tok.encode(text).tolist() == plain.encode(text, False)
    library = pytest.importorskip("sentencepiece").SentencePieceProcessor()
    library.LoadFromSerializedProto(content)
    assert tok.encode(text).tolist() == library.encode(text)


@pytest.mark.parametrize(("image", "parts"), [("ж", 2), ("ж ", 1), ("", 1)])
def test_sections_end_beside_wide_characters_where_these_stand(image, parts):
    rules = {"д\u0301".encode(): image.encode(), "½".encode(): b" ", "щ".encode(): b""}
    rows = [("▁", NORMAL, -70.1), ("д", NORMAL, -60.3), ("▁ж", NORMAL, -91.7), ("дж", NORMAL, -99.9)]
    content = sentencepiece_of(UNIGRAM, [*HEAD, *rows], False, True, True, build_charsmap(rules))
    tok, plain, draw = jittok.load(content, cache=False), Runner(read_pipeline(content)), random.Random(5)
    assert tok._encoder.arrays.parts == parts
    many = [9, 9, 9, 3, 1, 1, 1, 1, 1]
    text = "".join(
        draw.choices(["д", "ж", " ", "д\u0301", "½", "щ", "▁", "\u0301", "ы"], many, k=5000 if JIT else 1500)
    )
    assert tok.encode(text).tolist() == plain.encode(text, False)
    library = pytest.importorskip("sentencepiece").SentencePieceProcessor()
    library.LoadFromSerializedProto(content)
    assert tok.encode(text).tolist() == library.encode(text)


@pytest.mark.parametrize("kind", [BPE, CHAR])
@pytest.mark.parametrize("fallback", [False, True])
def test_stretches_of_a_text_have_the_ids_of_the_whole(kind, fallback, monkeypatch):
    draw, cut = random.Random(kind), 0
    users = [("bc", USER, 0.0), ("a<", USER, 0.0)]
    for seed in range(12 if JIT else 3):
        unused = [UNUSED] * (seed % 3 == 0)  # what these were made of depends on all of the text
        rows = [(text, draw.choice([NORMAL, NORMAL, *unused]), -draw.random()) for text in draw.sample(TEXTS, 9)]
        rows = list({row[0]: row for row in [*HEAD, *(BYTES if fallback else []), *rows, *users[: seed % 3]]}.values())
        plain = Runner(read_pipeline(sentencepiece_of(kind, rows, fallback, bool(seed & 1), bool(seed & 2))))
        for _ in range(40 if JIT else 10):
            text = "".join(draw.choices(PARTS, k=draw.randrange(40)))
            monkeypatch.setattr(plain_pieces, "CHUNK_CHARACTERS", 1 << 30)
            whole = plain.encode(text)
            monkeypatch.setattr(plain_pieces, "CHUNK_CHARACTERS", 1)
            assert plain.encode(text) == whole, text
            cut += len(list(plain.sentencepiece._chunks(plain.sentencepiece.normalize(text)))) > 1
    assert cut > 20
