"""Plots draw what was measured."""

import matplotlib as mpl
import numpy as np
import pytest

import jittok
from jittok import plot
from jittok.plot import measure

mpl.use("Agg")
NAMES = ("bert", "gpt-2", "mistral", "t5")


@pytest.fixture(scope="module")
def toks():
    return {name: jittok.bundled(name) for name in NAMES}


@pytest.fixture(autouse=True)
def closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.parametrize("name", NAMES)
def test_every_vocabulary_can_be_drawn(name, toks):
    for draw in (plot.token_lengths, plot.scores, plot.scripts, plot.occupancy):
        axes = draw(toks[name])
        axes.figure.canvas.draw()
        assert axes.get_title()


def test_a_name_with_dollars_is_no_formula(toks):
    name = r"a $\foo_{$ b"
    tok = jittok.Tokenizer(toks["gpt-2"].vocab._replace(name=name))
    shown = name.replace("$", r"\$")
    for draw in (plot.scores, plot.scripts):
        axes = draw(tok)
        axes.figure.canvas.draw()
        assert axes.get_title().startswith(shown)
    axes = plot.compression(([name], [name], np.ones((1, 1))))
    axes.figure.canvas.draw()
    assert [label.get_text() for label in (*axes.get_xticklabels(), *axes.get_yticklabels())] == [shown, shown]


def test_lengths_are_those_of_the_pieces(toks):
    sizes = measure.token_bytes(toks["gpt-2"])
    assert sizes[toks["gpt-2"].token_to_id("Ġthe")] == 4
    line = plot.token_lengths(toks["gpt-2"]).lines[0]
    assert line.get_ydata().sum() == toks["gpt-2"].vocab_size


def test_scripts_count_every_token_once(toks):
    for tok in toks.values():
        assert sum(plot.script_counts(tok).values()) == tok.vocab_size
    counts = plot.script_counts(toks["mistral"])
    assert counts["byte"] == 256
    assert counts["special"] == 3
    assert list(counts)[0] == "Latin"  # noqa: RUF015  the order is the point


def test_tables_have_as_many_entries_as_they_were_made_of(toks):
    tables = {name: {table.name: table for table in plot.tables(tok)} for name, tok in toks.items()}
    assert tables["gpt-2"]["texts.slots"].used.sum() == toks["gpt-2"].vocab_size
    assert tables["gpt-2"]["pairs.slots"].used.sum() == 50_000
    trie = tables["t5"]["trie.units"]
    assert trie.size == toks["t5"].arrays.trie.units.nbytes
    assert 0.9 < trie.share < 1
    assert 0.5 < tables["t5"]["charsmap.units"].share <= 1


def test_depths_are_lengths_of_prefixes(toks):
    t5 = toks["t5"]
    depth = measure.depths(t5, "trie.units")
    table = next(table for table in plot.tables(t5) if table.name == "trie.units")
    assert ((depth >= 0) == table.used | (np.arange(depth.size) == 0)).all()
    values = t5.arrays.trie.units[2::4]
    for slot in np.flatnonzero(values >= 0)[::997].tolist():
        assert depth[slot] == len(t5.id_to_token(int(values[slot])))


def test_pairs_are_found_near_their_homes(toks):
    read = measure.pair_probes(toks["gpt-2"])
    assert read.size == 50_000
    assert read.min() == 1
    assert read.mean() < 2
    assert plot.probes(toks["gpt-2"]).patches[0].get_height() == pytest.approx((read == 1).mean())
    with pytest.raises(ValueError, match="found a vocabulary of type wpm, expected bpe or spm"):
        plot.probes(toks["bert"])


def test_a_double_array_is_drawn_slot_by_slot(toks):
    axes = plot.double_array(toks["t5"], slots=2048)
    assert axes.images[0].get_array().shape == (8, 256)
    with pytest.raises(ValueError, match="found no double array, expected one of"):
        plot.double_array(toks["gpt-2"])
    with pytest.raises(ValueError, match=r"found units, expected one of .*trie\.units"):
        plot.double_array(toks["t5"], name="units")


def test_compression_is_bytes_over_tokens(toks):
    texts = {"English": ["Hello world", "a"], "日本語": ["日本語"], "none": [""]}
    languages, names, rates = plot.bytes_per_token(toks, texts)
    assert (languages, names) == (list(texts), list(NAMES))
    assert rates[0, 1] == 12 / (toks["gpt-2"].count("Hello world") + 1)
    assert np.isnan(rates[2, 0])
    axes = plot.compression((languages[:2], names, rates[:2]))
    assert [text.get_text() for text in axes.texts][1] == f"{rates[0, 1]:.1f}"
