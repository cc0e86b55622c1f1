"""Ids to text by pieces gives what the reference gives, for every decoder that goes token by token."""

import json
import random
from itertools import chain

import numpy as np
import pytest
from small_files import sentencepiece_of

import jittok
from jittok.decode import piece_decoder, reference_decoder
from jittok.decode.piece_decoder import make_piece_decoder
from jittok.files import read_pipeline
from jittok.files.hf.steps import MOST_GROWTH
from jittok.kernels.jit import JIT
from jittok.reference.pipeline import runner

SPACE, MARK = " ", "▁"
BPE, NORMAL, UNKNOWN, CONTROL, BYTE = 2, 1, 2, 3, 6
HEAD = [("<unk>", UNKNOWN, 0.0), ("<s>", CONTROL, 0.0), ("</s>", CONTROL, 0.0)]
BYTES = [(f"<0x{byte:02X}>", BYTE, 0.0) for byte in range(256)]
REPLACE = {"type": "Replace", "pattern": {"String": MARK}, "content": SPACE}
STRIP = {"type": "Strip", "content": SPACE, "start": 1, "stop": 0}
FALLBACK, FUSE, BYTE_LEVEL = {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "ByteLevel"}
METASPACE = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always", "split": True}
WORDPIECE, SUFFIX = {"type": "WordPiece", "prefix": "##", "cleanup": True}, {"type": "BPEDecoder", "suffix": "</w>"}
CTC = {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True}
DECODERS = [
    [REPLACE, FALLBACK, FUSE, STRIP], [FALLBACK, FUSE], [BYTE_LEVEL], [REPLACE, BYTE_LEVEL], [METASPACE], [WORDPIECE],
    [SUFFIX], [REPLACE], [STRIP, FUSE], [METASPACE, FALLBACK, FUSE, STRIP], [FALLBACK, METASPACE], [REPLACE, FALLBACK],
    [FALLBACK, METASPACE, FUSE, STRIP], [BYTE_LEVEL, REPLACE, STRIP], [BYTE_LEVEL, METASPACE], [],
]  # fmt: skip
TOKENS = [
    "<unk>",
    "▁",
    "▁a",
    "a",
    "é",
    "Ġb",
    "Ã",
    "©",
    "##s",
    ".",
    "▁.",
    "n't",
    "c</w>",
    "</w>",
    " ",
    "<0xZZ>",
    "<0x4>",
    "",
]
RAW = [f"<0x{byte:02X}>" for byte in (0x41, 0xC3, 0xA9, 0xE4, 0xB8, 0xAD, 0xFF)]
MARKED = [f"<0x{byte:02X}>" for byte in MARK.encode()]


def file_of(steps):
    vocab = {text: token for token, text in enumerate([*TOKENS, *RAW, *MARKED])}
    added = [("<s>", True), ("▁x", False), ("é</w>", True)]
    tokens = [
        {"id": len(vocab) + k, "content": text, "special": special, "normalized": False, "lstrip": False,
         "rstrip": False, "single_word": False} for k, (text, special) in enumerate(added)
    ]  # fmt: skip
    model = {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"}
    whole = {
        "version": "1.0",
        "added_tokens": tokens,
        "model": model,
        "decoder": {"type": "Sequence", "decoders": steps} if steps else None,
    }
    return json.dumps(whole).encode()


def rows_of(count, draw):
    return [[draw.randrange(count) for _ in range(draw.choice([0, 1, 2, 3, 6]))] for _ in range(120 if JIT else 40)]


def asked(content, rows):
    """Rows by pieces, together, one by one and some ids at a time, are those of the reference."""
    pipeline = read_pipeline(content)
    run = runner(pipeline)
    made = make_piece_decoder(pipeline, run)
    ids, offsets = np.array([*chain.from_iterable(rows)], np.int32), np.cumsum([0, *map(len, rows)])
    for skip in (False, True):
        wanted = [run.decode(row, skip_special=skip) for row in rows]
        for row, text in zip(rows, wanted, strict=True):
            its = np.array(row, np.int32)
            assert made.one(its, skip) == text, row
            for size in (1, 2, 3):
                parts = made.parts([its[at : at + size] for at in range(0, len(row), size)], skip)
                assert b"".join(parts).decode(errors=made.reads) == text.decode(), (row, size)
        whole = made.rows(ids, offsets, skip)
        if whole is not None:
            assert bytes(whole[0]) == b"".join(wanted)
            assert np.diff(whole[1], prepend=0).tolist() == [*map(len, wanted)]


@pytest.mark.parametrize("steps", DECODERS, ids=lambda steps: "-".join(step["type"] for step in steps))
def test_pieces_give_the_text_of_the_reference(steps):
    content, draw = file_of(steps), random.Random(5)
    asked(content, rows_of(len(TOKENS) + len(RAW) + len(MARKED) + 3, draw))
    asked(content, [[1, 2, 3], [2, 3]])  # no bytes: rows of all steps at once
    raw, special = range(len(TOKENS), len(TOKENS) + len(RAW) + len(MARKED)), len(TOKENS) + len(RAW) + len(MARKED)
    near = [TOKENS.index(""), TOKENS.index("a"), special, *raw, *raw[-3:]]  # what is between and beside bytes
    rows = [[draw.choice(near) for _ in range(draw.randrange(9))] for _ in range(120 if JIT else 40)]
    asked(content, [*rows, [*raw[-3:]], [special, *raw[-3:], TOKENS.index("a")], [raw[1], special, near[0], raw[2]]])


@pytest.mark.parametrize("squeeze", [True, False])
@pytest.mark.parametrize("prefix", [True, False])
def test_pieces_of_sentencepiece_give_the_text_of_the_reference(prefix, squeeze):
    pieces = [*HEAD, *BYTES, *((text, NORMAL, -1.0) for text in ["▁", "▁a", "a", "é", "▁▁b", "中"])]
    content = sentencepiece_of(BPE, pieces, True, prefix, squeeze)
    draw = random.Random(6)
    often = [0, 1, 2, 3 + 0xC3, 3 + 0xA9, 3 + 0x41, *range(259, 265)]
    rows = [[draw.choice(often) for _ in range(draw.choice([0, 1, 2, 3, 6]))] for _ in range(120 if JIT else 40)]
    asked(content, [*rows, often[3:6] * 3, [1, *often[3:5]], [259, 259, *often[3:5], 259]])


@pytest.mark.parametrize(
    "steps",
    [[CTC], [FUSE, BYTE_LEVEL], [WORDPIECE, FALLBACK, FUSE], [FALLBACK, {**METASPACE, "replacement": "\ufffd"}]],
)
def test_decoders_that_see_several_tokens_have_no_pieces(steps, monkeypatch):
    content = file_of(steps)
    pipeline = read_pipeline(content)
    assert make_piece_decoder(pipeline, runner(pipeline)) is None
    monkeypatch.setattr("jittok.tokenizer.tokenizer.IDS_PER_SLICE", 4)  # then some ids at a time
    tok = jittok.load(content, cache=False)
    for row in rows_of(len(TOKENS) + len(RAW), random.Random(8))[:40]:
        assert tok.decode(np.array(row * 3, np.int32)) == runner(pipeline).decode(row * 3).decode()


def test_a_text_that_is_a_byte_only_at_the_beginning_has_no_piece():
    steps = [METASPACE, FALLBACK, FUSE]
    pipeline = read_pipeline(file_of(steps).replace(b"n't", "<0x4▁1>".encode("ascii", "backslashreplace")))
    assert make_piece_decoder(pipeline, runner(pipeline)) is None
    assert runner(pipeline).decode([TOKENS.index("n't")]) == b"A"


@pytest.mark.parametrize("steps", DECODERS[:3])
def test_a_tokenizer_decodes_the_same_before_and_after_it_has_pieces(steps, monkeypatch):
    content, rows = file_of(steps), rows_of(len(TOKENS), random.Random(7))
    wanted = jittok.load(content, cache=False).decode_batch(rows[:20])
    monkeypatch.setattr(reference_decoder, "WORTH_PIECES", 0)
    tok = jittok.load(content, cache=False)
    assert tok.decode_batch(rows[:20]) == wanted == [tok.decode(row) for row in rows[:20]]
    with pytest.raises(jittok.InvalidToken):
        tok.decode([len(tok.vocab)])
    assert tok._general._joined is not None


def test_a_file_cannot_make_pieces_of_any_size():
    long = {"type": "Replace", "pattern": {"String": "a"}, "content": "b" * MOST_GROWTH}
    content = file_of([long, REPLACE])  # REPLACE shortens a text, but the bound takes each content as more bytes
    pipeline = read_pipeline(content)
    assert make_piece_decoder(pipeline, runner(pipeline)) is None
    tok = jittok.load(content, cache=False)
    rows = [[TOKENS.index("a")], [TOKENS.index(".")] * 20_000]
    assert [len(text) for text in tok.decode_batch(rows)] == [MOST_GROWTH, 20_000]


def test_pieces_are_there_as_long_as_all_of_them_together_fit(monkeypatch):
    replaced = read_pipeline(file_of([{**REPLACE, "content": "\u00e9\u4e2d"}, REPLACE]))
    pieces = read_pipeline(sentencepiece_of(BPE, [*HEAD, ("a", NORMAL, -1.0)], False, False, False))
    (step,) = pieces.decode
    longer = pieces._replace(decode=(step._replace(unknown="\u00e9" * 99),))
    around = len(replaced) * (6 * 2 + 2)  # each of the contents once more than a token has bytes
    for pipeline, factor, more in (
        (replaced, 6 * 2, around), (pieces, 1, len(step.unknown.encode())), (longer, 1, 198),
    ):  # fmt: skip
        size = factor * (pipeline.token_bytes.size + len(pipeline)) + more
        monkeypatch.setattr(piece_decoder, "LENGTH", size)
        assert piece_decoder._fits(pipeline)
        monkeypatch.setattr(piece_decoder, "LENGTH", size - 1)
        assert not piece_decoder._fits(pipeline)


def test_the_number_of_a_byte_may_have_a_sign(monkeypatch):
    vocab = {text: token for token, text in enumerate(["a", "<0x+A>", "<0x-0>", "<0xc3>", "<0xA9>", "<0x++>"])}
    decoder = {"type": "Sequence", "decoders": [FALLBACK, FUSE]}
    content = json.dumps({
        "version": "1.0", "added_tokens": [], "decoder": decoder,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "a"},
    })  # fmt: skip
    for worth in (reference_decoder.WORTH_PIECES, 0):
        monkeypatch.setattr(reference_decoder, "WORTH_PIECES", worth)
        assert jittok.load(content.encode(), cache=False).decode([0, 1, 3, 4, 2, 5]) == "a\né<0x-0><0x++>"
    library = pytest.importorskip("tokenizers").Tokenizer.from_str(content)
    assert library.decode([0, 1, 3, 4, 2, 5]) == "a\né<0x-0><0x++>"


@pytest.mark.parametrize("steps", [[WORDPIECE], [FALLBACK, FUSE]])
def test_ids_that_change_after_they_were_checked_are_not_read_again(steps, monkeypatch) -> None:
    tok = jittok.load(file_of(steps))
    before = np.arange(20, dtype=np.int32)
    ids = before.copy()
    rows = jittok.TokenArray(ids, [0, ids.size])
    wanted, check = tok.decode(ids), reference_decoder.ReferenceDecoder._checked
    monkeypatch.setattr(reference_decoder, "WORTH_PIECES", 0)

    def checked(self, given):
        found = check(self, given)
        ids[::2], ids[1::2] = -5, 2**31 - 1
        return found

    monkeypatch.setattr(reference_decoder.ReferenceDecoder, "_checked", checked)
    for decode in (lambda: tok.decode(ids), lambda: tok.decode_batch(rows)[0]):
        ids[:] = before
        assert decode() == wanted
