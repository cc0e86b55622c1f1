"""`jittok train`: train a vocabulary on documents."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jittok.cli.common import (
    add_json,
    add_on_error,
    add_overwrite,
    add_reading,
    add_threads,
    check_outputs,
    group,
    note,
    positive,
    sizes,
    weight,
    write_report,
)
from jittok.cli.train.options import check_options
from jittok.cli.train.words import check_held_out, counted_words, held_out, inputs_of
from jittok.common.display.terminal import harmless_json

if TYPE_CHECKING:
    from jittok.train.bpe import Trained
    from jittok.train.counting.counts import Counts

PAIR = "vocab.json"
"""End of the name of an output that gets a merges.txt next to it."""
HELP = "Train a vocabulary on documents."
EXAMPLES = """# train a vocabulary, and use it
jittok train data/ --size 32000 --special '<|endoftext|>' --out my.gguf
jittok encode --vocab my.gguf README.md
# the same vocabulary for other libraries
jittok train data/ --size 32000 --out my.gguf --out my.json --out my.tiktoken
# the merges that Hugging Face's trainer learns
jittok train data/ --size 32000 --pre gpt-2 --like hf --out my.json
# several sizes from one run: my-8000.gguf, my-32000.gguf, ...
jittok train data/ --sizes 8000,32000,128000 --out my.gguf
# count once, train often
jittok train data/ --save-words words.tsv
jittok train --words words.tsv --size 50000 --out my.gguf
# resume after a crash, with the same command
jittok train data/ --size 50000 --memory 64M --work counting --out my.gguf"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument(
        "inputs", nargs="*", metavar="INPUT", help="documents, as for jittok corpus: files, globs, directories, URLs, -"
    )
    _add_output(parser)
    _add_vocabulary(parser.add_argument_group("vocabulary"))
    _add_counting(parser.add_argument_group("counting"))
    add_reading(parser)
    add_on_error(parser)
    _add_inspection(parser.add_argument_group("inspection"))
    add_threads(parser, "work")
    work = group(parser, "work")
    work.add_argument("--memory", metavar="N", help="memory for counting, such as 64M; does not change the result")
    work.add_argument("--work", metavar="DIR", help="keep counts in this folder, and resume from them after a crash")


def _add_output(parser: argparse.ArgumentParser) -> None:
    output = group(parser, "output")
    output.add_argument(
        "--size", type=positive, metavar="N", help="vocabulary size: special tokens, bytes and merges together"
    )
    output.add_argument("--sizes", type=sizes, metavar="N,N,...", help="several vocabulary sizes from one run")
    output.add_argument(
        "--out",
        "-o",
        action="append",
        default=[],
        metavar="FILE",
        help="output file: .gguf, .json (tokenizer.json), vocab.json (and merges.txt), .tiktoken, .model or .txt; "
        "repeatable",
    )
    add_overwrite(parser)
    add_json(parser)
    output.add_argument(
        "--model",
        choices=("bpe", "spm", "unigram", "wordpiece"),
        default="bpe",
        metavar="KIND",
        help="bpe: byte-level BPE (default); spm, unigram: sentencepiece's (.gguf, .model); wordpiece: BERT's (.gguf, "
        ".txt)",
    )
    output.add_argument(
        "--extend", metavar="VOCAB", help="add --size tokens to this vocabulary (a GGUF file or bundled name)"
    )
    output.add_argument(
        "--prune", metavar="VOCAB", help="remove the tokens that the documents never use from this vocabulary"
    )


def _add_vocabulary(rule: argparse._ArgumentGroup) -> None:
    rule.add_argument(
        "--pre", metavar="NAME", help="how text is split: any tokenizer.ggml.pre (default: qwen2), or a tokenizer.json"
    )
    rule.add_argument("--pre-regex", metavar="PATTERN", help="regex that splits text instead (not for .gguf)")
    rule.add_argument(
        "--like", choices=("jittok", "hf"), default="jittok", metavar="jittok|hf",
        help="hf: learn the merges of Hugging Face's BpeTrainer (default: jittok)",
    )  # fmt: skip
    rule.add_argument("--special", action="append", default=[], metavar="TEXT", help="special token; repeatable")
    for role, what in (
        ("bos", "the beginning of a text"),
        ("eos", "the end of a text"),
        ("pad", "padding"),
        ("unk", "unknown text"),
    ):
        rule.add_argument(f"--{role}", metavar="TEXT", help=f"special token for {what}")
    rule.add_argument(
        "--min-frequency", type=int, default=0, metavar="N", help="do not merge pairs that occur less often"
    )
    rule.add_argument(
        "--alphabet", choices=("bytes", "seen"), default="bytes", metavar="bytes|seen",
        help="all 256 bytes (default), or only those that occur",
    )  # fmt: skip
    rule.add_argument("--max-token-length", type=positive, metavar="N", help="longest token, in bytes")
    rule.add_argument("--limit-alphabet", type=positive, metavar="N", help="keep only the N most frequent bytes")
    rule.add_argument(
        "--superbpe", type=positive, metavar="N",
        help="after N tokens, also learn tokens of several words, for llama.cpp's superbpe pre-tokenizer (reads the "
        "documents twice)",
    )  # fmt: skip
    rule.add_argument(
        "--normalization", default="identity", metavar="NAME",
        help="for --model spm and unigram: identity (default), nmt_nfkc (sentencepiece's default), nfkc, nmt_nfkc_cf, "
        "nfkc_cf",
    )  # fmt: skip
    rule.add_argument(
        "--slices", type=positive, default=16, metavar="N",
        help="for --model unigram: sentencepiece's num_threads, which affects the last digits of scores (default: 16)",
    )  # fmt: skip
    rule.add_argument("--name", default="", help="general.name of the GGUF")


def _add_counting(counting: argparse._ArgumentGroup) -> None:
    counting.add_argument(
        "--words",
        action="append",
        default=[],
        metavar="FILE",
        help="train on counted words instead of documents; repeatable",
    )
    counting.add_argument("--save-words", metavar="FILE", help="write the counted words to this file")
    counting.add_argument(
        "--weight",
        type=weight,
        action="append",
        default=[],
        metavar="GLOB=X",
        help="count the words of matching files X times; repeatable",
    )
    counting.add_argument(
        "--by",
        choices=("occurrences", "documents"),
        default="occurrences",
        metavar="UNIT",
        help="occurrences (default), or documents: count a word once per document, so that pasted text makes no tokens",
    )
    counting.add_argument(
        "--sample",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="count only this share of the documents, such as 0.1, chosen by their content and --seed",
    )
    counting.add_argument("--seed", type=int, default=0, help="seed of the choice of documents")


def _add_inspection(looking: argparse._ArgumentGroup) -> None:
    looking.add_argument("--trace", metavar="FILE", help="write every merge with its counts, as JSON Lines")
    looking.add_argument(
        "--explain",
        action="append",
        default=[],
        metavar="TOKEN",
        help="print how this token was made, and from which words; repeatable",
    )
    looking.add_argument("--held-out", metavar="FILE", help="print the bytes per token on these texts, for each size")


def run(options: argparse.Namespace) -> int:
    """Count, learn, write."""
    sizes = _sizes(options)
    if not (options.out or options.save_words or options.trace or options.explain or options.held_out):
        expected = "--out FILE (or --save-words, --trace, --explain or --held-out, to inspect only)"
        raise ValueError(f"found no output, expected {expected}")
    bases = [*(options.words or []), *filter(None, [options.extend, options.prune])]
    texts = [*options.inputs, *filter(None, [options.held_out])]
    check_outputs(_outputs(options, sizes), options.overwrite, bases, texts)
    base = None
    if options.extend or options.prune:
        base = _base(options)
    check_options(options, add_arguments)
    check_held_out(options)
    start = time.perf_counter()
    sources = inputs_of(options) if options.superbpe and options.inputs else []
    words = counted_words(options)
    counted = time.perf_counter()
    if options.save_words:
        words.save(options.save_words)
    report: dict[str, Any] = {
        "documents": words.documents,
        "bytes": words.text_bytes,
        "words": len(words),
        "occurrences": words.total,
        "seconds_counting": round(counted - start, 3),
    }
    if base is not None:
        report["vocabularies"] = [_edited(options, base, words)]
    elif sizes and options.model != "bpe":
        report["vocabularies"] = [_other_model(options, words, size, len(sizes) > 1) for size in sizes]
    elif sizes:
        trained = _train(options, words, options.superbpe or max(sizes))
        if options.superbpe:
            from jittok.train.superbpe import second_stage, stretches

            trained = second_stage(trained, counted_words(options, stretches()), max(sizes), "auto")
            for source in sources:  # which have been read twice
                source.check_unchanged()
        report["seconds_learning"] = round(time.perf_counter() - counted, 3)
        report["vocabularies"] = [_save(options, trained, size, len(sizes) > 1) for size in sizes]
        report["warnings"] = trained.warnings
        for warning in trained.warnings:
            said = warning.replace("with special and eos", "with --special and --eos")
            note(f"jittok train: {said}")
        _look(options, trained, words, report)
    if options.work:
        from jittok.train.counting.files import finished

        if options.superbpe:
            finished(f"{options.work}/stretches")
        finished(options.work)
    told = harmless_json(json.dumps(report, ensure_ascii=False)) + "\n" if options.json else _text(report)
    write_report(told, [*options.out, *filter(None, [options.save_words, options.trace])])
    return 0


def _sizes(options: argparse.Namespace) -> list[int]:
    if options.sizes is not None:
        if options.size is not None:
            raise ValueError("found --size and --sizes, expected only one of them")
        return sorted(set(options.sizes))
    if options.size is None and not options.save_words and not options.prune:
        raise ValueError("found no --size, expected --size N (or --save-words FILE, to only count)")
    return [] if options.size is None else [options.size]


def _named(out: str, size: int, several: bool) -> Path:
    """The output file for one size."""
    path = Path(out)
    if several and path.name.endswith(PAIR):  # the ending selects the format
        return path.with_name(f"{path.name.removesuffix(PAIR)}{size}-{PAIR}")
    return path.with_name(f"{path.stem}-{size}{path.suffix}") if several else path


def _outputs(options: argparse.Namespace, sizes: list[int]) -> list[Path]:
    """All files that will be written."""
    files = [_named(out, size, len(sizes) > 1) for out in options.out for size in sizes or [0]]
    files += [path.with_name(path.name.replace(PAIR, "merges.txt")) for path in files]
    return [*dict.fromkeys(files), *(Path(out) for out in (options.save_words, options.trace) if out)]


def _train(options: argparse.Namespace, words: Counts, size: int) -> Trained:
    from jittok.train import train

    return train(
        words=words, size=size, pre=words.pre or options.pre or "qwen2", like=options.like, special=options.special,
        min_frequency=options.min_frequency, alphabet=options.alphabet, max_token_length=options.max_token_length,
        limit_alphabet=options.limit_alphabet, name=options.name,
        **{role: getattr(options, role) for role in ("bos", "eos", "pad", "unk")},
    )  # fmt: skip


def _save(options: argparse.Namespace, trained: Trained, size: int, several: bool) -> dict[str, Any]:
    """Write one size; returns facts about it."""
    own = trained.cut(size)
    files = []
    for out in options.out:
        path = _named(out, size, several)
        own.save(path)
        files.append(str(path))
    last = None
    for last in own.trace():  # noqa: B007  the last row is what is wanted
        pass
    return {
        "size": len(own),
        "merges": own.learned.merges.ids.size,
        "files": files,
        "bytes_per_token": last["bytes_per_token"] if last else 1.0,
    }


def _base(options: argparse.Namespace) -> Any:
    """The vocabulary to extend or prune; its pre-tokenizer splits the documents."""
    from jittok.cli.common import open_named
    from jittok.train.surgery import changeable

    tok = open_named(options.extend or options.prune, cache=True, where="--extend" if options.extend else "--prune")
    if options.pre is not None and options.pre != tok.vocab.pre:
        raise ValueError(f"found --pre {options.pre}, expected none: the vocabulary uses {tok.vocab.pre}")
    options.pre = changeable(tok).pre
    return tok


def _edited(options: argparse.Namespace, tok: Any, words: Counts) -> dict[str, Any]:
    """Extend or prune, and write."""
    from jittok.train.surgery import extend, prune

    if options.extend:
        made = extend(tok, None, options.size, words=words, min_frequency=options.min_frequency)
    else:
        made = prune(tok, None, words=words, least=max(options.min_frequency, 1))
    for out in options.out:
        made.save(out)
    for warning in made.warnings:
        note(f"jittok train: {warning}")
    facts = {"size": len(made.tokens), "merges": len(made.merges), "files": list(options.out)}
    return {**facts, "new": made.old_ids.count(-1), "gone": len(tok.vocab) - len(made.tokens) + made.old_ids.count(-1)}


def _other_model(options: argparse.Namespace, words: Counts, size: int, several: bool) -> dict[str, Any]:
    """Train and write a model other than BPE."""
    made: Any
    if options.model == "spm":
        from jittok.train.spm import SpmOptions, train_spm_counts

        chosen = SpmOptions(size, control=tuple(options.special), normalization=options.normalization)
        made = train_spm_counts(words, chosen, "auto")
    elif options.model == "unigram":
        from jittok.train.spm import SpmOptions
        from jittok.train.unigram import train_unigram_counts

        chosen = SpmOptions(
            size, byte_fallback=False, control=tuple(options.special), normalization=options.normalization,
            slices=options.slices,
        )  # fmt: skip
        made = train_unigram_counts(words, chosen, options.threads, progress="auto")
    else:
        from jittok.train.wordpiece import SPECIAL, train_wordpiece

        special = tuple(options.special) or SPECIAL
        made = train_wordpiece(None, size, words=words, special=special, min_frequency=options.min_frequency)
    files = []
    for out in options.out:
        path = _named(out, size, several)
        made.save(path)
        files.append(str(path))
    for warning in made.warnings:
        note(f"jittok train: {warning}")
    return {"size": len(made), "merges": made.merges.ids.size if made.merges else 0, "files": files}


def _look(options: argparse.Namespace, trained: Trained, words: Counts, report: dict[str, Any]) -> None:
    if options.trace:
        trained.save_trace(options.trace)
    if options.explain:
        from jittok.train.inspection import explain

        report["explained"] = [explain(trained, words, token) for token in options.explain]
    if options.held_out:
        from jittok.train.inspection import curve

        rates = curve(trained, held_out(options))
        report["held_out"] = {str(size): round(rate, 4) for size, rate in rates.items()}


def _text(report: dict[str, Any]) -> str:
    counted = (
        f"{report['documents']:,} documents, {report['bytes']:,} bytes: {report['words']:,} words, "
        f"{report['occurrences']:,} occurrences; counted in {report['seconds_counting']:.2f} s"
    )
    rows = [counted]
    for vocab in report.get("vocabularies", []):
        files = ", ".join(vocab["files"]) or "not written (no --out)"
        rate = f", {vocab['bytes_per_token']:.2f} bytes per token" if "bytes_per_token" in vocab else ""
        changed = f", {vocab['new']:,} added, {vocab['gone']:,} removed" if "new" in vocab else ""
        rows.append(f"{vocab['size']:,} tokens, {vocab['merges']:,} merges{changed}{rate}: {files}")
    if "seconds_learning" in report:
        rows.append(f"learned in {report['seconds_learning']:.2f} s")
    rows += [told["text"] for told in report.get("explained", [])]
    for size, rate in report.get("held_out", {}).items():
        rows.append(f"held out, {int(size):>9,} tokens: {rate:.3f} bytes per token")
    return "\n".join(rows) + "\n"
