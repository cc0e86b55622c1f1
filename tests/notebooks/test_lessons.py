"""Lessons show the same in a fresh kernel as when they were looked at; exercises can be solved, but not by anything.

`save.py` beside this file runs them and saves what they show.
"""

import base64
import io
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from PIL import Image

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
MOST = 100_000
"""Bytes of one notebook."""
LESSONS = sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb"))
MACHINE = re.compile(r"/(home|root|tmp|work|opt|usr|Users|private)/|[A-Z]:\\\\")
PEERS = ("gigatoken", "sentencepiece", "tiktoken", "tokenizers")

ANSWERS: dict[str, dict[str, tuple[str, str]]] = {
    "01_first_tokens": {
        "word": ("'possible'", "'the'"),
        "marked": ("'<s>'", "'text'"),
        "left_padded": ("rows.to_padded(12, pad_id=0, side='left')[0]", "rows.to_padded(12, pad_id=0)[0]"),
    },
    "02_special_tokens_and_fragments": {
        "only_marks": ("'<s></s>'", "'<s>'"),
        "raw_fragments": ("3", "5"),
        "always_cut": ("'<extra_id_0>'", "'a</s>'"),
    },
    "03_bpe": {
        "crowded": ("' Sports'", "' Purple'"),
        "learned_first": ("('a', 'n')", "('n', 'a')"),
        "two_symbols": ("'lowest'", "'low'"),
    },
    "04_spm": {
        "three_bytes": ("'\\u0900'", "'a'"),
        "mostly_stale": ("'Hello'", "'straightforward'"),
        "many_a": ("11", "64"),
    },
    "05_wordpiece": {
        "long_word": ("'communication'", "'antidisestablishment'"),
        "same_ids": ("('Müller', 'muller')", "('a', 'b')"),
        "unknown_word": ("'hello\\U00012000'", "'hello'"),
    },
    "06_unigram_and_xcda": {
        "grows": ("'½'", "'a'"),
        "not_greedy": ("'misunderstanding'", "'thanks'"),
        "unknown_score": ("-23.6", "-13.6"),
    },
    "07_flat_arrays": {
        "hello_node": ("walk('▁hello', str)[-1]", "1"),
        "share_of_three": ("0.8", "0.3"),
        "longest": (
            "lambda text: next(int(units[n, VALUE]) for n in reversed(walk(text, str)) if units[n, VALUE] >= 0)",
            "lambda text: 1037",
        ),
    },
    "08_corpus": {
        "longest": ("int(opened.lengths().argmax())", "int(opened.lengths().argmin())"),
        "one_shard": ("corpus.Options(formats=('arrow',))", "corpus.Options(formats=('npy',))"),
        "padding": ("share_of_padding()", "0.9"),
    },
    "09_compare_vocabularies": {
        "most_tokens": ("'gpt-2'", "'bert'"),
        "most_bytes": ("'Japanese'", "'English'"),
        "dense": (
            "'Understanding international communication responsibilities'",
            "'I am, as it is, a man of no or few big words.'",
        ),
    },
    "10_speed": {
        "fastest": ("gpt2.encode_batch", "lambda texts: [gpt2.encode(text) for text in texts for _ in range(2)]"),
        "total": ("lambda texts: int(gpt2.count_batch(texts).sum())", "len"),
        "documents_per_second": (
            "len(documents) / min(seconds(lambda: gpt2.encode_batch(documents)) for _ in range(10))",
            "1e9",
        ),
    },
    "11_training": {
        "smallest": (
            "next(size for size in range(258, 421) if trained.cut(size).tokenizer.encode(' comet').size == 1)",
            "300",
        ),
        "first_zq": ("['zq zq']", "['qz']"),
        "long_word": ("' kuunnellen'", "' the'"),
    },
    "12_own_files": {
        "one_character": ("'\\u0940'", "'a'"),
        "cut_out": ("'<tool>'", "'tool'"),
        "same_words": (
            'r"\'(?:s|t|re|ve|m|ll|d)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"',
            'DIGITS.replace("\'s", "\'(?:s)")',
        ),
    },
}
"""Notebook -> name -> (a right answer, a wrong one), as expressions over the names of the notebook."""
WORDS = ("right", "not yet, try again", "no answer yet")


def cells(name: str) -> list[dict[str, Any]]:
    """The code cells as they are saved."""
    notebook: dict[str, Any] = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def said(cell: dict[str, Any]) -> str:
    """What a cell shows, without pictures, which hold fonts, and without the note that kernels are compiled."""
    shown = []
    for output in cell["outputs"]:
        parts = [output.get("text", "")] if output["output_type"] == "stream" else output.get("data", {}).values()
        names = ["text"] if output["output_type"] == "stream" else output.get("data", {}).keys()
        shown += ["".join(part) for name, part in zip(names, parts, strict=True) if not name.startswith("image/")]
    return re.sub(r"^jittok: compiling kernel.*\n", "", "".join(shown), flags=re.MULTILINE)


def pictures(cell: dict[str, Any]) -> int:
    return sum("image/png" in output.get("data", {}) for output in cell["outputs"])


def grounds(cell: dict[str, Any]) -> list[int]:
    """How opaque the ground of each figure is, 0 to 255."""
    shown = ["".join(o["data"]["image/png"]) for o in cell["outputs"] if "image/png" in o.get("data", {})]
    images = [Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA") for png in shown]
    return [image.getpixel((1, 1))[3] for image in images]


def is_timed(cell: dict[str, Any]) -> bool:
    """Whether what a cell shows depends on the machine."""
    return "timed" in cell["metadata"].get("tags", ())


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_is_short_and_shows_nothing_of_the_machine_it_was_run_on(name):
    path = NOTEBOOKS / f"{name}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert len(notebook["cells"]) < 20
    assert path.stat().st_size < MOST
    code = cells(name)
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        for output in cell["outputs"]:
            assert output["output_type"] != "error"
            assert output.get("name") != "stderr"
        assert not MACHINE.search(said(cell))
        assert not MACHINE.search("".join(cell["source"]))
        assert not any(grounds(cell))  # dark pages show it as well
    assert all(is_timed(cell) for cell in code if re.search(r"MB/s|microseconds| ns a", said(cell)))
    assert "will learn" in "".join(notebook["cells"][0]["source"])
    assert "## Exercises" in "".join(notebook["cells"][-3]["source"])


@pytest.mark.process
@pytest.mark.parametrize("name", LESSONS)
def test_a_fresh_kernel_shows_the_same_and_judges_answers(name, tmp_path, monkeypatch):
    monkeypatch.setenv("JITTOK_PROGRESS", "off")  # whether a call lasts depends on the machine
    """The lesson on speed runs without its peers here: it must, and with them it is run by `make test`."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    count = len(notebook.cells)
    if name == "10_speed":
        hidden = f"import sys\nsys.modules.update(dict.fromkeys({PEERS}))\n"
        notebook.cells[0].source = hidden + notebook.cells[0].source
    exercises = notebook.cells[-1].source
    for which in range(len(WORDS)):
        answers = [f"{what} = {[*both, '...'][which]}" for what, both in ANSWERS[name].items()]
        notebook.cells.append(nbformat.v4.new_code_cell("\n".join(answers) + "\n" + exercises))
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", coalesce_streams=True, resources=where).execute()
    again = json.loads(nbformat.writes(notebook))["cells"]
    for before, after in zip(cells(name), again[:count], strict=True):
        if not is_timed(before):
            assert said(after) == said(before), "".join(before["source"])
        assert pictures(after) == pictures(before)
    for word, cell in zip(WORDS, again[count:], strict=True):
        assert said(cell).splitlines()[-3:] == [f"exercise {number}: {word}" for number in (1, 2, 3)]
