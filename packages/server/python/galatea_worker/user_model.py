"""The user's model: its class, its object, and the steps of its lifecycle."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from . import current_worker, failures, model_import
from .failures import ModelError

if TYPE_CHECKING:
    from typing import Any

_ERROR = 2


def _heed_python_path() -> None:
    """Adds PYTHONPATH to the import path.

    The interpreter ignored the variable when it started, because a container's variables belong to its model. By now this process is
    confined.
    """
    if sys.flags.ignore_environment:
        # Inserted after the worker's own directory, which corresponds to Python's own order.
        sys.path[1:1] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


class UserModel:
    """The user's model in this process. Its methods raise the model's exceptions."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._known_modules = len(sys.modules)
        self._object = None
        _heed_python_path()
        for path in body["path"]:
            sys.path.append(path)
        module = model_import.import_model(body["package"], body["module"], body["moduleDirectory"])
        self._class = module.TritonPythonModel

    @property
    def completes(self) -> bool:
        """Returns whether the model defines auto_complete_config."""
        return hasattr(self._class, "auto_complete_config")

    def completed(self, config: dict[str, Any]) -> dict[str, Any]:
        """Returns the configuration from the model's auto_complete_config."""
        from triton_python_backend_utils import ModelConfig

        completed = self._class.auto_complete_config(ModelConfig(json.dumps(config)))
        if not isinstance(completed, ModelConfig):
            raise ModelError(
                "auto_complete_config function in model '%s' must return a valid pb.ModelConfig object. (found type '%s')"
                % (config.get("name", ""), type(completed))
            )
        return completed.as_dict()

    def check(self, path: str) -> None:
        """Raises ModelError if the class has no `execute` method."""
        if not hasattr(self._class, "execute"):
            raise ModelError("Python model %s does not implement `execute` method." % path)

    def initialize(self, arguments: dict[str, str]) -> Any:
        """Creates the model object and initializes it. Returns its `execute` method."""
        made = self._class()
        if hasattr(made, "initialize"):
            made.initialize(arguments)
        self._object = made
        return made.execute

    @property
    def is_up(self) -> bool:
        """True between `initialize` and `finalize`."""
        return self._object is not None

    def imported(self) -> list[str]:
        """Returns the names of modules from the environment that the model has imported."""
        return model_import.environment_modules(self._known_modules)

    def finalize(self) -> None:
        """Calls the model's `finalize`. As in Triton, an exception is only logged."""
        made, self._object = self._object, None
        if made is not None and hasattr(made, "finalize"):
            try:
                made.finalize()
            except BaseException as error:  # noqa: BLE001
                current_worker.log(_ERROR, "finalize: " + failures.describe(error), __file__, 0)
        sys.stdout.flush()
        sys.stderr.flush()
