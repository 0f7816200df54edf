#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A worker for fds: logistic regression by scikit-learn (docs/external.md).

    fds value DATA --utility "command:/usr/bin/python3 examples/workers/logistic.py --C 0.5"
"""
import argparse
import hashlib
import json
import struct
import sys

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression


def receive():
    """The fields and the tensors of the next message; ends the program when there is none."""
    length = sys.stdin.buffer.read(8)
    if len(length) < 8:
        sys.exit(0)
    blob = sys.stdin.buffer.read(struct.unpack("<Q", length)[0])
    head = struct.unpack("<Q", blob[:8])[0]
    header = json.loads(blob[8:8 + head])
    fields = header.pop("__metadata__")
    return fields, {name: np.frombuffer(blob[8 + head:][slice(*about["data_offsets"])], "<i4")
                    for name, about in header.items()}


def send(fields, probabilities=None):
    header, data = {"__metadata__": fields}, b""
    if probabilities is not None:
        data = probabilities.astype("<f4").tobytes()
        header["probabilities"] = {"dtype": "F32", "shape": probabilities.shape,
                                   "data_offsets": [0, len(data)]}
    text = json.dumps(header).encode()
    blob = struct.pack("<Q", len(text)) + text + data
    sys.stdout.buffer.write(struct.pack("<Q", len(blob)) + blob)
    sys.stdout.buffer.flush()


parser = argparse.ArgumentParser()
parser.add_argument("--C", type=float, default=1.0)
args = parser.parse_args()
hello, _ = receive()
folder, classes = hello["folder"], int(hello["classes"])
samples, labels, inputs = (np.load(f"{folder}/{name}.npy") for name in ("samples", "labels", "inputs"))
samples, inputs = samples.reshape(len(samples), -1), inputs.reshape(len(inputs), -1)
program = hashlib.sha256(open(__file__, "rb").read()).hexdigest()[:16]
send({"type": "ready", "protocol": "1", "name": "logistic regression",
      "fingerprint": f"{program} scikit-learn {sklearn.__version__}"})
while True:
    question, tensors = receive()
    chosen = tensors["samples"]
    model = LogisticRegression(C=args.C, max_iter=500, random_state=int(question["seed"]))
    model.fit(samples[chosen], labels[chosen])
    answer = np.zeros((len(inputs), classes))
    answer[:, model.classes_] = model.predict_proba(inputs)
    send({"type": "answer", "id": question["id"]}, answer)
