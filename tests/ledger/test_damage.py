# SPDX-License-Identifier: Apache-2.0
"""A flipped bit or a cut of the file: it is found, or the ledger says the same as before.

usage: test_damage.py DRIVER [--flips N] [--seed S]
Prints TAP. Needs nothing but Python's standard library.
"""
import argparse
import os
import random
import sys

from drive import SHA, Driver, Refused, main, test

parser = argparse.ArgumentParser()
parser.add_argument("driver")
parser.add_argument("--flips", type=int, default=600)
parser.add_argument("--seed", type=int, default=1)
OPTIONS = parser.parse_args()


def make():
    driver = Driver()
    driver.ask("create l.db")
    driver.ask("open l.db write")
    driver.ask("account customer acme")
    driver.ask("topup acme 1000000000 t")
    driver.ask(f"run m {SHA} clip 1000 north south west")
    for first in range(0, 40, 8):
        driver.charge([(0, "acme", 1000 + i, f"k{i}" if i % 2 else "-", 0, f"l{i % 3}", f"a{i}",
                        [0.5, 0.25, 0.1 * i]) for i in range(first, first + 8)])
    driver.ask("payout north 0 p")
    driver.ask("correct 8 c south=-5 west=5")
    dumped = driver.ask("dump")
    driver.ask("close")
    return driver, dumped


def look(driver, path):
    """What a damaged file says, None if the damage is found."""
    try:
        driver.ask(f"open {path} read")
    except Refused:
        return None
    try:
        driver.ask("verify")
        return driver.ask("dump")
    except Refused as refusal:
        assert refusal.status in ("ERR_CORRUPT", "ERR_IO", "ERR_NOMEM", "ERR_FORMAT"), refusal
        return None
    finally:
        driver.ask("close")


@test
def a_flipped_bit_is_found_or_changes_nothing():
    driver, dumped = make()
    with open("l.db", "rb") as file:
        whole = file.read()
    assert look(driver, "l.db") == dumped
    chance, found = random.Random(OPTIONS.seed), 0
    for _ in range(OPTIONS.flips):
        at, bit = chance.randrange(len(whole)), chance.randrange(8)
        damaged = bytearray(whole)
        damaged[at] ^= 1 << bit
        with open("d.db", "wb") as file:
            file.write(damaged)
        said = look(driver, "d.db")
        assert said in (None, dumped), f"byte {at}, bit {bit}: not found, but it says something else"
        found += said is None
        for name in ("d.db-wal", "d.db-journal", "d.db-shm"):
            if os.path.exists(name):
                os.remove(name)
    driver.end()
    print(f"# {found} of {OPTIONS.flips} were found, the others changed nothing")
    assert found > OPTIONS.flips // 10


@test
def a_file_that_was_cut_is_refused():
    driver, dumped = make()
    with open("l.db", "rb") as file:
        whole = file.read()
    for size in range(0, len(whole), 4096 + 37):
        with open("d.db", "wb") as file:
            file.write(whole[:size])
        assert look(driver, "d.db") is None, size
    driver.end()


sys.exit(main())
