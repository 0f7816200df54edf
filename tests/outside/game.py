# SPDX-License-Identifier: Apache-2.0
"""The game of docs/game.md in Python and PyTorch: random numbers, files, sub-models."""
import csv
import glob
import gzip
import hashlib
import itertools
import json
import math
import os
import pathlib

import numpy as np
import torch

TESTS = pathlib.Path(__file__).resolve().parents[1]
MNIST, SHOPS = str(TESTS / "data/mnist"), str(TESTS / "golden/shops.csv")
MASK = 2**64 - 1


# ---- random numbers: docs/game.md ----


def philox(seed, purpose, a=0, b=0):
    """The numbers of a stream: Philox 4x64 with 10 rounds."""
    for block in itertools.count():
        c0, c1, c2, c3, k0, k1 = a, b, 0, block, seed & MASK, purpose
        for _ in range(10):
            x, y = c0 * 0xD2E7470EE14C6C93, c2 * 0xCA5A826395121157
            c0, c1, c2, c3 = (y >> 64) ^ c1 ^ k0, y & MASK, (x >> 64) ^ c3 ^ k1, x & MASK
            k0, k1 = (k0 + 0x9E3779B97F4A7C15) & MASK, (k1 + 0xBB67AE8584CAA73B) & MASK
        yield from (c0, c1, c2, c3)


def unit(stream):
    return (next(stream) >> 11) * 2.0**-53


def below(stream, bound):
    while bound > 1:
        product = next(stream) * bound
        if product & MASK >= 2**64 % bound:
            return product >> 64
    return 0


def shuffle(stream, items):
    items = list(items)
    for i in range(len(items) - 1, 0, -1):
        j = below(stream, i + 1)
        items[i], items[j] = items[j], items[i]
    return items


def balanced(labels, seed):
    """The samples in the order in which they are chosen."""
    key = [next(philox(seed, 3, i)) for i in range(len(labels))]
    rank = [0] * len(labels)
    for label in set(labels):
        own = [i for i in range(len(labels)) if labels[i] == label]
        for place, i in enumerate(sorted(own, key=lambda i: key[i])):
            rank[i] = place
    return sorted(range(len(labels)), key=lambda i: (rank[i], key[i]))


# ---- files: docs/data.md, docs/models.md, docs/table.md, docs/game.md ----


def read_rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def read_idx(name, header):
    with gzip.open(f"{MNIST}/{name}-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def read_mnist():
    """{part: (samples of shape (n, 1, 28, 28), labels)}"""
    parts = {}
    for part, name in (("train", "train"), ("test", "t10k")):
        x = read_idx(f"{name}-images-idx3", 16).reshape(-1, 1, 28, 28).astype(np.float32)
        parts[part] = x / np.float32(255), read_idx(f"{name}-labels-idx1", 8).tolist()
    return parts


def read_shops():
    """The same of a CSV table, which has no test part: samples are (n, features, 1, 1)."""
    rows = read_rows(SHOPS)
    names = [name for name in rows[0] if name not in ("provider", "label")]
    classes = sorted({row["label"] for row in rows})
    x = np.array([[float(row[name]) for name in names] for row in rows], np.float32)
    part = x[:, :, None, None], [classes.index(row["label"]) for row in rows]
    return {"train": part, "test": part}


def read_tensors(path):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__")
    return {name: np.frombuffer(data, "<f4", math.prod(t["shape"]), 8 + size + t["data_offsets"][0])
            .reshape(t["shape"]) for name, t in header.items()}


def read_table(folder):
    """(parameters, {players as a tuple: probabilities of (input, class)})"""
    about = json.loads(pathlib.Path(folder, "table.json").read_text())
    n, shape = about["players"], (about["inputs"], about["classes"])
    record = np.dtype([("id", "<u8"), ("coalition", "u1", (n + 63) // 64 * 8),
                       ("probs", "<f4", shape), ("padding", "u1", -4 * shape[0] * shape[1] % 8),
                       ("checksum", "<u8")])
    rows = np.concatenate([np.fromfile(path, record, offset=64)
                           for path in sorted(glob.glob(f"{folder}/*.seg"))])
    bits = np.unpackbits(rows["coalition"], axis=1, bitorder="little")
    return about["parameters"], {tuple(np.flatnonzero(b).tolist()): p
                                 for b, p, i in zip(bits, rows["probs"], rows["id"]) if i}


class Game:
    """What samples.csv says, with normalised samples; and initial.safetensors, if it is there."""

    def __init__(self, folder, data):
        rows = read_rows(f"{folder}/samples.csv")
        players = [row for row in rows if row["role"] == "player"]
        inputs = [row for row in rows if row["role"] != "player"]
        column = lambda name, rows: np.array([int(row[name]) for row in rows])
        self.sample, self.label, self.player = (
            column(name, players) for name in ("sample", "label", "player"))
        self.input, self.y_input = column("sample", inputs), column("label", inputs)
        self.n = self.player.max() + 1
        x = data["train"][0][self.sample]
        mean = x.mean((0, 2, 3), np.float64, keepdims=True).astype(np.float32).astype(np.float64)
        std = x.std((0, 2, 3), np.float64, keepdims=True).astype(np.float32).astype(np.float64)
        std[std == 0] = 1
        part = "test" if inputs[0]["role"] == "test" else "train"
        self.x = ((x - mean) / std).astype(np.float32)
        self.x_input = ((data[part][0][self.input] - mean) / std).astype(np.float32)
        if os.path.exists(f"{folder}/initial.safetensors"):
            self.initial = read_tensors(f"{folder}/initial.safetensors")

    def checksums(self):
        """samples_sha256 and inputs_sha256 of table.json."""
        sha256 = lambda data: hashlib.sha256(data).hexdigest()
        parts = (self.x.astype("<f4"), self.label.astype("<u2"), self.sample.astype("<u4"),
                 self.player.astype("<u4"))
        return (sha256("".join(sha256(part.tobytes()) for part in parts).encode()),
                sha256(self.x_input.astype("<f4").tobytes()))


# ---- sub-models: docs/game.md ----


def network(text, shape, weights, dtype):
    """The torch.nn.Sequential of a network's text, with these weights."""
    layers, shape = [], tuple(shape)
    for name, _, rest in (word.partition(":") for word in text.split(",")):
        if name == "fc":
            if len(shape) > 1:
                layers, shape = [*layers, torch.nn.Flatten()], (math.prod(shape),)
            layer = torch.nn.Linear(shape[0], int(rest))
        elif name == "conv":
            filters, _, rest = rest.partition("x")
            kernel, _, padding = rest.partition("p")
            layer = torch.nn.Conv2d(shape[0], int(filters), int(kernel), padding=int(padding or 0))
        else:
            layer = torch.nn.ReLU() if name == "relu" else torch.nn.MaxPool2d(int(rest or 2))
        layers.append(layer)
        shape = tuple(layer(torch.zeros(1, *shape)).shape[1:])
    model = torch.nn.Sequential(*layers)
    model.load_state_dict({name: torch.tensor(w) for name, w in weights.items()})
    return model.to(dtype)


def has_converged(losses, about):
    """Whether `retrain` ends after epochs with these losses."""
    best, waited = math.inf, 0
    for loss in losses:
        fell = loss < best - about["min_delta"]
        best, waited = (loss, 0) if fell else (best, waited + 1)
    return losses[-1] < about["loss_bound"] or waited >= about["patience"]


def retrain(game, about, coalition, dtype):
    """The probabilities of the network that is trained on the samples of the coalition."""
    model = network(about["network"], about["shape"], game.initial, dtype)
    adam = torch.optim.Adam(model.parameters(), about["lr"], (about["beta1"], about["beta2"]),
                            about["epsilon"], about["weight_decay"])
    x, y = torch.tensor(game.x, dtype=dtype), torch.tensor(game.label)
    own, losses = np.flatnonzero(np.isin(game.player, coalition)).tolist(), []
    while own and len(losses) < about["epochs"]:
        key = {i: next(philox(about["seed"], 2, len(losses), int(game.sample[i]))) for i in own}
        order = sorted(own, key=key.get)
        losses.append(0)
        for first in range(0, len(order), about["batch"]):
            batch = order[first:first + about["batch"]]
            loss = torch.nn.functional.cross_entropy(model(x[batch]), y[batch])
            adam.zero_grad()
            loss.backward()
            adam.step()
            losses[-1] += loss.item() * len(batch) / len(order)
        if about["kind"] == "retrain" and has_converged(losses, about):
            break
    with torch.no_grad():
        return torch.softmax(model(torch.tensor(game.x_input, dtype=dtype)), 1).numpy()
