# SPDX-License-Identifier: Apache-2.0
"""The notebooks of examples/notebooks run from the first cell to the last, and are kept without outputs."""
import os
import pathlib

import pytest

import fds

NOTEBOOKS = sorted((pathlib.Path(__file__).resolve().parents[2] / "examples" / "notebooks").glob("*.ipynb"))
nbformat = pytest.importorskip("nbformat")


def test_there_are_notebooks():
    assert {path.stem for path in NOTEBOOKS} >= {"wrong-labels", "pay-hospitals", "compare-methods"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_is_kept_without_outputs(path):
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    assert book.cells[0].cell_type == "markdown" and book.cells[0].source.startswith("# ")
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in book.cells)


@pytest.mark.filterwarnings("ignore")  # of Jupyter's packages among themselves
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    execute = pytest.importorskip("nbconvert.preprocessors").ExecutePreprocessor
    pytest.importorskip("ipykernel")
    # The kernel may be Debian's Python, which does not see the environment that these tests run in.
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(os.path.dirname(fds.__file__)))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # figures become outputs
    book = nbformat.read(path, as_version=4)
    execute(timeout=600, kernel_name="python3").preprocess(book, {"metadata": {"path": str(tmp_path)}})
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 3
    assert not [output for output in outputs if output.get("name") == "stderr"], "a warning"
