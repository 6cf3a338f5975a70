"""Imports a model's module, and finds the modules that it has imported."""

from __future__ import annotations

import importlib.util
import os
import sys
import types


def import_model(package_name: str, module_name: str, directory: str) -> types.ModuleType:
    """Imports the model as module `<version>.<name>` like Triton, or as `<name>` if there is no package.

    The file is loaded by its path. Python's import search would write to 160 kB of memory pages that workers share, and so copy them.
    """
    name = "%s.%s" % (package_name, module_name) if package_name else module_name
    path = os.path.join(directory, module_name + ".py")
    if not os.path.isfile(path):
        return importlib.import_module(name)
    package = _package(package_name, directory) if package_name else None
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if package is not None:
        setattr(package, module_name, module)
    spec.loader.exec_module(module)
    return module


def _package(name: str, directory: str) -> types.ModuleType:
    """Returns the version's directory as a package, after running its `__init__.py` if there is one."""
    path = os.path.join(directory, "__init__.py")
    if not os.path.isfile(path):
        package = types.ModuleType(name)
        package.__path__ = [directory]
        sys.modules[name] = package
        return package
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[directory])
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    return package


def environment_modules(known: int) -> list[str]:
    """Returns the modules of the environment that were imported after the first `known` modules, and that a zygote could import."""
    prefixes = None
    found = []
    for name in _newest_modules(known):
        spec = getattr(sys.modules.get(name), "__spec__", None)
        origin = getattr(spec, "origin", None)
        if "." in name or not isinstance(origin, str) or name.startswith("_"):
            continue
        if prefixes is None:
            prefixes = _environment_prefixes()
        if origin in ("built-in", "frozen") or os.path.realpath(origin).startswith(prefixes):
            found.append(name)
    return sorted(found)


def _environment_prefixes() -> tuple[str, ...]:
    return tuple({os.path.realpath(prefix) + os.sep for prefix in (sys.prefix, sys.base_prefix, sys.exec_prefix)})


def _newest_modules(known: int) -> list[str]:
    """Returns the names of modules imported after the first `known` modules.

    Older entries are not accessed, because counting a reference would copy their memory pages.
    """
    names = []
    for name in reversed(sys.modules):
        if len(sys.modules) - len(names) <= known:
            break
        names.append(name)
    return names
