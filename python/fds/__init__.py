# SPDX-License-Identifier: Apache-2.0
"""fds: what each sample or provider of training data contributed to a prediction.

    ex = fds.Explainer(LogisticRegression(), run="digits.run").fit(X, y, inputs=others)
    v = ex.explain(new)                                   # values, standard errors, names
    fds.pay(v, amount="100.00")                           # the same as money
    fds.value(X, y, Xtest, ytest, model=..., method="banzhaf")
    fds.audit(X, y).suspects                              # labels that are probably wrong

docs/python.md describes the package.
"""
from . import _lib
from ._call import Parameter, parameters
from ._lib import (CancelledError, ConflictError, CorruptError, DivergedError, Error, ExternalError, FileError,
                   FormatError, LimitError, NotFoundError, OutOfMemoryError, ShapeError, UnsupportedError, UsageError)
from .audit import Audit, audit
from .data import Dataset, get_data, open_data
from .explainer import Explainer, Run
from .models import TorchModel, torch_model
from .payment import pay
from .result import Result, Value
from .valuation import methods, value


def version() -> str:
    """The version of the library."""
    return _lib.text(_lib.lib().fds_version())


__all__ = ["Audit", "CancelledError", "ConflictError", "CorruptError", "Dataset", "DivergedError", "Error", "Explainer",
           "ExternalError", "FileError", "FormatError", "LimitError", "NotFoundError", "OutOfMemoryError", "Parameter",
           "Result", "Run", "ShapeError", "TorchModel", "UnsupportedError", "UsageError", "Value", "audit", "get_data",
           "methods", "open_data", "parameters", "pay", "torch_model", "value", "version"]
