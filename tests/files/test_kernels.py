"""Kernels and the plain reference give the same ids for drawn files, and for drawn texts of real ones."""

import json
import random

import numpy as np
import pytest
from amounts import amount
from drawn_files import drawn_json, drawn_text

import jittok
from jittok.common.unicode.libraries import characters, normal_form
from jittok.common.unicode.nfc import class_table, composing_pairs, decompositions, seconds
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.files import read_pipeline
from jittok.kernels.jit import JIT, U8, frozen, kernel
from jittok.kernels.memory import composed_mask, composing_leads, window
from jittok.kernels.normalize.nfc.fragments import NotUtf8, changed_fragments, nfc_tables
from jittok.kernels.normalize.nfc.quick_check import COMPOSES, COMPOSES_MASK, LEADS, settled_mask
from jittok.kernels.structures.utf8_check import VALID, first_malformed
from jittok.reference.pipeline import Runner

FILES = amount(24, 12, 1)


@kernel
def leads_at(data: U8, i: int) -> int:
    """The mask of one block."""
    found, _ = composing_leads(window(data), i)
    return np.int64(found)


@kernel
def free_at(data: U8, i: int) -> int:
    """The mask of characters that no normal form changes, of one block."""
    return np.int64(composed_mask(window(data), i))


@kernel
def settled_at(data: U8, i: int) -> int:
    """The mask of Indic characters that NFC never changes, of one block."""
    return np.int64(settled_mask(window(data), i))


def one(raw):
    data = frozen(np.frombuffer(raw, np.uint8) if raw else np.zeros(0), np.uint8)
    return data, frozen([0], np.int64), frozen([len(raw)], np.int64), frozen([-2], np.int32)


@pytest.mark.parametrize("seed", range(FILES))
def test_a_drawn_file_gives_the_ids_of_the_reference(seed):
    draw = random.Random(seed)
    content = drawn_json(draw)
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    texts = [drawn_text(draw) for _ in range(60)]
    assert tok.runs == "kernels"
    for parse in (False, True):
        rows = tok.encode_batch(texts, parse_special=parse, threads=1).to_list()
        for text, ids in zip(texts, rows, strict=True):
            assert ids == plain.encode(text, parse), text
        assert [tok.encode(text, parse_special=parse).tolist() for text in texts[::7]] == rows[::7]


@pytest.mark.skipif(not JIT, reason="real vocabularies take long in the interpreter")
@pytest.mark.parametrize("name", ["r50k_base", "mistral-v1"])
def test_texts_of_all_kinds_give_the_ids_of_the_reference(recorded, name):
    draw, found = random.Random(7), recorded(name)
    tok, plain = jittok.load(found.path, cache=False), Runner(read_pipeline(found.path))
    texts = [drawn_text(draw) for _ in range(150)]
    assert tok.encode_batch(texts).to_list() == [plain.encode(text) for text in texts]


def test_bytes_are_utf8_where_python_says_so():
    draw, seen = random.Random(3), set()
    for _ in range(600 if JIT else 60):
        raw = bytearray(drawn_text(draw).encode() * draw.choice([1, 1, 3]))
        for _ in range(draw.randrange(3)):
            at = draw.randrange(len(raw) + 1)
            raw[at : at + draw.randrange(2)] = bytes(
                [draw.choice(b"\x80\xbf\xc0\xc1\xc3\xe0\xed\xa0\xf0\x8f\x90\xf4\xf5\xffa")]
            )
        try:
            bytes(raw).decode()
            wanted = VALID
        except UnicodeDecodeError:
            wanted = 0
        assert first_malformed(*one(bytes(raw)), 0, 1) == wanted, bytes(raw)
        seen.add(wanted)
    assert seen == {VALID, 0}


def in_nfc(texts):
    """The texts as the kernels normalize them for tokenizers' files."""
    raw = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, raw)])
    data, starts, stops = frozen(np.frombuffer(b"".join(raw), np.uint8), np.uint8), ends[:-1], ends[1:]
    places = frozen(starts, np.int64), frozen(stops, np.int64), frozen(np.full(len(raw), -1), np.int32)
    found = changed_fragments(nfc_tables(old=True), data, *places, len(raw), strict=True)
    if found is None:
        return texts
    rows = zip(texts, found.changes, found.starts, found.stops, strict=True)
    return [text if change < 0 else found.data[a:b].tobytes().decode() for text, change, a, b in rows]


def test_the_kernels_nfc_is_that_of_the_library():
    draw = random.Random(4)
    marks, parts = np.flatnonzero(class_table()).tolist(), sorted({*decompositions(), *seconds()})
    pools = [marks, parts, sorted(map(ord, characters("newer"))), range(0x20, 0x250), range(0x1100, 0x1200), [0x94D]]
    texts = [
        "".join(chr(draw.choice(draw.choice(pools))) * draw.choice([1, 1, 1, 30]) for _ in range(draw.randrange(12)))
        for _ in range(2000 if JIT else 60)
    ]
    assert in_nfc(texts) == [normal_form("NFC", text) for text in texts]


@pytest.mark.parametrize("bad", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe3\x81"])
def test_a_text_that_is_no_utf8_is_found_wherever_it_changes(bad):
    for before in ("", "a" * 70, "e\u0301" * 30, "я" * 40, "\u094d"):
        for behind in ("", "b" * 70, "e\u0301"):
            text = before.encode() + bad + behind.encode()
            with pytest.raises(NotUtf8):
                changed_fragments(nfc_tables(old=True), *one(text), 1, strict=True)


@pytest.mark.skipif(not JIT, reason="a million code points without the compiler")
def test_only_characters_whose_first_byte_says_so_can_change():
    leads = frozen(np.arange(256).astype(np.uint8), np.uint8)
    seen = {k for at in range(0, 256, 64) for k in range(at, at + 64) if leads_at(leads, at) >> (k - at) & 1}
    assert seen == {*LEADS}
    for old in (False, True):
        table = nfc_tables(old).quick
        two, three = table.two.reshape(32, -1).any(1), table.three.reshape(16, -1).any(1)
        assert {*(0xC0 + np.flatnonzero(two)).tolist(), *(0xE0 + np.flatnonzero(three)).tolist()} <= {*LEADS}


def free_pairs():
    """Whether each first and second byte are those of a character that no normal form changes, by the mask."""
    found = np.zeros((256, 256), bool)
    for second in range(0x80, 0xC0):
        for part in range(0xC0, 0x100, 32):
            block = np.full(65, second, np.uint8)
            block[0:64:2] = range(part, part + 32)
            mask = free_at(frozen(block, np.uint8), 0)
            found[part : part + 32, second] = [mask >> k & 1 for k in range(0, 64, 2)]
    return found


def test_no_character_that_says_anything_to_nfc_is_passed_over_by_two_bytes():
    free = free_pairs()
    assert [free[first].sum() for first in (0xEC, 0xED, 0xE0, 0xF0)] == [64, 32, 0, 0]
    for old in (False, True):
        quick = nfc_tables(old).quick
        two, three = quick.two.reshape(32, 64) != 0, (quick.three.reshape(16, 64, 64) != 0).any(2)
        assert not (free[0xC0:0xE0, 0x80:0xC0] & two).any()
        assert not (free[0xE0:0xF0, 0x80:0xC0] & three).any()
    assert not free[0xF0:].any()


@pytest.mark.parametrize(
    "text", ["한국어 " * 12, "ελληνικά" * 9, "العربية " * 9, "か\u3099き" * 12, "한" * 30 + "\u11a8"]
)
def test_blocks_with_many_candidates_hide_no_change(text):
    for shift in range(0, 70, amount(3, 3, 22)):
        for odd in ("", "e\u0301", "\u0387", "\u1100\u1161", "ש\u05bc\u05c1", "\ufb1d", "\u064b\u0651"):
            whole = "." * shift + text + odd + text
            assert in_nfc([whole]) == [normal_form("NFC", whole)]


def settled(points):
    """Those of some code points of three bytes that the mask has."""
    found = set()
    for at in range(0, len(points), 21):
        part = points[at : at + 21]
        block = "".join(map(chr, part)).encode().ljust(66, b"a")
        mask = settled_at(frozen(np.frombuffer(block, np.uint8), np.uint8), 0)
        found |= {c for k, c in enumerate(part) if mask >> (3 * k) & 1}
        assert mask & 0o111111111111111111111 == mask
    return found


def test_no_indic_character_that_says_anything_to_nfc_is_passed_over_by_three_bytes():
    points = [c for c in range(0x800, 0x2100 if JIT else 0xE00) if c != 0xD7FF]
    found = settled(points)
    assert found <= {*range(0x900, 0xD80)}
    for old in (False, True):
        matters = nfc_tables(old).quick.three
        assert not [hex(c) for c in found if matters[c]]
    assert {0x905, 0x93E, 0x94D, 0xB95, 0xC3E, 0xD15} <= found
    assert len(found) > 900


def test_only_signs_that_end_alike_compose_with_an_indic_aa():
    first, second, _ = composing_pairs()
    ends = [c for c in range(0x900, 0xD80, 2) if (raw := chr(c).encode())[2] == 0xBE and raw[1] & 1 == 0]
    assert [c for c in ends if nfc_tables().quick.three[c]] == [0x9BE, 0xB3E, 0xBBE, 0xD3E]
    signs = [
        chr(a).encode() for a, b in zip(first.tolist(), second.tolist(), strict=True)
        if 0x900 <= b < 0xD80 and chr(b).encode()[2] == 0xBE
    ]  # fmt: skip
    assert len(signs) == 6
    assert all(sign[2] & COMPOSES_MASK == COMPOSES for sign in signs)


INDIC = "हिन्दी में लिखा ", "தமிழ் மொழியில் பாடல் ", "বাংলা ভাষায় লেখা ", "తెలుగు పాఠాలు రాయ ", "ಕನ್ನಡ ಭಾಷೆ ", "മലയാളം പാഠം "


@pytest.mark.parametrize("text", INDIC)
def test_indic_blocks_hide_no_change(text):
    odd = ("\u093c", "\u0958", "\u09c7\u09be", "\u0bc6\u0bbe", "\u0bc7\u0bbe", "\u0d46\u0d3e", "\u0bc6\u0301\u0bbe",
           "\u0bc6\u0323\u0301", "\u0cbf\u0cd5", "\u0cc6\u0cc2", "\u09bc\u0951", "\u0a33", "\u0a36", "\u0bbe",
           "\u0301\u09bc")  # fmt: skip
    for shift in range(0, 66, amount(5, 5, 22)):
        for each in odd[:: 1 if JIT else 3]:
            for whole in ("." * shift + text * 4 + each + text * 4, each + text * 5, "." * shift + text * 5 + each):
                assert in_nfc([whole]) == [normal_form("NFC", whole)], ascii(whole)


def test_drawn_indic_text_is_that_of_the_library():
    draw = random.Random(9)
    parts = [*map(chr, (*range(0x900, 0xD80, 1 if JIT else 9), 0x301, 0x323))] + [
        "\u0bbe",
        "\u09be",
        "\u0bc6",
        "\u093c",
    ] * 20
    texts = ["".join(draw.choice(parts) for _ in range(draw.randrange(90))) for _ in range(1500 if JIT else 30)]
    assert in_nfc(texts) == [normal_form("NFC", text) for text in texts]


def test_a_match_in_white_space_that_a_token_has_taken_is_empty_only_with_lstrip():
    rows = [("\n\n", True), ("\n!", True), (" ", False)]
    tokens = [
        {"id": 256 + k, "content": text, "special": True, "normalized": False, "lstrip": both, "rstrip": both}
        for k, (text, both) in enumerate(rows)
    ]
    vocab = {chr(c): byte for byte, c in enumerate(CHARACTER_OF_BYTE)}
    content = {
        "added_tokens": [{**token, "single_word": False} for token in tokens],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "model": {"type": "BPE", "vocab": vocab, "merges": []},
    }
    tok = jittok.load(json.dumps(content).encode(), cache=False)
    plain = Runner(tok.vocab)
    # as tokenizers 0.23 answers
    wanted = {
        "a" + "\n" * 7 + "b": [97, 256, 98],
        "a\n\n\n!b": [97, 256, 257, 98],
        "a \n\n  b": [97, 258, 256, 258, 258, 98],
    }
    for text, ids in wanted.items():
        assert tok.encode(text, parse_special=True).tolist() == ids == plain.encode(text, True)


def _with_fallback(without: set[str]) -> bytes:
    """A tokenizer.json of characters, with tokens for bytes that are not in the text of others."""
    tokens = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "\t", "▁", "a", "b", "▁a", "ab"]
    kept = [token for token in tokens if token not in without]
    model = {"type": "BPE", "vocab": {token: at for at, token in enumerate(kept)}, "merges": [["▁", "a"], ["a", "b"]]}
    model |= {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    return json.dumps({"version": "1.0", "added_tokens": [], "normalizer": space, "model": model}).encode()


@pytest.mark.parametrize(
    ("without", "runs"),
    [
        ({"<0x09>", "<0x20>", "<0x61>", "<0xC0>", "<0xF5>", "<0xFF>"}, "kernels"),
        ({"<0x09>", "\t"}, "general"),
        ({"<0x80>"}, "general"),
    ],
)
def test_a_token_of_a_byte_may_be_missing_where_no_character_asks_for_it(without, runs):
    content = _with_fallback(without)
    tok, plain = jittok.load(content, cache=False), Runner(read_pipeline(content))
    assert tok.runs.startswith(runs)
    for text in ("\t", "a\tb", " ab  \té€\x80z\U0010ffff", "c\t" * 40, "\x7f\x00 a"):
        assert tok.encode(text).tolist() == plain.encode(text), text
