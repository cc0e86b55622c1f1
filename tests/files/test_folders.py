"""Folders without a tokenizer.json have the ids of transformers' AutoTokenizer, whose answers are written here."""

import json
import os

import pytest

import jittok
from jittok.common.unicode.tables import CHARACTER_OF_BYTE
from jittok.errors import JittokError, MalformedVocab, UnsupportedVocab
from jittok.tokenizer import loading

BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##a", "##b", "ab", "x", "<", ">", "<x>", "abc"]
BYTES = [chr(c) for c in CHARACTER_OF_BYTE]
PLAIN = {"__type": "AddedToken", "lstrip": False, "rstrip": False, "normalized": False, "single_word": False}


def bert(folder, lines=BERT, **files):
    (folder / "vocab.txt").write_bytes("".join(f"{line}\n" for line in lines).encode())
    return loaded(folder, "BertTokenizer", **files)


def gpt2(folder, name="GPT2Tokenizer", more=("<|endoftext|>",), **files):
    tokens = [*BYTES, "ab", *more]
    (folder / "vocab.json").write_text(json.dumps({text: k for k, text in enumerate(tokens)}), "utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\na b\n", "utf-8")
    return loaded(folder, name, **files)


def loaded(folder, name, config=None, special_tokens_map=None, added_tokens=None):
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name, **(config or {})}), "utf-8")
    for file, content in (("special_tokens_map", special_tokens_map), ("added_tokens", added_tokens)):
        if content is not None:
            (folder / f"{file}.json").write_text(json.dumps(content), "utf-8")
    return jittok.load(folder, cache=False)


@pytest.mark.parametrize(
    "files",
    [
        {"config": {"additional_special_tokens": ["<x>", "NEW"]}},
        {"config": {"extra_special_tokens": ["NEW", "<x>"]}},
        {"config": {"extra_special_tokens": {"foo": "NEW", "bar": "<x>"}}},
        {"config": {"image_token": "NEW", "additional_special_tokens": ["<x>"]}},
        {"special_tokens_map": {"additional_special_tokens": ["<x>", "NEW"]}},
        {"config": {"extra_special_tokens": ["<x>"]}, "special_tokens_map": {"extra_special_tokens": ["NEW"]}},
        {"special_tokens_map": {"foo_token": "NEW", "bar_token": {**PLAIN, "content": "<x>"}}},
    ],
)
def test_special_tokens_without_a_name_and_of_other_names_are_cut_out(files, tmp_path):
    tok = bert(tmp_path, **files)
    ids = [14, 15, 14, 15, 13, 10]
    assert tok.encode("abcNEWabc NEW<x>x", parse_special=True).tolist() == ids
    assert tok.encode("abcNEW <x>").tolist() == [1, 11, 10, 12]
    assert tok.decode(ids, skip_special=True) == "abc abc x"


def test_new_tokens_stand_behind_the_vocabulary_in_the_order_of_the_library(tmp_path):
    extra = ["<U>", {**PLAIN, "content": "<V>", "rstrip": True}, "ab"]
    config = {"extra_special_tokens": extra, "image_token": "<W>", "mask_token": "<M>"}
    tok = gpt2(tmp_path, config=config, special_tokens_map={"pad_token": "<P>"})
    ids = tok.encode("<P> <M> <W> <U> <V>  ab", parse_special=True).tolist()
    assert ids == [258, 32, 259, 32, 260, 32, 261, 32, 262, 256]
    assert tok.decode(ids, skip_special=True) == "    <V>"  # an object in the list is special where it says so


def test_where_the_config_holds_the_added_tokens_the_older_files_are_not_read(tmp_path):
    held = {"258": {**PLAIN, "content": "<A>", "special": False, "normalized": True}}
    config = {"added_tokens_decoder": held, "extra_special_tokens": ["<A>", "<B>"]}
    tok = gpt2(tmp_path, config=config, special_tokens_map={"pad_token": "<P>"}, added_tokens={"<C>": 258})
    assert tok.encode("<A> <B> <P> <C>", parse_special=True).tolist() == [258, 32, 259, 32, 60, 80, 62, 32, 60, 67, 62]
    assert tok.decode([258, 259], skip_special=True) == "<A>"


def test_the_map_stands_above_the_config(tmp_path):
    tok = gpt2(tmp_path, config={"pad_token": "<A>"}, special_tokens_map={"pad_token": "<B>"})
    assert tok.encode("A<B>", parse_special=True).tolist() == [65, 258]


@pytest.mark.parametrize(
    ("config", "single", "pair"),
    [
        ({"add_bos_token": True}, [257, 256], [257, 256, 257, 97]),
        ({"add_eos_token": True}, [256, 257], [256, 257, 97, 257]),
        ({"add_bos_token": True, "add_eos_token": True}, [257, 256, 257], [257, 256, 257, 257, 97, 257]),
        ({"add_bos_token": True, "bos_token": None}, [256], [256, 97]),
        ({"add_bos_token": True, "bos_token": "NEW"}, [258, 256], [258, 256, 258, 97]),
        ({"add_bos_token": False}, [256], [256, 97]),
    ],
)
def test_bos_and_eos_stand_around_each_text_where_the_config_says_so(config, single, pair, tmp_path):
    tok = gpt2(tmp_path, config=config)
    assert tok.encode("ab", add_special=True).tolist() == single
    assert tok.encode_pair("ab", "a").tolist() == pair


WHISPER = {"S": "<|startoftranscript|>", "N": "<|notimestamps|>", "E": "<|endoftext|>", "e": "<|en|>", "z": "<|zh|>",
           "T": "<|transcribe|>", "L": "<|translate|>", "u": "<u>"}  # fmt: skip


@pytest.mark.parametrize(
    ("tokens", "config", "before", "end"),
    [
        ("ESN", {}, [258, 259], 257),
        ("E", {}, [257, 257], 257),
        ("", {}, [257, 257], 257),
        ("S", {}, [257, 258], 258),
        ("EN", {}, [257, 258], 257),
        ("E", {"unk_token": "<u>"}, [258, 258], 257),
        ("u", {"unk_token": "<u>", "eos_token": "</s>"}, [257, 257], 259),
        ("ESN", {"unk_token": None}, [258, 259], 257),
        ("ES", {"predict_timestamps": True}, [258], 257),
        ("ESNLT", {"task": "translate"}, [258, 260, 259], 257),
        ("ESN", {"task": "transcribe"}, [258, 257, 259], 257),
        ("ESezNT", {"language": "ZH", "task": "transcribe"}, [258, 260, 262, 261], 257),
        ("ESNe", {"language": "en", "predict_timestamps": True}, [258, 259], 257),  # by its place
    ],
)
def test_whisper_puts_its_unknown_token_where_one_of_its_own_is_missing(tokens, config, before, end, tmp_path):
    tok = gpt2(tmp_path, "WhisperTokenizer", [WHISPER[token] for token in tokens], config=config)
    assert tok.encode("ab", add_special=True).tolist() == [*before, 256, end]
    assert tok.encode_pair("ab", "a").tolist() == [*before, 256, 97, end]


@pytest.mark.parametrize(
    "config", [{"unk_token": None}, {"language": "english"}, {"language": "yue"}, {"task": "talk"}]
)
def test_what_whisper_s_class_cannot_put_in_front_is_refused(config, tmp_path):
    with pytest.raises(JittokError, match=next(iter(config))):
        gpt2(tmp_path, "WhisperTokenizer", config=config)


@pytest.mark.parametrize(
    ("config", "pair"),
    [
        ({"cls_token": None}, [2, 6, 5, 6, 5]),
        ({"sep_token": None}, [4, 6, 3, 6, 3]),
        ({"cls_token": None, "sep_token": None}, [3, 6, 3, 6, 3]),
    ],
)
def test_a_null_is_the_id_that_the_class_takes_for_it(config, pair, tmp_path):
    tok = bert(tmp_path, ["[PAD]", "[UNK]", "a", "b", "[CLS]", "[SEP]", "y"], config=config)
    assert tok.encode("y", add_special=True).tolist() == pair[:3]
    assert tok.encode_pair("y", "y").tolist() == pair


def test_separators_of_ascii_stay_in_a_line_as_in_the_library(tmp_path):
    tok = bert(tmp_path, [*BERT, "y\x1c", "z\x85\u3000\t", "w\x1f "])
    assert tok.encode("y z w").tolist() == [1, 16, 1]


@pytest.mark.parametrize("extra", [[5], "NEW", [{"lstrip": True}]])
def test_what_is_no_list_of_tokens_is_refused(extra, tmp_path):
    with pytest.raises(MalformedVocab, match="extra_special_tokens"):
        gpt2(tmp_path, config={"extra_special_tokens": extra})


@pytest.mark.parametrize("number", ["-1", "1" * 5000, "\u0665", "", "1.0"])
def test_an_id_that_is_no_plain_number_is_refused(number, tmp_path):
    with pytest.raises(MalformedVocab, match="added_tokens_decoder"):
        gpt2(tmp_path, config={"added_tokens_decoder": {number: {**PLAIN, "content": "<A>"}}})


def test_a_list_of_rwkv_is_one_whatever_it_is_called(tmp_path):
    lines = [f"{byte + 1} {bytes([byte])!r} 1" for byte in range(256)]
    lines[0] = "1 '\\x00' 1"
    (tmp_path / "vocab.txt").write_text("\n".join([*lines, "257 'ab' 2", ""]), "utf-8")
    for place in (tmp_path, tmp_path / "vocab.txt"):
        assert jittok.load(place, cache=False).encode("abc").tolist() == [257, 100]


@pytest.mark.skipif(os.name == "nt", reason="names have no line breaks there")
def test_folders_of_other_files_are_kept_apart_whatever_their_names(tmp_path):
    two, one = tmp_path / "two", tmp_path / "one"
    for place in (two, one):
        place.mkdir()
    for name, content in (("a.model", b"first"), ("b.model", b"second")):
        (two / name).write_bytes(content)
    known = jittok.kernels.vocab_cache.name_of(b"first")
    (one / f"a.model {known}\nb.model").write_bytes(b"second")
    keys = [loading._take_parts(str(place), {})[0]() for place in (two, one)]
    assert keys[0] != keys[1]
    assert None not in keys


def test_an_answer_that_needed_a_file_which_nobody_hashed_is_not_kept(tmp_path, monkeypatch):
    for name in ("vocab.txt", "tokenizer_config.json"):
        (tmp_path / name).write_text("{}" if name.endswith("json") else "[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\na")
    for parts, kept in ((loading.PARTS, True), (("vocab.txt", "tokenizer.json"), False)):
        monkeypatch.setattr(loading, "PARTS", parts)
        key, read = loading._take_parts(str(tmp_path), {})
        assert key() is not None
        read()
        assert (key() is not None) == kept


K = {**PLAIN, "content": "K", "normalized": True}
RAW = {**K, "normalized": False}


@pytest.mark.parametrize(
    ("files", "text", "skipped"),
    [
        ({"config": {"cls_token": K, "extra_special_tokens": [RAW]}}, "k", "k"),
        ({"config": {"extra_special_tokens": [K, RAW]}}, "k", "k"),
        ({"config": {"extra_special_tokens": [RAW, K]}}, "k", "k"),
        ({"config": {"sep_token": "K", "extra_special_tokens": ["K"]}}, "K", ""),
        ({"added_tokens": {"K": 15}, "config": {"mask_token": "K"}}, "K", ""),
    ],
)
def test_what_was_once_looked_for_by_its_normalized_text_goes_on_to_print_that(files, text, skipped, tmp_path):
    tok = bert(tmp_path, **files)
    assert tok.decode([15]) == text
    assert tok.decode([15], skip_special=True) == skipped


def test_a_special_token_that_the_class_alone_names_is_an_added_one_first(tmp_path):
    tok = bert(tmp_path, added_tokens={"[SEP]": 3})
    assert tok.decode([2, 3]) == "[CLS] [sep]"
    assert tok.decode([2, 3], skip_special=True) == "[sep]"


@pytest.mark.parametrize(
    ("added", "ids"), [({"<B>": 21, "NEW": 18}, [17, 16]), ({"<B>": 19, "NEW": 19}, [11, 6, 12, 16])]
)
def test_added_tokens_are_added_by_their_numbers_and_of_equal_ones_the_last(added, ids, tmp_path):
    lines = [*BERT[:7], "a", "##a", *BERT[9:], "k", "k", "q"]
    assert bert(tmp_path, lines, added_tokens=added).encode("<B> NEW").tolist() == ids


def test_a_token_around_a_text_has_the_id_of_its_added_token_whatever_the_files_say(tmp_path):
    """What was found: the template took the number of added_tokens.json, the added token the next free id."""
    tok = bert(tmp_path, added_tokens={"<C>": 2}, config={"cls_token": "<C>"})
    assert tok.encode("a", add_special=True).tolist() == [len(BERT), 5, 3]
    (tmp_path / "w").mkdir()
    said = {"7": {**PLAIN, "content": "<|startoftranscript|>", "normalized": False}}
    tok = gpt2(tmp_path / "w", "WhisperTokenizer", config={"added_tokens_decoder": said, "predict_timestamps": True})
    assert tok.encode("ab", add_special=True).tolist() == [258, 256, 257]


@pytest.mark.parametrize(
    ("flags", "text"), [({}, "[CLS]"), ({"special": False}, "[CLS]"), ({"normalized": True}, "[cls]")]
)
def test_a_named_token_is_not_normalized_unless_its_row_says_so(flags, text, tmp_path):
    tok = bert(tmp_path, config={"added_tokens_decoder": {"2": {"content": "[CLS]", "lstrip": True, **flags}}})
    assert tok.decode([2]) == text


@pytest.mark.parametrize(
    ("files", "ids"),
    [
        ({"config": {"image_token": {"content": "X"}}}, [10]),  # an object of no type is no token
        ({"config": {"image_token": {"content": "X", "__type": "AddedToken"}}}, [15]),
        ({"special_tokens_map": {"image_token": {"content": "X"}}}, [15]),
    ],
)
def test_an_object_under_another_name_is_a_token_where_it_says_so(files, ids, tmp_path):
    assert bert(tmp_path, **files).encode("X", parse_special=True).tolist() == ids


@pytest.mark.parametrize(
    ("files", "text"), [({"config": {"extra_special_tokens": [{**RAW, "content": "[SEP]", "special": True}]}}, "[sep]"),
                        ({"special_tokens_map": {"sep_token": {**RAW, "content": "[SEP]"}}}, "[SEP]")],
)  # fmt: skip
def test_an_object_of_the_config_does_not_make_an_added_token_special(files, text, tmp_path):
    assert bert(tmp_path, added_tokens={"[SEP]": 3}, **files).decode([3]) == text


@pytest.mark.parametrize("number", [{}, "257", None, True, 1.0])
def test_an_id_of_vocab_json_that_is_no_number_is_refused(number, tmp_path):
    more = ["<|startoftranscript|>", "<|en|>", "<|endoftext|>"]
    gpt2(tmp_path, "WhisperTokenizer", more, config={"language": "en"})  # whose number is the next one
    vocab = json.loads((tmp_path / "vocab.json").read_bytes())
    (tmp_path / "vocab.json").write_text(json.dumps({**vocab, "<|startoftranscript|>": number}))
    with pytest.raises(MalformedVocab, match=r"startoftranscript.*: found"):
        jittok.load(tmp_path, cache=False)


def test_of_equal_lines_the_last_is_the_token(tmp_path):
    assert bert(tmp_path, [*BERT, "y", "z", "y "]).encode("y z").tolist() == [17, 16]


def test_a_line_of_merges_may_end_as_in_windows(tmp_path):
    gpt2(tmp_path)
    (tmp_path / "merges.txt").write_bytes(b"#version: 0.2\r\na b\r\n")
    assert jittok.load(tmp_path, cache=False).encode("ab").tolist() == [256]


@pytest.mark.parametrize(
    "name", ["PreTrainedTokenizerFast", "PreTrainedTokenizer", "NobodysTokenizer", "RobertaTokenizer"]
)
def test_a_class_that_reads_other_files_is_refused(name, tmp_path):
    with pytest.raises(UnsupportedVocab, match=r"expected one of BertTokenizer \(see docs"):
        bert(tmp_path, config={"tokenizer_class": name})


@pytest.mark.parametrize("name", ["PreTrainedTokenizerFast", "BertTokenizer", "DebertaTokenizer", "Qwen2Tokenizer"])
def test_a_class_that_is_not_of_vocab_json_is_refused(name, tmp_path):
    with pytest.raises(
        UnsupportedVocab, match=r"tokenizer_class or model_type: found .*, expected one of GPT2Tokenizer"
    ):
        gpt2(tmp_path, name, ["[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"])


@pytest.mark.parametrize("config", [None, {}])
@pytest.mark.parametrize(
    ("kind", "ids"),
    [("roberta", [257, 256, 258]), ("bart", [257, 256, 258]), ("gpt2", [256]), ("deberta", None), ("clip", None),
     ("t5", None), ("falcon", None), ("nobodys", None), (None, [256])],
)  # fmt: skip
def test_without_a_class_the_model_type_decides_as_in_autotokenizer(kind, ids, config, tmp_path):
    more = ["<s>", "</s>", "<unk>", "<pad>", "<mask>"]
    gpt2(tmp_path, more=more)
    (tmp_path / "tokenizer_config.json").unlink()
    for name, value in (("tokenizer_config", config), ("config", {"model_type": kind})):
        if value is not None:
            (tmp_path / f"{name}.json").write_text(json.dumps(value))
    if ids is None:  # CLIP's unknown token is not in the vocabulary
        with pytest.raises(JittokError):
            jittok.load(tmp_path, cache=False).encode("ab", add_special=True)
        return
    tok = jittok.load(tmp_path, cache=False)
    assert tok.encode("ab", add_special=True).tolist() == ids
    assert any("none beside them names a class" in note for note in tok.pipeline.notes) == (kind is None)


@pytest.mark.parametrize(("kind", "known"), [("bert", True), ("distilbert", True), ("esm", False), ("mpnet", False)])
def test_a_vocab_txt_of_another_model_is_refused(kind, known, tmp_path):
    bert(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    if known:
        assert jittok.load(tmp_path / "vocab.txt", cache=False).encode("abc").tolist() == [14]
        return
    for place in (tmp_path, tmp_path / "vocab.txt"):
        with pytest.raises(UnsupportedVocab, match="which AutoTokenizer takes"):
            jittok.load(place, cache=False)


def test_special_ids_are_those_that_the_class_names(tmp_path):
    tok = gpt2(tmp_path, more=["<|endoftext|>", "<p>"], config={"pad_token": "<p>", "bos_token": None})
    assert (tok.bos_id, tok.eos_id, tok.unk_id, tok.pad_id) == (None, 257, 257, 258)
    (tmp_path / "b").mkdir()
    tok = bert(tmp_path / "b")
    assert (tok.bos_id, tok.eos_id, tok.unk_id, tok.pad_id) == (None, None, 1, 0)


def test_roberta_puts_its_own_two_tokens_around_a_text(tmp_path):
    more = ["<s>", "</s>", "<unk>", "<pad>", "<mask>", "<c>", "<d>"]
    tok = gpt2(tmp_path, "RobertaTokenizer", more, config={"cls_token": "<c>", "sep_token": "<d>"})
    assert tok.encode("ab", add_special=True).tolist() == [262, 256, 263]


@pytest.mark.parametrize("number", [-1, True, "257", 1.0])
def test_an_id_of_added_tokens_that_is_no_number_from_0_on_is_refused(number, tmp_path):
    with pytest.raises(MalformedVocab, match=r"added_tokens\.json"):
        gpt2(tmp_path, added_tokens={"NEW": number})
