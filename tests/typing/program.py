"""A program as users write them, over everything that jittok is for: checkers find nothing in it (see test_types)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import jittok
import jittok.corpus
from jittok.common.display.progress import Progress

Side = Literal["right", "left"]


def texts_of(folder: Path) -> Iterator[str]:
    """The documents of a folder."""
    for path in sorted(folder.glob("*.jsonl")):
        with path.open(encoding="utf-8") as file:
            for line in file:
                yield str(json.loads(line)["text"])


def opened(name: str) -> jittok.Tokenizer:
    """A bundled vocabulary or a file."""
    if name in jittok.bundled_names():
        return jittok.bundled(name)
    return jittok.load(Path(name), cache=True, llama_cpp=None)


def special_names(tok: jittok.Tokenizer) -> dict[str, int]:
    """The special ids that a tokenizer has."""
    found: dict[str, int | None] = {"bos": tok.bos_id, "eos": tok.eos_id, "pad": tok.pad_id, "unk": tok.unk_id}
    return {name: token for name, token in found.items() if token is not None}


def counted(tok: jittok.Tokenizer, texts: list[str]) -> tuple[int, float]:
    """Tokens of texts, and bytes a token."""
    counts: NDArray[np.int64] = tok.count_batch(texts, threads=2, progress="auto")
    total = int(counts.sum())
    return total, sum(len(text.encode()) for text in texts) / max(total, 1)


def padded(tok: jittok.Tokenizer, texts: list[str], length: int, side: Side) -> tuple[NDArray[np.int32], int]:
    """Rows of one length, and how many ids are no padding."""
    rows: jittok.TokenArray = tok.encode_batch(texts, add_special=True, parse_special=False, errors="replace")
    ids, mask, _ = rows.to_padded(length, pad_id=tok.pad_id or 0, side=side, truncate=True)
    return ids, int(mask.sum())


def windows(tok: jittok.Tokenizer, texts: list[str]) -> list[int]:
    """Which text each window is of."""
    rows = tok.encode_batch(texts, max_length=8, overlap=2, windows=True)
    return [int(number) for number in rows.row_of]


def pieces(tok: jittok.Tokenizer, text: str) -> list[str]:
    """A text in parts of at most eight ids."""
    return [piece.text for piece in tok.chunks(text, 8)]


def spans(tok: jittok.Tokenizer, text: str) -> list[tuple[int, int, bytes]]:
    """Start, stop and bytes of each token."""
    found = tok.align(text)
    named = [tok.id_to_token(int(token)) for token in found.ids]
    return [(int(a), int(b), name) for (a, b), name in zip(found.char_spans, named, strict=True)]


def streamed(tok: jittok.Tokenizer, ids: NDArray[np.int32]) -> str:
    """The text of ids as they come."""
    out = tok.stream_decoder()
    parts: list[str] = [out.push(int(token)) for token in ids]
    return "".join(parts) + out.finish()


def explained(tok: jittok.Tokenizer, text: str) -> str:
    """The stages of a text, and what each step said."""
    trace = tok.trace(text)
    names: tuple[str, ...] = trace.stages
    return ", ".join(names) + str(tok.explain(text))


def compiled(inputs: list[str], tok: jittok.Tokenizer, out: Path) -> int:
    """A corpus of files; the number of its tokens."""
    options = jittok.corpus.Options(formats=("npy",), shard_bytes=1 << 30)
    summary = jittok.corpus.compile_corpus(inputs, tok, out, options, threads=2)
    corpus = jittok.corpus.open(out)
    first: NDArray[np.integer] = corpus[0]
    return summary.tokens + int(first.size)


def learned(texts: list[str], seen: list[Progress]) -> bytes:
    """The text of the last token that is learned."""
    trained = jittok.train(texts, size=300, special=["<|end|>"], progress=seen.append)
    tok: jittok.Tokenizer = trained.tokenizer
    return tok.id_to_token(tok.vocab_size - 1)


def differing(a: jittok.Tokenizer, b: str, texts: list[str]) -> list[str]:
    """Texts of the most frequent differences."""
    found = jittok.compare(a, b, texts, by_id=False, progress=False)
    return [each.text for each in found.frequent] if found.differs else []


def main() -> None:
    """Everything once."""
    tok = opened("gpt-2")
    texts = ["one text", "another"]
    try:
        print(special_names(tok), counted(tok, texts), padded(tok, texts, 4, "left"), windows(tok, texts))
        print(spans(tok, "naïve"), streamed(tok, tok.encode("naïve")), explained(tok, "a"), pieces(tok, "a b"))
        print(compiled(["data"], tok, Path("out")), learned(texts, []), differing(tok, "t5", texts))
    except jittok.EncodingFailed as error:
        print(error.document, error.offset)
    except jittok.JittokError as error:
        print(error)


if __name__ == "__main__":
    main()
