#!/usr/bin/python3
"""The tables of docs/results.md, of a report that `fds bench` has written.

Usage: bench/results.py REPORT_FOLDER

For each set of data: the value loss over correctly classified samples (mean and its standard error, the
paper's mean in brackets), over all samples, by converged models, and without the least valuable; then
agreement, mislabel detection and cost. Prints Markdown.
"""
import json
import os
import sys

SHARES = (0.05, 0.1, 0.15, 0.2)
TEN, CONVERGED = "retrain:10", "retrain"


def losses(row, utility, removal, chosen):
    """The entry of a row's losses, or None."""
    for entry in row["losses"]:
        if (entry["utility"], entry["removal"], entry["set"]) == (utility, removal, chosen):
            return entry
    return None


def figure(value, digits=2):
    return "" if value is None else f"{value:,.{digits}f}"


def mean(row, *path, digits=2):
    for key in path:
        row = row[key] if row else None
    return figure(row["mean"] if row else None, digits)


def cells(entry, shares, paper=None, with_error=True):
    """A loss for each share: 2.24 ± 0.28 (0.60)."""
    for share in SHARES:
        if entry is None or share not in shares:
            yield ""
            continue
        k = shares.index(share)
        text = figure(entry["mean"][k])
        if with_error and entry["error"][k] is not None:
            text += " ± " + figure(entry["error"][k])
        if paper and share in paper["shares"]:
            text += f" ({figure(paper['mean'][paper['shares'].index(share)])})"
        yield text


def table(title, heads, lines):
    print(f"{title}\n\n| | {' | '.join(heads)} |\n|{' --- |' * (len(heads) + 1)}")
    for name, *rest in lines:
        print(f"| {name} | {' | '.join(rest)} |")
    print()


def show_losses(data, title, utility, removal, chosen, with_paper=False, **how):
    """utility None: each method by its own utility function."""
    shares = data["settings"]["shares"]
    lines = []
    for row in data["rows"]:
        entry = losses(row, utility or row["utility"], removal, chosen)
        if entry:
            paper = row["paper"] if with_paper else None
            lines.append([row["title"], *cells(entry, shares, paper, **how)])
    if lines:
        table(title, [f"{100 * share:g} %" for share in SHARES], lines)


def show_rest(data):
    lines = []
    for row in data["rows"]:
        paper = row["paper"] and row["paper"]["seconds"]
        seconds = mean(row, "timing", "prepare_s", digits=1) + (f" ({paper:,.0f})" if paper else "")
        lines.append([row["title"], mean(row, "agreement", "correlation", digits=3),
                      mean(row, "agreement", "class_correlation", digits=3),
                      mean(row, "agreement", "relative_error", digits=3), mean(row, "agreement", "efficiency_gap", digits=4),
                      mean(row, "auc", digits=3), seconds, mean(row, "timing", "answer_ms", digits=2),
                      mean(row, "sub_models", digits=0)])
    table("Agreement with the truth, mislabel detection, cost (the paper's seconds in brackets):",
          ["correlation", "within the class", "relative error", "efficiency gap", "mislabel detection, AUC", "prepare, s",
           "per sample, ms", "sub-models"], lines)


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    with open(os.path.join(sys.argv[1], "report.json"), encoding="utf-8") as file:
        report = json.load(file)
    for data in report["data"]:
        utilities = {entry["utility"]: entry for entry in data["utilities"]}
        correct = {value: e for value, entry in utilities.items() for e in entry["losses"] if e["set"] == "correct"}
        print(f"## {data['name']}\n\n{data['players']} players, {data['tests']} test samples for each of "
              f"{len(data['seeds'])} seeds; correctly classified "
              + ", ".join(f"{e['count']} by `{value}` (their loss with all players {e['mean']:.2f})"
                          for value, e in correct.items()) + ".\n")
        show_losses(data, "Value loss, correctly classified samples, each method by its own models (the paper's in brackets):",
                    None, "top", "correct", with_paper=True)
        show_losses(data, "The same over all samples:", None, "top", "all")
        show_losses(data, "By converged models, correctly classified samples:", CONVERGED, "top", "correct")
        show_losses(data, "By models of 10 epochs without the *least* valuable (lower is better), correctly classified samples:",
                    TEN, "bottom", "correct", with_error=False)
        show_rest(data)


if __name__ == "__main__":
    main()
