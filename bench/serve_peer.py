"""The service that fds serve is measured against: FastAPI, uvicorn, PyTorch and sqlite3.

What a careful engineer would write in Python for the same work: the service model predicts, the explainer
attributes, the money is divided by `clip`, and one row with the shares is committed before the answer.
A free answer has all values and shares. Less than fds does: no standard errors, no log, no balances of
providers, no idempotency keys, no rate limits. A request's body is the picture as raw bytes, so that no
JSON is parsed.

Environment: PEER_WEIGHTS (an .npz with the explainer's layers w0, b0, w1, ...), PEER_MODELS (how many
sub-models the explainer asks; 0: none), PEER_LEDGER (an SQLite file; unset: predictions are free).
"""
import os
import sqlite3

import numpy as np
import torch
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)  # of each process
PRICE, PLAYERS = 10000, 100
weights = np.load(os.environ["PEER_WEIGHTS"])
layers = [(torch.from_numpy(weights[f"w{i}"]), torch.from_numpy(weights[f"b{i}"])) for i in range(len(weights) // 2)]
models = int(os.environ.get("PEER_MODELS", 0))
service = nn.Sequential(
    nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10), nn.Softmax(1))


class Many:
    """So many LeNet-5 at once: convolutions in groups, layers as a batch of matrices."""

    def __init__(self, count):
        self.count = count
        self.conv = [torch.randn(count * 6, 1, 5, 5) / 5, torch.randn(count * 16, 6, 5, 5) / 12]
        self.full = [torch.randn(count, a, b) / a ** 0.5 for a, b in ((400, 120), (120, 84), (84, 10))]

    def __call__(self, x):
        x = F.max_pool2d(F.relu(F.conv2d(x, self.conv[0], padding=2)), 2)
        x = F.max_pool2d(F.relu(F.conv2d(x, self.conv[1], groups=self.count)), 2)
        x = x.view(self.count, 1, 400)
        for i, w in enumerate(self.full):
            x = torch.bmm(x, w)
            x = F.relu(x) if i < 2 else F.softmax(x, 2)
        return x[:, 0]


many = Many(models) if models else None
ledger = None
if "PEER_LEDGER" in os.environ:
    ledger = sqlite3.connect(os.environ["PEER_LEDGER"], isolation_level=None, timeout=60, check_same_thread=False)
    ledger.execute("PRAGMA journal_mode=WAL")
    ledger.execute("PRAGMA synchronous=FULL")
    ledger.execute("CREATE TABLE IF NOT EXISTS balance(customer TEXT PRIMARY KEY, units INTEGER)")
    ledger.execute("CREATE TABLE IF NOT EXISTS entry(idx INTEGER PRIMARY KEY, customer TEXT, amount INTEGER, "
                   "label INTEGER, shares BLOB, vals BLOB)")
    ledger.execute("INSERT OR IGNORE INTO balance VALUES('acme', 1000000000000000)")
app = FastAPI()


def explain(x, label):
    """Values of the players for one picture."""
    with torch.no_grad():
        h = x.view(1, -1)
        if many is not None:
            h = many(x)[:, label].view(1, -1)
        for i, (w, b) in enumerate(layers):
            h = F.linear(h, w, b)
            h = F.relu(h) if i + 1 < len(layers) else h
        return h.view(-1, PLAYERS)[label % (h.numel() // PLAYERS)].numpy()


@app.post("/infer")
async def infer(request: Request):
    x = torch.frombuffer(bytearray(await request.body()), dtype=torch.uint8).float().view(1, 1, 28, 28) / 255
    with torch.no_grad():
        probs = service(x)[0].numpy()
    label = int(probs.argmax())
    values = explain(x, label)
    shares = np.maximum(values, 0)
    shares = shares / max(shares.sum(), 1e-12)
    answer = {"label": str(label), "probabilities": probs.tolist()}
    if ledger is None:
        answer |= {"values": values.tolist(), "shares": shares.tolist()}
    else:
        units = np.floor(shares * PRICE).astype("<i8")
        units[int(shares.argmax())] += PRICE - int(units.sum())
        ledger.execute("BEGIN IMMEDIATE")
        ledger.execute("UPDATE balance SET units = units - ? WHERE customer = 'acme'", (PRICE,))
        row = ledger.execute("INSERT INTO entry(customer, amount, label, shares, vals) VALUES('acme', ?, ?, ?, ?)",
                             (PRICE, label, units.tobytes(), values.tobytes()))
        answer["receipt"] = row.lastrowid
        ledger.execute("COMMIT")
    return JSONResponse(answer)
