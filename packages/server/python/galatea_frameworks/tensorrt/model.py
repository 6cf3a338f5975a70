"""The model class of backend `tensorrt` for the Python backend."""

from galatea_worker.failures import ModelError

try:
    from galatea_frameworks.tensorrt.program import TritonPythonModel
except ImportError as error:
    raise ModelError(
        "TensorRT cannot be imported where Python models run (--python, or the model's EXECUTION_ENV_PATH): %s. "
        "Its package there is 'tensorrt', from NVIDIA's package index" % error
    ) from None

__all__ = ["TritonPythonModel"]
