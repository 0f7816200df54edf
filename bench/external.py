#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What asking a program costs: milliseconds per evaluation of `--utility command:`, besides the model.

Usage: bench/external.py BUILD_FOLDER [--rounds 3] [--coalitions 4000] [--inputs 3000]
       bench/external.py BUILD_FOLDER --python [--rounds 3] [--coalitions 200] [--inputs 1000]

The program is examples/workers/shares.c, compiled here, which computes next to nothing. Each round
runs the whole command with one process and then with one per processor, on made-up data of 10
classes, so that an answer has inputs x 10 probabilities. An evaluation is a question, an answer, its
checks and its record in the table; the second answers that check the first ones are included. The
median over rounds is printed as key=value lines. Needs a C compiler and Python's standard library.

With --python the program is a worker of the Python package with a logistic regression of scikit-learn on 200 digits.
The model notes when it begins and ends. With one worker the overhead of an evaluation is the time from the end of one
to the beginning of the next, without starts of processes; with two, the rate is that of the time when both work.
Needs NumPy, scikit-learn and the source tree.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
CLASSES, PLAYERS, FEATURES = 10, 100, 8


def write_data(path, rows):
    with open(path, "w") as file:
        file.write(",".join([*(f"x{j}" for j in range(FEATURES)), "label"]) + "\n")
        for i in range(rows):
            values = [str((i * 7919 + j * 104729) % 1000 / 1000) for j in range(FEATURES)]
            file.write(",".join([*values, str(i % CLASSES)]) + "\n")


def evaluate(build, folder, inputs, coalitions, threads, number):
    """Milliseconds per evaluation."""
    done = subprocess.run(
        [os.path.abspath(os.path.join(build, "cli/fds")), "value", "data.csv", "--players", str(PLAYERS), "--test",
         str(inputs), "--coalitions", str(coalitions), "--global", "--adjust", "none", "--threads", str(threads),
         "--utility", "command:./shares", "--table", f"table.{number}", "--json", "-q"],
        cwd=folder, check=True, text=True, stdout=subprocess.PIPE)
    game = json.loads(done.stdout)["game"]
    return 1000 * game["seconds"] / game["missing"]


# ---- a model of scikit-learn, through the Python package ----

def timed_model(path):
    """A logistic regression that notes its process, and when it begins and ends, in a file."""
    from sklearn.linear_model import LogisticRegression

    class Timed(LogisticRegression):
        def fit(self, X, y):
            import time
            self.begin = time.monotonic()
            return super().fit(X, y)

        def predict_proba(self, X):
            import os
            import time
            found = super().predict_proba(X)
            with open(path, "a") as file:
                file.write(f"{os.getpid()} {self.begin} {time.monotonic()}\n")
            return found

    return Timed(max_iter=500)


def evaluate_in_python(inputs, coalitions, jobs, log):
    """(process, begin, end) of every evaluation."""
    import fds
    from sklearn.datasets import load_digits
    X, y = load_digits(return_X_y=True)
    fds.value(X[:200], y[:200], X[200:200 + inputs], y[200:200 + inputs], model=timed_model(log), n_jobs=jobs,
              coalitions=coalitions, adjust="none", random_state=0, progress=False)
    with open(log) as file:
        return sorted((float(begin), float(end), pid) for pid, begin, end in map(str.split, file))


def overhead_ms(times):
    """Between the end of one evaluation and the beginning of the next, where no process starts."""
    seen, gaps = set(), []
    for (_, end, before), (begin, _, pid) in zip(times, times[1:]):
        seen.add(before)
        if pid in seen:
            gaps.append(1000 * (begin - end))
    return statistics.mean(gaps)


def rate(times, jobs):
    """Evaluations per second while all workers work; the process that checks others is not a worker."""
    by_process = {}
    for begin, end, pid in times:
        by_process.setdefault(pid, []).append((begin, end))
    workers = sorted(by_process.values(), key=len)[-jobs:]
    first, last = max(found[0][1] for found in workers), min(found[-1][1] for found in workers)
    return sum(first < end <= last for found in workers for _, end in found) / (last - first)


def main_python(arguments):
    import sys
    sys.path.insert(0, str(ROOT / "python"))
    os.environ["FDS_LIBRARY"] = os.path.abspath(os.path.join(arguments.build, "src/libfds.so.0"))
    overheads, models, ratios = [], [], []
    with tempfile.TemporaryDirectory(prefix="fds-bench-") as folder:
        for number in range(arguments.rounds):
            one, two = (evaluate_in_python(arguments.inputs or 1000, arguments.coalitions or 200, jobs,
                                           f"{folder}/{number}.{jobs}") for jobs in (1, 2))
            overheads.append(overhead_ms(one))
            models.append(1000 * statistics.mean(end - begin for begin, end, _ in one))
            ratios.append(rate(two, 2) / rate(one, 1))
    print(f"model_ms={statistics.median(models):.2f}")
    print(f"python_overhead_ms={statistics.median(overheads):.4f}")
    print(f"two_workers_ratio={statistics.median(ratios):.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--coalitions", type=int)
    parser.add_argument("--inputs", type=int)
    parser.add_argument("--python", action="store_true", help="scikit-learn through the Python package")
    arguments = parser.parse_args()
    if arguments.python:
        return main_python(arguments)
    arguments.coalitions, arguments.inputs = arguments.coalitions or 4000, arguments.inputs or 3000
    processors = len(os.sched_getaffinity(0))
    times = {1: [], processors: []}
    with tempfile.TemporaryDirectory(prefix="fds-bench-") as folder:
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", f"{folder}/shares",
                        ROOT / "examples/workers/shares.c"], check=True)
        write_data(f"{folder}/data.csv", arguments.inputs + 2 * PLAYERS)
        number = 0
        for _ in range(arguments.rounds):
            for threads, found in times.items():
                found.append(evaluate(arguments.build, folder, arguments.inputs, arguments.coalitions, threads, number))
                number += 1
    print(f"answer_bytes={arguments.inputs * CLASSES * 4}")
    for threads, found in times.items():
        print(f"evaluation_ms_{threads}_processes={statistics.median(found):.4f}", flush=True)


if __name__ == "__main__":
    main()
