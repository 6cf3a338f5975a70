"""Programs saved by torch.export.save."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from galatea_worker.failures import ModelError
from torch.utils import _pytree

from . import mapped, names
from .results import Results

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Exported:
    """An exported program. Its flattened arguments are tensors."""

    def __init__(self, program: Any) -> None:
        self._spec = program.call_spec.in_spec
        self._forward = program.module()
        self._arguments = _argument_names(program, self._spec)
        self._places = ()

    def accept(self, given: Sequence[str], model: str, log: Any) -> None:
        """Sets the order of the configured inputs. Raises ModelError if they do not match the program's arguments."""
        if len(given) != len(self._arguments):
            raise ModelError(
                "unable to load model '%s', configuration expects %d inputs, model provides %d"
                % (model, len(given), len(self._arguments))
            )
        by_path = _by_path(given, self._arguments)
        self._places = by_path or names.input_positions(given, [one[0] for one in self._arguments], model, log)

    def run(self, inputs: Sequence[Any]) -> Results:
        """Runs the program with a value for each input."""
        flat = [None] * len(inputs)
        for place, value in zip(self._places, inputs):
            flat[place] = value
        arguments, keywords = _pytree.tree_unflatten(flat, self._spec)
        return Results(self._forward(*arguments, **keywords))


def _by_path(given: Sequence[str], arguments: Sequence[tuple[str, str]]) -> list[int] | None:
    """Returns the argument indexes if all names have the form `ARGS[0]` or `KWARGS[key]`; otherwise None."""
    paths = [path for _, path in arguments]
    return [paths.index(name) for name in given] if all(name in paths for name in given) else None


def _argument_names(program: Any, spec: Any) -> list[tuple[str, str]]:
    """Returns, for each flat argument, its name in `forward` and its path in the call: `ARGS[0]`, `KWARGS[key]`."""
    arguments, keywords = _pytree.tree_unflatten(range(spec.num_leaves), spec)
    forward_names = getattr(program.module_call_graph[0].signature, "forward_arg_names", None) or []
    found = {}
    for position, value in enumerate(arguments):
        name = forward_names[position] if position < len(forward_names) else "ARGS[%d]" % position
        _name_leaves(found, value, name, "ARGS[%d]" % position)
    for key, value in keywords.items():
        _name_leaves(found, value, key, "KWARGS[%s]" % key)
    return [found[leaf] for leaf in range(spec.num_leaves)]


def _name_leaves(found: dict[int, tuple[str, str]], value: Any, name: str, path: str) -> None:
    """Adds the name and path of each leaf of one argument to `found`.

    For a dictionary argument, the keys are the names, like for a dictionary argument of a TorchScript module."""
    if isinstance(value, int):
        found[value] = (name, path)
        return
    for keys, leaf in _pytree.tree_flatten_with_path(value)[0]:
        last = keys[-1]
        key = str(last.key) if isinstance(last, _pytree.MappingKey) else _pytree.keystr(keys)
        found[leaf] = (key, path + _pytree.keystr(keys))


def load(path: str, device: str | None) -> Exported:
    """Loads the program in a file.

    Raises PyTorch's exceptions. The program may call any PyTorch function, like a TorchScript module; the process's confinement limits the
    effects. The file's pickles are loaded as tensors only, because PyTorch's default would run code in them.
    """
    os.environ.pop("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", None)
    os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"
    program = torch.export.load(path)
    if device is not None:
        from torch.export.passes import move_to_device_pass

        program = move_to_device_pass(program, device)
    mapped.share([*program.state_dict.values(), *program.constants.values()])
    return Exported(program)
