# SPDX-License-Identifier: Apache-2.0
"""Mutated messages for the Python end of the pipe protocol (python/fds/worker.py):

    python3 python/tests/fuzz_worker.py [--frames 1000000] [--seed 0] [--first 0]

Most frames go to the parser. It must read a frame, or raise MessageError. About one in a hundred is part of a whole
dialogue with a worker, which must answer what comes before it, then end with at most one `error`. Anything else is a
failure: another exception, more than a second of computation for a frame, more memory than the limit below.
"""
import argparse
import collections
import contextlib
import io
import json
import os
import pathlib
import pickle
import random
import resource
import struct
import sys
import tempfile
import time

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from fds import worker  # noqa: E402

SAMPLES, CLASSES = 12, 3
MEMORY = 512 << 20  # bytes that fuzzing may add to the process
ODD_TEXTS = ["", "0", "-1", "+7", " 7", "7\n", "1_0", "1e3", "٣", "²", "9" * 19, "9" * 25, "9" * 5000, "nan", "None", "\0",
             "\ud800", "x" * 3000, "eval", "hello", "ready", "EVAL", "error"]
ODD = [None, True, False, 0, 1, -1, 1.5, 2**31, 2**53, 2**63, 2**64, 10**400, float("nan"), float("inf"), "", "4", [], [0],
       [[]], {}, {"a": 1}, [1, 2, 3], [4, 0], [-4, 0], [0, -4], [0, 4.0], [True, 4], ["0", "4"], [0, 2**63], [2**62, 2**62],
       [0] * 9, [2**32, 2**32], *ODD_TEXTS]
ODD_SIZES = [0, 1, 7, 8, 9, 15, 16, 255, 4096, 2**20, 2**20 + 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
ODD_HEADERS = [b"", b"{}", b"[]", b"null", b"1", b'"x"', b"{", b"[" * 40000, b'{"a":' * 30000, b"9" * 5000, b"\xff\xfe{}",
               b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b'{"__metadata__": {}}', b'{"__metadata__": []}', b"NaN",
               b'{"__metadata__": {"type": "eval"}, "__metadata__": 5}', b'{"__metadata__": {"\xff": ""}}', b" " * 9000]


class Shares:
    """Probabilities are the shares of the classes."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares = counts / len(y)
        return self

    def predict_proba(self, X):
        return np.tile(self.shares, (len(X), 1))


def pack(header, data, size=None, head=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    head = len(text) if head is None else head
    size = 8 + len(text) + len(data) if size is None else size
    return struct.pack("<QQ", size, head) + text + data


def hello(folder):
    return {"__metadata__": {"type": "hello", "protocol": "1", "folder": folder, "samples": str(SAMPLES), "players": "12",
                             "inputs": "4", "classes": str(CLASSES), "shape": "2,1,1", "seed": "7"}}, b""


def question(rng):
    chosen = np.array(sorted(rng.sample(range(SAMPLES), rng.randint(1, SAMPLES))), "<i4")
    return {"__metadata__": {"type": "eval", "id": str(rng.randrange(1000)), "seed": "7"},
            "samples": {"dtype": "I32", "shape": [len(chosen)], "data_offsets": [0, 4 * len(chosen)]}}, chosen.tobytes()


def mutated(rng, header, data):
    """A frame with one mistake or a few, or none."""
    size = head = None
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        kind = rng.randrange(12)
        fields = header["__metadata__"] if isinstance(header, dict) and isinstance(header.get("__metadata__"), dict) else {}
        about = header["samples"] if isinstance(header, dict) and isinstance(header.get("samples"), dict) else {}
        if kind == 0:
            size = rng.choice(ODD_SIZES)
        elif kind == 1:
            head = rng.choice(ODD_SIZES)
        elif kind == 2:
            header = rng.choice(ODD_HEADERS)
        elif kind == 3 and fields:
            fields[rng.choice(list(fields))] = rng.choice(ODD)
        elif kind == 4 and fields:
            fields[rng.choice(list(fields))] = rng.choice(ODD_TEXTS)
        elif kind == 5 and fields:
            del fields[rng.choice(list(fields))]
        elif kind == 6 and about:
            about[rng.choice(list(about))] = rng.choice([*ODD, "F32", "I64", "BOOL"])
        elif kind == 7 and about:
            del about[rng.choice(list(about))]
        elif kind == 8 and isinstance(header, dict):
            header[rng.choice(["samples", "__metadata__", "more", "\ud800", ""])] = rng.choice([*ODD, dict(about)])
        elif kind == 9:
            data = rng.choice([b"", data[:-1], data + b"\0", data[::-1], np.array([-1, 2, 2**31 - 1], "<i4").tobytes(),
                               rng.randbytes(len(data)), b"\0" * 100000])
        elif kind == 10 and isinstance(header, dict) and header:
            del header[rng.choice(list(header))]
    frame = pack(header, data, size, head)
    for _ in range(rng.choice([0, 0, 0, 1, 3])):
        at = rng.randrange(len(frame))
        what = rng.randrange(4)
        if what == 0:  # one byte
            frame = frame[:at] + rng.randbytes(1) + frame[at + 1:]
        elif what == 1:  # cut
            frame = frame[:at] or b"\0"
        elif what == 2:  # twice the same
            frame = frame[:at] + frame[at // 2:]
        else:  # one bit
            frame = frame[:at] + bytes([frame[at] ^ 1 << rng.randrange(8)]) + frame[at + 1:]
    return frame


def outcome(call):
    """What a call returns or which MessageError it raises; another exception is a failure."""
    before = time.process_time()
    try:
        found = call()
    except worker.MessageError:
        found = "refused"
    assert time.process_time() - before < 1, "it took more than a second"
    return found


def parse(frame):
    found = outcome(lambda: worker.receive(io.BytesIO(frame), worker.LIMIT + 4 * SAMPLES))
    if found is None or found == "refused":
        return "ended" if found is None else found
    fields, tensors = found
    assert all(type(key) is str and type(value) is str for key, value in fields.items())
    assert all(array.dtype in (np.int32, np.float32) and array.nbytes <= len(frame) for array in tensors.values())
    return "read"


def read_answers(raw):
    """The types of the messages that a worker has written."""
    file, found = io.BytesIO(raw), []
    while (message := worker.receive(file, 1 << 30)) is not None:
        fields, tensors = message
        found.append(fields["type"])
        if found[-1] == "answer":
            (name, answer), = tensors.items()
            assert name == ("predictions" if answer.ndim == 1 else "probabilities")
            assert answer.shape in ((4,), (4, CLASSES))
            assert answer.ndim == 1 or np.abs(answer.sum(1) - 1).max() < 1e-4
        elif found[-1] == "error":
            assert fields["text"] and fields["retry"] == "false"
    assert file.tell() == len(raw)
    return found


def talk(rng, folder):
    """A dialogue of a few messages, one of them mutated. Returns how it ended, and how many frames it took."""
    frames = [hello(folder), *(question(rng) for _ in range(rng.randint(1, 4)))]
    bad = rng.randrange(len(frames))
    stream = b"".join(mutated(rng, *frame) if i == bad else pack(*frame) for i, frame in enumerate(frames))
    answers = io.BytesIO()
    with contextlib.redirect_stderr(io.StringIO()):
        outcome(lambda: worker.serve(io.BytesIO(stream), answers, os.path.join(folder, "model.pickle")))
    types = read_answers(answers.getvalue())
    *before, last = types or ["ended"]
    assert before == ["ready", *["answer"] * (len(before) - 1)][:len(before)], types
    assert last in (("answer", "error") if before else ("ready", "error", "ended")), types
    assert types.count("answer") >= bad - 1, types  # all that came before the mistake
    return last, len(frames)


def data_for_workers(folder):
    rng = np.random.default_rng(0)
    np.save(os.path.join(folder, "samples.npy"), rng.normal(size=(SAMPLES, 2)).astype(np.float32))
    np.save(os.path.join(folder, "labels.npy"), (np.arange(SAMPLES) % CLASSES).astype(np.int32))
    np.save(os.path.join(folder, "inputs.npy"), rng.normal(size=(4, 2)).astype(np.float32))
    with open(os.path.join(folder, "model.pickle"), "wb") as file:
        pickle.dump(Shares(), file)


def fuzz(frames, seed=0, first=0):
    """Counts of what became of that many frames; raises at the first failure, with what repeats it."""
    counts, done = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        data_for_workers(folder)
        while done < frames:
            rng = random.Random(f"{seed} {first + done}")
            try:
                if rng.randrange(100) == 0:
                    how, count = talk(rng, folder)
                    counts[f"dialogues, the last message: {how}"] += 1
                else:
                    header, data = hello(folder) if rng.randrange(4) == 0 else question(rng)
                    count = 1
                    counts[parse(mutated(rng, header, data))] += 1
            except BaseException:
                print(f"failed at: --seed {seed} --first {first + done} --frames 1", file=sys.stderr)
                raise
            done += count
    return done, counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=1000000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    done, counts = fuzz(args.frames, args.seed, args.first)
    print(f"{done} frames, {sum(n for kind, n in counts.items() if kind.startswith('dialogues'))} dialogues, no failure")
    for kind, n in counts.most_common():
        print(f"{n:9} {kind}")


if __name__ == "__main__":
    main()
