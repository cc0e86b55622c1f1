"""A few short texts at once have the ids that a batch has, by whichever way, and rows that no one can write to."""

import json
import random

import numpy as np
import pytest
from drawn_files import SPLITS, byte_level_json, drawn_json, drawn_text

import jittok
from jittok.encode import limits, short_text
from jittok.encode.threads.batch import encode_batch
from jittok.errors import EncodingFailed
from jittok.kernels.jit import JIT
from jittok.kernels.memory.python_objects.texts import bytes_data_offset

RULES = [{}, {"add_special": True}, {"parse_special": True}, {"errors": "replace"}]
quick = pytest.mark.skipif(not bytes_data_offset(), reason="texts are never read in place here")


def ordinary(tok, texts, rule):
    """The rows of a batch as many texts have them, or what it raises."""
    encoder, found = tok._rule(
        rule.get("add_special", False), rule.get("parse_special", False), rule.get("errors", "strict")
    )
    try:
        return encode_batch(encoder, texts, found, 1, False).to_list()
    except EncodingFailed as error:
        return str(error)


def asked(tok, texts, rule):
    try:
        return tok.encode_batch(texts, **rule).to_list()
    except EncodingFailed as error:
        return str(error)


def rows_of(tok, texts):
    """What goes the short way."""
    encoder, rule = tok._rule(False, False, "strict")
    return short_text.encode_small_batch(encoder, tok._builtins, texts, rule, (False, False, "strict"))


@pytest.mark.parametrize("seed", range(12 if JIT else 2))
def test_rows_are_those_of_a_long_batch(seed):
    draw = random.Random(seed)
    tok = jittok.load(drawn_json(draw), cache=False)
    for number in range(12 if JIT else 3):
        texts = [drawn_text(draw) for _ in range(draw.choice([1, 2, 5]))]
        if number % 3 == 0:
            texts[0] = texts[0].encode()[:-1]
        if number % 5 == 4:
            texts.append("\ud800")
        rule = RULES[number % 4]
        want = ordinary(tok, texts, rule)
        assert asked(tok, texts, rule) == want, (texts, rule)
        if isinstance(want, list):
            assert tok.count_batch(tuple(texts), **rule).tolist() == [len(row) for row in want]
            assert [row for part in tok.encode_stream(texts, **rule) for row in part.to_list()] == want


@quick
def test_few_texts_go_the_short_way_and_others_do_not():
    tok = jittok.bundled("gpt-2")
    texts = ["some words", b"and others", "\u00e9t\u00e9"]
    want = ordinary(tok, texts, {})
    tok.encode_batch(["some words"] * 2)
    assert rows_of(tok, texts).to_list() == want
    assert rows_of(tok, ("a", "b")).to_list() == ordinary(tok, ["a", "b"], {})
    for others in (
        [],
        ["a"] * (limits.MOST_TEXTS + 1),
        ["a" * limits.MOST_CHARACTERS, "b"],
        ["a", ""],
        ["\ud800"],
        ["a", 5],
        iter(["a"]),
    ):
        assert rows_of(tok, others) is None
    assert tok.encode_batch(["a", ""]).to_list() == [ordinary(tok, ["a"], {})[0], []]
    assert tok.encode_batch(["a", "b"], progress=True, threads=1).to_list() == ordinary(tok, ["a", "b"], {})


class Encoder:
    """The quick way of an encoder, and its builtins: the bytes of a text, but for those that do not go at once."""

    def __init__(self, often=1):
        self.asked, self.builtins, self._often = [], {}, often

    def try_short_text(self, text, rule):
        self.asked.append(text)
        self.builtins[id(rule)] = self.at_once if len(self.asked) >= self._often else None
        return self.ids(text)

    def at_once(self, text):
        return self.ids(text) if text[:1] not in (b"=", "=") else None

    @staticmethod
    def ids(text):
        raw = text if type(text) is bytes else text.encode("ascii")  # no others go the quick way
        return None if raw[:1] == b"!" else np.frombuffer(raw, np.uint8).astype(np.int32)


def test_a_text_goes_by_the_builtin_once_there_is_one():
    for often, quickly in (
        (1, [b"a", "=c"]),
        (2, [b"a", b"\xc3\xa9", "=c"]),
        (9, [b"a", b"\xc3\xa9", "b", "=c", b"\xff"]),
    ):
        encoder, builtins, rule = Encoder(often), {}, object()
        rows = short_text.encode_small_batch(
            encoder, builtins, [b"a", "\u00e9", "b", "=c", b"\xff"], rule, ([], 1, "strict")
        )
        assert [bytes(row.tolist()) for row in rows] == [b"a", b"\xc3\xa9", b"b", b"=c", b"\xff"]
        assert encoder.asked == quickly
        assert builtins == {(False, True, "strict"): encoder.at_once if often < 9 else None}


@pytest.mark.parametrize(
    ("texts", "goes"),
    [
        (["a"] * limits.MOST_TEXTS, True), (["a"] * (limits.MOST_TEXTS + 1), False), ([], False), (("a",
        b"b"), True), (iter("a"), False), (["a" * (limits.MOST_CHARACTERS - 1), "b"], True),
        (["a" * limits.MOST_CHARACTERS, "b"], False), (["a", "!"], False), (["a", "\ud800"], False), (["a",
        bytearray(b"b")], False), (["a", 5], False),
    ],
)  # fmt: skip
def test_which_texts_are_few_and_short(texts, goes):
    assert (short_text.encode_small_batch(Encoder(), {}, texts, object(), (False, False, "strict")) is not None) == goes


def test_errors_tell_the_number_of_the_text():
    tok = jittok.bundled("gpt-2")
    tok.encode_batch(["a"])
    with pytest.raises(EncodingFailed, match="document 1"):
        tok.encode_batch(["a", "\ud800"])
    with pytest.raises(TypeError, match="document 1"):
        tok.encode_batch(["a", 5])
    with pytest.raises(ValueError, match="threads"):
        tok.encode_batch(["a"], threads=0)
    with pytest.raises(TypeError, match="threads"):
        tok.encode_batch(["a"], threads=True)


@pytest.mark.parametrize("count", [1, 3])
def test_rows_are_read_only_and_nobody_elses(count):
    tok = jittok.bundled("gpt-2")
    texts = ["some words"] * count
    tok.encode_batch(texts)
    first = tok.encode_batch(texts)
    known = first.to_list()
    tok.encode_batch(["quite other text"] * count)
    assert first.to_list() == known
    assert (type(first.ids), first.ids.dtype, first.offsets.dtype) == (np.ndarray, np.int32, np.int64)
    assert not first.ids.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        first.offsets.flags.writeable = True
    assert first.offsets.tolist() == [len(known[0]) * k for k in range(count + 1)]


def test_what_stands_around_a_text_is_told_to_the_rows():
    content = json.loads(byte_level_json(SPLITS[0], None))
    token = {"id": 256, "content": "<s>", "special": True, "single_word": False, "lstrip": False, "rstrip": False}
    content["added_tokens"] = [{**token, "normalized": False}]
    content["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}},
    }
    tok = jittok.load(json.dumps(content).encode(), cache=False)
    for _ in range(3):
        rows = tok.encode_batch(["abc", "d"], add_special=True)
        assert rows._around == (1, 0)
        assert [len(row) for row in rows.to_list()] == [4, 2]
