"""Completes a configuration from a SavedModel's signature, as Triton's backend does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galatea_worker.failures import ModelError

from .signatures import allows_batches

if TYPE_CHECKING:
    from typing import Any

    from .signatures import Port, Signature

_CONTRADICTION = "unable to autofill for '%s', model tensor configurations are contradicting each other in terms of whether batching is supported"


def complete(config: dict[str, Any], signature: Signature, model: str, batch_size: int, log: Any) -> None:
    """Completes the configuration `config`, which is in its JSON form.

    `batch_size` is used for models that support batches but configure no size; 0 disables batching for them.
    """
    batches = _complete_batches(config, signature, model, batch_size, log)
    inputs = config.setdefault("input", [])
    for tensor in inputs:
        if tensor["name"] in signature.inputs:
            _fill(tensor, signature.inputs[tensor["name"]], batches, model)
    known = {tensor["name"] for tensor in inputs} | _made_inputs(config)
    inputs.extend(_made(name, port, batches, model) for name, port in signature.inputs.items() if name not in known)
    outputs = config.setdefault("output", [])
    for tensor in outputs:
        if tensor["name"] in signature.outputs:
            _fill(tensor, signature.outputs[tensor["name"]], batches, model)
    if not outputs:
        outputs.extend(_made(name, port, batches, model) for name, port in signature.outputs.items())


def _made_inputs(config: dict[str, Any]) -> set[str]:
    """Returns the names of the inputs that the server creates: those of ragged batches, and the controls of sequence batching."""
    found = {name for one in config.get("batch_input", ()) for name in one.get("target_name", ())}
    return found | {one.get("name") for one in config.get("sequence_batching", {}).get("control_input", ())}


def _complete_batches(config: dict[str, Any], signature: Signature, model: str, batch_size: int, log: Any) -> bool:
    """Sets max_batch_size if it is 0. Returns whether the first dimension of the model's tensors is the batch dimension."""
    configured = int(config.get("max_batch_size", 0))
    allowed = allows_batches((*signature.inputs.values(), *signature.outputs.values()))
    if not allowed and configured > 0:
        raise ModelError(
            "unable to autofill for '%s', configuration specified max-batch %d but model signature does not support batching"
            % (model, configured)
        )
    batches = allowed and batch_size > 0 and _hints_at_batches(config, signature, model)
    if configured == 0:
        configured = batch_size if batches else 0
        config["max_batch_size"] = configured
        if batches:
            log.log_warn(
                "autofilled max_batch_size to %d for model '%s' since batching is supporrted but no max_batch_size is specified in model "
                "configuration. Must specify max_batch_size to utilize autofill with a larger max batch size"
                % (configured, model)
            )
    if configured > 1 and "sequence_batching" not in config:
        config.setdefault("dynamic_batching", {})
    return batches


def _hints_at_batches(config: dict[str, Any], signature: Signature, model: str) -> bool:
    """Returns whether each configured tensor has one dimension less than the model's tensor.

    If so, the model's first dimension is the batch dimension.
    """
    configured = [(one, signature.inputs) for one in config.get("input", ())]
    configured += [(one, signature.outputs) for one in config.get("output", ())]
    if not configured:
        return True
    hinted = False
    explicit = None
    for tensor, ports in configured:
        if tensor.get("allow_ragged_batch"):
            return True
        port = ports.get(tensor["name"])
        if port is None or not port.dims:
            continue
        reshape = tensor.get("reshape")
        dims = tensor.get("dims", ()) if reshape is None else reshape.get("shape", ())
        if not dims:
            hinted = hinted or explicit is None
            continue
        says = len(dims) == len(port.dims) - 1
        if explicit is not None and explicit != says:
            raise ModelError(_CONTRADICTION % model)
        hinted = explicit = says
    return hinted


def _made(name: str, port: Port, batches: bool, model: str) -> dict[str, Any]:
    made = {"name": name}
    _fill(made, port, batches, model)
    return made


def _fill(tensor: dict[str, Any], port: Port, batches: bool, model: str) -> None:
    if tensor.get("data_type", "TYPE_INVALID") == "TYPE_INVALID":
        tensor["data_type"] = port.datatype
    if tensor.get("dims"):
        return
    if not port.dims:
        raise ModelError(
            "Unable to autofill for '%s': the rank of model tensor '%s' is 0 and dimensions are not defined"
            % (model, tensor["name"])
        )
    dims = list(port.dims[1:] if batches else port.dims)
    if not dims:
        # A configuration cannot have empty dims. A scalar therefore has one dimension of length 1, and a reshape to no dimensions.
        tensor["reshape"] = {"shape": []}
        dims = [1]
    tensor["dims"] = dims
