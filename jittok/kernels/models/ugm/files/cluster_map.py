"""sentencepiece's character map as `tokenizers` applies it, to whole texts: for models whose other normalization steps
work on copies."""

from __future__ import annotations

from typing import NamedTuple

from jittok.common.pipeline.steps import Clusters
from jittok.common.unicode.characters import SPACE_MARK
from jittok.errors import MalformedVocab
from jittok.kernels.jit import I32, I64, U8, OutI64, OutU8, as_int64, helper, kernel
from jittok.kernels.memory import Window, get_u8, put_u8, window
from jittok.kernels.models.ugm.files.arrays import CharacterTable
from jittok.kernels.models.ugm.files.clusters import ODD
from jittok.kernels.models.ugm.files.normalizer import INSIDE, ODD_TEXT, NormalizerWindow, table_step
from jittok.kernels.models.ugm.files.normalizer_tables import cluster_keys, cluster_table
from jittok.kernels.normalize.charsmap_table import PLAIN, TIED


class Clustered(NamedTuple):
    """The compiled character map."""

    kinds: U8  # [256] kinds of bytes, see `normalize.charsmap_table`
    table: CharacterTable
    growth: int  # the most bytes that one byte becomes


def clustered_of(step: Clusters) -> Clustered | None:
    """The table of such a step, or None if its map cannot be one."""
    try:
        keys = cluster_keys(step, "")
    except MalformedVocab:
        return None
    if keys is None:
        return None
    kinds, table = cluster_table(keys, SPACE_MARK)  # an unmapped U+2581 would become a space
    growth = max((-(-len(image.encode()) // len(text.encode())) for text, image in keys.items()), default=1)
    return Clustered(kinds, table, max(growth, 1))


@helper
def _open(own: Clustered, out: Window, capacity: int) -> NormalizerWindow:
    table = own.table
    none = window(table.texts)
    return NormalizerWindow(
        0, 0, 0, window(own.kinds), window(table.pages), window(table.blocks), window(table.points), table.points.size,
        window(table.offsets), window(table.texts), window(table.keys.units), window(table.key_offsets),
        window(table.key_texts), table.clusters, window(table.ends), 0, none, 0, 0, none, none, out, capacity,
    )  # fmt: skip


@kernel
def write_clusters(
    own: Clustered, data: U8, starts: I64, stops: I64, tokens: I32, count: int, out: OutU8, out_starts: OutI64,
    out_stops: OutI64, odd: OutI64,
) -> int:  # fmt: skip
    """Write the normalized fragments, concatenated, to `out`; returns the number of bytes. Special tokens become empty.

    starts, stops: int64[count], tokens: int32[count] fragments of valid UTF-8, see `jittok.kernels.fragments`
    out: uint8[growth * bytes + 2 * STEP]; out_starts, out_stops: int64[count] receive their offsets
    odd: int64[count] receives ODD for a fragment that has to be normalized by the reference, else 0
    """
    text, at = window(data), as_int64(0)
    rewriting = _open(own, window(out), out.size)
    for k in range(count):
        out_starts[k], odd[k] = at, 0
        first, stop = as_int64(starts[k]), as_int64(stops[k])
        i, begun, state = first, at, INSIDE
        while tokens[k] < 0 and i < stop:
            byte = get_u8(text, i)
            kind = get_u8(rewriting.kinds, byte)
            if kind == PLAIN or (kind == TIED and (i + 1 >= stop or get_u8(text, i + 1) < 0x80)):
                put_u8(rewriting.out, at, byte)
                at += 1
                i += 1
                continue
            i, at, state = table_step(rewriting, text, first, i, stop, at, state)
            if i < 0:
                if i != ODD_TEXT:
                    return i
                odd[k], at = ODD, begun
                break
        out_stops[k] = at
    return at
