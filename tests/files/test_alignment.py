"""Where the ids of other files than GGUF are in a text."""

import json
import lzma
import random
import unicodedata
from collections import Counter

import pytest
from drawn_files import drawn_json, drawn_text
from recorded_files import HERE

import jittok
from jittok.align import files as align_files
from jittok.align import windows
from jittok.files import read_pipeline
from jittok.kernels.jit import JIT
from jittok.reference.pipeline import Runner, aligned

OFFSETS = [json.loads(line) for line in lzma.decompress((HERE / "offsets.jsonl.xz").read_bytes()).splitlines()]
SETS = sorted(path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz"))
SHIFTED = {"pix2tex", "syn-bpe-prefix-space"}
"""tokenizers counts on where a character without a token has left nothing, and after a space that it put before."""


def why(text, ours, theirs):
    """Why a span of ours is another than that of tokenizers, "" for no reason that is known."""
    (start, stop), (begin, end) = ours, theirs
    if start == stop:
        return "put in front"  # they give it the first character
    ends = text[min(start, begin) : max(start, begin)] + text[min(stop, end) : max(stop, end)]
    if not ends.replace("▁", " ").strip():
        return "trimmed"  # they leave white space out, which the token has or takes
    if text[start:stop] != unicodedata.normalize("NFKC", text[start:stop]):
        return "rewritten"  # they leave out what was joined to the first character
    if begin <= start and stop <= end:
        return "bytes"  # they give each byte of a run the whole run
    return ""


@pytest.mark.parametrize("name", sorted({row["set"] for row in OFFSETS} - SHIFTED))
def test_spans_are_those_of_tokenizers_but_for_known_reasons(recorded, name):
    tok, seen = jittok.load(recorded(name).path, cache=False), Counter()
    for row in OFFSETS:
        if row["set"] != name:
            continue
        found = tok.align(row["text"], parse_special=True)
        assert found.ids.tolist() == row["ids"]
        for ours, theirs in zip(found.char_spans.tolist(), row["offsets"], strict=True):
            reason = "" if ours == theirs else why(row["text"], ours, theirs)
            assert ours == theirs or reason, (row["text"], ours, theirs)
            seen[ours == theirs] += 1
    assert seen[True] > 100


def follow(text, found):
    """What spans of any text must be like."""
    raw = text.encode() if isinstance(text, str) else text
    before = (0, 0)
    for start, stop in found.spans.tolist():
        assert 0 <= start <= stop <= len(raw)
        assert before[0] <= start
        assert before[1] <= stop
        before = start, stop


@pytest.mark.parametrize("name", SETS)
def test_spans_of_recorded_texts_follow_each_other(recorded, name):
    found = recorded(name)
    tok = jittok.load(found.path, cache=False, **found.options)
    texts = [row["text"] for row in found.rows if row["kind"] == "case"][:: 5 if JIT else 60]
    rules = {"add_special": True, "parse_special": True}
    batch, rows = tok.align_batch(texts, threads=2, **rules), tok.encode_batch(texts, **rules)
    assert batch.tokens == rows
    for text, of_batch in zip(texts, batch, strict=True):
        one = tok.align(text, **rules)
        assert one.spans.tolist() == of_batch.spans.tolist()
        follow(text, one)
    in_characters = tok.align_batch(texts, unit="characters", **rules)
    assert in_characters.spans.tolist() == [
        span for text in texts for span in tok.align(text, **rules).char_spans.tolist()
    ]


@pytest.mark.parametrize("name", ["r50k_base", "rwkv-world"])
def test_tokens_that_are_bytes_stand_for_their_own(recorded, name):
    tok, draw = jittok.load(recorded(name).path, cache=False), random.Random(5)
    for _ in range(60 if JIT else 6):
        text = drawn_text(draw)
        found = tok.align(text.encode())
        assert b"".join(found.slices) == text.encode()
        assert found.slices == [tok.token_to_piece(token) for token in found.ids.tolist()]


@pytest.mark.parametrize("seed", range(16 if JIT else 2))
def test_spans_of_drawn_files_cover_the_text(seed):
    draw = random.Random(seed)
    content = drawn_json(draw)
    tok, texts = jittok.load(content, cache=False), [drawn_text(draw) for _ in range(12)]
    for text in texts:
        for parse in (False, True):
            found = tok.align(text, parse_special=parse)
            assert found.ids.tolist() == tok.encode(text, parse_special=parse).tolist()
            follow(text, found)
            covered = {k for start, stop in found.spans.tolist() for k in range(start, stop)}
            assert covered == {*range(len(text.encode()))}, text


@pytest.mark.parametrize("seed", range(24 if JIT else 4))
def test_tokens_that_spell_a_text_have_the_spans_of_the_plain_way(seed, monkeypatch):
    draw = random.Random(seed)
    tok = jittok.load(drawn_json(draw), cache=False)
    texts = [drawn_text(draw).encode() + draw.choice([b"", b"", b"\xe4\xb8"]) for _ in range(20)]
    rules = {"errors": "replace", "parse_special": bool(seed & 1), "add_special": bool(seed & 2)}
    found = tok.align_batch(texts, **rules).spans.tolist()
    monkeypatch.setattr(align_files, "spelled_spans", lambda *_: False)
    assert tok.align_batch(texts, **rules).spans.tolist() == found
    monkeypatch.setattr(windows, "by_windows", lambda *_: False)
    assert tok.align_batch(texts, **rules).spans.tolist() == found


SPELLED = {"r50k_base": True, "rwkv-world": True, "syn-bpe-prefix-space": True, "bert-chinese": False}


@pytest.mark.parametrize("name", SPELLED)
def test_spans_of_recorded_texts_are_those_of_the_plain_way(recorded, name, monkeypatch):
    found, plain = recorded(name), []
    tok = jittok.load(found.path, cache=False, **found.options)
    texts = [row["text"] for row in found.rows if row["kind"] == "case"][:: 2 if JIT else 40]
    walked, walk = [], windows.walked
    monkeypatch.setattr(align_files, "aligned", lambda *args: plain.append(args) or aligned(*args))
    monkeypatch.setattr(windows, "walked", lambda *args: walked.append(args) or walk(*args))
    spans = tok.align_batch(texts, parse_special=True).spans.tolist()
    assert (len(walked) < len(texts) // 2) == SPELLED[name]
    assert len(plain) < len(texts) // 20
    monkeypatch.setattr(align_files, "spelled_spans", lambda *_: False)
    assert tok.align_batch(texts, parse_special=True).spans.tolist() == spans
    monkeypatch.setattr(windows, "by_windows", lambda *_: False)
    assert tok.align_batch(texts, parse_special=True).spans.tolist() == spans
    assert len(plain) >= len(texts)


def test_a_long_text_that_its_tokens_spell_is_compared_in_parts(monkeypatch):
    monkeypatch.setattr(align_files, "IDS_PER_STEP", 7)
    steps = [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]
    vocab = {f"<0x{byte:02X}>": byte for byte in range(256)} | {"▁": 256, "a": 257, "▁a": 258, "?": 259}
    model = {"type": "BPE", "vocab": vocab, "merges": ["▁ a"], "unk_token": "?", "byte_fallback": True}
    tok = runner(normalizer={"type": "Sequence", "normalizers": steps}, model=model)
    for text in ("a aa" * 9, " ", "", "aé" * 8, "a▁a", "é" * 20 + "▁"):
        found = tok.align(text).spans.tolist()
        with monkeypatch.context() as plain:
            plain.setattr(align_files, "spelled_spans", lambda *_: False)
            assert tok.align(text).spans.tolist() == found


def test_what_a_template_puts_around_a_text_that_its_tokens_spell_stands_at_its_ends():
    stage = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    parts = [{"SpecialToken": {"id": "b", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    known = {"b": {"id": "b", "ids": [1], "tokens": ["b"]}}
    template = {"type": "TemplateProcessing", "single": [*parts, parts[0]], "special_tokens": known}
    template["pair"] = [*template["single"], {"Sequence": {"id": "B", "type_id": 1}}]
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}
    tok = runner(pre_tokenizer=stage, model=model, post_processor=template)
    assert align_files.spelling_of(tok.vocab) is not None
    found = tok.align("aba", add_special=True)
    assert found.ids.tolist() == [1, 0, 1, 0, 1]
    assert found.spans.tolist() == [[0, 0], [0, 1], [1, 2], [2, 3], [3, 3]]


def both_ways(tok, text, monkeypatch, window=200, **rules):
    """Spans by windows of so many bytes and by the whole text; how many documents the plain way has seen as a whole."""
    whole = []
    with monkeypatch.context() as patch:
        patch.setattr(windows, "FIRST_WINDOW_BYTES", window)
        patch.setattr(align_files, "spelled_spans", lambda *_: False)
        patch.setattr(align_files, "aligned", lambda *args: whole.append(args) or aligned(*args))
        found = tok.align(text, **rules).spans.tolist()
        patch.setattr(windows, "FIRST_WINDOW_BYTES", 1 << 30)
        patch.setattr(windows, "by_windows", lambda *_: False)
        assert tok.align(text, **rules).spans.tolist() == found, text
    return len(whole) - 1


LONG = pytest.mark.skipif(not JIT, reason="windows are plain Python in either way, and long texts take long without")


@LONG
@pytest.mark.parametrize("seed", range(8))
def test_spans_by_windows_are_those_of_the_whole_text(seed, monkeypatch):
    draw = random.Random(seed)
    tok = jittok.load(drawn_json(draw), cache=False)
    for _ in range(2):
        parts = [drawn_text(draw) * draw.choice([1, 1, 9]) for _ in range(draw.choice([9, 30]))]
        text = draw.choice(["", " "]).join(parts).encode() + draw.choice([b"", b"\xe4\xb8", b"\xff" * 300])
        rules = {"errors": "replace", "parse_special": bool(seed & 1), "add_special": bool(seed & 2)}
        both_ways(tok, text, monkeypatch, **rules)


@LONG
@pytest.mark.parametrize(
    "text",
    ["中文" * 400, "a" * 1500, "☃" * 900 + " a", "what is it " * 150, "é中 " * 300, "\x00 a" * 500, " " * 2000],
    ids=["characters", "one word", "unknown", "words", "accents", "what is removed", "spaces"],
)
def test_windows_tell_the_spans_of_long_texts(recorded, text, monkeypatch):
    tok = jittok.load(recorded("bert-chinese").path, cache=False)
    for add_special in (False, True):
        assert both_ways(tok, text, monkeypatch, add_special=add_special) == 0


LONG_WORDS = {
    "one word": "a" * 1500,
    "words of all lengths": "".join("a" * k + " " for k in range(3, 60)),
    "unknown inside": ("a" * 90 + "☃☃") * 9 + "☃" * 900 + "b",
    "spaces between": "what is" + " " * 1500 + "it",
    "accents": "e\u0301" * 300 + "\u0301" * 700 + "é",
    "one that becomes many": "ﷺ½" * 200,
    "tokens": "<s>[MASK]</s><|endoftext|>" * 60,
    "digits": "1" * 900 + " 1" * 200,
}


UNKNOWN = {"unk_token": "?"}
OTHERS = "".join(map(chr, range(0x100, 0x190)))
"""An unknown word over several windows, no part of which is like another."""
WALKED = {
    "prefixes": {"type": "WordPiece", "vocab": {"?": 0, "a": 1, "b": 2, "##a": 3, "##b": 4, "##ab": 5},
                 "continuing_subword_prefix": "##", "max_input_chars_per_word": 400, **UNKNOWN},
    "suffixes": {"type": "BPE", "vocab": {"?": 0, "a": 1, "b": 2, "a</w>": 3, "b</w>": 4, "ab</w>": 5, "c</w>": 6},
                 "merges": ["a b</w>"], "end_of_word_suffix": "</w>", "fuse_unk": True, **UNKNOWN},
    "bytes": {"type": "Unigram", "vocab": [["?", 0], ["a", -1], ["b", -2], ["ab", -2.5],
                                           *([f"<0x{byte:02X}>", -9] for byte in range(256))],
              "unk_id": 0, "byte_fallback": True},
}  # fmt: skip


@pytest.mark.parametrize("model", WALKED.values(), ids=WALKED)
def test_ids_are_walked_along_a_text_of_a_few_windows(model, monkeypatch):
    tok = runner(pre_tokenizer={"type": "WhitespaceSplit"}, model=model)
    monkeypatch.setattr(windows, "spans_by_windows", lambda *_: pytest.fail("not walked"))
    for text in ("ab" * 90 + " b", "aé" * 30 + " " + "é" * 60 + "b " + "a" * 70, "b ab é aab éc " * 20, OTHERS + " b"):
        assert both_ways(tok, text, monkeypatch, window=80) == 0


@LONG
@pytest.mark.parametrize(
    "name", ["bert-chinese", "spm-test-ja", "syn-bpe-affixes", "syn-unigram-bytes", "syn-wordlevel"]
)
def test_ids_are_walked_along_what_steps_make_of_a_long_text(recorded, name, monkeypatch):
    tok, windowed = jittok.load(recorded(name).path, cache=False), []
    monkeypatch.setattr(windows, "spans_by_windows", lambda *_: windowed.append(1))
    for text in LONG_WORDS.values():
        assert both_ways(tok, text, monkeypatch, parse_special=True) == 0
    assert len(windowed) == 0


@LONG
def test_a_text_that_windows_cannot_tell_is_aligned_as_a_whole(recorded, monkeypatch):
    tok = jittok.load(recorded("bert-chinese").path, cache=False)
    monkeypatch.setattr(windows, "_join", lambda *_: windows.Joint(5, 4, False))  # a token twice
    assert both_ways(tok, "中文" * 400, monkeypatch) == 1


def runner(**parts):
    file = {"added_tokens": [], "normalizer": None, "pre_tokenizer": None, "decoder": None, **parts}
    return jittok.load(json.dumps(file).encode(), cache=False)


def wordlevel(*words):
    return {"type": "WordLevel", "vocab": {word: k for k, word in enumerate(["?", *words])}, "unk_token": "?"}


def test_what_was_composed_stands_for_all_its_characters():
    tok = runner(normalizer={"type": "NFC"}, model=wordlevel("é", "x"), pre_tokenizer={"type": "WhitespaceSplit"})
    assert tok.align("e\u0301 x é").spans.tolist() == [[0, 3], [4, 5], [6, 8]]
    chars = {"type": "BPE", "vocab": {"x": 0, "\u0323": 1, "\u0301": 2, "é": 3}, "merges": []}
    marks = runner(normalizer={"type": "NFD"}, model=chars).align("x\u0301\u0323é")
    assert marks.ids.tolist() == [0, 1, 2, 2]  # é has no e
    assert marks.spans.tolist() == [[0, 1], [1, 5], [1, 5], [5, 7]]


def test_what_is_put_in_front_stands_for_nothing():
    steps = [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]
    model = {"type": "BPE", "vocab": {"▁": 0, "a": 1, "▁a": 2, "b": 3, "?": 4}, "merges": ["▁ a"], "unk_token": "?"}
    tok = runner(normalizer={"type": "Sequence", "normalizers": steps}, model=model)
    assert tok.align("a b").spans.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert tok.align("b").spans.tolist() == [[0, 0], [0, 1]]
    assert tok.align("中é").spans.tolist() == [[0, 0], [0, 3], [3, 5]]


def test_white_space_of_added_tokens_belongs_to_them_until_the_next_begins():
    added = {"id": 9, "single_word": False, "lstrip": True, "rstrip": True, "normalized": False, "special": False}
    tok = runner(
        model=wordlevel("a"), added_tokens=[{**added, "content": "<m>"}, {**added, "content": "\t", "lstrip": False}]
    )
    assert tok.align("a <m> \ta").spans.tolist() == [[0, 1], [1, 6], [6, 7], [7, 8]]


def test_words_of_one_character_share_it():
    steps = [{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}]
    model = {"type": "Unigram", "unk_id": 0, "vocab": [["?", -9.0], ["▁", -1.0], ["صلى", -1.0], ["الله", -1.0]]}
    tok = runner(normalizer={"type": "NFKC"}, pre_tokenizer={"type": "Sequence", "pretokenizers": steps}, model=model)
    found = tok.align("\ufdfa")
    assert found.ids.tolist()[:4] == [1, 2, 1, 3]
    assert found.spans.tolist()[0] == [0, 0]
    assert {tuple(span) for span in found.spans.tolist()[1:]} == {(0, 3)}


def test_bytes_that_are_no_text_stand_for_a_replacement(recorded):
    tok = jittok.load(recorded("r50k_base").path, cache=False)
    found = tok.align(b"a\xff\xe2\x96b", errors="replace")
    assert found.ids.tolist() == tok.encode("a\ufffd\ufffdb").tolist()
    assert found.spans.tolist()[0] == [0, 1]
    assert found.spans.tolist()[-1] == [4, 5]
    assert {tuple(span) for span in found.spans.tolist()[1:-1]} <= {(1, 2), (2, 4), (1, 4)}
    with pytest.raises(jittok.EncodingFailed):
        tok.align(b"\xff")


def test_another_answer_of_kernels_is_noticed(recorded, monkeypatch):
    found = recorded("r50k_base")
    tok = jittok.load(found.path, cache=False)
    monkeypatch.setattr(Runner, "align", lambda *_: [])
    monkeypatch.setattr(windows, "by_windows", lambda *_: False)
    with pytest.raises(AssertionError, match="please report"):
        tok.align(b"text\xff", errors="replace")  # no tokens spell it, and none is walked
    assert Runner(read_pipeline(found.path)).encode("text")
