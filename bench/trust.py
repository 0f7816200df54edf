#!/usr/bin/python3
"""How soon fds audit finds cheating and drift, and how often it alarms falsely: the tables of docs/audit.md.

Usage: bench/trust.py BUILD_FOLDER [--work FOLDER] [--honest 1000] [--dishonest 200] [--length 3000]
                      [--svg FOLDER] [--speed [N]]

MNIST at half its size, divided among 20 providers of 100 to 1,000 digits. `fds fit` runs twice, the second time on
other digits; its explainer asks 176 of 1,052 sub-models. Explainer and bank answer 4,000 test digits once. A history
is drawn from this table with replacement, and audited through the library, every prediction audited. Faults:

  diverted   5 % of what one provider gets goes to the next one (for three providers: small, medium, large)
  refitted   the explainer of the second run pays, the bank is that of the first
  halved     the stated standard errors are half of the calibrated ones
  group      a group of five providers gets 10 % less, the others the more
  strange    inputs are drawn by their score: the higher half twice as often
  self       one of ten customers sends the digits that pay its own provider most: one of the best tenth for their label
             in one of two predictions

Honest histories must alarm with probability alpha (0.01) at most, over their whole length. The level at fit time is the
mean on the first 1,000 digits; histories, and the scores of 1,000 calibrated inputs, are drawn from the other 3,000. --speed audits a ledger of N entries with 100
payees (1,000,000), 1 in 20 audited, and prints time and memory. Prints Markdown. Tables stay in the work folder.
"""
import argparse
import ctypes as C
import json
import os
import subprocess
import sys
import time

import numpy as np

import digits
import money

TESTS, PROVIDERS, LEVEL_OF = 4000, 20, 1000
GROUPS = np.arange(PROVIDERS) % 4
CHECKS = ("truth", "provider", "coverage", "groups", "drift", "self")
CUSTOMERS = 10
NEVER = 2**64 - 1
ROW = np.dtype([(name, "u8") for name in ("entry", "run", "customer", "label")] + [("amount", "i8")] +
               [(name, "u8") for name in ("values", "errors", "bank", "bank_errors")] + [("score", "f8")])


# ---- two runs, and their answers ----

def make_data(fds, folder, which):
    (x, y), _ = digits.read_digits(fds, "mnist")
    sizes = np.geomspace(100, 1000, PROVIDERS).astype(int)
    order = np.random.default_rng(7).permutation(len(x))
    test, rest = order[:TESTS], order[TESTS:]
    chosen = rest[which * sizes.sum():(which + 1) * sizes.sum()]
    mix = np.random.default_rng(1).permutation(len(chosen))
    small = lambda k: x[k].reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196)
    names = [f"provider {p + 1:02d}" for p in np.repeat(np.arange(PROVIDERS), sizes)[mix]]
    os.makedirs(folder)
    money.write_csv(os.path.join(folder, "train.csv"), small(chosen[mix]), y[chosen[mix]], names)
    money.write_csv(os.path.join(folder, "test.csv"), small(test), y[test], ["nobody"] * TESTS)


def answers(fds, work):
    """Values and errors (2, tests, providers) of explainer, bank, the other explainer; and predicted labels."""
    for which in (0, 1):
        data, run = (os.path.join(work, f"{kind}{which}") for kind in ("data", "run"))
        if not os.path.exists(data):
            make_data(fds, data, which)
        if not os.path.exists(os.path.join(run, "run.json")):
            subprocess.run([fds, "fit", data, "--players", "providers", "--method", "afds", "--coalitions", "1000",
                            "--explainer", "probe", "--answer-ms", "0.2", "--keep-models", "--quiet", "-o", run],
                           check=True, stdout=subprocess.DEVNULL)
    found = []
    for name, run, by in (("e0", "run0", "explainer"), ("b0", "run0", "bank"), ("e1", "run1", "explainer")):
        path = os.path.join(work, name + ".npy")
        if not os.path.exists(path):
            with open(os.path.join(work, name + ".json"), "wb") as file:
                subprocess.run([fds, "explain", os.path.join(work, run), "--by", by, "--index", f"0..{TESTS - 1}",
                                "--quiet", "--json", "-o", path], check=True, stdout=file)
        found.append(np.load(path).astype(np.float32))
    with open(os.path.join(work, "e0.json"), encoding="utf-8") as file:
        labels = [str(one["predicted"] if "predicted" in one else one["label"]) for one in json.load(file)["inputs"]]
    return *found, labels


# ---- the library ----

class Error(C.Structure):
    _fields_ = [("status", C.c_int), ("text", C.c_char * 512)]


class Payees(C.Structure):
    _fields_ = [("names", C.POINTER(C.c_char_p)), ("count", C.c_size_t), ("policy", C.c_char_p), ("level", C.c_double),
                ("score", C.c_void_p), ("scores", C.c_size_t)]


class Library:
    def __init__(self, path, groups):
        self.lib, self.error, self.groups = C.CDLL(path), Error(), groups.encode()
        self.lib.fds_params_create.restype = C.c_void_p
        self.lib.fds_auditor_evidence.restype = C.c_double
        self.lib.fds_auditor_evidence.argtypes = [C.c_void_p, C.c_char_p, C.POINTER(C.c_uint64)]
        self.lib.fds_auditor_add.argtypes = [C.c_void_p, C.c_void_p, C.c_void_p]
        self.names = (C.c_char_p * PROVIDERS)(*[f"provider {i + 1:02d}".encode() for i in range(PROVIDERS)])

    def check(self, status):
        assert status == 0, self.error.text.decode()

    def audit(self, table, order, level, reference, seed):
        """{check: number of the prediction that made it alarm, or NEVER}. order: rows of the table."""
        params, auditor = C.c_void_p(self.lib.fds_params_create(b"trust")), C.c_void_p()
        for name, value in ((b"groups", self.groups), (b"seed", str(seed).encode())):
            self.check(self.lib.fds_params_set(params, name, value, C.byref(self.error)))
        self.check(self.lib.fds_auditor_create(params, C.byref(auditor), C.byref(self.error)))
        self.lib.fds_params_free(params)
        payees = Payees(self.names, PROVIDERS, None, level, reference.ctypes.data, len(reference))
        self.check(self.lib.fds_auditor_add_payees(auditor, C.byref(payees), C.byref(self.error)))
        rows = table[order]
        rows["entry"] = np.arange(len(order))
        at, add = rows.ctypes.data, self.lib.fds_auditor_add
        for i in range(len(order)):
            self.check(add(auditor, at + i * ROW.itemsize, C.byref(self.error)))
        found = {}
        for name in CHECKS:
            entry = C.c_uint64()
            self.lib.fds_auditor_evidence(auditor, name.encode(), C.byref(entry))
            found[name] = entry.value
        self.lib.fds_auditor_free(auditor)
        return found


class World:
    """What explainer and bank say about the test digits."""

    def __init__(self, fds, library, work):
        path = os.path.join(work, "groups.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"provider {i + 1:02d},group {g}\n" for i, g in enumerate(GROUPS))
        self.library = Library(library, path)
        self.e, self.b, self.other, labels = answers(fds, work)
        self.labels = [label.encode() for label in labels]
        self.label_texts = [C.create_string_buffer(label) for label in self.labels]
        self.level = float(self.misallocated(self.e[0])[:LEVEL_OF].mean())
        # how unlike the calibrated inputs an input is: how far the explainer is from the bank, in its errors
        self.scores = np.abs(self.e[0] - self.b[0]).max(1) / self.e[1].mean(1)
        self.scores = self.scores.astype(float)
        self.kept = []

    @staticmethod
    def shares(values):
        clipped = np.clip(values, 0, None)
        return clipped / clipped.sum(1, keepdims=True)

    def misallocated(self, values):
        return np.abs(self.shares(values) - self.shares(self.b[0])).sum(1) / 2

    def table(self, values=None, errors=None, is_audited=True, bank=None):
        """Rows for the library, of all test digits."""
        rows = np.zeros(TESTS, ROW)
        parts = {"values": self.e[0] if values is None else values, "errors": self.e[1] if errors is None else errors}
        if is_audited:
            parts.update(bank=self.b[0] if bank is None else bank, bank_errors=self.b[1])
        for name, part in parts.items():
            part = np.ascontiguousarray(part, np.float32)
            self.kept.append(part)  # the library reads it
            rows[name] = part.ctypes.data + np.arange(TESTS) * PROVIDERS * part.itemsize
        rows["amount"] = 1000000
        rows["score"] = self.scores
        rows["label"] = [C.addressof(text) for text in self.label_texts]
        return rows

    def divert(self, provider, share):
        values = np.clip(self.e[0], 0, None)
        moved = values[:, provider] * share
        values[:, provider] -= moved
        values[:, (provider + 1) % PROVIDERS] += moved
        return values

    def underpay(self, group, share):
        values = np.clip(self.e[0], 0, None)
        of = GROUPS == group
        moved = values[:, of].sum(1) * share
        values[:, of] *= 1 - share
        values[:, ~of] *= 1 + (moved / values[:, ~of].sum(1))[:, None]
        return values


def draw(rng, length, weights=None):
    return LEVEL_OF + rng.choice(TESTS - LEVEL_OF, length, p=weights)


def histories(world, table, count, length, seed, weights=None, change=None):
    """The alarms of each history."""
    found = []
    for i in range(count):
        rng = np.random.default_rng([seed, i])
        reference = np.ascontiguousarray(world.scores[draw(rng, LEVEL_OF)])
        order = draw(rng, length, weights)
        rows = change(rng, order) if change else (table, order)
        found.append(world.library.audit(*rows, world.level, reference, i))
    return found


def heavy_tails():
    """Shares that a few providers have most of, and an honest explainer that is poor: (values, bank)."""
    rng = np.random.default_rng(5)
    owed = rng.gamma(0.3, 1, (TESTS, PROVIDERS))
    owed /= owed.sum(1, keepdims=True)
    return owed + 0.8 / PROVIDERS * rng.normal(size=owed.shape), owed


def customers(world, provider, is_feeding):
    """Ten customers; the first one feeds a provider, if at all. Rows are copied per customer."""
    table = np.concatenate([world.table(is_audited=False) for _ in range(CUSTOMERS)])
    table["customer"] = np.repeat(np.arange(CUSTOMERS), TESTS)
    share = world.shares(world.e[0])[:, provider]
    best = []
    for label in sorted(set(world.labels)):
        of = np.array([i for i in range(LEVEL_OF, TESTS) if world.labels[i] == label])
        best.extend(of[np.argsort(-share[of])[:max(len(of) // 10, 1)]])
    best = np.array(best)

    def change(rng, order):
        who = rng.integers(0, CUSTOMERS, len(order))
        if is_feeding:
            fed = (who == 0) & (rng.random(len(order)) < 0.5)
            order = np.where(fed, rng.choice(best, len(order)), order)
        return table, order + who * TESTS
    return change


# ---- what is printed ----

def quantiles(found, check):
    at = np.sort([one[check] for one in found])
    text = lambda q: "not found" if at[int(q * (len(at) - 1))] == NEVER else str(int(at[int(q * (len(at) - 1))]) + 1)
    return text(0.5), text(0.9), np.mean(at != NEVER), at[at != NEVER]


def curve(path, title, lines, length):
    """The share of histories that have alarmed, over the number of predictions."""
    left, right, top, bottom = 60, 560, 34, 250
    x = lambda n: left + (right - left) * np.log10(max(n, 1)) / np.log10(length)
    y = lambda p: bottom - (bottom - top) * p
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 300" font-family="sans-serif" font-size="12">',
           '<rect width="720" height="300" fill="white"/>', f'<text x="{left}" y="20" font-size="14">{title}</text>']
    for p in (0, 0.25, 0.5, 0.75, 1):
        out.append(f'<path d="M{left} {y(p):.1f}H{right}" stroke="#ddd"/><text x="{left - 6}" y="{y(p) + 4:.1f}" '
                   f'text-anchor="end">{100 * p:.0f} %</text>')
    n = 1
    while n <= length:
        out.append(f'<path d="M{x(n):.1f} {top}V{bottom}" stroke="#eee"/><text x="{x(n):.1f}" y="{bottom + 16}" '
                   f'text-anchor="middle">{n}</text>')
        n *= 10
    out.append(f'<text x="{right}" y="{bottom + 34}" text-anchor="end">audited predictions until the alarm</text>')
    colours = ("#1f5fa8", "#b3521e", "#1b7a3d", "#7a3d8f")
    for k, (name, at, count) in enumerate(lines):
        points = [(1, 0)] + [(int(a) + 1, (i + 1) / count) for i, a in enumerate(np.sort(at))]
        path_ = f"M{x(1):.1f} {y(0):.1f}" + "".join(f"H{x(a):.1f}V{y(p):.1f}" for a, p in points[1:]) + f"H{right}"
        out.append(f'<path d="{path_}" fill="none" stroke="{colours[k]}" stroke-width="2"/>')
        out.append(f'<text x="{right + 8}" y="{top + 14 + 18 * k}" fill="{colours[k]}">{name}</text>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([*out, "</svg>\n"]))


def simulate(world, args):
    n, length = args.dishonest, args.length
    honest = histories(world, world.table(), args.honest, length, 0)
    for one, own in zip(honest, histories(world, None, args.honest, length, 1, change=customers(world, 10, False))):
        one["self"] = own["self"]
    print("| check | honest histories | false alarms | allowed at alpha 0.01 |\n| --- | --- | --- | --- |")
    for check in CHECKS:
        alarms = sum(one[check] != NEVER for one in honest)
        print(f"| `{check}` | {len(honest)} of {length} predictions | {alarms} | {len(honest) // 100} |", flush=True)
        assert alarms <= len(honest) / 100 + 3 * (len(honest) / 100)**0.5, f"{check} alarms falsely"
    values, bank = heavy_tails()
    poor = histories(world, world.table(values, bank=bank), args.honest // 5, length, 2)
    moved = np.abs(world.shares(values) - bank).sum(1).mean() / 2
    for check in ("provider", "groups"):
        alarms = sum(one[check] != NEVER for one in poor)
        print(f"| `{check}`, made-up shares with heavy tails, {100 * moved:.0f} of each 100 misallocated | {len(poor)} of "
              f"{length} predictions | {alarms} | {len(poor) // 100} |", flush=True)
        assert alarms <= len(poor) / 100 + 3 * (len(poor) / 100)**0.5, f"{check} alarms falsely"
    high = np.argsort(np.argsort(world.scores[LEVEL_OF:])) >= (TESTS - LEVEL_OF) / 2
    mean = world.shares(world.b[0]).mean(0)
    faults = [("provider", f"5 % diverted from a provider of {100 * mean[i]:.1f} % of the money", world.divert(i, 0.05),
               None, None, None) for i in (5, 10, 19)]
    faults += [("truth", "explainer refitted on other data", world.other[0], None, None, None),
               ("coverage", "error bars halved", None, world.e[1] / 2, None, None),
               ("groups", "a group of five underpaid by 10 %", world.underpay(1, 0.1), None, None, None),
               ("drift", "strange inputs twice as often", None, None, (1 + high) / (1 + high).sum(), None),
               ("self", "one of ten customers feeds its provider", None, None, None, customers(world, 10, True))]
    print("\n| fault | check | found in | predictions until found, median | 90 % |\n| --- | --- | --- | --- | --- |")
    drawn = {}
    for seed, (check, name, values, errors, weights, change) in enumerate(faults):
        found = histories(world, world.table(values, errors), n, length, 10 + seed, weights, change)
        median, ninety, share, at = quantiles(found, check)
        print(f"| {name} | `{check}` | {100 * share:.1f} % of {n} | {median} | {ninety} |", flush=True)
        drawn.setdefault(check, []).append((name.partition(" of the money")[0].replace("5 % diverted from a provider of",
                                                                                      "share"), at, n))
    if args.svg:
        for check, lines in drawn.items():
            curve(os.path.join(args.svg, f"audit-{check}.svg"), f"{check}: histories found", lines, length)


def speed(build, work, count):
    ledger = os.path.join(work, f"speed-{count}.db")
    if not os.path.exists(ledger):
        subprocess.run([os.path.join(build, "tests/audit/make-ledger"), ledger, str(count), "100", "20"], check=True)
    print("\n| entries | payees | audited | seconds | peak memory |\n| --- | --- | --- | --- | --- |")
    start = time.perf_counter()
    done = subprocess.run(["/usr/bin/time", "-f", "%M", os.path.join(build, "cli/fds"), "audit", "--ledger", ledger,
                           "--quiet", "--json"], check=True, capture_output=True, text=True)
    seconds, report = time.perf_counter() - start, json.loads(done.stdout)
    print(f"| {report['entries']:,} | 100 | {report['audited']:,} | {seconds:.1f} | "
          f"{int(done.stderr.split()[-1]) / 1024:.0f} MiB |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", help="the build folder")
    parser.add_argument("--work")
    parser.add_argument("--honest", type=int, default=1000)
    parser.add_argument("--dishonest", type=int, default=200)
    parser.add_argument("--length", type=int, default=3000)
    parser.add_argument("--svg", help="folder for the power curves")
    parser.add_argument("--speed", type=int, nargs="?", const=1000000, help="time the audit of a ledger instead")
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    work = args.work or os.path.join(build, "trust")
    os.makedirs(work, exist_ok=True)
    if args.speed:
        speed(build, work, args.speed)
        return
    world = World(os.path.join(build, "cli/fds"), os.path.join(build, "src/libfds.so"), work)
    wrong = (world.shares(world.e[0]) - world.shares(world.b[0]))[LEVEL_OF:].mean(0)
    print(f"At fit time {100 * world.level:.1f} of each 100 are misallocated. A provider is paid wrongly by "
          f"{100 * np.abs(wrong).max():.2f} % of all money at most.\n", flush=True)
    simulate(world, args)


if __name__ == "__main__":
    sys.exit(main())
