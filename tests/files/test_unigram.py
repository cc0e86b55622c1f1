"""Unigram files: kernels give what the plain reference gives, where sums round and where texts are odd."""

import base64
import json
import random
import struct
import time

import pytest
from charsmap import build_charsmap
from drawn_unigram import MAP, drawn_model, drawn_unigram, drawn_words
from guarded import Guarded
from small_files import _field

import jittok
from jittok.files import read_pipeline
from jittok.kernels.jit import JIT
from jittok.kernels.models.ugm import files, lattice
from jittok.reference.pipeline import Runner

KINDS = {"tokenizer.json": drawn_unigram, "model": drawn_model}
FILES, TEXTS = (10, 100) if JIT else (2, 12)
MARKS = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
BEGINNINGS = ["\u200c\u0301", "\u200c\u0301a", "\u0301", "\U0001f3fba"]
"""Texts whose first character would join a space before it."""


@pytest.mark.parametrize("seed", range(FILES))
@pytest.mark.parametrize("kind", KINDS)
def test_a_drawn_file_gives_the_ids_of_the_reference(kind, seed):
    draw = random.Random(seed)
    content = KINDS[kind](draw)
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    assert tok.runs == "kernels"
    texts = [*BEGINNINGS, *(drawn_words(draw) for _ in range(TEXTS))]
    for parse in (False, True):
        wanted = [plain.encode(text, parse) for text in texts]
        assert tok.encode_batch(texts, parse_special=parse, threads=1).to_list() == wanted
        assert [tok.encode(text, parse_special=parse).tolist() for text in texts[::5]] == wanted[::5]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_utf_8_is_an_error_or_replaced(kind):
    draw = random.Random(5)
    content = KINDS[kind](draw)
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    for bad in (b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xe3\x81", b"\xf4\x90\x80\x80", b"\x80", b"\xf0\x8f\xbf\xbf"):
        for text in (b"ab " + bad + "각".encode(), bad, b"a" * 70 + bad, bad * 3 + b" b"):
            with pytest.raises(jittok.EncodingFailed):
                tok.encode(text)
            assert tok.encode(text, errors="replace").tolist() == plain.encode(text.decode("utf-8", "replace"), False)


def test_what_is_no_utf_8_behind_odd_marks_is_an_error_or_replaced_in_a_batch(monkeypatch):
    """The kernel stops at the marks, whose order Python finds, and has not seen what follows some blocks after."""
    tail = [b"\xe2\x80", *(b" ba" * 45 + bad for bad in (b"\xe2\x80", b" b\xff", b"\x80 a" * 30))]
    runs = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    steps = {"type": "Sequence", "normalizers": [{"type": "Nmt"}, {"type": "NFKC"}, runs]}
    rows = [["<unk>", 0.0], *([text, -1.0] for text in "\u2581abq\u0323\u0307")]
    model = {"type": "Unigram", "vocab": rows, "unk_id": 0}
    content = json.dumps({"normalizer": steps, "pre_tokenizer": MARKS, "model": model}).encode()
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    asked, odd_ids = [], tok._encoder._odd_texts.ids
    monkeypatch.setattr(tok._encoder._odd_texts, "ids", lambda text: asked.append(text) or odd_ids(text))
    for mark in ("c\u030c", "\u1100\u1161", "q\u0323\u0307"):
        good = f"{mark} a".encode()
        for bad in [good + each for each in tail]:
            with pytest.raises(jittok.EncodingFailed, match="document 1, offset"):
                tok.encode_batch([good, bad])
            wanted = [plain.encode(text.decode("utf-8", "replace"), False) for text in (good, bad)]
            assert tok.encode_batch([good, bad], errors="replace").to_list() == wanted
    assert asked


@pytest.mark.skipif(not JIT, reason="a text of which the plain reference takes seconds")
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_long_texts_round_as_those_of_the_reference(kind, seed):
    draw = random.Random(seed)
    content = KINDS[kind](draw)
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    text = " ".join(drawn_words(draw) for _ in range(1200))
    assert len(text.encode()) > 1 << 16
    for part in (text, text[:10_000]):
        assert tok.encode(part).tolist() == plain.encode(part, False)


LONG = {
    "one character that becomes three": ["½"],
    "unknown": ["☃"],
    "unknown beside the unknown token's own text": ["☃", "<unk>", "a"],
    "letters": ["a", "b", "c", "d", "e"],
    "marks that a text may end with": ["▁▁", "▁", "a", "中文"],
}


@pytest.mark.skipif(not JIT, reason="hundreds of kilobytes take long in plain Python")
@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("kind", KINDS)
def test_a_long_text_that_nothing_cuts_has_the_ids_of_the_reference(kind, name):
    draw = random.Random(3)
    content = KINDS[kind](draw)
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    text = "".join(draw.choices(LONG[name], k=3 * files.CHUNK_BYTES // 2 // len(LONG[name][0].encode())))
    for whole in ("ab" + text + "b a", text + "▁" * 2000):
        assert tok.encode(whole).tolist() == plain.encode(whole, False)
        if name == "one character that becomes three":
            break


@pytest.mark.skipif(JIT, reason="the compiled kernels look at more text at once than is drawn")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", KINDS)
def test_pieces_of_any_text_have_the_ids_of_the_reference(kind, seed, monkeypatch):
    monkeypatch.setattr(files, "CHUNK_BYTES", 8)
    monkeypatch.setattr(lattice, "SUMS_KEPT", 16)
    draw = random.Random(seed)
    content = KINDS[kind](draw)
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    for _ in range(6):
        text = drawn_words(draw) + draw.choice(["", "ﷺ" * 9, "☃" * 99, "▁" * 150, "a<unk>☃" * 20])
        assert tok.encode(text).tolist() == plain.encode(text, False), text


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_beside_a_text_change_nothing(kind):
    count = 60 if JIT else 6
    draw, guarded = random.Random(2), Guarded(count)
    tok = jittok.load(KINDS[kind](draw), cache=False)
    texts = [drawn_words(draw)[:150].encode() for _ in range(count)]
    wanted = [tok.encode(text).tolist() for text in texts]
    for at_end in (True, False):
        found = []
        for docs in guarded.documents(texts, at_end):
            found += tok.encode_batch(docs, threads=1).to_list()
        assert found == wanted


def test_words_end_at_white_space_that_tokens_hold():
    texts = ["<unk>", "▁", "-", "a", "b", "1", "a\n", "\n1\nb", "\n"]
    marks = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    content = json.dumps({
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, marks]},
        "model": {"type": "Unigram", "vocab": [[text, -float(k)] for k, text in enumerate(texts)], "unk_id": 0},
    })  # fmt: skip
    tok = jittok.load(content.encode(), cache=False)
    assert tok.runs == "kernels"
    assert tok.encode("a\n-\nb").tolist() == [1, 3, 1, 2, 1, 4]


@pytest.mark.parametrize("low", [-1.7976931348623157e308, -1e300, -9e29])
@pytest.mark.parametrize(
    ("split", "mark"), [([{"type": "WhitespaceSplit"}, MARKS], [1]), ([{"type": "Whitespace"}], [])]
)
def test_scores_whose_sums_are_not_finite_are_not_for_the_kernels(split, mark, low):
    """A place with such a sum has no path that leads to it, and what is read there is of another text."""
    pieces = [["<unk>", 0.0], ["▁", low], ["a", -1.0], ["b", low], ["ab", low], ["aa", -2.0]]
    content = json.dumps({
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": split},
        "model": {"type": "Unigram", "vocab": pieces, "unk_id": 0},
    }).encode()  # fmt: skip
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    assert tok.runs.startswith("kernels" if low > -1e30 else "general")
    for text in ("ab", "b", "aab bb", "é bé"):
        assert tok.encode(text).tolist() == plain.encode(text, False)
    assert tok.encode("bb aab").tolist() == [*mark, 3, 3, *mark, 2, 4]


JOINING = [
    "\u0600", "\u0d4e", "\U000110bd", "\u1100", "\u1161", "\u11a8", "가", "각", "क", "ष", "\uabc0",
    "क\u094d", "क\ua9c0", "\u0903", "\u093c", "\u0301", "\u0345", "\u200d", "❤", "©", "e", "①", "½", "\x85", "\u2028",
    "\u2003", "\x01", "\n", " ", "é", "<", "\x85 \n", "e\u0301", "か\u3099",
]  # fmt: skip
"""Characters that join others in grapheme clusters, keys of the map below, and white space that is no key."""


def stripped_clusters(content: bytes) -> bytes:
    """A tokenizer.json with a character map of clusters, and white space stripped from the end."""
    image = {
        "ष": "s",
        "가": "g",
        "각": "k",
        "\u1100": "c",
        "\u11a8": "t",
        "क": "k",
        "\uabc0": "m",
        "©": "c",
        "\u2003": "\u2029",
    }
    charsmap = build_charsmap({**MAP, **{text.encode(): to.encode() for text, to in image.items()}})
    marks = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    steps = [
        {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()},
        {"type": "Strip", "strip_left": False, "strip_right": True},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "▁"},
    ]
    return json.dumps({
        **json.loads(content), "normalizer": {"type": "Sequence", "normalizers": steps}, "pre_tokenizer": marks,
    }).encode()  # fmt: skip


def test_clusters_and_white_ends_are_for_the_kernels(monkeypatch):
    draw = random.Random(3)
    content = stripped_clusters(drawn_unigram(draw))
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    monkeypatch.setattr(tok._encoder._odd_texts, "ids", None)
    texts = ["".join(draw.choices(JOINING, k=draw.randrange(1, 7))) for _ in range(3000 if JIT else 40)]
    texts += [f"a word {text} of words{text}" for text in texts[:: 5 if JIT else 20]]
    assert tok.encode_batch(texts, threads=1).to_list() == [plain.encode(text, False) for text in texts]
    for bad in (b"\xff\xc2\x85", b"a\xe2\x85", b"\xf4\x90\x80\x80\n", b"\xe2\xc2\x85 ", b"\x80\x80\x80\x80\xc2\x85"):
        with pytest.raises(jittok.EncodingFailed):
            tok.encode(bad)


@pytest.mark.skipif(not JIT, reason="timed")
def test_many_short_texts_take_no_longer_each_than_few():
    tok = jittok.load(stripped_clusters(drawn_unigram(random.Random(3))), cache=False)

    def seconds(count: int) -> float:
        texts, least = ["abcd e"] * count, 9.0
        for _ in range(3):
            start = time.process_time()
            tok.encode_batch(texts, threads=1)
            least = min(least, time.process_time() - start)
        return least

    seconds(100)
    assert seconds(40_000) < 40 * seconds(4_000)


def test_a_sum_below_minus_100000_begins_anew_as_in_sentencepiece():
    rows = [
        ("<unk>", 0.0, 2),
        ("a", -100.3, 1),
        ("b", -1.7, 1),
        ("c", -1.9987, 1),
        ("bc", -3.7, 1),
        ("\u2581", -5.0, 1),
    ]
    pieces = [_field(1, t.encode()) + b"\x15" + struct.pack("<f", s) + bytes([0x18, k]) for t, s, k in rows]
    content = b"".join(_field(1, piece) for piece in pieces)
    content += _field(2, bytes([3 << 3, 1])) + _field(3, _field(1, b"mine") + bytes([0x18, 0, 0x20, 0, 0x28, 1]))
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    one, two = [4], [2, 3]  # rounding hides that two are better, until the sum is small again
    found = {n: tok.encode("a" * n + "bc").tolist()[n:] for n in (0, 900, 990, 997, 1000, 1300, 1330, 1990, 1995)}
    assert found == {0: two, 900: one, 990: one, 997: two, 1000: two, 1300: two, 1330: one, 1990: one, 1995: two}
    assert plain.encode("a" * 997 + "bc", False)[997:] == two
