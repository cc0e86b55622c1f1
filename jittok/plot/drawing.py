"""The plots. matplotlib is imported when the first one is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jittok.common.pipeline import Pipeline
from jittok.errors import missing
from jittok.plot import measure
from jittok.vocab.types import type_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from jittok.tokenizer import Tokenizer

SCRIPTS = 20
"""Scripts that have a bar of their own."""
BLUE, GREEN, ORANGE = "#4285f4", "#0f9d58", "#f4a000"
INK = "#808080"
"""The color of lines and letters, readable on light and on dark pages."""
STYLE: dict[Any, Any] = {
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK
    ),
}
"""Settings of figures made here: no background, so that they have the color of the page."""


def _axes(ax: Axes | None, width: float = 6.4, height: float = 3.2) -> Axes:
    """The given axes, or new ones. ImportError: matplotlib is not installed."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise missing("jittok.plot", "matplotlib", "notebook") from None
    # The first figure loads the backend. A notebook's sets rcParams then, which must last longer than the style.
    figure = plt.figure(figsize=(width, height), layout="constrained", facecolor=STYLE["figure.facecolor"])
    with plt.rc_context(STYLE):
        made: Axes = figure.subplots()
    return made


def _colours(axes: Axes, image: Any, **options: Any) -> None:
    """A color bar with labels in the color of the axes."""
    bar, ink = axes.figure.colorbar(image, ax=axes, **options), axes.title.get_color()
    bar.ax.tick_params(colors=ink)
    bar.ax.yaxis.label.set_color(ink)


def _named(tok: Tokenizer) -> str:
    return _as_it_is(tok.name or tok.vocab.source)


def _as_it_is(name: str) -> str:
    """A name with its dollars escaped: matplotlib reads text between two of them as a formula."""
    return name.replace("$", r"\$")


def token_lengths(tok: Tokenizer, ax: Axes | None = None, *, longest: int = 24, label: str | None = None) -> Axes:
    """A histogram of the lengths of tokens in bytes; the last bar holds all that are longer than `longest`."""
    axes = _axes(ax)
    counts = np.bincount(np.minimum(measure.token_bytes(tok), longest + 1), minlength=longest + 2)
    axes.step(np.arange(longest + 2), counts, where="mid", label=label or _named(tok))
    axes.set(xlabel=f"bytes of a token ({longest + 1}: and more)", ylabel="tokens", title="Lengths of tokens")
    axes.legend(frameon=False, labelcolor=axes.title.get_color())
    return axes


def scores(tok: Tokenizer, ax: Axes | None = None) -> Axes:
    """The score of each id; for BPE, which has no scores, the rank of the merge that makes the token."""
    axes = _axes(ax)
    if type_named(tok.type).has_merges:
        from jittok.vocab.describe import merge_rank

        vocab = tok.vocab
        ranks = [
            vocab.merge_rank(token) if isinstance(vocab, Pipeline) else merge_rank(vocab, token)
            for token in range(tok.vocab_size)
        ]
        shown = np.array([np.nan if rank is None else rank for rank in ranks])
        name = "merge rank"
    else:
        shown, name = tok.scores.astype(np.float64), "score"
    normal = tok.attributes & measure.SPECIAL == 0
    ids = np.flatnonzero(normal & np.isfinite(shown))
    ids = ids[shown[ids] >= 10 * min(np.percentile(shown[ids], 1), -1.0)]  # some are marked as never to be made
    axes.plot(ids, shown[ids], ",", color=BLUE)
    axes.set(xlabel="id", ylabel=name, title=f"{_named(tok)}: {name} by id")
    return axes


def scripts(tok: Tokenizer, ax: Axes | None = None) -> Axes:
    """How many tokens begin with a letter of each script."""
    counts = measure.script_counts(tok)
    names = list(counts)[:SCRIPTS]
    rest = sum(counts.values()) - sum(counts[name] for name in names)
    shown = [counts[name] for name in names]
    if rest:
        names, shown = [*names, "others"], [*shown, rest]
    axes = _axes(ax, height=0.22 * len(names) + 0.8)
    axes.barh(names, shown, color=BLUE)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set(xlabel="tokens", title=f"{_named(tok)}: scripts")
    for position, count in enumerate(shown):
        axes.text(count, position, f" {count}", va="center", fontsize=8, color=axes.title.get_color())
    axes.set_xlim(right=max(shown) * 8)
    return axes


def occupancy(tok: Tokenizer, ax: Axes | None = None) -> Axes:
    """How full each compiled table is, and how large."""
    found = measure.tables(tok)
    axes = _axes(ax, height=0.32 * len(found) + 0.9)
    names = [f"{table.name} ({table.kind})" for table in found]
    axes.barh(names, [1.0] * len(found), color="none", edgecolor="#8888", linewidth=0.5)
    axes.barh(names, [table.share for table in found], color=GREEN)
    axes.invert_yaxis()
    for position, table in enumerate(found):
        said = f"{table.share:.1%} of {_size(table.size)}"
        axes.text(0.98, position, said, ha="right", va="center", fontsize=8, color=axes.title.get_color())
    axes.set(xlim=(0, 1), xlabel="share of slots in use", title=f"{_named(tok)}: compiled tables")
    return axes


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"


def double_array(tok: Tokenizer, ax: Axes | None = None, *, name: str | None = None, slots: int = 65536) -> Axes:
    """The first slots of a double array (or of the table named), 256 a row. A slot's color shows how many bytes deep
    in the trie its node is. Free slots have no color. Of other tables: in use or free.

    ValueError where the vocabulary has no such table.
    """
    found = [t for t in measure.tables(tok) if (t.name == name if name else t.kind == "double array")]
    if not found:
        names = ", ".join(table.name for table in measure.tables(tok))
        raise ValueError(f"table: found {name or 'no double array'}, expected one of {names or 'none'}")
    table = found[0]
    is_trie = table.kind == "double array"
    shown = measure.depths(tok, table.name).astype(np.float64) if is_trie else table.used.astype(np.float64)
    shown[~table.used] = np.nan
    rows = -(-min(slots, shown.size) // 256)
    picture = np.full(rows * 256, np.nan)
    picture[: min(slots, shown.size)] = shown[:slots]
    axes = _axes(ax, 6.0, min(7.0, 1.0 + rows / 50))
    image = axes.imshow(picture.reshape(rows, 256), cmap="viridis_r", aspect="auto", interpolation="nearest")
    if is_trie:
        _colours(axes, image, label="bytes from the root", shrink=0.8)
    title = f"{table.name}: {table.share:.1%} of {table.used.size} slots in use"
    axes.set(xlabel="slot within its block of 256", ylabel="block", title=title)
    return axes


def probes(tok: Tokenizer, ax: Axes | None = None) -> Axes:
    """How many cache lines of four slots a look-up of a pair reads. ValueError: the vocabulary has no pair table."""
    read = measure.pair_probes(tok)
    if not read.size:
        raise ValueError(f"found a vocabulary of type {tok.type}, expected bpe or spm, which have a table of pairs")
    axes = _axes(ax)
    most = int(min(read.max(), 12))
    counts = np.bincount(np.minimum(read, most), minlength=most + 1)[1:]
    axes.bar(np.arange(1, most + 1), counts / read.size, color=ORANGE)
    axes.set(
        xlabel="lines of four slots read",
        ylabel="share of pairs",
        title=f"{_named(tok)}: {read.mean():.2f} lines a pair",
    )
    return axes


def compression(
    table: tuple[Sequence[str], Sequence[str], NDArray[np.float64]],
    ax: Axes | None = None,
    *,
    title: str = "Bytes a token",
) -> Axes:
    """The result of `bytes_per_token` as a colored table: more bytes per token mean fewer tokens for the same text."""
    languages, names, rates = table
    axes = _axes(ax, 1.6 + 0.9 * len(names), 0.9 + 0.24 * len(languages))
    most = 2 * float(np.nanmedian(rates))  # an unknown token for a whole sentence must not hide the others
    image: Any = axes.imshow(rates, cmap="viridis", aspect="auto", vmin=0, vmax=most)
    axes.set_xticks(range(len(names)), list(map(_as_it_is, names)), rotation=30, ha="right")
    axes.set_yticks(range(len(languages)), list(map(_as_it_is, languages)), fontsize=8)
    for i, row in enumerate(rates.tolist()):
        for j, rate in enumerate(row):
            axes.text(
                j, i, f"{rate:.1f}", ha="center", va="center", fontsize=7, color="k" if rate > 0.6 * most else "w"
            )
    _colours(axes, image, shrink=0.6, extend="max")
    axes.set_title(title)
    return axes
