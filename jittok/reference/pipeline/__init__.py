"""Runs a `Pipeline` literally: every step on every character, as its library does. Shares no code with the kernels."""

from jittok.reference.pipeline.run import Runner, runner

__all__ = ["Runner", "runner"]
