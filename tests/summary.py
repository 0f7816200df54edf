#!/usr/bin/env python3
"""Counts the single cases of a `meson test` run and closes with `N passed, N failed`.

Usage: tests/summary.py BUILD_FOLDER STATUS_OF_MESON_TEST

Cases that do not apply are counted as skipped: those with TAP's own SKIP, and one for each line
"# SKIP reason" that a program in C writes (tests/base/scratch.h).

A program that crashes, leaks or times out may fail without a failed case: it counts as one failure.
"""
import json
import os
import re
import sys
import xml.etree.ElementTree as ET


def main():
    logs, status = sys.argv[1] + "/meson-logs/", int(sys.argv[2])
    report = logs + "testlog.junit.xml"
    passed, failed, skipped = 0, [], 0
    suites = ET.parse(report).iter("testsuite") if os.path.exists(report) else []
    for suite in suites:
        marked = len(re.findall(r"^# SKIP ", suite.findtext("system-out", ""), re.M))
        passed, skipped = passed - marked, skipped + marked
        for case in suite.findall("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                failed.append(f"{suite.get('name')}: {case.get('name')}")
            elif case.find("skipped") is not None:
                skipped += 1
            else:
                passed += 1
    if status and os.path.exists(logs + "testlog.json"):
        with open(logs + "testlog.json", encoding="utf-8") as log:
            programs = [json.loads(line) for line in log]
        for program in programs:
            name = program["name"].split(" / ")[-1]
            if program["result"] in ("FAIL", "ERROR", "TIMEOUT", "INTERRUPT") and not any(name in f for f in failed):
                failed.append(f"{name} ({program['result'].lower()}, see above)")
    if status and not failed:
        failed.append(f"a program (meson test ended with {status}; see above)")
    for name in failed:
        print("FAILED", name)
    print(f"{passed} passed, {len(failed)} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
