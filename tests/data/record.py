"""Ask llama.cpp what every `tokenizer.ggml.pre` does to the texts that tell them apart; write golden/pre.jsonl.xz.

    python tests/data/record.py FOLDER

FOLDER: recorded answers (`pre-*.jsonl.xz`) to take candidate texts from. Needs llama-cpp-python; the file names its
version. llama.cpp ends the process on some texts, so it lives in a child, one a pre string.
"""

from __future__ import annotations

import base64
import ctypes
import itertools
import json
import lzma
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pair_vocab import pair_vocab

from jittok.kernels.pretokenize.records import pre_names

HERE = Path(__file__).resolve().parent
LONGEST = 160
TEXTS = 40
"""How many texts are kept for all pre strings."""
DIFFERENCES = 3
"""How many of them shall tell any two pre strings apart that can be told apart."""
SPACED = "a , b ! it 's  fine ? no n't"
"""Decoded with clean_spaces, it loses some spaces."""


# ---- the child: one vocabulary, one question a line


def answer_lines(path: str) -> None:
    """Read {"text": base64, "add": bool} or {"ids": [...]} a line, print ids or base64 text a line."""
    import llama_cpp as llama

    quiet = llama.llama_log_callback(lambda *_: None)
    llama.llama_log_set(quiet, ctypes.c_void_p())
    params = llama.llama_model_default_params()
    params.vocab_only = True
    model = llama.llama_model_load_from_file(path.encode(), params)
    if not model:
        raise SystemExit(f"llama.cpp does not load {path}")
    vocab = llama.llama_model_get_vocab(model)
    print(json.dumps(llama.__version__), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "ids" in asked:
            ids = (ctypes.c_int32 * len(asked["ids"]))(*asked["ids"])
            room = ctypes.create_string_buffer(1 << 16)
            size = llama.llama_detokenize(vocab, ids, len(ids), room, len(room), False, False)
            print(json.dumps(room.raw[:size].decode()), flush=True)
        else:
            text = base64.b64decode(asked["text"])
            out = (ctypes.c_int32 * (2 * len(text) + 8))()
            size = llama.llama_tokenize(vocab, text, len(text), out, len(out), asked["add"], False)
            print(json.dumps(out[:size]), flush=True)


class LlamaCpp:
    """Questions to a child process; one that ends it is answered by None."""

    def __init__(self, vocab: bytes) -> None:
        self.file = tempfile.NamedTemporaryFile(suffix=".gguf")  # noqa: SIM115  closed by close()
        self.file.write(vocab)
        self.file.flush()
        self.start()

    def start(self) -> None:
        command = [sys.executable, __file__, "--child", self.file.name]
        self.child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"GGML_NO_BACKTRACE": "1"},  # or each death waits for a debugger
            text=True,
        )
        self.version = json.loads(self.child.stdout.readline())

    def ask(self, **question: Any) -> Any:
        print(json.dumps(question), file=self.child.stdin, flush=True)
        line = self.child.stdout.readline()
        if not line:
            self.child.wait()
            self.start()
            return None
        return json.loads(line)

    def encode(self, text: bytes, add: bool = False) -> list[int] | None:
        return self.ask(text=base64.b64encode(text).decode(), add=add)

    def close(self) -> None:
        self.child.stdin.close()
        self.child.wait()
        self.file.close()


# ---- the parent: candidates, choice, file


def candidates(folder: Path) -> list[bytes]:
    """Short texts of all sets, each once."""
    texts = {}
    for path in sorted(folder.glob("pre-*.jsonl.xz")):
        for line in lzma.decompress(path.read_bytes()).splitlines():
            row = json.loads(line)
            if row["kind"] == "case" and row["group"] != "pieces":
                text = base64.b64decode(row["b64"]) if "b64" in row else row["text"].encode()
                if 2 < len(text) <= LONGEST:
                    texts[text] = None
    return list(texts)


def choose(answers: dict[str, list[Any]], count: int) -> list[int]:
    """Places of the texts that tell most pairs of pre strings apart, until each pair is DIFFERENCES times."""
    wanted = dict.fromkeys(itertools.combinations(sorted(answers), 2), DIFFERENCES)
    apart = [
        {(a, b) for a, b in wanted if answers[a][i] != answers[b][i]} for i in range(len(next(iter(answers.values()))))
    ]
    chosen: list[int] = []
    while len(chosen) < count:
        rest = [i for i in range(len(apart)) if i not in chosen]
        best = max(rest, key=lambda i: sum(wanted[pair] for pair in apart[i]))
        chosen.append(best)
        for pair in apart[best]:
            wanted[pair] = max(0, wanted[pair] - 1)
    return chosen


def main(folder: Path) -> None:
    texts = candidates(folder)
    names = sorted(pre_names())
    answers: dict[str, list[Any]] = {}
    others = []
    for pre in names:
        llama = LlamaCpp(pair_vocab(pre))
        answers[pre] = [llama.encode(text) for text in texts]
        ids = llama.encode(SPACED.encode())
        others.append({"kind": "settings", "pre": pre, "ids": ids, "decoded": ids and llama.ask(ids=ids),
                       "with_special": llama.encode(b"Hello", add=True)})  # fmt: skip
        version = llama.version
        llama.close()
        print(f"{pre:24} {sum(a is None for a in answers[pre]):5} of {len(texts)} texts end llama.cpp", flush=True)
    source = {"kind": "about", "llama_cpp": f"as in llama-cpp-python {version}", "vocabulary": "pair_vocab.py"}
    rows = [source, *others]
    for i in choose(answers, TEXTS):
        alike: dict[str, list[str]] = {}
        for pre in names:
            alike.setdefault(json.dumps(answers[pre][i]), []).append(pre)
        try:
            text: Any = texts[i].decode()
        except UnicodeDecodeError:
            text = {"b64": base64.b64encode(texts[i]).decode()}
        found = [{"pre": pres, "ids": json.loads(ids)} for ids, pres in alike.items()]
        rows.append({"kind": "text", "text": text, "answers": found})
    with lzma.open(HERE / "golden" / "pre.jsonl.xz", "wt", encoding="utf-8", newline="\n", preset=9) as file:
        file.writelines(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        answer_lines(sys.argv[2])
    else:
        main(Path(sys.argv[1]))
