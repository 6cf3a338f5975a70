"""The execution contexts of an engine, one for each optimization profile of an instance, and their runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import tensorrt as trt
import triton_python_backend_utils as pb_utils
from galatea_worker.failures import ModelError

from galatea_frameworks.batched_model import InvalidRequest

from . import profiles
from .configured import model_dims, shown
from .cuda import Buffer, CudaError, Device

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .plan import Plan, Port

_INTERNAL = pb_utils.TritonError.INTERNAL
_UNSPECIFIED = "failed to specify the dimensions of all input tensors or values of all input shape tensors"
_STRATEGIES = ("STATIC", "ON_PROFILE_CHANGE")
# Datatypes of shape tensors. Their values are in main memory; TensorRT uses at most eight bytes of each value.
_SHAPE_DTYPES = {"TYPE_INT32": np.int32, "TYPE_INT64": np.int64}
DTYPES = {
    "TYPE_FP32": np.float32,
    "TYPE_FP16": np.float16,
    "TYPE_BF16": np.uint16,
    "TYPE_INT8": np.int8,
    "TYPE_UINT8": np.uint8,
    "TYPE_BOOL": np.bool_,
    **_SHAPE_DTYPES,
}


class _Allocator(trt.IOutputAllocator):
    """Allocates the memory of an output whose size is known only during the run."""

    def __init__(self, device: Device) -> None:
        trt.IOutputAllocator.__init__(self)
        self.buffer = Buffer(device)
        self.shape: tuple[int, ...] = ()
        self.error: CudaError | None = None

    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
        """Returns the address of the memory. Returns 0 if there is not enough memory, which fails the run."""
        try:
            return self.buffer.reach(size)
        except CudaError as error:
            self.error = error
            return 0

    def reallocate_output_async(self, tensor_name: str, memory: int, size: int, alignment: int, stream: int) -> int:
        """Allocates memory and ignores the stream, because earlier work has completed."""
        return self.reallocate_output(tensor_name, memory, size, alignment)

    def notify_shape(self, tensor_name: str, shape: Sequence[int]) -> None:
        """Records the actual shape of the output."""
        self.shape = tuple(shape)


class Contexts:
    """The execution contexts of one instance. The constructor allocates memory for the largest batch. Raises ModelError and CudaError."""

    def __init__(self, plan: Plan, device: Device, config: dict[str, Any], about: tuple[str, str]) -> None:
        self._plan = plan
        self._device = device
        self._model, self._instance = about
        self._contexts: dict[int, Any] = {}
        self._names: dict[int, str] = {}
        self._limits: dict[int, dict[str, tuple[tuple[int, ...], ...]]] = {}
        self._buffers = {port.name: Buffer(device) for port in plan.ports.values() if not port.is_shape}
        self._shape_values: dict[str, np.ndarray] = {}
        self._allocators: dict[str, _Allocator] = {}
        names = profiles.profile_names(config, self._instance)
        for name, number in [(name, profiles.profile_number(name)) for name in names] or [("default", 0)]:
            self._open(name, number, config)
        self._reserve(config)

    def _open(self, name: str, number: int, config: dict[str, Any]) -> None:
        if number in self._contexts:
            pb_utils.Logger.log_warn(
                "%s maps to profile index %d which has been mapped by %s, existing optimization profile will be reused"
                % (name, number, self._names[number])
            )
            return
        context = self._create(config)
        if context is None:
            raise ModelError("unable to create TensorRT context: %s" % self._plan.log.last_error)
        count = self._plan.engine.num_optimization_profiles
        known = 0 <= number < max(count, 1)
        if not known or (number != 0 and not context.set_optimization_profile_async(number, self._device.stream)):
            raise ModelError(
                "Can not set the specified optimization profile %s[%d] for %s. Expected optimization profile index range 0-%d"
                % (name, number, self._instance, count - 1)
            )
        self._device.finish()
        self._contexts[number] = context
        self._names[number] = name
        self._limits[number] = {port.name: self._plan.limits(port.name, number) for port in self._plan.inputs}

    def _create(self, config: dict[str, Any]) -> Any:
        given = config.get("parameters", {}).get("execution_context_allocation_strategy", {}).get("string_value")
        if given is None:
            return self._plan.engine.create_execution_context()
        if given not in _STRATEGIES:
            raise ModelError(
                "Invalid value for 'execution_context_allocation_strategy': '%s' for model instance '%s'. Supported values are 'STATIC' and "
                "'ON_PROFILE_CHANGE'." % (given, self._model)
            )
        return self._plan.engine.create_execution_context(getattr(trt.ExecutionContextAllocationStrategy, given))

    def _reserve(self, config: dict[str, Any]) -> None:
        """Allocates memory for the largest batch, so that the load fails if the GPU has too little memory."""
        batch = int(config.get("max_batch_size", 0))
        for number, context in self._contexts.items():
            for tensor in config["input"]:
                port = self._plan.ports[tensor["name"]]
                largest = self._limits[number][port.name][2]
                if port.is_shape:
                    self._set_values(context, port, np.asarray(largest))
                    continue
                most = self._largest(tensor, port, number, batch)
                self._buffers[port.name].reach(_size(port, most))
                if port.is_dynamic and not context.set_input_shape(port.name, most):
                    raise ModelError(
                        "trt failed to set binding dimension to %s for input '%s' for %s"
                        % (shown(most), port.name, self._instance)
                    )
                self._bind(context, port.name, self._buffers[port.name].address)
            if context.infer_shapes():
                raise ModelError(_UNSPECIFIED)
            for port in self._plan.outputs:
                if not port.is_shape and -1 not in tuple(context.get_tensor_shape(port.name)):
                    self._buffers[port.name].reach(max(0, context.get_max_output_size(port.name)))

    def _largest(self, tensor: dict[str, Any], port: Port, number: int, batch: int) -> tuple[int, ...]:
        smallest, _, largest = self._limits[number][port.name]
        dims = model_dims(tensor)
        wanted = [-1, *dims] if batch > 0 else dims
        whole = [most if one == -1 else one for one, most in zip(wanted, largest)]
        problem = profiles.problem(whole, smallest, largest)
        if problem is not None:
            raise ModelError(
                "model configuration specified invalid shape for input '%s' for model %s. Error details: %s"
                % (port.name, self._model, problem)
            )
        return tuple([min(whole[0], batch), *whole[1:]] if batch > 0 else whole)

    def run(self, arrays: Mapping[str, np.ndarray], total: int, wanted: frozenset[str]) -> dict[str, np.ndarray]:
        """Runs the model with inputs in main memory and returns the requested outputs.

        `total` is the number of rows if the model batches. Raises InvalidRequest.
        """
        number = self._choose(arrays, total)
        context = self._contexts[number]
        for name, array in arrays.items():
            port = self._plan.ports[name]
            if port.is_shape:
                self._check(port, array, number, "shape values")
                self._set_values(context, port, array)
                continue
            self._check(port, array.shape, number, "shape")
            if port.is_dynamic and not context.set_input_shape(name, array.shape):
                raise InvalidRequest(
                    "trt failed to set binding dimension to %s for input '%s' for %s"
                    % (shown(array.shape), name, self._instance),
                    _INTERNAL,
                )
            address = self._buffers[name].reach(array.nbytes)
            self._device.put(address, array.ctypes.data, array.nbytes)
            self._bind(context, name, address)
        if context.infer_shapes():
            raise InvalidRequest(_UNSPECIFIED, _INTERNAL)
        for port in self._plan.outputs:
            self._place(context, port)
        if not context.execute_async_v3(self._device.stream):
            self._device.finish()
            for allocator in self._allocators.values():
                if allocator.error is not None:
                    failed, allocator.error = allocator.error, None
                    raise failed
            raise InvalidRequest("unable to enqueue for inference %s" % self._instance, _INTERNAL)
        # The size of outputs that depend on values is known only after the run.
        if self._allocators:
            self._device.finish()
        taken = {port.name: self._take(context, port) for port in self._plan.outputs if port.name in wanted}
        self._device.finish()
        return taken

    def _choose(self, arrays: Mapping[str, np.ndarray], total: int) -> int:
        if len(self._contexts) == 1:
            return next(iter(self._contexts))
        asked = {name: array if self._plan.ports[name].is_shape else array.shape for name, array in arrays.items()}
        found = profiles.nearest(asked, sorted(self._limits.items()))
        if found is None:
            # Like Triton, logs this and runs the batch with the first profile. The error of that run is the response.
            listed = "".join(" %s[%d]" % (self._names[number], number) for number in sorted(self._contexts))
            pb_utils.Logger.log_error(
                "failed to find any Optimization Profile among [%s] to support the requested dimensions (or shape values), proceeding with "
                "first profile." % listed
            )
            return min(self._contexts)
        return found

    def _check(self, port: Port, sizes: Sequence[int], number: int, what: str) -> None:
        smallest, _, largest = self._limits[number][port.name]
        problem = profiles.problem(sizes, smallest, largest)
        if problem is not None:
            raise InvalidRequest(
                "request specifies invalid %s for input '%s' for %s. Error details: %s"
                % (what, port.name, self._instance, problem),
                _INTERNAL,
            )

    def _set_values(self, context: Any, port: Port, values: np.ndarray) -> None:
        held = np.ascontiguousarray(values, _SHAPE_DTYPES[port.datatype])
        self._shape_values[port.name] = held
        self._bind(context, port.name, held.ctypes.data)

    def _place(self, context: Any, port: Port) -> None:
        if port.is_shape:
            count = max(1, int(np.prod(tuple(context.get_tensor_shape(port.name)), dtype=np.int64)))
            held = np.zeros(count, _SHAPE_DTYPES[port.datatype])
            self._shape_values[port.name] = held
            self._bind(context, port.name, held.ctypes.data)
            return
        shape = tuple(context.get_tensor_shape(port.name))
        if -1 not in shape:
            self._bind(context, port.name, self._buffers[port.name].reach(_size(port, shape)))
            return
        allocator = self._allocators.get(port.name)
        if allocator is None:
            allocator = self._allocators[port.name] = _Allocator(self._device)
        context.set_output_allocator(port.name, allocator)

    def _take(self, context: Any, port: Port) -> np.ndarray:
        if port.is_shape:
            self._device.finish()
            return self._shape_values[port.name].reshape(tuple(context.get_tensor_shape(port.name)))
        allocator = self._allocators.get(port.name)
        buffer = self._buffers[port.name] if allocator is None else allocator.buffer
        shape = tuple(context.get_tensor_shape(port.name)) if allocator is None else allocator.shape
        taken = np.empty(shape, DTYPES[port.datatype])
        self._device.take(taken.ctypes.data, buffer.address, taken.nbytes)
        return taken

    def _bind(self, context: Any, name: str, address: int) -> None:
        if not context.set_tensor_address(name, address):
            raise InvalidRequest("'%s' does not map to an input or output tensor" % name, _INTERNAL)

    def close(self) -> None:
        """Frees all GPU memory. Objects are freed before the objects that they depend on."""
        self._contexts.clear()
        for buffer in (*self._buffers.values(), *(one.buffer for one in self._allocators.values())):
            buffer.free()


def _size(port: Port, shape: Sequence[int]) -> int:
    return int(np.prod(shape, dtype=np.int64)) * np.dtype(DTYPES[port.datatype]).itemsize
