# SPDX-License-Identifier: Apache-2.0
"""fds.audit: which labels are probably wrong, and whose."""
from __future__ import annotations

import ctypes as c
import json
from typing import Any, Optional

from . import _lib
from ._call import READING, Call, Params, ProgressLike, check_names, common, parameters
from .data import Dataset, PathLike, is_path, label_name, open_data
from .result import pandas


class Audit:
    """A value for every sample, the lowest first; made by `audit`.

    `rows` and `providers` are DataFrames, `suspects` the rows of `rows` that harm predictions, `about` everything
    else that was found, `accuracy` how often the nearest samples agree with a label.
    """

    def __init__(self, handle: _lib.Handle, data: Dataset) -> None:
        self._handle = handle
        self.about: dict[str, Any] = json.loads(_lib.json_of("fds_audit_json", handle))
        self.accuracy = float(self.about["accuracy"])
        self.rows = self._rows(data)
        self.providers = pandas().DataFrame(self.about.get("providers") or [])

    def _rows(self, data: Dataset) -> Any:
        by_name = {label_name(label): label for label in data.classes}
        row = _lib.AuditRow()
        found: list[dict[str, Any]] = []
        while _lib.lib().fds_audit_row_at(self._handle, len(found), c.byref(row)):
            label, predicted = _lib.text(row.label), _lib.text(row.predicted)
            found.append({"sample": row.sample, "id": _lib.text_or_none(row.id),
                          "provider": _lib.text_or_none(row.provider), "label": by_name.get(label, label),
                          "predicted": by_name.get(predicted, predicted), "probability": row.probability,
                          "value": row.value, "stderr": row.standard_error, "suspect": row.is_suspect,
                          "reason": _lib.text(row.reason)})
        frame = pandas().DataFrame(found).set_index("sample")
        return frame.drop(columns=[name for name in ("id", "provider") if frame[name].isna().all()])

    @property
    def suspects(self) -> Any:
        return self.rows[self.rows["suspect"]]

    def save(self, folder: PathLike) -> None:
        """Writes rows.csv, providers.csv, audit.json and report.html, a page with plots, to a folder."""
        _lib.call("fds_audit_save", self._handle, _lib.encode(folder), None)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Audit({len(self)} samples, {len(self.suspects)} suspicious)"

    def _repr_html_(self) -> str:
        return str(self.suspects.head(20)._repr_html_())


def audit(X: Any, y: Any = None, *, providers: Any = None, names: Any = None, folder: Optional[PathLike] = None,
          random_state: Optional[int] = None, n_jobs: Optional[int] = None, progress: ProgressLike = None,
          **params: Any) -> Audit:
    """Values every sample by its neighbours in the other folds; the lowest values are probably wrong labels.

    X, y: arrays, tensors, a DataFrame (y may name its column), a `Dataset`, or the path or name of data, of which
    the training part is audited. providers: one per row. folder: also writes the report there. params:
    `utility="knn:5"`, `folds=10`; `parameters("audit")` lists them. docs/data-audit.md says what is computed.

    >>> X = [[0.0], [0.1], [0.2], [0.3], [1.0], [1.1], [1.2], [1.3]]
    >>> found = fds.audit(X, ["a", "a", "b", "a", "b", "b", "b", "b"], utility="knn:2", folds=8)
    >>> found.suspects.index.tolist(), found.suspects["predicted"].tolist()
    ([2], ['a'])
    """
    known = {p.name for p in parameters("audit", hidden=True)} - {"data", "seed", "threads", "part"}
    check_names(params, known, "audit")
    reading = {name: value for name, value in params.items() if name in READING}
    own = {name: value for name, value in params.items() if name not in READING}
    job = Params("audit", {**common(random_state, n_jobs), **own})
    if folder is not None:
        _lib.call("fds_audit_check_folder", _lib.encode(folder))
    if is_path(X):
        data = open_data(X, progress=progress, **reading)[0]
    else:
        check_names(reading, set(), "audit of data in memory")
        data = X if isinstance(X, Dataset) else Dataset(X, y, providers=providers, names=names, task="classification")
    with Call(progress) as events:
        handle = _lib.Handle.make("fds_audit_create", "fds_audit_free", data._handle, job, events,
                                  keep=(data._handle,))
    found = Audit(handle, data)
    if folder is not None:
        found.save(folder)
    return found
