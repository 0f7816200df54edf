#!/usr/bin/python3
"""What dividing sub-models among the processes of an MPI job costs: the table of docs/parts.md.

Usage: bench/ranks.py BUILD_FOLDER [--rows N] [--sleeping N]

Seconds of the utilities stage alone, as fds value --json has them, without reading data and starting. First --rows
(20,000) rows of knn:5, 2,000 digits as players and 100 test digits, by one process and by two: what a row takes longer
than its half, and the processor time of both. Then --sleeping (4,000) rows of a program that sleeps 20 ms and needs
hardly any processor, by one process of one thread and by eight ranks of one: their efficiency. Needs mpirun, an fds
built with its module, and fetched mnist; an idle machine. Prints Markdown.
"""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

WORKER = pathlib.Path(__file__).resolve().parents[1] / "tests/utility/worker.py"


def measure(build, ranks, options):
    """Seconds of the utilities stage, and CPU seconds of the whole command."""
    fds = os.path.join(build, "cli/fds")
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    env.setdefault("FDS_MPI", str(next(pathlib.Path(build).resolve().glob("**/fds-mpi.so"))))
    job = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as work:
        text = subprocess.run([*job, fds, "value", "mnist", *options, "--threads", "1", "--json", "--quiet", "--target",
                               "true", "--table", os.path.join(work, "table")], env=env, check=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return json.loads(text)["game"]["seconds"], cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--sleeping", type=int, default=4000)
    a = parser.parse_args()
    cheap = ["--players", "2000", "--test", "100", "--utility", "knn:5", "--coalitions", str(a.rows)]
    slow = ["--players", "40", "--test", "4", "--coalitions", str(a.sleeping), "--utility",
            f"command:{sys.executable} {WORKER} --sleep 0.02"]
    print("| rows | processes | seconds of the stage | CPU s of the command | |\n| --- | --- | --- | --- | --- |")
    one, cpu = measure(a.build, 1, cheap)
    print(f"| {a.rows:,} of `knn:5` | 1 | {one:.2f} | {cpu:.1f} | |", flush=True)
    two, more = measure(a.build, 2, cheap)
    print(f"| {a.rows:,} of `knn:5` | 2 | {two:.2f} | {more:.1f} | {1e6 * (two - one / 2) / a.rows:.0f} µs per row "
          "over half the time of one |", flush=True)
    alone, cpu = measure(a.build, 1, slow)
    print(f"| {a.sleeping:,} that sleep 20 ms | 1 | {alone:.1f} | {cpu:.1f} | |", flush=True)
    for ranks in (2, 4, 8):
        seconds, cpu = measure(a.build, ranks, slow)
        print(f"| {a.sleeping:,} that sleep 20 ms | {ranks} | {seconds:.1f} | {cpu:.1f} | "
              f"efficiency {alone / ranks / seconds:.3f} |", flush=True)


if __name__ == "__main__":
    main()
