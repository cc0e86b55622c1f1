"""Attributes as llama.cpp leaves them: ids found by text, end of generation, the partition's list, strips."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from write_gguf import vocab_file

from jittok.common.pipeline.pipeline import packed
from jittok.errors import MalformedVocab
from jittok.vocab import read_vocab
from jittok.vocab.attributes import EOG_TEXTS, ID_TEXTS, PHI3_TEXTS, USER_TEXTS, TextIndex

UNKNOWN, UNUSED, NORMAL, CONTROL, USER, BYTE, LSTRIP, RSTRIP = 1, 2, 4, 8, 16, 32, 128, 256
TYPE_OF = {NORMAL: 1, UNKNOWN: 2, CONTROL: 3, USER: 4, UNUSED: 5, BYTE: 6}


def vocab(tokens, model="gpt2", types=None, **settings):
    return read_vocab(vocab_file(model, tokens, token_type=types, **settings))


def attributes(*args, **settings):
    found = vocab(*args, **settings)
    return dict(zip((token.decode() for token in found.tokens), found.attributes.tolist(), strict=True))


@pytest.mark.parametrize("field", ID_TEXTS)
@pytest.mark.parametrize("place", [0, 1, 5])
def test_an_id_without_a_key_is_found_by_its_text(field, place):
    for text in ID_TEXTS[field]:
        tokens = [f"w{k}" for k in range(20)]
        tokens.insert(place, text)
        found = vocab(tokens)
        assert getattr(found, field) == place
        assert found.attributes[place] & CONTROL
        others = {name for name in ID_TEXTS if name != field and getattr(found, name) != -1}
        assert not others


def test_a_key_keeps_an_id_from_being_found_by_text():
    found = vocab(["<|eom_id|>", "<fim_prefix>", "x"], eom_token_id=2, fim_pre_token_id=2)
    assert (found.eom_id, found.fim_prefix_id) == (2, 2)
    assert found.attributes.tolist()[1] == NORMAL  # the text of no id, and none that ends generation
    assert found.attributes.tolist()[0] == NORMAL | CONTROL


def test_of_several_texts_the_one_counts_that_the_hash_map_shows_first():
    # A C++ program walks a map of these tokens in the order 6 5 4 7 3 2 1 0, one of the next two in the order 1 0.
    found = vocab(["a", "<|eot_id|>", "b", "<|im_end|>", "c", "<EOT>", "<|endoftext|>", "[EOT]"])
    assert found.eot_id == 6
    assert all(found.attributes[k] & CONTROL for k in (1, 3, 5, 6, 7))
    pair = vocab(["<PRE>", "<fim_prefix>"])
    assert pair.fim_prefix_id == 1
    assert pair.attributes.tolist() == [NORMAL, NORMAL | CONTROL]  # the one that lost stays as it was


def test_every_text_that_ends_generation_does_and_becomes_a_control_token():
    for text in EOG_TEXTS:
        found = vocab(["x", text, "y"], types=[1, 1, 1], eos_token_id=0)
        assert found.eog_ids == {0, 1}, text
        assert found.attributes.tolist() == [NORMAL, NORMAL | CONTROL, NORMAL], text


def test_ids_of_keys_end_generation_and_keep_their_attributes():
    tokens = [f"w{k}" for k in range(12)]
    keys = {
        "eos": 1,
        "eot": 2,
        "eom": 3,
        "fim_pad": 4,
        "fim_rep": 5,
        "fim_sep": 6,
        "fim_pre": 7,
        "bos": 8,
        "padding": 9,
    }
    found = vocab(tokens, **{f"{name}_token_id": token for name, token in keys.items()})
    assert found.eog_ids == {1, 2, 3, 4, 5, 6}
    assert set(found.attributes.tolist()) == {NORMAL}


def test_channel_texts_become_user_defined_alone():
    for text in USER_TEXTS:
        assert attributes([text, "x"], types=[3, 1])[text] == USER


def test_control_tokens_called_unused_are_unused():
    found = attributes(["<unused1>", "[unused2]", "<un used>", "unused"], types=[3, 3, 3, 1])
    assert found == {
        "<unused1>": CONTROL | UNUSED,
        "[unused2]": CONTROL | UNUSED,
        "<un used>": CONTROL,
        "unused": NORMAL,
    }


@pytest.mark.parametrize("call", ["<|call|>", "<|calls|>"])
@pytest.mark.parametrize("back", ["<|return|>", "<|flush|>"])
def test_end_is_no_end_of_generation_beside_call_and_return(call, back):
    found = vocab(["x", "<|end|>", call, back], eos_token_id=0, eot_token_id=0)
    assert found.eog_ids == {0, 2, 3}
    assert found.attributes[1] == USER
    for other in ("<|return>", "y"):
        assert 1 in vocab(["x", "<|end|>", call, other]).eog_ids


@pytest.mark.parametrize("other", ["<|tool_response>", "<|plamo:eos|>"])
def test_the_old_end_is_normal_beside_newer_ones(other):
    found = vocab(["x", "</s>", other], eos_token_id=2)
    assert found.eog_ids == {2}
    assert found.attributes[1] == NORMAL
    # a text ends generation only when something says so
    plain = vocab(["x", "</s>", "<|plamo:eos|>"], eos_token_id=0)
    assert plain.eog_ids == {0, 1}


def test_the_list_of_special_tokens_goes_from_long_to_short_and_keeps_ties_up_to_sixteen():
    tokens = ["aa", "bb", "c", "dddd", "ee", "n", "ff"]
    assert vocab(tokens, types=[3, 4, 2, 3, 3, 1, 5]).special_tokens.tolist() == [3, 0, 1, 4, 2]
    many = [f"<{k:02}>" for k in range(16)]
    assert vocab(many, types=[3] * 16, pre="default").special_tokens.tolist() == list(range(16))


def test_more_than_sixteen_equal_lengths_come_as_std_sort_leaves_them():
    # recorded: std::sort of 17, 20 and 40 equal keys, gcc 12
    answers = {
        17: [8, 16, 15, 14, 13, 12, 11, 10, 9, 0, 7, 6, 5, 4, 3, 2, 1],
        20: [10, 19, 18, 17, 16, 15, 14, 13, 12, 11, 0, 9, 8, 7, 6, 5, 4, 3, 2, 1],
    }
    for count, order in answers.items():
        found = vocab([f"<{k:02}>" for k in range(count)], types=[3] * count)
        assert found.special_tokens.tolist() == order


@pytest.mark.parametrize(
    ("settings", "stripped"),
    [
        ({"pre": "jina-v2-de"}, True), ({"pre": "jina-v2-es"}, True), ({"pre": "jina-v2-code"}, True),
        ({"pre": "jina-v1-en"}, False), ({"general__architecture": "nomic-bert-moe"}, True),
        ({"general__architecture": "jina-bert-v3"}, True), ({"general__architecture": "jina-bert-v2"}, False),
    ],
)  # fmt: skip
def test_masks_of_jina_and_nomic_strip_what_is_left_of_them(settings, stripped):
    found = attributes(["<mask>", "[MASK]", "x"], types=[3, 3, 1], **settings)
    assert found == {"<mask>": CONTROL | (LSTRIP if stripped else 0), "[MASK]": CONTROL, "x": NORMAL}


def test_the_mask_of_modern_bert_strips_what_is_left_of_it():
    found = attributes(["<mask>", "[MASK]"], types=[3, 3], general__name="Answerdotai Modern-BERT base")
    assert found == {"<mask>": CONTROL, "[MASK]": CONTROL | LSTRIP}
    assert attributes(["[MASK]"], types=[3], general__name="modernbert") == {"[MASK]": CONTROL}


def test_the_first_rule_of_strips_counts_alone():
    found = attributes(["<mask>", "[MASK]"], types=[3, 3], pre="jina-v2-de", general__name="phi-3 modern-bert")
    assert found == {"<mask>": CONTROL | LSTRIP, "[MASK]": CONTROL}


@pytest.mark.parametrize("name", ["Phi-3-mini", "x PHI3 y", "phi-3.5"])
def test_special_tokens_of_phi_3_strip_what_is_right_of_them_but_for_three(name):
    tokens = ["<unk>", "<s>", "</s>", "<|endoftext|>", "<|user|>", "<|x|>", "word"]
    found = attributes(tokens, types=[2, 3, 1, 3, 4, 3, 1], general__name=name)
    assert {token for token, bits in found.items() if bits & RSTRIP} == {"</s>", "<|user|>", "<|x|>"}
    plain = vocab(tokens, types=[2, 3, 1, 3, 4, 3, 1], general__name=name)
    assert not (plain.piece_attributes & (RSTRIP | LSTRIP)).any()
    assert not any(bits & RSTRIP for bits in attributes(tokens, general__name="phi-2").values())


@pytest.mark.parametrize("missing", PHI3_TEXTS)
def test_phi_3_without_one_of_its_tokens_is_malformed(missing):
    with pytest.raises(MalformedVocab, match=f"tokenizer.ggml.tokens: .*{missing.replace('|', '.')}.*says phi-3"):
        vocab([text for text in PHI3_TEXTS if text != missing], general__name="phi-3")


def test_attributes_of_the_file_and_of_pieces_are_kept():
    found = vocab(["<mask>", "</s>", "<unused>", "<|start|>"], types=[3, 1, 3, 3], pre="jina-v2-de")
    assert found.file_attributes.tolist() == [CONTROL, NORMAL, CONTROL, CONTROL]
    assert found.piece_attributes.tolist() == [CONTROL, NORMAL | CONTROL, CONTROL | UNUSED, USER]
    assert found.attributes.tolist() == [CONTROL | LSTRIP, NORMAL | CONTROL, CONTROL | UNUSED, USER]


texts = st.lists(
    st.binary(min_size=1, max_size=4) | st.sampled_from([b"</s>", b"<eos>", b"<mask>"]), max_size=30, unique=True
)


@given(texts, texts)
def test_texts_are_found_as_in_a_dict(tokens, wanted):
    table = TextIndex(*packed(tokens))
    assert len(table) == len(tokens)
    assert [table[k] for k in range(len(tokens))] == tokens
    assert table.find(wanted) == {text: tokens.index(text) for text in wanted if text in tokens}
