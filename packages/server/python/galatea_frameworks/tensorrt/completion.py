"""Completes a configuration from the engine of a plan, as Triton's backend does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galatea_worker.failures import ModelError

from . import profiles
from .configured import check_names, model_dims

if TYPE_CHECKING:
    from typing import Any

    from .plan import Plan, Port

_INT_MAX = 2**31 - 1


def complete(config: dict[str, Any], plan: Plan, model: str, log: Any) -> None:
    """Completes the configuration `config`, which is in its JSON form. Raises ModelError."""
    hints, shaped = _hints(config, plan, model)
    largest = max(_largest_batch(plan, number) for number in _profiles(config, plan, model))
    if hints and largest == 0:
        raise ModelError(
            "autofill failed for model '%s': model tensor shape configuration hints for dynamic batching but the underlying engine "
            "doesn't support batching." % model
        )
    if shaped and not hints:
        log.log_warn("The specified dimensions in model config for %s hints that batching is unavailable" % model)
        largest = 0
    configured = int(config.get("max_batch_size", 0))
    if configured > largest:
        raise ModelError(
            "autofill failed for model '%s': configuration specified max-batch %d but TensorRT engine only supports max-batch %d"
            % (model, configured, largest)
        )
    if configured == 0:
        config["max_batch_size"] = largest
    if largest > 1 and "sequence_batching" not in config:
        config.setdefault("dynamic_batching", {})
    batches = int(config["max_batch_size"]) > 0
    _complete_tensors(config.setdefault("input", []), plan.inputs, batches)
    _complete_tensors(config.setdefault("output", []), plan.outputs, batches)


def _hints(config: dict[str, Any], plan: Plan, model: str) -> tuple[bool, bool]:
    """Returns two booleans about the configured tensors.

    The first is True if each has one dimension less than the engine's tensor, which means that the model batches. The second is True if any
    has dimensions.
    """
    hints = False
    shaped = False
    for kind, ports in (("input", plan.inputs), ("output", plan.outputs)):
        for tensor in config.get(kind, ()):
            if tensor.get("allow_ragged_batch"):
                return True, shaped
            check_names(kind, [tensor], [port.name for port in ports])
            dims = model_dims(tensor)
            if not dims:
                continue
            shaped = True
            port = plan.ports[tensor["name"]]
            batches = port.shape[0] == dims[0] + 1 if port.is_shape else len(port.shape) == len(dims) + 1
            if hints and not batches:
                raise ModelError(
                    "unable to autofill for '%s', model tensor configurations are contradicting each other in terms of whether batching "
                    "is supported" % model
                )
            hints = hints or batches
    return hints, shaped


def _profiles(config: dict[str, Any], plan: Plan, model: str) -> set[int]:
    count = plan.engine.num_optimization_profiles
    found = set()
    for group in config.get("instance_group", ()):
        for name in group.get("profile", ()):
            number = profiles.profile_number(str(name))
            if not 0 <= number < count:
                raise ModelError(
                    "unable to autofill for '%s', configuration specified invalid profile %s . Number of profiles supported by TensorRT "
                    "engine: %d" % (model, name, count)
                )
            found.add(number)
    return found or {0}


def _largest_batch(plan: Plan, profile: int) -> int:
    """Returns the largest first dimension that a profile allows; 0 for a scalar. If the model batches, this is the maximum batch size."""
    largest = _INT_MAX
    for port in plan.inputs:
        most = plan.limits(port.name, profile)[2]
        largest = min(largest, most[0] if most else 0)
    return 0 if largest == _INT_MAX else largest


def _complete_tensors(tensors: list[dict[str, Any]], ports: list[Port], batches: bool) -> None:
    by_name = {port.name: port for port in ports}
    for tensor in tensors:
        if tensor["name"] in by_name:
            _fill(tensor, by_name[tensor["name"]], batches)
    if not tensors:
        for port in ports:
            made = {"name": port.name}
            _fill(made, port, batches)
            tensors.append(made)


def _fill(tensor: dict[str, Any], port: Port, batches: bool) -> None:
    if tensor.get("data_type", "TYPE_INVALID") in ("", "TYPE_INVALID"):
        tensor["data_type"] = port.datatype
    if not tensor.get("dims"):
        if port.is_shape:
            tensor["dims"] = [port.shape[0] - 1 if batches else port.shape[0]] if port.shape else []
        else:
            tensor["dims"] = list(port.shape[1:] if batches else port.shape)
        # For clients, a tensor without dimensions has one dimension of length 1.
        if not tensor["dims"]:
            tensor["dims"] = [1]
            tensor["reshape"] = {"shape": []}
    if tensor.get("is_shape_tensor") and not port.is_shape:
        raise ModelError("'%s' is incorrectly specified as a shape tensor." % port.name)
    tensor["is_shape_tensor"] = port.is_shape
    if tensor.get("is_non_linear_format_io") and port.is_linear:
        raise ModelError(
            "'%s' uses a linear IO format, but 'is_non_linear_format_io' is incorrectly set to true in the model configuration."
            % port.name
        )
    tensor["is_non_linear_format_io"] = not port.is_linear
