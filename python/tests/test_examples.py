# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/ run as their first lines say."""
import pathlib
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def run(name, folder, *arguments):
    done = subprocess.run([sys.executable, EXAMPLES / name, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wrong_labels_have_the_lowest_values(tmp_path):
    flipped, lowest = run("value.py", tmp_path).split("flipped: ")[1].split(" lowest: ")
    flipped, lowest = (set(map(int, text.strip(" []\n").split(","))) for text in (flipped, lowest))
    assert len(flipped & lowest) >= 4


def test_clinics_are_explained_and_paid(tmp_path):
    text = run("explain.py", tmp_path, "figure.png")
    assert "12 players, label" in text and "share" in text
    assert (tmp_path / "figure.png").read_bytes()[1:4] == b"PNG"
