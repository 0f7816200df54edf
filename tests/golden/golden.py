#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Protects what fds computes: every number must stay the one that version 0.1 computed.

    golden.py check FDS [--only ID...] [--threads N] [--words old|new]
    golden.py record FDS [--threads N]

Each command of commands.py runs in a folder of its own, and numbers are taken from what it wrote:
weights of service models, probabilities in tables of utilities, values with their standard errors,
payments. Names, headers and the order of columns may change; numbers may not.

golden.json has, of each command, the SHA-256 of its numbers in an order that does not depend on the
file, and a summary: how many, the first eight, the sum, the sum of squares. They must be the same
bits with any number of threads and with FDS_ISA avx512, avx2 or generic. Two things are excepted:

- What a network explainer answers comes from oneDNN, whose last bits depend on threads and
  processor. All these numbers are kept; they must agree within 1e-6, payments within one unit.
- Least squares use OpenBLAS, whose last bits depend on the processor. On another kind of machine
  than the recording one (its flags, or the engine's), or on one without AVX2, a hash may differ
  if the summary agrees to 1e-9 of its size, payments by one unit: that is called "to rounding".

Where there is AVX2 both libraries are told to use it and nothing newer, so that Intel and AMD take
the same path.

`check` says which commands differ, and ends with `N of M commands agree`; status 1: not all.
Needs Python's standard library only.
"""
import argparse
import csv
import glob
import hashlib
import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import commands  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "golden.json")
DATA = {
    "mnist": os.path.join(HERE, "..", "data", "mnist"),
    "shops.csv": os.path.join(HERE, "shops.csv"),
    "regions.csv": os.path.join(HERE, "regions.csv"),
}
FIRST = 8
SUMMARY_TOLERANCE = 1e-9  # relative, on another machine
ANSWER_TOLERANCE = 1e-6  # absolute, of a network explainer's values
UNIT_TOLERANCE = 1  # of payments by these
TIMEOUT_S = 900
ROUNDING = "to rounding"
AGREES, CHANGED, DIFFERS = range(3)  # how a command can end

# How columns, keys and files may be called, the present name among them.
TEST = ("test",)
LABEL = ("label",)
PLAYER = ("player",)
PROVIDER = ("provider",)
INPUT = ("input",)
VALUE = ("value",)
ERROR = ("standard_error",)
BANK_VALUE = ("bank_value",)
BANK_ERROR = ("bank_standard_error",)
UNITS = ("units",)
SERVICE = ("service.safetensors",)


class Wrong(Exception):
    """A command that failed, or whose numbers cannot be found."""


# ---- readers: from files to numbers in an order of their own ----


def pick(row, names):
    """What a row has under the first of these names that it knows; None: under none."""
    return next((row[name] for name in names if name in row), None)


def natural(text):
    """Sorts "sample 9" before "sample 10"."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part)
            for part in re.split(r"(\d+)", text or "") if part]


def number(text):
    """What a file says, where nothing and null mean "not known"."""
    return math.nan if text in (None, "") else float(text)


def floats(data, kind):
    """The numbers of these bytes: kind "e", "f" or "d", little-endian."""
    size = struct.calcsize(kind)
    return list(struct.unpack(f"<{len(data) // size}{kind}", data))


def read_weights(path):
    """All tensors of a safetensors file, in the order of their names."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    header.pop("__metadata__", None)
    found = []
    for name in sorted(header):
        if header[name]["dtype"] != "F32":
            raise Wrong(f"{path}: {name} is not of type F32")
        start, end = header[name]["data_offsets"]
        found += floats(data[start:end], "f")
    return found


def read_segment(path, records):
    """Adds the records of one file of a table: coalition, last player first -> probabilities."""
    with open(path, "rb") as file:
        data = file.read()
    store, _, players, inputs, classes = struct.unpack_from("<5I", data, 12)
    size, = struct.unpack_from("<Q", data, 32)
    words, kind = (players + 63) // 64 * 8, "fe"[store]
    length = inputs * classes * struct.calcsize(kind)
    for at in range(64, len(data) - size + 1, size):
        if not any(data[at:at + 8]):
            continue  # not written
        start = at + 8 + words
        coalition = data[at + 8:start][::-1]
        records[coalition] = floats(data[start:start + length], kind)


def read_table(folder):
    """Its coalitions, in the order of their bits, as words of 64 players; and all their answers."""
    records, words, answers = {}, [], []
    for path in glob.glob(os.path.join(folder, "*.seg")):
        read_segment(path, records)
    for coalition in sorted(records):
        words += struct.unpack(f">{len(coalition) // 8}Q", coalition)
        answers += records[coalition]
    return words, answers


def read_tables(folder):
    """Those of a game and of its surrogate; the larger first, whatever they are called."""
    folders = {os.path.dirname(path) for path in glob.glob(folder + "/**/*.seg", recursive=True)}
    tables = sorted(map(read_table, folders), key=lambda table: (-len(table[1]), table))
    if not tables:
        return {}
    words, answers = ([x for part in parts for x in part] for parts in zip(*tables))
    return {"coalitions": ("Q", words), "probabilities": ("f", answers)}


def read_npy(path):
    """All values, then all standard errors."""
    with open(path, "rb") as file:
        data = file.read()
    start = 10 + struct.unpack_from("<H", data, 8)[0]
    if b"'<f8'" not in data[:start] or b"False" not in data[:start]:
        raise Wrong(f"{path}: not float64 in C order")
    return floats(data[start:], "d")


def in_order(rows, keys, columns):
    """The numbers of the columns, one column after the other, of rows sorted by their keys."""
    rows = sorted(rows, key=lambda row: [natural(pick(row, names)) for names in keys])
    for names in columns:
        if rows and pick(rows[0], names) is None:
            raise Wrong(f"nothing is called {' or '.join(names)}")
    return [number(pick(row, names)) for names in columns for row in rows]


def read_csv(path):
    """As read_npy has them."""
    with open(path, newline="") as file:
        return in_order(list(csv.DictReader(file)), (TEST, LABEL, PLAYER), (VALUE, ERROR))


def read_json(path):
    """As read_npy has them."""
    with open(path) as file:
        results = json.load(file)["results"]
    return [number(x) for key in ("values", "standard_errors") for one in results for x in one[key]]


def read_values(path):
    readers = {".npy": read_npy, ".csv": read_csv, ".json": read_json}
    return readers[os.path.splitext(path)[1]](path)


def read_check(text):
    """What the explainer and the sub-models say, from the JSON of `fds explain --check`."""
    found = []
    for one in json.loads(text)["inputs"]:
        found += in_order(one["ranking"], (PLAYER,), (VALUE, ERROR, BANK_VALUE, BANK_ERROR))
    return found


def read_payments(path):
    """In units, by input and payee."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return [int(pick(row, UNITS)) for row in sorted(rows, key=lambda row: [
        natural(pick(row, names)) for names in (INPUT, PLAYER, PROVIDER)])]


# ---- what a command computed ----


def output_of(words):
    return words[words.index("-o") + 1] if "-o" in words else None


def service_of(run):
    for name in SERVICE:
        if os.path.exists(os.path.join(run, name)):
            return os.path.join(run, name)
    raise Wrong(f"{run} has no {' or '.join(SERVICE)}")


def numbers_of(verb, output, folder, text):
    """From what a command wrote: a name of our own -> (type, numbers)."""
    path = os.path.join(folder, output or "")
    if verb == "train":
        return {"weights": ("f", read_weights(path))}
    if verb == "fit":
        return {"weights": ("f", read_weights(service_of(path))), **read_tables(path)}
    if verb == "pay":
        return {"payments": ("q", read_payments(path))}
    if verb == "explain":
        return {"values": ("d", read_values(path) if output else read_check(text))}
    return {"values": ("d", read_values(path)), **read_tables(folder)}


def digest(kind, numbers):
    """Of little-endian float32, float64 or int64; what is not known has one form only."""
    plain = [x if x == x else math.nan for x in numbers]
    return hashlib.sha256(struct.pack(f"<{len(plain)}{kind}", *plain)).hexdigest()


def summary(numbers):
    known = [x for x in numbers if x == x]
    return {
        "count": len(numbers),
        "known": len(known),
        "first": known[:FIRST],
        "sum": math.fsum(known),
        "squares": math.fsum(x * x for x in known),
    }


def shorten(kind, numbers, near):
    """What golden.json keeps."""
    if kind == "q":
        return {"within": UNIT_TOLERANCE if near else 0, "all": numbers}
    if kind == "Q":
        return {"sha256": digest(kind, numbers), "count": len(numbers)}
    if near:
        return {"within": ANSWER_TOLERANCE, "all": [round(x, 9) for x in numbers]}
    return {"sha256": digest(kind, numbers), **summary(numbers)}


# ---- comparing ----


def is_close(a, b, scale):
    return abs(a - b) <= SUMMARY_TOLERANCE * max(abs(a), abs(b), scale)


def agrees_in_sum(old, new):
    """Whether two summaries are the same but for rounding."""
    if (old["count"], old["known"]) != (new["count"], new["known"]):
        return False
    size = math.sqrt(old["squares"] / max(old["known"], 1))  # of a single number
    pairs = zip(old["first"], new["first"])
    return (all(is_close(a, b, size) for a, b in pairs)
            and is_close(old["sum"], new["sum"], size * old["known"])
            and is_close(old["squares"], new["squares"], 0))


def compare_all(old, new, may_round):
    """The same of numbers that are kept in full; on another machine a unit of money may move."""
    if len(old["all"]) != len(new["all"]):
        return "are not as many"
    apart = [abs(a - b) for a, b in zip(old["all"], new["all"])]
    if all(x <= old["within"] for x in apart):
        return ""
    if may_round and isinstance(old["within"], int) and max(apart) <= UNIT_TOLERANCE:
        return ROUNDING
    return f"differ by up to {max(apart):.3g}"


def compare(old, new, may_round):
    """Nothing where they agree, ROUNDING, or what differs."""
    if old.keys() != new.keys():
        return "are recorded in another form"
    if "all" in old:
        return compare_all(old, new, may_round)
    if old["sha256"] == new["sha256"]:
        return ""
    if "sum" in old and agrees_in_sum(old, new):
        return ROUNDING if may_round else "differ in their last bits"
    return "differ: " + ", ".join(f"{key} was {old[key]!r}, is {new[key]!r}"
                                  for key in ("count", "sum") if key in old)


def judge(old, new, may_round):
    """Of all numbers of a command: whether they agree, and what there is to say."""
    if sorted(old) != sorted(new):
        return False, f"recorded are {', '.join(sorted(old))}; now {', '.join(sorted(new))}"
    said = {name: compare(old[name], new[name], may_round) for name in sorted(old)}
    wrong = [f"{name} {what}" for name, what in said.items() if what not in ("", ROUNDING)]
    if wrong:
        return False, "; ".join(wrong)
    return True, ROUNDING if ROUNDING in said.values() else ""


# ---- running ----


def cpu_flags():
    try:
        with open("/proc/cpuinfo") as file:
            found = re.search(r"^flags\s*:(.*)$", file.read(), re.M)
    except OSError:
        found = None
    return sorted({"avx2", "fma", "avx512f"} & set(found[1].split() if found else []))


def environment():
    """The same kernels of other libraries wherever there is AVX2; no waiting that burns a core."""
    fixed = {"LC_ALL": "C", "OMP_WAIT_POLICY": "passive"}
    if {"avx2", "fma"} <= set(cpu_flags()):
        fixed.update(OPENBLAS_CORETYPE="Haswell", ONEDNN_MAX_CPU_ISA="AVX2")
    return {**os.environ, **fixed}


def machine(fds):
    text = subprocess.run([fds, "--version"], capture_output=True, text=True, check=True,
                          env=environment()).stdout
    engine = re.search(r"engine: *(\w+)", text)
    return {"flags": cpu_flags(), "engine": engine[1] if engine else None, "version": text.strip()}


def can_round(here, there):
    """Whether bits may differ from those recorded."""
    other_engine = here["engine"] and there["engine"] and here["engine"] != there["engine"]
    return "avx2" not in here["flags"] or here["flags"] != there["flags"] or bool(other_engine)


def renew(words):
    """Old words as they are said now."""
    found, at = [], 0
    while at < len(words):
        pair = " ".join(words[at:at + 2])
        step = 2 if pair in commands.OLD_TO_NEW else 1
        here = " ".join(words[at:at + step])
        found += commands.OLD_TO_NEW.get(here, here).split()
        at += step
    return found


def words_of(command, in_old):
    if in_old:
        return command.old.split()
    return command.new.split() if command.new else renew(command.old.split())


def prepare(folder):
    os.makedirs(folder)
    for name, path in DATA.items():
        os.symlink(os.path.realpath(path), os.path.join(folder, name))


class Runner:
    """Runs commands, each once, and those that it comes after before it."""

    def __init__(self, fds, threads, in_old, scratch):
        self.fds, self.threads, self.in_old, self.scratch = fds, threads, in_old, scratch
        self.by_id = {command.id: command for command in commands.COMMANDS}
        self.done = {}  # id -> numbers, or what went wrong

    def folder(self, command):
        while command.after:
            command = self.by_id[command.after]
        return os.path.join(self.scratch, command.id)

    def line(self, command):
        return ["fds", *words_of(command, self.in_old), "--threads", str(self.threads), "--quiet"]

    def call(self, command):
        folder = self.folder(command)
        if not command.after:
            prepare(folder)
        args = [self.fds, *self.line(command)[1:]]
        try:
            ended = subprocess.run(args, cwd=folder, env=environment(), capture_output=True,
                                   text=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Wrong(f"takes more than {TIMEOUT_S} s") from None
        if ended.returncode:
            raise Wrong(f"status {ended.returncode}: {ended.stderr.strip()}")
        verb, output = command.old.split()[0], output_of(command.old.split())
        found = numbers_of(verb, output, folder, ended.stdout)
        return {name: shorten(*pair, command.near) for name, pair in found.items()}

    def run(self, command):
        """The numbers; or a Wrong."""
        if command.id not in self.done:
            try:
                if command.after and isinstance(self.run(self.by_id[command.after]), Wrong):
                    raise Wrong(f"{command.after} failed before it")
                self.done[command.id] = self.call(command)
            except Wrong as wrong:
                self.done[command.id] = wrong
            except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
                self.done[command.id] = Wrong(f"its numbers cannot be read: {error!r}")
        return self.done[command.id]


# ---- record, check ----


def record(runner):
    numbers = {}
    for command in commands.COMMANDS:
        found = runner.run(command)
        if isinstance(found, Wrong):
            sys.exit(f"{command.id}: {' '.join(runner.line(command))}: {found}")
        numbers[command.id] = found
    lines = [f" {json.dumps(name)}: {json.dumps(found)}" for name, found in numbers.items()]
    with open(GOLDEN, "w") as file:
        file.write('{"machine": ' + json.dumps(machine(runner.fds)) + ',\n"numbers": {\n')
        file.write(",\n".join(lines) + "\n}}\n")
    print(f"{len(numbers)} commands recorded")


def check_one(runner, command, old, may_round):
    """AGREES, CHANGED or DIFFERS, and what is printed after its id."""
    found = runner.run(command)
    if isinstance(found, Wrong):
        return DIFFERS, str(found)
    if old is None:
        return DIFFERS, "nothing is recorded of it"
    agrees, text = judge(old, found, may_round)
    reason = commands.EXPECTED_CHANGES.get(command.id)
    if reason and not agrees:
        return CHANGED, f"changed: {reason}"
    if reason:
        return AGREES, f"agrees, though it is listed as changed: {reason}"
    if not agrees:
        return DIFFERS, text
    return AGREES, text and f"agrees {text}"


def chosen(only):
    known = [command.id for command in commands.COMMANDS]
    for name in only or []:
        if name not in known:
            sys.exit(f"no command has the id {name}")
    return [command for command in commands.COMMANDS if not only or command.id in only]


def check(runner, only):
    """Whether all agree, or are changed on purpose."""
    with open(GOLDEN) as file:
        golden = json.load(file)
    may_round = can_round(machine(runner.fds), golden["machine"])
    ends = []
    for command in chosen(only):
        end, text = check_one(runner, command, golden["numbers"].get(command.id), may_round)
        ends.append(end)
        if text:
            print(f"{command.id}: {text}: {' '.join(runner.line(command))}", flush=True)
    for name in [] if only else sorted(set(golden["numbers"]) - set(runner.by_id)):
        ends.append(DIFFERS)
        print(f"{name}: recorded, but no longer a command")
    changed = ends.count(CHANGED)
    print(f"{ends.count(AGREES)} of {len(ends)} commands agree"
          + (f", {changed} changed on purpose" if changed else ""))
    return DIFFERS not in ends


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["record", "check"])
    parser.add_argument("fds", help="the program")
    parser.add_argument("--only", nargs="+", metavar="ID", help="check these commands only")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--words", choices=["old", "new"],
                        help="those of version 0.1, or of now [record: old; check: new]")
    args = parser.parse_args()
    in_old = (args.words or ("old" if args.what == "record" else "new")) == "old"
    with tempfile.TemporaryDirectory(prefix="fds-golden-") as scratch:
        runner = Runner(os.path.abspath(args.fds), args.threads, in_old, scratch)
        if args.what == "record":
            record(runner)
            return 0
        return 0 if check(runner, args.only) else 1


if __name__ == "__main__":
    sys.exit(main())
