"""Programs saved by torch.jit.save."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch
from galatea_worker.failures import ModelError

from . import mapped, names
from .results import Results

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Script:
    """A TorchScript module. The arguments of its `forward` are tensors and lists of texts, or one dictionary of tensors."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self._forward = module.forward
        # Argument index of each input; None if the inputs are keys of one dictionary argument.
        self._places = None
        self._keys = ()

    def accept(self, given: Sequence[str], model: str, log: Any) -> None:
        """Sets the order of the configured inputs. Raises ModelError with Triton's text if they do not match `forward`."""
        arguments = list(self._forward.schema.arguments)
        if arguments and arguments[0].type.kind() == "ClassType":
            del arguments[0]
        kinds = [one.type.kind() for one in arguments]
        if kinds == ["DictType"]:
            self._keys = tuple(given)
            return
        if "DictType" in kinds[1:]:
            raise ModelError(
                "Multiple inputs of kind DictType were detected. Only a single input of type Dict(str, Tensor) is supported."
            )
        for one, kind in zip(arguments, kinds):
            if kind not in ("TensorType", "ListType"):
                raise ModelError(
                    "An input of type '%s' was detected in the model. Only a single input of type Dict(str, Tensor) or input(s) of type "
                    "Tensor are supported." % one.type.str()
                )
        if len(arguments) != len(given):
            raise ModelError(
                "unable to load model '%s', configuration expects %d inputs, model provides %d"
                % (model, len(given), len(arguments))
            )
        self._places = names.input_positions(given, [one.name for one in arguments], model, log)

    def run(self, inputs: Sequence[Any]) -> Results:
        """Runs `forward` with a value for each input."""
        if self._places is None:
            return Results(self._forward(dict(zip(self._keys, inputs))))
        arguments = [None] * len(inputs)
        for place, value in zip(self._places, inputs):
            arguments[place] = value
        return Results(self._forward(*arguments))


def load(path: str, device: str | None) -> Script:
    """Loads the module in a file.

    Raises PyTorch's exceptions. PyTorch's unpickler for TorchScript creates only tensors and objects of the archive's own classes.
    """
    with warnings.catch_warnings():
        # Suppresses the warning that TorchScript is deprecated. Only the author of the file can act on it, not the users of the server.
        warnings.simplefilter("ignore", FutureWarning)
        module = torch.jit.load(path, map_location=device)
    # The module stays in the mode (training or evaluation) in which it was saved, as in Triton.
    if not hasattr(module, "forward"):
        raise ModelError("Method 'forward' is not defined.")
    mapped.share(mapped.script_tensors(module, path))
    return Script(module)
