#!/usr/bin/python3
"""CPU seconds and peak memory of fds value as players grow: a table of docs/scale.md.

Usage: bench/scale.py BUILD_FOLDER [DATA] [--players N ...] [--utility U ...] [--per-player M | --coalitions M]
                      [--test T] [--model NET] [--options OPTIONS] [--before PROGRAM]

One thread, leverage coalitions, M per player, T test samples, the default adjustment (or that of --options, as in
--options "--group all"). The first run computes the utilities; a second one finds them in the table, so that its CPU
seconds, less those of --estimate (reading the data and sampling the plan), are those of the values: two solutions, of
the mean and of each test sample. Each number is from a single run; a difference of two below 0.1 s says no more.
Memory is looked at a hundred times per second during the first run, and belongs to the stage that its processor
seconds fall into; a stage that is over sooner shows what was seen next to it. The last column is the greatest memory
of the first run, as the system counted it.
Exponents are fitted by least squares on logarithms, where no number is below 0.1 s. In theory utilities of nearest
neighbours grow as M n ~ n^2 at most, sub-models as M n ~ n^2, and conjugate gradients as pairs * n ~ n^2 for each
iteration. Correlations are those of the values of each test sample with the exact ones of knn:K, averaged over the
samples, and coverage is the share of exact values within 1.96 standard errors: of all, and of the largest 1 % of each
sample. --before names an fds of version 0.1, which then computes the same. Prints Markdown.
"""
import argparse
import math
import os
import shutil
import subprocess
import tempfile
import time

import numpy as np


TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


def look(pid):
    """CPU seconds and bytes of a process as it is now."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS, int(fields[21]) * PAGE


def run(command):
    """CPU seconds and peak bytes of a command, and what look saw of it."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seen = []
    while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
        seen.append(look(process.pid))
        time.sleep(0.01)
    _, status, usage = ended
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, seen


def peaks(seen, ends):
    """Peak bytes of each stage, which end after these CPU seconds."""
    found, begin = [], 0
    for end in ends:
        near = min(abs(begin - at) for at, _ in seen)  # of a stage that no look fell into
        found.append(max(size for at, size in seen if begin <= at <= end or abs(begin - at) <= near))
        begin = end
    return found


def compare(values, exact):
    """Of two files of values and errors (samples, players): correlation, mean over the samples; coverage in %, of all
    and of the largest 1 %."""
    (found, errors), truth = np.load(values)[:2], np.load(exact)[0]
    pairs = [np.corrcoef(a, b)[0, 1] for a, b in zip(found, truth) if a.std() > 0 and b.std() > 0]
    inside = np.abs(found - truth) <= 1.96 * errors
    largest = np.argsort(-truth, axis=1)[:, :max(truth.shape[1] // 100, 1)]
    of_largest = np.take_along_axis(inside, largest, 1)
    return f"{np.mean(pairs):.2f}", f"{100 * inside.mean():.1f}", f"{100 * of_largest.mean():.0f}"


def measure(program, a, utility, players, is_old):
    """A line of the table: seconds and peak bytes of reading, utilities and values, those of the whole, and what
    compare says."""
    count = a.coalitions or int(a.per_player * players) // 2 * 2
    with tempfile.TemporaryDirectory() as work:
        common = ["value", a.data, "--players", str(players), "--test", str(a.test), "--threads", "1"]
        model = ["--model", a.model] if utility.startswith("retrain") else []
        command = [program, *common, *model, "--coalitions", str(count), "--value" if is_old else "--utility", utility,
                   "--target", "true", "--table", os.path.join(work, "table"), "--quiet", *a.options.split()]
        out = os.path.join(work, "values.npy")
        read, _, _ = run([*command, "--dry-run" if is_old else "--estimate"])
        first, peak, seen = run([*command, "-o", out])
        second, _, _ = run([*command, "-o", out])
        filling = max(first - second, 0)
        found = "", "", ""
        if utility.startswith("knn:"):
            exact = os.path.join(work, "exact.npy")
            run([os.path.join(a.build, "cli/fds"), *common, "--method", utility, "--per-sample", "--target", "true", "-o", exact, "--quiet"])
            found = compare(out, exact)
    return count, (read, filling, second - read), peaks(seen, (read, read + filling, math.inf)), peak, found


def seconds(number):
    return f"{number:.1f}" if number >= 0.1 else "under 0.1"


def exponent(sizes, numbers):
    if min(numbers) < 0.1:
        return ""
    x, y = [math.log(s) for s in sizes], [math.log(v) for v in numbers]
    mx, my = sum(x) / len(x), sum(y) / len(y)
    return f"{sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx) ** 2 for a in x):.2f}"


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
    parser.add_argument("--options", default="", help="more options of fds value")
    parser.add_argument("--before")
    a = parser.parse_args()
    programs = [("now", os.path.join(a.build, "cli/fds"))] + ([("0.1", a.before)] if a.before else [])
    print("| utility | version | players | coalitions | read and plan, s | MB | utilities, s | MB | values, s | MB | "
          "all, MB | correlation | covered, % | largest 1 %, % |")
    print("|" + " --- |" * 14)
    for utility in a.utility:
        for version, program in programs:
            utilities, values = [], []
            for players in a.players:
                count, times, sizes, peak, found = measure(program, a, utility, players, version != "now")
                utilities.append(times[1])
                values.append(times[2])
                stages = " | ".join(f"{seconds(t)} | {size / 1e6:.0f}" for t, size in zip(times, sizes))
                print(f"| {utility} | {version} | {players:,} | {count:,} | {stages} | {peak / 1e6:.0f} | "
                      f"{' | '.join(found)} |", flush=True)
            if len(a.players) > 1:
                print(f"| {utility} | {version} | exponent | | | | {exponent(a.players, utilities)} | | "
                      f"{exponent(a.players, values)} | | | | | |", flush=True)


if __name__ == "__main__":
    main()
