import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from jittok.common.unicode.tables import LETTER, MARK, NUMBER, PUNCTUATION, SYMBOL, code_points, flags, utf8
from jittok.kernels.pretokenize.definition import (
    CLASS_MEMBERS,
    COLLAPSED,
    SPLITTERS,
    WIDE,
    Piece,
    collapse,
    collapsed_pattern,
    compiled,
    cut,
    pre_type,
    pre_types,
    split,
    stages,
    wide_pattern,
    widen,
)

GPT2, LLAMA3, BY_NAME = 7, 1, {pre.name: pre for pre in pre_types()}
EXAMPLES = [
    ("GPT4O", "HelloWorld ÀÉî ABc'LL", "Hello¦World¦ ÀÉî¦ ABc'LL"),
    ("TINY_AYA", "HelloWorld 1234567", "HelloWorld¦ ¦1¦234¦567"),
    ("TEKKEN", "HTTPServer e\u0301te", "HTTPServer¦ e¦\u0301te"),
    ("GRANITE_EMB_MULTI", "HTTPServer e\u0301te", "HTTPServer¦ e\u0301te"),
    ("KIMI_K2", "漢字kana々x I'll 1234", "漢字¦kana々x¦ I'll¦ ¦123¦4"),
    ("KIMI_K2", "漢\ufaff漢\ufb00", "漢\ufaff漢¦\ufb00"),
    ("QWEN35", "e\u0301a \u0301b", "e\u0301a¦ \u0301b"),
    ("QWEN2", "e\u0301a \u0301b", "e¦\u0301a¦ \u0301¦b"),
    ("AFMOE", "x  1", "x¦ ¦ ¦1"),
    ("SUPERBPE", "n 1234567.", "n ¦1¦¦234¦¦567¦."),
    ("DEEPSEEK_LLM", "a\u3000b\uff0cc  ", "a¦\u3000b¦\uff0c¦c¦  "),
    ("PORO", "Hi, (you|me)\xa0x", "Hi¦, (¦you¦|¦me¦)\xa0¦x"),
    ("JAIS2", "       x", "    ¦  ¦ x"),
    ("LLAMA3", "  x\n\n  y 12345 'LL 's", " ¦ x¦\n\n¦ ¦ y¦ ¦123¦45¦ '¦LL¦ '¦s"),
    ("GPT2", "a  b' S's", "a¦ ¦ b¦'¦ S¦'s"),
    ("EXAONE_MOE", "l a m 12", "l a m¦ ¦1¦2"),
    ("LAGUNA", "a \n\n b", "a¦ ¦\n\n¦ b"),
    ("SPARK2_5", "\r\n\r\n a12345", "\r¦\n¦\r¦\n¦ a¦1¦2¦3¦4¦5"),
    ("YOUTU", "한국어 Hello 中文", "한국어¦ Hello¦ ¦中文"),
    ("WHITESPACE", "a b  c", "a¦ ¦b¦  ¦c"),
    ("DEFAULT", "a-b 1234", "a¦-¦b¦ ¦123¦4"),
]
SNIPPETS = [
    "a",
    "B",
    "é",
    "1",
    "²",
    " ",
    "\n",
    "\r",
    "\t",
    "\u3000",
    "'s",
    "'LL",
    ".",
    "+",
    "漢",
    "가",
    "\u0301",
    "IMG",
    "\u200b",
]
texts = st.lists(st.sampled_from(SNIPPETS), max_size=12).map(lambda parts: "".join(parts).encode()) | st.binary(
    max_size=12
)


@pytest.mark.parametrize(("name", "text", "wanted"), EXAMPLES)
def test_words_of_the_examples(name: str, text: str, wanted: str) -> None:
    found = split(text.encode(), BY_NAME[name]._replace(byte_encode=False))
    assert "¦".join(word.decode() for word in found) == wanted


def test_there_are_the_pre_types_that_llama_cpp_numbers() -> None:
    assert [pre.number for pre in pre_types()] == list(range(62))
    assert [pre.number for pre in pre_types() if not pre.byte_encode] == [50, 51, 53, 60]


@pytest.mark.parametrize("pre", pre_types(), ids=lambda pre: pre.name)
def test_every_pattern_has_an_engine_that_can_run_it(pre: object) -> None:
    for pattern, engine in pre.patterns:  # type: ignore[attr-defined]
        if engine in (COLLAPSED, WIDE):
            assert compiled(pattern, engine).pattern == (
                collapsed_pattern(pattern) if engine == COLLAPSED else wide_pattern(pattern)
            )
        else:
            assert engine.removeprefix("custom:") in SPLITTERS


@given(texts, st.sampled_from(pre_types()))
def test_pieces_of_every_stage_add_up_to_the_text(text: bytes, pre: object) -> None:
    points = code_points(text)
    for pieces in stages(points, pre):  # type: ignore[arg-type]
        ends = [0, *(piece.stop for piece in pieces)]
        assert [piece.start for piece in pieces] == ends[:-1]
        assert ends[-1] == len(points)


def test_empty_text_has_no_words() -> None:
    assert all(split(b"", pre) == [] for pre in pre_types())


@pytest.mark.parametrize(
    ("letter", "category"), [("N", NUMBER), ("L", LETTER), ("P", PUNCTUATION), ("M", MARK), ("S", SYMBOL)]
)
def test_class_members_are_what_the_tables_say_about_ascii(letter: str, category: int) -> None:
    members = regex.compile(collapsed_pattern(rf"\p{{{letter}}}"))
    ascii_members = [c for c in range(128) if members.match(bytes([c]))]
    assert ascii_members == [c for c in range(128) if flags(c) & category]
    assert letter in CLASS_MEMBERS


def test_case_classes_are_all_letters() -> None:
    for case in ("L", "Lu", "Ll", "Lt", "Lm", "Lo"):
        assert collapsed_pattern(rf"[\p{{{case}}}x]") == rb"[\xD2A-Za-zx]"


def test_a_class_inside_a_set_gets_no_brackets_of_its_own() -> None:
    assert collapsed_pattern(r"[^\r\n\p{L}]?\p{N}{1,3}") == rb"[^\r\n\xD2A-Za-z]?[\xD10-9]{1,3}"
    assert collapsed_pattern(r"\[\p{M}\]") == rb"\[[\xD4]\]"


def test_wide_patterns_mean_ascii_where_c_plus_plus_does() -> None:
    assert wide_pattern(r"\s?[^(\s|.]+\S\d$") == r"[\t-\r ]?[^(\t-\r |.]+[^\t-\r ][0-9]\Z"
    assert wide_pattern("\\s+$") == "[\\t-\\r ]+\\Z"


def test_collapsed_text_has_one_byte_a_code_point() -> None:
    assert collapse(code_points("aé²\uff01\u0301€\u3000\u200b\u0378".encode())) == b"a\xd2\xd1\xd3\xd4\xd5\x0b\xd0\xd0"
    assert collapse([0x85, 0x110000]) == b"\x0b\xd0"


def test_wide_text_folds_white_space_above_ascii() -> None:
    assert widen([0x20, 0x3000, 0xE9, 0x1FFFFF]) == " \x0bé\U0010ffff"


def test_cut_tells_matches_from_gaps() -> None:
    assert cut(code_points(b"a12b"), r"\p{N}", COLLAPSED) == [
        Piece(0, 1, False),
        Piece(1, 2, True),
        Piece(2, 3, True),
        Piece(3, 4, False),
    ]


def test_no_match_crosses_a_cut_and_the_end_of_a_piece_is_an_end() -> None:
    points = code_points(b"a  1")
    first, second = stages(points, BY_NAME["STARCODER"])
    assert first == [Piece(0, 3, False), Piece(3, 4, True)]
    assert second == [
        Piece(0, 1, True),
        Piece(1, 3, True),
        Piece(3, 4, True),
    ]  # both spaces: nothing follows in the piece


@given(texts)
def test_words_in_the_byte_alphabet_are_the_reencoded_words(text: bytes) -> None:
    plain = split(text, pre_type(LLAMA3)._replace(byte_encode=False))
    assert b"".join(plain) == b"".join(map(utf8, code_points(text)))
    encoded = split(text, pre_type(LLAMA3))
    assert [len(word.decode()) for word in encoded] == [len(word) for word in plain]


GPT2_MEANING = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


@given(texts)
def test_the_handwritten_gpt2_is_its_pattern(text: bytes) -> None:
    points = code_points(text)
    pieces = [piece[:2] for piece in cut(points, GPT2_MEANING, COLLAPSED)]
    assert [piece[:2] for piece in cut(points, pre_type(GPT2).regexes[0], "custom:gpt2")] == pieces


@pytest.mark.parametrize("name", ["LLAMA3", "QWEN2"])
@given(text=texts)
def test_handwritten_splitters_are_their_patterns(name: str, text: bytes) -> None:
    ((pattern, engine),) = BY_NAME[name].patterns
    points = code_points(text)
    assert [p[:2] for p in cut(points, pattern, engine)] == [p[:2] for p in cut(points, pattern, COLLAPSED)]
