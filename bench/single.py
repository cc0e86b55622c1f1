"""One text after the other, as servers and loops have them: `python bench/single.py [SET ...]`.

Microseconds a text of `encode(text)` for tokenizer files of every kind, beside their own libraries and beside the GGUF
of the same vocabulary. All take turns on one thread, the clock is CPU time, the texts were seen before. Each cell is
the least of all rounds, so what else the machine does has little say; still trust ratios of one row only.
"""

from __future__ import annotations

import argparse
import importlib
import lzma
import os
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import compare
import conftest

import jittok

SETS = {
    "llama-3": "llama-bpe", "qwen3": "qwen2", "gpt-oss": "gpt-oss", "deepseek-v3": "deepseek-v3",
    "mistral-7b": "llama-spm", "gemma-3": "gemma-3", "phi-3-mini": "phi-3", "bert-base-uncased": "bert-bge",
    "bert-chinese": "bert-chinese", "t5-sd3": "t5", "albert": "", "clip-files": "", "whisper-tiny": "gpt-2",
    "falcon": "", "roberta-base": "gpt-2", "gpt2-files": "gpt-2", "olmo-neox": "gpt-neox", "chatglm-6b-ort": "",
    "t5-spm": "t5", "mistral-v1": "mistral-v1", "mistral-v3": "mistral-v3", "bpemb-en-100k": "",
    "spm-test-ja": "", "cl100k_base": "", "o200k_base": "gpt-oss", "llama-3-tiktoken": "llama-bpe",
    "qwen-tiktoken": "qwen2", "tekken-240718": "tekken", "rwkv-world": "rwkv-world",
}  # fmt: skip
"""Set of files -> GGUF vocabulary that has its tokens, or nearly."""
LENGTHS = 44, 300, 3000
EMOJI = "👍 ok 🎉🎉 😂 fine 👩‍👩‍👧 ", "🇫🇷 ☀️ 😀!"
TEXTS, CALLS = 16, 3
"""Texts of a kind, which take turns; calls of each in a round."""


def is_of(text: str, low: str, high: str, share: float) -> bool:
    """Whether that share of a text's characters are in a range."""
    return sum(low <= c <= high for c in text) > share * len(text)


def kinds_of_text() -> dict[str, str]:
    """Text enough of each kind."""
    many = [text.decode() for text in compare.corpus("multilingual")]
    some = {
        "english": [text.decode() for text in compare.corpus("english")[:40]],
        "code": [text.decode() for text in compare.corpus("code")[:40]],
        "french": [text for text in many if text.count(" les ") + text.count(" des ") > len(text) / 150],
        "chinese": [text for text in many if is_of(text, "一", "鿿", 0.6)],
        "hindi": [text for text in many if is_of(text, "ऀ", "ॿ", 0.6)],
    }
    found = {kind: "\n".join(texts[:100]) for kind, texts in some.items()}
    found["ascii"] = found["english"].encode("ascii", "ignore").decode()
    words = found["ascii"].split()
    found["emoji"] = " ".join(w + (" " + EMOJI[k % 2] if k % 3 == 0 else "") for k, w in enumerate(words[:30000]))
    return found


def columns(kinds: list[str], lengths: list[int]) -> dict[str, list[str]]:
    """Name of a column -> its texts."""
    whole, found = kinds_of_text(), {}
    for kind in kinds:
        for length in lengths:
            step = max(1, (len(whole[kind]) - length) // TEXTS)
            texts = [whole[kind][k * step : k * step + length] for k in range(TEXTS)]
            found[f"{kind} {length}"] = [text for text in texts if text]
    return found


def library_of(path: Path) -> tuple[str, Callable[[str], Any], Callable[[Any], list[int]]] | None:
    """(name, one text to what it gives, that to ids) of a file's own library; None where none is called here."""
    if path.name == "tokenizer.json":
        own = importlib.import_module("tokenizers").Tokenizer.from_file(str(path))
        own.no_truncation()
        own.no_padding()
        return "tokenizers", lambda text: own.encode(text, add_special_tokens=False), lambda found: found.ids
    if path.suffix == ".model":
        try:
            processor = importlib.import_module("sentencepiece").SentencePieceProcessor(model_file=str(path))
        except RuntimeError:  # ranks have that name, too
            return None
        return "sentencepiece", processor.encode, list
    if path.suffix == ".tiktoken" and path.stem in ("cl100k_base", "o200k_base"):
        plugin = importlib.import_module("tiktoken")
        known = importlib.import_module("tiktoken.load").load_tiktoken_bpe(str(path))
        pattern = importlib.import_module("peers").PATTERNS["llama-bpe" if "cl100k" in path.stem else "gpt-4o"]
        other = plugin.Encoding(path.stem, pat_str=pattern, mergeable_ranks=known, special_tokens={})
        return "tiktoken", other.encode_ordinary, list
    return None


def gigatoken_of(path: Path) -> Callable[[str], Any] | None:
    """gigatoken on a tokenizer.json, where it takes it."""
    if path.name != "tokenizer.json":
        return None
    try:
        other = importlib.import_module("gigatoken").Tokenizer(str(path))
        other.encode("text")
    except Exception:  # noqa: BLE001  it has errors of its own
        return None
    return other.encode  # type: ignore[no-any-return]


def file_of(folder: Path) -> Path:
    """The file of a set that is loaded."""
    for pattern in ("tokenizer.json", "tekken.json", "vocab.json", "vocab.txt", "*.model", "*.tiktoken", "*.txt"):
        found = sorted(folder.glob(pattern))
        if found:
            return folder if pattern == "vocab.json" else found[0]
    raise FileNotFoundError(folder)


def microseconds(call: Callable[[str], Any], texts: list[str]) -> float:
    """CPU time a text, of one round."""
    start = time.process_time()
    for _ in range(CALLS):
        for text in texts:
            call(text)
    return 1e6 * (time.process_time() - start) / (CALLS * len(texts))


def measure(
    name: str, path: Path, gguf: str, texts: dict[str, list[str]], rounds: int, options: dict[str, bool]
) -> None:
    """Print the rows of one set."""
    tok = jittok.load(path)
    ways: dict[str, Callable[[str], Any]] = {
        "file": lambda text: tok.encode(text, **options) if options else tok.encode(text)
    }
    if not options:
        ways["file"] = tok.encode
    if gguf:
        packed = conftest.SHARED / "vocabs" / f"{gguf}.gguf.xz"
        ways["GGUF"] = jittok.load(lzma.decompress(packed.read_bytes())).encode
    own = library_of(path)
    if own is not None:
        ways[own[0]] = own[1]
    giga = gigatoken_of(path)
    if giga is not None:
        ways["gigatoken"] = giga
    cells: dict[str, list[str]] = {way: [] for way in ways}
    for some in texts.values():
        slow = own and own[0] == "tokenizers" and len(some[0]) > 1000
        for call in ways.values():
            for _ in range(1200 // len(some) // (20 if slow else 1) + 2 if call is not giga else 2):
                for text in some:
                    call(text)
        least = dict.fromkeys(ways, 1e9)
        for k in range(rounds):
            for way, call in ways.items():
                if k < rounds // 3 or way in ("file", "GGUF"):
                    least[way] = min(least[way], microseconds(call, some))
        for way, value in least.items():
            cells[way].append(f"{value:.1f}")
    for way, row in cells.items():
        print(f"| {name} | {way} | " + " | ".join(row) + " |", flush=True)


def main() -> int:
    """Print the table: microseconds a text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=list(SETS), help="of the files beside the checkout")
    parser.add_argument("--kinds", nargs="+", default=["ascii", "french", "chinese", "hindi", "emoji"])
    parser.add_argument("--lengths", nargs="+", type=int, default=list(LENGTHS), help="characters of a text")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--special", action="store_true", help="add_special and parse_special")
    options = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"], os.environ["TOKENIZERS_PARALLELISM"] = "1", "false"
    texts = columns(options.kinds, options.lengths)
    print("| set | | " + " | ".join(texts) + " |\n|---|---" + "|---" * len(texts) + "|", flush=True)
    asked = {"add_special": True, "parse_special": True} if options.special else {}
    with tempfile.TemporaryDirectory() as name:
        for each in options.sets:
            archive = conftest.SHARED / "tokenizer-files" / f"{each}.tar.xz"
            with tarfile.open(archive) as tar:
                tar.extractall(name, filter="data")
            measure(each, file_of(Path(name) / each), SETS.get(each, ""), texts, options.rounds, asked)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
