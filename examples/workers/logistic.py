#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A worker for fds: logistic regression by scikit-learn (docs/external.md).

    fds value DATA --utility "command:/usr/bin/python3 examples/workers/logistic.py --C 0.5"
"""
import argparse, hashlib, json, struct, sys  # noqa: E401

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression


def check(is_right, fault):
    if not is_right:
        sys.exit(f"logistic.py: a message of fds cannot be used: {fault}")


def receive(kind, most):
    """The fields of the next message and its samples, which are below most; ends the program when there is none."""
    length = sys.stdin.buffer.read(8) or sys.exit(0)
    size = int.from_bytes(length, "little")
    check(len(length) == 8 and 8 <= size <= 2**20 + 4 * most, f"its length is {size}")
    blob = sys.stdin.buffer.read(size)
    try:  # whatever is cut short or not there raises
        head = 8 + int.from_bytes(blob[:8], "little")
        header = json.loads(blob[8:head])
        tensor = header.get("samples", {"dtype": "I32", "shape": [0], "data_offsets": [0, 0]})
        (count,), (start, end), fields = tensor["shape"], tensor["data_offsets"], header["__metadata__"]
        samples = np.frombuffer(blob, "<i4", count, head + start)
        is_right = tensor["dtype"] == "I32" and 0 <= start == end - 4 * count <= end and fields["type"] == kind
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as why:
        check(False, f"it is no {kind}: {type(why).__name__}: {why}")
    check(is_right, f"it is no {kind}, or its tensor is not as the header says")
    check((np.diff(samples, prepend=-1, append=most) > 0).all(), f"its samples are not ascending and below {most}")
    return fields, samples


def send(fields, tensors={}, data=b""):
    text = json.dumps({"__metadata__": fields, **tensors}).encode()
    sys.stdout.buffer.write(struct.pack("<QQ", 8 + len(text) + len(data), len(text)) + text + data)
    sys.stdout.buffer.flush()


parser = argparse.ArgumentParser()
parser.add_argument("--C", type=float, default=1.0)
args, (hello, _) = parser.parse_args(), receive("hello", 0)
check("task" not in hello, "logistic regression needs classes")
samples, labels, inputs = (np.load(f"{hello['folder']}/{name}.npy") for name in ("samples", "labels", "inputs"))
samples, inputs = (array.reshape(len(array), -1) for array in (samples, inputs))
program = hashlib.sha256(open(__file__, "rb").read() + sklearn.__version__.encode()).hexdigest()
send({"type": "ready", "protocol": "1", "name": "logistic regression", "fingerprint": program})
while True:
    question, chosen = receive("eval", len(samples))
    model = LogisticRegression(C=args.C, max_iter=500, random_state=int(question["seed"]))
    model.fit(samples[chosen], labels[chosen])
    answer = np.zeros((len(inputs), int(hello["classes"])), "<f4")
    answer[:, model.classes_] = model.predict_proba(inputs)
    about = {"dtype": "F32", "shape": answer.shape, "data_offsets": [0, answer.nbytes]}
    send({"type": "answer", "id": question["id"]}, {"probabilities": about}, answer.tobytes())
