"""Where recorded sets of tokenizer files lie."""

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent / "files"
SHARED = Path(os.environ.get("JITTOK_SHARED") or Path(__file__).resolve().parents[3] / "shared")
