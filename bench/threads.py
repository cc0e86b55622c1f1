"""Two threads beside one: `python bench/threads.py [VOCABULARY] [--mb 64] [--pairs 9]`.

What two threads can gain depends on the machine, so two others are measured in turns with the encoding: two plain loops
that hold no lock and touch no memory, and two processes that encode the same documents beside each other and share
nothing but the machine. Each line has four gains, in wall time: of the loops; of the processes; of many documents
(`encode_batch`, threads=2 over threads=1); of one document. The last line has the medians, and both gains of the
encoding divided by that of the processes. On a machine with other work, only lines where the loops gain nearly 2 say
something.
"""

import argparse
import multiprocessing
import statistics
import threading
import time

import numpy as np
from conftest import documents

import jittok
from jittok.kernels.jit import kernel


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


def read(vocabulary, megabytes):
    """A tokenizer, many documents, and one of them all."""
    tok, texts = jittok.bundled(vocabulary), documents("english")
    many = texts * max(1, (megabytes << 20) // sum(map(len, texts)))
    return tok, many, [b"\n\n".join(many)[: megabytes << 20]]


def beside(pipe, *given):
    """A process that encodes all documents each time it is asked, and says how long that took."""
    tok, many, _ = read(*given)
    tok.encode_batch(many, threads=1)
    pipe.send(0)
    while pipe.recv():
        pipe.send(seconds(tok.encode_batch, many, threads=1))


class Processes:
    """Two of them."""

    def __init__(self, *given):
        spawn = multiprocessing.get_context("spawn")
        self.pipes = []
        for _ in range(2):
            mine, its = spawn.Pipe()
            spawn.Process(target=beside, args=(its, *given), daemon=True).start()
            self.pipes.append(mine)
        for pipe in self.pipes:
            pipe.recv()

    def gain(self):
        """How many times as much both do as one alone, in the same time."""
        self.pipes[0].send(True)
        alone = self.pipes[0].recv()
        for pipe in self.pipes:
            pipe.send(True)
        return 2 * alone / max(pipe.recv() for pipe in self.pipes)

    def end(self):
        for pipe in self.pipes:
            pipe.send(False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vocabulary", nargs="?", default="gpt-2")
    parser.add_argument("--mb", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=9)
    args = parser.parse_args()
    given = args.vocabulary, args.mb
    tok, many, one = read(*given)
    steps = 200_000_000
    assert tok.encode_batch(one, threads=2) == tok.encode_batch(one, threads=1)
    assert tok.encode_batch(many, threads=2) == tok.encode_batch(many, threads=1)
    loops(2, steps)
    processes, gains = Processes(*given), []
    calls = (
        lambda threads: loops(threads, steps),
        lambda threads: tok.encode_batch(many, threads=threads),
        lambda threads: tok.encode_batch(one, threads=threads),
    )
    for _ in range(args.pairs):
        plain, several, single = (seconds(call, 1) / seconds(call, 2) for call in calls)
        gains.append((plain, processes.gain(), several, single))
        print("loops {:.2f}  processes {:.2f}  documents {:.2f}  one document {:.2f}".format(*gains[-1]), flush=True)
    processes.end()
    plain, apart, several, single = (statistics.median(column) for column in zip(*gains, strict=True))
    print(
        f"medians: loops {plain:.2f}, processes {apart:.2f};"
        f" documents {several / apart:.2f} and one document {single / apart:.2f} of processes"
    )


if __name__ == "__main__":
    main()
