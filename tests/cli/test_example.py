# SPDX-License-Identifier: Apache-2.0
"""examples/explain.c: what it prints is what the command says.

usage: test_example.py PATH_OF_FDS PATH_OF_EXPLAIN      (FDS_TEST_DATA: the committed samples)
Prints TAP. Needs nothing but Python's standard library.
"""
import os
import re
import subprocess
import sys

from harness import MNIST, digit, fds, fds_json, main, test, write_png

EXPLAIN = os.path.abspath(sys.argv[2])


@test
def the_example_explains_and_pays_for_a_picture():
    fds("fit", MNIST, "--players", 12, "--inputs", 60, "--coalitions", 100, "--model", "logistic",
        "--method", "afds", "--explainer", "linear", "--explainer-epochs", 2, "-o", "run", "-q")
    write_png("0.png", 28, 28, digit(0)[0])
    done = subprocess.run([EXPLAIN, "run", "0.png"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    one = fds_json("explain", "run", "0.png")["inputs"][0]
    assert done.stdout.startswith(f"predicted: {one['predicted']}\n")
    owed = re.findall(r"owed (\d+)\.(\d\d)$", done.stdout, re.M)
    assert len(owed) == 12 and sum(int(a + b) for a, b in owed) == 10000
    for place in one["ranking"]:
        assert re.search(rf"^{place['player']} +label {place['label']} +\{place['value']:+.4f} ± "
                         rf"{place['standard_error']:.4f} ", done.stdout, re.M), place
    for args, code in (([], 2), (["none", "0.png"], 1), (["run", "none.png"], 1)):
        assert subprocess.run([EXPLAIN, *args], capture_output=True).returncode == code


sys.exit(main())
