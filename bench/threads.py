"""Two threads beside one: `python bench/threads.py [VOCABULARY] [--mb 64] [--pairs 9]`.

What two threads can gain depends on the machine. So two plain loops that hold no lock are measured in turns with the
encoding. Each line has three gains, in wall time: of the loops; of many documents (`encode_batch`, threads=2 over
threads=1); of one document. The last line has the medians, and both gains of the encoding divided by that of the loops.
On a machine with other work, only lines where the loops gain nearly 2 say something.
"""

import argparse
import statistics
import threading
import time

import numpy as np
from conftest import documents

import jittok
from jittok._jit import kernel


@kernel
def loop(steps: int) -> int:
    """Arithmetic without memory."""
    x = np.int64(1)
    for k in range(steps):
        x = (x * 1103515245 + k) & 0x7FFFFFFF
    return x


def seconds(call, *args, **named):
    start = time.perf_counter()
    call(*args, **named)
    return time.perf_counter() - start


def loops(threads, steps):
    started = [threading.Thread(target=loop, args=(steps // threads,)) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vocabulary", nargs="?", default="gpt-2")
    parser.add_argument("--mb", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=9)
    args = parser.parse_args()
    tok, texts = jittok.bundled(args.vocabulary), documents("english")
    size = sum(map(len, texts))
    many = texts * max(1, (args.mb << 20) // size)
    one = [b"\n\n".join(many)[: args.mb << 20]]
    steps = 200_000_000
    assert tok.encode_batch(one, threads=2) == tok.encode_batch(one, threads=1)
    assert tok.encode_batch(many, threads=2) == tok.encode_batch(many, threads=1)
    loops(2, steps)
    gains = []
    for _ in range(args.pairs):
        pair = [
            seconds(call, *rest, 1) / seconds(call, *rest, 2)
            for call, *rest in (
                (lambda threads: loops(threads, steps),),
                (lambda threads: tok.encode_batch(many, threads=threads),),
                (lambda threads: tok.encode_batch(one, threads=threads),),
            )
        ]
        gains.append(pair)
        print("loops {:.2f}  documents {:.2f}  one document {:.2f}".format(*pair), flush=True)
    plain, several, single = (statistics.median(column) for column in zip(*gains, strict=True))
    print(f"medians: loops {plain:.2f}; documents {several / plain:.2f} and one document {single / plain:.2f} of that")


if __name__ == "__main__":
    main()
