"""Rules of the types that small vocabularies show; the recorded sets check the rest."""

from collections.abc import Callable

import pytest

from jittok.errors import EncodingFailed, MalformedVocab, UnsupportedVocab
from jittok.reference.models.plamo2 import INVALID, fixed_score
from jittok.reference.tokenize import align, newline_id, tokenize
from jittok.vocab import Vocab

NORMAL, CONTROL, USER_DEFINED, BYTE = 4, 8, 16, 32
WHITESPACE_PRE, GPT2, GEMMA4, MMBERT = 53, 7, 50, 60
BYTES = [b"<0x%02X>" % byte for byte in range(256)]
Make = Callable[..., Vocab]


def texts(*tokens: str) -> list[bytes]:
    return [token.encode() for token in tokens]


def fails(vocab: Vocab, text: bytes) -> tuple[int, object]:
    """(offset, found) of the failure."""
    with pytest.raises(EncodingFailed) as caught:
        tokenize(vocab, text)
    assert caught.value.document == 0
    return caught.value.offset, caught.value.found


class TestSpm:
    def test_every_text_behind_a_special_token_gets_a_space(self, vocab_of: Make) -> None:
        vocab = vocab_of(texts("<s>", "▁", "a", "▁a"), [CONTROL, NORMAL, NORMAL, NORMAL], add_space_prefix=True)
        assert tokenize(vocab, b"<s>a<s> a", parse_special=True) == [0, 3, 0, 1, 3]

    def test_a_byte_is_its_hex_token_or_else_itself(self, vocab_of: Make) -> None:
        vocab = vocab_of([b"<0xE9>", b"\xe9", b"\x80"])
        assert tokenize(vocab, b"\xe9\x80") == [0, 2]

    def test_a_byte_without_token_is_named_with_its_place(self, vocab_of: Make) -> None:
        vocab = vocab_of(texts("<s>", "▁", "a"), [CONTROL, NORMAL, NORMAL], add_space_prefix=True)
        with pytest.raises(EncodingFailed, match=r"document 0, offset 4: found b'\\xc3', expected a byte that"):
            tokenize(vocab, "<s>aé".encode(), parse_special=True)
        assert fails(vocab, "a éa".encode()) == (2, b"\xc3")

    def test_byte_0_is_no_empty_token(self, vocab_of: Make) -> None:
        assert fails(vocab_of([b"a"]), b"a\0") == (1, b"\0")

    def test_equal_scores_merge_the_leftmost(self, vocab_of: Make) -> None:
        assert tokenize(vocab_of(texts("a", "aa")), b"aaa") == [1, 0]

    def test_the_newline_is_a_byte_token_or_the_default_pad(self, vocab_of: Make) -> None:
        assert newline_id(vocab_of(BYTES)) == 10
        assert newline_id(vocab_of([b"a", b"\n"])) == 1
        assert newline_id(vocab_of([b"a"], default_pad_id=-1)) == -1


class TestBpe:
    def test_bytes_without_a_token_disappear(self, vocab_of: Make) -> None:
        vocab = vocab_of(texts("a", "b"), type="bpe", pre_type=GPT2, escape_whitespaces=False)
        assert align(vocab, "aéb".encode()) == ([0, 1], [(0, 1), (3, 4)])

    def test_the_result_of_a_merge_need_not_be_a_token(self, vocab_of: Make) -> None:
        tokens, merges = texts("a", "b", "c", "abc"), [b"a b", b"ab c"]
        vocab = vocab_of(tokens, type="bpe", pre_type=GPT2, merges=merges, escape_whitespaces=False)
        assert tokenize(vocab, b"abc") == [3]
        assert tokenize(vocab, b"ab") == [0, 1]

    def test_a_whole_word_is_taken_only_with_ignore_merges(self, vocab_of: Make) -> None:
        for ignore, wanted in ((False, [0, 1]), (True, [2])):
            vocab = vocab_of(texts("a", "b", "ab"), type="bpe", pre_type=GPT2, ignore_merges=ignore)
            assert tokenize(vocab, b"ab") == wanted

    def test_gemma_takes_newlines_whole_and_other_runs_by_merging(self, vocab_of: Make) -> None:
        vocab = vocab_of([*texts("a", "aa", "\n\n"), *BYTES], type="bpe", pre_type=GEMMA4)
        assert tokenize(vocab, b"aa\n\n\xff") == [0, 0, 2, *(3 + byte for byte in b"\xef\xbf\xbd")]

    def test_what_lies_above_unicode_is_refused_at_its_place(self, vocab_of: Make) -> None:
        kind = {"type": "bpe", "pre_type": GPT2, "escape_whitespaces": False}
        vocab = vocab_of(texts("a"), shortest_utf8=False, **kind)
        assert fails(vocab, b"a\xc3\xa9\xf4\x90\x80\x80") == (3, "U+110000")
        strict = vocab_of([b"a", "\u00f0".encode(), "\u013d".encode()], **kind)  # U+FFFD is EF BF BD
        assert len(tokenize(strict, b"a\xf4\x90\x80\x80a")) == 2
        assert tokenize(vocab, b"a\xf4\x90\x80") == [0]  # cut short, it is three times U+FFFD

    def test_an_overlong_space_is_refused_without_the_byte_alphabet(self, vocab_of: Make) -> None:
        vocab = vocab_of(texts("a", "▁"), type="bpe", pre_type=GEMMA4, shortest_utf8=False)
        assert tokenize(vocab, b"a a") == [0, 1, 0]
        assert tokenize(vocab_of(texts("a", "▁"), type="bpe", pre_type=GEMMA4), b"a\xc0\xa0a") == [0, 0]
        assert fails(vocab, b"a a\xc0\xa0")[0] == 3

    def test_kmers_stand_between_dna_marks(self, vocab_of: Make) -> None:
        tokens = texts("<dna>", "</dna>", "<oov>", "ACGTAC\ue000", "GAAAAA\ue000", "a")
        vocab = vocab_of(tokens, type="bpe", model="hybriddna", pre_type=GPT2)
        ids, spans = align(vocab, b"a<dna>acgtacG</dna>a<dna>ACGTA!")
        assert ids == [5, 0, 3, 4, 1, 5, 0, 2]
        assert spans == [(0, 1), (1, 6), (6, 12), (12, 13), (13, 19), (19, 20), (20, 25), (25, 31)]

    def test_spaces_that_become_marks_are_letters_of_dna(self, vocab_of: Make) -> None:
        """As llama.cpp b11739 and 0.3.36 answer."""
        tokens = texts("<dna>", "</dna>", "<oov>", "AC▁G\ue000", "A C GT\ue000", "▁", "a", "b")
        vocab = vocab_of(tokens, type="bpe", model="hybriddna", pre_type=GEMMA4, escape_whitespaces=True)
        assert align(vocab, b"a <dna>AC G</dna> b") == (
            [6, 5, 0, 3, 1, 5, 7], [(0, 1), (1, 2), (2, 7), (7, 11), (11, 17), (17, 18), (18, 19)],
        )  # fmt: skip
        assert tokenize(vocab, b"<dna>A C GT</dna>") == [0, 2, 2, 1]

    @pytest.mark.parametrize(
        ("pre", "text", "ids"),
        [
            *((GEMMA4, *row) for row in (("a  b", [1, 3, 2]), (" a", [4]), ("a \n b", [1, 0, 0, 2]), ("a\tb", [1, 2]))),
            (GEMMA4, "   ", [3, 0]),
            *(
                (MMBERT, *row)
                for row in (("a  b", [4, 0, 0, 2]), ("  a", [0, 4]), ("a ", [4, 0]), ("a \n b", [4, 0, 0, 2]))
            ),
            *(
                (MMBERT, *row)
                for row in ((" \n", [0]), ("\n", []), ("\u2581 \u2581", [0, 0, 0]), ("a\u3000\u3000b", [4, 0, 2]))
            ),
        ],
    )
    def test_spaces_that_become_marks_are_no_white_space(
        self, vocab_of: Make, pre: int, text: str, ids: list[int]
    ) -> None:
        """As llama.cpp b11739 and, of Gemma's words, 0.3.36 answer."""
        merges = ["▁ ▁".encode(), "▁ a".encode()]
        settings = {"type": "bpe", "model": "whitespace", "pre_type": pre, "escape_whitespaces": True}
        assert tokenize(vocab_of(texts("▁", "a", "b", "▁▁", "▁a"), merges=merges, **settings), text.encode()) == ids

    def test_white_space_is_left_out_between_words(self, vocab_of: Make) -> None:
        settings = {"type": "bpe", "model": "whitespace", "pre_type": WHITESPACE_PRE, "escape_whitespaces": False}
        vocab = vocab_of(texts("a", "b"), lowercase=True, **settings)
        assert align(vocab, " A\u3000b\x85".encode()) == ([0, 1], [(1, 2), (5, 6)])
        assert newline_id(vocab_of(texts("a"), default_pad_id=-1, **settings)) == -1


class TestWpm:
    TOKENS = texts("[UNK]", "▁a", "▁!", "▁가", "▁\u1100", "b", "▁中", "▁ß", "▁i")

    def make(self, vocab_of: Make, **settings: bool) -> Vocab:
        return vocab_of(self.TOKENS, type="wpm", unk_id=0, bos_id=1, sep_id=2, **settings)

    def test_a_word_without_match_is_one_unknown_token(self, vocab_of: Make) -> None:
        vocab = self.make(vocab_of)
        assert align(vocab, b"abc ab!") == ([0, 1, 5, 2], [(0, 3), (4, 5), (5, 6), (6, 7)])

    def test_only_the_first_code_point_of_a_decomposition_stays(self, vocab_of: Make) -> None:
        assert tokenize(self.make(vocab_of), "가Å".encode()) == [0]  # U+1100 and a are one word
        assert tokenize(self.make(vocab_of), "가 Åb".encode()) == [4, 1, 5]
        assert tokenize(self.make(vocab_of, strip_accents=False), "가".encode()) == [3]

    def test_controls_and_bad_bytes_glue_their_neighbours(self, vocab_of: Make) -> None:
        assert align(self.make(vocab_of), "a\u200b\x00".encode() + b"\xff\x1cb") == ([1, 5], [(0, 1), (7, 8)])

    def test_ideographs_are_words(self, vocab_of: Make) -> None:
        assert tokenize(self.make(vocab_of), "中中a中".encode()) == [6, 6, 1, 6]

    def test_a_gap_in_the_ideographs_is_letters(self, vocab_of: Make) -> None:
        marked = "▁\U0002b820"
        assert tokenize(vocab_of(texts("▁", marked, "b"), type="wpm"), "\U0002b820b".encode()) == [1, 2]

    def test_lower_case_is_one_code_point(self, vocab_of: Make) -> None:
        assert tokenize(self.make(vocab_of, strip_accents=False), "İ ẞ".encode()) == [8, 7]

    def test_bos_and_sep_are_added_whatever_the_flags_say(self, vocab_of: Make) -> None:
        assert tokenize(self.make(vocab_of, add_bos=False, add_sep=False), b"", add_special=True) == [1, 2]


class TestUgm:
    def make(self, vocab_of: Make, tokens: list[str], scores: list[float], **settings: bool) -> Vocab:
        return vocab_of(
            texts("<unk>", *tokens), [2] + [NORMAL] * len(tokens), "ugm", scores=[0.0, *scores], unk_id=0, **settings
        )

    @pytest.mark.parametrize(
        ("prefix", "merge", "wanted"),
        [
            (False, False, ["", "a", "▁▁a▁▁b▁"]),
            (True, False, ["", "▁a", "▁▁▁a▁▁b▁"]),
            (False, True, ["", "▁a", "▁a▁b"]),
            (True, True, ["", "▁a", "▁a▁b"]),
        ],
    )
    def test_spaces_follow_the_two_flags(self, vocab_of: Make, prefix: bool, merge: bool, wanted: list[str]) -> None:
        vocab = self.make(
            vocab_of, ["▁", "a", "b"], [-1.0] * 3, add_space_prefix=prefix, remove_extra_whitespaces=merge
        )
        for text, normalized in zip((b"", b"a", b"  a  b "), wanted, strict=True):
            ids = tokenize(vocab, text)
            assert b"".join(vocab.tokens[i] for i in ids).decode() == normalized

    def test_equal_sums_keep_the_longer_last_token(self, vocab_of: Make) -> None:
        vocab = self.make(vocab_of, ["a", "b", "c", "ab", "bc"], [-1.0, -1.0, -1.0, -2.0, -2.0])
        assert tokenize(vocab, b"abc") == [1, 5]

    def test_unknown_characters_in_a_row_are_one_token(self, vocab_of: Make) -> None:
        vocab = self.make(vocab_of, ["a"], [-1.0])
        assert align(vocab, "日本a".encode() + b"\xff") == ([0, 1, 0], [(0, 6), (6, 7), (7, 8)])

    def test_a_token_that_ends_inside_a_character_does_not_cover_it(self, vocab_of: Make) -> None:
        vocab = vocab_of([b"<unk>", b"a", b"\xc3"], [2, NORMAL, NORMAL], "ugm", scores=[0.0, -1.0, -1.0], unk_id=0)
        assert tokenize(vocab, "aé".encode()) == [1, 0]


class TestRwkv:
    def test_escapes_are_resolved_before_matching(self, vocab_of: Make) -> None:
        vocab = vocab_of([b"a", b"\\n\\n", b"\\xe9", b"\\\\", b"\\'"], type="rwkv", unk_id=-1)
        assert tokenize(vocab, b"a\n\n\xe9\\'b") == [0, 1, 2, 3, 4, -1]

    def test_a_path_without_token_is_refused(self, vocab_of: Make) -> None:
        vocab = vocab_of([b"a", b"bcd"], type="rwkv")
        assert fails(vocab, b"abcx") == (1, b"bcx")

    def test_the_newline_is_found_with_the_default_unknown_token(self, vocab_of: Make) -> None:
        assert newline_id(vocab_of([b"a", b"\\n"], type="rwkv", default_unk_id=-1)) == 1
        assert newline_id(vocab_of([b"a"], type="rwkv", unk_id=0, default_unk_id=-1)) == -1

    def test_the_last_of_equal_tokens_wins(self, vocab_of: Make) -> None:
        assert tokenize(vocab_of([b"a", b"\\x61"], type="rwkv"), b"a") == [1]


class TestPlamo2:
    def test_the_cheapest_way_wins_and_unknown_characters_are_bytes(self, vocab_of: Make) -> None:
        tokens = [b"<unk>", *BYTES, b"a", b"b", b"ab"]
        vocab = vocab_of(tokens, [2, *[BYTE] * 256, *[NORMAL] * 3], "plamo2", scores=[0.0] * 257 + [-1.0, -1.0, -1.5])
        assert tokenize(vocab, b"aab") == [257, 259]
        assert tokenize(vocab, "\ufeffaé".encode()) == [257, *(1 + byte for byte in "é".encode())]

    def test_scores_are_rounded_halves_away_from_zero(self) -> None:
        assert [fixed_score(x) for x in (0.00005, -0.00005, -0.00004, 2.5, 1e6)] == [1, -1, 0, 25_000, -(2**31)]
        assert fixed_score(float("-inf")) == fixed_score(float("nan")) == fixed_score(-2000.0) == INVALID

    def test_a_token_with_an_invalid_score_is_never_used(self, vocab_of: Make) -> None:
        # -2000 would cost as much as two unknown characters, and the longer first piece wins a tie
        tokens, attributes = [b"<unk>", *BYTES, b"ab", b"c"], [2, *[BYTE] * 256, NORMAL, NORMAL]
        unknown = [1 + ord("a"), 1 + ord("b")]
        for score, wanted in ((-1999.9999, [257]), (-2000.0, unknown), (float("inf"), unknown)):
            vocab = vocab_of(tokens, attributes, "plamo2", scores=[0.0] * 257 + [score, 1.0])
            assert tokenize(vocab, b"ab") == wanted

    def test_a_missing_byte_token_is_refused(self, vocab_of: Make) -> None:
        with pytest.raises(MalformedVocab, match="expected a token for each byte"):
            tokenize(vocab_of([b"a"], type="plamo2"), b"a")


def test_type_none_cannot_tokenize(vocab_of: Make) -> None:
    with pytest.raises(UnsupportedVocab, match="a type that can tokenize"):
        tokenize(vocab_of([b"a"], type="none"), b"")
    assert newline_id(vocab_of([b"a"], type="none")) == -1


def test_type_test_hashes_five_bytes_at_a_time(vocab_of: Make) -> None:
    vocab = vocab_of([b"a", b"b", b"c"], type="test")
    assert align(vocab, b"abcdef") == (
        [(97 * 31**4 + 98 * 31**3 + 99 * 31**2 + 100 * 31 + 101) % 3, 0],
        [(0, 5), (5, 6)],
    )


def test_add_special_without_the_token_it_needs_is_refused(vocab_of: Make) -> None:
    with pytest.raises(EncodingFailed, match="bos_token_id, needed to add special tokens"):
        tokenize(vocab_of([b"a"], add_bos=True), b"a", add_special=True)
