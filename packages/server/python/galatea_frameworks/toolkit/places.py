"""Where a script and what it imports lie."""

from __future__ import annotations

import os
import sys

from . import shared_libraries

# What scripts import of the toolkit, where their environment does not have the real one.
_OFFERED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "offered")


# Where SageMaker's containers have the model.
_MODEL_PATH = "/opt/ml/model"


def enter(model_dir: str, parameters: dict[str, str]) -> None:
    """Lets the script be found: in what SAGEMAKER_SUBMIT_DIRECTORY brought, then in the archive's `code`, then in the archive itself.

    `parameters`: `code_dir`, where the former was unpacked, and `packages_dir`, where its requirements were installed.
    """
    own = [parameters.get("code_dir"), os.path.join(model_dir, "code"), parameters.get("packages_dir")]
    sys.path[:0] = [path for path in own if path is not None and os.path.isdir(path)]
    sys.path += [model_dir, _OFFERED]
    # What the toolkit's own variables say to who asks for them.
    os.environ["SM_MODEL_DIR"] = model_dir
    shared_libraries.provide(model_dir)


def explain(error: BaseException) -> None:
    """Where a script looked for its model at a path that there is not on this machine: what to use instead, in the error's own words."""
    name = getattr(error, "filename", None)
    if not isinstance(error, OSError) or not isinstance(name, str) or os.path.exists(_MODEL_PATH):
        return
    if name == _MODEL_PATH or name.startswith(_MODEL_PATH + "/"):
        error.strerror = (
            "%s (the model does not lie in %s here, which takes a server that runs as root or a kernel with user namespaces for everybody: "
            "use model_dir, which model_fn is given, or the variable SM_MODEL_DIR)" % (error.strerror, _MODEL_PATH)
        )
