"""Text to ids: one text, many texts on threads, one long document; the workspace that each thread encodes with."""

from __future__ import annotations

import sys

from jittok.errors import NotCalled

sys.modules[__name__].__class__ = NotCalled
