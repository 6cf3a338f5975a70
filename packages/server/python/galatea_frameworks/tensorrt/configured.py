"""Compares configured tensors with those of an engine. Every function raises ModelError with Triton's text for a difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galatea_worker.failures import ModelError

from .plan import DATATYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .plan import Plan, Port


def model_dims(tensor: dict[str, Any]) -> list[int]:
    """Returns the dimensions that a configured tensor has in the model (after `reshape`), without the batch dimension."""
    reshape = tensor.get("reshape")
    return [int(dim) for dim in (tensor.get("dims", ()) if reshape is None else reshape.get("shape", ()))]


def shown(dims: Iterable[int]) -> str:
    """Returns the text of a shape in Triton's format: [-1,3]."""
    return "[%s]" % ",".join(str(dim) for dim in dims)


def check_names(kind: str, tensors: Iterable[dict[str, Any]], allowed: Iterable[str]) -> None:
    """Checks that the engine has all configured names."""
    allowed = set(allowed)
    for one in tensors:
        if one["name"] not in allowed:
            raise ModelError(
                "unexpected inference %s '%s', allowed %ss are: %s"
                % (kind, one["name"], kind, ", ".join(sorted(allowed)))
            )


def check(config: dict[str, Any], plan: Plan, model: str, instance: str) -> None:
    """Checks that the configuration and the engine have the same tensors."""
    inputs, outputs = config.get("input", []), config.get("output", [])
    if len(plan.inputs) < len(inputs):
        raise ModelError(
            "unable to load model '%s', configuration expects %d inputs, model provides at most %d"
            % (model, len(inputs), len(plan.inputs))
        )
    check_names("input", inputs, [port.name for port in plan.inputs])
    check_names("output", outputs, [port.name for port in plan.outputs])
    batches = int(config.get("max_batch_size", 0)) > 0
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for tensor in tensors:
            _check_marks(kind, tensor, plan.ports[tensor["name"]], model)
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for tensor in tensors:
            port = plan.ports[tensor["name"]]
            _check_datatype(kind, tensor, port, instance)
            if port.is_shape:
                _check_shape_dims(tensor, port, model, batches)
            else:
                _check_dims(tensor, port, model, batches)
    configured = {tensor["name"] for tensor in (*inputs, *outputs)}
    for port in plan.ports.values():
        if port.name not in configured:
            raise ModelError(
                "expected configuration for %s '%s' for %s"
                % ("input" if port.is_input else "output", port.name, instance)
            )


def _check_marks(kind: str, tensor: dict[str, Any], port: Port, model: str) -> None:
    about = "%s '%s' for model '%s'" % (kind, port.name, model)
    if tensor["data_type"] not in DATATYPES:
        raise ModelError("unsupported datatype %s for %s" % (tensor["data_type"], about))
    if port.is_shape and not tensor.get("is_shape_tensor"):
        raise ModelError("%s is a shape tensor but the model configuration doesn't mark it as a shape tensor." % about)
    if tensor.get("is_shape_tensor") and not port.is_shape:
        raise ModelError("%s is incorrectly marked as a shape tensor in the model configuration." % about)
    if tensor.get("is_non_linear_format_io") and port.is_linear:
        raise ModelError(
            "%s uses a linear IO format, but 'is_non_linear_format_io' is incorrectly set to true in the model configuration."
            % about
        )
    if not port.is_linear and not tensor.get("is_non_linear_format_io"):
        raise ModelError(
            "%s uses a non-linear IO format, but 'is_non_linear_format_io' is incorrectly set to false in the model configuration."
            % about
        )
    if not port.is_linear:
        raise ModelError(
            "%s uses a non-linear IO format, which is not supported: build the plan with linear ones" % about
        )


def _check_datatype(kind: str, tensor: dict[str, Any], port: Port, instance: str) -> None:
    if tensor["data_type"] != port.datatype:
        raise ModelError(
            "unexpected datatype %s for inference %s '%s', expecting %s for %s"
            % (port.datatype, kind, port.name, tensor["data_type"], instance)
        )


def _check_dims(tensor: dict[str, Any], port: Port, model: str, batches: bool) -> None:
    dims = model_dims(tensor)
    about = "model '%s', tensor '%s'" % (model, port.name)
    if batches and not port.shape:
        raise ModelError(
            "%s: for the model to support batching the shape should have at least 1 dimension; but shape expected by the model is []"
            % about
        )
    whole = [-1, *dims] if batches else dims
    if _fits(port.shape, whole):
        return
    said = (
        "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making complete shape %s)"
        if batches
        else "(shape %s)"
    )
    raise ModelError(
        "%s: the model expects %d dimensions (shape %s) but the model configuration specifies %d dimensions %s"
        % (about, len(port.shape), shown(port.shape), len(whole), said % shown(whole))
    )


def _fits(have: Sequence[int], want: Sequence[int]) -> bool:
    return len(have) == len(want) and all(one == other or -1 in (one, other) for one, other in zip(have, want))


def _check_shape_dims(tensor: dict[str, Any], port: Port, model: str, batches: bool) -> None:
    dims = model_dims(tensor)
    if len(dims) == len(port.shape) > 1:
        raise ModelError(
            "unable to load model '%s', shape binding '%s' can only be 0-d or 1-D tensor, got %s"
            % (model, port.name, shown(port.shape))
        )
    if len(dims) != len(port.shape) or (dims and (dims[0] == -1 or dims[0] + batches != port.shape[0])):
        raise ModelError(
            "unable to load model '%s', binding '%s' shape expected by framework %s doesn't match model configuration shape %s"
            % (model, port.name, shown(port.shape), shown(dims))
        )
