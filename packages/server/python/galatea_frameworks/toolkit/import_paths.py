"""Sets the import path of a script."""

from __future__ import annotations

import os
import sys

from . import shared_libraries

# Directory of replacements for SageMaker's packages. They are used only if the real packages are not installed.
_OFFERED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "offered")


# The path of the model in SageMaker's containers.
_MODEL_PATH = "/opt/ml/model"


def enter(model_dir: str, parameters: dict[str, str]) -> None:
    """Sets the import path.

    The path contains the directory of SAGEMAKER_SUBMIT_DIRECTORY, then the archive's `code` directory, then the archive itself.
    `parameters` has `code_dir`, the unpacked submit directory, and `packages_dir`, the directory of the script's requirements.
    """
    own = [parameters.get("code_dir"), os.path.join(model_dir, "code"), parameters.get("packages_dir")]
    sys.path[:0] = [path for path in own if path is not None and os.path.isdir(path)]
    sys.path += [model_dir, _OFFERED]
    # SageMaker's toolkit sets this environment variable, too.
    os.environ["SM_MODEL_DIR"] = model_dir
    shared_libraries.provide(model_dir)


def explain(error: BaseException) -> None:
    """Adds the correct model path to the error of a script that used SageMaker's path, which does not exist on this machine."""
    name = getattr(error, "filename", None)
    if not isinstance(error, OSError) or not isinstance(name, str) or os.path.exists(_MODEL_PATH):
        return
    if name == _MODEL_PATH or name.startswith(_MODEL_PATH + "/"):
        error.strerror = (
            "%s (the model does not lie in %s here: that needs a server that runs as root or a kernel with unprivileged user namespaces: "
            "use model_dir, which model_fn is given, or the variable SM_MODEL_DIR)" % (error.strerror, _MODEL_PATH)
        )
