"""Loading takes time in proportion to the file: no token, however long or repetitive, makes a small file slow.

What is measured is the processor's time of a second load (the first compiles kernels). Its bound is what any vocabulary
may take: 0.5 s and 4 s a megabyte. That is several times what is promised, as machines differ. What was found here once
took 20 to 100 s a megabyte.
"""

import random
import time

import numpy as np
import pytest
from write_gguf import F32, I32, Of, T, write_gguf

import jittok

pytestmark = pytest.mark.process  # kernels do the work: without the compiler they would take long

FIXED, PER_MEGABYTE = 0.5, 4.0
NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6
BYTES = [f"<0x{b:02X}>" for b in range(256)]


def drawn(size, low=97, high=122, seed=0):
    codes = np.random.default_rng([seed, size]).integers(low, high + 1, size)
    return "".join(map(chr, codes.tolist()))


def many(count, longest, low=97, high=122):
    rng = random.Random(1)
    return list(dict.fromkeys(drawn(rng.randrange(2, longest), low, high, k) for k in range(count)))


def header(kind, tokens, types, **more):
    rng = random.Random(2)
    values = {
        T + "model": kind,
        T + "tokens": tokens,
        T + "token_type": Of(I32, types),
        T + "scores": Of(F32, [-rng.uniform(2, 12) for _ in tokens]),
    }
    return write_gguf({**values, **{T + name: value for name, value in more.items()}})


def spm(tokens, kind=NORMAL):
    types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [kind] * len(tokens)
    return header("llama", ["<unk>", "<s>", "</s>", *BYTES, *tokens], types)


def ugm(tokens, kind=NORMAL):
    return header("t5", ["<unk>", "</s>", "\u2581", *tokens], [UNKNOWN, CONTROL, NORMAL] + [kind] * len(tokens))


def plamo(tokens):
    return header("plamo2", ["<unk>", *BYTES, *tokens], [UNKNOWN] + [BYTE] * 256 + [NORMAL] * len(tokens))


def wpm(tokens):
    return header("bert", ["[UNK]", "[CLS]", "[SEP]", *tokens], [UNKNOWN, CONTROL, CONTROL] + [NORMAL] * len(tokens),
                  unknown_token_id=0, bos_token_id=1, seperator_token_id=2)  # fmt: skip


def rwkv(tokens):
    texts = ["<s>", *(rf"\x{b:02x}" for b in range(256)), *tokens]
    return header("rwkv", texts, [CONTROL] + [NORMAL] * (len(texts) - 1))


def bpe(tokens, merges, kind=NORMAL):
    letters = [chr(c) for c in range(33, 127)]
    types = [NORMAL] * len(letters) + [kind] * len(tokens)
    return header("gpt2", [*letters, *tokens], types, merges=merges, pre="gpt-2")


LONG = [drawn(60000, seed=k) for k in range(8)]
REPEATED = ["a" * n for n in range(2, 700)]
FILES = {
    "plamo2, one token of one letter": lambda: plamo(["a" * 65536]),
    "plamo2, long": lambda: plamo(LONG),
    "spm, long": lambda: spm(LONG),
    "spm, one letter": lambda: spm(REPEATED),
    "spm, long user-defined": lambda: spm(LONG, USER),
    "ugm, drawn": lambda: ugm(many(3000, 100, 33, 126)),
    "ugm, long": lambda: ugm(LONG),
    "ugm, one letter": lambda: ugm(REPEATED),
    "ugm, user-defined": lambda: ugm(many(3000, 60, 33, 126), USER),
    "wpm, long": lambda: wpm(["\u2581" + LONG[0], *LONG[1:]]),
    "wpm, one letter": lambda: wpm(REPEATED),
    "rwkv, long": lambda: rwkv(LONG),
    "bpe, prefixes": lambda: bpe([LONG[0][:n] for n in range(2, 700)],
                                 [f"{LONG[0][:n]} {LONG[0][n]}" for n in range(1, 699)]),
    "bpe, nested control tokens": lambda: bpe(["<" + text + ">" for text in REPEATED], ["a b"], CONTROL),
    "bpe, user-defined of one letter": lambda: bpe(REPEATED, ["a b"], USER),
}  # fmt: skip


@pytest.mark.parametrize("make", FILES.values(), ids=FILES)
def test_a_file_loads_in_time_by_its_size(make):
    raw = make()

    def load():
        begin = time.process_time()
        tok = jittok.load(raw, cache=False)
        tok.encode("an aaab of <aaa>", parse_special=True)
        return time.process_time() - begin

    load()
    allowed = FIXED + PER_MEGABYTE * len(raw) / 1e6
    assert min(load() for _ in range(2)) < allowed
