"""What training gives: a vocabulary that can be used, saved, cut to a smaller size and looked into."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.errors import CorpusError, check_local
from jittok.locks import once
from jittok.train.bpe import Learned
from jittok.train.option_checks import FILE, REGEX
from jittok.train.roles import roles_of
from jittok.train.word_splitter import cleans_spaces, lossless_names

if TYPE_CHECKING:
    from jittok.tokenizer import Tokenizer
    from jittok.vocab import Vocab

FORMATS = ".gguf, .json, vocab.json (with merges.txt), .tiktoken"


class Trained:
    """A byte-level BPE vocabulary that was learned."""

    def __init__(
        self, learned: Learned, pre: str, roles: Mapping[str, str | None] | None = None, name: str = ""
    ) -> None:
        self.learned, self.pre, self.name = learned, pre, name
        self._given = dict(roles or {})
        self.roles = roles_of(learned, self._given)

    def __len__(self) -> int:
        return self.learned.size

    def __repr__(self) -> str:
        return f"Trained({len(self)} tokens, {self.learned.merges.ids.size} merges, pre={self.pre!r})"

    @property
    def tokens(self) -> list[bytes]:
        """The bytes of each id."""
        return [self.learned.raw(token) for token in range(len(self))]

    @property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """(left, right) of each merge, as bytes."""
        raw = self.tokens
        return [(raw[a], raw[b]) for a, b in self.learned.merges.pairs.tolist()]

    @property
    def warnings(self) -> list[str]:
        """What one should know: sizes that were not reached, shared ids, what llama.cpp's decoding loses."""
        said = list(self.learned.warnings)
        if not self.pre.startswith((REGEX, FILE)):
            if cleans_spaces(self.pre):
                names = ", ".join(lossless_names(self.pre)[:3])
                said.append(
                    f"pre {self.pre}: llama.cpp takes spaces before punctuation away when it decodes, so texts do not "
                    f"come back byte for byte; {names} cut alike or nearly so and lose nothing"
                )
            if "eos" not in self.roles:
                said.append("no end-of-text token: llama.cpp then takes id 11 for it; name one with special and eos")
        return said

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file of the kind that its name tells: FORMATS. CorpusError for another name."""
        from jittok.train import export

        plain = os.fsdecode(path)
        check_local(plain, "--out")
        if plain.endswith(".gguf"):
            export.write_gguf(plain, self.learned, self.pre, self.roles, self.name)
        elif plain.endswith("vocab.json"):
            export.write_vocab_and_merges(plain, self.learned)
        elif plain.endswith(".json"):
            export.write_tokenizer_json(plain, self.learned, self.pre)
        elif plain.endswith(".tiktoken"):
            export.write_tiktoken(plain, self.learned)
        else:
            raise CorpusError("--out", plain, f"a name that ends in one of {FORMATS}")

    @once
    def vocab(self) -> Vocab:
        """As jittok loads it from the GGUF."""
        import tempfile

        from jittok.vocab import read_vocab

        with tempfile.TemporaryDirectory(prefix="jittok-") as folder:
            path = Path(folder) / "trained.gguf"
            self.save(path)
            return read_vocab(path.read_bytes())

    @once
    def tokenizer(self) -> Tokenizer:
        """Encodes and decodes with the vocabulary."""
        from jittok.tokenizer import Tokenizer

        return Tokenizer(self.vocab)

    def cut(self, size: int) -> Trained:
        """The vocabulary of a smaller size, which is what training to that size would have given."""
        return Trained(self.learned.cut(size), self.pre, self._given, self.name)

    def trace(self) -> Iterator[dict[str, Any]]:
        """Each merge, as a record: its left and right symbol; the symbol that it makes; how often the two were
        neighbors; how often they were merged; the number of tokens that the corpus then has. bytes / tokens_left is
        the compression."""
        made = self.learned
        left = made.symbols
        columns = (
            made.merges.pairs.tolist(),
            made.merges.counts.tolist(),
            made.merges.done.tolist(),
            made.merges.ids.tolist(),
        )
        for number, ((a, b), count, done, token) in enumerate(zip(*columns, strict=True)):
            left -= done
            yield {
                "merge": number, "left": made.texts[a], "right": made.texts[b], "token": made.texts[token], "id": token,
                "count": _each(count, made.unit), "done": _each(done, made.unit),
                "bytes_per_token": round(made.symbols / left, 4) if left else 0.0,
            }  # fmt: skip

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """The trace as JSON Lines."""
        from jittok.writers.atomic_files import atomic_file

        check_local(os.fsdecode(path), "--trace")
        with atomic_file(os.fsdecode(path)) as new, new.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in self.trace())


def _each(count: int, unit: int) -> float:
    """A count in occurrences: a whole number where documents have no weights."""
    return count / unit if unit > 1 else count
