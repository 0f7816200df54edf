# SPDX-License-Identifier: Apache-2.0
"""fds.Explainer and fds.Run: fit once, then explain any prediction in milliseconds."""
from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import weakref
from typing import Any, Optional, Sequence

import numpy as np

from . import _lib, models
from ._call import READING, Call, Params, ProgressLike, check_names, common, parameters
from .data import (NO_CLASSES, Array, PathLike, create, frame_names, is_frame, is_regression, label_name,
                   restore_classes, to_labels, to_names, to_samples, to_targets, write_table)
from .problem import announce_model, build, set_model
from .result import Result, read

OWN = ("model", "groups", "n_jobs", "random_state", "run", "progress")


class Run:
    """A fitted run, ready to answer. `Explainer.fit` makes one, and so does the command `fds fit`.

    model: the model that the run was fitted with, if it is an object. A run never starts a program by itself.
    """

    def __init__(self, path: PathLike, *, model: Any = None, utility: Optional[str] = None,
                 n_jobs: Optional[int] = None, classes: Any = None) -> None:
        self.path = os.fspath(path)
        self._lock = threading.Lock()  # fds_run belongs to one thread at a time
        self._params = Params("explain", {"threads": common(None, n_jobs)["threads"], "utility": utility})
        self._open()
        self.about: dict[str, Any] = json.loads(_lib.text(_lib.lib().fds_run_describe(self._handle)))
        names = [str(name) for name in self.about["data"]["classes"]]
        by_name = {} if classes is None else {label_name(label): label for label in classes}
        self.is_regression = self.about["utility"].get("task") == "regression"
        self.classes: Array = NO_CLASSES if self.is_regression else restore_classes(names) if not by_name else np.array([by_name.get(n, n) for n in names])
        shape = self.about["data"]["shape"]
        self.is_image = bool(self.about["data"]["is_image"])
        self.shape: tuple[int, ...] = tuple(shape) if self.is_image else (shape[0],)
        self._samples: Optional[Array] = None
        if model is not None:
            self.use(model)

    def _open(self) -> None:
        self._handle = _lib.Handle.make("fds_run_open", "fds_run_free", _lib.encode(self.path), self._params)

    def use(self, model: Any) -> Run:
        """The model that the run was fitted with: it answers for new inputs."""
        fitted = self.about["utility"].get("command")
        if fitted is None:
            raise _lib.UsageError(f"model does not apply: the service model of {self.path} is a network")
        self._params.set("utility", models.command_again(model, self.classes, tuple(self.about["data"]["shape"]), fitted))
        self._open()
        return self

    @property
    def players(self) -> list[str]:
        return [str(player["name"]) for player in self.about["players"]]

    @property
    def method(self) -> str:
        return str(self.about["method"])

    @property
    def samples(self) -> Array:
        """The first sample of each player."""
        if self._samples is None:
            data = _lib.lib().fds_run_samples(self._handle)
            out = np.empty((_lib.lib().fds_dataset_count(data), *self.about["data"]["shape"]), np.float32)
            for i in range(len(out)):
                _lib.lib().fds_dataset_sample(data, i, out[i].ctypes.data)
            self._samples = out
        return self._samples

    def explain(self, X: Any = None, y: Any = None, *, index: Any = None, target: Any = "predicted",
                by: Optional[str] = None, check: bool = False, names: Any = None, resize: bool = False,
                progress: ProgressLike = False) -> Result:
        """Values of all players for each sample of X, or for the test samples `index` of the run's data.

        X: arrays, tensors, a DataFrame with the columns of the training data, or paths of pictures. y: the true
        labels, if they are known. target: "predicted", "true", or a class (of a regression a number). by: "explainer" or "bank". check: also
        ask the sub-models that the run keeps (`result.check`). resize: scale pictures of another size.
        """
        given = {"target": label_name(target), "by": by, "check": check or None, "resize": resize or None,
                 "index": index if index is None or isinstance(index, str) else ",".join(map(str, np.atleast_1d(index)))}
        if target == "true" and y is None and index is None:
            raise _lib.UsageError("target \"true\" needs y, the true labels")
        params = Params("explain", given)
        with self._lock:
            ask, pictures, is_new = self._inputs(X, y, index, params, progress)
            with Call(progress) as events:
                found = _lib.Handle.make("fds_run_explain", "fds_result_free", self._handle, ask,
                                         params, events)
        result = read(found, self.classes)
        if is_new and names is None:
            names = [f"input {i}" for i in range(len(result._values))]
        if y is None and index is None:
            result._truth = np.array([None] * len(result._values))
        if names is not None:
            result._inputs = np.array(to_names(names, len(result._values), "names"), dtype=object)
        if self.is_image:
            result._samples, result._pictures = self.samples, pictures
        result._single = False
        return result

    def _inputs(self, X: Any, y: Any, index: Any, params: Params,
                progress: ProgressLike) -> tuple[_lib.Handle, Optional[Array], bool]:
        """What is asked about; its pictures, if they are known; whether it has no names of its own."""
        if (X is None) == (index is None):
            raise _lib.UsageError("give either X, new samples, or `index`, test samples of the run's data")
        run = self._handle
        if index is not None:
            with Call(progress) as events:
                return _lib.Handle.make("fds_input_open", "fds_input_free", run, params, events,
                                        keep=(run,)), None, False
        if is_frame(X) and self.about.get("preparation"):
            return self._rows(X, params, progress), None, False
        if isinstance(X, (str, os.PathLike)):
            X = [X]
        if isinstance(X, (list, tuple)) and X and isinstance(X[0], (str, os.PathLike)):
            paths = _lib.strings([os.fspath(path) for path in X])
            return _lib.Handle.make("fds_input_pictures", "fds_input_free", run, paths, len(X), params,
                                    keep=(run,)), None, False
        samples = to_samples(X.to_numpy() if is_frame(X) else X)
        if tuple(samples.shape[1:]) != tuple(self.about["data"]["shape"]):
            raise _lib.ShapeError(f"samples have the shape {tuple(samples.shape[1:])} (channels, height, width), those of "
                                  f"the run {tuple(self.about['data']['shape'])}")
        to_y = to_targets if self.is_regression else to_labels
        unknown = 0.0 if self.is_regression else self.classes[0]
        labels = np.full(len(samples), unknown) if y is None else to_y(y, len(samples))
        data = create(samples, labels, np.sort(self.classes), None, None)
        pictures = samples / (255.0 if samples.dtype == np.uint8 else 1.0) if self.is_image else None
        return _lib.Handle.make("fds_input_samples", "fds_input_free", run, data, None, len(samples),
                                keep=(run, data)), pictures, True

    def _rows(self, X: Any, params: Params, progress: ProgressLike) -> _lib.Handle:
        """Rows of a DataFrame, prepared as the run's own."""
        extra: list[tuple[str, Sequence[str]]] = []
        if self.about.get("origin", {}).get("id") and "fds.id" not in X.columns:
            extra = [(str(self.about["origin"]["id"]), frame_names(X) or [f"row {i}" for i in range(len(X))])]
        with tempfile.TemporaryDirectory(prefix="fds-rows-") as folder:
            path = os.path.join(folder, "rows.csv")
            write_table(path, X, extra)
            params.set("rows", path)
            with Call(progress) as events:
                return _lib.Handle.make("fds_input_open", "fds_input_free", self._handle, params,
                                        events, keep=(self._handle,))

    def __repr__(self) -> str:
        kind = "regression" if self.is_regression else f"{len(self.classes)} classes"
        return (f"Run({self.path!r}: {len(self.players)} players, {kind}, method {self.method}, "
                f"explainer {self.about.get('explainer', {}).get('network', '?')})")


class Explainer:
    """Learns once how much each player contributes to a prediction, then explains any new sample.

    model: the text of a network ("lenet5", "mlp", "logistic", layers), an object with fit and predict_proba, or
        `torch_model(...)`; None: "lenet5" for images, "mlp" otherwise.
    groups: of the players: "label", "provider", "all", or in `fit` an entry per player.
    n_jobs: worker threads or processes; None: one per processor. random_state: the same seed gives the same bits.
    run: the folder to keep the run in; a fit that was interrupted goes on there. None: a temporary one.
    params: all other parameters of a fit, by name (coalitions=4000, method="afds", explainer="mlp");
        `fds.parameters("fit")` lists them. task="regression" takes y as numbers to predict; None does if some of
        them are not whole. A regression needs a network of the library.

    After `fit`: `run_` (a `Run`), `report_` (all that came out), `agreement_` (how well the explainer's values
    correlate with least squares on validation inputs; NaN if the sub-models answer themselves), `classes_`,
    `players_`, `n_features_in_`.

    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    >>> ex = fds.Explainer("logistic", coalitions=200, random_state=0).fit(X[:20] + y[:20, None], y[:20], inputs=X[20:])
    >>> v = ex.explain(X[:2])
    >>> v.values.shape, np.allclose(v.values.sum(1), v.full - v.empty, atol=1e-6)
    ((2, 20), True)
    """

    def __init__(self, model: Any = None, *, groups: Any = None, n_jobs: Optional[int] = None,
                 random_state: Optional[int] = None, run: Optional[PathLike] = None, progress: ProgressLike = None,
                 **params: Any) -> None:
        self.model, self.groups, self.n_jobs, self.random_state = model, groups, n_jobs, random_state
        self.run, self.progress = run, progress
        check_names(params, self._known(), "Explainer")
        self._params = dict(params)

    @staticmethod
    def _known() -> set[str]:
        own = {"data", "seed", "threads", "group", "model", "inputs"}
        return {p.name for p in parameters("fit", hidden=True)} - own

    # ---- scikit-learn's manners ----

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in OWN}
        found.update(self._params)
        if deep and hasattr(self.model, "get_params") and not isinstance(self.model, type):
            found.update({f"model__{name}": v for name, v in self.model.get_params().items()})
        return found

    def set_params(self, **params: Any) -> Explainer:
        inner = {name[7:]: v for name, v in params.items() if name.startswith("model__")}
        others = {name: v for name, v in params.items() if not name.startswith("model__")}
        check_names(others, self._known() | set(OWN), "Explainer")
        for name, v in others.items():
            if name in OWN:
                setattr(self, name, v)
            else:
                self._params[name] = v
        if inner:
            self.model.set_params(**inner)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "run_")

    def __repr__(self) -> str:
        given = {name: v for name, v in self.get_params(deep=False).items() if v is not None}
        return f"Explainer({', '.join(f'{name}={v!r}' for name, v in given.items())})"

    # ---- work ----

    def fit(self, X: Any, y: Any = None, *, inputs: Any = None, inputs_y: Any = None, Xtest: Any = None,
            ytest: Any = None, providers: Any = None, names: Any = None, groups: Any = None) -> Explainer:
        """Trains the service model, the sub-models and the explainer; returns self.

        X, y: the samples of the players: arrays, tensors, a DataFrame (y may name its column), a `Dataset`, or the
        path or name of data ("mnist"). inputs: what the explainer learns from, samples that belong to no player,
        without labels (inputs_y, if they are known, gives the accuracy); as a number, or None: that many of X.
        Xtest, ytest: samples to score the service model on. providers: one per row of X; each becomes a player.
        """
        numbers = inputs if inputs is None or isinstance(inputs, (int, np.integer)) else None
        job = Params("fit", {**common(self.random_state, self.n_jobs), "inputs": numbers})
        is_file = isinstance(X, str) or hasattr(X, "__fspath__")
        for name, given in self._params.items():
            if given is not None and (is_file or name not in READING):
                job.set(name, given)
        grouping = self.groups if groups is None else groups
        if isinstance(grouping, str):
            job.set("group", grouping)
        has_targets = is_regression(self._params.get("task"), X, y)
        announce_model(job, self.model, self._params.get("utility"), has_targets)
        _lib.call("fds_fit_check", job)
        problem = build(job, self._params, X, y, Xtest=Xtest, ytest=ytest, inputs=None if numbers is not None else inputs,
                        inputs_y=inputs_y, providers=providers, names=names, groups=grouping, is_fit=True,
                        progress=self.progress)
        utility = set_model(job, self.model, problem)
        folder = self._folder()
        with Call(self.progress) as events:
            report = _lib.json_of("fds_fit", _lib.encode(folder), problem.handle, job, events)
        self.report_: dict[str, Any] = json.loads(report)
        if inputs is not None and numbers is None and inputs_y is None:
            self.report_["service_r2" if has_targets else "service_accuracy"] = None  # their labels are not known
        self.run_ = Run(folder, utility=utility, n_jobs=self.n_jobs, classes=problem.classes)
        agreement = self.report_.get("agreement")
        self.agreement_ = float("nan") if agreement is None else float(agreement)
        self.classes_ = problem.classes
        self.players_ = self.run_.players
        self.n_features_in_ = int(np.prod(self.run_.shape))
        return self

    def _folder(self) -> str:
        if self.run is not None:
            return os.fspath(self.run)
        self._own = tempfile.mkdtemp(prefix="fds-run-")
        weakref.finalize(self, shutil.rmtree, self._own, True)
        return os.path.join(self._own, "run")

    def explain(self, X: Any = None, y: Any = None, **how: Any) -> Result:
        """Values of all players for each sample of X; see `Run.explain`."""
        if not hasattr(self, "run_"):
            raise _lib.UsageError("the explainer is not fitted: call fit first, or open a run by fds.Run(path)")
        return self.run_.explain(X, y, **how)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: v for name, v in self.__dict__.items() if name not in ("run_", "_own", "progress")}
        if hasattr(self, "run_"):
            if self.run is None:
                raise _lib.UsageError("an explainer with a temporary run cannot be pickled: give it a folder, run=\"...\"")
            state["run_"] = None
        return {**state, "progress": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        fitted = state.pop("run_", False) is None
        self.__dict__.update(state)
        if fitted:
            self.run_ = Run(os.fspath(self.run or ""), n_jobs=self.n_jobs, classes=self.classes_)
            if self.model is not None and not isinstance(self.model, str):
                self.run_.use(self.model)
