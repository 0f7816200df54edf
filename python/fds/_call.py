# SPDX-License-Identifier: Apache-2.0
"""What every long call has: parameters by name, progress, log, and KeyboardInterrupt."""
from __future__ import annotations

import ctypes as c
import dataclasses
import logging
import os
import signal
import sys
import threading
import warnings
from typing import Any, Callable, Iterator, Mapping, Optional, Union

from . import _lib

log = logging.getLogger("fds")

#: A function that is told (stage, done, total), or whether to show a bar; None: on a terminal or in a notebook.
ProgressLike = Union[bool, None, Callable[[str, int, int], Any]]


# ---- parameters ----

@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a job, as the library describes it."""

    name: str
    type: str
    value: Optional[str]
    default: Optional[str]
    help: str
    methods: Optional[str]


# What Python decides by other means: data, files and their columns are arguments, not names.
HIDDEN = {"data", "label", "labels", "provider", "owners", "test_file", "id", "drop", "sep", "seed", "threads",
          "utility", "global", "rows", "summary"}
READING = {"label", "labels", "provider", "owners", "test_file", "id", "drop", "sep", "missing", "categorical", "resize"}


def parameters(job: str = "fit", hidden: bool = False) -> list[Parameter]:
    """The parameters that a job takes by keyword: "fit" (`Explainer`), "value", "explain" or "pay".

    >>> [p.default for p in fds.parameters("fit") if p.name == "adjust"]
    ['counts; gfds: shrink; gfds+: none']
    """
    info = _lib.ParamInfo()
    found: list[Parameter] = []
    name = b"shapley" if job == "value" else job.encode()
    if not _lib.lib().fds_params_describe(name, 0, c.byref(info)):
        raise _lib.UsageError(f"job must be fit, value, explain or pay (got {job!r})")
    while _lib.lib().fds_params_describe(name, len(found), c.byref(info)):
        default = _lib.text_or_none(info.standard) or _lib.text_or_none(info.automatic)
        found.append(Parameter(_lib.text(info.name), _lib.text(info.type), _lib.text_or_none(info.value), default,
                               _lib.explain_text(_lib.text(info.help)), _lib.text_or_none(info.methods)))
    return [p for p in found if hidden or p.name not in HIDDEN]


def check_names(given: Mapping[str, Any], known: set[str], where: str) -> None:
    """Refuses a keyword that does not exist, with the nearest one that does."""
    for name in given:
        if name not in known:
            import difflib
            near = difflib.get_close_matches(name, sorted(known), 1, 0.6)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            raise _lib.UsageError(f"{where} has no parameter `{name}`{hint}")


def quoted(name: str) -> str:
    """As in a list of columns: in quotes if it has a comma or begins with a quote."""
    return '"' + name.replace('"', '""') + '"' if "," in name or name.startswith('"') else name


def as_text(value: Any) -> str:
    """The text of a parameter: True is "true", 0.5 is "0.5", (1, 2) is "1,2"."""
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, (list, tuple)):
        return ",".join(quoted(as_text(item)) for item in value)
    return str(os.fspath(value)) if isinstance(value, os.PathLike) else str(value)


class Params(_lib.Handle):
    """fds_params of a job. None leaves a default as it is."""

    def __init__(self, job: str, given: Mapping[str, Any]) -> None:
        pointer = _lib.lib().fds_params_create(job.encode())
        super().__init__(c.c_void_p(pointer), "fds_params_free")
        for name, value in given.items():
            if value is not None:
                self.set(name, value)

    def set(self, name: str, value: Any) -> None:
        _lib.call("fds_params_set", self, name.encode(), _lib.encode(as_text(value)))

    def get(self, name: str) -> str:
        out = c.create_string_buffer(4096)
        _lib.call("fds_params_get", self, name.encode(), out, len(out))
        return _lib.text(out.value)


def common(random_state: Any, n_jobs: Optional[int]) -> dict[str, Any]:
    """`random_state` and `n_jobs` as the library calls them."""
    if random_state is not None and (isinstance(random_state, bool) or not hasattr(random_state, "__index__")):
        raise _lib.UsageError(f"`random_state` must be a whole number from 0 or None (got {random_state!r}): the same "
                              "seed gives the same values")
    if n_jobs is not None and (isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or n_jobs == 0):
        raise _lib.UsageError(f"`n_jobs` must be a whole number from 1, -1 or None, for one per processor (got "
                              f"{n_jobs!r})")
    return {"seed": 0 if random_state is None else int(random_state),
            "threads": 0 if n_jobs is None or n_jobs < 0 else int(n_jobs)}


# ---- progress ----

class Bar:
    """Progress of one call, shown by tqdm where it is installed, else not at all."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.stage: Optional[str] = None

    def __call__(self, stage: str, done: int, total: int, unit: str = "") -> None:
        if self.bar is None or stage != self.stage:
            self.close()
            with warnings.catch_warnings():  # a notebook without widgets has a plain bar
                warnings.simplefilter("ignore")
                from tqdm.auto import tqdm
            self.stage = stage
            self.bar = tqdm(total=total, desc=stage, unit=f" {unit}", leave=False, delay=0.5)  # not for short ones
        self.bar.update(done - self.bar.n)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None


def has_tqdm() -> bool:
    import importlib.util
    return importlib.util.find_spec("tqdm") is not None


def is_interactive() -> bool:
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


class Call:
    """The events of one call. The library calls back on the thread of the call only.

    While it runs on the main thread, Ctrl-C sets a flag that the next callback sees (the library calls back
    several times a second), so that the library can stop by itself and leave its files whole.
    """

    def __init__(self, progress: ProgressLike = None) -> None:
        show = is_interactive() if progress is None else bool(progress)
        self.bar = Bar() if show and not callable(progress) and has_tqdm() else None
        self.told = progress if callable(progress) else None
        self.raised: Optional[BaseException] = None
        self.events = _lib.Events(_lib.LOG(self._log), _lib.PROGRESS(self._progress), None)

    def _log(self, _user: Any, level: int, raw: bytes) -> None:
        try:
            log.log(logging.WARNING if level else logging.INFO, "%s", _lib.explain_text(_lib.text(raw)))
        except BaseException as why:  # an exception cannot pass through C
            self.raised = self.raised or why

    def _progress(self, _user: Any, at: Any) -> bool:
        try:
            if self.raised is None:
                self._show(at.contents)
        except BaseException as why:
            self.raised = why
        return self.raised is not None

    def _show(self, at: Any) -> None:
        stage = _lib.text(at.stage)
        if self.told is not None:
            self.told(stage, at.done, at.total)
        elif self.bar is not None:
            self.bar(stage, at.done, at.total, _lib.text(at.unit))

    def _interrupt(self, _signal: int, _frame: Any) -> None:
        self.raised = self.raised or KeyboardInterrupt()

    def __enter__(self) -> Any:
        self.old: Any = None
        if (threading.current_thread() is threading.main_thread()
                and signal.getsignal(signal.SIGINT) is signal.default_int_handler):
            self.old = signal.signal(signal.SIGINT, self._interrupt)
        return c.byref(self.events)

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if self.old is not None:
            signal.signal(signal.SIGINT, self.old)
        if self.bar is not None:
            self.bar.close()
        if self.raised is not None:  # instead of "cancelled"
            raise self.raised from None


def chunks(count: int, size: int) -> Iterator[tuple[int, int]]:
    for first in range(0, count, size):
        yield first, min(size, count - first)
