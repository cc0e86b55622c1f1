"""What a text may become is bounded against its size, step by step, before memory is taken."""

import json
import subprocess
import sys
import textwrap

import pytest
from recorded_files import HERE, SHARED

import jittok
from jittok.common.pipeline.growth import ALWAYS_ALLOWED, MOST_TIMES, needs_measuring
from jittok.errors import EncodingFailed

NAMES = sorted(
    {
        path.name.removesuffix(".tar.xz")
        for at in (HERE, SHARED / "tokenizer-files")
        for path in at.glob("*.tar.xz")
        if (SHARED / "golden-files" / f"{path.name.removesuffix('.tar.xz')}.jsonl.xz").exists() or at == HERE
    }
)
MODEL = {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b" * 40: 2}}


def file_of(**parts):
    return json.dumps({"version": "1.0", "model": MODEL, **parts})


def replace(content, text="a"):
    return {"type": "Replace", "pattern": {"String": text}, "content": content}


def regex(content, text):
    return {"type": "Replace", "pattern": {"Regex": text}, "content": content}


def sequence(key, *parts):
    return {"type": "Sequence", key: [*parts]}


DOUBLING = sequence("normalizers", *[replace("aa")] * 16)
SPELL = {"type": "ByteLevel", "use_regex": False, "add_prefix_space": False}
CASES = [
    ({"normalizer": DOUBLING}, "a" * 1_000_000, "step 6 of the normalizer, Replace"),
    ({"normalizer": sequence("normalizers", regex("a" * 200, "[ab]"), regex("aa", "a+"))}, "a" * 1_000_000,
     "step 1 of the normalizer, Replace"),
    ({"normalizer": replace("a" * 60_000)}, "a" * 1_000_000, "step 1 of the normalizer, Replace"),
    ({"normalizer": replace("b" * 30_000, "")}, "a" * 1_000_000, "step 1 of the normalizer, Replace"),
    ({"normalizer": sequence("normalizers", replace("\ufdfa" * 8), {"type": "NFKC"})}, "a" * 1_000_000,
     "step 2 of the normalizer, Compose"),
    ({"normalizer": sequence("normalizers", *[{"type": "ByteLevel"}] * 15)}, "\u00e9" * 500_000,
     "step 6 of the normalizer, SpellBytes"),
    ({"pre_tokenizer": sequence("pretokenizers", *[SPELL] * 15)}, "\u00e9" * 500_000,
     "step 6 of the pre-tokenizer, SpellBytes"),
]  # fmt: skip

IN_LITTLE_MEMORY = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
import jittok
tok = jittok.load(sys.argv[1].encode(), cache=False)
try:
    {call}
except jittok.errors.EncodingFailed as error:
    print(error)
"""


def error_in_little_memory(call, *args):
    """What a call fails with in a process of 3 GB of address space."""
    program = textwrap.dedent(IN_LITTLE_MEMORY).format(call=call)
    run = subprocess.run(
        [sys.executable, "-c", program, *args], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout


@pytest.mark.parametrize(("parts", "text", "step"), CASES, ids=[str(k) for k in range(len(CASES))])
def test_a_text_that_becomes_too_long_is_refused_at_the_step_before_memory_is_taken(parts, text, step):
    call = f"tok.encode_batch(['a', {text[0]!r} * {len(text)}])"
    error = error_in_little_memory(call, file_of(**parts))
    assert error.startswith("document 1, offset 0: found ")
    assert step in error
    assert f"at most {MOST_TIMES * 1_000_000:,}" in error


@pytest.mark.parametrize(
    "decoder",
    [
        sequence("decoders", *[replace("bb", "b")] * 16),
        sequence("decoders", *[regex("b" * 20, "[b]")] * 3),
        sequence("decoders", {"type": "Fuse"}, *[regex("b" * 20, "[b]")] * 3),
        replace("c" * 60_000, "b"),
    ],
    ids=["literal", "regex", "fused", "at once"],
)
@pytest.mark.parametrize("call", ["tok.decode([2] * 25_000)", "tok.decode_batch([[1], [2] * 25_000])"])
def test_a_decoder_that_multiplies_is_refused_at_the_step_before_memory_is_taken(decoder, call):
    error = error_in_little_memory(call, file_of(decoder=decoder))
    assert f"document {int('batch' in call)}, offset 0: found at least " in error
    assert "of the decoder, ReplaceEach" in error
    assert f"at most {MOST_TIMES * 1_000_000:,}" in error


def test_a_stream_of_a_decoder_that_multiplies_gives_what_decode_gives_or_its_error():
    tok = jittok.load(file_of(decoder=sequence("decoders", *[replace("bb", "b")] * 10)).encode(), cache=False)
    stream = tok.stream_decoder()
    pushed = [stream.push(token) for token in (2, 1, 2)]
    assert "".join([*pushed, stream.finish()]) == tok.decode([2, 1, 2]) == "b" * 40_960 + "a" + "b" * 40_960
    for _ in range(15_000):
        stream.push(2)
    with pytest.raises(EncodingFailed, match="of the decoder, ReplaceEach"):
        stream.finish()
    assert stream.push(1) + stream.finish() == "a"


def test_what_is_far_from_the_limit_is_encoded_by_steps_that_double():
    """Also after the limit was met, and whatever is beside it."""
    tok = jittok.load(file_of(normalizer=DOUBLING).encode(), cache=False)
    most = ALWAYS_ALLOWED >> 16
    assert tok.encode_batch(["a" * most, "b"]).ids.size == 2
    with pytest.raises(EncodingFailed, match=r"document 2, offset 0: .* step 16 of the normalizer, Replace"):
        tok.encode_batch(["a" * most, "b", "a" * (most + 1)])
    assert tok.encode("a" * most).size == 1


def test_the_offset_of_the_error_is_that_of_the_text_after_an_added_token():
    added = {"id": 3, "content": "<x>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
             "special": False}  # fmt: skip
    tok = jittok.load(file_of(normalizer=DOUBLING, added_tokens=[added]).encode(), cache=False)
    with pytest.raises(EncodingFailed, match="document 0, offset 6: "):
        tok.encode("\u00e9b<x>" + "a" * 1_000)  # 3 + 3


def test_an_added_token_that_becomes_too_long_is_refused_where_the_file_is_loaded():
    added = {"id": 3, "content": "a" * 1_000, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": True, "special": False}  # fmt: skip
    with pytest.raises(jittok.errors.UnsupportedVocab, match=r"added_tokens: .* step 15 of the normalizer"):
        jittok.load(file_of(normalizer=DOUBLING, added_tokens=[added]).encode(), cache=False).encode("b")


@pytest.mark.parametrize("name", NAMES)
def test_what_grows_most_in_normal_forms_is_far_from_the_limit_in_real_files(recorded, name):
    text, found = "\ufdfa" * 100_000, recorded(name)
    tok = jittok.load(found.path, cache=False, **found.options)
    ids = tok.encode(text)
    assert tok.decode(ids) == "".join(tok.decode_batch([ids]))
    assert not needs_measuring(tok.pipeline.normalize)
    assert not needs_measuring(tok.pipeline.split)
    assert not needs_measuring(tok.pipeline.decode)
