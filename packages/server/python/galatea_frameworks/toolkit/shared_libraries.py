"""Loads shared libraries from the directory `shared_libs` of an archive.

Scripts that ModelBuilder of SageMaker's SDK generates copy that directory to /lib, which is read-only here. Instead, the libraries are
loaded from their own directory, because the dynamic loader uses already loaded libraries as dependencies of others.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_SYSTEM = "/lib"
_NAME = "shared_libs"


def provide(model_dir: str) -> None:
    """Makes shutil.copytree load the archive's libraries instead of copying them to /lib."""
    directory = os.path.realpath(os.path.join(model_dir, _NAME))
    if not os.path.isdir(directory):
        return
    copytree = shutil.copytree

    @functools.wraps(copytree)
    def copied(src: Any, dst: Any, *arguments: Any, **options: Any) -> Any:
        if os.fspath(dst) != _SYSTEM or os.path.realpath(src) != directory:
            return copytree(src, dst, *arguments, **options)
        load(directory)
        return dst

    shutil.copytree = copied


def load(directory: str) -> None:
    """Loads all libraries in a directory, dependencies first. Raises OSError, with the reason, for a library that cannot be loaded."""
    left = [path for path in (os.path.join(directory, name) for name in sorted(os.listdir(directory))) if _is_elf(path)]
    while left:
        failed = {}
        for path in left:
            try:
                ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
            except OSError as error:
                failed[path] = error
        if len(failed) == len(left):
            raise failed[left[0]]
        left = list(failed)


def _is_elf(path: str) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"
