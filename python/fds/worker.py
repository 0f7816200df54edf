# SPDX-License-Identifier: Apache-2.0
"""A worker process: answers for coalitions with a model of the user's, over the protocol of docs/external.md.

The package starts workers by itself. By hand, with a pickled object that has fit and predict_proba (for a regression, fit and predict):

    fds value DATA --utility "command:python3 -m fds.worker model.pickle"
"""
from __future__ import annotations

import copy
import json
import math
import os
import pickle
import random
import struct
import sys
import traceback
from typing import Any, BinaryIO, Optional

import numpy as np


LIMIT = 1 << 20  # bytes of a message, besides the numbers of its samples
DTYPES = {"I32": "<i4", "F32": "<f4"}
MOST_CLASSES = 65535  # of fds


class MessageError(ValueError):
    """A message that breaks the protocol. Whatever is wrong with one is found here, before it is used."""


def read_whole(file: BinaryIO, count: int) -> Optional[bytes]:
    """Piece by piece, so that a length that lies takes no memory; None: the input ends before."""
    pieces = []
    while count:
        piece = file.read(min(count, LIMIT))
        if not piece:
            return None
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def receive(file: BinaryIO, limit: int = LIMIT) -> Optional[tuple[dict[str, str], dict[str, Any]]]:
    """The fields and the tensors of the next message, of at most `limit` bytes; None when the input has ended."""
    length = read_whole(file, 8)
    if length is None:
        return None
    size: int = struct.unpack("<Q", length)[0]
    if not 8 <= size <= limit:
        raise MessageError(f"it has {size} bytes, 8 to {limit} are expected")
    blob = read_whole(file, size)
    if blob is None:
        return None
    head: int = struct.unpack("<Q", blob[:8])[0]
    if head > size - 8:
        raise MessageError(f"its header has {head} of {size - 8} bytes")
    try:
        header = json.loads(blob[8:8 + head].decode())
    except (ValueError, RecursionError) as why:
        raise MessageError(f"its header is not JSON: {str(why)[:80]}") from None
    fields = header.pop("__metadata__", None) if isinstance(header, dict) else None
    if not isinstance(fields, dict) or not all(isinstance(value, str) for value in fields.values()):
        raise MessageError("its __metadata__ is not an object of texts")
    data = memoryview(blob)[8 + head:]
    return fields, {name: tensor(name, about, data) for name, about in header.items()}


def tensor(name: str, about: Any, data: memoryview) -> Any:
    """The numbers that an entry of the header describes."""
    about = about if isinstance(about, dict) else {}
    dtype, shape, offsets = (about.get(key) for key in ("dtype", "shape", "data_offsets"))
    is_whole = all(isinstance(v, list) and len(v) <= 8 and all(type(n) is int and n >= 0 for n in v)
                   for v in (shape, offsets))
    if not isinstance(dtype, str) or dtype not in DTYPES or not is_whole or len(offsets) != 2:
        raise MessageError(f"its tensor {name[:40]!r} is not described as the protocol says")
    begin, end = offsets
    if end > len(data) or end - begin != 4 * math.prod(shape):
        raise MessageError(f"its tensor {name[:40]!r} has the bytes {begin} to {end} of {len(data)}, which its shape "
                           "does not fit")
    return np.frombuffer(data[begin:end], DTYPES[dtype]).reshape(shape)


def number(fields: dict[str, str], name: str, limit: int = 2**64 - 1) -> int:
    text = fields.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and int(text) <= limit):
        raise MessageError(f"its field {name} is {text[:40]!r}, a number up to {limit} is expected")
    return int(text)


def expect(fields: dict[str, str], kind: str) -> None:
    if fields.get("type") != kind:
        raise MessageError(f"its type is {fields.get('type', '')[:40]!r}, {kind} is expected")


def send(file: BinaryIO, fields: dict[str, str], answer: Any = None) -> None:
    """answer: (inputs, classes) probabilities, or (inputs,) predictions of a regression."""
    header: dict[str, Any] = {"__metadata__": fields}
    data = b""
    if answer is not None:
        data = np.ascontiguousarray(answer, "<f4").tobytes()
        header["predictions" if answer.ndim == 1 else "probabilities"] = {
            "dtype": "F32", "shape": list(answer.shape), "data_offsets": [0, len(data)]}
    text = json.dumps(header).encode()
    blob = struct.pack("<Q", len(text)) + text + data
    file.write(struct.pack("<Q", len(blob)) + blob)
    file.flush()


def restore(samples: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Samples as the user gave them: their shape, and bytes as bytes."""
    if len(shape) == 3 and samples.ndim == 4 and tuple(samples.shape[1:]) != shape:
        samples = np.moveaxis(samples, 1, 3)  # the channels were last
    samples = samples.reshape(len(samples), *shape) if shape else samples.reshape(len(samples), -1)
    if dtype == "uint8":
        return np.round(samples * 255).astype(np.uint8)
    return np.ascontiguousarray(samples, dtype)


def seed_all(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def fresh(model: Any, seed: int) -> Any:
    """A new, unfitted copy, whose random numbers depend on the seed alone."""
    if "sklearn" in sys.modules:
        copied = sys.modules["sklearn.base"].clone(model, safe=False)
    else:
        copied = copy.deepcopy(model)
    if hasattr(copied, "get_params") and hasattr(copied, "set_params"):
        unset = [name for name, value in copied.get_params(deep=True).items()
                 if (name == "random_state" or name.endswith("__random_state")) and value is None]
        if unset:
            copied.set_params(**dict.fromkeys(unset, seed % 2**32))
    return copied


def fill(found: Any, present: Any, own: Any, classes: Any) -> Any:
    """Probabilities of all classes from those of the model's own (None: not told)."""
    count = len(classes)
    if own is None:
        own = present if found.shape[1] == len(present) else classes
    if found.ndim != 2 or found.shape[1] != len(own):
        raise ValueError(f"predict_proba returns the shape {found.shape}: one column per class is needed, for "
                         f"{len(present)} classes")
    places = {label: i for i, label in enumerate(classes.tolist())}
    answer = np.zeros((len(found), count))
    answer[:, [places[label] for label in np.asarray(own).tolist()]] = found
    absent = [i for i, label in enumerate(classes.tolist()) if label not in set(present.tolist())]
    if absent and answer[:, absent].any():
        answer[:, absent] = 0
        answer /= answer.sum(1, keepdims=True)
    return answer


def predict(model: Any, inputs: Any, present: Any, classes: Any) -> Any:
    if hasattr(model, "predict_proba"):
        found = np.asarray(model.predict_proba(inputs), dtype=np.float64)
        return fill(found, present, getattr(model, "classes_", None), classes)
    labels = np.asarray(model.predict(inputs))
    return np.asarray(labels[:, None] == classes[None, :], dtype=np.float64)


def predict_numbers(model: Any, inputs: Any) -> Any:
    found = np.asarray(model.predict(inputs), dtype=np.float64)
    if found.shape == (len(inputs), 1):
        found = found[:, 0]
    if found.shape != (len(inputs),):
        raise ValueError(f"predict returns the shape {found.shape}: one number per input is needed, ({len(inputs)},)")
    return found


class Worker:
    """A model with the data that fds has written."""

    def __init__(self, spec: dict[str, Any], hello: dict[str, str]) -> None:
        if number(hello, "protocol") != 1 or "folder" not in hello:
            raise MessageError("hello is not of protocol 1, or names no folder")
        folder, classes = hello["folder"], number(hello, "classes", MOST_CLASSES)
        if hello.get("task", "classification") not in ("classification", "regression"):
            raise MessageError(f"its task is {hello['task'][:40]!r}, which this worker does not know")
        self.has_targets = hello.get("task") == "regression"
        samples, self.labels, inputs = (np.load(os.path.join(folder, f"{name}.npy"))
                                        for name in ("samples", "targets" if self.has_targets else "labels", "inputs"))
        self.classes = np.asarray(spec["classes"]) if spec["classes"] is not None else np.arange(classes)
        if len(self.classes) != classes:
            self.classes = np.arange(classes)
        self.samples = restore(samples, spec["shape"], spec["dtype"])
        self.inputs = restore(inputs, spec["shape"], spec["dtype"])
        self.model = load_model(spec)

    def question(self, fields: dict[str, str], tensors: dict[str, Any]) -> tuple[str, Any, int]:
        """The id, the samples and the seed of an `eval`."""
        expect(fields, "eval")
        chosen = tensors.get("samples")
        if chosen is None or chosen.dtype != np.int32 or chosen.ndim != 1 or not len(chosen):
            raise MessageError("eval has no samples")
        if chosen[0] < 0 or chosen[-1] >= len(self.labels) or (np.diff(chosen) <= 0).any():
            raise MessageError(f"the samples of eval are not ascending numbers below {len(self.labels)}")
        return str(number(fields, "id")), chosen, number(fields, "seed")

    def answer(self, chosen: Any, seed: int) -> Any:
        seed_all(seed)
        labels = self.labels[chosen] if self.has_targets else self.classes[self.labels[chosen]]
        model = fresh(self.model, seed)
        fitted = (model.fit(self.samples[chosen], labels, random_state=seed % 2**31)
                  if type(model).__name__ == "TorchModel" else model.fit(self.samples[chosen], labels))
        model = fitted if fitted is not None else model
        if self.has_targets:
            return predict_numbers(model, self.inputs)
        return predict(model, self.inputs, np.unique(labels), self.classes)


def load_model(spec: dict[str, Any]) -> Any:
    for path in spec["path"]:
        if path not in sys.path:
            sys.path.append(path)
    if spec["main"]:  # as multiprocessing does: the classes of the main program are there
        from multiprocessing import spawn
        spawn._fixup_main_from_path(spec["main"])  # type: ignore[attr-defined]
    return pickle.loads(spec["model"])


def load_spec(where: str) -> dict[str, Any]:
    """What the package wrote, or a pickled model alone."""
    path = where if os.path.exists(where) else os.path.join(os.environ.get("FDS_MODELS", "."), where + ".pickle")
    with open(path, "rb") as file:
        found = pickle.load(file)
    if isinstance(found, dict) and "model" in found:
        return found
    import hashlib
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:32]
    return {"model": pickle.dumps(found), "main": None, "path": [], "name": type(found).__name__, "classes": None,
            "shape": (), "dtype": "float64", "fingerprint": digest}


def versions() -> str:
    found = [f"python {sys.version_info.major}.{sys.version_info.minor}", f"numpy {np.__version__}"]
    for name, title in (("sklearn", "scikit-learn"), ("torch", "torch"), ("xgboost", "xgboost"),
                        ("lightgbm", "lightgbm")):
        if name in sys.modules:
            found.append(f"{title} {getattr(sys.modules[name], '__version__', '?')}")
    return ", ".join(found)[:150]


def serve(source: BinaryIO, answers: BinaryIO, where: str) -> None:
    """Answers until the input ends. Whatever goes wrong is told once, by the message `error`; then it ends too."""
    try:
        message = receive(source)
        if message is None:
            return
        expect(message[0], "hello")
        spec = load_spec(where)
        worker = Worker(spec, message[0])
        send(answers, {"type": "ready", "protocol": "1", "name": spec["name"],
                       "fingerprint": f"{spec['fingerprint'][:32]} {versions()}"})
        limit = LIMIT + 4 * len(worker.labels)
        while (message := receive(source, limit)) is not None:
            name, chosen, seed = worker.question(*message)
            send(answers, {"type": "answer", "id": name}, worker.answer(chosen, seed))
    except BrokenPipeError:
        pass  # fds has gone
    except Exception as why:
        text = f"a message of fds cannot be read: {why}"
        if not isinstance(why, MessageError):
            traceback.print_exc()
            text = f"{type(why).__name__}: {why}"
        send(answers, {"type": "error", "text": text[:400], "retry": "false"})


def main() -> None:
    source, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing but messages may go to standard output
    os.environ["FDS_WORKER"] = "1"
    if len(sys.argv) != 2:
        sys.exit("usage: python3 -m fds.worker MODEL.pickle (started by fds)")
    serve(source, answers, sys.argv[1])


if __name__ == "__main__":
    main()
