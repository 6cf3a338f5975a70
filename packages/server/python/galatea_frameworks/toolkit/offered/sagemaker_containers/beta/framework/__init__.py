"""The modules that scripts for scikit-learn and XGBoost import. Functions that are not implemented raise an error when they are called."""

from galatea_frameworks.toolkit import content_types

import sagemaker_containers

from . import (
    encoders,
    env,
    errors,
    files,
    functions,
    logging,
    mapping,
    modules,
    params,
    transformer,
    unavailable,
    worker,
)

_unavailable = unavailable.modules(__name__)
entry_point = _unavailable["entry_point"]
mpi = _unavailable["mpi"]
process = _unavailable["process"]
runner = _unavailable["runner"]
server = _unavailable["server"]
trainer = _unavailable["trainer"]
training_env = unavailable.refused("training_env")

__all__ = [
    "content_types",
    "encoders",
    "entry_point",
    "env",
    "errors",
    "files",
    "functions",
    "logging",
    "mapping",
    "modules",
    "mpi",
    "params",
    "process",
    "runner",
    "sagemaker_containers",
    "server",
    "trainer",
    "training_env",
    "transformer",
    "worker",
]
