#!/usr/bin/env python3
"""Counts the single cases of a `meson test` run and closes with `N passed, N failed`.

Usage: tests/summary.py BUILD_FOLDER
"""
import sys
import xml.etree.ElementTree as ET


def main():
    report = ET.parse(sys.argv[1] + "/meson-logs/testlog.junit.xml")
    passed, failed, skipped = 0, [], 0
    for suite in report.iter("testsuite"):
        cases = suite.findall("testcase")
        bad = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
        idle = [c for c in cases if c.find("skipped") is not None]
        # a program that crashed or timed out has said so on the suite, maybe with no case at all
        if int(suite.get("errors", 0)) + int(suite.get("failures", 0)) > 0 and not bad:
            failed.append(suite.get("name"))
        failed += [f"{suite.get('name')}: {c.get('name')}" for c in bad]
        skipped += len(idle)
        passed += len(cases) - len(bad) - len(idle)
    for name in failed:
        print("FAILED", name)
    print(f"{passed} passed, {len(failed)} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
