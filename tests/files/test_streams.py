"""Text of other files' ids, one id at a time: joined, it is what all ids at once give."""

import random

import pytest
from recorded_files import HERE

import jittok
from jittok.common.pipeline import steps
from jittok.decode.file_stream import TextPart, finished, stream_step, through
from jittok.reference.decode import decoder

SETS = sorted(path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz"))
TEXTS = ["a", " a", "a ", "  ", "", "▁", "▁a▁", "##b", "</w>", "a</w>b", "<0xE4>", "<0xB8>", "<0xAD>", "<0x20>", "Ġx",
         "Ã", "©", "中", "'s", " n't", ".", " do not", "<pad>", "|", "||", "aa", "aab", "n"]  # fmt: skip
LITERAL = [steps.Pattern(text, literal=True) for text in ("a", "aa", "aab", "▁", "  ")]
STEPS = [
    steps.JoinBytes(), steps.JoinFallback(), steps.Fuse(), steps.Spaced(), steps.Trim(), steps.Unsuffix("</w>"),
    *(steps.ReplaceEach(pattern, content) for pattern in LITERAL for content in ("", " ", "aa")),
    steps.ReplaceEach(steps.Pattern("a+b?$"), "-"), steps.Unmark("▁", False), steps.Unmark("▁", True),
    *(steps.StripEach(" ", start, stop) for start, stop in ((1, 0), (0, 1), (2, 2), (0, 3))),
    steps.StripEach("a", 1, 1), steps.Ctc("<pad>", "|", True), steps.Ctc("<pad>", "|", False),
    steps.JoinWords("##", True), steps.JoinWords("##", False),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_any_decoders_in_a_row_give_the_same_text(seed):
    draw = random.Random(seed)
    for _ in range(60):
        row = [draw.choice(STEPS) for _ in range(draw.randrange(1, 4))]
        texts = [draw.choice(TEXTS) for _ in range(draw.randrange(9))]
        wanted = texts
        for step in row:
            wanted = decoder(step)(wanted)
        chain = [stream_step(step) for step in row]
        found = [part for text in texts for part in through(chain, [TextPart(text)])] + [*finished(chain)]
        assert "".join(part.text for part in found) == "".join(wanted), (row, texts)


@pytest.mark.parametrize("name", SETS)
def test_a_stream_gives_what_all_ids_give(recorded, name):
    draw, found = random.Random(1), recorded(name)
    tok = jittok.load(found.path, cache=False, **found.options)
    special = sorted(tok.special_ids) or [0]
    for row in [row for row in found.rows if row["kind"] == "case"][::4]:
        ids = list(row.get("tt", row["ff"]))
        if draw.random() < 0.5:
            ids = [draw.randrange(tok.vocab_size) if draw.random() < 0.2 else token for token in ids]
            ids = draw.choices(special, k=draw.randrange(2)) + ids + draw.choices(special, k=draw.randrange(2))
        rules = {"remove_special": draw.random() < 0.5, "unparse_special": draw.random() < 0.5}
        stream = tok.stream_decoder(**rules)
        for _ in range(2):  # it is as new after `flush`
            parts = [stream.push(token) for token in ids]
            assert "".join(parts) + stream.finish() == tok.decode(ids, **rules), (ids, rules)


def test_text_comes_as_soon_as_it_is_certain(recorded):
    tok = jittok.load(recorded("syn-bpe-metaspace-first").path, cache=False)
    ids, stream = tok.encode("some more words").tolist(), tok.stream_decoder()
    parts = [stream.push(token) for token in ids]
    assert "".join(parts) == "some more words"
    assert sum(map(bool, parts)) >= len(parts) - 1
    with pytest.raises(jittok.InvalidToken):
        stream.push(tok.vocab_size)
    assert stream.finish() == ""


def test_what_stands_around_is_left_out_of_a_stream(recorded):
    tok = jittok.load(recorded("syn-wordpiece-flags").path, cache=False)
    ids = tok.encode("a b", add_special=True).tolist()
    plain = tok.encode("a b").tolist()
    assert len(ids) > len(plain)
    stream = tok.stream_decoder(remove_special=True)
    assert "".join(map(stream.push, ids)) + stream.finish() == tok.decode(plain)
    assert "".join(map(stream.push, [*ids, ids[-1]])) + stream.finish() == tok.decode(
        [*ids, ids[-1]], remove_special=True
    )


@pytest.mark.parametrize("name", ["r50k_base", "rwkv-world", "syn-bpe-prefix-space", "bert-chinese"])
@pytest.mark.parametrize("around", [False, True])
def test_rows_that_are_decoded_in_parts_give_the_same_text(recorded, monkeypatch, name, around):
    tok, draw = jittok.load(recorded(name).path, cache=False), random.Random(3)
    rows = [[draw.randrange(len(tok)) for _ in range(size)] for size in (0, 1, 6, 7, 8, 14, 100)]
    rows += [tok.encode("中文 é 😀 naïve", add_special=True).tolist()]
    rules = {"remove_special": around, "skip_special": around}
    whole = [tok.decode_bytes(row, **rules) for row in rows]
    monkeypatch.setattr("jittok.decode.reference_decoder.IDS_PER_STEP", 7)
    assert [tok.decode_bytes(row, **rules) for row in rows] == whole
    with pytest.raises(jittok.InvalidToken, match=str(len(tok))):
        tok.decode([1] * 9 + [len(tok)])
