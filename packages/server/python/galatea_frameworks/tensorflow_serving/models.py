"""All loaded models and versions of an archive, and their lookup by name."""

from __future__ import annotations

from galatea_worker.failures import ModelError

from . import archive
from .errors import NOT_FOUND, ServingError
from .servable import Servable


class Models:
    """Loaded model versions (servables) by name and version."""

    def __init__(self, root: str, default: str, served_name: str | None, threads: tuple[int, int]) -> None:
        """Loads all models.

        `default` is the model for requests without a name; "" selects the first one. `served_name` is an additional name of that model,
        which is used if the container serves several archives. Raises ModelError.
        """
        found = archive.find_models(root)
        if default and default not in found:
            raise ModelError(
                "SAGEMAKER_TFS_DEFAULT_MODEL_NAME is '%s', and the archive's models are: %s"
                % (default, ", ".join(found))
            )
        self.default = default or next(iter(found))
        self.is_one_of_many = served_name is not None
        self._found = {
            name: {version: Servable(name, version, path, threads) for version, path in sorted(model.versions.items())}
            for name, model in found.items()
        }
        if served_name is not None:
            self._found[served_name] = self._found[self.default]
            self.default = served_name

    def find(self, name: str, version: int | None) -> Servable:
        """Returns the requested version, or the latest one if `version` is None. Raises ServingError with TensorFlow Serving's text."""
        versions = self._found.get(name, {})
        if version is None:
            if not versions:
                raise ServingError("Servable not found for request: Latest(%s)" % name, NOT_FOUND)
            return versions[max(versions)]
        found = versions.get(version)
        if found is None:
            raise ServingError("Servable not found for request: Specific(%s, %d)" % (name, version), NOT_FOUND)
        return found

    def versions(self, name: str, version: int | None) -> list[int]:
        """Returns the available versions, the latest first. Raises ServingError."""
        found = sorted(self._found.get(name, ()), reverse=True)
        chosen = [one for one in found if version in (None, one)]
        if not chosen:
            about = "" if version is None else " with version %d" % version
            raise ServingError("Could not find any versions of model %s%s" % (name, about), NOT_FOUND)
        return chosen
