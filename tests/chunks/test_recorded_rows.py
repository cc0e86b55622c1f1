"""Rows are those of transformers and tokenizers: recorded ones, and those of the library that is installed."""

import functools
import json
import lzma
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_files import SHARED

import jittok
from jittok.common.pipeline.pipeline import FIRST_TEXT, SECOND_TEXT
from jittok.tokenizer import Tokenizer

RECORDED = SHARED / "golden-people" / "windows.jsonl.xz"
FOLDERS = {"gpt2": "gpt2-files"}
NAMES = ("bert-base-uncased", "gpt2", "llama-3", "albert", "t5-sd3", "roberta-base")


def recorded(name: str) -> list[dict[str, Any]]:
    with lzma.open(RECORDED, "rt", encoding="utf-8") as file:
        return [row for row in map(json.loads, file) if row["tokenizer"] == name]


def options_of(row: dict[str, Any]) -> dict[str, Any]:
    """A call of transformers as a call of jittok."""
    return {
        "max_length": row["max_length"], "overlap": row["stride"], "truncation": row["truncation"],
        "side": row["truncation_side"], "windows": row["return_overflowing_tokens"],
        "add_special": row["add_special_tokens"], "parse_special": True,
    }  # fmt: skip


def texts_of(row: dict[str, Any]) -> tuple[list[str], list[str] | None]:
    if isinstance(row["text"], list):
        return row["text"], row["pair"]
    return [row["text"]], [row["pair"]] if row["pair"] else None  # one empty pair is none


def refused(tok: Tokenizer, row: dict[str, Any]) -> bool:
    """Whether jittok refuses what the library does not: see `Tokenizer.encode_batch`."""
    _, pairs = texts_of(row)
    special = row["add_special_tokens"]
    around = len(tok.pipeline.template(pairs is not None, special)) - 1 - (pairs is not None)
    length, overlap = row["max_length"], row["stride"]
    if length is None or row["truncation"] is False:
        return False
    room = length - (len(tok.pipeline.template(False)) - 1 if special else 0)
    return bool(length < around or 0 < overlap == room)


def padded_rows(tok: Tokenizer, row: dict[str, Any]) -> None:
    """Both calls, one of which is refused: transformers looks at padding before it encodes."""
    texts, pairs = texts_of(row)
    found = tok.encode_batch(texts, pairs, **options_of(row))
    found.to_padded(pad_id=0, multiple_of=row["pad_to_multiple_of"])


def rows_of(answer: dict[str, Any], one: bool) -> dict[str, list[Any]]:
    """The library's rows by name, without their padding."""
    lists = {k: v for k, v in answer.items() if k not in ("overflow_to_sample_mapping", "offset_mapping")}
    if one and not (answer["input_ids"] and isinstance(answer["input_ids"][0], list)):
        lists = {name: [row] for name, row in lists.items()}
    masks = lists["attention_mask"]
    return {
        name: [[x for x, there in zip(row, mask, strict=True) if there] for row, mask in zip(rows, masks, strict=True)]
        for name, rows in lists.items()
    }


@pytest.mark.filterwarnings("ignore:max_length is None", "ignore:overlap is of windows")
@pytest.mark.recorded_elsewhere
@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded rows lie beside the checkout")
@pytest.mark.parametrize("name", NAMES)
def test_rows_are_the_recorded_ones(name: str, unpacked: Callable[[str], Any]) -> None:
    file = unpacked(FOLDERS.get(name, name))
    tok, compared = jittok.load(file.path, **file.options), 0
    for row in recorded(name):
        (texts, pairs), options = texts_of(row), options_of(row)
        if refused(tok, row) or "error" in row:
            with pytest.raises(ValueError, match=r"max_length|overlap|truncation"):
                padded_rows(tok, row)
            continue
        found = tok.encode_batch(texts, pairs, **options)
        wanted = rows_of(row["answer"], isinstance(row["text"], str))
        assert found.to_list() == wanted["input_ids"], row
        compared += 1
        if not hasattr(found, "types"):
            continue
        assert found.row_of.tolist() == row["answer"].get("overflow_to_sample_mapping", [*range(len(texts))]), row
        flat = {key: [x for each in rows for x in each] for key, rows in wanted.items()}
        assert (found.sequences < 0).astype(int).tolist() == flat["special_tokens_mask"], row
        if "token_type_ids" in flat:
            assert found.types.tolist() == flat["token_type_ids"], row
        if row["padding"]:
            check_padded(found, row)
    assert compared > 50


def check_padded(found: Any, row: dict[str, Any]) -> None:
    """`to_padded` gives what the library's padding does; where that leaves longer rows as they are, ValueError."""
    answer, length = row["answer"], row["max_length"] if row["padding"] == "max_length" else None
    lines, masks = (answer[key] for key in ("input_ids", "attention_mask"))
    if not (lines and isinstance(lines[0], list)):
        lines, masks = [lines], [masks]
    filler = [x for line, mask in zip(lines, masks, strict=True) for x, m in zip(line, mask, strict=True) if not m]
    how = {"side": row["padding_side"] or "right", "multiple_of": row["pad_to_multiple_of"]}
    if length is not None and max(found.lengths) > max(length, *map(len, lines)) - 1 and max(found.lengths) > length:
        return
    if len({*map(len, lines)}) > 1:
        return
    padded = found.to_padded(length, pad_id=filler[0] if filler else 0, **how)
    assert padded.ids.tolist() == lines, row
    assert padded.mask.astype(int).tolist() == masks, row


# ---- the library itself

SPECIAL = {name: {"id": name, "ids": [token], "tokens": [name]} for name, token in (("x", 1), ("y", 2))}
AROUND: dict[str, Any] = {
    "odd": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "x", "type_id": 3}}, {"Sequence": {"id": "A", "type_id": 1}}],
        "pair": [{"Sequence": {"id": "B", "type_id": 2}}, {"SpecialToken": {"id": "x", "type_id": 5}},
                 {"SpecialToken": {"id": "y", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": SPECIAL,
    },
    "bert": {"type": "BertProcessing", "cls": ["x", 1], "sep": ["y", 2]},
    "roberta": {"type": "RobertaProcessing", "cls": ["x", 1], "sep": ["y", 2], "trim_offsets": True,
                "add_prefix_space": False},
    "none": None,
}  # fmt: skip
"""Post-processors that files may have."""
LIVE = ["pix2tex", "syn-wordpiece-flags", "syn-bpe-prefix-space", "syn-unigram-bytes",
        *(f"syn-wordlevel {name}" for name in AROUND)]  # fmt: skip
WORDS = ["hello", "12345", "東京", "é", "a", ".", "unbelievable", "tokens", "<s>", "[SEP]", " ", "\n", "ab"]
TEXT = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)


@pytest.fixture(scope="module")
def both(unpacked: Callable[[str], Any]) -> Callable[[str], tuple[Tokenizer, Any]]:
    """both(name): jittok's and tokenizers' tokenizer of a file."""
    library = pytest.importorskip("tokenizers")

    def load(name: str) -> tuple[Tokenizer, Any]:
        name, _, around = name.partition(" ")
        file = unpacked(name)
        content = json.loads((file.path / "tokenizer.json" if file.path.is_dir() else file.path).read_text("utf-8"))
        if around:
            content["post_processor"] = AROUND[around]
        text = json.dumps(content)
        return jittok.load(text.encode(), cache=False), library.Tokenizer.from_str(text)

    return functools.cache(load)


def library_rows(other: Any, texts: list[str], pairs: list[str] | None, special: bool) -> list[tuple[int, Any]]:
    """(number of the text, encoding) of each row: the row itself, then its overflow."""
    given: list[Any] = texts if pairs is None else list(zip(texts, pairs, strict=True))
    made = other.encode_batch(given, add_special_tokens=special)
    return [(k, each) for k, whole in enumerate(made) for each in (whole, *whole.overflowing)]


def cut(other: Any, texts: list[str], pairs: list[str] | None, special: bool, options: dict[str, Any]) -> Any:
    """Those rows, cut by jittok's options."""
    how = {"stride": options["overlap"], "strategy": options["truncation"], "direction": options["side"]}
    other.enable_truncation(options["max_length"], **how)
    return library_rows(other, texts, pairs, special)


def attempt(call: Callable[[], Any]) -> Any:
    """What a call returns, or raises: a panic of the library is no Exception."""
    try:
        return call()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001
        return error


@pytest.mark.parametrize("name", LIVE)
@given(
    texts=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=4), paired=st.booleans(), length=st.integers(0, 16),
    overlap=st.integers(0, 3), side=st.sampled_from(["right", "left"]), special=st.booleans(),
    strategy=st.sampled_from(["longest_first", "only_first", "only_second"]), pad=st.sampled_from([None, 1, 8]),
)  # fmt: skip
def test_rows_are_those_of_tokenizers(
    name: str, both: Any, texts: Any, paired: bool, length: int, overlap: int, side: Any, special: bool, strategy: Any,
    pad: int | None,
) -> None:  # fmt: skip
    tok, other = both(name)
    firsts, seconds = [a for a, _ in texts], [b for _, b in texts] if paired else None
    options = {"max_length": length, "overlap": overlap, "side": side, "windows": True, "truncation": strategy}
    around = len(tok.pipeline.template(paired, special)) - 1 - paired
    one = len(tok.pipeline.template(False)) - 1 if special else 0
    found = attempt(lambda: tok.encode_batch(firsts, seconds, add_special=special, parse_special=True, **options))
    if isinstance(found, ValueError):
        # the library takes an overlap of a whole window, and any overlap where a window has no ids at all
        if length >= around and length > one and not 0 < overlap == length - one:
            other.no_truncation()
            assert isinstance(attempt(lambda: cut(other, firsts, seconds, special, options)), BaseException), found
        return
    other.no_padding()
    wanted = cut(other, firsts, seconds, special, options)
    assert found.to_list() == [row.ids for _, row in wanted]
    assert found.row_of.tolist() == [text for text, _ in wanted]
    if length <= around + 1:  # the library forgets whose ids these are where it empties a text
        return
    usual = special and {FIRST_TEXT: 0, SECOND_TEXT: 1}.items() <= dict(tok.pipeline.template(True)).items()
    bounds = found.offsets[1:-1]
    for k, (kinds, sequences, (text, row)) in enumerate(
        zip(np.split(found.types, bounds), np.split(found.sequences, bounds), wanted, strict=True)
    ):
        first = k == 0 or wanted[k - 1][0] != text  # of overflow the library loses what is not in a template
        assert kinds.tolist() == row.type_ids or not (first or usual)
        assert not first or sequences.tolist() == [-1 if each is None else each for each in row.sequence_ids]
    if pad and length % pad == 0:
        other.enable_padding(direction=side, pad_id=3, pad_type_id=2, pad_to_multiple_of=pad)
        wanted = library_rows(other, firsts, seconds, special)
        if len({len(row.ids) for _, row in wanted}) == 1:  # longer windows than first ones stay longer
            padded = found.to_padded(pad_id=3, pad_type=2, side=side, multiple_of=pad)
            assert padded.ids.tolist() == [row.ids for _, row in wanted]
            assert padded.mask.astype(int).tolist() == [row.attention_mask for _, row in wanted]
            assert not usual or padded.types.tolist() == [row.type_ids for _, row in wanted]
