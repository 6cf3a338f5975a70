"""Compares a pipeline's inputs and outputs with a model's configuration.

Fields that the configuration does not set are completed from the pipeline; a difference fails the load.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from galatea_worker.failures import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .definition import Definition, Tensor

# Datatypes of the configuration by DALI's numbers.
_TYPES = {
    0: "TYPE_UINT8", 1: "TYPE_UINT16", 2: "TYPE_UINT32", 3: "TYPE_UINT64", 4: "TYPE_INT8", 5: "TYPE_INT16", 6: "TYPE_INT32",
    7: "TYPE_INT64", 8: "TYPE_FP16", 9: "TYPE_FP32", 10: "TYPE_FP64", 11: "TYPE_BOOL",
}  # fmt: skip
_OPEN = "TYPE_INVALID"
BYTES = "TYPE_STRING"
_UINT8 = 0
_QUOTED_OR_COMMENT = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|#[^\n]*", re.DOTALL)
_UNBATCHED = re.compile(r"\bmax_batch_size\s*:\s*[+-]?0+\b(?![\w.])")
_CONFIG_BYTES_MAX = 16 << 20


def disables_batching(model_directory: str) -> bool:
    """Returns whether the configuration file sets `max_batch_size` to 0.

    The parsed configuration does not distinguish 0 from a missing field, which leaves the batch size to the pipeline.
    """
    try:
        with open(os.path.join(model_directory, "config.pbtxt"), encoding="utf-8", errors="replace") as file:
            text = file.read(_CONFIG_BYTES_MAX)
    except OSError:
        return False
    return _UNBATCHED.search(_QUOTED_OR_COMMENT.sub(" ", text)) is not None


def complete(config: dict[str, Any], definition: Definition, *, batched: bool) -> None:
    """Completes a configuration from the pipeline. Raises ModelError, with Triton's text, if they differ."""
    split = split_outputs(config)
    inputs = config.setdefault("input", [])
    _refuse_others(inputs, definition.inputs)
    for tensor in definition.inputs:
        found = next((one for one in inputs if one.get("name") == tensor.name), None)
        if found is None:
            found = {"name": tensor.name}
            inputs.append(found)
        _fill(found, tensor, batched=batched, split=False)
        # The samples of a batch, and therefore the requests in it, may differ in shape.
        found["allow_ragged_batch"] = True
    outputs = config.setdefault("output", [])
    tensors = definition.outputs
    if len(outputs) > len(tensors):
        raise _other_count(outputs, tensors)
    outputs += [{"name": tensor.name} for tensor in tensors[len(outputs) :]]
    for found, tensor in zip(outputs, tensors):
        _fill(found, tensor, batched=batched, split=found.get("name") in split)
    if batched:
        if int(config.get("max_batch_size", 0)) <= 0:
            config["max_batch_size"] = definition.batch_size
        if not any(key in config for key in ("dynamic_batching", "sequence_batching")):
            config["dynamic_batching"] = {}


def check(config: dict[str, Any], definition: Definition, *, batched: bool) -> None:
    """Raises ModelError, with Triton's text, if a configuration does not match the pipeline."""
    _check_video(config, definition)
    split = split_outputs(config)
    inputs, tensors = config.get("input", []), definition.inputs
    _refuse_others(inputs, tensors)
    for tensor in tensors:
        found = next((one for one in inputs if one["name"] == tensor.name), None)
        if found is None:
            raise ModelError('Missing config for "%s" input.' % tensor.name)
        _check_one(found, tensor, batched=batched, split=False)
        if found["data_type"] == BYTES:
            _check_bytes(found, batched=batched)
    outputs, tensors = config.get("output", []), definition.outputs
    if len(outputs) != len(tensors):
        raise _other_count(outputs, tensors)
    for found, tensor in zip(outputs, tensors):
        _check_one(found, tensor, batched=batched, split=found["name"] in split)
    names = [one["name"] for one in outputs]
    unknown = [name for name in split if name not in names]
    if unknown:
        raise ModelError(
            "parameter 'split_along_outer_axis' names '%s', which is not an output of the model" % unknown[0]
        )


def is_decoupled(config: dict[str, Any]) -> bool:
    """Returns whether the model sends any number of responses to a request."""
    return bool(config.get("model_transaction_policy", {}).get("decoupled", False))


def _check_video(config: dict[str, Any], definition: Definition) -> None:
    if definition.video is None:
        return
    if len(definition.inputs) != 1:
        raise ModelError("input '%s' is a video: a pipeline with a video has no other input" % definition.video)
    if not is_decoupled(config):
        raise ModelError(
            "input '%s' is a video, each response has a part of it: such a model needs model_transaction_policy { decoupled: true }"
            % definition.video
        )


def split_outputs(config: dict[str, Any]) -> list[str]:
    """Returns the names of outputs whose samples are split along their first axis."""
    text = config.get("parameters", {}).get("split_along_outer_axis", {}).get("string_value", "")
    return [name for name in text.split(":") if name]


def _fill(found: dict[str, Any], tensor: Tensor, *, batched: bool, split: bool) -> None:
    configured = found.get("data_type", _OPEN)
    _same_type(configured, tensor)
    if configured in ("", _OPEN) and tensor.datatype in _TYPES:
        found["data_type"] = _TYPES[tensor.datatype]
    dims = _dims_of(tensor, configured, batched=batched, split=split)
    if dims is not None:
        given = _given_dims(found)
        if given:
            _same_rank(tensor.name, given, dims)
        else:
            found["dims"] = dims


def _check_one(found: dict[str, Any], tensor: Tensor, *, batched: bool, split: bool) -> None:
    _same_type(found["data_type"], tensor)
    dims = _dims_of(tensor, found["data_type"], batched=batched, split=split)
    if dims is not None:
        _same_rank(found["name"], _given_dims(found), dims)


def _dims_of(tensor: Tensor, configured: str, *, batched: bool, split: bool) -> list[int] | None:
    """Returns the dimensions of a tensor for a configuration, without the batch dimension; None if the pipeline does not declare them."""
    if configured == BYTES:
        return None
    if tensor.dimensions < 0:
        return None
    return [-1] * (tensor.dimensions - split + (not batched))


def _given_dims(found: dict[str, Any]) -> list[int]:
    return [int(one) for one in found.get("dims", [])]


def _same_type(configured: str, tensor: Tensor) -> None:
    if configured in ("", _OPEN) or tensor.datatype not in _TYPES:
        return
    # One element of a BYTES tensor is one sample of bytes.
    if configured == BYTES and tensor.datatype == _UINT8:
        return
    if configured != _TYPES[tensor.datatype]:
        raise ModelError(
            'Mismatch of data_type config for "%s".\nData type defined in config: %s\nData type defined in pipeline: %s'
            % (tensor.name, configured, _TYPES[tensor.datatype])
        )


def _same_rank(name: str, given: Sequence[int], dims: Sequence[int]) -> None:
    if len(given) != len(dims):
        raise ModelError(
            'Mismatch in number of dimensions for "%s"\nNumber of dimensions defined in config: %d'
            "\nNumber of dimensions defined in pipeline: %d" % (name, len(given), len(dims))
        )


def _check_bytes(found: dict[str, Any], *, batched: bool) -> None:
    elements = _given_dims(found)[0 if batched else 1 :]
    if any(one not in (1, -1) for one in elements):
        raise ModelError("input '%s' of TYPE_STRING has one element for each sample, and so dims of 1" % found["name"])


def _refuse_others(inputs: Sequence[dict[str, Any]], tensors: Sequence[Tensor]) -> None:
    if not tensors:
        raise ModelError("the pipeline has no fn.external_source, and so no input")
    names = [one.name for one in tensors]
    for place, one in enumerate(inputs):
        if not one.get("name"):
            raise ModelError(
                "The input at index %d in the model configuration does not contain a `name` field." % place
            )
        if one["name"] not in names:
            raise ModelError(
                "Configuration file contains config for %s but such input is not present in the pipeline." % one["name"]
            )


def _other_count(outputs: Sequence[Any], tensors: Sequence[Tensor]) -> ModelError:
    return ModelError(
        "The number of outputs specified in the DALI pipeline and the configuration file do not match."
        "\nModel config outputs: %d\nPipeline outputs: %d" % (len(outputs), len(tensors))
    )
