"""A process that forks a compiler for each request; see victim.py."""

from __future__ import annotations

import json
import subprocess
import sys

import victim


class Server:
    """A process that has the tokenizer ready, so that a run and a kill cost milliseconds."""

    def __init__(self):
        command = [sys.executable, "-W", "ignore", victim.__file__]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, inputs, out, options, **how):
        """Exit status, -9 when it was killed, and the seconds it took."""
        task = options.identity()
        files = [str(path) for path in inputs]
        task = {"formats": task.pop("formats"), "options": task, "inputs": files, "out": str(out)}
        self.process.stdin.write(json.dumps({**task, **how}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def finish(self, inputs, out, options, **how):
        """A run to its end; its seconds."""
        status, seconds = self.run(inputs, out, options, **how)
        assert status == 0
        return seconds

    def close(self):
        """End the process."""
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
