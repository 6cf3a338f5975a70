"""Queries about modules.

There are no functions that install a script's modules, because this product installs and imports them before the script runs.
"""

from __future__ import annotations

import importlib
import os

from .unavailable import refused

DEFAULT_MODULE_NAME = "default_user_module_name"


def exists(name: str) -> bool:
    """Returns whether a module can be imported."""
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def has_requirements(path: str) -> bool:
    """Returns whether a directory contains a requirements.txt."""
    return os.path.exists(os.path.join(path, "requirements.txt"))


download_and_install = refused("modules.download_and_install")
import_module = refused("modules.import_module")
install = refused("modules.install")
prepare = refused("modules.prepare")
run = refused("modules.run")
run_module = refused("modules.run_module")
s3_download = refused("modules.s3_download")
