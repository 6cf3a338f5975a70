"""The changes that `auto_complete_config` may make to a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_KEYS = {"input": ("name", "data_type", "dims", "optional"), "output": ("name", "data_type", "dims")}


def set_max_batch_size(config: dict[str, Any], max_batch_size: int) -> None:
    """Sets max_batch_size if the configuration has 0. A larger configured value is an error; a smaller one is kept."""
    configured = int(config.get("max_batch_size", 0))
    if configured > max_batch_size:
        raise ValueError(
            "configuration specified max_batch_size %d, but in auto-complete-config function for model '%s' specified max_batch_size %d"
            % (configured, _name(config), max_batch_size)
        )
    config["max_batch_size"] = max_batch_size


def set_dynamic_batching(config: dict[str, Any]) -> None:
    """Enables dynamic batching. Another configured scheduler is an error."""
    for key in ("sequence_batching", "ensemble_scheduling"):
        if key in config:
            raise ValueError(
                "Configuration specified scheduling_choice as '%s', but auto-complete-config function for model '%s' tries to set"
                " scheduling_choice as 'dynamic_batching'" % (key, _name(config))
            )
    config.setdefault("dynamic_batching", {})


def set_model_transaction_policy(config: dict[str, Any], policy: dict[str, bool]) -> None:
    """Sets `decoupled`. A different configured value is an error."""
    # A value that is not a dictionary fails with Triton's text, which contains `keys`.
    if any(key != "decoupled" for key in policy.keys()):  # noqa: SIM118
        raise ValueError(
            "model transaction property in auto-complete-config function for model '%s' contains property other than 'decoupled'."
            % _name(config)
        )
    configured = config.get("model_transaction_policy")
    decoupled = policy.get("decoupled", False)
    if configured is not None and "decoupled" in policy and bool(configured.get("decoupled", False)) != bool(decoupled):
        raise ValueError(
            "trying to change decoupled property in auto-complete-config for model '%s', which is already set to '%s'."
            % (_name(config), configured.get("decoupled", False))
        )
    if configured is None:
        config["model_transaction_policy"] = {"decoupled": decoupled}


def add_tensor(config: dict[str, Any], kind: str, tensor: dict[str, Any]) -> None:
    """Adds an input or output, or completes the empty fields of a configured one with the same name."""
    keys = _KEYS[kind]
    for key in tensor:
        if key not in keys:
            raise ValueError(
                "%s '%s' in auto-complete-config function for model '%s' contains property other than %s."
                % (kind, tensor.get("name", ""), _name(config), _listed(keys))
            )
    if "name" not in tensor:
        raise ValueError(
            "%s in auto-complete-config function for model '%s' is missing 'name' property." % (kind, _name(config))
        )
    for key in ("data_type", "dims"):
        if key not in tensor:
            raise ValueError(
                "%s '%s' in auto-complete-config function for model '%s' is missing '%s' property."
                % (kind, tensor["name"], _name(config), key)
            )
    tensors = config.setdefault(kind, [])
    for configured in tensors:
        if configured.get("name") == tensor["name"]:
            _merge(config, kind, configured, tensor)
            return
    tensors.append({key: tensor[key] for key in keys if key in tensor})


def _merge(config: dict[str, Any], kind: str, configured: dict[str, Any], tensor: dict[str, Any]) -> None:
    data_type = configured.get("data_type", "TYPE_INVALID")
    if data_type in ("", "TYPE_INVALID"):
        configured["data_type"] = tensor["data_type"]
    elif data_type != tensor["data_type"]:
        raise ValueError(
            "unable to load model '%s', configuration expects datatype %s for %s '%s', model provides %s"
            % (_name(config), data_type, kind, tensor["name"], tensor["data_type"])
        )
    dims = [int(one) for one in configured.get("dims", [])]
    if not dims:
        configured["dims"] = list(tensor["dims"])
    elif dims != [int(one) for one in tensor["dims"]]:
        raise ValueError(
            "model '%s', tensor '%s': the model expects dims %s but the model configuration specifies dims %s"
            % (_name(config), tensor["name"], list(tensor["dims"]), dims)
        )
    if "optional" in tensor and bool(configured.get("optional", False)) != bool(tensor["optional"]):
        raise ValueError(
            "model '%s', tensor '%s': the model expects optional %s but the model configuration specifies optional %s"
            % (_name(config), tensor["name"], tensor["optional"], bool(configured.get("optional", False)))
        )


def _name(config: dict[str, Any]) -> str:
    return config.get("name", "")


def _listed(keys: Sequence[str]) -> str:
    """Returns the names as text: "'a', 'b' and 'c'"."""
    quoted = ["'%s'" % one for one in keys]
    return ", ".join(quoted[:-1]) + " and " + quoted[-1]
