# SPDX-License-Identifier: Apache-2.0
"""Random operations on a ledger and on a naive one in Python must agree in every balance and answer.

usage: test_model.py DRIVER [--operations N] [--seed S]
Prints TAP. Needs nothing but Python's standard library.
"""
import argparse
import random
import struct
import sys
from fractions import Fraction

from drive import Driver, Refused, main, test

parser = argparse.ArgumentParser()
parser.add_argument("driver")
parser.add_argument("--operations", type=int, default=4000)
parser.add_argument("--seed", type=int, default=1)
OPTIONS = parser.parse_args()
UNIT = 10000  # units of a cent


def as_float(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Model:
    """What docs/ledger.md says, as slowly and plainly as it can be said."""

    def __init__(self, debts):
        self.debts, self.size = debts, 2
        self.balances = {"cash": 0, "fees": 0}
        self.kinds = {"cash": "platform", "fees": "platform"}
        self.runs, self.keys = [], {}

    def open(self, kind, name):
        if name not in self.balances:
            self.balances[name], self.kinds[name] = 0, kind
            self.size += 1

    def add_run(self, payees, policy, fee):
        for payee in payees:
            self.open("provider", payee)
        self.runs.append(dict(payees=payees, policy=policy, fee=fee,
                              owed=[Fraction(0)] * len(payees)))
        self.size += 1

    def divide(self, run, values, amount):
        """Exact shares; what is left goes to whoever is owed most, unit by unit."""
        values = [Fraction(value) for value in values]
        weights = [max(value, 0) for value in values]
        if run["policy"] == "signed":
            total, sizes = sum(values), sum(map(abs, values))
            if total > 0 and total * 20 >= sizes:
                weights = values
        if sum(weights) == 0:
            weights = [Fraction(1)] * len(values)
        exact = [amount * weight / sum(weights) for weight in weights]
        shares = [share.__floor__() for share in exact]
        owed = [old + share - whole for old, share, whole in zip(run["owed"], exact, shares)]
        for _ in range(amount - sum(shares)):
            first = max(range(len(owed)), key=lambda i: (owed[i], -i))
            owed[first] -= 1
            shares[first] += 1
        run["owed"] = owed
        return shares

    def key(self, owner, key, request, answer=None):
        """(index, answer) of an earlier use, or None."""
        if key == "-" or (owner, key) not in self.keys:
            return None
        first, *rest = self.keys[owner, key]
        if first != request:
            raise Refused("ERR_CONFLICT")
        return rest

    def enter(self, owner, key, request, answer, postings):
        assert sum(postings.values()) == 0
        for name, units in postings.items():
            low = self.kinds[name] == "customer" or (self.kinds[name] == "provider" and
                                                     not self.debts)
            if units < 0 and low and self.balances[name] + units < 0:
                raise Refused("ERR_LIMIT")
        for name, units in postings.items():
            self.balances[name] += units
        if key != "-":
            self.keys[owner, key] = (request, self.size, answer)
        self.size += 1
        return self.size - 1

    def charge(self, order):
        number, customer, amount, key, fingerprint, label, answer, values = order
        if self.kinds.get(customer) != "customer":
            return ("ERR_USAGE", 0, False, "")
        try:
            first = self.key(customer, key, ("prediction", fingerprint))
        except Refused as refusal:
            return (refusal.status, 0, False, "")
        if first:
            return ("OK", first[0], True, first[1])
        if amount < 0 or number >= len(self.runs):
            return ("ERR_USAGE", 0, False, "")
        if self.balances[customer] < amount:
            return ("ERR_LIMIT", 0, False, "")
        run = self.runs[number]
        fee = amount * run["fee"] // 1000000
        shares = self.divide(run, [as_float(value) for value in values], amount - fee)
        postings = {customer: -amount, "fees": fee}
        postings.update(zip(run["payees"], shares))
        return ("OK", self.enter(customer, key, ("prediction", fingerprint), answer, postings),
                False, "")

    def topup(self, name, units, key):
        if units < 1:
            raise Refused("ERR_USAGE")
        first = self.key(name, key, ("topup", units))
        if first:
            return first[0]
        return self.enter(name, key, ("topup", units), None, {name: units, "cash": -units})

    def payout(self, name, minimum, key):
        first = self.key(name, key, ("payout", minimum))
        if first:
            return first[1], first[0]
        paid = max(self.balances[name], 0) // UNIT * UNIT
        if paid < minimum or paid == 0:
            return 0, -1
        return paid, self.enter(name, key, ("payout", minimum), paid, {name: -paid, "cash": paid})

    def correct(self, of, key, postings):
        if of >= self.size:
            raise Refused("ERR_NOT_FOUND")
        if sum(postings.values()):
            raise Refused("ERR_USAGE")
        first = self.key("cash", key, ("correction", of, tuple(postings.items())))
        if first:
            return first[0]
        return self.enter("cash", key, ("correction", of, tuple(postings.items())), None, postings)


def outcome(call):
    try:
        return call()
    except Refused as refusal:
        return refusal.status


def play(debts, operations, seed):
    chance = random.Random(seed)
    driver, model = Driver(), Model(debts)
    driver.ask(f"create l.db debts={'true' if debts else 'false'}")
    driver.ask("open l.db write")
    customers, providers = ["acme", "bolt", "cog"], [f"p{i}" for i in range(9)]
    for name in customers:
        driver.ask(f"account customer {name}")
        model.open("customer", name)
    policies = ["clip", "signed"] if debts else ["clip"]
    for i in range(3):
        payees = chance.sample(providers, chance.randint(1, 9))
        policy, fee = chance.choice(policies), chance.choice([0, 1, 123456, 1000000])
        driver.ask(f"run m{i} {str(i) * 64} {policy} {fee} {' '.join(payees)}")
        model.add_run(payees, policy, fee)

    def key():
        return chance.choice(["-", "-", f"k{chance.randint(0, operations // 3)}"])

    def order():
        run = chance.randint(0, 2)
        spread = chance.choice([1, 1, 1e-3, 1e6])
        values = [chance.choice([0.0, 1.0, chance.gauss(0.2, 1) * spread])
                  for _ in model.runs[run]["payees"]]
        return (run, chance.choice(customers + ["p0"]), chance.choice(
            [0, 1, 7, chance.randint(0, 10 ** 6), chance.randint(0, 10 ** 8), -1]), key(),
            chance.choice([0, 0, 0, 1]), f"label{chance.randint(0, 3)}", f"a{chance.random()}", values)

    done = 0
    while done < operations:
        kind = chance.choice(["charge"] * 6 + ["topup", "payout", "correct", "check"])
        if kind == "charge":
            orders = [order() for _ in range(chance.randint(1, 8))]
            done += len(orders)
            got, wanted = driver.charge(orders), [model.charge(one) for one in orders]
            for one, a, b in zip(orders, got, wanted):
                assert a[0] == b[0] and (a[0] != "OK" or a == b), (one, a, b)
            continue
        done += 1
        name = chance.choice(list(model.kinds) if kind == "payout" else customers)
        if kind == "topup":
            units, k = chance.choice([0, 1, chance.randint(1, 10 ** 8)]), key()
            got = outcome(lambda: int(driver.ask(f"topup {name} {units} {k}")))
            wanted = outcome(lambda: model.topup(name, units, k))
        elif kind == "payout" and name != "cash":
            minimum, k = chance.choice([0, 50000]), key()
            got = outcome(lambda: tuple(map(int, driver.ask(f"payout {name} {minimum} {k}").split())))
            wanted = outcome(lambda: model.payout(name, minimum, k))
        elif kind == "correct":
            names = chance.sample(list(model.kinds), chance.randint(2, 4))
            postings = {n: chance.choice([-1, 1]) * chance.randint(1, 10 ** 6) for n in names}
            if chance.random() < 0.9:
                postings[names[-1]] -= sum(postings.values())
            if 0 in postings.values():
                continue
            of, k = chance.randint(0, model.size), key()
            text = " ".join(f"{n}={u}" for n, u in postings.items())
            got = outcome(lambda: int(driver.ask(f"correct {of} {k} {text}")))
            wanted = outcome(lambda: model.correct(of, k, postings))
        else:
            got, wanted = driver.balances(), model.balances
            if chance.random() < 0.1:
                driver.ask("verify")
            if chance.random() < 0.1:
                driver.ask("close")
                driver.ask("open l.db write")
        assert got == wanted, (kind, got, wanted)
    assert driver.balances() == model.balances
    assert int(driver.ask("size")) == model.size
    assert sum(model.balances.values()) == 0
    driver.ask("verify")
    driver.end()


@test
def random_operations_agree_with_a_naive_ledger():
    play(False, OPTIONS.operations, OPTIONS.seed)


@test
def random_operations_with_debts_agree_with_a_naive_ledger():
    play(True, OPTIONS.operations, OPTIONS.seed + 1)


sys.exit(main())
