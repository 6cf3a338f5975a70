"""The device (CPU or GPU) of an instance's module and tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from galatea_worker.failures import ModelError

if TYPE_CHECKING:
    from typing import Any

_GPU = "cuda:%d"


def instance_device(kind: str, number: int, model: str) -> str | None:
    """Returns the device for an instance kind; None for KIND_MODEL, which lets the model choose.

    Raises ModelError if the GPU does not exist.
    """
    if kind == "CPU":
        return "cpu"
    if kind != "GPU":
        return None
    if not torch.cuda.is_available() or number >= torch.cuda.device_count():
        raise ModelError(
            "unable to load model '%s': its instance is placed on GPU %d, and PyTorch %s finds %d GPUs"
            % (model, number, torch.__version__, torch.cuda.device_count() if torch.cuda.is_available() else 0)
        )
    return _GPU % number


def placed(value: Any, device: str | None) -> Any:
    """Moves a tensor to the module's device. Lists of texts are returned unchanged, and tensors for the CPU are not copied."""
    if device in (None, "cpu") or not isinstance(value, torch.Tensor):
        return value
    return value.to(device)
