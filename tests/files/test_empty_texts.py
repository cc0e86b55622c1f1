"""Split, Prepend and Replace with the empty text, and with patterns that match it, answer as in tokenizers.

The answers that are written out are those of tokenizers 0.23.3. Where that is installed, it is asked once more.
"""

import json
import random

import pytest

import jittok

BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
TOKENS = ["?", "a", "b", " ", "é", "\u0301", "x", "_", "ab", "_b", "b_", "xaxbx", "xbx", "_xbx", "<t>"]


def file(**parts):
    model = {"type": "WordLevel", "unk_token": "?", "vocab": {text: k for k, text in enumerate(TOKENS)}}
    return json.dumps({"version": "1.0", "added_tokens": [], "model": model, **parts})


def load(**parts):
    return jittok.load(file(**parts).encode(), cache=False)


def texts_of(tok, text):
    return [TOKENS[token] for token in tok.encode(text).tolist()]


def split(behavior="Isolated", invert=False, kind="String"):
    return {"type": "Split", "pattern": {kind: ""}, "behavior": behavior, "invert": invert}


def replace(content, text="", kind="String"):
    return {"type": "Replace", "pattern": {kind: text}, "content": content}


def prepend(text):
    return {"type": "Prepend", "prepend": text}


def sequence(key, *parts):
    return {"type": "Sequence", key: [*parts]}


def metaspace(scheme):
    return {"type": "Metaspace", "replacement": "_", "prepend_scheme": scheme, "split": False}


@pytest.mark.parametrize("kind", ["String", "Regex"])
@pytest.mark.parametrize("behavior", BEHAVIORS)
def test_a_split_at_the_empty_text_makes_each_character_a_word(behavior, kind):
    for invert in (False, True):
        tok = load(pre_tokenizer=split(behavior, invert, kind))
        assert tok.runs == "kernels"
        nothing = behavior == "Removed" and invert
        assert texts_of(tok, "ae\u0301é b") == ([] if nothing else ["a", "?", "\u0301", "é", " ", "b"])
        assert texts_of(tok, "") == []


def test_characters_that_a_split_at_the_empty_text_cuts_have_spans_of_their_own():
    tok = load(pre_tokenizer=split())
    assert tok.align("aéb").spans.tolist() == [[0, 1], [1, 3], [3, 4]]


def test_a_split_at_the_empty_text_goes_with_stages_before_and_behind_it():
    mark, each = metaspace("always"), split("MergedWithNext")
    before = load(pre_tokenizer=sequence("pretokenizers", mark, each))
    behind = load(pre_tokenizer=sequence("pretokenizers", each, mark))
    assert texts_of(before, "b") == ["_", "b"]
    assert texts_of(behind, "bb") == ["_b", "_b"]


@pytest.mark.parametrize("kind", ["String", "Regex"])
def test_what_replaces_the_empty_text_stands_around_every_character(kind):
    tok = load(normalizer=replace("x", kind=kind))
    assert [texts_of(tok, text) for text in ("", "ab", "b")] == [[], ["xaxbx"], ["xbx"]]
    assert texts_of(load(normalizer=replace("", kind=kind)), "ab") == ["ab"]


def test_nothing_is_found_in_a_text_of_which_a_step_before_left_nothing():
    tok = load(normalizer=sequence("normalizers", replace("", "a"), replace("x")))
    assert [texts_of(tok, text) for text in ("a", "aa", "ab")] == [[], [], ["xbx"]]


def test_an_empty_text_in_front_changes_no_text():
    assert [texts_of(load(normalizer=prepend("")), text) for text in ("", "ab", "é")] == [[], ["ab"], ["é"]]


def test_an_empty_text_in_front_makes_a_text_begin_where_its_document_does():
    """What the first steps leave of `ab` begins at its second character, unless something is written before."""
    gone = replace("", "a")
    for steps, found in [((gone,), ["b"]), ((gone, prepend("")), ["_b"]), ((gone, replace("x")), ["_xbx"])]:
        tok = load(normalizer=sequence("normalizers", *steps), pre_tokenizer=metaspace("first"))
        assert texts_of(tok, "ab") == found


def test_decoders_replace_the_empty_text_in_each_token_that_is_not_empty():
    ids = [TOKENS.index(text) for text in ("a", "ab", "é")]
    for steps, found in [
        ((replace("x"),), "xaxxaxbxxéx"), ((replace("", "a"), replace("x")), "xbxxéx"),
        (({"type": "Fuse"}, replace("x")), "xaxaxbxéx"), ((replace("x", "a*", "Regex"),), "xxbxxéx"),
    ]:  # fmt: skip
        tok = load(decoder=sequence("decoders", *steps))
        assert tok.decode(ids) == found
        assert tok.decode_batch([ids] * 9000)[-1] == found
        stream = tok.stream_decoder()
        assert "".join(map(stream.push, ids)) + stream.finish() == found
        assert tok.decode([]) == ""


def drawn_file(draw):
    added = {"id": len(TOKENS), "content": "<t>", "single_word": False, "special": False, "lstrip": draw.random() < 0.3}
    added |= {"rstrip": False, "normalized": draw.random() < 0.5}
    steps = [replace("x"), replace("", "a"), prepend(""), prepend("x"), replace("x", "b*", "Regex"),
             replace("_", "(?=b)", "Regex")]  # fmt: skip
    stages = [split(draw.choice(BEHAVIORS), draw.random() < 0.3), metaspace("first"), {"type": "WhitespaceSplit"}]
    return file(
        normalizer=sequence("normalizers", *draw.choices(steps, k=draw.randrange(4))),
        pre_tokenizer=sequence("pretokenizers", *draw.choices(stages, k=draw.randrange(3))),
        added_tokens=[added] * draw.randrange(2),
    )


def test_drawn_files_answer_as_the_library():
    tokenizers = pytest.importorskip("tokenizers")
    draw, asked = random.Random(7), 0
    for _ in range(40):
        content = drawn_file(draw)
        theirs, ours = tokenizers.Tokenizer.from_str(content), jittok.load(content.encode(), cache=False)
        for _ in range(8):
            text = "".join(draw.choices(["a", "b", "ab", " ", "é", "<t>", "x"], k=draw.randrange(6)))
            assert ours.encode(text).tolist() == theirs.encode(text).ids, (content, text)
            asked += 1
    assert asked == 320
