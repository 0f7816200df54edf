#!/usr/bin/python3
"""CPU seconds and peak memory of fds value as players grow: a table of docs/scale.md.

Usage: bench/scale.py BUILD_FOLDER [DATA] [--players N ...] [--utility U ...] [--per-player M | --coalitions M]
                      [--test T] [--model NET] [--before PROGRAM]

One thread, leverage coalitions, M per player, T test samples, the default adjustment. The first run
computes the utilities; a second one finds them in the table, so that its CPU seconds, less those of
--estimate (reading the data), are those of the values: two solutions, of the mean and of each test
sample. Exponents are fitted by least squares on logarithms. In theory utilities of nearest neighbours
grow as M n ~ n^2 at most, sub-models as M n ~ n^2, and conjugate gradients as pairs * n ~ n^2 for each
iteration. The correlation is that of the values of each test sample with the exact ones of knn:K, averaged over the
samples. --before names an fds of version 0.1, which then computes the same, without the correlation. Prints Markdown.
"""
import argparse
import math
import os
import shutil
import subprocess
import tempfile

import numpy as np


def run(command):
    """CPU seconds and peak bytes of a command."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def correlation(values, exact):
    """Of two files of values (samples, players): the mean over the samples."""
    pairs = zip(np.load(values)[0], np.load(exact)[0])  # the second halves are standard errors
    return np.mean([np.corrcoef(a, b)[0, 1] for a, b in pairs if a.std() > 0 and b.std() > 0])


def measure(program, a, utility, players, is_old):
    """A line of the table: seconds of reading, utilities and values, peak bytes, correlation."""
    count = a.coalitions or int(a.per_player * players) // 2 * 2
    with tempfile.TemporaryDirectory() as work:
        common = [program, "value", a.data, "--players", str(players), "--test", str(a.test), "--threads", "1"]
        model = ["--model", a.model] if utility.startswith("retrain") else []
        command = [*common, *model, "--coalitions", str(count), "--value" if is_old else "--utility", utility,
                   "--target", "true", "--table", os.path.join(work, "table"), "--quiet"]
        out = os.path.join(work, "values.npy")
        read, _ = run([*command, "--dry-run" if is_old else "--estimate"])
        first, _ = run([*command, "-o", out])
        second, peak = run([*command, "-o", out])
        found = math.nan
        if utility.startswith("knn:") and not is_old:
            exact = os.path.join(work, "exact.npy")
            run([*common, "--method", utility, "--per-sample", "--target", "true", "-o", exact, "--quiet"])
            found = correlation(out, exact)
    return count, read, max(first - second, 0.01), max(second - read, 0.01), peak, found


def exponent(sizes, numbers):
    x, y = [math.log(s) for s in sizes], [math.log(max(v, 1e-9)) for v in numbers]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx) ** 2 for a in x)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("data", nargs="?", default="mnist")
    parser.add_argument("--players", type=int, nargs="+", default=[1000, 4000, 10000])
    parser.add_argument("--utility", nargs="+", default=["knn:5", "retrain:2"])
    parser.add_argument("--per-player", type=float, default=2)
    parser.add_argument("--coalitions", type=int)
    parser.add_argument("--test", type=int, default=50)
    parser.add_argument("--model", default="lenet5")
    parser.add_argument("--before")
    a = parser.parse_args()
    programs = [("now", os.path.join(a.build, "cli/fds"))] + ([("0.1", a.before)] if a.before else [])
    print("| utility | version | players | coalitions | read, s | utilities, s | values, s | peak, MB | correlation |")
    print("|" + " --- |" * 9)
    for utility in a.utility:
        for version, program in programs:
            utilities, values = [], []
            for players in a.players:
                count, read, filling, solving, peak, found = measure(program, a, utility, players, version != "now")
                utilities.append(filling)
                values.append(solving)
                print(f"| {utility} | {version} | {players:,} | {count:,} | {read:.1f} | {filling:.1f} | {solving:.1f} | "
                      f"{peak / 1e6:.0f} | {'' if math.isnan(found) else f'{found:.2f}'} |", flush=True)
            if len(a.players) > 1:
                print(f"| {utility} | {version} | exponent | | | {exponent(a.players, utilities):.2f} | "
                      f"{exponent(a.players, values):.2f} | | |", flush=True)


if __name__ == "__main__":
    main()
