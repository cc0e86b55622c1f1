"""Adding a vocabulary type is registering one class: everything that asks the types then knows of it."""

import ast
import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jittok
from jittok.align.aligner import Aligner
from jittok.common.pipeline.steps import TEXT as AS_IT_IS
from jittok.common.rows import Ragged
from jittok.decode.pieces import build_pieces
from jittok.encode.encoder import Encoder
from jittok.encode.threads.batch import encode_batch
from jittok.errors import EncodingFailed, UnsupportedVocab
from jittok.kernels.pretokenize.records import pre_names
from jittok.vocab import types


class Toy(types.VocabType):
    """Encodes by the kernel of llama.cpp's test type, prints as it is spelled, and always begins with BOS."""

    name, module = "toy", "jittok.kernels.models.fake_model"
    alignment = types.AlignmentRules("texts only", "literal")

    def around(self, vocab):
        return (True, "bos", vocab.bos_id), (False, "eos", vocab.eos_id)

    def prints(self, vocab):  # noqa: ARG002
        return AS_IT_IS

    def newline_id(self, vocab, encoder):  # noqa: ARG002
        return vocab.bos_id


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(types, "TYPES", dict(types.TYPES))
    monkeypatch.setattr("jittok.encode.plan.TYPES", types.TYPES)
    types.register(Toy())


TOKENS = ["▁a".encode(), b"b", b"ccc"]
TEXT = b"eleven byte"


@pytest.mark.usefixtures("toy")
def test_a_type_that_was_registered_encodes_decodes_and_aligns(vocab_of):
    vocab = vocab_of(TOKENS, None, "toy", bos_id=1)
    encoder, plain = Encoder(vocab), Encoder(vocab_of(TOKENS, None, "test"))
    hashes = plain.one(TEXT, plain.bare_rule()).tolist()
    assert encoder.one(TEXT, encoder.rule(True, False, False)).tolist() == [1, *hashes]
    texts = Ragged(np.frombuffer(2 * TEXT, np.uint8), np.array([0, len(TEXT), len(TEXT), 2 * len(TEXT)]))
    batch = encode_batch(encoder, texts, encoder.rule(True, False, False), 1, False)
    assert batch.to_list() == [[1, *hashes], [1], [1, *hashes]]
    pieces = build_pieces(vocab)
    assert pieces.blob.tobytes() == b"".join(TOKENS)
    assert np.diff(pieces.offsets).tolist() == [4, 1, 3]
    assert types.type_of(vocab).newline_id(vocab, encoder) == 1
    assert Aligner(vocab).lengths.direct == 0


@pytest.mark.usefixtures("toy")
def test_an_id_that_a_type_wants_around_a_text_has_to_be_there(vocab_of):
    with pytest.raises(EncodingFailed, match=r"tokenizer\.ggml\.bos_token_id"):
        Encoder(vocab_of(TOKENS, None, "toy")).rule(True, False, False)


def test_a_type_that_nobody_registered_is_not_supported(vocab_of):
    with pytest.raises(UnsupportedVocab, match="a type that can tokenize"):
        Encoder(vocab_of(TOKENS, None, "toy"))


TYPES = {
    "spm": {"add_space_prefix": True, "scores": [0.0, -1.0, -2.0]},
    "bpe": {"pre_type": pre_names()["gpt-2"]["pre_type"], "merges": [b"b b"]},
    "wpm": {},
    "ugm": {"scores": [-1.0, -2.0, -3.0]},
    "rwkv": {},
    "test": {},
}


@pytest.mark.parametrize("name", TYPES)
def test_arrays_are_made_of_steps_and_the_model_alone(name, vocab_of):
    vocab = vocab_of(TOKENS, type=name, **TYPES[name])
    compile_pipeline = importlib.import_module(types.TYPES[name].module).compile_pipeline
    alone, known = compile_pipeline(vocab.pipeline._replace(vocab=None)), compile_pipeline(vocab.pipeline)
    for one, other in zip(flat(alone), flat(known), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


def flat(arrays):
    """All values of nested tuples of arrays."""
    return [value for part in arrays for value in (flat(part) if isinstance(part, tuple) else [part])]


@pytest.mark.process
def test_types_are_known_without_their_kernels():
    script = (
        "import sys, jittok.vocab.types as t; "
        "assert set(t.TYPES) >= {'spm', 'bpe', 'none'}; "
        "print([m for m in sys.modules if m.startswith('jittok.kernels.models.')], 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "False"]


def test_every_module_that_a_type_names_is_there():
    for kind in types.TYPES.values():
        for module in filter(None, (kind.module, kind.reference, kind.stages)):
            assert importlib.util.find_spec(module), (kind.name, module)


NAMED = {
    "vocab/types.py",  # the types
    "vocab/releases.py",  # `tokenizer.ggml.model` of releases
    "reference/attributes.py",  # llama.cpp's default ids, for the judge of attributes
    "common/pipeline/pipeline.py",  # a file's model under the name that a GGUF has for it
    "encode/file_plan.py", "encode/prepared_texts.py", "encode/fallback/reference_encoder.py",  # their kernels
    "files/rwkv.py",  # a format of that name
    "compat/components.py", "compat/names.py", "compat/sentencepiece.py",  # a GGUF as other libraries see it
    "compat/tokenizers.py", "compat/tracing.py", "compat/transformers.py",  # the same
    "compat/proof/libraries.py",  # a format of that name
    "convert/targets.py",  # `tokenizer.ggml.model` of a file that is written
    "cli/train/__init__.py", "cli/train/options.py", "cli/train/words.py",  # what may be trained
}  # fmt: skip
"""Files that may name a type, and why."""


def test_only_the_record_of_a_type_names_it():
    package = Path(jittok.__file__).parent
    names = types.TYPES.keys() - {"bpe", "test", "none", "unigram"}  # words with other meanings
    found = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and node.value in names:
                found.add(path.relative_to(package).as_posix())
    assert found - NAMED == set()
