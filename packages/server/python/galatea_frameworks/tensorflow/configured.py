"""Compares a configuration's tensors with those of a model, with Triton's texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galatea_worker.failures import ModelError

from . import datatypes
from .signatures import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .signatures import Port, Signature


def check_tensors(config: dict[str, Any], model: str) -> None:
    """Raises ModelError for tensors with a datatype that TensorFlow does not support."""
    for one in (*config.get("input", ()), *config.get("output", ())):
        if one["data_type"] not in datatypes.NUMBERS:
            raise ModelError(
                "unsupported datatype '%s' for tensor '%s' for model '%s'" % (one["data_type"], one["name"], model)
            )


def model_dims(tensor: dict[str, Any]) -> list[int]:
    """Returns the dimensions that a configured tensor has in the model (after `reshape`), without the batch dimension."""
    reshape = tensor.get("reshape")
    return [int(dim) for dim in (tensor.get("dims", ()) if reshape is None else reshape.get("shape", ()))]


def check_names(kind: str, tensors: Iterable[dict[str, Any]], allowed: Iterable[str]) -> None:
    """Raises ModelError for a configured name that the model does not have."""
    allowed = set(allowed)
    for one in tensors:
        if one["name"] not in allowed:
            raise ModelError(
                "unexpected inference %s '%s', allowed %ss are: %s"
                % (kind, one["name"], kind, ", ".join(sorted(allowed)))
            )


def check_signature(config: dict[str, Any], signature: Signature, model: str) -> None:
    """Raises ModelError if a configuration does not match the signature of a SavedModel."""
    batches = int(config.get("max_batch_size", 0)) > 0
    inputs, outputs = config.get("input", ()), config.get("output", ())
    check_names("input", inputs, signature.inputs)
    made = check_made_inputs(config, signature.inputs)
    if len(inputs) + made != len(signature.inputs):
        raise ModelError(
            "unable to load model '%s', configuration expects %d inputs, model provides %d"
            % (model, len(inputs) + made, len(signature.inputs))
        )
    scattered = {name for one in config.get("batch_output", ()) for name in one["target_name"]}
    for one in inputs:
        if one.get("allow_ragged_batch"):
            _check_ragged(model, one["name"], signature.inputs[one["name"]].dims)
            check_datatype("input", one, signature.inputs[one["name"]].datatype, model)
            continue
        _check_dims(model, one, signature.inputs[one["name"]], batches, is_exact=False)
        check_datatype("input", one, signature.inputs[one["name"]].datatype, model)
    check_names("output", outputs, signature.outputs)
    for one in outputs:
        if one["name"] in scattered:
            check_datatype("output", one, signature.outputs[one["name"]].datatype, model)
            continue
        _check_dims(model, one, signature.outputs[one["name"]], batches, is_exact=True)
        check_datatype("output", one, signature.outputs[one["name"]].datatype, model)


def check_made_inputs(config: dict[str, Any], allowed: Iterable[str]) -> int:
    """Returns the number of model inputs that the server creates (ragged batches, sequence controls).

    Raises ModelError for an input that the model does not have.
    """
    names = [{"name": name} for one in config.get("batch_input", ()) for name in one.get("target_name", ())]
    check_names("input", names, allowed)
    return len(names)


def _check_ragged(model: str, name: str, provided: Sequence[int]) -> None:
    if provided and tuple(provided) != (-1,):
        raise ModelError(
            "unable to load model '%s', configuration expects model provides input with shape [-1]  for ragged input '%s', model "
            "provides %s" % (model, name, shown(provided))
        )


def check_datatype(kind: str, tensor: dict[str, Any], provided: str, model: str) -> None:
    """Raises ModelError if a configured tensor and the model's tensor have different datatypes."""
    if tensor["data_type"] != provided:
        raise ModelError(
            "unable to load model '%s', configuration expects datatype %s for %s '%s', model provides %s"
            % (model, tensor["data_type"], kind, tensor["name"], datatypes.shown(provided))
        )


def _check_dims(model: str, tensor: dict[str, Any], port: Port, batches: bool, *, is_exact: bool) -> None:
    provided = port.dims
    if not provided:
        return
    name = tensor["name"]
    dims = model_dims(tensor)
    if batches:
        if provided[0] != -1:
            raise ModelError(
                "model '%s', tensor '%s': for the model to support batching the shape should have at least 1 dimension and the first "
                "dimension must be -1; but shape expected by the model is %s" % (model, name, shown(provided))
            )
        dims = [-1, *dims]
    fits = len(dims) == len(provided) and all(
        have == want or (have == -1 and not is_exact) for have, want in zip(provided, dims)
    )
    if fits:
        return
    specified = (
        "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape %s)"
        if batches
        else "(shape %s)"
    )
    raise ModelError(
        "model '%s', tensor '%s': the model expects %d dimensions (shape %s) but the model configuration specifies %d dimensions %s"
        % (model, name, len(provided), shown(provided), len(dims), specified % shown(dims))
    )
