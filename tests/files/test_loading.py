"""Tokenizers of other files: kept on disk, pickled, compared, counted, streamed; or an error says what not."""

import json
import pickle

import pytest

import jittok
from jittok.errors import EncodingFailed, InvalidToken, UnsupportedVocab
from jittok.files.hf.models import as_read
from jittok.reference.pipeline import runner

KERNELS = ("r50k_base", "mistral-v1", "pix2tex", "syn-wordpiece-flags")
WITHOUT = {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [], "unk_token": "missing"}}
TEXTS = ["", "Hello world", "été \n\n naïve 你好", "a  b\tc 1234 it's", "\u1100\u1161 e\u0301 \U0001f600"]


@pytest.fixture
def cached(tmp_path, monkeypatch):
    monkeypatch.setattr(jittok.kernels.vocab_cache, "cache_dir", lambda: tmp_path / "cache")
    (tmp_path / "cache" / "vocabularies").mkdir(parents=True)


@pytest.mark.usefixtures("cached")
@pytest.mark.parametrize("name", ["r50k_base", "mistral-v1", "syn-wordlevel", "bert-chinese"])
def test_what_is_kept_answers_as_what_was_read(recorded, name):
    found = recorded(name)
    read = jittok.load(found.path, **found.options)
    kept = jittok.load(found.path, **found.options)
    assert kept._kept is not None
    assert kept == read == pickle.loads(pickle.dumps(read))
    assert kept.runs == read.runs
    assert kept.encode_batch(TEXTS).to_list() == read.encode_batch(TEXTS).to_list()
    ids = read.encode("Hello été", add_special=True)
    assert kept.decode(ids) == read.decode(ids)


@pytest.mark.usefixtures("cached")
def test_a_file_beside_that_says_more_is_another_tokenizer(recorded, tmp_path):
    path = tmp_path / "tokenizer.model"
    path.write_bytes(recorded("mistral-v1").path.read_bytes())
    plain = jittok.load(path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"add_bos_token": True}))
    with_bos = jittok.load(path)
    assert plain.encode("a", add_special=True).tolist() == plain.encode("a").tolist()
    assert with_bos.encode("a", add_special=True).tolist() == [1, *plain.encode("a").tolist()]
    assert with_bos != plain


def test_kernels_run_what_they_can_and_the_general_path_is_named(recorded):
    for name in KERNELS:
        assert jittok.load(recorded(name).path, cache=False).runs == "kernels"
    assert jittok.load(json.dumps(WITHOUT).encode(), cache=False).runs == "general path, plain Python: Merges"


@pytest.mark.parametrize("name", ["r50k_base", "syn-wordlevel"])
def test_bytes_that_are_no_utf8_are_an_error_or_replaced(recorded, name):
    tok = jittok.load(recorded(name).path, cache=False)
    rows = (lambda text: tok.encode_batch([b"fine", text]), lambda text: tok.encode_batch([text * 99]))
    for call in (tok.encode, *rows):
        with pytest.raises(EncodingFailed, match=r"found b'\\xff.*UTF-8"):
            call(b"abc \xff d")
    wanted = tok.encode("abc \ufffd d").tolist()
    assert tok.encode(b"abc \xff d", errors="replace").tolist() == wanted
    assert tok.encode_batch([b"abc \xff d"], errors="replace").to_list() == [wanted]
    with pytest.raises(EncodingFailed, match="document 1, offset 3"):
        tok.encode_batch([b"a", b"abc\xed\xa0\x80"])


def test_counts_threads_pairs_and_streams(recorded):
    for name in ("r50k_base", "syn-unigram-bytes"):
        tok = jittok.load(recorded(name).path, cache=False)
        rows = tok.encode_batch(TEXTS * 50, threads=2)
        assert tok.count_batch(TEXTS * 50).tolist() == [len(row) for row in rows.to_list()]
        a, b = (tok.encode(text).tolist() for text in ("one", "two"))
        assert tok.encode_pair("one", "two", add_special=False).tolist() == a + b
        assert tok.decode_batch(rows)[1] == tok.decode(rows[1])
        with pytest.raises(InvalidToken):
            tok.decode([tok.vocab_size])
    tok = jittok.load(recorded("r50k_base").path, cache=False)
    out, ids = tok.stream_decoder(), tok.encode(TEXTS[2])
    assert "".join([out.push(int(token)) for token in ids] + [out.finish()]) == TEXTS[2]
    assert tok.token_to_piece(tok.token_to_id(b" the")) == b" the"
    assert tok.describe([262])[0]["piece"] == " the"


def test_a_pair_stands_in_the_order_of_its_template_without_special_tokens_too():
    def item(kind, name):
        return {kind: {"id": name, "type_id": 0}}

    special = {"s": {"id": "s", "ids": [0], "tokens": ["s"]}}
    first, second, mark = item("Sequence", "A"), item("Sequence", "B"), item("SpecialToken", "s")
    content = json.dumps({
        "model": {"type": "WordLevel", "vocab": {"s": 0, "a": 1, "b": 2}, "unk_token": "s"},
        "post_processor": {"type": "TemplateProcessing", "single": [mark, first], "pair": [second, mark, first],
                           "special_tokens": special},
    })  # fmt: skip
    tok = jittok.load(content.encode(), cache=False)
    assert tok.encode_pair("a", "b", add_special=True).tolist() == [2, 0, 1]
    assert tok.encode_pair("a", "b", add_special=False).tolist() == [2, 1]
    assert runner(tok.pipeline).around([1], [2], add_special=False) == [2, 1]
    tokenizers = pytest.importorskip("tokenizers")
    assert tokenizers.Tokenizer.from_str(content).encode("a", "b", add_special_tokens=False).ids == [2, 1]


def test_a_gguf_vocabulary_has_no_template_for_pairs():
    with pytest.raises(UnsupportedVocab, match="template for pairs"):
        jittok.bundled("gpt-2").encode_pair("a", "b")


def test_objects_that_hold_a_tokenizer_are_read_back(recorded):
    class Written:
        def to_str(self):
            return recorded("pix2tex").path.read_text()

        def serialized_model_proto(self):
            return recorded("mistral-v1").path.read_bytes()

    class Holder:
        backend_tokenizer = Written()

    class Encoding:
        def __init__(self):
            self.name, self._pat_str, self._special_tokens = "own", r"\p{L}+|[^\p{L}]+", {"<e>": 256}
            self._mergeable_ranks = {bytes([byte]): byte for byte in range(256)}

    want = jittok.load(recorded("pix2tex").path, cache=False)
    assert jittok.from_tokenizers(Written()) == want == jittok.from_transformers(Holder())
    assert (
        jittok.from_sentencepiece(Written()).encode("abc").tolist()
        == jittok.load(recorded("mistral-v1").path, cache=False).encode("abc").tolist()
    )
    tok = jittok.from_tiktoken(Encoding())
    assert tok.encode("a<e>", parse_special=True).tolist() == [97, 256]
    assert pickle.loads(pickle.dumps(tok)).encode("abc").tolist() == [97, 98, 99]
    with pytest.raises(UnsupportedVocab, match="load its files"):
        jittok.from_transformers(object())


def test_the_fingerprint_is_of_what_decides_ids_alone(recorded, tmp_path):
    path = recorded("syn-wordlevel").path
    content = json.loads(path.read_text())
    (tmp_path / "tokenizer.json").write_text(json.dumps(content, indent=3))
    same = jittok.load(tmp_path / "tokenizer.json", cache=False)
    assert same.fingerprint == jittok.load(path, cache=False).fingerprint
    content["added_tokens"][0]["lstrip"] ^= True
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    assert jittok.load(tmp_path / "tokenizer.json", cache=False).fingerprint != same.fingerprint


def test_scores_are_the_doubles_that_the_files_library_reads_from_their_digits():
    text = "-7.4370903968811035"  # of a real file; the nearest double is another one
    assert as_read(text) == -74370903968811035 / 1e16 != float(text)
    assert [as_read(each) for each in ("-0.5", "12", "1e3", "2.5E-1", "0.0")] == [-0.5, 12, 1000, 0.25, 0]
    assert as_read("123456789012345678901234567890") == 12345678901234567890 * 1e10
    for each in ("1e400", "9" * 500):
        with pytest.raises(OverflowError):
            as_read(each)
    vocab = [["<unk>", 0.0], ["a", -1.0]]
    content = json.dumps({"model": {"type": "Unigram", "unk_id": 0, "vocab": vocab}}).replace("-1.0", text)
    assert jittok.load(content.encode(), cache=False).vocab.model.scores.tolist() == [0.0, as_read(text)]
