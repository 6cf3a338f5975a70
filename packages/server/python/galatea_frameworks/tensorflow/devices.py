"""The device (CPU or GPU) of an instance's graph."""

from __future__ import annotations

import tensorflow as tf
from galatea_worker.failures import ModelError


def instance_gpu(kind: str, number: int, model: str) -> int | None:
    """Returns the GPU of an instance; None for the CPU. Raises ModelError if TensorFlow does not find the GPU."""
    if kind != "GPU":
        return None
    found = len(tf.config.list_physical_devices("GPU"))
    if number >= found:
        raise ModelError(
            "unable to load model '%s': its instance is placed on GPU %d, and TensorFlow %s finds %d GPUs. One with CUDA is set up by: "
            "galatea model add tensorflow-gpu" % (model, number, tf.__version__, found)
        )
    return number
