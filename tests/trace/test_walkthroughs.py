"""The walkthroughs, number by number, from traces: what a debugger shows in llama.cpp, without one."""

from collections import Counter
from collections.abc import Callable
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

import jittok
from jittok.common.unicode.tables import flags, nfd
from jittok.vocab import Vocab

Facts = dict[str, Any]


@pytest.fixture(scope="module")
def traced(named_vocab: Callable[[str], Vocab]) -> Callable[..., Any]:
    """traced("t5", text, ...): a trace with one of the vocabularies of the walkthroughs."""
    known: dict[tuple[str, Any], jittok.Tokenizer] = {}

    def trace(name: str, text: str | bytes, changes: Any = (), **options: bool) -> Any:
        if (name, changes) not in known:
            known[name, changes] = jittok.Tokenizer(named_vocab(name)._replace(**dict(changes)))
        return known[name, changes].trace(text, **options)

    return trace


def raw(text: str) -> bytes:
    """The notes write the one byte that is invalid UTF-8 as an escape."""
    return text.encode().replace(rb"\xff", b"\xff")


def short(buffer: list[Facts]) -> list[list[Any]]:
    """A buffer as the notes write it."""
    return [
        ["text", part["offset"], part["length"]] if part["type"] == "raw_text" else ["token", part["token"]]
        for part in buffer
    ]


@pytest.mark.parametrize("session", ["t5", "bert", "llama2", "llama3"])
def test_answers_and_spans(session, walkthroughs, traced):
    facts = walkthroughs[session]
    for case in facts["answers"] + facts["align"]:
        trace = traced(
            facts["vocab"], raw(case["text"]), add_special=case["add_special"], parse_special=case["parse_special"]
        )
        assert trace.ids.tolist() == case["ids"], case
        if "spans" in case:
            assert trace.spans.tolist() == case["spans"], case


def test_t5_walks_through_the_character_map(walkthroughs, traced):
    for walk in walkthroughs["t5"]["walks"]:
        trace = traced("t5", bytes.fromhex(walk["bytes"]))
        rows = [row for row in trace.charsmap if row["walk"] == 0]
        for row, wanted in zip(rows, walk["rows"][1:], strict=True):
            plain = {key: value for key, value in wanted.items() if key != "stop"}
            assert {key: row[key] for key in plain} == plain
            assert row["stop"] == ("stop" in wanted)
        found = [row for row in rows if row["matched"]]
        assert [row["replacement"] for row in found] == ([walk["replacement"]] if walk["matched"] else [])
        first = trace.normalized[0]["steps"][0]
        if walk["matched"]:
            assert (first["rule"], first["length"]) == ("charsmap", walk["matched"])


def test_t5_normalizes_step_by_step(walkthroughs, traced):
    facts = walkthroughs["t5"]
    (record,) = traced("t5", facts["text"]).normalized
    assert record["text"] == facts["normalized"]
    assert record["length"] == facts["normalized_bytes"]
    assert len(record["text"]) == facts["normalized_code_points"]
    steps = [[step["offset"], step["length"], step["piece"]] for step in record["steps"]]
    assert steps == facts["normalization_steps"]
    so_far = [record["text"].encode()[: step["normalized_length"]].decode() for step in record["steps"]]
    assert so_far == facts["normalized_so_far"]


def test_t5_lattice(walkthroughs, traced):
    facts = walkthroughs["t5"]
    trace = traced("t5", facts["text"])
    told = ("token_id", "text", "score", "score_sum", "won")
    challenges = [
        [rival["input_offset"], row["position"], *(rival[key] for key in told)]
        for row in trace.lattice
        for rival in row["challengers"]
        if rival["token_id"] != trace.vocab.unk_id
    ]
    assert sorted(challenges) == sorted(facts["challenges"])
    cells = [[row["position"], row["token_id"], row["input_offset"], row["score_sum"]] for row in trace.lattice]
    assert cells == [cell for cell in facts["cells"] if cell[3] is not None]
    path = [
        [row["position"], row["token_id"], row["text"], row["input_offset"]] for row in trace.lattice if row["on_path"]
    ]
    assert path[:0:-1] == facts["backtrack"]
    for token, (text, score) in facts["tokens"].items():
        assert (trace.vocab.tokens[int(token)].decode(), float(trace.vocab.scores[int(token)])) == (text, score)


def test_bert_words_and_matches(walkthroughs, traced):
    facts = walkthroughs["bert"]
    trace = traced("bert-bge", facts["text"], add_special=True)
    assert [word["text"][1:] for word in trace.words] == facts["words"]
    steps = trace.normalized[0]["steps"]
    assert [step["code_point"] for step in steps] == facts["code_points"]
    assert [step["first_of_nfd"] for step in steps] == facts["nfd_first"]
    assert steps[0]["lower"] == facts["lower_of_A"]
    assert flags(steps[0]["first_of_nfd"]) == facts["flags_of_A"]
    first, last, target = facts["nfd_range"]
    assert {nfd(c) for c in range(first, last + 1)} == {target}
    ids, outputs = [trace.ids[0]], []
    for word, rows in groupby(trace.matches, lambda row: row["word"]):
        found = [[row["start"], row["stop"], row["text"], row["token_id"]] for row in rows]
        wanted = facts["matching"][word]
        assert found == wanted["matches"]
        assert trace.words[word]["text"] == wanted["with_mark"]
        assert len(trace.words[word]["text"].encode()) == wanted["bytes"]
        ids += [row[3] for row in found]
        outputs.append(list(ids))
    # the notes stop once in the middle of the first word
    assert all(found in outputs for found in facts["output_so_far"][2:-1])
    assert trace.ids.tolist() == facts["output_so_far"][-1]
    first = trace.matches[0]
    word = trace.words[0]["text"].encode()
    tried = [word[first["start"] : stop].decode() for stop in first["tried"]]
    assert tried[:-1] == facts["tried_before_first_match"]


def test_llama_2_buffer_after_each_special_token_and_each_insertion(walkthroughs, traced):
    facts = walkthroughs["llama2"]
    trace = traced("llama-spm", facts["text"], parse_special=True)
    states = [{"after": row["text"] or "start", "buffer": short(row["buffer"])} for row in trace.fragments]
    assert states == [{"after": each["after"], "buffer": each["buffer"]} for each in facts["states"]]
    assert [row["special"] for row in trace.fragments[1:]] == facts["special_order"]
    assert [row["text"] for row in trace.fragments[1:]] == facts["special_texts"]
    assert [short(buffer) for buffer in trace.insertions()] == facts["list_states"]
    plain = traced("llama-spm", "What is LoRA?", parse_special=True)
    assert [part[1:] for part in short(plain.fragments[-1]["buffer"])] == facts["fragment_of_plain_text"]


def test_llama_2_queue(walkthroughs, traced):
    facts = walkthroughs["llama2"]["spm"]
    trace = traced("llama-spm", "What is LoRA?")

    def entry(offer):
        return [offer["left"], offer["right"], offer["text"], offer["id"], offer["score"]]

    (symbols,) = trace.symbols
    assert symbols["symbols"] == facts["symbols"]
    assert [entry(offer) for offer in symbols["offers"]] == facts["initial_offers"]
    events = []
    for row in trace.merges:
        event = {"pop": [row["left"], row["right"], row["score"]]}
        event |= {"stale": True} if row["stale"] else {"merged": row["text"], "offers": [*map(entry, row["offers"])]}
        events.append(event)
    assert events == facts["events"]
    last = trace.merges[-1]["symbols"]
    assert [row["n"] for row in last] == facts["length"]
    assert [row["prev"] for row in last] == facts["prev"]
    assert [row["next"] for row in last] == facts["next"]
    assert [[row["symbol"], row["text"]] for row in trace.resegment] == facts["final"]


@pytest.mark.parametrize("ignore_merges", [True, False])
def test_llama_3_words_and_queues(ignore_merges, walkthroughs, traced):
    facts = walkthroughs["llama3"]
    trace = traced("llama-bpe", facts["text"], (("ignore_merges", ignore_merges),))
    assert [word["text"] for word in trace.words] == facts["words"]
    assert [word["length"] for word in trace.words] == facts["word_bytes"]
    for symbols, wanted in zip(trace.symbols, facts["per_word"], strict=True):
        assert symbols["whole"] == (ignore_merges and wanted["token"] >= 0)
        if symbols["whole"]:
            assert symbols["final"][0]["ids"] == [wanted["token"]]
            continue
        queue = wanted["by_merging"]

        def entry(offer):
            return [offer["left"], offer["right"], offer["text"], offer["rank"]]

        assert [entry(offer) for offer in symbols["offers"]] == queue["initial_offers"]
        events = []
        for row in trace.merges:
            if row["word"] != symbols["word"]:
                continue
            event = {"pop": entry(row)}
            event |= (
                {"stale": True} if row["stale"] else {"merged": row["text"], "offers": [*map(entry, row["offers"])]}
            )
            events.append(event)
        assert events == queue["events"]
        assert [part["text"] for part in symbols["final"]] == queue["final"]


def links(symbols: list[Facts]) -> Facts:
    return {key: [row[key] for row in symbols] for key in ("n", "prev", "next")}


def test_hello_list_after_the_merge_of_l_and_o(walkthroughs, vocab_of):
    facts = walkthroughs["hello"]
    tok = jittok.Tokenizer(vocab_of([b"H", b"e", b"l", b"o", b"lo"]))
    trace = tok.trace(facts["text"])
    (merge,) = trace.merges
    assert [merge["left"], merge["right"]] == facts["merge"]
    assert links(merge["symbols"]) == facts["after"]
    assert [row["text"] for row in merge["symbols"]] == facts["texts_after"]
    assert [row["symbol"] for row in trace.resegment] == facts["output"]


def test_a_b_c_d_e_list_after_the_merge_of_b_and_c(walkthroughs, vocab_of):
    facts = walkthroughs["abcde"]
    merges = [b"B C", b"A BC", b"BC D", b"A B"]
    tokens = [b"A", b"B", b"C", b"D", b"E", b"AB", b"BC", b"ABC", b"BCD"]
    tok = jittok.Tokenizer(vocab_of(tokens, type="bpe", pre_type=7, merges=merges, escape_whitespaces=False))
    trace = tok.trace(facts["text"])
    first = trace.symbols[0]["offers"][0]
    assert [first["left"], first["right"]] == facts["first_offer"]
    merge = trace.merges[0]
    assert [merge["left"], merge["right"]] == facts["merge"]
    assert links(merge["symbols"]) == facts["after"]
    text = merge["symbols"]
    offers = [[text[o["left"]]["text"], text[o["right"]]["text"], o["left"], o["right"]] for o in merge["offers"]]
    assert offers == facts["offers_after"]


def test_lead_bytes_say_how_long_a_symbol_is(walkthroughs, vocab_of):
    table = walkthroughs["lead_byte"]["table"]
    tok = jittok.Tokenizer(vocab_of([bytes([b]) for b in range(1, 256)], type="spm"))
    for nibble, size in enumerate(table):
        lead = max(nibble << 4, 1)
        (symbols,) = tok.trace(bytes([lead, 1, 1, 1])).symbols
        assert len(symbols["symbols"]) == 5 - size
    example = walkthroughs["lead_byte"]["example"]
    assert table[example["high_nibble"]] == example["length"]
    assert example["byte"] >> 4 == example["high_nibble"]


def test_training_starts_from_the_symbols_of_a_trace(walkthroughs, traced):
    facts = walkthroughs["bpe_training"]
    symbols = [symbol for row in traced("gpt-2", facts["corpus"]).symbols for symbol in row["symbols"]]
    letters = [" " if symbol == "Ġ" else symbol for symbol in symbols]
    assert "".join(letters) == facts["corpus"]
    assert Counter(letters) == facts["letters"]
    pairs = Counter(map("".join, pairwise(letters)))
    assert pairs == facts["pairs"]
    assert {pair: count for pair, count in pairs.items() if " " not in pair} == facts["pairs_within_words"]


@pytest.mark.parametrize("name", ["mistral-v1", "llama-spm"])
def test_what_was_merged_is_a_token_so_rev_merge_is_never_consulted(name, walkthroughs, traced):
    assert walkthroughs["rev_merge"]["consulted"].startswith("never")
    trace = traced(name, "What is LoRA? caf\u00e9 \U00013000\u0900 \u65e5\u672c 1234567 AB " + "a" * 40)
    assert any(row["by"] == "bytes" for row in trace.resegment)
    for row in trace.resegment:
        assert row["by"] == "token" or len(row["text"]) == 1


def test_every_walkthrough_has_a_test(walkthroughs):
    text = Path(__file__).read_text(encoding="utf-8")
    assert {name for name in walkthroughs if f'walkthroughs["{name}"]' in text} == set(walkthroughs)
