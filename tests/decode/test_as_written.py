"""Spaces that a decoder cleans: kept when asked for, and as quick to decode as any other text."""

import itertools
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jittok
from jittok.corpus import compile_corpus
from jittok.decode.stream import certain
from jittok.kernels.jit import JIT
from jittok.reference.decode import clean_spaces

CLEANED = "a café , it 's what ? ! . and ' more ' it 're   . x"
BYTE_LEVEL = ("gpt-2",)
CLEAN = ("gpt-2", "bert")


def streamed(tok: jittok.Tokenizer, ids: Any, **how: Any) -> str:
    stream = tok.stream_decoder(**how)
    return "".join([*map(stream.push, ids.tolist()), stream.finish()])


WAYS = (
    lambda tok, ids, **how: tok.decode_bytes(ids, **how).decode(),
    lambda tok, ids, **how: tok.decode(ids, **how),
    lambda tok, ids, **how: tok.decode_batch([ids, ids], **how)[1],
    lambda tok, ids, **how: tok.decode_batch(jittok.TokenArray(ids, [0, ids.size]), **how)[0],
    streamed,
)


@pytest.mark.parametrize("way", WAYS)
def test_byte_level_text_that_is_not_cleaned_is_the_text(way: Any) -> None:
    tok = jittok.bundled("gpt-2")
    ids = tok.encode(CLEANED)
    assert way(tok, ids, clean=False) == CLEANED
    assert way(tok, ids) == way(tok, ids, clean=True) == clean_spaces(bytearray(CLEANED.encode())).decode() != CLEANED
    half = ids.size // 2
    assert way(tok, ids[:half], clean=False) + way(tok, ids[half:], clean=False) == CLEANED


@pytest.mark.parametrize("way", WAYS)
def test_only_vocabularies_that_clean_know_the_difference(way: Any) -> None:
    for name in jittok.bundled_names():
        tok = jittok.bundled(name)
        ids = tok.encode(CLEANED)
        assert (way(tok, ids) != way(tok, ids, clean=False)) == (name in CLEAN) == tok.pipeline.cleans_spaces


def test_many_ids_are_kept_as_written_too() -> None:
    tok = jittok.bundled("gpt-2")
    ids = np.tile(tok.encode(CLEANED), 20_000)
    assert tok.decode(ids, clean=False) == CLEANED * 20_000
    assert tok.decode(ids) == clean_spaces(bytearray((CLEANED * 20_000).encode())).decode()


def file_of(folder: Path, decoder: dict[str, Any], tokens: list[str]) -> jittok.Tokenizer:
    model = {"type": "WordLevel", "vocab": {text: k for k, text in enumerate(tokens)}, "unk_token": "?"}
    parts = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor"))
    kept = {"version": "1.0", **parts, "added_tokens": [], "decoder": decoder, "model": model}
    (folder / "tokenizer.json").write_text(json.dumps({**kept, "pre_tokenizer": {"type": "WhitespaceSplit"}}))
    return jittok.load(folder / "tokenizer.json")


@pytest.mark.parametrize(("most", "way"), [*itertools.product((1 << 14, 0), WAYS)])
def test_decoders_of_files_that_clean_can_be_asked_not_to(
    tmp_path: Path, most: int, way: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    monkeypatch.setattr("jittok.decode.reference_decoder.WORTH_PIECES", most)  # 0: by pieces
    words = ["it", "'s", "##x", ".", "?"]
    decoders: list[tuple[Any, Any]] = [
        (lambda clean: {"type": "WordPiece", "prefix": "##", "cleanup": clean}, words),
        (
            lambda clean: {"type": "CTC", "pad_token": "_", "word_delimiter_token": "|", "cleanup": clean},
            ["a", " .", "|", "_", "?", "b 's"],
        ),
    ]
    for made, tokens in decoders:
        tok = file_of(tmp_path, made(True), tokens)
        ids = np.array([0, 1, 2, 3, 4, len(tokens) - 1, 0], np.int32)
        theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
        assert tok.pipeline.cleans_spaces
        assert way(tok, ids) == theirs.decode(ids.tolist(), skip_special_tokens=False)
        plain = file_of(tmp_path, made(False), tokens)
        assert not plain.pipeline.cleans_spaces
        kept = way(plain, ids).replace("|", " ")  # without "cleanup" the library leaves the delimiter
        assert way(tok, ids, clean=False) == kept != way(tok, ids)
        assert tok.fingerprint != plain.fingerprint


def test_a_document_of_a_corpus_is_what_was_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(CLEANED)
    tok = jittok.bundled("gpt-2")
    compile_corpus([str(tmp_path / "a.txt")], tok, tmp_path / "out", threads=1)
    found = jittok.corpus.open(tmp_path / "out", tok)
    assert found.decode(0) == CLEANED
    assert found.decode(0, clean=True) == tok.decode(tok.encode(CLEANED))


# ---- long rows of what may be cleaned


def test_text_is_cut_only_where_both_sides_are_cleaned_alone() -> None:
    for length in range(1, 6):
        for each in itertools.product(b" '.sre", repeat=length):
            raw, out = bytearray(), bytearray()
            for byte in each:
                known = len(raw)
                raw.append(byte)
                cut = certain(raw, known)
                out += clean_spaces(raw[:cut])
                del raw[:cut]
                assert len(raw) < 3 or b"'" in raw  # nothing else is held back
            assert out + clean_spaces(raw) == clean_spaces(bytearray(each)), bytes(each)


def seconds(work: Any) -> float:
    found = []
    for _ in range(2):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


@pytest.mark.skipif(not JIT, reason="two million ids take minutes in plain Python")
@pytest.mark.parametrize("text", [" ", " '", " ' "])
@pytest.mark.parametrize("vocab", CLEAN)
def test_spaces_without_end_take_linear_time(vocab_of: Any, vocab: str, text: str) -> None:
    tok = jittok.Tokenizer(vocab_of([text.encode()], [16], jittok.bundled(vocab).type, clean_spaces=True))
    few, many = (np.zeros(count, np.int32) for count in (4_000, 32_000))
    assert streamed(tok, few) == tok.decode(few)
    assert seconds(lambda: streamed(tok, many)) < 24 * seconds(lambda: streamed(tok, few)) + 0.02
    few, many = (np.zeros(count, np.int32) for count in (1 << 19, 1 << 21))
    assert seconds(lambda: tok.decode(many)) < 10 * seconds(lambda: tok.decode(few)) + 0.02
