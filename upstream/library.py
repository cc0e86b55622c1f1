"""One build of llama.cpp, asked through its C interface: standard input and output, a JSON line each.

    python library.py find                 the library that the packages of this Python bring
    python library.py serve LIBRARY        answer questions about vocabularies until standard input ends

A question is {"file": GGUF path, "steps": [...]}, a step ["encode", base64, add_special, parse_special] or ["facts"];
its answer {"load": "ok" or why not, "answers": [...]}. Or it is {"try": "pre" or "model", "words": [...]}: those of the
words with which a small vocabulary loads. Each vocabulary gets a child process, so an abort of llama.cpp is an answer
too: {"error": "abort"}.

Runs on the Python of whatever environment has the library, so it needs the standard library alone. POSIX.
"""

from __future__ import annotations

import base64
import ctypes
import importlib.util
import json
import os
import resource
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

PACKAGES = (("llama_cpp", "lib/libllama.*"), ("xllamacpp", "xllamacpp*.so"), ("llama_cpp_py_sync", "libllama.*"))
"""Modules that bring a library, and where it lies in them."""
IDS = {
    "bos_id": "bos", "eos_id": "eos", "eot_id": "eot", "sep_id": "sep", "nl_id": "nl", "pad_id": "pad",
    "mask_id": "mask", "fim_prefix_id": "fim_pre", "fim_suffix_id": "fim_suf", "fim_middle_id": "fim_mid",
    "fim_pad_id": "fim_pad", "fim_rep_id": "fim_rep", "fim_sep_id": "fim_sep",
}  # fmt: skip
FLAGS = ("add_bos", "add_eos", "add_sep")
OFFSETS = (72, 64, 80, 56, 88, *range(40, 160))
"""Where `vocab_only` may be in llama_model_params: it has moved between versions."""
T = "tokenizer.ggml."


class Params(ctypes.Structure):
    """llama_model_params, longer than any version's; it is only passed on."""

    _fields_ = [("bytes", ctypes.c_ubyte * 512)]


def header(pairs: dict[str, tuple[int, Any]]) -> bytes:
    """A GGUF file of (type, value) pairs: strings, arrays of strings, float32 or int32, booleans."""

    def text(value: str) -> bytes:
        raw = value.encode()
        return struct.pack("<Q", len(raw)) + raw

    out = [b"GGUF", struct.pack("<IQQ", 3, 0, len(pairs))]
    for key, (kind, value) in pairs.items():
        out += [text(key), struct.pack("<i", kind)]
        if kind == 8:
            out.append(text(value))
        else:
            item, values = value
            out.append(struct.pack("<iQ", item, len(values)))
            out += (
                map(text, values) if item == 8 else [struct.pack(f"<{len(values)}{'f' if item == 6 else 'i'}", *values)]
            )
    return b"".join(out)


def tiny_vocab(pre: str) -> bytes:
    """Loads with every pre string."""
    return header({
        "general.architecture": (8, "llama"), T + "model": (8, "gpt2"), T + "pre": (8, pre),
        T + "tokens": (9, (8, ["a", "b", "ab"])), T + "merges": (9, (8, ["a b"])),
    })  # fmt: skip


def small_vocab(model: str = "gpt2", pre: str = "default") -> bytes:
    """Loads with every model that takes byte tokens."""
    tokens = ["<unk>", "<s>", "</s>", "<pad>", *(f"<0x{b:02X}>" for b in range(256)), "\n", "a", "b", "ab"]
    return header({
        "general.architecture": (8, "llama"), T + "model": (8, model), T + "pre": (8, pre),
        T + "tokens": (9, (8, tokens)), T + "merges": (9, (8, ["a b"])), T + "scores": (9, (6, [0.0] * len(tokens))),
        T + "token_type": (9, (5, [2, 3, 3, 3] + [6] * 256 + [1] * 4)),
    })  # fmt: skip


class Llama:
    """A library and, after `load`, one vocabulary."""

    def __init__(self, library: str, offset: int) -> None:
        self.lib, self.offset = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL), offset
        pointer, number, flag, string = ctypes.c_void_p, ctypes.c_int32, ctypes.c_bool, ctypes.c_char_p
        self.params = self._function("model_default_params", Params)
        self.open = self._function("model_load_from_file", pointer, string, Params)
        self.vocab_of = self._function("model_get_vocab", pointer, pointer)
        self.size = self._function("vocab_n_tokens", number, pointer)
        self.tokenize = self._function("tokenize", number, pointer, string, number, pointer, number, flag, flag)
        self.attribute = self._function("vocab_get_attr", number, pointer, number)
        self.ends = self._function("vocab_is_eog", flag, pointer, number)
        known = {name: word for name, word in IDS.items() if hasattr(self.lib, f"llama_vocab_{word}")}
        self.ids = {name: self._function(f"vocab_{word}", number, pointer) for name, word in known.items()}
        self.flags = {name: self._function(f"vocab_get_{name}", flag, pointer) for name in FLAGS}
        self._function("backend_init", None)()

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        found = getattr(self.lib, f"llama_{name}")
        found.restype, found.argtypes = result, arguments
        return found

    def load(self, path: str) -> None:
        """Raises ValueError when llama.cpp refuses the file."""
        params = self.params()
        params.bytes[self.offset] = 1
        model = self.open(path.encode(), params)
        if not model:
            raise ValueError("refused")
        self.vocab = self.vocab_of(model)

    def encode(self, text: str, add: bool, parse: bool) -> list[int]:
        """The ids of a text in base64."""
        raw = base64.b64decode(text)
        room = len(raw) + 16
        while True:
            out = (ctypes.c_int32 * room)()
            count = self.tokenize(self.vocab, raw, len(raw), out, room, add, parse)
            if count >= 0:
                return list(out[:count])
            room = -count

    def facts(self) -> dict[str, Any]:
        """Special ids (None: none), flags, ids that end generation, attributes."""
        every = range(self.size(self.vocab))
        ids = {name: call(self.vocab) for name, call in self.ids.items()}
        return {
            **{name: None if token == -1 else token for name, token in ids.items()},
            **{name: bool(call(self.vocab)) for name, call in self.flags.items()},
            "eog_ids": [token for token in every if self.ends(self.vocab, token)],
            "attributes": [self.attribute(self.vocab, token) for token in every],
        }


def silence() -> None:
    """Nothing that llama.cpp prints, no core files, no debugger that an abort waits for."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.environ["GGML_NO_BACKTRACE"] = "1"
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def in_child(work: Callable[[Any], None]) -> str:
    """What a child process wrote until it ended or died."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            with os.fdopen(write, "w") as pipe:
                work(pipe)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def find_offset(library: str) -> int:
    """Where `vocab_only` is: only with it set does a file without tensors load. LookupError for a library in which
    no place works."""
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        file.write(small_vocab())
        file.flush()
        for offset in OFFSETS:

            def try_offset(pipe: Any, offset: int = offset) -> None:
                side = Llama(library, offset)
                side.load(file.name)
                pipe.write("yes" if side.size(side.vocab) == 264 else "no")

            if in_child(try_offset) == "yes":
                return offset
    raise LookupError(f"{library}: found no offset of vocab_only")


def answer(side: Llama, file: str, steps: list[list[Any]]) -> dict[str, Any]:
    """The answers to the steps; the one that killed a child is an error, and another child goes on after it."""
    answers: list[Any] = []
    while True:

        def ask(pipe: Any) -> None:
            try:
                side.load(file)
            except ValueError as error:
                pipe.write(json.dumps(str(error)) + "\n")
                return
            pipe.write('"ok"\n')
            pipe.flush()
            for name, *arguments in steps[len(answers) :]:
                pipe.write(json.dumps(getattr(side, name)(*arguments)) + "\n")
                pipe.flush()

        lines = [line for line in in_child(ask).split("\n") if line]
        load = json.loads(lines[0]) if lines else "abort"
        answers += map(json.loads, lines[1:])
        if load != "ok" or len(answers) >= len(steps):
            return {"load": load, "answers": answers}
        answers.append({"error": "abort"})


def accepted(side: Llama, kind: str, words: Iterable[str]) -> list[str]:
    """Of the words, those that name something. One that kills the child is known too: an unknown one is refused."""
    words, found, at = list(words), [], 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "v.gguf"
        while at < len(words):

            def try_words(pipe: Any) -> None:
                for word in words[at:]:
                    path.write_bytes(tiny_vocab(word) if kind == "pre" else small_vocab(word))
                    try:
                        side.load(str(path))
                        pipe.write("+")
                    except ValueError:
                        pipe.write("-")
                    pipe.flush()

            marks = in_child(try_words)
            found += [word for word, mark in zip(words[at:], marks) if mark == "+"]  # noqa: B905  the rest is to be tried
            at += len(marks)
            if at < len(words):
                found.append(words[at])
                at += 1
    return found


def serve(library: str) -> None:
    """Answer until standard input ends."""
    out = os.fdopen(os.dup(1), "w")
    ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)  # one that does not load says why while it can be heard
    silence()
    side = Llama(library, find_offset(library))
    for line in sys.stdin:
        asked = json.loads(line)
        if "try" in asked:
            found: Any = accepted(side, asked["try"], asked["words"])
        else:
            found = answer(side, asked["file"], asked["steps"])
        out.write(json.dumps(found) + "\n")
        out.flush()


def find_library() -> str:
    """The library of a package of this Python. LookupError where there is none."""
    for module, pattern in PACKAGES:
        spec = importlib.util.find_spec(module)
        for place in (spec.submodule_search_locations or []) if spec else []:
            for file in sorted(Path(place).glob(pattern)):
                return str(file)
    raise LookupError(f"found none of {', '.join(module for module, _ in PACKAGES)}")


if __name__ == "__main__":
    if sys.argv[1] == "find":
        print(find_library())
    else:
        serve(sys.argv[2])
