"""Run notebooks from a fresh kernel and save what they show: `python tests/notebooks/save.py [NAME ...]`.

The saved file holds nothing of the machine: no times of cells, no versions, one stream where several were printed.
Figures are kept in a palette of few colors, which makes them a quarter as large.
"""

import os
import base64
import io
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from PIL import Image

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run all cells in a kernel of their own, in an empty folder; the outputs are in the notebook afterwards."""
    where = {"metadata": {"path": str(folder)}}
    os.environ["JITTOK_PROGRESS"] = "off"  # whether a call lasts depends on the machine
    NotebookClient(notebook, timeout=600, kernel_name="python3", coalesce_streams=True, resources=where).execute()


COLOURS = 64


def small(png: str) -> str:
    """The same picture as PNG with a palette, both in Base64."""
    image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA")
    file = io.BytesIO()
    plain = image.quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)  # keeps transparency
    plain.save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def save(path: Path) -> None:
    """Run one notebook and write it back."""
    notebook = nbformat.read(path, as_version=4)
    start = time.perf_counter()
    with TemporaryDirectory() as folder:
        execute(notebook, Path(folder))
    spent = time.perf_counter() - start
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"{path.stem[:2]}-{number:02}"
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = small(output.data["image/png"])
        cell.metadata = nbformat.from_dict({"tags": cell.metadata["tags"]} if "tags" in cell.metadata else {})
    nbformat.write(notebook, path)
    print(f"{path.stem}: {spent:.1f} s, {path.stat().st_size} bytes, {len(notebook.cells)} cells")


if __name__ == "__main__":
    for name in sys.argv[1:] or [path.stem for path in sorted(NOTEBOOKS.glob("*.ipynb"))]:
        save(NOTEBOOKS / f"{name}.ipynb")
