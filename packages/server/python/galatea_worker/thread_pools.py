"""The threads that numerical libraries start by themselves, when they are loaded or at their first use.

A zygote forks only while it has one thread: what it imports is held to one. Its variables are as the operator exported them again when
it forks, so that what a model imports reads those, or what the model itself set before. What was imported ahead has read them already:
the worker tells it, once the model's module has run.
"""

from __future__ import annotations

import ctypes
import os

_OPENBLAS_SYMBOLS = (
    "scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads",
)  # fmt: skip
_OPENBLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
_HELD = (*_OPENBLAS_VARIABLES, "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def hold() -> dict[str, str | None]:
    """From now on libraries are held to one thread; gives what `let_go` needs."""
    before = {variable: os.environ.get(variable) for variable in _HELD}
    for variable in _HELD:
        os.environ[variable] = "1"
    return before


def let_go(before: dict[str, str | None]) -> None:
    """The variables as they were."""
    for variable, value in before.items():
        if value is None:
            del os.environ[variable]
        else:
            os.environ[variable] = value


class Pools:
    """The pools of what this process has loaded, found in the zygote; each worker sets its own."""

    def __init__(self) -> None:
        self._pools = []
        with open("/proc/self/maps") as maps:
            paths = {line.split(None, 5)[5].strip() for line in maps if line.count("/")}
        for path in sorted(paths):
            name = os.path.basename(path)
            if "openblas" in name:
                # One thread unless somebody asks for more: threads of a pool cost each worker memory whether it multiplies or not.
                self._find(path, _OPENBLAS_SYMBOLS, _OPENBLAS_VARIABLES, 1)
            elif name.startswith(("libgomp", "libiomp", "libomp")):
                self._find(path, ("omp_set_num_threads",), ("OMP_NUM_THREADS",), len(os.sched_getaffinity(0)))

    @classmethod
    def none(cls) -> Pools:
        """No pools: whatever the variables say, no thread is started."""
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
        """To the variables as they are now."""
        for set_threads, variables, threads in self._pools:
            for variable in variables:
                value = os.environ.get(variable, "")
                if value.isdigit() and int(value) > 0:
                    threads = int(value)
                    break
            if threads != 1:
                set_threads(ctypes.c_int(threads))
