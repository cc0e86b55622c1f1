"""Short texts one after the other: their ids are those of the ordinary way, whatever happened in between."""

import lzma
import random
import threading
from pathlib import Path

import numpy as np
import pytest

import jittok
from jittok._jit import JIT
from jittok._raw.objects import place_in_bytes
from jittok.encode import quick
from jittok.errors import EncodingFailed

VOCABS = Path(__file__).parents[1] / "data" / "vocabs"
MADE_UP = sorted(path.name.split(".")[0] for path in VOCABS.glob("*.gguf.xz"))
BUNDLED = ["bert", "gpt-2", "mistral", "t5"] if JIT else []
RULES = [{}, {"add_special": True}, {"parse_special": True}, {"add_special": True, "parse_special": True}]


class Text(str):
    __slots__ = ()


def tokenizer(name):
    if name in BUNDLED:
        return jittok.bundled(name)
    return jittok.load(lzma.decompress((VOCABS / f"{name}.gguf.xz").read_bytes()), cache=False)


def texts_of(tok, count):
    """Words, numbers, blanks, special tokens, other scripts, of all lengths."""
    rng = random.Random(count)
    special = [tok.token_to_piece(token, special=True) for token in sorted(tok.special_ids)[:5]]
    parts = [b" the", b"word", b"\n", b"  ", b"123", b"'s", "é".encode(), "中".encode(), b"\xff", b"<", b"a" * 40]
    for _ in range(count):
        text = b"".join(rng.choice(parts + special) for _ in range(rng.choice([0, 1, 2, 5, 20, 300])))
        yield from (text, text.decode("utf-8", "ignore"), text.decode("ascii", "ignore"))


def ordinary(tok, text, rule):
    """The ids of a text by `Encoder.one`, or what it raises."""
    encoder, found = tok._rule(rule.get("add_special", False), rule.get("parse_special", False), "strict")
    raw = text.encode() if isinstance(text, str) else text
    try:
        return encoder.one(raw, found).tolist()
    except EncodingFailed as error:
        return str(error)


def asked(tok, text, rule):
    try:
        return tok.encode(text, **rule).tolist()
    except EncodingFailed as error:
        return str(error)


@pytest.mark.parametrize("name", [*BUNDLED, *MADE_UP])
def test_ids_are_those_of_the_ordinary_way(name):
    tok = tokenizer(name)
    for number, text in enumerate(texts_of(tok, 25 if JIT else 3)):
        rule = RULES[number % 4] if tok.vocab.type != "wpm" or tok.vocab.bos_id >= 0 else {}
        assert asked(tok, text, rule) == ordinary(tok, text, rule), (text, rule)
        if number % 10 == 0:  # arrays of the workspace are replaced
            tok.encode_batch(["some words " * number, text] * 3, threads=1 + number % 2, errors="replace")


@pytest.mark.skipif(not place_in_bytes(), reason="texts are never read in place here")
def test_only_bytes_and_ascii_str_go_the_quick_way():
    tok = jittok.bundled("gpt-2")
    encoder, rule = tok._rule(False, False, "strict")
    assert tok.encode("some words") is not None
    known = quick.encode_quickly(encoder, "some words", rule).tolist()
    assert quick.encode_quickly(encoder, b"some words", rule).tolist() == known
    for other in ("é", Text("some words"), bytearray(b"some words"), "", b"", "x" * (quick.LONGEST_QUICK + 1), 5, None):
        assert quick.encode_quickly(encoder, other, rule) is None
    for text in ("some words", Text("some words"), bytearray(b"some words"), memoryview(b"some words")):
        found = tok.encode(text)
        assert (type(found), found.tolist()) == (jittok.rows.ids.Ids, known)
    with pytest.raises(TypeError, match="found int"):
        tok.encode(5)


@pytest.mark.skipif(not place_in_bytes(), reason="texts are never read in place here")
def test_a_frame_is_laid_out_anew_when_an_array_has_been_replaced():
    tok = jittok.bundled("gpt-2")
    encoder, rule = tok._rule(False, True, "strict")
    text = "some words<|endoftext|>and others"
    want = tok.encode_batch([text], parse_special=True, threads=1)[0].tolist()
    for _ in range(2):
        assert tok.encode(text, parse_special=True).tolist() == want
    (workspace,) = encoder._workspaces[-1:]
    frame = workspace.frames[id(rule)]
    assert frame.fits(encoder, workspace)
    for replace in (
        lambda: workspace.give_ids(9000, 0),
        lambda: workspace.give_fragments(100),
        lambda: encoder._give_work(workspace, 5000),
        lambda: setattr(encoder, "arrays", encoder.arrays._replace()),
    ):
        replace()
        assert not workspace.frames[id(rule)].fits(encoder, workspace)
        assert tok.encode(text, parse_special=True).tolist() == want
        assert workspace.frames[id(rule)].fits(encoder, workspace)
    workspace.ids = np.empty(0, np.int32)
    assert tok.encode(text, parse_special=True).tolist() == want


def test_threads_do_not_share_a_frame():
    tok = jittok.bundled("gpt-2")
    texts = [f"text {k} of {'many ' * (k % 50)}words" for k in range(400 if JIT else 20)]
    want = [tok.encode(text.encode() + b"").tolist() for text in texts]
    found = {}

    def work(number):
        found[number] = [tok.encode(text).tolist() for text in texts]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(found[k] == want for k in range(4))
