"""Draws small changes for the lists of `run.py`: other comparisons, signs, numbers, conditions left out.

python tests/mutants/draw.py SOURCE COUNT SEED     prints them as lines of a list
"""

from __future__ import annotations

import ast
import random
import sys
from collections.abc import Iterator
from pathlib import Path

COMPARED = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
CALCULATED = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.BitAnd: ("&", "|"), ast.LShift: ("<<", ">>"),
              ast.RShift: (">>", "<<"), ast.BitOr: ("|", "&"), ast.FloorDiv: ("//", "*")}  # fmt: skip


def changes(text: str) -> Iterator[tuple[int, int, int, str]]:
    """(line, from column, to column, what is there instead), all of one line."""
    lines = text.split("\n")
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    for node in {inner for each in functions for statement in each.body for inner in ast.walk(statement)}:
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARED:
            yield from _between(lines, node.left, node.comparators[0], SIGNS, COMPARED, node.ops[0])
        elif isinstance(node, ast.BinOp) and type(node.op) in CALCULATED:
            old, new = {type(node.op): CALCULATED[type(node.op)][0]}, {type(node.op): CALCULATED[type(node.op)][1]}
            yield from _between(lines, node.left, node.right, old, new, node.op)
        elif isinstance(node, ast.BoolOp) and node.lineno == node.end_lineno:
            for k in range(len(node.values)):
                rest = [ast.get_source_segment(text, value) for k2, value in enumerate(node.values) if k2 != k]
                word = " and " if isinstance(node.op, ast.And) else " or "
                yield node.lineno, node.col_offset, node.end_col_offset, word.join(map(str, rest))
        elif isinstance(node, ast.Constant) and type(node.value) is int and node.lineno == node.end_lineno:
            yield node.lineno, node.col_offset, node.end_col_offset, str(node.value + 1)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and node.lineno == node.end_lineno:
            yield node.lineno, node.col_offset, node.operand.col_offset, ""
        elif isinstance(node, (ast.Continue, ast.Break, ast.AugAssign)) and node.lineno == node.end_lineno:
            yield node.lineno, node.col_offset, node.end_col_offset, "pass"


def _between(lines, left, right, old, new, op):
    if left.end_lineno == right.lineno:
        found = lines[right.lineno - 1].find(old[type(op)], left.end_col_offset, right.col_offset)
        if found >= 0:
            yield right.lineno, found, found + len(old[type(op)]), new[type(op)]


def main() -> None:
    path, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    every = sorted(
        {change for change in changes(text) if lines[change[0] - 1].isascii() and "raise" not in lines[change[0] - 1]}
    )
    for line, start, stop, new in sorted(random.Random(seed).sample(every, min(count, len(every)))):
        whole = lines[line - 1]
        which = sum(each.strip() == whole.strip() for each in lines[:line])
        print(f"-{which if which > 1 else ''} {whole.strip()}\n+ {(whole[:start] + new + whole[stop:]).strip()}")


if __name__ == "__main__":
    main()
