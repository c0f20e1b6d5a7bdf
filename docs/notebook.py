"""Run the tutorial notebook and write what its cells show: `python docs/notebook.py`, by `make docs`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbclient
import nbformat

FILE = Path(__file__).resolve().parents[1] / "examples" / "notebook.ipynb"
#: Letters of a result's own text: its card says the same.
MOST_LETTERS = 300


def executed() -> Any:
    """Return the notebook as it runs now, without times and without the progress that a slow machine shows."""
    notebook = nbformat.read(FILE, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    for cell in notebook.cells:
        cell.metadata = {}
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if len(data.get("text/plain", "")) > MOST_LETTERS:
                data["text/plain"] = "Result(...)"
    return notebook


if __name__ == "__main__":
    nbformat.write(executed(), FILE)
