"""Short texts of other libraries' files one after the other: looked at, composed and prepared in the quick way."""

import json
import random
import tarfile
from pathlib import Path

import pytest
from drawn_files import SPLITS, byte_level_json, drawn_text
from one_by_one import RULES, asked, builtin_of, ordinary, texts_of

import jittok
from jittok.encode import limits, short_text
from jittok.kernels.memory.python_objects import encode_builtin

FILES = Path(__file__).parents[1] / "data" / "files"


@pytest.fixture
def often(monkeypatch):
    """Builtins are made at once."""
    if not encode_builtin.may_be_made():
        pytest.skip("no builtin can be made here")
    monkeypatch.setattr(short_text, "CALLS_BEFORE_FIRST_BUILTIN", 1)


MARKED = ("cafe\u0301", "e\u0301" * 40, "\u0958", "\u1100\u1161\u11a8", "q\u0323\u0307 q\u0307\u0323")
"""Texts that NFC changes."""


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("pattern", [SPLITS[1], SPLITS[5]])
@pytest.mark.parametrize("around", [False, True])
def test_what_nfc_changes_is_written_anew_in_the_quick_way(pattern, around):
    content = json.loads(byte_level_json(pattern, "NFC"))
    token = {"id": 256, "content": "<s>", "special": True, "single_word": False, "lstrip": False, "rstrip": False}
    content["added_tokens"] = [{**token, "normalized": False}]
    special, piece = {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    content["post_processor"] = {
        "type": "TemplateProcessing", "single": [special, special, piece, special],
        "pair": [piece, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}},
    }  # fmt: skip
    tok, rule = jittok.load(json.dumps(content).encode(), cache=False), {"add_special": around, "parse_special": True}
    assert tok.encode(MARKED[0]).tolist() == list("caf\u00e9".encode())
    for text in MARKED:
        for words in (text, f"some {text} words", f"{text}<s>", f"<s>{text}", "\u00e9" + text, "plain \u00e9"):
            raw = words.encode()
            want = ordinary(tok, raw, rule)
            assert tok.encode(words, **rule).tolist() == want
            found = builtin_of(tok, **rule)(raw)  # the ordinary way had the workspace
            if "<s>" in words and text in words:  # only some of the text changes
                assert found is None
            else:
                assert found.tolist() == want, words
    for raw in (b"\xff", "e\u0301".encode()[:-1], "e\u0301".encode() + b"\xc3", b"\xed\xa0\x80"):
        assert builtin_of(tok, **rule)(raw) is None
        assert asked(tok, raw, rule) == ordinary(tok, raw, rule)
    for long in ("e\u0301" * (limits.LONGEST_WITH_GIL // 3), "e\u0301" * limits.LONGEST_WITH_GIL):
        want = ordinary(tok, long, rule)
        found = builtin_of(tok, **rule)(long.encode())
        assert found.tolist() == want if len(long.encode()) <= limits.LONGEST_WITH_GIL else found is None
        assert tok.encode(long, **rule).tolist() == want


CHAINS = ["pix2tex", "syn-bpe-affixes", "syn-bpe-prefix-space", "syn-wordlevel"]
"""Files whose texts are prepared by kernels alone."""


def unpacked(name, folder):
    """A tokenizer of a recorded file."""
    with tarfile.open(FILES / f"{name}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    (path,) = [each for each in (folder / name).iterdir() if each.is_file()][:1]
    return jittok.load(path, cache=False)


@pytest.mark.parametrize("first_often", [1, 1 << 60])
@pytest.mark.parametrize("name", ["mistral-v1", "rwkv-world", "r50k_base", "spm-test-ja", "syn-bpe-user", *CHAINS])
def test_other_files_go_the_quick_way_with_the_ids_of_the_ordinary_one(name, first_often, tmp_path, monkeypatch):
    if not encode_builtin.may_be_made():
        pytest.skip("no builtin can be made here")
    monkeypatch.setattr(short_text, "CALLS_BEFORE_FIRST_BUILTIN", first_often)
    monkeypatch.setattr(short_text, "CALLS_BEFORE_BUILTIN", first_often)
    tok = unpacked(name, tmp_path)
    went = 0
    for number, text in enumerate(texts_of(tok, 15)):
        rule = RULES[number % 4]
        want = ordinary(tok, text, rule)
        assert asked(tok, text, rule) == want, (text, rule)
        encoder, found = tok._rule(rule.get("add_special", False), rule.get("parse_special", False), "strict")
        raw = text if isinstance(text, bytes) else text.encode()
        ids = (
            short_text.try_short_text(encoder, raw, found)
            if encoder.try_short_text(b"a text", found) is not None
            else None
        )
        if ids is not None:
            assert ids.tolist() == want, (text, rule)
            builtin = encoder.builtins[id(found)]
            assert (builtin is None) == (first_often > 1)
            assert builtin is None or len(raw) > limits.LONGEST_WITH_GIL or builtin(raw).tolist() == want
            went += 1
    assert went > 10 if name != "syn-bpe-user" else went == 0


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("name", CHAINS)
def test_a_text_that_is_prepared_leaves_nothing_for_the_next(name, tmp_path):
    tok, draw = unpacked(name, tmp_path), random.Random(1)
    texts = [drawn_text(draw) * draw.choice([1, 1, 20]) for _ in range(40)] + ["x" * 4000, "a", "\u0301", "ab", " "]
    want = [ordinary(tok, text, {}) for text in texts]
    for k in [draw.randrange(len(texts)) for _ in range(300)]:
        assert tok.encode(texts[k]).tolist() == want[k], texts[k]
    builtin = builtin_of(tok)
    went = [(k, found.tolist()) for k, text in enumerate(texts) if (found := builtin(text.encode())) is not None]
    assert all(ids == want[k] for k, ids in went)
    assert len(went) > len(texts) // 2


@pytest.mark.usefixtures("often")
def test_a_prepared_file_with_unknown_pieces_side_by_side_joins_them_in_the_quick_way(tmp_path):
    pytest.importorskip("sentencepiece")
    spm = __import__("sentencepiece")
    lines = ["some words of a text", "and other words of others", "the text is some text"] * 20
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(tmp_path / "m"), vocab_size=60, model_type="bpe",
        normalization_rule_name="nmt_nfkc", minloglevel=2, hard_vocab_limit=False,
    )  # fmt: skip
    tok = jittok.load(tmp_path / "m.model", cache=False)
    own = spm.SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    builtin_of(tok)
    for text in ("some \u4e2d\u6587 words", "\u4e2d\u6587\u4e2d", "\uff41\uff42 text", "  two  spaces ", "\u4e2d"):
        tok.encode("a text")
        (builtin,) = tok._builtins.values()
        assert builtin(text.encode()).tolist() == own.encode(text) == tok.encode(text).tolist()
