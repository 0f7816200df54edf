# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the page against its mock server, if this machine can.

usage: run.py modules | page [--shots FOLDER]
Prints TAP.
"""
import os
import sys

from browser import HERE, missing, page_test, skip

what, *more = sys.argv[1:]
needs = ("chromium", "playwright-core", "axe-core") if what == "page" else ()
reason = missing(*needs)
if reason:
    skip(reason)
command = page_test(*more) if what == "page" else ["node", str(HERE / "test_modules.mjs")]
os.execvp(command[0], command)
