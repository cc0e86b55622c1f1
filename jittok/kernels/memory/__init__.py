"""The only place that reads and writes memory past Numba's array types: `elements` (elements, words, bits), `blocks`
(64 bytes or 16 words at once), `characters` (16 or 32 of a `str` at once), `keys` (16 bytes at once), `byte_maps`,
`byte_masks` and `word_stores`. Every operation has a checked twin; see `elements`. `texts` reads texts where Python
keeps them.

These modules write LLVM code, so they import Numba. Fast kernels that come from the cache do not need them: here their
operations are names that are fetched when a kernel is compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from jittok.kernels.fragments import PAD
from jittok.kernels.jit import CHECKED, JIT, Deferred, need_compiler
from jittok.kernels.memory.tables import NO_MATCH, key_masks, pair_places

FAST = JIT and not CHECKED
Window: TypeAlias = Any
"""Address (fast) or array (checked); see `elements`."""
_OPERATIONS = {
    "blocks": """
        bit_places class_masks contraction_masks lowest_16 lowest_32 set_three_lowest_16 set_three_lowest_32 utf8_masks
    """,
    "characters": """
        narrow_8 narrow_16 narrow_32 spell_8 spell_16 spell_32
    """,
    "keys": """
        copy_four copy_ids copy_narrow match_four match_pair put_key
    """,
    "byte_maps": """
        copy_block map_block mark_block pair_block
    """,
    "elements": """
        add as_bytes as_halves get_f32 get_f64 get_i32 get_i64 get_u8 get_u16 get_u32 get_u64 get_word leading_zeros
        multiply popcount prefetch put_f64 put_i32 put_i64 put_u8 put_u16 put_u32 put_u64 readable_behind
        trailing_zeros window
    """,
    "byte_masks": """
        any_bit_mask bit_masks composed_mask composing_leads equal_mask one_mask span_masks string_masks three_mask
        two_mask
    """,
    "word_stores": """
        put_two put_word
    """,
}

if not FAST:
    need_compiler("code with every index checked" if JIT else "Python in place of kernels (NUMBA_DISABLE_JIT)")
if TYPE_CHECKING or not FAST:
    from jittok.kernels.memory.blocks import (
        bit_places,
        class_masks,
        contraction_masks,
        lowest_16,
        lowest_32,
        set_three_lowest_16,
        set_three_lowest_32,
        utf8_masks,
    )
    from jittok.kernels.memory.byte_maps import copy_block, map_block, mark_block, pair_block
    from jittok.kernels.memory.byte_masks import (
        any_bit_mask,
        bit_masks,
        composed_mask,
        composing_leads,
        equal_mask,
        one_mask,
        span_masks,
        string_masks,
        three_mask,
        two_mask,
    )
    from jittok.kernels.memory.characters import narrow_8, narrow_16, narrow_32, spell_8, spell_16, spell_32
    from jittok.kernels.memory.elements import (
        add,
        as_bytes,
        as_halves,
        get_f32,
        get_f64,
        get_i32,
        get_i64,
        get_u8,
        get_u16,
        get_u32,
        get_u64,
        get_word,
        leading_zeros,
        multiply,
        popcount,
        prefetch,
        put_f64,
        put_i32,
        put_i64,
        put_u8,
        put_u16,
        put_u32,
        put_u64,
        readable_behind,
        trailing_zeros,
        window,
    )
    from jittok.kernels.memory.keys import copy_four, copy_ids, copy_narrow, match_four, match_pair, put_key
    from jittok.kernels.memory.word_stores import put_two, put_word
else:
    globals().update(
        {
            name: Deferred(f"jittok.kernels.memory.{home}", name)
            for home, names in _OPERATIONS.items()
            for name in names.split()
        }
    )

__all__ = [
    "FAST",
    "NO_MATCH",
    "PAD",
    "Window",
    "add",
    "any_bit_mask",
    "as_bytes",
    "as_halves",
    "bit_masks",
    "bit_places",
    "class_masks",
    "composed_mask",
    "composing_leads",
    "contraction_masks",
    "copy_block",
    "copy_four",
    "copy_ids",
    "copy_narrow",
    "equal_mask",
    "get_f32",
    "get_f64",
    "get_i32",
    "get_i64",
    "get_u8",
    "get_u16",
    "get_u32",
    "get_u64",
    "get_word",
    "key_masks",
    "leading_zeros",
    "lowest_16",
    "lowest_32",
    "map_block",
    "mark_block",
    "match_four",
    "match_pair",
    "multiply",
    "narrow_8",
    "narrow_16",
    "narrow_32",
    "one_mask",
    "pair_block",
    "pair_places",
    "popcount",
    "prefetch",
    "put_f64",
    "put_i32",
    "put_i64",
    "put_key",
    "put_two",
    "put_u8",
    "put_u16",
    "put_u32",
    "put_u64",
    "put_word",
    "readable_behind",
    "set_three_lowest_16",
    "set_three_lowest_32",
    "span_masks",
    "spell_8",
    "spell_16",
    "spell_32",
    "string_masks",
    "three_mask",
    "trailing_zeros",
    "two_mask",
    "utf8_masks",
    "window",
]  # fmt: skip
