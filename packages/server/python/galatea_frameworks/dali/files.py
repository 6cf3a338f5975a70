"""The file of a model: a serialized pipeline, or Python code that creates one."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os
import re
import sys
from typing import TYPE_CHECKING

from galatea_worker import failures
from galatea_worker.failures import ModelError

from . import operators, plugins
from .definition import FILE_BYTES_MAX, Definition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType
    from typing import Any

_DEFAULT = "model.dali"
_FALLBACK = "dali.py"
_MODULE = "autoserialize_mod"
_MODULES_MAX = 100_000


@functools.lru_cache(maxsize=1)
def load(directory: str, filename: str, gpu: int | None = None) -> Definition:
    """Returns the pipeline in a version's directory, for the GPU with this number, or for the CPU if `gpu` is None.

    Raises ModelError with Triton's text if there is no pipeline.
    """
    plugins.load()
    filename = filename or _DEFAULT
    if re.search(r"[^\w.-]", filename, re.ASCII):
        raise ModelError(
            "DALI Backend error: Model file name '%s' may have letters, digits, _, . and - only" % filename
        )
    named, fallback = os.path.join(directory, filename), os.path.join(directory, _FALLBACK)
    attempts = [(_python if named.endswith(".py") else _serialized, named), (_python, fallback)]
    reasons = []
    for attempt, path in dict.fromkeys(attempts):
        if not os.path.exists(path):
            reasons.append("'%s' does not exist" % path)
            continue
        try:
            definition = attempt(path)
        except ModelError as error:
            reasons.append("'%s' is not a pipeline: %s" % (path, error))
            continue
        try:
            operators.check(definition, has_gpu=gpu is not None)
        except ModelError as error:
            raise ModelError("the pipeline in '%s' is not served: %s" % (path, error)) from None
        if gpu is None:
            definition.put_on_cpu()
        else:
            definition.put_on_gpu(gpu)
        return definition
    raise ModelError(
        "DALI Backend error: Failed to load model file. The program looked in the following locations: %s, %s. Please make sure that the "
        "model exists in any of the locations and is properly serialized or can be properly serialized. (%s)"
        % (named, fallback, "; ".join(reasons))
    )


def _serialized(path: str) -> Definition:
    if os.path.getsize(path) > FILE_BYTES_MAX:
        raise ModelError("it has more than %d bytes" % FILE_BYTES_MAX)
    with open(path, "rb") as file:
        return Definition(file.read(FILE_BYTES_MAX + 1))


def _python(path: str) -> Definition:
    """Runs the Python file, which is trusted like a model.py, and serializes the only function that is marked with @autoserialize."""
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    try:
        spec.loader.exec_module(module)
        marked = list(_marked(module))
        if len(marked) != 1:
            raise ModelError("it has %d functions with @autoserialize, and needs one" % len(marked))
        # With `device_id=None`, DALI serializes operators for the GPU too, even on a machine without one.
        return Definition(bytes(marked[0](device_id=None).serialize()))
    except (MemoryError, ModelError):
        raise
    except Exception as error:
        raise ModelError(failures.describe(error)) from error


def _marked(module: ModuleType) -> Iterator[Any]:
    """Yields the functions with @autoserialize in a module and in modules that it has imported."""
    seen = {id(module)}
    modules = [module]
    while modules:
        for value in list(vars(modules.pop()).values()):
            if id(value) in seen or len(seen) > _MODULES_MAX:
                continue
            if inspect.ismodule(value):
                seen.add(id(value))
                modules.append(value)
            elif inspect.isfunction(value) and getattr(value, "_is_autoserialize", False):
                seen.add(id(value))
                yield value
