"""Maps the names of configured inputs and outputs to a program's arguments and results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galatea_worker.failures import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def _index(name: str) -> int | None:
    _, _, index = name.partition("__")
    return int(index) if index.isascii() and index.isdigit() else None


def _indexes(given: Sequence[str]) -> list[int] | None:
    """Returns the indexes if all names have the form `<name>__<index>`; otherwise None."""
    found = [_index(name) for name in given]
    return None if None in found else found


def input_positions(given: Sequence[str], arguments: Sequence[str], model: str, log: Any) -> list[int]:
    """Returns the argument index of each configured input.

    Names are matched with the arguments' names, then as `<name>__<index>`, then by order. Raises ModelError if two inputs match the same
    argument.
    """
    places = _input_positions(given, arguments, model, log)
    for name, place in zip(given, places):
        if place >= len(arguments):
            raise ModelError(
                "The input %s in the model configuration refers to an input index which doesn't exist. This model has %d inputs"
                % (name, len(arguments))
            )
    if len(set(places)) != len(places):
        raise ModelError("two inputs in the model configuration of '%s' refer to the same input of the model" % model)
    return places


def _input_positions(given: Sequence[str], arguments: Sequence[str], model: str, log: Any) -> list[int]:
    if all(name in arguments for name in given):
        return [arguments.index(name) for name in given]
    indexes = _indexes(given)
    if indexes is not None:
        return indexes
    wrong = next(name for name in given if name not in arguments)
    log.log_warn(
        "input '%s' or previous input(s) are neither an input argument to the model '%s' nor do they follow the <name>__<index> "
        "naming convention. Falling back to enforcing strict ordering from model configuration." % (wrong, model)
    )
    return list(range(len(given)))


def output_positions(given: Sequence[str], model: str, log: Any) -> dict[str, int]:
    """Returns the result index of each configured output. Names are matched as `<name>__<index>`, otherwise by order."""
    indexes = _indexes(given)
    if indexes is None:
        wrong = next(name for name in given if _index(name) is None)
        log.log_warn(
            "output '%s' or previous output(s) of the model '%s' do not follow the <name>__<index> naming convention. "
            "Falling back to enforcing strict ordering from model configuration." % (wrong, model)
        )
        indexes = range(len(given))
    return dict(zip(given, indexes))
