"""What cannot be right is refused with its place, what is not known by its name; no change of a byte does more."""

import base64
import json
import struct
import warnings

import pytest
from mutated_files import changed_values, check, mutations

import jittok
from jittok.errors import EncodingFailed, MalformedVocab, UnsupportedVocab
from jittok.files import read_pipeline

BYTES = [bytes([byte]) for byte in range(256)]
RANKS = b"\n".join(base64.b64encode(raw) + b" %d" % rank for rank, raw in enumerate([*BYTES, b"ab", b"abc"]))


def tokenizer_json(**parts):
    model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}
    return json.dumps({"added_tokens": [], "model": {**model, **parts.pop("model", {})}, **parts}).encode()


def added(content, **flags):
    plain = {"id": 3, "special": True, "normalized": False, "lstrip": False, "rstrip": False, "single_word": False}
    return {"content": content, **plain, **flags}


def template(name, token=0, pair=False):
    items = [{"SpecialToken": {"id": name, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    special = {"<s>": {"id": "<s>", "ids": [token], "tokens": ["<s>"]}}
    two = [*items, *([{"Sequence": {"id": "B", "type_id": 1}}] if pair else [])]
    return {"type": "TemplateProcessing", "single": items, "pair": two, "special_tokens": special}


def regex(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


@pytest.mark.parametrize(
    ("content", "place", "found"),
    [
        (tokenizer_json(model={"merges": ["a b", "a"]}), "model.merges[1] (line 2)", "'a'"),
        (tokenizer_json(model={"merges": ["a b c"]}), "model.merges[0]", "a b c"),
        (tokenizer_json(model={"merges": [["a", "b"], ["a", "b", "c"]]}), "model.merges[1]", "['a', 'b', 'c']"),
        (tokenizer_json(model={"merges": ["a b", "b a"]}), "model.merges[1]", "b a"),
        (tokenizer_json(model={"vocab": {"a": 0, "b": -1}}), "model.vocab['b']", "-1"),
        (tokenizer_json(model={"vocab": {"a": 1 << 40}}), "model.vocab", "1099511627776"),
        (tokenizer_json(model={"vocab": {"a": True}}), "model.vocab['a']", "True"),
        (tokenizer_json(added_tokens=[{"content": "x"}]), "added_tokens[0].id", "found nothing"),
        (tokenizer_json(post_processor=template("</s>")), "post_processor.single[0]", "</s>"),
        (tokenizer_json(post_processor=template("<s>", 3, pair=True)), "post_processor", "the id 3"),
        (tokenizer_json(normalizer={"type": "Prepend"}), "normalizer.prepend", "found nothing"),
        (b'{"model": ', "line 1", "JSON"),
        (b'{"model": ' + b"[" * 1_000_000, "line 1", "JSON"),
        (RANKS + b"\nYWI= 900\n", "line 259", "b'ab'"),
        (RANKS + b"\nYWJj 0 0\n", "line 259", "YWJj"),
        (RANKS.replace(b"AA== 0\n", b""), "ranks", "none for"),
        (b"\n\xff\xff\xff\xff\x0f", "model (byte 0)", "remaining bytes"),
        (b"\n\x03\n\x05a", "pieces[0] (byte 2)", "remaining bytes"),
        (b"\n\x05\n\x03<s>", "pieces", "UNKNOWN"),
        (b"\n\x09\n\x05<unk>\x18\x02\n\x0a\n\x03<s>\x15" + struct.pack("<f", float("nan")), "pieces[1]", "finite"),
        (b"1 '\\x00' 1\n2 'ab' 3\n", "line 2", "2 'ab' 3"),
        (b"1 '\\x00' 1\n2 __import__('os') 3\n", "line 2", "__import__"),
    ],
)
def test_a_file_that_cannot_be_right_is_refused_with_its_place(content, place, found):
    options = {"pattern": ".+|\n"} if content[:4] == RANKS[:4] or content.startswith(b"AQ==") else {}
    with pytest.raises(MalformedVocab) as error:
        read_pipeline(content, **options)
    assert error.value.key.startswith(place)
    assert found in str(error.value)
    assert is_told_plainly(error.value, content)


def is_told_plainly(error: MalformedVocab | UnsupportedVocab, content: bytes) -> bool:
    """Whether only what is in the file has quotes."""
    said = error.found
    return type(said) is not str or json.dumps(said)[1:-1].encode() in content or said.encode() in content


REPLACE = {"type": "Replace", "pattern": {"Regex": "a*"}, "content": "b"}
PREPEND = {"type": "Prepend", "prepend": ""}
LOWERCASE = {"type": "Lowercase"}


def sequence(*parts):
    return {"type": "Sequence", "normalizers": [*parts]}


@pytest.mark.parametrize(
    ("content", "place", "found"),
    [
        (tokenizer_json(version="2.0"), "version", "2.0"),
        (tokenizer_json(version=None), "version", "found nothing"),
        (tokenizer_json(pre_tokenizer={"type": "Scripts"}), "pre_tokenizer.type", "Scripts"),
        (
            tokenizer_json(normalizer={"type": "Sequence", "normalizers": [{"type": "X"}]}),
            "normalizer.normalizers[0]",
            "X",
        ),
        (tokenizer_json(model={"dropout": 0.1}), "model.dropout", "0.1"),
        (tokenizer_json(pre_tokenizer=regex("(a?)+b")), "pre_tokenizer.pattern", "repeat"),
        (tokenizer_json(pre_tokenizer=regex("(?>a)b")), "pre_tokenizer.pattern", "(?:"),
        (tokenizer_json(pre_tokenizer=regex(r"(a)\1")), "pre_tokenizer.pattern", "escape"),
        (tokenizer_json(normalizer=sequence(REPLACE, LOWERCASE)), "normalizer", "after the empty text is replaced"),
        (tokenizer_json(pre_tokenizer=regex("a{1,100000}")), "pre_tokenizer.pattern", "counts"),
        (tokenizer_json(pre_tokenizer=regex(r"\p{Dash}+")), "pre_tokenizer.pattern", "script"),
        (tokenizer_json(pre_tokenizer=regex("(?i:ss)")), "pre_tokenizer.pattern", "letters"),
        (tokenizer_json(pre_tokenizer=regex("a" * 20_000)), "pre_tokenizer.pattern", "10000"),
        (tokenizer_json(pre_tokenizer=regex("(" * 100 + "a" + ")" * 100)), "pre_tokenizer.pattern", "deep"),
        (RANKS, "pattern", "jittok.load(file, pattern="),
        (tokenizer_json(normalizer=sequence(PREPEND, LOWERCASE)), "normalizer", "after the empty text is prepended"),
        (tokenizer_json(normalizer=PREPEND, pre_tokenizer={"type": "ByteLevel"}), "normalizer", "SpellBytes"),
        (b"{}", "file", "GGUF"),
        (b"\x89PNG", "file", "GGUF"),
    ],
)
def test_what_is_not_known_is_refused_by_its_name(content, place, found):
    with pytest.raises(UnsupportedVocab) as error:
        read_pipeline(content)
    assert error.value.key.startswith(place)
    assert found in str(error.value)
    assert is_told_plainly(error.value, content)


def test_an_unknown_token_that_is_not_in_the_vocabulary_is_an_error_of_the_texts_that_need_it():
    tok = jittok.load(tokenizer_json(version="1.0", model={"unk_token": "<unk>"}), cache=False)
    assert tok.encode("ab").tolist() == [2]
    for add in (False, True):
        with pytest.raises(EncodingFailed, match="unknown token is not in it"):
            tok.encode_batch(["ab", "abc"], add_special=add)


def test_a_part_of_a_tokenizer_says_what_is_missing_beside_it(tmp_path):
    (tmp_path / "vocab.json").write_text('{"a": 0}')
    for path in (tmp_path, tmp_path / "vocab.json"):
        with pytest.raises(MalformedVocab, match=r"merges.txt beside it"):
            jittok.load(path)
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\na")
    with pytest.raises(MalformedVocab, match=r"line 3\): found 'a', expected two parts"):
        jittok.load(tmp_path)
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n")
    with pytest.raises(MalformedVocab, match=r"line 2\): found 'a b', expected parts and result in the vocabulary"):
        jittok.load(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(MalformedVocab, match=r"folder: found \[\]"):
        jittok.load(tmp_path / "empty")


def test_options_of_rank_files_are_for_rank_files():
    with pytest.raises(TypeError, match="expected a rank file"):
        jittok.load(tokenizer_json(), pattern="a")
    tok = jittok.load(RANKS, pattern=r"\p{L}+|[^\p{L}]+", special_tokens={"<e>": 300}, cache=False)
    assert tok.encode("abc<e>", parse_special=True).tolist() == [257, 300]
    with pytest.raises(UnsupportedVocab, match="o200k_base"):
        jittok.load(RANKS, encoding="gpt-9")


@pytest.mark.parametrize("name", ["pix2tex", "syn-unigram-bytes", "syn-wordpiece-flags", "syn-bpe-suffix", "syn-char"])
def test_a_changed_file_is_read_or_refused_and_nothing_else(recorded, name):
    content = recorded(name).path.read_bytes()
    read = sum(check(each, {}) for each in mutations(content, 60, 1))
    if content[:1] == b"{":
        read += sum(check(each, {}) for each in changed_values(content, 40, 1))
    assert read < 90


def test_a_list_with_a_line_that_is_no_literal_is_refused_without_a_warning_of_the_parser():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(MalformedVocab, match="line 2"):
            read_pipeline(b"1 '\\x00' 1\n2 'a'5or 1\n")
    assert not told


@pytest.mark.parametrize("special", [True, False])
def test_an_added_token_that_the_normalizer_leaves_nothing_of_is_refused_by_name(special):
    normalizer = {"type": "Strip", "strip_left": True, "strip_right": True}
    rows = [added("b"), added("\n\t", id=4, normalized=True, special=special)]
    with pytest.raises(UnsupportedVocab, match=r"'\\n\\t', expected a text that the norm"):
        jittok.load(tokenizer_json(added_tokens=rows, normalizer=normalizer), cache=False)
    assert jittok.load(tokenizer_json(added_tokens=rows), cache=False).encode("a\n\tb", parse_special=True).size == 3
