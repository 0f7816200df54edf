# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command share: running it and checking what it says.

The program's first argument is the path of fds; FDS_TEST_DATA is the folder with the committed
samples. Needs nothing but Python's standard library.
"""
import gzip
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from tap import Skip, main, test  # noqa: E402, F401

FDS = os.path.abspath(sys.argv[1])
MNIST = os.path.abspath(os.path.join(os.environ["FDS_TEST_DATA"], "mnist"))


def environment():
    """No terminal, and a data folder in which nothing has been fetched."""
    return dict(os.environ, FDS_DATA=os.path.abspath("no-data"), TERM="xterm")


def start(*args, **options):
    # whoever runs the tests may ignore SIGINT, and children would inherit that
    default = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen([FDS, *map(str, args)], env=environment(), stdin=subprocess.DEVNULL,
                            preexec_fn=default, **options)


def fds(*args, code=0, stdout=subprocess.PIPE):
    """Runs the command, checks its exit code; gives (stdout, stderr)."""
    process = start(*args, stdout=stdout, stderr=subprocess.PIPE)
    out, err = ((text or b"").decode() for text in process.communicate(timeout=120))
    assert process.returncode == code, (
        f"fds {' '.join(map(str, args))}: exit code {process.returncode}, not {code}: {err}")
    return out, err


def says(phrase, text):
    """Whether text has the phrase; "--lr 0" is also said by "--lr must be ... (got 0)"."""
    option, _, value = phrase.partition(" ")
    return phrase in text or (option.startswith("--") and f"{option} must be " in text and
                              f"(got {value})" in text)


def refused(args, code, *phrases):
    """The command fails with this code, prints no result, and one line that says all phrases."""
    out, err = fds(*args, code=code)
    call = f"fds {' '.join(map(str, args))}"
    assert out == "", f"{call} printed {out!r}"
    assert err.count("\n") == 1, f"{call}: not one line: {err!r}"
    for phrase in phrases:
        assert says(phrase, err), f"{call}: no {phrase!r} in {err!r}"


def fds_json(*args):
    return json.loads(fds(*args, "--json")[0])


def check_width(text, limit=80):
    for line in text.split("\n"):
        assert len(line) < limit, f"{len(line)} columns: {line!r}"


def write_csv(path, rows=120, providers=12, classes="abc", column="provider"):
    """Two features that tell the classes apart, and a column of providers."""
    lines = [f"x1,x2,label,{column}"]
    for i in range(rows):
        label = i % len(classes)
        lines.append(f"{label + i / 1000},{-label + i / 700},{classes[label]},shop-{i % providers}")
    pathlib.Path(path).write_text("\n".join(lines) + "\n")


def write_npy(path, rows, kind="<f4"):
    """An array of two dimensions, in the format of numpy.save."""
    shape = f"({len(rows)}, {len(rows[0])})"
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    values = [v for row in rows for v in row]
    pathlib.Path(path).write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() +
                                   struct.pack(f"<{len(values)}{'f' if kind == '<f4' else 'B'}", *values))


def digit(number):
    """Pixels and label of a test digit."""
    with gzip.open(os.path.join(MNIST, "t10k-images-idx3-ubyte.gz")) as file:
        pixels = file.read()[16 + 784 * number:][:784]
    with gzip.open(os.path.join(MNIST, "t10k-labels-idx1-ubyte.gz")) as file:
        return pixels, file.read()[8 + number]


def write_png(path, width, height, pixels, colours=1):
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))

    size = width * colours
    rows = b"".join(b"\0" + pixels[y * size:(y + 1) * size] for y in range(height))
    kind = {1: 0, 3: 2}[colours]
    pathlib.Path(path).write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0,
                                                           0)) +
        chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
