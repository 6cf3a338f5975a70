"""Checks the operators of a pipeline: whether they are allowed, and whether they need a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import nvidia.dali.backend as dali
from galatea_worker.failures import ModelError

if TYPE_CHECKING:
    from .definition import Definition, Operator

# Operators that contain the address of a function in the process that wrote the file. Running one would call an arbitrary address.
_RUN_ADDRESSES = ("PythonFunction", "NumbaFunc", "JaxFunction", "TorchPythonFunction")


def check(definition: Definition, *, has_gpu: bool) -> None:
    """Raises ModelError, with the operator's name, for a pipeline that cannot run on this device or contains a forbidden operator."""
    # The result includes the operators of plugins.
    on_cpu = frozenset(dali.RegisteredCPUOps())
    on_gpu = frozenset((*dali.RegisteredGPUOps(), *dali.RegisteredMixedOps()))
    for operator in definition.operators:
        reason = _refusal(operator, on_cpu | on_gpu if has_gpu else on_cpu, on_gpu)
        if reason is not None:
            raise ModelError("operator '%s' (%s) %s" % (operator.shown, operator.instance, reason))


def _refusal(operator: Operator, here: frozenset[str], on_gpu: frozenset[str]) -> str | None:
    name = operator.name
    if any(one in name for one in _RUN_ADDRESSES):
        return "calls a function of the process that wrote the file, which does not exist here"
    if "readers__" in name or name.endswith(("Reader", "ReaderResize")):
        return "reads files itself, so its outputs do not depend on requests"
    if name == "DumpImage":
        return "writes files"
    if name in here:
        return None
    if name in on_gpu:
        return "has no implementation for the CPU, on which pipelines run"
    return "is not an operator of this DALI (%s)" % _version()


def _version() -> str:
    import nvidia.dali

    return nvidia.dali.__version__
