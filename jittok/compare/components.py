"""Compares the components of two tokenizers, one by one, as sets and tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jittok.common.display.terminal import visible
from jittok.common.pipeline import Pipeline
from jittok.common.pipeline.models import Merges, Pieces, Ranks, Unigram, WordPiece
from jittok.common.pipeline.pipeline import FIRST_TEXT, canonical
from jittok.common.pipeline.steps import Cut
from jittok.compare.product import Verdict, compare_splitters, stages_of
from jittok.compare.spelling import SpelledTokens, cut_out
from jittok.reference.tokenize import around
from jittok.vocab import NO_TOKEN, Vocab

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer

SAME, DIFFERS, NOT_COMPARED = "same", "differs", "not compared"
EXAMPLES = 5
Made = Pipeline | Vocab


@dataclass
class Part:
    """One component of both: the verdict, and its reason in words."""

    name: str
    verdict: str
    says: str
    examples: list[str] = field(default_factory=list)


def compare_parts(
    toks: tuple[Tokenizer, Tokenizer], spelled: tuple[SpelledTokens, SpelledTokens]
) -> tuple[list[Part], Verdict]:
    """All components, and the verdict on the splitters."""
    a, b = (tok.vocab for tok in toks)
    split, verdict = _splitters(a, b)
    parts = [
        _vocabularies(spelled), _added(toks, spelled), _normalizers(a, b), split, _models(a, b), _arounds(a, b),
    ]  # fmt: skip
    return parts, verdict


def _vocabularies(spelled: tuple[SpelledTokens, SpelledTokens]) -> Part:
    ids = [{text: token for token, text in enumerate(side.texts) if text} for side in spelled]
    only = [sorted(ids[k].keys() - ids[1 - k].keys(), key=ids[k].__getitem__) for k in range(2)]
    both = ids[0].keys() & ids[1].keys()
    other = sum(ids[0][text] != ids[1][text] for text in both)
    says = (
        f"{len(both)} tokens in both, {other} of them with another id; {len(only[0])} in A alone, {len(only[1])} in B"
    )
    shown = [
        f"{name} alone: {visible(text)}" for name, texts in zip("AB", only, strict=True) for text in texts[:EXAMPLES]
    ]
    return Part("tokens", DIFFERS if only[0] or only[1] or other else SAME, says, shown)


def plainly_cut(tok: Tokenizer) -> set[bytes]:
    """The texts of tokens that are found in a text even without `parse_special`."""
    vocab = tok.vocab
    if isinstance(vocab, Pipeline):
        texts = {token.content.encode() for token in vocab.added if not token.special and not token.unsearched}
        if isinstance(vocab.model, Pieces):
            users = np.flatnonzero(vocab.model.types == 4).tolist()
            texts |= {vocab.model_tokens[token] or b"" for token in users}
        return texts
    special = vocab.special_tokens[(vocab.attributes[vocab.special_tokens] & 16) != 0].tolist()
    return {vocab.tokens[token] for token in special}


def _added(toks: tuple[Tokenizer, Tokenizer], spelled: tuple[SpelledTokens, SpelledTokens]) -> Part:
    plain = [plainly_cut(tok) for tok in toks]
    known = [
        {side.texts[token] for token in np.flatnonzero(cut_out(tok))} for tok, side in zip(toks, spelled, strict=True)
    ]
    says = (
        f"{len(plain[0])} and {len(plain[1])} are cut out of any text, {len(plain[0] ^ plain[1])} by one alone; with "
        f"special tokens {len(known[0])} and {len(known[1])}, {len(known[0] ^ known[1])} by one alone"
    )
    flags = all(isinstance(tok.vocab, Pipeline) for tok in toks) and _flags(toks[0].vocab) != _flags(toks[1].vocab)
    if flags and plain[0] == plain[1] and known[0] == known[1]:
        says += "; their flags differ"
    shown = [f"{'AB'[text in plain[1]]} alone: {visible(text)}" for text in sorted(plain[0] ^ plain[1])[:EXAMPLES]]
    differs = plain[0] != plain[1] or known[0] != known[1] or flags
    return Part("added tokens", DIFFERS if differs else SAME, says, shown)


def _flags(pipeline: Any) -> set[tuple[Any, ...]]:
    return {token._replace(id=0) for token in pipeline.added}


def _same_data(a: object, b: object) -> bool:
    return b"".join(canonical(a)) == b"".join(canonical(b))


def _same_steps(a: Vocab, b: Vocab) -> bool:
    """Whether two GGUF vocabularies have the same steps before patterns split a text."""
    return _same_data(*(_before_patterns(made) for made in (a, b)))


def _before_patterns(vocab: Vocab) -> tuple[Any, ...]:
    """The steps of a GGUF vocabulary without its patterns: some steps of a splitter change the text, too."""
    return tuple(step for step in (*vocab.pipeline.normalize, *vocab.pipeline.split) if not isinstance(step, Cut))


def plain_bytes(vocab: Made) -> bool:
    """Whether the model is BPE over bytes, without a normalizer."""
    if isinstance(vocab, Vocab):
        return vocab.type == "bpe" and vocab.model == "gpt2"
    return isinstance(vocab.model, Merges | Ranks) and not vocab.normalize


def _normalizers(a: Made, b: Made) -> Part:
    name = "normalizer"
    if isinstance(a, Pipeline) and isinstance(b, Pipeline):
        same = _same_data(a.normalize, b.normalize)
    elif isinstance(a, Vocab) and isinstance(b, Vocab):
        same = _same_steps(a, b) or (plain_bytes(a) and plain_bytes(b))
    elif plain_bytes(a) and plain_bytes(b):
        same = True
    elif plain_bytes(a) or plain_bytes(b):
        same = False
    else:
        return Part(name, NOT_COMPARED, f"A: {_normalizer(a)}; B: {_normalizer(b)}")
    return Part(
        name, SAME if same else DIFFERS, _normalizer(a) if same else f"A: {_normalizer(a)}; B: {_normalizer(b)}"
    )


def _normalizer(vocab: Made) -> str:
    if plain_bytes(vocab):
        return "none"
    if isinstance(vocab, Vocab):
        return f"llama.cpp's of type {vocab.type} ({_names(_before_patterns(vocab))})"
    return _names(vocab.normalize)


def _names(steps: Iterable[Any]) -> str:
    return ", ".join(type(step).__name__ for step in steps) or "none"


def _splitters(a: Made, b: Made) -> tuple[Part, Verdict]:
    name, nothing = "splitter", Verdict(None, 0, [])
    if isinstance(a, Pipeline) and isinstance(b, Pipeline) and _same_data(a.split, b.split):
        return Part(name, SAME, "the same steps"), nothing
    if isinstance(a, Vocab) and isinstance(b, Vocab) and (a.type, a.pre_type) == (b.type, b.pre_type):
        return Part(name, SAME, "the same pre-tokenizer"), nothing
    stages = stages_of(a), stages_of(b)
    if stages[0] is None or stages[1] is None:
        return Part(name, NOT_COMPARED, "one of the two is no list of automata"), nothing
    found = compare_splitters(stages[0], stages[1])
    if found.same is None:
        return Part(name, NOT_COMPARED, "the product of their automata is not finite"), found
    if found.same:
        return Part(name, SAME, f"every text is cut alike: proved, the product has {found.states} states"), found
    return Part(name, DIFFERS, f"{found.states} states of the product looked at", _texts(found.texts)), found


def _texts(texts: list[list[list[int]]]) -> list[str]:
    return [repr("".join(chr(members[0]) for members in text)) for text in texts[:EXAMPLES]]


def merge_list(vocab: Made) -> list[tuple[bytes, bytes]] | None:
    """Merges as the texts of their parts, lowest rank first; None for a model without merges."""
    if isinstance(vocab, Pipeline):
        if not isinstance(vocab.model, Merges):
            return None
        tokens = [text or b"" for text in vocab.model_tokens]
        pairs = zip(vocab.model.left.tolist(), vocab.model.right.tolist(), strict=True)
        return [(tokens[left], tokens[right]) for left, right in pairs]
    if vocab.type != "bpe":
        return None
    known = vocab.ids
    return [pair for pair in vocab.merges if pair[0] in known and pair[1] in known and pair[0] + pair[1] in known]


def whole_words(vocab: Made) -> bool:
    """Whether a word that is a token becomes that token, without merging."""
    if isinstance(vocab, Vocab):
        return vocab.ignore_merges
    return isinstance(vocab.model, Ranks) or (isinstance(vocab.model, Merges) and vocab.model.whole_words)


def _models(a: Made, b: Made) -> Part:
    name = f"model ({a.type})" if a.type == b.type else "model"
    if isinstance(a, Pipeline) and isinstance(b, Pipeline) and _same_data(a.model, b.model):
        tokens = a.model_tokens == b.model_tokens
        return Part(
            name, SAME if tokens else DIFFERS, "the same tables" if tokens else "the same tables of other tokens"
        )
    merges = merge_list(a), merge_list(b)
    if merges[0] is not None and merges[1] is not None:
        sets = set(merges[0]), set(merges[1])
        flags = whole_words(a), whole_words(b)
        alone = len(sets[0] - sets[1]), len(sets[1] - sets[0])
        counts = f"{len(sets[0] & sets[1])} merges in both, {alone[0]} in A alone, {alone[1]} in B"
        if merges[0] != merges[1] and sets[0] == sets[1]:
            counts += "; in another order"
        if flags[0] != flags[1]:
            counts += f"; whole words are looked up by {'AB'[flags[1]]} alone"
        return Part(name, SAME if merges[0] == merges[1] and flags[0] == flags[1] else DIFFERS, counts)
    if a.type != b.type:
        return Part(name, DIFFERS, f"A: {_model(a)}; B: {_model(b)}")
    return Part(name, NOT_COMPARED, f"A: {_model(a)}; B: {_model(b)}")


def _model(vocab: Made) -> str:
    if isinstance(vocab, Vocab):
        return f"llama.cpp's {vocab.type}"
    names = {Unigram: "sums of doubles", Pieces: "sentencepiece's sums", WordPiece: "longest match", Ranks: "ranks"}
    return f"{vocab.type} ({names.get(type(vocab.model), type(vocab.model).__name__)})"


def _arounds(a: Made, b: Made) -> Part:
    shown = [_around(vocab) for vocab in (a, b)]
    says = shown[0] if shown[0] == shown[1] else f"A: {shown[0]}; B: {shown[1]}"
    return Part("around a text", SAME if shown[0] == shown[1] else DIFFERS, f"with add_special: {says}")


def _around(vocab: Made) -> str:
    if isinstance(vocab, Pipeline):
        items: Iterable[int] = vocab.single
    else:
        before, after = around(vocab)
        items = [*([before] if before != NO_TOKEN else []), FIRST_TEXT, *([after] if after != NO_TOKEN else [])]
    return " ".join("text" if item == FIRST_TEXT else visible(vocab.tokens[item] or b"") for item in items)
