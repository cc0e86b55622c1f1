"""Ids of BOS, EOS, padding and the unknown token are those that the files of a folder name; a text before a number."""

import json

import pytest

import jittok
from jittok.errors import CorpusError, MalformedVocab, UnsupportedVocab

FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
NAMES = ("<s>", "</s>", "<pad>", "<u>")


def folder_of(folder, unknown="<u>", **files):
    """A folder with a tokenizer.json whose words are a, b and NAMES (ids 2 to 5)."""
    vocab = {text: token for token, text in enumerate(("a", "b", *NAMES))}
    added = [{"id": vocab[text], "content": text, **FLAGS} for text in NAMES]
    model = {"type": "WordLevel", "vocab": vocab, "unk_token": unknown}
    content = {"added_tokens": added, "pre_tokenizer": {"type": "WhitespaceSplit"}, "model": model}
    (folder / "tokenizer.json").write_text(json.dumps(content))
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


def ids_of(place):
    tok = jittok.load(place, cache=False)
    return tok.bos_id, tok.eos_id, tok.pad_id, tok.unk_id


OBJECT = {"__type": "AddedToken", "content": "</s>", **FLAGS}


@pytest.mark.parametrize(
    ("files", "ids"),
    [
        ({}, (None, None, 4, 5)),
        ({"tokenizer_config": {"bos_token": "<s>", "eos_token": OBJECT, "pad_token": "<pad>"}}, (2, 3, 4, 5)),
        ({"special_tokens_map": {"eos_token": OBJECT, "unk_token": "a"}}, (None, 3, 4, 0)),
        ({"tokenizer_config": {"eos_token": "<s>"}, "special_tokens_map": {"eos_token": "</s>"}}, (None, 3, 4, 5)),
        ({"tokenizer_config": {"eos_token": "<s>", "added_tokens_decoder": {"2": {"content": "<s>"}}},
          "special_tokens_map": {"eos_token": "</s>"}}, (None, 2, 4, 5)),
        ({"generation_config": {"bos_token_id": 2, "eos_token_id": [3, 4], "pad_token_id": 4}}, (2, 3, 4, 5)),
        ({"generation_config": {"eos_token_id": 3}, "config": {"eos_token_id": 2, "bos_token_id": 2}}, (2, 3, 4, 5)),
        ({"tokenizer_config": {"eos_token": "<s>"}, "generation_config": {"eos_token_id": 3}}, (None, 2, 4, 5)),
        ({"tokenizer_config": {"eos_token": None}, "config": {"eos_token_id": 3}}, (None, None, 4, 5)),
        ({"config": {"eos_token_id": 6, "bos_token_id": -1, "pad_token_id": True}}, (None, None, 4, 5)),
        ({"config": {"eos_token_id": None, "bos_token_id": [], "pad_token_id": "4"}}, (None, None, 4, 5)),
        ({"tokenizer_config": {"tokenizer_class": "LlamaTokenizer"}}, (2, 3, 4, 5)),
        ({"config": {"model_type": "t5"}}, (None, 3, 4, 5)),
        ({"tokenizer_config": {"unk_token": "<pad>", "pad_token": None}}, (None, None, None, 4)),
    ],
)  # fmt: skip
def test_special_ids_of_a_tokenizer_json_are_what_its_folder_says(files, ids, tmp_path):
    assert ids_of(folder_of(tmp_path, **files)) == ids
    assert ids_of(tmp_path / "tokenizer.json") == ids


def test_a_token_that_the_file_does_not_have_has_no_id_and_is_noted(tmp_path):
    tok = jittok.load(folder_of(tmp_path, tokenizer_config={"eos_token": "<end>"}), cache=False)
    assert tok.eos_id is None
    assert "eos_token '<end>' is not a token of this file, so it has no id" in tok.pipeline.notes


@pytest.mark.parametrize("said", [5, ["</s>"], {"lstrip": True}, True])
def test_a_named_token_that_is_no_text_is_refused(said, tmp_path):
    with pytest.raises(MalformedVocab, match=r"tokenizer_config\.json: eos_token"):
        ids_of(folder_of(tmp_path, tokenizer_config={"eos_token": said}))


def test_files_of_other_programs_beside_a_tokenizer_are_passed_over(tmp_path):
    folder_of(tmp_path)
    (tmp_path / "config.json").write_bytes(b"not JSON")
    (tmp_path / "generation_config.json").write_bytes(b"[1]")
    assert ids_of(tmp_path) == (None, None, 4, 5)


def test_which_tokens_a_folder_names_changes_neither_ids_nor_the_fingerprint(tmp_path):
    plain, named = tmp_path / "plain", tmp_path / "named"
    for place in (plain, named):
        place.mkdir()
    one = jittok.load(folder_of(plain), cache=False)
    other = jittok.load(folder_of(named, tokenizer_config={"eos_token": "</s>", "unk_token": "a"}), cache=False)
    assert one.fingerprint == other.fingerprint
    assert one.encode("a c </s>").tolist() == other.encode("a c </s>").tolist() == [0, 5, 3]
    assert (one.eos_id, other.eos_id, one.pipeline.unknown_id, other.pipeline.unknown_id) == (None, 3, 5, 5)


def test_what_is_kept_of_a_folder_goes_when_a_file_beside_it_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(jittok.kernels.vocab_cache, "cache_dir", lambda: tmp_path / "cache")
    (tmp_path / "cache" / "vocabularies").mkdir(parents=True)
    place = tmp_path / "files"
    place.mkdir()
    folder_of(place)
    for number in (3, 2):
        for name in ("generation_config", "config"):
            (place / f"{name}.json").write_text(json.dumps({"eos_token_id": number}))
        assert [jittok.load(place).eos_id for _ in range(2)] == [number, number]


@pytest.mark.parametrize(
    ("config", "ids", "around"),
    [
        ({"add_bos_token": True, "add_eos_token": True}, (1, 2), ([1], [2])),
        ({"add_bos_token": True, "add_eos_token": True, "eos_token": "a"}, (1, "a"), ([1], ["a"])),
        ({"add_bos_token": True, "bos_token": None}, (None, 2), ([], [])),
        ({"add_eos_token": True, "eos_token": {"content": "b"}}, (1, "b"), ([], ["b"])),
        ({"eos_token": "a"}, (1, "a"), ([], [])),
        ({"eos_token": "<end>"}, (1, None), ([], [])),
    ],
)
def test_tokens_around_a_text_of_a_sentencepiece_model_are_those_that_its_config_names(
    config, ids, around, recorded, tmp_path
):
    (tmp_path / "tokenizer.model").write_bytes(recorded("mistral-v1").path.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tok = jittok.load(tmp_path, cache=False)

    def number(text):
        return tok.token_to_id(text) if isinstance(text, str) else text

    assert (tok.bos_id, tok.eos_id) == tuple(map(number, ids))
    before, after = (list(map(number, part)) for part in around)
    assert tok.encode("ab", add_special=True).tolist() == [*before, *tok.encode("ab").tolist(), *after]


def test_a_token_around_a_text_that_is_no_piece_is_refused(recorded, tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(recorded("mistral-v1").path.read_bytes())
    for role in ("bos", "eos"):
        said = {f"add_{role}_token": True, f"{role}_token": "<end>"}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(said))
        with pytest.raises(UnsupportedVocab, match=f"{role}_token: found '<end>', expected a piece"):
            jittok.load(tmp_path, cache=False)


def test_a_corpus_ends_its_documents_with_the_token_that_the_folder_or_the_option_names(tmp_path):
    pytest.importorskip("filelock")
    from jittok.corpus import Options, compile_corpus
    from jittok.corpus import open as open_corpus

    texts = tmp_path / "t.txt"
    texts.write_text("a b\nb", "utf-8")
    (tmp_path / "plain").mkdir()
    (tmp_path / "named").mkdir()
    plain = jittok.load(folder_of(tmp_path / "plain"), cache=False)
    named = jittok.load(folder_of(tmp_path / "named", tokenizer_config={"eos_token": "</s>"}), cache=False)

    def ids(tok, name, **options):
        compile_corpus([texts], tok, tmp_path / name, Options(formats=("npy",), lines=True, **options))
        return [row.tolist() for row in open_corpus(tmp_path / name)]

    assert ids(named, "1", append_eos=True) == [[0, 1, 3], [1, 3]]
    assert ids(plain, "2", eos=4) == [[0, 1, 4], [1, 4]]
    assert ids(plain, "3", eos="<pad>") == ids(named, "4", eos="<pad>", append_eos=True) == ids(plain, "2", eos=4)
    with pytest.raises(
        CorpusError, match=r"append_eos: found a vocabulary without .*, expected one that has it, or eos"
    ):
        ids(plain, "5", append_eos=True)
    for wrong in (6, -1, "<end>"):
        with pytest.raises(CorpusError, match="eos: found"):
            ids(plain, "5", eos=wrong)
    with pytest.raises(TypeError, match="eos: found bool"):
        ids(plain, "5", eos=True)
    (tmp_path / "named" / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<s>"}))
    other = jittok.load(tmp_path / "named", cache=False)
    with pytest.raises(CorpusError, match=r"end-of-text token 2 \(begun with 3\)"):
        ids(other, "1", append_eos=True)


@pytest.mark.parametrize(("said", "end"), [("3", 3), ("</s>", 3), ("<pad>", 4)])
def test_the_command_takes_an_id_or_a_text_for_the_end_of_documents(said, end, tmp_path):
    pytest.importorskip("filelock")
    from jittok.cli import main
    from jittok.corpus import open as open_corpus

    (tmp_path / "t.txt").write_text("a b", "utf-8")
    (tmp_path / "f").mkdir()
    place = folder_of(tmp_path / "f")
    words = ["corpus", str(tmp_path / "t.txt"), "--vocab", str(place), "--out", str(tmp_path / "o"), "--eos", said]
    assert main([*words, "--format", "npy"]) == 0
    assert [row.tolist() for row in open_corpus(tmp_path / "o")] == [[0, 1, end]]
