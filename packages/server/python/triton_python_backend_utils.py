"""The module that models for Triton's Python backend import: `import triton_python_backend_utils as pb_utils`."""

from __future__ import annotations

import inspect
import json
import struct
from typing import TYPE_CHECKING

import numpy as np
from galatea_worker import datatypes as _datatypes
from galatea_worker import model_config as _model_config
from galatea_worker.inference_request import (  # noqa: F401 - offered to models
    InferenceRequest,
    InferenceTrace,
    MemoryType,
    PreferredMemory,
)
from galatea_worker.metrics import Metric, MetricFamily
from galatea_worker.model_control import is_model_ready, load_model, unload_model  # noqa: F401 - offered to models
from galatea_worker.objects import InferenceResponse, Tensor, TritonError, TritonModelException
from galatea_worker.response_sender import InferenceResponseSender
from galatea_worker.signatures import MODULE, ArgumentMismatch, checked, enumeration, text_of

if TYPE_CHECKING:
    from typing import Any


__all__ = [
    "InferenceRequest",
    "InferenceResponse",
    "InferenceResponseSender",
    "Logger",
    "Metric",
    "MetricFamily",
    "ModelConfig",
    "Tensor",
    "TritonError",
    "TritonModelException",
]

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2
TRITONSERVER_MEMORY_GPU, TRITONSERVER_MEMORY_CPU = MemoryType.__members__.values()

TRITON_STRING_TO_NUMPY = {
    "TYPE_BOOL": bool,
    "TYPE_INT8": np.int8,
    "TYPE_INT16": np.int16,
    "TYPE_INT32": np.int32,
    "TYPE_INT64": np.int64,
    "TYPE_UINT8": np.uint8,
    "TYPE_UINT16": np.uint16,
    "TYPE_UINT32": np.uint32,
    "TYPE_UINT64": np.uint64,
    "TYPE_FP16": np.float16,
    "TYPE_FP32": np.float32,
    "TYPE_FP64": np.float64,
    "TYPE_STRING": np.object_,
}


_TRITON_TO_NUMPY = {number: dtype.type for number, dtype in enumerate(_datatypes.DTYPES) if dtype is not None}
_NUMPY_TO_TRITON = (
    *((numpy_type, number) for number, numpy_type in _TRITON_TO_NUMPY.items()),
    (np.bytes_, _datatypes.BYTES),
)


_LogLevel = enumeration("Logger.LogLevel", ("INFO", "WARNING", "ERROR", "VERBOSE"))
# Number of stack frames from `_log` to the model's code: the Logger function, the check of its arguments, and `_log` itself.
_LOG_DEPTH = 3
_LOGS = "(message: str) -> None"


def _log(level: int, message: str | bytes) -> None:
    message = text_of(message)
    frame = inspect.currentframe()
    for _ in range(_LOG_DEPTH):
        frame = frame.f_back if frame is not None and frame.f_back is not None else frame
    from galatea_worker import current_worker

    current_worker.log(level, message, frame.f_code.co_filename, frame.f_lineno)


class Logger:
    """Writes to the server's log."""

    __module__ = MODULE
    LogLevel = _LogLevel
    INFO, WARNING, ERROR, VERBOSE = _LogLevel.__members__.values()

    def __init__(self) -> None:
        raise TypeError("%s.Logger: No constructor defined!" % MODULE)

    @staticmethod
    @checked("(message: str, level: c_python_backend_utils.Logger.LogLevel = <LogLevel.INFO: 0>) -> None")
    def log(message: str, level: Any = INFO) -> None:
        """Logs one line at a level."""
        if not isinstance(level, _LogLevel):
            raise ArgumentMismatch
        _log(level.value, message)

    @staticmethod
    @checked(_LOGS)
    def log_info(message: str) -> None:
        """Logs one line of information."""
        _log(_LogLevel.INFO.value, message)

    @staticmethod
    @checked(_LOGS)
    def log_warn(message: str) -> None:
        """Logs one warning."""
        _log(_LogLevel.WARNING.value, message)

    @staticmethod
    @checked(_LOGS)
    def log_error(message: str) -> None:
        """Logs one error."""
        _log(_LogLevel.ERROR.value, message)

    @staticmethod
    @checked(_LOGS)
    def log_verbose(message: str) -> None:
        """Logs one verbose line."""
        _log(_LogLevel.VERBOSE.value, message)


class ModelConfig:
    """A model's configuration, as Triton passes it to `auto_complete_config`: a dict with the structure of the configuration's JSON form."""

    def __init__(self, model_config: str) -> None:
        self._model_config = json.loads(model_config)

    def as_dict(self) -> dict[str, Any]:
        """Returns the configuration."""
        return self._model_config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        """Sets max_batch_size if the configuration has 0. A larger configured value is an error; a smaller one is kept."""
        _model_config.set_max_batch_size(self._model_config, max_batch_size)

    def set_dynamic_batching(self) -> None:
        """Enables dynamic batching. Another configured scheduler is an error."""
        _model_config.set_dynamic_batching(self._model_config)

    def set_model_transaction_policy(self, transaction_policy_dict: dict[str, bool]) -> None:
        """Sets `decoupled`. A different configured value is an error."""
        _model_config.set_model_transaction_policy(self._model_config, transaction_policy_dict)

    def add_input(self, input: dict[str, Any]) -> None:
        """Adds an input, or completes the empty fields of a configured one with the same name."""
        _model_config.add_tensor(self._model_config, "input", input)

    def add_output(self, output: dict[str, Any]) -> None:
        """Adds an output, or completes the empty fields of a configured one with the same name."""
        _model_config.add_tensor(self._model_config, "output", output)


def get_input_tensor_by_name(inference_request: InferenceRequest, name: str) -> Tensor | None:
    """Returns the input of the request with this name; None if there is none."""
    for tensor in inference_request._inputs:
        if tensor._name == name:
            return tensor
    return None


def get_output_tensor_by_name(inference_response: InferenceResponse, name: str) -> Tensor | None:
    """Returns the output of the response with this name; None if there is none."""
    for tensor in inference_response._outputs:
        if tensor._name == name:
            return tensor
    return None


def get_input_config_by_name(model_config: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Returns the configuration of an input from a model's configuration (a dict); None if there is none."""
    for properties in model_config.get("input", ()):
        if properties["name"] == name:
            return properties
    return None


def get_output_config_by_name(model_config: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Returns the configuration of an output from a model's configuration (a dict); None if there is none."""
    for properties in model_config.get("output", ()):
        if properties["name"] == name:
            return properties
    return None


def using_decoupled_model_transaction_policy(model_config: dict[str, Any]) -> bool:
    """Returns whether a configuration (a dict) is that of a decoupled model."""
    return bool(model_config.get("model_transaction_policy", {}).get("decoupled", False))


def triton_to_numpy_type(data_type: int) -> type | None:
    """Returns the numpy type for a datatype number; None if there is none."""
    return _TRITON_TO_NUMPY.get(data_type)


def numpy_to_triton_type(data_type: Any) -> int | None:
    """Returns the datatype number for a numpy type; None if there is none, as for Python's `bool` and `str`."""
    for numpy_type, number in _NUMPY_TO_TRITON:
        if data_type == numpy_type:
            return number
    return None


def triton_string_to_numpy(triton_type_string: str) -> type:
    """Returns the numpy type for a datatype name, such as numpy.float32 for 'TYPE_FP32'."""
    return TRITON_STRING_TO_NUMPY[triton_type_string]


def serialize_byte_tensor(input_tensor: np.ndarray) -> bytes | tuple[()] | None:
    """Encodes an array of bytes or objects as a uint32 length and the bytes of each element.

    As in Triton, returns () for no elements and None for other arrays.
    """
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype.kind not in "SO":
        return None
    return _datatypes.serialize_elements(input_tensor)


def deserialize_bytes_tensor(encoded_tensor: bytes) -> np.ndarray:
    """Decodes uint32 lengths and bytes to a one-dimensional array of bytes objects. Raises struct.error when a length exceeds the data."""
    elements = []
    at = 0
    while at < len(encoded_tensor):
        (size,) = struct.unpack_from("<I", encoded_tensor, at)
        elements.append(struct.unpack_from("<%ds" % size, encoded_tensor, at + 4)[0])
        at += 4 + size
    result = np.empty(len(elements), np.object_)
    result[:] = elements
    return result


def get_model_dir() -> str:
    """Returns the directory of the model's version."""
    from galatea_worker import current_worker

    return current_worker.model_directory()
