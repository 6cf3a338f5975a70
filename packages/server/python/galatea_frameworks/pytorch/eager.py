"""Models in Python (`runtime: "model.py"`): a model.py with a module class, and its weights in a separate file."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import TYPE_CHECKING

import torch
from galatea_worker.failures import ModelError

from . import mapped
from .results import Results

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any


class Eager:
    """A module whose `forward` has the inputs as arguments, in the order of the configuration.

    The module is not compiled, because that would need a C++ compiler.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module

    def accept(self, given: Sequence[str], model: str, log: Any) -> None:
        """Accepts any inputs; `forward` checks them."""

    def run(self, inputs: Sequence[Any]) -> Results:
        """Runs `forward` with a value for each input."""
        return Results(self._module(*inputs))


def load(path: str, device: str | None) -> Eager:
    """Returns an object of the file's module class, with the weights from the `.pt` file of the same name.

    Raises exceptions of the file's code.
    """
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location("galatea_model_" + name, path)
    code = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = code
    spec.loader.exec_module(code)
    module = _class_in(code)()
    weights = os.path.splitext(path)[0] + ".pt"
    if os.path.exists(weights):
        # Only tensors are loaded from the weights file; code belongs in the Python file.
        where = None if device is None else "cpu"
        module.load_state_dict(torch.load(mapped.readable(weights), map_location=where, weights_only=True))
        if device in (None, "cpu"):
            mapped.share([*module.parameters(), *module.buffers()])
    return Eager(module.to(device).eval())


def _class_in(code: ModuleType) -> type[torch.nn.Module]:
    """Returns the module class.

    As in Triton, it is the first one by name among the classes that the file defines, otherwise among those that the file imports.
    """
    found = [
        value
        for value in (getattr(code, name) for name in dir(code))
        if isinstance(value, type) and issubclass(value, torch.nn.Module)
    ]
    own = [value for value in found if value.__module__ == code.__name__]
    if not found:
        raise ModelError("Cannot find a subclass of torch.nn.Module")
    return (own or found)[0]
