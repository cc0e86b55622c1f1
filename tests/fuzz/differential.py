"""Millions of texts are encoded twice: with a piece cache that has seen the others, and by kernels whose cache is wiped
before each text. Some are also encoded by the references: python tests/fuzz/differential.py --texts 10000000

Every vocabulary at hand, one for every `tokenizer.ggml.pre`, and drawn ones of every type in between. Half of the texts
come from the generators of `texts`, half are joined from words that earlier texts of the vocabulary had and from new
ones. A difference is cut down, first to the texts that the cache must have seen, then byte by byte.
"""
# ruff: noqa: T201  printing is its work

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from cases import TINY_CACHE
from run import real_vocabs, shrink
from texts import Texts
from vocabs import random_vocab

from jittok.encode.cutters import EncodeOptions
from jittok.encode.encoder import Encoder
from jittok.encode.threads.batch import encode_batch
from jittok.errors import EncodingFailed, JittokError
from jittok.kernels.pretoken_cache.tables import PretokenCache, make_cache
from jittok.reference.tokenize import tokenize
from jittok.vocab import Vocab, bundled_vocab, read_vocab
from jittok.vocab.keys import pre_names

BATCH, REAL, DRAWN = 2_000, 20_000, 4_000
"""Texts that are encoded in one call, and that a vocabulary gets before the next one's turn."""
KEPT_WORDS, LONGEST_WORD = 5_000, 40
GLUE = [b" ", b" ", b" ", b"", b"\n", b"  ", b", ", b".", b"\t", b"'s ", "中".encode(), b"1"]
Encode = Callable[[bytes], list[int]]


class Source:
    """Seeded texts of one vocabulary: new ones, and ones joined from words that others had."""

    def __init__(self, seed: int, vocab: Vocab) -> None:
        self.new, self.random, self.words = Texts(seed, vocab), random.Random(seed), [b"the"]

    def one(self) -> bytes:
        text = self.new.one()
        if self.random.random() < 0.5:
            self._learn(text)
            return text
        parts = []
        for _ in range(self.random.randint(1, 12)):
            parts += [self.random.choice(self.words), self.random.choice(GLUE)]
        at = self.random.randrange(len(parts))
        parts[at : at + self.random.randint(0, 1)] = text[:LONGEST_WORD].split(b" ")[:2]
        return b"".join(parts)

    def _learn(self, text: bytes) -> None:
        for word in text.split(b" ")[:4]:
            word = word[:LONGEST_WORD]  # noqa: PLW2901
            if len(self.words) < KEPT_WORDS:
                self.words.append(word)
            else:
                self.words[self.random.randrange(KEPT_WORDS)] = word


class Pair:
    """The same vocabulary with a cache that is kept and with one that is wiped before each text."""

    def __init__(self, vocab: Vocab, arrays: Any = None, cache_bytes: int | None = None) -> None:
        self.vocab = vocab
        self.kept = Encoder(vocab, arrays, cache_bytes=cache_bytes)
        self.wiped = Encoder(vocab, self.kept.arrays, cache_bytes=TINY_CACHE)
        self._fresh = make_cache(TINY_CACHE)  # a wide one, so that both kinds of slots are compared

    def again(self) -> Pair:
        """The same with nothing seen."""
        return Pair(self.vocab, self.kept.arrays)

    def rule(self, add: bool, parse: bool) -> EncodeOptions:
        """Characters that cannot be encoded are replaced, so that one text does not end a batch."""
        return self.kept.rule(add, parse, True)

    def without(self, text: bytes, rule: EncodeOptions) -> list[int]:
        """Ids by kernels that have seen nothing."""
        for workspace in self.wiped._workspaces:
            for cache in _caches(workspace.scratch):
                for name in ("short", "middle", "long", "state"):
                    array, first = getattr(cache, name), getattr(self._fresh, name)
                    array[: first.size] = first
                    array[first.size :] = 0
        return self.wiped.one(text, rule).tolist()  # type: ignore[no-any-return]

    def different(self, texts: list[bytes], rule: EncodeOptions) -> list[int]:
        """Which of a batch's texts got other ids, or another failure, than by kernels that had seen nothing."""
        places, wrong = list(range(len(texts))), []
        while True:
            try:
                rows = encode_batch(self.kept, [texts[k] for k in places], rule, 1, False)
                break
            except EncodingFailed as error:  # some vocabularies have texts that nothing can replace
                k = places.pop(error.document)
                if _or_failure(lambda k=k: self.without(texts[k], rule)) != f"fails at {error.offset}":  # type: ignore[misc]
                    wrong.append(k)
        ids, offsets = rows.ids.tolist(), rows.offsets.tolist()
        for row, k in enumerate(places):
            if ids[offsets[row] : offsets[row + 1]] != _or_failure(lambda k=k: self.without(texts[k], rule)):  # type: ignore[misc]
                wrong.append(k)
        return sorted(wrong)


def _caches(work: Any) -> Iterator[PretokenCache]:
    """The piece caches inside a model's scratch."""
    if isinstance(work, PretokenCache):
        yield work
    elif isinstance(work, tuple):
        for field in work:
            yield from _caches(field)


def shortest(
    pair: Pair, batches: list[tuple[list[bytes], EncodeOptions]], text: bytes, rule: EncodeOptions
) -> tuple[list[bytes], bytes]:
    """The texts that a new cache must have seen, and the text that it then gets wrong; no texts at all when no history
    shows it again."""

    def wrong(seen: list[bytes], last: bytes) -> bool:
        new = pair.again()
        if seen:
            new.different(seen, rule)
        return bool(new.different([last], rule))

    seen = [each for texts, _ in batches for each in texts]
    size = len(seen)
    while size and wrong(seen, text):
        at = 0
        while at < len(seen):
            less = seen[:at] + seen[at + size :]
            if wrong(less, text):
                seen = less
            else:
                at += size
        size //= 2
    if not wrong(seen, text):
        return [], text
    for k in range(len(seen)):
        seen[k] = shrink(seen[k], lambda less, k=k: wrong([*seen[:k], less, *seen[k + 1 :]], text))  # type: ignore[misc]
    return seen, shrink(text, lambda less: wrong(seen, less))


def by_reference(pair: Pair, text: bytes, add: bool, parse: bool) -> tuple[Any, Any]:
    """(reference, kernel without a cache): ids, or where the text fails."""
    strict = pair.kept.rule(add, parse, False)
    return (
        _or_failure(lambda: tokenize(pair.vocab, text, add_special=add, parse_special=parse)),
        _or_failure(lambda: pair.without(text, strict)),
    )


def _or_failure(answer: Callable[[], Any]) -> Any:
    try:
        return answer()
    except EncodingFailed as error:
        return f"fails at {error.offset}"


def vocabularies(seed: int, only: str | None) -> Iterator[tuple[str, Callable[[], Vocab], int]]:
    """(name, loader, number of texts), without an end."""
    chosen, number = random.Random(seed), seed * 7_000_003
    named = list(real_vocabs())
    for pre, entry in pre_names().items():
        flags = {name: value for name, value in entry["sets"].items() if name in Vocab._fields}
        settings = {"pre": pre or None, "pre_type": entry["pre_type"], **flags}
        named.append((f"gpt-2 with pre {pre!r}", lambda s=settings: bundled_vocab("gpt-2")._replace(**s)))  # type: ignore[misc]
    named = [each for each in named if only is None or only in each[0]]
    while True:
        chosen.shuffle(named)
        for name, load in named:
            yield name, load, REAL
            for _ in range(0 if only else 3):
                number += 1
                kind, data = random_vocab(number)
                yield f"drawn {kind} {number}", lambda data=data: read_vocab(data), DRAWN  # type: ignore[misc]


class Run:
    """Counts, and what is done with one vocabulary."""

    def __init__(self, seed: int, share: float) -> None:
        self.random, self.share = random.Random(seed), share
        self.counts, self.referred, self.bytes, self.failures = Counter[str](), Counter[str](), 0, 0

    def vocabulary(self, name: str, vocab: Vocab, texts: int, number: int) -> None:
        """Compare `texts` texts; the first difference is told and ends it."""
        pair, source = (
            Pair(vocab, cache_bytes=self.random.choice([None, None, TINY_CACHE, 1 << 20])),
            Source(number, vocab),
        )
        seen: list[tuple[list[bytes], EncodeOptions]] = []
        add_can_fail = isinstance(_or_failure(lambda: pair.rule(True, False)), str)
        for start in range(0, texts, BATCH):
            add, parse = not add_can_fail and self.random.random() < 0.2, self.random.random() < 0.5
            batch, rule = [source.one() for _ in range(min(BATCH, texts - start))], pair.rule(add, parse)
            self.counts[vocab.type] += len(batch)
            self.bytes += sum(map(len, batch))
            if wrong := pair.different(batch, rule):
                self.failures += 1
                history = [*seen, (batch[: wrong[0]], rule)]
                texts_seen, text = shortest(pair, history, batch[wrong[0]], rule)
                print(f"{name}: {add=} {parse=}: after {texts_seen!r}, {text!r} gets other ids than alone")
                return
            seen.append((batch, rule))
            for text in batch[: int(self.share * len(batch) + self.random.random())]:
                self.referred[vocab.type] += 1
                reference, kernel = by_reference(pair, text, add, parse)
                if reference != kernel:
                    self.failures += 1
                    text = shrink(text, lambda less: len(set(map(str, by_reference(pair, less, add, parse)))) > 1)  # noqa: B023, PLW2901
                    print(
                        f"{name}: {add=} {parse=}: {text!r}: reference, kernel:", *by_reference(pair, text, add, parse)
                    )
                    return

    def told(self) -> str:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(self.counts.items()))
        return (
            f"{sum(self.counts.values()):,} texts ({self.bytes:,} bytes; {kinds}), "
            f"{sum(self.referred.values()):,} of them by the references too, {self.failures} differences"
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.02, help="of the texts: encoded by the reference too")
    parser.add_argument("--only", help="part of the name of a vocabulary; no drawn ones then")
    options = parser.parse_args(arguments)
    run, vocabs, began, next_word = Run(options.seed, options.share), 0, time.monotonic(), 0.0
    for name, load, texts in vocabularies(options.seed, options.only):
        left = options.texts - sum(run.counts.values())
        if left <= 0 or run.failures >= 20:
            break
        try:
            vocab = load()
            vocabs += 1
            run.vocabulary(name, vocab, min(texts, left), options.seed * 1_000_003 + vocabs)
        except (JittokError, OSError) as error:  # loading refuses it; or the file is gone by now
            if "drawn" not in name:
                print(f"{name}: left out, {error}")
        if time.monotonic() > next_word:
            next_word = time.monotonic() + 60
            print(f"{time.monotonic() - began:.0f} s, {vocabs} vocabularies: {run.told()}", flush=True)
    print(f"seed {options.seed}, {vocabs} vocabularies: {run.told()}", flush=True)
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
