"""The other end of `library.py`: a process with one library, and what to ask it."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

HERE = Path(__file__).resolve().parent


class Side:
    """A process that answers for one library. RuntimeError when it cannot."""

    def __init__(self, python: Path, library: str) -> None:
        self.library = library
        self.process = subprocess.Popen(
            [str(python), str(HERE / "library.py"), "serve", library],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._ask({"try": "model", "words": ["no such model"]})  # a library that does not load says so now

    def __enter__(self) -> Side:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.communicate()

    def _ask(self, question: dict[str, Any]) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            _, said = self.process.communicate()
            raise RuntimeError((said.strip().splitlines() or [f"{self.library}: the process ended"])[-1])
        return json.loads(line)

    def answers(self, file: Path, steps: list[list[Any]]) -> list[Any]:
        """One answer a step: ids, bytes in base64, facts, or {"error": why}."""
        found = self._ask({"file": str(file), "steps": steps})
        if found["load"] != "ok":
            return [{"error": found["load"]}] * len(steps)
        answers: list[Any] = found["answers"]
        return answers

    def accepted(self, kind: str, words: list[str]) -> set[str]:
        """Those of the words that name a pre-tokenizer ("pre") or a tokenizer ("model")."""
        return set(self._ask({"try": kind, "words": words}))


def packed(raw: bytes) -> str:
    """Bytes as `library.py` wants them."""
    return base64.b64encode(raw).decode()
