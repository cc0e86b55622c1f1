"""Start-up, in processes of their own: what is imported, how long it takes, and what the next process need not do."""

import json
import lzma
import subprocess
import sys
from pathlib import Path

import pytest
from small_package import environment, python, with_kernels

import jittok

pytestmark = pytest.mark.process
VOCAB = Path(__file__).parent / "data" / "vocabs" / "syn-wpm-cased.gguf.xz"
HEAVY = {"llvmlite", "numba", "pandas", "polars", "pyarrow", "ray", "regex", "rich"}

SMALL = VOCAB.with_name("syn-rwkv.gguf.xz")
"""Of the type whose kernels take least to compile; `test_processors.py` has the others."""
ENCODE = f"""
import lzma, jittok, jittok.kernels.jit as jit
tok = jittok.load(lzma.decompress(open({str(SMALL)!r}, "rb").read()), cache=False)
ids = tok.encode("the tokenizer, the abc").tolist()
print(tok.decode(ids), ids, *sorted({{k.cache_hit for k in jit.kernel.registry if k.cache_hit is not None}}))
"""


@pytest.mark.parametrize("module", ["jittok", "jittok.cli", "jittok.vocab", "jittok.common.rows", "jittok.errors"])
def test_light_modules_stay_light(tmp_path, module):
    code = f"import sys, {module}; print(sorted({HEAVY} & set(sys.modules)))"
    assert python(tmp_path, code) == "[]"


def test_import_jittok_takes_under_50_ms_of_cpu_beside_numpy(tmp_path):
    code = "import numpy, time; t = time.thread_time(); import jittok; print(time.thread_time() - t)"
    assert min(float(python(tmp_path, code)) for _ in range(5)) < 0.050


def test_loading_a_kept_vocabulary_imports_nothing_and_its_first_text_neither_compilers_nor_batches(tmp_path):
    path = tmp_path / "a.gguf"
    path.write_bytes(lzma.decompress(VOCAB.with_name("syn-bpe-rstrip.gguf.xz").read_bytes()))
    jittok.load(path, cache=False).encode("abc")  # its kernels are compiled here or by a test before
    with_kernels(tmp_path)
    code = f"""
import sys, jittok
import jittok.kernels.vocab_cache as kept
kept.SETTLED = -1  # the file is young
jittok.load  # names are loaded when first used
before = set(sys.modules)
tok = jittok.load({str(path)!r})
loaded = {{name for name in sys.modules if name.startswith("jittok.")}} - before
ids = tok.encode("abc").tolist()
needless = {{"jittok.encode.threads.batch", "jittok.kernels.models.bpe.compile", "jittok.vocab.load", "numba"}}
print(ids, loaded, sorted(needless & set(sys.modules)))
"""
    first = python(tmp_path, code)
    ids = first[: first.index("]") + 1]
    assert "jittok.kernels.models.bpe.compile" in first
    assert python(tmp_path, code) == f"{ids} set() []"


NEEDLESS = {
    "dataclasses", "fnmatch", "hashlib", "inspect", "llvmlite", "numba", "orjson", "pathlib", "tempfile", "unicodedata",
    "urllib", "zipfile",
}  # fmt: skip
"""Each takes 1 to 30 ms to import."""
ROOMS = {"encode", "errors", "tokenizer", "vocab"} | {
    *(f"kernels.{name}" for name in ("fragments", "inputs", "jit", "models", "pretoken_cache", "pretokenize")),
    *(f"common.{name}" for name in ("digest", "locks", "pipeline", "record", "rows")), "kernels.vocab_cache",
}  # fmt: skip
MOST_MODULES = 50
"""Of this package; each is some tenths of a millisecond."""
WORDS = {
    "model": {"type": "WordPiece", "unk_token": "a", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9,
              "vocab": {"a": 0, "b": 1}},
    "pre_tokenizer": {"type": "WhitespaceSplit"},
}  # fmt: skip


@pytest.mark.parametrize("kind", ["gguf", "json"])
def test_a_kept_load_imports_little_of_python_and_of_this_package(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    path.write_bytes(lzma.decompress(VOCAB.read_bytes()) if kind == "gguf" else json.dumps(WORDS).encode())
    code = f"""
import json, sys, numpy, jittok
before = set(sys.modules)
tok = jittok.load({str(path)!r})
loaded = set(sys.modules) - before
ours = {{name.removeprefix("jittok.") for name in loaded if name.startswith("jittok.")}}
inner = ("kernels.", "common.")
rooms = {{".".join(name.split(".")[: 1 + name.startswith(inner)]) for name in ours}} - {{"kernels", "common"}}
print(json.dumps([len(ours), sorted(loaded & {NEEDLESS}), sorted(rooms - {ROOMS})]))
"""
    # the file is young
    settled = f"import jittok, jittok.kernels.vocab_cache as c; c.SETTLED = -1; jittok.load({str(path)!r})"
    python(tmp_path, settled, NUMBA_DISABLE_JIT="1")  # no kernel is compiled for this
    count, needless, rooms = json.loads(python(tmp_path, code, NUMBA_DISABLE_JIT="1"))
    assert (needless, rooms) == ([], [])
    assert count <= MOST_MODULES


def test_spans_of_words_are_found_without_the_room_of_bpe(tmp_path):
    path = tmp_path / "a.gguf"
    path.write_bytes(lzma.decompress(VOCAB.read_bytes()))
    jittok.load(path, cache=False).align("the abc")
    with_kernels(tmp_path)
    code = f"""
import sys, jittok
print(jittok.load({str(path)!r}).align("the abc").spans.tolist(), "jittok.kernels.models.bpe.general" in sys.modules)
"""
    assert python(tmp_path, code).endswith("]] False")


def test_every_public_name_can_be_had(tmp_path):
    assert python(tmp_path, "import jittok; print([n for n in jittok.__all__ if not hasattr(jittok, n)])") == "[]"


def test_the_second_process_compiles_nothing_and_code_for_any_processor_gives_the_same_ids(tmp_path):
    first = python(tmp_path, ENCODE)
    assert first.endswith("] False")
    assert python(tmp_path, ENCODE) == first.removesuffix("False") + "True"
    assert python(tmp_path, ENCODE, JITTOK_PLAIN="1") == first


def test_processes_may_start_together_on_a_vocabulary_that_nobody_has_compiled(tmp_path):
    path = tmp_path / "syn.gguf"
    path.write_bytes(lzma.decompress(SMALL.read_bytes()))
    code = f"""
import sys, jittok, jittok.kernels.jit as jit, jittok.kernels.vocab_cache as kept
kept.SETTLED = -1  # the file is young
tok = jittok.load({str(path)!r})
rows = tok.encode_batch(["the abc", "x y \u00e9"]).to_list()
hits = {{k.cache_hit for k in jit.kernel.registry if k.cache_hit is not None}}
print(rows, tok.encode("the abc").tolist() == rows[0], tok.decode(rows[1]), *hits, "jittok.vocab.load" in sys.modules)
"""
    command = [sys.executable, "-W", "error", "-c", code]
    started = [
        subprocess.Popen(
            command, env=environment(tmp_path), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    told = [process.communicate() for process in started]
    assert [(process.returncode, error) for process, (_, error) in zip(started, told, strict=True)] == [(0, "")] * 4
    rows = {out.split(" True ")[0] for out, _ in told}
    assert len(rows) == 1
    # the next one compiles neither kernels nor the vocabulary, and half-written files are not left after
    assert python(tmp_path, code) == f"{rows.pop()} True x y \u00e9 True False"
    kept = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert {path.suffix for path in kept} - {".sources"} == {".o", ".vocab", ".path"}
    assert not [path for path in kept if path.name.startswith(".")]
