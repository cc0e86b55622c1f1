"""Fragments without the kernel that cuts: the same ones, and a first text does not wait for it."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from small_package import with_kernels

import jittok
from jittok.encode import cutters
from jittok.encode.buffers import Workspace
from jittok.kernels.inputs import Documents
from jittok.kernels.special.partition import cut_documents
from jittok.kernels.special.tables import compile_special

VOCABS = {name: jittok.bundled(name).vocab for name in ("gpt-2", "t5")}


def documents(texts: list[bytes]) -> Documents:
    ends = np.cumsum([len(text) for text in texts])
    return Documents(np.frombuffer(b"".join(texts), np.uint8), np.r_[0, ends[:-1]], ends)


def fragments(workspace: Workspace, count: int, rows: int) -> list[list[int]]:
    arrays = (
        workspace.starts[:count],
        workspace.stops[:count],
        workspace.tokens[:count],
        workspace.document_ends[:rows],
    )
    return [array.tolist() for array in arrays]


@given(
    st.sampled_from(sorted(VOCABS)),
    st.lists(st.sampled_from([b"", b"a", b"no token here", "é ".encode()]), min_size=1, max_size=80),
    st.sampled_from([-1, 3]),
    st.sampled_from([-1, 5]),
    st.data(),
)
@example("t5", [b""], -1, -1, None)
def test_fragments_are_those_of_the_kernel_that_cuts(name, texts, before, after, data):
    docs, special = documents(texts), compile_special(VOCABS[name], False)
    first = 0 if data is None else data.draw(st.integers(0, len(texts) - 1))
    if len(texts) - first <= cutters.MOST_DOCUMENTS:
        assert cutters.nothing_to_cut(special, docs, first, len(texts))
    ours, cut = Workspace(), Workspace()
    for workspace in (ours, cut):
        workspace.grow_ends(len(texts))
        workspace.grow_fragments(3 * len(texts) + 3)
    count = cutters.whole_document_fragments(ours, docs, first, len(texts), before, after)
    expected = cut.run(
        cut_documents, special, cut.special_work, docs.data, docs.starts, docs.stops, first, len(texts), before, after,
        cut.starts, cut.stops, cut.tokens, cut.document_ends, cut.report,
    )  # fmt: skip
    rows = len(texts) - first
    assert fragments(ours, count, rows) == fragments(cut, expected, rows)


@pytest.mark.parametrize("text", [b"x <extra_id_0> y", b"<"])
def test_a_text_that_may_have_a_special_token_is_left_to_the_kernel(text):
    special = compile_special(VOCABS["t5"], True)
    assert not cutters.nothing_to_cut(special, documents([b"a", text]), 0, 2)
    assert cutters.nothing_to_cut(special, documents([b"a", text]), 0, 1)


@pytest.mark.process
def test_a_first_text_does_not_wait_for_the_kernel_that_cuts(tmp_path):
    code = """
import jittok
from jittok.kernels.special.partition import cut_documents
tok = jittok.bundled("bert")
plain = tok.encode_batch(["a first text", ""])
print(cut_documents.entry is None)
both = tok.encode_batch(["a first text", "", "[MASK]"], parse_special=True)
print(cut_documents.cache_hit, both[0].tolist() == plain[0].tolist(), both[2].tolist())
"""
    jittok.bundled("bert").encode_batch(["a first text", ""])  # its other kernels are compiled here or by a test before
    cache = with_kernels(tmp_path, "jittok.kernels.special.partition.") / "cache"
    env = os.environ | {"JITTOK_CACHE_DIR": str(cache), "JITTOK_SHIPPED": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["True", "False True [103]"]
