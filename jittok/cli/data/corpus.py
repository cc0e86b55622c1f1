"""`jittok corpus`: compile documents into token shards."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jittok.cli.common import (
    add_on_error,
    add_reading,
    add_special,
    add_threads,
    add_vocab,
    group,
    kind_of,
    left_out_text,
    note,
    open_vocab,
    positive,
    tell,
    tell_slow,
    unescaped,
    write,
)
from jittok.cli.texts.chat import add_template, template_of, variables_of
from jittok.common.display.terminal import one_name
from jittok.corpus.formats import FORMATS

if TYPE_CHECKING:
    from jittok.corpus.compiler import Summary
    from jittok.corpus.options import Options
    from jittok.corpus.prediction import Prediction
    from jittok.kernels.jit.pool import Cancellation

HELP = "Compile documents into training-ready token shards."
EXAMPLES = """# predict documents, tokens, bytes and time from a sample
jittok corpus data/ --vocab model.gguf --out shards --dry-run
# compile; after a crash or a full disk, the same command resumes
jittok corpus data/*.jsonl.gz --vocab gpt-2 --out shards --append-eos
# several output formats at once
jittok corpus data/ --vocab gpt-2 --out shards --format megatron,parquet
# beside the ids of each document, where it is from
jittok corpus data/*.jsonl --vocab gpt-2 --out shards --keep id,meta.url
# chats, with a mask of what the assistant wrote
jittok corpus chats.jsonl --vocab folder/ --out shards --messages messages --learn assistant
# two corpora, shards/train and shards/val
jittok corpus data/*.jsonl --vocab gpt-2 --out shards --train-val 0.995
# documents in a drawn order, for programs that read shards from first to last
jittok corpus data/*.jsonl --vocab gpt-2 --out shards --shuffle-documents 7
# standard input, one document per line
zcat dump.gz | jittok corpus - --lines --vocab gpt-2 --out shards
# check the files, and re-tokenize a sample
jittok verify shards --vocab gpt-2
# the same corpus by many processes: plan it, run its parts anywhere, finish it
jittok corpus plan data/ --vocab gpt-2 --out shards --parts 8
jittok corpus run shards --part auto
jittok corpus status shards
jittok corpus finish shards
# or remove what was begun: its plan and shards, no other file (--dry-run only tells)
jittok corpus abandon shards"""
STEPS = ("plan", "run", "status", "finish", "abandon")
"""The steps of a corpus, each a call of its own, in place of a first input of that name (./plan is one)."""
OF_VOCAB = ("llama_cpp", "pre", "pattern", "special_token", "encoding", "no_cache", "cache_bytes")
"""Options that say how --vocab is read: nothing without it."""
OF_RUN = ("vocab", *OF_VOCAB, "threads", "part", "claim", "json")
OF_STEP = {"run": OF_RUN, "abandon": ("dry_run",)}
OF_ANY = ("inputs", "json", "help")
NOT_OF_PLAN = ("threads", "engine", "dry_run", "no_space_check")
UNFINISHED, TERMINATED = 3, 143


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_vocab(parser, required=False)
    parser.set_defaults(wrong=parser.error, known=parser._actions)
    parser.add_argument(
        "inputs", nargs="+", metavar="INPUT",
        help="files, globs, directories or URLs: .txt .jsonl .parquet .arrow, the first two also .gz .zst .bz2 .xz .lz4"
        "; -: standard input. Or a step: plan INPUT ..., run DIR, status DIR, finish DIR, abandon DIR",
    )  # fmt: skip
    _add_output(parser)
    _add_chats(parser)
    add_reading(parser, separator=True)
    add_on_error(parser)
    add_special(parser)
    _add_tokens(parser)
    add_threads(parser, "work")
    _add_work(parser)


def _add_output(parser: argparse.ArgumentParser) -> None:
    """Add what is written."""
    output = group(parser, "output")
    output.add_argument("--out", "-o", metavar="DIR", help="output folder; an interrupted run in it is resumed")
    output.add_argument(
        "--format",
        default="arrow",
        metavar="NAME,...",
        help=f"output formats, one or more of {', '.join(FORMATS)} (default: arrow)",
    )
    output.add_argument(
        "--keep", metavar="FIELD,...", type=_names, default=(),
        help="fields of JSON Lines, columns of tables to keep beside the ids: columns of arrow and parquet, a table in "
        "kept/ for other formats",
    )  # fmt: skip
    output.add_argument(
        "--train-val", metavar="SHARE", type=float,
        help="two corpora: this share of the documents in DIR/train, the others in DIR/val, by a hash of each document",
    )  # fmt: skip
    output.add_argument(
        "--shuffle-documents", metavar="SEED", type=int,
        help="documents in an order that this whole number draws: shards of ranges of all inputs, shuffled within each",
    )  # fmt: skip


def _add_tokens(parser: argparse.ArgumentParser) -> None:
    """Add what is put after documents, and how ids are laid out."""
    tokens = group(parser, "encoding")
    tokens.add_argument("--append-eos", action="store_true", help="append the end-of-text token to each document")
    tokens.add_argument("--eos", metavar="ID|TEXT", help="append this token to each document (a number is an id)")
    layout = group(parser, "layout")
    layout.add_argument("--dtype", choices=("auto", "uint16", "int32", "uint32"), default="auto", metavar="TYPE",
                        help="type of ids: uint16, int32, uint32 (default: by vocabulary size)")  # fmt: skip
    layout.add_argument(
        "--shard-bytes", default="1G", metavar="N", help="text per shard, 0: a single shard (default: 1G)"
    )
    layout.add_argument(
        "--range-bytes", default="8M", metavar="N", help="text per unit of work of one thread (default: 8M)"
    )


def _add_work(parser: argparse.ArgumentParser) -> None:
    """Add how the work is done, and its steps."""
    work = group(parser, "work")
    work.add_argument(
        "--engine", choices=("threads", "ray"), default="threads", metavar="NAME",
        help="threads, or ray: Ray actors, also on many machines (default: threads)",
    )  # fmt: skip
    work.add_argument(
        "--cache-bytes", metavar="N",
        help="size of the pre-token cache of each thread (default: 256M, or 1/32 of the machine's memory if less)",
    )  # fmt: skip
    work.add_argument(
        "--dry-run", action="store_true", help="only predict documents, tokens, bytes and time, from a sample"
    )
    work.add_argument("--no-space-check", action="store_true", help="skip the check for free disk space")
    steps = group(parser, "steps on many machines")
    steps.add_argument(
        "--parts", type=positive, metavar="N", help="with plan: into how many parts the work is to be shared"
    )
    steps.add_argument(
        "--part", metavar="I|I/N|auto",
        help="with run: this part, from 0; auto: of a Slurm array, a Kubernetes indexed job, AWS Batch or Cloud Run",
    )  # fmt: skip
    steps.add_argument(
        "--claim", action="store_true", help="with run: whatever is free, claimed by leases, in place of a part"
    )


def _add_chats(parser: argparse.ArgumentParser) -> None:
    from jittok.corpus.options import LEARN

    chat = group(parser, "chat")
    chat.add_argument(
        "--messages", metavar="FIELD",
        help="each document is a chat: the field or column of its messages, which the chat template renders",
    )  # fmt: skip
    chat.add_argument("--tools", metavar="FIELD", help="the field or column of its tools")
    chat.add_argument(
        "--learn", choices=LEARN,
        help="beside the ids a mask of what is to be learned: a column of arrow and parquet, loss_mask/ for others",
    )  # fmt: skip
    add_template(parser)
    chat.add_argument("--now", metavar="DATE", help="the clock that the template sees, such as 2026-01-31")


def run(options: argparse.Namespace) -> int:
    """Compile, or predict; or do one of the steps."""
    step = options.inputs[0] if options.inputs[0] in STEPS else ""
    _check_step(options, step)
    from jittok.corpus.tasks.crew import Stopped
    from jittok.kernels.jit.pool import Cancellation

    compiles = step == "run" or (not step and not options.dry_run)
    with signals() if compiles else contextlib.nullcontext(Cancellation()) as stop:
        try:
            if not step:
                return _compile(options, stop)
            steps = {"plan": _plan, "run": _run, "status": _status, "finish": _finish, "abandon": _abandon}
            return steps[step](options, stop)
        except Stopped:
            note("jittok corpus: stopped by a signal; what is done stays done, and the same command does the rest")
            return TERMINATED


def _check_step(options: argparse.Namespace, step: str) -> None:
    """A usage error for arguments that do not go together."""
    if step in ("", "plan"):
        needed = [name for name, value in (("--vocab", options.vocab), ("--out/-o", options.out)) if value is None]
        if needed:
            options.wrong(f"the following arguments are required: {', '.join(needed)}")
        if step and not options.inputs[1:]:
            options.wrong("plan: found no input, expected files, folders, globs or URLs")
    elif len(options.inputs) != 2 or options.out is not None:
        options.wrong(f"{step}: expected the folder of one corpus: jittok corpus {step} DIR")
    for name, given, of in (
        ("--parts", options.parts, "plan"), ("--part", options.part, "run"), ("--claim", options.claim or None, "run"),
    ):  # fmt: skip
        if given is not None and step != of:
            options.wrong(f"{name}: expected it with jittok corpus {of}")
    if options.claim and options.part is not None:
        options.wrong("--claim: expected it without --part")
    if step:
        _refuse_others(options, step)


def _refuse_others(options: argparse.Namespace, step: str) -> None:
    """A usage error for an option that says nothing to a step, which would be passed over."""
    for action in options.known:
        name = action.dest
        if getattr(options, name, action.default) == action.default or name in OF_ANY:
            continue
        if name in NOT_OF_PLAN if step == "plan" else name not in OF_STEP.get(step, ()):
            options.wrong(f"{action.option_strings[0]}: expected it without {step}")
        if step == "run" and options.vocab is None and name in OF_VOCAB:
            options.wrong(f"{action.option_strings[0]}: expected it with --vocab")


@contextlib.contextmanager
def signals() -> Iterator[Cancellation]:
    """What SIGTERM and SIGUSR1 set while the block runs, which schedulers send before they kill. The second of a kind
    does what it did before."""
    from jittok.kernels.jit.pool import Cancellation

    stop = Cancellation()
    names = [name for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {getattr(signal, name): signal.getsignal(getattr(signal, name)) for name in names}

    def hear(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, hear)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _compile(options: argparse.Namespace, stop: Cancellation) -> int:
    chosen = _options(options)
    tok = open_vocab(options, _cache_bytes(options))
    tell_slow(tok)
    if options.dry_run:
        return _dry_run(tok, options, chosen)
    from jittok.corpus.compiler import compile_corpus

    summary = compile_corpus(
        options.inputs, tok, options.out, chosen, threads=options.threads, engine=options.engine,
        check_space=not options.no_space_check, stop=stop,
    )  # fmt: skip
    _say(options, summary.to_dict(), _summary_text(summary))
    return 0


def _say(options: argparse.Namespace, fact: dict[str, Any], text: str) -> None:
    if options.json:
        write(json.dumps(fact) + "\n")
    else:
        tell(text)


def _plan(options: argparse.Namespace, stop: Cancellation) -> int:  # noqa: ARG001  short
    from jittok.corpus.compiler import plan_corpus

    found = plan_corpus(
        options.inputs[1:], open_vocab(options, _cache_bytes(options)), options.out, _options(options),
        parts=options.parts,
    )  # fmt: skip
    parts = "" if found.parts is None else f" for {_count(found.parts, 'part')}"
    rows = [
        (
            f"{one_name(found.out)}: {_count(found.tasks, 'task')}{parts}, {_count(found.inputs, 'input')}, "
            f"{_size(found.bytes)}"
        )
    ]
    if found.left_out:
        rows.append(left_out_text(found.left_out))
    _say(options, found.to_dict(), "\n".join(rows) + "\n")
    return 0


def _run(options: argparse.Namespace, stop: Cancellation) -> int:
    from jittok.corpus.compiler import run_corpus

    tok = None if options.vocab is None else open_vocab(options, _cache_bytes(options))
    found = run_corpus(
        options.inputs[1], tok, part=options.part, claim=options.claim, threads=options.threads, stop=stop
    )
    rows = [
        (
            f"{one_name(found.out)}: {_count(found.done, 'task')} done now, {found.before:,} before; "
            f"{_count(found.documents, 'document')}, {_count(found.tokens, 'token')}, {found.seconds:.1f} s"
        )
    ]
    failed = _reasons(found.failed)
    rows += [f"task {number} failed: {why}" for number, why in failed.items()]
    _say(options, {**found.to_dict(), "failed": failed}, "\n".join(rows) + "\n")
    return 1 if found.failed else 0


def _status(options: argparse.Namespace, stop: Cancellation) -> int:  # noqa: ARG001
    from jittok.corpus.compiler import corpus_status

    found = corpus_status(options.inputs[1])
    if found is None:
        _say(options, {"finished": True}, f"{one_name(options.inputs[1])}: finished\n")
        return 0
    free = len(set(found.missing) - found.failed.keys() - set(found.claimed))
    ended = f" ({len(found.expired):,} begun by processes whose leases have ended)" if found.expired else ""
    rows = [
        (
            f"{one_name(options.inputs[1])}: {len(found.done):,} of {_count(found.tasks, 'task')} done, "
            f"{len(found.claimed):,} claimed, {len(found.failed):,} failed, {free:,} free{ended}; "
            f"{_count(found.documents, 'document')}, {_count(found.tokens, 'token')}"
        )
    ]
    failed = _reasons(found.failed)
    again = dict.fromkeys(found.claimed, " (it is tried again now)")
    rows += [f"task {number} failed{again.get(number, '')}: {why}" for number, why in failed.items()]
    fact = {"finished": False, **found._asdict(), "failed": failed, "missing": found.missing}
    _say(options, fact, "\n".join(rows) + "\n")
    return 0


def _reasons(failed: dict[int, str]) -> dict[int, str]:
    """Why tasks failed, with options as they are spelled here."""
    return {number: getattr(why, "on_command_line", why) for number, why in failed.items()}


def _finish(options: argparse.Namespace, stop: Cancellation) -> int:  # noqa: ARG001
    from dataclasses import replace

    from jittok.corpus.compiler import finish_corpus
    from jittok.corpus.tasks.finish import Unfinished

    try:
        summary = finish_corpus(options.inputs[1])
    except Unfinished as error:
        note(f"jittok corpus: {error.on_command_line}")
        return UNFINISHED
    _say(options, summary.to_dict(), _summary_text(replace(summary, seconds=0.0)))  # its speed is no speed of encoding
    return 0


def _abandon(options: argparse.Namespace, stop: Cancellation) -> int:  # noqa: ARG001
    from jittok.corpus.compiler import abandon_corpus
    from jittok.corpus.tasks.abandon import Abandoned

    def tell_it(found: Abandoned) -> None:
        what = "would remove" if options.dry_run else "removes"
        said = f"{one_name(found.out)}: {what} {_count(found.files, 'file')}, {_size(found.bytes)}, "
        said += f"of {found.done:,} of {_count(found.tasks, 'task')}, and the plan\n"
        _say(options, {**found._asdict(), "dry_run": options.dry_run}, said)

    abandon_corpus(options.inputs[1], dry_run=options.dry_run, tell=tell_it)
    return 0


def _cache_bytes(given: argparse.Namespace) -> int | None:
    from jittok.corpus.options import parse_bytes
    from jittok.errors import CorpusError

    size = None if given.cache_bytes is None else parse_bytes(given.cache_bytes, "--cache-bytes")
    if size is not None and size < 0:
        raise CorpusError("--cache-bytes", given.cache_bytes, "0 or more")
    return size


def _names(said: str) -> tuple[str, ...]:
    """The value of --keep."""
    return tuple(name.strip() for name in said.split(","))


def _token(said: str | None) -> int | str | None:
    """The value of --eos: digits are an id, anything else is a text."""
    return int(said) if said is not None and said.isascii() and said.isdigit() and len(said) < 10 else said


def _options(given: argparse.Namespace) -> Options:
    from jittok.corpus.options import Options, parse_bytes

    separator = None if given.separator is None else unescaped(given.separator)
    return Options(
        formats=tuple(name.strip() for name in given.format.split(",")), kind=kind_of(given), field=given.field,
        column=given.column, join=given.join, keep=given.keep, train_val=given.train_val,
        shuffle_documents=given.shuffle_documents, messages=given.messages, tools=given.tools,
        learn=given.learn, template=template_of(given), trusted=tuple(given.trusted),
        variables=variables_of(given) or None, now=given.now, lines=given.lines, separator=separator,
        add_special=given.add_special, parse_special=given.parse_special, append_eos=given.append_eos,
        eos=_token(given.eos), on_error=given.on_error, dtype=given.dtype,
        range_bytes=parse_bytes(given.range_bytes, "--range-bytes"),
        shard_bytes=parse_bytes(given.shard_bytes, "--shard-bytes"),
        max_document_bytes=parse_bytes(given.max_document_bytes, "--max-document-bytes"),
    )  # fmt: skip


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}" + "s" * (number != 1)


def _size(number: float) -> str:
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= unit:
            return f"{number / unit:,.1f} {name}"
    return f"{number:.0f} bytes"


def _summary_text(summary: Summary) -> str:
    new = summary.documents - summary.resumed
    rows = [_made(each) for each in summary.sides.values() or (summary,)]
    if summary.resumed:
        rows.append(f"{summary.resumed:,} of them from an earlier run")
    if new and summary.seconds:
        rows.append(
            f"{summary.seconds:.1f} s, {summary.text_bytes * new / summary.documents / 1e6 / summary.seconds:.1f} MB/s"
        )
    if summary.bad_documents:
        rows.append(f"skipped or replaced: {_count(summary.bad_documents, 'document')}; see {_errors(summary)}")
    if summary.blank_lines:
        rows.append(f"skipped: {_count(summary.blank_lines, 'blank line')}")
    if summary.left_out:
        rows.append(left_out_text(summary.left_out))
    return "\n".join(rows) + "\n"


def _made(summary: Summary) -> str:
    made = [_count(summary.documents, "document"), _count(summary.tokens, "token"), _size(summary.bytes)]
    return f"{one_name(str(summary.out))}: {', '.join([*made, _count(summary.shards, 'shard')])}"


def _errors(summary: Summary) -> str:
    """Where bad documents are listed: on every side all of them."""
    return f"{one_name(next(iter(summary.sides.values()), summary).out)}/errors/"


def _dry_run(tok: Any, given: argparse.Namespace, chosen: Options) -> int:
    from jittok.corpus.prediction import dry_run

    found = dry_run(given.inputs, tok, given.out, chosen, given.threads)
    if given.json:
        write(json.dumps({**found.prediction.to_dict(), "left_out": found.left_out}) + "\n")
    else:
        tell(_prediction_text(found.prediction, found.inputs, found.threads))
        if found.left_out:
            note(left_out_text(found.left_out))
    return 0


def _prediction_text(found: Prediction, inputs: int, threads: int) -> str:
    def told(name: str) -> str:
        error = found.error.get(name, 0.0)
        return (
            ""
            if error == 0
            else " (too few samples to estimate the error)"
            if error is None
            else f" ± {100 * error:.1f} %"
        )

    seconds = f"{found.seconds:,.1f} s" if found.seconds < 10 else f"{found.seconds:,.0f} s"
    rows = [
        f"{_count(inputs, 'input')}, {_size(found.total)}; sampled {_size(found.sampled)}",
        f"documents  {found.documents:,.0f}{told('documents')}",
        f"tokens     {found.tokens:,.0f}{told('tokens')}",
        *(f"{name:<10} {_size(size)}{told('tokens')}" for name, size in found.bytes.items()),
        f"time       {seconds}{told('seconds')}, at the speed of the sample, {_count(threads, 'thread')}",
    ]
    return "\n".join(rows) + "\n"
