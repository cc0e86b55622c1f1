"""Plans, records and manifests that somebody else has written, or changed: they are refused in words, or not believed,
and nothing is written elsewhere."""

from __future__ import annotations

import copy
import json
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import make_texts, write_jsonl

import jittok.corpus
from jittok.corpus import Options, compile_corpus, corpus_status, finish_corpus, plan_corpus, run_corpus, verify
from jittok.corpus.shards.manifest import manifest_text, read_manifest
from jittok.corpus.tasks.plan import Plan, Task
from jittok.errors import CorpusError, JittokError

pytest.importorskip("pyarrow")
pytest.importorskip("filelock")
SAID = (JittokError, FileNotFoundError, PermissionError)
OPTIONS = Options(formats=("npy", "megatron"), range_bytes=2_000, shard_bytes=6_000, on_error="skip", keep=("id",))
VALUES: list[Any] = [
    None, True, 0, -1, 1, 2**31, 2**62, 2**63, 2**70, 1.5, float("nan"), "", "../../x", "/etc/passwd", "a" * 300, "\0",
    "\ud800", [], {}, [1], {"a": 1}, "npy", "file:///etc/passwd", [[]], ["../x"],
]  # fmt: skip


class Begun(NamedTuple):
    source: Path
    planned: Path
    ran: Path
    finished: Path


@pytest.fixture(scope="module")
def begun(tmp_path_factory: Any, tok: Any) -> Begun:
    folder = tmp_path_factory.mktemp("begun")
    source = write_jsonl(folder / "a.jsonl", make_texts(60, 1))
    places = [folder / name for name in ("planned", "ran", "finished")]
    for step, out in enumerate(places):
        plan_corpus([source], tok, out, OPTIONS, parts=3)
        if step:
            run_corpus(out, tok)
    finish_corpus(places[2])
    return Begun(source, *places)


def paths(fact: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all that a fact has in it."""
    inner = fact.items() if isinstance(fact, dict) else enumerate(fact) if isinstance(fact, list) else ()
    return [path for key, value in inner for path in [(*before, key), *paths(value, (*before, key))]]


def forged(fact: Any, rng: random.Random) -> Any:
    """The same with something in it removed, added to, or in place of which another value stands."""
    made = copy.deepcopy(fact)
    *before, last = rng.choice(paths(made))
    place = made
    for key in before:
        place = place[key]
    how, there = rng.random(), place[last]
    if how < 0.15:
        del place[last]
    elif how < 0.4 and type(there) is int:
        place[last] = there + rng.choice([-1, 1, 7, 1000, -1000])
    elif how < 0.5 and isinstance(place, list):
        place.append(copy.deepcopy(rng.choice(place)))
    else:
        place[last] = rng.choice(VALUES)
    return made


def named_anew(fact: Any) -> Any:
    """A plan with the id that it would have."""
    try:
        return {**fact, "id": Plan(fact["plan"], tuple(Task(*task) for task in fact["tasks"])).id}
    except (LookupError, TypeError, AttributeError):
        return fact


def all_steps(out: Path, tok: Any) -> None:
    for step in (corpus_status, lambda out: run_corpus(out, tok, threads=1), finish_corpus):
        with suppress(*SAID):
            step(out)


def all_readers(out: Path, tok: Any, source: Path) -> None:
    for read in (
        lambda: list(jittok.corpus.open(out, tok)),
        lambda: jittok.corpus.fields(out)["id"][0],
        lambda: jittok.corpus.sequences(out, 16)[:],
        lambda: jittok.corpus.sequences(out, 16, pack="best", pad_id=0, shuffle="documents", format="megatron")[0],
        lambda: verify(out, tok, hashes_only=True),
        lambda: compile_corpus([source], tok, out, OPTIONS),
    ):
        with suppress(*SAID):
            read()


def forge(kind: str, begun: Begun, out: Path, tok: Any, rng: random.Random) -> None:
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree({"plan": begun.planned, "record": begun.ran, "manifest": begun.finished}[kind], out)
    if kind == "manifest":
        text = manifest_text(forged(dict(read_manifest(out)), rng))
        (out / "manifest.json").write_bytes(text)
        return all_readers(out, tok, begun.source)
    path = out / ".jittok" / "plan.json"
    if kind == "record":
        path = rng.choice(sorted((out / ".jittok" / "t").glob("*.done")))
    fact = forged(json.loads(path.read_bytes()), rng)
    path.write_text(json.dumps(named_anew(fact) if kind == "plan" else fact))
    return all_steps(out, tok)


@pytest.mark.parametrize("kind", ["plan", "record", "manifest"])
@pytest.mark.parametrize("seed", [1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 20))])
def test_what_others_have_changed_is_refused_in_words(
    begun: Begun, tmp_path: Path, tok: Any, kind: str, seed: int
) -> None:
    rng = random.Random(seed)
    for _ in range(5 if seed == 1 else 20):
        forge(kind, begun, tmp_path / "out", tok, rng)
        assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda fact: fact["plan"].update(rules=False), "TypeError"),
        (lambda fact: fact["plan"]["vocab"].update(file=7), "TypeError"),
        (lambda fact: fact["plan"]["options"].update(keep=["\ud800"]), "a name that is valid UTF-8"),
        (lambda fact: fact["plan"]["inputs"][0].update(bytes=-1), "the number -1"),
        (lambda fact: fact["tasks"][0].__setitem__(2, 2**63), "the number"),
    ],
)
def test_plans_that_nobody_could_have_made(begun: Begun, tmp_path: Path, tok: Any, change: Any, said: str) -> None:
    out = tmp_path / "out"
    shutil.copytree(begun.planned, out)
    path = out / ".jittok" / "plan.json"
    fact = json.loads(path.read_bytes())
    change(fact)
    path.write_text(json.dumps(named_anew(fact)))
    with pytest.raises(CorpusError, match=said):
        run_corpus(out, tok)


def test_a_digest_that_is_no_text_is_no_digest(begun: Begun, tmp_path: Path, tok: Any) -> None:
    out = tmp_path / "out"
    shutil.copytree(begun.finished, out)
    fact = dict(read_manifest(out))
    fact["shards"][0]["files"][0]["sha256"] = "\ud800"
    (out / "manifest.json").write_bytes(manifest_text(fact))
    with pytest.raises(CorpusError, match="a manifest that jittok wrote"):
        jittok.corpus.open(out, tok)
