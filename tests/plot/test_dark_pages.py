"""Figures are read on a light page and on a dark one: they have no ground of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import jittok

matplotlib = pytest.importorskip("matplotlib")
LUMINANCE = (0.3, 0.6)
"""Of letters: neither lost on white nor on black."""


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    matplotlib.use("agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def letters(axes: Any) -> list[Any]:
    labels = [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.get_xticklabels(), *axes.get_yticklabels()]
    legend = axes.get_legend()
    return [*labels, *axes.texts, *(legend.get_texts() if legend else [])]


@pytest.mark.parametrize("name", ["token_lengths", "scores", "scripts", "occupancy", "probes"])
def test_a_figure_has_no_ground_and_letters_for_both_pages(name: str) -> None:
    from matplotlib.colors import to_rgb

    axes = getattr(jittok.plot, name)(jittok.bundled("gpt-2"))
    assert axes.figure.get_facecolor()[3] == 0
    assert axes.get_facecolor()[3] == 0
    for text in letters(axes):
        grey = sum(to_rgb(text.get_color())) / 3
        assert LUMINANCE[0] < grey < LUMINANCE[1], text


def test_given_axes_keep_their_own_style() -> None:
    import matplotlib.pyplot as plt

    _, given = plt.subplots()
    before = given.get_facecolor(), given.title.get_color()
    jittok.plot.token_lengths(jittok.bundled("gpt-2"), given)
    assert (given.get_facecolor(), given.title.get_color()) == before
