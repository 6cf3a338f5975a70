"""Ragged batches: inputs of different lengths are concatenated in one dimension.

Additional tensors describe which elements belong to which request. Outputs are split accordingly.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import triton_python_backend_utils as pb_utils

from galatea_frameworks.batched_model import InvalidRequest

from . import configured

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from triton_python_backend_utils import InferenceRequest, Tensor

_TYPES = {"TYPE_INT32": np.int32, "TYPE_FP32": np.float32}
_ELEMENT_COUNT = "BATCH_ELEMENT_COUNT"
_MAX_ELEMENT_COUNT = "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE"
# Maximum length of a tensor that represents a number by its own length.
_ELEMENTS_MAX = 1 << 28


class RaggedBatches:
    """The settings for ragged batches in a configuration: `allow_ragged_batch`, `batch_input` and `batch_output`."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.inputs = frozenset(one["name"] for one in config["input"] if one.get("allow_ragged_batch"))
        self._made = list(config.get("batch_input", ()))
        self.made_names = [name for one in self._made for name in one.get("target_name", ())]
        batches = int(config.get("max_batch_size", 0)) > 0
        outputs = {one["name"]: one for one in config["output"]}
        # By output name: the input that determines the output's shape, and the output's configured dimensions.
        self._scattered = {
            one["target_name"][0]: (
                one["source_input"][0],
                [*([-1] if batches else []), *configured.model_dims(outputs[one["target_name"][0]])],
            )
            for one in config.get("batch_output", ())
        }

    def made(self, requests: Sequence[InferenceRequest]) -> list[np.ndarray]:
        """Returns the tensors of `batch_input` for a batch of requests, in the order of their names. Raises InvalidRequest."""
        found = []
        for one in self._made:
            shapes = [input_shape(request, one["source_input"][0]) for request in requests]
            tensor = _made(one.get("kind", _ELEMENT_COUNT), shapes, _TYPES[one["data_type"]])
            found.extend([tensor] * len(one.get("target_name", ())))
        return found

    def scattered(self, name: str, value: Any, requests: Sequence[InferenceRequest]) -> Iterable[Tensor] | None:
        """Returns the tensor of an output for each request, in the shape of that request's input.

        Returns None if the output is not in `batch_output`. Raises InvalidRequest.
        """
        if name not in self._scattered:
            return None
        source, dims = self._scattered[name]
        flat = np.asarray(value).reshape(-1)
        found = []
        begin = 0
        for request in requests:
            shape = input_shape(request, source)
            if len(shape) < len(dims):
                raise InvalidRequest(
                    "input '%s' has fewer dimensions than output '%s', which has its shape" % (source, name)
                )
            own = [given if dim == -1 else dim for dim, given in zip(dims, shape)]
            end = begin + math.prod(own)
            if end > len(flat):
                raise InvalidRequest(
                    "output '%s' has %d elements, fewer than the requests' inputs '%s'" % (name, len(flat), source),
                    pb_utils.TritonError.INTERNAL,
                )
            found.append(pb_utils.Tensor(name, flat[begin:end].reshape(own)))
            begin = end
        return found


def input_shape(request: InferenceRequest, name: str) -> Sequence[int]:
    """Returns the shape of an input of a request. Raises InvalidRequest if the input is missing."""
    for tensor in request.inputs():
        if tensor.name() == name:
            return tensor.shape()
    raise InvalidRequest("input '%s' is missing: a graph is fed all of its inputs" % name)


def _made(kind: str, shapes: Sequence[Sequence[int]], datatype: type) -> np.ndarray:
    counts = [math.prod(shape) for shape in shapes]
    if kind == _ELEMENT_COUNT:
        return np.array(counts, datatype)
    if kind == "BATCH_ACCUMULATED_ELEMENT_COUNT":
        return np.cumsum(counts).astype(datatype)
    if kind == "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO":
        return np.cumsum([0, *counts]).astype(datatype)
    if kind == _MAX_ELEMENT_COUNT:
        if max(counts) > _ELEMENTS_MAX:
            raise InvalidRequest("an input of %d elements is too long for a batch's largest" % max(counts))
        return np.zeros(max(counts), datatype)
    # BATCH_ITEM_SHAPE and the flattened variant of it contain the dimensions of each row without the batch dimension.
    rows = np.array([shape[1:] for shape in shapes for _ in range(shape[0])], datatype)
    return rows if kind == "BATCH_ITEM_SHAPE" else rows.reshape(-1)
