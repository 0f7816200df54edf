# SPDX-License-Identifier: Apache-2.0
"""Tests in Python that speak TAP: mark functions with @test, end with sys.exit(main())."""
import os
import tempfile
import traceback

TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Skip(Exception):
    """This machine cannot show what the test is about."""


def main():
    """Runs each test in an empty folder of its own; returns the exit code."""
    print(f"1..{len(TESTS)}")
    failures = 0
    for number, function in enumerate(TESTS, 1):
        name = function.__name__.replace("_", " ")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                function()
                print(f"ok {number} - {name}", flush=True)
            except Skip as reason:
                print(f"ok {number} - {name} # SKIP {reason}", flush=True)
            except Exception:
                failures += 1
                print(f"not ok {number} - {name}", flush=True)
                for line in traceback.format_exc().rstrip().split("\n"):
                    print(f"# {line}", flush=True)
            os.chdir("/")
    return 1 if failures else 0
