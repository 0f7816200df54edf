#!/usr/bin/python3
"""CPU seconds and peak memory of fds value as players grow: a table of docs/scale.md.

Usage: bench/scale.py BUILD_FOLDER [DATA] [--players N ...] [--utility U ...] [--per-player M] [--test T]

One thread, leverage coalitions, M per player, T test samples, the default adjustment. The first run
computes the utilities; a second one finds them in the table, so that its CPU seconds, less those of
--estimate (reading the data), are those of the values: two solutions, of the mean and of each test
sample. Exponents are fitted by least squares on logarithms. In theory utilities of nearest neighbours
grow as M n ~ n^2 at most, sub-models as M n ~ n^2, and conjugate gradients as pairs * n ~ n^2 for each
iteration. Prints Markdown.
"""
import argparse
import math
import os
import shutil
import subprocess
import tempfile


def run(command):
    """CPU seconds and peak bytes of a command."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


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
    parser.add_argument("--test", type=int, default=50)
    a = parser.parse_args()
    print("| utility | players | coalitions | read, s | utilities, s | values, s | peak, MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for utility in a.utility:
        utilities, values = [], []
        for players in a.players:
            work = tempfile.mkdtemp()
            count = int(a.per_player * players) // 2 * 2
            command = [os.path.join(a.build, "cli/fds"), "value", a.data, "--players", str(players),
                       "--test", str(a.test), "--coalitions", str(count), "--utility", utility,
                       "--threads", "1", "--quiet", "--table", os.path.join(work, "table")]
            read, _ = run(command + ["--estimate"])
            first, _ = run(command + ["-o", os.path.join(work, "values.npy")])
            second, peak = run(command + ["-o", os.path.join(work, "values.npy")])
            shutil.rmtree(work)
            utilities.append(max(first - second, 0.01))
            values.append(max(second - read, 0.01))
            print(f"| {utility} | {players:,} | {count:,} | {read:.1f} | {utilities[-1]:.1f} | "
                  f"{values[-1]:.1f} | {peak / 1e6:.0f} |", flush=True)
        if len(a.players) > 1:
            print(f"| {utility} | exponent | | | {exponent(a.players, utilities):.2f} | "
                  f"{exponent(a.players, values):.2f} | |", flush=True)


if __name__ == "__main__":
    main()
