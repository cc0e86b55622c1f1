"""Short texts one after the other: their ids are those of the ordinary way, whatever happened in between."""

import ctypes
import functools
import gc
import hashlib
import json
import lzma
import platform
import random
import shutil
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from drawn_files import SPLITS, byte_level_json, drawn_json, drawn_text
from made_up import MADE_UP, VOCABS
from one_by_one import RULES, asked, builtin_of, ordinary, texts_of

import jittok
from jittok.common.rows.ids import Ids
from jittok.encode import limits, short_text
from jittok.kernels.jit import JIT, shipped
from jittok.kernels.memory.python_objects import encode_builtin
from jittok.kernels.memory.python_objects.texts import bytes_data_offset, is_right, str_layout

SHIP = Path(__file__).parents[2] / "ship"
BUNDLED = ["bert", "gpt-2", "mistral", "t5"] if JIT else []


class Text(str):
    __slots__ = ()


def tokenizer(name):
    if name in BUNDLED:
        return jittok.bundled(name)
    return jittok.load(lzma.decompress((VOCABS / f"{name}.gguf.xz").read_bytes()), cache=False)


@pytest.mark.parametrize("name", [*BUNDLED, *MADE_UP])
def test_ids_are_those_of_the_ordinary_way(name):
    tok = tokenizer(name)
    for number, text in enumerate(texts_of(tok, 25 if JIT else 3)):
        rule = RULES[number % 4] if tok.vocab.type != "wpm" or tok.vocab.bos_id >= 0 else {}
        assert asked(tok, text, rule) == ordinary(tok, text, rule), (text, rule)
        if number % 10 == 0:  # arrays of the workspace are replaced
            tok.encode_batch(["some words " * number, text] * 3, threads=1 + number % 2, errors="replace")


@pytest.mark.skipif(not bytes_data_offset(), reason="texts are never read in place here")
def test_only_bytes_and_ascii_str_go_the_quick_way():
    tok = jittok.bundled("gpt-2")
    encoder, rule = tok._rule(False, False, "strict")
    assert tok.encode("some words") is not None
    known = short_text.try_short_text(encoder, "some words", rule).tolist()
    assert short_text.try_short_text(encoder, b"some words", rule).tolist() == known
    for other in (
        "é",
        Text("some words"),
        bytearray(b"some words"),
        "",
        b"",
        "x" * (limits.LONGEST_QUICK + 1),
        5,
        None,
    ):
        assert short_text.try_short_text(encoder, other, rule) is None
    for text in ("some words", Text("some words"), bytearray(b"some words"), memoryview(b"some words")):
        found = tok.encode(text)
        assert (type(found), found.tolist()) == (jittok.common.rows.ids.Ids, known)
    with pytest.raises(TypeError, match="found int"):
        tok.encode(5)


@pytest.mark.skipif(not bytes_data_offset(), reason="texts are never read in place here")
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
        lambda: workspace.grow_ids(9000, 0),
        lambda: workspace.grow_fragments(100),
        lambda: encoder._give_work(workspace, 5000),
        lambda: setattr(encoder, "arrays", encoder.arrays._replace()),
    ):
        replace()
        frame = workspace.frames.get(id(rule))
        assert frame is None or not frame.fits(encoder, workspace)
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


@pytest.fixture
def often(monkeypatch):
    """Builtins are made at once."""
    if not encode_builtin.may_be_made():
        pytest.skip("no builtin can be made here")
    monkeypatch.setattr(short_text, "CALLS_BEFORE_FIRST_BUILTIN", 1)


@pytest.mark.parametrize("name", [*BUNDLED, *MADE_UP])
@pytest.mark.usefixtures("often")
def test_a_builtin_gives_the_ids_of_the_ordinary_way(name):
    tok = tokenizer(name)
    went = 0
    for number, text in enumerate(texts_of(tok, 15)):
        rule = RULES[number % 4] if tok.vocab.type != "wpm" or tok.vocab.bos_id >= 0 else {}
        want = ordinary(tok, text, rule)
        assert asked(tok, text, rule) == want, (text, rule)
        builtin = tok._builtins.get((rule.get("add_special", False), rule.get("parse_special", False), "strict"))
        found = builtin(text) if builtin else None
        if found is not None:
            assert (type(found), found.dtype, found.tolist()) == (Ids, np.int32, want), (text, rule)
            assert found.flags.owndata
            assert found.flags.writeable
            went += 1
        if number % 20 == 0:  # arrays of the workspace are replaced
            tok.encode_batch(["some words " * number, text] * 3, threads=1 + number % 2, errors="replace")
    assert went > 10 or tok.vocab.nfc


@pytest.mark.usefixtures("often")
def test_byte_level_files_go_the_quick_way_with_the_ids_of_the_ordinary_one():
    """Added tokens of both searches, strips, templates, malformed bytes, NFC; not where text is prepared."""
    went = composed = 0
    for seed in range(24 if JIT else 2):
        draw = random.Random(seed)
        tok = jittok.load(drawn_json(draw), cache=False)
        encoder = tok._rule(False, False, "strict")[0]
        texts = [drawn_text(draw) for _ in range(30)]
        texts += [raw[:-1] for raw in map(str.encode, texts)] + [text.encode("ascii", "ignore") for text in texts]
        for number, text in enumerate(texts):
            rule = RULES[number % 4]
            want = ordinary(tok, text, rule)
            assert asked(tok, text, rule) == want, (seed, text, rule)
            builtin = tok._builtins.get((rule.get("add_special", False), rule.get("parse_special", False), "strict"))
            found = builtin(text) if builtin else None
            if found is not None:
                assert found.tolist() == want, (seed, text, rule)
                went += 1
        if encoder.plan.prepares:
            assert not tok._builtins
        composed += bool(encoder.plan.compose is not None and any(tok._builtins.values()))
    assert went > (100 if JIT else 0)
    assert composed > 0 or not JIT


@pytest.mark.usefixtures("often")
def test_a_template_of_a_file_stands_around_a_text_that_goes_the_quick_way():
    content = json.loads(byte_level_json(SPLITS[0], None))
    content["added_tokens"] = [
        {"id": 256, "content": "<s>", "special": True, "single_word": False, "lstrip": False, "rstrip": True,
         "normalized": False},
    ]  # fmt: skip
    piece = {"Sequence": {"id": "A", "type_id": 0}}
    other = {"Sequence": {"id": "B", "type_id": 0}}
    special = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    content["post_processor"] = {
        "type": "TemplateProcessing", "single": [special, special, piece, special], "pair": [piece, other],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}},
    }  # fmt: skip
    tok = jittok.load(json.dumps(content).encode(), cache=False)
    builtin = builtin_of(tok, add_special=True, parse_special=True)
    letters = [tok.encode(letter).tolist()[0] for letter in "abc"]
    assert builtin("ab<s>  c").tolist() == [256, 256, *letters[:2], 256, letters[2], 256]


@pytest.mark.usefixtures("often")
def test_a_builtin_leaves_what_it_cannot_do():
    tok = jittok.bundled("gpt-2")
    builtin = builtin_of(tok)
    known = builtin("some words").tolist()
    assert builtin(b"some words").tolist() == known
    assert builtin("x" * limits.LONGEST_WITH_GIL) is not None
    texts = (
        "é",
        "\u20ac",
        "",
        b"",
        "x" * (limits.LONGEST_WITH_GIL + 1),
        Text("words"),
        type("B", (bytes,), {})(b"words"),
    )
    for other in (*texts, bytearray(b"words"), memoryview(b"words"), 5, None, 1.5, [], str, object()):
        assert builtin(other) is None
    with pytest.raises(TypeError):
        builtin()
    with pytest.raises(TypeError):
        builtin("some", "words")
    with pytest.raises(TypeError):
        builtin(text="words")


@pytest.mark.usefixtures("often")
def test_a_builtin_waits_while_somebody_has_its_workspace():
    tok = jittok.bundled("gpt-2")
    builtin = builtin_of(tok)
    known, (encoder, _) = builtin("some words").tolist(), tok._rule(False, False, "strict")
    taken = encoder.acquire()
    assert builtin("some words") is None
    assert tok.encode("some words").tolist() == known  # with another workspace, and then by its builtin
    other = builtin_of(tok)
    assert other is not builtin
    assert other("some words").tolist() == known
    encoder.release(taken)
    assert builtin("some words") is None  # its arrays may have been replaced meanwhile
    assert tok.encode("some words").tolist() == known


@pytest.mark.usefixtures("often")
def test_a_builtin_is_not_used_once_an_array_has_been_replaced():
    tok = jittok.bundled("gpt-2")
    builtin = builtin_of(tok, parse_special=True)
    text = "some words<|endoftext|>and others"
    known, (encoder, _) = builtin(text).tolist(), tok._rule(False, True, "strict")
    for replace in (
        lambda workspace: workspace.grow_ids(9000, 0),
        lambda workspace: workspace.grow_fragments(100),
        lambda workspace: encoder._give_work(workspace, 5000),
        lambda _: setattr(encoder, "arrays", encoder.arrays._replace()),
    ):
        with encoder.workspace() as workspace:
            replace(workspace)
        other = builtin_of(tok)  # another rule, whose frame is new
        assert builtin(text) is None
        assert tok.encode(text, parse_special=True).tolist() == known
        assert builtin(text) is None
        builtin = builtin_of(tok, parse_special=True)
        assert builtin(text).tolist() == known
        assert other("some words").tolist() == tok.encode("some words").tolist()


@pytest.mark.usefixtures("often")
def test_whoever_runs_while_the_array_is_made_gets_another_workspace(monkeypatch):
    tok, seen = jittok.bundled("gpt-2"), [None]

    class Curious(Ids):
        __slots__ = ()

        def __array_finalize__(self, _other):
            if not seen:
                seen.append(None)
                seen[0] = [tok.encode("quite another text").tolist(), tok.encode_batch(["a", "b"])[0].tolist()]
                seen.append(builtin("some words"))

    monkeypatch.setattr(short_text, "Ids", Curious)
    want = tok.encode_batch(["quite another text", "a", "some words"]).to_list()
    builtin = builtin_of(tok)
    seen.clear()
    assert builtin("some words").tolist() == want[2]
    assert seen == [want[:2], None]
    assert builtin("some words").tolist() == want[2]
    assert tok.encode("some words").tolist() == want[2]


@pytest.mark.usefixtures("often")
def test_a_builtin_counts_references_as_it_should():
    tok = jittok.bundled("gpt-2")
    builtin, kind, text = builtin_of(tok), np.dtype(np.int32), str(b"some words", "ascii")
    counts = [sys.getrefcount(each) for each in (kind, Ids, text, builtin.__self__)]
    for _ in range(1000):
        builtin(text)
        builtin(5)
    assert np.allclose([sys.getrefcount(each) for each in (kind, Ids, text, builtin.__self__)], counts, atol=20)


@pytest.mark.usefixtures("often")
def test_a_builtin_outlives_its_tokenizer_and_keeps_it_not():
    tok = jittok.bundled("gpt-2")
    builtin, known = builtin_of(tok), tok.encode("some words").tolist()
    gone = weakref.ref(tok._encoder)
    gc.disable()
    try:
        del tok
        assert gone() is None  # at once: there is no circle
    finally:
        gc.enable()
    assert builtin("some words").tolist() == known


@pytest.mark.usefixtures("often")
def test_threads_share_a_builtin():
    tok = jittok.bundled("gpt-2")
    texts = [f"text {k} of {'many ' * (k % 50)}words" for k in range(300)]
    want = tok.encode_batch(texts).to_list()
    builtin_of(tok)
    wrong = []

    def work(number):
        for k in range(300):
            if tok.encode(texts[k]).tolist() != want[k]:
                wrong.append((number, k))
            if number == 0 and k % 30 == 0 and tok.encode_batch(texts, threads=2).to_list() != want:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong


@pytest.mark.usefixtures("often")
def test_where_objects_are_laid_out_otherwise_there_is_no_builtin(monkeypatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert not encode_builtin.may_be_made()
    monkeypatch.setattr(encode_builtin, "_method", lambda: None)
    tok = jittok.bundled("gpt-2")
    assert builtin_of(tok) is None
    assert tok.encode("some words").tolist() == tok.encode_batch(["some words"])[0].tolist()


@pytest.mark.usefixtures("often")
def test_options_that_no_dictionary_can_look_up_are_asked_for_their_truth():
    tok = jittok.bundled("gpt-2")
    builtin_of(tok)
    assert tok.encode("some words", add_special=[]).tolist() == tok.encode("some words").tolist()


@pytest.mark.usefixtures("often")
@pytest.mark.skipif(not (sys.platform == "linux" and shutil.which("cc") and SHIP.exists()), reason="cc links it")
def test_the_builtin_of_a_shipped_library_needs_no_compiler(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(SHIP)
    from levels import LEVELS
    from libraries import link, object_of_text

    machine = {"x86_64": "linux-x86_64-v2"}.get(platform.machine(), "linux-aarch64")
    place, level = tmp_path / "one.so", LEVELS[machine]
    link(level, [object_of_text(level, encode_builtin.CODE, tmp_path / "one.o")], place)
    digest = hashlib.sha256(encode_builtin.CODE.encode()).hexdigest()
    monkeypatch.setattr(shipped, "manifest", lambda: {"kernels": {}, "functions": {encode_builtin.NAME: digest}})
    monkeypatch.setattr(shipped, "library", lambda: (machine, ctypes.CDLL(str(place))))
    monkeypatch.setattr(shipped, "left_out", lambda: "")
    monkeypatch.setattr(encode_builtin, "has_compiler", lambda: False)
    monkeypatch.setattr(encode_builtin, "_method", functools.cache(encode_builtin._method.__wrapped__))
    tok = jittok.bundled("gpt-2")
    assert builtin_of(tok)("some words").tolist() == tok.encode_batch(["some words"])[0].tolist()
    assert shipped.function(encode_builtin.NAME, encode_builtin.CODE + " ") == (0, None)
    assert shipped.function("jittok_other", encode_builtin.CODE) == (0, None)
    encode_builtin._method.cache_clear()
    monkeypatch.setattr(shipped, "library", lambda: None)
    assert builtin_of(jittok.bundled("gpt-2")) is None


OF_PYTHON = ["PyMemoryView_FromMemory", "PyUnicode_AsUTF8AndSize", "PyCapsule_GetPointer", "PyCFunction_NewEx"]


@pytest.mark.skipif(not bytes_data_offset(), reason="texts are never read in place here")
def test_types_that_others_gave_to_functions_of_python_stay(monkeypatch):
    """They were written again for each call. Another call that was just reading them, in another thread or in a
    callback of the collector, read freed memory."""
    monkeypatch.setattr(short_text, "CALLS_BEFORE_FIRST_BUILTIN", 1)
    monkeypatch.setattr(encode_builtin, "_method", functools.cache(encode_builtin._method.__wrapped__))
    functions = [getattr(ctypes.pythonapi, name) for name in OF_PYTHON]
    known, others = [(each.restype, each.argtypes) for each in functions], (ctypes.c_char, (ctypes.c_double,))
    tok = jittok.load(byte_level_json(SPLITS[0], None), cache=False)
    try:
        for each in functions:
            each.restype, each.argtypes = others
        assert is_right(str_layout())
        assert tok.encode_batch(["some words"] * 100).to_list() == [list(b"some words")] * 100
        assert builtin_of(tok)("some words").tolist() == list(b"some words")
        assert [(each.restype, each.argtypes) for each in functions] == [others] * len(functions)
    finally:
        for each, (result, arguments) in zip(functions, known, strict=True):
            each.restype, each.argtypes = result, arguments
