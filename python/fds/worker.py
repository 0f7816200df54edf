# SPDX-License-Identifier: Apache-2.0
"""A worker process: answers for coalitions with a model of the user's, over the protocol of docs/external.md.

The package starts workers by itself. By hand, with a pickled object that has fit and predict_proba:

    fds value DATA --utility "command:python3 -m fds.worker model.pickle"
"""
from __future__ import annotations

import copy
import json
import os
import pickle
import random
import struct
import sys
import traceback
from typing import Any, BinaryIO, Optional

import numpy as np


def receive(file: BinaryIO) -> Optional[tuple[dict[str, str], dict[str, Any]]]:
    """The fields and the tensors of the next message; None when there is none."""
    length = file.read(8)
    if len(length) < 8:
        return None
    blob = file.read(struct.unpack("<Q", length)[0])
    head = struct.unpack("<Q", blob[:8])[0]
    header = json.loads(blob[8:8 + head])
    fields = header.pop("__metadata__")
    return fields, {name: np.frombuffer(blob[8 + head:][slice(*about["data_offsets"])], "<i4")
                    for name, about in header.items()}


def send(file: BinaryIO, fields: dict[str, str], probabilities: Any = None) -> None:
    header: dict[str, Any] = {"__metadata__": fields}
    data = b""
    if probabilities is not None:
        data = np.ascontiguousarray(probabilities, "<f4").tobytes()
        header["probabilities"] = {"dtype": "F32", "shape": list(probabilities.shape), "data_offsets": [0, len(data)]}
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


class Worker:
    """A model with the data that fds has written."""

    def __init__(self, spec: dict[str, Any], hello: dict[str, str]) -> None:
        folder = hello["folder"]
        samples, self.labels, inputs = (np.load(os.path.join(folder, f"{name}.npy"))
                                        for name in ("samples", "labels", "inputs"))
        self.classes = np.asarray(spec["classes"]) if spec["classes"] is not None else np.arange(int(hello["classes"]))
        if len(self.classes) != int(hello["classes"]):
            self.classes = np.arange(int(hello["classes"]))
        self.samples = restore(samples, spec["shape"], spec["dtype"])
        self.inputs = restore(inputs, spec["shape"], spec["dtype"])
        self.model = load_model(spec)

    def answer(self, chosen: Any, seed: int) -> Any:
        seed_all(seed)
        labels = self.classes[self.labels[chosen]]
        model = fresh(self.model, seed)
        fitted = (model.fit(self.samples[chosen], labels, random_state=seed % 2**31)
                  if type(model).__name__ == "TorchModel" else model.fit(self.samples[chosen], labels))
        return predict(fitted if fitted is not None else model, self.inputs, np.unique(labels), self.classes)


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


def main() -> None:
    source, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing but messages may go to standard output
    os.environ["FDS_WORKER"] = "1"
    if len(sys.argv) != 2:
        sys.exit("usage: python3 -m fds.worker MODEL.pickle (started by fds)")
    message = receive(source)
    if message is None:
        return
    try:
        spec = load_spec(sys.argv[1])
        worker = Worker(spec, message[0])
    except Exception as why:
        traceback.print_exc()
        send(answers, {"type": "error", "text": f"{type(why).__name__}: {why}"[:400], "retry": "false"})
        return
    send(answers, {"type": "ready", "protocol": "1", "name": spec["name"],
                   "fingerprint": f"{spec['fingerprint'][:32]} {versions()}"})
    while (question := receive(source)) is not None:
        fields, tensors = question
        try:
            found = worker.answer(tensors["samples"], int(fields["seed"]))
        except Exception as why:
            traceback.print_exc()
            send(answers, {"type": "error", "text": f"{type(why).__name__}: {why}"[:400], "retry": "false"})
            return
        send(answers, {"type": "answer", "id": fields["id"]}, found)


if __name__ == "__main__":
    main()
