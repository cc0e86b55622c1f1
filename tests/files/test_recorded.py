"""Files answer as their own libraries did: the small recorded sets always, all of them where they lie near."""

import pytest
from recorded_files import HERE, SHARED

import jittok
from jittok.files import read_pipeline
from jittok.reference.pipeline import Runner

NAMES = sorted(path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz"))
ELSEWHERE = sorted(
    {path.name.removesuffix(".jsonl.xz") for path in (SHARED / "golden-files").glob("*.jsonl.xz")} - {*NAMES}
)
RULES = {"ff": (False, False), "tf": (True, False), "ft": (False, True), "tt": (True, True)}


def check(found):
    tok = jittok.load(found.path, cache=False, **found.options)
    plain = Runner(read_pipeline(found.path, **found.options))
    cases = [row for row in found.rows if row["kind"] == "case"]
    keys = {key for row in cases for key in row} | {"ff"}
    for key, (add, parse) in RULES.items():
        wanted = [row.get(key, row["ff"]) for row in cases]
        if key not in keys:
            continue
        rows = tok.encode_batch([row["text"] for row in cases], add_special=add, parse_special=parse).to_list()
        assert [row["text"] for row, ids, want in zip(cases, rows, wanted, strict=True) if ids != want] == []
        for row, want in zip(cases[::5], wanted[::5], strict=True):
            assert tok.encode(row["text"], add_special=add, parse_special=parse).tolist() == want, row["text"]
            assert plain.around(plain.encode(row["text"], parse), None, add) == want, row["text"]
    for row in cases:
        if "pair" in row:
            ids = tok.encode_pair(row["text"], row["pair"], add_special=True, parse_special=True)
            assert ids.tolist() == row["pair_tt"], row["text"]
        for skip, want in zip((False, True), row.get("detok", ()), strict=False):
            ids = row.get("tt", row["ff"])
            assert tok.decode(ids, skip_special=skip) == (row["text"] if want is None else want), row["text"]
    facts = next(row for row in found.rows if row["kind"] == "facts")
    assert tok.vocab_size == facts["vocab_size"]


@pytest.mark.every_set
@pytest.mark.parametrize("name", NAMES)
def test_ids_pairs_and_text_are_those_of_the_files_own_library(recorded, name):
    check(recorded(name))


@pytest.mark.recorded_elsewhere
@pytest.mark.slow
@pytest.mark.parametrize("name", ELSEWHERE or [pytest.param("", marks=pytest.mark.skip(reason="no larger sets here"))])
def test_the_same_of_the_large_recorded_sets(recorded, name):
    check(recorded(name))
