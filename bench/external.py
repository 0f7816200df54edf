#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What asking a program costs: milliseconds per evaluation of `--utility command:`, besides the model.

Usage: bench/external.py BUILD_FOLDER [--rounds 3] [--coalitions 4000] [--inputs 3000]

The program is examples/workers/shares.c, compiled here, which computes next to nothing. Each round
runs the whole command with one process and then with one per processor, on made-up data of 10
classes, so that an answer has inputs x 10 probabilities. An evaluation is a question, an answer, its
checks and its record in the table; the second answers that check the first ones are included. The
median over rounds is printed as key=value lines. Needs a C compiler and Python's standard library.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--coalitions", type=int, default=4000)
    parser.add_argument("--inputs", type=int, default=3000)
    arguments = parser.parse_args()
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
