# SPDX-License-Identifier: Apache-2.0
"""Ends a command at every system call that writes, and at random times; run again, it must end with
the same bytes as one that was never disturbed.

usage: kill.py [--kills N] [--load N] [--seed S] [--random-only] --same PATH [--same PATH ...] -- COMMAND [ARGUMENT ...]

The command runs in a new folder each time, so its outputs are named by relative paths and all else
by absolute ones; PATHs are the files and folders to compare. {threads} in an argument becomes 1
where system calls are counted and 2 where the time is random.

  - killed at the Nth call, for every N
  - the Nth call fails (ENOSPC, EIO): exit code 1 and a message
  - every file is synced after it was last written to, its folder after it was made
  - killed N times at random times, up to three times in a row, beside --load busy processes

--random-only leaves the first three out, for commands that make very many calls. They need strace,
which counts the calls; without it, or where it may not trace, they are
skipped. Prints TAP. Needs nothing but Python's standard library.
"""
import argparse
import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

FAILED_AT = ["pwrite64", "write", "fsync", "fdatasync", "rename", "renameat2", "ftruncate", "mkdir",
             "flock"]
# the dynamic linker opens files as well, so a failure there would say nothing
KILLED_AT = FAILED_AT + ["openat"]
MOST_CALLS = 2000
TIMEOUT_S = 120


class Failure(Exception):
    pass


class Bench:
    """Runs the command in a folder of its own and compares what it leaves."""

    def __init__(self, command, same, folder):
        self.command, self.same, self.folder = command, same, folder
        self.cwd = os.path.join(folder, "run")
        # under ptrace the leak checker of a sanitizer build cannot work
        options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        self.env = dict(os.environ, ASAN_OPTIONS=options.lstrip(":"))

    def fresh(self):
        shutil.rmtree(self.cwd, ignore_errors=True)
        os.mkdir(self.cwd)

    def argv(self, threads):
        return [part.replace("{threads}", str(threads)) for part in self.command]

    def run(self, threads=1, prefix=()):
        return subprocess.run([*prefix, *self.argv(threads)], cwd=self.cwd, env=self.env,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)

    def finish(self, expected, what):
        """Runs it to its end; the outputs must be those of the undisturbed run."""
        done = self.run()
        if done.returncode != 0:
            raise Failure(f"{what}, then run again: exit code {done.returncode}: {text(done)}")
        now = self.digests()
        if now != expected:
            names = sorted(set(now.items()) ^ set(expected.items()))
            raise Failure(f"{what}, then run again: other bytes: {names}")

    def digests(self):
        """SHA-256 of every file that is to be the same, hidden ones too."""
        found = {}
        for path in self.same:
            whole = os.path.join(self.cwd, path)
            names = [whole] if os.path.isfile(whole) else [
                os.path.join(folder, name) for folder, _, files in os.walk(whole) for name in files]
            for name in names:
                with open(name, "rb") as file:
                    found[os.path.relpath(name, self.cwd)] = hashlib.sha256(file.read()).hexdigest()
        return found

    def inject(self, call, action, number):
        """Runs with the numberth such call disturbed. Gives (result, whether it came to that)."""
        log = os.path.join(self.folder, "strace.log")
        done = self.run(prefix=["strace", "-f", "-o", log, "-e", f"trace={call}", "-e",
                                f"inject={call}:{action}:when={number}"])
        with open(log, errors="replace") as file:
            lines = file.read()
        return done, "(INJECTED)" in lines or "killed by SIGKILL" in lines


def text(done):
    return done.stderr.decode(errors="replace").strip()[-500:]


def kill_at_each(bench, expected, call):
    for number in range(1, MOST_CALLS):
        bench.fresh()
        done, is_disturbed = bench.inject(call, "signal=KILL", number)
        if not is_disturbed:
            if done.returncode != 0:
                raise Failure(f"undisturbed: exit code {done.returncode}: {text(done)}")
            return number - 1
        bench.finish(expected, f"killed at {call} number {number}")
    raise Failure(f"more than {MOST_CALLS} calls of {call}")


def fail_at_each(bench, expected, call, error):
    for number in range(1, MOST_CALLS):
        bench.fresh()
        done, is_disturbed = bench.inject(call, f"error={error}", number)
        what = f"{error} at {call} number {number}"
        if not is_disturbed:
            if done.returncode != 0:
                raise Failure(f"undisturbed: exit code {done.returncode}: {text(done)}")
            return number - 1
        if done.returncode != 1:
            raise Failure(f"{what}: exit code {done.returncode}, not 1: {text(done)}")
        if not done.stderr.strip():
            raise Failure(f"{what}: no message")
        if error == "ENOSPC" and call == "pwrite64" and not re.search(
                rb"the disk is full: \d+ of \d+ sub-models are kept", done.stderr):
            raise Failure(f"{what}: the message does not say what is kept: {text(done)}")
        bench.finish(expected, what)
    raise Failure(f"more than {MOST_CALLS} calls of {call}")


def check_syncs(bench, expected):
    """Power may fail as soon as the command has ended: nothing may still be on its way."""
    log = os.path.join(bench.folder, "strace.log")
    bench.fresh()
    bench.run(prefix=["strace", "-f", "-y", "-s", "0", "-o", log, "-e",
                      "trace=pwrite64,write,fsync,fdatasync,openat"])
    unsynced, syncs, root = {}, 0, os.path.realpath(bench.cwd)
    call = re.compile(r"(pwrite64|write|fsync|fdatasync)\(\d+<([^>]+)>|"
                      r"(openat)\(.*O_CREAT.* = \d+<([^>]+)>")
    with open(log, errors="replace") as file:
        for line in file:
            found = call.search(line)
            name, path = (found[1] or found[3], found[2] or found[4]) if found else ("", "")
            if not path.startswith(root):
                continue
            if name in ("fsync", "fdatasync"):
                unsynced.pop(path, None)
                syncs += 1
            else:
                unsynced[os.path.dirname(path) if name == "openat" else path] = line.strip()
    left = [f"{path}: {line}" for path, line in unsynced.items()
            if any(os.path.join(root, known).startswith(path) for known in expected)]
    if left or not syncs:
        raise Failure(f"{syncs} syncs; not synced in the end: {'; '.join(left)}")
    return syncs


def kill_at_random(bench, expected, kills, seed, duration_s):
    chance, count, running = random.Random(seed), 0, 0
    while count < kills:
        bench.fresh()
        for _ in range(min(chance.randint(1, 3), kills - count)):
            process = subprocess.Popen(bench.argv(2), cwd=bench.cwd, env=bench.env,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0, duration_s))
            process.kill()
            running += process.wait() != 0
            count += 1
        bench.finish(expected, f"killed at a random time (seed {seed}, kill {count})")
    return running


def may_trace():
    if not shutil.which("strace"):
        return "strace is missing"
    done = subprocess.run(["strace", "-o", os.devnull, "-e", "inject=fsync:error=EIO:when=1",
                           "true"], capture_output=True)
    return "" if done.returncode == 0 else "strace may not trace here"


def main():
    parser = argparse.ArgumentParser(
        usage="kill.py [--kills N] [--load N] [--seed S] --same PATH ... -- COMMAND")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--random-only", action="store_true")
    parser.add_argument("--same", action="append", required=True)
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    args.command[0] = shutil.which(os.path.abspath(args.command[0])) or args.command[0]

    failed = False
    why_not = may_trace()
    plan = [("kill", call, None) for call in KILLED_AT]
    plan += [("fail", call, error) for error in ("ENOSPC", "EIO") for call in FAILED_AT]
    plan += [("sync", None, None)]
    if args.random_only:
        plan = []
    print(f"1..{len(plan) + 2}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fds-kill-") as folder:
        bench = Bench(args.command, args.same, folder)
        bench.fresh()
        first = bench.run()
        expected = bench.digests()
        is_ok = first.returncode == 0 and expected
        print(f"{'ok' if is_ok else 'not ok'} 1 - undisturbed, {len(expected)} files are made")
        if not is_ok:
            print(f"Bail out! exit code {first.returncode}: {text(first)}")
            return 1
        for number, (kind, call, error) in enumerate(plan, 2):
            name = {"kill": f"killed at {call}", "fail": f"{error} at {call}",
                    "sync": "all that was written is synced"}[kind]
            if why_not:
                print(f"ok {number} - {name} # SKIP {why_not}", flush=True)
                continue
            try:
                if kind == "sync":
                    result = f"by {check_syncs(bench, expected)} syncs"
                else:
                    count = (kill_at_each(bench, expected, call) if kind == "kill" else
                             fail_at_each(bench, expected, call, error))
                    result = f"{count} times, then the same bytes"
                print(f"ok {number} - {name}, {result}", flush=True)
            except Failure as failure:
                failed = True
                print(f"not ok {number} - {name}\n# {failure}", flush=True)
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.load)]
        bench.fresh()
        start = time.monotonic()
        bench.run(threads=2)
        duration_s = time.monotonic() - start
        try:
            running = kill_at_random(bench, expected, args.kills, args.seed, duration_s)
            print(f"ok {len(plan) + 2} - killed at random times, {args.kills} times "
                  f"({running} before its end), then the same bytes")
        except Failure as failure:
            failed = True
            print(f"not ok {len(plan) + 2} - killed at random times\n# {failure}")
        for process in busy:
            process.kill()
            process.wait()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
