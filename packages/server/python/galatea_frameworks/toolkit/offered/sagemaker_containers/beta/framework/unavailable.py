"""Names of the package for training jobs and for the package's own server, which are not available here.

Scripts can import these names, but calling them raises an error.
"""

from __future__ import annotations

import sys
import types

_REFUSAL = (
    "sagemaker_containers.beta.framework.%s is not available in this container, which serves a model and runs no training job, "
    "no other program and no server of a script's own. "
    "Keep calls of it below `if __name__ == '__main__':`, and serve by model_fn, input_fn, predict_fn and output_fn."
)


def refused(name: str) -> type:
    """Returns a class with this name. Scripts can import and subclass it; calling it raises NotImplementedError."""

    def __init__(self: object, *arguments: object, **options: object) -> None:
        raise NotImplementedError(_REFUSAL % name)

    return type(name.rpartition(".")[2], (), {"__init__": __init__, "__doc__": _REFUSAL % name})


_MODULES = {
    "entry_point": ("install", "run"),
    "mpi": ("MasterRunner", "WorkerRunner"),
    "process": ("ProcessRunner", "check_error", "create"),
    "runner": ("MPIRunnerType", "ProcessRunnerType", "RunnerType", "get"),
    "server": ("next_safe_port", "start"),
    "trainer": ("train",),
}


def modules(package: str) -> dict[str, types.ModuleType]:
    """Creates the modules that are not available here and registers them in the package."""
    made = {}
    for name, names in _MODULES.items():
        module = types.ModuleType("%s.%s" % (package, name), _REFUSAL % name)
        for each in names:
            setattr(module, each, refused("%s.%s" % (name, each)))
        sys.modules[module.__name__] = module
        made[name] = module
    return made
