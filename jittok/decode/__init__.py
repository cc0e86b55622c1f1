"""Ids to text: the piece of each id, rows of ids joined and cleaned, ids one at a time."""

from __future__ import annotations

import sys

from jittok.errors import NotCalled

sys.modules[__name__].__class__ = NotCalled
