#!/usr/bin/python3
"""How often fds audit duplicates and fds audit labels find cheating, and alarm falsely: tables of docs/audit.md.

Usage: bench/copies.py BUILD_FOLDER [--honest 1000] [--dishonest 200] [--svg FOLDER] [--only duplicates|labels] [--seed 0]

Data sets are drawn from real ones: MNIST and Fashion-MNIST at half their size. Samples without replacement are dealt
out among providers, and others are the test part, so that owned and unowned samples come from the same source. The
checks run through the library, in one process.

  duplicates   three providers of 100 samples, 200 test samples. The first one replaces K of its samples by copies of
               the second one's: exact, with normal noise of 10 or 20 grey levels, or moved by one pixel in a random
               direction
  labels       five providers of 200 samples and one of N, which replaces 8 % of its labels by others at random

Honest data sets, with N of 200, must alarm with probability alpha (0.01) at most. Half of the data sets, of each kind
and number, are of MNIST. Another seed draws other data sets. Prints Markdown.
"""
import argparse
import ctypes as C
import json
import os
import tempfile
import time

import numpy as np

import digits
from trust import Error

DATA = ("mnist", "fashion-mnist")
COPIED = (4, 8, 12, 25)
SIZES = (50, 100, 200, 400, 1600)
EACH, TESTS, COPIERS, LABELLERS, FLIPPED = 100, 200, 3, 6, 0.08
COLOURS = ("#1f5fa8", "#b3521e", "#1b7a3d", "#7a3d8f")


class Checks:
    """The library, and a folder for one data set after the other."""

    def __init__(self, library, folder):
        self.lib, self.error, self.folder = C.CDLL(library), Error(), folder
        self.lib.fds_params_create.restype = C.c_void_p
        self.lib.fds_params_create.argtypes = [C.c_char_p]

    def ok(self, status):
        assert status == 0, self.error.text.decode()

    def run(self, check, data, seed):
        """Whom the check accuses: pairs of providers, or providers. data: x, y, owners, tests (x, y) or None."""
        x, y, owners, tests = data
        path = lambda name: os.path.join(self.folder, name)
        for name, part in (("train", (x, y)), ("test", tests)):
            if part:
                np.save(path(f"x_{name}.npy"), part[0])
                np.save(path(f"y_{name}.npy"), part[1])
        with open(path("owners.csv"), "w", encoding="utf-8") as file:
            file.writelines(["sample,provider\n", *(f"{i},{p}\n" for i, p in enumerate(owners))])
        params, text, error = C.c_void_p(self.lib.fds_params_create(b"audit")), C.c_char_p(), C.byref(self.error)
        for name, value in (("data", self.folder), ("owners", path("owners.csv")), ("threads", 1), ("seed", seed)):
            self.ok(self.lib.fds_params_set(params, name.encode(), str(value).encode(), error))
        if check == "duplicates":
            self.ok(self.lib.fds_audit_duplicates(params, None, None, None, C.byref(text), error))
        else:
            self.ok(self.lib.fds_audit_labels(params, None, C.byref(text), error))
        report = json.loads(text.value)
        self.lib.fds_text_free(text)
        self.lib.fds_params_free(params)
        if check == "labels":
            return [p["provider"] for p in report["providers"] if p["verdict"] == "alarm"]
        return [(f["provider"], f["of"]) for f in report["findings"]]


# ---- data sets ----

def small(x):
    return x.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).round().astype(np.uint8)


def moved(x, rng):
    """Each picture by one pixel, in one of eight directions."""
    steps = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]
    out = np.zeros_like(x)
    for i, k in enumerate(rng.integers(0, len(steps), len(x))):
        dy, dx = steps[k]
        whole = np.pad(x[i], 1)
        out[i] = whole[1 - dy:15 - dy, 1 - dx:15 - dx]
    return out


def noisy(levels):
    return lambda x, rng: np.clip(x + rng.normal(0, levels, x.shape), 0, 255).round().astype(np.uint8)


COPIES = {"exact": lambda x, rng: x, "noise of 10": noisy(10), "noise of 20": noisy(20), "moved by a pixel": moved}


def with_copies(source, rng, count, change):
    x, y = source
    chosen = rng.choice(len(x), COPIERS * EACH + TESTS, replace=False)
    own, tests = chosen[:COPIERS * EACH], chosen[COPIERS * EACH:]
    owned, labels = x[own].copy(), y[own].copy()
    if count:
        owned[:count], labels[:count] = change(x[own[EACH:EACH + count]], rng), y[own[EACH:EACH + count]]
    return owned, labels, np.repeat(np.arange(COPIERS), EACH), (x[tests], y[tests])


def with_flips(source, rng, size, share):
    x, y = source
    own = rng.choice(len(x), size + (LABELLERS - 1) * EACH * 2, replace=False)
    labels, owners = y[own].copy(), np.minimum(np.maximum(np.arange(len(own)) - size + EACH * 2, 0) // (EACH * 2), 5)
    flipped = rng.choice(size, round(share * size), replace=False)
    labels[flipped] = (labels[flipped] + rng.integers(1, 10, len(flipped))) % 10
    return x[own], labels, owners, None


# ---- what is printed ----

def curve(path, title, axis, lines):
    """The share of data sets found, over a number on a logarithmic axis: lines (name, {number: share})."""
    left, right, top, bottom = 60, 560, 34, 250
    numbers = sorted(lines[0][1])
    x = lambda n: left + (right - left) * np.log(n / numbers[0]) / np.log(numbers[-1] / numbers[0])
    y = lambda p: bottom - (bottom - top) * p
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 300" font-family="sans-serif" font-size="12">',
           '<rect width="760" height="300" fill="white"/>', f'<text x="{left}" y="20" font-size="14">{title}</text>']
    for p in (0, 0.25, 0.5, 0.75, 1):
        out.append(f'<path d="M{left} {y(p):.1f}H{right}" stroke="#ddd"/><text x="{left - 6}" y="{y(p) + 4:.1f}" '
                   f'text-anchor="end">{100 * p:.0f} %</text>')
    for n in numbers:
        out.append(f'<path d="M{x(n):.1f} {top}V{bottom}" stroke="#eee"/><text x="{x(n):.1f}" y="{bottom + 16}" '
                   f'text-anchor="middle">{n}</text>')
    out.append(f'<text x="{right}" y="{bottom + 34}" text-anchor="end">{axis}</text>')
    for k, (name, shares) in enumerate(lines):
        points = "L".join(f"{x(n):.1f} {y(shares[n]):.1f}" for n in numbers)
        out.append(f'<path d="M{points}" fill="none" stroke="{COLOURS[k]}" stroke-width="2"/>'
                   f'<text x="{right + 8}" y="{top + 14 + 18 * k}" fill="{COLOURS[k]}">{name}</text>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([*out, "</svg>\n"]))


def print_head(title, numbers):
    print(f"\n| {title} | " + " | ".join(map(str, numbers)) + " |\n|" + " --- |" * (len(numbers) + 1), flush=True)


def print_row(name, shares):
    print(f"| {name} | " + " | ".join(f"{100 * share:.0f} %" for share in shares.values()) + " |", flush=True)


def honest(checks, check, sources, args, make):
    count = args.honest
    print(f"\n| data | honest data sets | false alarms of `{check}` | allowed at alpha 0.01 |\n|" + " --- |" * 4)
    alarms = 0
    for k, name in enumerate(DATA):
        own = sum(bool(checks.run(check, make(sources[name], np.random.default_rng([k, i, *args.more])), i))
                  for i in range(count // 2))
        print(f"| {name} | {count // 2} | {own} | {count / 200:g} |", flush=True)
        alarms += own
    assert alarms <= count / 100 + 3 * (count / 100)**0.5, f"{check} alarms falsely"


def duplicates(checks, sources, args):
    honest(checks, "duplicates", sources, args, lambda source, rng: with_copies(source, rng, 0, None))
    lines, others = [], 0
    print_head(f"copied of {EACH}", COPIED)
    for k, name in enumerate(DATA):
        for how, (title, change) in enumerate(COPIES.items()):
            shares = {}
            for count in COPIED:
                found = []
                for i in range(args.dishonest // 2):
                    rng = np.random.default_rng([10 + k, how, count, i, *args.more])
                    accused = checks.run("duplicates", with_copies(sources[name], rng, count, change), i)
                    found.append(("0", "1") in accused or ("1", "0") in accused)
                    others += any({a, b} != {"0", "1"} for a, b in accused)
                shares[count] = np.mean(found)
            lines.append((f"{name}, {title}", shares))
            print_row(*lines[-1])
    print(f"\nOthers than the copier and the copied were accused in {others} of "
          f"{args.dishonest // 2 * len(COPIED) * len(lines)} data sets.", flush=True)
    if args.svg:
        of = [(name.partition(", ")[2], shares) for name, shares in lines if name.startswith(DATA[0] + ",")]
        curve(os.path.join(args.svg, "audit-duplicates.svg"), "duplicates: data sets found (mnist)",
              f"copied samples of {EACH}", of)


def labels(checks, sources, args):
    honest(checks, "labels", sources, args, lambda source, rng: with_flips(source, rng, 2 * EACH, 0))
    lines, others = [], 0
    print_head("samples of the provider, 8 % wrong", SIZES)
    for k, name in enumerate(DATA):
        shares = {}
        for size in SIZES:
            found = []
            for i in range(args.dishonest // 2):
                rng = np.random.default_rng([20 + k, size, i, *args.more])
                accused = checks.run("labels", with_flips(sources[name], rng, size, FLIPPED), i)
                found.append("0" in accused)
                others += accused not in ([], ["0"])
            shares[size] = np.mean(found)
        lines.append((name, shares))
        print_row(*lines[-1])
    print(f"\nOthers were accused in {others} of {args.dishonest // 2 * len(SIZES) * len(lines)} data sets.",
          flush=True)
    if args.svg:
        curve(os.path.join(args.svg, "audit-labels.svg"), "labels: data sets found, 8 % wrong",
              "samples of the provider", lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("--honest", type=int, default=1000)
    parser.add_argument("--dishonest", type=int, default=200)
    parser.add_argument("--svg", help="folder for the power curves")
    parser.add_argument("--only", choices=("duplicates", "labels"))
    parser.add_argument("--seed", type=int, default=0, help="0 draws the data sets of docs/audit.md")
    args = parser.parse_args()
    args.more = [args.seed] if args.seed else []
    build, start = os.path.abspath(args.build), time.perf_counter()
    sources = {}
    for name in DATA:
        (x, y), _ = digits.read_digits(os.path.join(build, "cli/fds"), name)
        sources[name] = small(x), y.copy()
    for check, run in (("duplicates", duplicates), ("labels", labels)):
        if args.only in (None, check):
            with tempfile.TemporaryDirectory() as folder:
                run(Checks(os.path.join(build, "src/libfds.so"), folder), sources, args)
    print(f"\n{time.perf_counter() - start:.0f} seconds.")


if __name__ == "__main__":
    main()
