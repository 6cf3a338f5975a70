"""Simulates TensorRT for tests: the part of its Python API that the backend `tensorrt` uses, with engines in JSON.

A plan is `{"tensors": [...], "profiles": [...]}`. A tensor has `name`, `mode`, `dtype` and `shape`; `is_shape` and `format` are optional.
An output has `op`, a key of `_OPERATIONS`, and the names of its inputs. A profile has the minimum, optimum and maximum shape of each input,
or the values of a shape tensor. As on a GPU, no work runs before the stream is synchronized, and memory is addressed by device pointers.
"""

import ctypes
import enum
import json

import numpy as np
from galatea_frameworks.tensorrt import cuda

from . import fake_cudart

__version__ = "10.0.0.fake"

_cudart = fake_cudart.FakeCudart()
cuda.load_library = lambda: _cudart


class DataType(enum.Enum):
    FLOAT = np.float32
    HALF = np.float16
    BF16 = "bfloat16"
    INT32 = np.int32
    INT64 = np.int64
    INT8 = np.int8
    UINT8 = np.uint8
    BOOL = np.bool_
    FP8 = "fp8"


class TensorIOMode(enum.Enum):
    INPUT = 1
    OUTPUT = 2


class TensorFormat(enum.Enum):
    LINEAR = 0
    CHW4 = 3


class ExecutionContextAllocationStrategy(enum.Enum):
    STATIC = 0
    ON_PROFILE_CHANGE = 1


class ILogger:
    class Severity(enum.Enum):
        INTERNAL_ERROR = 0
        ERROR = 1
        WARNING = 2
        INFO = 3
        VERBOSE = 4


class IOutputAllocator:
    pass


class Runtime:
    def __init__(self, logger):
        self.logger = logger
        self.engine_host_code_allowed = False

    def deserialize_cuda_engine(self, plan):
        try:
            definition = json.loads(plan)
        except ValueError:
            self.logger.log(ILogger.Severity.ERROR, "Serialization assertion magicTagRead == magicTag failed.")
            return None
        if definition.get("is_lean") and not self.engine_host_code_allowed:
            self.logger.log(ILogger.Severity.ERROR, "Engine host code is not allowed.")
            return None
        return Engine(definition, self.logger)


class Engine:
    def __init__(self, definition, logger):
        self._tensors = {one["name"]: one for one in definition["tensors"]}
        self._profiles = definition["profiles"]
        self.logger = logger
        self.num_io_tensors = len(self._tensors)
        self.num_optimization_profiles = len(self._profiles)
        self.has_implicit_batch_dimension = definition.get("implicit", False)

    def get_tensor_name(self, index):
        return list(self._tensors)[index]

    def get_tensor_mode(self, name):
        return TensorIOMode[self._tensors[name]["mode"]]

    def get_tensor_dtype(self, name):
        return DataType[self._tensors[name]["dtype"]]

    def get_tensor_shape(self, name):
        return tuple(self._tensors[name]["shape"])

    def is_shape_inference_io(self, name):
        return self._tensors[name].get("is_shape", False)

    def get_tensor_format(self, name):
        return TensorFormat[self._tensors[name].get("format", "LINEAR")]

    def get_tensor_profile_shape(self, name, profile_index):
        assert not self.is_shape_inference_io(name)
        return self._profiles[profile_index][name]

    def get_tensor_profile_values(self, profile_index, name):
        assert self.is_shape_inference_io(name)
        return self._profiles[profile_index][name]

    def create_execution_context(self, strategy=ExecutionContextAllocationStrategy.STATIC):
        assert isinstance(strategy, ExecutionContextAllocationStrategy)
        return Context(self, self._tensors, self._profiles)


def _fill(context, shape, *_):
    return np.full(shape, context.profile)


# Operations by name. Each computes an output from the arrays of the inputs that the output names.
_OPERATIONS = {
    "sum": lambda context, shape, one, other: one + other,
    "difference": lambda context, shape, one, other: one - other,
    "same": lambda context, shape, one: one,
    "profile": _fill,
    "positive": lambda context, shape, one: one[one > 0],
    "zeros": lambda context, shape, *_: np.zeros(shape),
    "values": lambda context, shape, one: one,
    "fails": None,
}


class Context:
    def __init__(self, engine, tensors, profiles):
        self._engine = engine
        self._tensors = tensors
        self._profiles = profiles
        self._shapes = {}
        self._addresses = {}
        self._allocators = {}
        self.profile = 0

    def set_optimization_profile_async(self, profile_index, stream):
        assert stream == _cudart.stream
        self.profile = profile_index
        self._shapes = {}
        return profile_index < len(self._profiles)

    def set_input_shape(self, name, shape):
        smallest, _, largest = self._profiles[self.profile][name]
        if not all(least <= one <= most for least, one, most in zip(smallest, shape, largest)):
            return False
        self._shapes[name] = tuple(shape)
        return True

    def set_tensor_address(self, name, memory):
        if name not in self._tensors:
            return False
        self._addresses[name] = memory
        return True

    def set_output_allocator(self, name, allocator):
        assert isinstance(allocator, IOutputAllocator)
        self._allocators[name] = allocator
        return True

    def infer_shapes(self):
        return [
            name
            for name, one in self._tensors.items()
            if one["mode"] == "INPUT"
            and (name not in self._addresses if one.get("is_shape") else -1 in self.get_tensor_shape(name))
        ]

    def get_tensor_shape(self, name):
        one = self._tensors[name]
        if one["mode"] == "INPUT":
            return self._shapes.get(name, tuple(one["shape"]))
        operation, *sources = one["op"]
        if operation == "positive":
            return (-1,)
        if operation == "zeros":
            return tuple(int(value) for value in self._host_values(sources[0]))
        if operation == "values":
            return tuple(self._tensors[sources[0]]["shape"])
        return self.get_tensor_shape(sources[0])

    def get_max_output_size(self, name):
        return int(np.prod(self.get_tensor_shape(name))) * self._dtype(name).itemsize

    def execute_async_v3(self, stream):
        assert stream == _cudart.stream
        if any(one.get("op", [""])[0] == "fails" for one in self._tensors.values()):
            self._engine.logger.log(ILogger.Severity.ERROR, "executeV3 failed")
            return False
        late = {name for name, one in self._tensors.items() if one.get("op", [""])[0] == "positive"}
        shapes = {name: self.get_tensor_shape(name) for name in self._tensors}
        if late:
            # The size of such an output is known only after it was computed.
            _cudart.run_now()
        for name, one in self._tensors.items():
            if one["mode"] == "INPUT":
                continue
            operation, *sources = one["op"]

            def run(name=name, operation=operation, sources=sources):
                arrays = [self._read(source, shapes[source]) for source in sources]
                return np.ascontiguousarray(_OPERATIONS[operation](self, shapes[name], *arrays), self._dtype(name))

            if name in late:
                found = run()
                allocator = self._allocators[name]
                memory = allocator.reallocate_output(name, 0, found.nbytes, 256)
                if memory == 0:
                    return False
                allocator.notify_shape(name, found.shape)
                _cudart.write(memory, found)
            elif one.get("is_shape"):
                found = run()
                ctypes.memmove(self._addresses[name], found.ctypes.data, found.nbytes)
            else:
                address = self._addresses[name]
                _cudart.later(lambda run=run, address=address: _cudart.write(address, run()))
        return True

    def _dtype(self, name):
        dtype = DataType[self._tensors[name]["dtype"]]
        return np.dtype(np.uint16 if dtype is DataType.BF16 else dtype.value)

    def _host_values(self, name):
        count = int(np.prod(self._tensors[name]["shape"]))
        kind = self._dtype(name)
        return np.frombuffer(ctypes.string_at(self._addresses[name], count * kind.itemsize), kind)

    def _read(self, name, shape):
        if self._tensors[name].get("is_shape"):
            return self._host_values(name)
        kind = self._dtype(name)
        size = int(np.prod(shape)) * kind.itemsize
        return np.frombuffer(_cudart.read(self._addresses[name], size), kind).reshape(shape)
