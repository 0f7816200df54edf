#!/usr/bin/python3
"""What fds fit --estimate predicts against what then happens: a table of docs/scale.md.

Usage: bench/planner.py BUILD_FOLDER [DATA] [--most SECONDS]

Twelve fits of few coalitions and epochs; players are single digits, or providers that own some each. Time is
that of sub-models and values, as run.json has it; memory is the peak of the process. A setting that is predicted
to take more than --most seconds (120) is only estimated. Each is run once. Prints Markdown; a ratio is what
happened over what was predicted.
"""
import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time

import numpy as np

import digits

SETTINGS = [  # method, players, digits of each (0: players are digits), coalitions, epochs (0: until it converges)
    ("fds", 100, 0, 60, 0), ("afds", 100, 0, 1000, 2), ("gfds", 100, 0, 200, 2), ("gfds", 400, 0, 400, 1),
    ("gfds+", 1000, 0, 100, 1), ("afds", 4000, 0, 800, 1), ("gfds+", 10000, 0, 40, 1),
    ("fds", 100, 10, 40, 0), ("afds", 100, 100, 200, 1), ("gfds", 400, 5, 200, 1), ("gfds+", 1000, 10, 40, 1),
    ("afds", 4000, 2, 400, 1),
]


def run(command):
    """Output, seconds and peak bytes."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return text, time.monotonic() - start, usage.ru_maxrss * 1024


def choose(fds, data, work, players, each):
    """The data and options: so many digits as players, or so many providers, each of which owns as many digits."""
    if not each:
        return [data, "--players", str(players)]
    (x, y), (x_test, y_test) = digits.read_digits(fds, data)
    owned = players * each
    for name, array in (("x_train", x[:owned]), ("y_train", y[:owned]), ("x_test", x_test), ("y_test", y_test),
                        ("provider_train", np.arange(owned) % players)):
        np.save(os.path.join(work, f"{name}.npy"), array)
    return [work, "--players", "providers", "--inputs-from", "test"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("data", nargs="?", default="mnist")
    parser.add_argument("--most", type=float, default=120)
    a = parser.parse_args()
    print("| method | players | digits of each | coalitions | estimated in, s | time predicted, s | ratio "
          "| memory predicted, MB | ratio |")
    print("|" + " --- |" * 9)
    for method, players, each, coalitions, epochs in SETTINGS:
        work, out = tempfile.mkdtemp(), tempfile.mkdtemp()
        fds = os.path.join(a.build, "cli/fds")
        command = [fds, "fit", *choose(fds, a.data, work, players, each), "--method", method,
                   "--coalitions", str(coalitions), "--inputs", "100", "--explainer", "bank", "--threads", "1"]
        command += ["--epochs", str(epochs)] if epochs else []
        text, seconds, _ = run(command + ["--estimate", "--json"])
        said = json.loads(text)
        predicted = said["seconds"]["sub-models"] + said["seconds"]["values"]
        time_ratio = memory_ratio = "not run"
        if predicted <= a.most:
            _, _, peak = run(command + ["-o", out, "--quiet"])
            took = json.load(open(os.path.join(out, "run.json")))["results"]["seconds"]
            time_ratio = f"{(took['sub-models'] + took['values']) / predicted:.2f}"
            memory_ratio = f"{peak / said['memory']:.2f}"
        print(f"| {method} | {players:,} | {each or '-'} | {coalitions:,} | {seconds:.1f} | {predicted:.1f} "
              f"| {time_ratio} | {said['memory'] / 1e6:.0f} | {memory_ratio} |", flush=True)
        shutil.rmtree(work)
        shutil.rmtree(out)


if __name__ == "__main__":
    main()
