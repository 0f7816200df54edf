# SPDX-License-Identifier: Apache-2.0
"""A process that charges is killed at random times: what it has acknowledged is there, exactly once.

usage: test_kill.py DRIVER
Prints TAP. Needs nothing but Python's standard library.
"""
import random
import signal
import sys
import time

from drive import SHA, Driver, Refused, main, test

KILLS = 25


@test
def what_was_acknowledged_survives_a_kill():
    chance = random.Random(5)
    driver = Driver()
    driver.ask("create l.db")
    driver.ask("open l.db write")
    driver.ask("account customer acme")
    driver.ask("topup acme 1000000000 -")
    driver.ask(f"run m {SHA} clip 1000 north south west")
    driver.ask("close")
    driver.end()
    acknowledged, sent = {}, 0  # key: index
    for _ in range(KILLS):
        driver = Driver()
        driver.ask("open l.db write")
        end = time.monotonic() + chance.uniform(0, 0.15)
        # several batches are on their way when it dies
        waiting = []
        while time.monotonic() < end or not waiting:
            keys = [f"k{sent + i}" for i in range(chance.randint(1, 5))]
            sent += len(keys)
            driver.tell(f"charge {len(keys)}", *(
                f"0 acme 100 {key} 0 six answer-{key} 0.5 0.25 0.125" for key in keys))
            waiting.append(keys)
            if len(waiting) > 3:
                note(driver.hear(), waiting.pop(0), acknowledged)
        driver.process.send_signal(signal.SIGKILL)
        try:  # what it had said before it died counts as well
            while waiting:
                note(driver.hear(), waiting.pop(0), acknowledged)
        except Refused:
            pass
        driver.process.wait()
    driver = Driver()
    driver.ask("open l.db write")
    driver.ask("verify")
    size = int(driver.ask("size"))
    assert len(acknowledged) > 20, len(acknowledged)
    assert len(set(acknowledged.values())) == len(acknowledged)
    paid = 0
    for first in range(0, sent, 8):
        keys = [f"k{i}" for i in range(first, min(first + 8, sent))]
        answers = driver.charge([(0, "acme", 100, key, 0, "six", "other", [1, 1, 1]) for key in keys])
        for key, (status, index, is_repeated, answer) in zip(keys, answers):
            assert status == "OK"
            paid += 1
            if key in acknowledged:
                assert is_repeated and index == acknowledged[key], (key, index, acknowledged[key])
                assert answer == f"answer-{key}"
            assert is_repeated == (index < size), (key, index, size)
    balances = driver.balances()
    assert balances["acme"] == 1000000000 - 100 * paid
    assert sum(balances.values()) == 0
    driver.ask("verify")
    driver.end()
    print(f"# {len(acknowledged)} of {sent} charges were acknowledged before {KILLS} kills")


def note(line, keys, acknowledged):
    for key, word in zip(keys, line.split()):
        status, index, *_ = word.split(":")
        assert status == "OK", word
        acknowledged[key] = int(index)


sys.exit(main())
