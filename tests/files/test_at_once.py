"""What is looked up all at once is what looking up one by one finds; errors are those of the one that is wrong."""

import gc
import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jittok
from jittok.common.pipeline.patterns import explicit
from jittok.common.pipeline.pipeline import packed, packed_texts
from jittok.common.pipeline.steps import CRATE, ONIG
from jittok.errors import MalformedVocab
from jittok.files.hf import models as hf_merges
from jittok.files.hf.models import read_vocabulary
from jittok.files.json_nodes import Node
from jittok.kernels import jit
from jittok.kernels.pretokenize import families
from jittok.kernels.pretokenize.automaton import _without_escapes, sre_parse
from jittok.tokenizer import loading

PARTS = ["a", "b", "é", "ab", "\u2581", "\0", "", "#version"]


@given(st.lists(st.text("ab\u00e9\U0001f600\0", max_size=3)))
def test_texts_are_packed_as_one_by_one(texts):
    for ours, plain in zip(packed_texts(texts), packed([text.encode() for text in texts]), strict=True):
        assert ours.tolist() == plain.tolist()
        assert ours.dtype == plain.dtype
        assert not ours.flags.writeable


@given(
    st.lists(st.tuples(st.sampled_from(PARTS), st.sampled_from(PARTS)), min_size=1, max_size=6),
    st.booleans(),
    st.integers(0, 2),
)
def test_merges_are_found_as_one_by_one(pairs, as_lines, hole):
    texts = dict.fromkeys([*PARTS, *(left + right for left, right in pairs)])
    ids = {text: k + (k > 3) * hole for k, text in enumerate(texts)}
    vocabulary = read_vocabulary(Node("file", "vocab", ids))
    merges = [" ".join(pair) if as_lines else list(pair) for pair in pairs]
    node = Node("file", "merges", merges)
    together = hf_merges._at_once(merges, vocabulary)
    one_by_one = hf_merges._one_by_one(merges, ids, "", hf_merges._Merge(node, 1))
    found = [column.tolist() for column in hf_merges.resolve_merges(node, vocabulary, "")]
    if together is not None:
        for ours, plain in zip(together, one_by_one, strict=True):
            np.testing.assert_array_equal(ours, plain)
    last = {key: k for k, key in enumerate(zip(*(column.tolist() for column in one_by_one[:2]), strict=True))}
    assert found == [[int(column[k]) for k in sorted(last.values())] for column in one_by_one]


def test_most_merges_are_looked_up_together():
    vocabulary = read_vocabulary(Node("file", "vocab", {"a": 0, "b": 1, "ab": 2, "c d": 3, "abc d": 4}))
    assert hf_merges._at_once(["a b"], vocabulary) is not None
    assert hf_merges._at_once([["a", "b"], ["ab", "c d"]], vocabulary) is not None


@pytest.mark.parametrize(
    "merges", [["a b", "a  b"], ["a b", "ab"], ["a b", "a c"], [["a", "b"], ["a"]], [["a", "b"], None]]
)
def test_the_merge_that_is_wrong_is_named(merges):
    vocabulary = read_vocabulary(Node("file", "vocab", {"a": 0, "b": 1, "ab": 2, "": 3}))
    with pytest.raises(MalformedVocab, match=r"merges\[1\] \(line 2\)"):
        hf_merges.resolve_merges(Node("file", "merges", merges), vocabulary, "")


def test_all_engines_read_the_patterns_of_fast_splitters_alike():
    forms, by_classes = families._forms(), families._explicit_forms()
    assert len(forms) == len(by_classes)
    for text, family in forms.items():
        assert {explicit(text, engine) for engine in (ONIG, CRATE)} == {explicit(text)}
        assert by_classes[explicit(text)] is family


@pytest.mark.parametrize(
    "pattern", [r"[\u0370-\u03ff\U00010330]+|\\u0370|\x5d[\x5d\u005d]", r"\\\u0370\n\ud800|[^\u4e00]"]
)
def test_characters_in_place_of_their_numbers_mean_the_same(pattern):
    assert _without_escapes(pattern) != pattern
    assert str(sre_parse.parse(_without_escapes(pattern))) == str(sre_parse.parse(pattern))


def test_reading_a_file_leaves_the_collector_as_it_was(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text('{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}')
    for on in (True, False):
        (gc.enable if on else gc.disable)()
        try:
            with pytest.raises(MalformedVocab):
                jittok.load(path, cache=False)
            assert gc.isenabled() == on
        finally:
            gc.enable()


def test_the_collector_runs_where_a_kernel_is_compiled():
    assert gc.isenabled()
    with loading._without_collector():
        assert not gc.isenabled()
        for tell in [*jit.on_compile]:
            tell(True)
        assert gc.isenabled()
    assert gc.isenabled()


@pytest.mark.process
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("on", [True, False])
def test_a_child_that_is_forked_amid_reading_has_the_collector_as_it_was(on):
    inside, go = threading.Event(), threading.Event()

    def read():
        with loading._without_collector():
            inside.set()
            go.wait()

    (gc.enable if on else gc.disable)()
    thread = threading.Thread(target=read)
    try:
        thread.start()
        inside.wait()
        assert not gc.isenabled()
        if not (child := os.fork()):
            os._exit(gc.isenabled())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == on
    finally:
        go.set()
        thread.join()
        gc.enable()
