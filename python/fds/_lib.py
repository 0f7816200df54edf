# SPDX-License-Identifier: Apache-2.0
"""libfds by ctypes: where it is, its functions, and its errors as exceptions.

`FUNCTIONS` has one line for each function: what it returns, its name, and its arguments, by the letters of
`TYPES`. tests/test_abi.py compares every line with the C headers. ctypes releases the GIL during a call.
"""
from __future__ import annotations

import ctypes as c
import os
import pathlib
import re
import threading
import weakref
from typing import Any, Callable, Optional, Sequence, Union

FUNCTIONS = """
s fds_version
s fds_status_name i
p fds_params_create s
v fds_params_free p
i fds_params_set p s s e
i fds_params_get p s B z e
b fds_params_describe s z D
i fds_data_open s p E P P e
v fds_dataset_free p
s fds_dataset_source p
z fds_dataset_count p
H fds_dataset_shape p
b fds_dataset_is_image p
b fds_dataset_is_bytes p
u fds_dataset_classes p
u fds_dataset_providers p
u fds_dataset_label p z
u fds_dataset_provider p z
s fds_dataset_class_name p u
s fds_dataset_provider_name p u
s fds_dataset_feature_name p z
s fds_dataset_sample_name p z
v fds_dataset_sample p z F
i fds_dataset_create A P e
i fds_dataset_name_samples p N e
i fds_dataset_set_targets p G e
b fds_dataset_is_regression p
d fds_dataset_target p z
i fds_data_get s s B z E e
N fds_data_known
i fds_problem_open p E P e
i fds_problem_create p p p E P e
i fds_problem_select p p L p E P e
v fds_problem_free p
z fds_problem_players p
s fds_problem_player p z
z fds_problem_tests p
s fds_problem_describe p
i fds_groups_create U z N P e
v fds_groups_free p
i fds_shapley p p s E P e
i fds_baseline p p s E P e
N fds_baseline_methods
s fds_baseline_about s
i fds_value_check p s e
i fds_value_estimate p p s E S e
v fds_text_free p
v fds_result_free p
z fds_result_players p
z fds_result_predictions p
s fds_result_method p
b fds_result_is_mean p
b fds_result_is_exact p
s fds_result_player p z
s fds_result_provider p z
s fds_result_player_label p z
z fds_result_player_samples p z
u fds_result_player_group p z
s fds_result_input p z
s fds_result_label p z
s fds_result_predicted p z
s fds_result_truth p z
d fds_result_confidence p z
d fds_result_empty p z
d fds_result_full p z
d fds_result_check p z z
d fds_result_check_error p z z
b fds_result_is_regression p
d fds_result_player_target p z
d fds_result_target p z
d fds_result_predicted_target p z
d fds_result_true_target p z
s fds_result_describe p
v fds_result_copy p G G
i fds_result_create V P e
i fds_result_save p s e
i fds_fit s p p E S e
i fds_fit_check p e
i fds_fit_estimate p p E S e
i fds_run_open s p P e
v fds_run_free p
s fds_run_describe p
p fds_run_samples p
p fds_problem_train p
i fds_input_pictures p N z p P e
i fds_input_samples p p U z P e
i fds_input_open p p E P e
v fds_input_free p
z fds_input_count p
i fds_run_explain p p p E P e
i fds_run_draw p p p u s e
i fds_audit_create p p E P e
v fds_audit_free p
z fds_audit_count p
z fds_audit_suspects p
b fds_audit_row_at p z p
i fds_audit_json p S e
i fds_audit_save p s s e
i fds_audit_check_folder s e
i fds_pay p p P e
v fds_payment_free p
z fds_payment_payees p
s fds_payment_payee p z
n fds_payment_decimals p
s fds_payment_currency p
l fds_payment_amount p z
l fds_payment_share p z z
d fds_payment_error p z z
d fds_payment_misallocated p z
d fds_payment_value p z z
s fds_payment_rule p z
i fds_payment_save p s e
i fds_payer_create p z P e
v fds_payer_free p
i fds_payer_foresee p p e
i fds_payer_pay p p P e
p fds_payer_total p
i fds_payer_finish p e
"""


class ErrorStruct(c.Structure):
    _fields_ = [("status", c.c_int), ("text", c.c_char * 512)]


class Progress(c.Structure):
    _fields_ = [("stage", c.c_char_p), ("unit", c.c_char_p), ("done", c.c_uint64), ("total", c.c_uint64),
                ("elapsed_s", c.c_double)]


LOG = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p)
PROGRESS = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.POINTER(Progress))


class Events(c.Structure):
    _fields_ = [("log", LOG), ("progress", PROGRESS), ("user", c.c_void_p)]


class ParamInfo(c.Structure):
    _fields_ = [("name", c.c_char_p), ("type", c.c_char_p), ("value", c.c_char_p), ("standard", c.c_char_p),
                ("automatic", c.c_char_p), ("help", c.c_char_p), ("methods", c.c_char_p), ("min", c.c_double),
                ("max", c.c_double), ("is_above", c.c_bool), ("level", c.c_int)]


class Shape(c.Structure):
    _fields_ = [("channels", c.c_uint32), ("height", c.c_uint32), ("width", c.c_uint32)]


NAMES = c.POINTER(c.c_char_p)


class Arrays(c.Structure):
    _fields_ = [("count", c.c_size_t), ("shape", Shape), ("bytes", c.c_void_p), ("floats", c.c_void_p),
                ("labels", c.c_void_p), ("classes", c.c_uint32), ("class_names", NAMES), ("providers", c.c_void_p),
                ("provider_count", c.c_uint32), ("provider_names", NAMES)]


class Selection(c.Structure):
    _fields_ = [("samples", c.c_void_p), ("sample_count", c.c_size_t), ("inputs", c.c_void_p),
                ("input_count", c.c_size_t), ("groups", c.c_void_p)]


class AuditRow(c.Structure):
    _fields_ = [("sample", c.c_size_t), ("line", c.c_size_t), ("id", c.c_char_p), ("provider", c.c_char_p),
                ("label", c.c_char_p), ("predicted", c.c_char_p), ("probability", c.c_double),
                ("label_probability", c.c_double), ("value", c.c_double), ("standard_error", c.c_double),
                ("is_suspect", c.c_bool), ("twin", c.c_size_t), ("reason", c.c_char * 256)]


class Values(c.Structure):
    _fields_ = [("method", c.c_char_p), ("players", c.c_size_t), ("predictions", c.c_size_t),
                ("classes", c.c_uint32), ("class_names", NAMES), ("player_names", NAMES), ("providers", NAMES),
                ("inputs", NAMES), ("player_labels", c.c_void_p), ("player_samples", c.c_void_p),
                ("player_groups", c.c_void_p), ("labels", c.c_void_p), ("values", c.c_void_p),
                ("errors", c.c_void_p), ("is_exact", c.c_bool), ("player_targets", c.c_void_p), ("targets", c.c_void_p)]


TYPES: dict[str, Any] = {
    "v": None, "i": c.c_int, "n": c.c_int, "b": c.c_bool, "u": c.c_uint32, "z": c.c_size_t, "l": c.c_int64,
    "d": c.c_double, "s": c.c_char_p, "p": c.c_void_p, "P": c.POINTER(c.c_void_p), "S": c.POINTER(c.c_void_p),
    "e": c.POINTER(ErrorStruct), "E": c.POINTER(Events), "N": NAMES, "B": c.c_char_p, "D": c.POINTER(ParamInfo),
    "H": Shape, "A": c.POINTER(Arrays), "L": c.POINTER(Selection), "V": c.POINTER(Values),
    "F": c.c_void_p, "G": c.c_void_p, "U": c.c_void_p,
}


# ---- errors ----

class Error(Exception):
    """What the library refused or failed to do. `status` is its name, such as "ERR_FORMAT"."""

    status = "ERR"

    def __reduce__(self) -> Any:
        return type(self), (str(self),)


class UsageError(Error, ValueError):
    """A wrong argument."""
    status = "ERR_USAGE"


class OutOfMemoryError(Error, MemoryError):
    """Not enough memory."""
    status = "ERR_NOMEM"


class FileError(Error, OSError):
    """A file cannot be read or written."""
    status = "ERR_IO"


class NotFoundError(Error, FileNotFoundError):
    """No such file, data set or name."""
    status = "ERR_NOT_FOUND"


class FormatError(Error, ValueError):
    """A file or an array has a wrong form or wrong values."""
    status = "ERR_FORMAT"


class ShapeError(Error, ValueError):
    """Shapes do not agree."""
    status = "ERR_SHAPE"


class LimitError(Error, ValueError):
    """Something is too large."""
    status = "ERR_LIMIT"


class CorruptError(Error):
    """A checksum does not agree."""
    status = "ERR_CORRUPT"


class UnsupportedError(Error, NotImplementedError):
    """Not supported."""
    status = "ERR_UNSUPPORTED"


class DivergedError(Error, ArithmeticError):
    """Training diverged."""
    status = "ERR_DIVERGED"


class CancelledError(Error):
    """A progress callback cancelled the call."""
    status = "ERR_CANCELLED"


class ExternalError(Error):
    """A model in a worker process failed."""
    status = "ERR_EXTERNAL"


class ConflictError(Error):
    """A folder belongs to other parameters, or holds other files."""
    status = "ERR_CONFLICT"


ERRORS: dict[str, type[Error]] = {kind.status: kind for kind in Error.__subclasses__()}
for _kind in (Error, *ERRORS.values()):
    _kind.__module__ = "fds"  # where users find it

# The names of parameters in Python, where they differ from those of the library.
PYTHON_NAMES = {"seed": "random_state", "threads": "n_jobs", "group": "groups"}


def explain_text(text: str) -> str:
    """A message with the names that parameters have in Python, and a worker's command line as what it is."""
    text = re.sub(r'the program exec "\$FDS_PYTHON" -c "\$FDS_START" \w*', "the model", text)
    return re.sub(r"`(\w+)`", lambda match: f"`{PYTHON_NAMES.get(match[1], match[1])}`", text)


# ---- the library ----

_loading = threading.Lock()
_library: Optional[c.CDLL] = None


def candidates() -> list[str]:
    """Where libfds may be: FDS_LIBRARY, the wheel, the build folder of the tree, the system."""
    here = pathlib.Path(__file__).resolve().parent
    given = os.environ.get("FDS_LIBRARY")
    if given:
        return [given]
    inside = [here / "libfds.so.0", here.parents[1] / "build" / "src" / "libfds.so.0"]
    return [*(str(path) for path in inside if path.exists()), "libfds.so.0"]


def lib() -> c.CDLL:
    """The library, loaded at the first use."""
    global _library
    with _loading:
        if _library is None:
            _library = load()
    return _library


def load() -> c.CDLL:
    reasons = []
    for path in candidates():
        try:
            found = c.CDLL(path)
            declare(found)
            return found
        except (OSError, AttributeError) as why:
            reasons.append(str(why))
    raise ImportError("libfds was not found: " + "; ".join(reasons) + ". Install the package anew (pip install "
                      "./python), build the tree (make all), or set FDS_LIBRARY to the path of libfds.so.0")


def declare(library: c.CDLL) -> None:
    for line in FUNCTIONS.split("\n"):
        if line:
            result, name, *arguments = line.split()
            function = getattr(library, name)
            function.restype = TYPES[result]
            function.argtypes = [TYPES[letter] for letter in arguments]


def call(name: str, *arguments: Any) -> None:
    """Calls a function that can fail; raises what it says."""
    error = ErrorStruct()
    if getattr(lib(), name)(*arguments, c.byref(error)):
        status = text(lib().fds_status_name(error.status))
        raise ERRORS.get(status, Error)(explain_text(text(error.text)))


def text(raw: Optional[bytes]) -> str:
    return (raw or b"").decode("utf-8", "replace")


def text_or_none(raw: Optional[bytes]) -> Optional[str]:
    return None if raw is None else text(raw)


def encode(value: Union[str, os.PathLike[str], None]) -> Optional[bytes]:
    if value is None:
        return None
    raw = os.fsencode(value)
    if b"\0" in raw:
        raise UsageError(f"a text must not have a zero character (got {value!r})")
    return raw


def strings(values: Sequence[Optional[str]]) -> Any:
    """An array of C strings. Keep it as long as C reads it."""
    for value in values:
        if value is not None and "\0" in value:
            raise FormatError(f"a name must not have a zero character (got {value!r})")
    raw = [None if value is None else value.encode("utf-8", "surrogatepass") for value in values]
    return (c.c_char_p * (len(raw) + 1))(*raw, None)


def listed(names: Any) -> list[str]:
    """The texts of an array that ends with NULL."""
    found: list[str] = []
    while names[len(found)] is not None:
        found.append(text(names[len(found)]))
    return found


def json_of(name: str, *arguments: Any) -> str:
    """A text that the caller owns, as fds_fit's report."""
    raw = c.c_void_p()
    call(name, *arguments, c.byref(raw))
    try:
        return text(c.cast(raw, c.c_char_p).value)
    finally:
        lib().fds_text_free(raw)


class Handle:
    """An object of the library, freed with the last reference. `keep`: what must live as long."""

    def __init__(self, pointer: c.c_void_p, free: str, *keep: Any) -> None:
        self.pointer, self.keep = pointer, keep
        self._as_parameter_ = pointer  # a call keeps the object that it is given
        self._free = weakref.finalize(self, _release, free, pointer.value, keep)

    @classmethod
    def make(cls, function: str, free: str, *arguments: Any, keep: tuple[Any, ...] = ()) -> Handle:
        """The object that a function hands over by its last argument but the error."""
        out = c.c_void_p()
        call(function, *arguments, c.byref(out))
        return cls(out, free, *keep)


def _release(free: str, pointer: Optional[int], keep: Any) -> None:
    release: Callable[[Any], None] = getattr(lib(), free)
    release(c.c_void_p(pointer))
