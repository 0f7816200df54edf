#!/usr/bin/python3
"""What fds fit --estimate predicts against what then happens: a table of docs/scale.md.

Usage: bench/planner.py BUILD_FOLDER [DATA] [--most SECONDS]

Twelve fits of few coalitions and epochs. Time is that of sub-models and values, as run.json has it; memory
is the peak of the process. A setting that is predicted to take more than --most seconds (120) is only
estimated. Prints Markdown; a ratio is what happened over what was predicted.
"""
import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time

SETTINGS = [  # method, players, coalitions, epochs (0: until it converges)
    ("fds", 100, 60, 0), ("afds", 100, 1000, 2), ("gfds", 100, 200, 2), ("gfds+", 100, 200, 2),
    ("afds", 400, 800, 1), ("gfds", 400, 400, 1), ("gfds+", 400, 200, 1), ("afds", 1000, 2000, 1),
    ("gfds+", 1000, 100, 1), ("afds", 4000, 800, 1), ("gfds+", 4000, 60, 1), ("gfds+", 10000, 40, 1),
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("data", nargs="?", default="mnist")
    parser.add_argument("--most", type=float, default=120)
    a = parser.parse_args()
    print("| method | players | coalitions | estimated in, s | time predicted, s | ratio | memory predicted, MB | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for method, players, coalitions, epochs in SETTINGS:
        work = tempfile.mkdtemp()
        command = [os.path.join(a.build, "cli/fds"), "fit", a.data, "--players", str(players), "--method", method,
                   "--coalitions", str(coalitions), "--inputs", "100", "--explainer", "bank", "--threads", "1"]
        command += ["--epochs", str(epochs)] if epochs else []
        text, seconds, _ = run(command + ["--estimate", "--json"])
        said = json.loads(text)
        predicted = said["seconds"]["sub-models"] + said["seconds"]["values"]
        time_ratio = memory_ratio = "not run"
        if predicted <= a.most:
            out = os.path.join(work, "run")
            _, _, peak = run(command + ["-o", out, "--quiet"])
            took = json.load(open(os.path.join(out, "run.json")))["results"]["seconds"]
            time_ratio = f"{sum(list(took.values())[:2]) / predicted:.2f}"
            memory_ratio = f"{peak / said['memory']:.2f}"
        print(f"| {method} | {players:,} | {coalitions:,} | {seconds:.1f} | {predicted:.1f} | {time_ratio} | "
              f"{said['memory'] / 1e6:.0f} | {memory_ratio} |", flush=True)
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
