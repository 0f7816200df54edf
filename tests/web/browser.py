# SPDX-License-Identifier: Apache-2.0
"""Where the tests of the page find node, Chromium and the packages of scripts/deps-web."""
import os
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/web"


def missing(*needs):
    """Why these tests cannot run here, or None."""
    if not shutil.which("node"):
        return "no node: scripts/deps web"
    if "chromium" in needs and not shutil.which("chromium"):
        return "no chromium: scripts/deps web"
    for package in needs:
        if package not in ("chromium",) and not (modules() / "node_modules" / package).is_dir():
            return f"no {package}: scripts/deps-web"
    return None


def modules():
    return pathlib.Path(os.environ.get("FDS_WEB_MODULES", ROOT / "build-web"))


def skip(reason):
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)


def page_test(*more):
    """The command that clicks through the page."""
    return [shutil.which("node"), str(HERE / "test_page.mjs"), "--modules", str(modules()),
            "--chromium", shutil.which("chromium"), *more]
