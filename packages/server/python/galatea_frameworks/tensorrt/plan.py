"""A plan (a file with a TensorRT engine) and the tensors of its engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import tensorrt as trt
import triton_python_backend_utils as pb_utils
from galatea_worker.failures import ModelError

if TYPE_CHECKING:
    from typing import Any

# The configuration's names for TensorRT's datatypes.
_DATATYPES = {
    "FLOAT": "TYPE_FP32",
    "HALF": "TYPE_FP16",
    "BF16": "TYPE_BF16",
    "INT8": "TYPE_INT8",
    "UINT8": "TYPE_UINT8",
    "INT32": "TYPE_INT32",
    "INT64": "TYPE_INT64",
    "BOOL": "TYPE_BOOL",
}
DATATYPES = frozenset(_DATATYPES.values())


class Port(NamedTuple):
    """An input or output of an engine."""

    name: str
    datatype: str
    # Dimensions, including the batch dimension; -1 for a variable one.
    shape: tuple[int, ...]
    is_input: bool
    # True for a shape tensor, whose values determine shapes of other tensors. The values are in main memory, not in GPU memory.
    is_shape: bool
    is_linear: bool

    @property
    def is_dynamic(self) -> bool:
        """True if each run must set the shape."""
        return -1 in self.shape


class Log(trt.ILogger):
    """Writes TensorRT's messages to the server's log, and keeps the last error, because some calls do not return one."""

    def __init__(self) -> None:
        trt.ILogger.__init__(self)
        self.last_error = ""

    def log(self, severity: Any, msg: str) -> None:
        """Logs one line."""
        said = trt.ILogger.Severity
        if severity in (said.INTERNAL_ERROR, said.ERROR):
            self.last_error = msg
            pb_utils.Logger.log_error(msg)
        elif severity == said.WARNING:
            pb_utils.Logger.log_warn(msg)
        elif severity == said.INFO:
            pb_utils.Logger.log_info(msg)
        else:
            pb_utils.Logger.log_verbose(msg)


class Unreadable(ModelError):
    """TensorRT cannot create an engine from the file. TensorRT's messages in the log contain the reason."""


class Plan:
    """An engine and its runtime. Raises ModelError with Triton's text."""

    def __init__(self, path: str, model: str, *, allows_host_code: bool) -> None:
        self.log = Log()
        runtime = trt.Runtime(self.log)
        if allows_host_code:
            runtime.engine_host_code_allowed = True
        with open(path, "rb") as file:
            engine = runtime.deserialize_cuda_engine(file.read())
        if engine is None:
            raise Unreadable("unable to create TensorRT engine: %s" % self.log.last_error)
        if not hasattr(engine, "num_io_tensors"):
            raise ModelError("unable to load model '%s': TensorRT %s is older than 8.5" % (model, trt.__version__))
        if getattr(engine, "has_implicit_batch_dimension", False):
            raise ModelError(
                "unable to load model '%s': its plan has an implicit batch dimension; build it anew with an explicit one"
                % model
            )
        # Kept because an engine needs the runtime that created it.
        self._runtime = runtime
        self.engine = engine
        names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
        self.ports = {name: _port(engine, name) for name in names}

    @property
    def inputs(self) -> list[Port]:
        """The inputs in the engine's order."""
        return [port for port in self.ports.values() if port.is_input]

    @property
    def outputs(self) -> list[Port]:
        """The outputs in the engine's order."""
        return [port for port in self.ports.values() if not port.is_input]

    def limits(self, name: str, profile: int) -> tuple[tuple[int, ...], ...]:
        """Returns the minimum, optimum and maximum that a profile has for an input: shapes, or values of a shape tensor."""
        if not self.ports[name].is_shape:
            return tuple(tuple(one) for one in self.engine.get_tensor_profile_shape(name, profile))
        return tuple(tuple(one) for one in self.engine.get_tensor_profile_values(profile, name))


def _port(engine: Any, name: str) -> Port:
    dtype = engine.get_tensor_dtype(name)
    return Port(
        name,
        _DATATYPES.get(str(dtype).rpartition(".")[2], "TYPE_INVALID"),
        tuple(engine.get_tensor_shape(name)),
        engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT,
        bool(engine.is_shape_inference_io(name)),
        engine.get_tensor_format(name) == trt.TensorFormat.LINEAR,
    )
