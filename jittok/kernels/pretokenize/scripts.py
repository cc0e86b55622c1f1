"""Splitting by script as two automata. There are more scripts than a kernel has classes, so two automata run one after
the other, and each distinguishes half of the scripts. Where the script changes, one of the two distinguishes the new
script or the one before, and cuts. Neither cuts anywhere else."""

from __future__ import annotations

import numpy as np

from jittok.common.pipeline.steps import CutSomeScripts
from jittok.common.unicode.libraries import scripts
from jittok.kernels.pretokenize.automaton import DEAD, START, Automaton

ANY, OTHER = 0, 1
"""Classes: characters of no script, and of scripts that this automaton does not distinguish."""


def halves() -> tuple[CutSomeScripts, CutSomeScripts]:
    """The two stages."""
    stop = int(scripts()[1].max()) + 1
    return CutSomeScripts(1, stop // 2), CutSomeScripts(stop // 2, stop)


def automaton_of_scripts(stage: CutSomeScripts) -> Automaton:
    """Its matches are the words: characters of one script, with those of no script after them. Gaps are dropped."""
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
