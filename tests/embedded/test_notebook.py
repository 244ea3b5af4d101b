"""examples/explore_topic.ipynb, run by a Jupyter kernel as a user runs it: every cell, in order, in a new process."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "explore_topic.ipynb"


@pytest.fixture
def execute(tmp_path, monkeypatch):
    """Runs a notebook in an empty folder; its cells then have outputs."""
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))

    def run(notebook):
        NotebookClient(notebook, timeout=60, kernel_name="python3",
                       resources={"metadata": {"path": tmp_path}}).execute()
        return notebook

    return run


def shown(notebook, kind):
    return [output["data"][kind] for cell in notebook.cells if cell.cell_type == "code"
            for output in cell.outputs if kind in output.get("data", {})]


def test_the_notebook_runs_from_the_topic_to_the_plot(execute):
    notebook = execute(nbformat.read(NOTEBOOK, as_version=4))
    texts = "\n".join(shown(notebook, "text/plain"))
    assert "Json('struct<carrier: string, distance: int64, delay: float64>')" in texts
    assert all(carrier in texts for carrier in ("AA", "B6", "DL", "UA", "WN"))
    assert len(shown(notebook, "image/png")) == 1


def test_an_error_in_a_cell_fails(execute):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import kconsumer\nraise KeyError('cell')")])
    with pytest.raises(CellExecutionError, match="KeyError"):
        execute(notebook)


def test_the_notebook_is_stored_without_outputs():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(code) >= 6
    assert [cell.id for cell in code if cell.outputs or cell.execution_count] == []
