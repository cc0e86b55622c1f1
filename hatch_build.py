"""The build hook: a wheel for `dist` gets the kernels as machine code, for this system or what JITTOK_SHIP_FOR names.

`python -m build` makes such a wheel for the system it runs on; JITTOK_SHIP_FOR=linux-aarch64 names another one
(`ship/levels.py`: TAGS), and JITTOK_SHIP_FOR=none makes the pure wheel, py3-none-any. What pip or an editable install
makes for itself is pure as well, so who installs from source waits for no compiler and fetches no linker.
JITTOK_SHIP_LEVELS=v3,v4 keeps to some levels; JITTOK_SHIP_BITCODE names a folder that `ship/emit.py` has filled, so
that the wheels of all systems are made of the same.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LINKER = "ziglang>=0.15"


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Machine code into a wheel."""

    def dependencies(self) -> list[str]:
        """What the build needs beside hatchling, where machine code is asked for: kernels are compiled by importing
        this package, so all that it depends on, and a linker for every system."""
        if not self._levels().target(os.environ, "dist"):
            return []
        return [*self.metadata.core.dependencies, LINKER]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the libraries and have them laid into the wheel."""
        known, root = self._levels(), Path(self.root)
        target = known.target(os.environ, Path(self.directory).name)
        if not target or version == "editable":
            return
        chosen = os.environ.get("JITTOK_SHIP_LEVELS", "").split(",")
        levels = [name for name in known.levels_of(target) if not chosen[0] or name.rpartition("-")[2] in chosen]
        made = root / "build" / target
        bitcode = Path(os.environ.get("JITTOK_SHIP_BITCODE") or root / "build" / "bitcode")
        if "JITTOK_SHIP_BITCODE" not in os.environ:
            self._run("emit.py", bitcode, *sorted({known.LEVELS[name].flavour for name in levels}))
        self._run("libraries.py", bitcode, made, *levels)
        libraries = json.loads((made / "manifest.json").read_text())["libraries"]
        for name in ("manifest.json", *(each["file"] for each in libraries.values())):
            build_data["force_include"][str(made / name)] = f"jittok/kernels/jit/libs/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{known.TAGS[target]}"

    def _levels(self) -> Any:
        """`ship/levels.py`."""
        folder = str(Path(self.root, "ship"))
        if folder not in sys.path:
            sys.path.insert(0, folder)
        return importlib.import_module("levels")

    def _run(self, script: str, *arguments: object) -> None:
        path = os.pathsep.join([self.root, *filter(None, [os.environ.get("PYTHONPATH")])])
        command = [sys.executable, str(Path(self.root, "ship", script)), *map(str, arguments)]
        subprocess.run(command, cwd=self.root, env=os.environ | {"PYTHONPATH": path}, check=True)
