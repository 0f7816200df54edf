#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Divides the training digits of a folder in IDX format among providers: lines "sample,provider" for --owners.

usage: owners.py FOLDER PROVIDERS > owners.csv
Provider i of n gets digits in proportion to i, so that the largest has n times as many as the smallest, and four times
as many of its own digit, i modulo 10, as of others. Needs nothing but Python.
"""
import gzip
import pathlib
import random
import sys

folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
plain, packed = (folder / f"train-labels-idx1-ubyte{end}" for end in ("", ".gz"))
labels = (plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes()))[8:]
weights = [[i * (4 if i % 10 == label else 1) for i in range(1, count + 1)] for label in range(10)]
names = [f"clinic {i:0{len(str(count))}}" for i in range(1, count + 1)]
draw = random.Random(0)
for sample, label in enumerate(labels):
    print(f"{sample},{draw.choices(names, weights[label])[0]}")
