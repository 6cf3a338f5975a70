"""Finds the SavedModels in an archive: `<model>/<version>/saved_model.pb` at any depth, or `<version>/saved_model.pb`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from galatea_worker.failures import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

_FILE = "saved_model.pb"
# Name of the directory to which archives are unpacked; also the default name of a model without a directory of its own.
_OWN_NAME = "model"
_VERSION_MAX = 2**63 - 1


class ArchivedModel(NamedTuple):
    """A model's directories by version."""

    name: str
    versions: dict[int, str]


def find_models(root: str) -> dict[str, ArchivedModel]:
    """Returns the models of an archive, sorted by name. Raises ModelError if there are none."""
    found = {}
    for base in sorted(set(_bases(root))):
        name = _OWN_NAME if base == root else os.path.basename(base)
        if name in found:
            raise ModelError("the archive has two models of the name '%s': names of models must be unique" % name)
        found[name] = ArchivedModel(name, _versions(base, os.path.relpath(base, root)))
    if not found:
        raise ModelError(
            "no SavedModel bundles found! The archive has to hold <model>/<version>/%s or <version>/%s, with a whole number as version"
            % (_FILE, _FILE)
        )
    return found


def _bases(root: str) -> Iterator[str]:
    """Yields directories that contain version directories."""
    for directory, _, files in os.walk(root):
        if _FILE in files and directory != root and _is_version(os.path.basename(directory)):
            yield os.path.dirname(directory)


def _is_version(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _versions(base: str, shown: str) -> dict[int, str]:
    versions = {}
    for name in sorted(os.listdir(base)):
        path = os.path.join(base, name)
        if not _is_version(name) or not os.path.isdir(path):
            continue
        if len(name) > 19 or int(name) > _VERSION_MAX:
            raise ModelError("'%s/%s' is not a valid version: it is larger than %d" % (shown, name, _VERSION_MAX))
        if int(name) in versions:
            raise ModelError("'%s' has version %d twice" % (shown, int(name)))
        versions[int(name)] = path
    return versions
