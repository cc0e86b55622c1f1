"""Words of one script each as automata. There are more scripts than a kernel has classes for, so two automata cut one
after the other, and each tells half of the scripts apart. Where the script changes, one of the two knows the new one
or the one before, and cuts. Neither cuts anywhere else."""

from __future__ import annotations

import numpy as np

from jittok.pipeline.steps import CutSomeScripts
from jittok.pretokenize.automaton import DEAD, START, Automaton
from jittok.unicode.libraries import scripts

ANY, OTHER = 0, 1
"""Classes: of no script, and of one that is not told apart."""


def halves() -> tuple[CutSomeScripts, CutSomeScripts]:
    """The two stages."""
    stop = int(scripts()[1].max()) + 1
    return CutSomeScripts(1, stop // 2), CutSomeScripts(stop // 2, stop)


def automaton_of_scripts(stage: CutSomeScripts) -> Automaton:
    """Its matches are the words: characters of one script, and of any after them. What is no match is dropped."""
    starts, numbers = scripts()
    inside = (numbers >= stage.first) & (numbers < stage.stop)
    classes = np.where(inside, numbers.astype(np.int64) - stage.first + OTHER + 1, OTHER)
    classes[numbers == 0] = ANY
    count = OTHER + 1 + stage.stop - stage.first
    own = START + np.arange(count)  # the state in a word of each class but ANY
    rows = np.full((START + count, count + 1), DEAD << 1 | 1, np.int64)
    rows[DEAD], rows[START] = DEAD, DEAD << 1
    rows[START, OTHER:count] = own[OTHER:] << 1
    rows[own[OTHER:], ANY] = own[OTHER:] << 1 | 1
    rows[own[OTHER:], np.arange(OTHER, count)] = own[OTHER:] << 1 | 1
    return Automaton(starts, classes.astype(np.uint8), rows.astype(np.uint16).reshape(-1), count + 1)
