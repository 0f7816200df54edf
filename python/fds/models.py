# SPDX-License-Identifier: Apache-2.0
"""Models of the user's as utility functions: how a model reaches worker processes.

A model is written to a file that workers read (`fds.worker`); its name is a checksum of what the model is: its
class, its parameters, the source of classes and functions of the user's. The same model gives the same command
line in another process, so that a table or run can go on there, and another model is told apart.
"""
from __future__ import annotations

import atexit
import functools
import hashlib
import inspect
import os
import pathlib
import pickle
import pickletools
import shutil
import sys
import tempfile
import threading
import types
from typing import Any, Callable, Optional

import numpy as np

from . import _lib
from ._call import log

# The environment has the rest, so that the line, which tables record, is the same everywhere.
COMMAND = 'exec "$FDS_PYTHON" -c "$FDS_START" '
START = "import os, sys; sys.path.append(os.environ['FDS_PACKAGE']); from fds.worker import main; main()"
_folder: Optional[str] = None
_lock = threading.Lock()


# ---- what a model is ----

def describe(item: Any, seen: tuple[int, ...] = ()) -> Any:
    """What a model's answers depend on, as nested lists of texts. Equal models give equal ones."""
    if item is None or isinstance(item, (bool, int, float, complex, str, bytes)):
        return f"{type(item).__name__} {item!r}"
    if id(item) in seen:
        return f"again {seen.index(id(item))}"
    seen = (*seen, id(item))
    if isinstance(item, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(item)
        if array.dtype != object:
            return ["array", str(array.dtype), str(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]
        return ["array", *(describe(value, seen) for value in array.ravel())]
    if isinstance(item, (list, tuple)):
        return [type(item).__name__, *(describe(value, seen) for value in item)]
    if isinstance(item, (set, frozenset)):
        return ["set", *sorted(str(describe(value, seen)) for value in item)]
    if isinstance(item, dict):
        return ["dict", *sorted(([describe(k, seen), describe(v, seen)] for k, v in item.items()), key=str)]
    if isinstance(item, functools.partial):
        return ["partial", describe(item.func, seen), describe(item.args, seen), describe(item.keywords, seen)]
    if isinstance(item, types.ModuleType):
        return f"module {item.__name__}"
    if isinstance(item, types.MethodType):
        return ["method", item.__name__, describe(item.__self__, seen)]
    if isinstance(item, (type, types.FunctionType)):
        return describe_code(item, seen)
    if callable(item) and hasattr(item, "__qualname__"):
        return f"callable {item.__module__}.{item.__qualname__}"
    return describe_object(item, seen)


def describe_object(item: Any, seen: tuple[int, ...]) -> Any:
    if hasattr(item, "get_params"):
        state = item.get_params(deep=False)
    elif hasattr(item, "state_dict"):  # a module of PyTorch
        state = [repr(item), {name: value.detach().cpu().numpy() for name, value in item.state_dict().items()}]
    elif hasattr(item, "__dict__"):
        state = vars(item)
    else:
        try:
            state = pickle.dumps(item, protocol=4)
        except Exception:  # pack says what is wrong with a model that cannot travel
            state = None
    return ["object", describe_code(type(item), seen), describe(state, seen)]


def is_installed(item: Any) -> bool:
    """Whether it belongs to a package whose version stands for its source."""
    path = getattr(sys.modules.get(item.__module__ or ""), "__file__", None) or ""
    return item.__module__ != "__main__" and (not path or "-packages" in path or path.startswith(sys.base_prefix + "/lib"))


def describe_code(item: Any, seen: tuple[int, ...]) -> Any:
    """A class or a function: its name and, unless a package has it, its source."""
    name = f"{item.__module__}.{item.__qualname__}"
    if is_installed(item):
        return f"code {name}"
    try:
        source = inspect.getsource(item)
    except (OSError, TypeError):
        parts = [item] if isinstance(item, types.FunctionType) else [
            value for _, value in sorted(vars(item).items()) if isinstance(value, types.FunctionType)]
        source = repr([(part.__code__.co_code.hex(), [k for k in part.__code__.co_consts if not inspect.iscode(k)],
                        part.__code__.co_names) for part in parts])
    bases = [describe_code(base, seen) for base in getattr(item, "__bases__", ()) if base is not object]
    values = [describe(cell.cell_contents, seen) for cell in getattr(item, "__closure__", None) or ()]
    return ["code", name, source, *bases, *values]


# ---- how it travels ----

def cloud() -> Optional[Any]:
    """cloudpickle, its own package or the copy in joblib, which scikit-learn brings."""
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):
        try:
            return __import__(name, fromlist=["dumps"])
        except ImportError:
            pass
    return None


def refers_to_main(blob: bytes) -> bool:
    return any(argument == "__main__" or (isinstance(argument, str) and argument.startswith("__main__ "))
               for _, argument, _ in pickletools.genops(blob))


def pack(item: Any) -> tuple[bytes, Optional[str]]:
    """The pickle of a model, and the path of the main program if a worker must import that first."""
    reason: Optional[BaseException] = None
    blob = b""
    try:
        blob = pickle.dumps(item, protocol=4)
        if not refers_to_main(blob):
            return blob, None
    except Exception as why:
        reason = why
    by_value = cloud()
    if by_value is not None:
        try:
            return by_value.dumps(item), None
        except Exception as why:
            reason = why
    path = getattr(sys.modules["__main__"], "__file__", None)
    if reason is None and path and os.path.exists(path):
        return blob, os.path.abspath(path)
    raise _lib.UsageError(
        f"the model cannot be sent to worker processes ({reason or 'its class is defined in the main program'}): put "
        "its class into a module of its own, model.py, and import it from there; or install cloudpickle")


def clean_up() -> None:
    if _folder is not None:
        shutil.rmtree(_folder, ignore_errors=True)


def folder() -> str:
    """Where workers of this process find models. The environment tells them."""
    global _folder
    with _lock:
        if _folder is None:
            _folder = tempfile.mkdtemp(prefix="fds-models-")
            atexit.register(clean_up)
        os.environ.update(FDS_MODELS=_folder, FDS_PYTHON=sys.executable, FDS_START=START,
                          FDS_PACKAGE=str(pathlib.Path(__file__).resolve().parents[1]))
    return _folder


def is_model(item: Any) -> bool:
    return hasattr(item, "fit") and (hasattr(item, "predict_proba") or hasattr(item, "predict"))


def check_model(model: Any, has_targets: bool = False) -> None:
    if os.environ.get("FDS_WORKER"):
        raise _lib.UsageError("this is a worker, which imports the main program to find the class of a model: put what "
                              "the program does under  if __name__ == \"__main__\":")
    if isinstance(model, type):
        raise _lib.UsageError(f"model is the class {model.__name__}: give an object, {model.__name__}()")
    if not is_model(model):
        raise _lib.UsageError(f"model must be the text of a network (\"lenet5\"), an object with fit and predict_proba, "
                              f"or fds.torch_model(...) (got {type(model).__name__})")
    kind = getattr(model, "_estimator_type", None)  # of scikit-learn
    if has_targets and (kind == "classifier" or isinstance(model, TorchModel) or not hasattr(model, "predict")):
        raise _lib.UsageError(f"{type(model).__name__} predicts classes, and y has numbers to predict: a regression needs "
                              "an object with fit and predict, such as sklearn.linear_model.Ridge(), or the text of a "
                              "network (\"mlp\"), or utility=\"kernel\"")
    if not has_targets and kind == "regressor":
        raise _lib.UsageError(f"{type(model).__name__} predicts numbers, and y has labels of classes: give a classifier, "
                              "or task=\"regression\"")
    if not has_targets and not hasattr(model, "predict_proba"):
        log.warning("%s has no predict_proba: each of its predictions counts as certain. Probabilities give finer "
                    "values, for example by sklearn.calibration.CalibratedClassifierCV", type(model).__name__)


def identity(model: Any, classes: Any, shape: tuple[int, ...], dtype: str) -> str:
    """A checksum of what workers answer by."""
    about = [describe(model), [str(label) for label in classes], kind_of(classes), shape, dtype]
    return hashlib.sha256(repr(about).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def kind_of(classes: Any) -> str:
    return {"u": "i"}.get(np.asarray(classes).dtype.kind, np.asarray(classes).dtype.kind)


def command(model: Any, classes: Any, shape: tuple[int, ...], dtype: str) -> str:
    """The utility function of a model: "command:..." that starts workers. classes: the labels that it sees;
    shape: of a sample as the user has it, () for a vector; dtype: of the samples."""
    blob, main = pack(model)
    name = identity(model, classes, shape, dtype)
    spec = {"model": blob, "main": main, "path": list(sys.path), "name": model_name(model),
            "classes": np.asarray(classes), "shape": tuple(shape), "dtype": dtype, "fingerprint": name}
    fd, temporary = tempfile.mkstemp(dir=folder())
    with os.fdopen(fd, "wb") as file:
        pickle.dump(spec, file, protocol=4)
    os.replace(temporary, os.path.join(folder(), name + ".pickle"))
    return "command:" + COMMAND + name


def command_again(model: Any, classes: Any, shape: tuple[int, ...], fitted: str) -> str:
    """That of a run which was fitted with the command `fitted`: finds the form in which the model saw samples and
    labels then."""
    check_model(model)
    channels, height, width = shape
    shapes: list[tuple[int, ...]] = [()] if height == width == 1 else [(channels, height, width), (height, width, channels), (height, width),
                                                ()]
    kinds = [classes]
    if set(map(str, classes)) <= {"False", "True"}:
        kinds.append(np.array([str(label) == "True" for label in classes]))
    kinds.append(np.array([str(label) for label in classes]))
    for labels in kinds:
        for form in shapes:
            for dtype in ("float64", "float32", "uint8"):
                if fitted.endswith(" " + identity(model, labels, form, dtype)):
                    return command(model, labels, form, dtype)
    raise _lib.UsageError(f"{type(model).__name__} is not the model that the run was fitted with: its class, its source "
                          "or its parameters differ")


def model_name(model: Any) -> str:
    return str(getattr(model, "name", None) or type(model).__name__)[:150]


# ---- PyTorch ----

class TorchModel:
    """A PyTorch network that is trained anew for every coalition; made by `torch_model`."""

    def __init__(self, build: Callable[..., Any], epochs: int = 10, lr: float = 1e-3, batch: int = 16,
                 optimizer: str = "Adam", weight_decay: float = 0.0) -> None:
        self.build, self.epochs, self.lr, self.batch = build, epochs, lr, batch
        self.optimizer, self.weight_decay = optimizer, weight_decay

    @property
    def name(self) -> str:
        return f"torch {getattr(self.build, '__name__', 'network')}"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        names = ("build", "epochs", "lr", "batch", "optimizer", "weight_decay")
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> TorchModel:
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def fit(self, X: Any, y: Any, random_state: int = 0) -> TorchModel:
        """Trains a new network on the samples, by cross-entropy."""
        import torch
        torch.manual_seed(random_state)
        torch.set_num_threads(1)
        self.classes_ = np.unique(y)
        samples = torch.as_tensor(np.ascontiguousarray(X), dtype=torch.float32)
        labels = torch.as_tensor(np.searchsorted(self.classes_, y), dtype=torch.long)
        self.net = self.build() if not _takes_classes(self.build) else self.build(len(self.classes_))
        last = _outputs(self.net, samples)
        if last < len(self.classes_):
            raise ValueError(f"the network has {last} outputs for {len(self.classes_)} classes")
        optimizer = getattr(torch.optim, self.optimizer)(self.net.parameters(), lr=self.lr,
                                                         weight_decay=self.weight_decay)
        self.net.train()
        for epoch in range(self.epochs):
            order = torch.randperm(len(samples), generator=torch.Generator().manual_seed(random_state + epoch))
            for part in order.split(self.batch):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(self.net(samples[part]), labels[part]).backward()
                optimizer.step()
        return self

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of `classes_`."""
        import torch
        self.net.eval()
        with torch.no_grad():
            logits = self.net(torch.as_tensor(np.ascontiguousarray(X), dtype=torch.float32))
            return torch.softmax(logits[:, :len(self.classes_)].double(), 1).numpy()


def _takes_classes(build: Callable[..., Any]) -> bool:
    try:
        needed = [p for p in inspect.signature(build).parameters.values() if p.default is p.empty]
    except (TypeError, ValueError):
        return False
    return len(needed) == 1


def _outputs(net: Any, samples: Any) -> int:
    import torch
    net.eval()
    with torch.no_grad():
        return int(net(samples[:1]).shape[1])


def torch_model(build: Callable[..., Any], *, epochs: int = 10, lr: float = 1e-3, batch: int = 16,
                optimizer: str = "Adam", weight_decay: float = 0.0) -> TorchModel:
    """A PyTorch network as a model.

    build: a function that returns a new torch.nn.Module with one output per class; it may take the number of
    classes. It is called once per coalition, with PyTorch's random numbers seeded. The network is trained by
    cross-entropy, with the optimizer of that name in torch.optim.

    >>> def build():
    ...     import torch
    ...     return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    >>> model = fds.torch_model(build, epochs=20, lr=0.01)
    """
    if not callable(build):
        raise _lib.UsageError("torch_model needs a function that returns a new network, not a network: its weights "
                              "must be new for every coalition")
    if hasattr(build, "state_dict"):
        raise _lib.UsageError("torch_model needs a function that returns a new network: write lambda: Net()")
    return TorchModel(build, epochs, lr, batch, optimizer, weight_decay)
