"""Finds the results of a program by position or by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from galatea_frameworks.batched_model import InvalidRequest

if TYPE_CHECKING:
    from typing import Any


class Results:
    """The results of a program: a single value, a tuple or list, or a dictionary. A value is a tensor or a list of texts."""

    def __init__(self, returned: Any) -> None:
        self._named = returned if isinstance(returned, dict) else {}
        if isinstance(returned, dict):
            self._ordered = list(returned.values())
        elif isinstance(returned, tuple) or (isinstance(returned, list) and not _is_texts(returned)):
            self._ordered = list(returned)
        elif isinstance(returned, (torch.Tensor, list)):
            self._ordered = [returned]
        else:
            raise ValueError(
                "output must be of type Tensor, List[str] or Tuple containing one of these two types. It should not be a List / Dictionary "
                "of Tensors or a Scalar"
            )

    def at(self, name: str, place: int) -> Any:
        """Returns the result with this name if results have names; otherwise the result at index `place`. Raises InvalidRequest."""
        if name in self._named:
            return self._named[name]
        if place >= len(self._ordered):
            raise InvalidRequest(
                "The output %s in the model configuration refers to an output index which doesn't exist. This model has %d outputs"
                % (name, len(self._ordered))
            )
        return self._ordered[place]


def _is_texts(returned: list[Any]) -> bool:
    return all(isinstance(one, str) for one in returned)
