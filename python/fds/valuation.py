# SPDX-License-Identifier: Apache-2.0
"""fds.value: values of all players for a test set, by any method."""
from __future__ import annotations

from typing import Any, Optional

from . import _lib
from ._call import READING, Call, Params, ProgressLike, check_names, common, parameters
from .data import is_regression
from .problem import announce_model, build, set_model
from .result import Result, read


def methods() -> dict[str, str]:
    """The methods of `value`, with a line about each.

    >>> "banzhaf" in fds.methods()
    True
    """
    library = _lib.lib()
    found = {"ls": "Shapley values by least squares on sampled coalitions",
             "exact": "Shapley values from all coalitions, for up to 20 players"}
    for name in _lib.listed(library.fds_baseline_methods()):
        found[name] = _lib.text(library.fds_baseline_about(name.encode()))
    return found


def value(X: Any, y: Any = None, Xtest: Any = None, ytest: Any = None, *, model: Any = None, method: str = "ls",
          per_sample: bool = False, providers: Any = None, names: Any = None, groups: Any = None,
          utility: Optional[str] = None, random_state: Optional[int] = None, n_jobs: Optional[int] = None,
          table: Any = None, progress: ProgressLike = None, **params: Any) -> Result:
    """Values the rows of X, or their providers, for a test set.

    X, y: arrays, tensors, a DataFrame (y may name its column), a `Dataset`, or the path or name of data.
    Xtest, ytest: test samples; without them the library sets a fifth of X aside.
    model: the text of a network ("lenet5", "mlp", "logistic"); any object with fit and predict_proba, which
        worker processes fit for every coalition (of a regression: fit and predict); or `torch_model(...)`.
    method: "ls", "exact", "tmc", "banzhaf", "beta:1,16", "loo", "knn:5", ...: see `methods()`.
    per_sample: values for each test sample, of the probability of the predicted label (target="true": of the true
        one), instead of one value per player for the whole test set.
    providers: one per row; each becomes a player. names: one per row. groups: "label", "provider", "all", or one
        entry per player.
    table: a folder for the answers of sub-models: the same call resumes there when it was interrupted, and other
        methods use what is there.
    params: the other parameters of the job, by name; `parameters("value")` lists them. task="regression" takes y as
        numbers to predict; None does if some of them are not whole. Values are then of minus the squared error.

    >>> X, y = [[0.0], [0.1], [1.0], [1.1]], [0, 0, 1, 1]
    >>> r = fds.value(X, y, [[0.05], [1.05]], [0, 1], method="knn:1")
    >>> r.values.round(6).tolist(), r.status
    ([0.25, 0.25, 0.25, 0.25], 'exact')

    A regression with two players: their mean, 2, predicts without them, and the nearest sample with both.

    >>> r = fds.value([[0.0], [1.0]], [0.5, 3.5], [[0.0]], [0.5], method="exact", utility="knn:1")
    >>> r.task, round(r.empty, 6), round(r.full, 6), r.values.round(6).tolist()
    ('regression', -2.25, 0.0, [5.625, -3.375])
    """
    known = {p.name for p in parameters("value", hidden=True)} - {"data", "seed", "threads", "global", "group",
                                                                 "model", "method", "per_sample", "utility"}
    check_names(params, known, "value")
    is_shapley = method in ("ls", "exact")
    job = Params("shapley" if is_shapley else "baseline", {"method": method, **common(random_state, n_jobs)})
    if is_shapley:
        job.set("global", not per_sample)
    elif per_sample:
        job.set("per_sample", True)
    is_file = isinstance(X, str) or hasattr(X, "__fspath__")
    for name, given in params.items():
        if given is not None and (is_file or name not in READING):
            job.set(name, given)
    if isinstance(groups, str):
        job.set("group", groups)
    announce_model(job, model, utility, is_regression(params.get("task"), X, y))
    _lib.call("fds_value_check", job, _lib.encode(table))
    problem = build(job, params, X, y, Xtest=Xtest, ytest=ytest, providers=providers, names=names, groups=groups,
                    progress=progress)
    set_model(job, model, problem)
    with Call(progress) as events:
        found = _lib.Handle.make("fds_shapley" if is_shapley else "fds_baseline", "fds_result_free",
                                 problem.handle, job, _lib.encode(table), events)
    result = read(found, problem.classes)
    if problem.pictures is not None and problem.tests is not None and not result._single:
        result._samples = problem.pictures
        each = len(result._values) // len(problem.tests)
        result._pictures = problem.tests.repeat(each, 0)
    return result
