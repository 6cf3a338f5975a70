"""Controls the threads that numerical libraries start when they are loaded or first used.

A zygote may fork only while it has one thread, so libraries that it imports are limited to one thread. Before it forks, its environment
variables get the operator's values again. Libraries that a model imports then read these values, or values that the model has set.
Libraries that the zygote has imported do not read the variables again, so the worker sets their thread counts after the model's module has
run.
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
    """Limits libraries to one thread from now on. Returns the argument for `restore`."""
    before = {variable: os.environ.get(variable) for variable in _VARIABLES}
    for variable in _VARIABLES:
        os.environ[variable] = "1"
    return before


def restore(before: dict[str, str | None]) -> None:
    """Restores the environment variables that `limit` has changed."""
    for variable, value in before.items():
        if value is None:
            del os.environ[variable]
        else:
            os.environ[variable] = value


class Pools:
    """The thread pools of libraries that the zygote has loaded. Each worker sets their thread counts."""

    def __init__(self) -> None:
        self._pools = []
        with open("/proc/self/maps") as maps:
            paths = {line.split(None, 5)[5].strip() for line in maps if line.count("/")}
        for path in sorted(paths):
            name = os.path.basename(path)
            if "openblas" in name:
                # One thread by default, because each thread of a pool uses memory in every worker, even if the thread is never used.
                self._find(path, _OPENBLAS_SYMBOLS, _OPENBLAS_VARIABLES, 1)
            elif name.startswith(("libgomp", "libiomp", "libomp")):
                self._find(path, ("omp_set_num_threads",), ("OMP_NUM_THREADS",), len(os.sched_getaffinity(0)))

    @classmethod
    def none(cls) -> Pools:
        """Returns an object without pools, for which no variable has an effect."""
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
        """Sets the thread counts of the pools from the current environment variables."""
        for set_threads, variables, threads in self._pools:
            for variable in variables:
                value = os.environ.get(variable, "")
                if value.isdigit() and int(value) > 0:
                    threads = int(value)
                    break
            if threads != 1:
                set_threads(ctypes.c_int(threads))
