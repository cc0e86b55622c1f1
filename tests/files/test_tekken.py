"""tekken.json as mistral-common 1.13.1 reads it: answers written here, and its own where it is installed."""

import json
import random
from itertools import groupby

import pytest
import small_files

import jittok
from jittok.common.rows import TokenArray
from jittok.errors import MalformedVocab
from jittok.reference.pipeline import runner

COUNT = 6
E2, X82, XAC, A = (COUNT + byte for byte in (0xE2, 0x82, 0xAC, 0x61))


def tekken(ranks=(0, 1, 2), names=("<unk>", "<s>", "</s>")) -> bytes:
    """Three special tokens with a name and three without."""
    root = json.loads(small_files.tekken())
    root["config"]["default_num_special_tokens"] = COUNT
    root["config"]["default_vocab_size"] = len(root["vocab"]) + COUNT
    root["special_tokens"] = [
        {"rank": rank, "token_str": name, "is_control": True} for rank, name in zip(ranks, names, strict=True)
    ]
    return json.dumps(root).encode()


def load(content, tmp_path):
    (tmp_path / "tekken.json").write_bytes(content)
    return jittok.load(tmp_path / "tekken.json", cache=False)


def library(tmp_path):
    found = pytest.importorskip("mistral_common.tokens.tokenizers.tekken")
    policy = found.SpecialTokenPolicy
    return found.Tekkenizer.from_file(tmp_path / "tekken.json"), {True: policy.IGNORE, False: policy.KEEP}


def plain(tok, ids, skip):
    """The text, as the library makes it: what is between special tokens alone."""
    return "".join(
        ("" if skip else tok.decode_bytes(group, skip_special=False).decode())
        if special
        else tok.decode_bytes(group).decode("utf-8", "replace")
        for special, group in ((special, list(group)) for special, group in groupby(ids, lambda token: token < COUNT))
    )


@pytest.fixture(params=[1 << 14, 0], ids=["reference", "kernel"])
def way(request, monkeypatch):
    monkeypatch.setattr("jittok.decode.reference_decoder.WORTH_PIECES", request.param or -1)


@pytest.mark.parametrize(
    ("ids", "skipped", "kept"),
    [
        ([E2, X82, 1, XAC], "\ufffd\ufffd", "\ufffd<s>\ufffd"),
        ([E2, X82, 0, XAC], "\ufffd\ufffd", "\ufffd\ufffd"),  # a special token without a text
        ([E2, 1, 0, X82, XAC, A], "\ufffd\ufffd\ufffda", "\ufffd<s>\ufffd\ufffda"),
        ([0, X82, E2, A], "\ufffd\ufffda", "\ufffd\ufffda"),
        ([1, E2, X82, XAC, 4], "\u20ac", "<s>\u20ac<SPECIAL_4>"),
    ],
)
@pytest.mark.usefixtures("way")
def test_what_stands_between_special_tokens_is_read_by_itself(ids, skipped, kept, tmp_path):
    tok = load(tekken(names=("", "<s>", "</s>")), tmp_path)
    for skip, text in ((True, skipped), (False, kept)):
        assert tok.decode(ids, skip_special=skip) == text
        assert tok.decode(iter(ids), skip_special=skip) == text
        assert tok.decode_batch([[], ids, [A], [], ids], skip_special=skip) == ["", text, "a", "", text]
        assert runner(tok.vocab).decode_text(ids, skip) == text
        stream = tok.stream_decoder(unparse_special=not skip)
        assert "".join(map(stream.push, ids)) + stream.finish() == text
    assert tok.decode([1, *ids], remove_special=True) == skipped


@pytest.mark.usefixtures("way")
def test_the_text_of_any_ids_is_the_library_s(tmp_path, monkeypatch):
    tok, draw = load(tekken(names=("", "<s>", "</s>")), tmp_path), random.Random(5)
    rows = [draw.choices([0, 1, 2, 4, E2, X82, XAC, A, A + 1], k=draw.randrange(40)) for _ in range(150)]
    own = {skip: [plain(tok, row, skip) for row in rows] for skip in (True, False)}
    for at_once in (1 << 14, 5):
        monkeypatch.setattr("jittok.decode.reference_decoder.IDS_PER_STEP", at_once)
        monkeypatch.setattr("jittok.tokenizer.tokenizer.IDS_PER_SLICE", at_once)
        for skip, texts in own.items():
            assert tok.decode_batch(rows, skip_special=skip) == texts
            assert [tok.decode(row, skip_special=skip) for row in rows] == texts
            assert [runner(tok.vocab).decode_text(row, skip) for row in rows] == texts
            stream = tok.stream_decoder(unparse_special=not skip)
            assert ["".join(map(stream.push, row)) + stream.finish() for row in rows] == texts
    lib, policy = library(tmp_path)
    for skip, texts in own.items():
        assert [lib.decode(row, policy[skip]) for row in rows] == texts


def test_other_ways_to_read_broken_bytes_see_each_part_alone(tmp_path):
    tok, ids = load(tekken(), tmp_path), [E2, X82, 1, XAC, A]
    assert tok.decode(ids, errors="ignore") == "a"
    assert tok.decode(ids, errors="surrogateescape") == "\udce2\udc82\udcaca"
    assert tok.decode_bytes(ids) == b"\xe2\x82\xaca"
    for decode in (tok.decode, lambda row, **how: tok.decode_batch([row], **how)):
        with pytest.raises(UnicodeDecodeError):
            decode(ids, errors="strict")
        with pytest.raises(jittok.InvalidToken):
            decode([*ids, len(tok)], errors="strict")
    with pytest.raises(jittok.InvalidToken):
        tok.decode_batch(TokenArray([*ids, -1], [0, 5, 6]))


@pytest.mark.parametrize(
    ("ranks", "names", "bos", "eos"),
    [
        ((1, 2, 0), ("<s>", "</s>", "<unk>"), 1, 2),
        ((5, 2, 0), ("<s>", "</s>", "<unk>"), 5, 2),
        ((2, 2, 0), ("<s>", "</s>", "<unk>"), 2, 2),
    ],
)
def test_special_tokens_of_another_order_have_the_library_s_ids(ranks, names, bos, eos, tmp_path):
    tok = load(tekken(ranks, names), tmp_path)
    assert (tok.bos_id, tok.eos_id) == (bos, eos)
    assert tok.encode("a", add_special=True).tolist() == [bos, A]
    texts = [tok.decode([k], skip_special=False) for k in range(COUNT)]
    assert texts == [*names, "<SPECIAL_3>", "<SPECIAL_4>", "<SPECIAL_5>"]  # by their places, as the library prints them
    lib, policy = library(tmp_path)
    assert (lib.bos_id, lib.eos_id, lib.encode("a", True, False)) == (bos, eos, [bos, A])
    assert [lib.decode([k], policy[False]) for k in range(COUNT)] == texts


def test_a_special_token_s_rank_is_that_of_a_special_token(tmp_path):
    with pytest.raises(MalformedVocab, match="rank below 6"):
        load(tekken((COUNT, 1, 2)), tmp_path)
