"""Converts tensors of requests to DALI's samples, and outputs of a pipeline to tensors of responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import triton_python_backend_utils as pb_utils
from galatea_worker import datatypes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from triton_python_backend_utils import InferenceRequest, Tensor


class InvalidRequest(Exception):
    """A request that cannot be part of a batch, or whose rows of the results do not form a tensor."""


def to_inputs(request: InferenceRequest, names: Sequence[str]) -> tuple[list[np.ndarray | list[np.ndarray]], int]:
    """Returns the samples of each input, in the order of `names`, and the number of samples. Raises InvalidRequest."""
    given = {one.name(): one for one in request.inputs()}
    columns = []
    for name in names:
        tensor = given.get(name)
        if tensor is None:
            raise InvalidRequest("input '%s' is missing" % name)
        columns.append(_samples(tensor, name))
    counts = {len(column) for column in columns}
    if len(counts) != 1:
        raise InvalidRequest("Each input in a request must have the same batch size.")
    (count,) = counts
    if count == 0:
        raise InvalidRequest("the request has no samples")
    return columns, count


def joined(columns: Sequence[Any]) -> Any:
    """Concatenates the samples of one input of several requests. An array contains samples of equal shapes."""
    return columns[0] if len(columns) == 1 else [sample for column in columns for sample in column]


def _samples(tensor: Tensor, name: str) -> np.ndarray | list[np.ndarray]:
    datatype = tensor.triton_dtype()
    if datatype == datatypes.BF16:
        raise InvalidRequest("input '%s' is of BF16, which DALI does not have" % name)
    array = tensor.as_numpy()
    if array.ndim == 0:
        raise InvalidRequest("input '%s' has no axis for the samples" % name)
    if datatype != datatypes.BYTES:
        return array if array.flags.aligned else array.copy()
    if array.size != len(array):
        raise InvalidRequest("input '%s' has %d elements for %d samples" % (name, array.size, len(array)))
    return [np.frombuffer(one, np.uint8) for one in array.ravel()]


def to_outputs(name: str, given: Any, rows: Sequence[int], *, split: bool, keep: bool) -> list[Tensor | InvalidRequest]:
    """Returns the tensor of an output for each request of a batch. `rows` has the number of rows of each request.

    The tensors refer to the pipeline's memory, which the next run overwrites. If `keep` is true, they are copies.
    """
    whole = np.asarray(given.as_tensor()) if given.is_dense_tensor() else None
    tensors = []
    begin = 0
    for count in rows:
        end = begin + count
        part = whole[begin:end] if whole is not None else _stacked(name, given, range(begin, end), split=split)
        begin = end
        if isinstance(part, InvalidRequest):
            tensors.append(part)
            continue
        if split and whole is not None:
            if part.ndim < 2:
                tensors.append(InvalidRequest("output '%s' is split along an axis that its samples do not have" % name))
                continue
            part = part.reshape(-1, *part.shape[2:])
        tensors.append(pb_utils.Tensor(name, part.copy() if keep else part))
    return tensors


def _stacked(name: str, given: Any, places: range, *, split: bool) -> np.ndarray | InvalidRequest:
    samples = [np.asarray(given[place]) for place in places]
    if split:
        if len({one.shape[1:] for one in samples}) != 1 or samples[0].ndim == 0:
            return InvalidRequest(
                "output '%s' is split along its first axis, and its samples differ in another one" % name
            )
        return np.concatenate(samples)
    if len({one.shape for one in samples}) != 1:
        shapes = ", ".join(str(list(one.shape)) for one in samples[:8])
        return InvalidRequest(
            "output '%s' has samples of different shapes in one request, which do not form a tensor: %s"
            % (name, shapes)
        )
    return np.stack(samples)
