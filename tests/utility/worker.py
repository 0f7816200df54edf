# SPDX-License-Identifier: Apache-2.0
"""A worker of the tests, which can misbehave in many ways (docs/external.md).

usage: worker.py [--fault NAME] [--once FILE] [--sleep S] [--fingerprint TEXT] [--count FILE] [--child]

Answers with the shares of the classes among the coalition's samples, tilted by the number of the
input. The fault happens with every coalition that has sample 0 but not sample 1; with --once only if
FILE does not exist yet, and it is made. --count gets a line for every question. --child starts a
process that must not outlive it. Needs nothing but Python's standard library.
"""
import argparse
import json
import os
import random
import signal
import struct
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--fault", default="")
parser.add_argument("--once", default="")
parser.add_argument("--sleep", type=float, default=0)
parser.add_argument("--fingerprint", default="1")
parser.add_argument("--count", default="")
parser.add_argument("--child", action="store_true")
args = parser.parse_args()


def receive():
    length = sys.stdin.buffer.read(8)
    if len(length) < 8:
        sys.exit(0)
    blob = sys.stdin.buffer.read(struct.unpack("<Q", length)[0])
    size = struct.unpack("<Q", blob[:8])[0]
    header = json.loads(blob[8:8 + size])
    return header["__metadata__"], blob[8 + size:]


def pack(fields, tensors=()):
    header, data = {"__metadata__": fields}, b""
    for name, shape, values in tensors:
        start = len(data)
        data += struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, len(data)]}
    text = json.dumps(header).encode()
    blob = struct.pack("<Q", len(text)) + text + data
    return struct.pack("<Q", len(blob)) + blob


def write(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def numbers(path):
    with open(path, "rb") as file:
        data = file.read()[128:]
    return struct.unpack(f"<{len(data) // 4}i", data)


def answer(chosen, inputs, classes, labels):
    values = []
    for i in range(inputs):
        row = [0.0] * classes
        for sample in chosen:
            row[labels[sample]] += 1 + (7 * i + 3 * labels[sample] + sample) % 5
        values += [value / sum(row) for value in row]
    return values


def is_time(chosen):
    if not args.fault or 0 not in chosen or 1 in chosen or (args.once and os.path.exists(args.once)):
        return False
    if args.once:
        open(args.once, "w").close()
    return True


def misbehave(question, shape, values):
    """Sends a wrong answer, or nothing at all; returns what else is to be sent."""
    fault, fields = args.fault, {"type": "answer", "id": question["id"]}
    if fault == "die":
        sys.exit(3)
    if fault == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if fault == "hang":
        time.sleep(1000)
    if fault == "close":
        os.close(1)
        time.sleep(1000)
    if fault == "flood":
        for i in range(20000):
            print("flood", i, "x" * 80, file=sys.stderr)
    if fault == "nan":
        values[1] = float("nan")
    if fault == "range":
        values[0], values[1] = 1.5, -0.5
    if fault == "sum":
        values[0] += 0.01
    if fault == "missing":  # as a network would answer for a class that it has never seen
        values = [1 / shape[1]] * len(values)
    if fault == "noise":  # so much that two answers, rounded to floats, are hardly ever alike
        change = 0.01 * random.random() * min(values[0], values[1])
        values[0], values[1] = values[0] - change, values[1] + change
    if fault == "id":
        fields["id"] = "99"
    if fault == "type":
        fields["type"] = "reply"
    if fault == "fatal":
        return pack({"type": "error", "retry": "false", "text": "this cannot be learnt"})
    if fault == "retry":
        return pack({"type": "error", "retry": "true", "text": "no licence just now"})
    if fault == "shape":
        return pack(fields, [("probabilities", [shape[1], shape[0]], values)])
    if fault == "tensor":
        return pack(fields, [("answers", shape, values)])
    if fault == "huge":
        return struct.pack("<Q", 1 << 60) + b"x"
    if fault == "print":
        return b"training...\n"
    if fault == "garbage":
        return struct.pack("<Q", 40) + bytes(range(40))
    whole = pack(fields, [("probabilities", shape, values)])
    if fault == "truncated":
        write(whole[:-3])
        sys.exit(0)
    return whole


print("a worker begins", file=sys.stderr)
if args.fault == "exit":
    sys.exit(4)
if args.fault == "babble":
    write(b"hello, world\n")
    time.sleep(1000)
hello, _ = receive()
inputs, classes = int(hello["inputs"]), int(hello["classes"])
labels = numbers(hello["folder"] + "/labels.npy")
if args.child:
    os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "987")
if args.fault == "protocol":
    write(pack({"type": "ready", "protocol": "2", "name": "test", "fingerprint": "1"}))
if args.fault == "nameless":
    write(pack({"type": "ready", "protocol": "1", "name": "", "fingerprint": "1"}))
fingerprint = f"{os.getpid()}" if args.fault == "changing" else args.fingerprint
write(pack({"type": "ready", "protocol": "1", "name": "test", "fingerprint": fingerprint}))
while True:
    question, data = receive()
    chosen = struct.unpack(f"<{len(data) // 4}i", data)
    if args.count:
        with open(args.count, "a") as file:
            file.write(f"{len(chosen)}\n")
    time.sleep(args.sleep)
    shape, values = [inputs, classes], answer(chosen, inputs, classes, labels)
    if is_time(chosen) or args.fault == "noise":
        write(misbehave(question, shape, values))
    else:
        write(pack({"type": "answer", "id": question["id"]}, [("probabilities", shape, values)]))
