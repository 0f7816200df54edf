#!/usr/bin/python3
"""Whether values that were computed --until-error E have that error: a table of docs/accuracy.md.

Usage: bench/until.py BUILD_FOLDER [DATA] [--draws 20] [--players 100] [--test 50]

The utility is knn:5, whose values are known exactly. Each draw samples other coalitions. "Greatest values" are those of
the player with the greatest stated value of each prediction. Beside it, the same with as many coalitions given
beforehand (the median number), for another draw each: what stopping by the errors themselves costs. Prints Markdown.
"""
import argparse
import csv
import json
import os
import statistics
import subprocess
import tempfile


def values(fds, work, options):
    """{(test, player): (value, error)} and the number of coalitions."""
    out = os.path.join(work, "values.csv")
    subprocess.run([fds, "value", *options, "-q", "-o", out], check=True, stdout=subprocess.DEVNULL)
    with open(out, encoding="utf-8") as file:
        return {(r["test"], r["player"]): (float(r["value"]), float(r["standard_error"] or 0)) for r in csv.DictReader(file)}


def coalitions(fds, work, options):
    text = subprocess.run([fds, "value", *options, "-q", "--json"], check=True, stdout=subprocess.PIPE, cwd=work).stdout
    return json.loads(text)["sampling"]["coalitions"]


def score(found, truth):
    """The share of values within 1.96 errors of the truth, that of each prediction's greatest, and the distances of these."""
    tests = {}
    for (test, player), (value, error) in found.items():
        tests.setdefault(test, []).append((value, error, abs(value - truth[test, player][0])))
    inside = [away <= 1.96 * error for rows in tests.values() for _, error, away in rows]
    tops = [max(rows) for rows in tests.values()]
    return (statistics.mean(inside), statistics.mean(away <= 1.96 * error for _, error, away in tops),
            [away for _, _, away in tops])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("data", nargs="?", default="mnist")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--players", default="100")
    parser.add_argument("--test", default="50")
    a = parser.parse_args()
    fds = os.path.abspath(os.path.join(a.build, "cli/fds"))
    game = [a.data, "--players", a.players, "--test", a.test, "--target", "true"]
    sampled = [*game, "--utility", "knn:5"]
    print("| E | coalitions, median (least, most) | inside 1.96 errors | greatest values inside | their root mean square "
          "distance | inside, number given | greatest values inside, number given |\n|" + " --- |" * 7)
    with tempfile.TemporaryDirectory() as work:
        truth = values(fds, work, [*game, "--method", "knn:5", "--per-sample"])
        for wanted in (0.02, 0.01, 0.005, 0.0025):
            counts, found, given = [], [], []
            for draw in range(a.draws):
                table = ["--table", os.path.join(work, f"table.{draw}"), "--draw", str(draw)]
                until = [*sampled, *table, "--until-error", str(wanted)]
                counts.append(coalitions(fds, work, until))
                found.append(score(values(fds, work, until), truth))
            middle = int(statistics.median(counts)) // 2 * 2
            for draw in range(a.draws, 2 * a.draws):
                fixed = [*sampled, "--table", os.path.join(work, f"table.{draw}"), "--draw", str(draw), "--coalitions",
                         str(middle)]
                given.append(score(values(fds, work, fixed), truth))
            distance = statistics.mean(d * d for _, _, tops in found for d in tops) ** 0.5
            share = lambda scores, place: f"{100 * statistics.mean(s[place] for s in scores):.1f} %"
            print(f"| {wanted} | {middle:,} ({min(counts):,}, {max(counts):,}) | {share(found, 0)} | {share(found, 1)} | "
                  f"{distance:.4f} | {share(given, 0)} | {share(given, 1)} |", flush=True)


if __name__ == "__main__":
    main()
