"""Tokenizer files beside their own libraries: `python bench/files.py [FILE ...]`.

Files are tokenizer.json (beside tokenizers) and sentencepiece's .model (beside sentencepiece). Without files, those
beside the checkout are taken, and kinds that users train are made here: any model after any splitter, Unigram and BPE
of sentencepiece. Texts were seen before, as in a corpus. Both sides take turns on one thread; the clock is CPU time.
The ids of all texts that the library encodes are compared.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import compare
import conftest

import jittok

SETS = ["llama-3", "qwen3", "gpt-oss", "bert-base-uncased", "t5-sd3", "albert", "whisper-tiny", "falcon", "t5-spm",
        "mistral-v3", "bpemb-en-100k"]  # fmt: skip
SPLITTERS: dict[str, Callable[[Any], Any]] = {
    "Whitespace": lambda p: p.Whitespace(),
    "WhitespaceSplit": lambda p: p.WhitespaceSplit(),
    "Whitespace, Digits": lambda p: p.Sequence([p.Whitespace(), p.Digits(individual_digits=True)]),
    "Punctuation": lambda p: p.Punctuation(),
    "Metaspace": lambda p: p.Metaspace(),
    "ByteLevel": lambda p: p.ByteLevel(),
}
MODELS = {"WordPiece": "[UNK]", "Unigram": "<unk>", "BPE": "<unk>", "WordLevel": "<unk>"}
TRAINERS = {"WordPiece": "WordPieceTrainer", "Unigram": "UnigramTrainer", "BPE": "BpeTrainer",
            "WordLevel": "WordLevelTrainer"}  # fmt: skip
OWN_SYMBOLS = ["<sep>", "▁▁", "▁▁▁▁"]
TIMES, PART = 7, 8


def packed_sets(folder: Path) -> Iterator[tuple[str, Path]]:
    """(name, file) of the sets beside the checkout."""
    for name in SETS:
        archive = conftest.SHARED / "tokenizer-files" / f"{name}.tar.xz"
        if archive.exists():
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
            found = sorted((folder / name).glob("tokenizer.*"))
            yield name, found[0]


def trained_files(folder: Path, texts: list[str], splitters: list[str]) -> Iterator[tuple[str, Path]]:
    """(name, file) of every model of tokenizers after each splitter."""
    tokenizers, pre = importlib.import_module("tokenizers"), importlib.import_module("tokenizers.pre_tokenizers")
    for model, unknown in MODELS.items():
        for splitter in splitters:
            kind = getattr(tokenizers.models, model)
            tok = tokenizers.Tokenizer(kind() if model == "Unigram" else kind(unk_token=unknown))
            tok.normalizer = tokenizers.normalizers.NFKC()
            tok.pre_tokenizer = SPLITTERS[splitter](pre)
            more = {"unk_token": unknown} if model == "Unigram" else {}
            trainer = getattr(tokenizers.trainers, TRAINERS[model])
            tok.train_from_iterator(
                texts, trainer(vocab_size=8000, special_tokens=[unknown], show_progress=False, **more)
            )
            path = folder / f"{model}-{len(list(folder.iterdir()))}.json"
            tok.save(str(path))
            yield f"{model}, NFKC, {splitter}", path


def trained_models(folder: Path, texts: list[str]) -> Iterator[tuple[str, Path]]:
    """(name, file) of sentencepiece's own kinds."""
    trainer = importlib.import_module("sentencepiece").SentencePieceTrainer
    lines = [line for text in texts for line in text.split("\n") if line.strip()]
    for model in ("unigram", "bpe"):
        for rule in ("nmt_nfkc", "nmt_nfkc_cf", "identity"):
            for own in ([], OWN_SYMBOLS):
                stem = folder / f"{model}-{rule}-{len(own)}"
                trainer.train(
                    sentence_iterator=iter(lines), model_prefix=str(stem), vocab_size=8000, model_type=model,
                    normalization_rule_name=rule, user_defined_symbols=own, byte_fallback=True, minloglevel=2,
                    remove_extra_whitespaces=rule != "identity", hard_vocab_limit=False,
                )  # fmt: skip
                symbols = f", user-defined {' '.join(own)}" if own else ""
                yield f".model {model}, {rule}{symbols}", stem.with_suffix(".model")


def library_of(path: Path) -> Callable[[list[str]], list[list[int]]]:
    """How a file's own library encodes."""
    if path.suffix == ".model":
        processor = importlib.import_module("sentencepiece").SentencePieceProcessor(model_file=str(path))
        return processor.encode  # type: ignore[no-any-return]
    tok = importlib.import_module("tokenizers").Tokenizer.from_file(str(path))
    tok.no_truncation()
    tok.no_padding()
    return lambda texts: [each.ids for each in tok.encode_batch_fast(texts, add_special_tokens=False)]


def seconds(call: Callable[[], Any]) -> float:
    """CPU time of a call."""
    start = time.process_time()
    call()
    return time.process_time() - start


def measure(name: str, path: Path, corpora: dict[str, list[bytes]]) -> str:
    """One row of the table."""
    tok, own, cells = jittok.load(path), library_of(path), []
    for texts in corpora.values():
        some = [text.decode() for text in texts[:: len(texts) // PART or 1]]
        whole, part = sum(map(len, texts)), sum(len(text.encode()) for text in some)
        tok.encode_batch(texts, threads=1)
        mine, theirs = [], []
        for k in range(TIMES):
            mine.append(seconds(lambda: tok.encode_batch(texts, threads=1)) / whole)  # noqa: B023
            if k < TIMES // 3:
                theirs.append(seconds(lambda: own(some)) / part)  # noqa: B023
        pairs = zip(tok.encode_batch(some, parse_special=True).to_list(), own(some), strict=True)
        odd = sum(ids != right for ids, right in pairs)
        rate = 1e-6 / statistics.median(mine)
        cells.append(f"{rate:.0f}, x{min(theirs) / statistics.median(mine):.1f}" + (f" ({odd} differ)" if odd else ""))
    way = " *" if "plain" in tok.runs else ""
    return f"| {name}{way} | " + " | ".join(cells) + " |"


def main() -> int:
    """Print the table: MB/s, and how many times the library's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--corpora", nargs="+", default=["english", "code", "multilingual"])
    parser.add_argument("--megabytes", type=float, default=1.0, help="of each corpus")
    parser.add_argument("--splitters", nargs="+", default=list(SPLITTERS), choices=list(SPLITTERS))
    options = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"], os.environ["TOKENIZERS_PARALLELISM"] = "1", "false"
    corpora: dict[str, list[bytes]] = {}
    for name in options.corpora:
        documents, size = compare.corpus(name), 0
        corpora[name] = []
        while documents and size < options.megabytes * 1e6:
            corpora[name].append(documents.pop(0))
            size += len(corpora[name][-1])
    print("| file | " + " | ".join(corpora) + " |\n|---" + "|---" * len(corpora) + "|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder, texts = Path(name), [t.decode()[:4000] for d in corpora.values() for t in d]
        rows: Iterator[tuple[str, Path]] = ((str(path), path) for path in options.files)
        for kinds in [rows] if options.files else [
            packed_sets(folder), trained_models(folder, texts), trained_files(folder, texts, options.splitters)
        ]:  # fmt: skip
            for kind, path in kinds:
                print(measure(kind, path, corpora), flush=True)
    print("`*`: by plain Python")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
