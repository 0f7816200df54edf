"""Write the folder scans: 1,032 digits of MNIST as the pictures of twelve hospitals, and 300 to test.

usage: python3 scans.py "$(fds data get mnist)"
"""
import pathlib
import sys

import numpy as np
from PIL import Image


def read(name, header):
    return np.fromfile(pathlib.Path(sys.argv[1], name), np.uint8, offset=header)


def write(folder, name, picture):
    folder.mkdir(parents=True, exist_ok=True)
    Image.fromarray(picture).save(folder / name)


x, y = read("train-images-idx3-ubyte", 16).reshape(-1, 28, 28), read("train-labels-idx1-ubyte", 8)
at = iter(np.random.default_rng(3).permutation(len(x)))
for hospital in range(12):
    for _ in range(20 + 12 * hospital):  # 20 pictures, 32, 44, ... 152
        i = next(at)
        write(pathlib.Path("scans/train", f"Hospital {hospital + 1:02d}", str(y[i])), f"scan{i}.png", x[i])
x, y = read("t10k-images-idx3-ubyte", 16).reshape(-1, 28, 28), read("t10k-labels-idx1-ubyte", 8)
for i in range(300):
    write(pathlib.Path("scans/test", str(y[i])), f"t{i}.png", x[i])
