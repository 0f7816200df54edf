# SPDX-License-Identifier: Apache-2.0
"""Other programs read the exports, check them, and come to the same balances.

usage: test_books.py DRIVER
Prints TAP. hledger, bean-check and ledger are used where they are installed (scripts/deps books).
"""
import csv
import re
import shutil
import subprocess
import sys

from drive import SHA, Driver, Skip, main, test

# names that a format might take for something else, and pairs that must not become one account
CUSTOMERS = ["acme", "Acme", "a:b", "a%3Ab", "(x)", "[x]", "*", "-", "X-acme", "2acme", "x;y", "é", "😀",
             "a-2Dcme", "=1+1", "\"q\"", "a\\b", "!", "@", "\u3042", "A\u0301", "a|b", "a=b", "#", "'"]


def make(driver):
    driver.ask("create l.db")
    driver.ask("open l.db write")
    for i, name in enumerate(CUSTOMERS):
        driver.ask(f"account customer {name}")
        driver.ask(f"topup {name} {10 ** 9 + i} -")
    driver.ask(f"run m {SHA} clip 12345 north south north:west")
    for i in range(30):
        driver.charge([(0, CUSTOMERS[i % len(CUSTOMERS)], 12345 * i, "-", 0, f'l"{i};|{i}', "a",
                        [0.5, 0.25 * i, -0.1])])
    driver.ask("payout north 0 -")
    driver.ask("correct 3 - south=-5 north=5")
    return driver.balances()


def exported(form):
    driver = Driver()
    balances = make(driver)
    driver.ask(f"export {form} out.{form}")
    driver.ask("close")
    driver.end()
    return balances


def need(program):
    if not shutil.which(program):
        raise Skip(f"{program} is not installed")


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def millionths(text):
    whole, _, part = text.partition(".")
    return int(whole + part.ljust(6, "0"))


def expect_same(balances, found):
    """What is owed is negative there; no two accounts are one."""
    wanted = sorted(-units for units in balances.values() if units)
    assert sorted(found.values()) == wanted, (found, balances)
    assert found["Assets:Cash"] == -balances["cash"]
    assert found["Income:Fees"] == -balances["fees"]


@test
def hledger_checks_an_export_and_agrees():
    need("hledger")
    balances = exported("hledger")
    run("hledger", "-f", "out.hledger", "check", "-s")
    out = run("hledger", "-f", "out.hledger", "balance", "--flat", "-O", "csv", "-N")
    rows = list(csv.reader(out.splitlines()))[1:]
    expect_same(balances, {name: millionths(text.split()[0].replace(",", "")) for name, text in rows})


@test
def beancount_checks_an_export():
    need("bean-check")
    balances = exported("beancount")
    run("bean-check", "out.beancount")
    with open("out.beancount") as file:
        lines = re.findall(r"balance (\S+) +(-?[0-9.]+) USD", file.read())
    expect_same(balances, {name: millionths(text) for name, text in lines if float(text)})
    assert len(lines) == len(balances) == len({name for name, _ in lines})


@test
def ledger_reads_an_export_and_agrees():
    need("ledger")
    balances = exported("ledger")
    out = run("ledger", "-f", "out.ledger", "--strict", "balance", "--flat", "--no-total",
              "--balance-format", "%(quantity(scrub(display_total)))\t%(account)\n")
    pairs = [line.split("\t") for line in out.splitlines()]
    expect_same(balances, {name: millionths(text) for text, name in pairs})


@test
def csv_has_every_posting():
    balances = exported("csv")
    found = {}
    with open("out.csv", newline="") as file:
        for row in csv.DictReader(file):
            name = row["account"].removeprefix("'") if row["account"] != "'" else "'"
            found[name] = found.get(name, 0) + millionths(row["amount"])
    assert found == {name: units for name, units in balances.items() if units}, (found, balances)


sys.exit(main())
