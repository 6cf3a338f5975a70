"""Libraries with additional operators (plugins). They are code, so only the server's operator may configure them, not a model."""

from __future__ import annotations

import functools
from typing import Any

import nvidia.dali.backend as dali
from galatea_worker import current_worker
from galatea_worker.failures import ModelError

_KEY = "plugin_libs"


def reject_model_plugins(config: dict[str, Any]) -> None:
    """Raises ModelError for a model that configures plugins itself."""
    if _KEY in config.get("parameters", {}):
        raise ModelError(
            "parameter '%s' is not read from a model's configuration: only the server's operator may load such libraries, with "
            "--backend-config=dali,%s=<path>:<path>" % (_KEY, _KEY)
        )


@functools.lru_cache(maxsize=1)
def load() -> None:
    """Loads the configured plugins into this process. Raises ModelError for a plugin that DALI cannot load."""
    for path in current_worker.backend_config().get(_KEY, "").split(":"):
        if not path:
            continue
        try:
            dali.LoadLibrary(path, False)
        except RuntimeError as error:
            raise ModelError(
                "--backend-config=dali,%s names '%s', which DALI does not load: %s" % (_KEY, path, error)
            ) from None
