"""The table of characters and their images: sets of characters that all have the same one."""

import time

import pytest

from jittok.kernels.normalize.char_replacements import char_replacements
from jittok.kernels.pretokenize.classes import PAGE_BITS, UNICODE_SIZE


def image(table, c: int) -> str:
    row = int(table.blocks[int(table.pages[c >> PAGE_BITS]) << PAGE_BITS | c & (1 << PAGE_BITS) - 1])
    return chr(row) if row >= 0 else table.texts[table.offsets[-1 - row] : table.offsets[-row]].tobytes().decode()


@pytest.mark.parametrize("content", ["", "x", "é", "<x>", "\U0001f600"])
@pytest.mark.parametrize("once", [False, True])
def test_a_set_of_characters_has_one_image(content, once):
    table = char_replacements({0x41: "b"}, [(0x30, 0x39), (0x80, UNICODE_SIZE - 1)], content, once)
    assert [image(table, c) for c in (0x30, 0x39, 0x80, 0xE9, UNICODE_SIZE - 1)] == [content] * 5
    assert image(table, 0x41) == "b"
    assert [image(table, c) for c in (0x2F, 0x3A, 0x7F)] == ["/", ":", "\x7f"]
    assert table.growth == max(1, len(content.encode()))
    assert table.once.tolist() == [once] * (once or len(content) != 1)


def test_a_set_of_nearly_all_characters_is_made_at_once():
    def took(*members: tuple[int, int]) -> float:
        start = time.process_time()
        char_replacements({}, members, "", True)
        return time.process_time() - start

    took()
    every, none = (min(took(*members) for _ in range(3)) for members in ([(0x80, UNICODE_SIZE - 1)], []))
    assert every < 10 * none
