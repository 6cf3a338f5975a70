"""Controls the threads that numerical libraries start by themselves, when they are loaded or at their first use.

A zygote forks only while it has one thread, so its imports are limited to one. When it forks, its variables have the operator's values
again, so that libraries which a model imports read those, or the values that the model set before. Libraries imported ahead have read
their variables already: the worker sets their threads once the model's module has run.
"""

from __future__ import annotations

import ctypes
import os

_OPENBLAS_SYMBOLS = (
    "scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads",
)  # fmt: skip
_OPENBLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
_VARIABLES = (*_OPENBLAS_VARIABLES, "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def limit() -> dict[str, str | None]:
    """Limits libraries to one thread from now on; returns the argument of `restore`."""
    before = {variable: os.environ.get(variable) for variable in _VARIABLES}
    for variable in _VARIABLES:
        os.environ[variable] = "1"
    return before


def restore(before: dict[str, str | None]) -> None:
    """Restores the variables."""
    for variable, value in before.items():
        if value is None:
            del os.environ[variable]
        else:
            os.environ[variable] = value


class Pools:
    """The thread pools of loaded libraries, found in the zygote; each worker sets its own."""

    def __init__(self) -> None:
        self._pools = []
        with open("/proc/self/maps") as maps:
            paths = {line.split(None, 5)[5].strip() for line in maps if line.count("/")}
        for path in sorted(paths):
            name = os.path.basename(path)
            if "openblas" in name:
                # One thread by default: threads of a pool cost each worker memory whether it multiplies or not.
                self._find(path, _OPENBLAS_SYMBOLS, _OPENBLAS_VARIABLES, 1)
            elif name.startswith(("libgomp", "libiomp", "libomp")):
                self._find(path, ("omp_set_num_threads",), ("OMP_NUM_THREADS",), len(os.sched_getaffinity(0)))

    @classmethod
    def none(cls) -> Pools:
        """Returns an object without pools: whatever the variables are, no thread is started."""
        pools = cls.__new__(cls)
        pools._pools = []
        return pools

    def _find(self, path: str, symbols: tuple[str, ...], variables: tuple[str, ...], threads: int) -> None:
        library = ctypes.CDLL(path)
        for symbol in symbols:
            if hasattr(library, symbol):
                self._pools.append((getattr(library, symbol), variables, threads))
                return

    def adjust(self) -> None:
        """Sets the pools by the current variables."""
        for set_threads, variables, threads in self._pools:
            for variable in variables:
                value = os.environ.get(variable, "")
                if value.isdigit() and int(value) > 0:
                    threads = int(value)
                    break
            if threads != 1:
                set_threads(ctypes.c_int(threads))
