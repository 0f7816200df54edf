#!/usr/bin/python3
"""The tables of docs/results.md and its sentences with figures, from a report that `fds bench` has written.

Usage: bench/results.py REPORT_FOLDER [--write PAGE]

Prints Markdown. With --write, replaces what stands in PAGE between the lines
    <!-- results: begin -->
    <!-- results: end -->
and leaves the rest of the page as it is. Every figure comes from report.json.
"""
import datetime
import json
import os
import pathlib
import subprocess
import sys
import textwrap

SHARES = (0.05, 0.1, 0.15, 0.2)
TEN, CONVERGED = "retrain:10", "retrain"
NAMES = {"mnist": "MNIST", "cifar10": "CIFAR-10", "fashion-mnist": "Fashion-MNIST"}
BEGIN, END = "<!-- results: begin -->\n", "<!-- results: end -->\n"


# ---- figures ----


def title(data):
    return NAMES.get(data["name"], data["name"])


def entry_of(row, measure, utility, removal=None, chosen=None):
    """The entry of a row's list, or None."""
    for entry in row[measure]:
        if (entry["utility"], entry.get("removal"), entry.get("set")) == (utility, removal, chosen):
            return entry
    return None


def losses(row, utility, removal="top", chosen="correct", measure="losses"):
    return entry_of(row, measure, utility, removal, chosen)


def at(value, place):
    """A member of an entry: a number, or a list with one per share."""
    return value[place] if isinstance(value, list) else value


def figure(value, digits=2):
    return "" if value is None else f"{round(value, digits) + 0:,.{digits}f}"


def with_error(entry, place=0, digits=2):
    """2.24 ± 0.28"""
    if entry is None or at(entry["mean"], place) is None:
        return ""
    error = at(entry["error"], place)
    return figure(at(entry["mean"], place), digits) + (f" ± {figure(error, digits)}" if error is not None else "")


def with_spread(stat, digits=3):
    """0.976 ± 0.004: mean and standard deviation over seeds or flips."""
    if not stat:
        return ""
    return figure(stat["mean"], digits) + (f" ± {figure(stat['sd'], digits)}" if stat["sd"] is not None else "")


def mean(row, *path, digits=2):
    for key in path:
        row = row[key] if row else None
    return figure(row["mean"] if row else None, digits)


def distance(entry, method, place=0):
    """How many standard errors an entry is above a method's: +4.3."""
    for apart in (entry or {"against": []})["against"]:
        difference, error = at(apart["mean"], place), at(apart["error"], place)
        if apart["method"] == method and difference is not None:
            if difference == 0:
                return "0"
            return f"{round(difference / error, 1) + 0:+.1f}" if error else ""
    return ""


# ---- tables ----


def wrap(text, first="", rest=""):
    lines = textwrap.fill(text.replace(" %", "\u00a0%"), 120, initial_indent=first, subsequent_indent=rest,
                          break_on_hyphens=False, break_long_words=False)
    return lines.replace("\u00a0", " ")


def table(heading, heads, lines):
    yield f"{wrap(heading)}\n\n| | {' | '.join(heads)} |\n|{' --- |' * (len(heads) + 1)}"
    for name, *rest in lines:
        yield f"| {name} | {' | '.join(rest)} |"
    yield ""


def controls_table(data):
    """What is left of each method when the controls are taken away, at the first share."""
    share = data["settings"]["shares"][0]
    lines = []
    for row in data["rows"]:
        own, other = losses(row, row["utility"]), losses(row, row["utility"], measure="losses_other_seed")
        same, seeds = entry_of(row, "lds", row["utility"]), entry_of(row, "lds_other_seeds", row["utility"])
        name = row["title"] + (" (converged models)" if row["utility"] == CONVERGED else "")
        lines.append([name, with_error(own), distance(own, "same-label"), distance(own, "knn:5/sample"),
                      with_error(other), distance(other, "same-label"), distance(other, "knn:5/sample"),
                      with_error(same, digits=3), with_error(seeds, digits=3)])
    for of in data["utilities"]:
        scores = [with_error(entry_of(of, measure, of["utility"]), digits=3) for measure in ("lds", "lds_other_seeds")]
        if any(scores):
            lines.append([f"The truth by `{of['utility']}`", *[""] * 6, *scores])
    yield from table(
        f"What the controls leave, without the most valuable {100 * share:g} % of the players, correctly classified samples, "
        "each method by its own models. Distances are in standard errors of the paired difference:",
        ["value loss", "from `same-label`", "from `knn:5/sample`", "from other networks", "from `same-label`",
         "from `knn:5/sample`", "LDS, same seed", "LDS, other seeds"], lines)


def loss_cells(entry, shares, paper=None, has_error=True):
    """A loss for each share: 2.24 ± 0.28 (0.60)."""
    for share in SHARES:
        if entry is None or share not in shares:
            yield ""
            continue
        k = shares.index(share)
        text = with_error(entry, k) if has_error else figure(entry["mean"][k])
        if paper and share in paper["shares"]:
            text += f" ({figure(paper['mean'][paper['shares'].index(share)])})"
        yield text


def loss_table(data, heading, utility, removal="top", chosen="correct", measure="losses", with_paper=False, **how):
    """utility None: each method by its own utility function."""
    lines = []
    for row in data["rows"]:
        entry = losses(row, utility or row["utility"], removal, chosen, measure)
        if entry:
            paper = row["paper"] if with_paper else None
            lines.append([row["title"], *loss_cells(entry, data["settings"]["shares"], paper, **how)])
    if lines:
        yield from table(heading, [f"{100 * share:g} %" for share in SHARES], lines)


def score_table(data, heading, utility):
    lines = [[row["title"], *(with_error(entry_of(row, measure, utility), digits=3)
                              for measure in ("lds", "lds_other_seeds"))]
             for row in data["rows"] if entry_of(row, "lds", utility)]
    if lines:
        yield from table(heading, ["same seed", "other seeds"], lines)


def rest_table(data):
    lines = []
    for row in data["rows"]:
        agreement = row["agreement"] or {}
        paper = row["paper"] and row["paper"]["seconds"]
        seconds = mean(row, "timing", "prepare_s", digits=1) + (f" ({paper:,.0f})" if paper else "")
        terms = row["auc_terms"]
        area = with_spread(row["auc"])
        if area and not terms["is_equal"] and row["kind"] != "control":
            area += " (own terms)"
        lines.append([row["title"], with_spread(agreement.get("correlation")),
                      with_spread(agreement.get("class_correlation")), with_spread(agreement.get("relative_error")),
                      mean(row, "agreement", "efficiency_gap", digits=4), area,
                      mean(row, "auc_terms", "sub_models", digits=0), seconds, mean(row, "timing", "answer_ms", digits=2),
                      mean(row, "sub_models", digits=0)])
    yield from table(
        "Agreement with the truth, mislabel detection (± standard deviation over seeds or flips), cost (the paper's "
        "seconds in brackets):",
        ["correlation", "within the class", "relative error", "efficiency gap", "mislabel detection, AUC",
         "its sub-models", "prepare, s", "per sample, ms", "sub-models"], lines)


# ---- sentences ----


def head(report):
    def run(*command):
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False,
                              cwd=os.path.dirname(os.path.abspath(__file__))).stdout.strip()
    commit = run("git", "rev-parse", "--short", "HEAD") or "unknown"
    machine = report["machine"]
    yield wrap(f"`{report['command']}`, commit {commit}, {datetime.date.today()}, {machine['processor']}, "
               f"{machine['threads']} threads, {machine['instructions']}.") + "\n"


def short(report):
    """What was found, by measure: the sentences of report.json."""
    yield "## In short\n"
    abouts = list(dict.fromkeys(finding["about"] for data in report["data"] for finding in data["findings"]))
    for about in abouts:
        yield f"- **{about}**"
        for data in report["data"]:
            for finding in data["findings"]:
                if finding["about"] == about:
                    yield wrap(f"{title(data)}: {finding['text']}", "  - ", "    ")
    for data in report["data"]:
        yield from paper_sentence(data)
    yield ""


def paper_sentence(data):
    """How many figures of the paper's own methods are above those that it reports."""
    ratios = [entry["mean"][data["settings"]["shares"].index(share)] / paper
              for row in data["rows"] if row["kind"] == "ours" and row["paper"]
              for entry in [losses(row, row["utility"])] if entry
              for share, paper in zip(row["paper"]["shares"], row["paper"]["mean"])
              if share in data["settings"]["shares"]]
    above = [ratio for ratio in ratios if ratio > 1]
    if above:
        yield wrap(f"**Against the paper, {title(data)}**: {len(above)} of {len(ratios)} losses of FDS, AFDS, GFDS and "
                   f"GFDS+ are above those that it reports, by factors of {min(above):.2g} to {max(above):.2g}. The "
                   "settings differ, as listed below, so this does not rank two implementations.", "- ", "  ")


def show_data(data):
    utilities = {entry["utility"]: entry for entry in data["utilities"]}
    correct = {value: e for value, entry in utilities.items() for e in entry["losses"] if e["set"] == "correct"}
    yield f"## {title(data)}\n"
    yield wrap(f"{data['players']} players, {data['tests']} test samples for each of {len(data['seeds'])} seeds; correctly "
               "classified " + ", ".join(f"{e['count']} by `{value}` (their loss with all players {e['mean']:.2f})"
                                         for value, e in correct.items()) + ".") + "\n"
    yield from controls_table(data)
    yield from loss_table(data, "Value loss, correctly classified samples, each method by its own models (the paper's in "
                          "brackets):", None, with_paper=True)
    yield from loss_table(data, "The same from other initial networks:", None, measure="losses_other_seed")
    yield from loss_table(data, "The same over all samples:", None, chosen="all")
    yield from loss_table(data, "By converged models, correctly classified samples:", CONVERGED)
    yield from loss_table(data, "By converged models, from other initial networks:", CONVERGED, measure="losses_other_seed")
    yield from score_table(data, "Linear datamodeling score by converged models:", CONVERGED)
    yield from loss_table(data, "By models of 10 epochs without the *least* valuable (lower is better), correctly classified "
                          "samples:", TEN, "bottom", has_error=False)
    yield from rest_table(data)


def page_of(report):
    parts = [*head(report), *short(report)]
    for data in report["data"]:
        parts += show_data(data)
    return "\n".join(parts).rstrip() + "\n"


def write(path, text):
    page = pathlib.Path(path).read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{path}: the lines {BEGIN.strip()} and {END.strip()} must stand in it, in this order")
    pathlib.Path(path).write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def main():
    words = sys.argv[1:]
    if len(words) not in (1, 3) or words[0].startswith("-") or words[1:2] not in ([], ["--write"]):
        sys.exit(__doc__.strip())
    with open(os.path.join(words[0], "report.json"), encoding="utf-8") as file:
        text = page_of(json.load(file))
    if len(words) == 3:
        write(words[2], text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
