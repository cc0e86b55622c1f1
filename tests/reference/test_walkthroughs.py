"""The walkthroughs, number by number: what a debugger shows in llama.cpp is what the references do."""

from collections.abc import Callable
from typing import Any

import pytest

from jittok.reference import merging, steps
from jittok.reference.models import bpe, spm, ugm, wpm
from jittok.reference.normalize import xcda
from jittok.reference.special import Fragment, partition
from jittok.reference.text import Mapped, mapped
from jittok.reference.tokenize import align, detokenize, tokenize
from jittok.vocab import Vocab

SESSIONS = ("t5", "bert", "llama2", "llama3")
Named = Callable[[str], Vocab]
Facts = dict[str, Any]


def raw(text: str) -> bytes:
    """The notes write the one byte that is invalid UTF-8 as an escape."""
    return text.encode().replace(rb"\xff", b"\xff")


def whole(text: str) -> Mapped:
    data = text.encode()
    return mapped(data, 0, len(data))


class Log:
    """What `merge` tells, in the form of the recorded sessions."""

    def __init__(self, entry: Callable[[merging.Pair], list[Any]], pop: Callable[[merging.Pair], list[Any]]) -> None:
        self.entry, self.pop = entry, pop
        self.offers: list[Any] = []
        self.events: list[Any] = []

    def __call__(self, what: str, pair: merging.Pair, symbols: merging.Symbols) -> None:
        if what == merging.OFFERED:
            (self.events[-1]["offers"] if self.events else self.offers).append(self.entry(pair))
        elif what == merging.STALE:
            self.events.append({"pop": self.pop(pair), "stale": True})
        else:
            merged = symbols.piece(pair.left).decode()
            self.events.append({"pop": self.pop(pair), "merged": merged, "offers": []})


@pytest.mark.parametrize("session", SESSIONS)
def test_answers_are_those_of_llama_cpp(session: str, walkthroughs: Facts, named_vocab: Named) -> None:
    facts = walkthroughs[session]
    vocab = named_vocab(facts["vocab"])
    for case in facts["answers"]:
        found = tokenize(vocab, raw(case["text"]), add_special=case["add_special"], parse_special=case["parse_special"])
        assert found == case["ids"], case


@pytest.mark.parametrize("session", SESSIONS)
def test_spans_are_those_recorded(session: str, walkthroughs: Facts, named_vocab: Named) -> None:
    facts = walkthroughs[session]
    vocab = named_vocab(facts["vocab"])
    for case in facts["align"]:
        ids, spans = align(
            vocab, raw(case["text"]), add_special=case["add_special"], parse_special=case["parse_special"]
        )
        assert (ids, [list(span) for span in spans]) == (case["ids"], case["spans"]), case


def test_t5_what_is_lora_is_363_19_1815_4763_58(named_vocab: Named) -> None:
    vocab = named_vocab("t5")
    assert tokenize(vocab, b"What is LoRA?") == [363, 19, 1815, 4763, 58]
    assert detokenize(vocab, [363, 19, 1815, 4763, 58]) == b"What is LoRA?"


def test_t5_facts_of_the_vocabulary(walkthroughs: Facts, named_vocab: Named) -> None:
    facts, vocab = walkthroughs["t5"], named_vocab("t5")
    chars = xcda.charsmap(vocab)
    assert len(vocab) == facts["vocab_size"]
    assert len(chars.units) == facts["charsmap"]["units"]
    assert len(chars.replacements) == facts["charsmap"]["replacement_bytes"]
    assert xcda.base(chars.units[0]) == facts["charsmap"]["root_base"]
    assert ugm.tables(vocab).unknown_score == facts["scores"]["unknown"]
    for token, (text, score) in facts["tokens"].items():
        assert (vocab.tokens[int(token)].decode(), float(vocab.scores[int(token)])) == (text, score)


def test_t5_walks_through_the_character_map(walkthroughs: Facts, named_vocab: Named) -> None:
    chars = xcda.charsmap(named_vocab("t5"))
    for walk in walkthroughs["t5"]["walks"]:
        text = bytes.fromhex(walk["bytes"])
        steps = list(chars.walk(text, 0))
        for step, row in zip(steps, walk["rows"][1:], strict=True):
            wanted = {key: value for key, value in row.items() if key != "stop"}
            assert {key: getattr(step, key) for key in wanted} == wanted
            assert ("stop" in row) == (step.label != step.byte)
        size, value = chars.longest_key(text, 0)
        assert (size, value) == (walk["matched"], walk["value"])
        if size:
            assert chars.replacement(value, 0).decode() == walk["replacement"]


def test_t5_normalizes_step_by_step(walkthroughs: Facts, named_vocab: Named) -> None:
    facts, vocab = walkthroughs["t5"], named_vocab("t5")
    text = facts["text"].encode()
    for at, used, piece in facts["normalization_steps"]:
        assert ugm.step(vocab, text, at) == (piece.encode(), used)
    for (at, used, _), so_far in zip(facts["normalization_steps"], facts["normalized_so_far"], strict=True):
        assert ugm.normalize(vocab, mapped(text, 0, at + used)).text.decode() == so_far


def test_t5_lattice_has_the_recorded_challenges_cells_and_path(walkthroughs: Facts, named_vocab: Named) -> None:
    facts, vocab = walkthroughs["t5"], named_vocab("t5")
    seen: list[Any] = []
    cells = ugm.lattice(vocab, facts["normalized"].encode(), seen.append)
    found = [
        [c.start, c.stop, c.token, vocab.tokens[c.token].decode(), c.score, c.total, c.won]
        for c in seen
        if c.token != vocab.unk_id
    ]
    assert found == facts["challenges"]
    for place, token, start, score in facts["cells"]:
        assert cells[place] == (token, start, ugm.LOWEST if score is None else score)
    path = [[c.stop, c.id, vocab.tokens[c.id].decode(), c.start] for c in reversed(ugm.best_path(cells))]
    assert path == facts["backtrack"]


def test_bert_words_and_matches_of_awhat_is_lora(walkthroughs: Facts, named_vocab: Named) -> None:
    facts, vocab = walkthroughs["bert"], named_vocab("bert-bge")
    words = wpm.words(vocab, whole(facts["text"]))
    assert [word.text[3:].decode() for word in words] == facts["words"]
    ids = [101]
    outputs = [list(ids)]
    for word, wanted in zip(words, facts["matching"], strict=True):
        text = bytes(word.text)
        matches = wpm.match(vocab, text)
        assert matches is not None
        found = [[m.start, m.stop, text[m.start : m.stop].decode(), m.id] for m in matches]
        assert found == wanted["matches"]
        ids += [m.id for m in matches]
        outputs.append(list(ids))
    assert outputs[1] == facts["output_so_far"][1][:2] + outputs[1][2:]
    assert [*ids, 102] == facts["output_so_far"][-1]


def test_bert_tries_longer_texts_first(walkthroughs: Facts, named_vocab: Named) -> None:
    facts, vocab = walkthroughs["bert"], named_vocab("bert-bge")
    word, tried = "\u2581awhat".encode(), []
    wpm.match(vocab, word, lambda start, stop, token: tried.append((word[start:stop].decode(), token)))
    first = next(k for k, (_, token) in enumerate(tried) if token is not None)
    assert [text for text, _ in tried[:first]] == facts["tried_before_first_match"]


def test_llama_2_looks_for_special_tokens_longest_first(walkthroughs: Facts, named_vocab: Named) -> None:
    facts, vocab = walkthroughs["llama2"], named_vocab("llama-spm")
    assert vocab.special_tokens.tolist() == facts["special_order"]
    states: list[tuple[int, list[Fragment]]] = []
    text = facts["text"].encode()
    fragments = partition(vocab, text, True, lambda token, found: states.append((token, list(found))))
    for (token, found), state in zip(states, facts["states"][1:], strict=True):
        shown = [["text", f.start, f.stop - f.start] if f.token is None else ["token", f.token] for f in found]
        assert (token, shown) == (state["id"], state["buffer"])
    assert [text[f.start : f.stop].decode() if f.token is None else f.token for f in fragments] == facts["fragments"]


def test_llama_2_queue_of_what_is_lora(walkthroughs: Facts, named_vocab: Named) -> None:
    facts, vocab = walkthroughs["llama2"]["spm"], named_vocab("llama-spm")
    log = Log(
        lambda pair: [pair.left, pair.right, pair.made.decode(), vocab.ids[pair.made], -pair.priority],
        lambda pair: [pair.left, pair.right, -pair.priority],
    )
    text = bytes(steps.words(vocab, whole("What is LoRA?"))[0].text)
    assert [piece.decode() for piece in merging.Symbols(merging.characters(text)).pieces()] == facts["symbols"]
    symbols = spm.merge(vocab, text, log)
    assert (log.offers, log.events) == (facts["initial_offers"], facts["events"])
    assert (symbols.n, symbols.prev, symbols.next) == (
        facts["length"],
        facts["prev"],
        facts["next"],
    )
    assert [piece.decode() for piece in symbols.pieces()] == [piece for _, piece in facts["final"]]


def test_llama_3_words_and_queues_of_what_is_lora(walkthroughs: Facts, named_vocab: Named) -> None:
    facts, vocab = walkthroughs["llama3"], named_vocab("llama-bpe")
    words = [bytes(word.text) for word in steps.words(vocab, whole(facts["text"]))]
    assert [word.decode() for word in words] == facts["words"]
    for word, wanted in zip(words, facts["per_word"], strict=True):
        assert vocab.ids.get(word, -1) == wanted["token"]
        assert bpe.is_whole(vocab, word) == (wanted["token"] >= 0)
        log = Log(
            lambda pair: [pair.left, pair.right, pair.made.decode(), pair.priority],
            lambda pair: [pair.left, pair.right, pair.made.decode(), pair.priority],
        )
        symbols = bpe.merge(vocab, word, log)
        merging_facts = wanted["by_merging"]
        assert log.offers == merging_facts["initial_offers"]
        assert log.events == merging_facts["events"]
        assert [piece.decode() for piece in symbols.pieces()] == merging_facts["final"]
