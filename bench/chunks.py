"""Texts cut to pieces of 512 tokens: what share of the speed of encoding, and how many times as fast as others.

python bench/chunks.py [--vocab gpt-2] [--size 512] [--bytes 200000] [FILE.jsonl[.xz] ...]

Others are given the same vocabulary, as tokenizers counts it or as `tok.count` does: langchain's
RecursiveCharacterTextSplitter, semantic-text-splitter, chonkie's RecursiveChunker. Pieces are looked at first: each is
encoded alone again. Times are processor time of one thread, the least of some runs, one library after the other.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jittok


def texts_of(path: Path, most: int) -> list[str]:
    """The first texts of a file of JSON Lines, of about so many bytes."""
    opened = lzma.open if path.suffix == ".xz" else open
    found, size = [], 0
    with opened(path, "rt", encoding="utf-8") as file:
        for line in file:
            found.append(json.loads(line)["text"])
            size += len(found[-1].encode())
            if size >= most:
                break
    return found


def peers(tok: jittok.Tokenizer, size: int, folder: Path) -> Iterator[tuple[str, Callable[[str], list[str]]]]:
    """Names of splitters that keep the limit, and what gives the pieces of a text; of those that are installed."""
    try:
        from langchain_text_splitters import RecursiveCharacterTextSplitter

        splitter = RecursiveCharacterTextSplitter(chunk_size=size, chunk_overlap=0, length_function=tok.count)
        yield "langchain (tok.count)", splitter.split_text
    except ImportError:
        pass
    file = folder / "tokenizer.json"
    jittok.convert(tok, file)
    try:
        import tokenizers
        from langchain_text_splitters import RecursiveCharacterTextSplitter

        other = tokenizers.Tokenizer.from_file(str(file))
        splitter = RecursiveCharacterTextSplitter(
            chunk_size=size, chunk_overlap=0, length_function=lambda text: len(other.encode(text).ids)
        )
        yield "langchain (tokenizers)", splitter.split_text
    except ImportError:
        pass
    try:
        from semantic_text_splitter import TextSplitter

        yield "semantic-text-splitter", TextSplitter.from_huggingface_tokenizer_file(str(file), size, trim=False).chunks
    except ImportError:
        pass
    try:
        import tokenizers
        from chonkie import RecursiveChunker

        chunker = RecursiveChunker(tokenizers.Tokenizer.from_file(str(file)), chunk_size=size)
        yield "chonkie RecursiveChunker", lambda text: [chunk.text for chunk in chunker.chunk(text)]
    except ImportError:
        pass


def least(call: Callable[[], Any], runs: int) -> float:
    """Seconds of the processor for the fastest call."""
    times = []
    for _ in range(runs):
        begun = time.process_time()
        call()
        times.append(time.process_time() - begun)
    return min(times)


def main() -> None:
    """Print a table for each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocab", default="gpt-2")
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--bytes", type=int, default=200_000)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("files", nargs="+", type=Path)
    given = parser.parse_args()
    vocab = given.vocab
    tok = jittok.load(vocab) if Path(vocab).exists() else jittok.bundled(vocab)
    for path in given.files:
        texts = texts_of(path, given.bytes)
        size = sum(len(text.encode()) for text in texts)
        rows = tok.chunks_batch(texts, given.size, threads=1)
        over = int((tok.count_batch(rows.texts()) > given.size).sum())
        own = least(lambda texts=texts: tok.chunks_batch(texts, given.size, threads=1), 7)
        encoding = least(lambda texts=texts: tok.encode_batch(texts, threads=1), 7)
        print(f"{vocab}, {path.name}, {size} bytes, {given.size} tokens a piece")
        print(f"  encode_batch               {size / encoding / 1e6:8.2f} MB/s")
        share = f"{encoding / own:.2f} of encode_batch; {rows.counts.size} pieces, {over} over"
        print(f"  chunks_batch               {size / own / 1e6:8.2f} MB/s, {share}")
        if given.no_peers:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for name, cut in peers(tok, given.size, Path(folder)):
                pieces = [piece for text in texts for piece in cut(text)]
                over = int((tok.count_batch(pieces) > given.size).sum())
                theirs = least(lambda texts=texts, cut=cut: [cut(text) for text in texts], 1)
                times = f"{theirs / own:.0f} times as long; {len(pieces)} pieces, {over} over"
                print(f"  {name:26} {size / theirs / 1e6:8.2f} MB/s, {times}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
