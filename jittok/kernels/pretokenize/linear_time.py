"""Whether searching for a pattern takes linear time, decided from its automaton.

A search reads past its last match as long as a longer one is possible. If none comes, the next search begins where the
match ended, and reads the same characters again. That takes more than linear time only if the number of searches that
read the same character is unbounded. Then there is a text that leads from the start to a state, and from that state
back to itself without a match on the way. In repeats of such a text, a search from each offset reads on.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

from jittok.kernels.pretokenize.automaton import DEAD, START

MOST_STEPS = 1 << 19
"""Limit of steps of the search for such a text; beyond it a pattern counts as not linear."""


def waiting(transitions: NDArray[np.uint16], ends: int) -> list[list[tuple[int, int]]]:
    """For each state, the steps (symbol, next state) after which a text may lead back to it without a match on the
    way; most states have none. transitions: [states, symbols] as in `Automaton`; the last `ends` symbols are the end of
    the text."""
    waits = [[(c, int(entry) >> 1) for c, entry in enumerate(row) if entry & 1 == 0 and entry >> 1 != DEAD]
             for row in transitions[:, :-ends].tolist()]  # fmt: skip
    component = _components([[to for _, to in row] for row in waits])
    return [[(c, to) for c, to in row if component[to] == component[k]] for k, row in enumerate(waits)]


def is_linear(transitions: NDArray[np.uint16], ends: int) -> bool:
    """Whether no text makes an unbounded number of searches read the same characters. The arguments are those of
    `waiting`."""
    nexts, inside = (transitions[:, :-ends] >> 1).tolist(), waiting(transitions, ends)
    steps = 0
    for state, row in enumerate(inside):
        if not row:
            continue
        todo, seen = deque([(START, state)]), {(START, state)}
        while todo:
            young, old = todo.popleft()
            for c, to in inside[old]:
                pair = nexts[young][c], to
                steps += 1
                if pair == (state, state):
                    return False
                if pair[0] != DEAD and pair not in seen:
                    seen.add(pair)
                    todo.append(pair)
            if steps > MOST_STEPS:
                return False
    return True


def _components(edges: list[list[int]]) -> list[int]:
    """The number of each state's strongly connected component. Tarjan's algorithm, without recursion."""
    size = len(edges)
    order, low, found, stack, waiting = [-1] * size, [0] * size, [-1] * size, list[int](), [False] * size
    count = numbers = 0
    for root in range(size):
        if order[root] >= 0:
            continue
        path = [(root, iter(edges[root]))]
        order[root] = low[root] = count
        count += 1
        stack.append(root)
        waiting[root] = True
        while path:
            state, rest = path[-1]
            for to in rest:
                if order[to] < 0:
                    order[to] = low[to] = count
                    count += 1
                    stack.append(to)
                    waiting[to] = True
                    path.append((to, iter(edges[to])))
                    break
                if waiting[to]:
                    low[state] = min(low[state], order[to])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[state])
                if low[state] == order[state]:
                    while True:
                        other = stack.pop()
                        waiting[other], found[other] = False, numbers
                        if other == state:
                            break
                    numbers += 1
    return found
