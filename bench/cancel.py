#!/usr/bin/python3
"""How soon long commands hear Ctrl-C: a table of docs/scale.md.

Usage: bench/cancel.py BUILD_FOLDER [--times 6] [--seed 0] [--only WORD] [--disk MB]

Each command is started and interrupted after a random time, up to about what it takes, as often as --times; what an
interruption leaves is kept, so that a fit goes on and is interrupted in all of its stages. A command that ended first
starts again from nothing. Printed: how often it was interrupted, and how long after the signal the process had ended,
median and greatest, with the stage of that one as its last line names it. --disk: the disk of the temporary folder
takes at most so many megabytes per second from the commands (Linux, as root). Needs fetched mnist. Prints Markdown.
"""
import argparse
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

LINEAR = ["--model", "logistic", "--utility", "retrain:1"]
MLP = ["--explainer", "mlp", "--inputs", "300"]
COMMANDS = [  # name, options, seconds within which it is interrupted
    ("value, 10,000 players", ["value", "mnist", "--players", "10000", "--utility", "knn:5", "--coalitions", "20000",
                               "--test", "50", "--target", "true", "-o", "v.csv"], 30),
    ("value, 1,000 players by matrices", ["value", "mnist", "--players", "1000", "--group", "all", "--utility", "knn:5",
                                          "--coalitions", "4000", "--test", "500", "-o", "v.csv"], 10),
    ("fit, 100 players", ["fit", "mnist", "--players", "100", "-o", "run"], 40),
    ("fit, 10,000 players", ["fit", "mnist", "--players", "10000", "--coalitions", "2000", *LINEAR, *MLP, "-o", "run"],
     30),
    ("fit, gfds+, 10,000 players", ["fit", "mnist", "--players", "10000", "--method", "gfds+", "--coalitions", "200",
                                    "--epochs", "1", *MLP, "-o", "run"], 20),
    ("value, banzhaf, 10,000 players", ["value", "mnist", "--players", "10000", "--method", "banzhaf", "--coalitions",
                                        "200", "--model", "logistic", "--utility", "retrain:1", "-o", "v.csv"], 10),
    ("value, tmc, 100 players", ["value", "mnist", "--players", "100", "--method", "tmc", "-o", "v.csv"], 10),
    ("estimate, 30,000 players", ["fit", "mnist", "--players", "30000", "--coalitions", "60000", "--estimate"], 5),
]


def slow_disk(megabytes):
    """Puts this process, and so its children, into a control group that writes no faster."""
    number = os.stat(tempfile.gettempdir()).st_dev
    disk, speed = f"{os.major(number)}:{os.minor(number)}", int(megabytes * 1e6)
    groups = pathlib.Path("/sys/fs/cgroup")
    if (groups / "blkio").is_dir():
        group, name, limit = groups / "blkio/fds-bench", "blkio.throttle.write_bps_device", f"{disk} {speed}"
    else:
        (groups / "cgroup.subtree_control").write_text("+io")
        group, name, limit = groups / "fds-bench", "io.max", f"{disk} wbps={speed}"
    group.mkdir(exist_ok=True)
    (group / name).write_text(limit)
    (group / "cgroup.procs").write_text(str(os.getpid()))


def interrupt(command, folder, after_s):
    """Seconds from SIGINT to the end, and the last line of the errors; None if it ended before."""
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        process.communicate(timeout=after_s)
    except subprocess.TimeoutExpired:
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
        took = time.monotonic() - start
        if process.returncode == 128 + signal.SIGINT:
            return took, (said.strip().splitlines() or ["-"])[-1]
        assert process.returncode == 0, said
        return None
    assert process.returncode == 0, f"{' '.join(command)}: exit code {process.returncode}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--times", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="commands whose name contains this word")
    parser.add_argument("--disk", type=float, help="megabytes per second that may be written")
    a = parser.parse_args()
    if a.disk:
        slow_disk(a.disk)
    fds = os.path.abspath(os.path.join(a.build, "cli/fds"))
    draw = random.Random(a.seed)
    print("| command | interrupted | ended after, median | greatest | which said |\n| --- | --- | --- | --- | --- |")
    for name, options, most_s in COMMANDS:
        if a.only not in name:
            continue
        folder, found = tempfile.mkdtemp(), []
        for _ in range(a.times):
            answer = interrupt([fds, *options, "--quiet"], folder, draw.uniform(0.1, most_s))
            if answer:
                found.append(answer)
            else:
                shutil.rmtree(folder)
                os.mkdir(folder)
        shutil.rmtree(folder)
        found = found or [(float("nan"), "it always ended before")]
        worst = max(found)
        print(f"| {name} | {len(found)} | {statistics.median(t for t, _ in found):.2f} s | {worst[0]:.2f} s | "
              f"{worst[1].removeprefix('fds ')} |", flush=True)


if __name__ == "__main__":
    main()
