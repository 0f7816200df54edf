# SPDX-License-Identifier: Apache-2.0
"""Plots of results by matplotlib, which is imported when the first one is drawn."""
from __future__ import annotations

import copy
from typing import Any, Optional

import numpy as np

from . import _lib
from .data import label_name, to_names

POSITIVE, NEGATIVE, GREY = "#1f77b4", "#d62728", "#999999"


def axes(ax: Any, height: float = 4.0) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots need the package matplotlib, which is not installed") from None
    return plt.subplots(figsize=(6.4, height), layout="constrained")[1]


def greatest(result: Any, count: int) -> tuple[Any, int]:
    """The players of the greatest absolute values, and how many are left out."""
    if count < 1:
        raise _lib.UsageError(f"`max_display` must be at least 1 (got {count})")
    order = np.argsort(-np.abs(result.values), kind="stable")[:count]
    return result._take(order).sort(), len(result.names) - len(order)


def name_of(result: Any, i: int) -> str:
    name = str(result.names[i])
    label = result.player_labels[i]
    is_told = label is not None and (result.providers is None or name != result.providers[i])
    short = name if len(name) <= 40 else name[:37] + "..."
    return f"{short}  ({label_name(label)})" if is_told else short


def title(result: Any) -> str:
    label = "" if result.labels is None else f", label {label_name(result.labels)}"
    full = "" if np.isnan(result.full) else f": v = {result.empty:.3f} with none, {result.full:.3f} with all"
    return f"{result.inputs}{label}{full}" if label or full else str(result.method)


def bar(result: Any, max_display: int, ax: Any) -> Any:
    chosen, left = greatest(result, max_display)
    ax = axes(ax, 1.4 + 0.3 * len(chosen))
    places = np.arange(len(chosen))[::-1]
    errors = np.nan_to_num(chosen.stderr)
    ax.barh(places, chosen.values, xerr=errors if errors.any() else None, capsize=2,
            color=[POSITIVE if v >= 0 else NEGATIVE for v in chosen.values], ecolor="#444444")
    ax.set_yticks(places, [name_of(chosen, i) for i in range(len(chosen))])
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_xlabel("value" if not left else f"value ({left} others are nearer to zero)")
    ax.set_title(title(result), fontsize=10)
    return ax


def waterfall(result: Any, max_display: int, ax: Any) -> Any:
    chosen, left = greatest(result, max_display)
    start = 0.0 if np.isnan(result.empty) else float(result.empty)
    rest = float(result.values.sum() - chosen.values.sum())
    steps = [(f"{left} others", rest)] if left else []
    steps += [(name_of(chosen, i), float(chosen.values[i])) for i in reversed(range(len(chosen)))]
    ax = axes(ax, 1.4 + 0.32 * len(steps))
    at = start
    for place, (_, value) in enumerate(steps):
        color = POSITIVE if value >= 0 else NEGATIVE
        ax.barh(place, value, left=at, color=color)
        ax.annotate(f"{value:+.3f}", (at + max(value, 0.0), place), xytext=(3, 0), textcoords="offset points",
                    va="center", fontsize=8, color=color)
        if place + 1 < len(steps):
            ax.plot([at + value] * 2, [place - 0.4, place + 1.4], color=GREY, linewidth=0.6)
        at += value
    ax.set_yticks(range(len(steps)), [name for name, _ in steps])
    ax.axvline(start, color=GREY, linestyle=":", linewidth=1)
    ax.axvline(at, color="black", linestyle=":", linewidth=1)
    ax.use_sticky_edges = False
    ax.margins(x=0.14, y=0.03)
    ax.set_xlabel("utility, from none of the players to all")
    ax.set_title(title(result), fontsize=10)
    return ax


def picture(sample: Any) -> tuple[Any, Optional[str]]:
    """(c, h, w) for imshow, and the colours."""
    return (np.moveaxis(sample, 0, 2), None) if sample.shape[0] == 3 else (sample[0], "gray")


def contact_sheet(result: Any, columns: int, rows: Optional[int]) -> Any:
    if result._samples is None or result._pictures is None:
        raise _lib.UsageError("plot_contact_sheet needs pictures: results of explain() or value(..., per_sample=True) "
                              "for images have them")
    import matplotlib.pyplot as plt
    many = result if not result._single else result._predictions(np.array([0]), False)
    count = min(len(many), rows or 10)
    columns = min(columns, len(result.names))
    figure, grid = plt.subplots(count, columns + 1, squeeze=False, layout="constrained",
                                figsize=(1.0 * (columns + 1), 1.25 * count))
    for k in range(count):
        one = many[k]
        show(grid[k][0], one._pictures[0], f"label {label_name(one.labels)}", "black")
        chosen, _ = greatest(one, columns)
        for i in range(columns):
            color = POSITIVE if chosen.values[i] >= 0 else NEGATIVE
            show(grid[k][i + 1], chosen._samples[i], f"{chosen.values[i]:+.3f}", color)
    return figure


def show(ax: Any, sample: Any, text: str, color: str) -> None:
    image, colours = picture(sample)
    ax.imshow(image, cmap=colours, vmin=0, vmax=1, interpolation="nearest")
    ax.set_title(text, fontsize=8, color=color)
    ax.set_xticks([])
    ax.set_yticks([])


def removal_curve(result: Any, model: Any, X: Any, y: Any, Xtest: Any, ytest: Any, providers: Any, steps: int,
                  ascending: bool) -> tuple[Any, Any, Any]:
    """Shares of players removed, and the accuracies: by value, and in a random order."""
    if result.task == "regression":
        raise _lib.UsageError("plot_removal draws accuracy, which needs classes, and the result is of a regression")
    X, y, n = np.asarray(X), np.asarray(y), len(result.names)
    whole = result.sort("index")
    owners = np.arange(n) if providers is None else np.asarray(to_names(providers, len(X), "providers"))
    names = np.arange(n) if providers is None else whole.names
    if len(X) != len(owners):
        raise _lib.ShapeError(f"X has {len(X)} rows, the result {n} players; for players that are providers, give "
                              "`providers`")
    orders = [np.argsort(whole.values if ascending else -whole.values, kind="stable"),
              np.random.default_rng(0).permutation(n)]
    shares = np.linspace(0, 0.9, steps)
    curves = [[accuracy(model, X, y, Xtest, ytest, np.isin(owners, names[order[min(int(round(share * n)), n - 1):]]))
               for share in shares] for order in orders]
    return shares, np.array(curves[0]), np.array(curves[1])


def accuracy(model: Any, X: Any, y: Any, Xtest: Any, ytest: Any, kept: Any) -> float:
    """On the test samples, of a copy of the model that is fitted on the rows that are kept."""
    labels = np.unique(y[kept])
    found = labels[0] if len(labels) < 2 else copy.deepcopy(model).fit(X[kept], y[kept]).predict(Xtest)
    return float(np.mean(np.asarray(found) == np.asarray(ytest)))


def removal(result: Any, model: Any, X: Any, y: Any, Xtest: Any, ytest: Any, providers: Any, steps: int,
            ascending: bool, ax: Any) -> Any:
    shares, ours, chance = removal_curve(result, model, X, y, Xtest, ytest, providers, steps, ascending)
    ax = axes(ax)
    ax.plot(100 * shares, ours, marker="o", color=POSITIVE,
            label=f"{'least' if ascending else 'most'} valuable first ({result.method})")
    ax.plot(100 * shares, chance, marker=".", color=GREY, label="random order")
    ax.set_xlabel("players removed, %")
    ax.set_ylabel("accuracy")
    ax.legend()
    return ax
