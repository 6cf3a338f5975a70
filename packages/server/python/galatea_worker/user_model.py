"""The model: its class, its object, and the steps of its lifecycle."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from . import current_worker, failures, model_import
from .failures import Refused

if TYPE_CHECKING:
    from typing import Any

_ERROR = 2


def _heed_python_path() -> None:
    """Applies PYTHONPATH in an interpreter that was started to ignore it: a container's variables belong to its model, and this process is
    confined by now.
    """
    if sys.flags.ignore_environment:
        # After the worker's own directory, as in Python itself.
        sys.path[1:1] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]


class UserModel:
    """The model of this process. Its steps raise the model's exceptions."""

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
        """Returns whether it has auto_complete_config."""
        return hasattr(self._class, "auto_complete_config")

    def completed(self, config: dict[str, Any]) -> dict[str, Any]:
        """Returns the configuration from its auto_complete_config."""
        from triton_python_backend_utils import ModelConfig

        completed = self._class.auto_complete_config(ModelConfig(json.dumps(config)))
        if not isinstance(completed, ModelConfig):
            raise Refused(
                "auto_complete_config function in model '%s' must return a valid pb.ModelConfig object. (found type '%s')"
                % (config.get("name", ""), type(completed))
            )
        return completed.as_dict()

    def check(self, path: str) -> None:
        """Raises Refused for a class that cannot execute."""
        if not hasattr(self._class, "execute"):
            raise Refused("Python model %s does not implement `execute` method." % path)

    def initialize(self, arguments: dict[str, str]) -> Any:
        """Creates the object; returns the method that executes batches."""
        made = self._class()
        if hasattr(made, "initialize"):
            made.initialize(arguments)
        self._object = made
        return made.execute

    @property
    def is_up(self) -> bool:
        """True after initialize and before finalize."""
        return self._object is not None

    def imported(self) -> list[str]:
        """Returns the names of the modules of the model's environment that the model has imported."""
        return model_import.environment_modules(self._known_modules)

    def finalize(self) -> None:
        """Finalizes the model. Its exceptions are only logged, as in Triton."""
        made, self._object = self._object, None
        if made is not None and hasattr(made, "finalize"):
            try:
                made.finalize()
            except BaseException as error:  # noqa: BLE001
                current_worker.log(_ERROR, "finalize: " + failures.describe(error), __file__, 0)
        sys.stdout.flush()
        sys.stderr.flush()
