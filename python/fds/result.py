# SPDX-License-Identifier: Apache-2.0
"""Values of players: arrays with names, errors, and what they are of."""
from __future__ import annotations

import ctypes as c
import dataclasses
import html
import json
from typing import Any, Iterator, Optional, Sequence

import numpy as np
import numpy.typing as npt

from . import _lib
from .data import NO_CLASSES, Array, label_name, restore_classes

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Value:
    """One player of a result."""

    index: int
    name: str
    value: float
    stderr: float
    count: int
    label: Any
    provider: Optional[str]


class Result:
    """Values of all players, for one prediction (or for a whole test set), or for several predictions.

    One: `values` is (players,), `result[0]` a `Value`, `result[:5]` a result of five players.
    Several: `values` is (predictions, players), `result[0]` the result of the first prediction.

    Attributes (those of predictions are arrays, one entry each, or single where there is one prediction):
        values, stderr    Shapley values (or another semivalue) and their standard errors; NaN: not known
        names, indices    of the players; indices count them from 0, as rows of X if these are the players
        player_labels, providers, groups, sizes   of the players: most frequent label, owner, group, samples
        task              "classification" or "regression": all labels are then numbers, and utilities are scores
        labels            of the predictions: the label that the values explain
        predicted, truth  what the model predicts; the true label, or None
        full, empty       v(N) and v(∅): the utility with all players and with none
        method, status    how it was computed; "converged", "exact", "estimated" or "budget"
        counts, variances how many samples each value is the mean of, and their variance; NaN: not such a mean
        about             all that the library says about the computation

    >>> r = fds.Result([0.5, -0.25], stderr=[0.1, 0.1], names=["A", "B"])
    >>> r.sort().names.tolist(), r[0].value, len(r)
    (['A', 'B'], 0.5, 2)
    """

    def __init__(self, values: Any, *, stderr: Any = None, names: Optional[Sequence[str]] = None,
                 player_labels: Any = None, providers: Optional[Sequence[Optional[str]]] = None,
                 groups: Any = None, sizes: Any = None, labels: Any = None, inputs: Optional[Sequence[str]] = None,
                 method: str = "own", exact: bool = False) -> None:
        self._values: Floats = np.atleast_2d(np.array(values, dtype=np.float64))
        self._single = np.ndim(values) == 1
        if np.ndim(values) > 2:
            raise _lib.ShapeError(f"values have the shape {np.shape(values)}: give (players,) or (predictions, players)")
        predictions, players = self._values.shape
        if not players or not predictions:
            raise _lib.ShapeError("a result needs at least one value")
        unknown = np.zeros_like(self._values) if exact else np.full_like(self._values, np.nan)
        self._stderr: Floats = unknown if stderr is None else np.atleast_2d(np.array(stderr, dtype=np.float64))
        if self._stderr.shape != self._values.shape:
            raise _lib.ShapeError(f"stderr has the shape {np.shape(stderr)}, values {np.shape(values)}")
        self.names: Array = self._texts([f"player {i}" for i in range(players)] if names is None else names, players,
                                        "names")
        self.player_labels: Array = np.array([None] * players) if player_labels is None else np.asarray(player_labels)
        self.providers: Optional[Array] = None if providers is None else np.array(list(providers), dtype=object)
        self.groups: Optional[Array] = None if groups is None else np.asarray(groups)
        self.sizes: Array = np.ones(players, int) if sizes is None else np.asarray(sizes, int)
        self.indices: Array = np.arange(players)
        self._labels: Array = np.array([None] * predictions) if labels is None else np.atleast_1d(np.asarray(labels))
        self._inputs: Array = self._texts([f"prediction {i}" for i in range(predictions)] if inputs is None else inputs,
                                          predictions, "inputs")
        self._predicted: Array = np.array([None] * predictions)
        self._truth: Array = np.array([None] * predictions)
        self._confidence: Floats = np.full(predictions, np.nan)
        self._empty: Floats = np.full(predictions, np.nan)
        self._full: Floats = np.full(predictions, np.nan)
        self._checks: Optional[Floats] = None
        self._check_stderr: Optional[Floats] = None
        self.classes: Array = np.unique([label_name(v) for v in self.player_labels])
        self.method, self.exact, self.about = method, exact, {}  # type: str, bool, dict[str, Any]
        self.task = "classification"
        self._players = players  # of the whole game, which may be more than are here
        self._samples: Optional[Array] = None  # pictures of the players
        self._pictures: Optional[Array] = None  # pictures of the predictions

    @staticmethod
    def _texts(values: Sequence[Any], count: int, what: str) -> Array:
        if len(values) != count:
            raise _lib.ShapeError(f"{what} has {len(values)} entries, {count} are needed")
        return np.array([str(value) for value in values], dtype=object)

    # ---- one or several predictions ----

    def _pick(self, array: Any) -> Any:
        return array[0] if self._single else array

    @property
    def values(self) -> Floats:
        return self._pick(self._values)  # type: ignore[no-any-return]

    @property
    def data_values(self) -> Floats:
        """`values`, as OpenDataVal calls them."""
        return self.values

    @property
    def stderr(self) -> Floats:
        return self._pick(self._stderr)  # type: ignore[no-any-return]

    @property
    def labels(self) -> Any:
        return self._pick(self._labels)

    @property
    def inputs(self) -> Any:
        return self._pick(self._inputs)

    @property
    def predicted(self) -> Any:
        return self._pick(self._predicted)

    @property
    def truth(self) -> Any:
        return self._pick(self._truth)

    @property
    def confidence(self) -> Any:
        return self._pick(self._confidence)

    @property
    def full(self) -> Any:
        return self._pick(self._full)

    @property
    def empty(self) -> Any:
        return self._pick(self._empty)

    @property
    def check(self) -> Optional[Floats]:
        """The same values by the kept sub-models, with `check=True`; else None."""
        return None if self._checks is None else self._pick(self._checks)

    @property
    def check_stderr(self) -> Optional[Floats]:
        return None if self._check_stderr is None else self._pick(self._check_stderr)

    @property
    def algorithm(self) -> str:
        """`method`, as pyDVL calls it."""
        return self.method

    @property
    def counts(self) -> Array:
        """How many marginals each value is the mean of: permutations; 0 for methods without them."""
        return np.full(len(self.names), int(self._found().get("permutations") or 0))

    @property
    def variances(self) -> Floats:
        """Of these marginals: counts * stderr²."""
        counts = self.counts.astype(float)
        counts[counts == 0] = np.nan
        found: Floats = self.stderr**2 * counts
        return found

    @property
    def status(self) -> str:
        """"exact", "converged" (the values changed little at the end), "budget" (all permutations were used), or
        "estimated"."""
        if self.exact:
            return "exact"
        found = self._found()
        if found.get("permutations"):
            return "converged" if found.get("converged") else "budget"
        return "estimated"

    def _found(self) -> dict[str, Any]:
        return (self.about.get("baseline") or {}).get("found") or {}

    # ---- as a sequence ----

    def __len__(self) -> int:
        return len(self.names) if self._single else len(self._values)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, (int, np.integer)):
            place = int(which) + len(self) if which < 0 else int(which)
            if not 0 <= place < len(self):
                raise IndexError(f"{which}: there are {len(self)} {'players' if self._single else 'predictions'}")
            return self._value(place) if self._single else self._predictions(np.array([place]), True)
        places = np.arange(len(self))[which]
        return self._take(places) if self._single else self._predictions(places, False)

    def _value(self, i: int) -> Value:
        provider = None if self.providers is None else self.providers[i]
        return Value(int(self.indices[i]), str(self.names[i]), float(self._values[0, i]), float(self._stderr[0, i]),
                     int(self.counts[i]), self.player_labels[i], provider)

    def _copy(self) -> Result:
        made = Result.__new__(Result)
        made.__dict__.update(self.__dict__)
        return made

    def _predictions(self, places: Array, single: bool) -> Result:
        if not len(places):
            raise IndexError("a result needs at least one prediction")
        made = self._copy()
        for name in ("_values", "_stderr", "_labels", "_inputs", "_predicted", "_truth", "_confidence", "_empty",
                     "_full", "_checks", "_check_stderr", "_pictures"):
            if getattr(self, name) is not None:
                setattr(made, name, getattr(self, name)[places])
        made._single = single
        return made

    def _take(self, players: Array) -> Result:
        """Some of the players, in that order."""
        if not len(players):
            raise IndexError("a result needs at least one player")
        made = self._copy()
        for name in ("_values", "_stderr", "_checks", "_check_stderr"):
            if getattr(self, name) is not None:
                setattr(made, name, getattr(self, name)[:, players])
        for name in ("names", "player_labels", "providers", "groups", "sizes", "indices", "_samples"):
            if getattr(self, name) is not None:
                setattr(made, name, getattr(self, name)[players])
        return made

    def sort(self, by: str = "value", ascending: bool = False) -> Result:
        """The players by falling value; `by`: "value", "stderr", "name" or "index". Of several predictions, by the
        mean. Returns a new result."""
        keys = {"value": self._values.mean(0), "stderr": self._stderr.mean(0), "name": self.names,
                "index": self.indices}
        if by not in keys:
            raise _lib.UsageError(f"by must be value, stderr, name or index (got {by!r})")
        is_falling = not ascending and by in ("value", "stderr")  # names and indices always rise
        key = -np.asarray(keys[by], dtype=float) if is_falling else keys[by]
        return self._take(np.argsort(key, kind="stable"))

    def mean(self) -> Result:
        """The mean over the predictions. Its error is known for exact values only, as all predictions share their
        sub-models."""
        if self._single:
            return self
        made = self._predictions(np.array([0]), True)
        made._values = self._values.mean(0, keepdims=True)
        made._stderr = np.zeros_like(made._values) if self.exact else np.full_like(made._values, np.nan)
        for name in ("_empty", "_full", "_confidence"):
            setattr(made, name, np.array([getattr(self, name).mean()]))
        for name in ("_labels", "_predicted", "_truth"):
            setattr(made, name, np.array([None]))
        made._inputs = np.array([f"mean of {len(self)} predictions"], dtype=object)
        made._checks = made._check_stderr = made._pictures = None
        return made

    # ---- as something else ----

    def to_dataframe(self) -> Any:
        """A pandas DataFrame, one row per player (and prediction), indexed by the names of players."""
        pd = pandas()
        frames = []
        for k in range(len(self._values)):
            columns: dict[str, Any] = {} if self._single else {"input": self._inputs[k], "explained": self._labels[k]}
            columns.update(value=self._values[k], stderr=self._stderr[k])
            if self.providers is not None and list(self.providers) == list(self.names):  # the players are providers
                columns["samples"] = self.sizes
            else:
                columns["label"] = self.player_labels
                if self.providers is not None:
                    columns["provider"] = self.providers
            if self._checks is not None and self._check_stderr is not None:
                columns.update(check=self._checks[k], check_stderr=self._check_stderr[k])
            frames.append(pd.DataFrame(columns, index=pd.Index(self.names, name="player")))
        return frames[0] if self._single else pd.concat(frames)

    def to_dict(self) -> dict[str, float]:
        """{name: value} of one prediction."""
        return dict(zip(self.names.tolist(), self._one().values.tolist()))

    def _one(self) -> Result:
        if not self._single:
            if len(self) == 1:
                return self[0]  # type: ignore[no-any-return]
            raise _lib.UsageError(f"the result has {len(self)} predictions: choose one, result[0], or result.mean()")
        return self

    def to_shap(self) -> Any:
        """A shap.Explanation, for the plots of shap: base values are v(∅), features are players."""
        try:
            import shap
        except ImportError:
            raise ImportError("to_shap needs the package shap, which is not installed; plot_bar and plot_waterfall draw "
                              "the same without it") from None
        return shap.Explanation(values=self.values, base_values=self.empty, feature_names=self.names.tolist())

    def save(self, path: Any) -> None:
        """Writes .csv, .npy or .json, as the path ends, in the formats of the command."""
        _lib.call("fds_result_save", self._handle(), _lib.encode(path))

    def _handle(self) -> _lib.Handle:
        """The same as fds_result: what the library pays by."""
        if len(self.names) != self._players:
            raise _lib.UsageError(f"the result has {len(self.names)} of {self._players} players: use the whole one")
        has_targets = self.task == "regression"
        names = [] if has_targets else list(dict.fromkeys([label_name(v) for v in [*self.classes, *self.player_labels]]))
        places = {name: i for i, name in enumerate(names)}
        numbers: dict[str, Any] = {"player_samples": self.sizes}
        if not has_targets:
            numbers.update(player_labels=[places[label_name(v)] for v in self.player_labels],
                           labels=[places.get(label_name(v), 2**32 - 1) for v in self._labels])
        if self.groups is not None:
            numbers["player_groups"] = np.unique(self.groups, return_inverse=True)[1]
        arrays: dict[str, Array] = {name: np.ascontiguousarray(v, np.uint32) for name, v in numbers.items()}
        reals: dict[str, Array] = {"values": np.ascontiguousarray(self._values), "errors": np.ascontiguousarray(self._stderr)}
        if has_targets:
            reals["player_targets"] = np.array(self.player_labels, dtype=np.float64)
            reals["targets"] = np.array([np.nan if v is None else v for v in self._labels], dtype=np.float64)
        texts = {"class_names": names, "player_names": self.names.tolist(), "inputs": self._inputs.tolist(),
                 "providers": None if self.providers is None else self.providers.tolist()}
        lists = {name: _lib.strings(v) for name, v in texts.items() if v is not None}
        raw = _lib.Values(method=self.method.encode(), players=len(self.names), predictions=len(self._values),
                          classes=len(names), is_exact=self.exact, **lists,
                          **{name: v.ctypes.data for name, v in {**arrays, **reals}.items()})
        return _lib.Handle.make("fds_result_create", "fds_result_free", c.byref(raw))

    # ---- looking ----

    def _table(self, rows: int = 10) -> list[tuple[str, str, str]]:
        one = (self if self._single else self.mean()).sort()
        cells = [(str(one.names[i]), f"{one.values[i]:+.6f}",
                  "" if np.isnan(one.stderr[i]) else f"± {one.stderr[i]:.6f}") for i in range(len(one.names))]
        if len(cells) > rows:
            cells = [*cells[:rows // 2], ("...", "", ""), *cells[-(rows // 2):]]
        return cells

    def _title(self) -> str:
        several = "" if self._single else f", {len(self)} predictions"
        noun = "target" if self.task == "regression" else "label"
        label = f", {noun} {label_name(self.labels)}" if self._single and self.labels is not None else ""
        return f"{len(self.names)} players{several}{label}, method {self.method}, {self.status}"

    def __repr__(self) -> str:
        cells = self._table()
        width = max(len(name) for name, _, _ in cells)
        lines = [f"{name:{width}}  {value:>10}  {error}".rstrip() for name, value, error in cells]
        mean = [] if self._single else ["mean over the predictions:"]
        return "\n".join([f"Result({self._title()})", *mean, *lines])

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{html.escape(name)}</td><td>{value}</td><td>{error}</td></tr>"
                       for name, value, error in self._table(20))
        head = "value" if self._single else "mean value"
        return (f"<p>{html.escape(self._title())}</p><table><thead><tr><th>player</th><th>{head}</th>"
                f"<th>standard error</th></tr></thead><tbody>{rows}</tbody></table>")

    # ---- plots ----

    def plot_bar(self, max_display: int = 10, ax: Any = None) -> Any:
        """Bars of the players with the greatest absolute values, with standard errors."""
        from . import plots
        return plots.bar(self._one(), max_display, ax)

    def plot_waterfall(self, max_display: int = 10, ax: Any = None) -> Any:
        """From v(∅) to v(N), player by player."""
        from . import plots
        return plots.waterfall(self._one(), max_display, ax)

    def plot_contact_sheet(self, columns: int = 10, rows: Optional[int] = None) -> Any:
        """For pictures: a row per prediction, its picture and its greatest contributors."""
        from . import plots
        return plots.contact_sheet(self, columns, rows)

    def plot_removal(self, model: Any, X: Any, y: Any, Xtest: Any, ytest: Any, *, providers: Any = None,
                     steps: int = 10, ascending: bool = False, ax: Any = None) -> Any:
        """Accuracy of the model as the most valuable players (ascending: the least) are removed, beside a random
        order. model: an object with fit and predict; X, y: the samples of the players; providers: their owners, if
        these are the players."""
        from . import plots
        return plots.removal(self._one(), model, X, y, Xtest, ytest, providers, steps, ascending, ax)


def pandas() -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("a DataFrame needs the package pandas, which is not installed") from None
    return pd


# ---- from the library ----

@dataclasses.dataclass(frozen=True)
class Labels:
    """Of players and predictions, as the user has them; of a regression targets."""

    classes: Array
    players: Array
    explained: Array
    predicted: Array
    truth: Array


def read_labels(r: _lib.Handle, players: int, predictions: int, classes: Optional[Array]) -> Labels:
    library = _lib.lib()
    texts = [[_lib.text_or_none(library.fds_result_player_label(r, i)) for i in range(players)]]
    texts += [[_lib.text_or_none(getattr(library, f"fds_result_{what}")(r, k)) for k in range(predictions)]
              for what in ("label", "predicted", "truth")]
    seen = {name for part in texts for name in part if name not in (None, "", "?")}
    known = restore_classes(sorted(map(str, seen))) if classes is None else classes
    by_name = {label_name(label): label for label in known}

    def label(name: Optional[str]) -> Any:
        found = by_name.get(name or "", None if name in (None, "?") else name)
        return found.item() if hasattr(found, "item") else found

    return Labels(known, *(np.array([label(name) for name in part], dtype=object) for part in texts))


def read_targets(r: _lib.Handle, players: int, predictions: int) -> Labels:
    library = _lib.lib()
    numbers = [[library.fds_result_player_target(r, i) for i in range(players)]]
    numbers += [[getattr(library, f"fds_result_{what}")(r, k) for k in range(predictions)]
                for what in ("target", "predicted_target", "true_target")]
    return Labels(NO_CLASSES, *(np.array([None if np.isnan(v) else v for v in part], dtype=object) for part in numbers))


def read(handle: _lib.Handle, classes: Optional[Array]) -> Result:
    """The result of a call. classes: the user's own labels; None: texts, or numbers."""
    library, r = _lib.lib(), handle
    players, predictions = library.fds_result_players(r), library.fds_result_predictions(r)
    values, errors = np.empty((predictions, players)), np.empty((predictions, players))
    library.fds_result_copy(r, values.ctypes.data, errors.ctypes.data)
    has_targets = bool(library.fds_result_is_regression(r))
    labels = read_targets(r, players, predictions) if has_targets else read_labels(r, players, predictions, classes)
    owners = [_lib.text_or_none(library.fds_result_provider(r, i)) for i in range(players)]
    groups = [library.fds_result_player_group(r, i) for i in range(players)]
    made = Result(values, stderr=errors, method=_lib.text(library.fds_result_method(r)),
                  names=[_lib.text(library.fds_result_player(r, i)) for i in range(players)],
                  player_labels=labels.players,
                  providers=owners if any(owner is not None for owner in owners) else None,
                  groups=None if groups[0] == 2**32 - 1 else groups,
                  sizes=[library.fds_result_player_samples(r, i) for i in range(players)],
                  inputs=[_lib.text(library.fds_result_input(r, k)) for k in range(predictions)],
                  exact=bool(library.fds_result_is_exact(r)))
    made.task = "regression" if has_targets else "classification"
    made.classes, made._labels = labels.classes, labels.explained
    made._predicted, made._truth = labels.predicted, labels.truth
    for field in ("confidence", "empty", "full"):
        setattr(made, f"_{field}", np.array([getattr(library, f"fds_result_{field}")(r, k)
                                             for k in range(predictions)]))
    made.about = json.loads(_lib.text(library.fds_result_describe(r)))
    made._single = bool(library.fds_result_is_mean(r))
    if made._single and not (made.about.get("baseline") or {}):  # of the mean probability of the true label, or score
        kind = "utility" if has_targets else "probability"
        for field, what in (("_empty", "none"), ("_full", "all")):
            setattr(made, field, np.array([made.about.get(f"{kind}_with_{what}")], dtype=float))  # None: NaN
    made._inputs = np.array([f"test sample {k}" if name == "?" else name for k, name in enumerate(made._inputs)],
                            dtype=object)
    if made._single:
        made._inputs[:] = "all test samples"
    if predictions and not np.isnan(library.fds_result_check(r, 0, 0)):
        made._checks, made._check_stderr = (
            np.array([[getattr(library, f"fds_result_{what}")(r, k, i) for i in range(players)]
                      for k in range(predictions)]) for what in ("check", "check_error"))
    return made
