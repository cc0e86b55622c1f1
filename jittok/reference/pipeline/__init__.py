"""A `Pipeline` run literally: every step on every character, as its library does. It shares no code with kernels."""

from jittok.reference.pipeline.run import Runner, runner

__all__ = ["Runner", "runner"]
