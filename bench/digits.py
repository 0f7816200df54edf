"""What the benchmarks of the baselines share: the command, and digits as arrays."""
import gzip
import json
import os
import subprocess
import sys
import time

import numpy as np


def folder_of(fds, data):
    """Where a set in IDX format is: a path, or the name of one that is fetched."""
    if os.path.isdir(data):
        return data
    return subprocess.run([fds, "data", "get", data, "--quiet"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip()


def read_idx(folder, name):
    """An IDX file of bytes: 0, 0, 8, the number of dimensions, each as 4 bytes, the values."""
    path = os.path.join(folder, name)
    opener = open if os.path.exists(path) else gzip.open
    with opener(path if opener is open else path + ".gz", "rb") as file:
        raw = file.read()
    shape = np.frombuffer(raw, ">u4", raw[3], 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(shape)


def read_digits(fds, data):
    """(images, labels) of the training part and of the test part."""
    folder = folder_of(fds, data)
    return [(read_idx(folder, f"{part}-images-idx3-ubyte"), read_idx(folder, f"{part}-labels-idx1-ubyte"))
            for part in ("train", "t10k")]


def balanced(labels, count, rng):
    """Numbers of count samples, as many of each label as there are, ascending."""
    classes = np.unique(labels)
    share = [count // len(classes) + (i < count % len(classes)) for i in range(len(classes))]
    return np.sort(np.concatenate([rng.permutation(np.flatnonzero(labels == y))[:n]
                                   for y, n in zip(classes, share)]))


def value(fds, *options):
    """What `fds value --json` says, with the seconds that the command took as a whole."""
    command = [fds, "value", *map(str, options), "--json"]
    print("#", *command[1:], file=sys.stderr, flush=True)
    start = time.perf_counter()
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(json.loads(out), wall_s=time.perf_counter() - start)
