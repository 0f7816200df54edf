#!/usr/bin/python3
"""Speed and memory of fds explain with many players: a table of docs/scale.md.

Usage: bench/answers.py BUILD_FOLDER [--work FOLDER]

A run of 100 digits of MNIST with default settings, and runs of 1,000 and 10,000 with the network mlp as explainer,
fitted hastily: how good the answers are does not change what they cost. One thread. 10,000 test digits as JSON, CSV
and NPY: seconds of the clock of the whole command and peak memory; one answer of each run; and a picture file, the
median of 20 commands. Runs in the work folder are not fitted again. Prints Markdown.
"""
import argparse
import os
import shutil
import statistics
import struct
import subprocess
import tempfile
import time
import zlib

import digits

FIT = ["--coalitions", "200", "--inputs", "300", "--explainer", "mlp", "--explainer-epochs", "2"]


def run(*command):
    """Seconds of the clock and peak bytes."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return time.monotonic() - start, usage.ru_maxrss * 1024


def write_png(pixels, path):
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(row) for row in pixels.reshape(28, 28).tolist())
    header = struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) +
                   chunk(b"IEND", b""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--work")
    a = parser.parse_args()
    fds = os.path.join(a.build, "cli/fds")
    work = a.work or tempfile.mkdtemp()
    print("| run | asked | seconds | inputs/s | peak, MB |\n| --- | --- | --- | --- | --- |")
    for players in (100, 1000, 10000):
        folder = os.path.join(work, f"{players}.run")
        options = ["--utility", "retrain:1", "--model", "logistic", *FIT] if players > 100 else []
        if not os.path.exists(os.path.join(folder, "validation.json")):
            run(fds, "fit", "mnist", "--players", str(players), *options, "-o", folder, "--quiet")
        asked = [("one input, JSON", "0", "one.json")]
        if players == 1000:
            asked += [(f"10,000 inputs, {kind}", "0..9999", f"all.{kind.lower()}") for kind in ("JSON", "CSV", "NPY")]
        for what, index, name in asked:
            out = os.path.join(work, name)
            seconds, peak = run(fds, "explain", folder, "--index", index, "--threads", "1", "--quiet", "-o", out)
            rate = f"{10000 / seconds:,.0f}" if len(index) > 1 else ""
            print(f"| {players:,} players | {what} | {seconds:.2f} | {rate} | {peak / 1e6:.0f} |", flush=True)
            os.remove(out)
        picture = os.path.join(work, "digit.png")
        write_png(digits.read_digits(fds, "mnist")[1][0][0], picture)
        seconds = statistics.median(run(fds, "explain", folder, picture)[0] for _ in range(20))
        print(f"| {players:,} players | a picture file, median of 20 | {seconds:.3f} | | |", flush=True)
    if not a.work:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
