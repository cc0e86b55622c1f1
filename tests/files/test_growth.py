"""What a text may become in a file's steps is bounded as a product, before anything runs."""

import json

import pytest

import jittok
from jittok.errors import UnsupportedVocab
from jittok.files.hf.steps import MOST_AROUND, MOST_GROWTH

MODEL = {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1}}


def load(**parts):
    return jittok.load(json.dumps({"version": "1.0", "model": MODEL, **parts}).encode(), cache=False)


def replace(content, text="a"):
    return {"type": "Replace", "pattern": {"String": text}, "content": content}


def sequence(key, *parts):
    return {"type": "Sequence", key: [*parts]}


MARK = {"type": "Metaspace", "prepend_scheme": "always", "split": True}
SPELL = {"type": "ByteLevel", "use_regex": False, "add_prefix_space": False}


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        ({"normalizer": sequence("normalizers", *[replace("aa")] * 40)}, "normalizer.normalizers[16]"),
        ({"normalizer": sequence("normalizers", *[replace("a", "")] * 40)}, "normalizer.normalizers[10]"),
        ({"normalizer": sequence("normalizers", *[{"type": "ByteLevel"}] * 40)}, "normalizer.normalizers[16]"),
        ({"normalizer": sequence("normalizers", *[{"type": "Prepend", "prepend": "a" * 999}] * 90)}, "normalizer"),
        ({"normalizer": replace("a" * 100_000)}, "normalizer"),
        ({"pre_tokenizer": sequence("pretokenizers", *[SPELL] * 17)}, "pre_tokenizer.pretokenizers[16]"),
        ({"normalizer": replace("aaaa" * 256), "pre_tokenizer": sequence("pretokenizers", *[SPELL] * 7)},
         "pre_tokenizer.pretokenizers[6]"),
        ({"decoder": sequence("decoders", *[replace("aa")] * 40)}, "decoder.decoders[16]"),
        ({"decoder": sequence("decoders", *[replace("bb" * 128, "b")] * 3)}, "decoder.decoders[2]"),
        ({"decoder": sequence("decoders", *[{"type": "BPEDecoder", "suffix": ""}] * 40)}, "decoder"),
    ],
    ids=repr,
)  # fmt: skip
def test_steps_that_multiply_a_text_are_refused_at_the_step_that_is_too_much(parts, place):
    with pytest.raises(UnsupportedVocab, match=f"at most {MOST_GROWTH:,} bytes of one") as error:
        load(**parts)
    assert error.value.key.startswith(place)


def template(tokens, times):
    ids = {"<s>": {"id": "<s>", "ids": [1] * tokens, "tokens": ["<s>"] * tokens}}
    single = [{"SpecialToken": {"id": "<s>", "type_id": 0}}] * times + [{"Sequence": {"id": "A", "type_id": 0}}]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 0}}]
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": ids}


def test_a_template_that_multiplies_ids_is_refused():
    with pytest.raises(UnsupportedVocab, match=f"at most {MOST_AROUND}"):
        load(post_processor=template(10_000, 10_000))
    assert load(post_processor=template(10, 10)).encode("a", add_special=True).size == 101


def test_steps_of_real_models_are_far_from_the_bound():
    bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True}
    forms = [{"type": form} for form in ("NFKD", "NFKC", "NFD", "NFC")]
    tok = load(
        normalizer=sequence("normalizers", *forms, bert, replace("\u2581", " "), {"type": "Prepend", "prepend": "▁"}),
        pre_tokenizer=sequence("pretokenizers", MARK, MARK, {"type": "ByteLevel"}),
    )
    assert tok.encode("a").size > 0


def test_a_hundred_steps_are_the_most_however_they_are_nested():
    ten = sequence("normalizers", *[{"type": "Lowercase"}] * 10)
    assert load(normalizer=sequence("normalizers", *[ten] * 10)).encode("a").tolist() == [1]
    with pytest.raises(jittok.errors.MalformedVocab, match="at most 100"):
        load(normalizer=sequence("normalizers", *[ten] * 11))
