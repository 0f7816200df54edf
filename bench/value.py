#!/usr/bin/python3
"""Speed and memory of `fds value` beside the lane engine's own rate, in one run.

Usage: bench/value.py BUILD_FOLDER [DATA] [--rounds 3] [--inputs 3000] [--coalitions 2000]

Each round runs, one after the other, the engine alone (bench-value: train and evaluate, nothing
else) and the whole command (data, sub-models, table on disk, least squares, values written), both
on the same coalitions; a ratio is taken within its round and the median over rounds is printed, as
key=value lines. Needs nothing but Python's standard library.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def engine(build, data, inputs, coalitions, threads, players=100):
    out = subprocess.run([os.path.join(build, "bench/bench-value"), data, str(players), str(inputs),
                          str(coalitions), str(threads)], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    return float(out.strip().split("=")[1])


def command(build, data, inputs, coalitions, threads, players=100):
    """Sub-models per second of the whole command, and its peak memory in MB."""
    folder = tempfile.mkdtemp(prefix="fds-bench-")
    try:
        start = time.perf_counter()
        child = subprocess.Popen(
            [os.path.join(build, "cli/fds"), "value", data, "--method", "ls", "--players", str(players),
             "--test", str(inputs), "--coalitions", str(coalitions), "--utility", "retrain:10",
             "--threads", str(threads), "--quiet", "-o", os.path.join(folder, "values.npy")],
            stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        if status:
            sys.exit("bench/value.py: fds value failed")
        return (coalitions + 2) / seconds, usage.ru_maxrss / 1024
    finally:
        shutil.rmtree(folder)


def say(key, value):
    print(f"{key}={value:.3f}" if isinstance(value, float) else f"{key}={value}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("data", nargs="?", default="mnist")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--inputs", type=int, default=3000)
    parser.add_argument("--coalitions", type=int, default=2000)
    arguments = parser.parse_args()
    build, data = arguments.build, arguments.data
    inputs, coalitions = arguments.inputs, arguments.coalitions
    rows = {}

    def note(key, value):
        rows.setdefault(key, []).append(value)

    for number in range(arguments.rounds):
        alone = engine(build, data, inputs, coalitions, 2)
        two, memory = command(build, data, inputs, coalitions, 2)
        one, _ = command(build, data, inputs, coalitions, 1)
        note("engine.models_per_s", alone)
        note("value.models_per_s", two)
        note("value.share_of_engine", two / alone)
        note("value.threads1.models_per_s", one)
        note("value.threads2.speedup", two / one)
        note(f"value.peak_mb.coalitions{coalitions}", memory)
        print(f"# round {number + 1} of {arguments.rounds} done", file=sys.stderr, flush=True)
    for key, values in rows.items():
        say(key, statistics.median(values))

    # growth: memory must not follow M; a sub-model's time must follow |X| and n, and not M
    for m in (coalitions // 4, 2 * coalitions):
        rate, memory = command(build, data, inputs, m, 2)
        say(f"growth.coalitions{m}.peak_mb", memory)
        say(f"growth.coalitions{m}.ms_per_model", 1e3 / rate)
    for x in (inputs // 4, inputs // 2, inputs):
        rate, memory = command(build, data, x, coalitions // 4, 2)
        say(f"growth.inputs{x}.ms_per_model", 1e3 / rate)
        say(f"growth.inputs{x}.peak_mb", memory)
    for n in (50, 100, 200):
        rate, _ = command(build, data, inputs // 10, coalitions // 4, 2, players=n)
        say(f"growth.players{n}.ms_per_model", 1e3 / rate)


if __name__ == "__main__":
    main()
