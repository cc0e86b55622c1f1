import copy
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jittok
from jittok.common.display import progress
from jittok.common.display.progress import Progress
from jittok.common.rows import Ragged, TokenArray
from jittok.encode import encoder, limits
from jittok.encode.limits import LONGEST_HELD
from jittok.errors import EncodingFailed, InvalidToken, MalformedVocab, UnsupportedVocab
from jittok.tokenizer import Tokenizer
from jittok.tokenizer.pickling import own_of
from jittok.vocab import read_vocab
from jittok.vocab.bundled import bundled_source

A, AB, HI = 261, 268, 271  # "a", "ab" and "▁hi" of the fixture
SPACE = 260
UNKNOWN, NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 4, 8, 16, 32
TEXTS = st.lists(st.text("ab hié<s>tol\n", max_size=12) | st.binary(max_size=8), max_size=12)


def test_a_text_gives_its_own_tokens_and_nothing_else(spm: Tokenizer) -> None:
    ids = spm.encode("hi")
    assert ids.tolist() == [HI]
    assert ids.dtype == np.int32
    assert spm.encode("").tolist() == []
    assert spm.encode("<s>").tolist() == [SPACE, *(4 + b for b in b"<s>")]


def test_special_tokens_are_added_and_parsed_on_request(spm: Tokenizer) -> None:
    assert spm.encode("hi", add_special=True).tolist() == [1, HI]
    assert spm.encode("", add_special=True).tolist() == [1]
    assert spm.encode("hi<s>hi", parse_special=True).tolist() == [HI, 1, HI]
    assert spm.encode("<tool>hi").tolist() == [3, HI]


def test_bytes_go_in_as_they_are(spm: Tokenizer) -> None:
    for text in (b"hi", bytearray(b"hi"), memoryview(b"hi")):
        assert spm.encode(text).tolist() == [HI]
    assert spm.encode(b"\xff\0").tolist() == [SPACE, 4 + 255, 4]


@given(TEXTS, st.booleans(), st.booleans(), st.integers(1, 3))
def test_a_batch_is_its_texts_one_by_one(
    spm: Tokenizer, texts: list[Any], add_special: bool, parse_special: bool, threads: int
) -> None:
    how = {"add_special": add_special, "parse_special": parse_special}
    rows = spm.encode_batch(texts, threads=threads, **how)
    assert rows.to_list() == [spm.encode(text, **how).tolist() for text in texts]
    assert spm.count_batch(texts, threads=threads, **how).tolist() == rows.lengths.tolist()
    assert [spm.count(text, **how) for text in texts] == rows.lengths.tolist()
    assert TokenArray.concat(spm.encode_stream(texts, threads=threads, **how)) == rows


def test_threads_and_stretches_do_not_change_ids(spm: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{'ab hi ' * (i % 50)}<tool>{i}" for i in range(3000)]
    whole = spm.encode_batch(texts, threads=1)
    for size in (100, 5000):
        monkeypatch.setattr(limits, "STRETCH_MIN", size)
        monkeypatch.setattr(limits, "STRETCH_BYTES", size)
        for threads in (1, 2, 5):
            assert spm.encode_batch(texts, threads=threads) == whole
            assert spm.encode_batch(iter(texts), threads=threads) == whole


def test_one_tokenizer_serves_many_threads(spm: Tokenizer) -> None:
    texts, found = ["ab hi" * n for n in range(60)], []

    def work() -> None:
        found.append([spm.encode(text).tolist() for text in texts])

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [found[0]] * 6


def test_containers_and_empty_batches(spm: Tokenizer) -> None:
    assert spm.encode_batch([]).to_list() == []
    assert spm.encode_batch(Ragged(b"hihi", [0, 2, 2, 4])).to_list() == [[HI], [], [HI]]
    assert spm.encode_batch(np.array(["hi", None], object)).to_list() == [[HI], []]
    with pytest.raises(TypeError, match="expected a sequence of texts"):
        spm.encode_batch("hi")
    with pytest.raises(TypeError, match="expected str or bytes"):
        spm.encode(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [0, -1])
def test_threads_must_be_positive(spm: Tokenizer, threads: int) -> None:
    with pytest.raises(ValueError, match=f"threads: found {threads}"):
        spm.encode_batch(["hi"], threads=threads)


def test_threads_must_be_an_int(spm: Tokenizer) -> None:
    with pytest.raises(TypeError, match="threads: found float"):
        spm.encode_batch(["hi"], threads=1.5)  # type: ignore[arg-type]


def test_progress_goes_to_standard_error(
    spm: Tokenizer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spm.encode_batch(["hi"] * 10, progress=True)
    assert capfd.readouterr() == ("", "")  # over before anybody would look
    seen: list[Progress] = []
    rows = spm.encode_batch(["hi"] * 10, progress=seen.append)
    assert [seen[-1].done, seen[-1].total, seen[-1].unit] == [10, 10, "documents"]
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(progress, "EVERY_LOG", 0.0)
    assert spm.encode_batch(["hi"] * 10, progress=True).to_list() == rows.to_list()
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("jittok encode: 100 %  10 documents")
    with pytest.raises(TypeError, match="progress: found 'yes', expected True, False"):
        spm.encode_batch(["hi"] * 10, progress="yes")  # type: ignore[call-overload]


def test_a_lone_surrogate_fails_or_is_replaced(spm: Tokenizer) -> None:
    with pytest.raises(EncodingFailed, match="document 0, offset 1"):
        spm.encode("a\ud800")
    with pytest.raises(EncodingFailed, match="document 2, offset 0"):
        spm.encode_batch(["a", "b", "\udc00"])
    assert spm.encode("\ud800", errors="replace").tolist() == spm.encode("\ufffd").tolist()
    with pytest.raises(ValueError, match="expected 'strict' or 'replace'"):
        spm.encode("a", errors="ignore")


@pytest.fixture
def holes(vocab_of: Callable[..., Any]) -> Tokenizer:
    """SPM that has no byte tokens."""
    tokens = [b"<unk>", "▁".encode(), b"a", b"<t>"]
    return Tokenizer(vocab_of(tokens, [UNKNOWN, NORMAL, NORMAL, USER_DEFINED], unk_id=0, add_space_prefix=True))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_byte_without_a_token_is_named_with_its_document_and_offset(holes: Tokenizer, threads: int) -> None:
    texts = ["a"] * 20000 + ["a<t>abc"] + ["b"] * 20000
    with pytest.raises(EncodingFailed, match="document 20000, offset 5: found b'b'") as caught:
        holes.encode_batch(texts, threads=threads)
    assert (caught.value.document, caught.value.offset) == (20000, 5)
    with pytest.raises(EncodingFailed, match="document 0, offset 5"):
        holes.encode("a<t>abc")


def test_a_byte_without_a_token_can_be_unknown(holes: Tokenizer) -> None:
    assert holes.encode("a<t>abca", errors="replace").tolist() == [1, 2, 3, 1, 2, 0, 0, 2]
    rows = holes.encode_batch(["ab", "a", "é"], errors="replace")
    assert rows.to_list() == [[1, 2, 0], [1, 2], [1, 0, 0]]


def test_a_failing_text_comes_before_an_unreadable_one(holes: Tokenizer) -> None:
    for threads in (1, 3):
        with pytest.raises(EncodingFailed, match="document 1, offset 0"):
            holes.encode_batch(["a", "b", *["a" * 100] * 400_000, "\ud800"], threads=threads)


def test_a_needed_id_that_is_missing_fails(vocab_of: Callable[..., Any]) -> None:
    tok = Tokenizer(vocab_of([b"<0x%02X>" % b for b in range(256)], [BYTE] * 256, add_bos=True))
    with pytest.raises(EncodingFailed, match="bos_token_id, needed to add special tokens"):
        tok.encode("a", add_special=True)
    assert tok.encode("a").tolist() == [97]


def test_ids_come_back_as_text(spm: Tokenizer) -> None:
    ids = spm.encode("ab hi é", add_special=True)
    assert spm.decode_bytes(ids) == b" ab hi \xc3\xa9"
    assert spm.decode(ids[1:]) == "ab hi é"
    assert spm.decode(ids, remove_special=True) == " ab hi é"
    assert spm.decode(ids, unparse_special=True) == "<s> ab hi é"
    assert spm.decode([4 + 0xFF]) == "\ufffd"
    with pytest.raises(UnicodeDecodeError):
        spm.decode([4 + 0xFF], errors="strict")
    assert spm.decode_bytes([]) == b""


@given(TEXTS)
def test_a_batch_is_decoded_row_by_row(spm: Tokenizer, texts: list[Any]) -> None:
    rows = spm.encode_batch(texts)
    assert spm.decode_batch(rows) == [spm.decode(row) for row in rows] == spm.decode_batch(rows.to_list())


def test_pieces_and_tokens(spm: Tokenizer) -> None:
    assert spm.token_to_piece(HI) == b" hi"
    assert spm.token_to_piece(HI, lstrip=5) == b"hi"
    assert (spm.token_to_piece(1), spm.token_to_piece(1, special=True)) == (b"", b"<s>")
    assert spm.token_to_piece(np.int64(3)) == b"<tool>"  # type: ignore[arg-type]
    assert spm.id_to_token(HI) == "▁hi".encode()
    assert spm.token_to_id("▁hi") == spm.token_to_id("▁hi".encode()) == HI
    assert spm.token_to_id("nothing") is None
    for wrong in (-1, spm.vocab_size):
        with pytest.raises(InvalidToken, match=f"token {wrong}"):
            spm.id_to_token(wrong)


def test_facts(spm: Tokenizer) -> None:
    assert (spm.type, spm.pre, spm.name, spm.vocab_size, len(spm)) == ("spm", None, "tiny", 273, 273)
    assert (spm.bos_id, spm.eos_id, spm.unk_id, spm.pad_id, spm.nl_id) == (1, 2, 0, None, 4 + 10)
    assert (spm.add_bos, spm.add_eos, spm.add_sep, spm.add_space_prefix) == (True, False, False, True)
    assert spm.special_ids == {0, 1, 2, 3}
    for array, dtype in ((spm.scores, np.float32), (spm.attributes, np.int32), (spm.token_bytes, np.uint8)):
        assert array.dtype == dtype
        assert not array.flags.writeable
    assert spm.token_offsets.size == spm.vocab_size + 1


def test_facts_cannot_be_set(spm: Tokenizer) -> None:
    with pytest.raises(AttributeError):
        spm.vocab_size = 3  # type: ignore[misc]


def test_a_vocabulary_without_tokens_cannot_encode(vocab_of: Callable[..., Any]) -> None:
    tok = Tokenizer(vocab_of([], None, "none"))
    with pytest.raises(UnsupportedVocab, match="expected a vocabulary that can tokenize"):
        tok.encode("hi")
    with pytest.raises(UnsupportedVocab, match="expected a vocabulary that can tokenize"):
        tok.encode_batch(["hi"])
    assert tok.decode_bytes([1, 2]) == b""
    assert tok.decode_batch([[1], []]) == ["", ""]
    assert tok.nl_id is None


def test_cache_bytes_are_checked(spm: Tokenizer) -> None:
    with pytest.raises(ValueError, match="cache_bytes: found -1"):
        Tokenizer(spm.vocab, cache_bytes=-1)


def test_the_representation_says_what_it_is(spm: Tokenizer) -> None:
    assert repr(spm) == "<jittok.Tokenizer 'tiny': spm, 273 tokens>"
    assert "273" in spm._repr_html_()


def test_equal_content_is_equal_and_pickles(spm: Tokenizer) -> None:
    again = pickle.loads(pickle.dumps(spm))
    assert again == spm
    assert hash(again) == hash(spm)
    assert spm != "spm"
    assert again.encode("ab hi").tolist() == spm.encode("ab hi").tolist()
    arrays = [value for value in vars(again.vocab).values() if isinstance(value, np.ndarray)]
    assert arrays
    assert not any(array.flags.writeable for array in arrays)


class Prefixed(Tokenizer):
    """A class of a user's, with arguments and facts of its own."""

    def __init__(self, like: Tokenizer, prefix: str) -> None:
        self.prefix = prefix
        super().__init__(like.vocab)
        self._asked_for = 1

    def encode(self, text: Any, **options: Any) -> Any:
        return super().encode(self.prefix + text, **options)


def test_a_derived_class_stays_one_in_a_pickle_and_a_copy(spm: Tokenizer) -> None:
    tok = Prefixed(spm, "ab ")
    ids = tok.encode("hi").tolist()
    assert tok.nl_id is not None
    assert own_of(tok, Tokenizer) == {"prefix": "ab ", "_asked_for": 1}
    for again in (pickle.loads(pickle.dumps(tok)), copy.copy(tok), copy.deepcopy(tok)):
        assert type(again) is Prefixed
        assert (again.prefix, again._asked_for) == ("ab ", 1)
        assert again.encode("hi").tolist() == ids == spm.encode("ab hi").tolist()


class Noted(Tokenizer):
    """Facts under names that the constructor of `Tokenizer` uses, too, and one that is no attribute."""

    __slots__ = ("position",)

    def __init__(self, like: Tokenizer) -> None:
        super().__init__(like.vocab)
        self.format, self.key, self.compiled, self.os, self.position = "f", 1, 2, 3, 4


class Careful(Tokenizer):
    """What it holds beside its vocabulary is not pickled."""

    def __init__(self, like: Tokenizer) -> None:
        super().__init__(like.vocab)
        self.lock, self.size = threading.Lock(), 5

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.lock, self.told = threading.Lock(), sorted(state)


def test_a_derived_class_keeps_all_that_it_added(spm: Tokenizer) -> None:
    noted, careful = Noted(spm), Careful(spm)
    ids = spm.encode("ab").tolist()
    assert noted.encode("ab").tolist() == careful.encode("ab").tolist() == ids
    for again in (pickle.loads(pickle.dumps(noted)), copy.copy(noted), copy.deepcopy(noted)):
        assert (again.format, again.key, again.compiled, again.os, again.position) == ("f", 1, 2, 3, 4)
        assert again.encode("ab").tolist() == ids
    for other in (pickle.loads(pickle.dumps(careful)), copy.copy(careful), copy.deepcopy(careful)):
        assert (other.told, other.size, other.lock.locked()) == (["size"], 5, False)
        assert other.encode("ab").tolist() == ids


def test_a_tokenizer_of_a_file_pickles_small_and_checks_the_file(tmp_path: Path) -> None:
    path = tmp_path / "vocab.gguf"
    path.write_bytes(bundled_source("gpt-2"))
    tok = jittok.load(path)
    packed = pickle.dumps(tok)
    assert len(packed) < 1000
    assert pickle.loads(packed) == tok == jittok.load(path.read_bytes())
    path.write_bytes(bundled_source("t5"))
    with pytest.raises(MalformedVocab, match="as when the tokenizer was pickled"):
        pickle.loads(packed)


def test_a_bundled_tokenizer_pickles_by_name() -> None:
    tok = jittok.bundled("gpt-2")
    packed = pickle.dumps(tok)
    assert len(packed) < 200
    assert pickle.loads(packed) == tok
    assert tok.vocab.source == "bundled vocabulary gpt-2"
    with pytest.raises(ValueError, match="found 'gpt-5'"):
        jittok.bundled("gpt-5")


def test_a_code_point_above_unicode_fails_or_is_replaced() -> None:
    tok = jittok.bundled("bert", llama_cpp="0.3.36")
    text = b"ab \xf4\x90\x80\x80 cd \xf7\xbf\xbf\xbf"
    with pytest.raises(EncodingFailed, match=r"document 1, offset 3: found 'U\+110000'"):
        tok.encode_batch(["hi", text])
    plain = "ab " + "\ufffd" * 4 + " cd " + "\ufffd" * 4
    assert tok.encode(text, errors="replace").tolist() == tok.encode(plain).tolist()
    assert tok.encode_batch(["hi", text, "ho"], errors="replace") == tok.encode_batch(["hi", plain, "ho"])
    assert jittok.bundled("bert").encode(text).tolist() == tok.encode(plain).tolist()  # replaced, not fatal any more


def test_scratch_of_a_giant_text_is_not_kept(spm: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "MOST_KEPT_IDS", 1 << 16)
    tok = Tokenizer(spm.vocab)
    tok.encode("hi")
    assert len(tok._encoder._workspaces) == 1  # type: ignore[union-attr]
    tok.encode("hi " * 200_000)
    (workspace,) = tok._encoder._workspaces  # type: ignore[union-attr]
    assert max(workspace.ids.size, workspace.starts.size, workspace.longest) <= 1 << 16


@pytest.mark.parametrize("name", ["gpt-2", "mistral", "bert", "t5"])
def test_texts_of_every_length_are_read_to_their_end_and_no_further(name: str) -> None:
    """Bytes objects lie anywhere in memory, also at the end of a page, and anything may follow them."""
    tok = jittok.bundled(name)
    text = "Spaces  and words, 1234 digits; don't — naïve 漢字 \U0001f600 ".encode() * 40
    texts = [text[:size] for size in (*range(200), *range(4000 - len(text), 0, 37))]
    texts += [bytes(size) for size in (1, 7, 63, 64, 65, 4096)]
    wanted = [tok.encode(each).tolist() for each in texts]
    for order in (slice(None), slice(None, None, -1)):
        rows = tok.encode_batch(texts[order], threads=1)
        assert [row.tolist() for row in rows] == wanted[order]


@pytest.mark.parametrize("name", ["gpt-2", "mistral", "bert", "t5"])
def test_a_single_text_is_not_changed_by_the_one_before_it(name: str) -> None:
    """Short ones are encoded where the last one was, the rest of which still is after them."""
    tok = jittok.bundled(name)
    text = ("12345 aaaa  bbbb\n\n naïve 漢字 " * 200).encode()
    for size in (LONGEST_HELD + 1, LONGEST_HELD, LONGEST_HELD - 1, *range(70, -1, -1)):
        part = text[:size]
        assert tok.encode(part, errors="replace").tolist() == tok.encode_batch([part], errors="replace")[0].tolist()
    assert len(tok._encoder._workspaces) == 1  # type: ignore[union-attr]


def test_options_are_taken_by_their_truth(spm: Tokenizer) -> None:
    ids = spm.encode("hi<s>", add_special=True, parse_special=True).tolist()
    for true, false in [(1, 0), (np.True_, np.False_), ([0], [])]:
        assert spm.encode("hi<s>", add_special=true, parse_special=true).tolist() == ids  # type: ignore[arg-type]
        assert spm.encode("hi", add_special=false, parse_special=false).tolist() == [HI]  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="found 'no', expected True or False"):  # a text is true whatever it says
        spm.encode("hi", add_special="no")  # type: ignore[arg-type]
    for errors in ("ignore", ["strict"], None):
        with pytest.raises(ValueError, match="expected 'strict' or 'replace'"):
            spm.encode("hi", errors=errors)  # type: ignore[arg-type]


def test_errors_of_texts_read_in_place_name_document_and_bytes(vocab_of: Any) -> None:
    tok = Tokenizer(vocab_of([b"<unk>", b"a", "\u2581".encode()], unk_id=0, bos_id=-1, eos_id=-1))
    with pytest.raises(EncodingFailed) as failed:
        tok.encode_batch([b"a", b"aa", b"a\xc3\xa9a"], threads=1)
    assert (failed.value.document, failed.value.offset) == (2, 1)
    rows = tok.encode_batch([b"a", b"aa", b"a\xc3\xa9a"], threads=1, errors="replace")
    assert rows[2].tolist() == tok.encode(b"a\xc3\xa9a", errors="replace").tolist()


def test_a_tokenizer_that_was_not_loaded_pickles_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(bundled_source("gpt-2"))
    tok = jittok.Tokenizer(read_vocab(path))
    packed = pickle.dumps(tok)
    path.unlink()
    assert pickle.loads(packed) == tok
